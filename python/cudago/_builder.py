# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Adding nodes to a graph, after those that come before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._condition import expect_condition, setter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._condition import Condition
    from ._event import Event
    from ._graph import Graph
    from ._kernel import Kernel
    from ._launch import LaunchConfig
    from ._memory import Buffer
    from ._node import Node
    from .typing import BufferLike, KernelArgument, MemoryLike

_IF, _WHILE, _SWITCH = range(3)  # CU_GRAPH_COND_TYPE_..., cuda.h, CUDA 12.8


class Builder:
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
        return graph._node(graph._add_memcpy(deps, dst, src, name))

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
        return graph._node(graph._add_memset(deps, dst, value, name))

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
        return graph._node(graph._add_kernel(deps, config, kernel, args, name))

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
        return graph._node(graph._add_host(deps, func, name))

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
        return graph._node(graph._add_child(deps, other, name))

    def record(self, event: Event, *, name: str | None = None) -> Node:
        """Add a node that records an event, for other streams and for the host.

        Parameters
        ----------
        event : Event
            Recorded at each launch, when what is before the node has completed. The graph keeps
            it.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        Raises
        ------
        ValueError
            If a name is taken, or the event is of another device.
        ClosedError
            If the graph or the event is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        As for `memcpy`.

        References
        ----------
        ``cuGraphAddEventRecordNode``

        Examples
        --------
        >>> graph, event = cudago.Graph(device), device.create_event()
        >>> graph.memset(device.allocate(4, stream=stream), 0).record(event).kind
        'event record'
        """
        graph, deps = self._at()
        return graph._node(graph._add_event(deps, event, True, name))

    def wait(self, event: Event, *, name: str | None = None) -> Node:
        """Add a node that waits for an event, as it was last recorded when the node runs.

        Parameters
        ----------
        event : Event
            The graph keeps it.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        Raises
        ------
        ValueError
            If a name is taken, or the event is of another device.
        ClosedError
            If the graph or the event is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        As for `memcpy`.

        References
        ----------
        ``cuGraphAddEventWaitNode``

        Examples
        --------
        >>> graph, event = cudago.Graph(device), device.create_event()
        >>> graph.wait(event).kind
        'event wait'
        """
        graph, deps = self._at()
        return graph._node(graph._add_event(deps, event, False, name))

    def allocate(self, size: int, *, name: str | None = None) -> Node:
        """Add an allocation of device memory: each launch makes it, always at one address.

        Parameters
        ----------
        size : int
            Size in bytes, at least 1.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one. Its `Node.buffer` is the memory: for nodes that come
            after this one, and after a launch until something frees it.

        Raises
        ------
        TypeError
            If `size` is no integer.
        ValueError
            If `size` is not positive, or a name is taken.
        OutOfMemoryError
            If the device has not so much memory.
        ClosedError
            If the graph is closed.
        CUDAError
            If the driver refuses.

        Notes
        -----
        As for `memcpy`. The content is undefined after each launch. What a launch leaves allocated
        must be freed before the next: by `free` in this graph or in another, by `Buffer.free`, or
        with ``instantiate(auto_free=True)``. It is freed for certain once the graph, its
        executables and all buffers over it have gone. The graph can be neither cloned nor embedded,
        and has one executable at a time.

        References
        ----------
        ``cuGraphAddMemAllocNode``

        Examples
        --------
        >>> graph, out = cudago.Graph(device), bytearray(4)
        >>> scratch = graph.allocate(4)
        >>> filled = scratch.memset(scratch.buffer, 7)
        >>> free = filled.memcpy(out, scratch.buffer).free(scratch.buffer)
        >>> graph.instantiate().launch(stream)
        >>> stream.sync()
        >>> out[0]
        7
        """
        graph, deps = self._at()
        return graph._node(graph._add_alloc(deps, size, name))

    def free(self, buffer: Buffer, *, name: str | None = None) -> Node:
        """Add a free of memory that a graph has allocated.

        Parameters
        ----------
        buffer : Buffer
            `Node.buffer` of this graph, or of another one that is launched before.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node, after this one.

        Raises
        ------
        TypeError
            If `buffer` is other memory: that goes when nobody holds it any more.
        ValueError
            If `buffer` is a view of some of the memory, or a name is taken.
        ClosedError
            If the graph or the buffer is closed.
        CUDAError
            If the driver refuses, for example since another node of the graph frees it already.

        Notes
        -----
        As for `memcpy`.

        References
        ----------
        ``cuGraphAddMemFreeNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> scratch = graph.allocate(4)
        >>> scratch.memset(scratch.buffer, 7).free(scratch.buffer)
        <cudago.Node 'free_0': free>
        """
        graph, deps = self._at()
        return graph._node(graph._add_free(deps, buffer, name))

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
        if_else, while_loop, switch : The other conditional nodes; they raise the same errors.

        Notes
        -----
        As for `memcpy`. A body can hold kernels, fills, joins, embedded graphs, conditional nodes,
        and copies that do not touch ordinary host memory. The graph can be neither cloned nor
        embedded, and has one executable at a time.

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
        return self._conditional(condition, _IF, 1, name)

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

        Notes
        -----
        As for `if_then`; the driver must be of CUDA 12.8 or newer.

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
        return self._conditional(condition, _IF, 2, name)

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

        Notes
        -----
        As for `if_then`. The condition is looked at before each turn: with a default of 0 there is
        none, unless a node before this one sets it.

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
        return self._conditional(condition, _WHILE, 1, name)

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

        Notes
        -----
        As for `if_then`; the driver must be of CUDA 12.8 or newer.

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
        return self._conditional(condition, _SWITCH, count, name)

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
        As for `memcpy`. The node is a kernel of one thread.

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
