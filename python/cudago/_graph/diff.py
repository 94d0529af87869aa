# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How two graphs differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._kernel.launch import LaunchConfig
from .params import ChildGraphNodeParams, ConditionalNodeParams, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .graph import Graph
    from .node import Node

__all__ = ["GraphDiff"]


@dataclass(frozen=True)
class GraphDiff:
    """How two graphs differ, in lines to read. Made by `Graph.diff`; false if they do not.

    Parameters
    ----------
    lines : tuple of str
        One for each difference: ``-`` for what only the first graph has, ``+`` for what only the
        second has, ``~`` for what has changed.
    """

    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines) or "no difference"

    __repr__ = __str__


def differences(one: Graph, other: Graph, prefix: str = "") -> Iterator[str]:
    """Yield the lines: nodes, what they do, and edges; those of graphs inside after their node."""
    ours, theirs = ({n.name: n for n in g.nodes} for g in (one, other))
    for name, node in ours.items():
        if name not in theirs:
            yield f"- {node.kind} node {prefix + name!r}"
        else:
            yield from _changes(node, theirs[name], prefix + name)
    for name, node in theirs.items():
        if name not in ours:
            yield f"+ {node.kind} node {prefix + name!r}"
    before, after = _edges(one), _edges(other)
    for sign, edges, others in (("-", before, after), ("+", after, before)):
        for a, b in sorted(edges.keys() - others.keys()):
            how = f" ({edges[a, b]})" if edges[a, b] else ""
            yield f"{sign} edge {prefix + a!r} → {prefix + b!r}{how}"
    for a, b in sorted(before.keys() & after.keys()):
        if before[a, b] != after[a, b]:
            was, now = (edges[a, b] or "complete" for edges in (before, after))
            yield f"~ edge {prefix + a!r} → {prefix + b!r}: {was} → {now}"


def _edges(graph: Graph) -> dict[tuple[str, str], str]:
    data = graph.edge_data
    return {(a.name, b.name): data.get((a, b), "") for a, b in graph.edges}


def _changes(one: Node, other: Node, name: str) -> Iterator[str]:
    if one.kind != other.kind:
        yield f"~ {name!r}: {one.kind} node → {other.kind} node"
        return
    was, now = one.params, other.params
    if was is None or now is None:
        if was is not now:
            yield f"~ {name!r}: parameters are known of one node only"
    elif isinstance(was, ChildGraphNodeParams) and isinstance(now, ChildGraphNodeParams):
        yield from differences(was.graph, now.graph, f"{name}/")
    elif isinstance(was, ConditionalNodeParams) and isinstance(now, ConditionalNodeParams):
        yield from _conditional(was, now, name)
    else:
        for field, value in vars(was).items():
            yield from _values(f"~ {name!r}: {field}", value, getattr(now, field))


def _conditional(
    was: ConditionalNodeParams, now: ConditionalNodeParams, name: str
) -> Iterator[str]:
    if (was.type, len(was.bodies)) != (now.type, len(now.bodies)):
        yield f"~ {name!r}: {was.type} of {len(was.bodies)} → {now.type} of {len(now.bodies)}"
        return
    for i, (one, other) in enumerate(zip(was.bodies, now.bodies, strict=True)):
        yield from differences(one, other, f"{name}/" if len(was.bodies) == 1 else f"{name}[{i}]/")


def _values(what: str, was: Any, now: Any) -> Iterator[str]:
    if issubclass(type(was), tuple) and issubclass(type(now), tuple) and len(was) == len(now):
        for i, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from _values(f"{what}[{i}]", one, other)
    elif was is not now and not _equal(was, now):
        yield f"{what} {shown(was)} → {shown(now)}"


def _equal(was: Any, now: Any) -> bool:
    """Compare values; objects with memory are equal only to themselves, because it may change."""
    return (
        type(was) is type(now) and isinstance(was, (int, float, bytes, LaunchConfig)) and was == now
    )
