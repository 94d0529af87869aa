# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Objects of a JSON text that is not trusted: each member is taken once, and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 1 << 60
_T = TypeVar("_T")


class Wrong(Exception):
    """What is wrong with the text; becomes a GraphFileError that names the file."""


class Where:
    """A place in the text, which is spelt only once something is wrong there.

    Spelt at every place, a long name would cost its length as often as there is something in it.
    """

    __slots__ = ("_form", "parts")

    def __init__(self, form: str, *parts: object) -> None:
        self._form, self.parts = form, parts

    def __str__(self) -> str:
        return self._form.format(*self.parts)


class Fields:
    """The members of an object, which are taken one by one; any that is left over is an error."""

    def __init__(self, given: Any, where: object) -> None:
        self._left = dict(mapping(given, where))
        self.where = where

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, check: Callable[[Any, object], _T]) -> _T:
        """Return a member, which `check` is called with."""
        if name not in self._left:
            raise Wrong(f"{self.where} has no {name!r}")
        return check(self._left.pop(name), Where("{} of {}", name, self.where))

    def length(self, name: str) -> int:
        """Return the length of a list, which stays; 0 if there is none."""
        return len(sequence(self._left.get(name, []), Where("{} of {}", name, self.where)))

    def end(self) -> None:
        """Raise an error if something is left: a later version means something by it."""
        for name in self._left:
            raise Wrong(f"{self.where} has a {name[:80]!r}, which this cudago does not know")


def mapping(given: Any, where: object) -> dict[str, Any]:
    """Check an object."""
    found: dict[str, Any] = given
    if type(given) is not dict:
        raise Wrong(f"{where} must be an object")
    return found


def sequence(given: Any, where: object) -> list[Any]:
    """Check a list."""
    found: list[Any] = given
    if type(given) is not list:
        raise Wrong(f"{where} must be a list")
    return found


def text(given: Any, where: object) -> str:
    """Check a text, which must have a character and no half of a surrogate pair."""
    if not isinstance(given, str) or not given:
        raise Wrong(f"{where} must be a text")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise Wrong(f"{where} must be Unicode") from None
    return given


def boolean(given: Any, where: object) -> bool:
    """Check a boolean."""
    if not isinstance(given, bool):
        raise Wrong(f"{where} must be true or false")
    return given


def natural(most: int = MOST_BYTES) -> Callable[[Any, object], int]:
    """Return a check of a whole number from 0 to `most`."""

    def check(given: Any, where: object) -> int:
        if type(given) is not int or not 0 <= given <= most:
            raise Wrong(f"{where} must be a whole number from 0 to {most}")
        return given

    return check


def one_of(values: tuple[_T, ...]) -> Callable[[Any, object], _T]:
    """Return a check of a value that is one of these."""

    def check(given: Any, where: object) -> _T:
        for value in values:
            if type(given) is type(value) and given == value:
                return value
        raise Wrong(f"{where} must be one of {', '.join(map(str, values))}")

    return check


def list_of(
    check: Callable[[Any, object], _T], exactly: int | None = None
) -> Callable[[Any, object], tuple[_T, ...]]:
    """Return a check of a list of values that pass a check."""

    def checked(given: Any, where: object) -> tuple[_T, ...]:
        found = sequence(given, where)
        if exactly is not None and len(found) != exactly:
            raise Wrong(f"{where} must be a list of {exactly}")
        return tuple(check(one, Where("{}[{}]", where, i)) for i, one in enumerate(found))

    return checked
