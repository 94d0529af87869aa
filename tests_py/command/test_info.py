# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago info``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import cudago as cu

MODULE = [sys.executable, "-W", "error", "-m", "cudago"]


def test_info(script, driver, device):
    run = script.run([*MODULE, "info"])
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0].startswith(f"cudago    {cu.__version__}, Python 3.")
    linked = r"linked    go go1\.\S+, github.com/go-python/gopy v\S+, \S+/demangle v\S+"
    assert re.fullmatch(linked, lines[1])
    assert f"CUDAGO_DRIVER={driver}" in lines
    major, minor = cu.driver_version()
    assert f"driver    {driver}, CUDA {major}.{minor}" in lines
    assert any(line.startswith(f"device 0  {device.name}, compute cap") for line in lines)
    compiles = next(
        i for i, x in enumerate(lines) if x.startswith("nvrtc     compiles CUDA C++ to")
    )
    assert Path(lines[compiles + 1].strip()).name.startswith("libnvrtc.so")


def test_info_for_programs(script, driver, device):
    run = script.run([*MODULE, "info", "--json"], CUDAGO_OWN="1")
    assert (run.returncode, run.stderr) == (0, "")
    found = json.loads(run.stdout)
    assert found["cudago"] == cu.__version__
    assert (
        found["environment"] | {"CUDAGO_DRIVER": driver, "CUDAGO_OWN": "1"} == found["environment"]
    )
    modules = {"github.com/go-python/gopy", "github.com/ianlancetaylor/demangle"}
    assert set(found["linked"]) == {"go", *modules}
    assert found["driver"]["name"] == driver
    assert tuple(found["driver"]["version"]) == cu.driver_version()
    assert found["driver"]["error"] is None
    first = found["devices"][0]
    assert (first["name"], first["total_memory"]) == (device.name, device.total_memory)
    assert found["nvrtc"]["error"] is None
    assert Path(found["nvrtc"]["library"]).exists()


def test_info_says_where_it_looked(script):
    run = script.run([*MODULE, "info"], CUDAGO_DRIVER="auto", CUDAGO_LIBCUDA="/nowhere/libcuda.so")
    assert (run.returncode, run.stderr) == (0, "")
    assert "driver    sim" in run.stdout
    assert run.stdout.count("using the simulated driver") == 1
    assert "/nowhere/libcuda.so" in run.stdout
    run = script.run(
        [*MODULE, "info"], CUDAGO_DRIVER="nvidia", CUDAGO_LIBCUDA="/nowhere/libcuda.so"
    )
    assert (run.returncode, run.stderr) == (1, "")
    assert "driver    none: " in run.stdout
    assert "/nowhere/libcuda.so" in run.stdout


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"CUDAGO_DRIVER": "gpu"},
            "CUDAGO_DRIVER must be one of 'auto', 'nvidia', 'sim', got 'gpu'",
        ),
        (
            {"CUDAGO_SIM": "devices=many"},
            "CUDAGO_SIM, the settings of the simulated driver: devices must be a whole number "
            'from 1 to 16, got "many"',
        ),
        (
            {
                "CUDAGO_DRIVER": "auto",
                "CUDAGO_LIBCUDA": "/nowhere/libcuda.so",
                "CUDAGO_SIM": "cc=x",
            },
            "CUDAGO_SIM, the settings of the simulated driver: cc must be one of 7.5, 8.0, 8.6, "
            '8.9, 9.0, 10.0, 12.0, got "x"',
        ),
    ],
)
def test_a_wrong_variable_is_reported_in_a_sentence(variables, said, script):
    environment = {"CUDAGO_DRIVER": "sim", "CUDAGO_SIM": ""} | variables
    run = script.run([*MODULE, "info"], **environment)
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.splitlines()[-1] == f"driver    none: {said}"
    run = script("import cudago; cudago.Device()", **environment)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"ValueError: {said}"


@pytest.mark.parametrize(
    ("logging", "said"),
    [
        ("", "cudago: using the simulated driver, because "),
        ("logging.basicConfig()", "WARNING:cudago:using the simulated driver, because "),
        ("logging.getLogger('cudago').setLevel('ERROR')", ""),
        ("logging.getLogger('cudago').addHandler(logging.NullHandler())", ""),
    ],
)
def test_the_choice_of_a_driver_is_logged_once(logging, said, script):
    run = script(
        f"import logging, cudago; {logging or 'pass'}; cudago.Device(); cudago.Device.all()",
        CUDAGO_DRIVER="auto",
        CUDAGO_LIBCUDA="/nowhere/libcuda.so",
    )
    assert run.returncode == 0
    assert run.stderr.count("\n") == bool(said)
    assert run.stderr.startswith(said)
