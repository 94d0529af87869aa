# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where a tensor's memory is, and whether its elements have addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core

if TYPE_CHECKING:
    from .tensor import Tensor

_CPU = 1
_PINNED, _MANAGED = 2, 3  # enum cudago_cell_kind


def is_pageable(t: Tensor) -> bool:
    """Whether this is host memory that the driver does not know."""
    kind, device_type, *_ = t._memory
    return device_type == _CPU and t._ordinal is None and kind not in (_PINNED, _MANAGED)


def is_packed(t: Tensor) -> bool:
    """Whether elements have less than a byte, so that not each has an address."""
    return is_packed_type(t.dtype_name)


def is_packed_type(name: str) -> bool:
    """Whether an element type has less than a byte."""
    return bool(_core._dtype(name)[1] % 8)


def described(tensor: Tensor, values: str) -> str:
    """Return the ``repr`` of a tensor, with what is told of its elements."""
    where = "host" if tensor._ordinal is None else f"device {tensor._ordinal}"
    kind = f"{tensor.dtype_name}{list(tensor.shape)}"
    span, offset = tensor._span
    bit = tensor._packing[0]
    at = f"{span.handle + offset:#x}" + (f", bit {bit}" if bit else "")
    return f"<Tensor {kind} on {where} at {at}{values}>"
