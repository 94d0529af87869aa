# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reductions along axes: for each result some lanes, whose values are combined when all is read."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .._kernel.launch import LaunchConfig
from .._native import number_text, value_text
from . import walk
from .expression import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import SupportsIndex

    from .tensor import Tensor

_WARP = 32
_MANY = 1024  # of elements for a block
_THREADS = 1 << 18  # that a device can run at a time, more or less
_MOST_PARTS = 1024
_MOST_BLOCKS = 1 << 20  # the kernel's loop does the rest
_ENOUGH = 16  # elements for a thread of a part
_FEW = 8  # elements for a thread where there are threads enough


class Axes(NamedTuple):
    """What is reduced of a shape: its axes, and the shape that is left."""

    reduced: tuple[int, ...]
    kept: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...], axis: Any, keepdims: bool, name: str) -> Axes:
        """Return the axes of a shape that a call names; all of them by None."""
        count = len(sizes)
        all_axes: Any = range(count) if axis is None else axis
        given: Iterable[Any] = all_axes if axis is None or isinstance(axis, tuple) else (axis,)
        reduced: list[int] = []
        for one in given:
            at = _index(one, name)
            if not -count <= at < count:
                raise ValueError(
                    f"axis of {name} must be {-count} to {count - 1} for {count} dimensions, "
                    f"got {number_text(at)}"
                    if count
                    else f"axis of {name} must be None or () without dimensions, "
                    f"got {number_text(at)}"
                )
            if at % count in reduced:
                told = value_text(cast("object", axis))
                raise ValueError(f"axis of {name} must not be given twice, got {told}")
            reduced.append(at % count)
        kept = tuple(d for d in range(count) if d not in reduced)
        ones = [1 if d in reduced else n for d, n in enumerate(sizes)]
        shape = tuple(ones) if keepdims else tuple(sizes[d] for d in kept)
        return cls(tuple(sorted(reduced)), kept, shape)

    def steps(self, sizes: tuple[int, ...], out: Tensor | None) -> tuple[int, ...]:
        """Return the strides of the results in `out`, or in a new tensor without gaps."""
        if out is None or not self.kept:
            return walk.rows([sizes[d] for d in self.kept])
        if len(self.shape) < len(sizes):
            return tuple(out.strides)
        return tuple(out.strides[d] for d in self.kept)


def _index(axis: object, name: str) -> int:
    if isinstance(axis, bool) or not hasattr(type(axis), "__index__"):
        raise TypeError(
            f"axis of {name} must be an int, a tuple of ints, or None, got {type(axis).__name__}"
        )
    return operator.index(cast("SupportsIndex", axis))


class Layout(NamedTuple):
    """Which thread of a block does what, and how many blocks share a result.

    Attributes
    ----------
    lanes
        Threads that make one result, or one part of it: a power of two.
    is_across
        Whether neighbouring threads make neighbouring results, or are lanes of one.
    parts
        Blocks that make one result, whose parts another launch combines.
    """

    lanes: int
    is_across: bool
    parts: int

    @property
    def rows(self) -> int:
        """How many results a block makes at a time."""
        return BLOCK // self.lanes

    @classmethod
    def of(cls, kept: walk.Walk, reduced: walk.Walk, is_split: bool) -> Layout:
        """Return the layout, by sizes and strides alone, and by whether it may have parts."""
        count, n = kept.size, reduced.size
        is_across = _step(kept) < _step(reduced)
        if is_across:
            lanes = BLOCK // min(_WARP, _power_of_two(count))
            while lanes > 1 and (count * lanes > _THREADS or lanes * _ENOUGH > n):
                lanes //= 2
        else:
            lanes = min(_WARP, _power_of_two(n))
            while lanes > 1 and lanes * _FEW > n and count * lanes > _THREADS:
                lanes //= 2
            if n >= _MANY and count * _WARP < _THREADS:
                lanes = BLOCK
        parts = min(_MOST_PARTS, _THREADS // (count * lanes), n // (lanes * _ENOUGH))
        return cls(lanes, is_across, parts if is_split and parts > 1 else 1)

    @property
    def fields(self) -> dict[str, Any]:
        """What the source of a kernel has places for."""
        inner, outer = f"threadIdx.x % {self.lanes}", f"threadIdx.x / {self.lanes}"
        if self.is_across:
            inner, outer = f"threadIdx.x / {self.rows}", f"threadIdx.x % {self.rows}"
        sync = "__syncthreads();" if self.is_across or self.lanes > _WARP else "__syncwarp();"
        return {
            "lanes": self.lanes,
            "lane": inner,
            "rows": self.rows,
            "row": outer,
            "stride": self.rows if self.is_across else 1,
            "sync": sync if self.lanes > 1 else "",
        }


def _step(of: walk.Walk) -> float:
    """Return how far apart in memory the nearest elements of the input are."""
    steps = zip(of.sizes, of.strides[0], strict=True)
    return min((abs(step) for n, step in steps if n > 1), default=math.inf)


def _power_of_two(n: int) -> int:
    """Return the least one that is at least n."""
    return 1 << max(0, n - 1).bit_length()


class PlanCode(NamedTuple):
    """What kernels for plans differ by."""

    kept: walk.Code
    reduced: walk.Code
    layout: Layout

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the parameters behind the number of elements that make a result."""
        return (*self.reduced.types, "unsigned long long", *self.kept.types)


class Plan(NamedTuple):
    """How one launch reduces: over the results, and for each over what makes it."""

    kept: walk.Walk
    reduced: walk.Walk
    layout: Layout

    @classmethod
    def of(
        cls,
        sizes: tuple[int, ...],
        tensors: Sequence[Tensor],
        axes: Axes,
        to: Sequence[int],
        name: str,
        is_split: bool,
    ) -> Plan:
        """Return the plan for tensors that broadcast to a shape, and results with strides `to`.

        If it may be split and is, the parts of each result lie side by side in a new tensor.
        """
        strides = tuple([t.strides if t.shape == sizes else walk.over(t, sizes) for t in tensors])
        return _plan(sizes, strides, axes, tuple(to), name, is_split)

    def code(self) -> PlanCode:
        """Return what the kernel's source depends on."""
        kept, reduced = walk.Code.of(self.kept, "cudago_k"), walk.Code.of(self.reduced, "cudago_r")
        # How many parts there are, the grid tells.
        return PlanCode(kept, reduced, self.layout._replace(parts=1))

    @property
    def config(self) -> LaunchConfig:
        """The configuration of the launch."""
        blocks = -(-self.kept.size // self.layout.rows)
        return LaunchConfig((max(1, min(blocks, _MOST_BLOCKS)), self.layout.parts), BLOCK)

    @property
    def arguments(self) -> tuple[int, ...]:
        """What the kernel is given after the memory."""
        first = self.reduced.size, *self.reduced.arguments
        return *first, self.kept.size, *self.kept.arguments


@lru_cache(256)
def _plan(
    shape: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
    axes: Axes,
    to: tuple[int, ...],
    name: str,
    is_split: bool,
) -> Plan:
    """Return the plan for tensors that lie as these do. Loops ask for the same again and again."""
    outer, inner = ([shape[d] for d in of] for of in (axes.kept, axes.reduced))
    order = sorted(range(len(strides)), key=lambda k: -_spanned(shape, strides[k]))
    own = [[strides[k][d] for d in axes.kept] for k in order]
    kept = walk.Walk.over(outer, [*own, to])
    each = [[strides[k][d] for d in axes.reduced] for k in order]
    reduced = walk.Walk.over(inner, [*each, walk.rows(inner)])
    most = max(len(kept.sizes), len(reduced.sizes))
    if most > walk.DIMS:
        raise ValueError(
            f"{name} goes over at most {walk.DIMS} dimensions that are reduced, or kept, and "
            f"are no part of a larger one, got {most}: pass a copy, x.contiguous(stream=s), or "
            "reduce one after the other"
        )
    layout = Layout.of(kept, reduced, is_split)
    if layout.parts > 1:
        apart = [step * layout.parts for step in walk.rows(outer)]
        first, last = (walk.Walk.over(outer, sides) for sides in ([*own, apart], [apart, to]))
        if max(len(first.sizes), len(last.sizes)) > walk.DIMS:  # results in another order than rows
            layout = Layout.of(kept, reduced, False)
        else:
            kept = first
    return Plan(_given(kept, order), _given(reduced, order), layout)


def _spanned(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many elements a tensor has that is broadcast; those of most decide the order."""
    return math.prod(n for n, step in zip(shape, strides, strict=True) if step)


def _given(of: walk.Walk, order: Sequence[int]) -> walk.Walk:
    """Return a walk whose sides, but for the last, are in the order of the parameters again."""
    strides = {k: of.strides[at] for at, k in enumerate(order)}
    return walk.Walk(of.sizes, (*(strides[k] for k in range(len(order))), of.strides[-1]))
