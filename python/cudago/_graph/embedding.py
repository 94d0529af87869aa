# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launches on a stream that is capturing: what they would run becomes one node.

The driver cannot copy an executable. As long as it does what the graph says that it was made of,
that graph is embedded; otherwise one that is made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .again import add_again, in_order, is_known
from .edge import ports_of
from .graph import Graph

if TYPE_CHECKING:
    from .._stream.stream import Stream
    from .exec import GraphExec


def launch_into(step: GraphExec, stream: Stream) -> bool:
    """Add what an executable runs to the capture that a stream is in.

    Returns
    -------
    bool
        Whether that was done: another thread may have ended the capture.
    """
    added = step._capture_into(stream)
    if isinstance(added, bool):
        return added
    with Graph(step.device) as graph:
        _copy(step, graph, added)
        return graph._capture_into(stream)


def _copy(step: GraphExec, graph: Graph, changed: str) -> None:
    """Add to an empty graph what launches run now; nodes that are disabled only join."""
    waits: dict[int, list[int]] = {row[0]: [] for row in step._nodes()}
    edges, ports = step._edges(), ports_of(step._edge_data())
    for a, b in edges:
        waits[b].append(a)
    named = {number: (name, kind) for number, name, kind in step._nodes()}
    made: dict[int, int] = {}
    for number in in_order(list(named), edges):
        name, kind = named[number]
        before = tuple([made[a] for a in waits[number]])
        told = step._params(number)
        if not step._is_enabled(number):
            made[number] = graph._add_empty(before, name)
            continue
        if not is_known(kind, told, step):
            raise ValueError(
                f"the executable cannot be launched on a stream that is capturing: {changed} since "
                f"it was instantiated, and {name!r}, of kind {kind}, cannot be copied from it. "
                "Capture the launch before the change, or instantiate and embed another graph"
            )
        # What is disabled only joins, and cannot let others start early.
        early = {
            made[a]: ports[a, number]
            for a in waits[number]
            if (a, number) in ports and step._is_enabled(a)
        }
        made[number] = add_again(graph, before, kind, told, name, early, of=(step, number))
