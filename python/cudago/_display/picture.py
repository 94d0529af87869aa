# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs as SVG, with the nodes in layers from top to bottom.

Lines have the color of the surrounding text, dark or light; boxes, with what is drawn in them, have
their own. Graphs inside a node are drawn in its box. Where a viewer shows titles, a box says which
lines made its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from .dot import read
from .fold import fold, layers

if TYPE_CHECKING:
    from .dot import Drawing, Drawn

_LETTER, _LINE, _PAD, _APART, _GAP = 6, 13, 9, 18, 34  # pixels; a letter's width is a guess
_SWEEPS = 8
_ORIGINS = 8  # lines of the program in a title
FOLD = 100  # boxes
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" \
width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="10" \
text-anchor="middle"><defs>{ends}</defs>"""
_INK = "#333"  # of lines in boxes
# The end of a line does not take its color.
_END, _END_INSIDE = "cudago-end", "cudago-end-inside"
_ENDS = {
    name: f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
    f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
    for name, color in ((_END, "currentColor"), (_END_INSIDE, _INK))
}


@dataclass(eq=False)
class _Box:
    """A node; or, without one, a bend of an edge that passes a layer. Places are in its graph."""

    node: Drawn | None = None
    inside: list[tuple[str, _Laid]] = field(default_factory=lambda: list[tuple[str, "_Laid"]]())
    x: float = 0  # of its center
    y: float = 0  # of its top
    floor: float = 0  # bottom of its layer, below which edges may run sideways
    width: float = 0
    height: float = 0
    above: list[_Box] = field(default_factory=lambda: list[_Box]())
    below: list[_Box] = field(default_factory=lambda: list[_Box]())

    @property
    def text_height(self) -> int:
        """Height of its lines of text."""
        return len(self.node.lines) * _LINE + _PAD if self.node else 0

    @property
    def label_height(self) -> int:
        """Height of the line that says which of the graphs inside is which."""
        return _LINE * any(label for label, _ in self.inside)


@dataclass(eq=False)
class _Laid:
    """A graph whose boxes have their places, from 0."""

    boxes: list[_Box]
    lines: list[tuple[list[_Box], str]]  # boxes and bends that an edge passes, and its data
    width: float
    height: float


def svg(dot: str, most: int | None = None, *, origins: bool = True) -> str:
    """Return the picture of a graph from the text of `Graph.to_dot`.

    With `most`, what has more boxes is folded. An image of a page shows no titles: there `origins`
    are for nobody.
    """
    graph = read(dot, origins=origins)
    return paint(graph if most is None else fold(graph, most))


def paint(graph: Drawing) -> str:
    """Return the picture of a graph, as it is."""
    laid = _laid(graph)
    drawn = _draw(laid, _PAD, _PAD, _END)
    ends = [_ENDS[_END], *[_ENDS[_END_INSIDE]] * any(node.inside for node in graph.nodes)]
    width, height = laid.width + 2 * _PAD, laid.height + 2 * _PAD
    head = _HEAD.format(width=width, height=height, ends="".join(ends))
    return "\n".join([head, *drawn, "</svg>\n"])


# --- places ---------------------------------------------------------------------------------------


def _laid(graph: Drawing) -> _Laid:
    box = {node: _box(node) for node in graph.nodes}
    depth: dict[Drawn, int] = {}
    rows: list[list[_Box]] = []
    for number, nodes in enumerate(layers(graph)):
        depth.update(dict.fromkeys(nodes, number))
        rows.append([box[node] for node in nodes])
    lines = [
        (_route(box[a], box[b], rows[depth[a] + 1 : depth[b]]), graph.data.get((a, b), ""))
        for a, b in graph.edges
    ]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 1
        _move(rows if down else rows[::-1], "above" if down else "below")
    y = 0.0
    for row in rows:
        floor = y + max(it.height for it in row)
        for it in row:
            it.y, it.floor = y, floor
        y = floor + _GAP
    everything = [it for row in rows for it in row]
    left = min((it.x - it.width / 2 for it in everything), default=0)
    for it in everything:
        it.x -= left
    right = max((it.x + it.width / 2 for it in everything), default=0)
    return _Laid(list(box.values()), lines, right, max(y - _GAP, 0))


def _box(node: Drawn) -> _Box:
    inside = ((label.removeprefix(node.lines[0]), inner) for label, inner in node.inside)
    box = _Box(node, [(label, _laid(inner)) for label, inner in inside])
    inner = [max(it.width, len(label) * _LETTER) for label, it in box.inside]
    box.width = max(
        max(map(len, node.lines)) * _LETTER + 2 * _PAD, sum(inner) + _PAD * (len(inner) + 1)
    )
    box.height = box.text_height
    if box.inside:
        box.height += box.label_height + max(it.height for _, it in box.inside) + 2 * _PAD
    return box


def _route(a: _Box, b: _Box, between: list[list[_Box]]) -> list[_Box]:
    """Give an edge a bend in each layer that it passes; bends take up room as nodes do."""
    line = [a]
    for row in between:
        line.append(_Box())
        row.append(line[-1])
    line.append(b)
    for upper, lower in pairwise(line):
        upper.below.append(lower)
        lower.above.append(upper)
    return line


def _move(rows: list[list[_Box]], side: str) -> None:
    """Center each box below its neighbours on one side, as far as the boxes beside it allow."""
    for row in rows:
        near = {box: getattr(box, side) or [box] for box in row}
        wanted = {box: sum(n.x for n in near[box]) / len(near[box]) for box in row}
        row.sort(key=lambda box: wanted[box])
        end = float("-inf")
        for box in row:
            box.x = max(wanted[box], end + _APART + box.width / 2)
            end = box.x + box.width / 2
        right = sum(box.x - wanted[box] for box in row) / len(row)
        for box in row:
            box.x -= right


# --- drawing --------------------------------------------------------------------------------------


def _draw(laid: _Laid, left: float, top: float, end: str) -> list[str]:
    drawn = [_draw_line(line, data, left, top, end) for line, data in laid.lines]
    for box in laid.boxes:
        drawn += _draw_box(box, left, top)
    return drawn


def _draw_line(boxes: list[_Box], data: str, left: float, top: float, marker: str) -> str:
    first = boxes[0]
    path = f"M{left + first.x:.1f} {top + first.y + first.height:.1f}"
    for a, b in pairwise(boxes):
        floor, end = top + a.floor, top + b.y
        middle, x = (floor + end) / 2, left + b.x
        path += f"V{floor:.1f}C{left + a.x:.1f} {middle:.1f} {x:.1f} {middle:.1f} {x:.1f} {end:.1f}"
    drawn = f'<path d="{path}" fill="none" stroke="currentColor" marker-end="url(#{marker})"'
    if not data:
        return f"{drawn}/>"
    return f'{drawn} stroke-dasharray="2 3"><title>{escape(data)}</title></path>'


def _draw_box(box: _Box, left: float, top: float) -> list[str]:
    assert box.node is not None
    x, y = left + box.x, top + box.y
    stack = ""
    if box.node.kinds.total() > 1:  # a second edge behind it
        stack = _rect(x - box.width / 2 + 3, y + 3, box, 'fill="none" class="stack"')
    color = _faint(box.node.fill) if box.inside else box.node.fill
    fill = f'fill="{escape(color)}"'
    drawn = [f"{stack}{_rect(x - box.width / 2, y, box, fill)}"]
    drawn.append(_words(box.node.lines, x, y + 2))
    if box.node.origins:  # of this box alone: those inside of it have their own
        drawn = [f"<g><title>{escape(_title(box.node.origins))}</title>", *drawn, "</g>"]
    x, y = x - box.width / 2 + _PAD, y + box.text_height
    drawn += [f'<g color="{_INK}">'] * bool(box.inside)
    for label, inner in box.inside:
        wide = max(inner.width, len(label) * _LETTER)
        drawn += [_words([label], x + wide / 2, y)] * bool(label)
        at = x + (wide - inner.width) / 2, y + box.label_height + _PAD
        drawn += _draw(inner, *at, _END_INSIDE)
        x += wide + _PAD
    drawn += ["</g>"] * bool(box.inside)
    return drawn


def _faint(color: str) -> str:
    """Return a color on which what is inside, in the full colors, stands out."""
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{255 - (255 - part) * 35 // 100:02x}" for part in parts)


def _title(origins: list[str]) -> str:
    more = len(origins) - _ORIGINS
    lines = [*origins[:_ORIGINS], *[f"and {more:,} lines more"] * (more > 0)]
    return "made at " + "\n".join(lines)


def _rect(x: float, y: float, box: _Box, style: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="5" stroke="currentColor" {style}/>'
    )


def _words(lines: list[str], x: float, y: float) -> str:
    """Write lines of text, the first one bold."""
    left, right = f'<tspan x="{x:.1f}" dy="{_LINE}"', "</tspan>"
    weights = [' font-weight="bold">', *[">"] * len(lines)]
    rows = (left + w + escape(line) + right for w, line in zip(weights, lines, strict=False))
    return f'<text y="{y:.1f}" fill="#111">{"".join(rows)}</text>'
