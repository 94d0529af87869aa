# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Environments with exactly what a text tells its reader to install.

They are folders of links into the environment of the tests, for a Python without one of its own.
"""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

import cudago as cu

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIP = re.compile(r"\bpip install ([^`\n]+)")
# The folder is all that site knows of, for those who ask it where libraries may lie.
RUN = """
import runpy, site, sys
folder = sys.argv[1]
del sys.argv[:2]
site.getsitepackages = lambda prefixes=None: [folder]
site.addsitedir(folder)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def named(text: str) -> set[str]:
    """Return the requirements that a text's pip commands name; '.' is the project itself."""
    words = {w for command in PIP.findall(text) for w in shlex.split(command)}
    return {re.sub(r"^\.(?=$|\[)", "cudago", w) for w in words if not w.startswith("-")}


def command(text: str, script: Path, folder: Path) -> list[str]:
    """Return a command that runs a script with what `text` names, which is kept in `folder`.

    A script also imports what lies next to it, so it should lie alone.
    """
    folder.mkdir(exist_ok=True)
    seen: set[str] = set()
    for requirement in sorted(named(text)):
        install(Requirement(requirement), folder, seen)
    return [sys.executable, "-S", "-P", "-W", "error", "-c", RUN, str(folder), str(script)]


def install(wanted: Requirement, folder: Path, seen: set[str]) -> None:
    """Link a distribution into the folder, and what it needs."""
    name = wanted.name.lower().replace("_", "-")
    if name == "cudago":  # which need not be installed to be tested
        needs = [n for e in wanted.extras for n in PROJECT["optional-dependencies"][e]]
        if name not in seen:
            (folder / "cudago").symlink_to(Path(cu.__file__).parent)
    else:
        try:
            found = distribution(name)
        except PackageNotFoundError:  # the machine has it elsewhere, or the program will say so
            return
        needs = list(found.requires or [])
        if name not in seen:
            for file in found.files or []:
                link(folder, file.parts, Path(str(found.locate_file(""))))
    extras, key = wanted.extras or {""}, f"{name}{sorted(wanted.extras)}"
    if key in seen:
        return
    seen |= {name, key}
    for need in map(Requirement, needs):
        if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras):
            install(need, folder, seen)


def link(folder: Path, parts: tuple[str, ...], origin: Path) -> None:
    """Link a file, or the topmost package that it is in, where a wheel would put it."""
    if parts[0] == "..":
        return  # a command or a manual page
    for depth in range(1, len(parts) + 1):
        here, there = folder.joinpath(*parts[:depth]), origin.joinpath(*parts[:depth])
        if here.is_symlink():
            return
        if depth == len(parts) or (there / "__init__.py").exists():
            here.symlink_to(there)
            return
        here.mkdir(exist_ok=True)  # of several distributions, as nvidia


BLOCK = re.compile(
    r"^( *)\.\. code-block:: python\n"
    r"((?:\1   :.*\n)*)"  # options
    r"[ \t]*\n"
    r"((?:\1   .*\n|[ \t]*\n)+)",
    re.M,
)


def python_blocks(page: str, *options: str) -> Iterator[str]:
    """Yield the Python of a page in reStructuredText: its blocks with exactly these options."""
    for _, had, block in BLOCK.findall(page):
        if [line.strip() for line in had.splitlines()] == list(options):
            yield textwrap.dedent(block)
