# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes at the other ends of a node's edges, as a set."""

from __future__ import annotations

from collections.abc import MutableSet, Sequence
from typing import TYPE_CHECKING, Any, cast

from .._native import or_closed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .node import Node

__all__ = ["Neighbors"]


class Neighbors(MutableSet["Node"]):
    """The nodes that a node waits for, or that wait for it: `Node.dependencies`, `Node.dependents`.

    A set that shows the edges as they are now, in the order in which they were made. Adding a node
    to it adds an edge, as `Graph.add_edge`, and discarding one removes the edge, as
    `Graph.remove_edge`; operations that do several of these stop at the first error. It can be
    indexed, and is equal to a set of the same nodes and to a tuple of them in this order.

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

    __slots__ = ("_add", "_ends", "_remove")

    _ends: Callable[[], tuple[Node, ...]]
    _add: Callable[[Node], None]
    _remove: Callable[[Node], None]

    def __init__(self) -> None:
        raise TypeError("Neighbors are made by cudago: node.dependencies and node.dependents")

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        """Make the result of ``|``, ``&``, ``-`` and ``^``: a set that is nobody's."""
        return set(it)

    def __contains__(self, node: object) -> bool:
        return node in self._ends()

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
        if value not in self:
            self._add(value)

    def discard(self, value: Node) -> None:
        """Remove the edge, if there is one.

        Parameters
        ----------
        value : Node
            The node at its other end.
        """
        if value in self:
            self._remove(value)

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
    add: Callable[[Node], None],
    remove: Callable[[Node], None],
) -> Neighbors:
    """Make the set of the nodes that a function returns."""
    made = Neighbors.__new__(Neighbors)
    made._ends, made._add, made._remove = ends, add, remove
    return made


def replace(now: Neighbors, nodes: Iterable[Node]) -> None:
    """Make these the nodes. If one cannot be, what was added before it is taken back."""
    wanted = list(nodes)
    added: list[Node] = []
    try:
        for node in wanted:
            if node not in now:
                now.add(node)
                added.append(node)
    except BaseException:
        for node in added:
            now.discard(node)
        raise
    for node in now:
        if node not in wanted:
            now.discard(node)
