# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The corners of a tensor as text, for notebooks; read only while no work is under way.

Which streams use a tensor's memory cannot be asked without waiting. So all streams must be idle:
each is queried in a way that does not disturb captures, and none may be unknown or capturing. They
get a moment to finish. A check's finding that a query is told goes to the program's next wait.
Memory that the host can read is read in place; other memory is copied on a stream created for that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from .. import _core
from .._gopy import api
from .._gopy_call import read
from .._ordinal import device_at, devices_in_use
from .._stream.stream import Stream, _made
from .._tensor.element import extended_dtype, widened
from .._tensor.place import is_pageable
from .._tensor.tensor import Tensor

if TYPE_CHECKING:
    from types import ModuleType

    from .._memory.buffer import Buffer

Rows = list[list[str]]

PATIENCE_S = 0.25
_WHOLE, _EDGE = 8, 3  # longest axis shown whole; elements at each end of a longer one
_HEAD = 64  # bytes of a buffer
_GAP = "\u2026"
CUDA, _MANAGED = 2, 13  # DLPack device types


class Unreadable(Exception):
    """The reason why there are no values to show, and the same in fewer words."""

    def __init__(self, text: str, brief: str = "") -> None:
        super().__init__(text)
        self.brief = brief or text


def values(tensor: Tensor) -> tuple[str, Rows]:
    """Return the index of the slice that is shown, empty for the whole tensor, and its corners."""
    hidden = max(tensor.ndim - 2, 0)
    face = tensor[(0,) * hidden] if hidden else tensor
    index = "[" + "0, " * hidden + ":, :]" if hidden else ""
    if not tensor.size:
        raise Unreadable("there are no elements")
    check_readable(tensor)
    if not is_pageable(tensor):
        await_idle(PATIENCE_S)
    import numpy as np

    rows, columns = _spans(face, -2), _spans(face, -1)
    shown: Rows = []
    for r in rows:
        parts = [_formatted(_block(face, r, c), np) for c in columns]
        shown += [[_GAP] * len(shown[0])] if shown else []
        shown += [_joined(lines) for lines in zip(*parts, strict=True)]
    return index, shown


def head(buffer: Buffer) -> tuple[bytes, bool]:
    """Return the first bytes of a buffer, and whether there are more."""
    with buffer[: min(buffer.size, _HEAD)].view("uint8") as front:
        check_readable(front)
        if not is_pageable(front):
            await_idle(PATIENCE_S)
        _, device_type, *_ = front._memory
        import numpy as np

        array = _copied(front) if device_type == CUDA else _in_place(front, np)
        return array.tobytes(), buffer.size > _HEAD


def check_readable(tensor: Tensor) -> None:
    """Raise if the host cannot read the memory even when it is idle."""
    if _core._dtype(tensor.dtype_name)[1] % 8:
        raise Unreadable("elements of less than a byte are packed")
    _, device_type, ordinal, *_ = tensor._memory
    if device_type == _MANAGED and not device_at(ordinal).properties.concurrent_managed_access:
        raise Unreadable("the host must not touch managed memory while this device works")


# --- is all work done? ----------------------------------------------------------------------------


def await_idle(patience_s: float) -> None:
    """Return if no work is under way, or after a moment none is; raise `Unreadable` otherwise."""
    streams = _streams()
    end = time.monotonic() + patience_s
    while busy := [stream for stream in streams if not _is_idle(stream)]:
        if time.monotonic() >= end:
            raise Unreadable("work is still under way", "work pending")
        streams = busy
        time.sleep(0.001)


def _is_idle(stream: Stream) -> bool:
    if stream.is_closed:  # by another thread meanwhile
        raise Unreadable("a stream has just been closed")
    if stream.is_capturing:
        text = "a stream is capturing"
        raise Unreadable(f"{text}, so work cannot be waited for", text)
    return stream._is_idle


def _streams() -> list[Stream]:
    """Return all streams; raise if some are not known, which may still have work."""
    known = [stream for ref in _made.valuerefs() if (stream := ref()) is not None]
    streams = {stream._id: stream for stream in known if not stream.is_closed}
    if len(streams) < read(api.live_streams):  # default streams outlive their objects
        for device in devices_in_use():
            streams[device.default_stream._id] = device.default_stream
    if len(streams) < read(api.live_streams):
        text = "a stream that is closed, or another library's, may still have work"
        raise Unreadable(text, "work may be pending")
    return list(streams.values())


# --- elements -------------------------------------------------------------------------------------


def _spans(face: Tensor, axis: int) -> list[slice | None]:
    """Return the parts of an axis that are shown; None for an axis that the tensor lacks."""
    if face.ndim < -axis:
        return [None]
    size = face.shape[axis]
    if size <= _WHOLE:
        return [slice(0, size)]
    return [slice(0, _EDGE), slice(size - _EDGE, size)]


def _block(face: Tensor, *spans: slice | None) -> Tensor:
    return face[tuple(span for span in spans if span is not None)] if face.ndim else face


def _joined(parts: tuple[list[str], ...]) -> list[str]:
    row: list[str] = []
    for part in parts:
        row += [_GAP, *part] if row else part
    return row


def _formatted(block: Tensor, np: ModuleType) -> Rows:
    _, device_type, *_ = block._memory
    array = _copied(block) if device_type == CUDA else _in_place(block, np)
    array = widened(array)
    height, width = (1, 1, *block.shape)[-2:]
    return [[short(x) for x in row] for row in array.reshape(height, width).tolist()]


def _copied(block: Tensor) -> Any:
    """Copy elements that the host cannot read."""
    if (device := block.device) is None:
        raise Unreadable("the memory is of no known device")
    with device.create_stream() as stream:
        return block.numpy(stream=stream)


class OnHost:
    """A tensor for NumPy, which reads simulated device memory where it is."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_: Any) -> Any:
        # stream=-1: no stream to wait for, all are idle.
        return self._tensor.__dlpack__(dl_device=(1, 0), stream=-1, max_version=max_version)


def _in_place(block: Tensor, np: ModuleType) -> Any:
    """View elements that the host can read, whatever their strides."""
    span, offset = block._span
    raw = np.from_dlpack(cast("Any", OnHost(span.view("uint8"))))
    dtype: Any = block.dtype
    if dtype == "bfloat16":  # the upper half of a float32
        return (_strided(block, raw, offset, "u2", np).astype("u4") << 16).view("f4")
    if isinstance(dtype, str):
        return widened(_strided(block, raw, offset, extended_dtype(dtype), np))
    return _strided(block, raw, offset, dtype, np)


def _strided(block: Tensor, raw: Any, offset: int, dtype: Any, np: ModuleType) -> Any:
    strides = [step * block.itemsize for step in block.strides]
    return np.ndarray(block.shape, dtype, raw, offset, strides)


def short(x: object) -> str:
    """Return a number in few digits."""
    if isinstance(x, complex):
        return f"{x:.4g}"
    return f"{x:.5g}" if isinstance(x, float) else str(x)
