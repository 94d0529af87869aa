# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Devices."""

from __future__ import annotations

from typing import Any

from . import _core
from ._event import Event
from ._gopy import api
from ._memory import DeviceMemoryResource, MemoryResource
from ._stream import Stream

__all__ = ["Device", "DeviceProperties"]

_devices: dict[int, Device] = {}


class DeviceProperties:
    """The attributes of a device, read when asked for and then kept.

    Every attribute of ``CUdevice_attribute`` is here under its name in lower case, such as
    ``multiprocessor_count`` or ``max_threads_per_block``; ``dir()`` lists them.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or name not in _attribute_names():
            raise AttributeError(
                f"a device has no property {name!r}; dir() lists those that it has"
            )
        value = _read(api.device_attribute, self._ordinal, name)
        setattr(self, name, value)
        return int(value)

    def __dir__(self) -> list[str]:
        return sorted(_attribute_names())

    def __repr__(self) -> str:
        return f"<cudago.DeviceProperties of device {self._ordinal}>"


_names: frozenset[str] = frozenset()


def _attribute_names() -> frozenset[str]:
    global _names
    if not _names:
        _names = frozenset(api.attribute_name(i) for i in range(api.attribute_count()))
    return _names


def _read(call: Any, *args: Any) -> Any:
    """Call the cold half of the API, and turn the text of its errors into ours."""
    try:
        return call(*args)
    except RuntimeError as e:
        from .errors import CUDAError

        raise CUDAError(str(e)) from None


class Device(_core.Device):
    """A CUDA device.

    Nobody has to set a current device: a call makes its device's primary context current where
    needed and leaves the caller's as it was.

    Parameters
    ----------
    ordinal : int, optional
        The device's number; by default 0.

    Raises
    ------
    ValueError
        If there is no such device.
    DriverNotFoundError
        If no driver can be opened.

    Examples
    --------
    >>> device = cudago.Device()
    >>> device.ordinal
    0
    """

    __slots__ = ("_default_stream", "_properties")
    _default_stream: Stream
    _properties: DeviceProperties

    def __new__(cls, ordinal: int | None = None) -> Device:
        """Return the one object of a device."""
        number = 0 if ordinal is None else ordinal
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"ordinal must be an int, not {type(number).__name__}")
        found = _devices.get(number)
        return (
            found if found is not None else _devices.setdefault(number, _core._device_new(number))
        )

    @classmethod
    def all(cls) -> tuple[Device, ...]:
        """Return every device of the driver in use."""
        _core._open()
        return tuple(cls(i) for i in range(_read(api.device_count)))

    @property
    def name(self) -> str:
        """The product's name."""
        return str(_read(api.device_name, self.ordinal))

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The compute capability, as (major, minor)."""
        p = self.properties
        return p.compute_capability_major, p.compute_capability_minor

    @property
    def total_memory(self) -> int:
        """Memory of the device, in bytes."""
        return int(_read(api.device_properties, self.ordinal).total_memory)

    @property
    def free_memory(self) -> int:
        """Memory of the device that is free now, in bytes."""
        return int(_read(api.device_memory_info, self.ordinal).free)

    @property
    def uuid(self) -> str:
        """The device's UUID."""
        return str(_read(api.device_properties, self.ordinal).uuid)

    @property
    def pci_bus_id(self) -> str:
        """The device's PCI address."""
        return str(_read(api.device_properties, self.ordinal).pci_bus_id)

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
        """The legacy default stream, which waits for blocking streams and they for it."""
        try:
            return self._default_stream
        except AttributeError:
            self._default_stream = _core._stream_wrap(self, 1, None)
            return self._default_stream

    def create_stream(self, *, priority: int = 0, name: str = "") -> Stream:
        """Create a stream: a queue of device work that runs in order.

        Parameters
        ----------
        priority : int
            Lower numbers are served first; values outside the device's range are clamped.
        name : str
            For reprs and messages.

        Returns
        -------
        Stream
            Non-blocking: it does not wait for the legacy default stream.

        Raises
        ------
        CUDAError
            If the driver refuses.

        References
        ----------
        ``cuStreamCreateWithPriority``
        """
        stream: Stream = _core._stream_new(self, priority)
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
            Not recorded yet.

        References
        ----------
        ``cuEventCreate``
        """
        event: Event = _core._event_new(self, timing_enabled, blocking_sync)
        return event

    def _make_resource(self) -> MemoryResource:
        return DeviceMemoryResource(self)

    def __repr__(self) -> str:
        return f"<cudago.Device {self.ordinal}: {self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.ordinal == self.ordinal

    def __hash__(self) -> int:
        return hash((Device, self.ordinal))

    def __reduce__(self) -> tuple[type[Device], tuple[int]]:
        return Device, (self.ordinal,)


_core._set_class("Device", Device)
