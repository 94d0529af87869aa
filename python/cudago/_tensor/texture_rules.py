# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of textures, and how the driver is told of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from .. import _core
from .. import _zconstants as c
from .._native import number_text, real
from .array_shape import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._memory.device import Device
    from .array import OpaqueArray
    from .mipmap import MipmappedArray
    from .tensor import Tensor

_MODES = {
    "wrap": c.CU_TR_ADDRESS_MODE_WRAP,
    "clamp": c.CU_TR_ADDRESS_MODE_CLAMP,
    "mirror": c.CU_TR_ADDRESS_MODE_MIRROR,
    "border": c.CU_TR_ADDRESS_MODE_BORDER,
}


class Levels(NamedTuple):
    """How a level of a mipmapped array is chosen; `number` is 0 of other memory."""

    number: int
    mode: str
    bias: float
    low: float
    high: float


class Facts(NamedTuple):
    """What a texture reads, and how."""

    shape: tuple[int, ...]
    channels: int
    dtype: str
    address_mode: tuple[str, ...]
    filter_mode: str
    normalized_coordinates: bool
    promote: bool
    srgb: bool
    seamless: bool
    levels: Levels


def channel_count(tensor: Tensor | OpaqueArray | MipmappedArray, channels: int | None) -> int:
    if not isinstance(tensor, _core.Tensor):
        if channels not in (None, tensor.channels):
            raise ValueError(
                f"channels must be those of the array, {tensor.channels}; got "
                f"{number_text(channels)}"
            )
        return tensor.channels
    if tensor.dtype_name not in FORMATS:
        raise TypeError(
            f"a texture cannot have elements of type {tensor.dtype_name}, only of "
            f"{', '.join(FORMATS)}"
        )
    rank = len(tensor.shape) - (channels is not None)
    if channels is not None and (channels not in (2, 4) or tensor.shape[-1:] != (channels,)):
        raise ValueError(
            f"channels must be 2 or 4 and the size of the last dimension, got "
            f"{number_text(channels)} and a tensor of {tensor.shape}"
        )
    if rank not in (1, 2):
        raise ValueError(
            f"a texture has 1 or 2 dimensions besides its channels, the tensor is of {tensor.shape}"
        )
    return channels or 1


def modes_of(given: str | tuple[str, ...], rank: int) -> tuple[str, ...]:
    many = f"{('one', 'one or two', 'one or three')[rank - 1]} of {', '.join(_MODES)}"
    if not isinstance(given, (str, tuple, list)):
        raise TypeError(f"address_mode must be {many}, not {type(given).__name__}")
    modes = (given,) * rank if isinstance(given, str) else tuple(given)
    for mode in modes:
        if not isinstance(mode, str):
            raise TypeError(f"address_mode must be {many}, not {type(mode).__name__} in it")
    if len(modes) != rank or any(mode not in _MODES for mode in modes):
        raise ValueError(f"address_mode must be {many}; got {given!r}")
    return modes


def kinds(facts: Facts, dimensions: int) -> tuple[int, ...]:
    modes = [_MODES[mode] for mode in facts.address_mode]
    modes += [c.CU_TR_ADDRESS_MODE_CLAMP] * (dimensions - len(modes))
    return (
        *modes,
        int(facts.filter_mode == "linear"),
        int(facts.normalized_coordinates),
        int(not facts.promote),
        int(facts.srgb),
    )


def _single(value: object, name: str) -> float:
    """Return an argument as a number that the driver is given in 32 bits."""
    number = real(value, name)
    try:
        struct.pack("<f", number)  # "f" alone checks nothing
    except OverflowError:
        raise ValueError(f"{name} must be a number that float32 holds, got {number}") from None
    return number


def color(border: Sequence[float] | None) -> tuple[float, float, float, float]:
    if isinstance(border, (str, bytes, bytearray)) or not isinstance(border, Iterable | None):
        raise TypeError(f"border must be at most 4 numbers, not {type(border).__name__}")
    values = [_single(v, "border") for v in (() if border is None else border)]
    if len(values) > 4:
        raise ValueError(f"border must have at most 4 numbers, got {len(values)}")
    values += [0.0] * (4 - len(values))
    return values[0], values[1], values[2], values[3]


def check(facts: Facts, array: OpaqueArray | MipmappedArray | None) -> None:
    """Check what does not depend on the device."""
    _check_levels(facts)
    _check_cubemap(facts, array is not None and array.cubemap)
    if facts.filter_mode not in ("point", "linear"):
        raise ValueError(f"filter_mode must be 'point' or 'linear', got {facts.filter_mode!r}")
    if not facts.normalized_coordinates and {"wrap", "mirror"} & set(facts.address_mode):
        raise ValueError("address_mode 'wrap' and 'mirror' need normalized_coordinates=True")
    wide = facts.dtype in ("int32", "uint32")
    whole = "int" in facts.dtype
    if facts.promote and (wide or not whole):
        raise ValueError(f"promote needs integers of 8 or 16 bits, got {facts.dtype}")
    if facts.srgb and (facts.dtype != "uint8" or not facts.promote):
        raise ValueError(f"srgb needs uint8 and promote=True, got {facts.dtype}")
    if facts.filter_mode == "linear" and whole and not facts.promote:
        raise ValueError(
            f"filter_mode 'linear' needs floating-point reads: got {facts.dtype}"
            + ("" if wide else "; set promote=True")
        )
    fetched = array is None and len(facts.shape) - (facts.channels > 1) == 1
    if fetched and (facts.filter_mode == "linear" or facts.normalized_coordinates):
        raise ValueError(
            "a texture of one dimension is read by whole numbers, without filters and normalized "
            "coordinates: make it one of two dimensions, with one row"
        )


def levels_of(level_count: int, mode: str, bias: float, low: float, high: float | None) -> Levels:
    """Check how a level is chosen; of what has none, by nothing."""
    if mode not in ("point", "linear"):
        raise ValueError(f"mipmap_filter_mode must be 'point' or 'linear', got {mode!r}")
    last = float(max(level_count - 1, 0))
    levels = Levels(
        level_count,
        mode,
        _single(bias, "mipmap_level_bias"),
        _single(low, "min_mipmap_level_clamp"),
        last if high is None else _single(high, "max_mipmap_level_clamp"),
    )
    if not level_count and (mode != "point" or levels.bias or levels.low or levels.high):
        raise ValueError("only a texture of a MipmappedArray has levels to choose from")
    if not math.isfinite(levels.bias) or not levels.low <= levels.high:
        raise ValueError(
            "mipmap_level_bias must be finite, and min_mipmap_level_clamp at most "
            f"max_mipmap_level_clamp: got {levels.bias}, {levels.low} and {levels.high}"
        )
    return levels


def _check_cubemap(facts: Facts, cubemap: bool) -> None:
    if cubemap and not facts.normalized_coordinates:
        raise ValueError("a texture of a cubemap needs normalized_coordinates=True")
    if facts.seamless and not cubemap:
        raise ValueError("seamless_cubemap needs an array that was made with cubemap=True")


def _check_levels(facts: Facts) -> None:
    if facts.levels.number and not facts.normalized_coordinates:
        raise ValueError("a texture of a MipmappedArray needs normalized_coordinates=True")
    if facts.levels.mode == "linear" and "int" in facts.dtype and not facts.promote:
        raise ValueError(
            f"mipmap_filter_mode 'linear' needs floating-point reads: got {facts.dtype}"
        )


def rows(tensor: Tensor, facts: Facts, device: Device) -> tuple[int, int, int]:
    """Return width, height and pitch; height 0 and the size in bytes for one dimension."""
    properties = device.properties
    address, unit = int(tensor.ptr), properties.texture_alignment
    if 0 in facts.shape:
        raise ValueError(f"a texture has at least one element, the tensor is of {facts.shape}")
    if address % unit:
        raise ValueError(
            f"the tensor must begin at a multiple of {unit} bytes, not at {address:#x}: copy it"
        )
    shape, strides = facts.shape, tensor.strides
    if facts.channels > 1:
        if strides[-1] != 1:
            raise ValueError("the channels of an element must lie next to each other")
        shape, strides = shape[:-1], strides[:-1]
    width, size = shape[-1], facts.channels * tensor.itemsize
    if width > 1 and strides[-1] != facts.channels:
        raise ValueError("the elements of a row must lie next to each other")
    if len(shape) == 1:
        _limit("elements", width, properties.maximum_texture1d_linear_width)
        return width, 0, width * size
    pitch = strides[0] * tensor.itemsize
    if shape[0] == 1:  # of one row, the distance to the next means nothing
        pitch = -(-width * size // properties.texture_pitch_alignment)
        pitch *= properties.texture_pitch_alignment
    if pitch < width * size or pitch % properties.texture_pitch_alignment:
        raise ValueError(
            f"rows must be a multiple of {properties.texture_pitch_alignment} bytes apart, got "
            f"{pitch}: copy the tensor into a part of a wider one"
        )
    _limit("columns", width, properties.maximum_texture2d_linear_width)
    _limit("rows", shape[0], properties.maximum_texture2d_linear_height)
    _limit("bytes from row to row", pitch, properties.maximum_texture2d_linear_pitch)
    return width, shape[0], pitch


def _limit(what: str, n: int, most: int) -> None:
    if n > most:
        raise ValueError(f"a texture has at most {most} {what} on this device, got {n}")
