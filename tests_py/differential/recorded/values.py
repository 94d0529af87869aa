# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Inputs: every pair of edge cases of a type, then random values of every magnitude."""

from __future__ import annotations

from functools import cache

import numpy as np

from .case import COUNT, bits, is_float, register_bits

# Exponent and mantissa bits.
_FORMATS = {"f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7)}


def _integer_edges(width: int) -> list[int]:
    top = 1 << (width - 1)
    edges = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255}
    edges |= {top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, top >> 1, (2 * top - 1) // 3}
    if width > 16:
        edges |= {0x7FFF, 0x8000, 0xFFFF, 0x10000, 2 * top - 0x8000, 0x01020304, 0xDEADBEEF}
    if width > 32:
        edges |= {0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, 2 * top - (1 << 31)}
    return sorted(e & (2 * top - 1) for e in edges)


def _float_edges(kind: str) -> list[int]:
    exponent, mantissa = _FORMATS[kind]
    one = ((1 << (exponent - 1)) - 1) << mantissa
    infinity = ((1 << exponent) - 1) << mantissa
    half = 1 << (mantissa - 1)
    edges = [
        0,
        1,
        2,
        (1 << mantissa) - 1,
        1 << mantissa,
        (1 << mantissa) + 1,
        one,
        one + 1,
        one - 1,
    ]
    edges += [one + half, one + (1 << mantissa), one + (1 << mantissa) + half // 2]
    edges += [one - (1 << mantissa), infinity, infinity - 1, infinity | half]
    # Where integers and fractions end, and where the integer types do.
    for power in (mantissa - 1, mantissa, mantissa + 1, 7, 8, 15, 16, 31, 32, 63, 64):
        value = one + (power << mantissa)
        if value < infinity:
            edges += [value, value - 1]
    edges += [e | 1 << (exponent + mantissa) for e in edges]
    return sorted(set(edges))


def _random(rng: np.random.Generator, kind: str, width: int, count: int) -> np.ndarray:
    raw = rng.integers(0, 1 << 64, count, dtype=np.uint64, endpoint=False)
    if not is_float(kind):
        # A third is short numbers of either sign, where sums and shifts do something.
        shift = rng.integers(0, 64, count).astype(np.uint64)
        short = raw >> shift
        short = np.where(rng.random(count) < 0.5, short, (~short) + np.uint64(1))
        raw = np.where(rng.random(count) < 0.4, short, raw)
    elif width in (32, 64, 16):
        # Half of them near one, so that sums do not only pick the larger operand.
        exponent, mantissa = _FORMATS[kind]
        near = rng.integers(-4, 12, count) + (1 << (exponent - 1)) - 1
        sign = (raw >> np.uint64(63)) << np.uint64(exponent + mantissa)
        fraction = raw & np.uint64((1 << mantissa) - 1)
        moderate = sign | (near.astype(np.uint64) << np.uint64(mantissa)) | fraction
        raw = np.where(rng.random(count) < 0.5, moderate, raw)
    return raw & np.uint64((1 << width) - 1)


@cache
def operand(kind: str, position: int) -> np.ndarray:
    """Return the raw bits of COUNT values, in elements as wide as their registers."""
    element, _, packed = kind.partition("x")
    if packed and not element.startswith("e"):
        low, high = operand(element, position), operand(element, (position + 1) % 3)
        return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    width = bits(kind)
    edges = np.array(_float_edges(kind) if is_float(kind) else _integer_edges(width), np.uint64)
    rng = np.random.default_rng([position, width, sum(kind.encode())])
    values = _random(rng, kind, width, COUNT)
    # The same order of pairs for every type with as many edges, so that operands of one case match.
    n = len(edges)
    pairs = np.random.default_rng(n).permutation(n * n)[: COUNT * 3 // 4]
    index = (pairs // n, pairs % n, pairs * 7 // 3)[position]
    values[: len(pairs)] = edges[index % n]
    return values.astype(f"u{register_bits(kind) // 8}")


def one_nan(kind: str, raw: np.ndarray) -> np.ndarray:
    """Return results in which every NaN is the same: its bits are not specified."""
    element = kind.partition("x")[0]
    if element not in _FORMATS:
        return raw
    exponent, mantissa = _FORMATS[element]
    narrow = raw.view(f"u{bits(element) // 8}").copy()
    magnitude = narrow & narrow.dtype.type((1 << (exponent + mantissa)) - 1)
    narrow[magnitude > ((1 << exponent) - 1) << mantissa] = (1 << (exponent + mantissa)) - 1
    return narrow.view(raw.dtype)


def as_floats(kind: str, raw: np.ndarray) -> np.ndarray:
    """Return raw bits as the numbers that they are, in float64."""
    element = kind.partition("x")[0]
    if element == "bf16":
        return (raw.view("u2").astype("u4") << np.uint32(16)).view("f4").astype("f8")
    return raw.view(f"f{bits(element) // 8}").astype("f8")
