# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Instances of dataclasses as structs, which kernels take by value."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_type_hints
from weakref import WeakKeyDictionary

from .. import _core
from .._numpy import np
from .struct_values import Place, pointer_type, stored

_layouts: WeakKeyDictionary[type[Any], np.dtype[Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Made:
    """A struct that is bytes already, and what memory is in it: where, what, and its name."""

    data: bytes
    memory: tuple[tuple[int, object, str], ...]


def _packed(value: Any) -> tuple[bytes, tuple[tuple[int, object, str], ...]]:
    """Return the bytes of a dataclass's instance, as C lays it out, and where memory goes.

    Called by the native module, which puts the addresses there.
    """
    if isinstance(value, Made):
        return value.data, value.memory
    layout = _layout(_class_of(value))
    place = np.zeros((), layout)
    memory: list[tuple[int, object, str]] = []
    _fill(place, value, layout, 0, memory)
    return place.tobytes(), tuple(memory)


def _class_of(value: object) -> type[Any]:
    """Return an object's class as the native module sees it: ``__class__`` may say otherwise."""
    return type(value)


def _fill(
    place: Any, value: Any, layout: np.dtype[Any], at: int, memory: list[tuple[int, object, str]]
) -> None:
    """Fill in the fields of what is `at` bytes from the struct's start."""
    fields_of: Any = layout.fields
    for name in layout.names or ():
        part, (kind, offset) = getattr(value, name), fields_of[name][:2]
        if kind.names is None:
            owner = type(value).__name__
            place[name] = stored(Place(owner, name, at + offset, memory), part, kind)
        elif is_dataclass(_class_of(part)) and _layout(_class_of(part)) == kind:
            _fill(place[name], part, _layout(_class_of(part)), at + offset, memory)
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
    if pointers := _pointers(kind):
        return pointers
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


_CTYPES_POINTER: type[Any] = ctypes.POINTER(ctypes.c_int).__mro__[1]  # which is not public
_CTYPES_ARRAY: type[Any] = ctypes.Array
_POINTER_TYPES = (ctypes.c_void_p, _CTYPES_POINTER, _core.Pointer, _core.Buffer, _core.Tensor)


def _is_array(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _CTYPES_ARRAY)


def _pointers(kind: Any) -> np.dtype[Any] | None:
    """Return the type of a field that is a pointer, or an array of them; None of any other."""
    shape: list[int] = []
    while _is_array(kind):
        shape.append(kind._length_)
        kind = kind._type_
    kinds = [k for k in get_args(kind) if k is not NoneType] or [kind]
    if not all(isinstance(k, type) and issubclass(k, _POINTER_TYPES) for k in kinds):
        return None
    return np.dtype((pointer_type(), tuple(shape))) if shape else pointer_type()


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
