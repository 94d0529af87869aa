# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes of executable graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._native import final, or_closed
from .in_turn import in_turn
from .params import params_of
from .update import update_node

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .graph import Graph
    from .params import NodeParams

__all__ = ["ExecNode"]


@final
class ExecNode(_core.ExecNode):
    """A node of an executable, whose parameters can be changed for later launches.

    Obtained from `GraphExec.nodes` or ``step[name]``.
    """

    __slots__ = ()

    def _update(self, /, *args: Any, **kwargs: Any) -> None:
        """Do what the native `update` leaves to Python."""
        in_turn(self.exec, update_node, self, self.exec, args, kwargs)

    @property
    def params(self) -> NodeParams | None:
        """What the next launch of the node does, as `Node.params`. None for graphs in the graph."""
        if self.kind in ("child graph", "conditional"):
            return None
        return params_of(self.kind, self.exec._params(self._id), _no_graph)

    @property
    def made_at(self) -> str | None:
        """The line that made the node in the graph, as `Node.made_at`; updates do not change it."""
        return self.exec._made_at(self._id)

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
            closed. Such blocks can be nested, and those of threads and tasks overlap: the node is
            skipped until the last one ends.

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
        block = _core.Block()
        block._plan((self.exec._set_enabled, self._id, False), None, None)
        return block

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecNode) and other.exec is self.exec and other._id == self._id

    def __hash__(self) -> int:
        return hash((self.exec, self._id))

    @or_closed
    def __repr__(self) -> str:
        return f"<cudago.ExecNode {self.name!r}: {self.kind}>"


def _no_graph(index: int) -> Graph:
    raise LookupError(index)


_core._set_class("ExecNode", ExecNode)
