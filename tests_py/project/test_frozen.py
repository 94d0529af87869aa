# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that PyInstaller froze: they have the compiler with them, and say what they lack."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

PROGRAM = """
import pathlib, sys
import numpy
import cudago as cu

stream = cu.Device().create_stream()
try:
    code = cu.Program('extern "C" __global__ void f(int* x) { *x += 7; }').compile()
except cu.CompileError as e:
    sys.exit(str(e))
x = cu.zeros(1, "i4", stream=stream)
graph = cu.Graph()
graph.launch(cu.LaunchConfig(1, 1), code["f"], x)
graph.save("graph.cudago", contents=True)  # what cudago imports when it is needed
cu.Graph.load("graph.cudago", bind={}).instantiate().launch(stream)
graph.instantiate().launch(stream)
lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
print(x.numpy(stream=stream), *{line.split()[-1] for line in lines if "libnvrtc.so" in line})
"""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory) -> Path:
    """A folder with a program that was frozen."""
    pytest.importorskip("PyInstaller")
    if not entry_points(group="pyinstaller40", name="hook-dirs").names:
        pytest.fail("cudago's hook cannot be found: it has no entry point")
    folder = tmp_path_factory.mktemp("frozen")
    (folder / "program.py").write_text(PROGRAM)
    freeze = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=WARN", "program.py"]
    done = subprocess.run(
        freeze, cwd=folder, check=False, env=environment(), capture_output=True, text=True
    )
    if "Python shared library" in done.stderr:
        pytest.skip("PyInstaller finds no shared library of this Python")
    assert done.returncode == 0, done.stderr
    return folder / "dist" / "program"


def environment() -> dict[str, str]:
    """Return variables for a program that finds nothing outside of it."""
    places = ("PYTHONPATH", "CUDAGO_NVRTC_PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")
    return {k: v for k, v in os.environ.items() if k not in places} | {"CUDAGO_DRIVER": "sim"}


def run(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_frozen_program_compiles(frozen, tmp_path):
    done = run(frozen / "program", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    value, library = done.stdout.split()
    assert value == "[7]"
    assert Path(library).is_relative_to(frozen), library
    assert done.stderr == ""


@pytest.mark.slow
def test_a_frozen_program_says_what_it_lacks(frozen, tmp_path):
    library = frozen / "_internal" / "nvidia"
    library.rename(tmp_path / "nvidia")
    try:
        done = run(frozen / "program", tmp_path)
    finally:
        (tmp_path / "nvidia").rename(library)
    if done.returncode == 0:
        pytest.skip("the system has an NVRTC, so that nothing is missing")
    assert "this program is frozen, and was frozen without it" in done.stderr
    assert "CUDAGO_NVRTC_PATH" in done.stderr
