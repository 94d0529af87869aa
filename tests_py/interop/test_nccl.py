# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives of NCCL in graphs: the guide's programs, on two GPUs."""

from __future__ import annotations

import importlib.util

import pytest

import cudago as cu

from ..installed import ROOT, python_blocks

PAGE = ROOT / "docs" / "guide" / "several-devices.rst"
ENDS = """
import gc, weakref

watched = []
retain = cu.Graph.retain

def watching(graph, *objects):
    watched.extend(weakref.ref(o) for o in objects if type(o).__module__ == "__main__")
    retain(graph, *objects)

cu.Graph.retain = watching
"""
ENDED = """
gc.collect()
assert len(watched) == 1 and watched[0]() is not None, "the graph has the communicators"
step.close()
cu.testing.settle()
gc.collect()
assert watched[0]() is None
"""


def program(name: str) -> str:
    return "".join(python_blocks(PAGE.read_text(), f":name: {name}"))


@pytest.fixture
def two_gpus(driver):
    if driver != "nvidia" or len(cu.Device.all()) < 2:
        pytest.skip("needs two GPUs")


@pytest.mark.gpu
@pytest.mark.slow
def test_graph_keeps_communicators_and_memory(two_gpus, script):
    pytest.importorskip("nccl.core")
    source = program("nccl")
    head, tail = source.split("class Pair", 1)
    run = script(f"{head}\n{ENDS}\nclass Pair{tail}\n{ENDED}")
    assert run.returncode == 0, run.stderr


@pytest.mark.gpu
@pytest.mark.slow
def test_graph_in_each_process_of_torch(two_gpus, script):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    run = script(program("distributed"))
    assert run.returncode == 0, run.stderr
