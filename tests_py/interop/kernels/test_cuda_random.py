# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA C++ with the generators of cuRAND."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, zeros

RANDOM = r"""
#include <curand_kernel.h>
extern "C" __global__ void xorwow(unsigned long long seed, unsigned *out, int n) {
    curandStateXORWOW_t state;
    curand_init(seed + threadIdx.x, 0, 0, &state);
    for (int k = 0; k < n; k++)
        out[threadIdx.x * n + k] = curand(&state);
}
extern "C" __global__ void philox(unsigned long long seed, uint4 *out, float2 *normal) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, threadIdx.x, 0, &state);
    out[threadIdx.x] = curand4(&state);
    curand_init(seed, threadIdx.x, 0, &state);
    normal[threadIdx.x] = curand_normal2(&state);
}
extern "C" __global__ void moments(unsigned long long seed, double *sums) {
    curandStateMRG32k3a_t state;
    curand_init(seed, threadIdx.x, 0, &state);
    double x = 0, square = 0;
    for (int k = 0; k < 100; k++) {
        double v = curand_uniform_double(&state);
        x += v;
        square += v * v;
    }
    sums[2 * threadIdx.x] = x;
    sums[2 * threadIdx.x + 1] = square;
}
"""
MASK = 0xFFFFFFFF


def xorwow_reference(seed, out, n):
    """Marsaglia's generator, with cuRAND's way to make a state of a seed."""
    for t in range(out.shape[0]):
        s0, s1 = ((seed + t) & MASK) ^ 0xAAD26B49, ((seed + t) >> 32) ^ 0xF7DCEFDD
        t0, t1 = 1099087573 * s0 & MASK, 2591861531 * s1 & MASK
        d = 6615241 + t1 + t0
        v = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
        v = [x & MASK for x in v]
        for k in range(n):
            mixed = v[0] ^ v[0] >> 2
            v = [*v[1:], (v[4] ^ v[4] << 4 ^ mixed ^ mixed << 1) & MASK]
            d += 362437
            out[t, k] = v[4] + d & MASK


def philox_reference(seed, out, normal):
    for t in range(out.shape[0]):
        c, key = [0, 0, t, 0], [seed & MASK, seed >> 32]
        for _ in range(10):
            a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [b >> 32 ^ c[1] ^ key[0], b & MASK, a >> 32 ^ c[3] ^ key[1], a & MASK]
            key = [key[0] + 0x9E3779B9 & MASK, key[1] + 0xBB67AE85 & MASK]
        out[t] = c
        u, v = c[0] * 2.0**-32 + 2.0**-33, (c[1] * 2.0**-32 + 2.0**-33) * 2 * np.pi
        radius = np.sqrt(-2 * np.log(u))
        normal[t] = radius * np.sin(v), radius * np.cos(v)


CASES = [
    Case(
        "XORWOW",
        (RANDOM, "xorwow"),
        make(2**33 + 5, zeros("u4", 32, 5), 5),
        xorwow_reference,
        block=32,
    ),
    Case(
        "Philox",
        (RANDOM, "philox"),
        make(2**33 + 5, zeros("u4", 32, 4), zeros("f4", 32, 2)),
        philox_reference,
        block=32,
        rtol=2e-6,
        atol=1e-6,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cuda(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))


@pytest.mark.parametrize("arch", [75], indirect=True)
def test_moments_of_mrg32k3a(nvrtc, launcher, arch):
    sums = np.zeros((64, 2))
    launcher(nvrtc(RANDOM, arch)["moments"], 1, 64, [7, sums])
    mean, square = sums.sum(0) / 6400
    assert abs(mean - 1 / 2) < 0.02
    assert abs(square - 1 / 3) < 0.02
    assert len(np.unique(sums[:, 0])) == 64
