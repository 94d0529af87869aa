# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Cards for notebooks, as HTML.

Showing an object changes nothing and never raises: a value that cannot be read is replaced by the
reason. It waits for nothing, save a moment for work to end, and queues no work on the user's
streams.

Imported when the first card is shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from .._driver import driver_name, driver_version
from .._graph.exec import GraphExec
from .._graph.graph import Graph
from .._graph.profile import GraphProfile
from .._graph.who import kept_size
from .._memory.buffer import Buffer
from .._memory.device import Device
from .._memory.summary import MemorySummary
from .._memory.timeline import MemoryTimeline
from .._stream.stream import Stream
from .._tensor.tensor import Tensor
from ..errors import CompileError, PTXError
from .memory_card import summary_card, timeline_card
from .picture import FOLD, svg
from .pieces import LONGEST, Row, code_block, framed, image, never_raises, reason, sized
from .preview import Unreadable, head, values
from .timed import timed_svg

_PICTURE_NODES, _PICTURE_EDGES, _PICTURE_TEXT = 5000, 10000, 1 << 20  # larger ones take too long
_OWNERS = {
    "device": "cudago",
    "managed": "cudago",
    "host": "cudago",
    "pinned": "cudago, or the object that was pinned",
    "foreign": "another library",
    "python": "a Python object",
    "graph": "a graph, whose launches allocate it",
}


def _place(thing: Buffer | Tensor) -> str:
    return "host" if thing._ordinal is None else f"device {thing._ordinal}"


# --- devices and streams --------------------------------------------------------------------------


@never_raises
def device_card(device: Device) -> str:
    """Return the card of a device."""

    def driver() -> str:
        major, minor = driver_version()
        name = {"sim": "simulated", "nvidia": "NVIDIA"}[driver_name()]
        return f"{name}, CUDA {major}.{minor}"

    def memory() -> str:
        return f"{sized(device.total_memory)}, of which {sized(device.free_memory)} are free"

    rows: list[Row] = [
        ("name", lambda: device.name),
        ("compute capability", lambda: ".".join(map(str, device.compute_capability))),
        ("memory", memory),
        ("driver", driver),
    ]
    return framed(f"Device {device.ordinal}", rows)


@never_raises
def stream_card(stream: Stream) -> str:
    """Return the card of a stream. Whether it is idle is not asked: the answer may be an error."""
    title = f"Stream {stream.name}"
    if stream.is_closed:
        return framed(title, [("state", "closed")])

    def handle() -> str:  # `Stream.handle` would mark the stream as shared
        number = stream._number
        names = {0: ", the legacy default stream", 1: ", the legacy default stream"}
        names[2] = ", the per-thread default stream"
        return f"{number:#x}{names.get(number, '')}"

    rows: list[Row] = [
        ("state", lambda: "capturing" if stream.is_capturing else "open"),
        ("device", lambda: stream._ordinal),
        ("handle", handle),
        ("priority", lambda: stream.priority),
    ]
    return framed(title, rows)


# --- memory ---------------------------------------------------------------------------------------


@never_raises
def buffer_card(buffer: Buffer) -> str:
    """Return the card of a buffer."""
    rows: list[Row] = [("size", lambda: sized(buffer.size))]
    if buffer.is_closed:
        return framed("Buffer", [("state", "closed"), *rows])
    rows = [
        ("state", "open"),
        ("address", lambda: f"{buffer.handle:#x}"),
        *rows,
        ("memory", lambda: f"{buffer.kind}, {_place(buffer)}"),
        ("owner", lambda: _OWNERS[buffer.kind]),
    ]
    try:
        shown, more = head(buffer)
    except Exception as e:
        return framed("Buffer", [*rows, ("bytes", f"not shown: {reason(e)}")])
    which = f"the first {len(shown)}, as they are now:" if more else "as they are now:"
    lines = (shown[i : i + 16].hex(" ") for i in range(0, len(shown), 16))
    return framed("Buffer", [*rows, ("bytes", which)], code_block("\n".join(lines)))


@never_raises
def tensor_card(tensor: Tensor) -> str:
    """Return the card of a tensor, with some of its elements if they can be read."""
    if tensor.is_closed:
        return framed("Tensor", [("state", "closed")])

    def strides() -> str:
        order = "row-major" if tensor.is_contiguous else "not contiguous"
        return f"{tensor.strides} elements, {order}"

    rows: list[Row] = [
        ("shape", lambda: tensor.shape),
        ("dtype", lambda: tensor.dtype_name),
        ("strides", strides),
        ("device", lambda: _place(tensor)),
        ("address", lambda: f"{tensor.handle:#x}" + ", read-only" * tensor.is_readonly),
        ("size", lambda: sized(tensor.nbytes)),
    ]
    try:
        index, shown = values(tensor)
    except Unreadable as e:
        why = str(e)
    except Exception as e:
        why = reason(e)
    else:
        which = f"of {index}, " if index else ""
        return framed("Tensor", [*rows, ("values", f"{which}as they are now:")], _elements(shown))
    return framed("Tensor", [*rows, ("values", f"not shown: {why}")])


def _elements(shown: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = (" ".join(map(str.rjust, line, widths)) for line in shown)
    return code_block("\n".join(lines))


# --- graphs ---------------------------------------------------------------------------------------


def graph_picture(graph: Graph, *, origins: bool = True) -> str | None:
    """Return a graph as SVG; None if it cannot be drawn, or not quickly."""
    try:
        nodes, edges = graph._count(), len(graph._edges())
        dot = graph.to_dot() if nodes <= _PICTURE_NODES and edges <= _PICTURE_EDGES else None
        # Graphs inside nodes are drawn too.
        if not dot or dot.count("[label=") > _PICTURE_NODES or len(dot) > _PICTURE_TEXT:
            return None
        return svg(dot, FOLD, origins=origins)
    except Exception:
        return None


@never_raises
def graph_card(graph: Graph) -> str:
    """Return the card of a graph: its contents and its picture."""
    if graph.is_closed:
        return framed("Graph", [("state", "closed")])
    try:
        kinds = [row[-1] for row in graph._nodes()]
    except ValueError as e:
        return framed("Graph", [("state", reason(e))])
    rows: list[Row] = [
        ("device", lambda: graph._ordinal),
        ("nodes", lambda: _kinds(kinds)),
        ("edges", lambda: len(graph._edges())),
        ("keeps", lambda: _kept(graph._retained(0))),
    ]
    picture = graph_picture(graph, origins=False)  # an image has no titles
    if picture is None:
        rows.append(("picture", "too large to be drawn by itself: see to_svg()"))
    return framed("Graph", rows, image(picture, "the graph") if picture else "")


@never_raises
def exec_card(step: GraphExec) -> str:
    """Return the card of an executable."""
    if step.is_closed:
        return framed("GraphExec", [("state", "closed")])
    rows: list[Row] = [
        ("device", lambda: step._ordinal),
        ("nodes", lambda: _kinds([row[-1] for row in step._nodes()])),
        ("launches", lambda: step.launch_count),
        ("keeps", lambda: _kept(step._retained())),
    ]
    return framed("GraphExec", rows)


def profile_picture(profile: GraphProfile, *, origins: bool = True) -> str | None:
    """Return a profile as SVG; None if it is empty, or cannot be drawn quickly."""
    nodes, edges = len(profile.rows), len(profile.edges)
    quick = 0 < nodes <= _PICTURE_NODES and edges <= _PICTURE_EDGES
    return timed_svg(profile, FOLD, origins=origins) if quick else None


@never_raises
def profile_card(profile: GraphProfile) -> str:
    """Return the card of a profile: its table with bars, and the graph with its times."""
    rows: list[Row] = [
        ("nodes", str(len(profile.rows))),
        ("sum", f"{profile.microseconds:.2f} µs, each node run alone"),
    ]
    after = code_block("\n".join(list(profile._lines())[1 : 1 + LONGEST]))
    if picture := profile_picture(profile, origins=False):
        after += image(picture, "the graph")
    return framed("GraphProfile", rows, after)


def _kinds(kinds: list[str]) -> str:
    listed = ", ".join(f"{n} {kind}" for kind, n in Counter(sorted(kinds)).most_common())
    return f"{len(kinds)}: {listed}" if kinds else "none"


def _kept(rows: tuple[tuple[Any, int, str, str, str], ...]) -> str:
    operands = f"{len(rows)} operand{'s' * (len(rows) != 1)}"
    return f"{operands}, with {sized(kept_size(rows))} of memory" if rows else "nothing"


# --- errors ---------------------------------------------------------------------------------------

_AT = re.compile(r"^\S+\((\d+)\): *(?:\w+ )?(error|warning)", re.M)


@never_raises
def error_card(error: CompileError | PTXError) -> str:
    """Return the card of a compiler error: the line, and a caret under the position."""
    text = getattr(error, "log", "") or str(error)
    lines = text.rstrip().split("\n")
    found = _AT.search(text)
    line = int(found[1]) if found else getattr(error, "line", 0)
    rows: list[Row] = [("line", str(line))] if line else []
    if column := getattr(error, "column", 0):
        rows.append(("column", str(column)))
    if options := getattr(error, "options", None):
        rows.append(("options", " ".join(options)))
    if len(lines) > LONGEST // 10:
        rest = len(lines) - LONGEST // 10
        lines = [*lines[: LONGEST // 10], f"... and {rest} lines more"]
    return framed(type(error).__name__, rows, code_block("\n".join(map(str.expandtabs, lines))))


# --- which card -----------------------------------------------------------------------------------

_CARDS: dict[type, Callable[[Any], str]] = {
    Buffer: buffer_card,
    CompileError: error_card,
    Device: device_card,
    Graph: graph_card,
    GraphExec: exec_card,
    GraphProfile: profile_card,
    MemorySummary: summary_card,
    MemoryTimeline: timeline_card,
    PTXError: error_card,
    Stream: stream_card,
    Tensor: tensor_card,
}


def card_of(thing: object) -> str:
    """Return the card for an object, which may be an instance of a subclass of ours."""
    return next(make(thing) for cls, make in _CARDS.items() if isinstance(thing, cls))


def picture_of(thing: Graph | GraphProfile) -> str | None:
    """Return the picture of an object, if it can be drawn."""
    return profile_picture(thing) if isinstance(thing, GraphProfile) else graph_picture(thing)
