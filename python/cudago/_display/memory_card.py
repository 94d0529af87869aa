# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Cards about memory: what is in use, as bars, and what was in use over time, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._memory.summary import size_text
from .chart import chart
from .pieces import code_block, framed, image, never_raises

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._memory.summary import MemorySummary, Use
    from .._memory.timeline import MemoryTimeline

_WIDTH = 24  # of a bar, in characters
_LINE = "{:<{}}  {:<{}}  {:>10} live  {:>10} most{}"


@never_raises
def summary_card(summary: MemorySummary) -> str:
    """Return the card of what is in use, with a bar for each pool."""
    lines: list[str] = []
    names = [use.name + use.number for _, uses in summary.uses for use in uses]
    width = max(map(len, names), default=0)
    for title, uses in summary.uses:
        lines += [title, *_bars(uses, width), ""]
    return framed("Memory", [], code_block("\n".join(lines[:-1])))


def _bars(uses: tuple[Use, ...], width: int) -> Iterator[str]:
    """Yield a line for each: full is what is live, light is the rest of the most so far."""
    scale = max((max(u.most or u.live, u.reserved_most or 0) for u in uses), default=0) or 1
    for use in uses:
        full, most = (-(-n * _WIDTH // scale) for n in (use.live, use.most or use.live))
        bar = "\u2588" * full + "\u2591" * (most - full)
        held = "" if use.reserved is None else f"  {size_text(use.reserved):>10} reserved"
        live, peak = size_text(use.live), size_text(use.most or use.live)
        yield _LINE.format(use.name + use.number, width, bar, _WIDTH, live, peak, held)


@never_raises
def timeline_card(timeline: MemoryTimeline) -> str:
    """Return the card of memory over time: a line for each pool and each kind."""
    samples, peaks = timeline.samples, timeline.peaks
    if not samples:
        return framed("MemoryTimeline", [("samples", "none yet")])
    names = [name for name in peaks if peaks[name]]
    lines = [
        (f"{name}: at most {size_text(peaks[name])}", [s.live.get(name, 0) for s in samples])
        for name in names
    ]
    times = [s.at_ms for s in samples]
    picture = image(chart(times, lines, size_text), "memory over time") if lines else ""
    rows = [("samples", f"{len(samples)} in {times[-1]:.0f} ms")]
    if not lines:
        rows.append(("memory", "none was in use"))
    return framed("MemoryTimeline", [*rows], picture)
