# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles as pictures: a graph whose boxes have times, and are the redder the longer it took."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .dot import Drawing, Drawn, printable
from .fold import fold
from .picture import paint

if TYPE_CHECKING:
    from .._graph.profile import GraphProfile

_PALE = 255  # of green and blue in the box that took no time
_SHADES = 150  # by how much less they are in the one that took longest


def timed_svg(profile: GraphProfile, most: int | None, *, origins: bool = True) -> str:
    """Return the picture of a profile as SVG. With `most`, more boxes are folded."""
    nodes = [
        Drawn(
            [*printable(row.name).split("\n"), row.kind, f"{row.microseconds:.2f} µs"],
            Counter([row.kind]),
            "",
            [printable(row.made_at)] if row.made_at and origins else [],
            row.microseconds,
        )
        for row in profile.rows
    ]
    graph = Drawing(nodes, [(nodes[a], nodes[b]) for a, b in profile.edges])
    if most is not None:
        graph = fold(graph, most)
    longest = max((node.microseconds or 0 for node in graph.nodes), default=0) or 1
    for node in graph.nodes:  # folded ones by what their nodes took together
        rest = _PALE - round(_SHADES * (node.microseconds or 0) / longest)
        node.fill = f"#ff{rest:02x}{rest:02x}"
    return paint(graph)
