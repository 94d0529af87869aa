# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Conversion to and from floats of 8 bits, held to ml_dtypes' bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu

ml_dtypes = pytest.importorskip("ml_dtypes")

FLOAT8 = "float8_e4m3fn", "float8_e5m2"
WIDER = "float16", "bfloat16", "float32", "float64"
BITS = {2: "u2", 4: "u4", 8: "u8", 1: "u1"}


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def bits(a):
    return a.view(BITS[a.itemsize])


def check(a, target, stream):
    with np.errstate(all="ignore"):
        expected = a.astype(dtype(target))
    got = cu.asarray(a, stream=stream).astype(target, stream=stream)
    assert got.dtype_name == target
    got = got.numpy(stream=stream)
    wrong = np.nonzero(bits(got) != bits(expected))[0]
    assert not wrong.size, (a[wrong[:4]], got[wrong[:4]], expected[wrong[:4]])


def numbers(name):
    """Codes of a float of 8 bits, halves between them, and their neighbors of the wider type."""
    every = np.arange(256, dtype="u1").view(dtype(name)).astype("f8")
    finite = np.unique(every[np.isfinite(every)])
    halves = (finite[1:] + finite[:-1]) / 2
    last = finite[-1] * 2 - finite[-2]
    ends = np.array([last, (last + finite[-1]) / 2, 1e5, 3e38, 1e300, np.inf, np.nan, 0.0, 1e-300])
    return np.concatenate([finite, halves, ends, -ends])


@pytest.mark.parametrize("source", FLOAT8)
@pytest.mark.parametrize("target", [*WIDER, *FLOAT8])
def test_all_codes(source, target, stream):
    check(np.arange(256, dtype="u1").view(dtype(source)), target, stream)


@pytest.mark.parametrize("target", FLOAT8)
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_all_codes_of_16_bits(source, target, stream):
    check(np.arange(1 << 16, dtype="u2").view(dtype(source)), target, stream)


@pytest.mark.parametrize("target", FLOAT8)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_wider_floats(source, target, stream):
    with np.errstate(all="ignore"):
        a = numbers(target).astype(source)
    up, down = (np.nextafter(a, np.array(end, source)) for end in (np.inf, -np.inf))
    near = [a * np.array(1 + k * 2.0**-40, source) for k in (-1, 1)]
    chance = np.random.default_rng(3).integers(0, 1 << 8 * a.itemsize, 1 << 16, BITS[a.itemsize])
    check(np.concatenate([a, up, down, *near, chance.view(source)]), target, stream)


@pytest.mark.parametrize("name", FLOAT8)
def test_other_types(name, stream):
    integers = np.array([0, 1, -5, 7, 100, 448, 464, 465, 57344, 61440, 2**24 + 1, -(2**31)], "i4")
    check(integers, name, stream)
    codes = np.arange(256, dtype="u1").view(dtype(name))
    small = codes[np.abs(codes.astype("f4")) < 120]
    check(small, "int8", stream)
    check(codes, "bool", stream)
    t = cu.asarray(codes, stream=stream)
    got = t.astype("complex64", stream=stream).numpy(stream=stream)
    assert np.array_equal(got.real, codes.astype("f4"), equal_nan=True) and not got.imag.any()
    rows = t.buffer.view(name, (16, 16)).T[::2]
    got = rows.astype("float32", stream=stream).numpy(stream=stream)
    assert np.array_equal(got, codes.astype("f4").reshape(16, 16).T[::2], equal_nan=True)


def test_the_others_of_8_bits_are_refused(stream):
    t = cu.zeros(4, "float8_e4m3b11fnuz", stream=stream)
    with pytest.raises(TypeError, match=r"float8_e4m3b11fnuz is not converted.*ml_dtypes"):
        t.astype("float32", stream=stream)
