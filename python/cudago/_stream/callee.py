# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What can be known of a function before a thread of cudago calls it, where nobody hears errors."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LATE: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (inspect.iscoroutinefunction, "a coroutine function, which nobody would await"),
    (inspect.isasyncgenfunction, "an asynchronous generator, which nobody would iterate over"),
    (inspect.isgeneratorfunction, "a generator function, which nobody would iterate over"),
)
_SPECIAL = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_GENERATOR


def expect_callback(
    func: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
) -> None:
    """Raise a TypeError if a function cannot be called with arguments."""
    named = kwargs or {}
    if isinstance(func, _core.Graph):
        raise TypeError("callback must be a function, not a Graph: embed that")
    if not callable(func):
        raise TypeError(f"callback must be callable, not {type(func).__name__}")
    if not named and _is_simple(func, len(args)):
        return
    for is_so, what in _LATE:
        if is_so(func) or is_so(getattr(type(func), "__call__", None)):  # noqa: B004
            raise TypeError(f"callback must be a function that runs when it is called, not {what}")
    foreign = _missing_of_c(func, len(args))
    if foreign is not None:
        raise TypeError(_text(args, named, foreign))
    signature = _signature(func)
    if signature is None:
        return
    try:
        signature.bind(*args, **named)
    except TypeError as e:
        raise TypeError(_text(args, named, str(e))) from None


def with_arguments(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> Callable[[], Any]:
    """Return a function that calls another with arguments; TypeError if that cannot be called."""
    expect_callback(func, args, kwargs)
    return partial(func, *args, **(kwargs or {})) if args or kwargs else func


def _text(args: tuple[Any, ...], named: Mapping[str, Any], why: str) -> str:
    count = len(args) + len(named)
    how = f"with {count} argument{'s' * (count != 1)}" if count else "without arguments"
    return f"callback must be callable {how}: {why}"


def _is_simple(func: Any, count: int) -> bool:
    """Whether this is an ordinary function that takes so many arguments: as most are."""
    if type(func) is not FunctionType or func.__code__.co_flags & _SPECIAL:
        return False
    code = func.__code__
    needed = code.co_argcount - len(func.__defaults__ or ())
    return needed <= count <= code.co_argcount and not code.co_kwonlyargcount


def _missing_of_c(func: Any, count: int) -> str | None:
    """Return what a function of ctypes lacks. C ignores arguments that are too many."""
    while isinstance(func, partial):
        count, func = count + len(func.args), func.func
    base = getattr(sys.modules.get("ctypes"), "_CFuncPtr", None)
    if base is None or not isinstance(func, base):
        return None
    types = getattr(func, "argtypes", None)
    needed = len(types) if types is not None else 0
    return f"its prototype has {needed}" if needed > count else None


def _signature(func: Any) -> inspect.Signature | None:
    """Return a signature that can be relied upon, or None.

    That of a wrapped function is not the wrapper's, and neither is one that somebody has set.
    """
    try:
        if hasattr(func, "__signature__"):
            return None
        return inspect.signature(func, follow_wrapped=False)
    except Exception:  # of other people's code, or there is none
        return None
