# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Executables that become another graph."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .operand import CONFIG, N, full, numbers

np = pytest.importorskip("numpy")


@pytest.fixture
def build(device, stream, a, kernels):
    """Function: a graph that uploads, adds, and calls."""

    def build(source, value, func=lambda: None, dst=a, names=("up", "add", "tell")):
        graph = cu.Graph(device)
        up = graph.memcpy(dst, source, name=names[0])
        add = up.launch(CONFIG, kernels["add"], dst, value, N, name=names[1])
        add.callback(func, name=names[2])
        return graph

    return build


def test_all_nodes_change(build, a, stream):
    told = []
    with build(full(1), 10, lambda: told.append("old")) as graph:
        step = graph.instantiate()
    new = full(2)
    with build(new, 20, lambda: told.append("new"), names=("a", "b", "c")) as other:
        step.update(other)
        assert step.update_or_instantiate(other) is step
    step.launch(stream)
    assert numbers(a, stream) == 22
    assert told == ["new"]
    assert [n.name for n in step.nodes] == ["up", "add", "tell"]
    assert step["up"].params.src is new
    assert [r.object for r in step.retained if r.operand == "src"] == [new]
    step["add"].update(value=30)
    step.launch(stream)
    assert numbers(a, stream) == 32
    step.close()


def test_operands_switch_exactly(build, a, stream):
    source, other = full(1), full(2)
    watches = weakref.ref(source), weakref.ref(other)
    with build(source, 10) as graph:
        step = graph.instantiate()
    with build(other, 10) as graph:
        del source, other
        step.update(graph)
        settle()
        assert [w() is not None for w in watches] == [False, True]
    settle()
    assert [w() is not None for w in watches] == [False, True]
    step.launch(stream)
    assert numbers(a, stream) == 12
    step.close()
    settle()
    assert watches[1]() is None


def test_what_a_launch_under_way_uses_stays(build, a, stream, pinned):
    source = full(1)
    watch = weakref.ref(source)
    with build(source, 10) as graph:
        step = graph.instantiate()
    del source
    with build(full(2), 10) as other, hold(stream):
        step.launch(stream)
        step.update(other)
        cu._core._reaper_flush(20)
        gc.collect()
        assert watch() is not None
    stream.sync()
    settle()
    assert watch() is None
    step.launch(stream)
    assert numbers(a, stream) == 12
    step.close()


def test_operands_of_embedded_graphs_switch(device, build, a, stream):
    sources = [full(1), full(2)]
    watches = [weakref.ref(s) for s in sources]

    def outer(source):
        graph = cu.Graph(device)
        with build(source, 5) as inner:
            graph.embed(inner, name="inner").memset(a[:4], 0, name="zero")
        return graph

    with outer(sources[0]) as first, outer(sources[1]) as second:
        del sources
        step = first.instantiate()
        first.close()
        step.launch(stream)
        step.update(second)
        second.close()
        stream.sync()
        settle()
        assert [w() is not None for w in watches] == [False, True]
        assert {r.node for r in step.retained} == {"inner/up", "inner/add", "inner/tell", "zero"}
        step.launch(stream)
        assert numbers(a, stream) == [0] + [7] * (N - 1)
        step.close()
    settle()
    assert watches[1]() is None


def test_disabled_nodes_stay_disabled(build, a, stream):
    told = []
    with (
        build(full(1), 10, lambda: told.append(1)) as graph,
        build(full(2), 20, lambda: told.append(2)) as other,
    ):
        step = graph.instantiate()
        step["add"].enabled = step["tell"].enabled = False
        step.update(other)
        assert (step["add"].enabled, step["tell"].enabled) == (False, False)
        step.launch(stream)
        assert numbers(a, stream) == 2
        assert told == []
        step["add"].enabled = step["tell"].enabled = True
        step.launch(stream)
        assert numbers(a, stream) == 22
        assert told == [2]
        step.close()


def test_a_graph_that_differs_is_refused_by_name(device, build, a, stream, kernels):
    with build(full(1), 10) as graph:
        step = graph.instantiate()
    before = step.retained

    def other(change):
        graph = build(full(2), 20)
        change(graph)
        return graph

    def swap(graph):
        graph.remove(graph["add"])
        graph.add_edge(graph["up"], graph["tell"])
        graph["tell"].memset(a, 0, name="fill")

    for change, node, message in (
        (lambda g: g.remove(g["tell"]), "", 'has 2 nodes, and the executable 3; .* lacks "tell"'),
        (lambda g: g.join(name="more"), "", 'executable 3; only the graph has "more"'),
        (lambda g: g.remove_edge(g["up"], g["add"]), "add", 'waits for nothing, and .* for "up"'),
        (lambda g: g.add_edge(g["up"], g["tell"]), "tell", 'waits for "add", "up", and .*"add"'),
        (swap, "tell", 'node "tell" is of kind host, where the executable has kernel node "add"'),
    ):
        with other(change) as changed:
            with pytest.raises(cu.GraphUpdateError, match=message) as caught:
                step.update(changed)
            assert (caught.value.node, caught.value.code) == (node, 910)
            assert caught.value.operation == "cuGraphExecUpdate"
            new = step.update_or_instantiate(changed)
            assert new is not step
            new.close()
    assert [(r.node, r.operand) for r in step.retained] == [(r.node, r.operand) for r in before]
    assert all(r.object is s.object for r, s in zip(step.retained, before, strict=True))
    step.launch(stream)
    assert numbers(a, stream) == 11
    step.close()


def test_what_the_driver_refuses_is_named(device, build, a, stream):
    """A copy from device memory cannot take the place of one from the host's."""
    b = device.allocate(4 * N, stream=stream)
    with b, build(full(1), 10) as graph, build(b, 10) as other:
        step = graph.instantiate()
        with pytest.raises(cu.GraphUpdateError, match=r'"up" differs: .*instead of 64 b') as caught:
            step.update(other)
        assert caught.value.node == "up"
        step.launch(stream)
        assert numbers(a, stream) == 11
        step.close()


def test_embedded_graphs_are_compared(device, a):
    def outer(*values):
        graph = cu.Graph(device)
        with cu.Graph(device) as inner:
            node = inner
            for value in values:
                node = node.memset(a, value)
            graph.embed(inner, name="inner")
        return graph

    with outer(1) as one, outer(1, 2) as two:
        step = one.instantiate()
        with pytest.raises(cu.GraphUpdateError, match='"inner" embeds 2 nodes, and embedded 1'):
            step.update(two)
        step.close()


def test_options_are_those_of_the_old_one(device, stream):
    def build(size):
        graph = cu.Graph(device)
        graph.allocate(size)
        return graph

    with build(64) as one, build(128) as two:
        step = one.instantiate(auto_free=True)
        with pytest.raises(cu.GraphUpdateError, match="allocates memory"):
            step.update(two)
        new = step.update_or_instantiate(two)
        new.launch(stream)
        new.launch(stream)
        stream.sync()
        step.close()
        new.close()


def test_what_cannot_be_used(build, device):
    graph = build(full(1), 10)
    step = graph.instantiate()
    with pytest.raises(TypeError, match="graph must be a Graph"):
        step.update(step)
    outer = cu.Graph(device)
    view = outer.embed(graph).params.graph
    with pytest.raises(ValueError, match="embedded in another and cannot update an executable"):
        step.update(view)
    outer.close()
    with pytest.raises(cu.ClosedError):
        step.update(view)
    step.update(graph)
    graph.close()
    with pytest.raises(cu.ClosedError, match="graph is closed"):
        step.update(graph)
    step.close()
    with build(full(1), 10) as graph, pytest.raises(cu.ClosedError, match="executable is closed"):
        step.update(graph)


def test_captures_update_too(a, stream, kernels):
    def capture(value):
        with stream.capture() as graph:
            a.fill(0, stream=stream)
            cu.launch(stream, CONFIG, kernels["add"], a, value, N)
        return graph

    with capture(3) as first, capture(4) as second:
        step = first.instantiate()
        step.update(second)
        step.launch(stream)
        assert numbers(a, stream) == 4
        step.close()


def test_updates_during_launches(build, a, stream):
    with build(full(1), 10) as one, build(full(2), 20) as two:
        step = one.instantiate()
        stop = threading.Event()

        def launch():
            while not stop.is_set():
                step.launch(stream)

        thread = threading.Thread(target=launch)
        thread.start()
        for _ in range(50):
            step.update(two)
            step.update(one)
        stop.set()
        thread.join()
        stream.sync()
        assert numbers(a, stream) == 11
        step.close()
