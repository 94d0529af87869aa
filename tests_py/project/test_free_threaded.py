# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a free-threaded Python says to cudago: a real one, where this machine has one.

It finds the module of the wheel, whose name says only that it is for the stable ABI, and would
crash in it. scripts/free_threaded_python.sh builds such a Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import cudago as cu

ASKED = 'import sysconfig; print(sysconfig.get_config_var("Py_GIL_DISABLED"))'
DIRECTLY = """
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
loader = ExtensionFileLoader(sys.argv[1], sys.argv[2])
module_from_spec(spec_from_file_location(sys.argv[1], sys.argv[2], loader=loader))
"""


def candidates() -> Iterator[str]:
    """Yield the free-threaded Pythons that there may be: named, on PATH, and built for this."""
    if named := os.environ.get("CUDAGO_FREE_THREADED_PYTHON"):
        yield named
    yield from filter(None, (shutil.which(f"python3.{n}t") for n in range(20, 12, -1)))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cudago"
    yield from map(str, cache.glob("free-threaded-*/bin/python3.*t"))


def run(python: str, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run it with what Python's own variables say left out."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    return subprocess.run(
        [python, "-B", *arguments],
        env=kept | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def free_threaded() -> str:
    """Return one that runs here."""
    for python in candidates():
        if run(python, "-c", ASKED).stdout.strip() == "1":
            return python
    pytest.skip(
        "no free-threaded Python is here: scripts/free_threaded_python.sh builds one, "
        "CUDAGO_FREE_THREADED_PYTHON names one"
    )


def sentence(python: str) -> str:
    """Return the line that such an import ends with."""
    asked = "import platform, sys; print(f'{platform.python_version()} ({sys.executable})')"
    got = run(python, "-c", asked).stdout.strip()
    needs = "cudago needs a Python with the GIL, and this is a free-threaded one"
    return f"ImportError: {needs}, {got}"


@pytest.mark.parametrize("what", ["cudago", "cudago._core", "cudago._gopy", "cudago.testing"])
def test_an_import_is_refused(free_threaded: str, what: str):
    ran = run(free_threaded, "-c", f"import {what}", path=str(Path(cu.__file__).parents[1]))
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr.splitlines()[-1] == sentence(free_threaded)
    assert "During handling" not in ran.stderr


@pytest.mark.parametrize("name", ["cudago._core", "_core"])
def test_the_module_itself_refuses(free_threaded: str, name: str):
    """A program can load the file and pass the package by."""
    ran = run(free_threaded, "-c", DIRECTLY, name, cu._core.__file__)
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr.splitlines()[-1] == (
        "ImportError: cudago needs a Python with the GIL, and this is a free-threaded one"
    )
