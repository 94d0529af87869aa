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
    """Call a function when an object has gone, with the contract of `weakref.finalize`.

    The finalizer lives until then without a reference to it. Calling it calls the function at once,
    if it was not called yet, and returns its result; otherwise None.

    Parameters
    ----------
    obj : object
        The object to watch. It must not be among the arguments.
    func : callable
        Called once: when `obj` has gone, when the finalizer is called, or at exit if ``atexit`` is
        true (the default), newest first.
    *args
        Arguments for `func`.
    stream : Stream, optional
        What is queued on this stream when `obj` goes ends before `func` is called.
    **kwargs
        Keyword arguments for `func`; ``obj`` and ``func`` may be among them.

    Raises
    ------
    TypeError
        If `obj` cannot be referenced weakly, `func` is not callable, or `stream` is no stream.
    ClosedError
        If the stream is closed.

    See Also
    --------
    weakref.finalize : What this is; it takes any `func`, and hands ``stream=`` on to it.

    Notes
    -----
    An exception of `func` goes to `sys.unraisablehook`, at exit to `sys.excepthook`; a call of the
    finalizer itself raises it. Nothing is called after exit. In a forked child nothing is called
    either: a finalizer tells what it has, and calling, changing or making one is an error.

    Without a stream no driver is needed, and none is opened. With one, `obj` goes first, and the
    host does not wait: `func` is called in a thread of Python's at its next opportunity after the
    work has ended, which is a later call of cudago or, in the main thread, of any function. The
    finalizer is alive until then, and calling it calls `func` without waiting. Work queued after
    `obj` went is not waited for. While the stream is capturing, the wait begins when the capture
    has ended. The stream may be closed: the finalizer keeps what it stands for. Of the per-thread
    default stream, as of the legacy one, the work of all threads is waited for.

    At exit finalizers wait for their streams in turn, two seconds at most all together. One whose
    stream takes longer is not called, and `sys.excepthook` gets a `TimeoutError`.

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
