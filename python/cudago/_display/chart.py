# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers over time as SVG, in colors that can be told apart on dark and on light."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

_COLORS = "#4c8dd6", "#e08a3c", "#3fa66b", "#b065c9", "#d0554c", "#8a8a8a"
_WIDTH, _HEIGHT, _LEFT, _TOP, _LINE = 420, 140, 70, 10, 16  # pixels
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" font-family="sans-serif" font-size="10" fill="currentColor">"""


def chart(
    times_ms: Sequence[float],
    lines: Sequence[tuple[str, Sequence[int]]],
    spelled: Callable[[float], str],
) -> str:
    """Return a picture of lines that keep their value until the next time, with a legend below.

    Parameters
    ----------
    times_ms : sequence of float
        When the values were taken, the first at 0.
    lines : sequence of tuple
        Of each line its name and its values.
    spelled : callable
        Gives a value its words.

    Returns
    -------
    str
        The picture.
    """
    highest = max((max(values) for _, values in lines), default=0) or 1
    right = times_ms[-1] or 1.0
    width = _LEFT + _WIDTH + _TOP
    height = _TOP + _HEIGHT + 2 * _LINE + _LINE * len(lines)
    parts = [_HEAD.format(width=width, height=height), *_axes(highest, right, spelled)]
    for at, (name, values) in enumerate(lines):
        color = _COLORS[at % len(_COLORS)]
        dashes = f' stroke-dasharray="{2 + 2 * (at // len(_COLORS))} 2"' * (at >= len(_COLORS))
        points = [
            (_LEFT + t / right * _WIDTH, _TOP + _HEIGHT * (1 - v / highest))
            for t, v in zip(times_ms, values, strict=True)
        ]
        path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        path += "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
        style = f'fill="none" stroke="{color}" stroke-width="1.5"{dashes}'
        parts.append(f'<path d="{path}" {style}/>')
        y = _TOP + _HEIGHT + 2 * _LINE + _LINE * at
        parts.append(f'<path d="M{_LEFT} {y}h14" {style.replace("1.5", "3")}/>')
        parts.append(f'<text x="{_LEFT + 20}" y="{y + 3}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _axes(highest: int, right_ms: float, spelled: Callable[[float], str]) -> list[str]:
    parts: list[str] = []
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _HEIGHT * (1 - share)
        parts.append(f'<path d="M{_LEFT} {y:.0f}h{_WIDTH}" stroke="gray" stroke-opacity=".4"/>')
        words = escape(spelled(highest * share))
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 3:.0f}" text-anchor="end">{words}</text>')
    y = _TOP + _HEIGHT + _LINE
    parts.append(f'<text x="{_LEFT}" y="{y}">0 ms</text>')
    end = _LEFT + _WIDTH
    parts.append(f'<text x="{end}" y="{y}" text-anchor="end">{right_ms:.0f} ms</text>')
    return parts
