# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where a new node goes: into which graph, and behind which nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Concatenate, ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Graph
    from .node import Node

P = ParamSpec("P")


class Place:
    """What all parts of `Builder` stand on."""

    __slots__ = ()

    def _at(self) -> tuple[Graph, tuple[int, ...]]:
        """Return the graph, and the ids of the nodes that a new node waits for."""
        raise NotImplementedError

    def _new(
        self,
        add: Callable[Concatenate[Graph, tuple[int, ...], P], int],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Node:
        """Add a node by a native method of the graph, such as ``_core.Graph._add_event``."""
        graph, deps = self._at()
        return graph._node(add(graph, deps, *args, **kwargs))
