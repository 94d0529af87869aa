# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between tensors of any strides: to arrays and back, on the device, in graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cudago as cu
from cudago._tensor import copy
from cudago.testing import hold

SHAPE = (6, 5, 8)
KEYS = {
    "whole": np.s_[:],
    "columns": np.s_[:, :, 2:5],
    "box": np.s_[1:4, 1:3, 2:6],
    "steps": np.s_[::2, ::3, ::2],
    "backwards": np.s_[::-1, :, ::-3],
    "one column": np.s_[:, :, 3],
    "none": np.s_[:, 2:2],
    "new axis": np.s_[:, None, 1:3, ..., ::4],
}
DTYPES = "u1", "i2", "f4", "f8", "c16"


def numbers(dtype, shape=SHAPE):
    """An array whose elements differ."""
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", KEYS)
def test_copies_are_numpys(key, dtype, turned, stream):
    a, key = numbers(dtype), KEYS[key]
    t = cu.asarray(a, stream=stream)
    view, expected = (t[key].T, a[key].T) if turned else (t[key], a[key])
    assert np.array_equal(view.numpy(stream=stream), expected)

    out = np.empty(expected.shape[::-1], dtype).T
    view.copy_to(out, stream=stream)
    assert np.array_equal(out, expected)

    other = cu.empty(expected.shape, dtype, stream=stream)
    other.copy_from(view, stream=stream)
    assert np.array_equal(other.numpy(stream=stream), expected)

    view.copy_from(expected[::-1] + 1, stream=stream)
    changed = a.copy()
    (changed[key].T if turned else changed[key])[...] = expected[::-1] + 1
    assert np.array_equal(t.numpy(stream=stream), changed)


@pytest.mark.parametrize("key", ["columns", "steps", "backwards", "one column"])
def test_copies_with_pinned_memory(key, stream):
    a, key = numbers("i4"), KEYS[key]
    memory = cu.PinnedMemoryResource().allocate(a.nbytes)
    pinned = memory.view("i4", SHAPE)
    pinned.copy_from(a, stream=stream)
    stream.sync()
    t = cu.zeros(SHAPE, "i4", stream=stream)
    t[key].copy_from(pinned[key], stream=stream)
    expected = np.zeros(SHAPE, "i4")
    expected[key] = a[key]
    assert np.array_equal(t.numpy(stream=stream), expected)
    t.T[key[::-1]].copy_to(pinned.T[key[::-1]], stream=stream)
    stream.sync()
    assert np.array_equal(np.asarray(memoryview(memory)).view("i4").reshape(SHAPE), a)


def test_copies_between_arrays_on_the_host(stream):
    a, out = numbers("f4"), np.zeros((8, 5, 6), "f4")
    cu.from_dlpack(a)[::2].copy_to(out.T[::2], stream=stream)
    assert np.array_equal(out.T[::2], a[::2])
    assert not out.T[1::2].any()


def test_types_that_numpy_lacks(stream):
    pytest.importorskip("ml_dtypes")
    t = cu.full((4, 6), 1.5, "bfloat16", stream=stream)
    t[:, 1].fill(2, stream=stream)
    assert t[::2, :2].T.numpy(stream=stream).astype("f4").tolist() == [[1.5, 1.5], [2, 2]]


def test_one_call_copies_all_rows(stream):
    m = cu.zeros((4096, 64), "f4", stream=stream)
    for a, b in (
        (m[:, 10:20], m[:, 30:40]),
        (m[:, 3], m[:, 4]),
        (m[::2], m[1::2]),
        (m.reshape((64, 64, 64))[:, :, 5:9], m.reshape((64, 64, 64))[:, :, :4]),
        (m.reshape((64, 64, 64))[:, 3:7, 5:9], m.reshape((64, 64, 64))[:, :4, :4]),
        (m[::-1, 3:4], m[::-1, :1]),
    ):
        assert copy._plan_of(a, b).calls == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_reaches_every_element_once(seed):
    random = np.random.default_rng(seed)
    for _ in range(40):
        shape = tuple(random.integers(1, 5, random.integers(1, 5)))
        sides = []
        for _ in range(2):
            order = random.permutation(len(shape))
            steps, strides = 2 * random.integers(1, 3), np.zeros(len(shape), int)
            for axis in order:
                strides[axis] = steps * (1 if random.random() < 0.8 else -1)
                steps *= shape[axis] * random.integers(1, 3)
            sides.append(tuple(int(s) for s in strides))
        plan = copy._plan(shape, *sides, 2)
        width, rows, slices, *pitches = plan.box
        found = {
            (
                d + i * pitches[0] + j * pitches[0] * pitches[1] + k,
                s + i * pitches[2] + j * pitches[2] * pitches[3] + k,
            )
            for d, s in plan.places()
            for i in range(rows)
            for j in range(slices)
            for k in range(width)
        }
        wanted = {
            tuple(sum(i * s for i, s in zip(index, side, strict=True)) + k for side in sides)
            for index in itertools.product(*map(range, shape))
            for k in range(2)
        }
        assert found == wanted
        assert plan.calls * rows * slices * width == 2 * np.prod(shape)


def test_a_capture_has_one_node(stream):
    m = cu.zeros((64, 100), "f4", stream=stream)
    host = np.ones((64, 10), "f4")
    out = np.zeros((64, 10), "f4")
    with stream.capture() as graph:
        m[:, 10:20].copy_from(host, stream=stream)
        m[:, 10:20].copy_to(out, stream=stream)
    assert [n.kind for n in graph.nodes] == ["memcpy", "memcpy"]
    step = graph.instantiate()
    graph.close()
    host[:] = 3
    step.launch(stream)
    stream.sync()
    assert (out == 3).all()
    assert m.numpy(stream=stream).sum() == 3 * 640
    del host
    step.launch(stream)
    stream.sync()


def test_a_graph_has_one_node(stream):
    m = cu.zeros((64, 100), "f4", stream=stream)
    graph = cu.Graph()
    up = graph.memcpy(m[:, 10:20], np.full((64, 10), 2, "f4"), name="up")
    turn = up.memcpy(m[:, :10], m[:, 10:20], name="turn")
    assert [n.kind for n in (up, turn)] == ["memcpy", "memcpy"]
    t = cu.zeros((100, 64), "f4", stream=stream)
    flip = turn.memcpy(t.T, m, name="flip")
    assert flip.kind == "kernel"
    step = graph.instantiate()
    step.launch(stream)
    expected = np.zeros((64, 100), "f4")
    expected[:, :20] = 2
    assert np.array_equal(t.numpy(stream=stream), expected.T)
    for operands in ({"src": np.zeros((64, 10), "f4")}, {"dst": m[:, :10].T.T}):
        with pytest.raises((ValueError, BufferError), match=r"rows with gaps|has gaps"):
            step["up"].update(**operands)
    t.fill(0, stream=stream)
    step.launch(stream)
    assert np.array_equal(t.numpy(stream=stream), expected.T)


def test_what_one_node_cannot_copy(stream):
    m = cu.zeros((64, 100), "f4", stream=stream)
    graph = cu.Graph()
    with pytest.raises(ValueError, match="needs the same shape and elements of one size"):
        graph.memcpy(m[:, 10:20], np.zeros((10, 64), "f4"))
    with pytest.raises(ValueError, match="one node cannot copy between strides"):
        graph.memcpy(m.T, np.zeros((100, 64), "f4"))
    assert graph.nodes == ()


def test_what_does_not_match_is_refused(stream):
    t = cu.zeros((4, 6), "f4", stream=stream)
    for dst, error, match in (
        (np.empty((6, 4), "f4"), ValueError, r"dst has shape \(6, 4\), the tensor \(4, 6\)"),
        (np.empty((4, 6), "f8"), TypeError, "dst has element type float64, the tensor float32"),
        (bytes(96), BufferError, "dst is read-only"),
        (5, TypeError, "dst must be a Buffer, Pointer or Tensor, or .* not <class 'int'>"),
        ([1.0], TypeError, "dst must be a Buffer, Pointer or Tensor, or .* not <class 'list'>"),
    ):
        with pytest.raises(error, match=match):
            t.copy_to(dst, stream=stream)
    frozen = np.zeros((4, 6), "f4")
    frozen.flags.writeable = False
    with pytest.raises(BufferError, match=r"read-?only"):
        t.copy_to(frozen, stream=stream)
    t.close()
    with pytest.raises(cu.ClosedError):
        t.copy_to(np.empty((4, 6), "f4"), stream=stream)


@pytest.mark.parametrize("values", [None, "1", object(), {}, {1.0}, iter([1.0])])
def test_what_is_no_array_is_refused(values, stream):
    wanted = f"must be a tensor, an array, or numbers in lists, not {type(values).__name__}"
    for take in (
        cu.zeros((), "f4", stream=stream).copy_from,
        cu.OpaqueArray(1, "f4", stream=stream).copy_from,
        cu.asarray,
    ):
        with pytest.raises(TypeError, match=wanted):
            take(values, stream=stream)
    with pytest.raises(TypeError, match=wanted):
        cu.asarray(values, "f4", stream=stream)
    with pytest.raises(ValueError, match="inhomogeneous"):
        cu.asarray([[1.0], [1.0, 2.0]], "f4", stream=stream)


def test_numbers_that_do_not_fit_are_refused(stream):
    for values in (1 << 64, [-(1 << 63) - 1]):
        with pytest.raises(OverflowError, match="integers that no element type holds"):
            cu.asarray(values, stream=stream)
    for values in (1j, [1, 1j], np.array([1j]), [np.complex64(1j)]):
        with pytest.raises(TypeError, match="complex numbers, which do not fit float32"):
            cu.asarray(values, "f4", stream=stream)
    with pytest.raises(TypeError, match="complex numbers, which do not fit float32"):
        cu.zeros(1, "f4", stream=stream).copy_from([1j], stream=stream)


def test_a_pointer_is_the_bytes_from_there_on(device, stream):
    buffer = device.allocate(64, stream=stream)
    buffer.fill(7, stream=stream)
    t = cu.zeros(16, "u1", stream=stream)
    t.copy_from(buffer.ptr + 48, stream=stream)
    assert (t.numpy(stream=stream) == 7).all()
    cu.asarray(np.arange(16, dtype="u1"), stream=stream).copy_to(buffer.ptr + 48, stream=stream)
    assert (buffer.view("u1").numpy(stream=stream)[48:] == np.arange(16)).all()
    array = cu.OpaqueArray((4, 4), "f4", stream=stream)
    array.copy_from(buffer.ptr, stream=stream)
    array.copy_to(buffer.ptr, stream=stream)
    for wrong in (cu.zeros((), "u8", stream=stream), array):
        with pytest.raises(ValueError, match=r"src has (shape \(60,\)|60 bytes)"):
            wrong.copy_from(buffer.ptr + 4, stream=stream)


def test_bytes_go_to_what_has_the_buffer_protocol(stream):
    t = cu.asarray(np.arange(8, dtype="u1"), stream=stream)
    out = bytearray(4)
    t[::2].copy_to(out, stream=stream)
    assert out == bytes([0, 2, 4, 6])


def test_copies_are_ordered_by_the_stream(device, stream):
    """What is copied is what the work before has written, and other streams' memory stays."""
    other = device.create_stream()
    with hold(stream):
        t = cu.zeros((32, 32), "i4", stream=stream)
        t[:, 3].fill(7, stream=stream)
        u = cu.empty((32, 32), "i4", stream=other)
        other.wait(stream)
        u[:, 1].copy_from(t[:, 3], stream=other)
        u.T[2].copy_from(u[:, 1], stream=other)
        t.close()
    assert (u[:, 2].numpy(stream=other) == 7).all()


def test_other_libraries_streams(stream):
    class Theirs:
        def __cuda_stream__(self):
            return 0, stream.handle

    t = cu.asarray(np.arange(12, dtype="f4").reshape(3, 4), stream=stream)
    assert t.T.numpy(stream=Theirs()).tolist() == t.numpy(stream=stream).T.tolist()
    out = np.empty((3, 2), "f4")
    t[:, 1:3].copy_to(out, stream=Theirs())
    stream.sync()
    assert out.tolist() == [[1, 2], [5, 6], [9, 10]]
    t[:, 1:3].copy_from(np.zeros((3, 2), "f4"), stream=Theirs())
    assert t.numpy(stream=stream).sum() == 0 + 3 + 4 + 7 + 8 + 11


def test_the_native_copy_checks_its_box(stream):
    m = cu.zeros((4, 6), "u1", stream=stream).reshape(24)
    for box in ((1,) * 6, (1,) * 8):
        with pytest.raises(TypeError, match="7 numbers"):
            cu._core._copy_box(stream, m, m, box)
    for box, match in (
        ((4, 7, 1, 4, 7, 4, 7), "rows of dst are not inside its 24 bytes"),
        ((4, 2, 1, 4, 2, 21, 2), "rows of src are not inside its 24 bytes"),
        ((4, 2, 1, 3, 2, 4, 2), "rows of dst"),
        ((4, 2, 2, 4, 1, 4, 2), "rows of dst"),
        ((4, 2, 1 << 40, 1 << 40, 1 << 40, 4, 2), "rows of dst"),
        ((4, 1 << 40, 1, 4, 1 << 40, 4, 2), "rows of dst"),
        ((4, 2, 2, 4, (1 << 40) + 1, 4, 2), "1 to 2"),
        ((0, 1, 1, 4, 1, 4, 1), "1 to 2"),
    ):
        with pytest.raises(ValueError, match=match):
            cu._core._copy_box(stream, m, m, box)
