# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses as ints in graphs, while they are watched."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago._graph import watch

from .operand import CONFIG, N

FREED = "graph launch refused, nothing ran: node '{}': kernel add, parameter 0"


@pytest.fixture(autouse=True)
def watching():
    """Watch in all tests of this file."""
    with cu.debug.watch_pointers():
        yield
    assert not watch.is_watching()


@pytest.fixture
def raw(device):
    """Memory of no pool: once it is freed, its address is in no memory."""
    with cu.VirtualMemoryResource(device, reserve=1 << 24) as resource:
        yield resource


@pytest.fixture
def freed(raw, stream):
    """Memory, and a function that frees it."""
    memory = raw.allocate(4 * N, stream=stream)
    memory.fill(0, stream=stream)

    def free() -> None:
        memory.close()
        stream.sync()
        cu.testing.settle()

    return memory, free


def refused(step, stream, name: str) -> None:
    count = step.launch_count
    with pytest.raises(cu.CheckError, match=FREED.format(name).replace("[", r"\[")) as e:
        step.launch(stream)
    assert "0x" in str(e.value)
    assert step.launch_count == count


def test_memory_that_is_freed_after_the_node_was_added(device, stream, kernels, freed):
    memory, free = freed
    with cu.Graph(device) as graph:
        graph.launch(CONFIG, kernels["add"], memory.handle, 1, N, name="by address")
        with graph.instantiate() as step:
            step.launch(stream)
            free()
            refused(step, stream, "by address")
            with step["by address"].disabled():
                step.launch(stream)
            with pytest.raises(cu.CheckError, match=r"parameter 0 \(y\) is 0x"):
                step(stream)


def test_memory_that_is_freed_before_the_executable_is_made(device, stream, kernels, freed):
    memory, free = freed
    with cu.Graph(device) as graph:
        graph.launch(CONFIG, kernels["add"], memory.handle, 1, N, name="early")
        free()
        with graph.instantiate() as step:
            refused(step, stream, "early")


def test_a_captured_launch(device, stream, kernels, freed):
    memory, free = freed
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], memory.handle, 1, N)
    with graph, graph.instantiate() as step:
        free()
        refused(step, stream, "kernel_0")


@pytest.mark.parametrize("how", ["clone", "embed", "body"])
def test_graphs_made_of_graphs(device, stream, kernels, freed, how):
    memory, free = freed
    with cu.Graph(device) as graph, cu.Graph(device) as outer:
        if how == "body":
            body = outer.if_then(outer.condition(default=1), name="maybe").body
            body.launch(CONFIG, kernels["add"], memory.handle, 1, N, name="in")
            name, made = "maybe/in", outer
        else:
            graph.launch(CONFIG, kernels["add"], memory.handle, 1, N, name="in")
            name, made = "in", graph.clone()
            if how == "embed":
                outer.embed(graph, name="sub")
                made.close()
                name, made = "sub/in", outer
        with made:
            free()
            with made.instantiate() as step:
                refused(step, stream, name)


def test_updates(device, stream, kernels, freed, a):
    memory, free = freed
    with cu.Graph(device) as graph:
        node = graph.launch(CONFIG, kernels["add"], memory.handle, 1, N, name="it")
        with graph.instantiate() as step:
            free()
            step["it"].update({0: a.handle})
            step.launch(stream)
            with pytest.raises(cu.CheckError):
                graph.instantiate().launch(stream)
            step.update(graph)
            refused(step, stream, "it")
            node.update({0: a.handle})
            step.update(graph)
            step.launch(stream)


def test_bound_launches(stream, kernels, freed):
    memory, free = freed
    with kernels["add"].bind(CONFIG, memory.handle, 1, N) as bound:
        bound(stream)
        free()
        with pytest.raises(cu.CheckError, match="kernel add, parameter 0"):
            bound(stream)


def test_an_executable_from_before_is_judged_by_its_first_launch(device, stream, kernels, freed):
    memory, free = freed
    cu.debug.watch_pointers(False)
    with cu.Graph(device) as graph:
        graph.launch(CONFIG, kernels["add"], memory.handle, 1, N, name="old")
        with graph.instantiate() as step:
            cu.debug.watch_pointers()
            step.launch(stream)
            free()
            refused(step, stream, "old")


def test_objects_and_numbers_are_accepted(device, stream, kernels, a):
    code = 'extern "C" __global__ void f(long long* p, long long n) { if (n == 1) *p = 1; }'
    kernel = cu.Program(code).compile()["f"]
    with cu.Graph(device) as graph:
        graph.launch(CONFIG, kernel, a, 12345678901234)
        graph.launch(CONFIG, kernel, a.handle + 8, -3)
        a_number = graph.launch(CONFIG, kernel, 0, 2)
        with graph.instantiate() as step:
            step.launch(stream)
            a.close()
            if cu.driver_name() == "nvidia":
                step.launch(stream)  # the graph keeps what it was given as an object
        assert a_number.kind == "kernel"


def test_nothing_stays_when_nobody_watches(device):
    names = {name for _, name in watch._METHODS}
    with cu.debug.watch_pointers(False) as nothing:
        assert nothing is None
        assert not names & vars(cu.GraphExec).keys()
        assert not names & vars(cu.Graph).keys()
    assert watch.is_watching()
    assert repr(cu.debug.watch_pointers()) == "<cudago.debug.watch_pointers: on>"


def test_graphs_that_are_gone_are_forgotten(device, kernels, a):
    before = len(watch._in_graphs)
    for _ in range(3):
        with cu.Graph(device) as graph:
            graph.launch(CONFIG, kernels["add"], a.handle, 1, N)
            assert len(watch._in_graphs) == before + 1
        del graph
    assert len(watch._in_graphs) == before


def test_a_function_that_is_a_graph(device, stream, kernels, freed):
    memory, free = freed
    address = memory.handle

    @cu.graph
    def add(s, to):
        cu.launch(s, CONFIG, kernels["add"], to, 1, N)

    for _ in range(3):  # the same call again is launched natively where nobody watches
        add(stream, address)
    free()
    with pytest.raises(cu.CheckError, match="is 0x"):
        add(stream, address)
