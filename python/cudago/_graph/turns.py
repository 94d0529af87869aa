# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Turns of threads that call graph functions on a stream: no call falls into another's capture."""

from __future__ import annotations

from threading import RLock, get_ident, local
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._stream.stream import Stream

_Key: TypeAlias = tuple[int, int, int]


class _Mine(local):
    """The lock of this thread's turn, on any stream, or the last one."""

    lock: Any = None


_PER_THREAD = 2  # CU_STREAM_PER_THREAD: another stream in each thread
_MANY = 256
_locks: dict[_Key, Any] = {}
_mine = _Mine()


def in_turn(stream: Stream, do: Callable[..., bool], *args: Any) -> bool:
    """Return what a function returns, and keep other threads' turns off a stream meanwhile.

    A thread has one turn at a time: in the function it gets no other, because two threads could
    then wait for each other.
    """
    if has_turn():
        return do(*args)
    number = stream._number
    key = (stream._ordinal, number, get_ident() if number == _PER_THREAD else 0)
    while True:
        lock = _locks.get(key) or _locks.setdefault(key, RLock())
        _mine.lock = lock  # before it is taken: a signal's handler may run right after that
        with lock:  # Ctrl-C cannot leave it taken, as a context manager in Python could
            if _locks.get(key) is lock:  # else it was removed
                _mine.lock = lock  # a handler may have had a turn before
                done = do(*args)
                break
    if len(_locks) > _MANY:
        _remove_unused()
    return done


def _remove_unused() -> None:
    """Forget streams that may be gone."""
    for key, lock in list(_locks.items()):
        if lock.acquire(blocking=False):
            try:
                _locks.pop(key, None)
            finally:
                lock.release()


def has_turn() -> bool:
    """Whether this thread is in a function that `in_turn` calls."""
    lock = _mine.lock
    return lock is not None and lock._is_owned()
