# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The line of the program that calls cudago."""

from __future__ import annotations

import sys

_PACKAGE = __name__.partition(".")[0]


def caller() -> str:
    """Return the line of the program that calls cudago, as ``file:line``; empty if none does."""
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != _PACKAGE:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
