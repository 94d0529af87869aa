# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels with CUDA's own headers: half precision, cooperative groups, libcu++, wmma, cuRAND."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

N = 192
BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)

# A case's kernel is the source and the kernel's name: each source is compiled once an architecture.

# --- small floats --------------------------------------------------------------------------------

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


# --- cooperative groups --------------------------------------------------------------------------

GROUPS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

template <int SIZE> __device__ void tile(const int *x, int *out, int *next) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<SIZE>(block);
    int i = cg::this_grid().thread_rank();
    *next = cg::reduce(tile, x[i], cg::plus<int>());
}
extern "C" __global__ void tiles(const int *x, int *out) {
    int i = cg::this_grid().thread_rank(), n = cg::this_grid().size();
    tile<4>(x, out, out + i);
    tile<16>(x, out, out + n + i);
    tile<32>(x, out, out + 2 * n + i);
    auto eight = cg::tiled_partition<8>(cg::this_thread_block());
    out[3 * n + i] = cg::reduce(eight, x[i], cg::greater<int>());
    out[4 * n + i] = cg::inclusive_scan(eight, x[i]);
    out[5 * n + i] = cg::exclusive_scan(eight, x[i], cg::plus<int>());
    out[6 * n + i] = eight.shfl_xor(x[i], 3) + eight.shfl(x[i], 0) + eight.meta_group_rank();
    out[7 * n + i] = eight.any(x[i] == 5) + 2 * eight.all(x[i] < 9) + eight.ballot(x[i] & 1) * 4;
}
extern "C" __global__ void coalesced(const int *x, int *out, int *total) {
    int i = cg::this_grid().thread_rank();
    if (x[i] % 3 == 0) {
        auto together = cg::coalesced_threads();
        out[i] = together.size() * 100 + together.thread_rank();
        if (together.thread_rank() == 0)
            atomicAdd(total, together.size());
    } else {
        out[i] = -1;
    }
}
extern "C" __global__ void labelled(const int *x, int *out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = cg::this_grid().thread_rank(), n = cg::this_grid().size();
    auto same = cg::labeled_partition(warp, x[i]);
    out[i] = cg::reduce(same, 1, cg::plus<int>());
    auto half = cg::binary_partition(warp, x[i] > 4);
    out[n + i] = half.size();
}
extern "C" __global__ void staged(const float *x, float *out, int n) {
    __shared__ alignas(16) float buffer[128];
    auto block = cg::this_thread_block();
    for (int at = 0; at < n; at += 128) {
        cg::memcpy_async(block, buffer, x + at, sizeof(float) * 128);
        cg::wait(block);
        for (int k = block.thread_rank(); k < 128; k += block.size())
            out[at + k] = buffer[127 - k];
        block.sync();
    }
}
extern "C" __global__ void relaxed(float *x, float *y, int n, int steps) {
    auto grid = cg::this_grid();
    for (int s = 0; s < steps; s++) {
        for (int i = grid.thread_rank() + 1; i < n - 1; i += grid.size())
            y[i] = 0.5f * (x[i - 1] + x[i + 1]);
        grid.sync();
        float *swap = x;
        x = y;
        y = swap;
    }
}
"""


def tiles_reference(x, out):
    for row, size in enumerate((4, 16, 32)):
        out[row] = np.repeat(x.reshape(-1, size).sum(1), size)
    eight = x.reshape(-1, 8)
    out[3] = np.repeat(eight.max(1), 8)
    out[4] = eight.cumsum(1).reshape(-1)
    out[5] = out[4] - x
    rank = np.repeat(np.arange(8), 8)  # 64 threads are eight tiles
    crossed = eight[:, np.arange(8) ^ 3] + eight[:, :1]
    out[6] = crossed.reshape(-1) + np.tile(rank, x.size // 64)
    ballot = ((eight & 1) << np.arange(8)).sum(1)
    out[7] = np.repeat((eight == 5).any(1) + 2 * (eight < 9).all(1) + 4 * ballot, 8)


def coalesced_reference(x, out, total):
    for warp in range(0, x.size, 32):
        third = x[warp : warp + 32] % 3 == 0
        rank = np.cumsum(third) - 1
        out[warp : warp + 32] = np.where(third, third.sum() * 100 + rank, -1)
    total += (x % 3 == 0).sum()


def labelled_reference(x, out):
    for warp in range(0, x.size, 32):
        part = x[warp : warp + 32]
        out[0, warp : warp + 32] = (part[:, None] == part).sum(1)
        high = part > 4
        out[1, warp : warp + 32] = np.where(high, high.sum(), (~high).sum())


def staged_reference(x, out, n):
    out[:] = x.reshape(-1, 128)[:, ::-1].reshape(-1)


def relaxed_reference(x, y, n, steps):
    for _ in range(steps):
        y[1:-1] = np.float32(0.5) * (x[:-2] + x[2:])
        x, y = y, x


# --- libcu++ -------------------------------------------------------------------------------------

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


# --- matrices ------------------------------------------------------------------------------------

WMMA = r"""
#include <mma.h>
using namespace nvcuda;

template <typename A, typename C, int M, int N, int K, typename LA, typename LB>
__device__ void product(const A *a, const A *b, C *c, int lda, int ldb) {
    wmma::fragment<wmma::matrix_a, M, N, K, A, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, A, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::fill_fragment(fc, C(1));
    wmma::mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; i++)
        fc.x[i] = fc.x[i] + fc.x[i];
    wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}
using Row = wmma::row_major;
using Col = wmma::col_major;
#define KERNEL(NAME, A, C, M, N, K, LA, LB, LDA, LDB)                           \
    extern "C" __global__ void NAME(const A *a, const A *b, C *c) {             \
        product<A, C, M, N, K, LA, LB>(a, b, c, LDA, LDB);                      \
    }
KERNEL(f16_f32, half, float, 16, 16, 16, Row, Row, 16, 16)
KERNEL(f16_f16, half, half, 32, 8, 16, Row, Row, 16, 8)
KERNEL(f16_flat, half, float, 8, 32, 16, Row, Row, 16, 32)
KERNEL(s8, signed char, int, 16, 16, 16, Row, Row, 16, 16)
KERNEL(u8, unsigned char, int, 32, 8, 16, Row, Row, 16, 8)
#if __CUDA_ARCH__ >= 800
KERNEL(bf16, __nv_bfloat16, float, 16, 16, 16, Row, Row, 16, 16)
KERNEL(f64, double, double, 8, 8, 4, Row, Row, 4, 8)
extern "C" __global__ void tf32(const float *a, const float *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, Row> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, Row> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
    wmma::fill_fragment(fc, 0.5f);
    wmma::load_matrix_sync(fa, a, 8);
    wmma::load_matrix_sync(fb, b, 16);
    for (auto &v : fa.x)
        v = wmma::__float_to_tf32(v);
    for (auto &v : fb.x)
        v = wmma::__float_to_tf32(v);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
#endif
"""


def product_reference(a, b, c):
    wide = "i8" if c.dtype.kind == "i" else "f8"
    c[:] = 2 * (a.astype(wide) @ b.astype(wide) + 1)


def tf32_reference(a, b, c):
    c[:] = a.astype("f8") @ b.astype("f8") + 0.5


# --- random numbers ------------------------------------------------------------------------------

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


# --- the table -----------------------------------------------------------------------------------


def matrices(name, a, c, m, n, k, tolerance=0.0, first=75):
    """Case of a kernel in WMMA."""
    low = 0 if a == "u1" else -20
    fill = uniform(-1, 1, a, m, k), uniform(-1, 1, a, k, n)
    if tolerance == 0:
        fill = whole(low, 20, a, m, k), whole(low, 20, a, k, n)
    return Case(
        f"wmma {name}",
        (WMMA, name),
        make(*fill, zeros(c, m, n)),
        tf32_reference if name == "tf32" else product_reference,
        block=32,
        rtol=tolerance,
        atol=tolerance,
        options={"first": first},
    )


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
    Case(
        "tiles",
        (GROUPS, "tiles"),
        make(whole(0, 10, "i4", N), zeros("i4", 8, N)),
        tiles_reference,
        grid=3,
    ),
    Case(
        "coalesced",
        (GROUPS, "coalesced"),
        make(whole(0, 10, "i4", N), zeros("i4", N), zeros("i4", 1)),
        coalesced_reference,
        grid=3,
    ),
    Case(
        "labelled",
        (GROUPS, "labelled"),
        make(whole(0, 10, "i4", N), zeros("i4", 2, N)),
        labelled_reference,
        grid=3,
    ),
    Case(
        "staged",
        (GROUPS, "staged"),
        make(uniform(0, 1, "f4", 384), zeros("f4", 384), 384),
        staged_reference,
    ),
    Case(
        "relaxed over the grid",
        (GROUPS, "relaxed"),
        make(uniform(0, 1, "f4", 500), zeros("f4", 500), 500, 7),
        relaxed_reference,
        grid=4,
        rtol=1e-6,
        options={"cooperative": True},
    ),
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
    matrices("f16_f32", "f2", "f4", 16, 16, 16, 1e-5),
    matrices("f16_f16", "f2", "f2", 32, 8, 16, 4e-3),
    matrices("f16_flat", "f2", "f4", 8, 32, 16, 1e-5),
    matrices("s8", "i1", "i4", 16, 16, 16),
    matrices("u8", "u1", "i4", 32, 8, 16),
    matrices("bf16", BF16, "f4", 16, 16, 16, 1e-5, first=80),
    matrices("tf32", "f4", "f4", 16, 16, 8, 3e-3, first=80),
    matrices("f64", "f8", "f8", 8, 8, 4, 1e-14, first=80),
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
def test_cuda(nvrtc, launcher, case, arch):
    if arch < case.options.get("first", 0):
        pytest.skip("CUDA has this for later architectures")
    source, name = case.kernel

    def launch(args):
        kernel = nvrtc(source, arch)[name]
        together = case.options.get("cooperative", False)
        launcher(kernel, case.grid, case.block, args, cooperative=together)

    case.check(launch)


@pytest.mark.parametrize("arch", [75], indirect=True)
def test_moments_of_mrg32k3a(nvrtc, launcher, arch):
    sums = np.zeros((64, 2))
    launcher(nvrtc(RANDOM, arch)["moments"], 1, 64, [7, sums])
    mean, square = sums.sum(0) / 6400
    assert abs(mean - 1 / 2) < 0.02
    assert abs(square - 1 / 3) < 0.02
    assert len(np.unique(sums[:, 0])) == 64
