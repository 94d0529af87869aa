# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Helpers for testing programs that use cudago: delaying work, and finding leaks."""

from __future__ import annotations

import gc
import queue
import threading
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import _core
from ._driver import live_objects
from ._graph.graph import Graph
from ._native import duration
from ._stream.stream import stream_of
from .errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Generator

    from .typing import StreamLike

__all__ = ["hold", "no_leaks", "settle"]

_MOST_MS = 1 << 31  # one wait, of weeks
_LATE_ROUNDS = 10  # looks after the time is over, where each has released something


def settle(timeout_s: float = 10.0) -> None:
    """Wait until everything that nobody uses any more has been released.

    Objects that device work may still use are released on a background thread, shortly after that
    work completes. A test that looks for leaks waits for that with this function.

    Parameters
    ----------
    timeout_s : float
        Maximum time to wait, in seconds; 0 looks without waiting.

    Raises
    ------
    TimeoutError
        If releases still wait for device work after that time.

    Notes
    -----
    Runs Python's garbage collector, and blocks.

    Examples
    --------
    >>> buffer = device.allocate(1024, stream=stream)
    >>> with_buffer = cudago.live_objects()["Buffer"]
    >>> del buffer
    >>> cudago.testing.settle()
    >>> with_buffer - cudago.live_objects().get("Buffer", 0)
    1
    """
    if not _core._is_open():
        return
    deadline = time.monotonic() + duration(timeout_s, "timeout_s")
    before: object = None
    late = 0
    # A released object may have held others, so repeat until nothing changes.
    while before != (now := live_objects()) or gc.collect():
        before = now
        # 0 looks, and does not wait.
        left_ms = int(min(max(0, 1000 * (deadline - time.monotonic())), _MOST_MS))
        late += not left_ms
        if not _core._reaper_flush(left_ms) or late > _LATE_ROUNDS:
            raise TimeoutError(
                f"after {timeout_s} s, releases still wait for device work: {before}"
            )


@contextmanager
def no_leaks() -> Generator[None, None, None]:
    """Check that a ``with`` block releases everything that it creates.

    Yields
    ------
    None
        The check runs if the block ends without an exception.

    Raises
    ------
    AssertionError
        If `live_objects` counts more of any kind after the block; the message names the kinds.

    Notes
    -----
    Calls `settle` before and after the block. What is older may go in it: only numbers are
    compared, so that it hides as many new objects of its kind.

    Examples
    --------
    >>> with cudago.testing.no_leaks():
    ...     device.allocate(1024, stream=stream).fill(0, stream=stream)
    """
    settle()
    before = live_objects() if _core._is_open() else {}
    yield
    settle()
    if before and not _core._is_open():
        return  # the interpreter is ending
    after = live_objects() if _core._is_open() else {}
    grown = [
        f"{kind}: {before.get(kind, 0)} before, {after.get(kind, 0)} after"
        for kind in sorted(after)
        if before.get(kind, 0) < after[kind]
    ]
    if grown:
        raise AssertionError("live objects differ: " + "; ".join(grown))


_held = threading.local()  # by: the events of the open blocks of this thread


@contextmanager
def hold(stream: StreamLike) -> Generator[threading.Event, None, None]:
    """Delay the work that is queued on a stream in a ``with`` block.

    Parameters
    ----------
    stream : Stream
        The stream. Other streams of its device continue.

    Yields
    ------
    threading.Event
        Set when the block ends; setting it earlier lets the stream continue earlier.

    Raises
    ------
    ValueError
        If the stream is capturing: what is captured waits for nothing.

    Notes
    -----
    A callback in the stream waits for the event. Python callbacks run one at a time, so hold only
    one stream, and expect no other callback to run meanwhile: what is held in a block inside
    another one goes on when that ends.

    Examples
    --------
    >>> with cudago.testing.hold(stream):
    ...     stream.is_done
    False
    >>> stream.sync()
    >>> stream.is_done
    True
    """
    go_on = threading.Event()
    over: queue.SimpleQueue[None] = queue.SimpleQueue()  # its put takes no lock, as finalizers need

    def wait() -> None:
        over.put(None)
        go_on.wait()

    on = stream_of(stream)
    if on.is_capturing:
        raise ValueError(
            "the stream is capturing: what is captured waits for nothing; hold it before"
        )
    try:
        with Graph(on.device) as graph:
            graph.callback(wait, name="hold")
            with graph.instantiate() as step:
                step.launch(on)
        # Set too if a reset of the device drops the callback. Not weakref.finalize: at exit the
        # main thread may iterate over its registry while the callbacks' thread drops the callback.
        gone = weakref.ref(wait, lambda _: over.put(None))
        del wait
        mine: list[threading.Event] = _held.__dict__.setdefault("by", [])
        mine.append(go_on)
        try:
            yield go_on
        finally:
            go_on.set()
            mine.remove(go_on)
            # Behind another one of this thread the callback has its turn after that has ended.
            while all(e.is_set() for e in mine) and not _arrived(over) and _drained():
                pass
            del gone
    finally:
        go_on.set()  # Ctrl-C after the launch ends the block before it began


def _drained() -> bool:
    """Run what is due; not while the interpreter ends, when nobody need wait for it any more."""
    try:
        _core._drain()
    except ClosedError:
        return False
    return True


def _arrived(signals: queue.SimpleQueue[None]) -> bool:
    try:
        signals.get(timeout=0.05)
    except queue.Empty:
        return False
    return True
