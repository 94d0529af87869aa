# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that are given to a kernel whose parameter has a type that we know by its name in C."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import Any

from .. import _core
from .._native import number_text
from .._numpy import is_array, is_scalar
from .element import number_of

_POINTERS = ("c_void_p", "c_char_p", "c_wchar_p", "py_object")


def is_of_numpy(value: Any) -> bool:
    """Whether this is one of NumPy's scalars, or an array without dimensions, which is a value."""
    if getattr(value, "ndim", None) != 0 or not hasattr(value, "dtype"):
        return False
    return is_scalar(value) or is_array(value)


def _of_ctypes(value: Any) -> Any:
    """Return what a scalar of ctypes holds; None for anything else, and for pointers."""
    ctypes: Any = sys.modules.get("ctypes")  # whoever has one has imported it
    if ctypes is None or not isinstance(value, ctypes._SimpleCData):
        return None
    pointers = tuple(getattr(ctypes, name) for name in _POINTERS)
    return None if isinstance(value, pointers) else value.value


def _plain(value: Any) -> Any:
    """Return a Python number with the value of any scalar; None for what is no number."""
    if isinstance(value, bool | int | float | complex):
        return value
    if is_of_numpy(value):
        return number_of(value) if value.dtype.kind in "biufcV" and not value.dtype.names else None
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return _of_ctypes(value)


def is_number(value: Any) -> bool:
    """Whether this is a number of Python, NumPy or ctypes, and not memory."""
    return isinstance(_plain(value), bool | int | float)


def expect_number(value: Any, what: str) -> None:
    """Raise TypeError if this is no number of Python, NumPy or ctypes, a complex one included."""
    if _plain(value) is None:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise TypeError(f"{what} must be a number of Python, NumPy or ctypes, not {kind}")


def number_as(value: Any, name: str, what: str) -> bool | int | float:
    """Return a number as an element of type `name`, in which it must fit, and nothing else.

    Memory is no number: where 64 bits are wanted, a kernel would take its address for one.
    """
    number = _plain(value)
    if isinstance(number, complex) or not isinstance(number, bool | int | float):
        raise TypeError(
            f"{what} must be a tensor of {name}, or a number: an int, float or bool of Python, "
            f"NumPy or ctypes; got {type(value).__module__}.{type(value).__qualname__}"
        )
    if name == "bool":
        return bool(number)  # as NumPy does: all but zero is True
    if name.startswith(("float", "bfloat")):
        return number  # the launch knows what the type holds
    if isinstance(number, float):
        raise TypeError(f"{what} must be an integer, as {name} has them, got {number!r}")
    bits = _core._dtype(name)[1]
    least = 0 if name.startswith("u") else -1 << bits - 1
    most = least + (1 << bits) - 1
    if not least <= number <= most:
        raise OverflowError(
            f"{what} must be {least} to {most}, as {name} has them, got {number_text(number)}"
        )
    return int(number)
