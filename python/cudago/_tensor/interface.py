# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of libraries that have ``__cuda_array_interface__`` and no DLPack, such as Numba."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._kernel.interop import read_shaped, too_large
from .._stream.stream import Stream, stream_of

if TYPE_CHECKING:
    from ..typing import StreamLike
    from .tensor import Tensor

_SIZES = 1 << 63  # of tensors and buffers, in bytes and in elements


def has_interface(obj: Any) -> bool:
    """Whether an object has the interface; one that it refuses to give counts as none."""
    return getattr(obj, "__cuda_array_interface__", None) is not None


def _type_name(shape: tuple[int, ...], typestr: str, what: str) -> str:
    """Return the element type's name, of what a tensor can be over."""
    if max(shape, default=0) >= _SIZES:  # also beside a dimension of 0
        raise ValueError(too_large(shape, what))
    try:
        return _core._dtype(typestr)[0]
    except TypeError:
        raise TypeError(
            f"{what}: typestr of __cuda_array_interface__ must be a boolean, integer, "
            f"floating-point or complex type in native byte order, such as '<f4', got {typestr!r}"
        ) from None


def facts(obj: Any, what: str) -> tuple[tuple[int, ...], str]:
    """Return shape and element type's name of an object with the interface."""
    _, shape, typestr = read_shaped(obj.__cuda_array_interface__, what)
    return shape, _type_name(shape, typestr, what)


def through(obj: Any, stream: StreamLike, what: str) -> Tensor:
    """Return a tensor over the memory of an object, behind the work that its interface names.

    What a capture records does not wait: its graph runs later.
    """
    read, shape, typestr = read_shaped(obj.__cuda_array_interface__, what)
    address, nbytes, theirs, readonly, _ = read
    name = _type_name(shape, typestr, what)
    if nbytes >= _SIZES:
        raise ValueError(too_large(shape, what))
    own = stream_of(stream)
    if not nbytes:
        return own.device.allocate(0, stream=own).view(name, shape)
    if theirs is not None and not own.is_capturing:
        own.wait(Stream.from_handle(theirs, device=own.device, owner=obj))
    return _core._tensor_through(obj, address, own.device.ordinal, readonly, name, shape)
