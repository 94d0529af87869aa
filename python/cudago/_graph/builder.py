# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Adding nodes to a graph, each after the nodes that it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._import_at_exit import late
from .._memory.resource import mask_of
from .._native import unnamed
from .._stream.callee import with_arguments
from .._tensor import copy, strided
from .._tensor.element import is_narrow, pattern_for
from .._tensor.operand import as_tensor, has_gaps
from .._tensor.place import is_pageable
from .._tensor.tensor import Tensor
from . import slot
from .branching import Branching
from .capture_into import capture_into
from .signals import SignalNodes
from .slot import Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    import numpy as np

    from .._kernel.kernel import Kernel
    from .._kernel.launch import LaunchConfig
    from .._memory.buffer import Buffer
    from .._memory.device import Device
    from .._tensor.array import OpaqueArray
    from ..typing import BufferLike, CaptureMode, MemoryLike, StreamLike
    from .graph import Graph
    from .node import Node


def _launch(at: Any, args: tuple[Any, ...], name: str | None) -> Node:
    """Call the native method, which graphs and nodes have beside this class."""
    node: Node = at.launch(*args, name=name)
    return node


def _is_empty(memory: Any) -> bool:
    """Whether memory has no bytes, so that there is nothing to fill."""
    size = memory.size if isinstance(memory, _core.Buffer) else getattr(memory, "nbytes", None)
    might_be = size == 0 or isinstance(memory, _core.Pointer)
    return might_be and _core._operand(memory, memory, True).nbytes == 0


def _walked(memory: Any, pattern: Any) -> Tensor | None:
    """Return a tensor over memory that a kernel of ours has to fill; None if the driver can."""
    if isinstance(memory, Tensor):
        return memory if strided.needs_kernel(memory, pattern) else None
    if getattr(memory, "dtype", None) is None or is_narrow(pattern):
        return None
    tensor = as_tensor(memory)
    return None if is_pageable(tensor) else tensor


@unnamed
class Builder(SignalNodes, Branching):
    """What graphs and nodes share: methods that add a node after others."""

    __slots__ = ()

    def memcpy(
        self,
        dst: MemoryLike | OpaqueArray | Slot,
        src: MemoryLike | OpaqueArray | Slot,
        *,
        name: str | None = None,
    ) -> Node:
        """Add a copy. Host memory is read or written at each launch.

        Parameters
        ----------
        dst, src : Buffer, Pointer, Tensor, OpaqueArray, or any object with memory
            NumPy arrays, ``bytes``, ``bytearray``, tensors of other libraries, of the same size. If
            one is a tensor or an array with gaps between its elements, both must have the same
            shape. The graph keeps both alive, and a ``bytearray`` cannot be resized meanwhile. A
            `slot` can be exchanged later; its tensors must be contiguous, and have bytes.
        name : str, optional
            Unique in the graph; by default ``memcpy_0``, ...

        Returns
        -------
        Node
            The new node. It is a kernel node if the driver cannot copy between the strides of two
            tensors in one call, or, on a GPU, slowly: 65536 rows or 16 MiB with gaps in memory of
            the graph's device; and an empty node if there are no bytes.

        Raises
        ------
        ValueError
            If sizes or shapes differ, one node cannot copy between such strides, or the sides
            overlap, as for `Buffer.copy_from` and `Tensor.copy_from`.

        References
        ----------
        ``cuGraphAddMemcpyNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> graph.memcpy(device.allocate(4, stream=stream), b"abcd", name="upload")
        <cudago.Node 'upload': memcpy>
        """
        at: Any = self
        try:
            node: Node | None = at._memcpy(dst, src, name)
        except BufferError:
            if not (has_gaps(dst) or has_gaps(src)):
                raise
            node = None
        return node if node is not None else self._copy(dst, src, name)

    def _copy(self, dst: Any, src: Any, name: str | None) -> Node:
        """Add a copy that is not just one of bytes in their order."""
        graph, deps = self._at()
        if type(dst) is Slot or type(src) is Slot:
            slot.check(graph)
            note = slot.noted(graph, "memcpy", (("dst", dst), ("src", src)))
            number = graph._add_memcpy(deps, slot.plain(dst), slot.plain(src), name, note)
            return graph._node(number)
        if isinstance(dst, _core.OpaqueArray) or isinstance(src, _core.OpaqueArray):
            with late:
                from .._tensor.array_copy import sides

            return graph._node(graph._add_box(deps, *sides(dst, src), name))
        to, of = as_tensor(dst), as_tensor(src)
        if not to.size and to.shape == of.shape:
            return self._new(_core.Graph._add_empty, name)
        return copy.node(
            to,
            of,
            (dst, src),
            graph,
            lambda d, s, box: graph._node(graph._add_box(deps, d, s, box, name)),
            lambda *launched: _launch(self, launched, name),
        )

    def memset(
        self,
        dst: MemoryLike | Slot,
        value: complex | BufferLike | np.generic,
        *,
        name: str | None = None,
    ) -> Node:
        """Add a fill.

        Parameters
        ----------
        dst : Buffer, Pointer, Tensor, or any object with memory
            Memory to fill, which must not be pageable host memory; the graph keeps it alive.
        value : number or bytes
            For a tensor or an array, a value of its element type, as for `Tensor.fill`; for a
            buffer or a pointer, a value of 1, 2 or 4 bytes, as for `Buffer.fill`.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node. It is a kernel node where the driver has no such fill: for values of 8
            and 16 bytes that do not repeat every 4 bytes, and for tensors with gaps; and an empty
            node if there are no bytes. A `slot` must have some.

        Raises
        ------
        ValueError
            If the tensor needs more than one launch of such a kernel, as misaligned ones do.
        BufferError
            If it is host memory that the driver does not know: fill the array itself.

        References
        ----------
        ``cuGraphAddMemsetNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> graph.memset(device.allocate(4, stream=stream), 0)
        <cudago.Node 'memset_0': memset>
        """
        memory: Any = slot.plain(dst)
        pattern: Any = pattern_for(memory, value)
        graph, deps = self._at()
        if type(dst) is Slot:
            slot.check(graph)
        elif _is_empty(memory):
            return self._new(_core.Graph._add_empty, name)
        tensor = _walked(memory, pattern)
        if tensor is None:
            note = slot.noted(graph, "memset", (("dst", dst),))
            number = graph._add_memset(deps, memory, pattern, name, note)
        else:
            config, kernel, *args = strided.one_fill(tensor, pattern, memory, graph.device)
            note = slot.noted(graph, "kernel", ((0, dst),))
            number = graph._add_kernel(deps, config, kernel, tuple(args), name, note)
        return graph._node(number)

    def _launch_slots(
        self, config: LaunchConfig, kernel: Kernel, args: tuple[Any, ...], name: str | None
    ) -> Node:
        """Launch with slots among the arguments."""
        graph, deps = self._at()
        slot.check(graph)
        plain = tuple(map(slot.plain, args))
        note = slot.noted(graph, "kernel", enumerate(args))
        return graph._node(graph._add_kernel(deps, config, kernel, plain, name, note))

    def callback(self, func: Callable[..., Any], *args: Any, name: str | None = None) -> Node:
        """Add a call of a Python function.

        Parameters
        ----------
        func : callable
            Called on a thread that cudago owns. Waiting for the device in it raises `CUDAError`.
            Its exceptions go to `sys.unraisablehook`, and the graph continues.
        *args
            Its arguments, the same at each launch. The graph keeps them with the function: the node
            has a ``functools.partial`` of both.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node.

        Raises
        ------
        TypeError
            If the function is known not to take these arguments, or is a coroutine or generator
            function.

        Notes
        -----
        Callbacks run one at a time and hold the GIL. Device work that depends on one waits for it.

        References
        ----------
        ``cuGraphAddHostNode``

        Examples
        --------
        >>> graph, log = cudago.Graph(device), []
        >>> node = graph.callback(log.append, "step done")
        >>> graph.instantiate().launch(stream)
        >>> stream.sync()
        >>> log
        ['step done']
        """
        return self._new(_core.Graph._add_host, with_arguments(func, args), name)

    def capture(
        self, stream: StreamLike, mode: CaptureMode = "global"
    ) -> AbstractContextManager[list[Node]]:
        """Add the work queued on a stream in the ``with`` block, instead of running it.

        Also fills the bodies of conditional nodes: ``with loop.body.capture(stream): ...``.

        Parameters
        ----------
        stream : Stream
            Stream of the graph's device, which captures during the block.
        mode : {"global", "thread_local", "relaxed"}
            As for `Stream.capture`.

        Returns
        -------
        context manager of list of Node
            The list is filled at the end of the block, in an order that the dependencies allow.

        Raises
        ------
        ValueError
            If the stream is of another device than the graph; or if the graph cannot hold a node of
            it, such as a copy of pageable memory in a body. Nothing is added then, nor if the block
            raises.
        UnsupportedError
            If memory is allocated or freed in the block, and the driver is older than CUDA 12.9.
        CUDAError
            If the stream is capturing already, or the capture was invalidated.

        See Also
        --------
        Stream.capture : Makes a new graph.

        Notes
        -----
        Stream-ordered on `stream`. What other libraries capture, and launches with a cluster or a
        priority, cannot be added node by node; nor can anything, if this graph or the block
        allocates memory. All of the capture then becomes one embedded graph.

        References
        ----------
        ``cuStreamBeginCapture_v2``, ``cuStreamEndCapture``, ``cuGraphAddChildGraphNode``,
        ``cuGraphAddNode``

        Examples
        --------
        >>> graph, x = cudago.Graph(device), device.allocate(4, stream=stream)
        >>> maybe = graph.if_then(graph.condition(default=1))
        >>> with maybe.body.capture(stream):
        ...     x.fill(7, stream=stream)
        >>> [node.kind for node in maybe.body.nodes]
        ['memset']
        """
        return capture_into(*self._at(), stream, mode)

    def embed(self, other: Graph, *, name: str | None = None, move: bool = False) -> Node:
        """Add another graph, as it is now, as a single node.

        Parameters
        ----------
        other : Graph
            The graph. Later changes to it do not reach this graph, which holds its operands itself.
        name : str, optional
            Unique in the graph.
        move : bool
            Whether the graph itself becomes the node, and no copy of it. It may then allocate and
            free memory, and is closed by the call: this graph holds what it held. Its buffers stay
            valid.

        Returns
        -------
        Node
            The new node.

        Raises
        ------
        ValueError
            If a graph to be moved has open executables, contains this graph, or if other code has
            its handle.
        UnsupportedError
            If it has conditional nodes; if it allocates or frees memory and is not moved; if it is
            to be moved and the driver is older than CUDA 12.9.

        References
        ----------
        ``cuGraphAddChildGraphNode``, ``cuGraphAddNode``

        Examples
        --------
        >>> inner, outer = cudago.Graph(device), cudago.Graph(device)
        >>> node = inner.memset(device.allocate(4, stream=stream), 0)
        >>> outer.embed(inner, name="inner").kind
        'child graph'

        >>> inner, outer = cudago.Graph(device), cudago.Graph(device)
        >>> memory = inner.allocate(4, name="scratch")
        >>> node = memory.memset(memory.buffer, 7).free(memory.buffer)
        >>> outer.embed(inner, name="inner", move=True).params.graph.nodes[0]
        <cudago.Node 'scratch': alloc>
        >>> inner.is_closed
        True
        """
        return self._new(_core.Graph._add_child, other, name, move)

    def allocate(
        self,
        size: int,
        *,
        name: str | None = None,
        device: Device | None = None,
        peers: Iterable[Device] = (),
    ) -> Node:
        """Add an allocation of device memory. Every launch gets the same address.

        Parameters
        ----------
        size : int
            Size in bytes, at least 1.
        name : str, optional
            Unique in the graph.
        device : Device, optional
            Device that the memory is on; by default the graph's.
        peers : iterable of Device
            Other devices whose kernels and copies can use the memory. If it is another device's,
            nodes of this graph can use it only if the graph's device is among them.

        Returns
        -------
        Node
            The new node. Its `Node.buffer` is the memory: for nodes that depend on this one, and
            after a launch until something frees it.

        Raises
        ------
        CUDAError
            If a peer cannot access memory of the device.

        Notes
        -----
        The content is undefined at each launch. Memory that a launch leaves allocated must be freed
        before the next one: by `free` in this graph or another, by `Buffer.free`, or with
        ``instantiate(auto_free=True)``. At the latest, it is freed once the graph, its executables
        and all buffers over it are gone. A graph with such a node cannot be cloned or embedded, and
        can have only one executable at a time.

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
        mask = mask_of(peers, graph.device if device is None else device, "peers")
        return graph._node(graph._add_alloc(deps, size, device, mask, name))

    def free(self, buffer: Buffer, *, name: str | None = None) -> Node:
        """Add a node that frees memory that a graph allocated.

        Parameters
        ----------
        buffer : Buffer
            `Node.buffer` of this graph, or of another graph that is launched earlier.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node.

        Raises
        ------
        ValueError
            If a node of the graph that allocates the memory already frees it.
        CUDAError
            If another node of this graph already frees the memory of another graph.

        References
        ----------
        ``cuGraphAddMemFreeNode``
        """
        return self._new(_core.Graph._add_free, buffer, name)
