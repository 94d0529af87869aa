# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago info``."""

from __future__ import annotations

import sys

import cudago as cu

MODULE = [sys.executable, "-W", "error", "-m", "cudago"]


def test_info(script, driver, device):
    run = script.run([*MODULE, "info"])
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0].startswith(f"cudago    {cu.__version__}, Python 3.")
    assert f"CUDAGO_DRIVER={driver}" in lines
    major, minor = cu.driver_version()
    assert f"driver    {driver}, CUDA {major}.{minor}" in lines
    assert any(line.startswith(f"device 0  {device.name}, compute cap") for line in lines)
    assert any(line.startswith("nvrtc     compiles CUDA C++ to PTX ") for line in lines)


def test_info_says_where_it_looked(script):
    run = script.run([*MODULE, "info"], CUDAGO_DRIVER="auto", CUDAGO_LIBCUDA="/nowhere/libcuda.so")
    assert run.returncode == 0
    assert "driver    sim" in run.stdout
    assert "/nowhere/libcuda.so" in run.stdout
    run = script.run(
        [*MODULE, "info"], CUDAGO_DRIVER="nvidia", CUDAGO_LIBCUDA="/nowhere/libcuda.so"
    )
    assert (run.returncode, run.stderr) == (1, "")
    assert "driver    none: " in run.stdout
    assert "/nowhere/libcuda.so" in run.stdout
