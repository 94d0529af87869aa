# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pools whose memory processes share."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar
from weakref import WeakValueDictionary

from .. import _core
from .._native import number_text
from .._stream.ipc import device_of, sends
from ..errors import ClosedError
from .buffer import Buffer
from .host_resource import PinnedMemoryResource
from .ipc_virtual import export_virtual, import_virtual
from .resource import DeviceMemoryResource, _Pooled

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import CapsuleType

    from .._tensor.tensor import Tensor
    from ..typing import StreamLike
    from .device import Device

__all__ = ["IPCAllocationHandle", "IPCBufferDescriptor"]

_P = TypeVar("_P", bound=_Pooled)
_UNKNOWN = bytes(16)  # the id of a pool that another library exported

# The pools that this process shares or has imported, by id: sent again, they are found again.
_known: WeakValueDictionary[bytes, _Pooled] = WeakValueDictionary()


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except (OSError, OverflowError):
        return False
    return True


class IPCAllocationHandle:
    """What another process needs to import a pool: two open file descriptors.

    `DeviceMemoryResource.get_allocation_handle` returns it. A context manager: leaving the ``with``
    block closes it. ``multiprocessing`` sends it to other processes.

    Parameters
    ----------
    pool : int
        The driver's file descriptor of the pool.
    leases : int, optional
        That of cudago's file which says what is imported. Without it, for a pool that another
        library exported, nobody keeps the memory from being freed by the process that allocated it.
    id : bytes, optional
        The number of the pool; 16 bytes.

    Notes
    -----
    It owns the file descriptors, and closes them with itself. For a pipe or socket of your own,
    send both: ``socket.send_fds(s, [b"pool"], [handle.fileno(), handle.leases])``.
    """

    __slots__ = ("__weakref__", "_files", "_id")
    _files: CapsuleType
    _id: bytes

    def __init__(self, pool: int, leases: int = -1, id: bytes = _UNKNOWN) -> None:
        for name, value in (("pool", pool), ("leases", leases)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be a file descriptor, not {type(value).__name__}")
        for name, fd in ("pool", pool), ("leases", leases):
            if not _is_open(fd) and not (name == "leases" and fd == -1):
                raise ValueError(f"{name} must be an open file descriptor, got {number_text(fd)}")
        if not isinstance(id, bytes) or len(id) != len(_UNKNOWN):
            raise ValueError(f"id must be {len(_UNKNOWN)} bytes")
        self._id = id
        self._files = _core._files_own(pool, leases)

    @classmethod
    def _of(cls, files: CapsuleType, id: bytes) -> Self:
        """Return a handle of files that are owned already, so that Ctrl-C leaves none open."""
        self = cls.__new__(cls)
        self._id, self._files = id, files
        return self

    def _copy(self) -> Self:
        """Return a handle of the same pool, which is closed apart; closed if this one is."""
        return self._of(_core._files_copy(self._files), self._id)

    def fileno(self) -> int:
        """Return the driver's file descriptor of the pool.

        Returns
        -------
        int
            Open as long as the handle is.
        """
        return self._open()[0]

    @property
    def leases(self) -> int:
        """The file descriptor of the leases; -1 if there is none."""
        return self._open()[1]

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return _core._files(self._files)[0] < 0

    def _open(self) -> tuple[int, int]:
        files = _core._files(self._files)
        if files[0] < 0:
            raise ClosedError("allocation handle is closed")
        return files

    def close(self) -> None:
        """Close the file descriptors. Closing twice is fine; imported pools stay."""
        _core._files_close(self._files)

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "cannot pickle 'IPCAllocationHandle' object: multiprocessing sends file descriptors"
        )

    def __repr__(self) -> str:
        pool, leases = _core._files(self._files)
        return f"<cudago.IPCAllocationHandle: {'closed' if pool < 0 else f'{pool}, {leases}'}>"


@dataclass(frozen=True)
class IPCBufferDescriptor:
    """Names memory of a shared pool to other processes: see `Buffer.ipc_descriptor`.

    It is plain data, which keeps nothing alive.

    Parameters
    ----------
    data : bytes
        What the driver calls the allocation, a ``CUmemPoolPtrExportData``.
    pool : bytes
        The number of the pool.
    allocation_size : int
        Bytes of the whole allocation.
    slot : int
        Where the pool's leases say that it is imported.
    offset, size : int
        Where in the allocation the buffer begins, and how many bytes it has.
    """

    data: bytes
    pool: bytes
    allocation_size: int
    slot: int
    offset: int
    size: int


def share(resource: _Pooled) -> IPCAllocationHandle:
    """Return a new handle of a pool, which is then found by its number."""
    handle = IPCAllocationHandle._of(*_core._pool_export(resource))
    remember(resource, handle._id)
    return handle


def import_pool(cls: type[_P], device: Device, handle: IPCAllocationHandle, *, pinned: bool) -> _P:
    """Return a resource of a class over a pool of another process."""
    if not isinstance(handle, IPCAllocationHandle):
        raise TypeError(f"handle must be an IPCAllocationHandle, not {type(handle).__name__}")
    files = _core._files_copy(handle._files)  # another thread may close the handle
    pool, leases = _core._files(files)
    if pool < 0:
        raise ClosedError("allocation handle is closed")
    made: _P = _core._resource_imported(cls, device, pinned, pool, leases)
    made._has_no_pool()
    made._is_imported = True
    if leases >= 0 and (own := _core._pool_export(made)[1]):
        remember(made, own)
    return made


def _home(resource: _Pooled) -> Device:
    """Return the device whose streams order the memory."""
    home = resource._on if isinstance(resource, PinnedMemoryResource) else resource.device
    assert home is not None
    return home


def remember(resource: _Pooled, id: bytes) -> None:
    """Find the pool again by its number, and let multiprocessing send what belongs to it."""
    known = _known.get(id)
    if id != _UNKNOWN and (known is None or known.is_closed):
        _known[id] = resource
    sends(IPCAllocationHandle, _reduce_handle)
    sends(DeviceMemoryResource, _reduce_resource)
    sends(PinnedMemoryResource, _reduce_resource)
    send_memory()


def send_memory() -> None:
    """Let multiprocessing send buffers and tensors of memory that is shared."""
    sends(Buffer, _reduce_buffer)
    sends(_core.Tensor, _reduce_tensor)


def describe(buffer: Buffer) -> IPCBufferDescriptor:
    """Return the descriptor of a buffer."""
    data, pool, whole, slot, offset = _core._buffer_export(buffer)
    return IPCBufferDescriptor(data, pool, whole, slot, offset, buffer.size)


def import_buffer(
    resource: DeviceMemoryResource | PinnedMemoryResource,
    descriptor: IPCBufferDescriptor,
    stream: StreamLike,
) -> Buffer:
    """Return a buffer over memory of another process."""
    if not isinstance(resource, (DeviceMemoryResource, PinnedMemoryResource)):
        raise TypeError(
            "resource must be a DeviceMemoryResource or a PinnedMemoryResource, not "
            f"{type(resource).__name__}"
        )
    if not isinstance(descriptor, IPCBufferDescriptor):
        raise TypeError(
            f"descriptor must be an IPCBufferDescriptor, not {type(descriptor).__name__}"
        )
    allocated, slot, offset, size = (
        _number(descriptor, name) for name in ("allocation_size", "slot", "offset", "size")
    )
    if offset + size > allocated:
        raise ValueError(f"descriptor has bytes {offset} to {offset + size} of {allocated}")
    data, pool = (_bytes(descriptor, name) for name in ("data", "pool"))
    whole = _core._buffer_import(resource, stream, data, pool, allocated, slot)
    if (offset, size) == (0, allocated):
        return whole
    with whole:
        return whole[offset : offset + size]


def _bytes(descriptor: IPCBufferDescriptor, name: str) -> bytes:
    value = getattr(descriptor, name)
    if not isinstance(value, bytes):
        raise TypeError(f"{name} of the descriptor must be bytes, not {type(value).__name__}")
    return value


def _number(descriptor: IPCBufferDescriptor, name: str) -> int:
    """Return a number of a descriptor; it is asked once."""
    value = getattr(descriptor, name)
    if not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} of the descriptor must be an int, not {type(value).__name__}")
    number = operator.index(value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"descriptor has {name} {number_text(number)}, which must be 0 to 2**63-1")
    return number


def _reduce_handle(handle: IPCAllocationHandle) -> tuple[Any, ...]:
    leases = DupFd(handle.leases) if handle.leases >= 0 else None
    return _rebuild_handle, (DupFd(handle.fileno()), leases, handle._id)


def _rebuild_handle(pool: Any, leases: Any, id: bytes) -> IPCAllocationHandle:
    files = _core._files_own(pool.detach(), -1)  # before the other one comes, or does not
    if leases is not None:
        files = _core._files_join(files, _core._files_own(leases.detach(), -1))
    return IPCAllocationHandle._of(files, id)


def _reduce_resource(resource: DeviceMemoryResource | PinnedMemoryResource) -> tuple[Any, ...]:
    if not resource.is_ipc_enabled:
        why = (
            "another process created it" if resource._is_imported else "create it with ipc_enabled"
        )
        raise TypeError(f"cannot send this pool to another process: {why}")
    pinned = isinstance(resource, PinnedMemoryResource)
    return _rebuild_resource, (_home(resource).uuid, resource._own_handle(), pinned)


def _rebuild_resource(uuid: str, handle: IPCAllocationHandle, pinned: bool) -> _Pooled:
    # The handle closes with itself: the message may have it for somebody else, too.
    known = _known.get(handle._id)
    if known is not None and not known.is_closed:
        return known
    device = device_of(uuid)
    if pinned:
        return PinnedMemoryResource.from_allocation_handle(handle, device=device)
    return DeviceMemoryResource.from_allocation_handle(device, handle)


def _reduce_buffer(buffer: Buffer) -> tuple[Any, ...]:
    virtual = export_virtual(buffer)
    return _reduce_pooled(buffer) if virtual is None else (_rebuild_virtual, virtual)


def _rebuild_virtual(*exported: Any) -> Buffer:
    send_memory()  # it is not sent on, which is then explained
    return import_virtual(*exported)


def _reduce_pooled(buffer: Buffer) -> tuple[Any, ...]:
    try:
        descriptor = describe(buffer)
    except ClosedError:
        raise
    except ValueError as e:
        raise TypeError(
            f"cannot send this memory to another process: {e}; take memory of a pool or of a "
            "VirtualMemoryResource with ipc_enabled, or send a copy such as t.numpy(stream=s)"
        ) from e
    resource = _known.get(descriptor.pool)
    if resource is None or resource.is_closed:
        raise ValueError(
            "cannot send a buffer to another process after its memory resource is gone"
        )
    return _rebuild_buffer, (resource, descriptor)


def _rebuild_buffer(
    resource: DeviceMemoryResource | PinnedMemoryResource, descriptor: IPCBufferDescriptor
) -> Buffer:
    return import_buffer(resource, descriptor, _home(resource).default_stream)


def _reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    if tensor._packing[0]:
        raise TypeError(
            "cannot send a tensor that begins within a byte to another process: "
            "send t.contiguous(stream=s)"
        )
    turned = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in tensor.strides)
    forward = tensor[turned]  # its first element is at its lowest address
    memory = _reduce_buffer(forward._span[0])
    return _rebuild_tensor, (memory, forward.dtype_name, forward.shape, forward.strides, turned)


def _rebuild_tensor(
    memory: tuple[Callable[..., Buffer], tuple[Any, ...]],
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    turned: tuple[slice, ...],
) -> Tensor:
    rebuild, place = memory
    return rebuild(*place).view(dtype, shape, strides)[turned]
