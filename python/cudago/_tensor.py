# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors: typed, shaped views of memory."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import _core, _strided
from ._card import card
from ._element import element, extended_dtype, shortest
from ._launch import launch
from ._ordinal import device_at
from .errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from ._device import Device
    from ._memory import Pointer
    from ._stream import Stream
    from .typing import StreamLike

__all__ = ["Tensor"]

_T = TypeVar("_T")

_CPU = 1
_PINNED, _MANAGED = 2, 3  # enum cudago_cell_kind
_MAX_PIECES = 1 << 16


def _into_native(cls: type[_T]) -> type[_T]:
    """Move a subclass's members into the native type, and return that type.

    Instances of a Python subclass take part in garbage collection, which would double the cost of
    creating a tensor. Tensors hold nothing that the collector needs to see.
    """
    native: Any = cls.__base__
    for name, member in vars(cls).items():
        if name not in ("__dict__", "__module__", "__slots__", "__weakref__"):
            setattr(native, name, member)
    return cast("type[_T]", native)


@_into_native
class Tensor(_core.Tensor):
    """A typed, shaped view of memory.

    Created by `Buffer.view`, `empty`, `zeros`, `full`, `asarray` and `from_dlpack`. A tensor keeps
    its memory alive, as do its views and whatever another library makes from it over DLPack.
    Indexing with integers, slices, ``None`` and ``...`` returns further views. Nothing is copied
    unless a method's name says so.

    Notes
    -----
    Two tensors are equal if they are the same view of the same memory; elements are not compared.

    Examples
    --------
    >>> t = cudago.zeros((4, 8), "float32", stream=stream)
    >>> t[:, 4:8].shape, t.T.shape, t.strides
    ((4, 4), (8, 4), (8, 1))
    """

    __slots__ = ()

    @property
    def device(self) -> Device | None:
        """The device that the memory belongs to; None for host memory."""
        ordinal = self._ordinal
        return None if ordinal is None else device_at(ordinal)

    @property
    def ptr(self) -> Pointer:
        """Pointer to the first element, bounded by the bytes that the tensor spans."""
        span, offset = self._span
        return span.ptr + offset

    def numpy(self, *, stream: Stream) -> np.ndarray:
        """Copy the elements to a new NumPy array, and wait for the copy.

        Parameters
        ----------
        stream : Stream
            Stream that orders the copy.

        Returns
        -------
        numpy.ndarray
            Row-major, with this tensor's shape and element type. Types that NumPy lacks need the
            package ml_dtypes.

        Raises
        ------
        BufferError
            If the tensor is so scattered that the copy would take more than 65536 driver calls.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until the copy is done. Not allowed while `stream` is
        capturing: use `Buffer.copy_to` with an array of your own.

        References
        ----------
        ``cuMemcpyAsync``, ``cuStreamSynchronize``

        Examples
        --------
        >>> cudago.full((2, 2), 7, "int32", stream=stream).numpy(stream=stream)
        array([[7, 7],
               [7, 7]], dtype=int32)
        """
        import numpy as np

        if stream.is_capturing:  # else the copy would be captured before the wait is refused
            raise ValueError(
                "a stream that is capturing cannot be waited for: copy with "
                "t.buffer.copy_to(array, stream=...) instead"
            )
        dtype = self.dtype
        if isinstance(dtype, str):
            raw = np.empty(self.nbytes, "u1")
            if self.nbytes:
                _copy_piece(_core.from_dlpack(raw), self.reshape(self.size), stream)
            stream.sync()
            return raw.view(extended_dtype(dtype)).reshape(self.shape)
        out = np.empty(self.shape, dtype)
        _copy(_core.from_dlpack(out), self, stream)
        stream.sync()
        return out

    def copy_from(self, src: Any, *, stream: Stream) -> None:
        """Copy elements into this tensor.

        Parameters
        ----------
        src : Tensor or array_like
            Source, with this tensor's shape. Tensors, NumPy arrays and objects with ``__dlpack__``
            must have its element type; numbers and lists are converted.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        BufferError
            If either side is so scattered that the copy would take more than 65536 driver calls.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until `src` has been read if it is pageable memory.
        Captured as memcpy nodes, which keep both sides alive. Makes one driver call for each
        contiguous piece.

        References
        ----------
        ``cuMemcpyAsync``

        Examples
        --------
        >>> t = cudago.empty((2, 2), "float32", stream=stream)
        >>> t.copy_from([[1, 2], [3, 4]], stream=stream)
        >>> t.T.numpy(stream=stream).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        if self.is_closed:
            raise ClosedError("tensor is closed")
        if self.is_readonly:
            raise ValueError("the tensor is read-only")
        source = _as_source(src, self, stream)
        if source.shape != self.shape:
            raise ValueError(f"src has shape {source.shape}, the tensor {self.shape}")
        if source.dtype_name != self.dtype_name:
            raise TypeError(
                f"src has element type {source.dtype_name}, the tensor {self.dtype_name}: "
                "convert it first"
            )
        _copy(self, source, stream)

    def fill(self, value: Any, *, stream: StreamLike) -> None:
        """Set every element to one value.

        Parameters
        ----------
        value : number or bytes
            Converted to the element type, which it must fit: whole numbers of its range for
            integers, finite values that stay finite for floating-point types. ``bytes`` are taken
            as those of one element.
        stream : Stream
            Stream that orders the fill.

        Raises
        ------
        OverflowError, ValueError, TypeError
            If `value` does not fit the element type.
        BufferError
            If the tensor is host memory that the driver does not know: fill the array itself.

        See Also
        --------
        Buffer.fill : Fills bytes.

        Notes
        -----
        Stream-ordered on `stream`. Captured as a memset node, or as kernel nodes where the driver
        has no fill: for values of 8 and 16 bytes that do not repeat every 4 bytes, and for tensors
        with gaps between their elements. Either keeps the tensor's memory alive.

        References
        ----------
        ``cuMemsetD8Async``, ``cuMemsetD16Async``, ``cuMemsetD32Async``

        Examples
        --------
        >>> t = cudago.zeros((2, 3), "int32", stream=stream)
        >>> t[:, 1].fill(5, stream=stream)
        >>> t.numpy(stream=stream).tolist()
        [[0, 5, 0], [0, 5, 0]]
        """
        if self.is_closed:
            raise ClosedError("tensor is closed")
        if self.is_readonly:
            raise ValueError("the tensor is read-only")
        if _is_pageable(self):
            raise BufferError("the tensor is pageable host memory: fill the array itself")
        pattern = shortest(element(value, self.dtype_name))
        if not _strided.needs_kernel(self, pattern):
            self.buffer.fill(pattern, stream=stream)
        elif self.size:
            _strided.fill(self, pattern, lambda *args: launch(stream, *args))

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray:
        # Otherwise NumPy would treat the tensor as a sequence, and make an array of tensors.
        raise TypeError(
            "a cudago Tensor is not converted to a NumPy array by itself: use "
            "t.numpy(stream=...), which copies"
        )

    _repr_html_ = card

    def __repr__(self) -> str:
        if self.is_closed:
            return "<Tensor closed>"
        where = "host" if self._ordinal is None else f"device {self._ordinal}"
        return f"<Tensor {self.dtype_name}{list(self.shape)} on {where} at {self.handle:#x}>"


# --- copies ---------------------------------------------------------------------------------------


def _as_source(src: Any, like: Tensor, stream: Stream) -> Tensor:
    if isinstance(src, Tensor):
        return src
    if not hasattr(src, "__dlpack__"):
        import numpy as np

        src = np.ascontiguousarray(src, like.dtype).reshape(np.shape(src))
    return _core.from_dlpack(src, stream=stream)


def _is_pageable(t: Tensor) -> bool:
    """Whether this is host memory that the driver does not know."""
    kind, device_type, *_ = t._memory
    return device_type == _CPU and t._ordinal is None and kind not in (_PINNED, _MANAGED)


def _copy_piece(dst: Tensor, src: Tensor, stream: Stream) -> None:
    """Copy between two contiguous tensors.

    A tensor operand carries the kind of its memory, which a buffer operand does not.
    """
    if not _is_pageable(dst):
        dst.buffer.copy_from(src, stream=stream)
    elif not _is_pageable(src):
        src.buffer.copy_to(dst, stream=stream)
    else:
        memoryview(dst).cast("B")[:] = memoryview(src).cast("B")


def _first_contiguous_axis(t: Tensor) -> int:
    """Return the first axis from which the elements lie in row-major order without gaps."""
    expected, axis = 1, t.ndim
    for size, stride in zip(reversed(t.shape), reversed(t.strides), strict=True):
        if size != 1 and stride != expected:
            break
        expected *= size
        axis -= 1
    return axis


def _pieces(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    axis = max(_first_contiguous_axis(a), _first_contiguous_axis(b))
    outer = a.shape[:axis]
    if math.prod(outer) > _MAX_PIECES:
        raise BufferError(
            f"a copy between strides {a.strides} and {b.strides} of shape {a.shape} would take "
            f"{math.prod(outer)} driver calls (at most {_MAX_PIECES}): make one side contiguous "
            "with a kernel first"
        )
    for index in itertools.product(*map(range, outer)):
        yield a[index], b[index]


def _copy(dst: Tensor, src: Tensor, stream: Stream) -> None:
    if not dst.size:
        return
    for d, s in _pieces(dst, src):
        _copy_piece(d, s, stream)


def _device_copy(t: Tensor, to_host: int) -> Tensor:
    """Copy device memory for an export with ``copy=True``. Called by the native module.

    The work on `t` has completed; on return, so has the copy.
    """
    device = t.device
    if device is None:
        raise BufferError(
            "the memory is neither the host's nor of a known device, so it cannot be copied for "
            "an export"
        )
    stream = device.default_stream
    if to_host:
        return _core.from_dlpack(t.numpy(stream=stream))
    copy = device.allocate(t.nbytes, stream=stream).view(t.dtype_name, t.shape)
    copy.copy_from(t, stream=stream)
    stream.sync()
    return copy
