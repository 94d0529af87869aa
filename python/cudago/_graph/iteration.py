# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes of graphs, each after those that it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._native import names_text, value_text
from .again import in_order
from .node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator


class Iteration:
    """The part of `Graph` that iterates over it."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Node]:
        """Yield the nodes as of now in topological order: each after those that it waits for.

        Otherwise they come in the order of creation. `Graph.nodes` has them in that order alone,
        in which a node can come before one that it waits for: by `add_edge`, and in captures.
        """
        graph: Any = self
        rows = {row[0]: row for row in graph._nodes()}
        # Another thread can have added nodes in between.
        edges = [(a, b) for a, b in graph._edges() if a in rows and b in rows]
        order = in_order(list(rows), edges)
        return iter([graph._node_of(rows[number]) for number in order])

    def __contains__(self, node: object) -> bool:
        """Whether it is a node of the graph, or the name of one."""
        graph: Any = self
        if isinstance(node, str):
            return graph._find(node) is not None
        if not isinstance(node, Node):
            return False
        try:
            graph._node_row(node._id)
        except ValueError:  # of another graph, or removed: or is the graph closed?
            graph._count()
            return False
        return True


def not_found(name: object, names: list[str]) -> str:
    """Return why there is no such node among those of these names."""
    what = "no node is called" if isinstance(name, str) else "nodes are found by name, not by"
    return f"{what} {value_text(name)}; {names_text(names)}"
