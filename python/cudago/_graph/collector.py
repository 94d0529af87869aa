# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What Python's garbage collector is told of executables."""

from __future__ import annotations

import gc

from .. import _core


def watch_collections() -> None:
    """Let the collector see which executables are idle: pyext/stream/line.c."""
    if _core._collect_prove not in gc.callbacks:
        gc.callbacks.append(_core._collect_prove)
