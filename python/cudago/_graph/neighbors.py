# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes at the other ends of a node's edges, as a set."""

from __future__ import annotations

from collections.abc import MutableSet, Sequence
from typing import TYPE_CHECKING, Any, cast

from .. import _core
from .._native import or_closed

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from typing import Self

    from .node import Node

__all__ = ["Neighbors"]


class Neighbors(MutableSet["Node"]):
    """The nodes that a node waits for, or that wait for it: `Node.dependencies`, `Node.dependents`.

    A set that shows the edges as they are now, in the order in which they were made. Adding a node
    to it adds an edge, as `Graph.add_edge`, and discarding one removes the edge, as
    `Graph.remove_edge`; operations that do several of these do all of them, or none after an
    error or Ctrl-C. It can be indexed, and is equal to a set of the same nodes and to a tuple of
    them in this order.

    Examples
    --------
    >>> graph = cudago.Graph(device)
    >>> first, last = graph.join(name="first"), graph.join(name="last")
    >>> last.dependencies.add(first)
    >>> first.dependents
    {<cudago.Node 'last': empty>}
    >>> last.dependencies -= {first}
    >>> graph.edges
    ()
    """

    __slots__ = ("_ends", "_has", "_set")

    _ends: Callable[[], tuple[Node, ...]]
    _set: Callable[[tuple[int, ...], tuple[int, ...]], None]  # of nodes to add, and to remove
    _has: Callable[[int], bool]  # whether a node is among them, whose number may be of no node

    def __init__(self) -> None:
        raise TypeError("Neighbors are made by cudago: node.dependencies and node.dependents")

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        """Make the result of ``|``, ``&``, ``-`` and ``^``: a set that is nobody's."""
        return set(it)

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, _core.Node):
            return False
        try:
            return self._has(node._id)
        except ValueError:  # of another graph, or removed; or is the graph closed?
            self._ends()
            return False

    def __iter__(self) -> Iterator[Node]:
        return iter(self._ends())

    def __len__(self) -> int:
        return len(self._ends())

    def __getitem__(self, index: int) -> Node:
        return self._ends()[index]

    def add(self, value: Node) -> None:
        """Add an edge, unless there is one.

        Parameters
        ----------
        value : Node
            A node of the same graph.

        Raises
        ------
        TypeError, ValueError
            As for `Graph.add_edge`.
        """
        number = _number(value)
        try:
            if not self._has(number):
                self._set((number,), ())
        except ValueError:
            if value not in self:  # else another thread has added it in between
                raise

    def discard(self, value: Node) -> None:
        """Remove the edge, if there is one.

        Parameters
        ----------
        value : Node
            The node at its other end.
        """
        try:
            if value in self:
                self._set((), (value._id,))
        except ValueError:
            if value in self:  # else another thread has removed it in between
                raise

    def clear(self) -> None:
        """Remove all of the edges."""
        self._change((), self._ends())

    def _change(self, add: Iterable[object], remove: Container[object]) -> None:
        """Add edges to nodes, and remove those to others, in one call: see ``_neighbors``."""
        wanted = [_number(node) for node in add]
        while True:
            ends = self._ends()
            now = {node._id for node in ends}
            new = dict.fromkeys([number for number in wanted if number not in now])
            old = [node._id for node in ends if node in remove]
            try:
                if new or old:
                    self._set(tuple(new), tuple(old))
            except ValueError:
                if self._ends() != ends:  # another thread has changed some in between
                    continue
                raise
            return

    def _but(self, kept: Iterable[object]) -> set[Node]:
        return set(self._ends()).difference(_nodes(kept))

    def _replace(self, nodes: Iterable[object]) -> None:
        """Make these the nodes."""
        wanted = list(nodes)
        self._change(wanted, self._but(wanted))

    # What MutableSet has of these adds and discards one by one.

    def __ior__(self, it: Iterable[object]) -> Self:
        self._change(list(it), ())
        return self

    def __isub__(self, it: Iterable[object]) -> Self:  # type: ignore[misc]
        self._change((), _nodes(it))
        return self

    def __iand__(self, it: Iterable[object]) -> Self:  # type: ignore[misc]
        self._change((), self._but(it))
        return self

    def __ixor__(self, it: Iterable[object]) -> Self:
        others = list(it)
        self._change(others, _nodes(others))
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence):
            return self._ends() == tuple(cast("Sequence[object]", other))
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    @or_closed
    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self._ends()))}}}"


def neighbors(
    ends: Callable[[], tuple[Node, ...]],
    change: Callable[[tuple[int, ...], tuple[int, ...]], None],
    has: Callable[[int], bool],
) -> Neighbors:
    """Make the set of the nodes that a function returns."""
    made = Neighbors.__new__(Neighbors)
    made._ends, made._set, made._has = ends, change, has
    return made


def _number(node: object) -> int:
    if not isinstance(node, _core.Node):
        raise TypeError(f"nodes must be of type Node, not {type(node).__name__}")
    return node._id


def _nodes(of: Iterable[object]) -> set[Node]:
    return {cast("Node", it) for it in of if isinstance(it, _core.Node)}
