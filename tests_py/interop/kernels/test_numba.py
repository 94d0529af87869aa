# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Numba compiles: elements and mathematics."""

from __future__ import annotations

import cmath
import math
import operator

import numpy as np
import pytest

from .cases import Case, assign

cuda = pytest.importorskip("numba.cuda")
numba = pytest.importorskip("numba")

N = 200


# --- elements ------------------------------------------------------------------------------------


def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def saxpy(a, x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] += a * x[i]


def transpose(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = x[i, j]


def integers(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = x[i] // y[i]
        out[1, i] = x[i] % y[i]
        out[2, i] = x[i] >> (y[i] & 7)
        out[3, i] = x[i] * y[i] ^ ~x[i]


def bits(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = cuda.popc(x[i])
        out[1, i] = cuda.clz(x[i])
        out[2, i] = cuda.brev(x[i])
        out[3, i] = cuda.ffs(x[i])


def clamp(x, low, high):
    return min(max(x, low), high)


def half(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * y[i] + np.float16(1)


def complex_numbers(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = x[i] * y[i] + x[i].conjugate()
        out[1, i] = x[i] / y[i]
        out[2, i] = cmath.exp(x[i])
        out[3, i] = abs(x[i]) * 1j


def complex_reference(x, y, out):
    out[0], out[1], out[2], out[3] = x * y + x.conj(), x / y, np.exp(x), abs(x) * 1j


RECORD = np.dtype([("id", "i4"), ("mass", "f8"), ("v", "f4", (3,)), ("flag", "u1")], align=True)


def records(items, scale):
    i = cuda.grid(1)
    if i < items.size:
        items[i].mass *= scale
        items[i]["id"] += 1
        for k in range(3):
            items[i].v[k] -= np.float32(0.5) * items[i].flag


def records_reference(items, scale):
    items["mass"] *= scale
    items["id"] += 1
    items["v"] -= np.float32(0.5) * items["flag"][:, None]


def make_records(rng):
    items = np.zeros(N, RECORD)
    items["id"], items["mass"] = rng.integers(0, 99, N), rng.random(N)
    items["v"], items["flag"] = rng.random((N, 3)), rng.integers(0, 2, N)
    return items, 2.5


def mandelbrot(x, y, out):
    i, j = cuda.grid(2)
    if i < x.size and j < y.size:
        c = complex(x[i], y[j])
        z = 0j
        n = 0
        while n < 50 and z.real * z.real + z.imag * z.imag < 4:
            z = z * z + c
            n += 1
        out[i, j] = n


def mandelbrot_reference(x, y, out):
    c = x[:, None] + 1j * y[None]
    z = np.zeros_like(c)
    out[:] = 0
    for _ in range(50):
        inside = z.real * z.real + z.imag * z.imag < 4
        out[inside] += 1
        z = np.where(inside, z * z + c, z)


# --- mathematics: libdevice ----------------------------------------------------------------------

UNARY = [
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "erf",
    "erfc",
    "gamma",
    "lgamma",
    "floor",
    "ceil",
]


def unary(function):
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = function(x[i])

    return kernel


def unary_reference(name):
    function = np.vectorize(getattr(math, name), otypes="d")

    def reference(x, out):
        out[:] = function(x.astype("f8"))

    return reference


def unary_args(name, dtype):
    low, high = {"acosh": (1, 9), "gamma": (0.5, 8), "lgamma": (0.5, 8)}.get(name, (0.05, 0.95))

    def args(rng):
        return rng.uniform(low, high, N).astype(dtype), np.empty(N, dtype)

    return args


def binary(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = math.pow(x[i], y[i])
        out[1, i] = math.atan2(x[i], y[i])
        out[2, i] = math.hypot(x[i], y[i])
        out[3, i] = math.fmod(x[i] * 9, y[i])
        out[4, i] = math.copysign(x[i], -y[i])
        out[5, i] = cuda.fma(x[i], y[i], x[i])


def binary_reference(x, y, out):
    out[0], out[1], out[2] = x**y, np.arctan2(x, y), np.hypot(x, y)
    out[3], out[4], out[5] = np.fmod(x * 9, y), np.copysign(x, -y), x * y + x


def large_angles(x, out):
    i = cuda.grid(1)
    if i < x.size:  # the argument reduction of Payne and Hanek
        out[i] = math.sin(x[i]) + math.cos(x[i])


def black_scholes(price, strike, years, call):
    i = cuda.grid(1)
    if i < price.size:
        root = 0.3 * math.sqrt(years[i])
        d1 = (math.log(price[i] / strike[i]) + (0.02 + 0.045) * years[i]) / root
        a = 0.5 * math.erfc(-d1 / math.sqrt(2.0))
        b = 0.5 * math.erfc(-(d1 - root) / math.sqrt(2.0))
        call[i] = price[i] * a - strike[i] * math.exp(-0.02 * years[i]) * b


def black_scholes_reference(price, strike, years, call):
    root = 0.3 * np.sqrt(years)
    d1 = (np.log(price / strike) + (0.02 + 0.045) * years) / root
    erfc = np.vectorize(math.erfc)
    a, b = 0.5 * erfc(-d1 / 2**0.5), 0.5 * erfc(-(d1 - root) / 2**0.5)
    call[:] = price * a - strike * np.exp(-0.02 * years) * b


def numbers(dtype, count, low=0, high=10, out=None):
    """Arguments: integers or floats of `count` arrays, and an output."""

    def args(rng):
        if np.dtype(dtype).kind in "iu":
            arrays = [rng.integers(low, high, N).astype(dtype) for _ in range(count)]
        else:
            arrays = [rng.uniform(low, high, N).astype(dtype) for _ in range(count)]
        return (*arrays, np.zeros(*(out or (N, dtype))))

    return args


def rows(*functions):
    """Reference: row by row."""

    def reference(*args):
        for row, function in zip(args[-1], functions, strict=True):
            row[...] = function(*args[:-1])

    return reference


def popcount(x):
    return [int(v).bit_count() for v in x]


def width(x):
    return 8 * x.dtype.itemsize


CASES = [
    *(
        Case(f"add {t}", add, numbers(t, 2), assign(operator.add), grid=4)
        for t in ("i1", "u2", "i4", "u8", "f4", "f8")
    ),
    Case(
        "saxpy f4", saxpy, lambda rng: (2.0, *numbers("f4", 1)(rng)), assign(lambda a, x: a * x), 2
    ),
    Case(
        "transpose of every other column",
        transpose,
        lambda rng: (rng.random((17, 40))[:, ::2], np.zeros((20, 17))),
        assign(np.transpose),
        grid=(3, 3),
        block=(8, 8),
    ),
    Case(
        "transpose of Fortran's order",
        transpose,
        lambda rng: (np.asfortranarray(rng.random((17, 40))), np.zeros((40, 17))),
        assign(np.transpose),
        grid=(3, 5),
        block=(8, 8),
    ),
    *(
        Case(
            f"integers {t}",
            integers,
            lambda rng, t=t, low=low: (
                rng.integers(low, 10**4, N).astype(t),
                rng.choice(np.array([3, 7, 1, 12] + [-5] * (low < 0)), N).astype(t),
                np.zeros((4, N), t),
            ),
            rows(
                lambda x, y: x // y,
                lambda x, y: x % y,
                lambda x, y: x >> (y & 7),
                lambda x, y: x * y ^ ~x,
            ),
            grid=4,
        )
        for t, low in (("i2", -(10**4)), ("i4", -(10**4)), ("u4", 0), ("i8", -(10**4)), ("u8", 0))
    ),
    *(
        Case(
            f"bits {t}",
            bits,
            numbers(t, 1, 1, 2**31, out=((4, N), t)),
            rows(
                popcount,
                lambda x: [width(x) - int(v).bit_length() for v in x],
                lambda x: [int(f"{v:0{width(x)}b}"[::-1], 2) for v in x],
                lambda x: [(int(v) & -int(v)).bit_length() for v in x],
            ),
            grid=4,
        )
        for t in ("u4", "u8")
    ),
    *(
        Case(
            f"complex numbers {t}",
            complex_numbers,
            lambda rng, t=t: (
                (rng.random(N) + 1j * rng.random(N)).astype(t),
                (rng.random(N) + 1 + 1j * rng.random(N)).astype(t),
                np.zeros((4, N), t),
            ),
            complex_reference,
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("c8", 1e-6), ("c16", 1e-14))
    ),
    Case("records", records, make_records, records_reference, 4),
    Case(
        "mandelbrot",
        mandelbrot,
        lambda rng: (np.linspace(-2, 1, 24), np.linspace(-1, 1, 16), np.zeros((24, 16), "i4")),
        mandelbrot_reference,
        grid=(3, 2),
        block=(8, 8),
    ),
    *(
        Case(
            f"{name} {t}",
            unary(getattr(math, name)),
            unary_args(name, t),
            unary_reference(name),
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 2e-6), ("f8", 1e-14))
        for name in UNARY
    ),
    *(
        Case(
            f"fast {name} f4",
            unary(getattr(math, name)),
            unary_args(name, "f4"),
            unary_reference(name),
            grid=4,
            rtol=1e-5,
            atol=1e-5,
            options={"fastmath": True},
        )
        for name in ("sin", "cos", "tan", "exp", "log", "log2", "log10", "sqrt", "tanh")
    ),
    *(
        Case(
            f"binary {t}",
            binary,
            numbers(t, 2, 1, 3, out=((6, N), t)),
            binary_reference,
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 3e-6), ("f8", 1e-14))
    ),
    *(
        Case(
            f"large angles {t}",
            large_angles,
            numbers(t, 1, 1e5, high),
            assign(lambda x: np.sin(x.astype("f8")) + np.cos(x.astype("f8"))),
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol, high in (("f4", 1e-6, 1e30), ("f8", 1e-14, 1e200))
    ),
    Case(
        "Black and Scholes",
        black_scholes,
        lambda rng: (*(rng.uniform(1, 2, N) for _ in range(3)), np.zeros(N)),
        black_scholes_reference,
        grid=4,
        rtol=1e-12,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numba(run_numba, case, arch):
    case.check(lambda args: run_numba(case, args, arch))
