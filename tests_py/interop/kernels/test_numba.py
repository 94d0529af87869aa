# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Numba compiles."""

from __future__ import annotations

import cmath
import math
import operator

import numpy as np
import pytest

import cudago as cu

from .cases import Case

pytest.importorskip("numba_cuda")
cuda = pytest.importorskip("numba.cuda")
numba = pytest.importorskip("numba")

N = 200


# --- elements ------------------------------------------------------------------------------------


def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def saxpy(a, x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] += a * x[i]


def transpose(x, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[j, i] = x[i, j]


def integers(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = x[i] // y[i]
        out[1, i] = x[i] % y[i]
        out[2, i] = x[i] >> (y[i] & 7)
        out[3, i] = x[i] * y[i] ^ ~x[i]


def bits(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = cuda.popc(x[i])
        out[1, i] = cuda.clz(x[i])
        out[2, i] = cuda.brev(x[i])
        out[3, i] = cuda.ffs(x[i])


def clamp(x, low, high):
    return min(max(x, low), high)


def half(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * y[i] + np.float16(1)


def complex_numbers(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = x[i] * y[i] + x[i].conjugate()
        out[1, i] = x[i] / y[i]
        out[2, i] = cmath.exp(x[i])
        out[3, i] = abs(x[i]) * 1j


def complex_reference(x, y, out):
    out[0], out[1], out[2], out[3] = x * y + x.conj(), x / y, np.exp(x), abs(x) * 1j


RECORD = np.dtype([("id", "i4"), ("mass", "f8"), ("v", "f4", (3,)), ("flag", "u1")], align=True)


def records(items, scale):
    i = cuda.grid(1)
    if i < items.size:
        items[i].mass *= scale
        items[i]["id"] += 1
        for k in range(3):
            items[i].v[k] -= np.float32(0.5) * items[i].flag


def records_reference(items, scale):
    items["mass"] *= scale
    items["id"] += 1
    items["v"] -= np.float32(0.5) * items["flag"][:, None]


def make_records(rng):
    items = np.zeros(N, RECORD)
    items["id"], items["mass"] = rng.integers(0, 99, N), rng.random(N)
    items["v"], items["flag"] = rng.random((N, 3)), rng.integers(0, 2, N)
    return items, 2.5


def mandelbrot(x, y, out):
    i, j = cuda.grid(2)
    if i < x.size and j < y.size:
        c = complex(x[i], y[j])
        z = 0j
        n = 0
        while n < 50 and z.real * z.real + z.imag * z.imag < 4:
            z = z * z + c
            n += 1
        out[i, j] = n


def mandelbrot_reference(x, y, out):
    c = x[:, None] + 1j * y[None]
    z = np.zeros_like(c)
    out[:] = 0
    for _ in range(50):
        inside = z.real * z.real + z.imag * z.imag < 4
        out[inside] += 1
        z = np.where(inside, z * z + c, z)


# --- mathematics: libdevice ------------------------------------------------------------------------

UNARY = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log2 log10 log1p "
    "sqrt erf erfc gamma lgamma floor ceil"
).split()


def unary(function):
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = function(x[i])

    return kernel


def unary_reference(name):
    function = np.vectorize(getattr(math, name), otypes="d")

    def reference(x, out):
        out[:] = function(x.astype("f8"))

    return reference


def unary_args(name, dtype):
    low, high = {"acosh": (1, 9), "gamma": (0.5, 8), "lgamma": (0.5, 8)}.get(name, (0.05, 0.95))

    def args(rng):
        return rng.uniform(low, high, N).astype(dtype), np.empty(N, dtype)

    return args


def binary(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i] = math.pow(x[i], y[i])
        out[1, i] = math.atan2(x[i], y[i])
        out[2, i] = math.hypot(x[i], y[i])
        out[3, i] = math.fmod(x[i] * 9, y[i])
        out[4, i] = math.copysign(x[i], -y[i])
        out[5, i] = cuda.fma(x[i], y[i], x[i])


def binary_reference(x, y, out):
    out[0], out[1], out[2] = x**y, np.arctan2(x, y), np.hypot(x, y)
    out[3], out[4], out[5] = np.fmod(x * 9, y), np.copysign(x, -y), x * y + x


def large_angles(x, out):
    i = cuda.grid(1)
    if i < x.size:  # the argument reduction of Payne and Hanek
        out[i] = math.sin(x[i]) + math.cos(x[i])


def black_scholes(price, strike, years, call):
    i = cuda.grid(1)
    if i < price.size:
        root = 0.3 * math.sqrt(years[i])
        d1 = (math.log(price[i] / strike[i]) + (0.02 + 0.045) * years[i]) / root
        a = 0.5 * math.erfc(-d1 / math.sqrt(2.0))
        b = 0.5 * math.erfc(-(d1 - root) / math.sqrt(2.0))
        call[i] = price[i] * a - strike[i] * math.exp(-0.02 * years[i]) * b


def black_scholes_reference(price, strike, years, call):
    root = 0.3 * np.sqrt(years)
    d1 = (np.log(price / strike) + (0.02 + 0.045) * years) / root
    erfc = np.vectorize(math.erfc)
    a, b = 0.5 * erfc(-d1 / 2**0.5), 0.5 * erfc(-(d1 - root) / 2**0.5)
    call[:] = price * a - strike * np.exp(-0.02 * years) * b


# --- blocks ----------------------------------------------------------------------------------------


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
    out[0, i] = cuda.syncthreads_count(x[i] > 3)
    out[1, i] = cuda.syncthreads_and(x[i] >= 0)
    out[2, i] = cuda.syncthreads_or(x[i] > 8)


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


# --- atomics ---------------------------------------------------------------------------------------


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


# --- warps -----------------------------------------------------------------------------------------


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


def f4(*shape):
    return lambda rng: rng.random(shape, "f4")


def numbers(dtype, count, low=0, high=10, out=None):
    """Arguments: integers or floats of `count` arrays, and an output."""

    def args(rng):
        if np.dtype(dtype).kind in "iu":
            arrays = [rng.integers(low, high, N).astype(dtype) for _ in range(count)]
        else:
            arrays = [rng.uniform(low, high, N).astype(dtype) for _ in range(count)]
        return (*arrays, np.zeros(*(out or (N, dtype))))

    return args


def assign(function):
    """Reference: the last argument becomes what `function` makes of the others."""

    def reference(*args):
        args[-1][...] = function(*args[:-1])

    return reference


def rows(*functions):
    """Reference: row by row."""

    def reference(*args):
        for row, function in zip(args[-1], functions, strict=True):
            row[...] = function(*args[:-1])

    return reference


def popcount(x):
    return [int(v).bit_count() for v in x]


def width(x):
    return 8 * x.dtype.itemsize


CASES = [
    *(
        Case(f"add {t}", add, numbers(t, 2), assign(operator.add), grid=4)
        for t in ("i1", "u2", "i4", "u8", "f4", "f8")
    ),
    Case(
        "saxpy f4", saxpy, lambda rng: (2.0, *numbers("f4", 1)(rng)), assign(lambda a, x: a * x), 2
    ),
    Case(
        "transpose of every other column",
        transpose,
        lambda rng: (rng.random((17, 40))[:, ::2], np.zeros((20, 17))),
        assign(np.transpose),
        grid=(3, 3),
        block=(8, 8),
    ),
    Case(
        "transpose of Fortran's order",
        transpose,
        lambda rng: (np.asfortranarray(rng.random((17, 40))), np.zeros((40, 17))),
        assign(np.transpose),
        grid=(3, 5),
        block=(8, 8),
    ),
    *(
        Case(
            f"integers {t}",
            integers,
            lambda rng, t=t, low=low: (
                rng.integers(low, 10**4, N).astype(t),
                rng.choice(np.array([3, 7, 1, 12] + [-5] * (low < 0)), N).astype(t),
                np.zeros((4, N), t),
            ),
            rows(
                lambda x, y: x // y,
                lambda x, y: x % y,
                lambda x, y: x >> (y & 7),
                lambda x, y: x * y ^ ~x,
            ),
            grid=4,
        )
        for t, low in (("i2", -(10**4)), ("i4", -(10**4)), ("u4", 0), ("i8", -(10**4)), ("u8", 0))
    ),
    *(
        Case(
            f"bits {t}",
            bits,
            numbers(t, 1, 1, 2**31, out=((4, N), t)),
            rows(
                popcount,
                lambda x: [width(x) - int(v).bit_length() for v in x],
                lambda x: [int(f"{v:0{width(x)}b}"[::-1], 2) for v in x],
                lambda x: [(int(v) & -int(v)).bit_length() for v in x],
            ),
            grid=4,
        )
        for t in ("u4", "u8")
    ),
    Case("half f2", half, numbers("f2", 2), assign(lambda x, y: x * y + np.float16(1)), 4, rtol=2e-3),
    *(
        Case(
            f"complex numbers {t}",
            complex_numbers,
            lambda rng, t=t: (
                (rng.random(N) + 1j * rng.random(N)).astype(t),
                (rng.random(N) + 1 + 1j * rng.random(N)).astype(t),
                np.zeros((4, N), t),
            ),
            complex_reference,
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("c8", 1e-6), ("c16", 1e-14))
    ),
    Case("records", records, make_records, records_reference, 4),
    Case(
        "mandelbrot",
        mandelbrot,
        lambda rng: (np.linspace(-2, 1, 24), np.linspace(-1, 1, 16), np.zeros((24, 16), "i4")),
        mandelbrot_reference,
        grid=(3, 2),
        block=(8, 8),
    ),
    *(
        Case(
            f"{name} {t}",
            unary(getattr(math, name)),
            unary_args(name, t),
            unary_reference(name),
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 2e-6), ("f8", 1e-14))
        for name in UNARY
    ),
    *(
        Case(
            f"fast {name} f4",
            unary(getattr(math, name)),
            unary_args(name, "f4"),
            unary_reference(name),
            grid=4,
            rtol=1e-5,
            atol=1e-5,
            options={"fastmath": True},
        )
        for name in ("sin", "cos", "tan", "exp", "log", "log2", "log10", "sqrt", "tanh")
    ),
    *(
        Case(
            f"binary {t}",
            binary,
            numbers(t, 2, 1, 3, out=((6, N), t)),
            binary_reference,
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 3e-6), ("f8", 1e-14))
    ),
    *(
        Case(
            f"large angles {t}",
            large_angles,
            numbers(t, 1, 1e5, high),
            assign(lambda x: np.sin(x.astype("f8")) + np.cos(x.astype("f8"))),
            grid=4,
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol, high in (("f4", 1e-6, 1e30), ("f8", 1e-14, 1e200))
    ),
    Case(
        "Black and Scholes",
        black_scholes,
        lambda rng: (*(rng.uniform(1, 2, N) for _ in range(3)), np.zeros(N)),
        black_scholes_reference,
        grid=4,
        rtol=1e-12,
    ),
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
        lambda rng: (rng.random((20, 13), "f4"), rng.random((13, 27), "f4"), np.zeros((20, 27), "f4")),
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


def compiled(case, args, arch):
    """Return the kernel that Numba makes for arguments like these."""
    types = tuple(numba.typeof(a) for a in args)
    cc = divmod(arch, 10)
    ptx, _ = cuda.compile_ptx(case.kernel, types, cc=cc, **case.options)
    code = cu.ObjectCode.from_ptx(ptx)
    (name,) = code.kernels
    return code[name]


def expanded(args):
    """Return what a kernel of Numba's takes for each array: seven fields, and more by dimension.

    They are the object that owns the memory, its parent, sizes, data, shape and strides.
    """
    for a in args:
        if isinstance(a, np.ndarray):
            yield from (None, None, a.size, a.itemsize, a, *a.shape, *a.strides)
        elif isinstance(a, complex):
            yield from (a.real, a.imag)
        else:
            yield a


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numba(launcher, case, arch):
    def launch(args):
        kernel = compiled(case, args, arch)
        launcher(kernel, case.grid, case.block, [*expanded(args)], shared=case.shared)

    case.check(launch)
