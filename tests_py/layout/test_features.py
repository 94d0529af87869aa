# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The page of features by driver version says what the table of driver calls does."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "features.rst").read_text()
OLDEST = ROOT / "cuda" / "internal" / "driver" / "nvidia" / "nvidia.go"
LINES = re.findall(
    r"^(cu\w+) +(\d+) +\S+ +(\w+)",
    (ROOT / "internal" / "gen" / "calls.txt").read_text(),
    re.M,
)
CALLS = {name: f"{int(v) // 1000}.{int(v) % 1000 // 10}" for name, v, _ in LINES}
NEEDED = {name: CALLS[name] for name, _, need in LINES if need == "required"}


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_calls_have_the_versions_of_the_table() -> None:
    told = dict(re.findall(r"^     - ``(cu\w+)``\n     - ([\d.]+)$", PAGE, re.M))
    assert told
    assert told == {name: CALLS.get(name) for name in told}


def test_the_newest_calls_are_on_the_page() -> None:
    """What needs more than the oldest driver can do without, and is on the page."""
    (oldest,) = re.findall(r"^const oldestVersion = (\d+)$", OLDEST.read_text(), re.M)
    limit = f"{int(oldest) // 1000}.{int(oldest) % 1000 // 10}"
    assert f"a driver for CUDA {limit} or newer" in PAGE
    assert max(map(number, NEEDED.values())) <= number(limit)
    assert f"- {limit}\n" in PAGE
    for name, version in CALLS.items():
        if number(version) > number(limit):
            assert f"``{name}``\n     - {version}" in PAGE
            assert f"- CUDA {version}\n" in PAGE
