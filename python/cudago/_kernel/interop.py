# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Protocols of other libraries that are not time-critical."""

from __future__ import annotations

import operator
from typing import Any

from .elements import element_of_typestr

_ITEM_DIGITS = slice(2, None)
_ADDRESSES = 1 << 64


def _read_cuda_array_interface(interface: Any, what: str) -> tuple[int, int, int | None, bool, int]:
    """Read ``__cuda_array_interface__``, versions 2 and 3.

    Returns the address, the size in bytes, the stream that the memory's work is queued on (None if
    there is nothing to wait for, 1 and 2 for the default streams), whether it is read-only, and the
    type of its elements.
    """
    if not isinstance(interface, dict):
        raise TypeError(
            f"{what}: __cuda_array_interface__ must be a dict, not {type(interface).__name__}"
        )
    if interface.get("version", 0) < 2:
        raise TypeError(
            f"{what}: version {interface.get('version')} of __cuda_array_interface__ is too old"
        )
    if interface.get("mask") is not None:
        raise TypeError(f"{what}: masked arrays are not supported")
    shape = [operator.index(n) for n in interface["shape"]]
    item = int(interface["typestr"][_ITEM_DIGITS])
    nbytes = _size(shape, item, what)
    strides = interface.get("strides")
    if strides is not None and nbytes:
        _check_strides(shape, [operator.index(n) for n in strides], item, what)
    pointer, read_only = interface["data"]
    address = operator.index(pointer or 0)
    if not 0 <= address <= _ADDRESSES - max(nbytes, 1):
        raise ValueError(f"{what}: {nbytes} bytes at {address:#x} are not in 64 bits of addresses")
    stream = _stream(interface.get("stream"), what)
    return address, nbytes, stream, bool(read_only), element_of_typestr(interface["typestr"])


def _size(shape: list[int], item: int, what: str) -> int:
    if item < 1 or any(n < 0 for n in shape):
        raise ValueError(f"{what}: a shape of {shape} with {item} bytes per element has no size")
    nbytes = 0 if 0 in shape else item
    for n in shape if nbytes else ():
        nbytes *= n
        if nbytes >= _ADDRESSES:
            raise ValueError(f"{what}: the size of a shape of {shape} does not fit 64 bits")
    return nbytes


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
    number = operator.index(stream)
    if not 0 < number < _ADDRESSES:  # 0 could be either default stream: the protocol forbids it
        raise ValueError(
            f"{what}: the stream of __cuda_array_interface__ must be None, 1, 2 or a handle, "
            f"got {number}"
        )
    return number
