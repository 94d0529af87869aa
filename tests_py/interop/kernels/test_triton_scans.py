# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles: reductions, scans, atomics, random numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from .cases import Case, make, uniform, whole, written, zeros

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

N = 300
BF16 = np.dtype(ml_dtypes.bfloat16)


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


CASES = [
    *(
        Case(
            f"reductions {t} {r}x{c}, {warps} warps",
            reductions,
            make(whole(-60, 60, t, r, c), zeros(t, 5), zeros(t, r), zeros(t, c)),
            reductions_reference,
            options={"R": r, "C": c, "num_warps": warps},
        )
        for t, r, c, warps in (
            ("i4", 8, 64, 4),
            ("i8", 32, 16, 2),
            ("f4", 16, 16, 1),
            ("f8", 4, 64, 8),
        )
    ),
    Case(
        "xor and product",
        xor_and_product,
        make(whole(-(2**31), 2**31, "i4", 256), zeros("i4", 2)),
        written(lambda x: (np.bitwise_xor.reduce(x), np.multiply.reduce(x))),
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
            written(lambda x, down=down: np.sort(x, 1)[:, :: -1 if down else 1]),
            grid=3,
            options={"B": 128, "DESCENDING": down},
        )
        for t, down in (("i4", False), ("f4", True), ("i2", False), ("f2", False))
    ),
    Case(
        "top four",
        top_four,
        make(uniform(0, 1, "f4", 3, 64), zeros("f4", 3, 4)),
        written(lambda x: np.sort(x, 1)[:, :-5:-1]),
        grid=3,
        options={"B": 64},
    ),
    *(
        Case(
            f"atomic sum {np.dtype(t).name}",
            atomic_sum,
            make(whole(0, 9, t), zeros(t, 8), N),
            atomic_sum_reference,
            grid=3,
            options={"B": 128, "first": 90 if t is BF16 else 75},
        )
        for t in ("i4", "i8", "f2", BF16, "f4", "f8")
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


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_triton(run_triton, case, arch):
    if arch < case.options.get("first", 0):
        pytest.skip("Triton does not compile this for so early an architecture")
    case.check(lambda args: run_triton(case, args, arch))
