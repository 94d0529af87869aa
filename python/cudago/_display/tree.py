# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs as text: a line for each node, indented below what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dot import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .dot import Drawing, Drawn

_DEEPEST = 8  # levels that are indented further; each node says what it waits for anyway
_MOST, _MOST_NAMES = 200, 6  # lines, and names in one


def tree(title: str, dot: str) -> str:
    """Return the text of a graph from that of `Graph.to_dot`.

    A node that waits for the node above it alone stands below it; where several nodes wait for one,
    they are indented. A node that waits for something else says so.
    """
    lines = [title]
    for number, line in enumerate(_lines(read(dot), "")):
        if number == _MOST:
            return "\n".join([*lines, "… and more: see nodes, to_svg() and to_dot()"])
        lines.append(line)
    return "\n".join(lines)


def _lines(graph: Drawing, indent: str) -> Iterator[str]:
    before, after = graph.before(), graph.after()
    waits = {node: len(them) for node, them in before.items()}
    depth = {node: 0 for node in graph.nodes if not waits[node]}
    ready = list(reversed(depth))
    at: list[Drawn] = []  # the last node at each level
    above: Drawn | None = None
    while ready:
        node = ready.pop()
        own = depth[node]
        silent = [above] if own >= len(at) else [above, *at[own - 1 : own]]
        del at[own:]
        at.append(node)
        data = {a: graph.data.get((a, node), "") for a in before[node]}
        yield from _node(node, _after(data, silent), indent + "  " * min(own, _DEEPEST))
        above = node
        for later in reversed(after[node]):
            waits[later] -= 1
            if not waits[later]:
                depth[later] = _depth(before[later], depth, after)
                ready.append(later)


def _depth(before: list[Drawn], depth: dict[Drawn, int], after: dict[Drawn, list[Drawn]]) -> int:
    """Return the level of a node: that of what it waits for, one deeper if others do too."""
    if len(before) == 1:
        return depth[before[0]] + (len(after[before[0]]) > 1)
    return max(0, min(depth[node] for node in before) - 1)  # it ends the branches


def _after(data: dict[Drawn, str], silent: list[Drawn | None]) -> str:
    before = list(data)
    if len(before) == 1 and before[0] in silent and not data[before[0]]:
        return ""
    if not before:
        return ", at once" * (silent[0] is not None)
    names = ", ".join(
        _name(node) + f" ({data[node]})" * bool(data[node]) for node in before[:_MOST_NAMES]
    )
    more = len(before) - _MOST_NAMES
    return f", after {names}" + f" and {more} more" * (more > 0)


def _node(node: Drawn, after: str, indent: str) -> Iterator[str]:
    facts = [line for line in node.lines[_kind_at(node) :] if not line.startswith("keeps ")]
    yield f"{indent}{_name(node)}: {', '.join(facts)}{after}"
    for label, inner in node.inside:
        yield f"{indent}  {label.removeprefix(node.lines[0]) or 'inside'}:"
        yield from _lines(inner, indent + "    ")


def _kind_at(node: Drawn) -> int:
    (kind,) = node.kinds
    return node.lines.index(kind, 1)  # a name can have several lines


def _name(node: Drawn) -> str:
    return " ".join(node.lines[: _kind_at(node)])
