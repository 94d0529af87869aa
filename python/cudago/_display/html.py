# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Cards for notebooks, as HTML.

Showing an object changes nothing and never raises: a value that cannot be read is replaced by the
reason. It waits for nothing and queues no work on the user's streams. Colors are those of the page,
dark or light, and grays that fit both; nothing is loaded, and user text is never taken for markup.
A notebook that is not trusted yet shows it too: it has no elements and colors that JupyterLab
removes from such a notebook.

Imported when the first card is shown.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from functools import wraps
from html import escape
from typing import TYPE_CHECKING, Any

from .._driver import driver_name, driver_version
from .._graph.exec import GraphExec
from .._graph.graph import Graph
from .._graph.profile import GraphProfile
from .._memory.buffer import Buffer
from .._memory.device import Device
from .._stream.stream import Stream
from .._tensor.tensor import Tensor
from ..errors import CompileError, PTXError
from .picture import FOLD, svg
from .preview import Unreadable, values

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = tuple[str, "str | Callable[[], object]"]

_LONGEST = 400  # characters of a value, and lines of a compiler's log
_PICTURE_NODES, _PICTURE_EDGES, _PICTURE_TEXT = 5000, 10000, 1 << 20  # larger ones take too long
_BOX = (
    "display:inline-block;border:1px solid gray;border-radius:6px;padding:6px 10px;"
    "max-width:100%;overflow:auto;color:inherit;font-size:13px"
)
_TABLE = "border-collapse:collapse;margin:4px 0 0 0;border:none;color:inherit"
_PLAIN = "background:none;border:none;color:inherit;vertical-align:top"
_LABEL = f"{_PLAIN};text-align:left;font-weight:normal;opacity:.7;padding:1px 12px 1px 0"
_VALUE = f"{_PLAIN};text-align:left;padding:1px 0"
_CODE = "background:none;color:inherit;margin:4px 0 0 0;font-family:monospace;white-space:pre"
_OWNERS = {
    "device": "cudago",
    "managed": "cudago",
    "host": "cudago",
    "pinned": "cudago, or the object that was pinned",
    "foreign": "another library",
    "python": "a Python object",
    "graph": "a graph, whose launches allocate it",
}


# --- pieces ---------------------------------------------------------------------------------------


def _text(value: object, longest: int = _LONGEST) -> str:
    """Escape a value for HTML, with a placeholder for unprintable characters."""
    text = str(value)
    if len(text) > longest:
        text = text[:longest] + "\u2026"
    return escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text))


def _reason(e: Exception) -> str:
    return (str(e) or type(e).__name__).partition("\n")[0]


def _card(title: str, rows: list[Row], after: str = "") -> str:
    lines = ""
    for label, told in rows:
        try:
            value = told() if callable(told) else told
        except Exception as e:
            value = f"not known: {_reason(e)}"
        lines += (
            f'<tr style="{_PLAIN}"><th style="{_LABEL}">{_text(label)}</th>'
            f'<td style="{_VALUE}">{_text(value)}</td></tr>'
        )
    table = f'<table style="{_TABLE}"><tbody>{lines}</tbody></table>' if lines else ""
    return f'<div style="{_BOX}"><b>{_text(title)}</b>{table}{after}</div>'


def _code(text: str) -> str:
    lines = "\n".join(map(_text, text.split("\n")))
    return f'<pre style="{_CODE}">{lines}</pre>'


def _never_raises(make: Callable[[Any], str]) -> Callable[[Any], str]:
    """Make a card that fails show the reason instead."""

    @wraps(make)
    def card(thing: Any) -> str:
        try:
            return make(thing)
        except Exception as e:
            return _card(type(thing).__name__, [("card", f"not known: {_reason(e)}")])

    return card


def _bytes(size: int) -> str:
    exact, number, unit = f"{size:,} byte{'s' * (size != 1)}", float(size), ""
    for unit in ("", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.4g} {unit} ({exact})" if unit else exact


def _place(thing: Buffer | Tensor) -> str:
    return "host" if thing._ordinal is None else f"device {thing._ordinal}"


# --- devices and streams --------------------------------------------------------------------------


@_never_raises
def device_card(device: Device) -> str:
    """Return the card of a device."""

    def driver() -> str:
        major, minor = driver_version()
        name = {"sim": "simulated", "nvidia": "NVIDIA"}[driver_name()]
        return f"{name}, CUDA {major}.{minor}"

    def memory() -> str:
        return f"{_bytes(device.total_memory)}, of which {_bytes(device.free_memory)} are free"

    rows: list[Row] = [
        ("name", lambda: device.name),
        ("compute capability", lambda: ".".join(map(str, device.compute_capability))),
        ("memory", memory),
        ("driver", driver),
    ]
    return _card(f"Device {device.ordinal}", rows)


@_never_raises
def stream_card(stream: Stream) -> str:
    """Return the card of a stream. Whether it is idle is not asked: the answer may be an error."""
    title = f"Stream {stream.name}"
    if stream.is_closed:
        return _card(title, [("state", "closed")])

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
    return _card(title, rows)


# --- memory ---------------------------------------------------------------------------------------


@_never_raises
def buffer_card(buffer: Buffer) -> str:
    """Return the card of a buffer."""
    rows: list[Row] = [("size", lambda: _bytes(buffer.size))]
    if buffer.is_closed:
        return _card("Buffer", [("state", "closed"), *rows])
    rows = [
        ("state", "open"),
        ("address", lambda: f"{buffer.handle:#x}"),
        *rows,
        ("memory", lambda: f"{buffer.kind}, {_place(buffer)}"),
        ("owner", lambda: _OWNERS[buffer.kind]),
    ]
    return _card("Buffer", rows)


@_never_raises
def tensor_card(tensor: Tensor) -> str:
    """Return the card of a tensor, with some of its elements if they can be read."""
    if tensor.is_closed:
        return _card("Tensor", [("state", "closed")])

    def strides() -> str:
        order = "row-major" if tensor.is_contiguous else "not contiguous"
        return f"{tensor.strides} elements, {order}"

    rows: list[Row] = [
        ("shape", lambda: tensor.shape),
        ("dtype", lambda: tensor.dtype_name),
        ("strides", strides),
        ("device", lambda: _place(tensor)),
        ("address", lambda: f"{tensor.handle:#x}" + ", read-only" * tensor.is_readonly),
        ("size", lambda: _bytes(tensor.nbytes)),
    ]
    try:
        index, shown = values(tensor)
    except Unreadable as e:
        why = str(e)
    except Exception as e:
        why = _reason(e)
    else:
        which = f"of {index}, " if index else ""
        return _card("Tensor", [*rows, ("values", f"{which}as they are now:")], _elements(shown))
    return _card("Tensor", [*rows, ("values", f"not shown: {why}")])


def _elements(shown: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = (" ".join(map(str.rjust, line, widths)) for line in shown)
    return _code("\n".join(lines))


# --- graphs ---------------------------------------------------------------------------------------


def graph_picture(graph: Graph) -> str | None:
    """Return a graph as SVG; None if it cannot be drawn, or not quickly."""
    try:
        nodes, edges = graph._count(), len(graph._edges())
        dot = graph.to_dot() if nodes <= _PICTURE_NODES and edges <= _PICTURE_EDGES else None
        # Graphs inside nodes are drawn too.
        if not dot or dot.count("[label=") > _PICTURE_NODES or len(dot) > _PICTURE_TEXT:
            return None
        return svg(dot, FOLD)
    except Exception:
        return None


@_never_raises
def graph_card(graph: Graph) -> str:
    """Return the card of a graph: its contents and its picture."""
    if graph.is_closed:
        return _card("Graph", [("state", "closed")])
    try:
        kinds = [row[-1] for row in graph._nodes()]
    except ValueError as e:
        return _card("Graph", [("state", _reason(e))])
    rows: list[Row] = [
        ("device", lambda: graph._ordinal),
        ("nodes", lambda: _kinds(kinds)),
        ("edges", lambda: len(graph._edges())),
        ("keeps", lambda: _kept(row[1] for row in graph._retained(0))),
    ]
    picture = graph_picture(graph)
    if picture is None:
        rows.append(("picture", "too large to be drawn by itself: see to_svg()"))
    return _card("Graph", rows, _image(picture) if picture else "")


def _image(svg: str) -> str:
    # Of an svg element JupyterLab leaves nothing but the words, in a notebook that nobody trusts.
    # An image stays, and has no color of the page to take.
    drawn = b64encode(svg.replace("<svg ", '<svg color="gray" ', 1).encode()).decode()
    style = "display:block;margin-top:6px;max-width:none"
    return f'<img alt="the graph" style="{style}" src="data:image/svg+xml;base64,{drawn}"/>'


@_never_raises
def exec_card(step: GraphExec) -> str:
    """Return the card of an executable."""
    if step.is_closed:
        return _card("GraphExec", [("state", "closed")])
    rows: list[Row] = [
        ("device", lambda: step._ordinal),
        ("nodes", lambda: _kinds([row[-1] for row in step._nodes()])),
        ("launches", lambda: step.launch_count),
        ("keeps", lambda: _kept(row[1] for row in step._retained())),
    ]
    return _card("GraphExec", rows)


@_never_raises
def profile_card(profile: GraphProfile) -> str:
    """Return the card of a profile: its table with bars, and the graph with its times."""
    rows: list[Row] = [
        ("nodes", str(len(profile.rows))),
        ("sum", f"{profile.microseconds:.2f} µs, each node run alone"),
    ]
    after = _code("\n".join(list(profile._lines())[1 : 1 + _LONGEST]))
    if 0 < len(profile.rows) <= _PICTURE_NODES and len(profile.edges) <= _PICTURE_EDGES:
        after += _image(svg(profile._dot(), FOLD))
    return _card("GraphProfile", rows, after)


def _kinds(kinds: list[str]) -> str:
    listed = ", ".join(f"{n} {kind}" for kind, n in Counter(sorted(kinds)).most_common())
    return f"{len(kinds)}: {listed}" if kinds else "none"


def _kept(sizes: Iterable[int]) -> str:
    kept = list(sizes)
    operands = f"{len(kept)} operand{'s' * (len(kept) != 1)}"
    return f"{operands}, with {_bytes(sum(kept))} of memory" if kept else "nothing"


# --- errors ---------------------------------------------------------------------------------------

_AT = re.compile(r"^\S+\((\d+)\): *(?:\w+ )?(error|warning)", re.M)


@_never_raises
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
    if len(lines) > _LONGEST // 10:
        rest = len(lines) - _LONGEST // 10
        lines = [*lines[: _LONGEST // 10], f"... and {rest} lines more"]
    return _card(type(error).__name__, rows, _code("\n".join(map(str.expandtabs, lines))))


# --- which card -----------------------------------------------------------------------------------

_CARDS: dict[type, Callable[[Any], str]] = {
    Buffer: buffer_card,
    CompileError: error_card,
    Device: device_card,
    Graph: graph_card,
    GraphExec: exec_card,
    GraphProfile: profile_card,
    PTXError: error_card,
    Stream: stream_card,
    Tensor: tensor_card,
}


def card_of(thing: object) -> str:
    """Return the card for an object, which may be an instance of a subclass of ours."""
    return next(make(thing) for cls, make in _CARDS.items() if isinstance(thing, cls))
