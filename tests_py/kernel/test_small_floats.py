# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that PTX takes for structs: of two bytes, of one, and complex ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cudago as cu

SOURCE = """
struct Two { unsigned short x; };
struct One { unsigned char x; };
struct Pair { float x, y; };
struct Wide { double x, y; };
extern "C" __global__ void two(Two v, unsigned short* to, int at) { to[at] = v.x; }
extern "C" __global__ void one(One v, unsigned char* to, int at) { to[at] = v.x; }
extern "C" __global__ void pair(Pair v, Pair* to) { *to = v; }
extern "C" __global__ void wide(Wide v, Wide* to) { *to = v; }
"""
ONE = cu.LaunchConfig(1, 1)
NAMES = {"float16": "__half", "bfloat16": "__nv_bfloat16"}


@pytest.fixture(scope="module")
def code(driver):
    """Kernels that write down what they are given."""
    return cu.Program(SOURCE).compile()


def typed(code, name):
    """The kernel whose parameter has this type."""
    return code.get_kernel("two", strict_types=(NAMES[name], "unsigned short*", "int"))


def bits_of(kernel, stream, values):
    """What a kernel sees of values, one after the other."""
    out = cu.zeros(len(values), "u2", stream=stream)
    for i, value in enumerate(values):
        cu.launch(stream, ONE, kernel, value, out, i)
    return out.numpy(stream=stream)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_scalars_of_types_that_numpy_lacks(code, stream, name):
    kind = getattr(pytest.importorskip("ml_dtypes"), name)
    value = kind(2.0)
    kernel = code["two" if name == "bfloat16" else "one"]
    out = cu.zeros(1, f"u{np.dtype(kind).itemsize}", stream=stream)
    cu.launch(stream, ONE, kernel, value, out, 0)
    assert out.numpy(stream=stream)[0] == np.array(value).view(out.dtype)
    out.fill(0, stream=stream)
    g = cu.Graph()
    node = g.launch(ONE, kernel, cu.Slot("v", kind(1.0)), out, 0)
    e = g.instantiate()
    e.bind(v=value)
    e.launch(stream)
    assert out.numpy(stream=stream)[0] == np.array(value).view(out.dtype)
    assert node.params.args[0] == np.array(kind(1.0)).view(out.dtype).tobytes()


def numbers():
    """Numbers around all that is special, and some others."""
    random = np.random.default_rng(5)
    plain = [0.0, -0.0, 1.0, 1.5, math.inf, -math.inf, 65504.0, 6e-8, 2.0**-24, 2.0**-25, -1e-30]
    ties = [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 2.0**-14 * (1 - 2.0**-12)]
    return (
        plain + ties + (random.standard_normal(200) * 2.0 ** random.integers(-30, 15, 200)).tolist()
    )


def test_a_float_is_the_nearest_float16(code, stream):
    values = numbers()
    found = bits_of(typed(code, "float16"), stream, values)
    assert found.tolist() == np.array(values).astype("f2").view("u2").tolist()


def test_a_float_is_the_nearest_bfloat16(code, stream):
    kind = pytest.importorskip("ml_dtypes").bfloat16
    values = np.array([*numbers(), 1e-39, 9e-41, 3e38], "f4")
    found = bits_of(typed(code, "bfloat16"), stream, values.tolist())
    assert found.tolist() == values.astype(kind).view("u2").tolist()
    # By way of a float32 it would be a tie, which goes down.
    assert bits_of(typed(code, "bfloat16"), stream, [1 + 2.0**-8 + 2.0**-40, 3, True]).tolist() == [
        0x3F81,
        0x4040,
        0x3F80,
    ]


@pytest.mark.parametrize(("name", "large"), [("float16", 65520.0), ("bfloat16", 3.4e38)])
def test_floats_that_do_not_fit(code, stream, name, large):
    for value in (large, -large, 10**400):
        with pytest.raises(OverflowError, match="parameter 0 of kernel two is a float of 16 bits"):
            bits_of(typed(code, name), stream, [value])
    nan = bits_of(typed(code, name), stream, [math.nan])
    assert np.isnan((nan.astype("u4") << 16).view("f4") if name == "bfloat16" else nan.view("f2"))


def test_the_other_type_of_two_bytes_is_refused(code, stream):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    half = typed(code, "float16")
    assert bits_of(half, stream, [np.float16(1.5), np.uint16(7), b"\1\2"]).tolist() == [
        0x3E00,
        7,
        0x201,
    ]
    with pytest.raises(TypeError, match=r"is a float16 by the kernel's source, got .* bfloat16"):
        bits_of(half, stream, [bfloat16(1.5)])
    with pytest.raises(TypeError, match=r"is a bfloat16 by the kernel's source, got .* float16"):
        bits_of(typed(code, "bfloat16"), stream, [np.float16(1.5)])


def test_a_type_that_is_not_known_takes_no_float(code, stream):
    bare = code.get_kernel("two", strict_types=())
    bare.parameter_types = ()
    for value in (1.5, 1, True):
        with pytest.raises(
            TypeError, match="parameter 0 of kernel two must be a struct of 2 bytes"
        ):
            bits_of(bare, stream, [value])
    with pytest.raises(TypeError, match="must be a struct of 2 bytes, got 1j"):
        bits_of(bare, stream, [1j])


@pytest.mark.parametrize(("name", "dtype"), [("pair", "complex64"), ("wide", "complex128")])
def test_complex_numbers(code, stream, name, dtype):
    out = cu.zeros(1, dtype, stream=stream)
    for value in (1.5 - 2j, complex(-0.0, math.inf), np.dtype(dtype).type(3j)):
        cu.launch(stream, ONE, code[name], value, out.buffer)
        assert out.numpy(stream=stream)[0] == value
    g = cu.Graph()
    node = g.launch(ONE, code[name], 2 + 3j, out.buffer)
    e = g.instantiate()
    e[node.name].update({0: 4 + 5j})
    e.launch(stream)
    assert out.numpy(stream=stream)[0] == 4 + 5j
    for wrong in (1.5, 1):
        with pytest.raises(TypeError, match=f"must be a struct of {out.nbytes} bytes, got 1"):
            cu.launch(stream, ONE, code[name], wrong, out.buffer)


def test_a_complex_number_that_does_not_fit(code, stream):
    out = cu.zeros(1, "c8", stream=stream)
    with pytest.raises(OverflowError, match=r"is a complex number of 64 bits, .*1e.300.* not fit"):
        cu.launch(stream, ONE, code["pair"], complex(0, 1e300), out.buffer)
