# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from ._device import Device

__all__ = ["Event"]


class Event(_core.Event):
    """A mark in a stream.

    Made by `Device.create_event` or `Stream.record`. A context manager.

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
        from ._device import Device

        return Device(self._ordinal)

    def elapsed_ms(self, start: Event) -> float:
        """Return the time from `start` to this event, in milliseconds.

        Parameters
        ----------
        start : Event
            The earlier event. Both need ``timing_enabled`` and must have completed.

        Returns
        -------
        float
            Milliseconds. On the simulated driver, the host's time.

        Raises
        ------
        CUDAError
            If an event was never recorded, has not completed, or cannot measure time.

        References
        ----------
        ``cuEventElapsedTime``
        """
        return float(self._elapsed_ms(start))

    def __sub__(self, start: Event) -> float:
        return self.elapsed_ms(start)

    def __repr__(self) -> str:
        return "<cudago.Event: closed>" if self.is_closed else f"<cudago.Event {self.handle:#x}>"


_core._set_class("Event", Event)
