# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs captured from launches and copies alone, whose nodes nobody has asked for yet."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")

N = 4
CONFIG = cu.LaunchConfig(grid=1, block=N)


class Array(np.ndarray):
    """Host memory with attributes."""


@pytest.fixture
def x(device, stream):
    """Four numbers, which are 0."""
    with cu.zeros(N, "i4", stream=stream) as tensor:
        stream.sync()
        yield tensor


@pytest.fixture
def captured(stream, kernels, x, pinned):
    """Make a graph of two launches and a copy, which nobody has looked at."""

    def make():
        with stream.capture() as graph:
            cu.launch(stream, CONFIG, kernels["add"], x, 3, N)
            cu.launch(stream, CONFIG, kernels["times"], x, 5, N)
            pinned[: 4 * N].copy_from(x, stream=stream)
        return graph

    return make


NAMES = ["kernel_0", "kernel_1", "memcpy_0"]

LOOKS = {
    "nodes": lambda g: g.nodes,
    "edges": lambda g: g.edges,
    "a node": lambda g: g["kernel_1"],
    "text": str,
    "picture": lambda g: g.to_svg(),
    "what it retains": lambda g: g.retained,
    "handle": lambda g: g.handle,
    "object to retain": lambda g: g.retain(bytearray(3)),
    "clone": lambda g: g.clone().close(),
    "executable": lambda g: g.instantiate().close(),
    "graph around it": lambda g: cu.Graph().embed(g),
    "difference": lambda g: g.diff(g),
    "collection": lambda g: gc.collect(),
}


@pytest.mark.parametrize("look", LOOKS)
def test_whoever_looks_first_sees_all(stream, captured, x, pinned, look):
    with captured() as graph:
        LOOKS[look](graph)
        assert [n.name for n in graph.nodes] == NAMES
        assert [(a.name, b.name) for a, b in graph.edges] == [*pairwise(NAMES)]
        assert {r.node for r in graph.retained} >= set(NAMES)
        x.fill(1, stream=stream)
        with graph.instantiate() as step:
            step.launch(stream)
        stream.sync()
        assert x.numpy(stream=stream).tolist() == [20] * N
        assert np.asarray(pinned)[: 4 * N].view("i4").tolist() == [20] * N


def test_what_is_added_comes_behind(stream, kernels, captured, x):
    """C adds to it as to a graph that was built by hand."""
    with captured() as graph:
        alone = graph.launch(CONFIG, kernels["nothing"])
        graph["memcpy_0"].launch(CONFIG, kernels["add"], x, 1, N)
        assert alone.dependencies == ()
        assert [n.name for n in graph.nodes] == [*NAMES, "kernel_2", "kernel_3"]
        assert [n.name for n in graph["kernel_3"].dependencies] == ["memcpy_0"]
        graph.remove(graph["kernel_0"])
        x.fill(1, stream=stream)
        with graph.instantiate() as step:
            step.launch(stream)
            assert x.numpy(stream=stream).tolist() == [6] * N


def test_arguments_of_its_nodes_change(stream, captured, x):
    with captured() as graph, graph.instantiate() as step:
        graph["kernel_0"].update({1: 1})
        step["kernel_1"].update({1: 7})
        x.fill(1, stream=stream)
        step.launch(stream)
        assert x.numpy(stream=stream).tolist() == [28] * N
        with graph.instantiate() as again:
            x.fill(1, stream=stream)
            again.launch(stream)
            assert x.numpy(stream=stream).tolist() == [10] * N


@pytest.mark.parametrize("ends", ["closed", "dropped", "collected"])
def test_operands_go_with_it(device, stream, other, kernels, ends):
    buffer = device.allocate(4 * N, stream=other)
    host = np.zeros(4 * N, "u1").view(Array)
    other.sync()
    refs = [weakref.ref(buffer), weakref.ref(host)]
    with stream.capture() as graph:
        for _ in range(5):
            cu.launch(stream, CONFIG, kernels["add"], buffer, 1, N)
        buffer.copy_from(host, stream=stream)
    if ends == "collected":
        host.graph = graph
    del buffer, host
    gc.collect()
    settle()
    assert all(r() is not None for r in refs)
    if ends == "closed":
        graph.close()
    del graph
    if ends == "collected":
        gc.collect()
    settle()
    assert [r() for r in refs] == [None, None]


def test_the_same_launch_again_and_again_is_one_record(stream, kernels, x):
    """Equal arguments that are other objects, and other places of the same, are told apart."""
    big, same = 10**3, int("1000")
    with stream.capture() as graph:
        for value in (big, big, same, 7, big):
            cu.launch(stream, CONFIG, kernels["add"], x, value, N)
        cu.launch(stream, CONFIG, kernels["times"], x, big, N)
        cu.launch(stream, cu.LaunchConfig(grid=2, block=N), kernels["times"], x, 1, N)
    with graph, graph.instantiate() as step:
        assert [n.params.args[1] for n in graph.nodes] == [big, big, big, 7, big, big, 1]
        step.launch(stream)
        assert x.numpy(stream=stream).tolist() == [(4 * big + 7) * big] * N
        assert [n.params.config.grid[0] for n in graph.nodes] == [1] * 6 + [2]


@pytest.mark.parametrize("built", ["captured", "by hand"])
def test_a_shared_record_changes_for_one_node_alone(stream, kernels, x, built):
    if built == "captured":
        with stream.capture() as graph:
            for _ in range(3):
                cu.launch(stream, CONFIG, kernels["add"], x, 100, N)
    else:
        node = graph = cu.Graph(stream.device)
        for _ in range(3):
            node = node.launch(CONFIG, kernels["add"], x, 100, N)
    with graph, graph.instantiate() as step:
        for value in (1, 2):  # the second time in place
            step["kernel_1"].update({1: value})
            step["kernel_1"].update({1: value})
        graph["kernel_2"].update({1: 7})
        assert [n.params.args[1] for n in graph.nodes] == [100, 100, 7]
        assert [step[n.name].params.args[1] for n in graph.nodes] == [100, 2, 100]
        step.launch(stream)
        assert x.numpy(stream=stream).tolist() == [202] * N
