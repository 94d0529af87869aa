# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of what is copied from, to or for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .. import _core
from .._numpy import is_array, is_scalar, np
from .._stream.stream import stream_of
from . import packed
from .copy import copy as copy_elements
from .element import ADDED, array_of
from .interface import has_interface, through
from .place import is_packed_type

if TYPE_CHECKING:
    from .._memory.buffer import Buffer
    from .._stream.stream import Stream
    from ..typing import StreamLike
    from .tensor import Tensor


def _own(memory: Any) -> Tensor | None:
    """Return memory of ours without an exchange, which has to order streams that may capture."""
    if isinstance(memory, _core.Tensor):
        return cast("Tensor", memory)
    if isinstance(memory, _core.Pointer):
        memory = pointed(memory)
    if isinstance(memory, _core.Buffer):
        return cast("Buffer", memory).view("uint8")
    return None


def pointed(pointer: _core.Pointer) -> Buffer:
    """Return the bytes from a pointer to the end of its buffer, which copies take it for."""
    return pointer.buffer[pointer.offset :]


def is_extended(memory: Any) -> bool:
    """Whether this is an array of NumPy's in a type of ml_dtypes, which NumPy does not export."""
    added = getattr(getattr(memory, "dtype", None), "isbuiltin", 0) == ADDED
    return added and is_array(memory)


def _over_extended(array: np.ndarray) -> Tensor:
    """Return a tensor over such an array; of elements of less than a byte, over a packed copy."""
    name = _core._dtype(array.dtype)[0]
    if is_packed_type(name):
        return packed.as_tensor(array, name)
    return _core.from_dlpack(array.view(f"u{array.itemsize}"))._retyped(name)


def shared(memory: Any, stream: StreamLike, what: str) -> Tensor | None:
    """Return a tensor over any memory that has a shape and a type; None if it has not."""
    if (own := _own(memory)) is not None:
        return own
    if is_extended(memory):
        return _over_extended(memory)
    if hasattr(memory, "__dlpack__"):
        return _core.from_dlpack(memory, stream=stream)
    return through(memory, stream, what) if has_interface(memory) else None


def host_array(values: Any, name: str | None, what: str, stream: StreamLike | None) -> np.ndarray:
    """Return an array_like as NumPy's array, without gaps unless it is read at each launch.

    That it is where `stream` is capturing, or None, for a node. Then memory is neither put in order
    nor converted, which would keep the elements of this moment; numbers and lists have no others.
    """
    array = array_of(values, name, what)
    if stream is not None and not stream_of(stream).is_capturing:
        return np.ascontiguousarray(array).reshape(array.shape)  # which makes 1 dimension of none
    if is_memory(values):
        check_read_later(array.dtype, np.asarray(values).dtype, what)
    return array


def is_memory(values: Any) -> bool:
    """Whether the elements of an array_like can change, unlike numbers and lists of them."""
    if isinstance(values, bytes) or is_scalar(values):
        return False
    if any(hasattr(values, name) for name in ("__array_interface__", "__dlpack__", "__array__")):
        return True
    try:
        return memoryview(values).nbytes >= 0
    except TypeError:
        return False


def check_read_later(wanted: Any, given: Any, what: str) -> None:
    """Refuse memory that each launch would have to convert."""
    if wanted != given:
        raise BufferError(
            f"{what} has element type {given}, and {wanted} is needed: a capture does not convert "
            "it, as each launch copies what the memory then has; convert it before the capture"
        )


def as_source(src: Any, like: Tensor, stream: StreamLike) -> Tensor:
    if is_extended(src) and is_packed_type(_core._dtype(src.dtype)[0]):
        packed.check_captured(src.dtype, "src", stream_of(stream))
    if (tensor := shared(src, stream, "src")) is not None:
        return tensor
    _core._no_slot(src, "src")
    if isinstance(src, bytes):  # to NumPy the text of a number; a bytearray is an array of numbers
        src = memoryview(src)
    made = host_array(src, like.dtype_name, "src", stream)
    return _over_extended(made) if is_extended(made) else _core.from_dlpack(made, stream=stream)


def as_tensor(memory: Any) -> Tensor:
    """Return a tensor over any memory that has a shape."""
    if (own := _own(memory)) is not None:
        return own
    if isinstance(memory, memoryview):
        memory = np.asarray(memory)
    return _over_extended(memory) if is_extended(memory) else _core.from_dlpack(memory)


def has_gaps(memory: Any) -> bool:
    """Whether the elements are not in row-major order without gaps, as far as the object tells."""
    if isinstance(memory, _core.Tensor | memoryview):
        return not (memory.c_contiguous if isinstance(memory, memoryview) else memory.is_contiguous)
    flags: Any = getattr(memory, "flags", None)
    told = getattr(flags, "c_contiguous", None)  # NumPy, CuPy
    tells: Any = getattr(memory, "is_contiguous", None)  # PyTorch
    return not (told if told is not None else tells() if callable(tells) else True)


def as_target(dst: Any, stream: StreamLike) -> Tensor:
    if (tensor := shared(dst, stream, "dst")) is not None:
        return tensor
    try:
        view = memoryview(dst)
    except TypeError:
        _core._no_slot(dst, "dst")
        raise TypeError(
            "dst must be a Buffer, Pointer or Tensor, or an object with the buffer protocol, "
            f"__dlpack__ or __cuda_array_interface__, not {type(dst)}"
        ) from None
    if view.readonly:
        raise BufferError("dst is read-only")
    return _core.from_dlpack(np.asarray(view))


def copied_unpacked(dst: Any, tensor: Tensor, stream: Stream) -> bool:
    """Copy to an array with a byte for each packed element; return whether `dst` is one."""
    name = _core._dtype(dst.dtype)[0] if is_extended(dst) else ""
    if not name or not is_packed_type(name):
        return False
    if not dst.flags.writeable:
        raise BufferError("dst is read-only")
    _check_alike("dst", dst.shape, name, tensor)
    packed.copy_to(dst, tensor, stream)
    return True


def check_alike(name: str, other: Tensor, tensor: Tensor) -> None:
    _check_alike(name, other.shape, other.dtype_name, tensor)


def _check_alike(name: str, shape: tuple[int, ...], kind: str, tensor: Tensor) -> None:
    if shape != tensor.shape:
        raise ValueError(f"{name} has shape {shape}, the tensor {tensor.shape}")
    if kind != tensor.dtype_name:
        raise TypeError(
            f"{name} has element type {kind}, the tensor {tensor.dtype_name}: convert it first"
        )


def host_bytes(t: Tensor, stream: Stream) -> np.ndarray:
    """Return the bytes of the elements, in row-major order, and wait for them."""
    raw = np.empty(t.nbytes, "u1")
    if t.nbytes:
        bits = _core.from_dlpack(raw).buffer.view(t.dtype_name, t.shape)
        copy_elements(bits, t, stream)
    stream.sync()
    return raw


def device_copy(t: Tensor, to_host: int) -> Tensor:
    """Copy device memory for an export with ``copy=True``. Called by the native module.

    The work on `t` has completed; on return, so has the copy.
    """
    device = t.device
    if device is None:
        raise BufferError(
            "the memory is neither the host's nor of a known device, so it cannot be copied for "
            "an export"
        )
    stream = device.default_stream
    if to_host:
        raw = host_bytes(t, stream)
        return _core.from_dlpack(raw).buffer.view(t.dtype_name, t.shape)
    copy = device.allocate(t.nbytes, stream=stream).view(t.dtype_name, t.shape)
    copy.copy_from(t, stream=stream)
    stream.sync()
    return copy
