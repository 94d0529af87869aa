# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA arrays: memory in a layout for textures and surfaces."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from .. import _core
from .. import _zconstants as c
from .._memory.buffer import Buffer
from .._ordinal import device_at
from .._stream.stream import stream_of
from .copy import _bytes_from
from .creation import _shape
from .operand import as_target, as_tensor
from .tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    from .._memory.device import Device
    from .._stream.stream import Stream
    from ..typing import Dims, StreamLike

__all__ = ["OpaqueArray"]

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


class _Facts(NamedTuple):
    shape: tuple[int, ...]
    channels: int
    dtype: str
    layered: bool
    surfaces: bool


_T = TypeVar("_T", bound="OpaqueArray")


class OpaqueArray(_core.OpaqueArray):
    """Memory of a device in a layout that only the driver knows: a CUDA array.

    It has no address. Copies fill and read it as a whole; kernels read it through a `Texture` and
    write it through a `Surface`, which keep it, as do launches in flight and graphs that use it.

    Parameters
    ----------
    shape : int or tuple of int
        Elements, the columns last, as of a tensor with the same content: ``(columns,)``,
        ``(rows, columns)`` or ``(slices, rows, columns)``. With `channels`, these are one more
        dimension, the last; with `layered`, layers are the first.
    dtype : str or numpy.dtype
        Type of a channel: an integer of 8, 16 or 32 bits, float16 or float32.
    stream : Stream
        A stream of the device whose memory it is. Work in it is done when the memory is given back.
    channels : int, optional
        Number of channels, 2 or 4.
    layered : bool
        Whether the first dimension counts layers, between which no filter takes means.
    surfaces : bool
        Whether a `Surface` can be made of it.

    Raises
    ------
    TypeError
        If an array cannot have elements of `dtype`.
    ValueError
        If an array cannot have `shape`, or the stream is capturing.

    See Also
    --------
    Texture : Reads it at coordinates.
    Surface : Reads and writes its elements.

    Notes
    -----
    A new array can be used in every stream at once; its content is undefined. Its memory is given
    back once its stream and all others that used it have come past their work with it.

    References
    ----------
    ``cuArray3DCreate``, ``cuArrayDestroy``

    Examples
    --------
    >>> import numpy as np
    >>> array = cudago.OpaqueArray((16, 32), "float32", stream=stream)
    >>> array.copy_from(np.ones((16, 32), "f4"), stream=stream)
    >>> array
    <cudago.OpaqueArray of (16, 32) float32 on device 0>
    >>> array.close()
    """

    __slots__ = ()

    def __new__(
        cls: type[_T],
        shape: Dims,
        dtype: Any,
        *,
        stream: StreamLike,
        channels: Literal[2, 4] | None = None,
        layered: bool = False,
        surfaces: bool = False,
    ) -> _T:
        """Check the values and create the array."""
        name, bits = _core._dtype(dtype)
        sizes = tuple(index(n) for n in _shape(shape))
        facts = _Facts(sizes, channels or 1, name, bool(layered), bool(surfaces))
        extent = _extent(facts, channels)
        on = stream_of(stream)
        _limit(facts, extent, on.device)
        nbytes = bits // 8
        for n in facts.shape:
            nbytes *= n
        numbers = (FORMATS[name], facts.channels, *extent, facts.layered, facts.surfaces)
        made = _core._array_new(cls, on, numbers, nbytes, tuple(facts))
        return cast("_T", made)

    @property
    def device(self) -> Device:
        """The device that has the memory."""
        return device_at(self._ordinal)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tensor with the same content."""
        return self._all.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions that have coordinates: 1, 2 or 3."""
        return _rank(self._all)

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
    def surfaces(self) -> bool:
        """Whether a `Surface` can be made of it."""
        return self._all.surfaces

    def copy_from(self, src: Any, *, stream: StreamLike) -> None:
        """Copy elements into the array.

        Parameters
        ----------
        src : Tensor, OpaqueArray, Buffer or array_like
            Source, with this array's shape and element type, or a buffer of as many bytes. Elements
            of a row lie next to each other.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        ValueError
            If shapes or sizes differ, there are gaps within rows, or `src` or the stream is another
            device's.
        TypeError
            If element types differ.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until `src` has been read if it is pageable memory.
        Captured as one memcpy node, which keeps both sides alive.

        References
        ----------
        ``cuMemcpy3DAsync``
        """
        on = stream_of(stream)
        dst, source, box = sides(self, src, on)
        _on(on, self)
        _core._copy_box(on, dst, source, box)

    def copy_to(self, dst: Any, *, stream: StreamLike) -> None:
        """Copy the elements out of the array.

        Parameters
        ----------
        dst : Tensor, OpaqueArray, Buffer or array_like
            Destination, with this array's shape and element type, or a buffer of as many bytes.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        ValueError
            As for `copy_from`.
        TypeError
            If element types differ.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until the copy is done if `dst` is pageable memory.
        Captured as one memcpy node, which keeps both sides alive.

        References
        ----------
        ``cuMemcpy3DAsync``
        """
        on = stream_of(stream)
        target, src, box = sides(dst, self, on)
        _on(on, self)
        _core._copy_box(on, target, src, box)

    def numpy(self, *, stream: StreamLike) -> np.ndarray:
        """Copy the elements to a new NumPy array, and wait for the copy.

        Parameters
        ----------
        stream : Stream
            Stream that orders the copy.

        Returns
        -------
        numpy.ndarray
            Row-major, with this array's shape and element type.

        Raises
        ------
        ValueError
            If `stream` is capturing: use `copy_to`.

        Notes
        -----
        Stream-ordered on `stream`. Blocks until the copy is done.

        References
        ----------
        ``cuMemcpy3DAsync``, ``cuStreamSynchronize``
        """
        import numpy as np

        on = stream_of(stream)
        if on.is_capturing:
            raise ValueError(
                "a stream that is capturing cannot be waited for: copy with "
                "array.copy_to(out, stream=...) instead"
            )
        out = np.empty(self.shape, self.dtype_name)
        self.copy_to(out, stream=on)
        on.sync()
        return out

    @property
    def _all(self) -> _Facts:
        return _Facts(*self._facts)

    def __repr__(self) -> str:
        facts = self._all
        more = ", layered" * facts.layered + ", closed" * self.is_closed
        return (
            f"<cudago.OpaqueArray of {facts.shape} {facts.dtype} on device {self._ordinal}{more}>"
        )


def _rank(facts: _Facts) -> int:
    return len(facts.shape) - (facts.channels > 1) - facts.layered


def _extent(facts: _Facts, channels: int | None) -> tuple[int, int, int]:
    """Return width, height and depth as cuArray3DCreate wants them."""
    if facts.dtype not in FORMATS:
        raise TypeError(
            f"an array cannot have elements of type {facts.dtype}, only of {', '.join(FORMATS)}"
        )
    shape = facts.shape
    if channels is not None and (channels not in (2, 4) or shape[-1:] != (channels,)):
        raise ValueError(
            f"channels must be 2 or 4 and the size of the last dimension, got {channels} and shape "
            f"{shape}"
        )
    rank, most = _rank(facts), 2 if facts.layered else 3
    if not 1 <= rank <= most:
        what = "layers and channels" if facts.layered else "its channels"
        raise ValueError(f"an array has 1 to {most} dimensions besides {what}, got shape {shape}")
    if min(shape) < 1:
        raise ValueError(f"an array has at least one element, got shape {shape}")
    if channels is not None:
        shape = shape[:-1]
    layers = 0
    if facts.layered:
        layers, *rest = shape
        shape = tuple(rest)
    width, height, depth = (*reversed(shape), 0, 0)[:3]
    return width, height, depth or layers


def _limit(facts: _Facts, extent: tuple[int, int, int], device: Device) -> None:
    """Check the sizes against what textures, and surfaces, of the device may have."""
    rank = _rank(facts)
    kind = f"{rank}d_layered" if facts.layered else f"{rank}d"
    names = ("columns", "width"), ("rows", "height"), ("slices", "depth")
    limits = [(what, n, side) for (what, side), n in zip(names, extent, strict=True)]
    if facts.layered:
        limits = [*limits[:rank], ("layers", extent[2], "layers")]
    for of in ("texture", "surface")[: 1 + facts.surfaces]:
        for what, n, side in limits[: rank + facts.layered]:
            most = getattr(device.properties, f"maximum_{of}{kind}_{side}")
            if n > most:
                raise ValueError(
                    f"an array with these dimensions has at most {most} {what} on this device, "
                    f"got {n}"
                )


def _on(stream: Stream, array: OpaqueArray) -> None:
    if stream.device.ordinal != array._ordinal:
        raise ValueError(
            f"the array is on device {array._ordinal}, the stream on device {stream.device.ordinal}"
        )


def sides(dst: Any, src: Any, stream: StreamLike | None = None) -> tuple[Any, Any, tuple[int, ...]]:
    """Return both sides of a copy as _copy_box takes them, and the box. One is an array."""
    array = dst if isinstance(dst, OpaqueArray) else src
    facts = array._all
    columns = facts.shape[-1 - (facts.channels > 1)] * facts.channels
    width = columns * (array.nbytes // _count(facts.shape))
    outer = facts.shape[: len(facts.shape) - 1 - (facts.channels > 1)]
    rows = 1 if not outer or (facts.layered and len(outer) == 1) else outer[-1]
    slices = _count(outer) // rows
    if isinstance(dst, OpaqueArray) and isinstance(src, OpaqueArray):
        _check_arrays(dst, src)
        return dst, src, (width, rows, slices, width, rows, width, rows)
    into = dst is not array
    other = _other(array, dst if into else src, into, stream)
    pitch, height = _pitch(other, facts, width, rows, slices)
    at = _bytes_from(other, 0)
    if into:
        return at, src, (width, rows, slices, pitch, height, width, rows)
    return dst, at, (width, rows, slices, width, rows, pitch, height)


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _check_arrays(dst: OpaqueArray, src: OpaqueArray) -> None:
    ours, theirs = dst._all, src._all
    if ours[:4] != theirs[:4]:
        raise ValueError(f"{src!r} and {dst!r} do not have the same dimensions and elements")
    if dst._ordinal != src._ordinal:
        raise ValueError(f"{src!r} and {dst!r} are on different devices")


def _other(array: OpaqueArray, given: Any, into: bool, stream: StreamLike | None) -> Tensor:
    """Return a tensor over what is copied from or into, of the array's shape."""
    facts, name = array._all, "dst" if into else "src"
    if isinstance(given, Buffer):
        if given.size != array.nbytes:
            raise ValueError(f"{name} has {given.size} bytes, the array {array.nbytes}")
        given = given.view(facts.dtype, facts.shape)
    tensor = _target(given, stream) if into else _source(given, facts, stream)
    if tensor.shape != facts.shape:
        raise ValueError(f"{name} has shape {tensor.shape}, the array {facts.shape}")
    if tensor.dtype_name != facts.dtype:
        raise TypeError(
            f"{name} has element type {tensor.dtype_name}, the array {facts.dtype}: "
            "convert it first"
        )
    if tensor.device is not None and tensor.device.ordinal != array._ordinal:
        raise ValueError(
            f"{name} is on device {tensor.device.ordinal}, the array on device {array._ordinal}"
        )
    return tensor


def _target(given: Any, stream: StreamLike | None) -> Tensor:
    tensor = as_tensor(given) if stream is None else as_target(given, stream)
    if tensor.is_readonly:
        raise ValueError("dst is read-only")
    return tensor


def _source(given: Any, facts: _Facts, stream: StreamLike | None) -> Tensor:
    if isinstance(given, Tensor):
        return given
    if not hasattr(given, "__dlpack__"):
        import numpy as np

        given = np.ascontiguousarray(given, facts.dtype).reshape(np.shape(given))
    return as_tensor(given) if stream is None else _core.from_dlpack(given, stream=stream)


def _pitch(t: Tensor, facts: _Facts, width: int, rows: int, slices: int) -> tuple[int, int]:
    """Return the bytes from row to row, and the rows from slice to slice, of a tensor."""
    inner = 1 + (facts.channels > 1)
    packed = facts.channels, 1
    for n, step, want in zip(t.shape[-inner:], t.strides[-inner:], packed[-inner:], strict=True):
        if n > 1 and step != want:
            raise ValueError("the elements of a row must lie next to each other: copy the tensor")
    steps = [step * t.itemsize for step in t.strides[: len(t.shape) - inner]]
    if facts.layered and len(steps) == 1:  # each layer is a row
        steps.append(width)
    pitch = steps[-1] if rows > 1 else width
    if slices > 1 and rows == 1:
        pitch = steps[-2]
    if pitch < width:
        raise ValueError(f"rows of {width} bytes cannot be {pitch} bytes apart: copy the tensor")
    slice_ = steps[-2] if slices > 1 else pitch * rows
    if slice_ % pitch or slice_ // pitch < rows:
        raise ValueError(
            f"slices must be a multiple of {pitch} bytes apart, as rows are, and at least {rows} "
            f"rows; they are {slice_} bytes apart: copy the tensor"
        )
    return pitch, slice_ // pitch
