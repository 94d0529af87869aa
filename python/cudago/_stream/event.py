# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from .. import _core
from .._import_at_exit import late
from .._native import final, not_pickled
from .._ordinal import device_at

if TYPE_CHECKING:
    from .._memory.device import Device
    from .ipc import IPCEventDescriptor

__all__ = ["Event"]


@final
class Event(_core.Event):
    """A mark in a stream that completes once the work queued before it has completed.

    Created by `Device.create_event` or `Stream.record`. Other streams wait for it with
    `Stream.wait`, the host with `sync`. A context manager: leaving the ``with`` block closes the
    event.

    Notes
    -----
    An event that was never recorded counts as complete. One that was recorded in a capture belongs
    to the captured graph: the host can neither wait for it nor query it (`ValueError`), until it is
    recorded again.

    Examples
    --------
    >>> start = stream.record(device.create_event(timing_enabled=True))
    >>> end = stream.record(device.create_event(timing_enabled=True))
    >>> end.sync()
    >>> end.elapsed_ms(start) >= 0
    True
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device that the event belongs to."""
        return device_at(self._ordinal)

    @property
    def ipc_descriptor(self) -> IPCEventDescriptor:
        """Names the event to other processes, for `from_ipc_descriptor`.

        Only for an event that this process created with ``ipc_enabled``; `ValueError` for others.
        Once named, the event stays in the driver when it is closed, because another process may be
        using it; it ends with this process. So name few events, and record them again and again.
        """
        with late:
            from .ipc import describe_event

        return describe_event(self)

    @classmethod
    def from_ipc_descriptor(cls, device: Device, descriptor: IPCEventDescriptor) -> Event:
        """Open an event that another process shares.

        Parameters
        ----------
        device : Device
            The device that the event belongs to.
        descriptor : IPCEventDescriptor
            `ipc_descriptor` of the event in that process.

        Returns
        -------
        Event
            The same event: whoever records it, the others see the latest record.

        Raises
        ------
        CUDAError
            If there is no such event; with NVIDIA's driver also in the process that created it.

        Notes
        -----
        The process that created the event must live until this one is closed. ``multiprocessing``
        sends such events by itself.

        References
        ----------
        ``cuIpcOpenEventHandle``, ``cuIpcGetEventHandle``
        """
        with late:
            from .ipc import open_event

        return open_event(device, descriptor)

    def elapsed_ms(self, start: Event) -> float:
        """Return the time from `start` to this event, in milliseconds.

        Parameters
        ----------
        start : Event
            The earlier event. Both need ``timing_enabled`` and must have completed.

        Returns
        -------
        float
            Milliseconds; also ``end - start``. On the simulated driver this is host time.

        Raises
        ------
        CUDAError
            If an event was never recorded, or has not completed.
        ValueError
            If an event was made without ``timing_enabled``, or was last recorded in a capture.

        References
        ----------
        ``cuEventElapsedTime``
        """
        return float(self._elapsed_ms(start))

    def __sub__(self, start: Event) -> float:
        return self.elapsed_ms(start)

    def __reduce__(self) -> NoReturn:
        not_pickled(self, "an event that was created with ipc_enabled")

    def __repr__(self) -> str:
        return "<cudago.Event: closed>" if self.is_closed else f"<cudago.Event {self.handle:#x}>"


_core._set_class("Event", Event)
