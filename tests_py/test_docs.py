# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The README's example and the guide's pages run as written, with what they say is needed."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from .installed import ROOT, command, python_blocks

MARKDOWN = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]


def code(page: Path) -> str:
    """Return a page's Python blocks as one script."""
    text = page.read_text()
    blocks = MARKDOWN.findall(text) if page.suffix == ".md" else python_blocks(text)
    return "\n".join(map(textwrap.dedent, blocks))


def run_with(text: str, source: str, script) -> subprocess.CompletedProcess[str]:
    """Run a script with what `text` names, on the simulated driver."""
    file = script.directory / "program" / "page.py"
    file.parent.mkdir()
    file.write_text(source)
    installed = command(text, file, script.directory / "installed")
    return script.run(installed, CUDAGO_DRIVER="sim", PYTHONPATH="")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if code(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_page_runs_with_what_it_names(page: Path, script) -> None:
    # A process each: a page may choose the driver, which is done once.
    run = run_with(page.read_text(), code(page), script)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`pip install 'cudago[sim]'`", "numpy"),
        ("`pip install cudago numpy`", "nvidia"),
        ("    pip install -U numpy", "cudago"),
        ("no more than Python", "pytest"),
    ],
)
def test_an_environment_lacks_what_is_not_named(text, missing, script):
    run = run_with(text, f"import {missing}", script)
    assert run.returncode == 1
    assert run.stderr.endswith(f"ModuleNotFoundError: No module named '{missing}'\n")
