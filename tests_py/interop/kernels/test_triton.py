# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles, on elements."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from .cases import Case, make, uniform, whole, written, zeros

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
libdevice = pytest.importorskip("triton.language.extra.cuda.libdevice")

N = 300


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def persistent_scale(x, factor, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        value = tl.load(x + i, mask=i < n, other=0.0)
        tl.store(x + i, tl.where(value > 0, value * factor, -value), mask=i < n)


@triton.jit
def integers(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    a, b = tl.load(x + i, mask=inside, other=1), tl.load(y + i, mask=inside, other=1)
    tl.store(out + i, a // b, mask=inside)  # as in C: towards zero
    tl.store(out + n + i, a % b, mask=inside)
    tl.store(out + 2 * n + i, (a << (b & 7)) ^ (a >> 3) | ~b & a, mask=inside)
    tl.store(out + 3 * n + i, tl.minimum(a, b) * tl.maximum(a, b) + tl.abs(a), mask=inside)


def integers_reference(x, y, out, n):
    wide_x, wide_y = x.astype(object), y.astype(object)
    quotient = np.array(
        [abs(a) // abs(b) * (1 if a * b >= 0 else -1) for a, b in zip(wide_x, wide_y, strict=True)]
    )
    out[0] = quotient
    out[1] = wide_x - quotient * wide_y
    out[2] = (x << (y & 7)) ^ (x >> 3) | ~y & x
    out[3] = np.minimum(x, y) * np.maximum(x, y) + abs(x)


@triton.jit
def high_halves(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


@triton.jit
def converted(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def mathematics(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=1.0)
    tl.store(out + 0 * n + i, tl.exp(v), mask=inside)
    tl.store(out + 1 * n + i, tl.exp2(v), mask=inside)
    tl.store(out + 2 * n + i, tl.log(v), mask=inside)
    tl.store(out + 3 * n + i, tl.log2(v), mask=inside)
    tl.store(out + 4 * n + i, tl.sin(v), mask=inside)
    tl.store(out + 5 * n + i, tl.cos(v), mask=inside)
    tl.store(out + 6 * n + i, tl.sqrt(v), mask=inside)
    tl.store(out + 7 * n + i, tl.rsqrt(v), mask=inside)
    tl.store(out + 8 * n + i, tl.erf(v), mask=inside)
    tl.store(out + 9 * n + i, tl.floor(v * 9) + tl.ceil(v * 7), mask=inside)
    tl.store(out + 10 * n + i, tl.fma(v, v, 1 / v), mask=inside)
    tl.store(out + 11 * n + i, tl.sigmoid(v), mask=inside)


def mathematics_reference(x, out, n):
    x = x.astype("f8")
    erf = np.vectorize(math.erf)
    out[:] = (
        np.exp(x),
        np.exp2(x),
        np.log(x),
        np.log2(x),
        np.sin(x),
        np.cos(x),
        np.sqrt(x),
        x**-0.5,
        erf(x),
        np.floor(np.float32(9) * x) + np.ceil(np.float32(7) * x),
        x * x + 1 / x,
        1 / (1 + np.exp(-x)),
    )


@triton.jit
def rounded(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.div_rn(a, b))
    tl.store(out + B + i, tl.sqrt_rn(a))


@triton.jit
def device_library(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=1.0)
    tl.store(out + 0 * n + i, libdevice.tanh(v), mask=inside)
    tl.store(out + 1 * n + i, libdevice.pow(v, v + 1), mask=inside)
    tl.store(out + 2 * n + i, libdevice.atan2(v, v + 1), mask=inside)
    tl.store(out + 3 * n + i, libdevice.log1p(v), mask=inside)
    tl.store(out + 4 * n + i, libdevice.expm1(v), mask=inside)
    tl.store(out + 5 * n + i, libdevice.asin(v), mask=inside)
    tl.store(out + 6 * n + i, libdevice.lgamma(v + 1), mask=inside)
    tl.store(out + 7 * n + i, libdevice.rint(v * 9), mask=inside)


def device_library_reference(x, out, n):
    y = x.astype("f8")
    lgamma = np.vectorize(math.lgamma)
    out[:] = (
        np.tanh(y),
        y ** (y + 1),
        np.arctan2(y, y + 1),
        np.log1p(y),
        np.expm1(y),
        np.arcsin(y),
        lgamma(y + 1),
        np.rint(x * x.dtype.type(9)),
    )


@triton.jit
def assembly(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.inline_asm_elementwise(
        "lop3.b32 $0, $1, 255, 0xf0f0f0f0, 0x6a;", "=r,r", [tl.load(x + i)], tl.int32, True, 1
    )
    tl.store(out + i, v)


def assembly_reference(x, out):
    out[:] = (np.uint32(0xF0F0F0F0) ^ (x.view("u4") & np.uint32(255))).view("i4")


@triton.jit
def shapes(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    even, odd = tl.split(tl.reshape(tl.load(x + tl.arange(0, 2 * B)), (B, 2)))
    tl.store(out + tl.arange(0, 2 * B), tl.interleave(odd, even))
    tl.store(out + 2 * B + i, tl.flip(even, 0))
    grid = tl.trans(tl.reshape(odd, (8, B // 8)))
    tl.store(out + 3 * B + i, tl.reshape(grid, (B,)))


def shapes_reference(x, out):
    even, odd = x[::2], x[1::2]
    mixed = np.stack([odd, even], 1).reshape(-1)
    out[:] = np.concatenate([mixed, even[::-1], odd.reshape(8, -1).T.reshape(-1)])


@triton.jit
def gathered(x, index, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


FLOATS = {"f2": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16), "f4": np.dtype("f4")}
FLOATS |= {"f8": np.dtype("f8"), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
FLOATS["e4m3"] = np.dtype(ml_dtypes.float8_e4m3fn)

CASES = [
    *(
        Case(
            f"add {t}",
            add,
            make(whole(0, 50, t), whole(0, 50, t), zeros(t), N),
            written(np.add),
            grid=5,
            options={"B": 64, "num_warps": warps},
        )
        for t, warps in (
            ("i1", 1),
            ("i4", 2),
            ("i8", 4),
            ("f2", 4),
            ("f4", 1),
            ("f4", 8),
            ("f8", 2),
        )
    ),
    Case(
        "add of aligned f4",
        add,
        make(uniform(0, 1, "f4", 1024), uniform(0, 1, "f4", 1024), zeros("f4", 1024), 1024),
        written(np.add),
        options={"B": 1024},
    ),
    Case(
        "persistent scale",
        persistent_scale,
        make(uniform(-1, 1, "f4"), 2.5, N),
        lambda x, factor, n: np.copyto(x, np.where(x > 0, x * np.float32(factor), -x)),
        grid=2,
        options={"B": 32, "num_warps": 1},  # more warps would read what one of them writes
    ),
    *(
        Case(
            f"integers {t}",
            integers,
            make(whole(-99, 99, t), whole(1, 20, t), zeros(t, 4, N), N),
            integers_reference,
            options={"B": 512},
        )
        for t in ("i2", "i4", "i8")
    ),
    *(
        Case(
            f"high halves {t}",
            high_halves,
            make(whole(0, 2**31, t, 256), whole(0, 2**31, t, 256), zeros(t, 256)),
            written(lambda x, y: (x.astype(object) * y.astype(object)) >> (8 * x.dtype.itemsize)),
            options={"B": 256},
        )
        for t in ("u4", "u8")
    ),
    *(
        Case(
            f"{a} to {b}",
            converted,
            make(uniform(-100, 100, FLOATS.get(a, a)), zeros(FLOATS.get(b, b)), N),
            written(lambda x, b=b: x.astype("f4").astype(FLOATS.get(b, b))),
            grid=5,
            options={"B": 64, "first": first},
        )
        for a, b, first in (
            ("f4", "f2", 75),
            ("f2", "f4", 75),
            ("f4", "bf16", 75),
            ("bf16", "f4", 75),
            ("f2", "bf16", 80),
            ("f4", "i4", 75),
            ("i4", "f4", 75),
            ("i1", "f2", 75),
            ("e5m2", "f4", 75),
            ("f4", "e5m2", 80),
            ("f2", "e5m2", 80),
            ("f4", "e4m3", 89),
            ("e4m3", "f4", 89),
            ("f2", "e4m3", 89),
            ("bf16", "e4m3", 89),
        )
    ),
    *(
        Case(
            f"mathematics {t}",
            mathematics,
            make(uniform(0.05, 0.95, t), zeros(t, 12, N), N),
            mathematics_reference,
            options={"B": 512},
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 2e-6), ("f8", 1e-13))
    ),
    Case(
        "rounded",
        rounded,
        make(uniform(0, 9, "f4", 256), uniform(1, 2, "f4", 256), zeros("f4", 2, 256)),
        written(lambda x, y: (x / y, np.sqrt(x))),
        options={"B": 256},
    ),
    *(
        Case(
            f"device library {t}",
            device_library,
            make(uniform(0.05, 0.95, t), zeros(t, 8, N), N),
            device_library_reference,
            options={"B": 512},
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 2e-6), ("f8", 1e-14))
    ),
    Case(
        "assembly",
        assembly,
        make(whole(-(2**31), 2**31, "i4", 128), zeros("i4", 128)),
        assembly_reference,
        options={"B": 128},
    ),
    *(
        Case(
            f"shapes {t}",
            shapes,
            make(whole(0, 99, t, 256), zeros(t, 4 * 128)),
            shapes_reference,
            options={"B": 128},
        )
        for t in ("i4", "f2")
    ),
    Case(
        "gathered",
        gathered,
        make(uniform(0, 1, "f4", 128), whole(0, 128, "i4", 128), zeros("f4", 128)),
        written(lambda x, index: x[index]),
        options={"B": 128},
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_triton(run_triton, case, arch):
    if arch < case.options.get("first", 0):
        pytest.skip("Triton does not compile this for so early an architecture")
    case.check(lambda args: run_triton(case, args, arch))
