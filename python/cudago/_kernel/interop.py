# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Protocols of other libraries that are not time-critical."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any

from .._native import number_text, value_text
from .elements import element_of_typestr

_TYPESTR = re.compile(r"[<>|=][A-Za-z](\d+)")
_ADDRESSES = 1 << 64


def _read_cuda_array_interface(interface: Any, what: str) -> tuple[int, int, int | None, bool, int]:
    """Read ``__cuda_array_interface__``, versions 2 and 3.

    Returns the address, the size in bytes, the stream that the memory's work is queued on (None if
    there is nothing to wait for, 1 and 2 for the default streams), whether it is read-only, and the
    type of its elements.
    """
    return read_shaped(interface, what)[0]


def read_shaped(
    interface: Any, what: str
) -> tuple[tuple[int, int, int | None, bool, int], tuple[int, ...], str]:
    """Read it with its shape and its typestr, each of which is asked for once."""
    _check_version(interface, what)
    if interface.get("mask") is not None:
        raise TypeError(f"{what}: masked arrays are not supported")
    shape = _ints(_field(interface, "shape", what), "shape", what)
    typestr = _field(interface, "typestr", what)
    match = _TYPESTR.fullmatch(typestr) if isinstance(typestr, str) else None
    if match is None:
        error = ValueError if isinstance(typestr, str) else TypeError
        raise error(_wrong("typestr", "a string such as '<f4'", typestr, what))
    item = int(match[1])
    nbytes = _size(shape, item, what)
    strides = interface.get("strides")
    if strides is not None and nbytes:
        _check_strides(shape, _ints(strides, "strides", what), item, what)
    address, read_only = _data(_field(interface, "data", what), what)
    if not 0 <= address <= _ADDRESSES - max(nbytes, 1):
        raise ValueError(f"{what}: {nbytes} bytes at {address:#x} are not in 64 bits of addresses")
    stream = _stream(interface.get("stream"), what)
    read = address, nbytes, stream, bool(read_only), element_of_typestr(typestr)
    return read, tuple(shape), typestr


def _wrong(field: str, wanted: str, got: object, what: str) -> str:
    return (
        f"{what}: {field} of __cuda_array_interface__ must be {wanted}, got {value_text(got)} "
        f"({type(got).__name__})"
    )


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _check_version(interface: Any, what: str) -> None:
    if not _is_dict(interface):
        got = type(interface).__name__
        raise TypeError(f"{what}: __cuda_array_interface__ must be a dict, not {got}")
    version = _field(interface, "version", what)
    if not isinstance(version, int):
        raise TypeError(_wrong("version", "2 or 3", version, what))
    if version < 2:
        raise TypeError(f"{what}: version {version} of __cuda_array_interface__ is too old")


def _field(interface: dict[str, Any], field: str, what: str) -> Any:
    if field not in interface:
        raise TypeError(f"{what}: __cuda_array_interface__ has no {field!r}")
    return interface[field]


def _ints(values: Any, field: str, what: str) -> list[int]:
    if not _is_sequence(values):
        raise TypeError(_wrong(field, "a tuple of ints", values, what))
    found: list[Any] = list(values)
    for n in found:
        if not hasattr(n, "__index__"):
            raise TypeError(_wrong(field, "a tuple of ints", n, what))
    return [operator.index(n) for n in found]


def _data(pair: Any, what: str) -> tuple[int, Any]:
    found: list[Any] = list(pair) if _is_sequence(pair) else []
    address: Any = (found[0] or 0) if len(found) == 2 else None
    if not hasattr(address, "__index__"):
        raise TypeError(_wrong("data", "an address and whether it is read-only", pair, what))
    return operator.index(address), found[1]


def _size(shape: list[int], item: int, what: str) -> int:
    if item < 1 or any(n < 0 for n in shape):
        raise ValueError(
            f"{what}: a shape of {number_text(shape)} with {item} bytes per element has no size"
        )
    nbytes = 0 if 0 in shape else item * math.prod(shape)
    if nbytes >= _ADDRESSES:
        raise ValueError(too_large(shape, what))
    return nbytes


def too_large(shape: Sequence[int], what: str) -> str:
    """Say that there is no such memory."""
    return f"{what}: the size of a shape of {number_text(list(shape))} does not fit 64 bits"


def _check_strides(shape: list[int], strides: list[int], item: int, what: str) -> None:
    if len(strides) != len(shape):
        raise ValueError(f"{what}: {len(shape)} dimensions, but {len(strides)} strides")
    expected = item
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and stride != expected:
            raise BufferError(f"{what} must be C-contiguous")
        expected *= n


def _stream(stream: Any, what: str) -> int | None:
    if stream is None:
        return None
    if not hasattr(stream, "__index__"):
        raise TypeError(_wrong("stream", "None, 1, 2 or a handle", stream, what))
    number = operator.index(stream)
    if not 0 < number < _ADDRESSES:  # 0 could be either default stream: the protocol forbids it
        raise ValueError(
            f"{what}: the stream of __cuda_array_interface__ must be None, 1, 2 or a handle, "
            f"got {number_text(number)}"
        )
    return number
