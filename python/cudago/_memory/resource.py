# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory resources, which allocate memory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex
from weakref import WeakKeyDictionary

from .. import _core
from .._import_at_exit import late
from .._native import items, number_text, unnamed, whole
from .._ordinal import device_at
from .shareable import Shareable

if TYPE_CHECKING:
    from typing import Self

    from ..typing import StreamLike
    from .buffer import Buffer
    from .device import Device
    from .ipc import IPCAllocationHandle
    from .pool import PoolOptions, PoolStatistics

__all__ = [
    "DeviceMemoryResource",
    "MemoryResource",
    "VirtualMemoryResource",
]


def _peers(value: Iterable[Device], own: Device | None, name: str) -> frozenset[Device]:
    """Check the devices that are to have access to memory of another one."""
    peers = items(value, name, "devices")
    for peer in peers:
        if not isinstance(peer, _core.Device):
            raise TypeError(f"{name} must be devices, not {type(peer).__name__}")
        if own is not None and peer == own:
            raise ValueError(
                f"{name} must be other devices than {own.ordinal}, which owns the memory"
            )
    return frozenset(peers)


def mask_of(peers: Iterable[Device], own: Device, name: str) -> int:
    """Check the devices that are to have access, and return a bit for each."""
    return sum(1 << peer.ordinal for peer in _peers(peers, own, name))


class MemoryResource(_core.MemoryResource):
    """The base class of memory resources, which allocate memory.

    A context manager: leaving the ``with`` block closes the resource. Its buffers stay valid.

    Parameters
    ----------
    *args, **kwargs
        For the subclass.

    Notes
    -----
    A subclass of your own defines ``allocate(self, nbytes, *, stream)`` and returns a `Buffer`,
    which another resource has allocated. It can be a device's `Device.memory_resource`, and sets
    its `device` if it is of one alone. There is no ``deallocate``: memory is freed when its last
    holder lets go, which `finalize` can tell you.

    Examples
    --------
    >>> class Counting(cudago.MemoryResource):
    ...     def __init__(self, inner):
    ...         self.inner, self.made = inner, 0
    ...
    ...     def allocate(self, nbytes, *, stream):
    ...         self.made += 1
    ...         return self.inner.allocate(nbytes, stream=stream)
    >>> counting = Counting(device.memory_resource)
    >>> cudago.empty(10, stream=stream, resource=counting).nbytes, counting.made
    (40, 1)
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create a resource of a subclass that allocates by itself."""
        if cls.allocate is MemoryResource.allocate:
            raise TypeError(
                f"{cls.__name__} allocates nothing: a subclass of MemoryResource defines "
                "allocate(self, nbytes, *, stream)"
            )
        return _core._resource_python(cls)

    @property
    def device(self) -> Device | None:
        """The device that memory is allocated on; None for host memory.

        Of a resource written in Python it is None until it is set.
        """
        return None if self._ordinal is None else device_at(self._ordinal)

    @device.setter
    def device(self, value: Device | None) -> None:
        if value is not None and not isinstance(value, _core.Device):
            raise TypeError(f"device must be a Device or None, not {type(value).__name__}")
        self._ordinal = None if value is None else value.ordinal

    def __repr__(self) -> str:
        return f"<cudago.{type(self).__name__}{': closed' if self.is_closed else ''}>"


_ALL = (1 << 63) - 1  # bytes that a pool keeps if it keeps everything
_THRESHOLD, _RESET_HIGH = 4, 8  # as in resource.go
_REUSE = (
    "reuse_follow_event_dependencies",
    "reuse_allow_opportunistic",
    "reuse_allow_internal_dependencies",
)
# For the summary, with numbers in the order of creation; 0 is a device's default pool.
_pools: WeakKeyDictionary[_Pooled, int] = WeakKeyDictionary()
_numbers = count(1)


def _size_of(options: PoolOptions, name: str) -> int | None:
    value = getattr(options, name)
    if value is None:
        return None
    try:
        size = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int or None, not {type(value).__name__}") from None
    least = 1 if name == "max_size" else 0  # of which the driver takes 0 for no limit
    if not least <= size <= _ALL:
        hint = "; None is no limit" if name == "max_size" else ""
        raise ValueError(f"{name} must be {least} to 2**63-1 bytes{hint}, got {number_text(size)}")
    return size


def _sizes(options: PoolOptions, name: str = "pool") -> tuple[int, int]:
    """Return the release threshold and the maximum size as the native module takes them."""
    with late:
        from .pool import PoolOptions

    if not isinstance(options, PoolOptions):
        raise TypeError(f"{name} must be PoolOptions, not {type(options).__name__}")
    keep, most = _size_of(options, "release_threshold"), _size_of(options, "max_size")
    return _ALL if keep is None else keep, most or 0


def _set_reuse(resource: _Pooled, options: PoolOptions) -> None:
    for i, name in enumerate(_REUSE, 1):
        resource._set_stat(_THRESHOLD + i, bool(getattr(options, name)))


@unnamed
class _Pooled(MemoryResource):
    """What resources with a pool have."""

    __slots__ = ("_handle", "_is_imported", "_is_shared", "_max_size")
    _max_size: int | None
    _handle: IPCAllocationHandle | None  # of a pool that this process shares, until it is closed
    _is_imported: bool
    _is_shared: bool

    def _has(self, pool: PoolOptions) -> None:
        """Hear of the options of its own pool, which was made now."""
        self._has_no_pool()
        self._max_size = _sizes(pool)[1] or None
        _set_reuse(self, pool)
        _pools[self] = next(_numbers)
        if pool.ipc_enabled:
            with late:
                from .ipc import share

            self._handle, self._is_shared = share(self), True

    def _has_no_pool(self) -> None:
        """Hear that it has no pool of its own."""
        self._max_size, self._handle = None, None
        self._is_imported, self._is_shared = False, False

    @property
    def options(self) -> PoolOptions:
        """The options of the pool. Can be set, except for ``max_size`` and ``ipc_enabled``.

        Others may share the default pool, and then its options too. To change one option, set
        ``dataclasses.replace(resource.options, release_threshold=0)``.
        """
        keep = self._stat(_THRESHOLD)  # raises first if all ends, when nothing can be imported
        reuse = {name: bool(self._stat(_THRESHOLD + i)) for i, name in enumerate(_REUSE, 1)}
        with late:
            from .pool import PoolOptions

        threshold = None if keep >= _ALL else keep
        return PoolOptions(
            release_threshold=threshold,
            max_size=self._max_size,
            ipc_enabled=self._is_shared,
            **reuse,
        )

    @options.setter
    def options(self, value: PoolOptions) -> None:
        keep, most = _sizes(value, "options")
        if (most or None) != self._max_size:
            raise ValueError(
                f"the maximum size of a pool cannot change: it is {self._max_size}, got "
                f"{value.max_size}"
            )
        if value.ipc_enabled != self._is_shared:
            raise ValueError("ipc_enabled cannot change: it is an option of a new pool")
        self._set_stat(_THRESHOLD, keep)
        _set_reuse(self, value)

    def reset_high_water(self) -> None:
        """Start the maxima of `statistics` anew, from what is used now.

        References
        ----------
        ``cuMemPoolSetAttribute``

        Examples
        --------
        >>> pool = cudago.DeviceMemoryResource(device, pool=cudago.PoolOptions())
        >>> pool.allocate(1024, stream=stream).close()
        >>> stream.sync()
        >>> pool.reset_high_water()
        >>> pool.statistics.used_high
        0
        """
        self._set_stat(_RESET_HIGH, 0)

    @property
    def statistics(self) -> PoolStatistics:
        """Memory use of the pool, which others may share."""
        numbers = [self._stat(i) for i in range(4)]
        with late:
            from .pool import PoolStatistics

        return PoolStatistics(*numbers)

    def trim(self, keep: int = 0) -> None:
        """Return unused memory of the pool to the device.

        Parameters
        ----------
        keep : int
            Bytes that the pool may keep.

        Notes
        -----
        Memory that pending work may still use is not returned.

        References
        ----------
        ``cuMemPoolTrimTo``

        Examples
        --------
        >>> pool = cudago.DeviceMemoryResource(device, pool=cudago.PoolOptions())
        >>> pool.allocate(1024, stream=stream).close()
        >>> stream.sync()
        >>> pool.trim()
        >>> pool.statistics.reserved
        0
        """
        self._trim(keep)


class DeviceMemoryResource(Shareable, _Pooled):
    """Device memory from a pool, allocated and freed in stream order.

    Parameters
    ----------
    device : Device
        The device.
    pool : PoolOptions, optional
        Creates a new pool with these options; by default the device's default pool is used, which
        other libraries may use too.

    References
    ----------
    ``cuMemPoolCreate``, ``cuMemAllocFromPoolAsync``

    Examples
    --------
    >>> options = cudago.PoolOptions(release_threshold=1 << 20)
    >>> pool = cudago.DeviceMemoryResource(device, pool=options)
    >>> pool.allocate(1024, stream=stream).size
    1024
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def allocate(self, size: SupportsIndex, *, stream: StreamLike) -> Buffer: ...

    def __new__(cls, device: Device, *, pool: PoolOptions | None = None) -> DeviceMemoryResource:
        """Create the resource, or another object over the device's default pool."""
        if pool is None:
            made = _core._resource_default_pool(cls, device)
            made._has_no_pool()
            _pools[made] = 0
            return made
        made = _core._resource_pool(cls, device, *_sizes(pool), pool.ipc_enabled)
        made._has(pool)
        return made

    @classmethod
    def from_allocation_handle(
        cls, device: Device, handle: IPCAllocationHandle
    ) -> DeviceMemoryResource:
        """Import a pool of another process.

        Parameters
        ----------
        device : Device
            The device that the pool belongs to.
        handle : IPCAllocationHandle
            `get_allocation_handle` of the pool in that process. It can be closed afterwards.

        Returns
        -------
        DeviceMemoryResource
            It allocates nothing: `Buffer.from_ipc_descriptor` makes buffers over what the other
            process has allocated. `options`, `statistics`, `trim` and `peer_accessible_by` are for
            that process alone, and raise `TypeError`.

        Raises
        ------
        CUDAError
            If the handle is not that of a pool.
        ValueError
            If its leases are not those of a pool of device memory.

        See Also
        --------
        Buffer.from_ipc_descriptor : Imports memory of the pool.

        Notes
        -----
        Blocks until no thread is in `Device.sync`, as `Buffer.from_ipc_descriptor` does. Ctrl-C
        ends the wait.

        The pool stays imported as long as this object or a buffer of it is open. Imported again, it
        is another object over the same imported pool, and its memory has the same address: that is
        freed with the last buffer of all of them.
        ``multiprocessing`` sends pools and their buffers by itself: each process then has one
        object for each pool.

        References
        ----------
        ``cuMemPoolImportFromShareableHandle``

        Examples
        --------
        >>> pool = cudago.DeviceMemoryResource(device, pool=cudago.PoolOptions(ipc_enabled=True))
        >>> handle = pool.get_allocation_handle()  # sent to another process, which calls
        >>> theirs = cudago.DeviceMemoryResource.from_allocation_handle(device, handle)
        >>> theirs.is_imported
        True
        """
        with late:
            from .ipc import import_pool

        return import_pool(cls, device, handle, pinned=False)

    @property
    def peer_accessible_by(self) -> frozenset[Device]:
        """Other devices whose kernels can access the memory. Can be set, from any iterable of them.

        Access covers all memory of the pool, past and future, and a shared pool shares it. When
        access is removed, no work that uses it may be pending, and executables and bound launches
        of that device that use the memory must not be launched any more: the device would fault,
        since a launch does not look for access, which costs a call of the driver. Setting raises a
        `ValueError` for the resource's own device, which always has access, and a `CUDAError` for a
        device that cannot access the memory.
        """
        return frozenset(device_at(i) for i in self._peers())

    @peer_accessible_by.setter
    def peer_accessible_by(self, value: Iterable[Device]) -> None:
        wanted = _peers(value, self.device, "peer_accessible_by")
        known = self.peer_accessible_by
        for peer in sorted(wanted - known, key=lambda d: d.ordinal):
            self._set_peer(peer, True)
        for peer in sorted(known - wanted, key=lambda d: d.ordinal):
            self._set_peer(peer, False)


class VirtualMemoryResource(MemoryResource):
    """Device memory that can grow in place: see `Buffer.grow`.

    Each buffer reserves a range of addresses and maps memory at its start. Growing maps more memory
    after that, so the address does not change.

    Parameters
    ----------
    device : Device
        The device.
    reserve : int, optional
        Bytes of address space per buffer, up to which growing cannot fail for lack of addresses.
        Addresses cost no memory. By default the size of the device's memory, and at least four
        times the buffer's size.
    peers : iterable of Device
        Other devices whose kernels can access the memory, including what `Buffer.grow` adds.
    ipc_enabled : bool
        Whether ``multiprocessing`` can send the buffers, and tensors over them, to other processes:
        see the Notes.

    Raises
    ------
    UnsupportedError
        If the device has no virtual memory management, or cannot share such memory.
    CUDAError
        If a peer cannot access memory of the device.

    Notes
    -----
    Allocating blocks until the memory is there, and it can be used on every stream at once. It is
    unmapped on a background thread, after the work of the stream given to `allocate` and of the
    stream that used it last. Most devices map memory in units of 2 MiB, so small buffers waste much
    of it.

    With `ipc_enabled` another process receives a buffer over the same bytes, as large as it was
    when it was sent, in one range of addresses even if it has grown. That one cannot grow, and
    only its device can access it. Each process closes its own: the memory is freed with the last.
    Keep a buffer open until the process that it is an argument of has started. What ``send`` of a
    pipe or ``put`` of a queue has sent is kept by the message. Each allocation, and each growth,
    has a file descriptor as long as the memory is there, and a process that receives it needs as
    many for a moment.

    References
    ----------
    ``cuMemAddressReserve``, ``cuMemCreate``, ``cuMemMap``, ``cuMemSetAccess``, ``cuMemUnmap``,
    ``cuMemExportToShareableHandle``, ``cuMemImportFromShareableHandle``

    Examples
    --------
    >>> resource = cudago.VirtualMemoryResource(device, reserve=1 << 24)
    >>> big = resource.allocate(1 << 21, stream=stream)
    >>> view = big[:16]
    >>> big.grow(1 << 23)
    >>> big.fill(1, stream=stream)
    >>> view.view("u1").numpy(stream=stream).sum()
    np.uint64(16)
    """

    __slots__ = ("_is_shared",)
    _is_shared: bool

    if TYPE_CHECKING:

        def allocate(self, size: SupportsIndex, *, stream: StreamLike) -> Buffer: ...

    def __new__(
        cls,
        device: Device,
        *,
        reserve: int | None = None,
        peers: Iterable[Device] = (),
        ipc_enabled: bool = False,
    ) -> VirtualMemoryResource:
        """Create the resource."""
        size = 0 if reserve is None else whole(reserve, "reserve")
        if not 0 <= size < 1 << 63:
            raise ValueError(f"reserve must be 0 to 2**63-1 bytes, got {number_text(size)}")
        mask = mask_of(peers, device, "peers")
        made = _core._resource_virtual(cls, device, size, mask, ipc_enabled)
        made._is_shared = bool(ipc_enabled)
        if made._is_shared:
            with late:
                from .ipc import send_memory
            send_memory()
        return made

    @property
    def is_ipc_enabled(self) -> bool:
        """Whether ``multiprocessing`` can send the buffers to other processes."""
        return self._is_shared


_core._set_class("MemoryResource", MemoryResource)
