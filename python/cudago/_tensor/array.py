# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA arrays: memory in a layout for textures and surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from .. import _core
from .._numpy import np
from .._ordinal import device_at
from .._stream.stream import stream_of
from .array_copy import sides
from .array_shape import FORMATS, Facts, count, described, limit, rank

if TYPE_CHECKING:
    from .._memory.device import Device
    from .._stream.stream import Stream
    from ..typing import Dims, StreamLike

__all__ = ["OpaqueArray"]

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
    cubemap : bool
        Whether it has the 6 faces of a cube, of which a direction names one and a place on it: one
        more dimension before rows, in the order +x, -x, +y, -y, +z and -z. With `layered`, several
        cubes. Faces are square.
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
        cubemap: bool = False,
        surfaces: bool = False,
    ) -> _T:
        """Check the values and create the array."""
        facts, extent, size = described(shape, dtype, channels, (layered, cubemap, surfaces))
        on = stream_of(stream)
        limit(facts, extent, on.device)
        nbytes = size * count(facts.shape)
        numbers = (FORMATS[facts.dtype], facts.channels, *extent, *facts[3:], 0)
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
        """Whether a `Surface` can be made of it."""
        return self._all.surfaces

    def copy_from(self, src: Any, *, stream: StreamLike) -> None:
        """Copy elements into the array.

        Parameters
        ----------
        src : Tensor, OpaqueArray, Buffer, Pointer or array_like
            Source, with this array's shape and element type, or a buffer of as many bytes, or a
            pointer with as many bytes to the end of its buffer. Elements of a row lie next to each
            other.
        stream : Stream
            Stream that orders the copy.

        Raises
        ------
        BufferError
            If, during a capture, memory would have to be converted.
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
        dst : Tensor, OpaqueArray, Buffer, Pointer or array_like
            Destination, with this array's shape and element type, or as many bytes of a buffer, or
            from a pointer to the end of its buffer.
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
    def _all(self) -> Facts:
        return Facts(*self._facts)

    def __repr__(self) -> str:
        facts = self._all
        more = ", layered" * facts.layered + ", cubemap" * facts.cubemap
        more += ", closed" * self.is_closed
        return (
            f"<cudago.OpaqueArray of {facts.shape} {facts.dtype} on device {self._ordinal}{more}>"
        )


def _on(stream: Stream, array: OpaqueArray) -> None:
    if stream.device.ordinal != array._ordinal:
        raise ValueError(
            f"the array is on device {array._ordinal}, the stream on device {stream.device.ordinal}"
        )
