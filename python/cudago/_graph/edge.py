# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What edges wait for, other than the completion of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .graph import Graph

PLAIN = 0  # an edge that waits for completion
PORTS = {"programmatic": 1, "launch_order": 2, "launch_completion": 3}  # edgeData in edit.go


def port_of(programmatic: object) -> int:
    """Return the number of what `Graph.add_edge` is asked for."""
    if isinstance(programmatic, bool):
        return int(programmatic)
    if not isinstance(programmatic, str):
        raise TypeError(
            f"programmatic must be a bool or a str such as 'launch_order', not "
            f"{type(programmatic).__name__}"
        )
    if programmatic not in PORTS:
        raise ValueError(
            "programmatic must be True, False, 'programmatic', 'launch_order' or "
            f"'launch_completion', got {programmatic!r}"
        )
    return PORTS[programmatic]


def ports_of(rows: Iterable[tuple[int, int, str]]) -> dict[tuple[int, int], int]:
    """Return the ports of edges by their ends, from rows of ``_edge_data()``."""
    ports: dict[tuple[int, int], int] = {}
    for start, end, data in rows:
        if data not in PORTS:
            raise ValueError(f"an edge that another library made, of {data}, cannot be copied")
        ports[start, end] = PORTS[data]
    return ports


def add_edges(graph: Graph, starts: Iterable[int], end: int, ports: Mapping[int, int]) -> None:
    """Make a new node wait for others; of those that are not in `ports`, for their completion."""
    for start in starts:
        graph._edge(start, end, ports.get(start, PLAIN))
