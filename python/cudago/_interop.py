# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Protocols of other libraries, read in Python where speed does not matter."""

from __future__ import annotations

import math
from typing import Any

_ITEM_DIGITS = slice(2, None)


def _read_cuda_array_interface(interface: dict[str, Any], what: str) -> tuple[int, int]:
    """Return the address and the bytes that ``__cuda_array_interface__`` (version 3) describes."""
    if interface.get("version", 0) < 2:
        raise TypeError(
            f"{what}: version {interface.get('version')} of __cuda_array_interface__ is too old"
        )
    if interface.get("mask") is not None:
        raise TypeError(f"{what}: masked arrays are not supported")
    shape = tuple(interface["shape"])
    item = int(interface["typestr"][_ITEM_DIGITS])
    strides = interface.get("strides")
    if strides is not None and math.prod(shape):
        expected = item
        for n, stride in zip(reversed(shape), reversed(tuple(strides)), strict=True):
            if n > 1 and stride != expected:
                raise BufferError(f"{what} must be C-contiguous")
            expected *= n
    return int(interface["data"][0] or 0), math.prod(shape) * item
