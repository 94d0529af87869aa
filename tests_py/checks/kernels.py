# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels in which FORGET plants bugs, and what tests compare the reports with."""

from __future__ import annotations

import sys

import pytest

import cudago as cu

SOURCE = r"""
extern "C" {
__global__ void reverse(float* out, const float* in) {
    __shared__ float m[64];
    m[threadIdx.x] = in[threadIdx.x];
#ifndef FORGET
    __syncthreads();
#endif
    out[threadIdx.x] = m[63 - threadIdx.x];
}
__global__ void neighbours(int* out) {
    __shared__ int m[32];
    m[threadIdx.x] = threadIdx.x;
#ifndef FORGET
    __syncwarp();
#endif
    out[threadIdx.x] = m[threadIdx.x ^ 1];
}
__global__ void count(int* out, const int* in) {
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] & 3], 1);
#ifndef FORGET
    __syncthreads();
#endif
    if (threadIdx.x < 4) out[threadIdx.x] = bins[threadIdx.x];
}
__global__ void swap_pairs(int* out) {
    __shared__ int tile[2][32];
#ifdef FORGET
    if (threadIdx.x != 5)
#endif
    tile[1][threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[1][threadIdx.x ^ 1];
}
__global__ void count_dynamic(int* out, const int* in) {
    extern __shared__ int bins[];
#ifndef FORGET
    bins[threadIdx.x] = 0;
    __syncthreads();
#endif
    atomicAdd(&bins[in[threadIdx.x] + 3], 1);
    __syncthreads();
    if (threadIdx.x == 0) *out = bins[3];
}
__global__ void largest(int* out, const int* in, int n) {
    int a[8];
    for (int i = 0; i < n; i++) a[i] = in[i] + threadIdx.x;
    int most = 0;
#ifdef FORGET
    for (int i = 0; i <= n; i++) if (a[i] > most) most = a[i];
#else
    for (int i = 0; i < n; i++) if (a[i] > most) most = a[i];
#endif
    out[threadIdx.x] = most;
}
__global__ void shift(int* p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = p[i + 1] + 1;
}
__global__ void increment(int* p) { p[threadIdx.x] += 1; }
__global__ void set(int* p, int i, int value) { p[i] = value; }
__global__ void odd(char* p) { *(int*)(p + 1) = 0; }
__global__ void apart(int* p) {
    if (threadIdx.x < 16) asm volatile("bar.sync 0;");
    else asm volatile("bar.sync 1;");
    *p = 1;
}
__global__ void spin(volatile int* p) { while (*p != 77) {} }
}
"""


def line_of(text: str) -> int:
    """Return the number of the line of SOURCE that has a text."""
    return next(i for i, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def compiled(**macros: int) -> cu.ObjectCode:
    """Return the kernels with line numbers, and with macros defined."""
    options = cu.ProgramOptions(lineinfo=True, name="/planted.cu", define_macro=macros)
    return cu.Program(SOURCE, "c++", options=options).compile()


def here() -> str:
    """Return the file and line of the caller, as reports have it."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def one_report(error: pytest.ExceptionInfo[cu.CheckError]) -> str:
    """Return the report of an error that has one."""
    head, *reports = str(error.value).splitlines()
    assert "CUDAGO_CHECK_FAILED: a check found a defect:" in head
    assert len(reports) == 1, reports
    return reports[0]
