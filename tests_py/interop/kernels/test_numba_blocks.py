# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Numba compiles: blocks, atomics and warps."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from .cases import Case, assign

cuda = pytest.importorskip("numba.cuda")
numba = pytest.importorskip("numba")

N = 200


# --- blocks --------------------------------------------------------------------------------------


def block_sums(x, out):
    part = cuda.shared.array(64, numba.int64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]
        cuda.atomic.add(out, out.size - 1, part[0])


def block_sums_reference(x, out):
    padded = np.zeros(256, x.dtype)
    padded[:N] = x
    out[:4] = padded.reshape(4, 64).sum(1)
    out[4] += x.sum()


def tiled_matmul(a, b, c):
    tile_a = cuda.shared.array((8, 8), numba.float32)
    tile_b = cuda.shared.array((8, 8), numba.float32)
    row, column = cuda.grid(2)
    ty, tx = cuda.threadIdx.x, cuda.threadIdx.y
    total = numba.float32(0)
    for k in range(0, a.shape[1], 8):
        tile_a[ty, tx] = a[row, k + tx] if row < a.shape[0] and k + tx < a.shape[1] else 0
        tile_b[ty, tx] = b[k + ty, column] if column < b.shape[1] and k + ty < b.shape[0] else 0
        cuda.syncthreads()
        for j in range(8):
            total += tile_a[ty, j] * tile_b[j, tx]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def dynamic_scan(x):
    buffer = cuda.shared.array(0, numba.int32)
    t, n = cuda.threadIdx.x, cuda.blockDim.x
    buffer[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < n:
        value = buffer[t - step] if t >= step else 0
        cuda.syncthreads()
        buffer[t] += value
        cuda.syncthreads()
        step *= 2
    x[t] = buffer[t]


def bitonic(x):
    keys = cuda.shared.array(128, numba.float32)
    t = cuda.threadIdx.x
    keys[t] = x[t]
    cuda.syncthreads()
    k = 2
    while k <= 128:
        j = k // 2
        while j:
            other = t ^ j
            if other > t and (keys[t] > keys[other]) == ((t & k) == 0):
                keys[t], keys[other] = keys[other], keys[t]
            cuda.syncthreads()
            j //= 2
        k *= 2
    x[t] = keys[t]


def stencil(x, out):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        around = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
        out[i, j] = 0.25 * around


def stencil_reference(x, out):
    out[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def barrier_votes(x, out):
    i = cuda.grid(1)
    out[0, i] = cuda.syncthreads_count(1 if x[i] > 3 else 0)
    out[1, i] = cuda.syncthreads_and(1 if x[i] >= 0 else 0)
    out[2, i] = cuda.syncthreads_or(1 if x[i] > 8 else 0)


def barrier_votes_reference(x, out):
    blocks = x.reshape(-1, 64)
    for row, value in enumerate(((blocks > 3).sum(1), (blocks >= 0).all(1), (blocks > 8).any(1))):
        out[row] = np.repeat(value, 64)


def insertion_sort(x):
    own = cuda.local.array(9, numba.float64)
    i = cuda.grid(1)
    if i < x.shape[0]:
        for k in range(9):
            own[k] = x[i, k]
        for k in range(1, 9):
            value = own[k]
            j = k - 1
            while j >= 0 and own[j] > value:
                own[j + 1] = own[j]
                j -= 1
            own[j + 1] = value
        for k in range(9):
            x[i, k] = own[k]


WEIGHTS = np.array([1, 4, 6, 4, 1], "f4")


def convolve(x, out):
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    if i < out.size:
        total = numba.float32(0)
        for k in range(5):
            total += weights[k] * x[i + k]
        out[i] = total


# --- atomics -------------------------------------------------------------------------------------


def histogram(x, bins):
    local = cuda.shared.array(16, numba.int32)
    if cuda.threadIdx.x < 16:
        local[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(local, x[i], 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 16:
        cuda.atomic.add(bins, cuda.threadIdx.x, local[cuda.threadIdx.x])


def atomic_extremes(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])
        cuda.atomic.max(out, 1, x[i])
        cuda.atomic.min(out, 2, x[i])
        cuda.atomic.sub(out, 3, x[i])


def atomic_extremes_reference(x, out):
    out[0] += x.sum(dtype=out.dtype)
    out[1], out[2] = max(out[1], x.max()), min(out[2], x.min())
    out[3] -= x.sum(dtype=out.dtype)


def atomic_bits(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.and_(out, 0, x[i])
        cuda.atomic.or_(out, 1, x[i])
        cuda.atomic.xor(out, 2, x[i])
        cuda.atomic.inc(out, 3, 6)
        cuda.atomic.dec(out, 4, 6)
        if i == 7:
            cuda.atomic.exch(out, 5, x[i])


def atomic_bits_reference(x, out):
    out[0] &= np.bitwise_and.reduce(x)
    out[1] |= np.bitwise_or.reduce(x)
    out[2] ^= np.bitwise_xor.reduce(x)
    for _ in x:
        out[3] = 0 if out[3] >= 6 else out[3] + 1
        out[4] = 6 if out[4] == 0 or out[4] > 6 else out[4] - 1
    out[5] = x[7]


def locked(lock, total):
    done = False
    while not done:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            total[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            done = True


def locked_reference(lock, total):
    total[0] += 256


# --- warps ---------------------------------------------------------------------------------------


def shuffles(x, out):
    i = cuda.grid(1)
    value = x[i]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    out[0, i] = cuda.shfl_sync(0xFFFFFFFF, value, 0)
    out[1, i] = cuda.shfl_xor_sync(0xFFFFFFFF, x[i], 5)
    out[2, i] = cuda.shfl_up_sync(0xFFFFFFFF, x[i], 3)


def shuffles_reference(x, out):
    for warp in range(0, x.size, 32):
        part = x[warp : warp + 32]
        out[0, warp : warp + 32] = part.sum()
        out[1, warp : warp + 32] = part[np.arange(32) ^ 5]
        out[2, warp : warp + 32] = part[np.maximum(np.arange(32) - 3, np.arange(32) % 32 * 0)]
        out[2, warp : warp + 3] = part[:3]


def votes(x, out):
    i = cuda.grid(1)
    full = 0xFFFFFFFF
    out[0, i] = cuda.ballot_sync(full, x[i] > 4)
    out[1, i] = cuda.all_sync(full, x[i] >= 0)
    out[2, i] = cuda.any_sync(full, x[i] == 9)
    out[3, i] = cuda.match_any_sync(full, x[i])
    if x[i] & 1:
        out[4, i] = cuda.activemask()
    else:
        out[4, i] = 0
    cuda.syncwarp()
    out[5, i] = cuda.lanemask_lt()


def votes_reference(x, out):
    lanes = np.uint32(1) << np.arange(32, dtype="u4")
    for warp in range(0, x.size, 32):
        part, to = x[warp : warp + 32], out[:, warp : warp + 32]
        to[0] = lanes[part > 4].sum()
        to[1], to[2] = (part >= 0).all(), (part == 9).any()
        to[3] = [lanes[part == v].sum() for v in part]
        to[4] = np.where(part & 1, lanes[(part & 1) == 1].sum(), 0)
        to[5] = lanes - 1


CASES = [
    Case(
        "block sums",
        block_sums,
        lambda rng: (rng.integers(-(10**12), 10**12, N), np.zeros(5, "i8")),
        block_sums_reference,
        grid=4,
    ),
    Case(
        "tiled matmul",
        tiled_matmul,
        lambda rng: (
            rng.random((20, 13), "f4"),
            rng.random((13, 27), "f4"),
            np.zeros((20, 27), "f4"),
        ),
        assign(operator.matmul),
        grid=(3, 4),
        block=(8, 8),
        rtol=1e-6,
    ),
    Case(
        "scan in dynamic shared memory",
        dynamic_scan,
        lambda rng: (rng.integers(0, 99, 96).astype("i4"),),
        lambda x: np.cumsum(x, out=x),
        block=96,
        shared=4 * 96,
    ),
    Case("bitonic", bitonic, lambda rng: (rng.random(128, "f4"),), np.ndarray.sort, block=128),
    Case(
        "stencil",
        stencil,
        lambda rng: (rng.random((20, 30)), np.zeros((20, 30))),
        stencil_reference,
        grid=(3, 4),
        block=(8, 8),
        rtol=1e-15,
    ),
    Case(
        "barrier votes",
        barrier_votes,
        lambda rng: (rng.integers(0, 10, 256), np.zeros((3, 256), "i4")),
        barrier_votes_reference,
        grid=4,
    ),
    Case("insertion sort", insertion_sort, lambda rng: (rng.random((N, 9)),), np.ndarray.sort, 4),
    Case(
        "convolve",
        convolve,
        lambda rng: (rng.random(N + 4, "f4"), np.zeros(N, "f4")),
        assign(lambda x: np.convolve(x, WEIGHTS, "valid")),
        grid=4,
        rtol=1e-6,
    ),
    Case(
        "histogram",
        histogram,
        lambda rng: (rng.integers(0, 16, 1000), np.zeros(16, "i4")),
        lambda x, bins: np.add(bins, np.bincount(x, minlength=16), out=bins, casting="unsafe"),
        grid=4,
    ),
    *(
        Case(
            f"atomic extremes {t}",
            atomic_extremes,
            lambda rng, t=t: (rng.integers(-50, 50, N).astype(t), np.zeros(4, t)),
            atomic_extremes_reference,
            grid=4,
        )
        for t in ("i4", "i8", "f4", "f8")
    ),
    Case(
        "atomic bits",
        atomic_bits,
        lambda rng: (
            rng.integers(0, 2**32, N).astype("u4"),
            np.array([2**32 - 1, 0, 0, 0, 3, 0], "u4"),
        ),
        atomic_bits_reference,
        grid=4,
    ),
    Case(
        "lock",
        locked,
        lambda rng: (np.zeros(1, "i4"), np.zeros(1, "i8")),
        locked_reference,
        grid=4,
    ),
    *(
        Case(
            f"shuffles {t}",
            shuffles,
            lambda rng, t=t: (rng.integers(0, 99, 128).astype(t), np.zeros((3, 128), t)),
            shuffles_reference,
            grid=2,
        )
        for t in ("i4", "f4", "i8", "f8")
    ),
    Case(
        "votes",
        votes,
        lambda rng: (rng.integers(0, 10, 128).astype("i4"), np.zeros((6, 128), "u4")),
        votes_reference,
        grid=2,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numba(run_numba, case, arch):
    case.check(lambda args: run_numba(case, args, arch))
