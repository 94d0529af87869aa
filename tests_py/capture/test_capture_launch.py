# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launches of executables on a stream that is capturing: they become nodes."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)


@pytest.fixture
def x(device, stream):
    """16 numbers, which are 0."""
    with cu.zeros(N, "i4", stream=stream) as tensor:
        yield tensor


def one(x, stream) -> int:
    """Return the number that all are."""
    (found,) = set(x.numpy(stream=stream).tolist())
    return found


@pytest.fixture
def step(device, kernels, x):
    """An executable that multiplies by 3 and adds 1."""
    with cu.Graph(device) as graph:
        node = graph.launch(CONFIG, kernels["times"], x, 3, N, name="times")
        node.launch(CONFIG, kernels["add"], x, 1, N, name="add")
        with graph.instantiate() as step:
            yield step


def captured(stream, kernels, x, step):
    """Capture 5, what an executable does to it, and twice that."""
    with stream.capture() as graph:
        x.fill(5, stream=stream)
        step.launch(stream)
        cu.launch(stream, CONFIG, kernels["times"], x, 2, N)
    return graph


def result(graph, stream, x) -> int:
    """Launch a graph twice, and return what it makes."""
    with graph.instantiate() as step:
        step.launch(stream)
        step.launch(stream)
        return one(x, stream)


def test_a_launch_becomes_a_node(stream, kernels, x, step):
    with captured(stream, kernels, x, step) as graph:
        assert [n.kind for n in graph.nodes] == ["memset", "child graph", "kernel"]
        fill, child, last = graph.nodes
        assert graph.edges == ((fill, child), (child, last))
        assert [n.name for n in child.params.graph.nodes] == ["times", "add"]
        assert child.params.graph["times"].params.args == (x, 3, N)
        assert step.launch_count == 0
        assert {r.operand for r in child.retained} == {"parameter 0", "kernel"}
        assert result(graph, stream, x) == 32
    assert stream.is_done


def test_what_is_embedded_is_what_a_launch_would_run_then(stream, kernels, x, step):
    step["add"].update({1: 10})
    with captured(stream, kernels, x, step) as graph:
        step["add"].update({1: 100})
        assert graph["child_graph_0"].params.graph["add"].params.args == (x, 10, N)
        assert result(graph, stream, x) == 50
    with captured(stream, kernels, x, step) as graph:
        assert result(graph, stream, x) == 230


def test_a_disabled_node_stays_disabled(stream, kernels, x, step):
    with step["times"].disabled():
        graph = captured(stream, kernels, x, step)
    with graph:
        inner = graph["child_graph_0"].params.graph
        assert [(n.name, n.kind) for n in inner.nodes] == [("times", "empty"), ("add", "kernel")]
        assert result(graph, stream, x) == 12


def test_a_change_of_the_graph_does_not_count(device, stream, kernels, x):
    with cu.Graph(device) as graph:
        node = graph.launch(CONFIG, kernels["add"], x, 1, N, name="add")
        with graph.instantiate() as step:
            node.update({1: 1000})
            late = node.launch(CONFIG, kernels["add"], x, 1000, N)
            with captured(stream, kernels, x, step) as outer:
                assert result(outer, stream, x) == 12
            graph.remove(late)
            graph.remove(node)
            with captured(stream, kernels, x, step) as outer:
                assert result(outer, stream, x) == 12


def test_the_captured_graph_keeps_the_operands(device, stream, kernels, x):
    host = np.full(N, 4, "i4")
    alive = weakref.ref(host)
    with cu.Graph(device) as inner, cu.Graph(device) as graph:
        inner.memcpy(x, host)
        graph.embed(inner, name="deep")
        step = graph.instantiate()
    del host
    with stream.capture() as outer:
        step.launch(stream)
    step.close()
    del inner, graph, step
    settle()
    clone = outer.clone()
    run = outer.instantiate()
    outer.close()
    clone.close()
    settle()
    assert alive() is not None
    run.launch(stream)
    assert one(x, stream) == 4
    run.close()
    del outer, clone, run
    gc.collect()
    settle()
    assert alive() is None


def test_a_capture_that_fails_keeps_nothing(stream, device, x):
    host = np.full(N, 4, "i4")
    alive = weakref.ref(host)
    with cu.Graph(device) as graph:
        graph.memcpy(x, host)
        step = graph.instantiate()
    del host, graph

    def fail(step) -> None:
        with stream.capture():
            step.launch(stream)
            step.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(step)
    del step
    gc.collect()
    settle()
    assert alive() is None


@pytest.mark.parametrize("updated", [False, True])
def test_a_launch_beside_captures_that_end(device, stream, x, updated):
    """It is captured or launched, and never finds that a capture is gone."""
    raised: list[BaseException] = []
    going = threading.Event()
    with cu.Graph(device) as graph:
        graph.memset(x, 1, name="fill").callback(int)
        with graph.instantiate() as step:
            if updated:  # then a graph is made for the capture
                step["fill"].update(value=2)

            def launch() -> None:
                try:
                    while not going.is_set():
                        step.launch(stream)
                except BaseException as e:
                    raised.append(e)

            thread = threading.Thread(target=launch)
            thread.start()
            try:
                for _ in range(500):
                    with stream.capture() as captured:
                        x.fill(5, stream=stream)
                    captured.close()
            finally:
                going.set()
                thread.join()
    assert raised == []


def test_a_fork_can_launch(device, stream, kernels, x, step):
    with device.create_stream() as other, stream.capture() as graph:
        x.fill(5, stream=stream)
        with graph.fork(other) as branch:
            step.launch(branch)
        cu.launch(stream, CONFIG, kernels["times"], x, 2, N)
    with graph:
        assert result(graph, stream, x) == 32


def test_what_cannot_be_embedded_is_refused_and_spoils_nothing(device, stream, x, pinned):
    with cu.Graph(device) as inner, cu.Graph(device) as changed, cu.Graph(device) as memory:
        inner.memset(x, 1)
        changed.embed(inner, name="deep").memset(x, 2, name="fill")
        memory.allocate(4)
        other, choice = cu.Graph(device), cu.Graph(device)
        other.allocate(4)
        choice.if_then(choice.condition(0)).memset(x, 1, name="after")
        more, maybe = other.instantiate(), choice.instantiate()
        other.join()
        maybe["after"].enabled = False
        with (
            inner.clone() as later,
            changed.instantiate() as step,
            memory.instantiate() as allocating,
        ):
            step["deep"].update(later)
            with stream.capture() as graph:
                for use, error, message in (
                    (step, ValueError, "'deep' embeds something else.*: instantiate a graph that"),
                    (allocating, cu.CUDAError, "memory.*: launch it on a stream that is not"),
                    (more, ValueError, "memory.*: launch it on a stream that is not"),
                    (maybe, ValueError, "has conditional nodes.*: launch it on a stream that is"),
                ):
                    with pytest.raises(error, match=message.replace("'", '"')):
                        use.launch(stream)
                x.fill(7, stream=stream)
                with pytest.raises(ValueError, match="capturing"):
                    step.upload(stream)
            assert [n.kind for n in graph.nodes] == ["memset"]
        for one in more, maybe, other, choice:
            one.close()
    with graph:
        assert result(graph, stream, x) == 7


def test_what_a_changed_executable_embeds_is_embedded_again(device, stream, x, kernels):
    seven = np.full(N, 7, "i4")
    with cu.Graph(device) as inner, cu.Graph(device) as outer:
        inner.memcpy(x, seven, name="put")
        deep = outer.embed(inner, name="deep")
        deep.launch(CONFIG, kernels["add"], x, 1, N, name="add")
        step = outer.instantiate()
    kept = weakref.ref(seven)
    del seven
    step["add"].update({1: 5})
    with stream.capture() as graph:
        step.launch(stream)
    step.close()
    assert [line.split(":")[0].strip() for line in str(graph).splitlines()[1:]] == [
        *("child_graph_0", "inside", "deep", "inside", "put", "add"),
    ]
    gc.collect()
    assert kept() is not None
    with graph:
        assert result(graph, stream, x) == 12
    stream.sync()
    settle()
    assert kept() is None


def test_bound_launches_become_kernel_nodes(stream, kernels, x):
    with kernels["add"].bind(CONFIG, x, 1, N) as add, stream.capture() as graph:
        add(stream)
    with graph:
        assert [n.kind for n in graph.nodes] == ["kernel"]


def test_functions_that_are_graphs_launch_into_captures(stream, kernels, x, step):
    @cu.graph
    def train(s):
        x.fill(5, stream=s)
        step.launch(s)

    train(stream)
    assert one(x, stream) == 16
    step["add"].update({1: 2})
    train.clear()
    train(stream)
    assert one(x, stream) == 17
    train.clear()
