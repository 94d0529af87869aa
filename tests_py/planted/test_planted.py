# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver's checks name each planted bug, and compute-sanitizer agrees."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cudago as cu

from .bugs import BUGS

PROGRAM = str(Path(__file__).with_name("bugs.py"))
TIME_LIMIT_S = 120


def run(driver: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CUDAGO_DRIVER": driver}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
@pytest.mark.parametrize("name", BUGS)
def test_the_simulated_driver_names_it(name, driver):
    done = run(driver, sys.executable, PROGRAM, name)
    assert (done.returncode, done.stderr) == (0, "")
    assert BUGS[name].report in done.stdout
    done = run(driver, sys.executable, PROGRAM, name, "fixed")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("values "), done.stdout


@pytest.mark.parametrize("driver", [pytest.param("nvidia", marks=pytest.mark.gpu)], indirect=True)
def test_the_checks_are_the_simulated_drivers(driver, device):
    with pytest.raises(cu.UnsupportedError), cu.sim.check():
        pass


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("driver", ["nvidia"], indirect=True)
@pytest.mark.parametrize("name", BUGS)
def test_compute_sanitizer_agrees(name, driver):
    if shutil.which("compute-sanitizer") is None:
        pytest.skip("compute-sanitizer is not on PATH")
    bug = BUGS[name]
    # An API error is how the driver reports the fault itself.
    tool = ("compute-sanitizer", "--tool", bug.tool, "--report-api-errors", "no")
    tool += ("--error-exitcode", "99", sys.executable, PROGRAM)
    done = run(driver, *tool, name)
    if bug.words:
        assert bug.words in done.stdout
    assert done.returncode == (99 if bug.words else 0), done.stdout
    done = run(driver, *tool, name, "fixed")
    assert done.returncode == 0, done.stdout
