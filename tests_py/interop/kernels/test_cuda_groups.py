# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA C++ with cooperative groups."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

N = 192

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
extern "C" __global__ void wide(const int *x, int *out, int *own) {
    extern __shared__ int mine[];
    __shared__ cg::block_tile_memory<256> scratch;
    auto block = cg::this_thread_block(scratch);
    int t = block.thread_rank(), n = block.size();
    mine[t] = x[t];
    auto pair = cg::tiled_partition<64>(block);
    out[t] = cg::reduce(pair, x[t], cg::plus<int>());
    auto four = cg::tiled_partition<128>(block);
    out[n + t] = cg::inclusive_scan(four, x[t], cg::plus<int>());
    out[2 * n + t] = four.meta_group_rank() * 1000 + four.thread_rank();
    own[t] = mine[t];
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


def wide_reference(x, out, own):
    out[0] = x.reshape(-1, 64).sum(1).repeat(64)
    out[1] = x.reshape(-1, 128).cumsum(1).reshape(-1)
    out[2] = np.arange(x.size) // 128 * 1000 + np.arange(x.size) % 128
    own[:] = x


def relaxed_reference(x, y, n, steps):
    for _ in range(steps):
        y[1:-1] = np.float32(0.5) * (x[:-2] + x[2:])
        x, y = y, x


CASES = [
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
    Case(  # from sm_80 on such tiles meet in shared memory that CUDA reserves
        "tiles of several warps",
        (GROUPS, "wide"),
        make(whole(0, 10, "i4", 256), zeros("i4", 3, 256), zeros("i4", 256)),
        wide_reference,
        block=256,
        shared=1024,
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
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cuda(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))
