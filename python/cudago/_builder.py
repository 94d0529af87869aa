# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Adding nodes to a graph, after those that come before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._branching import Branching

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from ._event import Event
    from ._graph import Graph
    from ._kernel import Kernel
    from ._launch import LaunchConfig
    from ._memory import Buffer
    from ._node import Node
    from .typing import BufferLike, KernelArgument, MemoryLike


class Builder(Branching):
    """What both a graph and its nodes can do: add a node after some others."""

    __slots__ = ()

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

    def memset(
        self, dst: MemoryLike, value: int | BufferLike | np.generic, *, name: str | None = None
    ) -> Node:
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
            Called without arguments, on a thread of cudago's. It must not wait for the device,
            which raises `CUDAError`. An exception goes to `sys.unraisablehook`, and the graph goes
            on.
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
        >>> log = []
        >>> node = graph.callback(lambda: log.append("step done"))
        >>> graph.instantiate().launch(stream)
        >>> stream.sync()
        >>> log
        ['step done']
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
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

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
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

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
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

        The content is undefined after each launch. What a launch leaves allocated must be freed
        before the next: by `free` in this graph or in another, by `Buffer.free`, or with
        ``instantiate(auto_free=True)``. It is freed for certain once the graph, its executables and
        all buffers over it have gone. The graph can be neither cloned nor embedded, and has one
        executable at a time.

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
        Not stream-ordered: nothing runs before a launch. Returns at once, with the GIL held.
        Captures are not affected.

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
