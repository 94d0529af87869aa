# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Adding conditional nodes to a graph, and nodes that set their conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _zconstants as _z
from ._condition import expect_condition, setter

if TYPE_CHECKING:
    from ._condition import Condition
    from ._graph import Graph
    from ._node import Node
    from .typing import MemoryLike


class Branching:
    """The part of `Builder` that is about conditions."""

    __slots__ = ()

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        """Return the graph that nodes are added to, and the numbers of what they wait for."""
        raise NotImplementedError

    def if_then(self, condition: Condition, *, name: str | None = None) -> Node:
        """Add a node that runs its body if a condition is not 0.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`; it serves this node alone.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one. Its `Node.body` is an empty graph, to be filled.

        Raises
        ------
        TypeError
            If `condition` is no Condition.
        ValueError
            If the condition is of another graph or serves another node, or a name is taken.
        ClosedError
            If the graph is closed.
        UnsupportedError
            If the driver is older than CUDA 12.3, or the device cannot do it.
        CUDAError
            If the driver refuses.

        See Also
        --------
        if_else, while_loop, switch : The other conditional nodes.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        A body can hold kernels, fills, joins, embedded graphs, conditional nodes, and copies that
        do not touch ordinary host memory. The graph can be neither cloned nor embedded, and has one
        executable at a time.

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
        """Add a node that runs its first body if a condition is not 0, and its second if it is.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`; it serves this node alone.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one, with two `Node.bodies`.

        Raises
        ------
        TypeError
            If `condition` is no Condition.
        ValueError
            If the condition is of another graph or serves another node, or a name is taken.
        ClosedError
            If the graph is closed.
        UnsupportedError
            If the driver is older than CUDA 12.8, or the device cannot do it.
        CUDAError
            If the driver refuses.

        See Also
        --------
        if_then : What a body can hold.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        References
        ----------
        ``cuGraphAddNode_v2``, ``cuGraphConditionalHandleCreate``

        Examples
        --------
        >>> graph, x = cudago.Graph(device), device.allocate(4, stream=stream)
        >>> yes, no = graph.if_else(graph.condition(default=0)).bodies
        >>> nodes = yes.memset(x, 1), no.memset(x, 2)
        >>> graph.instantiate().launch(stream)
        >>> x.view("u1").numpy(stream=stream)
        array([2, 2, 2, 2], dtype=uint8)
        """
        return self._conditional(condition, _z.CU_GRAPH_COND_TYPE_IF, 2, name)

    def while_loop(self, condition: Condition, *, name: str | None = None) -> Node:
        """Add a node that runs its body as long as a condition is not 0.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`; it serves this node alone. Something in the body has to set it.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one, with one `Node.body`.

        Raises
        ------
        TypeError
            If `condition` is no Condition.
        ValueError
            If the condition is of another graph or serves another node, or a name is taken.
        ClosedError
            If the graph is closed.
        UnsupportedError
            If the driver is older than CUDA 12.3, or the device cannot do it.
        CUDAError
            If the driver refuses.

        See Also
        --------
        if_then : What a body can hold.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        The condition is looked at before each turn: with a default of 0 there is none, unless a
        node before this one sets it.

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
        """Add a node that runs the body whose number a condition is, or none.

        Parameters
        ----------
        condition : Condition
            From `Graph.condition`; it serves this node alone.
        count : int
            Number of bodies.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one, with `count` `Node.bodies`.

        Raises
        ------
        TypeError
            If `condition` is no Condition.
        ValueError
            If the condition is of another graph or serves another node, or a name is taken.
        ClosedError
            If the graph is closed.
        UnsupportedError
            If the driver is older than CUDA 12.8, or the device cannot do it.
        CUDAError
            If the driver refuses.

        See Also
        --------
        if_then : What a body can hold.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        References
        ----------
        ``cuGraphAddNode_v2``, ``cuGraphConditionalHandleCreate``

        Examples
        --------
        >>> graph, x = cudago.Graph(device), device.allocate(1, stream=stream)
        >>> choose = graph.switch(graph.condition(default=2), 3)
        >>> nodes = [body.memset(x, i) for i, body in enumerate(choose.bodies)]
        >>> graph.instantiate().launch(stream)
        >>> x.view("u1").numpy(stream=stream)
        array([2], dtype=uint8)
        """
        return self._conditional(condition, _z.CU_GRAPH_COND_TYPE_SWITCH, count, name)

    def _conditional(self, condition: Condition, kind: int, count: int, name: str | None) -> Node:
        graph, deps = self._at()
        number = expect_condition(condition)._number
        return graph._node(graph._add_conditional(deps, number, kind, count, name))

    def set_condition(
        self, condition: Condition, value: int | MemoryLike, *, name: str | None = None
    ) -> Node:
        """Add a node that sets a condition. Kernels of your own can do that too: see `Condition`.

        Parameters
        ----------
        condition : Condition
            A condition of this graph, or of the graph that this body is in.
        value : int, or any object with device memory
            A number of 32 bits; or memory of 1, 2, 4 or 8 bytes, which is read as an unsigned
            integer when the node runs. One beyond 32 bits counts as 2**32-1.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        Raises
        ------
        TypeError
            If `condition` is no Condition, or `value` neither a number nor memory.
        ValueError
            If `value` has another size, or a name is taken.
        OverflowError
            If a number does not fit 32 bits.
        ClosedError
            If the graph or `value` is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        The node is a kernel of one thread.

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
        graph, deps = self._at()
        config, kernel, args = setter(expect_condition(condition), value)
        return graph._node(graph._add_kernel(deps, config, kernel, args, name))
