# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Finalizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Finalizer", "finalize"]


class Finalizer(_core.Finalizer):
    """What `finalize` returns. Calling it runs the function, if it did not run yet.

    It lives until then without a reference: Go holds it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        found = self.peek()
        if found is None:
            return f"<cudago.Finalizer at {id(self):#x}: dead>"
        watched = found[0]
        return (
            f"<cudago.Finalizer at {id(self):#x}; "
            f"for {type(watched).__name__!r} at {id(watched):#x}>"
        )


def finalize(obj: object, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Finalizer:
    """Call a function when an object has gone, with the contract of `weakref.finalize`.

    Go holds the finalizer, so it lives without a reference to it.

    Parameters
    ----------
    obj : object
        The object to watch. It must not be among the arguments.
    func : callable
        Called once: when `obj` has gone, when the finalizer is called, or at exit if ``atexit`` is
        true (the default), newest first.
    *args, **kwargs
        Arguments for `func`.

    Returns
    -------
    Finalizer
        With ``alive``, ``detach()``, ``peek()``, ``atexit``, and callable.

    Raises
    ------
    TypeError
        If `obj` cannot be referenced weakly, or `func` is not callable.

    Notes
    -----
    An exception of `func` goes to `sys.unraisablehook`; a call of the finalizer itself raises it.
    No driver is needed, and none is opened.

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
    made: Finalizer = _core._finalizer_new(obj, func, args, kwargs)
    return made


_core._set_class("Finalizer", Finalizer)
