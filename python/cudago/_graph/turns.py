# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Turns of threads that call graph functions on a stream: no call falls into another's capture."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock, get_ident, local
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator

    from .._stream.stream import Stream

_Key: TypeAlias = tuple[int, int, int]


class _Mine(local):
    """Whether this thread has a turn, on any stream."""

    has_turn = False


_PER_THREAD = 2  # CU_STREAM_PER_THREAD: another stream in each thread
_MANY = 256
_locks: dict[_Key, Lock] = {}
_mine = _Mine()


@contextmanager
def turn_on(stream: Stream) -> Generator[None]:
    """Keep other threads' turns off a stream in the ``with`` block.

    A thread has one turn at a time: in the block it gets no other, because two threads could then
    wait for each other.
    """
    if _mine.has_turn:
        yield
        return
    number = stream._number
    key = (stream._ordinal, number, get_ident() if number == _PER_THREAD else 0)
    _mine.has_turn = True  # before the lock: a signal's handler may run right after it
    try:
        while True:
            lock = _locks.get(key) or _locks.setdefault(key, Lock())
            with lock:
                if _locks.get(key) is lock:  # else it was removed
                    yield
                    return
    finally:
        _mine.has_turn = False
        if len(_locks) > _MANY:
            _remove_unused()


def _remove_unused() -> None:
    """Forget streams that may be gone."""
    for key, lock in list(_locks.items()):
        if lock.acquire(blocking=False):
            _locks.pop(key, None)
            lock.release()


def has_turn() -> bool:
    """Whether this thread is in a block of `turn_on`."""
    return _mine.has_turn
