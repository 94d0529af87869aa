# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A program with annotations passes a strict type checker, and mistakes in it do not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
pytest.importorskip("numpy")

PATH = str(Path(__file__).resolve().parents[2] / "python")

PROGRAM = """
from typing import assert_type

import numpy as np

import cudago as cu
from cudago.typing import CaptureMode, MemoryLike, StreamLike

dev = cu.Device()
with dev.create_stream() as s:
    assert_type(s, cu.Stream)
x = dev.allocate(64, stream=s)
assert_type(x, cu.Buffer)
assert_type(x[16:32], cu.Buffer)
assert_type(x.ptr + 16, cu.Pointer)
assert_type(x.ptr - x.ptr, int)
t = x.view("f4", (4, 4))
assert_type(t[0], cu.Tensor)
assert_type(t.T.reshape(-1), cu.Tensor)
assert_type(cu.from_dlpack(np.ones(3)), cu.Tensor)
x.copy_from(np.arange(8), stream=s)
x.copy_to(bytearray(64), stream=s)
kernel = cu.Program("").compile()["k"]
assert_type(kernel, cu.Kernel)
config = cu.LaunchConfig(grid=(1, 2), block=32)
cu.launch(s, config, kernel, 1, 2.0, None, x, x.ptr, t, np.ones(3), np.float32(1), b"1234")
with s.capture() as graph:
    assert_type(graph, cu.Graph)
step = graph.instantiate()
assert_type(step, cu.GraphExec)
assert_type(step["memset_0"], cu.ExecNode)
assert_type(cu.DeviceMemoryResource(dev), cu.DeviceMemoryResource)
assert_type(s.record().elapsed_ms(s.record()), float)


class Queue:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 1


def run(stream: StreamLike, operand: MemoryLike, mode: CaptureMode) -> None:
    x.copy_from(operand, stream=stream)
    s.wait(stream)
    step.launch(stream)


run(Queue(), b"1234", "relaxed")
"""

MISTAKES = """
import cudago as cu
dev = cu.Device()
s = dev.create_stream()
x = dev.allocate(4, stream=s)
dev.allocate(4, s)
x.copy_from(b"1234")
x.copy_from(1.5, stream=s)
x.ptr * 2
s.capture("local")
cu.init("cuda")
cu.launch(s, 1, x)
cu.LaunchConfig(grid=1.5, block=1)
"""
BEFORE = 4  # lines without a mistake, after the empty first one


def check(folder: Path, source: str) -> list[int]:
    """Return the lines of a program that mypy objects to."""
    (folder / "program.py").write_text(source)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "program.py"]
    run = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "MYPYPATH": PATH},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert re.search("^(Success|Found)", run.stdout, re.M), run.stdout + run.stderr
    return sorted({int(n) for n in re.findall(r"^program\.py:(\d+): error", run.stdout, re.M)})


@pytest.mark.slow
def test_a_program_with_annotations(tmp_path):
    assert check(tmp_path, PROGRAM) == []


@pytest.mark.slow
def test_mistakes(tmp_path):
    lines = range(BEFORE + 2, len(MISTAKES.splitlines()) + 1)
    assert check(tmp_path, MISTAKES) == list(lines)
