# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs, where something is installed that can draw them."""

from __future__ import annotations

import shutil
import subprocess

_TIME_LIMIT_S = 10


def render_svg(dot: str) -> str | None:
    """Return a picture of a graph in Graphviz's language, or None without an installed ``dot``."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=dot,
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
