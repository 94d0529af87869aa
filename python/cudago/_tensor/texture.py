# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Textures: memory that kernels read at coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, cast

from .. import _core
from .. import _zconstants as c
from .._ordinal import device_at
from .array import FORMATS, OpaqueArray
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._memory.device import Device

__all__ = ["Texture"]

_Mode = Literal["clamp", "border", "wrap", "mirror"]
_Filter = Literal["point", "linear"]

_MODES = {
    "wrap": c.CU_TR_ADDRESS_MODE_WRAP,
    "clamp": c.CU_TR_ADDRESS_MODE_CLAMP,
    "mirror": c.CU_TR_ADDRESS_MODE_MIRROR,
    "border": c.CU_TR_ADDRESS_MODE_BORDER,
}


class _Facts(NamedTuple):
    shape: tuple[int, ...]
    channels: int
    dtype: str
    address_mode: tuple[str, ...]
    filter_mode: str
    normalized_coordinates: bool
    promote: bool
    srgb: bool


_T = TypeVar("_T", bound="Texture")


class Texture(_core.Descriptor):
    """A texture object over memory, or over an array. Immutable.

    A kernel takes it by value, as ``cudaTextureObject_t``, and reads it with ``tex1Dfetch`` or
    ``tex2D``, of an array also with ``tex1D``, ``tex3D`` or ``tex2DLayered``. It keeps the memory,
    and so do launches in flight and graphs that have it as an argument. The driver's object is
    destroyed with the last of them.

    Parameters
    ----------
    tensor : Tensor or OpaqueArray
        Device, managed or pinned memory. With one dimension, kernels read it by whole numbers, with
        ``tex1Dfetch``; with two, rows and columns, at coordinates, with ``tex2D``. The elements of
        a row lie next to each other. An array is read at coordinates, in one to three dimensions.
    channels : int, optional
        Number of channels of a tensor, 2 or 4, which are then one more dimension, the last. An
        array has its own.
    address_mode : str or tuple of str
        What coordinates beyond the bounds mean, for columns, rows and slices: "clamp", "border",
        "wrap" or "mirror"; the last two need `normalized_coordinates`. Of a tensor of one
        dimension, there are zeros.
    filter_mode : {"point", "linear"}
        Whether a read between elements takes the nearest or a mean, which needs floating-point
        reads.
    normalized_coordinates : bool
        Whether coordinates go from 0 to 1.
    promote : bool
        Whether integers of 8 and 16 bits are read as floating-point numbers up to 1.
    border : sequence of float, optional
        What the channels are beyond a border; by default 0.
    srgb : bool
        Whether promoted integers of 8 bits are colors in sRGB, and read as linear ones.

    Raises
    ------
    TypeError
        If `tensor` is no Tensor or OpaqueArray, is in ordinary host memory, or has elements that a
        texture cannot have.
    ValueError
        If one of CUDA's rules is broken, or the tensor was allocated in an open capture. The text
        says which.

    Notes
    -----
    A tensor's memory begins at a multiple of the device's ``texture_alignment``, rows are a
    multiple of ``texture_pitch_alignment`` bytes apart. Writes become visible with the next launch.

    The simulated driver has no `srgb`.

    References
    ----------
    ``cuTexObjectCreate``, ``cuTexObjectDestroy``

    Examples
    --------
    >>> import numpy as np
    >>> image = cudago.asarray(np.zeros((16, 32), "f4"), stream=stream)
    >>> cudago.Texture(image, filter_mode="linear")
    <cudago.Texture of (16, 32) float32, linear>
    """

    __slots__ = ()

    def __new__(
        cls: type[_T],
        tensor: Tensor | OpaqueArray,
        *,
        channels: Literal[2, 4] | None = None,
        address_mode: _Mode | tuple[_Mode, ...] = "clamp",
        filter_mode: _Filter = "point",
        normalized_coordinates: bool = False,
        promote: bool = False,
        border: Sequence[float] | None = None,
        srgb: bool = False,
    ) -> _T:
        """Check the values and create the object."""
        array = tensor if isinstance(tensor, OpaqueArray) else None
        if array is None and not isinstance(tensor, Tensor):
            raise TypeError(f"tensor must be a Tensor or OpaqueArray, not {type(tensor).__name__}")
        facts = _Facts(
            tensor.shape,
            _channels(tensor, channels),
            tensor.dtype_name,
            _modes(address_mode, 2 if array is None else array.ndim),
            filter_mode,
            bool(normalized_coordinates),
            bool(promote),
            bool(srgb),
        )
        _check(facts, array is not None)
        color = _color(border)
        if isinstance(tensor, OpaqueArray):
            made = _core._array_texture_new(cls, tensor, _kinds(facts, 3), color, tuple(facts))
            return cast("_T", made)
        rows = _rows(tensor, facts, device_at() if tensor.device is None else tensor.device)
        numbers = (FORMATS[facts.dtype], facts.channels, *rows)
        made = _core._texture_new(cls, tensor, numbers, _kinds(facts, 2), color, tuple(facts))
        return cast("_T", made)

    @property
    def tensor(self) -> Tensor | None:
        """The tensor it was made of, or None."""
        return self._tensor if isinstance(self._tensor, Tensor) else None

    @property
    def array(self) -> OpaqueArray | None:
        """The array it was made of, or None."""
        return self._tensor if isinstance(self._tensor, OpaqueArray) else None

    @property
    def handle(self) -> int:
        """The ``CUtexObject``, as an integer."""
        return int.from_bytes(self._bytes, "little")

    @property
    def channels(self) -> int:
        """Number of channels: 1, 2 or 4."""
        return self._all.channels

    @property
    def address_mode(self) -> tuple[str, ...]:
        """What coordinates beyond the bounds mean, for columns, rows and slices."""
        return self._all.address_mode

    @property
    def filter_mode(self) -> str:
        """Whether a read between elements takes the nearest or a mean: "point" or "linear"."""
        return self._all.filter_mode

    @property
    def normalized_coordinates(self) -> bool:
        """Whether coordinates go from 0 to 1."""
        return self._all.normalized_coordinates

    @property
    def promote(self) -> bool:
        """Whether integers of 8 and 16 bits are read as floating-point numbers up to 1."""
        return self._all.promote

    @property
    def srgb(self) -> bool:
        """Whether integers are colors in sRGB, and read as linear ones."""
        return self._all.srgb

    @property
    def _all(self) -> _Facts:
        return _Facts(*self._facts)

    def __repr__(self) -> str:
        facts = self._all
        return f"<cudago.Texture of {facts.shape} {facts.dtype}, {facts.filter_mode}>"


def _channels(tensor: Tensor | OpaqueArray, channels: int | None) -> int:
    if isinstance(tensor, OpaqueArray):
        if channels not in (None, tensor.channels):
            raise ValueError(
                f"channels must be those of the array, {tensor.channels}; got {channels}"
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
            f"channels must be 2 or 4 and the size of the last dimension, got {channels} and a "
            f"tensor of {tensor.shape}"
        )
    if rank not in (1, 2):
        raise ValueError(
            f"a texture has 1 or 2 dimensions besides its channels, the tensor is of {tensor.shape}"
        )
    return channels or 1


def _modes(given: str | tuple[str, ...], rank: int) -> tuple[str, ...]:
    modes = (given,) * rank if isinstance(given, str) else tuple(given)
    if len(modes) != rank or any(mode not in _MODES for mode in modes):
        many = ("one", "one or two", "one or three")[rank - 1]
        raise ValueError(f"address_mode must be {many} of {', '.join(_MODES)}; got {given!r}")
    return modes


def _kinds(facts: _Facts, dimensions: int) -> tuple[int, ...]:
    modes = [_MODES[mode] for mode in facts.address_mode]
    modes += [c.CU_TR_ADDRESS_MODE_CLAMP] * (dimensions - len(modes))
    return (
        *modes,
        int(facts.filter_mode == "linear"),
        int(facts.normalized_coordinates),
        int(not facts.promote),
        int(facts.srgb),
    )


def _color(border: Sequence[float] | None) -> tuple[float, float, float, float]:
    values = [float(v) for v in border or ()]
    if len(values) > 4:
        raise ValueError(f"border must have at most 4 numbers, got {len(values)}")
    values += [0.0] * (4 - len(values))
    return values[0], values[1], values[2], values[3]


def _check(facts: _Facts, of_array: bool) -> None:
    """Check what does not depend on the device."""
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
    fetched = not of_array and len(facts.shape) - (facts.channels > 1) == 1
    if fetched and (facts.filter_mode == "linear" or facts.normalized_coordinates):
        raise ValueError(
            "a texture of one dimension is read by whole numbers, without filters and normalized "
            "coordinates: make it one of two dimensions, with one row"
        )


def _rows(tensor: Tensor, facts: _Facts, device: Device) -> tuple[int, int, int]:
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
