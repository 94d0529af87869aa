# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Whether tensors of any strides have a byte in common, and whether elements of one have.

A byte is on both sides if a sum of the steps of both, each taken no more often than its shape
allows, is the distance of the sides, give or take an element. So this is a question about whole
numbers. The answer is exact, but where a search would take long: then memory counts as shared.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .tensor import Tensor

    _Steps = tuple[int, int]  # the length of one, and how often it is taken at most

_MOST_SUMS = 1 << 12  # that a search looks at for one dimension, which takes milliseconds


class _Side(NamedTuple):
    """One side: its shape, its strides in elements, and the bytes of an element."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item: int

    @property
    def steps(self) -> list[_Steps]:
        """Those in bytes, of each dimension that has some."""
        dims = zip(self.shape, self.strides, strict=True)
        return [(abs(s) * self.item, n - 1) for n, s in dims if n > 1 and s]

    @property
    def ends(self) -> tuple[int, int]:
        """The bytes from the first element to the lowest byte, and to that behind the highest."""
        ways = [(n - 1) * s * self.item for n, s in zip(self.shape, self.strides, strict=True)]
        return sum(w for w in ways if w < 0), sum(w for w in ways if w > 0) + self.item


def share(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors, with elements of whole bytes, have a byte in common."""
    if not a.size or not b.size:
        return False
    if a.is_contiguous and b.is_contiguous:
        return a.handle < b.handle + b.nbytes and b.handle < a.handle + a.nbytes
    sides = _Side(a.shape, a.strides, a.itemsize), _Side(b.shape, b.strides, b.itemsize)
    return _share(*sides, b.handle - a.handle)


def are_same(a: Tensor, b: Tensor) -> bool:
    """Whether each element of a tensor is that of the other, which has its shape and item size."""
    strides = zip(a.shape, a.strides, b.strides, strict=True)
    return a.handle == b.handle and all(n == 1 or s == t for n, s, t in strides)


def is_repeated(t: Tensor) -> bool:
    """Whether elements of a tensor lie in the same memory."""
    return not t.is_contiguous and _is_repeated(t.shape, t.strides)


def check_once(t: Tensor, what: str) -> None:
    """Refuse to write elements that lie in the same memory: the order would decide."""
    if is_repeated(t):
        raise ValueError(
            f"{what} has elements that may lie in the same memory, by its strides {t.strides}: "
            "each must be written once"
        )


@lru_cache(256)  # loops ask for the same again and again
def _share(a: _Side, b: _Side, distance: int) -> bool:
    """Whether sides have a byte in common whose first elements have this distance."""
    (start, end), (first, last) = a.ends, b.ends
    if first + distance >= end or start >= last + distance:
        return False
    # Of one side the indices count from its end, so that no step is taken backwards.
    high = last + distance - start - 1
    return _is_sum((*a.steps, *b.steps), high - a.item - b.item + 2, high)


@lru_cache(256)
def _is_repeated(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    if 0 in shape:
        return False
    dims = sorted((abs(s), n - 1) for n, s in zip(shape, strides, strict=True) if n > 1)
    # Two indices differ in a dimension of longest steps, there by a step at least, and in shorter
    # ones by any number. Both signs are alike, and the differences count from their least.
    for k, (step, most) in enumerate(dims):
        shorter = [(s, 2 * n) for s, n in dims[:k]]
        there = step * most + sum(s * n for s, n in dims[:k])
        if not step or _is_sum((*shorter, (step, most - 1)), there, there):
            return True
    return False


def _is_sum(steps: Sequence[_Steps], low: int, high: int) -> bool:
    """Whether some of the steps, each so often at most, lead to a number from low to high."""
    left = {*range(max(low, 0), high + 1)}
    dims = _merged(steps)
    while len(dims) > 2:
        ways = [_ways(left, d, dims[:k] + dims[k + 1 :]) for k, d in enumerate(dims)]
        counts = [sum(map(len, times.values())) for times in ways]
        least = min(counts)
        if least > _MOST_SUMS:
            return True
        k = counts.index(least)
        step, _ = dims.pop(k)
        left = {number - step * n for number, times in ways[k].items() for n in times}
    first, other, *_ = [*dims, (1, 0), (1, 0)]
    return any(_ways(left, first, [other]).values())


def _ways(left: Iterable[int], steps: _Steps, others: Sequence[_Steps]) -> dict[int, range]:
    """Return how often steps can be taken to each number, by what is known of the others.

    These have sums that are multiples of a unit, up to some number of it. Of one all such are sums.
    """
    unit = math.gcd(*(step for step, _ in others))
    most = sum(step * n for step, n in others) // unit
    return {number: _times(number, *steps, unit, most) for number in left}


def _merged(steps: Sequence[_Steps]) -> list[_Steps]:
    """Return fewer steps that have the same sums, the shortest first.

    A step is of no use beside shorter ones that go as far without a gap.
    """
    out: list[_Steps] = []
    for step, most in sorted(s for s in steps if s[1]):
        for k, (short, often) in enumerate(out):
            if step % short == 0 and step // short <= often + 1:
                out[k] = short, often + step // short * most
                break
        else:
            out.append((step, most))
    return out


def _times(number: int, step: int, most: int, unit: int, rest: int) -> range:
    """Return how often a step can be taken so that up to `rest` units remain to the number."""
    common = math.gcd(step, unit)
    if number % common:
        return range(0)
    ring = unit // common
    first = max(0, -((unit * rest - number) // step))
    turn = number // common * pow(step // common, -1, ring) % ring
    return range(first + (turn - first) % ring, min(most, number // step) + 1, ring)
