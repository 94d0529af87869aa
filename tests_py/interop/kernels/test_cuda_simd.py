# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA C++ with the intrinsics on two halves or four bytes of a word."""

from __future__ import annotations

import numpy as np
import pytest

from .cases import Case, make, zeros

# name: (signedness of what it reads, what it makes of wide numbers, how that goes into an element)
WRAP, CLAMP, ALL_ONES, SUM = "wrap", "clamp", "all ones", "sum"
UNARY = {
    "vabs": ("s", np.abs, WRAP),
    "vabsss": ("s", np.abs, CLAMP),
    "vneg": ("s", np.negative, WRAP),
    "vnegss": ("s", np.negative, CLAMP),
}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def distance(a, b):
    return np.abs(a - b)


def average(a, b):
    """Round halves away from zero."""
    s = a + b
    return (s + (s >= 0)) >> 1


BINARY = {
    "vadd": ("u", np.add, WRAP),
    "vaddss": ("s", np.add, CLAMP),
    "vaddus": ("u", np.add, CLAMP),
    "vsub": ("u", np.subtract, WRAP),
    "vsubss": ("s", np.subtract, CLAMP),
    "vsubus": ("u", np.subtract, CLAMP),
    "vhaddu": ("u", lambda a, b: (a + b) >> 1, WRAP),
    "vavgs": ("s", average, WRAP),
    "vavgu": ("u", average, WRAP),
    "vabsdiffs": ("s", distance, WRAP),
    "vabsdiffu": ("u", distance, WRAP),
    "vsads": ("s", distance, SUM),
    "vsadu": ("u", distance, SUM),
    "vmins": ("s", np.minimum, WRAP),
    "vminu": ("u", np.minimum, WRAP),
    "vmaxs": ("s", np.maximum, WRAP),
    "vmaxu": ("u", np.maximum, WRAP),
} | {
    f"{kind}{name}{sign}": (sign or "u", compare, ALL_ONES if kind == "vcmp" else WRAP)
    for kind in ("vcmp", "vset")
    for name, compare in COMPARISONS.items()
    for sign in (("s", "u") if name not in ("eq", "ne") else ("",))
}
SOURCE = "".join(
    f"""extern "C" __global__ void {name}{n}(const unsigned *a, const unsigned *b, unsigned *out) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __{name}{n}({"a[i], b[i]" if name in BINARY else "a[i]"});
}}
"""
    for name in [*UNARY, *BINARY]
    for n in (2, 4)
)


def words(rng: np.random.Generator) -> np.ndarray:
    """Half of them are made of bytes at the edges of what a byte holds."""
    edges = rng.choice(np.array([0, 1, 0x7F, 0x80, 0xFF], "u1"), (256, 4)).view("u4")[:, 0]
    return np.concatenate([edges, rng.integers(0, 2**32, 256, dtype="u4")])


def reference(name: str, n: int):
    sign, operation, put = (UNARY | BINARY)[name]
    size = 4 // n

    def run(a, b, out):
        wide = [x.view(f"{'i' if sign == 's' else 'u'}{size}").astype("i8") for x in (a, b)]
        result = operation(*wide[: 1 if name in UNARY else 2]).astype("i8")
        if put == SUM:
            out[...] = result.reshape(-1, n).sum(1)
            return
        if put == CLAMP:
            limits = np.iinfo(f"{'i' if sign == 's' else 'u'}{size}")
            result = result.clip(limits.min, limits.max)
        if put == ALL_ONES:
            result = -result
        out[...] = result.astype(f"u{size}").view("u4")

    return run


CASES = [
    Case(
        f"{name}{n}",
        (SOURCE, f"{name}{n}"),
        make(words, words, zeros("u4", 512)),
        reference(name, n),
        grid=8,
    )
    for name in [*UNARY, *BINARY]
    for n in (2, 4)
]


@pytest.mark.parametrize("arch", [75, 90], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cuda(run_cuda, case, arch):
    case.check(lambda args: run_cuda(case, args, arch))
