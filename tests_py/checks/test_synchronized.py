# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that synchronize by hand and correctly, in which the checks find nothing."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

SOURCE = r"""
extern "C" {
// The last block to come adds up what the others left.
__device__ unsigned int retired = 0;
__device__ void add_up(float* s, int t) {
    __syncthreads();
    for (int d = 128; d; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
}
__global__ void fence_reduce(const float* in, volatile float* out, int n) {
    __shared__ float s[256];
    __shared__ bool last;
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += 256 * gridDim.x) v += in[i];
    s[t] = v;
    add_up(s, t);
    if (t == 0) out[blockIdx.x] = s[0];
    __threadfence();
    if (t == 0) last = atomicInc(&retired, gridDim.x) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    v = 0;
    for (int i = t; i < gridDim.x; i += 256) v += out[i];
    s[t] = v;
    add_up(s, t);
    if (t == 0) {
        out[0] = s[0];
        retired = 0;
    }
}
__global__ void shuffle_reduce(const float* in, float* out) {
    __shared__ float w[32];
    float v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) w[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    v = threadIdx.x < blockDim.x / 32 ? w[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x == 0) atomicAdd(out, v);
}
__global__ void bitonic(int* p) {
    extern __shared__ int s[];
    int t = threadIdx.x;
    s[t] = p[t];
    __syncthreads();
    for (int k = 2; k <= blockDim.x; k *= 2) {
        for (int j = k / 2; j; j /= 2) {
            int o = t ^ j;
            if (o > t && (s[t] > s[o]) == ((t & k) == 0)) {
                int x = s[t];
                s[t] = s[o];
                s[o] = x;
            }
            __syncthreads();
        }
    }
    p[t] = s[t];
}
// Each block waits for the sum of the one before.
__global__ void lookback(const int* in, int* out, volatile int* state, volatile int* value) {
    __shared__ int s[128];
    __shared__ int prefix;
    int t = threadIdx.x, b = blockIdx.x;
    s[t] = in[b * 128 + t];
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        int x = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += x;
        __syncthreads();
    }
    if (t == 0) {
        int p = 0;
        if (b > 0) {
            while (state[b - 1] == 0) {}
            __threadfence();
            p = value[b - 1];
        }
        value[b] = p + s[127];
        __threadfence();
        state[b] = 1;
        prefix = p;
    }
    __syncthreads();
    out[b * 128 + t] = s[t] + prefix;
}
// A lock around plain accesses.
__global__ void locked(int* lock, int* sum, int* list) {
    if (threadIdx.x) return;
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    int n = *sum;
    list[n] = blockIdx.x;
    *sum = n + 1;
    __threadfence();
    atomicExch(lock, 0);
}
__global__ void hash_table(const int* keys, int* table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int h = keys[i] * 2654435761u % 1024;; h = (h + 1) % 1024) {
        int old = atomicCAS(&table[h], -1, keys[i]);
        if (old == -1 || old == keys[i]) return;
    }
}
__global__ void grid_barrier(int* barrier, int* a, int* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(barrier, 1);
        while (*(volatile int*)barrier < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    b[i] = a[n - 1 - i];
}
__global__ void warp_private(int* out) {
    __shared__ int s[8][33];
    int w = threadIdx.x / 32, l = threadIdx.x % 32;
    for (int r = 0; r < 4; r++) {
        s[w][l] = r * l;
        __syncwarp();
        out[threadIdx.x] += s[w][31 - l];
        __syncwarp();
    }
}
#define BARRIER(kind, n) asm volatile("bar." kind " %0, 64;" ::"r"(n) : "memory")
__global__ void producer_consumer(int* out) {
    __shared__ int buffer[2][32];
    int lane = threadIdx.x % 32;
    for (int r = 0; r < 8; r++) {
        if (threadIdx.x < 32) {
            if (r >= 2) BARRIER("sync", 3 + r % 2);
            buffer[r % 2][lane] = r * 32 + lane;
            BARRIER("arrive", 1 + r % 2);
        } else {
            BARRIER("sync", 1 + r % 2);
            out[r * 32 + lane] = buffer[r % 2][lane];
            if (r < 6) BARRIER("arrive", 3 + r % 2);
        }
    }
}
__global__ void bytes(const unsigned char* p, unsigned char* q) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    q[i] = p[i] + 1;
}
__global__ void halves(unsigned short* p) { p[threadIdx.x] *= 2; }
__global__ void vectors(const float4* a, float4* b) {
    float4 v = a[blockIdx.x * blockDim.x + threadIdx.x];
    b[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
}
}
"""


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE, "c++").compile()


@pytest.fixture
def run(code, stream):
    """Launch a kernel under every check."""

    def run(name, grid, block, *args, **options):
        cu.launch(stream, cu.LaunchConfig(grid, block, **options), code[name], *args)

    with cu.sim.check():
        yield run


@pytest.fixture
def ints(run, stream):
    """Tensors of ints, made under the checks."""

    def ints(values):
        return cu.asarray(np.asarray(values, "i4"), stream=stream)

    return ints


@pytest.fixture
def empty(run, stream):
    return lambda n, dtype="i4": cu.empty(n, dtype, stream=stream)


def test_last_block_adds_up(run, empty, stream):
    n = 1 << 14
    x, y = cu.full(n, 1, "f4", stream=stream), empty(256, "f4")
    for _ in range(2):
        run("fence_reduce", 16, 256, x, y, n)
    assert y[:1].numpy(stream=stream)[0] == n


def test_shuffles(run, stream):
    x, y = cu.full(4096, 1, "f4", stream=stream), cu.zeros(1, "f4", stream=stream)
    run("shuffle_reduce", 16, 256, x, y)
    assert y.numpy(stream=stream)[0] == 4096


def test_dynamic_shared_memory(run, ints, stream):
    p = ints(np.random.default_rng(1).permutation(256))
    run("bitonic", 1, 256, p, shared_memory=1024)
    assert (p.numpy(stream=stream) == np.arange(256)).all()


def test_look_back(run, ints, empty, stream):
    x, y, state, value = ints(np.ones(4096)), empty(4096), ints(np.zeros(32)), empty(32)
    run("lookback", 32, 128, x, y, state, value)
    assert (y.numpy(stream=stream) == np.arange(1, 4097)).all()


def test_lock(run, ints, stream):
    lock, total, order = ints([0]), ints([0]), ints(np.zeros(64))
    run("locked", 64, 32, lock, total, order)
    assert sorted(order.numpy(stream=stream)) == list(range(64))


def test_compare_and_swap(run, ints, stream):
    keys, table = ints(np.arange(1000) % 300), cu.full(1024, -1, "i4", stream=stream)
    run("hash_table", 4, 256, keys, table, 1000)
    assert (table.numpy(stream=stream) >= 0).sum() == 300


def test_grid_barrier(run, ints, empty, stream):
    barrier, a, b = ints([0]), empty(512), empty(512)
    run("grid_barrier", 8, 64, barrier, a, b, 512, cooperative=True)
    assert (b.numpy(stream=stream) == np.arange(512)[::-1]).all()


def test_warps_by_themselves(run, ints, stream):
    p = ints(np.zeros(256))
    run("warp_private", 1, 256, p)
    assert p.numpy(stream=stream).sum() == 8 * 6 * 31 * 16


def test_named_barriers(run, empty, stream):
    p = empty(256)
    run("producer_consumer", 1, 64, p)
    assert (p.numpy(stream=stream) == np.arange(256)).all()


def test_narrow_and_wide_elements(run, empty, stream):
    x = cu.asarray(np.arange(256, dtype="u1"), stream=stream)
    y = empty(256, "u1")
    run("bytes", 4, 64, x, y)
    assert y.numpy(stream=stream)[1] == 2
    run("halves", 1, 64, cu.zeros(64, "u2", stream=stream))
    f, g = cu.full((256, 4), 2, "f4", stream=stream), empty((256, 4), "f4")
    run("vectors", 4, 64, f, g)
    assert (g.numpy(stream=stream) == 2).all()
