# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles: products of matrices, pipelines of loads, attention."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import cudago as cu

from .cases import Case, make, uniform, whole, zeros

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)


@triton.jit
def matmul(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    pa = a + rows[:, None] * k + inner[None, :]
    pb = b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((BM, BN), tl.int32 if c.dtype.element_ty == tl.int32 else tl.float32)
    for start in range(0, k, BK):
        left = inner[None, :] < k - start
        va = tl.load(pa, mask=(rows[:, None] < m) & left, other=0.0)
        vb = tl.load(pb, mask=(inner[:, None] < k - start) & (columns[None, :] < n), other=0.0)
        total = tl.dot(va, vb, total, input_precision=PRECISION, out_dtype=total.dtype)
        pa += BK
        pb += BK * n
    at = c + rows[:, None] * n + columns[None, :]
    tl.store(at, total.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul_reference(a, b, c, m, n, k):
    wide = "i8" if c.dtype.kind == "i" else "f8"
    c[:] = (a.astype(wide) @ b.astype(wide)).astype(c.dtype)


@triton.jit
def split_matmul(a, b, c, n, k, B: tl.constexpr, PARTS: tl.constexpr):
    """Products of parts of the inner dimension, added by atomics; b is transposed."""
    i = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for start in range(tl.program_id(0) * B, k, PARTS * B):
        va = tl.load(a + i[:, None] * k + start + i[None, :])
        vb = tl.load(b + i[:, None] * k + start + i[None, :])
        total += tl.dot(va, tl.trans(vb))
    tl.atomic_add(c + i[:, None] * n + i[None, :], total)


def split_matmul_reference(a, b, c, n, k):
    c += a.astype("f4") @ b.astype("f4").T


@triton.jit
def batched(a, b, c, B: tl.constexpr, S: tl.constexpr):
    at = tl.arange(0, B)[:, None, None] * S * S
    at += tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def linear(x, w, bias, out, B: tl.constexpr, K: tl.constexpr):
    i, inner = tl.arange(0, B), tl.arange(0, K)
    vx = tl.load(x + i[:, None] * K + inner[None, :])
    vw = tl.load(w + i[:, None] * K + inner[None, :])
    v = tl.dot(vx, tl.trans(vw)) + tl.load(bias + i)[None, :]
    v = 0.5 * v * (1 + tl.erf(v * 0.7071067811865476))
    tl.store(out + i[:, None] * B + i[None, :], v.to(tl.float16))


def linear_reference(x, w, bias, out):
    import math

    v = x.astype("f4") @ w.astype("f4").T + bias
    out[:] = 0.5 * v * (1 + np.vectorize(math.erf)(v * 0.5**0.5))


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    scale,
    n,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """Softmax of the products, block of keys by block of keys, without the whole matrix."""
    head = tl.program_id(1) * n * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    vq = tl.load(q + head + rows[:, None] * D + d[None, :])
    highest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else n
    for start in range(0, end, BN):
        keys = start + tl.arange(0, BN)
        vk = tl.load(k + head + keys[None, :] * D + d[:, None])
        score = tl.dot(vq, vk) * (scale * 1.4426950408889634)
        if CAUSAL:
            score = tl.where(rows[:, None] >= keys[None, :], score, float("-inf"))
        new = tl.maximum(highest, tl.max(score, 1))
        weight = tl.exp2(score - new[:, None])
        fade = tl.exp2(highest - new)
        total = total * fade + tl.sum(weight, 1)
        vv = tl.load(v + head + keys[:, None] * D + d[None, :])
        result = tl.dot(weight.to(vv.dtype), vv, result * fade[:, None])
        highest = new
    result /= total[:, None]
    tl.store(out + head + rows[:, None] * D + d[None, :], result.to(out.dtype.element_ty))


def attention_reference(causal):
    def reference(q, k, v, out, scale, n):
        score = np.einsum("hid,hjd->hij", q.astype("f4"), k.astype("f4")) * scale
        if causal:
            score = np.where(np.tri(n, dtype=bool), score, -np.inf)
        e = np.exp(score - score.max(-1, keepdims=True))
        e /= e.sum(-1, keepdims=True)
        out[:] = np.einsum("hij,hjd->hid", e, v.astype("f4")).astype(out.dtype)

    return reference


def unit(dtype, *shape):
    return uniform(-1, 1, dtype, *shape)


def bytes_(dtype, *shape):
    return whole(-100, 100, dtype, *shape)


def product(name, ab, c, shape, blocks, tolerance, first=75, last=90, **options):
    """Case of `matmul`."""
    m, n, k = shape
    bm, bn, bk = blocks
    fill = bytes_ if np.dtype(ab).kind == "i" else unit
    options = {"PRECISION": "ieee", **options, "first": first, "last": last}
    return Case(
        f"matmul {name}, {m}x{n}x{k} by {bm}x{bn}x{bk}",
        matmul,
        make(fill(ab, m, k), fill(ab, k, n), zeros(c, m, n), m, n, k),
        matmul_reference,
        grid=(-(-m // bm), -(-n // bn)),
        rtol=tolerance,
        atol=tolerance,
        options={"BM": bm, "BN": bn, "BK": bk, **options},
    )


# Without the last block of 64 rows, and on four warps, Hopper takes wgmma.
SMALL, WIDE = (48, 40, 72), (64, 64, 96)
CASES = [
    product("f2", "f2", "f4", SMALL, (16, 16, 16), 1e-4),
    product("f2, 2 warps", "f2", "f2", SMALL, (32, 32, 32), 4e-3, num_warps=2),
    product("f2, pipelined", "f2", "f4", WIDE, (32, 64, 32), 1e-4, num_stages=3),
    product("f2, 4 stages", "f2", "f4", (32, 32, 256), (32, 32, 32), 1e-4, num_stages=4),
    product("f2, 1 stage, 8 warps", "f2", "f4", WIDE, (64, 64, 32), 1e-4, last=86, num_warps=8),
    product("bf16", BF16, "f4", WIDE, (32, 32, 32), 1e-4, first=80),
    product("f4 exact", "f4", "f4", SMALL, (16, 16, 16), 1e-5),
    product("tf32", "f4", "f4", WIDE, (32, 32, 32), 5e-3, first=80, PRECISION="tf32"),
    product("3 x tf32", "f4", "f4", WIDE, (32, 32, 16), 1e-5, first=80, PRECISION="tf32x3"),
    product("i1", "i1", "i4", WIDE, (32, 32, 32), 0, first=80),
    product("i1, pipelined", "i1", "i4", (32, 32, 256), (16, 32, 64), 0, first=80, num_stages=3),
    product("e5m2", E5M2, "f4", WIDE, (32, 32, 32), 1e-4, first=80),
    product("e4m3", E4M3, "f4", WIDE, (32, 32, 32), 1e-4, first=90),
    Case(
        "split matmul",
        split_matmul,
        make(unit("f2", 32, 128), unit("f2", 32, 128), zeros("f4", 32, 32), 32, 128),
        split_matmul_reference,
        grid=2,
        rtol=1e-4,
        atol=1e-4,
        options={"B": 32, "PARTS": 2},
    ),
    Case(
        "batched",
        batched,
        make(unit("f2", 4, 16, 16), unit("f2", 4, 16, 16), zeros("f4", 4, 16, 16)),
        lambda a, b, c: np.matmul(a.astype("f4"), b.astype("f4"), out=c),
        rtol=1e-4,
        atol=1e-4,
        options={"B": 4, "S": 16},
    ),
    Case(
        "linear layer and GELU",
        linear,
        make(unit("f2", 32, 64), unit("f2", 32, 64), unit("f4", 32), zeros("f2", 32, 32)),
        linear_reference,
        rtol=4e-3,
        atol=4e-3,
        options={"B": 32, "K": 64},
    ),
    *(
        Case(
            f"attention {name}{', causal' * causal}, {stages} stages",
            attention,
            make(*(unit(t, 2, 64, d) for _ in range(3)), zeros(t, 2, 64, d), 0.2, 64),
            attention_reference(causal),
            grid=(2, 2),
            rtol=1e-2,
            atol=1e-2,
            options={"D": d, "BM": 32, "BN": 32, "CAUSAL": causal, "num_stages": stages}
            | {"num_warps": warps, "first": first},
        )
        for name, t, d, causal, stages, warps, first in (
            ("f2", "f2", 32, False, 2, 4, 75),
            ("f2", "f2", 32, True, 3, 2, 75),
            ("bf16", BF16, 64, True, 2, 4, 80),
        )
    ),
]


@pytest.mark.parametrize("arch", [75, 80, 86, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_triton(run_triton, case, arch):
    if not case.options.get("first", 0) <= arch <= case.options.get("last", 90):
        pytest.skip("not for this architecture")
    case.check(lambda args: run_triton(case, args, arch))


@pytest.mark.parametrize("arch", [90], indirect=True)
@pytest.mark.parametrize("dtype", ["f2", "i1"])
def test_wgmma_is_refused_by_name(run_triton, driver, arch, dtype):
    if driver != "sim":
        pytest.skip("a GPU runs it")
    case = product("", dtype, "i4" if dtype == "i1" else "f4", (64, 64, 64), (64, 64, 64), 0)
    with pytest.raises(cu.UnsupportedError, match=r"wgmma.*cannot run on the simulated device"):
        case.check(lambda args: run_triton(case, args, arch))


@triton.jit
def described(x, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [BM, BN])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [BM, BN])
    at = [tl.program_id(0) * BM, 0]
    target.store(at, source.load(at) + 1)


DESCRIBED = Case(
    "described",
    described,
    make(unit("f4", 32, 64), zeros("f4", 32, 64), 32, 64),
    lambda x, out, m, n: np.add(x, 1, out=out),
    grid=2,
    options={"BM": 16, "BN": 64},
)


@pytest.mark.parametrize("arch", [75, 80], indirect=True)
def test_descriptors_without_tma(run_triton, arch):
    DESCRIBED.check(lambda args: run_triton(DESCRIBED, args, arch))


@pytest.mark.parametrize("arch", [90], indirect=True)
def test_tma_is_refused_by_name(run_triton, driver, arch):
    if driver != "sim":
        pytest.skip("a GPU runs it")
    args = DESCRIBED.args(np.random.default_rng(0))
    made = run_triton.compile(described, args, arch, DESCRIBED.options)
    code = cu.ObjectCode.from_ptx(made.asm["ptx"])
    with pytest.raises(cu.UnsupportedError, match=r"tensormap|cp\.async\.bulk"):
        code.get_kernel("described")
