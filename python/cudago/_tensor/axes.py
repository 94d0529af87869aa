# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reductions along axes: for each result some lanes, whose values are combined when all is read."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .._native import number_text, value_text
from . import walk
from .expression import BLOCK, config_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import SupportsIndex

    from .._kernel.launch import LaunchConfig
    from .tensor import Tensor

_WARP = 32
_MANY = 1024  # of elements for a block, and of results for which a warp each is enough

# A lane that has no element takes no part, as in `reduce`. Those that have one are the first.
SOURCE = """extern "C" __global__ void {name}({parameters}, unsigned long long n{reduced}, unsigned long long cudago_m{kept}) {{
    const {stored}* const cudago_in = {x};
    {result}* const cudago_out = {z};
    __shared__ {u} cudago_part[{block}];
    const unsigned cudago_lane = threadIdx.x % {lanes}, cudago_row = threadIdx.x / {lanes};
    const unsigned long long cudago_step = (unsigned long long)gridDim.x * ({block} / {lanes});
    unsigned long long cudago_first = (unsigned long long)blockIdx.x * ({block} / {lanes});
    for (; cudago_first < cudago_m; cudago_first += cudago_step) {{
        const bool cudago_has = cudago_first + cudago_row < cudago_m;
        long long cudago_from = 0, cudago_to = 0;
        if (cudago_has && cudago_lane < n) {{
            {walk_kept}
            {u} cudago_sum;
            for (unsigned long long cudago_j = cudago_lane; cudago_j < n; cudago_j += {lanes}) {{
                long long cudago_at = cudago_from, cudago_index = 0;
                {walk_reduced}
                const unsigned long long i = cudago_index; (void)i;
                const {t} {x} = {load};
                const {u} b = {map};
                if (cudago_j == cudago_lane) {{
                    cudago_sum = b;
                }} else {{
                    const {u} a = cudago_sum;
                    cudago_sum = {operation};
                }}
            }}
            cudago_part[threadIdx.x] = cudago_sum;
        }}
        __syncthreads();
        for (unsigned cudago_half = {lanes} / 2; cudago_half; cudago_half /= 2) {{
            if (cudago_has && cudago_lane < cudago_half && cudago_lane + cudago_half < n) {{
                const {u} a = cudago_part[threadIdx.x], b = cudago_part[threadIdx.x + cudago_half];
                cudago_part[threadIdx.x] = {operation};
            }}
            __syncthreads();
        }}
        if (cudago_has && cudago_lane == 0) cudago_out[cudago_to] = {store};
        __syncthreads();
    }}
}}
"""  # noqa: E501


class Axes(NamedTuple):
    """What is reduced of a tensor: its axes, and the shape that is left."""

    reduced: tuple[int, ...]
    kept: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor, axis: Any, keepdims: bool, name: str) -> Axes:
        """Return the axes that a call names; all of them by None."""
        count = tensor.ndim
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
        ones = [1 if d in reduced else n for d, n in enumerate(tensor.shape)]
        shape = tuple(ones) if keepdims else tuple(tensor.shape[d] for d in kept)
        return cls(tuple(sorted(reduced)), kept, shape)


def _index(axis: object, name: str) -> int:
    if isinstance(axis, bool) or not hasattr(type(axis), "__index__"):
        raise TypeError(
            f"axis of {name} must be an int, a tuple of ints, or None, got {type(axis).__name__}"
        )
    return operator.index(cast("SupportsIndex", axis))


class PlanCode(NamedTuple):
    """What kernels for plans differ by."""

    kept: walk.Code
    reduced: walk.Code
    lanes: int

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the parameters behind the number of elements that make a result."""
        return (*self.reduced.types, "unsigned long long", *self.kept.types)

    @property
    def fields(self) -> dict[str, Any]:
        """What `SOURCE` has places for."""
        first = "cudago_first + cudago_row"
        return {
            "lanes": self.lanes,
            "kept": self.kept.parameters,
            "reduced": self.reduced.parameters,
            "walk_kept": self.kept.advance(first, ["cudago_from", "cudago_to"]),
            "walk_reduced": self.reduced.advance("cudago_j", ["cudago_at", "cudago_index"]),
        }


class Plan(NamedTuple):
    """How one launch reduces: over the results, and for each over what makes it."""

    kept: walk.Walk
    reduced: walk.Walk
    lanes: int

    @classmethod
    def of(cls, tensor: Tensor, axes: Axes, out: Tensor | None, name: str) -> Plan:
        """Return the plan for a result in `out`, or in a new tensor without gaps."""
        shape, strides = tensor.shape, tensor.strides
        outer, inner = ([shape[d] for d in of] for of in (axes.kept, axes.reduced))
        to = walk.rows(outer)
        if out is not None and axes.kept:
            has_all = len(axes.shape) == tensor.ndim
            to = tuple(out.strides[d] for d in axes.kept) if has_all else out.strides
        kept = walk.Walk.over(outer, [[strides[d] for d in axes.kept], to])
        reduced = walk.Walk.over(inner, [[strides[d] for d in axes.reduced], walk.rows(inner)])
        most = max(len(kept.sizes), len(reduced.sizes))
        if most > walk.DIMS:
            raise ValueError(
                f"{name} goes over at most {walk.DIMS} dimensions that are reduced, or kept, and "
                f"are no part of a larger one, got {most}: pass a copy, x.contiguous(stream=s), or "
                "reduce one after the other"
            )
        return cls(kept, reduced, _lanes(kept, reduced))

    @property
    def code(self) -> PlanCode:
        """What the kernel's source depends on."""
        kept, reduced = walk.Code.of(self.kept, "cudago_k"), walk.Code.of(self.reduced, "cudago_r")
        return PlanCode(kept, reduced, self.lanes)

    @property
    def config(self) -> LaunchConfig:
        """The configuration of the launch."""
        return config_for(self.kept.size * self.lanes)

    @property
    def arguments(self) -> tuple[int, ...]:
        """What the kernel is given after the memory."""
        first = self.reduced.size, *self.reduced.arguments
        return *first, self.kept.size, *self.kept.arguments


def _lanes(kept: walk.Walk, reduced: walk.Walk) -> int:
    """Return how many threads make one result: by the sizes and strides alone."""
    if reduced.size >= _MANY and kept.size < _MANY:
        return BLOCK
    # Neighbouring threads are to read neighbouring elements.
    steps = [
        min((abs(s) for n, s in zip(of.sizes, side, strict=True) if n > 1), default=math.inf)
        for of, side in ((kept, kept.strides[0]), (reduced, reduced.strides[0]))
    ]
    return _WARP if reduced.size >= _WARP and steps[1] < steps[0] else 1
