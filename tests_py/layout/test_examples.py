# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every example runs with what it names, and says what it should."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ..installed import command

EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = {"digits.py": ["--epochs", "12", "--out", "."]}


def need_digits() -> None:
    """Skip where scikit-learn is missing, without the cost of its import."""
    if find_spec("sklearn") is None:
        pytest.skip("scikit-learn, which ships the digits, is not installed")


@pytest.mark.parametrize("name", sorted(p.name for p in EXAMPLES.glob("*.py")))
def test_example(name, script, driver):
    if name == "digits.py":
        need_digits()
    example = EXAMPLES / name
    installed = command(example.read_text(), example, script.directory / "installed")
    run = script.run([*installed, *OPTIONS.get(name, [])], PYTHONPATH="")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


def test_digits(script, driver):
    need_digits()
    run = script.run([sys.executable, str(EXAMPLES / "digits.py"), "--epochs", "1", "--out", "."])
    assert run.returncode == 1, "one epoch is not enough"
    assert "22 launches of 14 nodes" in run.stdout
    (picture,) = script.directory.glob("digits.svg")
    assert picture.read_text().count("<rect") == 14
    help = script.run([sys.executable, str(EXAMPLES / "digits.py"), "--help"])
    for option in ("--epochs", "--out", "--driver"):
        assert option in help.stdout
