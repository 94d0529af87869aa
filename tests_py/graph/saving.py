# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of graphs that are saved, and what saves and loads them."""

from __future__ import annotations

import pytest

import cudago as cu

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)
SOURCE = r"""
extern "C" __device__ void
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
struct Pair { double d; long long n; };
__constant__ int weights[4];
__device__ int hits;
extern "C" __global__ void axpy(float a, const float* x, float* y) {
    y[threadIdx.x] += a * x[threadIdx.x];
}
extern "C" __global__ void halo(const int* x, int* y) {
    int i = threadIdx.x;
    y[i] = x[i - 1] + x[i + 1];
}
extern "C" __global__ void values(
    float f, double d, char c, unsigned long long u, long long i, Pair p, int* none, void* out) {
    char* to = (char*)out;
    *(float*)to = f; *(double*)(to + 8) = d; to[16] = c;
    *(unsigned long long*)(to + 24) = u; *(long long*)(to + 32) = i;
    *(Pair*)(to + 40) = p; *(int**)(to + 56) = none;
}
extern "C" __global__ void weigh(int* out) {
    out[threadIdx.x] = weights[threadIdx.x]; atomicAdd(&hits, 1);
}
extern "C" __global__ void countdown(cudaGraphConditionalHandle more, int* n) {
    n[0]--; n[1]++;
    cudaGraphSetConditional(more, n[0] > 0);
}
extern "C" __global__ void shared(int* out, int n) {
    extern __shared__ int room[];
    room[n - 1] = 5;
    *out = room[n - 1];
}
template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
"""


@pytest.fixture(scope="module")
def code(device):
    options = cu.ProgramOptions(name_expressions=["twice<int>"])
    return cu.Program(SOURCE, options=options).compile()


@pytest.fixture
def again(tmp_path):
    """A function that saves a graph, closes it, and loads it."""
    made = []

    def again(graph, *, contents=True, **bind):
        path = tmp_path / f"{len(made)}.cudago"
        graph.save(path, contents=contents)
        graph.close()
        made.append(cu.Graph.load(path, bind=bind))
        return made[-1]

    yield again
    for graph in made:
        graph.close()


def run(graph, stream):
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
