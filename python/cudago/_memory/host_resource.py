# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory resources of the host's memory: pinned and managed."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from .. import _core
from .._import_at_exit import late
from .._native import number_text, whole
from .._ordinal import device_at
from .resource import _Pooled, _sizes
from .shareable import Shareable

if TYPE_CHECKING:
    from ..typing import StreamLike
    from .buffer import Buffer
    from .device import Device
    from .ipc import IPCAllocationHandle
    from .pool import PoolOptions

__all__ = ["ManagedMemoryResource", "PinnedMemoryResource"]


class PinnedMemoryResource(Shareable, _Pooled):
    """Page-locked host memory, which devices access directly.

    Its buffers support Python's buffer protocol: ``numpy.frombuffer(buf, dtype)`` copies nothing.

    Parameters
    ----------
    pool : PoolOptions, optional
        Creates a pool with these options: memory is then allocated and freed in stream order,
        which takes microseconds. By default each allocation is page-locked by itself.
    device : Device, optional
        Device whose streams order the memory of a pool; by default device 0. Kernels on every
        device can access it.
    numa : int, optional
        NUMA node of the host that a pool takes memory of; by default any. A pool with
        ``ipc_enabled`` has to be on one: by default on the device's.

    Raises
    ------
    UnsupportedError
        If the device has no pools of host memory, or its driver is older than CUDA 13.0; 12.9 has
        those on a NUMA node. If the driver shares no such pools with other processes.

    Notes
    -----
    Python's buffer protocol, as in ``memoryview(buffer)`` and ``numpy.frombuffer``, does not wait
    for device work that uses the memory: call `Stream.sync` first; memory of a pool is not there
    for the host before that either. Through DLPack, as in ``numpy.from_dlpack(buffer)``, it is
    handed over when that work has ended, or in the order of the stream that the consumer names.
    Without a pool, allocating blocks, and freeing happens on a background thread, once all streams
    that use the memory have come past it, on whatever device. A pool does not allocate on a stream
    that is capturing, and `Stream.write_value` does not take its memory.

    References
    ----------
    ``cuMemHostAlloc``, ``cuMemPoolCreate``, ``cuMemAllocFromPoolAsync``

    Examples
    --------
    >>> memoryview(cudago.PinnedMemoryResource().allocate(4)).nbytes
    4
    >>> if device.properties.host_memory_pools_supported:
    ...     pool = cudago.PinnedMemoryResource(pool=cudago.PoolOptions())
    ...     buffer = pool.allocate(4, stream=stream)
    """

    __slots__ = ("_on",)

    if TYPE_CHECKING:

        def allocate(self, size: SupportsIndex, *, stream: StreamLike | None = None) -> Buffer: ...

    _on: Device | None  # whose streams order the memory of a pool

    def __new__(
        cls,
        *,
        pool: PoolOptions | None = None,
        device: Device | None = None,
        numa: int | None = None,
    ) -> PinnedMemoryResource:
        """Create the resource."""
        if pool is None:
            if device is not None or numa is not None:
                raise TypeError("device and numa are of a pool: pass pool=PoolOptions() too")
            alone = _core._resource_pinned(cls)
            alone._has_no_pool()
            alone._on = None
            return alone
        node = -1 if numa is None else whole(numa, "numa")
        if numa is not None and not 0 <= node < 1 << 31:
            raise ValueError(f"numa must be the number of a node, got {number_text(node)}")
        sizes = _sizes(pool)
        on = device_at() if device is None else device
        made = _core._resource_host_pool(cls, on, *sizes, False, node, pool.ipc_enabled)
        made._on = on
        made._has(pool)
        return made

    @classmethod
    def from_allocation_handle(
        cls, handle: IPCAllocationHandle, *, device: Device | None = None
    ) -> PinnedMemoryResource:
        """Import a pool of another process.

        Parameters
        ----------
        handle : IPCAllocationHandle
            `get_allocation_handle` of the pool in that process. It can be closed afterwards.
        device : Device, optional
            Device whose streams order the release of the memory; by default device 0. Kernels on
            every device can access it.

        Returns
        -------
        PinnedMemoryResource
            It allocates nothing: `Buffer.from_ipc_descriptor` makes buffers over what the other
            process has allocated. `options`, `statistics` and `trim` are for that process alone,
            and raise `TypeError`.

        Raises
        ------
        CUDAError
            If the handle is not that of a pool.
        ValueError
            If its leases are not those of a pool of pinned memory.

        See Also
        --------
        DeviceMemoryResource.from_allocation_handle : Imports a pool of device memory.
        Buffer.from_ipc_descriptor : Imports memory of the pool.

        Notes
        -----
        A process imports the memory on one device only: `Buffer.from_ipc_descriptor` raises a
        `ValueError` for another one as long as a buffer is open.

        References
        ----------
        ``cuMemPoolImportFromShareableHandle``, ``cuMemPoolSetAccess``
        """
        with late:
            from .ipc import import_pool

        on = device_at() if device is None else device
        made = import_pool(cls, on, handle, pinned=True)
        made._on = on
        return made


class ManagedMemoryResource(_Pooled):
    """Memory that the host and the device use at the same address; the driver moves it.

    Parameters
    ----------
    device : Device
        The device in whose context the memory is allocated.
    pool : PoolOptions, optional
        Creates a pool with these options, which cannot limit the size: memory is then allocated and
        freed in the order of streams of `device`, and prefers to be there. By default each
        allocation is made by itself, and prefers no place.

    Raises
    ------
    UnsupportedError
        If the device has no managed memory; of a pool, if the driver is older than CUDA 13.0.

    Notes
    -----
    Python's buffer protocol, as in ``memoryview(buffer)`` and ``numpy.frombuffer``, does not wait
    for device work that uses the memory: call `Stream.sync` first; memory of a pool is not there
    for the host before that either. Through DLPack, as in ``numpy.from_dlpack(buffer)``, it is
    handed over when that work has ended, or in the order of the stream that the consumer names.
    Without a pool, allocating blocks, and freeing happens on a background thread, once all streams
    that use the memory have come past it, on whatever device. A pool does not allocate on a stream
    that is capturing.

    References
    ----------
    ``cuMemAllocManaged``, ``cuMemPoolCreate``, ``cuMemAllocFromPoolAsync``

    Examples
    --------
    >>> buffer = cudago.ManagedMemoryResource(device).allocate(4)
    >>> buffer.fill(7, stream=stream)
    >>> stream.sync()
    >>> memoryview(buffer)[0]
    7
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def allocate(self, size: SupportsIndex, *, stream: StreamLike | None = None) -> Buffer: ...

    def __new__(cls, device: Device, *, pool: PoolOptions | None = None) -> ManagedMemoryResource:
        """Create the resource."""
        if pool is None:
            alone = _core._resource_managed(cls, device)
            alone._has_no_pool()
            return alone
        sizes = _sizes(pool)
        if pool.ipc_enabled:
            raise ValueError("ipc_enabled is for pools of device memory and of pinned memory")
        if sizes[1]:
            raise ValueError(f"max_size cannot be set for managed memory, got {pool.max_size}")
        made = _core._resource_host_pool(cls, device, *sizes, True, -1, False)
        made._has(pool)
        return made
