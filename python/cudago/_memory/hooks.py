# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that are called when memory is allocated and freed."""

from __future__ import annotations

from collections import deque
from threading import local
from typing import TYPE_CHECKING, NamedTuple

from .. import _core
from .allocation import Allocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from .buffer import Buffer

__all__ = ["memory_hooks"]


class memory_hooks(_core.Block):  # as timer and profiler
    """Call functions when memory is allocated and freed, within a ``with`` block.

    Parameters
    ----------
    on_allocate : callable, optional
        Called with an `Allocation` after each allocation of a memory resource, in its thread. What
        it raises, the allocating call raises, and the memory is freed: so it can set a limit.
    on_free : callable, optional
        Called with the same `Allocation` when the last holder of the memory has let go, before the
        memory is given back in the order of its stream: of buffers, views, tensors, graphs, and
        work under way. In whichever thread that happens. What it raises goes to
        `sys.unraisablehook`.

    See Also
    --------
    TrackingMemoryResource : Keeps the count for one resource.
    debug.MemoryTimeline : Memory over time.

    Notes
    -----
    Hooks are for all threads and devices, and for memory that is allocated within the block:
    `on_free` is not called for other memory, nor after the block. It may be called while memory is
    allocated, by what the collector finds then.

    Memory that hooks allocate themselves is not told to any. What a resource written in Python
    takes from another resource is told once, by that one; what other libraries allocate is not
    told. Memory that a stream allocates in a capture is the graph's: it is told of as freed when
    the program has let go of it.

    Without hooks, an allocation costs what it did.

    Examples
    --------
    >>> sizes = []
    >>> with cudago.memory_hooks(on_allocate=lambda a: sizes.append(a.size)):
    ...     x = cudago.zeros(8, stream=stream)
    >>> sizes
    [32]
    """

    __slots__ = ("_hooks",)

    def __init__(
        self,
        *,
        on_allocate: Callable[[Allocation], object] | None = None,
        on_free: Callable[[Allocation], object] | None = None,
    ) -> None:
        for name, function in (("on_allocate", on_allocate), ("on_free", on_free)):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")
        self._hooks = hooks = _Hooks(on_allocate, on_free)
        self._plan((_installed.__setitem__, id(hooks), hooks), (_installed.pop, id(hooks), None))

    def _entered(self) -> None:
        _switch()

    def _left(self) -> None:
        _switch()

    def __repr__(self) -> str:
        in_use = id(self._hooks) in _installed
        return f"<cudago.memory_hooks{'' if in_use else ': not in use'}>"


class _Hooks(NamedTuple):
    made: Callable[[Allocation], object] | None
    free: Callable[[Allocation], object] | None


# By id, in the order of their with blocks. Only whole operations on it: threads do not wait for
# each other here, since a hook may run at any time.
_installed: dict[int, _Hooks] = {}


class _Thread(local):
    in_hook = False
    telling = False


_thread = _Thread()


def _switch() -> None:
    """Have the native module tell of allocations, if anybody wants to know."""
    while True:
        wanted = bool(_installed)
        _core._set_allocated(_allocated if wanted else None)
        if wanted == bool(_installed):  # no other thread has changed that in between
            return


def _allocated(buffer: Buffer, _resource: object) -> None:
    """Tell of a new buffer. Called by the native module."""
    if _thread.in_hook:
        return
    told = _Told(Allocation._of(buffer))
    _core._buffer_attach(buffer, told)
    for hooks in tuple(_installed.values()):
        if hooks.made is not None and id(hooks) in _installed:
            _call(hooks.made, told.allocation)
        told.hooks.append(hooks)


def _call(function: Callable[[Allocation], object], allocation: Allocation) -> None:
    _thread.in_hook = True
    try:
        function(allocation)
    finally:
        _thread.in_hook = False


class _Told:
    """Lives as long as the memory."""

    __slots__ = ("allocation", "hooks")

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.hooks: list[_Hooks] = []  # that know of it

    def __del__(self) -> None:
        if any(hooks.free is not None for hooks in self.hooks):
            _ended.append((self.allocation, self.hooks))
            _tell()


_ended: deque[tuple[Allocation, list[_Hooks]]] = deque()


def _tell() -> None:
    """Tell of memory that has ended; not within another such call, which will do it."""
    if _thread.telling:
        return
    _thread.telling = True
    try:
        while True:
            try:
                allocation, told = _ended.popleft()
            except IndexError:
                return
            for hooks in told:
                if hooks.free is not None and id(hooks) in _installed:
                    _call_aside(hooks.free, allocation)
    finally:
        _thread.telling = False


def _call_aside(function: Callable[[Allocation], object], allocation: Allocation) -> None:
    was, _thread.in_hook = _thread.in_hook, True
    try:
        _core._call_aside(function, allocation)  # raises nothing: the others are still told
    finally:
        _thread.in_hook = was
