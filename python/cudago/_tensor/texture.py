# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Textures: memory that kernels read at coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar, cast

from .. import _core
from .._ordinal import device_at
from .array import OpaqueArray
from .array_shape import FORMATS
from .mipmap import MipmappedArray
from .tensor import Tensor
from .texture_rules import Facts, channel_count, check, color, kinds, levels_of, modes_of, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Texture"]

_Mode = Literal["clamp", "border", "wrap", "mirror"]
_Filter = Literal["point", "linear"]

_T = TypeVar("_T", bound="Texture")


class Texture(_core.Descriptor):
    """A texture object over memory, or over an array. Immutable.

    A kernel takes it by value, as ``cudaTextureObject_t``, and reads it with ``tex1Dfetch`` or
    ``tex2D``, of an array also with ``tex1D``, ``tex3D`` or ``tex2DLayered``, of a mipmapped one
    with ``tex2DLod`` or ``tex2DGrad``, of a cubemap with ``texCubemap``. It keeps the memory, and
    so do launches in flight and graphs that have it as an argument. The driver's object is
    destroyed with the last of them; `close` ends its own part.

    Parameters
    ----------
    tensor : Tensor, OpaqueArray or MipmappedArray
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
        Whether coordinates go from 0 to 1; those of a mipmapped array and of a cubemap must.
    promote : bool
        Whether integers of 8 and 16 bits are read as floating-point numbers up to 1.
    border : sequence of float, optional
        What the channels are beyond a border; by default 0.
    srgb : bool
        Whether promoted unsigned integers of 8 bits are colors in sRGB, and read as linear ones;
        the fourth channel is none.
    seamless_cubemap : bool
        Whether a filter goes on beyond the edges of a cubemap's faces, for which there is no
        `address_mode` then.
    mipmap_filter_mode : {"point", "linear"}
        Whether a read between two levels of a mipmapped array takes the nearer one or a mean of
        both, which needs floating-point reads.
    mipmap_level_bias : float
        What is added to the level that a kernel asks for.
    min_mipmap_level_clamp : float
        The least level that is read.
    max_mipmap_level_clamp : float, optional
        The greatest level that is read; by default the last.

    Raises
    ------
    TypeError
        If `tensor` is no Tensor, OpaqueArray or MipmappedArray, is in ordinary host memory, or has
        elements that a texture cannot have.
    ValueError
        If one of CUDA's rules is broken, or the tensor was allocated in an open capture. The text
        says which.

    Notes
    -----
    A tensor's memory begins at a multiple of the device's ``texture_alignment``, rows are a
    multiple of ``texture_pitch_alignment`` bytes apart. Writes become visible with the next launch.

    The driver's object is one device's: only kernels on the device of the memory can use it, of
    pinned memory those on the device of its pool or, without one, on device 0, whatever other
    devices have access.

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
        tensor: Tensor | OpaqueArray | MipmappedArray,
        *,
        channels: Literal[2, 4] | None = None,
        address_mode: _Mode | tuple[_Mode, ...] = "clamp",
        filter_mode: _Filter = "point",
        normalized_coordinates: bool = False,
        promote: bool = False,
        border: Sequence[float] | None = None,
        srgb: bool = False,
        seamless_cubemap: bool = False,
        mipmap_filter_mode: _Filter = "point",
        mipmap_level_bias: float = 0.0,
        min_mipmap_level_clamp: float = 0.0,
        max_mipmap_level_clamp: float | None = None,
    ) -> _T:
        """Check the values and create the object."""
        if not isinstance(tensor, (Tensor, OpaqueArray, MipmappedArray)):
            raise TypeError(
                "tensor must be a Tensor, OpaqueArray or MipmappedArray, not "
                f"{type(tensor).__name__}"
            )
        levels = levels_of(
            tensor.level_count if isinstance(tensor, MipmappedArray) else 0,
            mipmap_filter_mode,
            mipmap_level_bias,
            min_mipmap_level_clamp,
            max_mipmap_level_clamp,
        )
        facts = Facts(
            tensor.shape,
            channel_count(tensor, channels),
            tensor.dtype_name,
            modes_of(address_mode, 2 if isinstance(tensor, Tensor) else tensor.ndim),
            filter_mode,
            bool(normalized_coordinates),
            bool(promote),
            bool(srgb),
            bool(seamless_cubemap),
            levels,
        )
        check(facts, None if isinstance(tensor, Tensor) else tensor)
        beyond = color(border)
        if isinstance(tensor, Tensor):
            at = rows(tensor, facts, device_at() if tensor.device is None else tensor.device)
            numbers = (FORMATS[facts.dtype], facts.channels, *at)
            made = _core._texture_new(cls, tensor, numbers, kinds(facts, 2), beyond, tuple(facts))
            return cast("_T", made)
        more = ((int(levels.mode == "linear"), *levels[2:]),) if levels.number else ()
        made = _core._array_texture_new(
            cls, tensor, (*kinds(facts, 3), int(facts.seamless)), beyond, tuple(facts), *more
        )
        return cast("_T", made)

    @property
    def tensor(self) -> Tensor | None:
        """The tensor it was made of, or None."""
        return self._tensor if isinstance(self._tensor, Tensor) else None

    @property
    def array(self) -> OpaqueArray | MipmappedArray | None:
        """The array it was made of, or None."""
        of = self._tensor
        return of if isinstance(of, (OpaqueArray, MipmappedArray)) else None

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
    def seamless_cubemap(self) -> bool:
        """Whether a filter goes on beyond the edges of a cubemap's faces."""
        return self._all.seamless

    @property
    def mipmap_filter_mode(self) -> str:
        """Whether a read between two levels takes the nearer or a mean: "point" or "linear"."""
        return self._all.levels.mode

    @property
    def mipmap_level_bias(self) -> float:
        """What is added to the level that a kernel asks for."""
        return self._all.levels.bias

    @property
    def min_mipmap_level_clamp(self) -> float:
        """The least level that is read."""
        return self._all.levels.low

    @property
    def max_mipmap_level_clamp(self) -> float:
        """The greatest level that is read; 0 of what has no levels."""
        return self._all.levels.high

    @property
    def _all(self) -> Facts:
        return Facts(*self._facts)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.Texture: closed>"
        facts = self._all
        return f"<cudago.Texture of {facts.shape} {facts.dtype}, {facts.filter_mode}>"
