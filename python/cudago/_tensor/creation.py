# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that create tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import _core
from .._native import number_text
from .._numpy import is_array, needed
from .._stream.stream import stream_of
from ..errors import ClosedError
from . import packed
from .exported import exported, moved_from
from .interface import has_interface, through
from .operand import host_array, is_memory
from .place import is_packed_type
from .tensor import Tensor

if TYPE_CHECKING:
    from .._memory.device import Device
    from .._memory.resource import MemoryResource
    from ..typing import Dims, StreamLike

__all__ = ["asarray", "empty", "full", "zeros"]

_ON_DEVICE = (2, 13)  # DLPack: CUDA, managed


def _is_sequence(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _shape(shape: Any) -> tuple[int, ...]:
    """Return the sizes that ``Dims`` are."""
    is_one = not _is_sequence(shape) or getattr(shape, "ndim", None) == 0
    sizes: tuple[Any, ...] = (shape,) if is_one else tuple(shape)
    try:
        return tuple([operator.index(n) for n in sizes])
    except TypeError:
        got = shape if is_one else sizes
        raise TypeError(f"shape must be an int or a sequence of ints, got {got!r}") from None


def _allocator(resource: MemoryResource | None, stream: StreamLike) -> Device | MemoryResource:
    if resource is None:
        return stream_of(stream).device
    if not isinstance(resource, _core.MemoryResource):
        raise TypeError(f"resource must be a MemoryResource, not {type(resource)}")
    if resource.is_closed:  # which one in Python need not look at
        raise ClosedError("memory resource is closed")
    return resource


def empty(
    shape: Dims,
    dtype: Any = "float32",
    *,
    stream: StreamLike,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Create a tensor without initialising its elements.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes of the dimensions.
    dtype : dtype_like
        Element type: a name ("float32", "bfloat16"), a NumPy or PyTorch dtype, or a string such as
        "f4".
    stream : Stream
        Stream that orders the allocation; the tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major.

    See Also
    --------
    zeros : Sets the elements to zero.
    asarray : Copies the elements of an array.

    Notes
    -----
    Stream-ordered on `stream`, and captured as a node that allocates: see
    `MemoryResource.allocate`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``

    Examples
    --------
    >>> cudago.empty((2, 3), "f4", stream=stream).nbytes
    24
    """
    dims = _shape(shape)
    name, bits = _core._dtype(dtype)
    if any(n < 0 for n in dims):
        raise ValueError(f"dimensions cannot be negative, got {number_text(dims)}")
    nbytes = (math.prod(dims) * bits + 7) // 8
    source = _allocator(resource, stream)
    memory = _core._given(source, source.allocate(nbytes, stream=stream), nbytes)
    return memory.view(name, dims)


def zeros(
    shape: Dims,
    dtype: Any = "float32",
    *,
    stream: StreamLike,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Create a tensor of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes of the dimensions.
    dtype : dtype_like
        Element type, as for `empty`.
    stream : Stream
        Stream that orders allocation and fill; the tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major.

    See Also
    --------
    empty : Leaves the elements uninitialised.
    full : Sets them to any value.

    Notes
    -----
    Stream-ordered on `stream`, and captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemsetD8Async``

    Examples
    --------
    >>> cudago.zeros(3, "int32", stream=stream).numpy(stream=stream).tolist()
    [0, 0, 0]
    """
    t = empty(shape, dtype, stream=stream, resource=resource)
    if t.nbytes:
        t.buffer.fill(0, stream=stream)
    return t


def full(
    shape: Dims,
    value: Any,
    dtype: Any = "float32",
    *,
    stream: StreamLike,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Create a tensor filled with one value.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes of the dimensions.
    value : number
        Value of every element, which must fit `dtype`: see `Tensor.fill`. For a bool it is
        converted as NumPy does: True unless it is zero.
    dtype : dtype_like
        Element type, as for `empty`.
    stream : Stream
        Stream that orders allocation and fill; the tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major.

    See Also
    --------
    empty : Leaves the elements uninitialised.
    zeros : Sets them to zero.

    Notes
    -----
    Stream-ordered on `stream`, and captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemsetD32Async``

    Examples
    --------
    >>> cudago.full((2,), 1.5, "float64", stream=stream).numpy(stream=stream).tolist()
    [1.5, 1.5]
    """
    t = empty(shape, dtype, stream=stream, resource=resource)
    t.fill(value, stream=stream)
    return t


def _may_be_on_device(obj: Any) -> bool:
    """Say whether a stream matters to ``obj``, of which nothing else is asked or refused here.

    A tensor without memory of its own may not even say where it is. The import says why it is
    refused.
    """
    try:
        return obj.__dlpack_device__()[0] in _ON_DEVICE
    except Exception:
        return True


def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    stream: StreamLike,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Return an array as a device tensor, without a copy if it already is one.

    Parameters
    ----------
    obj : Tensor, array_like, object with ``__dlpack__`` or ``__cuda_array_interface__``
        A Tensor, wherever its memory is, or another library's object on a CUDA device, is shared;
        anything else is copied, and so is what has only the array interface, if it is read-only.
    dtype : dtype_like, optional
        Element type of the result. Shared memory must have it already.
    stream : Stream
        Stream that orders the copy, or on which a shared object will be used.
    resource : MemoryResource, optional
        Allocates the memory of a copy; by default the device's own resource.

    Returns
    -------
    Tensor
        On the device, unless `obj` is a Tensor of other memory.

    Raises
    ------
    BufferError
        If, during a capture, an array would have to be converted, or copied by too many nodes.
    TypeError
        If shared memory has another element type; or `obj` is no array and no numbers.
    OverflowError
        If integers are beyond those of 64 bits.

    See Also
    --------
    from_dlpack : Shares memory of any kind, and never copies.

    Notes
    -----
    `Tensor.origin` of the result says how `obj` was shared; it is "cudago" after a copy. A copy has
    the last index vary fastest, in whatever order the elements of `obj` are.

    Stream-ordered on `stream`. Blocks until pageable host memory has been read. Captured as nodes,
    unless nothing is copied: see `empty`. The copy is then made at each launch, of what an array
    then has. So an array is not converted: that must be before the capture. Numbers and lists are
    converted as they are captured.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemcpyAsync``

    Examples
    --------
    >>> cudago.asarray([[1, 2], [3, 4]], "float32", stream=stream).shape
    (2, 2)
    """
    shared = obj if isinstance(obj, Tensor) else None
    if shared is not None and shared.is_closed:
        raise ClosedError("tensor is closed")
    theirs = None
    if shared is None and hasattr(obj, "__dlpack__") and not is_array(obj):
        on_device = _may_be_on_device(obj)
        theirs = _core.from_dlpack(obj, stream=stream if on_device else None)
        if theirs.device is not None or theirs._memory[1] in _ON_DEVICE:
            shared = theirs
    elif shared is None and has_interface(obj):
        shared = through(obj, stream, "obj")
        if shared.is_readonly:  # what is shared here may be written to
            t = empty(shared.shape, shared.dtype_name, stream=stream, resource=resource)
            t.copy_from(shared, stream=stream)
            shared = t
    if shared is not None:
        if dtype is not None and _core._dtype(dtype)[0] != shared.dtype_name:
            raise TypeError(
                f"the tensor has element type {shared.dtype_name}, not {_core._dtype(dtype)[0]}"
            )
        return shared
    name = None if dtype is None else _core._dtype(dtype)[0]
    if theirs is not None and name in (None, theirs.dtype_name):  # types that NumPy lacks, too
        t = empty(theirs.shape, theirs.dtype_name, stream=stream, resource=resource)
        t.copy_from(theirs, stream=stream)
        return t
    if not isinstance(obj, bytes) and (of := exported(obj)) is not None:
        if name not in (None, of.dtype_name):
            needed(f"to convert obj from {of.dtype_name} to {name}")
        t = empty(of.shape, of.dtype_name, stream=stream, resource=resource)
        moved_from(t, of.view, stream)
        return t
    host = host_array(obj, name, "obj", stream)
    if is_packed_type(_core._dtype(host.dtype)[0]) and is_memory(obj):
        packed.check_captured(host.dtype, "obj", stream_of(stream))
    t = empty(host.shape, host.dtype, stream=stream, resource=resource)
    if not host.flags.c_contiguous:  # to be read at each launch
        t.copy_from(host, stream=stream)
    elif t.nbytes:
        raw = host.reshape(-1).view("u1")  # DLPack may lack the type
        if is_packed_type(t.dtype_name):
            raw = packed.pack(raw, packed.bits_of(t))
        t.buffer.copy_from(raw, stream=stream)
    return t
