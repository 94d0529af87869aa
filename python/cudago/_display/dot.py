# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What `Graph.to_dot` writes, read line by line. No other Graphviz text is understood."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_NODE = re.compile(
    r'\s*(n[\d_]+) \[label="((?:[^"\\]|\\.)*+)", fillcolor="([^"]*)", class="([^"]*)"'
    r'(?:, tooltip="((?:[^"\\]|\\.)*+)")?\];'
)
_EDGE = re.compile(r"\s*(n[\d_]+) -> (n[\d_]+)( \[[^\]]*\])?;")
_DATA = re.compile(r'style=dotted, label="((?:[^"\\]|\\.)*+)"')
_DEEPEST = 64  # levels of graphs inside graphs that are read: what is drawn of them calls itself
_INSIDE = re.compile(r'\s*label="((?:[^"\\]|\\.)*+)";')


@dataclass(eq=False)
class Drawn:
    """A node of a picture: one of the graph, or several folded into one."""

    lines: list[str]  # its name first
    kinds: Counter[str]  # how many nodes of each kind it stands for
    fill: str
    origins: list[str] = field(default_factory=lambda: list[str]())  # lines that made the nodes
    microseconds: float | None = None  # that they took
    inside: list[tuple[str, Drawing]] = field(default_factory=lambda: list[tuple[str, Drawing]]())


@dataclass(eq=False)
class Drawing:
    """A graph as it is drawn: its nodes in order of creation, and its edges."""

    nodes: list[Drawn] = field(default_factory=lambda: list[Drawn]())
    edges: list[tuple[Drawn, Drawn]] = field(default_factory=lambda: list[tuple[Drawn, Drawn]]())
    # What edges wait for, other than the end of a node.
    data: dict[tuple[Drawn, Drawn], str] = field(
        default_factory=lambda: dict[tuple[Drawn, Drawn], str]()
    )

    @property
    def size(self) -> int:
        """How many boxes it has, those inside of others among them."""
        return len(self.nodes) + sum(it.size for node in self.nodes for _, it in node.inside)

    def before(self) -> dict[Drawn, list[Drawn]]:
        """Return what each node waits for."""
        found: dict[Drawn, list[Drawn]] = {node: [] for node in self.nodes}
        for a, b in self.edges:
            found[b].append(a)
        return found

    def after(self) -> dict[Drawn, list[Drawn]]:
        """Return what waits for each node."""
        found: dict[Drawn, list[Drawn]] = {node: [] for node in self.nodes}
        for a, b in self.edges:
            found[a].append(b)
        return found


def read(dot: str, *, origins: bool = True) -> Drawing:
    """Read what `Graph.to_dot` wrote; with or without the lines that made the nodes.

    Of graphs that are nested too deep only the number of their nodes is kept.
    """
    open_now = [Drawing()]
    found: dict[str, Drawn] = {}
    hidden = 0
    for line in dot.split("\n"):
        if node := _NODE.match(line):
            made_at = [_text(node[5])] if node[5] and origins else []
            lines, kinds = _text(node[2]).split("\n"), Counter([_text(node[4])])
            drawn = Drawn(lines, kinds, node[3], made_at)
            found[node[1]] = drawn
            open_now[-1].nodes.append(drawn)
            hidden += len(open_now) > _DEEPEST
        elif edge := _EDGE.match(line):
            if "dashed" not in (edge[3] or ""):  # from a node to what is inside of it
                ends = (found[edge[1]], found[edge[2]])
                open_now[-1].edges.append(ends)
                if data := _DATA.search(edge[3] or ""):
                    open_now[-1].data[ends] = _text(data[1])
        elif label := _INSIDE.match(line):
            inner = Drawing()
            if len(open_now) != _DEEPEST:
                open_now[-1].nodes[-1].inside.append((_text(label[1]), inner))
            open_now.append(inner)
        elif line.strip() == "}" and len(open_now) > 1:
            open_now.pop()
            if len(open_now) == _DEEPEST:
                open_now[-1].nodes[-1].lines.append(f"{hidden:,} nodes inside, not shown")
                hidden = 0
    return open_now[0]


def _text(quoted: str) -> str:
    return printable(re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], quoted))


def printable(text: str) -> str:
    """Return a text that can stand in XML."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
