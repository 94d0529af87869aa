# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between tensors of any strides, by the fewest driver calls.

Where a box of rows describes both sides, it is one ``cuMemcpy3DAsync``. Where none does, or it has
many rows or bytes, a kernel of ours copies what a device can access on both sides; otherwise the
elements are gathered, by the host or by a kernel, and copied in one piece.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._driver import driver_name
from .._numpy import np
from . import overlap, packed, strided
from .place import is_packed, is_pageable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .._graph.graph import Graph
    from .._graph.node import Node
    from .._memory.buffer import Buffer
    from .._memory.device import Device
    from .._stream.stream import Stream
    from .tensor import Tensor

_MAX_CALLS = 1 << 16
_FEW_CALLS = 16  # up to here, boxes are better than a detour over other memory
# From here on our kernel is faster than the driver's copy of a box, which does some 9,000 rows in a
# microsecond, and rows of 4 KiB and more at half the memory's speed (on an H200).
_MANY_ROWS, _MANY_BYTES = 1 << 16, 1 << 24
_MOST_ODD = 256  # bytes of rows that our kernel copies one by one, which is slow
_MOST_PITCH = (1 << 31) - 1  # CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices so far


# --- boxes ----------------------------------------------------------------------------------------


class _Dim(NamedTuple):
    """A dimension: its size, and the bytes from one element to the next on each side."""

    size: int
    dst: int
    src: int


class _Plan(NamedTuple):
    """A box, and the dimensions along which it is repeated."""

    start: tuple[int, int]  # bytes from the first elements
    box: tuple[int, ...]  # as cudago_box
    repeated: list[_Dim]

    @property
    def calls(self) -> int:
        return math.prod(d.size for d in self.repeated)

    def is_slow(self, dst: Tensor, src: Tensor, device: Device) -> bool:
        """Whether a kernel on the device copies the box faster: simulated ones are interpreted."""
        width, rows, slices, to, _, of, _ = self.box
        count = rows * slices
        is_odd = any(n % 2 for n in (width, to, of, dst.handle, src.handle))
        return (
            (count >= _MANY_ROWS or width * count >= _MANY_BYTES)
            and not (is_odd and width > _MOST_ODD)
            and dst._ordinal == src._ordinal == device.ordinal
            and driver_name() != "sim"
        )

    def places(self) -> Iterator[tuple[int, int]]:
        for index in itertools.product(*(range(d.size) for d in self.repeated)):
            steps = list(zip(index, self.repeated, strict=True))
            yield (
                self.start[0] + sum(i * d.dst for i, d in steps),
                self.start[1] + sum(i * d.src for i, d in steps),
            )


def _merge(dims: list[_Dim]) -> list[_Dim]:
    """Merge the dimensions that lie in each other on both sides, the slowest of dst first."""
    out: list[_Dim] = []
    for dim in sorted(dims, key=lambda d: -d.dst):
        if out and out[-1].dst == dim.size * dim.dst and out[-1].src == dim.size * dim.src:
            out[-1] = _Dim(out[-1].size * dim.size, dim.dst, dim.src)
        else:
            out.append(dim)
    return out


@lru_cache(256)  # loops ask for the same again and again
def _plan(shape: Sequence[int], dst: Sequence[int], src: Sequence[int], item: int) -> _Plan:
    """Choose the box that is repeated least."""
    start = (0, 0)
    dims: list[_Dim] = []
    for size, d, s in zip(shape, dst, src, strict=True):
        if size == 1:
            continue
        if d < 0:  # from the other end
            start = start[0] + (size - 1) * d, start[1] + (size - 1) * s
            d, s = -d, -s
        dims.append(_Dim(size, d, s))
    dims = _merge(dims)
    width = item
    if dims and dims[-1].dst == dims[-1].src == item:
        width *= dims.pop().size
    best = _best(dims, width)
    rows, slices = (*best, _Dim(1, width, width), _Dim(1, 0, 0))[:2]
    heights = [
        getattr(slices, side) // getattr(rows, side) if slices.size > 1 else rows.size
        for side in ("dst", "src")
    ]
    box = (width, rows.size, slices.size, rows.dst, heights[0], rows.src, heights[1])
    return _Plan(start, box, [d for d in dims if not any(d is b for b in best)])


def _best(dims: list[_Dim], width: int) -> list[_Dim]:
    """Return the dimensions that are best taken as rows, and as slices of rows."""
    best: list[_Dim] = []
    for rows in dims:
        if not (width <= rows.dst <= _MOST_PITCH and width <= rows.src <= _MOST_PITCH):
            continue
        slices = [d for d in dims if d is not rows and _is_slice(d, rows)]
        for chosen in ([rows], *([rows, s] for s in slices)):
            if math.prod(d.size for d in chosen) > math.prod(d.size for d in best):
                best = chosen
    return best


def _is_slice(dim: _Dim, rows: _Dim) -> bool:
    return all(
        step % row == 0 and step // row >= rows.size
        for step, row in ((dim.dst, rows.dst), (dim.src, rows.src))
    )


def _plan_of(dst: Tensor, src: Tensor) -> _Plan:
    sides = strided.Side.of(dst), strided.Side.of(src)
    return _plan(dst.shape, sides[0].strides, sides[1].strides, dst.itemsize)


def _bytes_from(t: Tensor, offset: int) -> Tensor:
    """Return the bytes of a tensor's memory from its first element plus offset on."""
    return _bytes_of(t._span, offset)


def _bytes_of(memory: tuple[Buffer, int], offset: int) -> Tensor:
    span, first = memory
    return span[first + offset :].view("u1")


# --- copies ---------------------------------------------------------------------------------------


def copy(dst: Tensor, src: Tensor, stream: Stream, given: tuple[Any, Any] | None = None) -> None:
    """Copy between tensors of the same shape, whose elements have the same size.

    `given` is what the tensors were made of: what a capture records keeps that.
    """
    if not dst.size:
        return
    is_whole = not is_packed(dst) or (packed.is_whole(dst) and src.is_contiguous)
    pageable = is_pageable(dst), is_pageable(src)
    is_for_host = all(pageable) and not stream.is_capturing
    if is_whole and dst.is_contiguous and src.is_contiguous and not is_for_host:
        _copy_piece(dst, src, stream, given)
        return
    if not is_for_host:
        overlap.check_once(dst, "dst")
    if not is_whole:
        packed.copy(dst, src, stream)
        return
    if is_for_host:
        _copy_on_host(dst, src, stream)
        return
    _check_apart(dst, src)
    plan = _plan_of(dst, src)
    is_for_kernel = plan.calls > 1 and not any(pageable) and _one_device(dst, src)
    if is_for_kernel or plan.is_slow(dst, src, stream.device):
        strided.copy(dst, src, stream, given)
    elif plan.calls > _FEW_CALLS and any(pageable) and not stream.is_capturing:
        if pageable[1]:
            _scatter(dst, src, stream)
        else:
            _gather(dst, src, stream)
    elif not any(pageable) and _is_elsewhere(src, stream) and not stream.is_capturing:
        span, first = src._span
        with stream.device.allocate(span.size, stream=stream) as here:
            here.copy_from(span, stream=stream)
            _copy_boxes(plan, dst, src, stream, (here, first))
    else:
        _copy_boxes(plan, dst, src, stream, src._span, given)


def _check_apart(dst: Tensor, src: Tensor) -> None:
    """Refuse a copy that reads what it writes, unless it is each element onto itself."""
    if not overlap.share(dst, src) or overlap.are_same(dst, src):
        return
    raise ValueError(
        f"dst ({dst.nbytes} bytes at {dst.handle:#x}) and src (at {src.handle:#x}) overlap: a copy "
        "moves its bytes in any order, so copy by way of other memory"
    )


def _is_elsewhere(t: Tensor, stream: Stream) -> bool:
    """Whether this is memory of another device: a copy as a whole needs no access, rows do."""
    return t._ordinal is not None and t._ordinal != stream.device.ordinal


def _copy_boxes(
    plan: _Plan,
    dst: Tensor,
    src: Tensor,
    stream: Stream,
    source: tuple[Buffer, int],
    given: tuple[Any, Any] | None = None,
) -> None:
    """Copy the boxes of a plan; the bytes of `src` are in `source`, from an offset on."""
    if plan.calls > _MAX_CALLS:
        raise BufferError(
            f"a copy between strides {dst.strides} and {src.strides} of shape {dst.shape} would "
            f"take {plan.calls} driver calls (at most {_MAX_CALLS}): make one side contiguous first"
        )
    # The nodes then have what was passed as operands.
    named = (given or (dst, src)) if stream.is_capturing else None
    for at in plan.places():
        to: Tensor | _core.Operand = _bytes_from(dst, at[0])
        of: Tensor | _core.Operand = _bytes_of(source, at[1])
        if named:
            to, of = _core._operand(to, named[0], True), _core._operand(of, named[1], False)
        _core._copy_box(stream, to, of, plan.box)


def _one_device(dst: Tensor, src: Tensor) -> bool:
    """Whether one device can access both: host memory here is pinned or managed."""
    return dst._ordinal is None or src._ordinal is None or dst._ordinal == src._ordinal


def _copy_piece(
    dst: Tensor, src: Tensor, stream: Stream, given: tuple[Any, Any] | None = None
) -> None:
    """Copy between two contiguous tensors.

    A tensor operand carries the kind of its memory, which a buffer operand does not.
    """
    to: Any = dst
    of: Any = src
    if given is not None and stream.is_capturing:
        to, of = _core._operand(dst, given[0], True), _core._operand(src, given[1], False)
    if is_pageable(dst) and not is_pageable(src):
        src.buffer.copy_to(to, stream=stream)
    else:
        dst.buffer.copy_from(of, stream=stream)


# --- detours --------------------------------------------------------------------------------------


def _copy_on_host(dst: Tensor, src: Tensor, stream: Stream) -> None:
    """Copy memory that devices do not know, once what is queued has read and written it."""
    stream.sync()
    if dst.is_contiguous and src.is_contiguous:
        memoryview(dst.buffer)[:] = memoryview(src.buffer)  # tensors have none of every type
        return
    of = _host_array(src)  # of what overlaps, NumPy may read what it has written
    _host_array(dst)[...] = of.copy() if overlap.share(dst, src) else of


def _host_array(t: Tensor) -> np.ndarray:
    """Return an array over the host memory of a tensor; elements are bytes, whatever the type."""
    span, first = t._span
    strides = strided.Side.of(t).strides
    return np.ndarray(t.shape, f"V{t.itemsize}", memoryview(span), first, strides)


def _order(t: Tensor) -> list[int]:
    """Return the axes, the slowest in memory first."""
    return sorted(range(t.ndim), key=lambda axis: -t.strides[axis])


def _in_order(t: Tensor, order: Sequence[int]) -> Tensor | None:
    """Return the tensor with its axes in the order of its memory, if it has no gaps then."""
    if any(s <= 0 for n, s in zip(t.shape, t.strides, strict=True) if n > 1):
        return None
    span, first = t._span
    shape, strides = ([values[axis] for axis in order] for values in (t.shape, t.strides))
    moved = span[first:].view(t.dtype_name, shape, strides)
    return moved if moved.is_contiguous else None


def _scatter(dst: Tensor, src: Tensor, stream: Stream) -> None:
    """Copy from the host: its elements are put in order there, or spread by a kernel."""
    host, order = _host_array(src), _order(dst)
    if (moved := _in_order(dst, order)) is not None:
        _send(moved, np.ascontiguousarray(host.transpose(order)), stream)
        return
    with stream.device.allocate(dst.nbytes, stream=stream) as memory:
        packed = memory.view(dst.dtype_name, dst.shape)
        _send(packed, np.ascontiguousarray(host), stream)
        copy(dst, packed, stream)
        packed.close()


def _send(dst: Tensor, host: np.ndarray, stream: Stream) -> None:
    dst.buffer.copy_from(_core.from_dlpack(host.view("u1").reshape(-1)), stream=stream)


def _gather(dst: Tensor, src: Tensor, stream: Stream) -> None:
    """Copy to the host: the elements are packed by a kernel, or put in order there."""
    order = _order(src)
    if (moved := _in_order(src, order)) is not None:
        host = np.empty(moved.shape, f"V{src.itemsize}")
        _receive(host, moved, stream)
        _host_array(dst).transpose(order)[...] = host
        return
    with stream.device.allocate(src.nbytes, stream=stream) as memory:
        packed = memory.view(src.dtype_name, src.shape)
        copy(packed, src, stream)
        host = np.empty(src.shape, f"V{src.itemsize}")
        _receive(host, packed, stream)
        packed.close()
    _host_array(dst)[...] = host


def _receive(host: np.ndarray, src: Tensor, stream: Stream) -> None:
    """Copy to the host, and wait: the copy is only the first half."""
    src.buffer.copy_to(_core.from_dlpack(host.view("u1").reshape(-1)), stream=stream)
    stream.sync()


# --- nodes ----------------------------------------------------------------------------------------


def box(
    dst: Tensor, src: Tensor, given: tuple[Any, Any]
) -> tuple[_core.Operand, _core.Operand, tuple[int, ...]] | None:
    """Return one copy between tensors of the same shape, of which one has gaps, or None.

    `given` is what the tensors were made of.
    """
    _check_sides(dst, src)
    plan = _plan_of(dst, src)
    if plan.calls != 1 or not dst.size:
        return None
    at = next(plan.places())
    to = _core._operand(_bytes_from(dst, at[0]), given[0], True)
    return to, _core._operand(_bytes_from(src, at[1]), given[1], False), plan.box


def _check_sides(dst: Tensor, src: Tensor) -> None:
    """Raise an error if no node can copy between two tensors, of which one has gaps."""
    if is_packed(dst) or is_packed(src):
        name = dst.dtype_name if is_packed(dst) else src.dtype_name
        raise ValueError(
            f"elements of {name} have less than a byte: a node copies whole bytes, so both sides "
            "must be contiguous and begin at one"
        )
    if dst.shape != src.shape or dst.itemsize != src.itemsize:
        raise ValueError(
            f"dst has shape {dst.shape} of {dst.dtype_name}, src {src.shape} of {src.dtype_name}: "
            "a copy of memory with gaps needs the same shape and elements of one size"
        )
    overlap.check_once(dst, "dst")
    _check_apart(dst, src)


def one_launch(dst: Tensor, src: Tensor, given: tuple[Any, Any], device: Device) -> tuple[Any, ...]:
    """Return configuration, kernel and arguments of one launch that copies as a node.

    `given` is what the tensors were made of, and `device` the graph's.
    """
    _check_sides(dst, src)
    launched = None
    if not is_pageable(dst) and not is_pageable(src) and _one_device(dst, src) and dst.size:
        strided.check_reach(device, "graph", dst=dst, src=src)
        launched = strided.one_copy(dst, src, given)
    if launched is None:
        raise ValueError(
            f"one node cannot copy between strides {dst.strides} and {src.strides} of shape "
            f"{dst.shape}: copy in a capture, or make one side contiguous"
        )
    return launched


def node(
    dst: Tensor,
    src: Tensor,
    given: tuple[Any, Any],
    graph: Graph,
    add_box: Callable[[_core.Operand, _core.Operand, tuple[int, ...]], Node],
    add_launch: Callable[..., Node],
) -> Node:
    """Add one node to a graph that copies as `box` does."""
    sides = box(dst, src, given)
    if sides is None:
        return add_launch(*one_launch(dst, src, given, graph.device))
    if _plan_of(dst, src).is_slow(dst, src, graph.device):
        launched = strided.one_copy(dst, src, given)  # None, if a kernel takes several launches
        if launched is not None:
            return add_launch(*launched)
    return add_box(*sides)
