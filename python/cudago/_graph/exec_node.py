# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes of executable graphs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from .params import params_of
from .update import update_node

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from typing import SupportsIndex

    import numpy as np

    from .._kernel.kernel import Kernel
    from .._kernel.launch import LaunchConfig
    from .._memory.buffer import Buffer, Pointer
    from .._tensor.tensor import Tensor
    from ..typing import BufferLike, KernelArgument, MemoryLike, WaitCondition
    from .exec import GraphExec
    from .graph import Graph
    from .params import NodeParams

__all__ = ["ExecNode"]


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
            - batch mem op: any of ``dst=``, ``value=`` of a write, and of ``src=``, ``value=``,
              ``condition=`` of a wait. The memory has as many bytes as before;
            - kernel: ``config, kernel, *args``, as for `Graph.launch`; or what changes: a
              configuration, a kernel (also ``config=``, ``kernel=``), arguments by name, as
              `Kernel.parameter_names` lists them, or a dict of arguments by position. The
              configuration's cluster, cooperative and priority cannot change;
            - host: ``func``.

        Raises
        ------
        ValueError
            If this driver cannot make the change in an executable; the message says which.
        TypeError
            If nodes of this kind cannot be updated.

        Notes
        -----
        Blocks while another thread is inside a launch of this executable.

        References
        ----------
        ``cuGraphExecMemcpyNodeSetParams``, ``cuGraphExecMemsetNodeSetParams``,
        ``cuGraphExecKernelNodeSetParams_v2``, ``cuGraphExecHostNodeSetParams``,
        ``cuGraphExecBatchMemOpNodeSetParams``

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
