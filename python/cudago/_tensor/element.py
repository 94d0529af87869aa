# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""One value as an element of a tensor: which values fit an element type, and their bytes."""

from __future__ import annotations

import math
import struct
import sys
from typing import Any

from .. import _core
from .._import_at_exit import imported
from .._native import number_text
from .._numpy import np
from ..errors import ClosedError

ADDED = 2  # dtype.isbuiltin of types that a package has added to NumPy's
# What struct calls the types that Python knows itself; for the others there is NumPy.
_CODES = {
    "bool": "?", "float16": "e", "float32": "f", "float64": "d",
    "complex64": "f", "complex128": "d",  # each of two
    "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
}  # fmt: skip
_HALF_COMPLEX = ("complex32", "bcomplex32")  # of ml_dtypes
_WIDEST_FILL = 4  # bytes; of cuMemsetD32Async


def extended_dtype(name: str) -> np.dtype:
    """Return NumPy's dtype of an element type that needs the package ml_dtypes."""
    try:
        ml_dtypes = imported("ml_dtypes")
    except ImportError:
        raise TypeError(f"NumPy has no {name}; the package ml_dtypes adds it") from None
    if not hasattr(ml_dtypes, name):
        raise TypeError(f"neither NumPy nor ml_dtypes has {name}")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def numpy_dtype(name: str) -> np.dtype:
    """Return NumPy's dtype of an element type; TypeError if there is none."""
    try:
        return np.dtype(name)
    except TypeError:
        return extended_dtype(name)


def array_of(values: Any, name: str | None, what: str) -> np.ndarray:
    """Return an array_like as NumPy's array, of element type `name` unless that is None."""
    wrong = TypeError(
        f"{what} must be a tensor, an array, or numbers in lists, not {type(values).__name__}"
    )
    is_text = isinstance(values, str) or (name is None and isinstance(values, bytes))
    if values is None or is_text:  # to NumPy, nan and the text of a number
        raise wrong
    masks = sys.modules.get("numpy.ma")  # before it is loaded no array is masked
    if masks is not None and isinstance(values, masks.MaskedArray):
        raise TypeError(
            f"{what} must not be a masked array, of which the memory alone would be used: pass "
            "x.filled(value), or x.data, which has no mask"
        )
    dtype = None if name is None else numpy_dtype(name)
    if dtype is not None and not is_complex(dtype) and _has_complex(values):
        raise TypeError(f"{what} has complex numbers, which do not fit {name}")
    try:
        array = np.asarray(values, dtype)
    except TypeError as error:
        raise wrong from error
    if dtype is None and array.dtype.kind in "OSU" and not hasattr(values, "dtype"):
        if array.size and all(isinstance(value, int) for value in array.flat):
            raise OverflowError(f"{what} has integers that no element type holds together")
        raise wrong
    return array


def is_complex(dtype: Any) -> bool:
    """Whether a dtype of NumPy's is of complex numbers; ml_dtypes' have a kind of their own."""
    return dtype.kind == "c" or dtype.name in _HALF_COMPLEX


def widened(array: np.ndarray) -> np.ndarray:
    """Return an array of a type of ml_dtypes in one of NumPy's own, which has all its numbers."""
    if array.dtype.isbuiltin != ADDED:
        return array
    return array.astype("c8" if is_complex(array.dtype) else "f4")


def _has_complex(values: Any) -> bool:
    """Whether NumPy would make complex numbers of it, or drop imaginary parts with a warning."""
    if isinstance(values, int | float):
        return False
    try:
        array: np.ndarray[Any, Any] = np.asarray(values)
    except (TypeError, ValueError, OverflowError):  # which the conversion tells
        return False
    if array.dtype.kind == "O":  # as scalars of ml_dtypes beside other numbers are
        found: list[Any] = list(array.flat)
        return any(isinstance(x, np.generic) and is_complex(_type_of(x)) for x in found)
    return is_complex(array.dtype)


def _type_of(scalar: Any) -> np.dtype[Any]:
    """Return the type of a scalar of NumPy's."""
    return scalar.dtype  # type: ignore[no-any-return]


def element(value: Any, name: str) -> bytes:
    """Return the bytes of one element of type `name`; ``bytes`` are taken as they are."""
    bits = _core._dtype(name)[1]
    if bits % 8 or name.endswith("_x2"):
        raise TypeError(f"a fill needs elements of whole bytes, not {name}: fill t.buffer instead")
    if isinstance(value, bytes | bytearray):
        if len(value) * 8 != bits:
            raise ValueError(f"an element of {name} has {bits // 8} bytes, got {len(value)}")
        return bytes(value)
    number = number_of(value)
    if name == "complex32":
        return _convert(number.real, "float16") + _convert(number.imag, "float16")
    return _convert(number, name)


def number_of(value: Any) -> Any:
    """Return a Python number with the value of any scalar."""
    if isinstance(value, bool | int | float | complex):
        return value
    scalar = np.asarray(value)
    if scalar.ndim:
        raise TypeError(f"fill value must be one number, not an array of shape {scalar.shape}")
    if is_complex(scalar.dtype):
        return complex(scalar[()])
    if scalar.dtype.kind not in "biufV" or scalar.dtype.names:
        raise TypeError(f"fill value must be a number or bytes, not {type(value)}")
    if scalar.dtype.isbuiltin != ADDED and scalar.dtype.kind != "V":
        return scalar.item()
    try:
        return float(scalar[()])  # of ml_dtypes
    except (TypeError, ValueError):
        raise TypeError(f"fill value must be a number or bytes, not {type(value)}") from None


def _convert(number: Any, name: str) -> bytes:
    if code := _CODES.get(name):
        return _packed(number, name, code)
    dtype = numpy_dtype(name)
    if isinstance(number, complex):
        raise TypeError(f"a complex value does not fit {name}")
    exact = _exact(number, name)
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.asarray(exact).astype(dtype)
    if math.isfinite(exact) and not math.isfinite(float(out[()])):
        raise _too_large(number, name)
    return out.tobytes()


def _exact(number: Any, name: str) -> Any:
    try:
        return number if isinstance(number, complex) else float(number)
    except OverflowError:  # an int beyond every float
        raise _too_large(number, name) from None


def _packed(number: Any, name: str, code: str) -> bytes:
    """Return an element of a type that Python knows itself."""
    if code == "?":
        return struct.pack("<?", bool(number))
    parts = [number]
    if name.startswith("complex"):
        exact = complex(_exact(number, name))
        parts = [exact.real, exact.imag]
    elif isinstance(number, complex):
        raise TypeError(f"a complex value does not fit {name}")
    elif name.startswith("float"):
        parts = [_exact(number, name)]
    else:
        parts = [_whole(number, name)]
    try:
        return struct.pack(f"<{len(parts)}{code}", *parts)
    except OverflowError:
        raise _too_large(number, name) from None


def _whole(number: Any, name: str) -> int:
    """Return the int that a number is, if `name` has it."""
    if isinstance(number, float) and not number.is_integer():
        raise ValueError(f"{number!r} is not a whole number, so it does not fit {name}")
    whole = int(number)
    bits = _core._dtype(name)[1]
    least = 0 if name.startswith("u") else -1 << bits - 1
    if not least <= whole < least + (1 << bits):
        raise _too_large(whole, name)
    return whole


def _too_large(number: Any, name: str) -> OverflowError:
    text = number_text(number) if isinstance(number, int) else repr(number)
    return OverflowError(f"fill value {text} does not fit {name}")


def shortest(pattern: bytes) -> bytes:
    """Return the shortest pattern that makes the same fill: the driver's fills are narrow."""
    while len(pattern) > 1 and pattern[: len(pattern) // 2] == pattern[len(pattern) // 2 :]:
        pattern = pattern[: len(pattern) // 2]
    return pattern


def is_narrow(pattern: bytes) -> bool:
    """Whether one of the driver's fills can write the pattern."""
    return len(pattern) <= _WIDEST_FILL


def pattern_for(dst: Any, value: Any) -> Any:
    """Return what to fill `dst` with: memory with an element type is filled in that type.

    Memory without one is bytes, for which the native module reads the value.
    """
    dtype = None if isinstance(dst, _core.Buffer | _core.Pointer) else getattr(dst, "dtype", None)
    return value if dtype is None else shortest(element(value, _core._dtype(dtype)[0]))


def element_bits(memory: Any) -> int | None:
    """Return the bits of an element; None of memory that has no type, or one unknown here."""
    if isinstance(memory, _core.Buffer | _core.Pointer):
        return None
    try:
        return int(_core._dtype(memory.dtype)[1])
    except (AttributeError, TypeError, ClosedError):
        return None


def check_pattern(pattern: bytes, name: str, was: Any, dst: Any) -> None:
    """Refuse the pattern of a fill of `was` for other memory whose elements have another size.

    A pattern of one byte fills elements of all sizes alike.
    """
    before, now = element_bits(was), element_bits(dst)
    if len(pattern) == 1 or now is None:
        return
    nbytes = len(pattern) if before is None else before // 8
    if now % (8 * len(pattern)) or before not in (None, now):
        raise ValueError(
            f"{name!r} fills with a value of {nbytes} bytes, and an element of dst has "
            f"{now / 8:g}: give value= too"
        )
