# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Types that expressions declare, as C++ and as NumPy call them."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

OF_NUMPY = "bool float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
OF_C = {
    "char": "int8",
    "signed char": "int8",
    "short int": "int16",
    "signed": "int32",
    "signed int": "int32",
    "unsigned int": "uint32",
    "unsigned short int": "uint16",
    "long": "int64",
    "long int": "int64",
    "long long int": "int64",
    "ptrdiff_t": "int64",
    "unsigned long": "uint64",
    "long unsigned int": "uint64",
    "unsigned long long int": "uint64",
    "size_t": "uint64",
    "const float": "float32",
    "const  unsigned char": "uint8",
    "int const": "int32",
}


def values(name):
    """A few numbers, the least and the largest of the type among them."""
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return np.array([True, False, True])
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, 7], dtype)


@pytest.mark.parametrize(("spelled", "name"), [*((n, n) for n in OF_NUMPY.split()), *OF_C.items()])
def test_types(spelled, name, stream):
    host = values(name)
    made = cu.elementwise(f"{spelled} x, {spelled} k", f"{spelled} z", "z = k ? x : 0")
    found = made(cu.asarray(host, stream=stream), 1, stream=stream)
    assert found.dtype_name == name
    assert np.array_equal(found.numpy(stream=stream), host)
    largest = cu.reduce(f"{spelled} x", f"{spelled} z", "a > b ? a : b")
    assert largest(cu.asarray(host, stream=stream), stream=stream).item(stream=stream) == host.max()


def test_bfloat16(stream):
    made = cu.elementwise("bfloat16 x", "bfloat16 z", "z = x / 2")
    half = made(cu.ones(3, "bfloat16", stream=stream), stream=stream)
    assert half.astype("f4", stream=stream).numpy(stream=stream).tolist() == [0.5] * 3


def test_the_spelling_is_shown():
    made = cu.elementwise("float32 x, const  float y", "uint8 z", "z = x > y")
    shown = "<cudago.ElementwiseKernel elementwise(float32 x, const float y) -> uint8 z>"
    assert repr(made) == shown
    shown = "<cudago.ReduceKernel reduce(float16 x) -> float64 z>"
    assert repr(cu.reduce("float16 x", "float64 z", "a + b")) == shown


def test_numbers_are_told_by_the_name_of_the_element_type(stream):
    made = cu.elementwise("uint8 x, size_t k", "int64 z", "z = x + k")
    x = cu.ones(3, "u1", stream=stream)
    with pytest.raises(
        OverflowError, match=r"k of elementwise must be 0 to .*, as uint64 has them"
    ):
        made(x, -1, stream=stream)
    with pytest.raises(TypeError, match="x of elementwise must have elements of type uint8, got i"):
        made(cu.ones(3, "i1", stream=stream), 1, stream=stream)


@pytest.mark.parametrize(
    ("declaration", "advice"),
    [
        ("string x", "the types are float, double, half, .* float16, bfloat16, float32"),
        ("unsigned float x", "the types are float"),
        ("int int x", "the types are float"),
        ("const x", "the types are float"),
        ("float", "the types are float"),
        ("raw float x", "write a kernel that takes pointers"),
        ("float* x", "write a kernel that takes pointers"),
        ("const float *x", "write a kernel that takes pointers"),
        ("complex64 x", "complex numbers are not computed"),
        ("complex<float> x", "complex numbers are not computed"),
        ("t x", "the types are float, .* or a letter such as T"),
        ("TT x", "the types are float"),
    ],
)
def test_what_is_no_type(declaration, advice):
    for make in (
        lambda: cu.elementwise(f"float y, {declaration}", "float z", "z = y"),
        lambda: cu.reduce(declaration, "float z", "a + b"),
    ):
        with pytest.raises(ValueError, match=f"must be types and names such as .*; .*{advice}"):
            make()
