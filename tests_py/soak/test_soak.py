# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A short part of the soak, with driver calls that fail at random. `make soak` runs it for long."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).with_name("soak.py")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_with_driver_faults(driver, script):
    flags = ["--seconds", "6", "--threads", "16", "--driver-faults", "0.02", "--seed", "7"]
    run = script.run([sys.executable, "-X", "faulthandler", str(SOAK), *flags])
    assert run.stdout.endswith("soak: nothing wrong\n"), run.stdout + run.stderr[-5000:]
    assert '"cuEventRecord"' in run.stdout, "calls were made to fail"
    assert run.returncode == 0
