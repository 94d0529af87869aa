# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams.

What is hot, or blocks, is in ``pyext/native/stream.c``; its documentation is in ``_core.pyi``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from . import _core
from . import _zconstants as _z
from ._card import card
from ._ordinal import device_at

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ._device import Device
    from ._event import Event
    from ._graph import Graph
    from .typing import CaptureMode, StreamLike

__all__ = ["Stream"]

_MODES = {
    "global": _z.CU_STREAM_CAPTURE_MODE_GLOBAL,
    "thread_local": _z.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    "relaxed": _z.CU_STREAM_CAPTURE_MODE_RELAXED,
}


class Stream(_core.Stream):
    """A queue of device work that runs in order.

    Work on different streams runs in any order, or at once, unless an event orders it: `record` and
    `wait`. Made by `Device.create_stream` or `Stream.from_handle`. A context manager: leaving the
    ``with`` block closes the stream.

    Notes
    -----
    A closed stream's work completes, and memory that was allocated on it stays valid. Streams can
    be used by several threads; work runs in the order in which their calls were made.

    Two open streams are equal if they stand for the same ``CUstream``.

    Examples
    --------
    >>> with device.create_stream(name="copies") as copies:
    ...     buffer = device.allocate(4, stream=copies)
    ...     buffer.fill(7, stream=copies)
    ...     stream.wait(copies)
    >>> out = bytearray(4)
    >>> buffer.copy_to(out, stream=stream)
    >>> stream.sync()
    >>> out[0]
    7
    """

    __slots__ = ("_hash", "_name")
    _hash: int
    _name: str

    @classmethod
    def from_handle(
        cls, handle: int, *, device: Device | None = None, owner: object = None
    ) -> Stream:
        """Wrap a ``CUstream`` of another library.

        Parameters
        ----------
        handle : int
            The ``CUstream``; 0 and 1 are the legacy and 2 the per-thread default stream.
        device : Device, optional
            The stream's device, which is not checked; by default device 0.
        owner : object, optional
            What keeps the handle valid. The stream keeps it; you keep it until work has ended, and
            until memory that was allocated on the stream has gone.

        Returns
        -------
        Stream
            Closing it does not destroy the handle.

        Raises
        ------
        TypeError
            If `handle` is no integer.
        OverflowError
            If `handle` is negative, or does not fit 64 bits.

        Examples
        --------
        >>> cudago.Stream.from_handle(stream.handle, owner=stream) == stream
        True
        """
        stream: Stream = _core._stream_wrap(device or device_at(), handle, owner)
        _made[stream._id] = stream
        return stream

    @property
    def device(self) -> Device:
        """The device that the stream belongs to."""
        return device_at(self._ordinal)

    @property
    def name(self) -> str:
        """The name that the stream was given; empty without one."""
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
            Complete when all work queued before has completed. What it marked earlier is forgotten;
            who waits for that already keeps waiting for that.

        Raises
        ------
        ValueError
            If the event belongs to another device.
        ClosedError
            If the stream or the event is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Stream-ordered on this stream. Returns before completion, with the GIL held. During capture
        it adds no node: it says what a later `wait` in the capture depends on.

        References
        ----------
        ``cuEventRecord``

        Examples
        --------
        >>> event = stream.record()
        >>> event.sync()
        >>> event.is_done
        True
        """
        return self._record(self.device.create_event() if event is None else event)

    def wait(self, work: Event | StreamLike) -> None:
        """Let work queued from now on wait for an event, or for what is queued on another stream.

        Parameters
        ----------
        work : Event or Stream
            What to wait for. It may be of another device, and may be closed right after. An event
            that was never recorded is nothing to wait for. A stream may be of another library.

        Raises
        ------
        TypeError
            If `work` is neither.
        ClosedError
            If either side is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Stream-ordered on this stream. Returns before completion, with the GIL held: the host does
        not wait. During capture it adds a dependency; a stream that waits for one that is capturing
        joins the capture. Work outside the capture cannot be waited for: the driver refuses, and
        the capture is spoilt.

        References
        ----------
        ``cuStreamWaitEvent``

        Examples
        --------
        >>> with device.create_stream() as other:
        ...     stream.wait(other.record())
        """
        if isinstance(work, _core.Event):
            self._wait_event(work)
            return
        if not isinstance(work, Stream):
            work = _foreign(work)
        with work.record() as event:
            self._wait_event(event)

    def capture(self, mode: CaptureMode = "global") -> AbstractContextManager[Graph, None]:
        """Record what is queued in the ``with`` block as a graph, instead of running it.

        Parameters
        ----------
        mode : {"global", "thread_local", "relaxed"}
            Whose calls that a capture forbids spoil it: those of all threads, of this one, or of
            none. Releases of cudago never do.

        Returns
        -------
        context manager of Graph
            The graph is usable after the block. It keeps every operand of copies, fills and
            launches in the block.

        Raises
        ------
        ValueError
            If `mode` is no choice.
        CUDAError
            If the driver refuses, as on the legacy default stream, or the capture was spoilt.
            Nothing is kept then.
        ClosedError
            If the stream is closed.

        Notes
        -----
        Not stream-ordered: nothing runs before the graph is launched. Returns at once, with the GIL
        held, on both ends of the block. During capture of the same stream it is refused, and the
        open capture goes on.

        Streams that `wait` for this one in the block join the capture, and must have been waited
        for at its end. If the block raises, the capture ends, and what it recorded is dropped.

        References
        ----------
        ``cuStreamBeginCapture_v2``, ``cuStreamEndCapture``

        Examples
        --------
        >>> buffer = device.allocate(4, stream=stream)
        >>> with stream.capture() as graph:
        ...     buffer.fill(7, stream=stream)
        >>> [node.kind for node in graph.nodes]
        ['memset']
        """
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}")
        return _core._capture(self, _MODES[mode])

    _repr_html_ = card

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        if self.is_closed:
            return f"<cudago.Stream{name}: closed>"
        return f"<cudago.Stream{name} {self._number:#x} on device {self._ordinal}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        if self is other:
            return True
        if self.is_closed or other.is_closed:
            return False
        return (self._ordinal, self._number) == (other._ordinal, other._number)

    def __hash__(self) -> int:
        # Kept, because it must stay the same when the stream is closed and its handle is gone. A
        # stream that was closed before anybody asked equals itself alone, so that any hash will do.
        try:
            return self._hash
        except AttributeError:
            key = None if self.is_closed else (self._ordinal, self._number)
            self._hash = object.__hash__(self) if key is None else hash(key)
            return self._hash


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
    index = getattr(getattr(obj, "device", None), "index", None)
    ordinal = index if isinstance(index, int) else 0
    # Not among those made by the user: it is gone after the call, and each launch pays for it.
    stream: Stream = _core._stream_wrap(device_at(ordinal), handle or 1, obj)
    return stream


# Those that have been made here, by number: _preview.py.
_made: WeakValueDictionary[int, Stream] = WeakValueDictionary()

_core._set_class("Stream", Stream)
