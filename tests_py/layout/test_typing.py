# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Type checkers accept an annotated program, and find every mistake in another one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests_py" / "typing"
PATH = str(ROOT / "python")

# What a checker found: the codes of its errors, by line.
Found = dict[int, set[str]]


def expected(column: int) -> Found:
    """Return what the marks of the misuse say: column 0 is mypy's codes, 1 pyright's rules."""
    lines = (PROGRAMS / "misuse.py").read_text().splitlines()
    marks = {n: re.search(r"  # E: (\S+), (\S+)$", line) for n, line in enumerate(lines, 1)}
    return {n: {mark[column + 1]} for n, mark in marks.items() if mark}


def by_line(errors: list[tuple[str, int, str]], name: str) -> Found:
    """Return one file's errors."""
    found: Found = {}
    for file, line, code in errors:
        if file == name:
            found.setdefault(line, set()).add(code)
    return found


def check(folder: Path, *command: str) -> str:
    """Run a type checker on copies of the programs, away from our own settings."""
    for name in ("use.py", "misuse.py"):
        shutil.copy(PROGRAMS / name, folder)
    run = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "MYPYPATH": PATH},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert run.returncode == 1, (
        run.stdout + run.stderr
    )  # errors were found, and no fault of its own
    return run.stdout


@pytest.fixture(scope="module")
def mypy(tmp_path_factory) -> list[tuple[str, int, str]]:
    pytest.importorskip("mypy")
    flags = ("--strict", "--no-color-output", "--no-pretty", "--show-error-codes")
    out = check(tmp_path_factory.mktemp("mypy"), "mypy", *flags, "use.py", "misuse.py")
    errors = re.findall(r"^(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", out, re.M)
    assert f"Found {len(errors)} errors" in out, out
    return [(file, int(line), code) for file, line, code in errors]


@pytest.fixture(scope="module")
def pyright(tmp_path_factory) -> list[tuple[str, int, str]]:
    pytest.importorskip("pyright")
    folder = tmp_path_factory.mktemp("pyright")
    settings = {"extraPaths": [PATH], "strict": ["use.py"], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    out = check(folder, "pyright", "--outputjson", "--pythonpath", sys.executable)
    return [
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1, d.get("rule", ""))
        for d in json.loads(out)["generalDiagnostics"]
        if d["severity"] == "error"
    ]


def test_all_mistakes_are_marked():
    source = (PROGRAMS / "misuse.py").read_text()
    assert len(expected(0)) == source.count("# E")
    assert len(expected(0)) > 30


@pytest.mark.slow
def test_mypy_finds_nothing_in_what_is_right(mypy):
    assert by_line(mypy, "use.py") == {}


@pytest.mark.slow
def test_mypy_finds_every_mistake(mypy):
    assert by_line(mypy, "misuse.py") == expected(0)


@pytest.mark.slow
def test_pyright_finds_nothing_in_what_is_right(pyright):
    assert by_line(pyright, "use.py") == {}


@pytest.mark.slow
def test_pyright_finds_every_mistake(pyright):
    found, marked = by_line(pyright, "misuse.py"), expected(1)
    assert found.keys() == marked.keys()
    # It may say of a call both that no overload fits and which argument does not.
    assert {n: rules & found[n] for n, rules in marked.items()} == marked
