# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Fills: a tensor in its element type, a buffer in bytes; on streams, in captures and in graphs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cudago as cu
from cudago._tensor import strided

DTYPES = "?", "i1", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"
VIEWS = {
    "whole": np.s_[:, :, :],
    "column": np.s_[:, :, 1],
    "rows": np.s_[1:, ::2],
    "backwards": np.s_[::-1, :, ::-2],
    "one": np.s_[1, 2, 3],
    "none": np.s_[:, 1:1],
}


def filled(dtype, key, value):
    """What NumPy makes of the same fill."""
    a = np.zeros((3, 4, 5), dtype)
    a[key] = value
    return a


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_tensor_is_filled_in_its_dtype(dtype, view, stream):
    t = cu.zeros((3, 4, 5), dtype, stream=stream)
    t[VIEWS[view]].fill(5, stream=stream)
    assert np.array_equal(t.numpy(stream=stream), filled(dtype, VIEWS[view], 5))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("i4", -7),
        ("u1", np.int64(200)),
        ("i8", 1 << 40),
        ("u8", (1 << 64) - 1),
        ("i2", 3.0),
        ("f4", 0.1),
        ("f4", 1 << 80),
        ("f8", np.float32(0.1)),
        ("f8", np.pi),
        ("f2", float("inf")),
        ("c8", 1 - 2j),
        ("c16", 1.5 + 2.5j),
        ("c16", True),
        ("?", 7),
        ("f4", np.array(2.5)),
    ],
)
def test_what_fits_is_converted(dtype, value, stream):
    t = cu.empty((3, 5), dtype, stream=stream)
    t.fill(value, stream=stream)
    assert np.array_equal(t.numpy(stream=stream), np.full((3, 5), value, dtype))
    assert np.array_equal(
        cu.full(4, value, dtype, stream=stream).numpy(stream=stream), np.full(4, value, dtype)
    )


def test_types_that_numpy_lacks(stream):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        t = cu.full((2, 3), 1.5, name, stream=stream)
        t[:, 1].fill(getattr(ml_dtypes, name)(-2), stream=stream)
        assert t.numpy(stream=stream).astype("f4").tolist() == [[1.5, -2, 1.5]] * 2
    with pytest.raises(OverflowError, match="1000000 does not fit float8_e4m3fn"):
        cu.empty(1, "float8_e4m3fn", stream=stream).fill(1000000, stream=stream)
    t = cu.full(3, 1 + 2j, "complex32", stream=stream)
    assert t.buffer.view("f2").numpy(stream=stream).tolist() == [1, 2] * 3
    t = cu.empty(4, "float4_e2m1fn", stream=stream)
    with pytest.raises(TypeError, match="whole bytes, not float4_e2m1fn"):
        t.fill(1, stream=stream)


@pytest.mark.parametrize(
    ("dtype", "value", "error", "match"),
    [
        ("u1", 256, OverflowError, "256 does not fit uint8"),
        ("u1", -1, OverflowError, "-1 does not fit uint8"),
        ("u1", np.int64(300), OverflowError, "300 does not fit uint8"),
        ("i8", 1 << 63, OverflowError, "does not fit int64"),
        ("i4", 1.5, ValueError, "1.5 is not a whole number, so it does not fit int32"),
        ("i4", float("nan"), ValueError, "nan is not a whole number"),
        ("i4", 1j, TypeError, "complex value does not fit int32"),
        ("f8", 1j, TypeError, "complex value does not fit float64"),
        ("f2", 1e6, OverflowError, "1000000.0 does not fit float16"),
        ("f8", 1 << 2000, OverflowError, "does not fit float64"),
        ("c8", complex(0, 1e300), OverflowError, "does not fit complex64"),
        ("f4", "1", TypeError, "must be a number or bytes, not <class 'str'>"),
        ("f4", None, TypeError, "must be a number or bytes"),
        ("f4", [1, 2], TypeError, r"not an array of shape \(2,\)"),
        ("f4", b"ab", ValueError, "an element of float32 has 4 bytes, got 2"),
    ],
)
def test_what_does_not_fit_is_refused(dtype, value, error, match, stream):
    t = cu.zeros(4, dtype, stream=stream)
    for refused in (
        lambda: t.fill(value, stream=stream),
        lambda: cu.full(4, value, dtype, stream=stream),
        lambda: cu.Graph().memset(t, value),
    ):
        with pytest.raises(error, match=match):
            refused()
    assert not t.numpy(stream=stream).any()


def test_misaligned_tensors(device, stream):
    buffer = device.allocate(64, stream=stream)
    buffer.fill(0, stream=stream)
    for dtype, value in (("i2", 0x1234), ("i4", 5), ("f8", 1.5), ("c16", 1 + 2j)):
        buffer[3:51].view(dtype).fill(value, stream=stream)
        whole = buffer.view("u1").numpy(stream=stream)
        assert np.array_equal(
            whole[3:51].copy().view(dtype), np.full(48 // np.dtype(dtype).itemsize, value, dtype)
        )
        assert not whole[:3].any()
        assert not whole[51:].any()


def test_many_dimensions(stream):
    shape = (2, 3, 2, 2, 3, 2)
    t = cu.zeros(shape, "i8", stream=stream)
    key = (slice(None), slice(0, 3, 2), slice(1, 2), slice(None), slice(0, 2), slice(0, 1))
    t[key].fill(1 << 40, stream=stream)
    expected = np.zeros(shape, "i8")
    expected[key] = 1 << 40
    assert np.array_equal(t.numpy(stream=stream), expected)
    key = tuple(slice(0, n, 2) for n in (3, 4, 3, 4, 3, 4))
    t = cu.zeros((3, 4, 3, 4, 3, 4), "f4", stream=stream)
    t[key].fill(1, stream=stream)
    assert t.numpy(stream=stream).sum() == 64 == t.numpy(stream=stream)[key].sum()


@pytest.mark.parametrize("value", [5, 1 << 40])
@pytest.mark.parametrize("view", ["whole", "column", "backwards"])
def test_in_captures_and_graphs(value, view, stream):
    key = VIEWS[view]
    t = cu.zeros((3, 4, 5), "i8", stream=stream)
    expected = filled("i8", key, value)
    with stream.capture() as captured:
        t[key].fill(value, stream=stream)
    built = cu.Graph()
    built.memset(t[key], value, name="fill")
    assert [n.name for n in built.nodes] == ["fill"]
    for graph in (captured, built):
        assert len(graph.nodes) == 1
        t.fill(0, stream=stream)
        assert not t.numpy(stream=stream).any()
        step = graph.instantiate()
        step.launch(stream)
        assert np.array_equal(t.numpy(stream=stream), expected)


def test_the_graph_keeps_what_a_kernel_fills(stream):
    t = cu.zeros((3, 4), "f8", stream=stream)
    graph = cu.Graph()
    node = graph.memset(t[:, 1], 2.5)
    assert node.kind == "kernel"
    step = graph.instantiate()
    view = t[:]
    t.close()
    graph.close()
    step.launch(stream)
    assert view.numpy(stream=stream)[:, 1].tolist() == [2.5] * 3


def test_updates_fill_in_the_dtype(stream):
    t = cu.zeros(8, "i4", stream=stream)
    graph = cu.Graph()
    graph.memset(t, 5, name="fill")
    step = graph.instantiate()
    step.launch(stream)
    assert t.numpy(stream=stream).tolist() == [5] * 8
    step["fill"].update(t, -2)
    step.launch(stream)
    assert t.numpy(stream=stream).tolist() == [-2] * 8
    with pytest.raises(OverflowError, match="does not fit int32"):
        step["fill"].update(t, 1 << 31)


def test_arrays_of_other_libraries_have_a_dtype(device, stream):
    class Theirs:
        dtype = np.dtype("i4")

        def __init__(self, tensor):
            self.tensor = tensor
            self.__cuda_array_interface__ = {
                "version": 3,
                "shape": tensor.shape,
                "typestr": "<i4",
                "data": (tensor.handle, False),
            }

    t = cu.zeros(4, "i4", stream=stream)
    stream.sync()
    graph = cu.Graph()
    graph.memset(Theirs(t), 5)
    graph.instantiate().launch(stream)
    assert t.numpy(stream=stream).tolist() == [5] * 4


def test_one_node_must_be_enough(device, stream):
    misaligned = device.allocate(20, stream=stream)[2:18].view("i8")
    with pytest.raises(ValueError, match="one node cannot fill a tensor of shape"):
        cu.Graph().memset(misaligned, 1 << 40)


def test_memory_that_the_driver_cannot_fill(device, stream):
    host = np.zeros(4, "i4")
    with pytest.raises(BufferError, match="fill the array itself"):
        cu.from_dlpack(host).fill(5, stream=stream)
    host.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        cu.from_dlpack(host).fill(5, stream=stream)
    t = cu.zeros(4, "i4", stream=stream)
    t.close()
    with pytest.raises(cu.ClosedError):
        t.fill(5, stream=stream)
    pinned = cu.PinnedMemoryResource().allocate(16).view("i4")
    pinned[::2].fill(5, stream=stream)
    pinned[1::2].fill(6, stream=stream)
    stream.sync()
    assert np.asarray(memoryview(pinned)).tolist() == [5, 6, 5, 6]


def test_a_value_may_close_the_tensor(stream):
    for view in (np.s_[:], np.s_[::2]):
        t = cu.zeros(4, "i4", stream=stream)
        view = t[view]

        class Value:
            def __array__(self, dtype=None, *, copy=None, view=view):
                view.close()
                return np.array(5)

        with pytest.raises(cu.ClosedError):
            view.fill(Value(), stream=stream)
        assert not t.numpy(stream=stream).any()


def test_our_own_kernels_are_not_counted(stream):
    before = cu.live_objects()
    t = cu.zeros((4, 4), "f4", stream=stream)
    t[:, 1].fill(1, stream=stream)
    assert strided.held()
    t.close()
    stream.sync()
    assert cu.live_objects().get("ObjectCode") == before.get("ObjectCode")


@pytest.mark.parametrize("most", [1, 5, 7, 1 << 31])
def test_boxes_cover_everything_once(most, monkeypatch):
    monkeypatch.setattr(strided, "_MOST_WORDS", most + 1)
    shape = (3, 2, 4, 2, 3)
    strides = tuple(1000**i for i in (3, 0, 4, 1, 2))
    seen = [
        offset + sum(i * s for i, s in zip(index, steps, strict=True))
        for (offset,), sizes, (steps,) in strided.boxes(shape, [strides])
        for index in itertools.product(*map(range, sizes))
    ]
    wanted = [
        sum(i * s for i, s in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]
    assert sorted(seen) == sorted(wanted)
