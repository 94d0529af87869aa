# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from . import _core
from ._card import card
from ._cold import read
from ._event import Event
from ._gopy import api
from ._ordinal import device_at
from ._properties import DeviceProperties
from ._resource import DeviceMemoryResource, MemoryResource
from ._stream import Stream, _made

if TYPE_CHECKING:
    from ._memory import Buffer
    from .typing import StreamLike

__all__ = ["Device"]


class Device(_core.Device):
    """A CUDA device.

    Nobody has to set a current device: a call makes its device's primary context current where
    needed and leaves the caller's as it was. That context is the one of PyTorch and CuPy too.

    Parameters
    ----------
    ordinal : int, optional
        The device's number; by default 0. There is one object for each number.

    Raises
    ------
    TypeError
        If `ordinal` is no int.
    ValueError
        If there is no such device.
    DriverNotFoundError
        If no driver can be opened.

    Notes
    -----
    Not stream-ordered. The first use of a device makes its primary context: blocks until that is
    there, with the GIL released. A device is never closed.

    References
    ----------
    ``cuDeviceGet``, ``cuDevicePrimaryCtxRetain``

    Examples
    --------
    >>> device = cudago.Device(0)
    >>> device is cudago.Device(), device.ordinal
    (True, 0)
    """

    __slots__ = ("_default_stream", "_properties")
    _default_stream: Stream
    _properties: DeviceProperties

    if TYPE_CHECKING:
        # Device memory needs a stream, unless `memory_resource` was set.
        def allocate(  # type: ignore[override]
            self, size: SupportsIndex, /, *, stream: StreamLike
        ) -> Buffer: ...

    def __new__(cls, ordinal: int | None = None) -> Device:
        """Return the one object of a device."""
        number = 0 if ordinal is None else ordinal
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"ordinal must be an int, not {type(number).__name__}")
        return device_at(number)

    @classmethod
    def all(cls) -> tuple[Device, ...]:
        """Return every device of the driver in use.

        Returns
        -------
        tuple of Device
            In order of their numbers.

        Raises
        ------
        DriverNotFoundError
            If no driver can be opened.

        Notes
        -----
        Not stream-ordered. Blocks until all primary contexts are there, with the GIL released.

        References
        ----------
        ``cuDeviceGetCount``

        Examples
        --------
        >>> cudago.Device.all()[0] is device
        True
        """
        return tuple(cls(i) for i in range(read(api.device_count)))

    @property
    def name(self) -> str:
        """The product's name."""
        return str(read(api.device_name, self.ordinal))

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The compute capability, as (major, minor)."""
        p = self.properties
        return p.compute_capability_major, p.compute_capability_minor

    @property
    def total_memory(self) -> int:
        """Memory of the device, in bytes."""
        return int(read(api.device_properties, self.ordinal).total_memory)

    @property
    def free_memory(self) -> int:
        """Memory of the device that is free now, in bytes."""
        return int(read(api.device_memory_info, self.ordinal).free)

    @property
    def uuid(self) -> str:
        """The device's UUID."""
        return str(read(api.device_properties, self.ordinal).uuid)

    @property
    def pci_bus_id(self) -> str:
        """The device's PCI address."""
        return str(read(api.device_properties, self.ordinal).pci_bus_id)

    @property
    def properties(self) -> DeviceProperties:
        """All attributes of the device."""
        try:
            return self._properties
        except AttributeError:
            self._properties = DeviceProperties(self.ordinal)
            return self._properties

    @property
    def default_stream(self) -> Stream:
        """The legacy default stream, which waits for blocking streams and they for it.

        Streams of cudago are non-blocking. The stream cannot be captured.
        """
        try:
            if not self._default_stream.is_closed:
                return self._default_stream
        except AttributeError:
            pass
        self._default_stream = _core._stream_wrap(self, 1, None)
        _made[self._default_stream._id] = self._default_stream
        return self._default_stream

    def create_stream(self, *, priority: int = 0, name: str = "") -> Stream:
        """Create a stream: a queue of device work that runs in order.

        Parameters
        ----------
        priority : int
            Lower numbers are served first; values outside the device's range are clamped.
        name : str
            For reprs; need not be unique.

        Returns
        -------
        Stream
            Non-blocking: it does not wait for the legacy default stream.

        Raises
        ------
        OverflowError
            If `priority` does not fit 32 bits.
        OutOfMemoryError, CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered. Returns when the stream is there, with the GIL released meanwhile.
        Captures are not affected.

        References
        ----------
        ``cuStreamCreateWithPriority``

        Examples
        --------
        >>> with device.create_stream(priority=-1, name="urgent") as urgent:
        ...     urgent.name
        'urgent'
        """
        stream: Stream = _core._stream_new(self, priority)
        _made[stream._id] = stream
        if name:
            stream._name = str(name)
        return stream

    def create_event(self, *, timing_enabled: bool = False, blocking_sync: bool = False) -> Event:
        """Create an event: a mark in a stream.

        Parameters
        ----------
        timing_enabled : bool
            Whether the event can measure time; recording is a little dearer then.
        blocking_sync : bool
            Whether a thread that waits for the event sleeps instead of spinning.

        Returns
        -------
        Event
            Not recorded yet, which counts as complete.

        Raises
        ------
        OutOfMemoryError, CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered. Returns when the event is there, with the GIL released meanwhile.
        Captures are not affected.

        References
        ----------
        ``cuEventCreate``

        Examples
        --------
        >>> device.create_event().is_done
        True
        """
        event: Event = _core._event_new(self, timing_enabled, blocking_sync)
        return event

    def reset(self) -> None:
        """End all that the process has on the device, so that it works again after a fault.

        A `DeviceFaultError` leaves a device broken: every call fails from then on. After a reset
        the device is as good as new, and empty. Streams, events, memory, graphs and executables of
        it, and what views them, are lost: their use is a `ClosedError`, and to close them does
        nothing. Compiled code and its kernels stay, and are loaded anew, with attributes as at
        first. The default stream and `memory_resource` are new ones. A healthy device can be reset
        too.

        Raises
        ------
        ValueError
            If a stream capture is open; if pinned or managed memory of the device is, which the
            host may be using; if another library holds a tensor over its memory, or uses the device
            itself: PyTorch, CuPy and JAX share the context; or if it is being reset by another
            thread. Nothing has happened then.
        CUDAError
            If the driver refuses, as in a host callback: nothing has happened then either. Or if
            the device is still broken, which the text says: some faults of NVIDIA's driver end with
            the process alone.

        Notes
        -----
        Not stream-ordered. On the simulated driver work that is queued is dropped, and what runs is
        stopped; NVIDIA's is waited for, since it would go on. Blocks with the GIL released until
        calls of other threads and host callbacks have returned; Ctrl-C ends the wait, and the reset
        with it. Not allowed while a stream is capturing, which goes on.

        Pinned memory is of device 0. Graphs of other devices that use memory of this one are not
        lost, but they fault, as does other work under way that uses it.

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
            stream = getattr(self, "_default_stream", None)
            if stream is not None and stream.is_closed:
                del self._default_stream

    def can_access_peer(self, peer: Device) -> bool:
        """Report whether kernels on this device could touch memory of another one.

        Parameters
        ----------
        peer : Device
            The other device.

        Returns
        -------
        bool
            False for the device itself.

        Raises
        ------
        TypeError
            If `peer` is no device.

        Notes
        -----
        Not stream-ordered. Returns at once, with the GIL released meanwhile. Captures are not
        affected.

        References
        ----------
        ``cuDeviceCanAccessPeer``

        Examples
        --------
        >>> device.can_access_peer(device)
        False
        """
        return _core._peer_access(self, peer, 0)

    def enable_peer_access(self, peer: Device) -> None:
        """Let kernels on this device touch memory that other libraries have on another one.

        It is for what ``cuMemAlloc`` and ``cudaMalloc`` gave, and for variables of code. Memory of
        cudago comes from pools, each with an access of its own:
        `DeviceMemoryResource.peer_accessible_by`.

        Parameters
        ----------
        peer : Device
            The device that has the memory. The other way is a call of its own.

        Raises
        ------
        TypeError
            If `peer` is no device.
        ValueError
            If `peer` is this device.
        CUDAError
            If the device cannot access memory of `peer` (``CUDA_ERROR_PEER_ACCESS_UNSUPPORTED``).

        See Also
        --------
        can_access_peer : Asks whether it can be.

        Notes
        -----
        Not stream-ordered. Blocks until it is done, with the GIL released. Allowed while streams
        are capturing. It is for the whole process; that somebody has done it before is fine. Copies
        between devices need no access.

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
            The device that has the memory.

        Raises
        ------
        TypeError
            If `peer` is no device.
        ValueError
            If `peer` is this device.
        CUDAError
            If the device cannot access memory of `peer`.

        Notes
        -----
        Not stream-ordered: no work that uses the access may be under way. Blocks until it is done,
        with the GIL released. That the access is not enabled is fine.

        References
        ----------
        ``cuCtxDisablePeerAccess``

        Examples
        --------
        >>> for peer in cudago.Device.all():
        ...     if device.can_access_peer(peer):
        ...         device.disable_peer_access(peer)
        """
        _core._peer_access(self, peer, 2)

    def _make_resource(self) -> MemoryResource:
        return DeviceMemoryResource(self)

    _repr_html_ = card

    def __repr__(self) -> str:
        return f"<cudago.Device {self.ordinal}: {self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.ordinal == self.ordinal

    def __hash__(self) -> int:
        return hash((Device, self.ordinal))

    def __reduce__(self) -> tuple[type[Device], tuple[int]]:
        return Device, (self.ordinal,)


_core._set_class("Device", Device)
