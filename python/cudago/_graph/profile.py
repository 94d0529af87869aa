# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Times of the nodes of an executable, each run alone.

The driver does not time nodes. So a graph is built in which the same work runs in a single line,
with a record of an event after each node: the difference between two events is a node's time. One
launch runs it, so that no time of the host is measured.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .._card import card, picture
from .._import_at_exit import late
from .._native import or_closed
from .._stream.stream import stream_of
from .._whole_file import write_whole
from ..errors import UnsupportedError
from .again import add_again, in_order, is_known
from .graph import Graph
from .moved import Moved, NotMovableError
from .shown import boxes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from .._memory.device import Device
    from .._stream.event import Event
    from ..typing import StreamLike
    from .exec import GraphExec

__all__ = ["GraphProfile", "NodeTime"]

_WIDEST = 24  # characters of a bar


class NodeTime(NamedTuple):
    """How long a node took. One of the ``rows`` of a `GraphProfile`.

    Parameters
    ----------
    name, kind : str
        Those of the node.
    microseconds : float
        Its time.
    start : float
        Microseconds from the beginning of the profile to the node's.
    made_at : str, optional
        The line of the program that made the node in the graph, as `Node.made_at`.
    """

    name: str
    kind: str
    microseconds: float
    start: float
    made_at: str | None = None


@dataclass(frozen=True)
class GraphProfile:
    """How long the nodes of an executable took, each run alone. Made by `GraphExec.profile`.

    Prints as a table; notebooks show it with a picture of the graph.

    Parameters
    ----------
    rows : tuple of NodeTime
        The nodes, in the order in which they ran.
    edges : tuple of tuple of int
        Pairs of indices of rows, of which the second depends on the first.
    """

    rows: tuple[NodeTime, ...]
    edges: tuple[tuple[int, int], ...] = ()

    @property
    def microseconds(self) -> float:
        """The sum of all times."""
        return sum(row.microseconds for row in self.rows)

    def to_svg(self, *, fold: int | None = 100) -> str:
        """Return a picture of the graph with the times, as notebooks show it.

        Parameters
        ----------
        fold : int, optional
            Number of boxes above which nodes are folded, as by `Graph.to_svg`: a box then has the
            time of all its nodes. None draws each node.

        Returns
        -------
        str
            SVG. A box is the redder the more time it took, and its title is `NodeTime.made_at`.

        Examples
        --------
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(device.allocate(4, stream=stream), 7)
        >>> picture = graph.instantiate().profile(stream).to_svg()
        """
        most = boxes(fold)
        with late:
            from .._display.timed import timed_svg

        return timed_svg(self, most)

    def to_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the times to a file that ``chrome://tracing`` and Perfetto show.

        Parameters
        ----------
        path : str or path
            The file, which is replaced once all is written.

        Examples
        --------
        >>> import os, tempfile
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(device.allocate(4, stream=stream), 7)
        >>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
        >>> graph.instantiate().profile(stream).to_chrome_trace(path)
        """
        place = {"pid": 0, "tid": 0}
        events: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", **place, "args": {"name": "cudago"}},
            {"name": "thread_name", "ph": "M", **place, "args": {"name": "nodes, each alone"}},
        ]
        events += [
            {
                "name": row.name,
                "cat": row.kind,
                "ph": "X",
                "ts": row.start,
                "dur": row.microseconds,
                **place,
            }
            for row in self.rows
        ]
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1)
        write_whole(path, [text.encode()])

    @or_closed
    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterable[str]:
        """Yield the table, with bars."""
        most = max((row.microseconds for row in self.rows), default=0) or 1
        with late:
            from .._display.dot import (
                printable,  # names are the program's: a table has a line for each
            )

        shown = [printable(row.name).replace("\n", " ") for row in self.rows]
        names = max(map(len, shown), default=0)
        kinds = max((len(row.kind) for row in self.rows), default=0)
        yield f"{self.microseconds:10.2f} µs in {len(self.rows)} nodes, each run alone"
        for row, name in zip(self.rows, shown, strict=True):
            bar = "█" * round(_WIDEST * row.microseconds / most)
            text = f"{name:{names}}  {row.kind:{kinds}}  {bar}"
            yield f"{row.microseconds:10.2f} µs  {text}".rstrip()

    _repr_html_ = card
    _repr_svg_ = picture


def profile_of(step: GraphExec, stream: StreamLike) -> GraphProfile:
    """Run the nodes of an executable in a line, and return their times."""
    on = stream_of(stream)
    if on.is_capturing:
        raise ValueError("the stream is capturing: nothing runs there that could be measured")
    step._ask()
    nodes, edges = step._nodes(), step._edges()
    order = in_order([node[0] for node in nodes], edges)
    named = {number: (name, kind) for number, name, kind in nodes}
    order = [number for number in order if step._is_enabled(number)]
    with ExitStack() as until_done:
        events = [until_done.enter_context(_event(step.device)) for _ in range(len(order) + 1)]
        with Graph(step.device) as graph:
            moved = Moved(graph)
            last = graph._add_event((), events[0], True, None)
            for number, event in zip(order, events[1:], strict=True):
                name, kind = named[number]
                try:
                    last = _add(graph, last, step, number, kind, moved)
                except NotMovableError as e:
                    raise UnsupportedError(f"cannot profile {kind} node {name!r}: {e}") from None
                last = graph._add_event((last,), event, True, None)
            moved.free_rest(last)
            timed = until_done.enter_context(graph.instantiate(upload=on))
        timed.launch(on)
        on.sync()
        times = [1000 * event.elapsed_ms(events[0]) for event in events]
    rows = [
        NodeTime(*named[number], max(0.0, end - start), start, step._made_at(number))
        for number, (start, end) in zip(order, pairwise(times), strict=True)
    ]
    places = {number: i for i, number in enumerate(order)}
    inside = [(places[a], places[b]) for a, b in edges if a in places and b in places]
    return GraphProfile(tuple(rows), tuple(sorted(inside)))


def _event(device: Device) -> Event:
    return device.create_event(timing_enabled=True)


def _add(graph: Graph, last: int, step: GraphExec, number: int, kind: str, moved: Moved) -> int:
    """Add what a node of an executable does, after the last node that was added."""
    told = step._params(number)
    if kind == "conditional":
        raise NotMovableError("its condition cannot be set for another graph")
    if kind in ("alloc", "free") and told[0] is not None:
        return (moved.allocate if kind == "alloc" else moved.free)((last,), told[0])
    if not is_known(kind, told, step):
        raise NotMovableError("another library captured it, and its operands are not known")
    return add_again(graph, (last,), kind, moved.told(kind, told), of=(step, number))
