# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Executable graphs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from . import _core
from ._card import card
from ._ordinal import device_at
from ._params import params_of
from ._retained import Retained, retained_of
from ._slot import bind, moved, set_uses, uses_of
from ._update import update_node
from .errors import GraphUpdateError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    import numpy as np

    from ._device import Device
    from ._graph import Graph
    from ._kernel import Kernel
    from ._launch import LaunchConfig
    from ._params import NodeParams
    from .typing import BufferLike, KernelArgument, MemoryLike, StreamLike

__all__ = ["ExecNode", "GraphExec"]


class ExecNode:
    """A node of an executable, whose parameters can be changed for later launches.

    Obtained from `GraphExec.nodes` or ``step[name]``.

    Attributes
    ----------
    exec : GraphExec
        The executable.
    name, kind : str
        Those of the `Node`.
    """

    __slots__ = ("_id", "exec", "kind", "name")
    exec: GraphExec
    name: str
    kind: str

    def __init__(self, exec: GraphExec, id: int, name: str, kind: str) -> None:
        self.exec, self._id, self.name, self.kind = exec, id, name, kind

    @overload
    def update(self, /, *, dst: MemoryLike = ..., src: MemoryLike = ...) -> None: ...
    @overload
    def update(self, /, dst: MemoryLike, value: int | BufferLike | np.generic) -> None: ...
    @overload
    def update(self, /, config: LaunchConfig, kernel: Kernel, *args: KernelArgument) -> None: ...
    @overload
    def update(
        self,
        change: LaunchConfig | Kernel | dict[int, KernelArgument],
        /,
        **arguments: KernelArgument,
    ) -> None: ...
    @overload
    def update(
        self, /, *, config: LaunchConfig = ..., kernel: Kernel = ..., **arguments: KernelArgument
    ) -> None: ...
    @overload
    def update(self, /, func: Callable[[], object]) -> None: ...
    def update(self, /, *args: Any, **kwargs: Any) -> None:
        """Change the node's parameters for later launches. Launches under way are not affected.

        Replaced operands are released as soon as the last launch that uses them has completed.

        Parameters
        ----------
        *args, **kwargs
            By the node's kind:

            - memcpy: ``dst=``, ``src=`` or both, of the same size as before;
            - memset: ``dst, value``;
            - kernel: ``config, kernel, *args``, as for `Graph.launch`; or what changes: a
              configuration, a kernel (also ``config=``, ``kernel=``), arguments by name, as
              `Kernel.parameter_names` lists them, or a dict of arguments by position;
            - host: ``func``.

        Raises
        ------
        TypeError
            If nodes of this kind cannot be updated.

        Notes
        -----
        Blocks while another thread is inside a launch of this executable.

        References
        ----------
        ``cuGraphExecMemcpyNodeSetParams``, ``cuGraphExecMemsetNodeSetParams``,
        ``cuGraphExecKernelNodeSetParams_v2``, ``cuGraphExecHostNodeSetParams``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memcpy(x, b"abcd", name="upload")
        >>> step = graph.instantiate()
        >>> step["upload"].update(src=b"efgh")
        >>> step.launch(stream)
        >>> out = bytearray(4)
        >>> x.copy_to(out, stream=stream)
        >>> out
        bytearray(b'efgh')

        A kernel's arguments one by one:

        >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
        >>> kernel = cudago.Program(source).compile()["set"]
        >>> graph = cudago.Graph(device)
        >>> config = cudago.LaunchConfig(grid=1, block=1)
        >>> node = graph.launch(config, kernel, x, 7, name="set")
        >>> step = graph.instantiate()
        >>> step["set"].update(value=8)
        >>> step["set"].update({1: 9})
        >>> step["set"].params.args[1]
        9
        """
        update_node(self, self.exec, args, kwargs)

    @property
    def params(self) -> NodeParams | None:
        """What the next launch of the node does, as `Node.params`. None for graphs in the graph."""
        if self.kind in ("child graph", "conditional"):
            return None
        return params_of(self.kind, self.exec._params(self._id), _no_graph)

    @property
    def enabled(self) -> bool:
        """Whether later launches run the node; can be set.

        Kernels, copies, fills and callbacks can be disabled; setting it for other nodes is a
        `CUDAError`. A disabled node keeps its operands, and can be updated meanwhile. Setting
        blocks as `update` does. ``cuGraphNodeSetEnabled``, ``cuGraphExecHostNodeSetParams``.
        """
        return self.exec._is_enabled(self._id)

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self.exec._set_enabled(self._id, value)

    def disabled(self) -> AbstractContextManager[None]:
        """Skip the node in the launches of a ``with`` block; then restore what was before it.

        Returns
        -------
        context manager
            It restores also if the block raises, and leaves alone an executable that the block has
            closed. Such blocks can be nested.

        Raises
        ------
        CUDAError
            If nodes of this kind cannot be disabled.

        See Also
        --------
        enabled : The same without a block.

        Notes
        -----
        Launches of other threads skip the node too. Blocks as `update` does.

        References
        ----------
        ``cuGraphNodeSetEnabled``, ``cuGraphExecHostNodeSetParams``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(x, 1, name="one").memset(x, 2, name="two")
        >>> step, out = graph.instantiate(), bytearray(4)
        >>> with step["two"].disabled():
        ...     step.launch(stream)
        >>> x.copy_to(out, stream=stream)
        >>> out[0], step["two"].enabled
        (1, True)
        """
        return _disabled(self)

    def enable(self) -> None:
        """Run the node again in later launches: ``enabled = True``.

        Raises
        ------
        CUDAError
            If nodes of this kind cannot be disabled.

        Notes
        -----
        Blocks as `update` does.

        References
        ----------
        ``cuGraphNodeSetEnabled``, ``cuGraphExecHostNodeSetParams``
        """
        self.enabled = True

    def disable(self) -> None:
        """Skip the node in later launches: ``enabled = False``.

        Raises
        ------
        CUDAError
            If nodes of this kind cannot be disabled.

        Notes
        -----
        Blocks as `update` does.

        References
        ----------
        ``cuGraphNodeSetEnabled``, ``cuGraphExecHostNodeSetParams``
        """
        self.enabled = False

    def __repr__(self) -> str:
        return f"<cudago.ExecNode {self.name!r}: {self.kind}>"


def _take_slots(step: GraphExec, graph: Graph) -> None:
    """After an update as a whole: nodes are paired in order, bodies' come after all others."""
    if not (uses_of(step) or uses_of(graph)):
        return
    ours = [row[0] for row in step._nodes()]
    theirs = [row[0] for row in graph._nodes()]
    set_uses(step, moved(uses_of(graph), dict(zip(theirs, ours, strict=False))))


def _no_graph(index: int) -> Graph:
    raise LookupError(index)


@contextmanager
def _disabled(node: ExecNode) -> Generator[None]:
    was = node.exec._set_enabled(node._id, False)
    try:
        yield
    finally:
        if not node.exec.is_closed:
            node.exec._set_enabled(node._id, was)


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
        return tuple([ExecNode(self, *row) for row in self._nodes()])

    def update(self, graph: Graph) -> None:
        """Change every node to what a graph says, for later launches.

        Launches under way are not affected. The operands from before are released as soon as the
        last launch that uses them has completed.

        Parameters
        ----------
        graph : Graph
            A graph with the same nodes, in the order in which they were added, and with the same
            dependencies. Names may differ: the executable keeps its own. The graph can be closed
            afterwards.

        Raises
        ------
        GraphUpdateError
            If the graph differs in more than parameters, or in parameters that cannot change. The
            message names the node and what differs; the executable is unchanged.

        See Also
        --------
        update_or_instantiate : Makes a new executable instead of raising.
        ExecNode.update : Changes one node.

        Notes
        -----
        Nodes that are disabled stay so. Blocks while another thread is inside a launch of this
        executable.

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
        self._update(graph)
        _take_slots(self, graph)

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
            self._update(graph)
        except GraphUpdateError:
            made: GraphExec = graph._instantiate(self._flags)
            set_uses(made, uses_of(graph))
            return made
        _take_slots(self, graph)
        return self

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the slots that nodes use."""
        return tuple(uses_of(self))

    def bind(self, **objects: KernelArgument) -> None:
        """Exchange what slots hold, for later launches, in all nodes that use them.

        What they held before is released as soon as the last launch that uses it has completed.

        Parameters
        ----------
        **objects
            By the names that were given to `slot`: objects as the nodes take them.

        Raises
        ------
        TypeError
            If there is no such slot.
        ValueError
            If a node cannot use the object, such as one of another size. No node has changed then.

        See Also
        --------
        slot : Names an operand.
        ExecNode.update : Changes one node.

        Notes
        -----
        Blocks while another thread is inside a launch of this executable. A launch of another
        thread can come between the updates of two nodes.

        References
        ----------
        ``cuGraphExecMemcpyNodeSetParams``, ``cuGraphExecMemsetNodeSetParams``,
        ``cuGraphExecKernelNodeSetParams_v2``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memcpy(x, cudago.slot("source", b"abcd"), name="up")
        >>> step = graph.instantiate()
        >>> step.bind(source=b"efgh")
        >>> step["up"].params.src
        b'efgh'
        """
        bind(self, objects)

    def __getitem__(self, name: str) -> ExecNode:
        row = self._find(name)
        if row is not None:
            return ExecNode(self, *row)
        names = ", ".join(own for _, own, _ in self._nodes())
        raise KeyError(f"no node is called {name!r}; there are {names or 'none'}")

    def __call__(self, stream: StreamLike) -> None:
        self.launch(stream)

    def _ipython_key_completions_(self) -> list[str]:
        """Complete ``step["`` in notebooks; no names if the executable is closed."""
        try:
            return [name for _, name, _ in self._nodes()]
        except ValueError:
            return []

    _repr_html_ = card

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.GraphExec: closed>"
        return f"<cudago.GraphExec of {self._count()} nodes, launched {self.launch_count} times>"


_core._set_class("GraphExec", GraphExec)
