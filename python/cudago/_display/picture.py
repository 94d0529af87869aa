# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs as SVG, with the nodes in layers from top to bottom.

Lines have the color of the surrounding text, dark or light; boxes have their own. The input is what
`Graph.to_dot` writes, line by line, and no other Graphviz text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

_NODE = re.compile(r'\s*(n[\d_]+) \[label="((?:[^"\\]|\\.)*)", fillcolor="([^"]*)"\];')
_EDGE = re.compile(r"\s*(n[\d_]+) -> (n[\d_]+);")
_INSIDE = re.compile(r'\s*label="((?:[^"\\]|\\.)*)";')
_LETTER, _LINE, _PAD, _APART, _GAP = 6, 13, 9, 18, 34  # pixels; a letter's width is a guess
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="{:.0f} 0 {width:.0f} {height:.0f}" \
width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="10" \
text-anchor="middle"><defs><marker id="cudago-end" viewBox="0 0 8 8" refX="8" refY="4" \
markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>"""


@dataclass(eq=False)
class _Box:
    """A node; or, without text, a bend of an edge that passes a layer."""

    lines: list[str] = field(default_factory=list[str])
    style: str = ""
    layer: int = 0
    x: float = 0  # of its center
    y: int = 0  # of its top
    floor: int = 0  # bottom of its layer, below which edges may run sideways
    width: int = 0
    height: int = 0
    above: list[_Box] = field(default_factory=lambda: list[_Box]())
    below: list[_Box] = field(default_factory=lambda: list[_Box]())


def svg(dot: str) -> str:
    """Return the picture of a graph from the text of `Graph.to_dot`."""
    boxes, edges = _read(dot)
    layers = _layers(boxes, edges)
    lines = [(_route(a, b, layers), style) for a, b, style in edges]
    for sweep in range(8):
        _move(layers if sweep % 2 else layers[::-1], "above" if sweep % 2 else "below")
    y = _PAD
    for layer in layers:
        floor = y + max(box.height for box in layer)
        for box in layer:
            box.y, box.floor = y, floor
        y = floor + _GAP
    left = min((box.x - box.width / 2 for box in boxes), default=0) - _PAD
    right = max((box.x + box.width / 2 for box in boxes), default=0) + _PAD
    head = _HEAD.format(left, width=right - left, height=y - _GAP + _PAD if boxes else y)
    return "\n".join([head, *map(_draw_line, lines), *map(_draw_box, boxes), "</svg>\n"])


def _read(dot: str) -> tuple[list[_Box], list[tuple[_Box, _Box, str]]]:
    boxes: dict[str, _Box] = {}
    edges: list[tuple[_Box, _Box, str]] = []
    inside: list[str] = []
    for line in dot.splitlines():
        if node := _NODE.match(line):
            lines = _text(node[2]).split("\n")
            style = f'fill="{node[3]}"' + ' stroke-dasharray="4 3"' * bool(inside)
            box = boxes[node[1]] = _Box(["/".join([*inside[-1:], lines[0]]), *lines[1:]], style)
            box.width = max(map(len, box.lines)) * _LETTER + 2 * _PAD
            box.height = len(lines) * _LINE + _PAD
        elif edge := _EDGE.match(line):
            edges.append((boxes[edge[1]], boxes[edge[2]], ""))
        elif label := _INSIDE.match(line):
            inside.append(_text(label[1]))
        elif line.strip() == "}" and inside:
            inside.pop()
    waiting = {b for _, b, _ in edges}
    edges += [  # inner nodes without dependencies are drawn after the outer node
        (boxes[name.rsplit("_", 2)[0]], box, ' stroke-dasharray="4 3"')
        for name, box in boxes.items()
        if "_" in name and box not in waiting
    ]
    return list(boxes.values()), edges


def _text(quoted: str) -> str:
    text = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], quoted)
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)  # for XML


def _layers(boxes: list[_Box], edges: list[tuple[_Box, _Box, str]]) -> list[list[_Box]]:
    """Put each node one layer below the nodes that it waits for."""
    waits, after = dict.fromkeys(boxes, 0), {box: list[_Box]() for box in boxes}
    for a, b, _ in edges:
        waits[b] += 1
        after[a].append(b)
    ready = [box for box in boxes if not waits[box]]
    for box in ready:  # grows during the loop
        for b in after[box]:
            b.layer = max(b.layer, box.layer + 1)
            waits[b] -= 1
            ready += [b] * (not waits[b])
    layers: list[list[_Box]] = [[] for _ in range(max((b.layer for b in boxes), default=-1) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    return layers


def _route(a: _Box, b: _Box, layers: list[list[_Box]]) -> list[_Box]:
    """Give an edge a bend in each layer that it passes; bends take up room as nodes do."""
    bends = [_Box(layer=layer) for layer in range(a.layer + 1, b.layer)]
    for bend in bends:
        layers[bend.layer].append(bend)
    for upper, lower in pairwise([a, *bends, b]):
        upper.below.append(lower)
        lower.above.append(upper)
    return [a, *bends, b]


def _move(layers: list[list[_Box]], side: str) -> None:
    """Center each box below its neighbours on one side, as far as the boxes beside it allow."""
    for layer in layers:
        near = {box: getattr(box, side) or [box] for box in layer}
        wanted = {box: sum(n.x for n in near[box]) / len(near[box]) for box in layer}
        layer.sort(key=lambda box: wanted[box])
        end = float("-inf")
        for box in layer:
            box.x = max(wanted[box], end + _APART + box.width / 2)
            end = box.x + box.width / 2
        right = sum(box.x - wanted[box] for box in layer) / len(layer)
        for box in layer:
            box.x -= right


def _draw_line(line: tuple[list[_Box], str]) -> str:
    boxes, style = line
    path = f"M{boxes[0].x:.1f} {boxes[0].y + boxes[0].height}"
    for a, b in pairwise(boxes):
        middle = (a.floor + b.y) / 2
        path += f"V{a.floor}C{a.x:.1f} {middle} {b.x:.1f} {middle} {b.x:.1f} {b.y}"
    return (
        f'<path d="{path}" fill="none" stroke="currentColor"{style} marker-end="url(#cudago-end)"/>'
    )


def _draw_box(box: _Box) -> str:
    left, right = f'<tspan x="{box.x:.1f}" dy="{_LINE}"', "</tspan>"
    weights = [' font-weight="bold">', *[">"] * len(box.lines)]
    rows = (left + w + escape(line) + right for w, line in zip(weights, box.lines, strict=False))
    return (
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y}" width="{box.width}" '
        f'height="{box.height}" rx="5" stroke="currentColor" {box.style}/>'
        f'<text y="{box.y + 2}" fill="#111">{"".join(rows)}</text>'
    )
