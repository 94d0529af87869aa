# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: what a kernel's bulk tensor copies are told of a tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from .. import _core
from .tensor import Tensor
from .tensor_map_rules import (
    FILLS,
    INTERLEAVES,
    MOST_BOX,
    MOST_DIMENSIONS,
    MOST_PIXELS,
    MOST_STEP,
    PROMOTIONS,
    SWIZZLES,
    WIDE,
    Columns,
    Facts,
    check,
    choice,
    corner,
    images,
    name_of,
    numbers_of,
    sizes_of,
    strides_of,
    type_number,
)

if TYPE_CHECKING:
    from ..typing import Dims

__all__ = ["TensorMap"]

_Swizzle = Literal[
    "none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"
]
_Interleave = Literal["none", "16B", "32B"]
_Promotion = Literal["none", "64B", "128B", "256B"]
_Fill = Literal["zeros", "nan"]
_DataType = Literal["float32_ftz", "tfloat32", "tfloat32_ftz"]

_T = TypeVar("_T", bound="TensorMap")


class TensorMap(_core.Descriptor):
    """A description of a tensor for the bulk tensor copies (TMA) of kernels. Immutable.

    A kernel takes it by value, as ``const __grid_constant__ CUtensorMap map``, and copies boxes of
    the tensor to and from shared memory with ``cp.async.bulk.tensor``. It keeps the tensor's
    memory, and so do launches in flight and graphs that have it as an argument.

    Parameters
    ----------
    tensor : Tensor
        Device, managed or pinned memory, in 1 to 5 dimensions. Elements of the last one lie next to
        each other.
    box : int or tuple of int
        What one copy traverses, in elements of each dimension: 1 to 256. Without `interleave`, a
        row of the box is a multiple of 16 bytes.
    element_strides : int or tuple of int, optional
        Of so many elements of the box, one is copied: 1 to 8 for each dimension; by default 1.
        Without `interleave`, that of the last dimension must be 1.
    data_type : {"float32_ftz", "tfloat32", "tfloat32_ftz"}, optional
        How float32 elements change when they are copied; by default no element does.
    interleave : {"none", "16B", "32B"}
        Layout of channels, for at least 3 dimensions.
    swizzle : str
        Order of a box's bytes in shared memory: "none", "32B", "64B", "128B", "128B_atom_32B",
        "128B_atom_32B_flip_8B" or "128B_atom_64B". The last three need CUDA 12.8. Without
        `interleave`, a row of the box is at most as long as the name says.
    l2_promotion : {"none", "64B", "128B", "256B"}
        How much the L2 cache fetches at once.
    oob_fill : {"zeros", "nan"}
        What is read beyond the tensor's bounds: zeros, or for floating-point elements NaN.

    Raises
    ------
    TypeError
        If `tensor` is no Tensor, is in ordinary host memory, or has elements that a map cannot
        describe.
    ValueError
        If one of CUDA's rules is broken. The text says which.
    UnsupportedError
        If the device's compute capability is less than 9.0, the driver has no tensor maps, or the
        simulated driver does not simulate such a map.

    Notes
    -----
    Dimensions are in the tensor's order, so `box` is like the shape. CUDA's own order, which the
    coordinates of instructions have too, is the reverse: ``{x, y}`` is column and row. The first
    of them must be at a multiple of 16 bytes: else the kernel ends with an illegal instruction.

    Making one waits for nothing. ``bytes(map)`` are its 128
    bytes, for a structure that contains one: they do not keep the memory.

    On the simulated driver there are no interleaved layouts, no `data_type`, no swizzle of atoms,
    and rows of a box with a swizzle are as long as the name says.

    References
    ----------
    ``cuTensorMapEncodeTiled``, ``cuTensorMapEncodeIm2col``, ``cuTensorMapEncodeIm2colWide``

    Examples
    --------
    >>> m = cudago.TensorMap(x, box=(16, 32))  # doctest: +SKIP
    >>> m.box_nbytes  # what mbarrier.arrive.expect_tx is told  # doctest: +SKIP
    2048
    """

    __slots__ = ()

    def __new__(
        cls: type[_T],
        tensor: Tensor,
        box: Dims,
        *,
        element_strides: Dims | None = None,
        data_type: _DataType | None = None,
        interleave: _Interleave = "none",
        swizzle: _Swizzle = "none",
        l2_promotion: _Promotion = "none",
        oob_fill: _Fill = "zeros",
    ) -> _T:
        """Check the values and encode the map."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"tensor must be a Tensor, not {type(tensor).__name__}")
        rank = len(tensor.shape)
        if not 1 <= rank <= MOST_DIMENSIONS:
            raise ValueError(
                f"a tensor map has 1 to {MOST_DIMENSIONS} dimensions, the tensor {rank}"
            )
        kinds = (data_type, interleave, swizzle, l2_promotion, oob_fill)
        sizes = sizes_of("box", box, rank, MOST_BOX)
        return _made(cls, tensor, sizes, element_strides, kinds, None)

    @classmethod
    def from_im2col(
        cls: type[_T],
        tensor: Tensor,
        lower_corner: Dims,
        upper_corner: Dims,
        *,
        channels_per_pixel: int,
        pixels_per_column: int,
        element_strides: Dims | None = None,
        data_type: _DataType | None = None,
        interleave: _Interleave = "none",
        swizzle: _Swizzle = "none",
        l2_promotion: _Promotion = "none",
        oob_fill: _Fill = "zeros",
    ) -> _T:
        """Describe a tensor for the copies of a convolution, in im2col mode.

        Parameters
        ----------
        tensor : Tensor
            Images of 1 to 3 dimensions, with channels last: 3 to 5 dimensions, such as NHWC.
        lower_corner, upper_corner : int or tuple of int
            Offsets of the bounding box of pixels from the first and from the last pixel, in the
            tensor's order of dimensions (D, H, W). In one dimension they are -32768 to 32767, in
            two -128 to 127, in three -16 to 15.
        channels_per_pixel : int
            Channels that are copied of each pixel: 1 to 256.
        pixels_per_column : int
            Pixels of one copy: 1 to 1024.
        element_strides : int or tuple of int, optional
            As for tiles.
        data_type : {"float32_ftz", "tfloat32", "tfloat32_ftz"}, optional
            As for tiles.
        interleave : {"none", "16B", "32B"}
            As for tiles.
        swizzle : str
            As for tiles.
        l2_promotion : {"none", "64B", "128B", "256B"}
            As for tiles.
        oob_fill : {"zeros", "nan"}
            As for tiles.

        Returns
        -------
        TensorMap
            Its `box` has a one for each dimension, and the channels of a pixel.

        Raises
        ------
        ValueError
            If one of CUDA's rules is broken. The text says which.
        UnsupportedError
            As for tiles.

        Notes
        -----
        The simulated driver makes such a map, and refuses kernels with the copies that use one.

        References
        ----------
        ``cuTensorMapEncodeIm2col``
        """
        if not isinstance(tensor, Tensor):
            raise TypeError(f"tensor must be a Tensor, not {type(tensor).__name__}")
        rank = images(tensor)
        (channels,) = sizes_of("channels_per_pixel", channels_per_pixel, 1, MOST_BOX)
        (pixels,) = sizes_of("pixels_per_column", pixels_per_column, 1, MOST_PIXELS)
        columns = Columns(
            corner("lower_corner", lower_corner, rank - 2),
            corner("upper_corner", upper_corner, rank - 2),
            channels,
            pixels,
        )
        kinds = (data_type, interleave, swizzle, l2_promotion, oob_fill)
        return _made(cls, tensor, (1,) * (rank - 1) + (channels,), element_strides, kinds, columns)

    @classmethod
    def from_im2col_wide(
        cls: type[_T],
        tensor: Tensor,
        lower_corner: int,
        upper_corner: int,
        *,
        channels_per_pixel: int,
        pixels_per_column: int | None = None,
        mode: Literal["W", "W128"] = "W",
        element_strides: Dims | None = None,
        data_type: _DataType | None = None,
        interleave: _Interleave = "none",
        swizzle: _Swizzle = "128B",
        l2_promotion: _Promotion = "none",
        oob_fill: _Fill = "zeros",
    ) -> _T:
        """Describe a tensor for copies of a convolution that go along the width alone.

        Parameters
        ----------
        tensor : Tensor
            Images of 1 to 3 dimensions, with channels last: 3 to 5 dimensions, such as NHWC.
        lower_corner, upper_corner : int
            Offsets of the bounding box from the first and from the last pixel of a row: -32768 to
            32767.
        channels_per_pixel : int
            Channels that are copied of each pixel: 1 to 256.
        pixels_per_column : int, optional
            Pixels of one copy: 1 to 1024. With "W128" there are 128, and this must be left out.
        mode : {"W", "W128"}
            Whether copies are those of ``.im2col::w`` or of ``.im2col::w::128``.
        element_strides : int or tuple of int, optional
            As for tiles.
        data_type : {"float32_ftz", "tfloat32", "tfloat32_ftz"}, optional
            As for tiles.
        interleave : {"none", "16B", "32B"}
            As for tiles.
        swizzle : {"64B", "128B", "128B_atom_32B"}
            As for tiles.
        l2_promotion : {"none", "64B", "128B", "256B"}
            As for tiles.
        oob_fill : {"zeros", "nan"}
            As for tiles.

        Returns
        -------
        TensorMap
            Its `box` is as for `from_im2col`. Its `box_nbytes` are without a halo.

        Raises
        ------
        ValueError
            If one of CUDA's rules is broken. The text says which.
        UnsupportedError
            If the device's compute capability is less than 10.0, or the driver's CUDA older than
            12.8.

        Notes
        -----
        The simulated driver makes such a map, and refuses kernels with the copies that use one.

        References
        ----------
        ``cuTensorMapEncodeIm2colWide``
        """
        if not isinstance(tensor, Tensor):
            raise TypeError(f"tensor must be a Tensor, not {type(tensor).__name__}")
        rank = images(tensor)
        wide = choice("mode", WIDE, mode) == WIDE["W128"]
        if wide != (pixels_per_column is None):
            raise ValueError(
                "pixels_per_column must be given with mode 'W', and left out with 'W128', which "
                "has 128"
            )
        (channels,) = sizes_of("channels_per_pixel", channels_per_pixel, 1, MOST_BOX)
        given = 128 if pixels_per_column is None else pixels_per_column
        (pixels,) = sizes_of("pixels_per_column", given, 1, MOST_PIXELS)
        columns = Columns(
            corner("lower_corner", lower_corner, 1),
            corner("upper_corner", upper_corner, 1),
            channels,
            pixels,
            mode,
        )
        kinds = (data_type, interleave, swizzle, l2_promotion, oob_fill)
        return _made(cls, tensor, (1,) * (rank - 1) + (channels,), element_strides, kinds, columns)

    @property
    def tensor(self) -> Tensor | None:
        """The tensor it was made of; None in a graph that keeps memory of its own capture."""
        return cast("Tensor | None", self._tensor)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return self._all.shape

    @property
    def box(self) -> tuple[int, ...]:
        """What one copy traverses, in elements of each dimension."""
        return self._all.box

    @property
    def element_strides(self) -> tuple[int, ...]:
        """Of how many elements of each dimension of the box one is copied."""
        return self._all.element_strides

    @property
    def box_nbytes(self) -> int:
        """Size in bytes of what one copy moves, bytes beyond the tensor's bounds included."""
        facts = self._all
        if facts.columns:
            return facts.columns.channels * facts.columns.pixels * facts.itemsize
        counts = (-(-n // step) for n, step in zip(facts.box, facts.element_strides, strict=True))
        return math.prod(counts) * facts.itemsize

    @property
    def data_type(self) -> str:
        """What elements are copied as."""
        return self._all.data_type

    @property
    def interleave(self) -> str:
        """Layout of channels: "none", "16B" or "32B"."""
        return self._all.interleave

    @property
    def swizzle(self) -> str:
        """Order of a box's bytes in shared memory."""
        return self._all.swizzle

    @property
    def l2_promotion(self) -> str:
        """How much the L2 cache fetches at once: "none", "64B", "128B" or "256B"."""
        return self._all.l2_promotion

    @property
    def oob_fill(self) -> str:
        """What is read beyond the tensor's bounds: "zeros" or "nan"."""
        return self._all.oob_fill

    @property
    def _all(self) -> Facts:
        return Facts(*self._facts)

    def __bytes__(self) -> bytes:
        return self._bytes

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.TensorMap: closed>"
        facts = self._all
        text = f"<cudago.TensorMap of {facts.shape} {facts.data_type}, "
        if facts.columns:
            lower, upper, channels, pixels, mode = facts.columns
            text += f"corners {lower} and {upper}, {channels} channels of {pixels} pixels"
            if mode:
                text += f", wide {mode}"
        else:
            text += f"box {facts.box}"
        if facts.swizzle != "none":
            text += f", swizzle {facts.swizzle}"
        if facts.interleave != "none":
            text += f", interleave {facts.interleave}"
        return text + ">"


def _made(
    cls: type[_T],
    tensor: Tensor,
    box: tuple[int, ...],
    element_strides: Dims | None,
    kinds: tuple[_DataType | None, str, str, str, str],
    columns: Columns | None,
) -> _T:
    data_type, interleave, swizzle, l2_promotion, oob_fill = kinds
    codes = (
        type_number(tensor, data_type),
        choice("interleave", INTERLEAVES, interleave),
        choice("swizzle", SWIZZLES, swizzle),
        choice("l2_promotion", PROMOTIONS, l2_promotion),
        choice("oob_fill", FILLS, oob_fill),
    )
    steps = 1 if element_strides is None else element_strides
    facts = Facts(
        tensor.shape,
        strides_of(tensor),
        tensor.itemsize,
        box,
        sizes_of("element_strides", steps, len(tensor.shape), MOST_STEP),
        data_type or name_of(tensor),
        interleave,
        swizzle,
        l2_promotion,
        oob_fill,
        columns,
    )
    check(facts, int(tensor.ptr))
    return cast("_T", _core._tensor_map_new(cls, tensor, codes, numbers_of(facts), tuple(facts)))


_core._set_class("Descriptor", TensorMap)
