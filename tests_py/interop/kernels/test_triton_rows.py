# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiles, on rows: softmax, layer norm, cross entropy, rotation."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, uniform, whole, zeros

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


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


CASES = [
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
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_triton(run_triton, case, arch):
    if arch < case.options.get("first", 0):
        pytest.skip("Triton does not compile this for so early an architecture")
    case.check(lambda args: run_triton(case, args, arch))
