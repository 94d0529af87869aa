# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Executable graphs. Their nodes are in ``exec_node.py``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from .. import _core
from .._card import card
from .._native import final, or_closed
from .._ordinal import device_at
from ..errors import ClosedError, CUDAError, GraphUpdateError
from .again import in_order
from .embedding import launch_into
from .exec_node import ExecNode
from .in_turn import in_turn
from .iteration import not_found
from .profile import GraphProfile, profile_of
from .retained import Retained, retained_of
from .slot import bind, moved, numbers, uses_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._memory.device import Device
    from .._stream.stream import Stream
    from ..typing import KernelArgument, StreamLike
    from .graph import Graph

__all__ = ["GraphExec"]


@final
class GraphExec(_core.GraphExec):
    """An executable graph. Created by `Graph.instantiate`.

    It keeps every operand alive until it is closed and its last launch has completed, at no cost
    per launch. ``step[name]`` is a node, and ``step(stream)`` launches. A context manager: leaving
    the ``with`` block closes the executable; launches under way complete.

    Examples
    --------
    >>> graph = cudago.Graph(device)
    >>> node = graph.memset(device.allocate(4, stream=stream), 7, name="fill")
    >>> step = graph.instantiate()
    >>> step.launch(stream)
    >>> step["fill"], step.launch_count
    (<cudago.ExecNode 'fill': memset>, 1)
    >>> [(kept.node, kept.operand, kept.nbytes) for kept in step.retained]
    [('fill', 'dst', 4)]
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device that the executable runs on."""
        return device_at(self._ordinal)

    @property
    def retained(self) -> tuple[Retained, ...]:
        """What the executable keeps alive."""
        return retained_of(self._retained())

    @property
    def nodes(self) -> tuple[ExecNode, ...]:
        """The nodes, in order of creation."""
        return tuple([self._node(*row) for row in self._nodes()])

    def __iter__(self) -> Iterator[ExecNode]:
        """Yield the nodes in topological order, as `Graph` does, with those of graphs inside."""
        rows = {row[0]: row for row in self._nodes()}
        order = in_order(list(rows), self._edges())
        return iter([self._node(*rows[number]) for number in order])

    def __contains__(self, node: object) -> bool:
        """Whether it is a node of the executable, or the name of one."""
        if isinstance(node, ExecNode):
            node = node.name if node.exec is self else None
        return isinstance(node, str) and bool(self._find(node))

    def update(self, graph: Graph) -> None:
        """Change every node to what a graph says, for later launches.

        Launches under way are not affected. The operands from before are released as soon as the
        last launch that uses them has completed.

        Parameters
        ----------
        graph : Graph
            A graph with the same nodes, added in the same order, each with the same dependencies,
            added in the same order: CUDA pairs nodes by both. Names may differ: the executable
            keeps its own. The graph can be closed afterwards.

        Raises
        ------
        GraphUpdateError
            If the graph differs in more than parameters, or in parameters that cannot change. The
            message names the node and what differs; the executable is unchanged. A note says where
            the node was made (`Node.made_at`).

        See Also
        --------
        update_or_instantiate : Makes a new executable instead of raising.
        ExecNode.update : Changes one node.

        Notes
        -----
        Nodes that are disabled stay so. Blocks while another thread is inside a launch of this
        executable.

        Where an edge was added to either graph, or an edge or a node removed, the driver may pair
        nodes that are alike in another order: then the operands of `graph` stay until the next such
        update, also those that `ExecNode.update` or `bind` replace meanwhile.

        References
        ----------
        ``cuGraphExecUpdate``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> def build(value):
        ...     graph = cudago.Graph(device)
        ...     node = graph.memset(x, value, name="fill")
        ...     return graph
        >>> step = build(1).instantiate()
        >>> step.update(build(2))
        >>> step["fill"].params.value
        2
        """
        try:
            _update(self, graph)
        except GraphUpdateError as e:
            _note_origin(e, graph)
            raise

    def update_or_instantiate(self, graph: Graph) -> GraphExec:
        """Change every node to what a graph says, or make a new executable where that cannot be.

        Parameters
        ----------
        graph : Graph
            The graph.

        Returns
        -------
        GraphExec
            This executable if it could be updated. Otherwise a new one, instantiated with the
            options of this one, which is unchanged and stays open.

        Raises
        ------
        CUDAError
            If the graph cannot be instantiated either.

        See Also
        --------
        update : Raises an error that says what differs.

        Notes
        -----
        Blocks as `update` and `Graph.instantiate` do.

        References
        ----------
        ``cuGraphExecUpdate``, ``cuGraphInstantiateWithParams``
        """
        try:
            _update(self, graph)
        except GraphUpdateError:
            uses_of(graph)
            made: GraphExec = graph._instantiate(self._flags)
            return made
        return self

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the slots that nodes use."""
        if self.is_closed:
            raise ClosedError("graph executable is closed")
        return tuple(uses_of(self))

    def _bind(self, /, *args: object, **objects: KernelArgument) -> None:
        """Do what the native `bind` leaves to Python."""
        self._count()  # is it open?
        if args:
            raise TypeError(
                f"bind takes objects by the names of their slots, and no positional arguments, got "
                f"{len(args)}"
            )
        in_turn(self, bind, self, objects)

    def profile(self, stream: StreamLike) -> GraphProfile:
        """Run each node alone, one after the other, and measure how long it takes.

        Parameters
        ----------
        stream : Stream
            Stream that orders the run.

        Returns
        -------
        GraphProfile
            The times; prints as a table.

        Raises
        ------
        UnsupportedError
            If a node cannot be run outside this executable: a conditional node, one that frees
            what another graph allocates, what another library captured; or if a child graph, a
            struct's bytes or a tensor map may hold an address of what the graph allocates. Nothing
            has run then.
        ValueError
            If what a node embeds was replaced in the executable.

        See Also
        --------
        timer : Measures work on a stream.

        Notes
        -----
        Stream-ordered on `stream`, but not after launches of this executable on other streams.
        Blocks until the nodes have run: once, with all their effects, in an order that the
        dependencies allow. It is no launch of this executable. Nodes that are disabled are left
        out. An embedded graph runs as a whole, and has one time. What the graph allocates has
        other addresses than in its launches; what it does not free is freed at the end.

        A time is that between two events, and includes the recording of one, about a microsecond.
        In a launch nodes can overlap, so that it takes less than the sum.

        References
        ----------
        ``cuGraphAddEventRecordNode``, ``cuGraphLaunch``, ``cuEventElapsedTime``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memcpy(x, b"abcd", name="upload").memset(x, 0, name="fill")
        >>> step = graph.instantiate()
        >>> [(row.name, row.kind, row.microseconds >= 0) for row in step.profile(stream).rows]
        [('upload', 'memcpy', True), ('fill', 'memset', True)]
        """
        return profile_of(self, stream)

    def _named(self, name: str) -> ExecNode:
        """Return a node that was not looked up before."""
        rows = self._find(name)
        if len(rows) == 1:
            return self._node(*rows[0])
        # Nodes of bodies are called as in "loop/fill", and so may be one of the graph.
        if rows:
            raise KeyError(f"several nodes are called {name!r}: take one of step.nodes")
        raise KeyError(not_found(name, [own for _, own, _ in self._nodes()]))

    def _launch_into(self, stream: Stream) -> bool:
        """Launch on a stream that is capturing; the native launch calls this."""
        return launch_into(self, stream)

    def _ipython_key_completions_(self) -> list[str]:
        """Complete ``step["`` in notebooks; no names if the executable is closed."""
        try:
            return [name for _, name, _ in self._nodes()]
        except ValueError:
            return []

    _repr_html_ = card

    @or_closed
    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.GraphExec: closed>"
        try:
            nodes = self._count()
        except ClosedError:  # the interpreter is ending
            return "<cudago.GraphExec: closed>"
        return f"<cudago.GraphExec of {nodes} nodes, launched {self.launch_count} times>"


def _note_origin(error: GraphUpdateError, graph: Graph) -> None:
    """Say in which line the node was made that cannot be updated."""
    with suppress(CUDAError, ValueError):
        row = graph._find(error.node) if error.node else None
        made_at = graph._made_at(row[0]) if row else None
        if made_at:
            error.add_note(f"node {error.node!r} was made at {made_at}")


def _update(step: GraphExec, graph: Graph) -> None:
    """Update as a whole. Nodes are paired in order, bodies' come after all others."""
    while True:
        uses = uses_of(graph) if isinstance(graph, _core.Graph) else {}
        theirs = graph._nodes() if uses else ()
        pairs = zip(theirs, numbers(step) if uses else (), strict=False)
        now = moved(uses, {row[0]: number for row, number in pairs})
        # Another thread may change the graph meanwhile: then it is done again.
        if step._update(graph, uses or None, now or None) and not (
            uses and graph._nodes() != theirs
        ):
            break


_core._set_class("GraphExec", GraphExec)
