# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago info`` and ``python -m cudago run``."""

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


def test_run(script, driver, tmp_path):
    (tmp_path / "beside.py").write_text("value = 42\n")
    file = tmp_path / "main.py"
    file.write_text(
        "import sys, os, beside, cudago\n"
        "print(__name__, sys.argv[1:], beside.value, cudago.driver_name(),"
        " os.environ.get('CUDAGO_SIM', ''))\n"
    )
    command = [*MODULE, "run", "--driver", driver, str(file), "--epochs", "3"]
    run = script.run(command, CUDAGO_SIM="")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"__main__ ['--epochs', '3'] 42 {driver} \n"


def test_run_with_checks(script, tmp_path):
    file = tmp_path / "main.py"
    file.write_text("import os, cudago; cudago.Device(); print(os.environ['CUDAGO_SIM'])\n")
    run = script.run([*MODULE, "run", "--driver", "sim", "--check", str(file)], CUDAGO_SIM="seed=7")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "seed=7,check=full\n")


def test_exit_code_of_a_script(script, tmp_path):
    file = tmp_path / "main.py"
    file.write_text("raise SystemExit(3)\n")
    assert script.run([*MODULE, "run", "--driver", "sim", str(file)]).returncode == 3


def test_unknown_commands(script):
    run = script.run([*MODULE, "help"])
    assert run.returncode == 2
    assert "invalid choice: 'help'" in run.stderr
