# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Conditional nodes of a graph, and the nodes that set their conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .. import _zconstants as _z
from .._native import number_text, unnamed, whole
from .condition import expect_condition, setter
from .place import Place

if TYPE_CHECKING:
    from ..typing import MemoryLike
    from .condition import Condition
    from .node import Node

_MOST_BODIES = 1 << 16  # MaxBodies in graph/conditional.go


@unnamed
class Branching(Place):
    """The part of `Builder` that deals with conditions."""

    __slots__ = ()

    def if_then(self, condition: Condition, *, name: str | None = None) -> Node:
        """Add a node that runs its body if a condition is not 0.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`. A condition controls one node only.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node. Its `Node.body` is an empty graph for you to fill.

        Raises
        ------
        UnsupportedError
            If the driver is older than CUDA 12.3, or the device has no conditional nodes.

        See Also
        --------
        if_else, while_loop, switch : The other conditional nodes.

        Notes
        -----
        A body can hold kernels, fills, joins, embedded graphs, conditional nodes, and copies that
        do not touch pageable host memory. A graph with a conditional node cannot be cloned or
        embedded, and can have only one executable at a time.

        References
        ----------
        ``cuGraphAddNode_v2``, ``cuGraphConditionalHandleCreate``

        Examples
        --------
        >>> graph, x = cudago.Graph(device), device.allocate(4, stream=stream)
        >>> maybe = graph.if_then(graph.condition(default=1))
        >>> node = maybe.body.memset(x, 7)
        >>> graph.instantiate().launch(stream)
        >>> x.view("u4").numpy(stream=stream) == 0x07070707
        array([ True])
        """
        return self._conditional(condition, _z.CU_GRAPH_COND_TYPE_IF, 1, name)

    def if_else(self, condition: Condition, *, name: str | None = None) -> Node:
        """Add a node that runs its first body if a condition is not 0, and its second otherwise.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`. A condition controls one node only.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, with two `Node.bodies`.

        Raises
        ------
        UnsupportedError
            If the driver is older than CUDA 12.8, or the device has no conditional nodes.

        See Also
        --------
        if_then : What a body can hold.

        References
        ----------
        ``cuGraphAddNode_v2``, ``cuGraphConditionalHandleCreate``

        Examples
        --------
        >>> graph, x = cudago.Graph(device), device.allocate(4, stream=stream)
        >>> yes, no = graph.if_else(graph.condition(default=0)).bodies
        >>> nodes = yes.memset(x, 1), no.memset(x, 2)
        """
        return self._conditional(condition, _z.CU_GRAPH_COND_TYPE_IF, 2, name)

    def while_loop(self, condition: Condition, *, name: str | None = None) -> Node:
        """Add a node that repeats its body while a condition is not 0.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`. A condition controls one node only. Something in the body has to
            set it.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, with one `Node.body`.

        Raises
        ------
        UnsupportedError
            If the driver is older than CUDA 12.3, or the device has no conditional nodes.

        See Also
        --------
        if_then : What a body can hold.

        Notes
        -----
        The condition is tested before each iteration. With a default of 0 the body never runs,
        unless an earlier node sets the condition.

        References
        ----------
        ``cuGraphAddNode_v2``, ``cuGraphConditionalHandleCreate``

        Examples
        --------
        >>> source = 'extern "C" __global__ void count(int* n) { n[0] -= 1; n[1] += 1; }'
        >>> count = cudago.Program(source).compile()["count"]
        >>> n = cudago.asarray([3, 0], "i4", stream=stream)
        >>> graph = cudago.Graph(device)
        >>> go = graph.condition(default=1)
        >>> body = graph.while_loop(go).body
        >>> node = body.launch(cudago.LaunchConfig(grid=1, block=1), count, n)
        >>> last = node.set_condition(go, n[:1])
        >>> graph.instantiate().launch(stream)
        >>> n.numpy(stream=stream)
        array([0, 3], dtype=int32)
        """
        return self._conditional(condition, _z.CU_GRAPH_COND_TYPE_WHILE, 1, name)

    def switch(self, condition: Condition, count: int, *, name: str | None = None) -> Node:
        """Add a node that runs the body whose index equals a condition, or none.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`. A condition controls one node only.
        count : int
            Number of bodies.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, with `count` `Node.bodies`.

        Raises
        ------
        UnsupportedError
            If the driver is older than CUDA 12.8, or the device has no conditional nodes.

        See Also
        --------
        if_then : What a body can hold.

        References
        ----------
        ``cuGraphAddNode_v2``, ``cuGraphConditionalHandleCreate``

        Examples
        --------
        >>> graph, x = cudago.Graph(device), device.allocate(1, stream=stream)
        >>> choose = graph.switch(graph.condition(default=2), 3)
        >>> nodes = [body.memset(x, i) for i, body in enumerate(choose.bodies)]
        """
        bodies = whole(count, "count")
        if not 1 <= bodies <= _MOST_BODIES:
            raise ValueError(
                f"count must be 1 to {_MOST_BODIES} for the bodies of a switch node, got "
                f"{number_text(bodies)}"
            )
        return self._conditional(condition, _z.CU_GRAPH_COND_TYPE_SWITCH, bodies, name)

    def _conditional(self, condition: Condition, kind: int, count: int, name: str | None) -> Node:
        number = expect_condition(condition)._number
        return self._new(_core.Graph._add_conditional, number, kind, count, name)

    def set_condition(
        self, condition: Condition, value: int | MemoryLike, *, name: str | None = None
    ) -> Node:
        """Add a node that sets a condition. Your own kernels can do that too: see `Condition`.

        Parameters
        ----------
        condition : Condition
            A condition of this graph, or of the graph that contains this body.
        value : int, or any object with device memory
            A 32-bit number; or 1, 2, 4 or 8 bytes of memory, read as an unsigned integer when the
            node runs. Values beyond 32 bits are clamped to 2**32-1.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, a kernel of one thread.

        References
        ----------
        ``cuGraphAddKernelNode_v2``, ``cudaGraphSetConditional``

        Examples
        --------
        >>> graph, flag = cudago.Graph(device), device.allocate(1, stream=stream)
        >>> ready = graph.condition()
        >>> node = graph.set_condition(ready, flag).if_then(ready)
        >>> [n.kind for n in graph.nodes]
        ['kernel', 'conditional']
        """
        config, kernel, args = setter(expect_condition(condition), value)
        return self._new(_core.Graph._add_kernel, config, kernel, args, name, None)
