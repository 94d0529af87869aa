# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Turns of threads that call graph functions on a stream: no call falls into another's capture."""

from __future__ import annotations

from functools import partial
from threading import RLock, get_ident, local
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._stream.stream import Stream

_Key: TypeAlias = tuple[int, ...]


class _Mine(local):
    """The lock of this thread's turn, on any stream, or the last one."""

    lock: Any = None


_PER_THREAD = 2  # CU_STREAM_PER_THREAD: another stream in each thread
# The locks that somebody uses. One removes itself when nobody does, in a single call of C: nothing
# that a signal could interrupt is in between.
_locks: dict[_Key, ref[Any]] = {}
_mine = _Mine()


def in_turn(stream: Stream, do: Callable[..., bool], *args: Any) -> bool:
    """Return what a function returns, and keep other threads' turns off a stream meanwhile.

    A thread has one turn at a time: in the function it gets no other, because two threads could
    then wait for each other.
    """
    if has_turn():
        return do(*args)
    number = stream._number
    lock = lock_of((stream._ordinal, number, get_ident() if number == _PER_THREAD else 0))
    _mine.lock = lock  # before it is taken: a signal's handler may run right after that
    return _core._locked(lock, _have_turn, lock, do, args)


def _have_turn(lock: Any, do: Callable[..., bool], args: tuple[Any, ...]) -> bool:
    _mine.lock = lock  # a handler may have had a turn before
    return do(*args)


def lock_of(key: _Key) -> Any:
    """Return the lock of a key, which is the same as long as anybody has it."""
    while True:
        found = _locks.get(key)
        if found is None:
            lock: Any = RLock()
            # No name for the new reference: if it is not taken it goes before the lock does.
            found = _locks.setdefault(key, ref(lock, partial(_locks.pop, key)))
        lock = found()
        if lock is not None:
            return lock


def has_turn() -> bool:
    """Whether this thread is in a function that `in_turn` calls."""
    lock = _mine.lock
    return lock is not None and lock._is_owned()
