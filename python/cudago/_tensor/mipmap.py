# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Mipmapped arrays: an array and smaller ones, between which textures choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar, cast

from .. import _core
from .._native import number_text, whole
from .._ordinal import device_at
from .._stream.stream import stream_of
from .array import OpaqueArray
from .array_shape import FORMATS, Facts, count, described, limit, most_levels, of_level, rank

if TYPE_CHECKING:
    from .._memory.device import Device
    from ..typing import Dims, StreamLike

__all__ = ["MipmappedArray"]

_T = TypeVar("_T", bound="MipmappedArray")


class MipmappedArray(_core.MipmappedArray):
    """An array and smaller ones of the same content: its levels.

    Each level is half as wide, high and deep as the one before, and has as many layers and faces.
    Kernels read all of it through a `Texture`, with ``tex2DLod`` or ``tex2DGrad`` and their kin.
    Copies and surfaces reach one level at a time, which is an `OpaqueArray`.

    Parameters
    ----------
    shape : int or tuple of int
        That of level 0, as for an `OpaqueArray`.
    dtype : str or numpy.dtype
        Type of a channel: an integer of 8, 16 or 32 bits, float16 or float32.
    stream : Stream
        A stream of the device whose memory it is. Work in it is done when the memory is given back.
    level_count : int, optional
        Number of levels; by default as many as halve the sizes until all are 1, which is the most.
    channels : int, optional
        Number of channels, 2 or 4.
    layered : bool
        Whether the first dimension counts layers, between which no filter takes means.
    cubemap : bool
        Whether it has the 6 faces of a cube, of which a direction names one and a place on it: one
        more dimension before rows, in the order +x, -x, +y, -y, +z and -z. With `layered`, several
        cubes. Faces are square.
    surfaces : bool
        Whether a `Surface` can be made of a level.

    Raises
    ------
    TypeError
        If an array cannot have elements of `dtype`.
    ValueError
        If an array cannot have `shape` or so many levels, or the stream is capturing.

    See Also
    --------
    OpaqueArray : One alone.
    Texture : Reads it at coordinates.

    Notes
    -----
    A new array can be used in every stream at once; its content is undefined. Its memory is given
    back once its stream and all others that used a level have come past their work with it.

    References
    ----------
    ``cuMipmappedArrayCreate``, ``cuMipmappedArrayDestroy``

    Examples
    --------
    >>> import numpy as np
    >>> array = cudago.MipmappedArray((16, 32), "float32", stream=stream)
    >>> array
    <cudago.MipmappedArray of (16, 32) float32, 6 levels, on device 0>
    >>> array.get_level(1).copy_from(np.ones((8, 16), "f4"), stream=stream)
    >>> array.close()
    """

    __slots__ = ()

    def __new__(
        cls: type[_T],
        shape: Dims,
        dtype: Any,
        *,
        stream: StreamLike,
        level_count: SupportsIndex | None = None,
        channels: Literal[2, 4] | None = None,
        layered: bool = False,
        cubemap: bool = False,
        surfaces: bool = False,
    ) -> _T:
        """Check the values and create the array."""
        facts, extent, size = described(shape, dtype, channels, (layered, cubemap, surfaces))
        most = most_levels(facts)
        levels = most if level_count is None else whole(level_count, "level_count")
        if not 1 <= levels <= most:
            raise ValueError(
                f"level_count must be 1 to {most} for an array of {facts.shape}, got "
                f"{number_text(levels)}"
            )
        on = stream_of(stream)
        limit(facts, extent, on.device, levels=True)
        nbytes = size * sum(count(of_level(facts, i).shape) for i in range(levels))
        numbers = (
            *(FORMATS[facts.dtype], facts.channels, *extent),
            *(*facts[3:], levels),
        )
        made = _core._array_new(cls, on, numbers, nbytes, (*facts, levels, size))
        return cast("_T", made)

    def get_level(self, level: SupportsIndex) -> OpaqueArray:
        """Return a level as an array, for copies and surfaces.

        Parameters
        ----------
        level : int
            Its number; that of the largest is 0.

        Returns
        -------
        OpaqueArray
            A view: it keeps the memory of all levels, also once this array is closed.

        Raises
        ------
        IndexError
            If there is no such level.

        References
        ----------
        ``cuMipmappedArrayGetLevel``
        """
        number, levels = whole(level, "level"), self.level_count
        if not 0 <= number < levels:
            raise IndexError(f"level must be 0 to {levels - 1}, got {number_text(number)}")
        facts = of_level(self._all, number)
        nbytes = self._facts[-1] * count(facts.shape)
        made = _core._array_level(OpaqueArray, self, number, nbytes, tuple(facts))
        return cast("OpaqueArray", made)

    @property
    def device(self) -> Device:
        """The device that has the memory."""
        return device_at(self._ordinal)

    @property
    def level_count(self) -> int:
        """Number of levels."""
        levels: int = self._facts[-2]
        return levels

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tensor with the same content as level 0."""
        return self._all.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions that have coordinates: 1, 2 or 3; 2 of a face of a cubemap."""
        return rank(self._all)

    @property
    def channels(self) -> int:
        """Number of channels: 1, 2 or 4."""
        return self._all.channels

    @property
    def dtype_name(self) -> str:
        """The type of a channel, such as "float32"."""
        return self._all.dtype

    @property
    def layered(self) -> bool:
        """Whether the first dimension counts layers."""
        return self._all.layered

    @property
    def cubemap(self) -> bool:
        """Whether it has the 6 faces of a cube."""
        return self._all.cubemap

    @property
    def surfaces(self) -> bool:
        """Whether a `Surface` can be made of a level."""
        return self._all.surfaces

    @property
    def _all(self) -> Facts:
        return Facts(*self._facts[:-2])

    def __repr__(self) -> str:
        facts, levels = self._all, self.level_count
        more = ", layered" * facts.layered + ", cubemap" * facts.cubemap
        more += ", closed" * self.is_closed
        many = f"{levels} level" + "s" * (levels > 1)
        return (
            f"<cudago.MipmappedArray of {facts.shape} {facts.dtype}, {many}, on device "
            f"{self._ordinal}{more}>"
        )
