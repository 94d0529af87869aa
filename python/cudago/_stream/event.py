# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._ordinal import device_at

if TYPE_CHECKING:
    from .._memory.device import Device

__all__ = ["Event"]


class Event(_core.Event):
    """A mark in a stream that completes once the work queued before it has completed.

    Created by `Device.create_event` or `Stream.record`. Other streams wait for it with
    `Stream.wait`, the host with `sync`. A context manager: leaving the ``with`` block closes the
    event.

    Notes
    -----
    An event that was never recorded counts as complete. One that was recorded in a capture belongs
    to the captured graph, and the host cannot query it.

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
            If an event was never recorded, was recorded in a capture, or has not completed.

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
