# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies of CUDA arrays: both sides, and the box that the driver is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._memory.buffer import Buffer, Pointer
from .array_shape import Facts, count
from .copy import _bytes_from
from .operand import as_target, as_tensor, host_array, pointed
from .tensor import Tensor

if TYPE_CHECKING:
    from ..typing import StreamLike


def sides(dst: Any, src: Any, stream: StreamLike | None = None) -> tuple[Any, Any, tuple[int, ...]]:
    """Return both sides of a copy as _copy_box takes them, and the box. One is an array."""
    array = dst if isinstance(dst, _core.OpaqueArray) else src
    facts = Facts(*array._facts)
    columns = facts.shape[-1 - (facts.channels > 1)] * facts.channels
    width = columns * (array.nbytes // count(facts.shape))
    outer = facts.shape[: len(facts.shape) - 1 - (facts.channels > 1)]
    rows = 1 if not outer or (facts.layered and len(outer) == 1) else outer[-1]
    slices = count(outer) // rows
    if isinstance(dst, _core.OpaqueArray) and isinstance(src, _core.OpaqueArray):
        _check_arrays(dst, src)
        return dst, src, (width, rows, slices, width, rows, width, rows)
    into = dst is not array
    other = _other(array, dst if into else src, into, stream)
    pitch, height = _pitch(other, facts, width, rows, slices)
    at = _core._operand(_bytes_from(other, 0), dst if into else src, into)
    if into:
        return at, src, (width, rows, slices, pitch, height, width, rows)
    return dst, at, (width, rows, slices, width, rows, pitch, height)


def _check_arrays(dst: _core.OpaqueArray, src: _core.OpaqueArray) -> None:
    ours, theirs = Facts(*dst._facts), Facts(*src._facts)
    if ours[:-1] != theirs[:-1]:
        raise ValueError(f"{src!r} and {dst!r} do not have the same dimensions and elements")
    if dst._ordinal != src._ordinal:
        raise ValueError(f"{src!r} and {dst!r} are on different devices")


def _other(array: _core.OpaqueArray, given: Any, into: bool, stream: StreamLike | None) -> Tensor:
    """Return a tensor over what is copied from or into, of the array's shape."""
    facts, name = Facts(*array._facts), "dst" if into else "src"
    if isinstance(given, Pointer):
        given = pointed(given)
    if isinstance(given, Buffer):
        if given.size != array.nbytes:
            raise ValueError(f"{name} has {given.size} bytes, the array {array.nbytes}")
        given = given.view(facts.dtype, facts.shape)
    tensor = _target(given, stream) if into else _source(given, facts, stream)
    if tensor.shape != facts.shape:
        raise ValueError(f"{name} has shape {tensor.shape}, the array {facts.shape}")
    if tensor.dtype_name != facts.dtype:
        raise TypeError(
            f"{name} has element type {tensor.dtype_name}, the array {facts.dtype}: "
            "convert it first"
        )
    if tensor.device is not None and tensor.device.ordinal != array._ordinal:
        raise ValueError(
            f"{name} is on device {tensor.device.ordinal}, the array on device {array._ordinal}"
        )
    return tensor


def _target(given: Any, stream: StreamLike | None) -> Tensor:
    tensor = as_tensor(given) if stream is None else as_target(given, stream)
    if tensor.is_readonly:
        raise BufferError("dst is read-only")
    return tensor


def _source(given: Any, facts: Facts, stream: StreamLike | None) -> Tensor:
    if isinstance(given, Tensor):
        return given
    if not hasattr(given, "__dlpack__"):
        given = host_array(given, facts.dtype, "src", stream)
    return as_tensor(given) if stream is None else _core.from_dlpack(given, stream=stream)


def _pitch(t: Tensor, facts: Facts, width: int, rows: int, slices: int) -> tuple[int, int]:
    """Return the bytes from row to row, and the rows from slice to slice, of a tensor."""
    inner = 1 + (facts.channels > 1)
    packed = facts.channels, 1
    for n, step, want in zip(t.shape[-inner:], t.strides[-inner:], packed[-inner:], strict=True):
        if n > 1 and step != want:
            raise ValueError("the elements of a row must lie next to each other: copy the tensor")
    steps = [step * t.itemsize for step in t.strides[: len(t.shape) - inner]]
    if facts.layered and len(steps) == 1:  # each layer is a row
        steps.append(width)
    pitch = steps[-1] if rows > 1 else width
    if slices > 1 and rows == 1:
        pitch = steps[-2]
    if pitch < width:
        raise ValueError(f"rows of {width} bytes cannot be {pitch} bytes apart: copy the tensor")
    if len(steps) > 2 and t.shape[0] > 1 and steps[0] != 6 * steps[1]:
        raise ValueError("all faces of cubes must be equally far apart: copy the tensor")
    slice_ = steps[-2] if slices > 1 else pitch * rows
    if slice_ % pitch or slice_ // pitch < rows:
        raise ValueError(
            f"slices must be a multiple of {pitch} bytes apart, as rows are, and at least {rows} "
            f"rows; they are {slice_} bytes apart: copy the tensor"
        )
    return pitch, slice_ // pitch
