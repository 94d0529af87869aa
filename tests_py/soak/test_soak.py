# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A short part of the soak, with driver calls that fail at random. `make soak` runs it for long."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).with_name("soak.py")
BUILDS = SOAK.with_name("builds.py")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_with_driver_faults(driver, script):
    flags = ["--seconds", "6", "--threads", "16", "--driver-faults", "0.02", "--seed", "7"]
    run = script.run([sys.executable, "-X", "faulthandler", str(SOAK), *flags])
    assert run.stdout.endswith("soak: nothing wrong\n"), run.stdout + run.stderr[-5000:]
    assert '"cuEventRecord"' in run.stdout, "calls were made to fail"
    assert run.returncode == 0


def test_graphs_built_and_dropped(driver, script):
    run = script.run([sys.executable, str(BUILDS), "--builds", "5000"])
    assert run.stdout.endswith("builds: nothing wrong\n"), run.stdout + run.stderr[-5000:]
    assert run.returncode == 0


def test_what_is_left_of_a_build_is_seen(driver, script):
    text = BUILDS.read_text()
    kept = text.replace(
        "        node = graph.memcpy(", "        kept.append(graph)\n        node = graph.memcpy("
    )
    assert kept != text
    file = script.directory / "builds.py"
    file.write_text(kept.replace("WARM = 2000", "WARM = 20\nkept = []"))
    (script.directory / "work.py").write_text(BUILDS.with_name("work.py").read_text())
    run = script.run([sys.executable, str(file), "--builds", "100"])
    assert "something is left\n" in run.stdout, run.stdout + run.stderr[-5000:]
    assert run.returncode == 1
