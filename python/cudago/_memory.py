# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers, pointers, and memory that is pinned where it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from . import _core
from . import _zconstants as _z
from ._card import card
from ._ordinal import device_at

if TYPE_CHECKING:
    from ._device import Device
    from .typing import BufferLike, StreamLike

__all__ = ["Buffer", "Pointer", "pin"]

Pointer = _core.Pointer
_HOST, _NOWHERE = -1, -2  # LOCATION_... in pyext/native/memory.h


def _location_number(location: object, name: str, kinds: str = 'a Device or "host"') -> int:
    if isinstance(location, _core.Device):
        return location.ordinal
    if location == "host":
        return _HOST
    kind = ValueError if isinstance(location, str) else TypeError
    got = repr(location) if isinstance(location, str) else type(location).__name__
    raise kind(f"{name} must be {kinds}, not {got}")


def _location(number: int) -> Device | Literal["host"] | None:
    if number == _NOWHERE:
        return None
    return "host" if number == _HOST else device_at(number)


class Buffer(_core.Buffer):
    """A range of bytes of one allocation.

    Made by `Device.allocate` and the memory resources. ``buf[start:stop]`` is a view of some of the
    bytes, ``buf.view(dtype, shape)`` a `Tensor` over them, ``buf.ptr`` a `Pointer`. Each keeps the
    allocation alive, and so does a graph that was given one: `close` drops this buffer's reference,
    and the memory goes with the last.

    Notes
    -----
    Sizes are bytes. Pinned and managed memory has Python's buffer protocol, so that
    ``numpy.frombuffer(buf, dtype)`` is an array over it; the host does not wait for device work by
    that. Device memory is shared over DLPack, or copied.

    Two buffers are equal if they are the same bytes of the same allocation; what is in them is not
    compared.

    Examples
    --------
    >>> with device.allocate(16, stream=stream) as buf:
    ...     buf.fill(7, stream=stream)
    ...     out = bytearray(8)
    ...     buf[8:16].copy_to(out, stream=stream)
    >>> out[7]
    7
    """

    __slots__ = ()

    @property
    def device(self) -> Device | None:
        """The device that the memory belongs to; None for host memory."""
        return None if self._ordinal is None else device_at(self._ordinal)

    def _need_managed(self) -> None:
        if (kind := self.kind) != "managed":
            raise TypeError(
                f"this buffer is {kind} memory: only managed memory, which a ManagedMemoryResource "
                "allocates, has advice and is prefetched"
            )

    @property
    def read_mostly(self) -> bool:
        """Whether managed memory is read much more than written. Can be set.

        If so, whoever reads it may get a copy of its own. It is for whole pages, and false if only
        some of the buffer's are advised so. A `TypeError` for other kinds of memory.
        """
        self._need_managed()
        return bool(self._range()[0])

    @read_mostly.setter
    def read_mostly(self, value: bool) -> None:
        self._need_managed()
        advice = _z.CU_MEM_ADVISE_SET_READ_MOSTLY if value else _z.CU_MEM_ADVISE_UNSET_READ_MOSTLY
        self._advise(advice, _HOST)

    @property
    def preferred_location(self) -> Device | Literal["host"] | None:
        """Where managed memory is kept as far as possible. Can be set.

        A `Device`, "host", or None. It is for whole pages, and None if the buffer's differ. A
        `TypeError` for other kinds of memory.
        """
        self._need_managed()
        return _location(self._range()[1])

    @preferred_location.setter
    def preferred_location(self, value: Device | Literal["host"] | None) -> None:
        self._need_managed()
        if value is None:
            self._advise(_z.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, _HOST)
        else:
            at = _location_number(value, "preferred_location", 'a Device, "host" or None')
            self._advise(_z.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at)

    @property
    def accessed_by(self) -> frozenset[Device | Literal["host"]]:
        """Who managed memory is kept mapped for, wherever it is. Can be set.

        Each a `Device` or "host"; any iterable can be assigned, and what differs is changed.
        It is for whole pages, and has who accesses all of the buffer's: who accesses only some is
        neither seen nor taken away. A `TypeError` for other kinds of memory.
        """
        self._need_managed()
        return frozenset(x for n in self._range()[2] if (x := _location(n)) is not None)

    @accessed_by.setter
    def accessed_by(self, value: Iterable[Device | Literal["host"]]) -> None:
        self._need_managed()
        if isinstance(value, str):
            raise TypeError(f"accessed_by must be an iterable of locations, not {value!r} alone")
        wanted = {_location_number(x, "a location in accessed_by") for x in value}
        known = set(self._range()[2])
        for at in sorted(known - wanted):
            self._advise(_z.CU_MEM_ADVISE_UNSET_ACCESSED_BY, at)
        for at in sorted(wanted - known):
            self._advise(_z.CU_MEM_ADVISE_SET_ACCESSED_BY, at)

    @property
    def last_prefetch_location(self) -> Device | Literal["host"] | None:
        """Where managed memory was last prefetched to: a `Device`, "host", or None.

        It counts from the call of `prefetch` on. None if the buffer's pages differ, or some were
        never prefetched. A `TypeError` for other kinds of memory.
        """
        self._need_managed()
        return _location(self._range()[3])

    def prefetch(self, location: Device | Literal["host"], *, stream: StreamLike) -> None:
        """Move managed memory to where it is going to be used.

        Parameters
        ----------
        location : Device or "host"
            Where to.
        stream : Stream
            Stream that orders the move.

        Raises
        ------
        TypeError
            If the buffer is not managed memory, or `location` is no location.
        ValueError
            If `location` is another string than "host", or `stream` is capturing.
        ClosedError
            If the buffer or the stream is closed.
        UnsupportedError
            If a device cannot use managed memory while the host does.
        CUDAError
            If the driver refuses.

        See Also
        --------
        preferred_location : Says where the memory shall stay.

        Notes
        -----
        Stream-ordered on `stream`. Returns before completion, with the GIL released meanwhile. Not
        allowed while `stream` is capturing, which goes on. Whole pages are moved. Nothing but the
        time of later accesses depends on it; on the simulated driver not even that.

        References
        ----------
        ``cuMemPrefetchAsync``

        Examples
        --------
        >>> buffer = cudago.ManagedMemoryResource(device).allocate(1 << 16)
        >>> buffer.prefetch(device, stream=stream)
        >>> buffer.last_prefetch_location == device
        True
        """
        self._need_managed()
        self._prefetch(_location_number(location, "location"), stream)

    _repr_html_ = card

    def __repr__(self) -> str:
        if self.is_closed:
            return f"<cudago.Buffer of {self.size} bytes: closed>"
        return f"<cudago.Buffer {self.handle:#x}: {self.size} bytes, {self.kind}>"


def pin(obj: BufferLike, *, read_only: bool = False) -> Buffer:
    """Page-lock the memory of an object where it is, and make it a pinned buffer.

    Nothing is copied: every device reads and writes the object's own bytes.

    Parameters
    ----------
    obj : buffer-protocol object
        A NumPy array, a bytearray, a memoryview, an mmap, ...: C-contiguous, and writable unless
        `read_only` is true.
    read_only : bool
        Whether devices may only read the memory. The buffer is then refused as a destination; a
        kernel that writes to it fails, or does what it should not.

    Returns
    -------
    Buffer
        Of kind "pinned", for every place where one goes: kernel arguments, graphs, copies, DLPack.

    Raises
    ------
    TypeError
        If `obj` has no buffer protocol.
    BufferError
        If it is not C-contiguous, or is read-only and `read_only` is false.
    ValueError
        If it has no bytes.
    UnsupportedError
        If the device cannot use such memory.
    CUDAError
        If a part of the memory is registered already, here or by another library
        (``CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED``), if CUDA has allocated it, or if the system
        does not lock as much.

    See Also
    --------
    PinnedMemoryResource : Allocates memory that is page-locked.

    Notes
    -----
    Not stream-ordered: blocks until the pages are locked, with the GIL released. Allowed while
    streams are capturing, and not part of the capture.

    The object is kept, and its buffer export, so that a bytearray cannot be resized, until the
    memory is unlocked. That is once the last of the buffer, its views and the graphs that use it
    has gone, and after all work of all devices that was queued by then, on a thread of its own; it
    waits for the end of captures. While another library captures, keep the buffer open: unlocking
    would spoil that capture. An object that refers to a buffer over itself lives until that buffer
    is closed.

    Locking takes longer than a copy of the same bytes: pin what is used many times.

    References
    ----------
    ``cuMemHostRegister``, ``cuMemHostUnregister``

    Examples
    --------
    >>> data = bytearray(4)
    >>> with cudago.pin(data) as buffer:
    ...     buffer.fill(7, stream=stream)
    ...     stream.sync()
    >>> list(data)
    [7, 7, 7, 7]
    """
    made: Buffer = _core._pin(obj, read_only)
    return made


_core._set_class("Buffer", Buffer)
