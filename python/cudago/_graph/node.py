# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from .. import _core
from .._native import final, or_closed
from ..errors import ClosedError
from .builder import Builder
from .in_turn import in_turn
from .neighbors import Neighbors, neighbors
from .params import params_of
from .retained import Retained, retained_of
from .update import update_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import SupportsIndex

    import numpy as np

    from .._kernel.kernel import Kernel
    from .._kernel.launch import LaunchConfig
    from .._memory.buffer import Buffer, Pointer
    from .._stream.event import Event
    from .._stream.semaphore import ExternalSemaphore
    from .._tensor.tensor import Tensor
    from ..typing import BufferLike, KernelArgument, MemoryLike, WaitCondition
    from .graph import Graph
    from .params import NodeParams
    from .slot import Slot

__all__ = ["Node"]


@final
class Node(Builder, _core.Node):
    """One operation of a graph. Its methods add operations that depend on it.

    Created by the methods of `Graph` and of other nodes. Once it has been removed (`Graph.remove`),
    using it raises `ClosedError`. Whoever looks a node up gets the same object, as long as somebody
    has it.
    """

    __slots__ = ()

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        return self.graph, (self._id,)

    def _row(self) -> tuple[int, int, str, str]:
        if self._known is None:
            self._known = self.graph._node_row(self._id)
        else:
            self.graph._check(self._id)
        return self._known

    @property
    def name(self) -> str:
        """Name of the node, unique in its graph."""
        return self._row()[2]

    @property
    def kind(self) -> str:
        """Kind of operation: ``"kernel"``, ``"memcpy"``, ``"memset"``, ``"host"``, ..."""
        return self._row()[3]

    @property
    def made_at(self) -> str | None:
        """The line that made the node, as ``"train.py:31"``: the nearest that is not cudago's.

        With the file's name as Python has it. In a capture, the line that queued the operation; for
        a free, the one that closed the memory last, and None if nobody closed it.
        Clones, graphs that embed this one, and executables have the same. None where it is not
        known: for what other libraries have captured, in a graph of another library's handle or of
        a file, and while `cudago.debug.record_origins` is off.
        """
        return self.graph._made_at(self._id)

    @property
    def dependencies(self) -> Neighbors:
        """The nodes that this node waits for: a set, which adds and removes edges."""
        graph = self.graph
        graph._check(self._id)
        return neighbors(
            lambda: tuple([graph._node(id) for (id,) in graph._dependencies(self._id)]),
            lambda add, remove: graph._neighbors(self._id, add, remove, False),
            lambda other: graph._has_edge(other, self._id),
        )

    @dependencies.setter
    def dependencies(self, nodes: Iterable[Node]) -> None:
        self.dependencies._replace(nodes)

    @property
    def dependents(self) -> Neighbors:
        """The nodes that wait for this one: a set, which adds and removes edges."""
        graph = self.graph
        graph._check(self._id)
        return neighbors(
            lambda: tuple([graph._node(id) for (id,) in graph._dependents(self._id)]),
            lambda add, remove: graph._neighbors(self._id, add, remove, True),
            lambda other: graph._has_edge(self._id, other),
        )

    @dependents.setter
    def dependents(self, nodes: Iterable[Node]) -> None:
        self.dependents._replace(nodes)

    @property
    def is_removed(self) -> bool:
        """Whether the node was removed from its graph, or that was closed."""
        try:
            self.graph._check(self._id)
        except ClosedError:
            return True
        return False

    @property
    def buffer(self) -> Buffer:
        """The memory of an `allocate` node; ValueError for other nodes."""
        made: Buffer = self.graph._buffer(self._id)
        return made

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """The bodies of a conditional node, which are graphs; empty for other nodes.

        Add nodes to them as to any graph. They keep the graph that contains them alive, and end
        with it.
        """
        return tuple(self.graph._body(self._id, i) for i in range(self._row()[1]))

    @property
    def body(self) -> Graph:
        """The first of the `bodies`; TypeError if the node is not conditional."""
        bodies = self.bodies
        if not bodies:
            raise TypeError(f"{self.name!r} is of kind {self.kind} and has no body")
        return bodies[0]

    @property
    def params(self) -> NodeParams | None:
        """What the node does, as of now; later updates do not reach it.

        By the node's kind a `KernelNodeParams`, `MemcpyNodeParams`, `MemsetNodeParams`,
        `BatchMemOpNodeParams`, `HostNodeParams`, `EventNodeParams`, `SemaphoreNodeParams`,
        `AllocNodeParams`, `FreeNodeParams`, `ChildGraphNodeParams` or `ConditionalNodeParams`. None
        for a join, and for what another library has captured.

        It refers to the objects that were passed, as your own variables would, and to nothing else:
        as long as you keep it these objects live, but after the node and its launches are gone
        their memory can be freed, closed and resized.
        """
        return params_of(
            self.kind, self.graph._params(self._id), lambda i: self.graph._body(self._id, i)
        )

    @overload
    def update(self, /, *, dst: MemoryLike | Slot = ..., src: MemoryLike | Slot = ...) -> None: ...
    @overload
    def update(
        self, /, dst: MemoryLike | Slot = ..., value: complex | BufferLike | np.generic = ...
    ) -> None: ...
    @overload
    def update(
        self, /, *, dst: Buffer | Pointer | Tensor = ..., value: SupportsIndex = ...
    ) -> None: ...
    @overload
    def update(
        self,
        /,
        *,
        src: Buffer | Pointer | Tensor = ...,
        value: SupportsIndex = ...,
        condition: WaitCondition = ...,
    ) -> None: ...
    @overload
    def update(
        self, /, *, semaphore: ExternalSemaphore = ..., value: SupportsIndex = ...
    ) -> None: ...
    @overload
    def update(
        self, /, config: LaunchConfig, kernel: Kernel, *args: KernelArgument | Slot
    ) -> None: ...
    @overload
    def update(
        self,
        change: LaunchConfig | Kernel | dict[int, KernelArgument | Slot],
        /,
        **arguments: KernelArgument | Slot,
    ) -> None: ...
    @overload
    def update(
        self,
        /,
        *,
        config: LaunchConfig = ...,
        kernel: Kernel = ...,
        **arguments: KernelArgument | Slot,
    ) -> None: ...
    @overload
    def update(self, /, func: Callable[..., object], *args: Any) -> None: ...
    @overload
    def update(self, /, event: Event) -> None: ...
    @overload
    def update(self, /, graph: Graph) -> None: ...
    def update(self, /, *args: Any, **kwargs: Any) -> None:
        """Change the node's parameters, for later executables and clones.

        Those that there are already keep what they have.

        Parameters
        ----------
        *args, **kwargs
            As for `ExecNode.update`. Each side of a copy may be memory of another kind, and a
            tensor with gaps between its elements. A kernel's configuration can change in
            everything, the memory of a value may have the other width, and a graph may be any that
            `embed` takes: the graph of the node's `params` from before ends.

        Raises
        ------
        TypeError
            If nodes of this kind cannot be updated.

        See Also
        --------
        ExecNode.update : Changes later launches of an executable.
        GraphExec.update : Changes an executable to what this graph then says.

        Notes
        -----
        The graph releases the operands that are replaced. Updates of one graph come one after the
        other: what an argument runs when it is converted must not wait for one in another thread.

        References
        ----------
        ``cuGraphMemcpyNodeSetParams``, ``cuGraphMemsetNodeSetParams``,
        ``cuGraphKernelNodeSetParams_v2``, ``cuGraphKernelNodeSetAttribute``,
        ``cuGraphHostNodeSetParams``, ``cuGraphBatchMemOpNodeSetParams``,
        ``cuGraphEventRecordNodeSetEvent``, ``cuGraphEventWaitNodeSetEvent``,
        ``cuGraphNodeSetParams``,
        ``cuGraphExternalSemaphoresSignalNodeSetParams``,
        ``cuGraphExternalSemaphoresWaitNodeSetParams``

        Examples
        --------
        >>> x = device.allocate(4, stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(x, 1, name="fill")
        >>> graph["fill"].update(x, 2)
        >>> node.params.value
        2
        """
        in_turn(self.graph, update_node, self, self.graph, args, kwargs)

    @property
    def retained(self) -> tuple[Retained, ...]:
        """What the graph keeps alive for this node and for the graphs inside it."""
        return retained_of(self.graph._retained(self._id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    @or_closed
    def __repr__(self) -> str:
        if self.graph.is_closed:
            return "<cudago.Node of a closed graph>"
        try:
            return f"<cudago.Node {self.name!r}: {self.kind}>"
        except ClosedError:
            return "<cudago.Node: removed>"


_core._set_class("Node", Node)
