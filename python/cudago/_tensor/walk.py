# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of one shape, or broadcast to one, with any strides, as kernels in C++ go over them.

What an element's number among all is becomes an index for each dimension, the first the fastest,
and these become where the element lies in each tensor. Dimensions without a gap between them in any
of the tensors are one.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .. import _core
from . import strided
from .place import is_pageable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._stream.stream import Stream
    from .tensor import Tensor

DIMS = 4  # at most
_MOST_NARROW = 1 << 31  # elements that are counted in 32 bits, which divides faster


class Walk(NamedTuple):
    """What a kernel goes over: sizes, and the strides of each side in elements, by dimension."""

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @classmethod
    def over(cls, shape: Sequence[int], strides: Sequence[Sequence[int]]) -> Walk:
        """Return the walk over a shape; there is at least one dimension."""
        dims = strided.merged(shape, strides) or [(1,) + (0,) * len(strides)]
        sizes, *of_sides = zip(*dims, strict=True)
        return cls(sizes, tuple(of_sides))

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.sizes)

    @property
    def arguments(self) -> tuple[int, ...]:
        """What the kernel is given for the parameters of `Code`."""
        return (*self.sizes[:-1], *itertools.chain.from_iterable(self.strides))


class Code(NamedTuple):
    """How a kernel goes over what has some dimensions; all names begin with the prefix."""

    prefix: str
    dims: int
    sides: int
    is_wide: bool

    @classmethod
    def of(cls, walk: Walk, prefix: str) -> Code:
        """Return the code that does a walk, and others with as many dimensions."""
        is_wide = walk.size >= _MOST_NARROW
        return cls(prefix, len(walk.sizes), len(walk.strides), is_wide)

    @property
    def index_type(self) -> str:
        """The type of an index."""
        return "unsigned long long" if self.is_wide else "unsigned int"

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the parameters."""
        return (self.index_type,) * (self.dims - 1) + ("long long",) * self.dims * self.sides

    @property
    def parameters(self) -> str:
        """The parameters in the source, each after a comma."""
        names = [f"n{d}" for d in range(self.dims - 1)]
        names += [f"s{side}_{d}" for side in range(self.sides) for d in range(self.dims)]
        each = zip(self.types, names, strict=True)
        return "".join(f", const {of} {self.prefix}_{name}" for of, name in each)

    def advance(self, number: str, places: Sequence[str]) -> str:
        """Return statements that add to `places`, of each side, where the element `number` is."""
        p = self.prefix
        lines = [f"{self.index_type} {p}_q = ({self.index_type})({number}), {p}_r;"]
        for d in range(self.dims):
            if d < self.dims - 1:
                lines.append(f"{p}_r = {p}_q % {p}_n{d}; {p}_q /= {p}_n{d};")
            else:
                lines.append(f"{p}_r = {p}_q;")
            for side, place in enumerate(places):
                lines.append(f"{place} += (long long){p}_r * {p}_s{side}_{d};")
        return "{ " + " ".join(lines) + " }"


def broadcast(shapes: Sequence[tuple[int, ...]], name: str) -> tuple[int, ...]:
    """Return the shape that all become, by NumPy's rules."""
    if len(set(shapes)) == 1:
        return shapes[0]
    made: list[int] = []
    for sizes in itertools.zip_longest(*(reversed(s) for s in shapes), fillvalue=1):
        others = {n for n in sizes if n != 1}
        if len(others) > 1:
            raise ValueError(
                f"{name} needs tensors of one shape, or of shapes that broadcast to one, got "
                + ", ".join(map(str, shapes))
            )
        made.append(others.pop() if others else 1)
    return tuple(reversed(made))


def over(tensor: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a tensor that is broadcast to a shape: 0 where it has one element."""
    new = len(shape) - len(tensor.shape)
    own = zip(tensor.shape, tensor.strides, strict=True)
    return (0,) * new + tuple(0 if n == 1 else s for n, s in own)


def rows(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a shape in row-major order."""
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def check_place(tensor: Tensor, what: str, is_written: bool) -> None:
    """Raise what a launch would, to which a pointer does not tell all that a tensor does."""
    if is_written and tensor.is_readonly:
        raise TypeError(f"{what} is read-only memory: pass other memory to write to")
    if not tensor.is_contiguous and is_pageable(tensor):
        raise BufferError(
            f"{what} is ordinary host memory with gaps between its elements, strides "
            f"{tensor.strides}: pass a copy on the device, cudago.asarray(x, stream=s)"
        )


def given(value: Any, stream: Stream, is_written: bool) -> Any:
    """Return what a launch is given for a tensor, whose strides are arguments of their own.

    A graph keeps the tensor, of which a pointer does not tell. What is no tensor stays as it is.
    """
    if not isinstance(value, _core.Tensor) or value.is_contiguous:
        return value
    ptr = cast("Tensor", value).ptr
    return _core._operand(ptr, value, is_written) if stream.is_capturing else ptr
