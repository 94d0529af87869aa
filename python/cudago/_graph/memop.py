# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that write values into memory, and wait for them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._native import unnamed
from .._stream.memop import condition_code
from .place import Place

if TYPE_CHECKING:
    from typing import SupportsIndex

    from .._memory.buffer import Buffer, Pointer
    from .._tensor.tensor import Tensor
    from ..typing import WaitCondition
    from .node import Node


@unnamed
class MemoryOperationNodes(Place):
    """The part of `Builder` that adds memory operations."""

    __slots__ = ()

    def write_value(
        self, dst: Buffer | Pointer | Tensor, value: SupportsIndex, *, name: str | None = None
    ) -> Node:
        """Add a node that writes a value into memory.

        Parameters
        ----------
        dst : Buffer, Pointer or Tensor
            4 or 8 bytes, as for `Stream.write_value`; the graph keeps it alive.
        value : int
            Signed or unsigned, in that width.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node.

        References
        ----------
        ``cuGraphAddBatchMemOpNode``

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> graph.write_value(cudago.PinnedMemoryResource().allocate(4), 1)
        <cudago.Node 'batch_mem_op_0': batch mem op>
        """
        return self._new(_core.Graph._add_memop, dst, value, -1, name)

    def wait_value(
        self,
        src: Buffer | Pointer | Tensor,
        value: SupportsIndex,
        condition: WaitCondition = ">=",
        *,
        name: str | None = None,
    ) -> Node:
        """Add a node that waits until memory has a value.

        Parameters
        ----------
        src : Buffer, Pointer or Tensor
            4 or 8 bytes, as for `Stream.wait_value`; the graph keeps it alive.
        value : int
            Signed or unsigned, in that width.
        condition : {">=", "==", "&", "nor"}
            What must hold of the number in memory, as for `Stream.wait_value`.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node.

        Notes
        -----
        The device may run the nodes of a graph one after another: what writes the value is safest
        outside the graph, or before the node.

        References
        ----------
        ``cuGraphAddBatchMemOpNode``
        """
        return self._new(_core.Graph._add_memop, src, value, condition_code(condition), name)
