# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that make tensors, and the element types they take."""

from __future__ import annotations

import pytest

import cudago as cu

from .array import same

np = pytest.importorskip("numpy")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0, "u1"),
        (255, "u1"),
        (-3, "i2"),
        (1.5, "f4"),
        (-2, "i8"),
        (2.5, "f8"),
        (1 + 2j, "c8"),
        (1 + 2j, "c16"),
        (True, "bool"),
        (0.5, "f2"),
    ],
)
def test_full(stream, value, dtype):
    t = cu.full((3, 5), value, dtype, stream=stream)
    assert same(t, np.full((3, 5), value, dtype), stream)


def test_making(device, stream):
    assert same(cu.zeros((2, 3), "f8", stream=stream), np.zeros((2, 3)), stream)
    assert cu.empty((2, 3), stream=stream).dtype == np.dtype("f4")
    assert cu.empty(5, "u1", stream=stream).shape == (5,)
    assert cu.empty((), "u1", stream=stream).size == 1
    for shape in ((0,), (4, 0, 2)):
        for t in (cu.empty(shape, stream=stream), cu.full(shape, 1, stream=stream)):
            assert t.numpy(stream=stream).shape == shape
    pool = cu.DeviceMemoryResource(device)
    assert cu.zeros(4, stream=stream, resource=pool).device == device
    with pytest.raises(ValueError, match="cannot be negative"):
        cu.empty((2, -3), stream=stream)
    with pytest.raises(OverflowError):
        cu.full(4, 300, "u1", stream=stream)
    with pytest.raises(TypeError):
        cu.empty(4)


def test_asarray(counted, stream):
    array = np.arange(6.0).reshape(2, 3)
    for source in (array, np.asfortranarray(array), array[::-1], array.tolist()):
        assert same(cu.asarray(source, stream=stream), np.asarray(source), stream)
    assert same(cu.asarray(array, "i2", stream=stream), array.astype("i2"), stream)
    assert cu.asarray(counted, stream=stream) is counted
    with pytest.raises(TypeError, match="element type int32, not float32"):
        cu.asarray(counted, "f4", stream=stream)
    with pytest.raises(TypeError, match="dtype must be"):
        cu.asarray(np.array(["a"]), stream=stream)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float", "float64"),
        (float, "float64"),
        (np.float32, "float32"),
        (np.dtype("<u2"), "uint16"),
        ("?", "bool"),
        ("bfloat16", "bfloat16"),
        ("float8_e4m3fn", "float8_e4m3fn"),
    ],
)
def test_element_types(stream, dtype, name):
    t = cu.empty(4, dtype, stream=stream)
    assert t.dtype_name == name
    assert cu.empty(4, t.dtype, stream=stream).dtype == t.dtype


@pytest.mark.parametrize(
    "dtype",
    [">f4", "object", "f3", None, np.dtype([("a", "i4")]), "U4", 7, "f4\0", "float32\0x"],
)
def test_unknown_element_types(stream, dtype):
    with pytest.raises(TypeError, match="dtype must be a boolean, integer"):
        cu.empty(4, dtype, stream=stream)


def test_types_without_numpy(stream):
    t = cu.zeros((2, 2), "bfloat16", stream=stream)
    assert t.dtype == "bfloat16"
    assert t.nbytes == 8
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert t.T.shape == (2, 2)
    assert t.numpy(stream=stream).dtype == np.dtype(ml_dtypes.bfloat16)
