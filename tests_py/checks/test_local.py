# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reads of unwritten local memory, which are reported where something depends on them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cudago as cu

from .local_kernels import BUGS, CLEAN

pytestmark = [
    pytest.mark.parametrize("driver", ["sim"], indirect=True),
    pytest.mark.parametrize("debug", [False, True], ids=["optimized", "debug"]),
]


def kernels_of(source: str) -> list[str]:
    return re.findall(r"__global__ void (\w+)\(", source)


@pytest.fixture(scope="module")
def compiled(device) -> dict[tuple[str, bool], cu.ObjectCode]:
    """Both sources, each way. Without optimization all variables are in memory."""
    return {
        (source, debug): cu.Program(
            source,
            "c++",
            options=cu.ProgramOptions(debug=debug, lineinfo=not debug, name="/local.cu"),
        ).compile()
        for source in (CLEAN, BUGS)
        for debug in (False, True)
    }


def reports(stream: cu.Stream, kernel: cu.Kernel, k: int) -> list[str]:
    numbers = cu.asarray(np.arange(64, dtype="i4"), stream=stream)
    out = cu.zeros(2048, "i4", stream=stream)  # what the elements are is the kernel's business
    with cu.sim.check(raises=False) as found:
        cu.launch(stream, cu.LaunchConfig(1, 32), kernel, out.buffer, numbers, k)
        stream.sync()
    return [r for r in found if r.startswith("uninitialized")]


@pytest.mark.parametrize("name", kernels_of(CLEAN))
def test_clean_kernels_are_silent(stream, compiled, name, debug, capfd):
    kernel = compiled[CLEAN, debug][name]
    assert [*reports(stream, kernel, 0), *reports(stream, kernel, 3)] == []


@pytest.mark.parametrize("name", kernels_of(BUGS))
def test_bugs_are_reported(stream, compiled, name, debug, capfd):
    found = reports(stream, compiled[BUGS, debug][name], 0)
    assert found
    for report in found:
        assert report.startswith(f"uninitialized read in local memory of kernel {name}, block (0,")
        assert re.search(
            r" \(/local\.cu:\d+, PTX line \d+: .*\): \d bytes at offset \d+ were never written by "
            r"this thread; at offset \d+ of local variable __local_depot\d+ of \d+ bytes",
            report,
        ), report
