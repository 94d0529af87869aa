# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Each operation on pointers, into each kind of memory: what it does, inside bounds and beyond."""

from __future__ import annotations

import re

import pytest

np = pytest.importorskip("numpy")

import cudago as cu  # noqa: E402

from ..installed import ROOT  # noqa: E402
from .pointers import MEMORIES, METHODS, NO_ROW, OPERATIONS, N, Place, World  # noqa: E402


@pytest.fixture(params=MEMORIES)
def place(request, device, stream, kernels):
    """Memory of each kind, with numbers."""
    kind, world = MEMORIES[request.param], World(device, stream)
    with world.open:
        buffer = kind.make(world)
        if not kind.read_only:
            buffer.copy_from(np.arange(N, dtype="u1"), stream=stream)
        yield Place(buffer, device, stream, kernels, kind, world.open)
        stream.sync()
        buffer.close()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
def test_pointers(place, operation):
    operation(place)


def test_every_kind_of_memory_has_a_row():
    text = (ROOT / "dlpack" / "cell.h").read_text()
    body = text[text.index("CUDAGO_CELL_POOL,") : text.index("CUDAGO_CELL_KINDS")]
    kinds = set(re.findall(r"CUDAGO_CELL_(\w+),", body))
    assert len(kinds) > 5
    assert {kind.cell for kind in MEMORIES.values()} | set(NO_ROW) == kinds


def test_every_operation_of_a_pointer_has_a_row():
    own = {
        name
        for name, value in vars(cu.Pointer).items()
        if callable(value) or name in ("buffer", "offset")
    }
    hidden = {"__reduce__", "__class__", "__new__", "__init_subclass__"}
    assert own - hidden == set(METHODS)
    assert set(METHODS.values()) <= set(OPERATIONS)
