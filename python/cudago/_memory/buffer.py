# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers, pointers, and host memory pinned in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex

from .. import _core
from .. import _zconstants as _z
from .._card import card, glance, pretty
from .._import_at_exit import late
from .._native import final, into_native, items, not_pickled, whole
from .._ordinal import device_at

if TYPE_CHECKING:
    from ..typing import BufferLike, StreamLike, SupportsDLPack
    from .device import Device
    from .ipc import IPCBufferDescriptor
    from .resource import DeviceMemoryResource

__all__ = ["Buffer", "Pointer", "pin"]

Pointer = _core.Pointer
_HOST, _NOWHERE = -1, -2  # LOCATION_... in pyext/memory/memory.h


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


def memory_not_pickled(self: object) -> NoReturn:
    """Say what can be sent instead of memory."""
    not_pickled(
        self,
        "memory of a pool or a VirtualMemoryResource with ipc_enabled",
        "; of other memory pickle a copy, such as t.numpy(stream=s)",
    )


def _pointer_not_pickled(self: _core.Pointer) -> NoReturn:
    not_pickled(
        self,
        "an address is of this process alone: send the buffer from there, p.buffer[p.offset:]. "
        "Memory of a pool or a VirtualMemoryResource with ipc_enabled",
        "; of other memory pickle a copy",
    )


# In the class itself, which nobody can derive from.
Pointer.__reduce__ = _pointer_not_pickled  # type: ignore[method-assign, assignment]


@final
@into_native
class Buffer(_core.Buffer):
    """A range of bytes within one allocation.

    Created by `Device.allocate` and the memory resources. ``buf[start:stop]`` is a view of some of
    the bytes, ``buf.view(dtype, shape)`` a `Tensor` over them: each keeps the allocation alive, as
    does a graph that uses the buffer. ``buf.ptr`` is a `Pointer`, which keeps the buffer. `close`
    drops this buffer's reference; the memory is freed with the last one.

    Notes
    -----
    Sizes are in bytes. Pinned and managed memory supports Python's buffer protocol:
    ``numpy.frombuffer(buf, dtype)`` is an array over it. Accessing such an array does not wait for
    device work. Device memory can be shared over DLPack, or copied.

    ``repr`` shows a few bytes, if the host can read them and no work is under way; it waits for
    nothing.

    Two buffers are equal if they are the same bytes of the same allocation; contents are not
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

    @classmethod
    def from_handle(
        cls, ptr: SupportsIndex, size: SupportsIndex, *, owner: object, stream: StreamLike
    ) -> Buffer:
        """Wrap device memory of another library, by its address.

        Parameters
        ----------
        ptr : int
            Address of the memory.
        size : int
            Size in bytes.
        owner : object
            What keeps the memory allocated. The buffer, and whatever uses its memory, keep it,
            which Python's garbage collector does not see: of an owner that holds the buffer, close
            the buffer, or neither is ever freed.
        stream : Stream
            Stream in whose order the memory can be used, and in whose order the owner may free it.

        Returns
        -------
        Buffer
            Over the memory; nothing is copied.

        Raises
        ------
        ValueError
            If the range is not memory of the stream's device, as far as the driver can tell.
        TypeError
            If `owner` is None: then nobody would keep the memory.

        See Also
        --------
        from_dlpack : Wraps arrays and tensors of other libraries, with their types.
        allocators.ForeignMemoryResource : Allocates from another library.

        Notes
        -----
        When the last user of the memory has let go, and work on other streams that uses it has
        ended, the owner is dropped: on any thread, but not before what it does in the order of
        `stream` comes after all uses.

        References
        ----------
        ``cuPointerGetAttribute``, ``cuMemGetAddressRange``

        Examples
        --------
        >>> theirs = device.allocate(64, stream=stream)  # stands for memory of another library
        >>> ours = cudago.Buffer.from_handle(theirs.handle, 64, owner=theirs, stream=stream)
        >>> ours.fill(1, stream=stream)
        """
        if owner is None:
            raise TypeError("owner must be what keeps the memory allocated, not None")
        return _core._buffer_adopt(whole(ptr, "ptr"), whole(size, "size"), stream, owner)

    @property
    def ipc_descriptor(self) -> IPCBufferDescriptor:
        """Names the memory to other processes, for `from_ipc_descriptor`.

        Only for memory that this process has allocated from a pool with ``ipc_enabled``;
        `ValueError` for other memory, also for that of a `VirtualMemoryResource`, which is sent by
        ``multiprocessing`` alone. Keep the buffer until the other process has imported it: from
        then on the memory is freed only after that process has let go of it, or has ended.
        """
        with late:
            from .ipc import describe

        return describe(self)

    @classmethod
    def from_ipc_descriptor(
        cls,
        resource: DeviceMemoryResource,
        descriptor: IPCBufferDescriptor,
        *,
        stream: StreamLike,
    ) -> Buffer:
        """Import memory that another process has allocated and shares.

        Parameters
        ----------
        resource : DeviceMemoryResource
            The pool of that process, imported here.
        descriptor : IPCBufferDescriptor
            `ipc_descriptor` of the buffer there.
        stream : Stream
            Stream that orders the release: the memory is unmapped here after its work, and after
            that of other streams that use the buffer.

        Returns
        -------
        Buffer
            Over the same bytes; nothing is copied.

        Raises
        ------
        ValueError
            If the memory belongs to another pool or to this process, if the other process has freed
            it, if the driver says that it has fewer bytes than the descriptor, or if `stream` is
            capturing.

        See Also
        --------
        DeviceMemoryResource.from_allocation_handle : Imports the pool.
        Event.from_ipc_descriptor : Orders work between processes.

        Notes
        -----
        Blocks until the memory is mapped, and before that until no thread is in `Device.sync`:
        NVIDIA's driver, 580, crashes where the two meet, so do not import while another library
        waits for the device. Ctrl-C ends the wait.

        It does not wait for work of the other process: share an event for that, or wait there
        before the descriptor is sent. ``multiprocessing`` sends buffers by itself, and imports them
        on the device's default stream. Memory that is imported several times has one address, and
        is unmapped with its last buffer.

        References
        ----------
        ``cuMemPoolImportPointer``, ``cuMemPoolExportPointer``, ``cuMemGetAddressRange``
        """
        with late:
            from .ipc import import_buffer

        return import_buffer(resource, descriptor, stream)

    @property
    def device(self) -> Device | None:
        """The device that the memory belongs to; None for host memory."""
        return None if self._ordinal is None else device_at(self._ordinal)

    def _need_managed(self, what: str = "this buffer") -> None:
        if (kind := self.kind) != "managed":
            raise TypeError(
                f"{what} is {kind} memory: only managed memory, which a ManagedMemoryResource "
                "allocates, has advice and is prefetched"
            )

    @property
    def read_mostly(self) -> bool:
        """Whether managed memory is read much more often than written. Can be set.

        If true, each reading processor may get its own copy. The advice applies to whole pages; the
        value is false unless all pages of the buffer have it. `TypeError` for other kinds of
        memory.
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
        """Where managed memory should stay if possible. Can be set.

        A `Device`, "host", or None. The advice applies to whole pages; the value is None if the
        buffer's pages differ. `TypeError` for other kinds of memory.
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
        """Which processors managed memory stays mapped for, wherever it is. Can be set.

        Each is a `Device` or "host"; any iterable of them can be assigned. The advice applies to
        whole pages. The value lists the processors that all pages of the buffer are mapped for;
        mappings of only some pages are not reported, and assigning does not remove them.
        `TypeError` for other kinds of memory.
        """
        self._need_managed()
        return frozenset(x for n in self._range()[2] if (x := _location(n)) is not None)

    @accessed_by.setter
    def accessed_by(self, value: Iterable[Device | Literal["host"]]) -> None:
        self._need_managed()
        if isinstance(value, str):
            raise TypeError(f"accessed_by must be an iterable of locations, not {value!r} alone")
        each = items(value, "accessed_by", "locations")
        wanted = {_location_number(x, "a location in accessed_by") for x in each}
        known = set(self._range()[2])
        for at in sorted(known - wanted):
            self._advise(_z.CU_MEM_ADVISE_UNSET_ACCESSED_BY, at)
        for at in sorted(wanted - known):
            self._advise(_z.CU_MEM_ADVISE_SET_ACCESSED_BY, at)

    @property
    def last_prefetch_location(self) -> Device | Literal["host"] | None:
        """Where managed memory was last prefetched to: a `Device`, "host", or None.

        It changes when `prefetch` is called, not when the move completes. None if the buffer's
        pages differ, or some were never prefetched. `TypeError` for other kinds of memory.
        """
        self._need_managed()
        return _location(self._range()[3])

    def prefetch(self, location: Device | Literal["host"], *, stream: StreamLike) -> None:
        """Move managed memory to where it will be used next.

        Parameters
        ----------
        location : Device or "host"
            The destination.
        stream : Stream
            Stream that orders the move.

        Raises
        ------
        UnsupportedError
            If a device cannot use managed memory concurrently with the host.

        See Also
        --------
        preferred_location : Where the memory should stay.

        Notes
        -----
        Stream-ordered on `stream`. Not allowed while `stream` is capturing. Moves whole pages. It
        only affects the speed of later accesses; on the simulated driver not even that.

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

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> NoReturn:
        # Asked for memory that has no address here. NumPy would make an array of one object.
        raise TypeError(
            "a cudago Buffer that the host cannot read is not converted to a NumPy array by "
            "itself: use buffer.copy_to(array, stream=...), which copies"
        )

    def __reduce__(self) -> NoReturn:
        memory_not_pickled(self)

    _repr_html_ = card
    _repr_pretty_ = pretty

    def __repr__(self) -> str:
        return self._described(glance)

    def _described(self, values: Callable[[Buffer], str]) -> str:
        """Describe it, with what `values` tells of its bytes."""
        if self.is_closed:
            return f"<cudago.Buffer of {self.size} bytes: closed>"
        return f"<cudago.Buffer {self.handle:#x}: {self.size} bytes, {self.kind}{values(self)}>"


def _has_buffer(obj: object) -> bool:
    try:
        memoryview(obj).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    except (BufferError, ValueError):
        pass  # it has one, and the native module says what is wrong
    return True


def pin(obj: BufferLike | SupportsDLPack, *, read_only: bool = False) -> Buffer:
    """Page-lock an object's memory in place, and return it as a pinned buffer.

    Nothing is copied: every device reads and writes the object's own bytes.

    Parameters
    ----------
    obj : buffer-protocol object
        A NumPy array, bytearray, memoryview, mmap, ...: C-contiguous, not empty, and writable
        unless `read_only` is true. Or a host tensor with ``__dlpack__``, such as PyTorch's.
    read_only : bool
        Whether devices may only read the memory. The buffer is then rejected as a destination; a
        kernel that writes to it fails or has undefined behaviour.

    Returns
    -------
    Buffer
        Of kind "pinned", usable wherever such a buffer is: kernel arguments, graphs, copies,
        DLPack.

    Raises
    ------
    UnsupportedError
        If the device cannot use such memory.
    CUDAError
        If part of the memory is already registered, here or by another library
        (``CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED``), if CUDA allocated it, or if the system
        limit of locked memory is reached.

    See Also
    --------
    PinnedMemoryResource : Allocates page-locked memory.

    Notes
    -----
    Blocks until the pages are locked.

    The object and its buffer export are held until the memory is unlocked, so a bytearray cannot be
    resized until then. Memory is unlocked on a background thread, after the buffer, its views and
    the graphs that use it are gone, all work queued by then on any device has completed, and no
    cudago capture is open. Keep the buffer open while another library captures: unlocking would
    invalidate that capture. An object that refers to a buffer over itself lives until that buffer
    is closed.

    Locking takes longer than copying the same bytes: pin memory that is used many times.

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
    held: Any = obj
    if not _has_buffer(obj) and hasattr(obj, "__dlpack__"):
        held = _core.from_dlpack(held).buffer  # PyTorch's tensors have no buffer protocol
    made: Buffer = _core._pin(held, read_only)
    return made
