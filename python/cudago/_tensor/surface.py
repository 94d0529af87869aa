# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Surfaces: arrays that kernels read and write in place."""

from __future__ import annotations

from typing import TypeVar, cast

from .. import _core
from .array import OpaqueArray

__all__ = ["Surface"]

_T = TypeVar("_T", bound="Surface")


class Surface(_core.Descriptor):
    """A surface object over an array. Immutable.

    A kernel takes it by value, as ``cudaSurfaceObject_t``, and reads and writes elements with
    ``surf2Dread``, ``surf2Dwrite`` and their kin. It keeps the array, and so do launches in flight
    and graphs that have it as an argument. The driver's object is destroyed with the last of them;
    `close` ends its own part.

    Parameters
    ----------
    array : OpaqueArray
        An array that was made with ``surfaces=True``.

    Raises
    ------
    TypeError
        If `array` is no OpaqueArray.
    ValueError
        If it was not made for surfaces.

    See Also
    --------
    Texture : Reads between elements, too.

    Notes
    -----
    A kernel gives the column in bytes, the other coordinates in elements. The faces of cubemaps are
    layers, 6 of each: ``surfCubemapread`` takes their number. Writes become visible to
    textures with the next launch. Only kernels on the array's device can use it.

    References
    ----------
    ``cuSurfObjectCreate``, ``cuSurfObjectDestroy``

    Examples
    --------
    >>> array = cudago.OpaqueArray((16, 32), "float32", stream=stream, surfaces=True)
    >>> cudago.Surface(array)
    <cudago.Surface of (16, 32) float32>
    """

    __slots__ = ()

    def __new__(cls: type[_T], array: OpaqueArray) -> _T:
        """Check the array and create the object."""
        if not isinstance(array, OpaqueArray):
            raise TypeError(f"array must be an OpaqueArray, not {type(array).__name__}")
        if not array.surfaces:
            raise ValueError("array must be made with surfaces=True")
        return cast("_T", _core._surface_new(cls, array, (array.shape, array.dtype_name)))

    @property
    def array(self) -> OpaqueArray:
        """The array it was made of."""
        return cast("OpaqueArray", self._tensor)

    @property
    def handle(self) -> int:
        """The ``CUsurfObject``, as an integer."""
        return int.from_bytes(self._bytes, "little")

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.Surface: closed>"
        shape, dtype = self._facts
        return f"<cudago.Surface of {shape} {dtype}>"
