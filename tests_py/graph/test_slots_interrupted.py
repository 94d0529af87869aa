# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Slots of calls that an exception ends between any two bytecodes, as Ctrl-C can."""

from __future__ import annotations

import sys

import pytest

import cudago as cu
from cudago._graph.params import KernelNodeParams

CONFIG = cu.LaunchConfig(grid=1, block=8)


@pytest.fixture
def memory(device, stream):
    buffers = [device.allocate(64, stream=stream) for _ in range(3)]
    yield buffers
    for buffer in buffers:
        buffer.close()


def operands(step):
    """Return the addresses of the memory that the nodes of an executable write to."""
    params = [node.params for node in step.nodes if node.kind != "empty"]
    return {(p.args[0] if isinstance(p, KernelNodeParams) else p.dst).handle for p in params}


ADDS = {
    "memcpy": lambda graph, x, kernels: graph.memcpy(cu.slot("to", x), bytes(64)),
    "memset": lambda graph, x, kernels: graph.memset(cu.slot("to", x), 7),
    "second": lambda graph, x, kernels: graph.join().memset(cu.slot("to", x), 7, name="second"),
    "wide memset": lambda graph, x, kernels: graph.memset(cu.slot("to", x.view("f8")), 0.1),
    "launch": lambda graph, x, kernels: graph.launch(
        CONFIG, kernels["add"], cu.slot("to", x), 1, 8
    ),
    "named": lambda graph, x, kernels: graph.launch(
        CONFIG, kernels["add"], cu.slot("to", x), 1, 8, name="named"
    ),
}


@pytest.mark.parametrize("add", ADDS.values(), ids=ADDS)
def test_a_node_is_added_with_its_slots_or_not_at_all(memory, kernels, at_each_bytecode, add):
    x, y, _ = memory
    graph = cu.Graph()
    for point in at_each_bytecode(lambda: add(graph, x, kernels)):
        with graph.instantiate() as step:
            if operands(step):
                step.bind(to=y.view("f8") if add is ADDS["wide memset"] else y)
                assert operands(step) == {y.handle}, point
        for node in graph.nodes:
            graph.remove(node)


UPDATES = {
    "memcpy": (
        lambda graph, x, kernels: graph.memcpy(cu.slot("first", x), bytes(64), name="it"),
        lambda node, x, kernels: node.update(dst=cu.slot("to", x)),
    ),
    "memset": (
        lambda graph, x, kernels: graph.memset(cu.slot("first", x), 7, name="it"),
        lambda node, x, kernels: node.update(cu.slot("to", x), 7),
    ),
    "argument": (
        lambda graph, x, kernels: graph.launch(
            CONFIG, kernels["add"], cu.slot("first", x), 1, 8, name="it"
        ),
        lambda node, x, kernels: node.update({0: cu.slot("to", x)}),
    ),
    "kernel": (
        lambda graph, x, kernels: graph.launch(
            CONFIG, kernels["add"], cu.slot("first", x), 1, 8, name="it"
        ),
        lambda node, x, kernels: node.update(CONFIG, kernels["times"], cu.slot("to", x), 2, 8),
    ),
}


@pytest.mark.parametrize("of", ["graph", "executable"])
@pytest.mark.parametrize(("add", "update"), UPDATES.values(), ids=UPDATES)
def test_a_node_is_updated_with_its_slots_or_not_at_all(
    memory, kernels, at_each_bytecode, add, update, of
):
    x, y, _ = memory
    graph = cu.Graph()
    add(graph, x, kernels)
    step = graph.instantiate()

    def do():
        update((graph if of == "graph" else step)["it"], y, kernels)

    for point in at_each_bytecode(do):
        made = graph.instantiate() if of == "graph" else step
        was = {x.handle: "first", y.handle: "to"}
        (now,) = operands(made)
        assert made.slots == (was[now],), point
        made.close()
        graph = cu.Graph()
        add(graph, x, kernels)
        step = graph.instantiate()


def test_an_executable_is_updated_with_its_slots_or_not_at_all(memory, at_each_bytecode):
    x, y, z = memory
    graphs = cu.Graph(), cu.Graph()
    graphs[0].memset(cu.slot("to", x), 1)
    graphs[0].memset(x, 1)
    graphs[1].memset(y, 1)
    graphs[1].memset(cu.slot("to", y), 1)
    step = graphs[0].instantiate()
    for point in at_each_bytecode(lambda: step.update(graphs[1])):
        step.bind(to=z)
        first, second = (node.params.dst.handle for node in step.nodes)
        assert (first, second) in ((z.handle, x.handle), (y.handle, z.handle)), point
        step.update(graphs[0])


def test_a_removed_node_has_no_slots(memory, at_each_bytecode):
    x, _, _ = memory
    graph = cu.Graph()
    graph.memset(cu.slot("gone", x), 1, name="fill")
    for point in at_each_bytecode(lambda: graph.remove(graph["fill"])):
        with graph.instantiate() as step:
            assert len(step.slots) == len(step.nodes), point
        if not graph.nodes:
            graph.memset(cu.slot("gone", x), 1, name="fill")


def test_an_exception_is_not_lost_where_a_graph_goes(memory, at_each_bytecode, monkeypatch):
    lost = []

    def do():
        graph = cu.Graph()
        graph.memset(memory[0], 1).update(value=2)

    monkeypatch.setattr(sys, "unraisablehook", lambda e: lost.append(e.exc_value))
    for _ in at_each_bytecode(do):
        pass
    assert lost == []
