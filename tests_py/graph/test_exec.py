# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Executables of graphs that are built node by node."""

from __future__ import annotations

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


# --- executables ----------------------------------------------------------------------------------


def test_executable(graph, a, device, stream):
    graph.memset(a, 7, name="seven")
    step = graph.instantiate(upload=stream, priorities=True)
    assert step.device is device
    assert step.launch_count == 0
    step.launch(stream)
    step(stream)
    assert step.launch_count == 2
    assert repr(step) == "<cudago.GraphExec of 1 nodes, launched 2 times>"
    assert [n.name for n in step.nodes] == ["seven"]
    assert repr(step["seven"]) == "<cudago.ExecNode 'seven': memset>"
    with pytest.raises(KeyError, match="no node is called 'eight'; there are seven"):
        step["eight"]
    with pytest.raises(TypeError, match="stream must be a Stream"):
        step.launch(5)
    step.close()
    step.close()
    assert step.is_closed
    assert repr(step) == "<cudago.GraphExec: closed>"
    for use in (
        lambda: step.launch(stream),
        lambda: step.upload(stream),
        lambda: step.nodes,
        lambda: step["seven"],
        lambda: step.retained,
        lambda: step.launch_count,
    ):
        with pytest.raises(cu.ClosedError, match="graph executable is closed"):
            use()


def test_launches_of_one_executable_follow_each_other(graph, a, device, stream, kernels):
    graph.launch(CONFIG, kernels["times"], a, 2, N).launch(CONFIG, kernels["add"], a, 1, N)
    with graph.instantiate() as step, device.create_stream() as other:
        stream.sync()
        for s in (stream, other) * 5:
            step.launch(s)
        other.sync()
        stream.sync()
        assert numbers(a, stream) == 1023


def test_launch_on_a_stream_of_another_library(graph, a, device, stream):
    class Theirs:
        def __cuda_stream__(self):
            return 0, stream.handle

    graph.memset(a, b"\5\0\0\0")
    with graph.instantiate() as step:
        step.launch(Theirs())
        assert numbers(a, stream) == 5


def test_an_executable_runs_without_its_graph(a, stream, kernels):
    graph = cu.Graph()
    graph.launch(CONFIG, kernels["add"], a, 1, N)
    first, second = graph.instantiate(), graph.instantiate()
    graph.close()
    first.launch(stream)
    first.close()
    second.launch(stream)
    assert numbers(a, stream) == 2
    second.close()


# --- many -----------------------------------------------------------------------------------------


def test_many_launches(graph, a, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N)
    with graph.instantiate() as step:
        for _ in range(2500):
            step.launch(stream)
        assert numbers(a, stream) == 2500
        assert step.launch_count == 2500


def test_wide_and_deep_graphs(graph, a, stream, kernels):
    wide = [graph.callback(lambda: None) for _ in range(30)]
    node = graph.join(*wide)
    for _ in range(100):
        node = node.launch(CONFIG, kernels["add"], a, 1, N)
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 100
    assert len(graph.nodes) == 131
