# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies whose two sides overlap are refused: a GPU moves the bytes in any order."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

MATCH = r"dst \(16 bytes at 0x[0-9a-f]+\) and src \(at 0x[0-9a-f]+\) overlap"


@pytest.fixture
def memory(device, stream):
    made = device.allocate(64, stream=stream)
    made.copy_from(np.arange(64, dtype="u1"), stream=stream)
    yield made
    assert made.view("u1").numpy(stream=stream).tolist() == list(range(64))
    made.close()


@pytest.mark.parametrize(("to", "of"), [(0, 4), (4, 0), (0, 15), (16, 1)])
def test_buffers_pointers_and_tensors(memory, stream, to, of):
    dst, src = memory[to : to + 16], memory[of : of + 16]
    for copy in (
        lambda: dst.copy_from(src, stream=stream),
        lambda: src.copy_to(dst, stream=stream),
        lambda: dst.copy_from(src.ptr, stream=stream),
        lambda: dst.copy_from(src.view("u1"), stream=stream),
        lambda: dst.view("u1").copy_from(src.view("u1"), stream=stream),
        lambda: src.view("u4").copy_to(dst.view("u4"), stream=stream),
    ):
        with pytest.raises(ValueError, match=MATCH):
            copy()


def test_what_touches_or_is_the_same(memory, stream):
    memory[:16].copy_from(memory[:16], stream=stream)
    memory.view("u4", (4, 4)).copy_from(memory.view("u4", (4, 4)), stream=stream)
    kept = memory[16:48].view("u1").numpy(stream=stream)
    memory[16:32].copy_from(memory[32:48], stream=stream)
    memory[32:48].copy_from(memory[16:32], stream=stream)
    memory[:0].copy_from(memory[:0], stream=stream)
    cu.copy_batch([(memory[:8], memory[:8]), (memory[8:16], memory[8:16])], stream=stream)
    memory[16:48].copy_from(kept, stream=stream)


def test_pinned_and_managed_memory(device, stream):
    for resource in (cu.PinnedMemoryResource(), cu.ManagedMemoryResource(device)):
        with resource.allocate(32) as made, pytest.raises(ValueError, match=MATCH):
            made[:16].copy_from(made[8:24], stream=stream)


def test_pageable_memory_moves(stream):
    """The host moves it as a whole."""
    array = np.arange(8, dtype="u1")
    t = cu.from_dlpack(array)
    t[1:].copy_from(t[:-1], stream=stream)
    assert array.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


def test_rows(memory, stream):
    matrix = memory.view("u1", (8, 8))
    for dst, src in (
        (matrix[:4, :4], matrix[2:6, 1:5]),
        (matrix[2:6, 1:5], matrix[:4, :4]),
        (matrix[:4, :4], matrix[:4, 2:6]),
        (matrix[:4, 5:], matrix[1:5, :3]),
    ):
        overlap = dst.shape[1] != 3
        if overlap:
            with pytest.raises(ValueError, match=MATCH):
                dst.copy_from(src, stream=stream)
        else:
            kept = memory.view("u1").numpy(stream=stream)
            dst.copy_from(src, stream=stream)
            assert dst.numpy(stream=stream).tolist() == kept.reshape(8, 8)[1:5, :3].tolist()
            memory.copy_from(kept, stream=stream)
    columns = matrix[:, :4], matrix[:, 4:]
    kept = memory.view("u1").numpy(stream=stream)
    columns[0].copy_from(columns[1], stream=stream)
    memory.copy_from(kept, stream=stream)


@pytest.mark.parametrize("order", [lambda t: t.T, lambda t: t[::-1], lambda t: t[:, ::-1]])
def test_memory_in_another_order(memory, stream, order):
    matrix = memory.view("u4", (4, 4))
    for dst, src in ((matrix, order(matrix)), (order(matrix), matrix)):
        with pytest.raises(ValueError, match="overlap: a copy moves its bytes in any order"):
            dst.copy_from(src, stream=stream)


def test_captures(memory, stream):
    with stream.capture() as graph:
        with pytest.raises(ValueError, match=MATCH):
            memory[:16].copy_from(memory[8:24], stream=stream)
        with pytest.raises(ValueError, match=f"copy 0: {MATCH}"):
            cu.copy_batch([(memory[:16], memory[8:24])], stream=stream)
    assert not graph.nodes
    graph.close()


def test_nodes_updates_and_slots(memory, stream, device):
    with cu.Graph(device) as graph:
        with pytest.raises(ValueError, match=MATCH):
            graph.memcpy(memory[:16], memory[8:24])
        with pytest.raises(ValueError, match=MATCH):
            matrix = memory.view("u1", (8, 8))
            graph.memcpy(matrix[:4, :4], matrix[2:6, 1:5])
        node = graph.memcpy(memory[:16], memory[32:48], name="copy")
        to, of = cu.slot("to", memory[:16]), cu.slot("of", memory[16:32])
        graph.memcpy(to, of, name="slots")
        step = graph.instantiate()
        for which in (node, step["copy"]):
            for change in ({"src": memory[8:24]}, {"dst": memory[40:56]}):
                with pytest.raises(ValueError, match=MATCH):
                    which.update(**change)
            params = which.params
            assert (params.dst.handle, params.src.handle) == (memory.handle, memory.handle + 32)
            which.update(dst=memory[24:40], src=memory[:16])
        for change in (
            {"of": memory[1:17]},
            {"to": memory[31:47]},
            {"of": memory[:16], "to": memory[8:24]},
        ):
            with pytest.raises(ValueError, match=MATCH):
                step.bind(**change)
            assert step["slots"].params.src.handle == memory.handle + 16
            assert step["slots"].params.dst.handle == memory.handle
        step.bind(to=memory[24:40], of=memory[4:20])
        assert step["slots"].params.src.handle == memory.handle + 4
        step.close()
