# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The README's example and the guide's pages run as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MARKDOWN = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
DIRECTIVE = re.compile(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", re.M)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]


def code(page: Path) -> str:
    """Return a page's Python blocks as one script."""
    pattern = MARKDOWN if page.suffix == ".md" else DIRECTIVE
    return "\n".join(textwrap.dedent(block) for block in pattern.findall(page.read_text()))


@pytest.mark.parametrize(
    "page", [p for p in PAGES if code(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_page_runs(page: Path) -> None:
    # A process each: a page may choose the driver, which is done once.
    script = [sys.executable, "-W", "error", "-c", code(page)]
    env = {**os.environ, "CUDAGO_DRIVER": "sim"}
    run = subprocess.run(script, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
