# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA C++ with libcu++: atomics, barriers, pipelines, the standard library."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

N = 192

LIBCUXX = r"""
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/span>
#include <cuda/std/tuple>

extern "C" __global__ void references(const int *x, int *i, float *f, double *d,
                                      unsigned long long *u) {
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    cuda::atomic_ref<int, cuda::thread_scope_device> ai(i[0]), most(i[1]), last(i[2]);
    ai.fetch_add(v, cuda::std::memory_order_relaxed);
    most.fetch_max(v);
    int seen = last.load(cuda::std::memory_order_acquire);
    while (!last.compare_exchange_weak(seen, seen ^ (v * 3), cuda::std::memory_order_acq_rel)) {}
    cuda::atomic_ref<float, cuda::thread_scope_system>(f[0]).fetch_add(v);
    cuda::atomic_ref<double, cuda::thread_scope_block> ad(d[0]);
    if (blockIdx.x == 0)
        ad.fetch_sub(v);
    cuda::atomic_ref<unsigned long long>(u[0]).fetch_or(1ull << v);
}
extern "C" __global__ void handed(const int *x, int *out, int n) {
    // The first warp fills a buffer and the second adds it up, again and again.
    __shared__ int buffer[32];
    __shared__ cuda::barrier<cuda::thread_scope_block> filled, emptied;
    if (threadIdx.x == 0) {
        init(&filled, 64);
        init(&emptied, 64);
    }
    __syncthreads();
    int lane = threadIdx.x % 32, total = 0;
    for (int k = 0; k < n; k += 32) {
        if (threadIdx.x < 32) {
            buffer[lane] = x[k + lane];
            (void)filled.arrive();
            emptied.arrive_and_wait();
        } else {
            filled.arrive_and_wait();
            total += buffer[31 - lane];
            (void)emptied.arrive();
        }
    }
    if (threadIdx.x >= 32)
        out[lane] = total;
}
extern "C" __global__ void pipelined(const float4 *x, float4 *out, int n) {
    constexpr int STAGES = 2;
    __shared__ float4 buffer[STAGES][64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x, next = 0;
    for (int k = 0; k < n; k++) {
        for (; next < n && next < k + STAGES; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&buffer[next % STAGES][t], &x[next * 64 + t],
                               cuda::aligned_size_t<16>(sizeof(float4)), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        float4 v = buffer[k % STAGES][t];
        out[k * 64 + t] = make_float4(v.w, v.z, v.y, v.x);
        pipe.consumer_release();
    }
}
extern "C" __global__ void limited(int *inside, int *most) {
    __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 3> seats;
    __shared__ int there, peak;
    if (threadIdx.x == 0) {
        new (&seats) cuda::counting_semaphore<cuda::thread_scope_block, 3>(3);
        there = peak = 0;
    }
    __syncthreads();
    seats.acquire();
    atomicMax(&peak, atomicAdd(&there, 1) + 1);
    atomicAdd(inside, 1);
    atomicSub(&there, 1);
    seats.release();
    __syncthreads();
    if (threadIdx.x == 0)
        *most = peak <= 3;
}
extern "C" __global__ void standard(const double *x, double *out) {
    using cuda::std::complex;
    int i = threadIdx.x, n = blockDim.x;
    complex<double> z(x[i], x[n + i]);
    z = cuda::std::exp(z) / complex<double>(1, 2) + cuda::std::conj(z);
    cuda::std::array<double, 2> parts{z.real(), z.imag()};
    cuda::std::span<double, 2> view(parts);
    auto [a, b] = cuda::std::make_tuple(view[0], view[1]);
    out[i] = a;
    out[n + i] = b;
    out[2 * n + i] = cuda::std::popcount((unsigned)i) + cuda::std::countl_zero((unsigned)i + 1);
}
"""


def references_reference(x, i, f, d, u):
    i[:] = x.sum(), x.max(), np.bitwise_xor.reduce(x * 3)
    f[0], d[0] = x.sum(), -x[:64].sum()
    u[0] = np.bitwise_or.reduce(np.uint64(1) << x.astype("u8"))


def handed_reference(x, out, n):
    out[:] = x.reshape(-1, 32).sum(0)[::-1]


def pipelined_reference(x, out, n):
    out[:] = x.reshape(-1, 4)[:, ::-1].reshape(-1)


def limited_reference(inside, most):
    inside[0], most[0] = 96, 1


def standard_reference(x, out):
    z = x[0] + 1j * x[1]
    z = np.exp(z) / (1 + 2j) + z.conj()
    bits = [i.bit_count() + 32 - (i + 1).bit_length() for i in range(64)]
    out[:] = z.real, z.imag, bits


CASES = [
    Case(
        "atomic references",
        (LIBCUXX, "references"),
        make(whole(0, 40, "i4", N), zeros("i4", 3), zeros("f4", 1), zeros("f8", 1), zeros("u8", 1)),
        references_reference,
        grid=3,
    ),
    Case(
        "handed over barriers",
        (LIBCUXX, "handed"),
        make(whole(0, 40, "i4", 320), zeros("i4", 32), 320),
        handed_reference,
    ),
    Case(
        "pipelined",
        (LIBCUXX, "pipelined"),
        make(uniform(0, 1, "f4", 5 * 256), zeros("f4", 5 * 256), 5),
        pipelined_reference,
    ),
    Case(
        "semaphore",
        (LIBCUXX, "limited"),
        make(zeros("i4", 1), zeros("i4", 1)),
        limited_reference,
        block=96,
    ),
    Case(
        "standard",
        (LIBCUXX, "standard"),
        make(uniform(0, 1, "f8", 2, 64), zeros("f8", 3, 64)),
        standard_reference,
        rtol=1e-14,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cuda(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))
