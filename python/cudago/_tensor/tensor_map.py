# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: what a kernel's bulk tensor copies are told of a tensor."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, cast

from .. import _core
from .. import _zconstants as c
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import SupportsIndex

    from ..typing import Dims

__all__ = ["TensorMap"]

_Swizzle = Literal[
    "none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"
]
_Interleave = Literal["none", "16B", "32B"]
_Promotion = Literal["none", "64B", "128B", "256B"]
_Fill = Literal["zeros", "nan"]
_DataType = Literal["float32_ftz", "tfloat32", "tfloat32_ftz"]

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
_SWIZZLES = {
    "none": c.CU_TENSOR_MAP_SWIZZLE_NONE,
    "32B": c.CU_TENSOR_MAP_SWIZZLE_32B,
    "64B": c.CU_TENSOR_MAP_SWIZZLE_64B,
    "128B": c.CU_TENSOR_MAP_SWIZZLE_128B,
    "128B_atom_32B": c.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
    "128B_atom_32B_flip_8B": c.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
    "128B_atom_64B": c.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
}
_INTERLEAVES = {
    "none": c.CU_TENSOR_MAP_INTERLEAVE_NONE,
    "16B": c.CU_TENSOR_MAP_INTERLEAVE_16B,
    "32B": c.CU_TENSOR_MAP_INTERLEAVE_32B,
}
_PROMOTIONS = {
    "none": c.CU_TENSOR_MAP_L2_PROMOTION_NONE,
    "64B": c.CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
    "128B": c.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    "256B": c.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
}
_FILLS = {
    "zeros": c.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    "nan": c.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
}
# The longest row of a box, in bytes, by the beginning of the swizzle's name.
_SPANS = {"32": 32, "64": 64, "128": 128}

# The rules below are those of cuTensorMapEncodeTiled in cuda.h, CUDA 13.5.
_MOST_DIMENSIONS = 5
_MOST_ELEMENTS = 1 << 31
_MOST_STRIDE = 1 << 40
_MOST_BOX = 256
_MOST_STEP = 8
_MOST_PIXELS = 1024


class _Facts(NamedTuple):
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
    columns: tuple[tuple[int, ...], tuple[int, ...], int, int] | None = None


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
    ``cuTensorMapEncodeTiled``, ``cuTensorMapEncodeIm2col``

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
        if not 1 <= rank <= _MOST_DIMENSIONS:
            raise ValueError(
                f"a tensor map has 1 to {_MOST_DIMENSIONS} dimensions, the tensor {rank}"
            )
        kinds = (data_type, interleave, swizzle, l2_promotion, oob_fill)
        sizes = _sizes("box", box, rank, _MOST_BOX)
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
        rank = len(tensor.shape)
        if not 3 <= rank <= _MOST_DIMENSIONS:
            raise ValueError(f"a map of columns has 3 to 5 dimensions, the tensor {rank}")
        (channels,) = _sizes("channels_per_pixel", channels_per_pixel, 1, _MOST_BOX)
        (pixels,) = _sizes("pixels_per_column", pixels_per_column, 1, _MOST_PIXELS)
        columns = (
            _corner("lower_corner", lower_corner, rank - 2),
            _corner("upper_corner", upper_corner, rank - 2),
            channels,
            pixels,
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
            return facts.columns[2] * facts.columns[3] * facts.itemsize
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
    def _all(self) -> _Facts:
        return _Facts(*self._facts)

    def __bytes__(self) -> bytes:
        return self._bytes

    def __repr__(self) -> str:
        facts = self._all
        text = f"<cudago.TensorMap of {facts.shape} {facts.data_type}, "
        if facts.columns:
            lower, upper, channels, pixels = facts.columns
            text += f"corners {lower} and {upper}, {channels} channels of {pixels} pixels"
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
    columns: tuple[tuple[int, ...], tuple[int, ...], int, int] | None,
) -> _T:
    data_type, interleave, swizzle, l2_promotion, oob_fill = kinds
    codes = (
        _type_number(tensor, data_type),
        _choice("interleave", _INTERLEAVES, interleave),
        _choice("swizzle", _SWIZZLES, swizzle),
        _choice("l2_promotion", _PROMOTIONS, l2_promotion),
        _choice("oob_fill", _FILLS, oob_fill),
    )
    steps = 1 if element_strides is None else element_strides
    facts = _Facts(
        tensor.shape,
        _strides(tensor),
        tensor.itemsize,
        box,
        _sizes("element_strides", steps, len(tensor.shape), _MOST_STEP),
        data_type or _name(tensor),
        interleave,
        swizzle,
        l2_promotion,
        oob_fill,
        columns,
    )
    _check(facts, int(tensor.ptr))
    numbers: tuple[tuple[object, ...], ...] = (
        facts.shape[::-1],
        facts.strides[-2::-1],
        (1,) * len(box) if columns else box[::-1],
        facts.element_strides[::-1],
    )
    if columns:
        # From the innermost dimension outwards, as CUTLASS calls it: whd.
        corners = [(*c[::-1], *[0] * (3 - len(c))) for c in columns[:2]]
        numbers = (*numbers, (*corners, *columns[2:]))
    return cast("_T", _core._tensor_map_new(cls, tensor, codes, numbers, tuple(facts)))


def _corner(parameter: str, value: Dims, rank: int) -> tuple[int, ...]:
    given: Sequence[SupportsIndex]
    if isinstance(value, (tuple, list)):
        given = cast("Sequence[SupportsIndex]", value)
    else:
        given = (cast("SupportsIndex", value),) * rank
    try:
        corner = tuple(operator.index(n) for n in given)
    except TypeError:
        raise TypeError(f"{parameter} must be an int or a tuple of ints, got {value!r}") from None
    most = (1 << 15, 1 << 7, 1 << 4)[rank - 1]
    if len(corner) != rank or any(not -most <= n < most for n in corner):
        raise ValueError(
            f"{parameter} must have {rank} numbers of {-most} to {most - 1}, got {corner}"
        )
    return corner


def _name(tensor: Tensor) -> str:
    return tensor.dtype_name


def _type_number(tensor: Tensor, data_type: str | None) -> int:
    """Return CUDA's number for the elements' type."""
    name = _name(tensor)
    if data_type is not None:
        number = _choice("data_type", _CHANGED, data_type)
        if name != "float32":
            raise ValueError(f"data_type {data_type!r} needs elements of type float32, got {name}")
        return number
    if name not in _TYPES:
        raise TypeError(
            f"a tensor map cannot describe elements of type {name}: view them as another type of "
            f"1, 2, 4 or 8 bytes"
        )
    return _TYPES[name]


def _choice(parameter: str, choices: Mapping[str, int], value: str) -> int:
    if not isinstance(value, str):
        raise TypeError(f"{parameter} must be a str, not {type(value).__name__}")
    if value not in choices:
        raise ValueError(
            f"{parameter} must be one of {', '.join(map(repr, choices))}; got {value!r}"
        )
    return choices[value]


def _sizes(parameter: str, value: Dims, rank: int, most: int) -> tuple[int, ...]:
    """Return one number for each dimension."""
    given: Sequence[SupportsIndex]
    if isinstance(value, (tuple, list)):
        given = cast("Sequence[SupportsIndex]", value)
    else:
        given = (cast("SupportsIndex", value),) * (1 if parameter == "box" else rank)
    try:
        sizes = tuple(operator.index(n) for n in given)
    except TypeError:
        raise TypeError(f"{parameter} must be an int or a tuple of ints, got {value!r}") from None
    if len(sizes) != rank:
        raise ValueError(
            f"{parameter} must have a number for each of the tensor's {rank} dimensions, "
            f"got {len(sizes)}"
        )
    for n in sizes:
        if not 1 <= n <= most:
            raise ValueError(f"{parameter} must be 1 to {most} in each dimension, got {sizes}")
    return sizes


def _strides(tensor: Tensor) -> tuple[int, ...]:
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


def _check(facts: _Facts, address: int) -> None:
    """Check the rules about the tensor and the box."""
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


def _check_box(facts: _Facts) -> None:
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


_core._set_class("Descriptor", TensorMap)
