# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What all cards are made of: frames, rows, code and pictures, as harmless HTML.

Colors are those of the page, dark or light, and grays that fit both; nothing is loaded, and user
text is never taken for markup. A notebook that is not trusted yet shows it too: there are no
elements and colors that JupyterLab removes from such a notebook.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import wraps
from html import escape
from typing import Any

Row = tuple[str, "str | Callable[[], object]"]

LONGEST = 400  # characters of a value, and lines of a compiler's log
_BOX = (
    "display:inline-block;border:1px solid gray;border-radius:6px;padding:6px 10px;"
    "max-width:100%;overflow:auto;color:inherit;font-size:13px"
)
_TABLE = "border-collapse:collapse;margin:4px 0 0 0;border:none;color:inherit"
_PLAIN = "background:none;border:none;color:inherit;vertical-align:top"
_LABEL = f"{_PLAIN};text-align:left;font-weight:normal;opacity:.7;padding:1px 12px 1px 0"
_VALUE = f"{_PLAIN};text-align:left;padding:1px 0"
_CODE = "background:none;color:inherit;margin:4px 0 0 0;font-family:monospace;white-space:pre"


def escaped(value: object, longest: int = LONGEST) -> str:
    """Escape a value for HTML, with a placeholder for unprintable characters."""
    text = str(value)
    if len(text) > longest:
        text = text[:longest] + "\u2026"
    return escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text))


def reason(e: Exception) -> str:
    """Return the first line of what an error says."""
    return (str(e) or type(e).__name__).partition("\n")[0]


def framed(title: str, rows: list[Row], after: str = "") -> str:
    """Return a card; a row whose value cannot be had says why."""
    lines = ""
    for label, told in rows:
        try:
            value = told() if callable(told) else told
        except Exception as e:
            value = f"not known: {reason(e)}"
        lines += (
            f'<tr style="{_PLAIN}"><th style="{_LABEL}">{escaped(label)}</th>'
            f'<td style="{_VALUE}">{escaped(value)}</td></tr>'
        )
    table = f'<table style="{_TABLE}"><tbody>{lines}</tbody></table>' if lines else ""
    return f'<div style="{_BOX}"><b>{escaped(title)}</b>{table}{after}</div>'


def code_block(text: str) -> str:
    """Return text whose blanks and lines stay."""
    lines = "\n".join(map(escaped, text.split("\n")))
    return f'<pre style="{_CODE}">{lines}</pre>'


def never_raises(make: Callable[[Any], str]) -> Callable[[Any], str]:
    """Make a card that fails show the reason instead."""

    @wraps(make)
    def card(thing: Any) -> str:
        try:
            return make(thing)
        except Exception as e:
            return framed(type(thing).__name__, [("card", f"not known: {reason(e)}")])

    return card


def sized(size: int) -> str:
    """Return a number of bytes in words."""
    exact, number, unit = f"{size:,} byte{'s' * (size != 1)}", float(size), ""
    for unit in ("", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.4g} {unit} ({exact})" if unit else exact


def image(svg: str, alt: str) -> str:
    """Return a picture."""
    # Of an svg element JupyterLab leaves nothing but the words, in a notebook that nobody trusts.
    # An image stays, and has no color of the page to take.
    drawn = b64encode(svg.replace("<svg ", '<svg color="gray" ', 1).encode()).decode()
    style = "display:block;margin-top:6px;max-width:none"
    return f'<img alt="{escape(alt)}" style="{style}" src="data:image/svg+xml;base64,{drawn}"/>'
