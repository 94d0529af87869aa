# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors: typed, shaped views of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from .. import _core
from .._card import card, glance, pretty
from .._memory.buffer import memory_not_pickled
from .._native import final, into_native, or_closed
from .._numpy import np
from .._ordinal import device_at
from .._stream.stream import stream_of
from ..errors import ClosedError
from . import packed, strided
from .arithmetic import refuse_arithmetic
from .convert import check_convertible, converted
from .copy import copy
from .element import element, numpy_dtype, shortest, widened
from .exported import moved_from, moved_to
from .operand import as_source, as_target, check_alike, copied_unpacked, host_bytes
from .place import described, is_packed, is_pageable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._memory.buffer import Pointer
    from .._memory.device import Device
    from ..typing import StreamLike

__all__ = ["Tensor"]


@final
@into_native
class Tensor(_core.Tensor):
    """A typed, shaped view of memory.

    Created by `Buffer.view`, `empty`, `zeros`, `full`, `asarray` and `from_dlpack`. A tensor keeps
    its memory alive, as do its views and whatever another library makes from it over DLPack.
    Indexing with integers, slices, ``None`` and ``...`` returns further views. Nothing is copied
    unless a method's name says so.

    Notes
    -----
    Two tensors are equal if they are the same view of the same memory; elements are not compared.

    Elements of less than a byte (float4_e2m1fn, float6_e2m3fn, float6_e3m2fn) are packed, as DLPack
    packs them, the lowest bits first; NumPy has a byte for each. `numpy`, `copy_to`, `copy_from`,
    `asarray` and `item` translate. A view of them may begin within a byte. It then has no address:
    it is read and written by copies, and all else is a BufferError, or a TypeError where elements
    have to be whole bytes.

    ``repr`` shows a few elements, if the host can read them in place and no work is under way; it
    waits for nothing.

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
        span, _ = self._span
        return span.ptr + (self.handle - span.handle)

    def __reversed__(self) -> Iterator[Tensor]:
        return (self[i] for i in reversed(range(len(self))))

    def numpy(self, *, stream: StreamLike) -> np.ndarray:
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
        ValueError
            If `stream` is capturing: use `copy_to` with an array of your own.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until the copy is done.

        References
        ----------
        ``cuMemcpyAsync``, ``cuMemcpy3DAsync``, ``cuStreamSynchronize``

        Examples
        --------
        >>> cudago.full((2, 2), 7, "int32", stream=stream).numpy(stream=stream)
        array([[7, 7],
               [7, 7]], dtype=int32)
        """
        on = stream_of(stream)
        if on.is_capturing:  # else the copy would be captured before the wait is refused
            raise ValueError(
                "a stream that is capturing cannot be waited for: copy with "
                "t.copy_to(array, stream=...) instead"
            )
        dtype = numpy_dtype(self.dtype_name)
        if is_packed(self):
            return packed.read(self, on).view(dtype)
        return host_bytes(self, on).view(dtype).reshape(self.shape)

    def copy_from(self, src: Any, *, stream: StreamLike) -> None:
        """Copy elements into this tensor.

        Parameters
        ----------
        src : Tensor or array_like
            Source, with this tensor's shape. Tensors, NumPy arrays, also those of ml_dtypes' types,
            and objects with ``__dlpack__`` or ``__cuda_array_interface__`` must have its element
            type; numbers and lists are converted. A `Buffer` is a row of bytes, and so is a
            `Pointer` up to the end of its buffer.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        BufferError
            If, during a capture, the copy would take more than 65536 nodes, or memory would have to
            be converted; or if elements have less than a byte and one side has gaps, shares a byte
            with other elements, or is an array of NumPy's.
        ValueError
            If the shapes differ. If the sides share elements, as ``t[1:]`` and ``t[:-1]``, and are
            not the same, or elements of this tensor share memory: a GPU moves elements in any
            order. Sides of which one lies in the gaps of the other, as ``t[::2]`` and ``t[1::2]``,
            share none. What is all in pageable memory may overlap, but in a capture.

        See Also
        --------
        copy_to : Copies the other way.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until `src` has been read if it is pageable memory, and
        until the copy is done if both sides are.

        One driver call copies all rows where both sides have them at regular distances, as any
        slices of matrices. Otherwise a kernel copies, if both sides are memory that a device can
        access; else the elements are packed first. On GPUs it also copies rows in memory of the
        stream's device, from 65536 of them or 16 MiB on, where that is faster. Captured as one
        memcpy node for each such call, or as a kernel node; the nodes keep both sides alive.
        Elements of less than a byte that are not whole bytes on both sides are moved by the host,
        which the call then waits for.

        References
        ----------
        ``cuMemcpyAsync``, ``cuMemcpy3DAsync``

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
            raise BufferError("the tensor is read-only")
        if moved_from(self, src, stream):
            return
        source = as_source(src, self, stream)
        check_alike("src", source, self)
        copy(self, source, stream_of(stream), (self, src))

    def copy_to(self, dst: Any, *, stream: StreamLike) -> None:
        """Copy the elements into an array or another tensor.

        Parameters
        ----------
        dst : Tensor, array_like
            Destination, with this tensor's shape and element type: a tensor, a NumPy array, also of
            a type of ml_dtypes, or any object with ``__dlpack__``, ``__cuda_array_interface__`` or
            the buffer protocol. A `Buffer` is a row of bytes, and so is a `Pointer` up to the end
            of its buffer.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        BufferError
            If, during a capture, the copy would take more than 65536 nodes; or if elements have
            less than a byte and one side has gaps, shares a byte with other elements, or is an
            array of NumPy's that is written to.
        ValueError
            If the shapes differ, or the sides share elements, or elements of `dst` share memory, as
            for `copy_from`.

        See Also
        --------
        copy_from : Copies the other way.
        numpy : Copies to a new array, and waits.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until the copy is done if `dst` is pageable memory.
        Captured and divided as `copy_from` is.

        References
        ----------
        ``cuMemcpyAsync``, ``cuMemcpy3DAsync``

        Examples
        --------
        >>> array = numpy.empty((2, 2), "float32")
        >>> cudago.full((2, 2), 7, stream=stream).copy_to(array, stream=stream)
        >>> array.tolist()
        [[7.0, 7.0], [7.0, 7.0]]
        """
        if self.is_closed:
            raise ClosedError("tensor is closed")
        on = stream_of(stream)
        if copied_unpacked(dst, self, on) or moved_to(self, dst, on):
            return
        target = as_target(dst, stream)
        if target.is_readonly:
            raise BufferError("dst is read-only")
        check_alike("dst", target, self)
        copy(target, self, on, (dst, self))

    def astype(self, dtype: Any, *, stream: StreamLike | None = None, copy: bool = True) -> Tensor:
        """Return the elements in another element type, as a new tensor.

        Parameters
        ----------
        dtype : dtype_like
            Element type of the result, as for `empty`.
        stream : Stream
            Stream that orders allocation and conversion; the result is on its device. Needed
            unless this tensor itself is returned.
        copy : bool
            If false, return this tensor itself if it has the element type already.

        Returns
        -------
        Tensor
            Row-major, whatever the strides of this tensor.

        Raises
        ------
        TypeError
            If one of the types is not converted, as the floats of 8 bits and less but two, or
            complex numbers would become real; or if `stream` is missing.

        See Also
        --------
        Buffer.view : Reads the same bytes as another element type.
        elementwise : Converts and computes in one kernel.

        Notes
        -----
        Converted as by ``numpy.ndarray.astype``, between bool, integers, float16, bfloat16,
        float32, float64 and, as ml_dtypes does, float8_e4m3fn and float8_e5m2: floats become
        integers by truncation towards zero, integers narrower ones by losing their upper bits, and
        everything but zero is True. Floats are rounded to nearest even, once; but to bfloat16 and
        those of 8 bits by way of float32. What is too large becomes NaN as float8_e4m3fn, and
        infinite as other floats. Where NumPy's result is undefined, so is this: for floats whose
        integer part the integer type does not hold, and for NaN as an integer. The payload of a NaN
        may change. All these become complex64 or complex128 with imaginary parts of 0, and these
        two become each other.

        Stream-ordered on `stream`. Converted by a kernel, which is loaded when a pair of types is
        first converted. Memory that the kernel cannot read in place is copied first: pageable
        memory, as `copy_from` does, misaligned memory, and that of another device. Captured as
        nodes for allocation, kernel and copy, and for a fill where real numbers become complex.

        References
        ----------
        ``cuMemAllocFromPoolAsync``, ``cuLaunchKernelEx``

        Examples
        --------
        >>> t = cudago.asarray([-1.5, 0, 2.75], "float32", stream=stream)
        >>> t.astype("int8", stream=stream).numpy(stream=stream).tolist()
        [-1, 0, 2]
        >>> t.astype("float32", copy=False) is t
        True
        """
        name = _core._dtype(dtype)[0]
        if self.is_closed:
            raise ClosedError("tensor is closed")
        if name == self.dtype_name:
            if not copy:
                return self
        else:
            check_convertible(self.dtype_name, name)
        if stream is None:
            raise TypeError("astype needs stream=, which orders the conversion")
        return converted(self, name, stream_of(stream))

    def contiguous(self, *, stream: StreamLike) -> Tensor:
        """Return the tensor with its elements in row-major order, without gaps.

        Parameters
        ----------
        stream : Stream
            Stream that orders allocation and copy; a copy is on its device.

        Returns
        -------
        Tensor
            This tensor itself if it is so already, wherever its memory is; else a copy.

        Raises
        ------
        BufferError
            If, during a capture, elements of less than a byte would have to be moved.

        See Also
        --------
        astype : Makes a copy in any case, of another element type too.
        copy_to : Copies into memory of your own.

        Notes
        -----
        Stream-ordered on `stream`. Copied and divided as by `copy_from`; in a capture, the
        allocation and the copy become nodes of the graph.

        References
        ----------
        ``cuMemAllocFromPoolAsync``, ``cuMemcpy3DAsync``

        Examples
        --------
        >>> t = cudago.zeros((4, 8), stream=stream)
        >>> t.contiguous(stream=stream) is t
        True
        >>> t.T.contiguous(stream=stream).strides
        (4, 1)
        """
        on = stream_of(stream)
        if on.is_closed:
            raise ClosedError("stream is closed")
        if self.is_closed:
            raise ClosedError("tensor is closed")
        if self.is_contiguous:
            return self
        return converted(self, self.dtype_name, on)

    def item(self, *, stream: StreamLike) -> Any:
        """Return the only element as a Python number, and wait for its copy.

        Parameters
        ----------
        stream : Stream
            Stream that orders the copy.

        Returns
        -------
        bool, int, float or complex
            The element.

        Raises
        ------
        ValueError
            If there is not exactly one element, or if `stream` is capturing.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until the copy is done.

        References
        ----------
        ``cuMemcpyAsync``, ``cuStreamSynchronize``

        Examples
        --------
        >>> cudago.full((2, 2), 7, "int32", stream=stream)[1, 0].item(stream=stream)
        7
        """
        if self.size != 1:
            raise ValueError(f"a tensor of {self.size} elements is not one number")
        return widened(self.numpy(stream=stream).reshape(())).item()

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
            raise BufferError("the tensor is read-only")
        if is_pageable(self):
            raise BufferError("the tensor is pageable host memory: fill the array itself")
        pattern = shortest(element(value, self.dtype_name))
        if not strided.needs_kernel(self, pattern):
            self.buffer.fill(pattern, stream=stream)
        elif self.size:
            strided.fill(self, pattern, stream_of(stream))

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray:
        # Otherwise NumPy would treat the tensor as a sequence, and make an array of tensors.
        raise TypeError(
            "a cudago Tensor is not converted to a NumPy array by itself: use "
            "t.numpy(stream=...), which copies"
        )

    def __reduce__(self) -> NoReturn:
        memory_not_pickled(self)

    _repr_html_ = card
    _repr_pretty_ = pretty

    @or_closed
    def __repr__(self) -> str:
        try:
            return self._described(glance)
        except ClosedError:  # the interpreter is ending
            return "<Tensor closed>"

    def _described(self, values: Callable[[Tensor], str]) -> str:
        """Describe it, with what `values` tells of its elements."""
        if self.is_closed:
            return "<Tensor closed>"
        return described(self, values(self))


refuse_arithmetic(_core.Tensor)
