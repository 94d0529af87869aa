# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Instances of dataclasses as structs, which kernels take by value."""

from __future__ import annotations

import ctypes
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

from .._numpy import np
from .struct_values import Place, stored

_layouts: WeakKeyDictionary[type[Any], np.dtype[Any]] = WeakKeyDictionary()


def _packed(value: Any) -> bytes:
    """Return the bytes of a dataclass's instance, as C lays it out. Called by the native module."""
    layout = _layout(_class_of(value))
    place = np.zeros((), layout)
    _fill(place, value, layout)
    return place.tobytes()


def _class_of(value: object) -> type[Any]:
    """Return an object's class as the native module sees it: ``__class__`` may say otherwise."""
    return type(value)


def _fill(place: Any, value: Any, layout: np.dtype[Any]) -> None:
    for name in layout.names or ():
        part, kind = getattr(value, name), layout[name]
        if kind.names is None:
            place[name] = stored(Place(type(value).__name__, name), part, kind)
        elif is_dataclass(_class_of(part)) and _layout(_class_of(part)) == kind:
            _fill(place[name], part, kind)
        else:
            place[name] = _structure(type(value).__name__, name, part, kind)


def _structure(owner: str, name: str, part: Any, kind: np.dtype[Any]) -> Any:
    """Return a structure of ctypes, or a structured scalar of NumPy, with exactly these fields."""
    if isinstance(part, ctypes.Structure) and np.dtype(type(part)) == kind:
        return np.frombuffer(bytes(part), kind)[0]
    if isinstance(part, np.void) and part.dtype == kind:
        return part
    raise TypeError(
        f"field {name!r} of {owner} must be a dataclass with the fields that it is annotated with, "
        f"not {type(part).__name__}"
    )


def _layout(cls: type[Any], within: tuple[type[Any], ...] = ()) -> np.dtype[Any]:
    """Return the struct of C that has the fields of a dataclass, in their order.

    `within` are the dataclasses that it is a part of.
    """
    try:
        return _layouts[cls]
    except KeyError:
        pass
    hints = get_type_hints(cls)
    rows = [(f.name, _type((*within, cls), f.name, hints[f.name])) for f in fields(cls)]
    made = _layouts[cls] = np.dtype(rows, align=True)
    return made


def _type(within: tuple[type[Any], ...], name: str, kind: Any) -> Any:
    cls = within[-1]
    if any(kind is outer for outer in within):
        what = "itself" if kind is cls else f"again, of which {cls.__name__} is a part"
        raise TypeError(
            f"field {name!r} of {cls.__name__} is {kind.__name__} {what}, which has no size in C"
        )
    if is_dataclass(kind) and isinstance(kind, type):
        return _layout(kind, within)
    if kind is bool:
        return np.dtype("?")
    if isinstance(kind, type) and kind not in (int, float, complex):
        found: np.dtype[Any]
        try:
            found = np.dtype(kind)
        except TypeError:
            found = np.dtype(object)
        if found.kind in "biufcV" and found.itemsize:
            _check_native(cls, name, found)
            return found
    raise TypeError(
        f"field {name!r} of {cls.__name__} is annotated {getattr(kind, '__name__', kind)}, which "
        "does not tell its size in C: use types of numpy or ctypes, such as numpy.float32, or a "
        "dataclass"
    )


def _check_native(cls: type[Any], name: str, kind: np.dtype[Any]) -> None:
    if kind.subdtype is not None:
        _check_native(cls, name, kind.base)
        return
    for part in kind.names or ():
        _check_native(cls, f"{name}.{part}", kind[part])
    if kind.hasobject:
        raise TypeError(f"field {name!r} of {cls.__name__} is a Python object, which devices lack")
    if not kind.isnative and kind.names is None:
        raise TypeError(
            f"field {name!r} of {cls.__name__} is big-endian ({kind.str}), and devices are "
            "little-endian: annotate it with the native type"
        )
