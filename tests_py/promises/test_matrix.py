# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Promises 1 and 2, for every kind of memory, view, way and device; a process for each kind, since
a cell may break it."""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path

import pytest

import cudago as cu
from promises import expected
from promises.kinds import EXPORTED, KINDS, NOT_HERE, VIEWS
from promises.ways import ENDS, KEPT, NO_WAY, ORDER, SPELLINGS

SOURCES = Path(cu.__file__).parents[2]
SIMULATED = (
    "external",
    "imported",
    "imported virtual",
)  # what a GPU's own tests cover: real APIs, other processes


@pytest.fixture(params=["one", "two", "apart"])
def devices(request, driver):
    """Memory and work on one device; on two, one of which has access to the other's memory; and
    without access."""
    if request.param != "one" and driver == "nvidia" and len(cu.Device.all()) < 2:
        pytest.skip("needs two GPUs")
    return request.param


@pytest.mark.parametrize("kind", KINDS)
def test_each_cell_is_ordered_kept_and_released_once_or_refused_by_name(
    program, driver, devices, kind
):
    if driver == "nvidia" and kind in SIMULATED:
        pytest.skip("the simulated driver's")
    if devices == "apart" and KINDS[kind].unknown:
        pytest.skip("NVIDIA's driver does not tell whether a device has access to such memory")
    lines = program(
        "matrix", "--kind", kind, "--devices", devices, devices=1 if devices == "one" else 2
    )
    wrong, seen = [], set()
    for line in lines.splitlines():
        _, view, way, got = json.loads(line)
        seen.add((view, way))
        wanted = (
            expected.order(kind, way, devices, driver)
            if way in ORDER
            else expected.kept(kind, way, devices)
        )
        if not expected.holds(got, wanted):
            wrong.append((view, way, got, wanted))
    assert not wrong
    assert seen == {(v, w) for v in EXPORTED for w in ORDER} | {
        (v, f"{w}, {end}") for v in VIEWS for w in KEPT for end in ENDS
    }


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.peers])
def test_a_reset_waits_for_what_another_device_does_with_the_memory(program, driver, kind):
    if driver == "nvidia" and len(cu.Device.all()) < 2:
        pytest.skip("needs two GPUs")
    assert program("resets", "--kind", kind, devices=2) == "kept\n"


def test_the_process_ends_while_all_kinds_are_used(program, driver):
    assert program("exits") == "queued\n"


# --- nothing is missing
# ----------------------------------------------------------------------------------------------


def test_each_kind_of_cell_has_a_row_or_a_reason():
    header = SOURCES / "dlpack" / "cell.h"
    if not header.exists():
        pytest.skip("the wheel has no sources")
    cells = set(re.findall(r"^    CUDAGO_CELL_([A-Z]+),", header.read_text(), re.MULTILINE)) - {
        "KINDS"
    }
    assert cells == {c for k in KINDS.values() for c in k.cells} | set(NOT_HERE)


def test_each_memory_resource_has_a_row():
    public = {name for name in cu.__all__ if name.endswith("MemoryResource")}
    assert public == {r for k in KINDS.values() for r in k.resources}


def _takes_stream(owner: object, name: str) -> bool:
    try:
        return "stream" in inspect.signature(getattr(owner, name)).parameters
    except (TypeError, ValueError):
        return False


def test_each_way_has_a_row_or_a_reason():
    """What takes a stream, and what exchanges memory, of what has memory."""
    ways = {name for name in cu.__all__ if _takes_stream(cu, name)}
    for cls in (cu.Buffer, cu.Tensor, cu.Kernel, cu.Graph, cu.GraphExec, cu.BoundLaunch):
        ways |= {
            f"{cls.__name__}.{n}"
            for n in dir(cls)
            if not n.startswith("_") and _takes_stream(cls, n)
        }
        ways |= {
            f"{cls.__name__}.{n}"
            for n in ("__dlpack__", "__cuda_array_interface__", "__buffer__")
            if hasattr(cls, n)
        }
    if sys.version_info < (3, 12):  # there the method has no name
        ways |= {"Buffer.__buffer__", "Tensor.__buffer__"}
    rows = {*ORDER, *KEPT}
    assert set(SPELLINGS.values()) <= rows
    assert ways == set(SPELLINGS) | set(NO_WAY), ways ^ (set(SPELLINGS) | set(NO_WAY))
