# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of cupyx: what its compiler of Python functions writes, and sources that it carries."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from .cases import Case

cupy = pytest.importorskip("cupy")
jit = pytest.importorskip("cupyx.jit")
transpile = pytest.importorskip("cupyx.jit._compile").transpile
types = pytest.importorskip("cupyx.jit._cuda_types")
signal = pytest.importorskip("scipy.signal")

HEADERS = Path(cupy.__file__).parent / "_core/include"
PREAMBLE = """
#define CUPY_JIT_MODE
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
"""
N = 200


# --- Python functions ----------------------------------------------------------------------------


def saxpy(a, x, y):
    i = jit.grid(1)
    if i < y.size:
        y[i] += a * x[i]


def reversed_blocks(x, y):
    buffer = jit.shared_memory(np.float64, 64)
    t = jit.threadIdx.x
    i = jit.blockIdx.x * jit.blockDim.x + t
    buffer[t] = x[i]
    jit.syncthreads()
    y[i] = buffer[63 - t]


def counted(x, bins):
    for i in range(jit.grid(1), x.size, jit.gridsize(1)):
        jit.atomic_add(bins, x[i] % 7, 1)


def counted_reference(x, bins):
    bins += np.bincount(x % 7, minlength=7).astype("i4")


def collatz(x, steps):
    i = jit.grid(1)
    if i < x.size:
        n = x[i]
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        steps[i] = count


def collatz_reference(x, steps):
    for i, n in enumerate(x.tolist()):
        steps[i] = 0
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            steps[i] += 1


def outer(x, y, out):
    i, j = jit.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = x[i] * y[j]


def outer_reference(x, y, out):
    np.multiply.outer(x, y, out=out)


def saxpy_reference(a, x, y):
    y += a * x


def reversed_reference(x, y):
    y[:] = x.reshape(-1, 64)[:, ::-1].reshape(-1)


FUNCTIONS = [
    *(
        Case(
            f"saxpy {t}",
            saxpy,
            lambda rng, t=t: (np.dtype(t).type(2), *rng.random((2, N)).astype(t)),
            saxpy_reference,
            grid=4,
            rtol=1e-6,
        )
        for t in ("f4", "c16")
    ),
    Case(
        "reversed blocks",
        reversed_blocks,
        lambda rng: (rng.random(192), np.zeros(192)),
        reversed_reference,
        grid=3,
    ),
    Case(
        "counted",
        counted,
        lambda rng: (rng.integers(0, 99, N), np.zeros(7, "i4")),
        counted_reference,
        grid=2,
    ),
    Case(
        "Collatz",
        collatz,
        lambda rng: (rng.integers(1, 999, N), np.zeros(N, "i8")),
        collatz_reference,
        grid=4,
    ),
    Case(
        "outer",
        outer,
        lambda rng: (rng.random(17), rng.random(9), np.zeros((17, 9))),
        outer_reference,
        grid=(3, 2),
        block=(8, 8),
    ),
]


def described(a):
    if isinstance(a, np.ndarray):
        return types.CArray(a.dtype, a.ndim, a.flags.c_contiguous, True)
    return types.Scalar(a.dtype)


def passed(a):
    if not isinstance(a, np.ndarray):
        return a.tobytes() if a.dtype.kind == "c" else a
    words = (a.size, *a.shape, *a.strides)  # of a CArray, after the address
    return lambda address: struct.pack(f"<Q{len(words)}q", address(a), *words)


@pytest.mark.parametrize("arch", [75], indirect=True)
@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.name)
def test_python_function(nvrtc, launcher, case, arch):
    def launch(args):
        taken = tuple(map(described, args))
        made = transpile(case.kernel, ['extern "C"', "__global__"], "cuda", taken, types.void)
        kernel = nvrtc(PREAMBLE + made.code, arch, HEADERS)[made.func_name]
        launcher(kernel, case.grid, case.block, [passed(a) for a in args])

    case.check(launch)


# --- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize(("up", "down"), [(1, 1), (3, 2), (2, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_resampling(nvrtc, launcher, dtype, up, down, arch):
    source = pytest.importorskip("cupyx.scipy.signal._upfirdn").UPFIRDN_KERNEL
    rng = np.random.default_rng(1)
    x, taps = rng.random(150).astype(dtype), rng.random(11).astype(dtype)
    want = signal.upfirdn(taps, x, up, down)
    # The taps of each phase, backwards: CuPy's _pad_h.
    phases = np.zeros(-(-len(taps) // up) * up, dtype)
    phases[: len(taps)] = taps
    phases = np.ascontiguousarray(phases.reshape(-1, up).T[:, ::-1]).reshape(-1)
    each = len(phases) // up
    out = np.zeros(len(want), dtype)
    kernel = nvrtc(source, arch, HEADERS)[f"_cupy_upfirdn1D_{dtype}"]
    given = [x, 1, phases, up, down, 0, len(x), each, len(x) + each - 1, out, len(out)]
    launcher(kernel, 2, 128, given)
    np.testing.assert_allclose(out, want, rtol=1e-5)


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
def test_interval_of_splines(nvrtc, launcher, arch):
    source = pytest.importorskip("cupyx.scipy.interpolate._bspline").INTERVAL_KERNEL
    degree = 3
    knots = np.sort(np.random.default_rng(2).random(40))
    n = len(knots) - degree - 1
    x = np.linspace(-0.1, 1.1, 300)
    x[7] = np.nan
    out = np.zeros(300, "i8")
    kernel = nvrtc(source, arch, HEADERS)["find_interval"]
    launcher(kernel, 5, 64, [knots, x, out, degree, n, 0, len(x)])
    inside = (x >= knots[degree]) & (x <= knots[n])
    at = np.clip(np.searchsorted(knots, x, "right") - 1, degree, n - 1)
    np.testing.assert_array_equal(out, np.where(inside, at, -1))
