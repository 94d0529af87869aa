# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that can be edited. Those that can be launched are in ``_exec.py``."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from . import _core
from ._dot import render_svg
from ._retained import Retained, read_retained, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._device import Device
    from ._exec import GraphExec
    from ._kernel import Kernel
    from ._launch import LaunchConfig
    from .typing import BufferLike, KernelArgument, MemoryLike, StreamLike

__all__ = ["Graph", "Node"]

_AUTO_FREE, _UPLOAD, _PRIORITIES = 1, 2, 8  # CUDA_GRAPH_INSTANTIATE_FLAG_..., cuda.h, CUDA 12.4


class _Builder:
    """What both a graph and its nodes can do: add a node after some others."""

    __slots__ = ()

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        raise NotImplementedError

    def memcpy(self, dst: MemoryLike, src: MemoryLike, *, name: str | None = None) -> Node:
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
        BufferError
            If an operand is not C-contiguous, or `dst` is read-only.
        ClosedError
            If the graph or an operand is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        References
        ----------
        ``cuGraphAddMemcpyNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> graph.memcpy(device.allocate(4, stream=stream), b"abcd", name="upload")
        <cudago.Node 'upload': memcpy>
        """
        graph, deps = self._at()
        return Node(graph, graph._add_memcpy(deps, dst, src, name))

    def memset(self, dst: MemoryLike, value: int | BufferLike, *, name: str | None = None) -> Node:
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

        Raises
        ------
        ValueError
            If `value` does not divide the memory, a name is taken or a device does not fit.
        OverflowError
            If an int does not fit 4 bytes.
        TypeError
            If `dst` has no memory, or `value` is neither int nor bytes.
        BufferError
            If `dst` is not C-contiguous, or read-only.
        ClosedError
            If the graph or `dst` is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        References
        ----------
        ``cuGraphAddMemsetNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> graph.memset(device.allocate(4, stream=stream), 0)
        <cudago.Node 'memset_0': memset>
        """
        graph, deps = self._at()
        return Node(graph, graph._add_memset(deps, dst, value, name))

    def launch(
        self,
        config: LaunchConfig,
        kernel: Kernel,
        *args: KernelArgument,
        name: str | None = None,
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
            If an argument does not fit the kernel's parameter, the shape the device, or a name is
            taken.
        ClosedError
            If the graph or an argument is closed.
        CUDAError
            If the driver refuses.

        See Also
        --------
        cudago.launch : The same at once, on a stream.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held;
        loading the kernel on the graph's device releases it. Captures are not affected.

        References
        ----------
        ``cuGraphAddKernelNode_v2``

        Examples
        --------
        >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
        >>> kernel = cudago.Program(source).compile()["set"]
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> graph.launch(cudago.LaunchConfig(grid=1, block=1), kernel, x, 7, name="set")
        <cudago.Node 'set': kernel>
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

        Raises
        ------
        TypeError
            If `func` is not callable.
        ValueError
            If a name is taken.
        ClosedError
            If the graph is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        All callbacks run one after the other, with the GIL held; device work behind one waits for
        it.

        References
        ----------
        ``cuGraphAddHostNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> node = graph.callback(lambda: print("step done"))
        >>> graph.instantiate().launch(stream)
        >>> stream.sync()
        step done
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

        Raises
        ------
        TypeError
            If `other` is no Graph.
        ValueError
            If a name is taken, or the graphs are on different devices.
        ClosedError
            If either graph is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected. Later changes of `other` do not reach this graph.

        References
        ----------
        ``cuGraphAddChildGraphNode``

        Examples
        --------
        >>> inner, outer = cudago.Graph(device), cudago.Graph(device)
        >>> node = inner.memset(device.allocate(4, stream=stream), 0)
        >>> outer.embed(inner, name="inner").kind
        'child graph'
        """
        graph, deps = self._at()
        return Node(graph, graph._add_child(deps, other, name))


class Node(_Builder):
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
    drop what you like. Made by itself or by `Stream.capture`. A context manager: leaving the
    ``with`` block closes the graph. ``graph[name]`` is a node.

    Parameters
    ----------
    device : Device, optional
        Where the graph runs; by default device 0.

    Notes
    -----
    Methods of the graph add nodes that wait for nothing, methods of a `Node` such that wait for it;
    `join` makes one that waits for several.

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

        Raises
        ------
        TypeError
            If one of `nodes` is no Node.
        ValueError
            If one is of another graph, or a name is taken.
        ClosedError
            If the graph is closed.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

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
        return Node(self, self._add_empty(tuple(n._id for n in nodes), name))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, in order of creation."""
        return tuple(Node(self, int(row[0])) for row in read_rows(self._text("nodes")))

    @property
    def edges(self) -> tuple[tuple[Node, Node], ...]:
        """Pairs of nodes, of which the second waits for the first."""
        return tuple(
            (Node(self, int(a)), Node(self, int(b))) for a, b in read_rows(self._text("edges"))
        )

    @property
    def retained(self) -> tuple[Retained, ...]:
        """What the graph keeps alive."""
        return read_retained(self)

    def __getitem__(self, name: str) -> Node:
        rows = read_rows(self._text("nodes"))
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

        Raises
        ------
        ClosedError
            If the graph is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered. Returns at once, with the GIL held. Captures are not affected.

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
        made: Graph = self._clone()
        return made

    def instantiate(
        self, *, auto_free: bool = False, upload: StreamLike | None = None, priorities: bool = False
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
        ClosedError
            If the graph is closed.
        OutOfMemoryError, CUDAError
            If the graph cannot run; the text says why.

        Notes
        -----
        Not stream-ordered, but for the upload. Blocks until done, with the GIL released. Captures
        are not affected, unless it is `upload` that is capturing.

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

        Examples
        --------
        >>> cudago.Graph(device).to_dot().startswith("digraph")
        True
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
            rows = read_rows(self._text("nodes"))
        except ValueError:
            return "<cudago.Graph: capturing>"
        return f"<cudago.Graph of {len(rows)} nodes>"


_core._set_class("Graph", Graph)


def _watch_collections() -> None:
    """Let the collector see which executables are idle: pyext/native/budget.c."""
    if _core._collect_prove not in gc.callbacks:
        gc.callbacks.append(_core._collect_prove)
