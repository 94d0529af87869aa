# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams, element types and arrays of other libraries, where memory is made or pinned."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cudago as cu


class TheirStream:
    def __init__(self, stream):
        self.ours = stream

    def __cuda_stream__(self):
        return 0, self.ours.handle


class TheirDtype:
    """As PyTorch's, which NumPy does not understand."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


class TheirTensor:
    """As PyTorch's on the host: DLPack, and no buffer protocol; an array by DLPack too."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, *, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_streams_of_other_libraries(device, stream):
    theirs = TheirStream(stream)
    assert cu.empty(3, stream=theirs).shape == (3,)
    assert cu.zeros(3, "i4", stream=theirs).numpy(stream=theirs).tolist() == [0] * 3
    assert cu.full(3, 7, "i8", stream=theirs).numpy(stream=theirs).tolist() == [7] * 3
    t = cu.asarray([[1, 2], [3, 4]], "f4", stream=theirs)
    assert t.T.numpy(stream=theirs).tolist() == [[1, 3], [2, 4]]
    assert cu.zeros(2, stream=theirs, resource=cu.DeviceMemoryResource(device)).nbytes == 8
    graph = cu.Graph()
    graph.memset(t, 5)
    with graph.instantiate(upload=theirs) as step:
        step.upload(theirs)
        step.launch(theirs)
        assert t.numpy(stream=theirs).tolist() == [[5, 5], [5, 5]]
    with pytest.raises(TypeError, match="__cuda_stream__"):
        cu.zeros(3, stream=5)


@pytest.mark.parametrize("name", ["float16", "float64", "int8", "bool", "complex64"])
def test_dtypes_of_other_libraries(name, stream):
    for dtype in (name, TheirDtype(name), np.dtype(name)):
        t = cu.asarray([[1, 0], [1, 1]], dtype, stream=stream)
        assert t.dtype_name == name
        assert np.array_equal(t.numpy(stream=stream), np.array([[1, 0], [1, 1]], name))
        assert cu.empty(3, dtype, stream=stream).dtype_name == name


def test_bfloat16(stream):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    host = np.array([1.5, -2], ml_dtypes.bfloat16)
    for made in (
        cu.asarray([1.5, -2], "bfloat16", stream=stream),
        cu.asarray(np.array([1.5, -2]), TheirDtype("bfloat16"), stream=stream),
        cu.asarray(host, stream=stream),
        cu.full(2, -2, "bfloat16", stream=stream),
    ):
        assert made.dtype_name == "bfloat16"
        assert made.numpy(stream=stream).astype("f4")[1] == -2


def test_python_complex(stream):
    assert cu.zeros(2, complex, stream=stream).dtype == np.complex128
    assert cu.full(2, 1 + 2j, complex, stream=stream).numpy(stream=stream).tolist() == [1 + 2j] * 2
    assert cu.asarray([1j, 2], stream=stream).numpy(stream=stream).tolist() == [1j, 2]
    assert cu.asarray(3j, "c8", stream=stream).numpy(stream=stream) == 3j


def test_tensors_of_other_libraries(stream):
    array = np.arange(12, dtype="f4").reshape(3, 4)
    for theirs in (TheirTensor(array), TheirTensor(array[:, ::2])):
        t = cu.asarray(theirs, stream=stream)
        assert np.array_equal(t.numpy(stream=stream), theirs.array)
    t = cu.asarray([[1, 2]], "i4", stream=stream)
    assert cu.asarray(t, stream=stream) is t


def test_pinning_what_has_only_dlpack(stream):
    array = np.zeros(1024, "i4")
    with cu.pin(TheirTensor(array)) as pinned:
        assert pinned.size == array.nbytes
        cu.full(1024, 3, "i4", stream=stream).buffer.copy_to(pinned, stream=stream)
        stream.sync()
        assert (array == 3).all()
    with pytest.raises(BufferError, match="gaps"):
        cu.pin(TheirTensor(array[::2]))
    with pytest.raises(TypeError, match="buffer protocol"):
        cu.pin(5)


def test_ones_and_ranges(stream):
    assert cu.ones((2, 2), "u1", stream=stream).numpy(stream=stream).tolist() == [[1, 1]] * 2
    for args in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0.5, 2.5, 0.5), (0,)):
        t = cu.arange(*args, stream=stream)
        assert np.array_equal(t.numpy(stream=stream), np.arange(*args))
        assert t.dtype == np.arange(*args).dtype
    assert cu.arange(8, step=3, stream=stream).numpy(stream=stream).tolist() == [0, 3, 6]
    assert cu.arange(3, dtype="f2", stream=stream).dtype_name == "float16"


@pytest.mark.parametrize(
    ("args", "dtype"),
    [
        ((2**63, 2**63 + 3), "u8"),
        ((0, 10, 2.5), "i4"),
        ((0, 1, 0.1), "f2"),
        ((0, 3, 1), "c8"),
        ((0, 2), "?"),
    ],
)
def test_ranges_are_counted_in_their_element_type(args, dtype, stream):
    t = cu.arange(*args, dtype=dtype, stream=stream)
    assert np.array_equal(t.numpy(stream=stream), np.arange(*args, dtype=dtype))


@pytest.mark.parametrize(
    ("args", "dtype", "error"),
    [
        ((-1, 2), "u4", OverflowError),
        ((1e10, 1e10 + 3), "i4", OverflowError),
        ((1j,), "f4", TypeError),
        ((5,), "?", TypeError),
    ],
)
def test_ranges_that_do_not_fit(args, dtype, error, stream):
    with pytest.raises(error):
        np.arange(*args, dtype=dtype)
    with pytest.raises(error):
        cu.arange(*args, dtype=dtype, stream=stream)


@pytest.mark.parametrize(
    ("args", "dtype", "got"),
    [
        ((250, 260), "u1", 259),
        ((np.int64(250), 300, np.int64(2)), "u1", 298),
        ((100, 200, 20), "i1", 180),
        ((0, 70000, 10000), "i2", 60000),
        ((2, -3, -1), "u1", -2),
        ((0.5, 200, 2.5), "i1", 237),  # NumPy counts by 3
        ((0, 200000, 50000), "f2", 150000),
        ((-80000, 0, 50000), "f2", -80000),
        ((0, 1e39, 4e38), "f4", 8e38),
    ],
)
def test_ranges_that_leave_their_element_type(args, dtype, got, stream):
    """NumPy looks at the first two numbers, and wraps."""
    with warnings.catch_warnings(), pytest.raises(OverflowError) as e:
        warnings.simplefilter("error")
        cu.arange(*args, dtype=dtype, stream=stream)
    assert str(e.value).startswith("arange must give numbers ")
    assert str(e.value).endswith(f" as {np.dtype(dtype).name} has them, got {got}")


@pytest.mark.parametrize(
    ("args", "dtype"),
    [((0, 300, 100), "u1"), ((0, 1, 300), "u1"), ((-128, 128), "i1"), ((255, -1, -1), "u1")],
)
def test_ranges_to_the_ends_of_their_element_type(args, dtype, stream):
    t = cu.arange(*args, dtype=dtype, stream=stream)
    assert t.numpy(stream=stream).tolist() == list(range(*args))


def test_ranges_of_types_that_numpy_lacks(stream):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e5m2"):
        t = cu.arange(0, 1, 0.1, dtype=name, stream=stream)
        expected = np.arange(0, 1, 0.1, dtype=getattr(ml_dtypes, name))
        assert t.numpy(stream=stream).tobytes() == expected.tobytes()
    with pytest.raises(OverflowError, match=r"as float8_e4m3fn has them, got 900$"):
        cu.arange(0, 1000, 100, dtype="float8_e4m3fn", stream=stream)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (cu.empty_like, None),
        (cu.zeros_like, 0),
        (cu.ones_like, 1),
        (lambda t, *a, **k: cu.full_like(t, 7, *a, **k), 7),
    ],
)
def test_likes(make, value, stream):
    t = cu.zeros((2, 3), "i2", stream=stream)
    for like, dtype in ((t.T, None), (np.zeros((3, 2), "i2"), None), (t.T, "f8")):
        made = make(like, dtype, stream=stream)
        assert (made.shape, made.is_contiguous) == ((3, 2), True)
        assert made.dtype_name == ("float64" if dtype else "int16")
        assert value is None or (made.numpy(stream=stream) == value).all()


def test_item(stream):
    t = cu.arange(6, dtype="i8", stream=stream).reshape((2, 3))
    assert t[1, 1].item(stream=stream) == 4
    assert type(cu.full(1, 1.5, "f8", stream=stream).item(stream=TheirStream(stream))) is float
    assert cu.full((1, 1), 2j, "c8", stream=stream).item(stream=stream) == 2j
    with pytest.raises(ValueError, match="6 elements is not one number"):
        t.item(stream=stream)
    with stream.capture(), pytest.raises(ValueError, match="capturing"):
        t[0, 0].item(stream=stream)
    pytest.importorskip("ml_dtypes")
    assert cu.full(1, 1.5, "bfloat16", stream=stream).item(stream=stream) == 1.5
