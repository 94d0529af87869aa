# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors: layout, views, copies, and what they keep alive."""

from __future__ import annotations

import copy
import gc
import math
import operator
import pickle
import weakref
from itertools import permutations

import pytest

import cudago as cu

from .array import same

np = pytest.importorskip("numpy")

INDICES = [
    3,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(2, 2),
    slice(-100, 100, 2**40),
    ...,
    None,
    (),
    (slice(None), slice(4, 8)),
    (..., 2),
    (2, ...),
    (..., None),
    (None, slice(1, 2), None, 5),
    (slice(None, None, -1), slice(None, None, -3)),
    (np.int64(1), slice(None)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_is_numpys(counted, stream, index):
    array = np.arange(32, dtype="i4").reshape(4, 8)
    got = counted[index]
    assert isinstance(got, cu.Tensor)
    assert same(got, array[index], stream)
    want = array[index].strides
    if all(n > 1 for n in got.shape):
        assert got.strides == tuple(n // 4 for n in want)


@pytest.mark.parametrize(
    ("index", "error", "match"),
    [
        (4, IndexError, "index 4 is out of range for dimension 0 of size 4"),
        ((0, -9), IndexError, "index -9 is out of range for dimension 1 of size 8"),
        ((0, 0, 0), IndexError, "3 indices for a tensor of 2 dimensions"),
        ((..., ...), IndexError, "only one ellipsis"),
        (1.5, TypeError, "not by <class 'float'>"),
        ("a", TypeError, "not by <class 'str'>"),
        (True, TypeError, "not by <class 'bool'>"),
        ([0, 1], TypeError, "not by <class 'list'>: masks and lists of indices would copy"),
        (np.ones(2, bool), TypeError, "not by <class 'numpy.ndarray'>: masks"),
        (np.arange(2), TypeError, "not by <class 'numpy.ndarray'>: masks"),
        (slice(None, None, 0), ValueError, "step cannot be zero"),
        ((None,) * 63, IndexError, "too many dimensions"),
        (2**70, IndexError, "cannot fit"),
    ],
)
def test_wrong_indices(counted, index, error, match):
    with pytest.raises(error, match=match):
        counted[index]


def test_attributes(counted, device):
    assert counted.shape == (4, 8)
    assert counted.strides == (8, 1)
    assert counted.dtype == np.dtype("i4")
    assert counted.dtype_name == "int32"
    assert (counted.ndim, counted.size, counted.itemsize, counted.nbytes) == (2, 32, 4, 128)
    assert len(counted) == 4
    assert counted.is_contiguous
    assert not counted[:, ::2].is_contiguous
    assert not counted.is_readonly
    assert counted.device == device
    assert counted[1:].device == device
    assert counted.handle == int(counted.ptr)
    assert counted[1, 2].handle == counted.handle + 40
    assert repr(counted).startswith(f"<Tensor int32[4, 8] on device 0 at {counted.handle:#x}")


def test_rows(counted, stream):
    rows = list(counted)
    assert [r.shape for r in rows] == [(8,)] * 4
    assert same(rows[2], np.arange(16, 24, dtype="i4"), stream)
    with pytest.raises(TypeError, match="no length"):
        len(counted[0, 0])
    with pytest.raises(TypeError, match="cannot be iterated"):
        iter(counted[0, 0]).__next__()


def test_transpose_and_reshape(counted, stream):
    array = np.arange(32, dtype="i4").reshape(4, 8)
    assert same(counted.T, array.T, stream)
    assert counted == counted.T.T
    for shape in ((32,), (2, 16), (2, 2, 8), (1, 32, 1), (-1, 4)):
        assert same(counted.reshape(shape), array.reshape(shape), stream)
        assert counted.reshape(*shape) == counted.reshape(shape)
    assert counted.reshape(-1).shape == (32,)
    with pytest.raises(BufferError, match="gaps"):
        counted.T.reshape(32)
    with pytest.raises(ValueError, match="32 elements cannot take a shape of 33"):
        counted.reshape(3, 11)
    with pytest.raises(ValueError, match="cannot be worked out"):
        counted.reshape(-1, 5)
    with pytest.raises(ValueError, match="only one dimension can be -1, got dimensions 0 and 1"):
        counted.reshape(-1, -1)
    with pytest.raises(ValueError, match="dimension 1 is negative: -2"):
        counted.reshape(-1, -2)
    with pytest.raises(OverflowError):
        counted.reshape(2**40, 2**40)
    for make, name in (
        (counted.reshape, "shape"),
        (counted.transpose, "axes"),
        (lambda shape: counted.buffer.view("i4", shape), "shape"),
    ):
        with pytest.raises(TypeError, match=f"{name} must be an int or a sequence of ints, not"):
            make(1.5)
    for size in (32, np.int64(32), np.array(32), np.array([32]), iter([32])):
        assert counted.reshape(size).shape == (32,)
    for size in (3, np.array(3), np.array([3])):
        assert cu.zeros(size, stream=stream).shape == (3,)


class Refuses:
    """A number whose length is asked for at a wrong time."""

    def __index__(self):
        return 3

    def __len__(self):
        raise KeyboardInterrupt

    def __getitem__(self, index):
        raise AssertionError


def test_an_interrupt_in_a_shape_is_not_lost(counted):
    with pytest.raises(KeyboardInterrupt):
        counted.reshape(Refuses())


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (2, 1, 0, 3)])
def test_transposed_as_by_numpy(shape, stream):
    array = np.arange(math.prod(shape), dtype="i4").reshape(shape)
    t = cu.asarray(array, stream=stream)
    for axes in permutations(range(len(shape))):
        for given in (axes, [a - len(shape) for a in axes]):
            assert same(t.transpose(given), array.transpose(given), stream)
            assert t.transpose(*given) == t.transpose(given)
    assert t.transpose() == t.transpose(None) == t.T
    if len(shape) > 1:
        assert same(t[1:].mT, np.swapaxes(array[1:], -1, -2), stream)
        assert t.mT.mT == t


@pytest.mark.parametrize(
    ("axes", "error", "match"),
    [
        ((0,), ValueError, "2 dimensions has as many axes, got 1"),
        ((0, 1, 2), ValueError, "got 3"),
        ((0, 2), ValueError, "axis 2 is out of range for 2 dimensions"),
        ((-3, 0), ValueError, "axis -3 is out of range"),
        ((1, -1), ValueError, "axis 1 is given twice"),
        ((2**40, 0), ValueError, "out of range"),
        ((2**70, 0), OverflowError, "a dimension must be below"),
        ((0.5, 1), TypeError, "a dimension must be an int"),
        (("a", 1), TypeError, "a dimension must be an int"),
    ],
)
def test_axes_that_are_none(counted, axes, error, match):
    for given in (axes, (axes,)):
        with pytest.raises(error, match=match):
            counted.transpose(*given)


def test_a_row_has_no_last_two_dimensions(counted):
    with pytest.raises(ValueError, match="mT exchanges the last two dimensions, got a tensor of 1"):
        counted[0].mT  # noqa: B018


def test_reversed(counted):
    assert list(reversed(counted)) == list(counted)[::-1]
    assert list(reversed(counted[:0])) == []
    with pytest.raises(TypeError, match="without dimensions has no length"):
        reversed(counted[0, 0])


def test_many_dimensions(stream):
    t = cu.zeros((1, 2, 1, 3, 1, 2), "u1", stream=stream)
    array = np.zeros((1, 2, 1, 3, 1, 2), "u1")
    assert t.strides == array.strides
    assert same(t.T[..., None], array.T[..., None], stream)


def test_equality_is_the_view(counted):
    assert counted == counted[:]
    assert hash(counted) == hash(counted[:])
    assert counted != counted[1:]
    assert counted != counted.T
    assert counted != "counted"
    assert counted[0] != counted[0:1]
    assert len({counted, counted[...], counted[1]}) == 2
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(counted)


# --- memory ---------------------------------------------------------------------------------------


def test_a_view_of_a_buffer(device, stream):
    buffer = device.allocate(4096, stream=stream)
    t = buffer.view("f4", (32, 32))
    assert t.handle == int(buffer.ptr)
    assert buffer.view("f4").shape == (1024,)
    assert buffer.view("f8", -1).shape == (512,)
    assert buffer.view("f4", (2, -1)).shape == (2, 512)
    assert buffer[1024:2048].view("f4").shape == (256,)
    assert buffer.view("i4", (4, 4), (64, 2)).strides == (64, 2)
    assert buffer.view(dtype=np.float32, shape=(0, 7)).size == 0
    with pytest.raises(ValueError, match="reaches bytes 0 to 4100 of memory of 4096 bytes"):
        buffer.view("f4", 1025)
    with pytest.raises(ValueError, match="memory of 1024 bytes"):
        buffer[1024:2048].view("f4", 257)
    with pytest.raises(ValueError, match="reaches bytes -4"):
        buffer.view("f4", 2, -1)
    with pytest.raises(ValueError, match="not a whole number of float64"):
        buffer[:12].view("f8")
    with pytest.raises(ValueError, match="2 strides for 1 dimensions"):
        buffer.view("f4", 4, (1, 1))
    with pytest.raises(TypeError, match="needs a dtype"):
        buffer.view()


def test_a_view_keeps_the_memory(device, stream):
    live = cu.exchange_stats().live["pool"]
    buffer = device.allocate(64, stream=stream)
    t = buffer.view("f4")[4:]
    buffer.close()
    t.copy_from(np.ones(12, "f4"), stream=stream)
    assert same(t, np.ones(12, "f4"), stream)
    assert cu.exchange_stats().live["pool"] == live + 1
    del t
    gc.collect()
    assert cu.exchange_stats().live["pool"] == live


def test_from_tensor_to_buffer(counted, stream):
    buffer = counted[1].buffer
    assert (buffer.size, buffer.handle) == (32, counted[1].handle)
    out = np.empty(8, "i4")
    buffer.copy_to(out, stream=stream)
    stream.sync()
    assert out.tolist() == list(range(8, 16))
    with pytest.raises(BufferError, match="gaps"):
        _ = counted[:, 1].buffer
    assert int(counted[::-1].ptr) == counted[3].handle


def test_closing(counted, stream):
    view = counted[0]
    with counted as t:
        assert t is counted
    assert counted.is_closed
    counted.close()
    assert repr(counted) == "<Tensor closed>"
    assert counted.shape == (4, 8)
    assert hash(counted) != 0
    uses = [
        lambda: counted[0],
        lambda: counted.T,
        lambda: counted.mT,
        lambda: counted.transpose(1, 0),
        lambda: counted.transpose(),
        lambda: counted.reshape(32),
        lambda: counted.handle,
        lambda: counted.ptr,
        lambda: counted.buffer,
        lambda: counted.numpy(stream=stream),
        lambda: counted.copy_from(view, stream=stream),
        lambda: counted.__enter__(),
        lambda: memoryview(counted),
        lambda: cu.to_torch(counted),
        lambda: next(iter(counted)),
        lambda: next(reversed(counted)),
    ]
    for use in uses:
        with pytest.raises(cu.ClosedError, match="tensor is closed"):
            use()
    assert same(view, np.arange(8, dtype="i4"), stream), "views have their own hold"


def test_weak_references(counted):
    view = counted[0]
    r = weakref.ref(view)
    assert r() is view
    del view
    assert r() is None


def test_a_tensor_is_not_made_out_of_nothing(counted):
    for make in (lambda: cu.Tensor(), lambda: object.__new__(cu.Tensor)):
        with pytest.raises(TypeError):
            make()
    for make in (copy.copy, pickle.dumps):
        with pytest.raises(TypeError):
            make(counted)
    with pytest.raises(AttributeError):
        counted.shape = (32,)


# --- copies ---------------------------------------------------------------------------------------


def test_copies_between_layouts(counted, stream):
    array = np.arange(32, dtype="i4").reshape(4, 8)
    t = cu.zeros((8, 4), "i4", stream=stream)
    t.copy_from(counted.T, stream=stream)
    assert same(t, array.T, stream)
    t[::2, 1:3].copy_from(counted[:, :2], stream=stream)
    want = array.T.copy()
    want[::2, 1:3] = array[:, :2]
    assert same(t, want, stream)
    t[0].copy_from([7, 8, 9, 10], stream=stream)
    assert t[0].numpy(stream=stream).tolist() == [7, 8, 9, 10]
    t[0, 0].copy_from(42, stream=stream)
    assert t[0, 0].numpy(stream=stream) == 42


def test_what_a_copy_refuses(counted, stream):
    with pytest.raises(ValueError, match=r"src has shape \(4, 7\), the tensor \(4, 8\)"):
        counted.copy_from(np.zeros((4, 7), "i4"), stream=stream)
    with pytest.raises(TypeError, match="src has element type float32, the tensor int32"):
        counted.copy_from(np.zeros((4, 8), "f4"), stream=stream)
    with pytest.raises(TypeError):
        counted.copy_from(counted)
    big = cu.zeros(70_000, "u1", stream=stream)
    with stream.capture(), pytest.raises(BufferError, match="70000 driver calls"):
        big.copy_from(np.zeros(70_000, "u1")[::-1], stream=stream)
    readonly = np.arange(4, dtype="i4")
    readonly.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        cu.from_dlpack(readonly).copy_from(counted[0, :4], stream=stream)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_numbers_to_copy_from(stream, kind):
    t = cu.zeros(4, "f4", stream=stream)
    t.copy_from(kind(b"\1\2\3\4"), stream=stream)
    assert t.numpy(stream=stream).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"src has shape \(16,\), the tensor \(4,\)"):
        t.copy_from(kind(bytes(16)), stream=stream)


def test_copies_with_the_host_on_the_other_side(counted, stream):
    host = np.zeros((4, 8), "i4")
    cu.from_dlpack(host).copy_from(counted, stream=stream)
    stream.sync()
    assert host.tolist() == np.arange(32).reshape(4, 8).tolist()
    other = np.empty((4, 8), "i4")
    cu.from_dlpack(other).copy_from(cu.from_dlpack(host), stream=stream)
    assert (other == host).all()
    pinned = cu.PinnedMemoryResource().allocate(128).view("i4", (4, 8))
    pinned.copy_from(counted, stream=stream)
    stream.sync()
    assert memoryview(pinned).tolist() == host.tolist()


def test_numpy_leaves_a_capture_alone(counted, stream):
    with stream.capture() as graph:
        counted.buffer.fill(0, stream=stream)
        with pytest.raises(ValueError, match="stream that is capturing cannot be waited for"):
            counted.numpy(stream=stream)
    assert [node.kind for node in graph.nodes] == ["memset"]
    graph.close()


def test_numpy_does_not_convert_by_itself(counted):
    for convert in (np.asarray, np.array):
        with pytest.raises(TypeError, match=r"use t.numpy\(stream=...\)"):
            convert(counted)
    with pytest.raises(BufferError, match="device memory has no Python buffer"):
        memoryview(counted)


# --- the buffer protocol --------------------------------------------------------------------------


def test_host_memory_is_a_python_buffer():
    t = cu.PinnedMemoryResource().allocate(96).view("i4", (4, 6))
    view = memoryview(t)
    assert (view.format, view.shape, view.strides, view.itemsize) == ("i", (4, 6), (24, 4), 4)
    assert not view.readonly
    np.asarray(view)[:] = np.arange(24).reshape(4, 6)
    assert memoryview(t[::2, ::-1]).tolist() == [[5, 4, 3, 2, 1, 0], [17, 16, 15, 14, 13, 12]]
    assert np.frombuffer(t, "i4").tolist() == list(range(24))
    with pytest.raises(BufferError, match="contiguous"):
        np.frombuffer(t[:, 1], "i4")
    assert memoryview(t.T).f_contiguous
    with pytest.raises(BufferError, match=r"1 buffer\(s\) of its memory are in use"):
        t.close()
    view.release()
    gc.collect()
    t.close()


def test_packed_types_have_no_python_buffer():
    t = cu.PinnedMemoryResource().allocate(8).view("bfloat16")
    with pytest.raises(BufferError, match="no format"):
        memoryview(t)


# --- kernels --------------------------------------------------------------------------------------


def test_a_tensor_is_a_kernel_argument(counted, stream):
    code = cu.ObjectCode.from_ptx(
        """
        .version 7.0
        .target sm_70
        .address_size 64
        .visible .entry add_one(.param .u64 p)
        {
            .reg .u64 %rd<4>;
            .reg .u32 %r<4>;
            ld.param.u64 %rd1, [p];
            mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd2, %r1, 4;
            add.u64 %rd3, %rd1, %rd2;
            ld.global.u32 %r2, [%rd3];
            add.u32 %r3, %r2, 1;
            st.global.u32 [%rd3], %r3;
            ret;
        }
        """
    )
    kernel = code["add_one"]
    cu.launch(stream, cu.LaunchConfig(grid=1, block=8), kernel, counted[1])
    want = np.arange(32, dtype="i4").reshape(4, 8)
    want[1] += 1
    assert same(counted, want, stream)


def test_operators_are_not_there(counted):
    with pytest.raises(TypeError):
        operator.add(counted, counted)


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + t,
        lambda t: 2 * t,
        lambda t: t @ t,
        lambda t: -t,
        lambda t: abs(t),
        lambda t: t > 0,
        lambda t: t <= t,
        lambda t: 1.5**t,
        lambda t: t & True,
    ],
)
def test_arithmetic_is_refused_with_advice(stream, use):
    with pytest.raises(TypeError, match=r"no arithmetic, so no .*torch\.from_dlpack.*elementwise"):
        use(cu.zeros((2, 2), "i4", stream=stream))


def assign(t):
    """Assign to an element, as to one of an array."""
    t[0] = 1


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda t: float(t[0, 0]), r"no number, so no float\(\): t.item\(stream=s\)"),
        (lambda t: int(t[0, 0]), r"no number, so no int\(\): t.item\(stream=s\)"),
        (lambda t: complex(t[0, 0]), r"no number, so no complex\(\): t.item\(stream=s\)"),
        (lambda t: 1 in t, r"not compared, so no in: t.numpy\(stream=s\)"),
        (assign, r"not assigned: t\[...\].fill\(value, stream=s\) .* t\[...\].copy_from\(src"),
    ],
)
def test_what_arrays_of_the_host_do_is_refused_with_advice(counted, use, match):
    with pytest.raises(TypeError, match=match):
        use(counted)


def test_other_objects_have_their_say_about_operators(stream):
    class Other:
        def __radd__(self, other):
            return "mine"

    t = cu.zeros(2, "i4", stream=stream)
    assert t + Other() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = t + "text"
    with pytest.raises(TypeError, match="no arithmetic"):
        t += 1
