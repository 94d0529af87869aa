# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of CUDA arrays: what they may be, and how the driver is told."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .. import _zconstants as c
from .._native import number_text
from .creation import _shape

if TYPE_CHECKING:
    from .._memory.device import Device
    from ..typing import Dims

FORMATS = {
    "uint8": c.CU_AD_FORMAT_UNSIGNED_INT8,
    "uint16": c.CU_AD_FORMAT_UNSIGNED_INT16,
    "uint32": c.CU_AD_FORMAT_UNSIGNED_INT32,
    "int8": c.CU_AD_FORMAT_SIGNED_INT8,
    "int16": c.CU_AD_FORMAT_SIGNED_INT16,
    "int32": c.CU_AD_FORMAT_SIGNED_INT32,
    "float16": c.CU_AD_FORMAT_HALF,
    "float32": c.CU_AD_FORMAT_FLOAT,
}


class Facts(NamedTuple):
    """What an array is."""

    shape: tuple[int, ...]
    channels: int
    dtype: str
    layered: bool
    cubemap: bool
    surfaces: bool


def described(
    shape: Dims, dtype: Any, channels: int | None, kind: tuple[object, object, object]
) -> tuple[Facts, tuple[int, int, int], int]:
    """Return facts, width, height and depth as cuArray3DCreate wants them, and a channel's size.

    The kind is whether the array is layered, a cubemap and for surfaces.
    """
    name, bits = _core._dtype(dtype)
    sizes = tuple(index(n) for n in _shape(shape))
    facts = Facts(sizes, channels or 1, name, *map(bool, kind))
    return facts, _extent(facts, channels), bits // 8


def count(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def of_level(facts: Facts, level: int) -> Facts:
    """Return what a level of a mipmapped array is."""
    last = len(facts.shape) - (facts.channels > 1)
    first = last - rank(facts)
    sizes = [max(n >> level, 1) if first <= i < last else n for i, n in enumerate(facts.shape)]
    return facts._replace(shape=tuple(sizes))


def most_levels(facts: Facts) -> int:
    """Return how many levels halve the sizes until all are 1."""
    last = len(facts.shape) - (facts.channels > 1)
    return max(facts.shape[last - rank(facts) : last]).bit_length()


def rank(facts: Facts) -> int:
    return len(facts.shape) - (facts.channels > 1) - facts.layered - facts.cubemap


def _extent(facts: Facts, channels: int | None) -> tuple[int, int, int]:
    """Return width, height and depth as cuArray3DCreate wants them."""
    if facts.dtype not in FORMATS:
        raise TypeError(
            f"an array cannot have elements of type {facts.dtype}, only of {', '.join(FORMATS)}"
        )
    shape = facts.shape
    if channels is not None and (channels not in (2, 4) or shape[-1:] != (channels,)):
        raise ValueError(
            f"channels must be 2 or 4 and the size of the last dimension, got "
            f"{number_text(channels)} and shape {number_text(shape)}"
        )
    if facts.cubemap:
        return _faces(facts)
    coordinates, most = rank(facts), 2 if facts.layered else 3
    if not 1 <= coordinates <= most:
        what = "layers and channels" if facts.layered else "its channels"
        raise ValueError(
            f"an array has 1 to {most} dimensions besides {what}, got shape {number_text(shape)}"
        )
    _check_sizes(shape)
    if channels is not None:
        shape = shape[:-1]
    layers = 0
    if facts.layered:
        layers, *rest = shape
        shape = tuple(rest)
    width, height, depth = (*reversed(shape), 0, 0)[:3]
    return width, height, depth or layers


def _check_sizes(shape: tuple[int, ...]) -> None:
    if min(shape) < 1:
        raise ValueError(f"an array has at least one element, got shape {number_text(shape)}")


def _faces(facts: Facts) -> tuple[int, int, int]:
    """Return the extent of cubes."""
    last = len(facts.shape) - (facts.channels > 1)
    if (
        rank(facts) != 2
        or facts.shape[last - 3] != 6
        or len(set(facts.shape[last - 2 : last])) != 1
    ):
        raise ValueError(
            "a cubemap has 6 faces, which are square: its shape is (6, n, n), with layers before "
            f"that and channels behind; got {number_text(facts.shape)}"
        )
    _check_sizes(facts.shape)
    size = facts.shape[last - 1]
    return size, size, 6 * (facts.shape[0] if facts.layered else 1)


def _limit_faces(facts: Facts, extent: tuple[int, int, int], device: Device) -> None:
    kind = "cubemap_layered" if facts.layered else "cubemap"
    sizes = [("columns", "width", extent[0]), ("faces", "layers", extent[2])]
    for of in ("texture", "surface")[: 1 + facts.surfaces]:
        for what, side, n in sizes[: 1 + facts.layered]:
            _at_most(what, n, getattr(device.properties, f"maximum_{of}{kind}_{side}"))


def _at_most(what: str, n: int, most: int) -> None:
    if n > most:
        raise ValueError(
            f"an array with these dimensions has at most {most} {what} on this device, got "
            f"{number_text(n)}"
        )


def limit(facts: Facts, extent: tuple[int, int, int], device: Device, levels: bool = False) -> None:
    """Check the sizes against what textures, and surfaces, of the device may have."""
    coordinates = rank(facts)
    if facts.cubemap:
        _limit_faces(facts, extent, device)
        return
    kind = f"{coordinates}d_layered" if facts.layered else f"{coordinates}d"
    names = ("columns", "width"), ("rows", "height"), ("slices", "depth")
    limits = [(what, n, side) for (what, side), n in zip(names, extent, strict=True)]
    if facts.layered:
        limits = [*limits[:coordinates], ("layers", extent[2], "layers")]
    for of in ("texture", "surface")[: 1 + facts.surfaces]:
        name = f"{kind}_mipmapped" if levels and of == "texture" and kind in ("1d", "2d") else kind
        for what, n, side in limits[: coordinates + facts.layered]:
            _at_most(what, n, getattr(device.properties, f"maximum_{of}{name}_{side}"))
