# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from . import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._device import Device
    from ._event import Event
    from ._graph import Graph

__all__ = ["Stream"]

_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


class Stream(_core.Stream):
    """A queue of device work that runs in order.

    Made by `Device.create_stream` or `Stream.from_handle`. A context manager: leaving the ``with``
    block closes it. Work already queued completes, and memory allocated on the stream stays valid.

    Examples
    --------
    >>> with device.create_stream(name="copies") as s:
    ...     s.sync()
    """

    __slots__ = ("_name",)
    _name: str

    @classmethod
    def from_handle(
        cls, handle: int, *, device: Device | None = None, owner: object = None
    ) -> Stream:
        """Wrap a ``CUstream`` of another library.

        Parameters
        ----------
        handle : int
            The ``CUstream``; 1 and 2 are the legacy and the per-thread default stream.
        device : Device, optional
            The stream's device; by default device 0.
        owner : object, optional
            Kept alive for as long as the stream is used.

        Returns
        -------
        Stream
            Closing it does not destroy the handle.
        """
        from ._device import Device

        stream: Stream = _core._stream_wrap(device or Device(), handle, owner)
        return stream

    @property
    def device(self) -> Device:
        """The device that the stream belongs to."""
        from ._device import Device

        return Device(self._ordinal)

    @property
    def name(self) -> str:
        """The name that the stream was given."""
        return getattr(self, "_name", "")

    def record(self, event: Event | None = None) -> Event:
        """Mark the work queued so far.

        Parameters
        ----------
        event : Event, optional
            The event to record; by default a new one.

        Returns
        -------
        Event
            Complete when all work queued before has completed.

        Raises
        ------
        ValueError
            If the event belongs to another device.
        ClosedError
            If the stream or the event is closed.

        Notes
        -----
        Stream-ordered; returns at once, with the GIL held.

        References
        ----------
        ``cuEventRecord``
        """
        return self._record(self.device.create_event() if event is None else event)

    def wait(self, work: Event | Stream) -> None:
        """Let work queued from now on wait for an event, or for what is queued on another stream.

        Parameters
        ----------
        work : Event or Stream
            What to wait for.

        Raises
        ------
        TypeError
            If `work` is neither.
        ClosedError
            If either side is closed.

        Notes
        -----
        Stream-ordered; the host does not wait. In a capture it adds a dependency.

        References
        ----------
        ``cuStreamWaitEvent``
        """
        if isinstance(work, _core.Event):
            self._wait_event(work)
            return
        if not isinstance(work, Stream):
            work = _foreign(work)
        with work.record() as event:
            self._wait_event(event)

    @contextmanager
    def capture(
        self, mode: Literal["global", "thread_local", "relaxed"] = "global"
    ) -> Iterator[Graph]:
        """Record what is queued in the ``with`` block as a graph, instead of running it.

        Parameters
        ----------
        mode : {"global", "thread_local", "relaxed"}
            Which threads are kept from calls that a capture forbids. cudago's own releases never
            spoil a capture.

        Yields
        ------
        Graph
            Usable after the block. It keeps every operand of copies, fills and launches in the
            block.

        Raises
        ------
        CUDAError
            If the capture was invalidated; the text names the reason. Nothing is kept then.

        Notes
        -----
        If the block raises, the capture is ended and what it recorded is dropped.

        References
        ----------
        ``cuStreamBeginCapture``, ``cuStreamEndCapture``
        """
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}")
        graph: Graph = _core._capture_begin(self, _MODES[mode])
        try:
            yield graph
        except BaseException:
            _core._capture_end(self, graph, True)
            raise
        _core._capture_end(self, graph, False)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        if self.is_closed:
            return f"<cudago.Stream{name}: closed>"
        return f"<cudago.Stream{name} {self.handle:#x} on device {self._ordinal}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        if self is other:
            return True
        return not (self.is_closed or other.is_closed) and self.handle == other.handle

    def __hash__(self) -> int:
        return object.__hash__(self)


def _foreign(obj: object) -> Stream:
    """Wrap an object with ``__cuda_stream__`` for one call."""
    protocol = getattr(obj, "__cuda_stream__", None)
    if protocol is None:
        handle = getattr(obj, "cuda_stream", None)  # torch.cuda.Stream before it had the protocol
        if not isinstance(handle, int):
            raise TypeError(
                f"stream must be a Stream or have __cuda_stream__, not {type(obj).__name__}"
            )
    else:
        version, handle = protocol()
        if version != 0:
            raise TypeError(f"version {version} of __cuda_stream__ is not supported, only 0")
    from ._device import Device

    index = getattr(getattr(obj, "device", None), "index", None)
    ordinal = index if isinstance(index, int) else 0
    return Stream.from_handle(handle or 1, device=Device(ordinal), owner=obj)


_core._set_class("Stream", Stream)
