# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs: built once, launched often, and keeping what they were given."""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core
from ._dot import render_svg

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._device import Device
    from ._launch import LaunchConfig
    from ._program import Kernel
    from ._stream import Stream

__all__ = ["ExecNode", "Graph", "GraphExec", "Node", "Retained"]

_AUTO_FREE, _UPLOAD, _PRIORITIES = 1, 2, 8  # CUDA_GRAPH_INSTANTIATE_FLAG_..., cuda.h, CUDA 12.4


def _rows(text: str) -> list[list[str]]:
    """Split what the native module says: fields end in U+001F, lines in U+001E."""
    return [line.split("\x1f") for line in text.split("\x1e")[:-1]]


@dataclass(frozen=True)
class Retained:
    """One thing that a graph or an executable keeps alive.

    Parameters
    ----------
    node : str
        Name of the node that uses it.
    operand : str
        Its part in the node: ``"dst"``, ``"src"``, ``"argument 1"``, ``"callback"``, ``"kernel"``.
    object : object
        The object that was handed in.
    nbytes : int
        Bytes of its memory that are kept; 0 for what has none.
    reason : str
        Kind of operation: ``"memcpy"``, ``"memset"``, ``"kernel"``, ``"host"``.
    """

    node: str
    operand: str
    object: Any
    nbytes: int
    reason: str


def _retained(holder: Any) -> tuple[Retained, ...]:
    found = []
    for node, operand, address, nbytes, reason in _rows(holder._text("retained")):
        held = holder._held(int(address)) if address != "0" else None
        if held is None:
            continue
        kept = held.object if isinstance(held, _core.Operand) else held
        found.append(Retained(node, operand, kept, int(nbytes), reason))
    return tuple(found)


class _Builder:
    """What both a graph and its nodes can do: add a node after some others."""

    __slots__ = ()

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        raise NotImplementedError

    def memcpy(self, dst: Any, src: Any, *, name: str | None = None) -> Node:
        """Add a copy. Host memory is read again at each launch.

        Parameters
        ----------
        dst, src : Buffer, Pointer, Tensor, or any object with memory
            NumPy arrays, ``bytes``, ``bytearray``, tensors of other libraries. Same size;
            contiguous. The graph keeps both, and a ``bytearray`` cannot be resized meanwhile.
        name : str, optional
            Unique in the graph; by default ``memcpy_0``, ...

        Returns
        -------
        Node
            The new node, after this one.

        Raises
        ------
        ValueError
            If sizes differ, a name is taken or a device does not fit.
        TypeError
            If an operand has no memory.
        ClosedError
            If the graph or an operand is closed.

        References
        ----------
        ``cuGraphAddMemcpyNode``
        """
        graph, deps = self._at()
        return Node(graph, graph._add_memcpy(deps, dst, src, name))

    def memset(self, dst: Any, value: Any, *, name: str | None = None) -> Node:
        """Add a fill.

        Parameters
        ----------
        dst : Buffer, Pointer, Tensor, or any object with memory
            What to fill; the graph keeps it.
        value : int or bytes
            Of 1, 2 or 4 bytes.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        References
        ----------
        ``cuGraphAddMemsetNode``
        """
        graph, deps = self._at()
        return Node(graph, graph._add_memset(deps, dst, value, name))

    def launch(
        self, config: LaunchConfig, kernel: Kernel, *args: Any, name: str | None = None
    ) -> Node:
        """Add a kernel launch.

        Parameters
        ----------
        config : LaunchConfig
            The shape of the launch.
        kernel : Kernel
            The kernel.
        *args
            As for `cudago.launch`. The graph keeps everything that has memory.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        Raises
        ------
        TypeError, OverflowError, ValueError
            If an argument does not fit the kernel's parameter, or the shape the device.

        References
        ----------
        ``cuGraphAddKernelNode``
        """
        graph, deps = self._at()
        return Node(graph, graph._add_kernel(deps, config, kernel, args, name))

    def callback(self, func: Callable[[], Any], *, name: str | None = None) -> Node:
        """Add a call of a Python function.

        Parameters
        ----------
        func : callable
            Called without arguments, on a thread of cudago's. It must not call CUDA. An exception
            goes to `sys.unraisablehook`, and the graph goes on.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        References
        ----------
        ``cuGraphAddHostNode``
        """
        graph, deps = self._at()
        return Node(graph, graph._add_host(deps, func, name))

    def embed(self, other: Graph, *, name: str | None = None) -> Node:
        """Add another graph, as it is now, as one node.

        Parameters
        ----------
        other : Graph
            The graph. This graph keeps its operands for itself.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        References
        ----------
        ``cuGraphAddChildGraphNode``
        """
        graph, deps = self._at()
        return Node(graph, graph._add_child(deps, other, name))


class Node(_Builder):
    """One operation of a graph. Its methods add operations that come after it."""

    __slots__ = ("_id", "graph")

    def __init__(self, graph: Graph, id: int) -> None:
        self.graph = graph
        self._id = id

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        return self.graph, (self._id,)

    def _row(self) -> list[str]:
        wanted = str(self._id)
        return next(row for row in _rows(self.graph._text("nodes")) if row[0] == wanted)

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
    def retained(self) -> tuple[Retained, ...]:
        """What the graph keeps alive for this node."""
        name = self.name
        return tuple(r for r in self.graph.retained if r.node == name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        if self.graph.is_closed:
            return "<cudago.Node of a closed graph>"
        return f"<cudago.Node {self.name!r}: {self.kind}>"


class Graph(_Builder, _core.Graph):
    """An editable graph of device work.

    A graph keeps every operand that it is given, and so does each executable made from it: close or
    drop what you like.

    Parameters
    ----------
    device : Device, optional
        Where the graph runs; by default device 0.

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
        """Make an empty graph."""
        from ._device import Device

        made: Graph = _core._graph_new(device or Device())
        return made

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        return self, ()

    @property
    def device(self) -> Device:
        """The device that the graph runs on."""
        from ._device import Device

        return Device(self._ordinal)

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
            What comes after it comes after all of `nodes`.

        References
        ----------
        ``cuGraphAddEmptyNode``
        """
        for node in nodes:
            if not isinstance(node, Node):
                raise TypeError(f"nodes must be of type Node, not {type(node).__name__}")
        return Node(self, self._add_empty(tuple(n._id for n in nodes), name))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, in order of creation."""
        return tuple(Node(self, int(row[0])) for row in _rows(self._text("nodes")))

    @property
    def edges(self) -> tuple[tuple[Node, Node], ...]:
        """Pairs of nodes, of which the second waits for the first."""
        return tuple(
            (Node(self, int(a)), Node(self, int(b))) for a, b in _rows(self._text("edges"))
        )

    @property
    def retained(self) -> tuple[Retained, ...]:
        """What the graph keeps alive."""
        return _retained(self)

    def __getitem__(self, name: str) -> Node:
        rows = _rows(self._text("nodes"))
        for id, own, _ in rows:
            if own == name:
                return Node(self, int(id))
        raise KeyError(
            f"no node is called {name!r}; there are {', '.join(r[1] for r in rows) or 'none'}"
        )

    def clone(self) -> Graph:
        """Return a copy, which keeps the operands for itself.

        Returns
        -------
        Graph
            With the same names.

        References
        ----------
        ``cuGraphClone``
        """
        made: Graph = self._clone()
        return made

    def instantiate(
        self, *, auto_free: bool = False, upload: Stream | None = None, priorities: bool = False
    ) -> GraphExec:
        """Make an executable of the graph as it is now.

        Parameters
        ----------
        auto_free : bool
            Whether memory that a launch allocated and did not free is freed before the next one.
        upload : Stream, optional
            Uploads the executable on that stream, so that its first launch is as quick as others.
        priorities : bool
            Whether nodes run with the priorities of their launches.

        Returns
        -------
        GraphExec
            It keeps what the graph keeps now. The graph can be closed.

        Raises
        ------
        CUDAError
            If the graph cannot run; the text says why.

        Notes
        -----
        Blocks with the GIL released.

        References
        ----------
        ``cuGraphInstantiateWithParams``
        """
        _watch_collections()
        made: GraphExec = self._instantiate(_AUTO_FREE * auto_free | _PRIORITIES * priorities)
        if upload is not None:
            made.upload(upload)
        return made

    def to_dot(self) -> str:
        """Return the graph in Graphviz's language.

        Returns
        -------
        str
            Nodes with names, kinds, sizes and what they keep.
        """
        return str(self._text("dot"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a picture in notebooks."""
        bundle = {"text/plain": repr(self)}
        if not self.is_closed and (svg := render_svg(self.to_dot())):
            bundle["image/svg+xml"] = svg
        return bundle

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.Graph: closed>"
        try:
            rows = _rows(self._text("nodes"))
        except ValueError:
            return "<cudago.Graph: capturing>"
        return f"<cudago.Graph of {len(rows)} nodes>"


class ExecNode:
    """A node of an executable, by which its parameters are changed for later launches."""

    __slots__ = ("_id", "exec", "kind", "name")

    def __init__(self, exec: GraphExec, id: int, name: str, kind: str) -> None:
        self.exec, self._id, self.name, self.kind = exec, id, name, kind

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Change what the node does in later launches; launches under way keep the old.

        What was replaced is released when the last launch that used it has ended, not later.

        Parameters
        ----------
        dst, src : optional
            Of a memcpy node: one or both. Same size as before.
        dst, value
            Of a memset node.
        config, kernel, *args
            Of a kernel node, positional, as for `Graph.launch`.
        func
            Of a host node.

        Raises
        ------
        TypeError
            If the node's kind cannot be updated, or the arguments are not those of its kind.
        ValueError
            If sizes differ.
        CUDAError
            If the driver refuses. The node does what it did before.

        References
        ----------
        ``cuGraphExecMemcpyNodeSetParams`` and its kin
        """
        call = _UPDATES.get(self.kind)
        if call is None:
            raise TypeError(
                f"{self.name!r} is of kind {self.kind}, whose parameters cannot be updated; "
                f"only {', '.join(_UPDATES)} nodes can be"
            )
        call(self, *args, **kwargs)

    def _update_memcpy(self, *, dst: Any = None, src: Any = None) -> None:
        if dst is None and src is None:
            raise TypeError("update of a memcpy node needs dst=, src= or both")
        self.exec._update_memcpy(self._id, dst, src)

    def _update_memset(self, dst: Any, value: Any) -> None:
        self.exec._update_memset(self._id, dst, value)

    def _update_kernel(self, config: LaunchConfig, kernel: Kernel, *args: Any) -> None:
        self.exec._update_kernel(self._id, config, kernel, args)

    def _update_host(self, func: Callable[[], Any]) -> None:
        self.exec._update_host(self._id, func)

    def enable(self) -> None:
        """Let the node run again in later launches."""
        self.exec._set_enabled(self._id, True)

    def disable(self) -> None:
        """Let later launches skip the node. Its operands stay kept: it can be enabled again."""
        self.exec._set_enabled(self._id, False)

    def __repr__(self) -> str:
        return f"<cudago.ExecNode {self.name!r}: {self.kind}>"


_UPDATES: dict[str, Callable[..., None]] = {
    "kernel": ExecNode._update_kernel,
    "memcpy": ExecNode._update_memcpy,
    "memset": ExecNode._update_memset,
    "host": ExecNode._update_host,
}


class GraphExec(_core.GraphExec):
    """A graph that can be launched. Made by `Graph.instantiate`.

    It keeps every operand until it is closed and its last launch has ended. Launching costs nothing
    for that. A context manager.
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device that the executable runs on."""
        from ._device import Device

        return Device(self._ordinal)

    @property
    def retained(self) -> tuple[Retained, ...]:
        """What the executable keeps alive."""
        return _retained(self)

    @property
    def nodes(self) -> tuple[ExecNode, ...]:
        """The nodes, in order of creation."""
        rows = sorted(_rows(self._text("nodes")), key=lambda row: int(row[0]))
        return tuple(ExecNode(self, int(id), name, kind) for id, name, kind in rows)

    def __getitem__(self, name: str) -> ExecNode:
        nodes = self.nodes
        for node in nodes:
            if node.name == name:
                return node
        raise KeyError(
            f"no node is called {name!r}; there are {', '.join(n.name for n in nodes) or 'none'}"
        )

    def __call__(self, stream: Stream) -> None:
        self.launch(stream)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.GraphExec: closed>"
        return f"<cudago.GraphExec of {len(self.nodes)} nodes, launched {self.launch_count} times>"


_core._set_class("Graph", Graph)
_core._set_class("GraphExec", GraphExec)


def _watch_collections() -> None:
    """Let the collector see which executables are idle: pyext/native/budget.c."""
    if _core._collect_prove not in gc.callbacks:
        gc.callbacks.append(_core._collect_prove)


def _start_callback_worker() -> None:
    """Start the thread that runs Python callbacks. Called by the native module."""
    threading.Thread(target=_core._callback_loop, name="cudago callbacks", daemon=True).start()
