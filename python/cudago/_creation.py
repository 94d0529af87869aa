# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Making tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _core
from ._tensor import Tensor, _extended_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._memory import MemoryResource
    from ._stream import Stream

__all__ = ["asarray", "empty", "full", "zeros"]

_ON_DEVICE = (2, 13)  # DLPack: CUDA, managed


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(shape) if hasattr(shape, "__iter__") else (shape,)


def empty(
    shape: int | Sequence[int],
    dtype: Any = "float32",
    *,
    stream: Stream,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Make a tensor whose elements are not set.

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
        Where the memory comes from; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major.

    Raises
    ------
    TypeError
        If `dtype` is not an element type.
    ValueError
        If a dimension is negative.
    OutOfMemoryError
        If the memory cannot be had.

    Notes
    -----
    Stream-ordered on `stream`; returns before completion. During capture it adds a memory
    allocation node.

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
        raise ValueError(f"dimensions cannot be negative, got {dims}")
    nbytes = (math.prod(dims) * bits + 7) // 8
    source = stream.device if resource is None else resource
    return source.allocate(nbytes, stream=stream).view(name, dims)


def zeros(
    shape: int | Sequence[int],
    dtype: Any = "float32",
    *,
    stream: Stream,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Make a tensor of zeros.

    Parameters
    ----------
    shape, dtype, stream, resource
        As for `empty`.

    Returns
    -------
    Tensor
        Row-major.

    See Also
    --------
    empty, full

    Notes
    -----
    Stream-ordered on `stream`; returns before completion.

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
    shape: int | Sequence[int],
    value: Any,
    dtype: Any = "float32",
    *,
    stream: Stream,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Make a tensor with one value everywhere.

    Parameters
    ----------
    value : number
        What every element becomes, converted to `dtype`.
    shape, dtype, stream, resource
        As for `empty`.

    Returns
    -------
    Tensor
        Row-major.

    Raises
    ------
    OverflowError
        If `value` does not fit `dtype`.

    See Also
    --------
    empty, zeros

    Notes
    -----
    Stream-ordered on `stream`; returns before completion, but for values of 8 and 16 bytes, which
    are copied from the host unless they repeat every 4 bytes.

    Examples
    --------
    >>> cudago.full((2,), 1.5, "float64", stream=stream).numpy(stream=stream).tolist()
    [1.5, 1.5]
    """
    import numpy as np

    t = empty(shape, dtype, stream=stream, resource=resource)
    if not t.nbytes:
        return t
    element = t.dtype if not isinstance(t.dtype, str) else _extended_dtype(t.dtype)
    pattern = np.asarray(value, element).tobytes()
    if len(pattern) > 4 and pattern == pattern[:4] * (len(pattern) // 4):
        pattern = pattern[:4]
    if len(pattern) <= 4:
        t.buffer.fill(pattern, stream=stream)
    else:
        t.buffer.copy_from(np.full(t.shape, value, element), stream=stream)
    return t


def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    stream: Stream,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Make a device tensor of an array, without a copy where it is one already.

    Parameters
    ----------
    obj : Tensor, array_like or object with ``__dlpack__``
        A Tensor, or an object of another library on a CUDA device, is shared; anything on the host
        is copied.
    dtype : dtype_like, optional
        Element type of the result. Shared memory must have it already.
    stream : Stream
        Stream that orders the copy, or on which a shared object will be used.
    resource : MemoryResource, optional
        Where the memory of a copy comes from; by default the device's own resource.

    Returns
    -------
    Tensor
        On the device.

    Raises
    ------
    TypeError
        If shared memory has another element type, or the array's type is not an element type.

    See Also
    --------
    from_dlpack : Share memory of any kind, never copy.

    Notes
    -----
    Stream-ordered on `stream`. Blocks, with the GIL released, until pageable host memory has been
    read.

    Examples
    --------
    >>> cudago.asarray([[1, 2], [3, 4]], "float32", stream=stream).shape
    (2, 2)
    """
    shared = obj if isinstance(obj, Tensor) else None
    if (
        shared is None
        and hasattr(obj, "__dlpack_device__")
        and obj.__dlpack_device__()[0] in _ON_DEVICE
    ):
        shared = _core.from_dlpack(obj, stream=stream)
    if shared is not None:
        if dtype is not None and _core._dtype(dtype)[0] != shared.dtype_name:
            raise TypeError(
                f"the tensor has element type {shared.dtype_name}, not {_core._dtype(dtype)[0]}"
            )
        return shared
    import numpy as np

    host = np.asarray(obj, None if dtype is None else np.dtype(dtype))
    t = empty(host.shape, host.dtype, stream=stream, resource=resource)
    if t.nbytes:
        t.buffer.copy_from(np.ascontiguousarray(host), stream=stream)
    return t
