# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Values of a struct's fields: taken by the rules for a kernel's scalar parameters.

NumPy would convert: text to numbers, fractions to integers, what is too large to its low bits.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, TypeGuard

from .. import _core
from .._native import value_text
from .._numpy import is_array, is_scalar, np

ADDRESS = 8  # bytes of an address


def pointer_type() -> np.dtype[Any]:
    """Return the type of a field that is an address: equal to uint64, but made of memory too."""
    return np.dtype("u8", metadata={"cudago": "pointer"})


class Place(NamedTuple):
    """A field, or an element of one that is an array: for messages, and for memory given there."""

    owner: str
    field: str
    at: int  # bytes from the struct's start
    memory: list[tuple[int, object, str]]  # for each pointer to memory: where, what, its name

    def part(self, index: int, nbytes: int) -> Place:
        """Return the place of an element of the array that is here."""
        return self._replace(field=f"{self.field}[{index}]", at=self.at + index * nbytes)

    def keep(self, value: object) -> int:
        """Have the native module put an address here, and keep the memory as long as the struct."""
        self.memory.append((self.at, value, f"field {self.field!r} of {self.owner}"))
        return 0

    def refuse(self, error: type[Exception], expected: str, got: Any, hint: str = "") -> NoReturn:
        """Raise an error that says what was expected, what came, and perhaps what to do."""
        raise error(
            f"field {self.field!r} of {self.owner} must be {expected}, got {value_text(got)} "
            f"({type(got).__name__}){hint}"
        )


def stored(place: Place, value: Any, kind: np.dtype[Any]) -> Any:
    """Return what to assign to a field of this type, which is no struct."""
    if kind.subdtype is not None:
        return _array(place, value, *kind.subdtype)
    if kind.metadata is not None and kind.metadata.get("cudago") == "pointer":
        return _pointer(place, value)
    if kind.kind in "biu":
        return _integer(place, value, kind)
    if kind.kind in "fc":
        return _floating(place, value, kind)
    return _opaque(place, value, kind)


def _is_array(value: object) -> TypeGuard[np.ndarray[Any, Any]]:
    return is_array(value)


def _is_array_of_ctypes(value: object) -> TypeGuard[ctypes.Array[Any]]:
    return isinstance(value, ctypes.Array)


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence)


def _is_of_numpy(value: Any) -> bool:
    """Whether this is one of NumPy's scalars, or an array without dimensions."""
    return is_scalar(value) or (_is_array(value) and not value.ndim)


def _number(value: Any) -> Any:
    """Return the number in a scalar or an array without dimensions; anything else as it is."""
    if _is_of_numpy(value):
        return value.item()
    if isinstance(value, _CTYPES_SCALAR):
        inside = value.value
        return 0 if inside is None and isinstance(value, ctypes.c_void_p) else inside
    return value


_CTYPES_SCALAR: type[Any] = ctypes.c_int.__mro__[1]  # _SimpleCData, which has no public name


def _pointer(place: Place, value: Any) -> int:
    """Return an address: what a kernel's parameter that is a pointer would take."""
    if value is None:
        return 0
    if _has_memory(value):
        return place.keep(value)
    number = _number(value)
    if isinstance(number, bool):
        place.refuse(TypeError, _A_POINTER, value)
    try:
        address = operator.index(_without_memory(number))
    except TypeError:
        place.refuse(TypeError, _A_POINTER, value)
    if not 0 <= address < 1 << 64:
        place.refuse(OverflowError, _A_POINTER, value)
    return address


_A_POINTER = "a pointer: memory, an address or None"
_POINTERS = "; for memory and None, annotate the field as ctypes.c_void_p or cudago.Pointer"
_OURS = (_core.Buffer, _core.Pointer, _core.Tensor)


def _has_memory(value: object) -> bool:
    """Whether this is memory, and not a number in memory of its own."""
    if isinstance(value, _OURS):
        return True
    if _is_of_numpy(value) or isinstance(value, (_CTYPES_SCALAR, _core.Descriptor, type)):
        return False
    if hasattr(type(value), "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        return True
    try:
        with memoryview(value) as view:  # type: ignore[arg-type]  # the question is whether it has one
            return bool(view.ndim) or view.format.startswith("T")  # otherwise a pointer of ctypes
    except TypeError:
        return False
    except (ValueError, BufferError):  # elements of a type without a format
        return True


def _is_handle(value: object, kind: np.dtype[Any]) -> bool:
    """Whether this number is that of something with memory, which has to be kept."""
    if kind.itemsize != ADDRESS:
        return False
    is_texture = isinstance(value, _core.Descriptor) and len(value._bytes) == kind.itemsize
    return is_texture or isinstance(value, _core.Pointer)


def _integer(place: Place, value: Any, kind: np.dtype[Any]) -> int:
    if _is_handle(value, kind):
        return place.keep(value)
    low, high = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    name = "a bool" if kind.kind == "b" else f"{_a(kind.name)}, from {low} to {high}"
    try:
        number = operator.index(_without_memory(_number(value)))
    except TypeError:
        is_pointer = kind.itemsize == ADDRESS and (value is None or _has_memory(value))
        place.refuse(TypeError, name, value, _POINTERS if is_pointer else "")
    if not low <= number <= high:
        place.refuse(OverflowError, name, value)
    return number


def _floating(place: Place, value: Any, kind: np.dtype[Any]) -> Any:
    """Return a float, or a complex number; a finite one stays finite."""
    of = complex if kind.kind == "c" else float
    number = _number(value)
    if isinstance(number, (str, bytes, bytearray)):  # which complex() and float() read
        place.refuse(TypeError, _a(kind.name), value)
    try:
        number = of(_without_memory(number))
        with np.errstate(over="ignore"):
            made = kind.type(number)
    except TypeError:
        place.refuse(TypeError, _a(kind.name), value)
    except OverflowError:  # an int beyond a double
        place.refuse(OverflowError, f"{_a(kind.name)}, within its range", value)
    if any(
        math.isinf(now) and not math.isinf(given)
        for now, given in ((made.real, number.real), (made.imag, number.imag))
    ):
        place.refuse(OverflowError, f"{_a(kind.name)}, within its range", value)
    return made


def _without_memory(value: object) -> Any:
    """Refuse arrays and tensors, whose one element is no number of ours to read, and pointers."""
    if hasattr(type(value), "__dlpack__") or isinstance(value, _core.Pointer):
        raise TypeError
    return value


def _array(place: Place, value: Any, base: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Return an array of exactly this shape; each element is taken as a field would be."""
    given = value
    if base.kind in "Siu" and isinstance(value, (bytes, bytearray)) and base.itemsize == 1:
        value = np.frombuffer(value, base)
    elif _is_array_of_ctypes(value):
        value = np.frombuffer(bytes(value), np.dtype(type(value)))[0]
    kind = "bytes" if base.kind == "S" else base.name
    expected = f"an array of {' x '.join(map(str, shape))} {kind}"
    if _is_array(value):
        if value.shape != shape:
            place.refuse(ValueError, expected, given)
        if value.dtype == base or np.can_cast(value.dtype, base, "safe"):
            return value
    elif isinstance(value, (str, bytes, bytearray)) or not _is_sequence(value):
        place.refuse(TypeError, expected, given)
    if len(value) != shape[0]:
        place.refuse(ValueError, expected, given)
    inner = np.dtype((base, shape[1:]))
    made = np.zeros(shape, base)
    for i in range(shape[0]):
        made[i] = stored(place.part(i, inner.itemsize), value[i], inner)
    return made


def _opaque(place: Place, value: Any, kind: np.dtype[Any]) -> Any:
    """Return a value of a type that NumPy has no letter for: bytes, or a number of an extension."""
    if kind.type is np.void:
        raw = value.tobytes() if isinstance(value, np.void) else value
        if isinstance(raw, (bytes, bytearray)) and len(raw) == kind.itemsize:
            return bytes(raw)
        place.refuse(TypeError, f"{kind.itemsize} bytes", value)
    if isinstance(value, kind.type):
        return value
    whole = not float(kind.type(0.5))  # those that hold no halves
    number = _number(value)
    if isinstance(number, (str, bytes, bytearray)):  # which float() reads
        place.refuse(TypeError, _a(kind.name), value)
    try:
        given = operator.index(number) if whole else float(_without_memory(number))
        with np.errstate(over="ignore"):
            made = kind.type(given)
    except TypeError:
        place.refuse(TypeError, _a(kind.name), value)
    except (OverflowError, ValueError):
        place.refuse(OverflowError, f"{_a(kind.name)}, within its range", value)
    if int(made) != given if whole else math.isfinite(given) and not math.isfinite(float(made)):
        place.refuse(OverflowError, f"{_a(kind.name)}, within its range", value)
    return made


def _a(name: str) -> str:
    return f"an {name}" if name.startswith("int") else f"a {name}"
