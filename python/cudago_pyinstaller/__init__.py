# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What PyInstaller has to know of cudago; it finds this by the entry point in pyproject.toml.

It is no part of the package `cudago`, so that no build loads the native module to look for hooks.
"""

from __future__ import annotations

from pathlib import Path


def hook_dirs() -> list[str]:
    """Return the folders with hooks."""
    return [str(Path(__file__).parent)]
