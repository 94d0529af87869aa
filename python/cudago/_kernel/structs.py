# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Instances of dataclasses as structs, which kernels take by value."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import numpy as np

_layouts: WeakKeyDictionary[type[Any], np.dtype[Any]] = WeakKeyDictionary()


def _packed(value: Any) -> bytes:
    """Return the bytes of a dataclass's instance, as C lays it out. Called by the native module."""
    import numpy as np

    layout = _layout(value.__class__)
    place = np.zeros((), layout)
    _fill(place, value, layout)
    return place.tobytes()


def _fill(place: Any, value: Any, layout: np.dtype[Any]) -> None:
    for name in layout.names or ():
        part = getattr(value, name)
        if layout[name].names is not None:
            if not is_dataclass(part) or _layout(type(part)) != layout[name]:
                raise TypeError(
                    f"field {name!r} of {type(value).__name__} must be a dataclass with the fields "
                    f"that it is annotated with, not {type(part).__name__}"
                )
            _fill(place[name], part, layout[name])
            continue
        try:
            place[name] = part
        except (TypeError, ValueError, OverflowError) as e:
            raise type(e)(
                f"field {name!r} of {type(value).__name__} must be a {layout[name]}: {e}"
            ) from None


def _layout(cls: type[Any]) -> np.dtype[Any]:
    """Return the struct of C that has the fields of a dataclass, in their order."""
    import numpy as np

    try:
        return _layouts[cls]
    except KeyError:
        pass
    hints = get_type_hints(cls)
    rows = [(f.name, _type(cls, f.name, hints[f.name])) for f in fields(cls)]
    made = _layouts[cls] = np.dtype(rows, align=True)
    return made


def _type(cls: type[Any], name: str, kind: Any) -> Any:
    import numpy as np

    if is_dataclass(kind) and isinstance(kind, type):
        return _layout(kind)
    if kind is bool:
        return np.dtype("?")
    if isinstance(kind, type) and kind not in (int, float, complex):
        found: np.dtype[Any]
        try:
            found = np.dtype(kind)
        except TypeError:
            found = np.dtype(object)
        if found.kind in "biufcV" and found.itemsize:
            return found
    raise TypeError(
        f"field {name!r} of {cls.__name__} is annotated {getattr(kind, '__name__', kind)}, which "
        "does not tell its size in C: use types of numpy or ctypes, such as numpy.float32, or a "
        "dataclass"
    )
