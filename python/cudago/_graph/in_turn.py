# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates that read what a node does, and write it back with something else: one at a time.

Two threads that change different arguments of a node would otherwise undo each other's change. Of
an executable the native module makes most updates in one go; while this makes one, it makes none.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exec import GraphExec
    from .graph import Graph

_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def in_turn(owner: Graph | GraphExec, update: Callable[..., None], *args: Any) -> None:
    """Call a function that updates nodes of a graph or an executable, and none besides it."""
    of: Any = owner._outermost if isinstance(owner, _core.Graph) else owner
    lock = _locks.get(of)
    if lock is None:
        lock = _locks.setdefault(of, RLock())
    with lock:
        if isinstance(owner, _core.Graph):
            update(*args)
            return
        block = _core.Block()
        block._plan((owner._in_python, 1), (owner._in_python, -1))
        with block:
            update(*args)
