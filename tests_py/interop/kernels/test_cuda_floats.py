# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA C++ with floats of 16 and of 8 bits."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

N = 192
BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)

SMALL = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

template <typename T> __device__ void arithmetic(const T *x, const T *y, T *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    T a = x[i], b = y[i];
    out[i] = a + b;
    out[n + i] = a - b;
    out[2 * n + i] = a * b;
    out[3 * n + i] = a / b;
    out[4 * n + i] = __hfma(a, b, a);
    out[5 * n + i] = __hmax(a, b);
    out[6 * n + i] = a > b ? -a : __habs(b);
    out[7 * n + i] = hsqrt(a);
    out[8 * n + i] = hfloor(b * T(5));
}
extern "C" __global__ void f16(const half *x, const half *y, half *out) { arithmetic(x, y, out); }
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bf16(const __nv_bfloat16 *x, const __nv_bfloat16 *y,
                                __nv_bfloat16 *out) {
    arithmetic(x, y, out);
}
#endif
extern "C" __global__ void transcendental(const half *x, half *out) {
    int i = threadIdx.x, n = blockDim.x;
    out[i] = hexp(x[i]);
    out[n + i] = hlog(x[i]);
    out[2 * n + i] = hsin(x[i]);
    out[3 * n + i] = hcos(x[i]);
    out[4 * n + i] = hrsqrt(x[i]);
    out[5 * n + i] = hexp2(x[i]);
    out[6 * n + i] = hrcp(x[i]);
    out[7 * n + i] = htanh(x[i]);
}
extern "C" __global__ void pairs(const half2 *x, const half2 *y, half2 *out, unsigned *flags) {
    int i = threadIdx.x, n = blockDim.x;
    out[i] = __hadd2(x[i], y[i]);
    out[n + i] = __hfma2(x[i], y[i], __float2half2_rn(0.5f));
    out[2 * n + i] = __hmin2(x[i], __lowhigh2highlow(y[i]));
    flags[i] = __hgt2_mask(x[i], y[i]);
}
extern "C" __global__ void converted(const float *x, half *h, __nv_bfloat16 *b, int *i8, short *s) {
    int i = threadIdx.x, n = blockDim.x;
    h[i] = __float2half_rn(x[i]);
    h[n + i] = __float2half_rz(x[i]);
    h[2 * n + i] = __float2half_ru(x[i]);
    b[i] = __float2bfloat16_rn(x[i]);
    b[n + i] = __float2bfloat16_rz(x[i]);
    i8[i] = __half2int_rn(__float2half(x[i]));
    s[i] = __half_as_short(__float2half(x[i]));
}
extern "C" __global__ void eight(const float *x, __nv_fp8_e4m3 *a, __nv_fp8_e5m2 *b, float *back) {
    int i = threadIdx.x, n = blockDim.x;
    a[i] = __nv_fp8_e4m3(x[i]);
    b[i] = __nv_fp8_e5m2(x[i]);
    back[i] = float(a[i]);
    back[n + i] = float(b[i]);
}
extern "C" __global__ void sums(const half *x, half *h, const __nv_bfloat16 *y, __nv_bfloat16 *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(h + i % 4, x[i]);
    atomicAdd(b + i % 4, y[i]);
    atomicAdd(reinterpret_cast<half2 *>(h) + 2, __halves2half2(x[i], x[i]));
}
"""


def arithmetic_reference(x, y, out):
    kind = x.dtype
    a, b = x.astype("f4"), y.astype("f4")
    rows = [a + b, a - b, a * b, a / b, a * b + a, np.maximum(a, b), np.where(a > b, -a, abs(b))]
    rows += [np.sqrt(a), np.floor((b * 5).astype(kind).astype("f4"))]
    out[:] = [r.astype(kind) for r in rows]


def transcendental_reference(x, out):
    a = x.astype("f8")
    out[:] = np.exp(a), np.log(a), np.sin(a), np.cos(a), a**-0.5, np.exp2(a), 1 / a, np.tanh(a)


def pairs_reference(x, y, out, flags):
    a, b = x.astype("f4"), y.astype("f4")
    swapped = b.reshape(-1, 2)[:, ::-1].reshape(-1)
    out[:] = (a + b).astype("f2"), (a * b + 0.5).astype("f2"), np.minimum(a, swapped).astype("f2")
    flags[:] = np.where(a > b, 0xFFFF, 0).astype("u2").view("u4")


def truncated(x, bits):
    return (x.view("u4") & np.uint32(2**32 - 2**bits)).view("f4")


def converted_reference(x, h, b, i8, s):
    down = truncated(x, 13).astype("f2")
    up = np.where((down.astype("f4") < x), np.nextafter(down, np.float16(np.inf)), down)
    h[:] = x.astype("f2"), down, up
    b[:] = x.astype(BF16), truncated(x, 16).astype(BF16)
    i8[:] = np.rint(x.astype("f2"))
    s[:] = x.astype("f2").view("i2")


def eight_reference(x, a, b, back):
    a[:], b[:] = x.astype(E4M3), x.astype(E5M2)
    back[:] = a.astype("f4"), b.astype("f4")


def sums_reference(x, h, y, b):
    for k in range(4):
        h[k], b[k] = x[k::4].sum(), y.astype("f4")[k::4].sum()
    h[4:] = x.sum()


CASES = [
    *(
        Case(
            name,
            (SMALL, name),
            make(uniform(0.1, 3, t, N), uniform(0.1, 3, t, N), zeros(t, 9, N)),
            arithmetic_reference,
            grid=3,
            rtol=rtol,
            atol=rtol / 100,
            options={"first": first},
        )
        for name, t, rtol, first in (("f16", "f2", 1e-3, 75), ("bf16", BF16, 8e-3, 80))
    ),
    Case(
        "transcendental",
        (SMALL, "transcendental"),
        make(uniform(0.1, 3, "f2", 64), zeros("f2", 8, 64)),
        transcendental_reference,
        rtol=2e-3,
        atol=1e-3,
    ),
    Case(
        "pairs",
        (SMALL, "pairs"),
        make(
            uniform(-2, 2, "f2", 128),
            uniform(-2, 2, "f2", 128),
            zeros("f2", 3, 128),
            zeros("u4", 64),
        ),
        pairs_reference,
    ),
    Case(
        "converted",
        (SMALL, "converted"),
        make(
            uniform(0.5, 999, "f4", 64),
            zeros("f2", 3, 64),
            zeros(BF16, 2, 64),
            zeros("i4", 64),
            zeros("i2", 64),
        ),
        converted_reference,
    ),
    Case(
        "eight bits",
        (SMALL, "eight"),
        make(uniform(-400, 400, "f4", 64), zeros(E4M3, 64), zeros(E5M2, 64), zeros("f4", 2, 64)),
        eight_reference,
    ),
    Case(
        "sums of small floats",
        (SMALL, "sums"),
        make(whole(0, 4, "f2", N), zeros("f2", 6), whole(0, 2, BF16, N), zeros(BF16, 4)),
        sums_reference,
        grid=3,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cuda(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))
