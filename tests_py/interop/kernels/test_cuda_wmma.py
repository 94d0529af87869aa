# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA C++ with matrices: wmma."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

BF16 = np.dtype(ml_dtypes.bfloat16)

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
    matrices("f16_f32", "f2", "f4", 16, 16, 16, 1e-5),
    matrices("f16_f16", "f2", "f2", 32, 8, 16, 4e-3),
    matrices("f16_flat", "f2", "f4", 8, 32, 16, 1e-5),
    matrices("s8", "i1", "i4", 16, 16, 16),
    matrices("u8", "u1", "i4", 32, 8, 16),
    matrices("bf16", BF16, "f4", 16, 16, 16, 1e-5, first=80),
    matrices("tf32", "f4", "f4", 16, 16, 8, 3e-3, first=80),
    matrices("f64", "f8", "f8", 8, 8, 4, 1e-14, first=80),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cuda(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))
