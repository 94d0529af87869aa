# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that create tensors of ones, of a range, or of another tensor's shape."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from .. import _core
from .._native import number_text
from .._numpy import np
from .creation import asarray, empty, full, zeros
from .element import numpy_dtype
from .interface import facts, has_interface

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._memory.resource import MemoryResource
    from ..typing import Dims, StreamLike
    from .tensor import Tensor

__all__ = ["arange", "empty_like", "full_like", "ones", "ones_like", "zeros_like"]


def ones(
    shape: Dims,
    dtype: Any = "float32",
    *,
    stream: StreamLike,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Create a tensor of ones.

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
    full : Sets the elements to any value.

    Notes
    -----
    Stream-ordered on `stream`, and captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemsetD32Async``

    Examples
    --------
    >>> cudago.ones(3, "int32", stream=stream).numpy(stream=stream).tolist()
    [1, 1, 1]
    """
    return full(shape, 1, dtype, stream=stream, resource=resource)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: Any = None,
    *,
    stream: StreamLike,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Create a tensor of evenly spaced numbers.

    Parameters
    ----------
    start, stop, step : number
        As for ``numpy.arange``: with one number, that is `stop` and the first element is 0.
    dtype : dtype_like, optional
        Element type, as for `empty`; by default NumPy's for these numbers.
    stream : Stream
        Stream that orders allocation and copy; the tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Of one dimension.

    Raises
    ------
    OverflowError
        If a number does not fit the element type.
    TypeError
        If the element type has no such numbers, as NumPy says.

    Notes
    -----
    Stream-ordered on `stream`. Blocks until the numbers, which are made on the host, have been
    read. Captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemcpyAsync``

    Examples
    --------
    >>> cudago.arange(1, 8, 3, stream=stream).numpy(stream=stream).tolist()
    [1, 4, 7]
    """
    given: dict[str, Any] = {"start": start, "step": step}
    for name, value in given.items():
        if value is None:
            raise TypeError(f"{name} must be a number, not None")
    first, end = (0, start) if stop is None else (start, stop)
    kind = None if dtype is None else numpy_dtype(_core._dtype(dtype)[0])
    # NumPy counts in the element type: a conversion afterwards would wrap, and round twice.
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = np.arange(first, end, step, dtype=kind)
    _check_ends(numbers, first, step)
    return asarray(numbers, stream=stream, resource=resource)


def _check_ends(numbers: Any, first: Any, step: Any) -> None:
    """Refuse a range beyond its element type: NumPy looks at the first two numbers, and wraps."""
    kind, more = numbers.dtype, len(numbers) - 1
    if more < 0 or kind.kind not in "iufV":
        return
    begin, by = _exact(first), _exact(step)
    bad: list[int | float]
    if kind.kind in "iu":  # as NumPy counts: by the difference of the first two
        limits = np.iinfo(kind)
        begin, by = int(begin), int(begin + by) - int(begin) if more else 0
        bad = [n for n in (begin, begin + more * by) if not limits.min <= n <= limits.max]
        has = f"of {limits.min} to {limits.max}"
    else:
        ends = (begin, numbers[0]), (begin + more * by, numbers[-1])
        bad = [n for n, made in ends if math.isfinite(n) and not math.isfinite(float(made))]
        has = "that are finite"
    if bad:
        raise OverflowError(
            f"arange must give numbers {has}, as {kind.name} has them, got {number_text(bad[0])}"
        )


def _exact(number: Any) -> int | float:
    try:
        return operator.index(number)
    except TypeError:
        return float(number)


def _like(
    make: Callable[..., Tensor], tensor: Any, dtype: Any, *args: Any, **options: Any
) -> Tensor:
    if hasattr(tensor, "shape") and hasattr(tensor, "dtype"):
        shape, kind = tuple(tensor.shape), tensor.dtype
    elif has_interface(tensor):
        shape, kind = facts(tensor, "tensor")
    else:
        raise TypeError(
            "tensor must have shape and dtype, or __cuda_array_interface__, which "
            f"{type(tensor).__name__} has not"
        )
    return make(shape, *args, kind if dtype is None else dtype, **options)


def empty_like(
    tensor: Any, dtype: Any = None, *, stream: StreamLike, resource: MemoryResource | None = None
) -> Tensor:
    """Create a tensor of another one's shape, without initialising its elements.

    Parameters
    ----------
    tensor : Tensor or array
        What has the shape; its memory is not used.
    dtype : dtype_like, optional
        Element type, as for `empty`; by default that of `tensor`.
    stream : Stream
        Stream that orders the allocation; the new tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major, whatever the strides of `tensor`.

    Notes
    -----
    Stream-ordered on `stream`, and captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``

    Examples
    --------
    >>> t = cudago.zeros((2, 3), "int32", stream=stream)
    >>> cudago.empty_like(t.T, stream=stream).shape
    (3, 2)
    """
    return _like(empty, tensor, dtype, stream=stream, resource=resource)


def zeros_like(
    tensor: Any, dtype: Any = None, *, stream: StreamLike, resource: MemoryResource | None = None
) -> Tensor:
    """Create a tensor of zeros of another one's shape.

    Parameters
    ----------
    tensor : Tensor or array
        What has the shape; its memory is not used.
    dtype : dtype_like, optional
        Element type, as for `empty`; by default that of `tensor`.
    stream : Stream
        Stream that orders allocation and fill; the new tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major.

    Notes
    -----
    Stream-ordered on `stream`, and captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemsetD8Async``
    """
    return _like(zeros, tensor, dtype, stream=stream, resource=resource)


def ones_like(
    tensor: Any, dtype: Any = None, *, stream: StreamLike, resource: MemoryResource | None = None
) -> Tensor:
    """Create a tensor of ones of another one's shape.

    Parameters
    ----------
    tensor : Tensor or array
        What has the shape; its memory is not used.
    dtype : dtype_like, optional
        Element type, as for `empty`; by default that of `tensor`.
    stream : Stream
        Stream that orders allocation and fill; the new tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major.

    Notes
    -----
    Stream-ordered on `stream`, and captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemsetD32Async``
    """
    return _like(ones, tensor, dtype, stream=stream, resource=resource)


def full_like(
    tensor: Any,
    value: Any,
    dtype: Any = None,
    *,
    stream: StreamLike,
    resource: MemoryResource | None = None,
) -> Tensor:
    """Create a tensor of another one's shape, filled with one value.

    Parameters
    ----------
    tensor : Tensor or array
        What has the shape; its memory is not used.
    value : number
        Value of every element, which must fit the element type.
    dtype : dtype_like, optional
        Element type, as for `empty`; by default that of `tensor`.
    stream : Stream
        Stream that orders allocation and fill; the new tensor is on its device.
    resource : MemoryResource, optional
        Allocates the memory; by default the device's own resource.

    Returns
    -------
    Tensor
        Row-major.

    Notes
    -----
    Stream-ordered on `stream`, and captured as nodes: see `empty`.

    References
    ----------
    ``cuMemAllocFromPoolAsync``, ``cuMemsetD32Async``
    """
    return _like(full, tensor, dtype, value, stream=stream, resource=resource)
