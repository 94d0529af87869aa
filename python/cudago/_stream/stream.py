# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams.

Hot and blocking calls are in ``pyext/stream/stream.c``; their documentation is in ``_core.pyi``.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakValueDictionary

from .. import _core
from .. import _zconstants as _z
from .._card import card
from .._import_at_exit import late
from .._native import final, number_text, value_text
from .._ordinal import device_at
from ..errors import CUDAError
from .callee import with_arguments
from .fork import Fork
from .memop import MemoryOperations
from .waited import event_handle, has_stream, part_of, way_out

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import SupportsIndex

    from .._graph.graph import Graph
    from .._memory.device import Device
    from ..typing import CaptureMode, StreamLike, SupportsCUDAStream
    from .event import Event
    from .semaphore import ExternalSemaphore

__all__ = ["Stream"]

_MODES = {
    "global": _z.CU_STREAM_CAPTURE_MODE_GLOBAL,
    "thread_local": _z.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    "relaxed": _z.CU_STREAM_CAPTURE_MODE_RELAXED,
}


def mode_of(mode: str) -> int:
    """Return the driver's number of a mode of captures."""
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    return _MODES[mode]


@final
class Stream(MemoryOperations, _core.Stream):
    """A queue of device work that runs in order.

    Work on different streams may overlap and run in any order, unless `record` and `wait` order it.
    Created by `Device.create_stream`. ``Stream(obj)`` wraps a stream of another library with
    ``__cuda_stream__``, `from_handle` wraps any handle. A context manager: leaving the ``with``
    block closes the stream.

    Parameters
    ----------
    obj : object with ``__cuda_stream__``
        Another library's stream, which is kept alive; a `Stream` is returned as it is. Closing the
        new object does not destroy the stream. It is of the device that the object tells in
        ``device`` or ``device_id``, else of the one that cudago or the driver knows the handle of.

    Notes
    -----
    Closing a stream does not cancel its work, and memory allocated on it stays valid. Threads may
    share a stream; its work runs in the order of their calls.

    Two open streams are equal if they refer to the same ``CUstream``.

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

    def __new__(cls, obj: SupportsCUDAStream) -> Stream:
        """Wrap a stream of another library, and keep its object alive."""
        if isinstance(obj, Stream):
            return obj
        stream = _foreign(obj)
        _made[stream._id] = stream
        return stream

    @classmethod
    def from_handle(
        cls, handle: int, *, device: Device | None = None, owner: object = None
    ) -> Stream:
        """Wrap a ``CUstream`` of another library.

        Parameters
        ----------
        handle : int
            The ``CUstream``; 0 and 1 are the legacy default stream, 2 is the per-thread one.
        device : Device, optional
            The stream's device, which is not checked; by default device 0.
        owner : object, optional
            Object that keeps the handle valid; the stream keeps it alive, and so does memory that
            is allocated on it. Keep the owner yourself until the stream's work has completed. An
            owner that has such memory is never collected, as Python does not see that the memory
            keeps it: close the memory.

        Returns
        -------
        Stream
            Closing it does not destroy the handle.

        Examples
        --------
        >>> cudago.Stream.from_handle(stream.handle, owner=stream) == stream
        True
        """
        stream: Stream = _core._stream_wrap(
            device_at() if device is None else device, handle, owner
        )
        _made[stream._id] = stream
        return stream

    @property
    def device(self) -> Device:
        """The device that the stream belongs to."""
        return device_at(self._ordinal)

    @property
    def name(self) -> str:
        """The name given to the stream, or an empty string."""
        return getattr(self, "_name", "")

    def _record(self, event: Event | None = None, *, timing: bool = False) -> Event:
        """Do what the native `record` leaves to Python."""
        if event is None:
            event = self.device.create_event(timing_enabled=timing)
        elif timing:
            raise ValueError(
                "timing=True is for a new event; whether a given one has timing was decided by "
                "create_event(timing_enabled=...)"
            )
        return self.record(event)

    _record.__qualname__ = "Stream.record"  # what Python's errors name

    def callback(self, func: Callable[..., object], /, *args: Any, **kwargs: Any) -> None:
        """Call a function on the host after the work queued so far. Later work waits for it.

        Parameters
        ----------
        func : callable
            Runs on a thread of cudago. It must not wait for the device.
        *args, **kwargs
            Its arguments; they are kept until it has run.

        Raises
        ------
        TypeError
            If the function is known not to take these arguments, or is a coroutine or generator
            function.

        See Also
        --------
        Graph.callback : Adds such a call to a graph.

        Notes
        -----
        Stream-ordered on this stream. Captured as a host node, which keeps function and arguments
        alive; it then runs at each launch. An exception is reported to `sys.unraisablehook`, and
        work continues. The function does not run if work before it fails, or after the interpreter
        has begun to end.

        References
        ----------
        ``cuLaunchHostFunc``

        Examples
        --------
        >>> done = []
        >>> stream.callback(done.append, "after the work so far")
        >>> stream.sync()
        >>> done
        ['after the work so far']
        """
        self._callback(with_arguments(func, args, kwargs))

    @overload
    def wait(self, work: ExternalSemaphore, value: SupportsIndex | None = None) -> None: ...
    @overload
    def wait(self, work: object) -> None: ...
    def wait(self, work: object, value: SupportsIndex | None = None) -> None:
        """Make later work wait for an event, a semaphore, or the work queued on another stream.

        Parameters
        ----------
        work : Event, ExternalSemaphore, Stream or object that has one
            What to wait for; it may belong to another device or library, and may be closed right
            after the call. An event that was never recorded counts as complete. PyTorch's and
            CuPy's events and streams are understood, as is any object with ``__cuda_stream__``, or
            with one of those as its attribute ``event`` or ``stream``.
        value : int, optional
            Of a timeline semaphore: the value that it has to have at least, 0 to 2**64 - 1.

        Raises
        ------
        TypeError
            If `work` is or has neither an event nor a stream; if a timeline semaphore has no value,
            or anything else has one.
        CUDAError
            If a capturing stream would wait for work outside the capture. This invalidates the
            capture. The text says what to do instead.

        Notes
        -----
        Stream-ordered on this stream: the host does not wait. Captured as a dependency, and a wait
        for a semaphore as a node. A stream that waits for a capturing stream joins its capture,
        once the calls that other threads are making with it have ended. A wait for a semaphore that
        nobody signals never ends.

        References
        ----------
        ``cuStreamWaitEvent``, ``cuWaitExternalSemaphoresAsync``

        Examples
        --------
        >>> with device.create_stream() as other:
        ...     stream.wait(other.record())
        """
        if isinstance(work, _core.ExternalSemaphore):
            _core._signal(self, work, value, True)
            return
        if value is not None:
            raise TypeError("value is for an ExternalSemaphore that is a timeline")
        try:
            self._wait_for(work)
        except CUDAError as e:
            # NVIDIA's driver calls an event of a capture that has ended an invalid value.
            is_old = e.code == _z.CUDA_ERROR_INVALID_VALUE and isinstance(work, _core.Event)
            if e.code == _z.CUDA_ERROR_STREAM_CAPTURE_ISOLATION or (
                is_old and not self.is_capturing
            ):
                e.args = (f"{e}: {way_out(self, work)}",)
            raise

    def _wait_for(self, work: object) -> None:
        if isinstance(work, _core.Event):
            self._wait_event(work)
        elif isinstance(work, Stream):
            with work.record() as event:
                self._wait_event(event)
        elif (handle := event_handle(work)) is not None:
            if handle:  # PyTorch creates the event when it is first recorded
                self._wait_handle(handle)
        elif has_stream(work):
            self._wait_for(_foreign(work))
        else:
            self._wait_for(part_of(work))

    def signal(self, semaphore: ExternalSemaphore, value: SupportsIndex | None = None) -> None:
        """Signal a semaphore of another API once the work queued so far is complete.

        Parameters
        ----------
        semaphore : ExternalSemaphore
            The semaphore, of this stream's device. It may be closed right after the call.
        value : int, optional
            Of a timeline: what it is set to, 0 to 2**64 - 1. It must be more than it has.

        Raises
        ------
        TypeError
            If a timeline has no value, or another semaphore has one.
        ValueError
            If the semaphore was imported for another device.

        See Also
        --------
        wait : Waits for a semaphore.

        Notes
        -----
        Stream-ordered on this stream. Captured as a node, which keeps the semaphore.

        References
        ----------
        ``cuSignalExternalSemaphoresAsync``
        """
        _core._signal(self, semaphore, value, False)

    def capture(self, mode: CaptureMode = "global") -> AbstractContextManager[Graph, None]:
        """Record the work queued in the ``with`` block as a graph, instead of running it.

        Parameters
        ----------
        mode : {"global", "thread_local", "relaxed"}
            Which threads' unsafe CUDA calls invalidate the capture: those of every thread, of this
            thread, or of none. Releases by cudago never do.

        Returns
        -------
        context manager of Graph
            The graph is usable after the block. It keeps every operand of copies, fills and
            launches in the block alive.

        Raises
        ------
        CUDAError
            If the stream cannot be captured, as the legacy default stream, or if the capture was
            invalidated: the message names the call that did it, and the line of the program that
            made that call. Nothing is kept then, and the stream can be used.

        Notes
        -----
        Nothing runs before the graph is launched. A stream that is already capturing is refused,
        and its capture continues.

        Streams that `wait` for this one in the block take part in the capture, and this stream must
        wait for them before the block ends; `Graph.fork` does both. If the block raises, the
        recorded work is discarded.

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
        number = mode_of(mode)
        # The classes of what is made.
        with late:
            from .._graph import classes  # noqa: F401  # pyright: ignore[reportUnusedImport]

        return _core._capture(self, number)

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
        # Cached: it must not change when the stream is closed and its handle is gone. A stream that
        # was closed before its first hash equals only itself, so any hash will do.
        try:
            return self._hash
        except AttributeError:
            key = None if self.is_closed else (self._ordinal, self._number)
            self._hash = object.__hash__(self) if key is None else hash(key)
            return self._hash


def _foreign(obj: object) -> Stream:
    """Wrap an object with ``__cuda_stream__`` for one call. Called by the native module."""
    if isinstance(obj, Fork):
        return obj.stream
    protocol = getattr(obj, "__cuda_stream__", None)
    if protocol is None:
        handle = getattr(obj, "cuda_stream", None)  # older torch.cuda.Stream, without the protocol
        if not isinstance(handle, int):
            raise TypeError(
                f"stream must be a Stream or have __cuda_stream__, not {type(obj).__name__}"
            )
    else:
        handle = _handle_in(obj, protocol)
    # Not added to _made: it is gone after the call, and every launch would pay for that.
    stream: Stream = _core._stream_wrap(device_at(_ordinal_of(obj, handle)), handle or 1, obj)
    return stream


def _handle_in(obj: object, protocol: Any) -> int:
    """Return the handle that ``__cuda_stream__`` tells, in a pair with its version."""
    told: Any = protocol() if callable(protocol) else protocol
    try:
        if not callable(protocol) or isinstance(told, str):
            raise TypeError
        version, handle = map(index, told)
    except (TypeError, ValueError):
        raise TypeError(
            f"__cuda_stream__ of {type(obj)} must be a method that returns two ints, the version 0 "
            f"and a handle, not {value_text(told)}"
        ) from None
    if version != 0:
        raise TypeError(
            f"version {number_text(version)} of __cuda_stream__ is not supported, only 0"
        )
    if not 0 <= handle < 1 << 64:
        raise OverflowError(
            f"the handle that __cuda_stream__ of {type(obj)} returns must be a CUstream, got "
            f"{number_text(handle)}"
        )
    return handle


def _ordinal_of(obj: object, handle: int) -> int:
    """Return the device of another library's stream: that of the handle where it does not tell."""
    device = getattr(obj, "device", None)
    for told in (
        getattr(device, "index", None),  # torch
        getattr(device, "device_id", None),  # cuda.core
        getattr(obj, "device_id", None),  # CuPy, where default streams have -1
    ):
        if isinstance(told, int) and told >= 0:
            return told
    return _core._stream_device(handle)


def stream_of(obj: StreamLike) -> Stream:
    """Return a stream of ours, or one wrapped for one call."""
    return obj if isinstance(obj, Stream) else _foreign(obj)


# Streams created through this API, by id, for _display/preview.py.
_made: WeakValueDictionary[int, Stream] = WeakValueDictionary()

_core._set_class("Stream", Stream)
