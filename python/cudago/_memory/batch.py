# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies and prefetches, several in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from .. import _core
from .._native import items
from ..errors import ClosedError
from .buffer import Buffer, _location_number

if TYPE_CHECKING:
    from ..typing import StreamLike
    from .device import Device

__all__ = ["copy_batch", "prefetch_batch"]

_Batch = TypeVar("_Batch", bound="Callable[..., None]")


def _of_pairs(of: str) -> Callable[[_Batch], _Batch]:
    """Say what a batch takes where it is given lists of both sides, as ``cuda.core`` takes them."""

    def decorate(batch: _Batch) -> _Batch:
        @wraps(batch)
        def checked(*args: Any, **kwargs: Any) -> None:
            if len(args) > 1:
                raise TypeError(
                    f"{batch.__name__}() takes one iterable of {of} pairs and stream=, got "
                    f"{len(args)} positional arguments"
                )
            batch(*args, **kwargs)

        return cast("_Batch", checked)

    return decorate


def _pairs(given: Iterable[Any], name: str, of: str) -> tuple[list[Any], list[Any]]:
    firsts: list[Any] = []
    seconds: list[Any] = []
    for i, pair in enumerate(items(given, name, f"pairs {of}")):
        try:
            first, second = pair
        except (TypeError, ValueError):
            what = f"{type(pair).__name__}{_length(pair)}"
            raise TypeError(f"item {i} must be a pair {of}, not {what}") from None
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds


def _length(wrong: Any) -> str:
    try:
        return f" of {len(wrong)}"
    except TypeError:
        return ""


def _element_type(memory: Any) -> str | None:
    """Return the name of the type of the elements; None of memory that has none, or one unknown."""
    if isinstance(memory, _core.Tensor):
        return memory.dtype_name
    if isinstance(memory, _core.Buffer | _core.Pointer):
        return None
    try:
        return _core._dtype(memory.dtype)[0]
    except (AttributeError, TypeError):
        return None


def _is_swapped(memory: Any) -> bool:
    """Whether the host's elements have another byte order, for which there is no name."""
    if isinstance(memory, memoryview):
        return memory.format[:1] in (">", "!")
    return getattr(getattr(memory, "dtype", None), "isnative", None) is False


def _check_alike(i: int, dst: Any, src: Any) -> None:
    for memory, other, name in ((dst, src, "dst"), (src, dst, "src")):
        if _is_swapped(memory) and _element_type(other):
            raise TypeError(
                f"copy {i}: the elements of {name} are not in native byte order: convert it "
                "first, or copy its bytes, as t.buffer"
            )
    to = _element_type(dst)
    of = to and _element_type(src)
    if of and of != to:
        raise TypeError(
            f"copy {i}: src has element type {of}, dst {to}: convert it first, or copy its bytes, "
            "as t.buffer"
        )


@_of_pairs("(dst, src)")
def copy_batch(copies: Iterable[tuple[Any, Any]], *, stream: StreamLike) -> None:
    """Make several copies in one call of the driver.

    Parameters
    ----------
    copies : iterable of (dst, src)
        What `Buffer.copy_from` and `Buffer.copy_to` take: buffers, pointers, contiguous tensors,
        arrays of the host or of other libraries; the same size on both sides of a copy, and, where
        both have one, the same element type.
    stream : Stream
        Stream that orders the batch: all copies come after what is queued, in any order among
        themselves.

    Raises
    ------
    TypeError
        If the element types of one copy differ, or an item is no pair of what can be copied.
    ValueError
        If two copies overlap, so that their order would matter, or the sizes of one differ. Nothing
        has been queued then.
    CUDAError
        If the driver refuses a copy; others of the batch may have been queued.

    Notes
    -----
    Stream-ordered on `stream`. All memory is kept until the copies have completed. Captured as one
    memcpy node for each copy, in their order.

    One driver call needs CUDA 13.0 or newer, memory of devices or pinned memory, and a stream other
    than the legacy default stream; otherwise each copy is a call. So is a copy between memory of
    devices, one of which is not that of `stream`, which needs no access. With pageable memory it
    blocks until `stream` has come to the copies, as `Buffer.copy_from` does.

    References
    ----------
    ``cuMemcpyBatchAsync``, ``cuMemcpyAsync``, ``cuMemcpyPeerAsync``

    Examples
    --------
    >>> a, b = (device.allocate(64, stream=stream) for _ in range(2))
    >>> a.fill(3, stream=stream)
    >>> cudago.copy_batch([(b[:8], a[:8]), (b[32:40], a[8:16])], stream=stream)
    >>> b.view("u1").numpy(stream=stream)[32]
    np.uint8(3)
    """
    dsts, srcs = _pairs(copies, "copies", "(dst, src)")
    for i, (dst, src) in enumerate(zip(dsts, srcs, strict=True)):
        _check_alike(i, dst, src)
    _core._copy_batch(stream, dsts, srcs)


@_of_pairs("(buffer, location)")
def prefetch_batch(
    prefetches: Iterable[tuple[Buffer, Device | Literal["host"]]], *, stream: StreamLike
) -> None:
    """Move several ranges of managed memory to where they will be used next, in one call.

    Parameters
    ----------
    prefetches : iterable of (buffer, location)
        A buffer of managed memory, and a `Device` or "host".
    stream : Stream
        Stream that orders the moves; among themselves they have no order.

    Raises
    ------
    TypeError
        If a buffer is not managed memory. Like those below it says which.
    UnsupportedError
        If a device cannot use managed memory concurrently with the host.

    See Also
    --------
    Buffer.prefetch : Moves one.

    Notes
    -----
    Stream-ordered on `stream`. Not allowed while `stream` is capturing. On drivers before CUDA 13.0
    and on the legacy default stream, each prefetch is a call.

    References
    ----------
    ``cuMemPrefetchBatchAsync``, ``cuMemPrefetchAsync``

    Examples
    --------
    >>> resource = cudago.ManagedMemoryResource(device)
    >>> a, b = resource.allocate(1 << 16), resource.allocate(1 << 16)
    >>> cudago.prefetch_batch([(a, device), (b, "host")], stream=stream)
    >>> a.last_prefetch_location == device, b.last_prefetch_location
    (True, 'host')
    """
    buffers, locations = _pairs(prefetches, "prefetches", "(buffer, location)")
    numbers: list[int] = []
    for i, (buffer, location) in enumerate(zip(buffers, locations, strict=True)):
        if not isinstance(buffer, Buffer):
            raise TypeError(f"prefetch {i} must be of a Buffer, not {type(buffer).__name__}")
        if buffer.is_closed:
            raise ClosedError(f"prefetch {i}: buffer is closed")
        buffer._need_managed(f"prefetch {i}: the buffer")
        numbers.append(_location_number(location, f"prefetch {i}: location"))
    _core._prefetch_batch(stream, buffers, numbers)
