# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._builder import Builder
from ._retained import Retained, read_rows

if TYPE_CHECKING:
    from ._graph import Graph
    from ._memory import Buffer

__all__ = ["Node"]


class Node(Builder):
    """One operation of a graph. Its methods add operations that come after it.

    Made by the methods of `Graph` and of other nodes.

    Attributes
    ----------
    graph : Graph
        The graph.
    """

    __slots__ = ("_id", "graph")

    def __init__(self, graph: Graph, id: int) -> None:
        self.graph = graph
        self._id = id

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        return self.graph, (self._id,)

    def _row(self) -> list[str]:
        wanted = str(self._id)
        return next(row for row in read_rows(self.graph._text("nodes")) if row[0] == wanted)

    @property
    def name(self) -> str:
        """Name of the node, unique in its graph."""
        return self._row()[1]

    @property
    def kind(self) -> str:
        """Kind of operation: ``"kernel"``, ``"memcpy"``, ``"memset"``, ``"host"``, ..."""
        return self._row()[2]

    @property
    def dependencies(self) -> tuple[Node, ...]:
        """The nodes that this one waits for."""
        return tuple(a for a, b in self.graph.edges if b == self)

    @property
    def dependents(self) -> tuple[Node, ...]:
        """The nodes that wait for this one."""
        return tuple(b for a, b in self.graph.edges if a == self)

    @property
    def buffer(self) -> Buffer:
        """The memory that an `allocate` node allocates; ValueError for other nodes."""
        made: Buffer = self.graph._buffer(self._id)
        return made

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """The graphs that a conditional node chooses from; none for other nodes.

        They are filled as any graph, keep the graph that they are in, and go with it.
        """
        count = int(self._row()[3])
        return tuple(self.graph._body(self._id, i) for i in range(count))

    @property
    def body(self) -> Graph:
        """The first of the `bodies`; TypeError for nodes that are not conditional."""
        bodies = self.bodies
        if not bodies:
            raise TypeError(f"{self.name!r} is of kind {self.kind} and has no body")
        return bodies[0]

    @property
    def retained(self) -> tuple[Retained, ...]:
        """What the graph keeps alive for this node, for what is in it included."""
        name = self.name
        inside = f"{name}/", f"{name}["
        return tuple(r for r in self.graph.retained if r.node == name or r.node.startswith(inside))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        if self.graph.is_closed:
            return "<cudago.Node of a closed graph>"
        return f"<cudago.Node {self.name!r}: {self.kind}>"
