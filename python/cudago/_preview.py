# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Some elements of a tensor as text, for who looks at it: its edges are copied, and not waited for.

The copy is DLPack's own, which waits for the work that uses the memory, puts none into a stream of
the user's, and refuses where one of these is capturing. The wait may be long, so it has a thread of
its own, and who looks at the tensor leaves it alone after a moment.
"""

from __future__ import annotations

import logging
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from . import _core
from .errors import CheckError

if TYPE_CHECKING:
    from types import ModuleType

    from ._tensor import Tensor

Rows = list[list[str]]

PATIENCE_S = 0.25
_WHOLE, _EDGE = 8, 3  # elements of a dimension that is shown whole; of each end of a longer one
_GAP = "\u2026"
_HOST, _MANAGED = (1, 0), 13  # DLPack's devices
_log = logging.getLogger("cudago")
_reading = threading.Lock()  # one thread at most that waits for work


class Unreadable(Exception):
    """Why there are no values to show."""


def values(tensor: Tensor) -> tuple[str, Rows]:
    """Return the index of what is shown, empty for all dimensions, and the edges of that."""
    hidden = max(tensor.ndim - 2, 0)
    face = tensor[(0,) * hidden] if hidden else tensor
    index = "[" + "0, " * hidden + ":, :]" if hidden else ""
    if not tensor.size:
        raise Unreadable("there are no elements")
    import numpy as np  # here, since the first import takes longer than the patience

    if why_not := _untouchable(tensor):
        raise Unreadable(why_not)
    rows, columns = _spans(face, -2), _spans(face, -1)
    blocks = iter(_copied([_block(face, r, c) for r in rows for c in columns], np))
    shown: Rows = []
    for _ in rows:
        right = [next(blocks) for _ in columns]
        shown += [[_GAP] * len(shown[0])] if shown else []
        shown += [_beside(parts) for parts in zip(*right, strict=True)]
    return index, shown


def _spans(face: Tensor, axis: int) -> list[slice | None]:
    """Return what is shown along an axis; None for one that the tensor lacks."""
    if face.ndim < -axis:
        return [None]
    size = face.shape[axis]
    if size <= _WHOLE:
        return [slice(0, size)]
    return [slice(0, _EDGE), slice(size - _EDGE, size)]


def _block(face: Tensor, *spans: slice | None) -> Tensor:
    return face[tuple(span for span in spans if span is not None)] if face.ndim else face


def _beside(parts: tuple[list[str], ...]) -> list[str]:
    row: list[str] = []
    for part in parts:
        row += [_GAP, *part] if row else part
    return row


def _untouchable(tensor: Tensor) -> str:
    """Say why the host does not read the memory, idle or not."""
    from ._device import Device

    if _core._dtype(tensor.dtype_name)[1] % 8:
        return "elements of less than a byte are packed"
    _, device_type, ordinal, *_ = tensor._memory
    if device_type == _MANAGED and not Device(ordinal).properties.concurrent_managed_access:
        return "the host must not touch managed memory while this device works"
    return ""


def _copied(blocks: list[Tensor], np: ModuleType) -> list[Rows]:
    """Copy some elements to the host, as text; give up what takes long."""
    answer: SimpleQueue[list[Rows] | str] = SimpleQueue()
    left = threading.Event()
    if not _reading.acquire(blocking=False):
        raise Unreadable("work that an earlier look at a tensor waits for is still under way")
    try:
        threading.Thread(target=_read, args=(blocks, np, left, answer), daemon=True).start()
    except BaseException:  # at the end of the interpreter there are no new threads
        _reading.release()
        raise
    try:
        got = answer.get(timeout=PATIENCE_S)
    except Empty:
        left.set()
        raise Unreadable("work that uses the memory is still under way") from None
    if isinstance(got, str):
        raise Unreadable(got)
    return got


def _read(
    blocks: list[Tensor],
    np: ModuleType,
    left: threading.Event,
    answer: SimpleQueue[list[Rows] | str],
) -> None:
    got: list[Rows] | str
    try:
        got = words = []
        for block in blocks:
            if left.is_set():  # nobody asks any more, and a stream may be about to be captured
                break
            words.append(_words(block, np))
    except CheckError as e:  # is told once, so that the next wait of the program would not hear it
        got = str(e)  # as text: a traceback would keep the tensors
        _log.error("found while a tensor was shown: %s", got)
    except Exception as e:
        got = str(e).partition(";")[0]
    finally:
        blocks.clear()
        _reading.release()
    answer.put(got)


def _words(block: Tensor, np: ModuleType) -> Rows:
    from ._tensor import _extended_dtype

    shape = block.shape
    capsule = block.__dlpack__(dl_device=_HOST, copy=True, max_version=(1, 0))
    host = _core.from_dlpack(capsule)
    raw = np.frombuffer(host.buffer, "u1")
    dtype: Any = host.dtype
    if dtype == "bfloat16":  # the upper half of a float32
        array = (raw.view("u2").astype("u4") << 16).view("f4")
    elif isinstance(dtype, str):
        array = raw.view(_extended_dtype(dtype)).astype("f4")
    else:
        array = raw.view(dtype)
    height, width = (1, 1, *shape)[-2:]
    return [[_word(x) for x in row] for row in array.reshape(height, width).tolist()]


def _word(x: object) -> str:
    if isinstance(x, complex):
        return f"{x:.4g}"
    return f"{x:.5g}" if isinstance(x, float) else str(x)
