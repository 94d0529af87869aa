# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Devices."""

from __future__ import annotations

import json
import operator
from threading import RLock
from typing import TYPE_CHECKING, SupportsIndex

from .. import _core
from .._card import card
from .._gopy import api
from .._gopy_call import read
from .._import_at_exit import late
from .._native import final, or_closed, text, whole
from .._ordinal import device_at
from .._stream.event import Event
from .._stream.green import GreenContext, SMPartition, split_sms
from .._stream.stream import Stream, _made
from ..errors import ClosedError
from .limits import DeviceLimits
from .properties import DeviceProperties
from .resource import DeviceMemoryResource, MemoryResource

if TYPE_CHECKING:
    from ..typing import StreamLike
    from .buffer import Buffer
    from .graph_memory import GraphMemory
    from .monitor import DeviceMonitor

__all__ = ["Device"]

_first = RLock()  # of two threads that ask for a default stream at once, both get the same


@final
class Device(_core.Device):
    """A CUDA device.

    There is no current device to set: each call makes its device's primary context current for its
    own duration, and restores the caller's. PyTorch and CuPy use the same context.

    Parameters
    ----------
    ordinal : int, optional
        The device's number; by default 0. Each number has one Device object.

    Notes
    -----
    The first use of a device blocks until its primary context exists. Devices are never closed.

    References
    ----------
    ``cuDeviceGet``, ``cuDevicePrimaryCtxRetain``

    Examples
    --------
    >>> device = cudago.Device(0)
    >>> device is cudago.Device(), device.ordinal
    (True, 0)
    """

    __slots__ = ("_default_stream", "_per_thread_stream", "_properties")
    _default_stream: Stream
    _per_thread_stream: Stream
    _properties: DeviceProperties

    if TYPE_CHECKING:
        # Device memory needs a stream, unless `memory_resource` was set.
        def allocate(  # type: ignore[override]
            self, size: SupportsIndex, *, stream: StreamLike
        ) -> Buffer: ...

    def __new__(cls, ordinal: SupportsIndex | None = None) -> Device:
        """Return the one object of a device."""
        if ordinal is None:
            return device_at()
        if isinstance(ordinal, bool) or not hasattr(ordinal, "__index__"):
            raise TypeError(f"ordinal must be an int, not {type(ordinal).__name__}")
        return device_at(operator.index(ordinal))

    @classmethod
    def all(cls) -> tuple[Device, ...]:
        """Return every device of the driver in use.

        Returns
        -------
        tuple of Device
            In order of their numbers.

        Notes
        -----
        Blocks until every primary context exists.

        References
        ----------
        ``cuDeviceGetCount``
        """
        return tuple(cls(i) for i in range(read(api.device_count)))

    @property
    def name(self) -> str:
        """The product name."""
        return str(read(api.device_name, self.ordinal))

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The compute capability, as (major, minor)."""
        p = self.properties
        return p.compute_capability_major, p.compute_capability_minor

    @property
    def total_memory(self) -> int:
        """Total device memory, in bytes."""
        return int(read(api.device_total_memory, self.ordinal))

    @property
    def free_memory(self) -> int:
        """Device memory that is free now, in bytes."""
        return int(read(api.device_free_memory, self.ordinal))

    @property
    def uuid(self) -> str:
        """The device's UUID."""
        return str(read(api.device_uuid, self.ordinal))

    @property
    def pci_bus_id(self) -> str:
        """The device's PCI address."""
        return str(read(api.device_pci_bus_id, self.ordinal))

    @property
    def properties(self) -> DeviceProperties:
        """All attributes of the device."""
        try:
            return self._properties
        except AttributeError:
            self._properties = DeviceProperties(self.ordinal)
            return self._properties

    @property
    def graph_memory(self) -> GraphMemory:
        """Statistics of the memory that graphs allocate on the device, and its return."""
        with late:
            from .graph_memory import GraphMemory

        return GraphMemory(self.ordinal)

    @property
    def limits(self) -> DeviceLimits:
        """The limits of the device that can be changed, such as the heap of kernels."""
        return DeviceLimits(self.ordinal)

    @property
    def monitor(self) -> DeviceMonitor:
        """Sensors and counters of the device, such as its temperature: what NVML tells."""
        with late:
            from .monitor import DeviceMonitor

        return DeviceMonitor(self.ordinal)

    @property
    def default_stream(self) -> Stream:
        """The legacy default stream. It cannot be captured.

        It waits for blocking streams, and they for it. Streams of cudago are non-blocking, unless
        they were made with ``blocking=True``.
        """
        return self._wrapped("_default_stream", 1)

    @property
    def per_thread_default_stream(self) -> Stream:
        """The per-thread default stream: in each thread that uses the object, a stream of its own.

        It is what code compiled with ``--default-stream per-thread`` uses. It and the legacy
        default stream wait for each other's work. `Stream.sync` waits for the calling thread's.
        """
        return self._wrapped("_per_thread_stream", 2)

    def _wrapped(self, name: str, handle: int) -> Stream:
        stream: Stream | None = getattr(self, name, None)
        if stream is not None and not stream.is_closed:
            return stream
        made = _core._stream_wrap(self, handle, None)
        return _core._locked(_first, self._keep_first, name, made)

    def _keep_first(self, name: str, made: Stream) -> Stream:
        """Return a default stream, which is the one that was made unless there is one already."""
        stream: Stream | None = getattr(self, name, None)
        if stream is None or stream.is_closed:  # otherwise another thread was faster
            _made[made._id] = stream = made
            setattr(self, name, made)
        return stream

    @property
    def stream_priority_range(self) -> tuple[int, int]:
        """The least and the greatest priority of streams: lower numbers are greater."""
        found = json.loads(read(api.device_priority_range, self.ordinal))
        return int(found["Least"]), int(found["Greatest"])

    def create_stream(self, *, priority: int = 0, name: str = "", blocking: bool = False) -> Stream:
        """Create a stream.

        Parameters
        ----------
        priority : int
            Lower numbers have higher priority; values outside `stream_priority_range` are clamped.
        name : str
            Shown in reprs; need not be unique.
        blocking : bool
            Whether the stream and the legacy default stream wait for each other's work, as streams
            of the CUDA runtime do.

        Returns
        -------
        Stream
            A new stream.

        References
        ----------
        ``cuStreamCreateWithPriority``

        Examples
        --------
        >>> with device.create_stream(priority=-1, name="urgent") as urgent:
        ...     urgent.name
        'urgent'
        """
        shown = text(name, "name")
        stream: Stream = _core._stream_new(self, whole(priority, "priority"), blocking)
        _made[stream._id] = stream
        if shown:
            stream._name = shown
        return stream

    @property
    def sm_count(self) -> int:
        """Number of multiprocessors (SMs)."""
        return self.properties.multiprocessor_count

    def split_sms(
        self,
        count: SupportsIndex,
        *,
        groups: SupportsIndex | None = None,
        remainder: bool = False,
        coscheduled: bool = True,
    ) -> tuple[SMPartition, ...]:
        """Split the multiprocessors into parts of the same size, for green contexts.

        Parameters
        ----------
        count : int
            Least number of multiprocessors of each part. The driver rounds it up to what the device
            can separate, such as a multiple of 8 for compute capability 9.0.
        groups : int, optional
            Greatest number of parts; by default as many as there can be.
        remainder : bool
            Whether what is left is returned too, as the last part; its ``sm_count`` is 0 if nothing
            is left.
        coscheduled : bool
            Whether the multiprocessors of a part lie together. Without that parts can be smaller,
            and kernels in them may lack large clusters.

        Returns
        -------
        tuple of SMPartition
            Parts that share no multiprocessor. Those of another call may overlap with them.

        Raises
        ------
        ValueError
            If `count` is not 1 to `sm_count`.
        CUDAError
            If not even one such part can be made.
        UnsupportedError
            If the driver has no green contexts.

        See Also
        --------
        green_context : Makes use of parts.

        References
        ----------
        ``cuDeviceGetDevResource``, ``cuDevSmResourceSplitByCount``

        Examples
        --------
        >>> *parts, rest = device.split_sms(2, remainder=True)
        >>> sum(part.sm_count for part in parts) + rest.sm_count == device.sm_count
        True
        """
        *parts, rest = split_sms(self.ordinal, count, groups, coscheduled)
        return (*parts, rest) if remainder else tuple(parts)

    def green_context(self, *parts: SMPartition) -> GreenContext:
        """Create a green context, which runs kernels on parts of the multiprocessors.

        Parameters
        ----------
        *parts : SMPartition
            One or several parts, of one call of `split_sms`.

        Returns
        -------
        GreenContext
            It makes streams.

        Raises
        ------
        ValueError
            If there are no parts, one twice, one of another device, or of another call of
            `split_sms`, whose parts may overlap.
        UnsupportedError
            If the driver has no green contexts.

        Notes
        -----
        Blocks until the device's primary context exists.

        References
        ----------
        ``cuDevResourceGenerateDesc``, ``cuGreenCtxCreate``
        """
        for part in parts:
            if not isinstance(part, SMPartition):
                raise TypeError(f"parts must be of split_sms, not {type(part).__name__}")
            if part._ordinal != self.ordinal:
                raise ValueError(
                    f"parts must be of device {self.ordinal}, got one of device {part._ordinal}"
                )
            if part._split is not parts[0]._split:  # the driver takes such, if of equal calls
                raise ValueError(
                    "parts must be of one call of split_sms: those of two calls may overlap"
                )
        return _core._green_new(self, b"".join(part._resource for part in parts))

    def create_event(
        self,
        *,
        timing_enabled: bool = False,
        blocking_sync: bool = False,
        ipc_enabled: bool = False,
    ) -> Event:
        """Create an event.

        Parameters
        ----------
        timing_enabled : bool
            Whether the event can measure time, which makes recording it slightly slower.
        blocking_sync : bool
            Whether a thread that waits for the event sleeps instead of spinning.
        ipc_enabled : bool
            Whether other processes can open the event: see `Event.ipc_descriptor`. Then it cannot
            measure time.

        Returns
        -------
        Event
            Not yet recorded, which counts as complete.

        Raises
        ------
        UnsupportedError
            If the device shares no events with other processes.

        References
        ----------
        ``cuEventCreate``
        """
        event: Event = _core._event_new(self, timing_enabled, blocking_sync, ipc_enabled)
        if ipc_enabled:
            with late:
                from .._stream.ipc import reduce_event, sends

            sends(type(event), reduce_event)
        return event

    def reset(self) -> None:
        """Release all that the process has on the device, so that it works again after a fault.

        After a `DeviceFaultError` every call on the device fails; after a reset the device is as
        good as new, and empty. Its streams, events, memory, graphs and executables, and views of
        them, are lost: using one raises `ClosedError`, and closing one does nothing. Compiled code
        and its kernels remain; they are loaded again when needed, with their initial attributes.
        The default stream and `memory_resource` are replaced by those of a new device; a resource
        that is written in Python stays, unless its ``upstream`` is lost. A healthy device can be
        reset too.

        Raises
        ------
        ValueError
            If a stream is capturing; if pinned or managed memory of the device is open, which the
            host may be using; if another library holds a tensor over the device's memory, or uses
            the device itself, since PyTorch, CuPy and JAX share the context; if another process has
            imported memory of a pool; if an executable of another device's graph has nodes on the
            device, or allocates there, which NVIDIA's driver does not survive; or if another thread
            is resetting the device. The reset has not begun then.
        CUDAError
            In a host callback, before the reset has begun. Or if the device is still broken
            afterwards, which the message says: with NVIDIA's driver, some faults last until the
            process ends.

        Notes
        -----
        Blocks until calls on other threads and host callbacks have returned; Ctrl-C ends the wait,
        and the reset with it. Queued work is dropped and running work stopped on the simulated
        driver; NVIDIA's driver cannot stop it, so the call waits for it. Not allowed while a stream
        is capturing.

        Pinned memory belongs to device 0, that of a pool to the pool's device. Graphs of other
        devices are not lost. Those that use memory of this device, or have nodes there, and
        executables and bound launches that use its memory, raise a `ClosedError` when they are
        launched, instantiated or copied, which names the node, until the node is updated. Work of
        other devices that is queued or running is not waited for: if it uses memory of this device,
        wait for it before.

        References
        ----------
        ``cuDevicePrimaryCtxRelease``, ``cuDevicePrimaryCtxReset``

        Examples
        --------
        >>> lost = device.create_stream()
        >>> device.reset()
        >>> lost.is_closed, device.default_stream.is_closed
        (True, False)
        """
        try:
            self._reset()
        finally:
            for name in ("_default_stream", "_per_thread_stream"):
                stream = getattr(self, name, None)
                if stream is not None and stream.is_closed:
                    delattr(self, name)
        with late:
            import logging

        logging.getLogger("cudago").info("device %d was reset", self.ordinal)

    def can_access_peer(self, peer: Device) -> bool:
        """Report whether kernels on this device can access memory of another device.

        Parameters
        ----------
        peer : Device
            The other device.

        Returns
        -------
        bool
            False for the device itself.

        References
        ----------
        ``cuDeviceCanAccessPeer``
        """
        return _core._peer_access(self, peer, 0)

    def enable_peer_access(self, peer: Device) -> None:
        """Let this device access memory that other libraries allocated on another device.

        This applies to memory from ``cuMemAlloc`` and ``cudaMalloc``; not, on two H200s, to
        variables of code that was loaded before. Memory of cudago comes from pools, which have
        access lists of their own: `DeviceMemoryResource.peer_accessible_by`.

        Parameters
        ----------
        peer : Device
            Another device, which owns the memory. Access in the other direction needs its own call.

        Raises
        ------
        CUDAError
            If the device cannot access memory of `peer` (``CUDA_ERROR_PEER_ACCESS_UNSUPPORTED``).

        See Also
        --------
        can_access_peer : Tells whether this is possible.

        Notes
        -----
        Access is enabled for the whole process; enabling it again has no effect. Copies between
        devices need no access.

        References
        ----------
        ``cuCtxEnablePeerAccess``

        Examples
        --------
        >>> for peer in cudago.Device.all():
        ...     if device.can_access_peer(peer):
        ...         device.enable_peer_access(peer)
        """
        _core._peer_access(self, peer, 1)

    def disable_peer_access(self, peer: Device) -> None:
        """Undo `enable_peer_access`, for the whole process.

        Parameters
        ----------
        peer : Device
            Another device, which owns the memory.

        Raises
        ------
        CUDAError
            If the device cannot access memory of `peer`.

        Notes
        -----
        No work that uses the access may be pending. Disabling access that is not enabled has no
        effect.

        References
        ----------
        ``cuCtxDisablePeerAccess``
        """
        _core._peer_access(self, peer, 2)

    def _make_resource(self) -> MemoryResource:
        return DeviceMemoryResource(self)

    _repr_html_ = card

    @or_closed
    def __repr__(self) -> str:
        try:
            return f"<cudago.Device {self.ordinal}: {self.name}>"
        except ClosedError:  # the interpreter is ending
            return f"<cudago.Device {self.ordinal}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.ordinal == self.ordinal

    def __hash__(self) -> int:
        return hash((Device, self.ordinal))

    def __reduce__(self) -> tuple[type[Device], tuple[int]]:
        return Device, (self.ordinal,)


_core._set_class("Device", Device)
