# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between views that share elements are refused, and no others; and writes of one twice."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import cudago as cu
from cudago._tensor import overlap

OVERLAP = r"dst \(\d+ bytes at 0x[0-9a-f]+\) and src \(at 0x[0-9a-f]+\) overlap"
REPEATED = "has elements that may lie in the same memory, by its strides"
SHAPES = (40,), (9, 8), (5, 3, 4)


def numbers(shape, stream, dtype="f4"):
    array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return array, cu.asarray(array, stream=stream)


def some_slice(size, random):
    """A slice with at least one element."""
    step = random.choice((1, 1, 2, 3, 5, -1, -2, -3))
    low, high = random.randrange((size + 1) // 2), random.randrange(size // 2, size)
    return slice(low, high + 1, step) if step > 0 else slice(high, low - 1 if low else None, step)


def some_key(shape, random):
    return tuple(some_slice(n, random) for n in shape)


def cut(views):
    """Make views of one shape, the largest that all have."""
    shape = tuple(map(min, zip(*(v.shape for v in views), strict=True)))
    return [v[tuple(map(slice, shape))] for v in views]


def plain(array):
    return array.shape, array.strides


def place(array):
    """What is equal for the same elements in the same order."""
    return array.ctypes.data, [s for n, s in zip(*plain(array), strict=True) if n > 1]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_copy_is_numpys_or_refused(shape, stream):
    chosen = random.Random(f"copies {shape}")
    host, t = numbers(shape, stream)
    outcomes = {True: 0, False: 0}
    for _ in range(400):
        keys = [some_key(shape, chosen) for _ in range(2)]
        axes = chosen.sample(range(len(shape)), len(shape))
        dst, src = cut([host[keys[0]], host[keys[1]].transpose(axes)])
        to, of = cut([t[keys[0]], t[keys[1]].transpose(axes)])
        refused = np.shares_memory(dst, src) and place(dst) != place(src)
        outcomes[refused] += 1
        if refused:
            with pytest.raises(ValueError, match=OVERLAP):
                to.copy_from(of, stream=stream)
            with pytest.raises(ValueError, match=OVERLAP):
                of.copy_to(to, stream=stream)
        else:
            to.copy_from(of, stream=stream)
            dst[...] = src.copy()
        assert np.array_equal(t.numpy(stream=stream), host)
    assert min(outcomes.values()) > 30


@pytest.mark.parametrize("types", [("u1", "f4"), ("f8", "f4"), ("c16", "i2"), ("i4", "i4")])
def test_views_of_other_types_share_bytes_as_numpys(types):
    chosen = random.Random(f"types {types}")
    memory = np.zeros(1024, "u1")
    outcomes = {True: 0, False: 0}
    for _ in range(600):
        views = []
        for kind in types:
            first = chosen.randrange(64) * np.dtype(kind).alignment
            whole = memory[first : first + 240].view(kind)
            whole = whole.reshape(chosen.choice([(-1,), (3, -1), (5, -1)]))
            views.append(whole[some_key(whole.shape, chosen)])
        expected = np.shares_memory(*views)
        outcomes[expected] += 1
        a, b = map(cu.from_dlpack, views)
        assert overlap.share(a, b) == overlap.share(b, a) == expected, [plain(v) for v in views]
    assert min(outcomes.values()) > 30


def test_elements_in_the_same_memory():
    """Of all small layouts: against the places of all elements."""
    memory = np.zeros(400, "i4")[200:]
    for ndim in (1, 2, 3):
        for shape in itertools.product((1, 2, 4), repeat=ndim):
            for strides in itertools.product((-5, -2, 0, 1, 3, 7), repeat=ndim):
                steps = [4 * s for s in strides]
                t = cu.from_dlpack(np.lib.stride_tricks.as_strided(memory, shape, steps))
                index = itertools.product(*map(range, shape))
                places = [sum(i * s for i, s in zip(at, strides, strict=True)) for at in index]
                expected = len({*places}) < len(places)
                assert overlap.is_repeated(t) == expected, (shape, strides)


def test_large_views_of_several_steps():
    """Found apart, or shared, without going through all their elements."""
    memory = np.lib.stride_tricks.as_strided(np.zeros(1, "f4"), (10**4, 10**4), (40000, 4))
    t = cu.from_dlpack(memory)
    assert not overlap.share(t[::3, :5000], t[1::5, 5000:])
    assert not overlap.share(t[::3, ::2], t[1::5, 1::2])
    assert not overlap.share(t[::4, ::3], t[2::8, 1::3])
    assert overlap.share(t[::3, ::2], t[1::5, ::6])
    assert overlap.share(t[::3, ::2].T, t[9999:0:-3, 9998:0:-7])


@pytest.mark.parametrize(
    ("dst", "src"),
    [
        (np.s_[::2], np.s_[:8]),
        (np.s_[3:11], np.s_[::2]),
        (np.s_[:8], np.s_[::2]),
        (np.s_[::2], np.s_[14::-2]),
        (np.s_[1::2], np.s_[15::-2]),
    ],
)
def test_views_of_a_row_that_share_elements(dst, src, stream, device):
    host, t = numbers(16, stream)
    with cu.Graph(device) as graph:
        with pytest.raises(ValueError, match=OVERLAP):
            t[dst].copy_from(t[src], stream=stream)
        with pytest.raises(ValueError, match=OVERLAP):
            graph.memcpy(t[dst], t[src])
        with stream.capture() as captured, pytest.raises(ValueError, match=OVERLAP):
            t[dst].copy_from(t[src], stream=stream)
        assert not graph.nodes
        assert not captured.nodes
        captured.close()
    assert np.array_equal(t.numpy(stream=stream), host)


@pytest.mark.parametrize(
    ("dst", "src"),
    [
        (np.s_[::2], np.s_[1::2]),
        (np.s_[::4], np.s_[14::-4]),
        (np.s_[::2], np.s_[::2]),
        (np.s_[15:8:-3], np.s_[:3]),
    ],
)
def test_views_of_a_row_that_share_none(dst, src, stream, device):
    host, t = numbers(16, stream)
    expected = host.copy()
    expected[dst] = host[src]
    t[dst].copy_from(t[src], stream=stream)
    assert np.array_equal(t.numpy(stream=stream), expected)
    t.copy_from(host, stream=stream)
    with cu.Graph(device) as graph:
        graph.memcpy(t[dst], t[src])
        with graph.capture(stream):
            t[dst].copy_from(t[src], stream=stream)
        with graph.instantiate() as step:
            step.launch(stream)
            assert np.array_equal(t.numpy(stream=stream), expected)


def test_updates_of_nodes(stream, device):
    _, t = numbers(64, stream)
    with cu.Graph(device) as graph:
        node = graph.memcpy(t[:16:2], t[1:16:2])
        with pytest.raises(ValueError, match=OVERLAP):
            node.update(dst=t[:32:4], src=t[:8])
        node.update(dst=t[:32:4], src=t[1:32:4])


@pytest.mark.parametrize(("shape", "strides"), [((4,), (0,)), ((3, 4), (2, 1)), ((2, 3), (0, 1))])
def test_elements_that_would_be_written_twice(shape, strides, stream, device):
    host, t = numbers(16, stream)
    window = t.buffer.view("f4", shape, strides)
    source = cu.zeros(shape, "f4", stream=stream)
    add = cu.elementwise("float x", "float z", "z = x + 1", name="add")
    with cu.Graph(device) as graph:
        for write in (
            lambda: window.copy_from(source, stream=stream),
            lambda: window.copy_from(np.zeros(shape, "f4"), stream=stream),
            lambda: window.copy_from(window, stream=stream),
            lambda: source.copy_to(window, stream=stream),
            lambda: add(source, stream=stream, out=window),
            lambda: graph.memcpy(window, source),
        ):
            with pytest.raises(ValueError, match=REPEATED):
                write()
        assert not graph.nodes
    source.copy_from(window, stream=stream)  # reading some twice is no harm
    expected = np.lib.stride_tricks.as_strided(host, shape, [4 * s for s in strides])
    assert np.array_equal(source.numpy(stream=stream), expected)
    assert np.array_equal(t.numpy(stream=stream), host)
    window.fill(7, stream=stream)  # nor is writing the same twice
    expected[...] = 7
    assert np.array_equal(t.numpy(stream=stream), host)


def test_arrays_on_the_host_may_overlap(stream):
    """NumPy copies such a row in one direction, and reads some of what it has written."""
    for dst, src in ((np.s_[3:9], np.s_[::2]), (np.s_[::2], np.s_[3:9]), (np.s_[::-1], np.s_[:])):
        array = np.arange(12, dtype="i4")
        expected = array.copy()
        expected[dst] = array[src]
        t = cu.from_dlpack(array)
        t[dst].copy_from(t[src], stream=stream)
        assert np.array_equal(array, expected)
