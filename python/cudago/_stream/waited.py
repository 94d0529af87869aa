# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a stream can wait for, and what to do where a capture knows nothing of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core

if TYPE_CHECKING:
    from .stream import Stream


def event_handle(obj: object) -> int | None:
    """Return the ``CUevent`` of another library's event; None if it is no event."""
    library = type(obj).__module__.partition(".")[0]
    name = {"torch": "cuda_event", "cupy": "ptr", "cupy_backends": "ptr"}.get(library)
    if name is None and type(obj).__name__ == "Event":  # cuda.core, Numba
        name = "handle"
    if name is None or "Event" not in type(obj).__name__:
        return None
    handle = getattr(obj, name, None)
    handle = getattr(handle, "value", handle)  # Numba's is of ctypes
    return None if handle is None else int(handle)


def has_stream(obj: object) -> bool:
    return hasattr(obj, "__cuda_stream__") or hasattr(obj, "cuda_stream")


def part_of(obj: object) -> object:
    """Return the event of an object that has one, else its stream."""
    for name in ("event", "stream"):
        found = getattr(obj, name, None)
        if isinstance(found, _core.Event | _core.Stream) or (
            found is not None and (has_stream(found) or event_handle(found) is not None)
        ):
            return found
    raise TypeError(
        "work must be an event, or it must be a Stream or have __cuda_stream__, not "
        f"{type(obj).__name__}"
    )


def way_out(stream: Stream, work: object) -> str:
    """Say why a stream could not wait for something outside a capture, and what to do instead."""
    ours = isinstance(work, _core.Stream | _core.Event)
    what = repr(work) if ours else f"the {type(work).__name__}"
    if not stream.is_capturing:
        return (
            f"{what} was recorded in a capture that has ended, and stands for a place in its "
            "graph: record it again, outside a capture"
        )
    if isinstance(work, _core.Stream) or hasattr(type(work), "__cuda_stream__"):
        return (
            f"{what} is not in the capture: wait for it before the capture begins, or bring it in "
            "by graph.fork(stream), if its work from then on is to be in the graph"
        )
    return (
        f"{what} was not recorded in the capture: wait for it before the capture begins, or record "
        "it in the capture, on a stream that graph.fork(stream) has brought in; a graph that is "
        "built has graph.wait(event)"
    )
