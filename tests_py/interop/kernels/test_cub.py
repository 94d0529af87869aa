# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUB's sums: reductions and scans of warps, blocks and whole grids."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, whole, zeros

BLOCK = 64
ITEMS = 4
TILE = BLOCK * ITEMS

REDUCE = r"""
#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>

template <cub::BlockReduceAlgorithm ALGORITHM, typename T>
__device__ void block_sum(const T *x, T *out) {
    using Reduce = cub::BlockReduce<T, 64, ALGORITHM>;
    __shared__ typename Reduce::TempStorage storage;
    T sum = Reduce(storage).Sum(x[blockIdx.x * 64 + threadIdx.x]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
extern "C" __global__ void raking(const float *x, float *out) {
    block_sum<cub::BLOCK_REDUCE_RAKING>(x, out);
}
extern "C" __global__ void commutative(const int *x, int *out) {
    block_sum<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(x, out);
}
extern "C" __global__ void warps(const double *x, double *out) {
    block_sum<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x, out);
}
extern "C" __global__ void partial(const int *x, int n, int *out) {
    using Reduce = cub::BlockReduce<int, 64>;
    __shared__ typename Reduce::TempStorage storage;
    int v = threadIdx.x < n ? x[threadIdx.x] : 0;
    int most = Reduce(storage).Reduce(v, [](int a, int b) { return a > b ? a : b; }, n);
    if (threadIdx.x == 0)
        *out = most;
}
extern "C" __global__ void per_warp(const long long *x, long long *out) {
    using Reduce = cub::WarpReduce<long long, 16>;
    __shared__ typename Reduce::TempStorage storage[4];
    int i = threadIdx.x / 16;
    long long sum = Reduce(storage[i]).Sum(x[threadIdx.x]);
    if (threadIdx.x % 16 == 0)
        out[i] = sum;
}
extern "C" __global__ void segments(const int *x, const int *head, int *out) {
    using Reduce = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage storage[2];
    int sum = Reduce(storage[threadIdx.x / 32]).HeadSegmentedSum(x[threadIdx.x], head[threadIdx.x]);
    out[threadIdx.x] = head[threadIdx.x] ? sum : 0;
}
"""


def segments_reference(x, head, out):
    for warp in (slice(0, 32), slice(32, 64)):
        starts = np.flatnonzero(head[warp])
        out[warp] = 0
        out[warp][starts] = np.add.reduceat(x[warp], starts)


SCAN = r"""
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_scan.cuh>

template <cub::BlockScanAlgorithm ALGORITHM, typename T>
__device__ void block_scan(const T *x, T *out, T *total) {
    using Scan = cub::BlockScan<T, 64, ALGORITHM>;
    __shared__ typename Scan::TempStorage storage;
    T items[4], sum;
    for (int k = 0; k < 4; k++)
        items[k] = x[threadIdx.x * 4 + k];
    Scan(storage).ExclusiveSum(items, items, sum);
    for (int k = 0; k < 4; k++)
        out[threadIdx.x * 4 + k] = items[k];
    if (threadIdx.x == 0)
        *total = sum;
}
extern "C" __global__ void raking(const int *x, int *out, int *total) {
    block_scan<cub::BLOCK_SCAN_RAKING>(x, out, total);
}
extern "C" __global__ void memoized(const double *x, double *out, double *total) {
    block_scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>(x, out, total);
}
extern "C" __global__ void warp_scans(const float *x, float *out, float *total) {
    block_scan<cub::BLOCK_SCAN_WARP_SCANS>(x, out, total);
}
struct Largest {
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
extern "C" __global__ void per_warp(const int *x, int *out) {
    using Scan = cub::WarpScan<int>;
    __shared__ typename Scan::TempStorage storage[2];
    int before, through;
    Scan(storage[threadIdx.x / 32]).Scan(x[threadIdx.x], through, before, -100, Largest());
    out[threadIdx.x] = before;
    out[64 + threadIdx.x] = through;
}
"""


def scan_reference(x, out, total):
    out[:] = np.cumsum(x) - x
    total[0] = x.sum()


def warp_scan_reference(x, out):
    through = np.maximum.accumulate(x.reshape(2, 32), 1)
    out[1] = np.maximum(through, -100).reshape(-1)
    before = np.full((2, 32), -100)
    before[:, 1:] = through[:, :-1]
    out[0] = before.reshape(-1)


# A scan of the whole input in one pass: each block publishes its sum, and looks back at those of
# the blocks before it until one has its whole prefix.
LOOK_BACK = r"""
#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_scan.cuh>

struct Plus {
    template <typename T> __device__ T operator()(const T &a, const T &b) const { return a + b; }
};
template <typename T> struct Device {
    using State = cub::ScanTileState<T>;
    using Prefix = cub::TilePrefixCallbackOp<T, Plus, State>;
    using Scan = cub::BlockScan<T, 64>;

    static __device__ void init(void *memory, size_t size, int tiles) {
        State state;
        state.Init(tiles, memory, size);
        state.InitializeStatus(tiles);
    }
    static __device__ void scan(const T *x, T *out, void *memory, size_t size, int tiles) {
        __shared__ typename Scan::TempStorage scan_storage;
        __shared__ typename Prefix::TempStorage prefix_storage;
        State state;
        state.Init(tiles, memory, size);
        T items[4], total;
        int tile = blockIdx.x, at = tile * 256 + threadIdx.x * 4;
        for (int k = 0; k < 4; k++)
            items[k] = x[at + k];
        if (tile == 0) {
            Scan(scan_storage).InclusiveScan(items, items, Plus(), total);
            if (threadIdx.x == 0)
                state.SetInclusive(0, total);
        } else {
            Prefix prefix(state, prefix_storage, Plus(), tile);
            Scan(scan_storage).InclusiveScan(items, items, Plus(), prefix);
        }
        for (int k = 0; k < 4; k++)
            out[at + k] = items[k];
    }
};
extern "C" __global__ void init_s32(void *m, size_t size, int tiles) {
    Device<int>::init(m, size, tiles);
}
extern "C" __global__ void init_f64(void *m, size_t size, int tiles) {
    Device<double>::init(m, size, tiles);
}
extern "C" __global__ void scan_s32(const int *x, int *out, void *m, size_t size, int tiles) {
    Device<int>::scan(x, out, m, size, tiles);
}
extern "C" __global__ void scan_f64(const double *x, double *out, void *m, size_t size, int tiles) {
    Device<double>::scan(x, out, m, size, tiles);
}
"""


def sums(x, out):
    out[:] = x.reshape(len(out), -1).sum(1)


CASES = [
    Case(
        "reduce by raking",
        (REDUCE, "raking"),
        make(whole(0, 99, "f4", 192), zeros("f4", 3)),
        sums,
        3,
    ),
    Case(
        "reduce, commutative",
        (REDUCE, "commutative"),
        make(whole(0, 99, "i4", 192), zeros("i4", 3)),
        sums,
        3,
    ),
    Case(
        "reduce by warps", (REDUCE, "warps"), make(whole(0, 99, "f8", 192), zeros("f8", 3)), sums, 3
    ),
    Case(
        "reduce a part",
        (REDUCE, "partial"),
        make(whole(-99, 0, "i4", 64), 41, zeros("i4", 1)),
        lambda x, n, out: np.copyto(out, x[:n].max()),
    ),
    Case(
        "reduce 16 lanes",
        (REDUCE, "per_warp"),
        make(whole(-(10**12), 10**12, "i8", 64), zeros("i8", 4)),
        sums,
    ),
    Case(
        "reduce segments",
        (REDUCE, "segments"),
        lambda rng: (
            rng.integers(0, 99, 64).astype("i4"),
            np.where(np.arange(64) % 32 == 0, 1, rng.integers(0, 2, 64)).astype("i4"),
            np.zeros(64, "i4"),
        ),
        segments_reference,
    ),
    *(
        Case(
            f"scan {name}",
            (SCAN, name),
            make(whole(0, 99, t, TILE), zeros(t, TILE), zeros(t, 1)),
            scan_reference,
        )
        for name, t in (("raking", "i4"), ("memoized", "f8"), ("warp_scans", "f4"))
    ),
    Case(
        "scan warps",
        (SCAN, "per_warp"),
        make(whole(-200, 99, "i4", 64), zeros("i4", 2, 64)),
        warp_scan_reference,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cub(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize(("name", "dtype"), [("s32", "i4"), ("f64", "f8")])
def test_look_back(nvrtc, launcher, name, dtype, arch):
    tiles = 20
    code = nvrtc(LOOK_BACK, arch)
    state = np.zeros(32 * (tiles + 64), "u1")
    launcher(code[f"init_{name}"], 1, 128, [state, state.nbytes, tiles])
    x = np.random.default_rng(1).integers(-99, 99, TILE * tiles).astype(dtype)
    out = np.zeros_like(x)
    launcher(code[f"scan_{name}"], tiles, BLOCK, [x, out, state, state.nbytes, tiles])
    np.testing.assert_array_equal(out, x.cumsum())
