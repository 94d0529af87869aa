# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of tensor maps: those of cuTensorMapEncodeTiled and its sisters in cuda.h, CUDA 13.5."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NamedTuple, cast

from .. import _zconstants as c
from .._native import number_text, value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import SupportsIndex

    from ..typing import Dims
    from .tensor import Tensor

# What a tensor's elements are copied as. Copies do not look at integers, so types that CUDA does
# not name are copied as one of their size.
_TYPES = {
    "bool": c.CU_TENSOR_MAP_DATA_TYPE_UINT8,
    "int8": c.CU_TENSOR_MAP_DATA_TYPE_UINT8,
    "uint8": c.CU_TENSOR_MAP_DATA_TYPE_UINT8,
    "int16": c.CU_TENSOR_MAP_DATA_TYPE_UINT16,
    "uint16": c.CU_TENSOR_MAP_DATA_TYPE_UINT16,
    "int32": c.CU_TENSOR_MAP_DATA_TYPE_INT32,
    "uint32": c.CU_TENSOR_MAP_DATA_TYPE_UINT32,
    "int64": c.CU_TENSOR_MAP_DATA_TYPE_INT64,
    "uint64": c.CU_TENSOR_MAP_DATA_TYPE_UINT64,
    "float16": c.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    "bfloat16": c.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    "float32": c.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    "float64": c.CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
}
_CHANGED = {
    "float32_ftz": c.CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
    "tfloat32": c.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
    "tfloat32_ftz": c.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
}
SWIZZLES = {
    "none": c.CU_TENSOR_MAP_SWIZZLE_NONE,
    "32B": c.CU_TENSOR_MAP_SWIZZLE_32B,
    "64B": c.CU_TENSOR_MAP_SWIZZLE_64B,
    "128B": c.CU_TENSOR_MAP_SWIZZLE_128B,
    "128B_atom_32B": c.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
    "128B_atom_32B_flip_8B": c.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
    "128B_atom_64B": c.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
}
INTERLEAVES = {
    "none": c.CU_TENSOR_MAP_INTERLEAVE_NONE,
    "16B": c.CU_TENSOR_MAP_INTERLEAVE_16B,
    "32B": c.CU_TENSOR_MAP_INTERLEAVE_32B,
}
PROMOTIONS = {
    "none": c.CU_TENSOR_MAP_L2_PROMOTION_NONE,
    "64B": c.CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
    "128B": c.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    "256B": c.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
}
FILLS = {
    "zeros": c.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    "nan": c.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
}
WIDE = {
    "W": c.CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
    "W128": c.CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128,
}
_WIDE_SWIZZLES = ("64B", "128B", "128B_atom_32B")
# The longest row of a box, in bytes, by the beginning of the swizzle's name.
_SPANS = {"32": 32, "64": 64, "128": 128}

MOST_DIMENSIONS = 5
_MOST_ELEMENTS = 1 << 31
_MOST_STRIDE = 1 << 40
MOST_BOX = 256
MOST_STEP = 8
MOST_PIXELS = 1024


class Columns(NamedTuple):
    """What one copy of columns moves, dimensions as the tensor has them."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int
    mode: str | None = None  # of wide columns


class Facts(NamedTuple):
    """What a map says, dimensions as the tensor has them."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    data_type: str
    interleave: str
    swizzle: str
    l2_promotion: str
    oob_fill: str
    columns: Columns | None = None


def corner(parameter: str, value: Dims, rank: int) -> tuple[int, ...]:
    given: Sequence[SupportsIndex]
    if isinstance(value, (tuple, list)):
        given = cast("Sequence[SupportsIndex]", value)
    else:
        given = (cast("SupportsIndex", value),) * rank
    try:
        corner = tuple(operator.index(n) for n in given)
    except TypeError:
        raise TypeError(
            f"{parameter} must be an int or a tuple of ints, got {value_text(value)}"
        ) from None
    most = (1 << 15, 1 << 7, 1 << 4)[rank - 1]
    if len(corner) != rank or any(not -most <= n < most for n in corner):
        raise ValueError(
            f"{parameter} must have {rank} numbers of {-most} to {most - 1}, got "
            f"{number_text(corner)}"
        )
    return corner


def name_of(tensor: Tensor) -> str:
    return tensor.dtype_name


def type_number(tensor: Tensor, data_type: str | None) -> int:
    """Return CUDA's number for the elements' type."""
    name = name_of(tensor)
    if data_type is not None:
        number = choice("data_type", _CHANGED, data_type)
        if name != "float32":
            raise ValueError(f"data_type {data_type!r} needs elements of type float32, got {name}")
        return number
    if name not in _TYPES:
        raise TypeError(
            f"a tensor map cannot describe elements of type {name}: view them as another type of "
            f"1, 2, 4 or 8 bytes"
        )
    return _TYPES[name]


def choice(parameter: str, choices: Mapping[str, int], value: str) -> int:
    if not isinstance(value, str):
        raise TypeError(f"{parameter} must be a str, not {type(value).__name__}")
    if value not in choices:
        raise ValueError(
            f"{parameter} must be one of {', '.join(map(repr, choices))}; got {value!r}"
        )
    return choices[value]


def sizes_of(parameter: str, value: Dims, rank: int, most: int) -> tuple[int, ...]:
    """Return one number for each dimension."""
    given: Sequence[SupportsIndex]
    if isinstance(value, (tuple, list)):
        given = cast("Sequence[SupportsIndex]", value)
    else:
        given = (cast("SupportsIndex", value),) * (1 if parameter == "box" else rank)
    try:
        sizes = tuple(operator.index(n) for n in given)
    except TypeError:
        raise TypeError(
            f"{parameter} must be an int or a tuple of ints, got {value_text(value)}"
        ) from None
    if len(sizes) != rank:
        raise ValueError(
            f"{parameter} must have a number for each of the tensor's {rank} dimensions, "
            f"got {len(sizes)}"
        )
    for n in sizes:
        if not 1 <= n <= most:
            raise ValueError(
                f"{parameter} must be 1 to {most} in each dimension, got {number_text(sizes)}"
            )
    return sizes


def strides_of(tensor: Tensor) -> tuple[int, ...]:
    """Return strides in bytes.

    That of a dimension with one element means nothing, but has to obey the rules.
    """
    strides = [n * tensor.itemsize for n in tensor.strides]
    inner = tensor.itemsize
    for i in range(len(strides) - 1, -1, -1):
        if tensor.shape[i] == 1:
            strides[i] = inner if i == len(strides) - 1 else -(-inner // 32) * 32
        inner = max(inner, strides[i] * tensor.shape[i])
    return tuple(strides)


def check(facts: Facts, address: int) -> None:
    """Check the rules about the tensor and the box."""
    if facts.columns and facts.columns.mode and facts.swizzle not in _WIDE_SWIZZLES:
        raise ValueError(
            f"swizzle must be one of {', '.join(map(repr, _WIDE_SWIZZLES))} for wide columns; got "
            f"{facts.swizzle!r}"
        )
    unit = 32 if facts.interleave == "32B" else 16
    if address % unit:
        raise ValueError(
            f"the tensor must begin at a multiple of {unit} bytes, not at {address:#x}: copy it, "
            f"or take another part"
        )
    for n in facts.shape:
        if not 1 <= n <= _MOST_ELEMENTS:
            raise ValueError(f"each dimension must have 1 to 2**31 elements, got {facts.shape}")
    if facts.strides[-1] != facts.itemsize:
        raise ValueError(
            f"the elements of the last dimension must lie next to each other; the stride is "
            f"{facts.strides[-1]} bytes, an element has {facts.itemsize}"
        )
    for n in facts.strides[:-1]:
        if n <= 0 or n % unit or n >= _MOST_STRIDE:
            raise ValueError(
                f"the strides of all dimensions but the last must be positive multiples of {unit} "
                f"bytes, below 2**40: got {facts.strides[:-1]}"
            )
    _check_box(facts)


def _check_box(facts: Facts) -> None:
    row = facts.box[-1] * facts.itemsize
    if facts.interleave != "none":
        if len(facts.shape) < 3:
            raise ValueError(f"interleave needs at least 3 dimensions, got {len(facts.shape)}")
        if facts.interleave == "32B" and facts.swizzle != "32B":
            raise ValueError(f"interleave '32B' needs swizzle '32B', got {facts.swizzle!r}")
    else:
        if row % 16:
            raise ValueError(f"a row of the box must be a multiple of 16 bytes, got {row}")
        span = _SPANS.get(facts.swizzle.partition("B")[0])
        if span is not None and row > span:
            raise ValueError(
                f"with swizzle {facts.swizzle!r} a row of the box has at most {span} bytes, "
                f"got {row}"
            )
        if facts.element_strides[-1] != 1:
            raise ValueError(
                f"element_strides must be 1 in the last dimension, which CUDA cannot stride; got "
                f"{facts.element_strides}"
            )
    if facts.oob_fill == "nan" and "float" not in facts.data_type:
        raise ValueError(f"oob_fill 'nan' needs floating-point elements, got {facts.data_type}")


def images(tensor: Tensor) -> int:
    """Return the rank of a tensor that has images."""
    rank = len(tensor.shape)
    if not 3 <= rank <= MOST_DIMENSIONS:
        raise ValueError(f"a map of columns has 3 to 5 dimensions, the tensor {rank}")
    return rank


def numbers_of(facts: Facts) -> tuple[tuple[object, ...], ...]:
    """Return what the driver is told, from the innermost dimension outwards."""
    columns = facts.columns
    numbers: tuple[tuple[object, ...], ...] = (
        facts.shape[::-1],
        facts.strides[-2::-1],
        (1,) * len(facts.box) if columns else facts.box[::-1],
        facts.element_strides[::-1],
    )
    if columns:
        # CUTLASS calls the order of corners whd.
        corners = [(*c[::-1], *[0] * (3 - len(c))) for c in columns[:2]]
        mode = () if columns.mode is None else (WIDE[columns.mode],)
        numbers = (*numbers, (*corners, columns.channels, columns.pixels, *mode))
    return numbers
