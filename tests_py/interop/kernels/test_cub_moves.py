# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUB's moves: sorting, loading and storing, exchanges, histograms."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

BLOCK = 64
ITEMS = 4
TILE = BLOCK * ITEMS

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


def ascending(x):
    x.sort()


def descending(x):
    x[:] = np.sort(x)[:, ::-1]


CASES = [
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
def test_cub(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))
