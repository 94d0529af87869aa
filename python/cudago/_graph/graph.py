# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Editable graphs. Executable ones are in ``exec.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .. import _core
from .. import _zconstants as _z
from .._native import final
from .._ordinal import device_at
from .._stream.fork import Fork
from .._stream.stream import stream_of
from ..errors import ClosedError
from .builder import Builder
from .collector import watch_collections
from .condition import Condition
from .diff import GraphDiff, differences
from .edge import port_of
from .foreign import Shared
from .inside import Inside
from .iteration import Iteration, not_found
from .node import Node
from .retained import Retained, retained_of
from .shown import Shown
from .slot import moved, noted, set_uses, unchanged, uses_of
from .stored import Stored

if TYPE_CHECKING:
    from .._memory.device import Device
    from ..typing import StreamLike
    from .exec import GraphExec

__all__ = ["Graph"]


@final
class Graph(Builder, Shown, Stored, Shared, Inside, Iteration, _core.Graph):
    """An editable graph of device work.

    A graph keeps every operand alive, as does each executable made from it: you can close or drop
    your own references. Created directly or by `Stream.capture`. ``graph[name]`` is a node. A
    context manager: leaving the ``with`` block closes the graph.

    Parameters
    ----------
    device : Device, optional
        The device that the graph runs on; by default device 0.

    Notes
    -----
    Methods of a graph add nodes that wait for nothing; methods of a `Node` add nodes that wait for
    it; `join` adds one that waits for several. Adding a node runs nothing before the graph is
    launched. Node names are unique in a graph: a name that is taken is a `ValueError`. Iterating
    over a graph yields its nodes in topological order; `nodes` has them in that of their creation.

    Examples
    --------
    >>> graph = cudago.Graph(device)
    >>> up = graph.memcpy(device.allocate(4, stream=stream), b"abcd", name="upload")
    >>> done = up.callback(lambda: None)
    >>> [n.name for n in graph.nodes]
    ['upload', 'host_0']
    """

    __slots__ = ()

    def __new__(cls, device: Device | None = None) -> Graph:
        """Create an empty graph."""
        made: Graph = _core._graph_new(device_at() if device is None else device)
        return made

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        return self, ()

    @property
    def device(self) -> Device:
        """The device that the graph runs on."""
        return device_at(self._ordinal)

    def join(self, *nodes: Node, name: str | None = None) -> Node:
        """Add a node that does nothing but wait for others.

        Parameters
        ----------
        *nodes : Node
            Nodes of this graph.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            A node that runs after all of `nodes`.

        References
        ----------
        ``cuGraphAddEmptyNode``

        Examples
        --------
        >>> x, y = device.allocate(4, stream=stream), device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> both = graph.join(graph.memset(x, 0), graph.memset(y, 0))
        >>> len(both.dependencies)
        2
        """
        for node in nodes:
            if not isinstance(node, Node):
                raise TypeError(f"nodes must be of type Node, not {type(node).__name__}")
        return self._node(self._add_empty(tuple(n._id for n in nodes), name))

    def fork(self, stream: StreamLike) -> Fork:
        """Let another stream take part while this graph is being captured.

        Parameters
        ----------
        stream : Stream
            The stream. What is queued on it from now on is captured, after what the captured stream
            has captured so far.

        Returns
        -------
        Fork
            Joins the stream: by `Fork.join`, or at the end of its ``with`` block. The capture fails
            if a stream with captured work is not joined before its end.

        Raises
        ------
        ValueError
            If the graph is not being captured, or the stream is in another capture.

        Notes
        -----
        Stream-ordered on `stream`, which `Stream.wait` would do as well. After the join the stream
        remains in the capture until its end.

        References
        ----------
        ``cuStreamWaitEvent``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> with device.create_stream() as other, stream.capture() as graph:
        ...     with graph.fork(other) as branch:
        ...         x.fill(1, stream=branch)
        >>> graph.nodes
        (<cudago.Node 'memset_0': memset>,)
        """
        own = stream_of(stream)
        return Fork(self._origin(own), own)

    def remove(self, node: Node) -> None:
        """Remove a node and its edges. What depended on it no longer waits for what came before.

        A second call does nothing.

        Parameters
        ----------
        node : Node
            A node of this graph.

        Raises
        ------
        CUDAError
            If the graph allocates memory: the driver then refuses to remove anything.
        ValueError
            If the node is of another graph.

        See Also
        --------
        ExecNode.enabled : Skips a node in launches.

        Notes
        -----
        The node's operands are released unless a clone, an embedding or an executable holds them
        too. Executables run the node as before; they can no longer update, enable or disable it.
        The condition of a conditional node stays with the graph, which cannot be instantiated until
        another conditional node has it: the driver has no way to give it back.

        References
        ----------
        ``cuGraphDestroyNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> first = graph.memset(device.allocate(4, stream=stream), 0, name="first")
        >>> last = first.callback(print).callback(print, name="last")
        >>> graph.remove(last.dependencies[0])
        >>> graph.add_edge(first, last)
        >>> graph.edges
        ((<cudago.Node 'first': memset>, <cudago.Node 'last': host>),)
        """
        number = _number(node, "node")
        if node.graph is self and node.is_removed and not self.is_closed:
            return
        try:
            self._remove(number, noted(self, "", (), is_new=True))
        except ClosedError:
            if self.is_closed or node.graph is not self:
                raise
            # Otherwise another thread has removed it.

    def add_edge(
        self,
        start: Node,
        end: Node,
        *,
        programmatic: (bool | Literal["programmatic", "launch_order", "launch_completion"]) = False,
    ) -> None:
        """Make one node wait for another.

        Parameters
        ----------
        start, end : Node
            Nodes of this graph; `end` will wait for `start`.
        programmatic : bool or str
            What `end` waits for, if both are kernels. By default the end of `start`. True or
            ``"programmatic"``: that all blocks of `start` have executed
            ``cudaTriggerProgrammaticLaunchCompletion()``, or ended. ``"launch_order"``: that all
            blocks of `start` have begun. Either needs compute capability 9.0.
            ``"launch_completion"``: the same as ``"launch_order"``, on any device, but
            ``cudaGridDependencySynchronize()`` does not wait for `start`.

        Raises
        ------
        ValueError
            If the edge exists, or would close a cycle; the message shows the cycle. If it is
            programmatic, and one of the nodes is no kernel.
        UnsupportedError
            If the device has no programmatic launches.

        See Also
        --------
        LaunchConfig : Makes such edges when kernel nodes are added, and in captures.
        edge_data : Which edges are programmatic.

        Notes
        -----
        A kernel behind a programmatic edge has to execute ``cudaGridDependencySynchronize()``
        before it uses what `start` writes. The simulated driver lets it wait for the end of
        `start`, which is always allowed.

        References
        ----------
        ``cuGraphAddDependencies_v2``
        """
        port = port_of(programmatic)
        self._edge(_number(start, "start"), _number(end, "end"), port)

    def remove_edge(self, start: Node, end: Node) -> None:
        """Make a node no longer wait for another.

        Parameters
        ----------
        start, end : Node
            Nodes of this graph, of which `end` waits for `start`.

        Raises
        ------
        ValueError
            If there is no such edge.
        CUDAError
            If the graph allocates memory: the driver then refuses to remove anything.

        References
        ----------
        ``cuGraphRemoveDependencies_v2``
        """
        first, last = _number(start, "start"), _number(end, "end")
        self._neighbors(last, (), (first,), False)

    def condition(self, default: int | None = None) -> Condition:
        """Create a condition for a conditional node of this graph, or of a body in it.

        Parameters
        ----------
        default : int, optional
            Value at the start of each launch. By default the value of the previous launch,
            initially 0.

        Returns
        -------
        Condition
            A conditional node must use it before the graph is instantiated.

        Raises
        ------
        UnsupportedError
            If the driver is older than CUDA 12.3.

        References
        ----------
        ``cuGraphConditionalHandleCreate``
        """
        return Condition(self, default)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, in order of creation."""
        return tuple([self._node_of(row) for row in self._nodes()])

    @property
    def edges(self) -> tuple[tuple[Node, Node], ...]:
        """Pairs of nodes, of which the second depends on the first."""
        return tuple([(self._node(a), self._node(b)) for a, b in self._edges()])

    @property
    def edge_data(self) -> dict[tuple[Node, Node], str]:
        """What edges wait for, other than a node's end, as `add_edge` takes it; by edge."""
        return {(self._node(a), self._node(b)): data for a, b, data in self._edge_data()}

    @property
    def retained(self) -> tuple[Retained, ...]:
        """What the graph keeps alive."""
        return retained_of(self._retained(0))

    def __getitem__(self, name: str) -> Node:
        row = self._find(name)
        if row is not None:
            return self._node_of(row)
        raise KeyError(not_found(name, [own for _, _, own, _ in self._nodes()]))

    def clone(self) -> Graph:
        """Return a copy of the graph, which holds the operands itself.

        Returns
        -------
        Graph
            Its nodes have the same names.

        References
        ----------
        ``cuGraphClone``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> node = graph.callback(lambda: None, name="hook")
        >>> graph.clone()["hook"] == node
        False
        """
        while True:
            if not uses_of(self):
                made: Graph = self._clone()
                if self._uses is None:
                    return made
                continue  # another thread has added a slot
            made, ours, uses = unchanged(self, lambda: self._clone())
            theirs = made._nodes()
            # Another thread may have added and removed a node, in between and without a trace.
            if [row[2] for row in ours] == [row[2] for row in theirs]:
                pairs = zip(ours, theirs, strict=True)
                set_uses(made, moved(uses, {of[0]: to[0] for of, to in pairs}))
                return made

    def instantiate(
        self, *, auto_free: bool = False, upload: StreamLike | None = None, priorities: bool = False
    ) -> GraphExec:
        """Create an executable of the graph as it is now.

        Parameters
        ----------
        auto_free : bool
            Whether memory that a launch allocated and did not free is freed before the next launch.
        upload : Stream, optional
            Uploads the executable on this stream, so that its first launch is as fast as the
            others.
        priorities : bool
            Whether nodes run with the priorities of their launches.

        Returns
        -------
        GraphExec
            It keeps the graph's present operands alive; the graph can be closed.

        Raises
        ------
        CUDAError
            If the graph cannot run; the message says why.

        Notes
        -----
        Blocks until the executable exists. The upload is stream-ordered on `upload`, which must not
        be capturing.

        References
        ----------
        ``cuGraphInstantiateWithParams``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(device.allocate(4, stream=stream), 7)
        >>> with graph.instantiate(upload=stream) as step:
        ...     step.launch(stream)
        """
        watch_collections()
        flags = _z.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH if auto_free else 0
        flags |= _z.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY if priorities else 0
        uses_of(self)  # the executable gets what there is: put together only once
        made: GraphExec = self._instantiate(flags)
        if upload is not None:
            made.upload(upload)
        return made

    def diff(self, other: Graph) -> GraphDiff:
        """Return how another graph differs from this one.

        Parameters
        ----------
        other : Graph
            The other graph. Nodes are compared with those of the same name.

        Returns
        -------
        GraphDiff
            Prints as lines: nodes and edges of one graph only, and parameters and orders that
            differ. False if there is no difference.

        See Also
        --------
        GraphExec.update : Says which node keeps an executable from becoming a graph.

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> one, other = cudago.Graph(device), cudago.Graph(device)
        >>> node = one.memset(x, 1, name="fill")
        >>> node = other.memset(x, 2, name="fill").callback(print, name="done")
        >>> one.diff(other)
        ~ 'fill': value 1 → 2
        + host node 'done'
        + edge 'fill' → 'done'
        """
        if not isinstance(other, Graph):
            raise TypeError(f"other must be a Graph, not {type(other).__name__}")
        return GraphDiff(tuple(differences(self, other)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Graph) and 0 != self._body_id == other._body_id

    def __hash__(self) -> int:
        return hash(self._body_id or id(self))


_core._set_class("Graph", Graph)


def _number(node: object, what: str) -> int:
    if not isinstance(node, Node):
        raise TypeError(f"{what} must be a Node, not {type(node).__name__}")
    return node._id
