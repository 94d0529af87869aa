# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Measuring how long device work takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .stream import stream_of

if TYPE_CHECKING:
    from ..typing import StreamLike
    from .event import Event
    from .stream import Stream

__all__ = ["timer"]


class timer:
    """Measures the device time between the beginning and the end of a ``with`` block.

    Parameters
    ----------
    stream : Stream
        The stream whose work is measured.

    Notes
    -----
    Stream-ordered on `stream`: the block does not wait for its work. The time includes that of
    other streams' work that the stream waits for, and its idle time. On the simulated driver it is
    host time. A timer can be used again; not while `stream` is capturing.

    References
    ----------
    ``cuEventRecord``, ``cuEventElapsedTime``

    Examples
    --------
    >>> with cudago.timer(stream) as t:
    ...     device.allocate(1024, stream=stream).fill(0, stream=stream)
    >>> t.elapsed_ms >= 0
    True
    """

    __slots__ = ("_end", "_raised", "_start", "stream")

    def __init__(self, stream: StreamLike) -> None:
        self.stream: Stream = stream_of(stream)
        self._start: Event | None = None
        self._end: Event | None = None
        self._raised = False  # in the block, so that it has no end

    def _record(self) -> Event:
        if self.stream.is_capturing:
            raise ValueError("the stream is capturing: time the launches of the graph instead")
        return self.stream.record(self.stream.device.create_event(timing_enabled=True))

    def __enter__(self) -> timer:
        """Start the time. A ValueError while the stream is capturing, a RuntimeError if it runs."""
        if self._start and not self._end and not self._raised:
            raise RuntimeError(f"{self!r} is in use: make another one for another with block")
        self._start, self._end, self._raised = None, None, False
        self._start = self._record()
        return self

    def __exit__(self, *args: object) -> None:
        """Stop it. A ValueError while the stream is capturing."""
        self._raised = True  # if the record raises, too
        # A stream that has failed would hide why. At exit there is nothing to time.
        if args[0] is None and _core._is_open():
            self._end = self._record()
        self._raised = args[0] is not None

    @property
    def event(self) -> Event | None:
        """The event that marks the end; None before it."""
        return self._end

    @property
    def elapsed_ms(self) -> float:
        """The time in milliseconds. Reading it waits for the end of the work.

        Raises
        ------
        ValueError
            Before the end of the ``with`` block, or if that has raised an exception.
        """
        if self._raised:
            raise ValueError("the timer has no end, because its with block raised an exception")
        if self._start is None or self._end is None:
            raise ValueError("the timer has not stopped: read it after its with block")
        self._end.sync()
        return self._end.elapsed_ms(self._start)

    def __repr__(self) -> str:
        state = "running" if self._start else "not started"
        if self._raised:
            state = "its block raised an exception"
        return f"<cudago.timer: {'stopped' if self._end else state}>"
