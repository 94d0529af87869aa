# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A function that is a graph, called with the very objects of the call before."""

from __future__ import annotations

import gc
import weakref

import pytest

import cudago as cu
from cudago import _core
from cudago.testing import settle

from .operand import N, numbers

np = pytest.importorskip("numpy")


@pytest.fixture
def warm(counted, a, stream):
    """The function, after calls by which it knows its arguments."""
    for _ in range(3):
        counted.function(stream, a, 1)
    assert counted.calls == 1
    return counted


def test_the_same_call_is_counted(warm, a, stream):
    for _ in range(4):
        warm.function(stream, a, 1)
    assert (warm.calls, numbers(a, stream)) == (1, 7)
    assert "launched 7 times" in warm.function.explain()


def test_another_value_is_another_call(warm, a, stream):
    add = warm.function
    add(stream, a, 2)
    add(stream, a, 2)
    add(stream, a, 2)
    add(stream, a, 2)
    add(stream, a, 1)
    assert (warm.calls, numbers(a, stream)) == (3, 3 + 8 + 1)
    assert "launched 8 times" in add.explain()


def test_other_memory_is_another_call(warm, a, b, stream):
    add = warm.function
    for _ in range(3):
        add(stream, b, 1)
        add(stream, a, 1)
    assert (numbers(a, stream), numbers(b, stream)) == (6, 3)


def test_another_stream_is_the_same_call(warm, a, device, stream):
    stream.sync()
    with device.create_stream() as other:
        warm.function(other, a, 1)
        warm.function(other, a, 1)
        other.sync()
    assert (warm.calls, numbers(a, stream)) == (1, 5)


def test_a_capture_contains_it(warm, a, stream):
    with stream.capture() as graph:
        warm.function(stream, a, 1)
    assert (len(graph.nodes), warm.calls) == (1, 2)
    warm.function(stream, a, 1)
    assert (numbers(a, stream), warm.calls) == (4, 2)


def test_closed_objects(warm, a, stream, device):
    with device.create_stream() as other:
        pass
    with pytest.raises(cu.ClosedError):
        warm.function(other, a, 1)
    a.close()
    with pytest.raises(cu.ClosedError):
        warm.function(stream, a, 1)


def test_after_clear_it_is_captured_anew(warm, a, stream):
    (step,) = [e.step for e in warm.function._in_order()]  # somebody has the executable
    warm.function.clear()
    warm.function(stream, a, 1)
    assert (warm.calls, numbers(a, stream)) == (2, 4)
    assert not step.is_closed


def test_it_keeps_nothing_alive(counted, device, stream):
    y = device.allocate(4 * N, stream=stream)
    y.fill(0, stream=stream)
    gone, add = weakref.ref(y), counted.function
    for _ in range(4):
        add(stream, y, 1)
    del y
    add.clear()
    gc.collect()
    settle()
    assert gone() is None


def test_memory_that_grows_is_other_memory(device, stream):
    sizes = []

    @cu.graph
    def fill(s, x):
        sizes.append(x.size)
        x.fill(1, stream=s)

    x = cu.VirtualMemoryResource(device, reserve=1 << 24).allocate(1 << 21, stream=stream)
    for _ in range(4):
        fill(stream, x)
    x.grow(1 << 22)
    fill(stream, x)
    assert sizes[0] < sizes[-1] == x.size
    assert len(sizes) == 2
    stream.sync()
    x.close()


def test_arguments_of_other_kinds_go_the_long_way(counted, a, stream):
    array = np.zeros(N, "i4")
    seen = []

    @cu.graph
    def upload(s, data, y):
        seen.append(s)
        y.copy_from(data, stream=s)

    for _ in range(4):
        upload(stream, array, a)
    array[:] = 5
    upload(stream, array, a)
    assert (numbers(a, stream), len(seen)) == (5, 1)


def test_what_can_be_remembered(graph, a, stream):
    graph.memset(a, 1)
    step = graph.instantiate()
    replay = _core._replay(step, 0, (a, 1), {int})
    assert replay.launch((stream, a, 1))
    assert not replay.launch((stream, a, 2))
    assert not replay.launch((stream, a))
    assert not replay.launch((a, stream, 1))
    assert (replay.launches, replay.used < _core._tick()) == (1, True)
    assert _core._replay(step, 0, (object(),), {int}) is None
    with pytest.raises(ValueError, match="place"):
        _core._replay(step, 3, (a, 1), {int})
    with pytest.raises(TypeError, match="tuple"):
        replay.launch([stream, a, 1])
    replay.clear()
    assert not replay.launch((stream, a, 1))
    other = _core._replay(step, 1, (a, 1), {int})
    assert other.launch((a, stream, 1))
    stream.sync()
    step.close()
    assert not other.launch((a, stream, 1))
