# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How notebooks and ``repr`` show an object. Only this imports `_display`, when asked."""

from __future__ import annotations

from typing import Any

from ._import_at_exit import late


def card(self: object) -> str:
    """Show a card in notebooks."""
    with late:
        from ._display.html import card_of

    return card_of(self)


def pretty(self: Any, printer: Any, cycle: bool) -> None:
    """Show memory at a prompt of IPython: as ``repr``, after the moment that a card gives work."""

    def patient(memory: Any) -> str:
        return glance(memory, patience_s=0.25)

    printer.text(self._described(patient))


def glance(self: Any, patience_s: float = 0) -> str:
    """Show a few values of memory in its ``repr``; whatever goes wrong, there are none."""
    try:
        with late:
            from ._display.glance import glance

        return glance(self, patience_s)
    except Exception:  # a repr is asked for in a forked child and at the interpreter's end too
        return ""


def picture(self: Any) -> str | None:
    """Show a picture where HTML is not shown."""
    with late:
        from ._display.html import picture_of

    return picture_of(self)
