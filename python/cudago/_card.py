# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How notebooks show an object. Only this imports ``_display/html.py``, and only when asked."""

from __future__ import annotations

from typing import Any


def card(self: object) -> str:
    """Show a card in notebooks."""
    from ._display.html import card_of

    return card_of(self)


def picture(self: Any) -> str | None:
    """Show a picture where HTML is not shown."""
    from ._display.html import graph_picture

    return graph_picture(self)
