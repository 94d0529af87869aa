# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of what is copied from, to or for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .. import _core

if TYPE_CHECKING:
    from .._memory.buffer import Buffer
    from ..typing import StreamLike
    from .tensor import Tensor


def _own(memory: Any) -> Tensor | None:
    """Return memory of ours without an exchange, which has to order streams that may capture."""
    if isinstance(memory, _core.Tensor):
        return cast("Tensor", memory)
    if isinstance(memory, _core.Buffer):
        return cast("Buffer", memory).view("uint8")
    return None


def as_source(src: Any, like: Tensor, stream: StreamLike) -> Tensor:
    if (own := _own(src)) is not None:
        return own
    if not hasattr(src, "__dlpack__"):
        import numpy as np

        src = np.ascontiguousarray(src, like.dtype).reshape(np.shape(src))
    return _core.from_dlpack(src, stream=stream)


def as_tensor(memory: Any) -> Tensor:
    """Return a tensor over any memory that has a shape."""
    own = _own(memory)
    return _core.from_dlpack(memory) if own is None else own


def as_target(dst: Any, stream: StreamLike) -> Tensor:
    if (own := _own(dst)) is not None:
        return own
    if hasattr(dst, "__dlpack__"):
        return _core.from_dlpack(dst, stream=stream)
    import numpy as np

    view = memoryview(dst)
    if view.readonly:
        raise ValueError("dst is read-only")
    return _core.from_dlpack(np.asarray(view))


def check_alike(name: str, other: Tensor, tensor: Tensor) -> None:
    if other.shape != tensor.shape:
        raise ValueError(f"{name} has shape {other.shape}, the tensor {tensor.shape}")
    if other.dtype_name != tensor.dtype_name:
        raise TypeError(
            f"{name} has element type {other.dtype_name}, the tensor {tensor.dtype_name}: "
            "convert it first"
        )


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
        return _core.from_dlpack(t.numpy(stream=stream))
    copy = device.allocate(t.nbytes, stream=stream).view(t.dtype_name, t.shape)
    copy.copy_from(t, stream=stream)
    stream.sync()
    return copy
