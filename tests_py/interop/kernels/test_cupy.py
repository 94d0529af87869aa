# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels whose source CuPy writes: elementwise, reductions, functions, and those of cupyx."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest

from .cases import Case

cupy = pytest.importorskip("cupy")
kernel_module = pytest.importorskip("cupy._core._kernel")
reduction_module = pytest.importorskip("cupy._core._reduction")
indexer = pytest.importorskip("cupy._core._carray").Indexer
jit = pytest.importorskip("cupyx.jit")

HEADERS = Path(cupy.__file__).parent / "_core/include"
# CuPy puts these before every source.
PREAMBLE = """
#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/float16.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
"""
ARRAY, INDEXER, SCALAR = 1, 2, 3  # kinds of arguments, as CuPy numbers them
REDUCTION_BLOCK = 128


# --- what CuPy's kernels are given ---------------------------------------------------------------


def array(a):
    """CArray: data, size, shape, strides."""
    words = (a.size, *a.shape, *a.strides)
    return lambda address: struct.pack(f"<Q{len(words)}q", address(a), *words)


def index(shape):
    """CIndexer: size, shape, and room for an index."""
    words = (math.prod(shape), *shape, *(0 for _ in shape))
    return struct.pack(f"<{len(words)}q", *words)


def description(a):
    if isinstance(a, np.ndarray):
        info = (ARRAY, cupy.ndarray, a.dtype, a.ndim, a.flags.c_contiguous, True)
    elif isinstance(a, tuple):
        info = (INDEXER, indexer, None, len(a), True, True)
    else:
        info = (SCALAR, type(a), a.dtype, 0, True, True)
    return kernel_module._ArgInfo(*info)


def passed(a):
    if isinstance(a, np.ndarray):
        return array(a)
    return index(a) if isinstance(a, tuple) else a


# --- elementwise kernels and functions -----------------------------------------------------------


def elementwise(kernel, args, shape):
    """Source of a `cupy.ElementwiseKernel`."""
    infos = tuple(map(description, (*args, shape)))
    dtypes = tuple(a.dtype for a in args)
    *_, types = kernel_module._decide_params_type(
        kernel.in_params, kernel.out_params, dtypes[: kernel.nin], dtypes[kernel.nin :]
    )
    return kernel_module._get_elementwise_kernel_code(
        infos, types, kernel.params, kernel.operation, kernel.name, kernel.preamble
    )


def universal(function, args, shape):
    """Source of a `cupy.ufunc` for arguments of these types."""
    x, *_, out = (a.dtype for a in args)
    inputs = [x] * function.nin
    op = next(o for o in function._ops.ops if list(o.in_types) == inputs and o.out_types == (out,))
    names = [f"in{i}" for i in range(function.nin)] + ["out0"]
    # CuPy's own parameters are all of type T, which it leaves to a part of it that needs a GPU.
    letters = "ABC"[: len(names)]
    pairs = [*zip(letters, (*inputs, out), strict=True)]
    pairs += zip((f"{n}_type" for n in names), (*inputs, out), strict=True)
    types = kernel_module._TypeMap(tuple(pairs))
    parameters = [f"{c} {n}" for c, n in zip(letters, names, strict=True)]
    info = kernel_module._get_param_info
    params = info(", ".join(parameters[:-1]), True) + info(
        f"{parameters[-1]}, CIndexer _ind", False
    )
    infos = tuple(map(description, (*args, shape)))
    return kernel_module._get_elementwise_kernel_code(
        infos,
        types,
        params,
        op.routine,
        function.name,
        function._preamble,
        function._loop_prep,
    )


K = cupy.ElementwiseKernel
MULTIPLY_ADD = K("T x, T y, float32 a", "T z", "z = x * y + a", "multiply_add")
SHIFTED = K("raw T x, int64 n", "T z", "z = x[(i + 1) % n] - x[i]", "shifted")
CLIPPED = K("T x", "T z, bool low", "low = x < T(0); z = low ? T(0) : x", "clipped")
PHASE = K("T x, T y", "T z", "z = exp(x) * conj(y) / (x + T(1.0))", "phase")
SCATTER = K("raw T x, S where", "raw T out", "atomicAdd(&out[where], x[i])", "scatter")
HALVES = K("float16 x, float16 y", "float16 z", "z = (float)x * (float)y + (float)x", "halves")
FLIP = K("raw T x", "T z", "ptrdiff_t at[] = {_ind.get()[1], _ind.get()[0]}; z = x[at]", "flip")


def two(dtype, *shape, low=0.0, high=1.0):
    """Make two inputs and an output."""

    def make(rng):
        x, y = (rng.uniform(low, high, shape) for _ in range(2))
        if np.dtype(dtype).kind == "c":
            x, y = x + 1j * y, y - 1j * x
        return x.astype(dtype), y.astype(dtype), np.zeros(shape, dtype)

    return make


def last(function):
    """Reference: the last array becomes what `function` makes of what is before it."""

    def reference(*args):
        *arrays, out = args
        out[...] = function(*arrays)

    return reference


def clipped_reference(x, z, low):
    z[:], low[:] = np.maximum(x, 0), x < 0


def scatter_reference(x, where, out):
    np.add.at(out, where, x)


ELEMENTWISE = [
    *(
        Case(
            f"multiply and add {t}",
            MULTIPLY_ADD,
            lambda rng, t=t: (*two(t, 13, 9)(rng)[:2], np.float32(2), np.zeros((13, 9), t)),
            last(lambda x, y, a: x * y + x.dtype.type(a)),
            rtol=1e-6,
        )
        for t in ("f4", "f8", "i4", "u1")
    ),
    Case(
        "multiply and add of what is not contiguous",
        MULTIPLY_ADD,
        lambda rng: (
            rng.random((26, 9))[::2],
            rng.random((9, 13)).T,
            np.float32(2),
            np.zeros((13, 9)),
        ),
        last(lambda x, y, a: x * y + a),
        rtol=1e-12,
    ),
    Case(
        "multiply and add of broadcast rows",
        MULTIPLY_ADD,
        lambda rng: (
            rng.random((13, 9)),
            np.broadcast_to(rng.random(9), (13, 9)),
            np.float32(2),
            np.zeros((13, 9)),
        ),
        last(lambda x, y, a: x * y + a),
        rtol=1e-12,
    ),
    Case(
        "shifted",
        SHIFTED,
        lambda rng: (rng.random(200), np.int64(200), np.zeros(200)),
        last(lambda x, n: np.roll(x, -1) - x),
    ),
    Case(
        "clipped",
        CLIPPED,
        lambda rng: (rng.uniform(-1, 1, (5, 6, 7)), np.zeros((5, 6, 7)), np.zeros((5, 6, 7), "?")),
        clipped_reference,
    ),
    *(
        Case(
            f"phase {t}",
            PHASE,
            two(t, 40),
            last(lambda x, y: np.exp(x) * y.conj() / (x + 1)),
            rtol=rtol,
        )
        for t, rtol in (("c8", 2e-6), ("c16", 1e-14))
    ),
    Case("halves", HALVES, two("f2", 90), last(lambda x, y: x * y + x), rtol=2e-3),
    Case(
        "flip",
        FLIP,
        lambda rng: (rng.random((9, 13)), np.zeros((13, 9))),
        last(np.transpose),
    ),
    *(
        Case(
            f"scatter {t}",
            SCATTER,
            lambda rng, t=t: (
                rng.integers(0, 9, 300).astype(t),
                rng.integers(0, 8, 300),
                np.zeros(8, t),  # an even number: halves are added two by two
            ),
            scatter_reference,
        )
        for t in ("i4", "u8", "f2", "f4", "f8")
    ),
]


def shape_of(case, args):
    """Return the shape that a kernel loops over: its output's, or the index's."""
    if case.kernel is SCATTER:
        return args[1].shape
    return args[-1].shape


@pytest.mark.parametrize("arch", [75], indirect=True)
@pytest.mark.parametrize("case", ELEMENTWISE, ids=lambda case: case.name)
def test_elementwise_kernel(nvrtc, launcher, case, arch):
    def launch(args):
        shape = shape_of(case, args)
        source = PREAMBLE + elementwise(case.kernel, args, shape)
        kernel = nvrtc(source, arch, HEADERS)[case.kernel.name]
        launcher(kernel, 2, 64, [passed(a) for a in (*args, shape)])

    case.check(launch)


UNARY = [
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arctanh",
    "exp",
    "expm1",
    "exp2",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "cbrt",
    "square",
    "reciprocal",
    "negative",
    "absolute",
    "sign",
    "floor",
    "ceil",
    "rint",
    "trunc",
    "isnan",
    "signbit",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "power",
    "arctan2",
    "hypot",
    "logaddexp",
    "maximum",
    "fmin",
    "copysign",
    "nextafter",
    "greater",
    "equal",
]
INTEGERS = [
    "add",
    "floor_divide",
    "remainder",
    "power",
    "gcd",
    "lcm",
    "bitwise_and",
    "bitwise_xor",
    "left_shift",
    "right_shift",
]


def function_cases():
    for name in UNARY:
        for t, rtol in (("f4", 3e-6), ("f8", 1e-14)):
            yield name, t, rtol, lambda rng, t=t: (rng.uniform(0.1, 0.9, (7, 9)).astype(t),)
    for name in BINARY:
        yield name, "f4", 3e-6, lambda rng: tuple(rng.uniform(0.5, 3, (2, 90)).astype("f4"))
    for name in INTEGERS:
        yield name, "i8", 0, lambda rng: (rng.integers(1, 40, 90), rng.integers(1, 9, 90))
    for name in ("exp", "log", "sqrt", "sin", "multiply", "true_divide", "conjugate"):
        n = getattr(cupy, name).nin
        yield name, "c8", 3e-6, lambda rng, n=n: tuple(two("c8", 50)(rng)[:n])
    for name in ("exp", "add", "maximum", "sqrt"):
        n = getattr(cupy, name).nin
        yield name, "f2", 2e-3, lambda rng, n=n: tuple(rng.uniform(0.5, 2, (n, 50)).astype("f2"))


FUNCTIONS = list(function_cases())


@pytest.mark.parametrize("arch", [75], indirect=True)
@pytest.mark.parametrize(
    ("name", "dtype", "rtol", "make"), FUNCTIONS, ids=[f"{f[0]} {f[1]}" for f in FUNCTIONS]
)
def test_universal_function(nvrtc, launcher, name, dtype, rtol, make, arch):
    x = [np.ascontiguousarray(a) for a in make(np.random.default_rng(3))]
    want = getattr(np, name)(*x)
    args = (*x, np.zeros(want.shape, want.dtype))
    function = getattr(cupy, name)
    kernel = nvrtc(PREAMBLE + universal(function, args, want.shape), arch, HEADERS)[function.name]
    launcher(kernel, 1, 64, [passed(a) for a in (*args, want.shape)])
    np.testing.assert_allclose(args[-1], want, rtol=rtol)


# --- reductions ----------------------------------------------------------------------------------


def reduction(kernel, x, out):
    """Source of a `cupy.ReductionKernel` over all but the last axes of `x`."""
    *_, types = kernel_module._decide_params_type(
        kernel.in_params, kernel.out_params, (x.dtype,), (out.dtype,)
    )
    infos = tuple(map(description, (x, out, x.shape, out.shape, np.int32(1))))
    return reduction_module._ReductionKernel_get_cached_function_code(
        kernel.nin,
        kernel.nout,
        kernel._params,
        infos,
        types,
        kernel.name,
        REDUCTION_BLOCK,
        kernel.reduce_type,
        kernel.identity,
        kernel.map_expr,
        kernel.reduce_expr,
        kernel.post_map_expr,
        kernel.preamble,
        (),
    )


R = cupy.ReductionKernel
NORM = R("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2_norm")
LARGEST = R("T x", "T y", "x", "max(a, b)", "y = a", "-100", "largest")
COUNT = R("T x", "int32 y", "x > T(0)", "a + b", "y = a", "0", "positive", reduce_type="int")
PRODUCT = R("T x", "T y", "x", "a * b", "y = a", "1", "product")

REDUCTIONS = [
    *(
        Case(
            f"norm {t} of {shape}",
            NORM,
            lambda rng, t=t, shape=shape: (rng.random(shape).astype(t), np.zeros(shape[-1], t)),
            last(lambda x: np.sqrt((x * x).sum(tuple(range(x.ndim - 1))))),
            rtol=rtol,
        )
        for t, rtol in (("f4", 1e-5), ("f8", 1e-13))
        for shape in ((300, 3), (9, 20, 5), (1, 2))
    ),
    Case(
        "largest",
        LARGEST,
        lambda rng: (rng.integers(-90, 90, (200, 4)).astype("i4"), np.zeros(4, "i4")),
        last(lambda x: x.max(0)),
    ),
    Case(
        "count",
        COUNT,
        lambda rng: (rng.normal(size=(500, 3)), np.zeros(3, "i4")),
        last(lambda x: (x > 0).sum(0)),
    ),
    Case(
        "product",
        PRODUCT,
        lambda rng: (np.exp(1j * rng.random((50, 3))), np.zeros(3, "c16")),
        last(lambda x: x.prod(0)),
        rtol=1e-12,
    ),
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("case", REDUCTIONS, ids=lambda case: case.name)
def test_reduction_kernel(nvrtc, launcher, case, stride, arch):
    def launch(args):
        source = PREAMBLE + "typedef int IndexT;\n" + reduction(case.kernel, *args)
        kernel = nvrtc(source, arch, HEADERS)[case.kernel.name]
        x, out = args
        given = (x, out, x.shape, out.shape, np.int32(stride))
        launcher(kernel, 2, REDUCTION_BLOCK, [passed(a) for a in given])

    case.check(launch)
