# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of our own, for what the driver has no call for: fills and copies of any strides.

The driver fills with values of up to 4 bytes, and copies boxes whose rows have no gaps. The kernels
are PTX, so both drivers run them without a compiler, and one launch does a tensor of up to four
dimensions that cannot be merged. A copy by the driver's calls would take one for each row.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._kernel.launch import LaunchConfig, launch
from .._kernel.object_code import ObjectCode
from .._kernel.work import set_work
from .._ordinal import device_at
from .element import is_narrow
from .place import is_pageable
from .words import BLOCK, DIMS, EACH, WORDS, copy_kernel, fill_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .._kernel.kernel import Kernel
    from .._memory.device import Device
    from .._stream.stream import Stream
    from .tensor import Tensor

_MOST_WORDS = 1 << 31  # of one launch: the kernels count in 32 bits

# With the name of its module; one more of each for every thread that came at the same time.
_codes: list[tuple[str, ObjectCode]] = []
_kernels: dict[tuple[str, int], Kernel] = {}


def _words_text() -> str:
    """Return the PTX of all fills and copies."""
    return "".join(f(word) for f in (fill_kernel, copy_kernel) for word in WORDS)


def kernel_of(module: str, text: Callable[[], str], name: str, work: str, ordinal: int) -> Kernel:
    """Return a kernel of ours, loaded on the device; `text` writes the PTX of its module."""
    kernel = _kernels.get((name, ordinal))
    if kernel is None:
        code = next((code for made, code in _codes if made == module), None)
        if code is None:
            code = ObjectCode.from_ptx(".version 6.0\n.target sm_50\n.address_size 64\n" + text())
            _codes.append((module, code))
        kernel = code.get_kernel(name, device=device_at(ordinal))
        set_work(kernel, work)
        _kernels[name, ordinal] = kernel
    return kernel


def held() -> int:
    """Return how many objects with code are kept here, which no user made."""
    return len(_codes)


class Side(NamedTuple):
    """One side of a fill or a copy: its first byte, and its strides in bytes."""

    tensor: Tensor
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> Side:
        """Return the side that a tensor with elements of whole bytes is."""
        return cls(tensor, tuple(s * tensor.itemsize for s in tensor.strides))


class Box(NamedTuple):
    """A part that one launch can do: where it starts on each side, its shape and strides."""

    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


def word_of(item: int, sides: Sequence[Side], shape: Sequence[int]) -> int:
    """Return the widest word by which all elements can be accessed: they may be misaligned."""
    numbers = [item, WORDS[-1]]
    for side in sides:
        numbers.append(side.tensor.handle)
        numbers += [s for s, n in zip(side.strides, shape, strict=True) if n > 1]
    return math.gcd(*numbers)


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return (size, stride of each side) by dimension, the fastest of the first side first."""
    dims = [d for d in zip(shape, *strides, strict=True) if d[0] != 1]
    dims.sort(key=lambda d: abs(d[1]))
    out: list[tuple[int, ...]] = []
    for n, *steps in dims:
        if out and all(s == out[-1][0] * t for s, t in zip(steps, out[-1][1:], strict=True)):
            out[-1] = (out[-1][0] * n, *out[-1][1:])
        else:
            out.append((n, *steps))
    return out


def boxes(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> Iterator[Box]:
    """Divide what has this shape into parts that one launch can do."""
    return _boxes(merged(shape, strides), (0,) * len(strides))


def _boxes(dims: Sequence[tuple[int, ...]], offsets: tuple[int, ...]) -> Iterator[Box]:
    """Halve the last dimension until the rest is small enough; of one, nothing is left."""
    if len(dims) <= DIMS and math.prod(d[0] for d in dims) < _MOST_WORDS:
        full = [*dims, *[(1,) + (0,) * len(offsets)] * (DIMS - len(dims))]
        shape, *strides = zip(*full, strict=True)
        yield Box(offsets, shape, tuple(strides))
        return
    *rest, (n, *steps) = dims
    if n == 1:
        yield from _boxes(rest, offsets)
        return
    half = n // 2
    behind = tuple(o + half * s for o, s in zip(offsets, steps, strict=True))
    yield from _boxes([*rest, (half, *steps)], offsets)
    yield from _boxes([*rest, (n - half, *steps)], behind)


def _launched(
    name: str, sides: Sequence[Side], box: Box, middle: tuple[Any, ...], start: int
) -> tuple[Any, ...]:
    device = sides[0].tensor.device or sides[-1].tensor.device or device_at()
    kernel = kernel_of("words", _words_text, name, name.split("_")[0], device.ordinal)
    return launched(kernel, sides, box, middle, start)


def launched(
    kernel: Kernel, sides: Sequence[Side], box: Box, middle: tuple[Any, ...] = (), start: int = 0
) -> tuple[Any, ...]:
    """Return configuration, kernel and arguments of the launch that does a box."""
    words = math.prod(box.shape)
    pointers = [s.tensor.ptr + (o + start) for s, o in zip(sides, box.offsets, strict=True)]
    strides = itertools.chain.from_iterable(box.strides)
    return (
        LaunchConfig(-(-words // (BLOCK * EACH)), BLOCK),
        kernel,
        *pointers,
        *middle,
        words,
        *box.shape[: DIMS - 1],
        *strides,
    )


def _fills(tensor: Tensor, pattern: bytes) -> Iterator[tuple[Any, ...]]:
    side = Side.of(tensor)
    item = tensor.itemsize
    pattern *= item // len(pattern)  # it may have been shortened
    word = word_of(item, [side], tensor.shape)
    for start in range(0, item, word):
        middle = halves(pattern[start : start + word])
        for box in boxes(tensor.shape, [side.strides]):
            yield _launched(f"fill_{word}", [side], box, middle, start)


def halves(pattern: bytes) -> tuple[int, int]:
    """Return the two numbers that a fill's kernel takes for the bytes of a word."""
    value = int.from_bytes(pattern, "little")
    return value & (1 << 64) - 1, value >> 64


def _keeping(launched: tuple[Any, ...], given: Sequence[Any]) -> tuple[Any, ...]:
    """Return a launch that does all of what was passed, of which a graph then keeps that.

    An update of the node needs it: a pointer does not tell of what the node does a part.
    """
    config, kernel, *args = launched
    for i, thing in enumerate(given):
        args[i] = _core._operand(args[i], thing, i == 0)
    return config, kernel, *args


def _captured(
    launches: Iterator[tuple[Any, ...]], given: Sequence[Any]
) -> Iterable[tuple[Any, ...]]:
    first = list(itertools.islice(launches, 2))
    if len(first) == 1:
        return [_keeping(first[0], given)]
    return itertools.chain(first, launches)


def check_reach(device: Device, who: str, **sides: Tensor) -> None:
    """Raise what a call of the driver would for memory that the device has no access to.

    A launch would speak of parameters of a kernel that nobody has launched. `who` is on the device,
    "stream" or "graph".
    """
    for what, tensor in sides.items():
        if tensor._ordinal not in (None, device.ordinal):
            tensor._span[0]._reach(device.ordinal, what, who)


def fill(tensor: Tensor, pattern: bytes, stream: Stream) -> None:
    """Write the bytes of one element into every element."""
    check_reach(stream.device, "stream", **{"the memory": tensor})
    launches: Iterable[tuple[Any, ...]] = _fills(tensor, pattern)
    if stream.is_capturing:
        launches = _captured(iter(launches), (tensor,))
    for args in launches:
        launch(stream, *args)


def one_fill(tensor: Tensor, pattern: bytes, given: Any, device: Device) -> tuple[Any, ...]:
    """Return configuration, kernel and arguments of the one launch that a node can do.

    `given` is what the tensor was made of.
    """
    if is_pageable(tensor):
        raise BufferError("dst is host memory that the driver does not know: fill the array itself")
    check_reach(device, "graph", dst=tensor)
    if not tensor.size:
        raise ValueError("dst has 0 bytes: a node needs at least one")
    launches = list(itertools.islice(_fills(tensor, pattern), 2))
    if len(launches) != 1:
        raise ValueError(
            f"one node cannot fill a tensor of shape {tensor.shape}, strides {tensor.strides} and "
            f"type {tensor.dtype_name} at {tensor.handle:#x}: fill it in a capture, or parts of it"
        )
    return _keeping(launches[0], (given,))


def copy(dst: Tensor, src: Tensor, stream: Stream, given: tuple[Any, Any] | None = None) -> None:
    """Copy by as many launches as it takes. `given` is what the tensors were made of."""
    check_reach(stream.device, "stream", dst=dst, src=src)
    launches: Iterable[tuple[Any, ...]] = copies(dst, src)
    if stream.is_capturing:
        launches = _captured(iter(launches), given or (dst, src))
    for args in launches:
        launch(stream, *args)


def one_copy(dst: Tensor, src: Tensor, given: tuple[Any, Any]) -> tuple[Any, ...] | None:
    """Return what `copies` does of the one launch that a node can do; None if it takes more."""
    launches = list(itertools.islice(copies(dst, src), 2))
    return _keeping(launches[0], given) if len(launches) == 1 else None


def copies(dst: Tensor, src: Tensor) -> Iterator[tuple[Any, ...]]:
    """Return configuration, kernel and arguments of each launch that a copy takes."""
    sides = [Side.of(dst), Side.of(src)]
    at = math.gcd(WORDS[-1], dst.handle, src.handle)
    word, dims = _words(dst.shape, sides[0].strides, sides[1].strides, dst.itemsize, at)
    for box in _boxes(dims, (0, 0)):
        yield _launched(f"copy_{word}", sides, box, (), 0)


@lru_cache(256)  # loops ask for the same again and again
def _words(
    shape: tuple[int, ...], to: tuple[int, ...], of: tuple[int, ...], item: int, at: int
) -> tuple[int, Sequence[tuple[int, ...]]]:
    """Return the widest word, and the dimensions of words, of memory that is aligned to `at`."""
    dims = merged(shape, [to, of])
    if dims and all(step == item for step in dims[0][1:]):  # rows without gaps are one word each
        item *= dims.pop(0)[0]
    word = math.gcd(item, at, *(step for _, *steps in dims for step in steps))
    if word < item:  # or some, which are one dimension more
        dims.insert(0, (item // word, word, word))
    return word, dims


def needs_kernel(tensor: Tensor, pattern: bytes) -> bool:
    """Whether none of the driver's fills can do it: gaps, a wide pattern, or a misaligned start.

    The driver's memset nodes can have rows with a pitch, but in an executable their shape cannot
    change (cuGraphExecMemsetNodeSetParams); a kernel's arguments can.
    """
    return not (tensor.is_contiguous and is_narrow(pattern) and tensor.handle % len(pattern) == 0)
