# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every test is in a room, and CONTRIBUTING.md says what each room is for."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
SECTION = "### The rooms of `tests_py`\n"


def test_no_test_is_outside_of_the_rooms():
    assert {f.name for f in TESTS.glob("*.py")} == {"conftest.py", "installed.py"}


def test_each_room_is_listed_once():
    text = (TESTS.parent / "CONTRIBUTING.md").read_text().split(SECTION)[1].split("\n\n")
    (table,) = (part for part in text if part.startswith("| room |"))
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", table, re.M)))
    assert sorted(listed) == sorted({f.parent.name for f in TESTS.glob("*/*.py")})
