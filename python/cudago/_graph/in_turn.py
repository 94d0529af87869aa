# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates that read what a node does, and write it back with something else: one at a time.

Two threads that change different arguments of a node would otherwise undo each other's change. Of
an executable the native module makes most updates in one go; while this makes one, it makes none.
The turn includes the conversion of the arguments, which must not wait for another thread's update
of the same graph or executable.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .. import _core
from .turns import lock_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exec import GraphExec
    from .graph import Graph


def in_turn(owner: Graph | GraphExec, update: Callable[..., None], *args: Any) -> None:
    """Call a function that updates nodes of a graph or an executable, and none besides it."""
    of: Any = owner._outermost if isinstance(owner, _core.Graph) else owner
    _core._locked(lock_of((id(of),)), _update, owner, update, args)


def _update(owner: Graph | GraphExec, update: Callable[..., None], args: tuple[Any, ...]) -> None:
    if isinstance(owner, _core.Graph):
        update(*args)
    else:
        _core._locked(_InPython(owner), update, *args)


class _InPython:
    """Taken while Python makes the updates of an executable."""

    __slots__ = ("acquire", "release")

    def __init__(self, step: GraphExec) -> None:
        self.acquire = partial(step._in_python, 1)
        self.release = partial(step._in_python, -1)
