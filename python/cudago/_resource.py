# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where memory comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

from . import _core
from ._ordinal import device_at

if TYPE_CHECKING:
    from ._device import Device
    from ._memory import Buffer
    from .typing import StreamLike

__all__ = [
    "DeviceMemoryResource",
    "ManagedMemoryResource",
    "MemoryResource",
    "PinnedMemoryResource",
    "PoolOptions",
    "PoolStatistics",
    "VirtualMemoryResource",
]


def _peers(value: Iterable[Device], own: Device | None, name: str) -> frozenset[Device]:
    """Check devices that may access memory of another one."""
    peers = list(value)
    for peer in peers:
        if not isinstance(peer, _core.Device):
            raise TypeError(f"{name} must be devices, not {type(peer).__name__}")
        if own is not None and peer == own:
            raise ValueError(
                f"{name} must be other devices than {own.ordinal}, which has the memory"
            )
    return frozenset(peers)


class MemoryResource(_core.MemoryResource):
    """Something that allocates memory: see its subclasses.

    A context manager: leaving the ``with`` block closes the resource. Its buffers stay valid.
    """

    __slots__ = ()

    @property
    def device(self) -> Device | None:
        """The device that memory is allocated on; None for host memory."""
        return None if self._ordinal is None else device_at(self._ordinal)

    def __repr__(self) -> str:
        return f"<cudago.{type(self).__name__}{': closed' if self.is_closed else ''}>"


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """How a `DeviceMemoryResource` keeps its pool.

    Parameters
    ----------
    release_threshold : int, optional
        Bytes that the pool keeps when a stream, event or the context is synchronised; by default
        all.
    max_size : int, optional
        Bytes that the pool may take; by default no limit.
    """

    release_threshold: int | None = None
    max_size: int | None = None


@dataclass(frozen=True)
class PoolStatistics:
    """What a pool holds, in bytes.

    Parameters
    ----------
    used, used_high : int
        Allocated from the pool now, and at most so far.
    reserved, reserved_high : int
        What the pool holds of the device's memory now, and at most so far.
    """

    used: int
    used_high: int
    reserved: int
    reserved_high: int


class DeviceMemoryResource(MemoryResource):
    """Device memory from a pool, allocated and freed in the order of a stream.

    Parameters
    ----------
    device : Device
        The device.
    pool : PoolOptions, optional
        Makes a pool of its own; by default the device's default pool, which others may use too.

    Raises
    ------
    ValueError
        If an option is negative.
    CUDAError
        If the driver refuses.

    Notes
    -----
    Making one is not stream-ordered, and releases the GIL. What it allocates is: see `allocate`.

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
        # Device memory needs a stream, which other resources do without.
        def allocate(  # type: ignore[override]
            self, size: SupportsIndex, /, *, stream: StreamLike
        ) -> Buffer: ...

    def __new__(cls, device: Device, *, pool: PoolOptions | None = None) -> DeviceMemoryResource:
        """Make the resource, or a second object over the device's default pool."""
        if pool is None:
            return _core._resource_default_pool(cls, device)
        for name in ("release_threshold", "max_size"):
            value = getattr(pool, name)
            if value is not None and not 0 <= value < 1 << 63:
                raise ValueError(f"{name} must be 0 to 2**63-1 bytes, got {value}")
        keep = (1 << 63) - 1 if pool.release_threshold is None else pool.release_threshold
        return _core._resource_pool(cls, device, keep, pool.max_size or 0)

    @property
    def statistics(self) -> PoolStatistics:
        """What the pool holds. It may be shared with others."""
        return PoolStatistics(*(self._stat(i) for i in range(4)))

    @property
    def peer_accessible_by(self) -> frozenset[Device]:
        """Other devices whose kernels may touch the memory. Can be set, from any iterable of them.

        It is for all that the pool has given out and will, and what differs is changed. While
        access is taken away, no work that uses it may be under way. The pool may be shared with
        others, as the access then is. A `ValueError` for the resource's own device, which always
        has access; a `CUDAError` for a device that cannot access the memory.
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

    def trim(self, keep: int = 0) -> None:
        """Give memory that nobody uses back to the device.

        Parameters
        ----------
        keep : int
            Bytes that the pool may keep.

        Raises
        ------
        ClosedError
            If the resource is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered: what the device may still use is not given back. Returns when done, with
        the GIL released meanwhile.

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


class PinnedMemoryResource(MemoryResource):
    """Page-locked host memory, which devices read and write directly.

    Its buffers are Python buffers too: ``numpy.frombuffer(buf, dtype)`` copies nothing.

    Notes
    -----
    Not stream-ordered: the host does not wait for device work that still uses the memory, so
    `Stream.sync` first. Allocating blocks, with the GIL released; so do frees, on a thread of their
    own.

    References
    ----------
    ``cuMemHostAlloc``

    Examples
    --------
    >>> memoryview(cudago.PinnedMemoryResource().allocate(4)).nbytes
    4
    """

    __slots__ = ()

    def __new__(cls) -> PinnedMemoryResource:
        """Make the resource."""
        return _core._resource_pinned(cls)


class ManagedMemoryResource(MemoryResource):
    """Memory that the host and the device use at one address, moved by the driver.

    Parameters
    ----------
    device : Device
        The device whose context the memory is allocated in.

    Raises
    ------
    UnsupportedError
        If the device has no managed memory.

    Notes
    -----
    Not stream-ordered: the host does not wait for device work that still uses the memory, so
    `Stream.sync` first. Allocating blocks, with the GIL released; so do frees, on a thread of their
    own.

    References
    ----------
    ``cuMemAllocManaged``

    Examples
    --------
    >>> buffer = cudago.ManagedMemoryResource(device).allocate(4)
    >>> buffer.fill(7, stream=stream)
    >>> stream.sync()
    >>> memoryview(buffer)[0]
    7
    """

    __slots__ = ()

    def __new__(cls, device: Device) -> ManagedMemoryResource:
        """Make the resource."""
        return _core._resource_managed(cls, device)


class VirtualMemoryResource(MemoryResource):
    """Device memory that can grow where it is: see `Buffer.grow`.

    Each buffer has addresses reserved, and memory mapped at the first of them. Growing maps more
    behind, so the address stays.

    Parameters
    ----------
    device : Device
        The device.
    reserve : int, optional
        Bytes of addresses for each buffer: up to there it can grow for certain. They cost no
        memory. By default as many as the device has memory, and at least four times the buffer's
        size.
    peers : iterable of Device
        Other devices whose kernels may touch the memory, also what `Buffer.grow` adds.

    Raises
    ------
    UnsupportedError
        If the device has no virtual memory management.
    ValueError
        If `reserve` is negative, or `device` is one of `peers`.
    CUDAError
        If a peer cannot access memory of the device.

    Notes
    -----
    Not stream-ordered: allocating blocks until the memory is there, with the GIL released, and it
    can be used on every stream at once. The stream that `allocate` needs, and the one that used the
    memory last, are waited for before it is unmapped, on a thread of its own. Memory comes in units
    of 2 MiB on most devices, so small buffers waste much of it.

    References
    ----------
    ``cuMemAddressReserve``, ``cuMemCreate``, ``cuMemMap``, ``cuMemSetAccess``, ``cuMemUnmap``

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

    __slots__ = ()

    def __new__(
        cls, device: Device, *, reserve: int | None = None, peers: Iterable[Device] = ()
    ) -> VirtualMemoryResource:
        """Make the resource."""
        if reserve is not None and not 0 <= reserve < 1 << 63:
            raise ValueError(f"reserve must be 0 to 2**63-1 bytes, got {reserve}")
        mask = sum(1 << peer.ordinal for peer in _peers(peers, device, "peers"))
        return _core._resource_virtual(cls, device, reserve or 0, mask)


_core._set_class("MemoryResource", MemoryResource)
