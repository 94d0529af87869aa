# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles: elements, reductions, scans, atomics."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from .cases import Case

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
libdevice = pytest.importorskip("triton.language.extra.cuda.libdevice")

N = 300


# --- elements ------------------------------------------------------------------------------------


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def persistent_scale(x, factor, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        value = tl.load(x + i, mask=i < n, other=0.0)
        tl.store(x + i, tl.where(value > 0, value * factor, -value), mask=i < n)


@triton.jit
def integers(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    a, b = tl.load(x + i, mask=inside, other=1), tl.load(y + i, mask=inside, other=1)
    tl.store(out + i, a // b, mask=inside)  # as in C: towards zero
    tl.store(out + n + i, a % b, mask=inside)
    tl.store(out + 2 * n + i, (a << (b & 7)) ^ (a >> 3) | ~b & a, mask=inside)
    tl.store(out + 3 * n + i, tl.minimum(a, b) * tl.maximum(a, b) + tl.abs(a), mask=inside)


def integers_reference(x, y, out, n):
    wide_x, wide_y = x.astype(object), y.astype(object)
    quotient = np.array([abs(a) // abs(b) * (1 if a * b >= 0 else -1) for a, b in zip(wide_x, wide_y)])
    out[0] = quotient
    out[1] = wide_x - quotient * wide_y
    out[2] = (x << (y & 7)) ^ (x >> 3) | ~y & x
    out[3] = np.minimum(x, y) * np.maximum(x, y) + abs(x)


@triton.jit
def high_halves(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


@triton.jit
def converted(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def mathematics(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=1.0)
    tl.store(out + 0 * n + i, tl.exp(v), mask=inside)
    tl.store(out + 1 * n + i, tl.exp2(v), mask=inside)
    tl.store(out + 2 * n + i, tl.log(v), mask=inside)
    tl.store(out + 3 * n + i, tl.log2(v), mask=inside)
    tl.store(out + 4 * n + i, tl.sin(v), mask=inside)
    tl.store(out + 5 * n + i, tl.cos(v), mask=inside)
    tl.store(out + 6 * n + i, tl.sqrt(v), mask=inside)
    tl.store(out + 7 * n + i, tl.rsqrt(v), mask=inside)
    tl.store(out + 8 * n + i, tl.erf(v), mask=inside)
    tl.store(out + 9 * n + i, tl.floor(v * 9) + tl.ceil(v * 7), mask=inside)
    tl.store(out + 10 * n + i, tl.fma(v, v, 1 / v), mask=inside)
    tl.store(out + 11 * n + i, tl.sigmoid(v), mask=inside)


def mathematics_reference(x, out, n):
    x = x.astype("f8")
    erf = np.vectorize(math.erf)
    out[:] = np.exp(x), np.exp2(x), np.log(x), np.log2(x), np.sin(x), np.cos(x), np.sqrt(x), x**-0.5, erf(
        x
    ), np.floor(np.float32(9) * x) + np.ceil(np.float32(7) * x), x * x + 1 / x, 1 / (1 + np.exp(-x))


@triton.jit
def rounded(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.div_rn(a, b))
    tl.store(out + B + i, tl.sqrt_rn(a))


@triton.jit
def device_library(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=1.0)
    tl.store(out + 0 * n + i, libdevice.tanh(v), mask=inside)
    tl.store(out + 1 * n + i, libdevice.pow(v, v + 1), mask=inside)
    tl.store(out + 2 * n + i, libdevice.atan2(v, v + 1), mask=inside)
    tl.store(out + 3 * n + i, libdevice.log1p(v), mask=inside)
    tl.store(out + 4 * n + i, libdevice.expm1(v), mask=inside)
    tl.store(out + 5 * n + i, libdevice.asin(v), mask=inside)
    tl.store(out + 6 * n + i, libdevice.lgamma(v + 1), mask=inside)
    tl.store(out + 7 * n + i, libdevice.rint(v * 9), mask=inside)


def device_library_reference(x, out, n):
    y = x.astype("f8")
    lgamma = np.vectorize(math.lgamma)
    out[:] = np.tanh(y), y ** (y + 1), np.arctan2(y, y + 1), np.log1p(y), np.expm1(y), np.arcsin(
        y
    ), lgamma(y + 1), np.rint(x * x.dtype.type(9))


@triton.jit
def assembly(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.inline_asm_elementwise(
        "lop3.b32 $0, $1, 255, 0xf0f0f0f0, 0x6a;", "=r,r", [tl.load(x + i)], tl.int32, True, 1
    )
    tl.store(out + i, v)


def assembly_reference(x, out):
    out[:] = (np.uint32(0xF0F0F0F0) ^ (x.view("u4") & np.uint32(255))).view("i4")


@triton.jit
def shapes(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    even, odd = tl.split(tl.reshape(tl.load(x + tl.arange(0, 2 * B)), (B, 2)))
    tl.store(out + tl.arange(0, 2 * B), tl.interleave(odd, even))
    tl.store(out + 2 * B + tl.arange(0, 2 * B), tl.cat(even, odd, can_reorder=False))
    tl.store(out + 4 * B + i, tl.flip(even))
    grid = tl.trans(tl.reshape(odd, (8, B // 8)))
    tl.store(out + 5 * B + i, tl.reshape(grid, (B,)))


def shapes_reference(x, out):
    even, odd = x[::2], x[1::2]
    mixed = np.stack([odd, even], 1).reshape(-1)
    out[:] = np.concatenate([mixed, even, odd, even[::-1], odd.reshape(8, -1).T.reshape(-1)])


@triton.jit
def gathered(x, index, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


# --- rows ----------------------------------------------------------------------------------------


@triton.jit
def softmax(x, out, width, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * width + i, mask=i < width, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * width + i, e / tl.sum(e, 0), mask=i < width)


def softmax_reference(x, out, width):
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True).astype("f8"))
    out[:] = (e / e.sum(1, keepdims=True)).astype(out.dtype)


@triton.jit
def layer_norm(x, weight, bias, out, width, eps, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    inside = i < width
    v = tl.load(x + row * width + i, mask=inside, other=0.0)
    mean = tl.sum(v, 0) / width
    centred = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / width + eps)
    w, b = tl.load(weight + i, mask=inside), tl.load(bias + i, mask=inside)
    tl.store(out + row * width + i, centred * scale * w + b, mask=inside)


def layer_norm_reference(x, weight, bias, out, width, eps):
    centred = x - x.mean(1, keepdims=True)
    out[:] = centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * weight + bias


@triton.jit
def layer_norm_gradient(dy, x, dw, lock, count, width, B: tl.constexpr):
    """Add up rows under a lock, which the first of each group only stores."""
    row = tl.program_id(0)
    i = tl.arange(0, B)
    inside = i < width
    part = tl.load(dy + row * width + i, mask=inside, other=0.0)
    part *= tl.load(x + row * width + i, mask=inside, other=0.0)
    group = row % 2
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    if tl.load(count + group) == 0:
        tl.atomic_xchg(count + group, 1)
    else:
        part += tl.load(dw + group * width + i, mask=inside)
    tl.store(dw + group * width + i, part, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock + group, 0)


def layer_norm_gradient_reference(dy, x, dw, lock, count, width):
    product = dy * x
    dw[0], dw[1] = product[::2].sum(0), product[1::2].sum(0)
    count[:] = 1


@triton.jit
def cross_entropy(logits, targets, loss, width, B: tl.constexpr):
    row = tl.program_id(0)
    highest = -float("inf")
    total = 0.0
    for start in range(0, width, B):
        i = start + tl.arange(0, B)
        v = tl.load(logits + row * width + i, mask=i < width, other=-float("inf"))
        new = tl.maximum(highest, tl.max(v, 0))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(v - new), 0)
        highest = new
    picked = tl.load(logits + row * width + tl.load(targets + row))
    tl.store(loss + row, highest + tl.log(total) - picked)


def cross_entropy_reference(logits, targets, loss, width):
    log_sum = np.log(np.exp(logits.astype("f8")).sum(1))
    loss[:] = log_sum - logits[np.arange(len(targets)), targets]


@triton.jit
def rotary(x, angle, B: tl.constexpr):
    i = tl.arange(0, B)
    row = x + tl.program_id(0) * 2 * B
    a, b = tl.load(row + i), tl.load(row + B + i)
    c, s = tl.cos(tl.load(angle + i)), tl.sin(tl.load(angle + i))
    tl.store(row + i, a * c - b * s)
    tl.store(row + B + i, a * s + b * c)


def rotary_reference(x, angle):
    a, b = np.split(x.copy(), 2, 1)
    c, s = np.cos(angle), np.sin(angle)
    x[:] = np.concatenate([a * c - b * s, a * s + b * c], 1)


# --- reductions and scans ------------------------------------------------------------------------


@triton.jit
def reductions(x, out, rows_out, columns_out, R: tl.constexpr, C: tl.constexpr):
    v = tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    flat = tl.reshape(v, (R * C,))
    tl.store(out + 0, tl.sum(flat, 0))
    tl.store(out + 1, tl.max(flat, 0))
    tl.store(out + 2, tl.min(flat, 0))
    # Of a reshaped tensor, Triton 3.9 counts elements in an order of its own.
    ordered = tl.load(x + tl.arange(0, R * C))
    tl.store(out + 3, tl.argmax(ordered, 0))
    tl.store(out + 4, tl.argmin(ordered, 0))
    tl.store(rows_out + tl.arange(0, R), tl.sum(v, 1))
    tl.store(columns_out + tl.arange(0, C), tl.max(v, 0))


def reductions_reference(x, out, rows, columns):
    out[:] = x.sum(dtype=x.dtype), x.max(), x.min(), x.argmax(), x.argmin()
    rows[:], columns[:] = x.sum(1), x.max(0)


@triton.jit
def xor_and_product(x, out, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    tl.store(out, tl.xor_sum(v, 0))
    tl.store(out + 1, tl.reduce(v, 0, _times))


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    part = n_b / n
    return mean_a + delta * part, m2_a + m2_b + delta * delta * n_a * part, n


@triton.jit
def welford(x, out, B: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * B + tl.arange(0, B))
    mean, m2, n = tl.reduce((v, tl.zeros_like(v), tl.full((B,), 1.0, tl.float32)), 0, _welford)
    tl.store(out + tl.program_id(0) * 2, mean)
    tl.store(out + tl.program_id(0) * 2 + 1, m2 / n)


def welford_reference(x, out):
    out[:] = np.stack([x.mean(1), x.var(1)], 1)


@triton.jit
def _recurrence(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def recurrence(a, b, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    _, h = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, _recurrence)
    tl.store(out + i, h)


def recurrence_reference(a, b, out):
    h = np.zeros(a.shape[0])
    for k in range(a.shape[1]):
        h = a[:, k] * h + b[:, k]
        out[:, k] = h


@triton.jit
def scans(x, out, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, 0))
    tl.store(out + R * C + at, tl.cumsum(v, 1))
    tl.store(out + 2 * R * C + at, tl.cumsum(v, 1, reverse=True))
    tl.store(out + 3 * R * C + at, tl.cumprod(v, 1))


def scans_reference(x, out):
    out[0], out[1] = x.cumsum(0), x.cumsum(1)
    out[2], out[3] = x[:, ::-1].cumsum(1)[:, ::-1], x.cumprod(1)


@triton.jit
def histogram(x, out, n, B: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    counts = tl.histogram(tl.load(x + i, mask=i < n, other=0), BINS, mask=i < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def sorted_rows(x, out, B: tl.constexpr, DESCENDING: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.sort(tl.load(x + i), descending=DESCENDING))


@triton.jit
def top_four(x, out, B: tl.constexpr):
    row = tl.program_id(0)
    best = tl.topk(tl.load(x + row * B + tl.arange(0, B)), 4)
    tl.store(out + row * 4 + tl.arange(0, 4), best)


# --- atomics and random numbers ------------------------------------------------------------------


@triton.jit
def atomic_sum(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + i % 8, tl.load(x + i, mask=i < n, other=0), mask=i < n)


def atomic_sum_reference(x, out, n):
    for k in range(8):
        out[k] += x[k::8].sum()


@triton.jit
def atomic_others(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=0)
    tl.atomic_max(out + 0 * v, v, mask=inside)
    tl.atomic_min(out + 1 + 0 * v, v, mask=inside)
    tl.atomic_and(out + 2 + 0 * v, v, mask=inside, sem="relaxed")
    tl.atomic_or(out + 3 + 0 * v, v, mask=inside, sem="release")
    tl.atomic_xor(out + 4 + 0 * v, v, mask=inside, scope="sys")


def atomic_others_reference(x, out, n):
    out[0], out[1] = max(out[0], x.max()), min(out[1], x.min())
    out[2] &= np.bitwise_and.reduce(x)
    out[3] |= np.bitwise_or.reduce(x)
    out[4] ^= np.bitwise_xor.reduce(x)


@triton.jit
def atomic_float_extremes(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.atomic_max(out + i * 0, v, mask=i < n)
    tl.atomic_min(out + 1 + i * 0, v, mask=i < n)


def atomic_float_extremes_reference(x, out, n):
    out[0], out[1] = max(out[0], x.max()), min(out[1], x.min())


@triton.jit
def dropout(x, out, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, i) > p
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), mask=i < n)


def philox(seed, counter):
    """Return the first words of Philox 4x32-10, as in Salmon et al., 2011."""
    c = [counter.astype("u8"), *(np.zeros(len(counter), "u8") for _ in range(3))]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        high, low = np.uint64(32), np.uint64(0xFFFFFFFF)
        c = [
            b >> high ^ c[1] ^ np.uint64(key[0]),
            b & low,
            a >> high ^ c[3] ^ np.uint64(key[1]),
            a & low,
        ]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c[0].astype("u4")


def dropout_reference(x, out, n, p, seed):
    word = philox(seed, np.arange(n)).view("i4")
    uniform = np.where(word < 0, -word - 1, word) * np.float32(4.6566127342e-10)
    out[:] = np.where(uniform > np.float32(p), x / np.float32(1 - p), 0)


def assign(function):
    """Reference: the array `out` becomes what `function` makes of the arrays before it."""

    def reference(*args):
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        arrays[-1][...] = function(*arrays[:-1])

    return reference


def uniform(low, high, dtype, *shape):
    return lambda rng: rng.uniform(low, high, shape or N).astype(dtype)


def whole(low, high, dtype, *shape):
    return lambda rng: rng.integers(low, high, shape or N).astype(dtype)


def zeros(dtype, *shape):
    return lambda rng: np.zeros(shape or N, dtype)


def make(*makers):
    return lambda rng: tuple(m(rng) if callable(m) else m for m in makers)


FLOATS = {"f2": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16), "f4": np.dtype("f4")}
FLOATS |= {"f8": np.dtype("f8"), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
FLOATS["e4m3"] = np.dtype(ml_dtypes.float8_e4m3fn)

CASES = [
    *(
        Case(
            f"add {t}",
            add,
            make(whole(0, 50, t), whole(0, 50, t), zeros(t), N),
            assign(np.add),
            grid=5,
            options={"B": 64, "num_warps": warps},
        )
        for t, warps in (("i1", 1), ("i4", 2), ("i8", 4), ("f2", 4), ("f4", 1), ("f4", 8), ("f8", 2))
    ),
    Case(
        "add of aligned f4",
        add,
        make(uniform(0, 1, "f4", 1024), uniform(0, 1, "f4", 1024), zeros("f4", 1024), 1024),
        assign(np.add),
        options={"B": 1024},
    ),
    Case(
        "persistent scale",
        persistent_scale,
        make(uniform(-1, 1, "f4"), 2.5, N),
        lambda x, factor, n: np.copyto(x, np.where(x > 0, x * np.float32(factor), -x)),
        grid=2,
        options={"B": 32},
    ),
    *(
        Case(
            f"integers {t}",
            integers,
            make(whole(-99, 99, t), whole(1, 20, t), zeros(t, 4, N), N),
            integers_reference,
            options={"B": 512},
        )
        for t in ("i2", "i4", "i8")
    ),
    *(
        Case(
            f"high halves {t}",
            high_halves,
            make(whole(0, 2**31, t, 256), whole(0, 2**31, t, 256), zeros(t, 256)),
            assign(
                lambda x, y: (x.astype(object) * y.astype(object)) >> (8 * x.dtype.itemsize)
            ),
            options={"B": 256},
        )
        for t in ("u4", "u8")
    ),
    *(
        Case(
            f"{a} to {b}",
            converted,
            make(uniform(-100, 100, FLOATS.get(a, a)), zeros(FLOATS.get(b, b)), N),
            assign(lambda x, b=b: x.astype("f4").astype(FLOATS.get(b, b))),
            grid=5,
            options={"B": 64, "first": first},
        )
        for a, b, first in (
            ("f4", "f2", 75),
            ("f2", "f4", 75),
            ("f4", "bf16", 75),
            ("bf16", "f4", 75),
            ("f2", "bf16", 80),
            ("f4", "i4", 75),
            ("i4", "f4", 75),
            ("i1", "f2", 75),
            ("e5m2", "f4", 75),
            ("f4", "e5m2", 80),
            ("f2", "e5m2", 80),
            ("f4", "e4m3", 89),
            ("e4m3", "f4", 89),
            ("f2", "e4m3", 89),
            ("bf16", "e4m3", 89),
        )
    ),
    *(
        Case(
            f"mathematics {t}",
            mathematics,
            make(uniform(0.05, 0.95, t), zeros(t, 12, N), N),
            mathematics_reference,
            options={"B": 512},
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 2e-6), ("f8", 1e-13))
    ),
    Case(
        "rounded",
        rounded,
        make(uniform(0, 9, "f4", 256), uniform(1, 2, "f4", 256), zeros("f4", 2, 256)),
        assign(lambda x, y: (x / y, np.sqrt(x))),
        options={"B": 256},
    ),
    *(
        Case(
            f"device library {t}",
            device_library,
            make(uniform(0.05, 0.95, t), zeros(t, 8, N), N),
            device_library_reference,
            options={"B": 512},
            rtol=rtol,
            atol=rtol,
        )
        for t, rtol in (("f4", 2e-6), ("f8", 1e-14))
    ),
    Case(
        "assembly",
        assembly,
        make(whole(-(2**31), 2**31, "i4", 128), zeros("i4", 128)),
        assembly_reference,
        options={"B": 128},
    ),
    *(
        Case(
            f"shapes {t}",
            shapes,
            make(whole(0, 99, t, 256), zeros(t, 6 * 128)),
            shapes_reference,
            options={"B": 128},
        )
        for t in ("i4", "f2")
    ),
    Case(
        "gathered",
        gathered,
        make(uniform(0, 1, "f4", 128), whole(0, 128, "i4", 128), zeros("f4", 128)),
        assign(lambda x, index: x[index]),
        options={"B": 128},
    ),
    *(
        Case(
            f"softmax {t}, {warps} warps",
            softmax,
            make(uniform(-5, 5, t, 6, 200), zeros(t, 6, 200), 200),
            softmax_reference,
            grid=6,
            options={"B": 256, "num_warps": warps},
            rtol=rtol,
        )
        for t, warps, rtol in (("f4", 1, 1e-5), ("f4", 4, 1e-5), ("f4", 8, 1e-5), ("f2", 4, 2e-3))
    ),
    Case(
        "layer norm",
        layer_norm,
        make(
            uniform(-5, 5, "f4", 6, 200),
            uniform(0, 1, "f4", 200),
            uniform(0, 1, "f4", 200),
            zeros("f4", 6, 200),
            200,
            1e-5,
        ),
        layer_norm_reference,
        grid=6,
        options={"B": 256},
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "layer norm's gradient",
        layer_norm_gradient,
        make(
            uniform(-1, 1, "f4", 12, 100),
            uniform(-1, 1, "f4", 12, 100),
            zeros("f4", 2, 100),
            zeros("i4", 2),
            zeros("i4", 2),
            100,
        ),
        layer_norm_gradient_reference,
        grid=12,
        options={"B": 128},
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "cross entropy",
        cross_entropy,
        make(uniform(-5, 5, "f4", 5, 300), whole(0, 300, "i8", 5), zeros("f4", 5), 300),
        cross_entropy_reference,
        grid=5,
        options={"B": 128},
        rtol=1e-5,
    ),
    Case(
        "rotary",
        rotary,
        make(uniform(-1, 1, "f4", 4, 64), uniform(0, 6, "f4", 32)),
        rotary_reference,
        grid=4,
        options={"B": 32, "num_warps": 1},
        rtol=1e-5,
        atol=1e-6,
    ),
    *(
        Case(
            f"reductions {t} {r}x{c}, {warps} warps",
            reductions,
            make(whole(-60, 60, t, r, c), zeros(t, 5), zeros(t, r), zeros(t, c)),
            reductions_reference,
            options={"R": r, "C": c, "num_warps": warps},
        )
        for t, r, c, warps in (("i4", 8, 64, 4), ("i8", 32, 16, 2), ("f4", 16, 16, 1), ("f8", 4, 64, 8))
    ),
    Case(
        "xor and product",
        xor_and_product,
        make(whole(-(2**31), 2**31, "i4", 256), zeros("i4", 2)),
        assign(lambda x: (np.bitwise_xor.reduce(x), np.multiply.reduce(x))),
        options={"B": 256},
    ),
    Case(
        "Welford",
        welford,
        make(uniform(5, 6, "f4", 3, 512), zeros("f4", 3, 2)),
        welford_reference,
        grid=3,
        options={"B": 512},
        rtol=1e-4,
    ),
    Case(
        "recurrence",
        recurrence,
        make(uniform(0.5, 1, "f4", 3, 256), uniform(-1, 1, "f4", 3, 256), zeros("f4", 3, 256)),
        recurrence_reference,
        grid=3,
        options={"B": 256},
        rtol=1e-4,
        atol=1e-5,
    ),
    *(
        Case(
            f"scans {t}, {warps} warps",
            scans,
            make(whole(-3, 4, t, 16, 32), zeros(t, 4, 16, 32)),
            scans_reference,
            options={"R": 16, "C": 32, "num_warps": warps},
        )
        for t, warps in (("i4", 4), ("i8", 1), ("f8", 8))
    ),
    Case(
        "histogram",
        histogram,
        make(whole(0, 32, "i4"), zeros("i4", 32), N),
        lambda x, out, n: np.copyto(out, np.bincount(x, minlength=32)),
        grid=2,
        options={"B": 256, "BINS": 32},
    ),
    *(
        Case(
            f"sorted {t}{' down' * down}",
            sorted_rows,
            make(whole(-100, 100, t, 3, 128), zeros(t, 3, 128)),
            assign(lambda x, down=down: np.sort(x, 1)[:, :: -1 if down else 1]),
            grid=3,
            options={"B": 128, "DESCENDING": down},
        )
        for t, down in (("i4", False), ("f4", True), ("i2", False), ("f2", False))
    ),
    Case(
        "top four",
        top_four,
        make(uniform(0, 1, "f4", 3, 64), zeros("f4", 3, 4)),
        assign(lambda x: np.sort(x, 1)[:, :-5:-1]),
        grid=3,
        options={"B": 64},
    ),
    *(
        Case(
            f"atomic sum {t}",
            atomic_sum,
            make(whole(0, 9, FLOATS.get(t, t)), zeros(FLOATS.get(t, t), 8), N),
            atomic_sum_reference,
            grid=3,
            options={"B": 128, "first": 90 if t == "bf16" else 75},
        )
        for t in ("i4", "i8", "f2", "bf16", "f4", "f8")
    ),
    *(
        Case(
            f"atomic others {t}",
            atomic_others,
            make(whole(-(2**31), 2**31, t), lambda rng, t=t: np.array([0, 0, -1, 0, 0], t), N),
            atomic_others_reference,
            grid=3,
            options={"B": 128},
        )
        for t in ("i4", "i8")
    ),
    *(
        Case(
            f"atomic extremes {t}",
            atomic_float_extremes,
            make(uniform(-5, 5, t), zeros(t, 2), N),
            atomic_float_extremes_reference,
            options={"B": 512},
        )
        for t in ("f4", "f8")
    ),
    Case(
        "dropout",
        dropout,
        make(uniform(1, 2, "f4"), zeros("f4"), N, 0.4, 12345),
        dropout_reference,
        grid=3,
        options={"B": 128},
        rtol=1e-6,
    ),
]


@pytest.mark.parametrize("arch", [75, 80, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_triton(run_triton, case, arch):
    if arch < case.options.get("first", 0):
        pytest.skip("Triton does not compile this for so early an architecture")
    case.check(lambda args: run_triton(case, args, arch))
