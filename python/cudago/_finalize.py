# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Finalizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from .typing import StreamLike

__all__ = ["Finalizer", "finalize"]


class finalize(_core.Finalizer):  # as weakref.finalize
    """Call a function when an object is gone, as `weakref.finalize` does.

    The finalizer stays alive until then, even without a reference to it. Calling it calls the
    function now, unless it was called before, and returns its result or None.

    Parameters
    ----------
    obj : object
        The object to watch. It must not be among the arguments.
    func : callable
        Called once: when `obj` is gone, when the finalizer is called, or at exit if ``atexit`` is
        true (the default), newest first.
    *args
        Arguments for `func`.
    stream : Stream, optional
        Delays the call until the work that is queued on this stream when `obj` dies has completed.
    **kwargs
        Keyword arguments for `func`; ``obj`` and ``func`` may be among them.

    See Also
    --------
    weakref.finalize : The original, which passes ``stream=`` on to `func`.

    Notes
    -----
    An exception of `func` goes to `sys.unraisablehook`, or at exit to `sys.excepthook`; calling the
    finalizer raises it. After exit, `func` is no longer called. In a forked child it is not called
    either: a finalizer can still be inspected there, but not be called, changed or created.

    Without a stream, no driver is opened. With a stream, `obj` dies first and the host does not
    wait: once the work has completed, a Python thread calls `func` at its next opportunity, which
    is its next cudago call or, in the main thread, any function call. Until then the finalizer is
    alive, and calling it calls `func` without waiting. Work queued after `obj` went is not waited
    for. If the stream is capturing, the wait begins when the capture ends. The stream may be
    closed. For the per-thread default stream, as for the legacy one, the work of all threads is
    waited for.

    At exit, finalizers wait for their streams in turn, for at most two seconds in total. If a
    stream takes longer, its finalizer is not called, and `sys.excepthook` gets a `TimeoutError`.

    Examples
    --------
    >>> class Session: ...
    >>> session = Session()
    >>> done = cudago.finalize(session, print, "session is gone")
    >>> del session
    session is gone
    >>> done.alive
    False
    """

    __slots__ = ()

    def __init__(
        self,
        obj: object,
        func: Callable[..., Any],
        /,
        *args: Any,
        stream: StreamLike | None = None,
        **kwargs: Any,
    ) -> None:
        _core.Finalizer.__init__(self, obj, func, args, kwargs, stream)

    def __repr__(self) -> str:
        found = self.peek()
        name = type(self).__name__
        if found is None:
            return f"<{name} object at {id(self):#x}; dead>"
        obj = found[0]
        return f"<{name} object at {id(self):#x}; for {type(obj).__name__!r} at {id(obj):#x}>"


Finalizer = finalize

_core._set_class("Finalizer", finalize)
