# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the fields of options, by what they are annotated with.

What is not checked here would end in the native module, which does not know the fields' names, or
be text that means something else.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn, TypeGuard

from .._native import value_text

_MOST = (1 << 31) - 1  # of the compilers' numbers


def check(options: Any) -> None:
    """Check all fields of a dataclass of options."""
    for f in fields(options):
        kind, value = str(f.type), getattr(options, f.name)
        if value is None and kind.endswith(" | None"):
            continue
        accepts, expected = _KINDS.get(kind.removesuffix(" | None"), _UNKNOWN)
        if not accepts(f.name, value):
            _refuse(TypeError, f.name, expected, value)


def texts_of(value: Any) -> list[str]:
    """Return a checked value, or those of a sequence, as texts; of None there are none."""
    if value is None:
        return []
    one = isinstance(value, str) or not _is_sequence(value)
    return [_text(v) for v in ([value] if one else value)]


def _text(value: Any) -> str:
    return os.fspath(value) if _is_path(value) else str(plain(value))


def plain(value: Any) -> Any:
    """Return a number or a bool of another type as one of Python, whose text is its value."""
    if is_bool(value):
        return int(value)
    return operator.index(value) if _is_integer(value) else value


def is_bool(value: object) -> bool:
    """Whether this is a bool, of NumPy too, which is not imported for it."""
    cls = type(value)
    return cls is bool or (cls.__module__ == "numpy" and cls.__name__ in ("bool", "bool_"))


def _is_path(value: object) -> TypeGuard[os.PathLike[str]]:
    return isinstance(value, os.PathLike)


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_integer(value: object) -> bool:
    return hasattr(type(value), "__index__")


def _refuse(error: type[Exception], name: str, expected: str, got: Any) -> NoReturn:
    raise error(f"{name} must be {expected}, got {value_text(got)} ({type(got).__name__})")


def _bool(name: str, value: Any) -> bool:
    return isinstance(value, bool)


def _int(name: str, value: Any) -> bool:
    if isinstance(value, bool) or not _is_integer(value):
        return False
    if not 0 <= operator.index(value) <= _MOST:
        _refuse(ValueError, name, f"from 0 to {_MOST}", value)
    return True


def _str(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if "\0" in value:
        _refuse(ValueError, name, "text without a NUL", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(ValueError, name, "text that UTF-8 can encode", value)
    return True


def _path(name: str, value: Any) -> bool:
    return _str(name, os.fspath(value) if _is_path(value) else value)


def _one_or_more(one: Callable[[str, Any], bool]) -> Callable[[str, Any], bool]:
    """Return a check for one value, or a sequence of such."""

    def check(name: str, value: Any) -> bool:
        if one(name, value):
            return True
        if isinstance(value, (bytes, bytearray, memoryview)) or not _is_sequence(value):
            return False
        return all(one(f"{name}[{i}]", v) for i, v in enumerate(value))

    return check


def _one_of(*words: str) -> Callable[[str, Any], bool]:
    """Return a check for one of these words."""

    def check(name: str, value: Any) -> bool:
        if isinstance(value, str) and value not in words:
            _refuse(ValueError, name, f"one of {', '.join(map(repr, words))}", value)
        return isinstance(value, str)

    return check


def _anything(name: str, value: Any) -> bool:
    return True


def _sequence(name: str, value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _headers(name: str, value: Any) -> bool:
    if not is_mapping(value):
        return False
    for key, text in value.items():
        if not _str(f"a name in {name}", key) or not _str(f"{name}[{key!r}]", text):
            return False
        if not key:
            _refuse(ValueError, f"a name in {name}", "a name", key)
    return True


def _macros(name: str, value: Any) -> bool:
    if is_mapping(value):
        return all(_macro(name, key, meaning) for key, meaning in value.items())
    if is_pair(value):
        return _pair(name, value)
    if isinstance(value, (str, bytes, bytearray, memoryview)) or not _is_sequence(value):
        return _path(name, value)
    return all(
        _pair(f"{name}[{i}]", v) if is_pair(v) else _path(f"{name}[{i}]", v)
        for i, v in enumerate(value)
    )


def _macro(name: str, key: Any, meaning: Any) -> bool:
    if not _str(f"a name in {name}", key):
        return False
    number = isinstance(meaning, float) or _is_integer(meaning) or is_bool(meaning)
    return meaning is None or number or _str(f"{name}[{key!r}]", meaning)


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def is_pair(value: object) -> TypeGuard[tuple[str, Any]]:
    """Whether this is a macro's name and its value, as cuda.core spells them."""
    return _is_tuple(value) and len(value) == 2


def _pair(name: str, value: tuple[Any, Any]) -> bool:
    """Check a name and a value; who meant two macros is told."""
    if any(isinstance(v, str) and _DEFINITION.match(v) for v in value):
        _refuse(
            ValueError,
            name,
            "a name and its value where it is a tuple of two: for two macros write a list",
            value,
        )
    return _macro(name, *value)


_DEFINITION = re.compile(r"[A-Za-z_]\w*(\([^)]*\))?=(?!=)")


_texts = _one_or_more(_path)
_OFAST = ("0", "min", "mid", "max")
# By annotations, without None: the check, which returns False for another type, and what the error
# then says.
_KINDS: dict[str, tuple[Callable[[str, Any], bool], str]] = {
    "bool": (_bool, "a bool"),
    "int": (_int, "an int"),
    "str": (_str, "a str"),
    "str | PathLike[str]": (_path, "a str or a path"),
    "int | Sequence[int]": (_one_or_more(_int), "an int or a sequence of int"),
    "str | Sequence[str]": (_texts, "a str or a sequence of str"),
    "str | PathLike[str] | Sequence[str | PathLike[str]]": (
        _texts,
        "a str, a path, or a sequence of such",
    ),
    "Sequence[str]": (_texts, "a sequence of str"),
    "Sequence[tuple[str, str | bytes]]": (_sequence, "a sequence of names and modules"),
    f"Literal[{', '.join(map(repr, _OFAST))}]": (_one_of(*_OFAST), "a str"),
    "Mapping[str, str]": (_headers, "a mapping of names to texts, both str"),
    "str | tuple[str, Any] | Sequence[str | tuple[str, Any]] | Mapping[str, Any]": (
        _macros,
        "a str, a tuple of a name and its value, a sequence of such, or a mapping of str to str, "
        "numbers or None",
    ),
}
_UNKNOWN = (_anything, "")  # of a user's subclass
