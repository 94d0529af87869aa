# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What classes and messages of the native module and of this package have in common."""

from __future__ import annotations

import operator
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from . import _core
from .errors import ClosedError

_T = TypeVar("_T")
_Show = TypeVar("_Show", bound="Callable[..., str]")

_SHOWN, _LONGEST = 20, 80  # of names in a message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import SupportsIndex
    from typing import final as final
else:

    def final(cls: type[_T]) -> type[_T]:
        """Refuse subclasses: calls that make objects would make none of them."""

        def refuse(subclass: type[_T], **kwargs: Any) -> None:
            raise TypeError(
                f"cudago.{cls.__name__} cannot be subclassed: cudago makes objects of the class "
                "itself, so keep one in an attribute"
            )

        cls.__init_subclass__ = classmethod(refuse)
        cls.__final__ = True  # as typing.final
        return cls


def into_native(cls: type[_T]) -> type[_T]:
    """Move a subclass's members into the native type, and return that type.

    Instances of a Python subclass take part in garbage collection, which would double the cost of
    creating a tensor or a view of a buffer. Both hold nothing that the collector needs to see. And
    a call of an instance looks up ``__call__``, which costs as much as what a bound launch does.
    """
    native: Any = cls.__base__
    for name, member in vars(cls).items():
        if name not in ("__dict__", "__module__", "__slots__", "__weakref__"):
            setattr(native, name, member)
    return cast("type[_T]", native)


def unnamed(cls: type[_T]) -> type[_T]:
    """Have Python's errors name the methods of a base class alone, as ``memset()``.

    Whoever calls such a method of a graph does not know the class that it comes from.
    """
    for member in vars(cls).values():
        function = getattr(member, "__func__", member)
        if isinstance(function, FunctionType):
            function.__qualname__ = function.__name__
    return cls


def or_closed(show: _Show) -> _Show:
    """Let a ``__repr__`` say that its object is closed where it asks while the interpreter ends.

    And where it imports what was not loaded, which Python refuses then. In a forked child, where
    every question is an error, it says so: tracebacks and logs show the locals of a child too.
    """

    @wraps(show)
    def shown(self: object) -> str:
        try:
            return show(self)
        except (ClosedError, ImportError):
            if _core._is_open():
                raise
            return f"<cudago.{type(self).__name__}: closed>"
        except RuntimeError as e:
            if type(e) is not RuntimeError:  # the driver's
                raise
            return f"<cudago.{type(self).__name__} of the process that has forked>"

    return cast("_Show", shown)


def not_pickled(self: object, sent: str, instead: str = "") -> NoReturn:
    """Say which objects of a kind other processes can have, and how."""
    raise TypeError(
        f"cannot pickle {type(self).__qualname__!r} object: {sent} is sent by multiprocessing "
        f"itself, as an argument of a Process or by Queue.put or Connection.send{instead}"
    )


def whole(value: object, name: str) -> int:
    """Return an argument as an int; TypeError with its name if it is none."""
    if not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    return operator.index(cast("SupportsIndex", value))


def text(value: str | None, name: str) -> str:
    """Return an argument that is a str, or empty for None; TypeError with its name otherwise."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value or ""


def items(values: Iterable[_T], name: str, of: str) -> list[_T]:
    """Return what an argument has, as a list; an error with its name if it cannot be iterated."""
    try:
        each = iter(values)
    except TypeError:
        wrong = type(values).__name__
        raise TypeError(f"{name} must be an iterable of {of}, not {wrong}") from None
    return list(each)


def real(value: object, name: str) -> float:
    """Return an argument as a float; an error with its name if it is none, or beyond all."""
    try:
        if isinstance(value, str | bytes | bytearray):  # float would read them
            raise TypeError
        return float(cast("float", value))
    except TypeError:
        raise TypeError(f"{name} must be a number, not {type(value).__name__}") from None
    except OverflowError:
        text = number_text(value)
        raise OverflowError(f"{name} must be a number that a float holds, got {text}") from None


def duration(value: object, name: str) -> float:
    """Return an argument as a time; an error with its name if it is none. It may be endless."""
    time = real(value, name)
    if time != time:
        raise ValueError(f"{name} must be a number, got nan")
    return time


def value_text(value: object) -> str:
    """Return what an argument looks like in a message, if it may be anything."""
    try:
        return f"{value!r:.80}"
    except ValueError:
        return "a number of thousands of digits"


def shown(found: object) -> str:
    """Return the ``repr`` of an object, or that of ``object`` if its own raises."""
    try:
        return repr(found)
    except Exception:
        return object.__repr__(found)


def names_text(names: Sequence[str]) -> str:
    """Return what there is, for a message that something is not among it: not all of thousands."""
    shown = [n if len(n) <= _LONGEST else f"{n[:_LONGEST]}…" for n in names[:_SHOWN]]
    listed = ", ".join(shown)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"there are {listed or 'none'}{more}"


def number_text(number: object) -> str:
    """Return the text of a number, or of several, for a message.

    Python writes no integers of thousands of digits, which are then called so, as by the native
    module.
    """
    try:
        return str(number)
    except ValueError:
        return "a number of thousands of digits"
