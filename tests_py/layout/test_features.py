# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The page of features by driver version says what the table of driver calls does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "features.rst").read_text()
OLDEST = ROOT / "cuda" / "internal" / "driver" / "nvidia" / "nvidia.go"
CALLS = {
    name: f"{int(version) // 1000}.{int(version) % 1000 // 10}"
    for name, version in re.findall(
        r"^(cu\w+) +(\d+) ", (ROOT / "internal" / "gen" / "calls.txt").read_text(), re.M
    )
}


def test_calls_have_the_versions_of_the_table() -> None:
    told = dict(re.findall(r"^     - ``(cu\w+)``\n     - ([\d.]+)$", PAGE, re.M))
    assert told
    assert told == {name: CALLS.get(name) for name in told}


def test_the_newest_calls_are_on_the_page() -> None:
    """No call needs more than the oldest driver, and what is as new as that is on the page."""
    (oldest,) = re.findall(r"^const oldestVersion = (\d+)$", OLDEST.read_text(), re.M)
    limit = f"{int(oldest) // 1000}.{int(oldest) % 1000 // 10}"
    assert f"a driver for CUDA {limit} or newer" in PAGE
    newest = max(CALLS.values(), key=lambda v: tuple(map(int, v.split("."))))
    assert newest == limit
    assert f"- {newest}\n" in PAGE
