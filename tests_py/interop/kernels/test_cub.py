# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUB's parts for warps, blocks and whole grids."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

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


SORT = r"""
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>

template <typename K, bool DOWN> __device__ void radix(K *x) {
    using Sort = cub::BlockRadixSort<K, 64, 4>;
    using Load = cub::BlockLoad<K, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<K, 64, 4, cub::BLOCK_STORE_VECTORIZE>;
    __shared__ union {
        typename Sort::TempStorage sort;
        typename Load::TempStorage load;
        typename Store::TempStorage store;
    } storage;
    K keys[4];
    x += blockIdx.x * 256;
    Load(storage.load).Load(x, keys);
    __syncthreads();
    if (DOWN)
        Sort(storage.sort).SortDescending(keys);
    else
        Sort(storage.sort).Sort(keys);
    __syncthreads();
    Store(storage.store).Store(x, keys);
}
extern "C" __global__ void u32(unsigned *x) { radix<unsigned, false>(x); }
extern "C" __global__ void s64(long long *x) { radix<long long, true>(x); }
extern "C" __global__ void f32(float *x) { radix<float, false>(x); }
extern "C" __global__ void s8(signed char *x) { radix<signed char, false>(x); }
extern "C" __global__ void pairs(const unsigned short *keys, int *values) {
    using Sort = cub::BlockRadixSort<unsigned short, 64, 4, int>;
    __shared__ typename Sort::TempStorage storage;
    unsigned short k[4];
    int v[4];
    for (int i = 0; i < 4; i++) {
        k[i] = keys[threadIdx.x * 4 + i];
        v[i] = threadIdx.x * 4 + i;
    }
    Sort(storage).SortBlockedToStriped(k, v, 0, 10);
    for (int i = 0; i < 4; i++)
        values[i * 64 + threadIdx.x] = v[i];
}
struct Less {
    template <typename T> __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};
extern "C" __global__ void merge(double *x, int n) {
    using Sort = cub::BlockMergeSort<double, 64, 4>;
    __shared__ typename Sort::TempStorage storage;
    double keys[4];
    for (int i = 0; i < 4; i++) {
        int at = threadIdx.x * 4 + i;
        keys[i] = at < n ? x[at] : 1e300;
    }
    Sort(storage).Sort(keys, Less(), n, 1e300);
    for (int i = 0; i < 4; i++)
        if (threadIdx.x * 4 + i < n)
            x[threadIdx.x * 4 + i] = keys[i];
}
extern "C" __global__ void warp_merge(int *x) {
    using Sort = cub::WarpMergeSort<int, 4, 16>;
    __shared__ typename Sort::TempStorage storage[4];
    int keys[4];
    for (int i = 0; i < 4; i++)
        keys[i] = x[threadIdx.x * 4 + i];
    Sort(storage[threadIdx.x / 16]).Sort(keys, Less());
    for (int i = 0; i < 4; i++)
        x[threadIdx.x * 4 + i] = keys[i];
}
"""


def pairs_reference(keys, values):
    values[:] = np.argsort(keys & 1023, kind="stable")


def merge_reference(x, n):
    x[:n].sort()


MOVE = r"""
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>

template <cub::BlockLoadAlgorithm IN, cub::BlockStoreAlgorithm OUT>
__device__ void copy(const int *x, int *out, int n) {
    using Load = cub::BlockLoad<int, 64, 4, IN>;
    using Store = cub::BlockStore<int, 64, 4, OUT>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
    } storage;
    int items[4];
    Load(storage.load).Load(x, items, n, -1);
    for (int k = 0; k < 4; k++)
        items[k] += 10 * k;
    __syncthreads();
    Store(storage.store).Store(out, items, n);
}
extern "C" __global__ void direct(const int *x, int *out, int n) {
    copy<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_TRANSPOSE>(x, out, n);
}
extern "C" __global__ void transposed(const int *x, int *out, int n) {
    copy<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(x, out, n);
}
extern "C" __global__ void striped(const int *x, int *out, int n) {
    copy<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>(x, out, n);
}
extern "C" __global__ void scattered(const double *x, const int *ranks, double *out) {
    using Exchange = cub::BlockExchange<double, 64, 4>;
    __shared__ typename Exchange::TempStorage storage;
    double items[4];
    int rank[4];
    for (int k = 0; k < 4; k++) {
        items[k] = x[threadIdx.x * 4 + k];
        rank[k] = ranks[threadIdx.x * 4 + k];
    }
    Exchange(storage).ScatterToStriped(items, items, rank);
    for (int k = 0; k < 4; k++)
        out[k * 64 + threadIdx.x] = items[k];
}
struct Differ {
    __device__ bool operator()(int a, int b) const { return a != b; }
};
struct Minus {
    __device__ int operator()(int a, int b) const { return a - b; }
};
extern "C" __global__ void neighbours(const int *x, int *heads, int *difference, int *shifted) {
    using Heads = cub::BlockDiscontinuity<int, 64>;
    using Difference = cub::BlockAdjacentDifference<int, 64>;
    using Shuffle = cub::BlockShuffle<int, 64>;
    __shared__ typename Heads::TempStorage a;
    __shared__ typename Difference::TempStorage b;
    __shared__ typename Shuffle::TempStorage c;
    int items[4], flags[4], left[4], up[4];
    for (int k = 0; k < 4; k++)
        items[k] = x[threadIdx.x * 4 + k];
    Heads(a).FlagHeads(flags, items, Differ());
    Difference(b).SubtractLeft(items, left, Minus());
    Shuffle(c).Up(items, up);
    for (int k = 0; k < 4; k++) {
        heads[threadIdx.x * 4 + k] = flags[k];
        difference[threadIdx.x * 4 + k] = left[k];
        if (threadIdx.x + k)
            shifted[threadIdx.x * 4 + k] = up[k];
    }
}
template <cub::BlockHistogramAlgorithm ALGORITHM>
__device__ void histogram(const unsigned char *x, int *bins) {
    using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 32, ALGORITHM>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ int counts[32];
    unsigned char items[4];
    for (int k = 0; k < 4; k++)
        items[k] = x[threadIdx.x * 4 + k];
    Histogram(storage).Histogram(items, counts);
    __syncthreads();
    if (threadIdx.x < 32)
        bins[threadIdx.x] = counts[threadIdx.x];
}
extern "C" __global__ void histogram_sort(const unsigned char *x, int *bins) {
    histogram<cub::BLOCK_HISTO_SORT>(x, bins);
}
extern "C" __global__ void histogram_atomic(const unsigned char *x, int *bins) {
    histogram<cub::BLOCK_HISTO_ATOMIC>(x, bins);
}
extern "C" __global__ void decoded(const int *values, const unsigned *lengths, int *out) {
    using Decode = cub::BlockRunLengthDecode<int, 64, 1, 4>;
    __shared__ typename Decode::TempStorage storage;
    int run[1] = {values[threadIdx.x]};
    unsigned length[1] = {lengths[threadIdx.x]}, total = 0;
    Decode decode(storage, run, length, total);
    for (unsigned at = 0; at < total; at += 256) {
        int items[4];
        decode.RunLengthDecode(items, at);
        for (int k = 0; k < 4; k++)
            if (at + threadIdx.x * 4 + k < total)
                out[at + threadIdx.x * 4 + k] = items[k];
    }
}
"""


def copy_reference(x, out, n):
    out[:n] = (x + 10 * (np.arange(TILE) % ITEMS))[:n]


def striped_reference(x, out, n):
    out[:n] = (x + 10 * (np.arange(TILE) // BLOCK))[:n]


def scattered_reference(x, ranks, out):
    out[ranks] = x


def neighbours_reference(x, heads, difference, shifted):
    heads[0], heads[1:] = 1, x[1:] != x[:-1]
    difference[0], difference[1:] = x[0], np.diff(x)
    shifted[1:] = x[:-1]


def histogram_reference(x, bins):
    bins[:] = np.bincount(x, minlength=32)


def decoded_reference(values, lengths, out):
    runs = np.repeat(values, lengths)
    out[: len(runs)] = runs


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


def ascending(x):
    x.sort()


def descending(x):
    x[:] = np.sort(x)[:, ::-1]


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
    Case("radix sort u4", (SORT, "u32"), make(whole(0, 2**32, "u4", 2, TILE)), ascending, 2),
    Case(
        "radix sort i8", (SORT, "s64"), make(whole(-(2**62), 2**62, "i8", 2, TILE)), descending, 2
    ),
    Case("radix sort f4", (SORT, "f32"), make(uniform(-9, 9, "f4", 2, TILE)), ascending, 2),
    Case("radix sort i1", (SORT, "s8"), make(whole(-128, 128, "i1", 2, TILE)), ascending, 2),
    Case(
        "radix sort of pairs",
        (SORT, "pairs"),
        make(whole(0, 2**16, "u2", TILE), zeros("i4", TILE)),
        pairs_reference,
    ),
    Case("merge sort", (SORT, "merge"), make(uniform(-9, 9, "f8", TILE), 201), merge_reference),
    Case(
        "merge sort of 16 lanes", (SORT, "warp_merge"), make(whole(-99, 99, "i4", 4, 64)), ascending
    ),
    *(
        Case(
            f"load and store {name}",
            (MOVE, name),
            make(whole(0, 9, "i4", TILE), zeros("i4", TILE), 233),
            striped_reference if name == "striped" else copy_reference,
        )
        for name in ("direct", "transposed", "striped")
    ),
    Case(
        "exchange",
        (MOVE, "scattered"),
        make(
            uniform(-9, 9, "f8", TILE),
            lambda rng: rng.permutation(TILE).astype("i4"),
            zeros("f8", TILE),
        ),
        scattered_reference,
    ),
    Case(
        "neighbours",
        (MOVE, "neighbours"),
        make(whole(0, 3, "i4", TILE), *(zeros("i4", TILE) for _ in range(3))),
        neighbours_reference,
    ),
    *(
        Case(
            f"histogram {name}",
            (MOVE, f"histogram_{name}"),
            make(whole(0, 32, "u1", TILE), zeros("i4", 32)),
            histogram_reference,
        )
        for name in ("sort", "atomic")
    ),
    Case(
        "run length decode",
        (MOVE, "decoded"),
        make(whole(0, 99, "i4", 64), whole(1, 9, "u4", 64), zeros("i4", 64 * 8)),
        decoded_reference,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cub(nvrtc, launcher, case, arch):
    source, name = case.kernel
    case.check(lambda args: launcher(nvrtc(source, arch)[name], case.grid, BLOCK, args))


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
