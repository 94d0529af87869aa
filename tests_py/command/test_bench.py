# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago bench`` prints the figures that it should, however large they are."""

from __future__ import annotations

import json
import re
import sys

import pytest

import cudago as cu
from cudago._command.bench import Operation

COMMAND = [sys.executable, "-W", "error", "-m", "cudago", "bench"]
NAMES = [
    "launch a kernel, 3 arguments",
    "launch a graph, 1 node",
    "launch a graph, 10 nodes",
    "launch a graph, 100 nodes",
    "copy 4 KiB, pinned to device",
    "record an event",
]


def test_the_table(script, driver, device):
    run = script.run([*COMMAND, "--rounds", "2"])
    assert (run.returncode, run.stderr) == (0, "")
    first, *rest = run.stdout.splitlines()
    assert first.startswith(f"cudago {cu.__version__} on {device.name}, driver {driver}, CUDA ")
    assert ("say nothing of a GPU's" in run.stdout) == (driver == "sim")
    rows = [m.groups() for line in rest if (m := re.match(r"(.+?) {2,}(\d+) +(\d+)$", line))]
    assert [name for name, _, _ in rows] == NAMES
    assert all(0 < int(median) <= int(p99) for _, median, p99 in rows)
    assert "Of the means of 2 batches; waiting for the device is not counted." in rest


def test_for_programs(script, driver, device):
    run = script.run([*COMMAND, "--rounds", "3", "--json"])
    assert (run.returncode, run.stderr) == (0, "")
    found = json.loads(run.stdout)
    assert (found["cudago"], found["device"]) == (cu.__version__, device.name)
    assert found["driver"] == {"name": driver, "version": list(cu.driver_version())}
    assert (found["unit"], found["rounds"]) == ("ns per call", 3)
    assert [row["operation"] for row in found["results"]] == NAMES
    for row in found["results"]:
        assert row["calls_per_batch"] >= 50
        assert 0 < row["median"] <= row["p99"]


def test_figures_of_known_means():
    operation = Operation("name", "pass", 7, [float(n) for n in range(200, 0, -1)])
    assert operation.figures() == {
        "operation": "name",
        "calls_per_batch": 7,
        "median": 100.5,
        "p99": 198.0,
    }


@pytest.mark.parametrize("rounds", ["0", "-1", "many"])
def test_rounds_that_are_no_count(rounds, script):
    run = script.run([*COMMAND, f"--rounds={rounds}"])
    assert (run.returncode, run.stdout) == (2, "")
    assert "--rounds" in run.stderr and rounds in run.stderr


def test_without_a_driver(script):
    run = script.run(COMMAND, CUDAGO_DRIVER="nvidia", CUDAGO_LIBCUDA="/nowhere/libcuda.so")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("cudago: nothing can be measured: ")
    assert "/nowhere/libcuda.so" in run.stderr
