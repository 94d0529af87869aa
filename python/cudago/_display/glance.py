# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The first and last values of memory in one line, for ``repr``.

Only of memory that the host reads in place, and only while no work is under way: nothing is copied
or queued, and nothing waited for unless who asks has patience. What stops it is told instead.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, cast

from .._tensor.place import is_pageable
from .._tensor.tensor import Tensor
from .preview import CUDA, OnHost, Unreadable, await_idle, check_readable, short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._memory.buffer import Buffer

_WHOLE, _EDGE = 6, 3  # most values shown without a gap; values at each end of more
_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "ff",
    "complex128": "dd",
    "bfloat16": "H",
    "float8_e3m4": "B",
    "float8_e4m3": "B",
    "float8_e4m3b11fnuz": "B",
    "float8_e4m3fn": "B",
    "float8_e4m3fnuz": "B",
    "float8_e5m2": "B",
    "float8_e5m2fnuz": "B",
    "float8_e8m0fnu": "B",
}
# Of those whose bits struct does not read: bits of the exponent and of the fraction, its bias, and
# what else has no number: infinities and NaN as in IEEE 754 (""), NaN alone ("fn"), or only in the
# place of -0 ("fnuz").
_SMALL = {
    "bfloat16": (8, 7, 127, ""),
    "float8_e3m4": (3, 4, 3, ""),
    "float8_e4m3": (4, 3, 7, ""),
    "float8_e4m3b11fnuz": (4, 3, 11, "fnuz"),
    "float8_e4m3fn": (4, 3, 7, "fn"),
    "float8_e4m3fnuz": (4, 3, 8, "fnuz"),
    "float8_e5m2": (5, 2, 15, ""),
    "float8_e5m2fnuz": (5, 2, 16, "fnuz"),
}


def glance(memory: Buffer | Tensor, patience_s: float) -> str:
    """Return the values, or why they were not read; empty if the host can never read them."""
    try:
        if isinstance(memory, Tensor):
            shown = _values(memory, patience_s)
        else:
            with memory.view("uint8") as raw:
                shown = _values(raw, patience_s, "{:02x}")
    except Unreadable as e:
        return f", not read: {e.brief}"
    return f": {shown}" if shown else ""


def _values(tensor: Tensor, patience_s: float, spelled: str = "") -> str:
    code = _FORMATS.get(tensor.dtype_name)
    device_type = tensor._memory[1]
    if code is None or not tensor.size or device_type == CUDA:
        return ""
    check_readable(tensor)
    if not is_pageable(tensor):
        await_idle(patience_s)
    span, start = tensor._span
    with _raw(span) as raw:
        at = (start + step * tensor.itemsize for step in _steps(tensor))
        found = [_decoded(tensor, struct.unpack_from(code, raw, first)) for first in at]
    words = [spelled.format(*x) if spelled else _word(x) for x in found]
    if tensor.size > _WHOLE:
        words.insert(_EDGE, "\u2026")
    return " ".join(words)


def _raw(span: Buffer) -> memoryview:
    if span.kind != "device":
        return memoryview(span)
    import numpy as np  # the memory of simulated devices is the host's, but not at that address

    return np.from_dlpack(cast("Any", OnHost(span.view("uint8")))).data


def _steps(tensor: Tensor) -> Iterator[int]:
    """Yield the distances of the elements that are shown from the first, in elements."""
    size = tensor.size
    shown = range(size)
    for at in shown if size <= _WHOLE else (*shown[:_EDGE], *shown[-_EDGE:]):
        step, rest = 0, at
        for extent, stride in zip(tensor.shape[::-1], tensor.strides[::-1], strict=True):
            rest, index = divmod(rest, extent)
            step += index * stride
        yield step


def _decoded(tensor: Tensor, value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the number that bits are, of a type that struct does not know."""
    name = tensor.dtype_name
    if name == "float8_e8m0fnu":  # an exponent alone
        return (math.nan if value[0] == _NO_EXPONENT else 2.0 ** (value[0] - 127),)
    return (_small(value[0], *_SMALL[name]),) if name in _SMALL else value


_NO_EXPONENT = 0xFF


def _small(bits: int, exponent: int, fraction: int, bias: int, kind: str) -> float:
    sign = -1.0 if bits >> exponent + fraction else 1.0
    magnitude = bits & (1 << exponent + fraction) - 1
    power, rest = magnitude >> fraction, magnitude & (1 << fraction) - 1
    if kind == "fnuz" and not magnitude and sign < 0:
        return math.nan
    if kind == "fn" and magnitude == (1 << exponent + fraction) - 1:
        return math.nan
    if not kind and power == (1 << exponent) - 1:
        return math.nan if rest else sign * math.inf
    whole = rest + (1 << fraction if power else 0)
    return math.ldexp(sign * whole, max(power, 1) - bias - fraction)


def _word(value: tuple[Any, ...]) -> str:
    return short(value[0] if len(value) == 1 else complex(*value))
