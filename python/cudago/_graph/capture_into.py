# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Captures into graphs that exist.

What is recorded becomes a graph of its own, whose nodes are then added to the other one: so a
capture that fails adds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._stream.stream import mode_of, stream_of
from ..errors import UnsupportedError
from .again import add_again, in_order, is_known, note_added
from .edge import ports_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..typing import CaptureMode, StreamLike
    from .graph import Graph
    from .node import Node

_ALLOCATE = {"alloc", "free"}


def capture_into(
    graph: Graph, after: tuple[int, ...], stream: StreamLike, mode: CaptureMode
) -> AbstractContextManager[list[Node], None]:
    """Add what is queued on a stream in the block to a graph, after some of its nodes."""
    on = stream_of(stream)
    graph._count()  # is it open?
    for number in after:
        graph._check(number)
    if on._ordinal != graph._ordinal:
        raise ValueError(
            f"stream must be of device {graph._ordinal}, as the graph is, not of device "
            f"{on._ordinal}"
        )
    nodes: list[Node] = []

    def add(captured: Graph) -> None:
        made: list[int] = []
        block = _core.Block()
        block._plan((made.clear,), (graph._take_back, made, nodes))
        with captured, block:
            _add(graph, after, captured, made)
            nodes.extend([graph._node(number) for number in made])
            made.clear()  # from here on they stay

    return _core._capture(on, mode_of(mode), nodes, add)


def _move(graph: Graph, after: tuple[int, ...], captured: Graph, made: list[int]) -> None:
    """Add a graph that allocates, of which there can be no copies."""
    try:
        note_added(made, graph._add_child, after, captured, None, True)
    except UnsupportedError as e:
        raise UnsupportedError(
            "memory that a capture allocates belongs to its graph, which this driver cannot add to "
            "another: allocate before the block, or capture a graph of its own"
        ) from e


def _add(graph: Graph, after: tuple[int, ...], captured: Graph, made: list[int]) -> None:
    """Add the nodes of a captured graph; or all of it as one node, where that cannot be.

    `made` has those that were added, with an error too.
    """
    rows, edges = captured._nodes(), captured._edges()
    kinds = {number: kind for number, _, _, kind in rows}
    if _ALLOCATE & set(kinds.values()):
        _move(graph, after, captured, made)
        return
    told = {number: captured._params(number) for number in kinds}
    removable = graph._body_id or not graph._has_memory()
    if not removable or not all(is_known(kinds[n], told[n], captured) for n in kinds):
        if rows:
            note_added(made, graph._add_child, after, captured, None, False)
        return
    ports = ports_of(captured._edge_data())
    waits: dict[int, list[int]] = {number: [] for number in kinds}
    for a, b in edges:
        waits[b].append(a)
    now: dict[int, int] = {}
    for number in in_order(list(kinds), edges):
        before = tuple([now[a] for a in waits[number]]) or after
        early = {now[a]: ports[a, number] for a in waits[number] if (a, number) in ports}
        add_again(
            graph,
            before,
            kinds[number],
            told[number],
            ports=early,
            of=(captured, number),
            made=made,
        )
        now[number] = made[-1]
        graph._set_made_at(made[-1], captured, number)
