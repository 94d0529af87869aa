# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses as ints in graphs, while they are watched."""

from __future__ import annotations

import sys
import threading
import weakref

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


def test_nothing_is_known_when_nobody_watches(device, stream, kernels, a):
    before = vars(cu.Graph).copy(), vars(cu.GraphExec).copy(), vars(cu.Node).copy()
    with cu.debug.watch_pointers(False) as nothing:
        assert nothing is None
        assert before == (vars(cu.Graph), vars(cu.GraphExec), vars(cu.Node))
        with cu.Graph(device) as graph:
            graph.launch(CONFIG, kernels["add"], a.handle, 1, N)
            graph.instantiate().launch(stream)
        assert cu._core._watcher() is None
    assert not noted()
    assert watch.is_watching()
    assert repr(cu.debug.watch_pointers()) == "<cudago.debug.watch_pointers: on>"


def noted() -> dict:
    """Return what the watch knows of nodes, by the graph that all others are inside of."""
    return dict(cu._core._watcher()._in_graphs)


def test_graphs_that_are_gone_are_forgotten(device, kernels, a):
    before = len(noted())
    for _ in range(3):
        with cu.Graph(device) as graph:
            graph.launch(CONFIG, kernels["add"], a.handle, 1, N)
            assert len(noted()) == before + 1
        del graph
    assert len(noted()) == before


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


# --- every way from an address to a launch --------------------------------------------------------


class Made:
    """Ways to make a graph whose kernel has an address; each returns an executable."""

    def __init__(self, device, stream, kernel, address, other) -> None:
        self.device, self.stream, self.kernel, self.other = device, stream, kernel, other
        self.args = kernel, address, 1, N

    def graph(self):
        graph = cu.Graph(self.device)
        graph.launch(CONFIG, *self.args)
        return graph

    def harmless(self):
        graph = cu.Graph(self.device)
        graph.launch(CONFIG, self.kernel, self.other, 1, N, name="it")
        return graph

    def added(self):
        return self.graph().instantiate()

    def added_by_the_native_class(self):
        graph = cu.Graph(self.device)
        super(cu.Graph, graph).launch(CONFIG, *self.args)
        return super(cu.Graph, graph)._instantiate(0)

    def added_after_a_node(self):
        graph = cu.Graph(self.device)
        graph.join().launch(CONFIG, *self.args)
        return graph.instantiate()

    def added_after_several(self):
        graph = cu.Graph(self.device)
        graph.join(graph.join(), graph.join()).launch(CONFIG, *self.args)
        return graph.instantiate()

    def added_with_attributes(self):
        graph = cu.Graph(self.device)
        graph.launch(cu.LaunchConfig(1, N, priority=0), *self.args)
        return graph.instantiate(priorities=True)

    def added_with_a_slot(self):
        graph = cu.Graph(self.device)
        graph.launch(CONFIG, self.kernel, self.args[1], cu.slot("a", 1), N)
        return graph.instantiate()

    def changed_in_the_graph(self):
        graph = self.harmless()
        graph["it"].update({0: self.args[1]})
        return graph.instantiate()

    def changed_in_the_executable(self):
        step = self.harmless().instantiate()
        for _ in range(3):  # later ones are made natively
            step["it"].update({0: self.args[1]})
        return step

    def a_slot_is_bound(self):
        graph = cu.Graph(self.device)
        graph.launch(CONFIG, self.kernel, cu.slot("y", self.other), 1, N)
        step = graph.instantiate()
        step.bind(y=self.args[1])
        return step

    def updated_as_a_whole(self):
        step = self.harmless().instantiate()
        step.update(self.graph())
        return step

    def updated_or_made_anew(self):
        step = cu.Graph(self.device).instantiate()
        return step.update_or_instantiate(self.graph())

    def cloned(self):
        return self.graph().clone().instantiate()

    def embedded_twice(self):
        inner, outer = cu.Graph(self.device), cu.Graph(self.device)
        inner.embed(self.graph())
        outer.embed(inner)
        return outer.instantiate()

    def moved(self):
        inner, outer = cu.Graph(self.device), cu.Graph(self.device)
        inner.embed(self.graph())
        inner.launch(CONFIG, *self.args)
        outer.embed(inner, move=True)
        return outer.instantiate()

    def in_a_body(self):
        graph = cu.Graph(self.device)
        graph.if_then(graph.condition(default=1)).body.launch(CONFIG, *self.args)
        return graph.instantiate()

    def captured_into_a_body(self):
        graph = cu.Graph(self.device)
        with graph.if_then(graph.condition(default=1)).body.capture(self.stream):
            cu.launch(self.stream, CONFIG, *self.args)
        return graph.instantiate()

    def captured(self):
        with self.stream.capture() as graph:
            cu.launch(self.stream, CONFIG, *self.args)
        return graph.instantiate()

    def captured_after_a_node(self):
        graph = cu.Graph(self.device)
        with graph.join().capture(self.stream):
            cu.launch(self.stream, CONFIG, *self.args)
        return graph.instantiate()

    def launched_into_a_capture(self):
        with self.stream.capture() as graph:
            self.added().launch(self.stream)
        return graph.instantiate()

    def changed_and_launched_into_a_capture(self):
        step = self.changed_in_the_executable()
        with self.stream.capture() as graph:
            step.launch(self.stream)
        return graph.instantiate()

    def embedded_beside_a_change_and_launched_into_a_capture(self):
        outer = self.harmless()
        outer.embed(self.graph(), name="deep")
        step = outer.instantiate()
        step["it"].update(n=1)
        with self.stream.capture() as graph:
            step.launch(self.stream)
        return graph.instantiate()

    def bound_and_captured(self):
        with self.stream.capture() as graph, self.kernel.bind(CONFIG, *self.args[1:]) as bound:
            bound(self.stream)
        return graph.instantiate()


WAYS = sorted(name for name in vars(Made) if name not in ("graph", "harmless") and "__" not in name)


def runs(device, stream):
    """Return ways to run an executable."""

    class Theirs:
        def __cuda_stream__(self):
            return 0, stream.handle

    def into_a_capture(step) -> None:
        with stream.capture() as graph:
            step.launch(stream)
        graph.close()

    def natively_into_a_capture(step) -> None:
        with stream.capture() as graph:
            step._capture_into(stream)
        graph.close()

    return {
        "launch": lambda step: step.launch(stream),
        "call": lambda step: step(stream),
        "their stream": lambda step: step.launch(Theirs()),
        "default stream": lambda step: step.launch(device.default_stream),
        "native class": lambda step: super(cu.GraphExec, step).launch(stream),
        "called": lambda step: step(stream),
        "capture": into_a_capture,
        "native capture": natively_into_a_capture,
        "profile": lambda step: step.profile(stream),
    }


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_making_a_graph_passes_by(device, stream, kernels, freed, a, way):
    memory, free = freed
    step = getattr(Made(device, stream, kernels["add"], memory.handle, a), way)()
    step.launch(stream)
    free()
    for how, run in runs(device, stream).items():
        with pytest.raises(cu.CheckError, match=r"kernel add, parameter 0 \(y\) is 0x"):
            run(step)
            pytest.fail(f"{how} ran")
    assert step.launch_count == 1


def test_memory_is_freed_between_a_capture_and_its_executable(device, stream, kernels, freed):
    memory, free = freed
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], memory.handle, 1, N)
    with graph:
        free()
        with graph.instantiate() as step:
            refused(step, stream, "kernel_0")
        with pytest.raises(cu.CheckError, match="is 0x"), stream.capture():
            graph._capture_into(stream)


def test_a_watcher_that_is_stopped_leaves_all_as_it_is(device, stream, kernels, a, monkeypatch):
    def stop(*args) -> None:
        raise KeyboardInterrupt

    with cu.Graph(device) as graph:
        graph.launch(CONFIG, kernels["add"], a.handle, 1, N, name="one")
        with graph.instantiate() as step:
            for event in ("launching", "instantiated", "copied", "captured", "added"):
                monkeypatch.setattr(watch.Watcher, event, stop)
            with pytest.raises(KeyboardInterrupt):
                step.launch(stream)
            with pytest.raises(KeyboardInterrupt):
                graph.instantiate()
            with pytest.raises(KeyboardInterrupt):
                graph.clone()
            with pytest.raises(KeyboardInterrupt), stream.capture() as captured:
                cu.launch(stream, CONFIG, kernels["add"], a.handle, 1, N)
            assert not stream.is_capturing
            captured.close()
            with pytest.raises(KeyboardInterrupt):
                graph.launch(CONFIG, kernels["add"], a.handle, 1, N, name="two")
            monkeypatch.undo()
            step.launch(stream)
            assert step.launch_count == 1


def test_nothing_is_known_of_what_is_gone(device, stream, kernels):
    x = device.allocate(4 * N, stream=stream)
    cu.testing.settle()
    before = len(noted())
    inner, graph = cu.Graph(device), cu.Graph(device)
    inner.launch(CONFIG, kernels["add"], x.handle, 1, N)
    deep = cu.Graph(device)
    deep.embed(inner)
    graph.embed(deep).embed(deep, move=True)
    for _ in range(2):
        maybe = graph.if_then(graph.condition(default=1))
        maybe.body.launch(CONFIG, kernels["add"], x.handle, 1, N)
        maybe.body.embed(inner)
    assert sorted(map(len, noted().values()))[before:] == [1, 1, 6]
    del maybe
    cu.testing.settle()
    assert sorted(map(len, noted().values()))[before:] == [1, 1, 6]
    del inner, deep, graph
    cu.testing.settle()
    assert len(noted()) == before


def test_nodes_that_were_removed_are_forgotten(device, kernels, a):
    """Whether removed or with what they are in; of graphs that live on, and of watches that end."""
    inner, graph = cu.Graph(device), cu.Graph(device)
    inner.launch(CONFIG, kernels["add"], a.handle, 1, N)
    kept = graph.launch(CONFIG, kernels["add"], a.handle, 1, N)
    for _ in range(300):
        graph.remove(graph.launch(CONFIG, kernels["add"], a.handle, 1, N))
        graph.remove(graph.embed(inner))
    assert len(noted()[graph]) < 100
    assert kept._id in noted()[graph]
    refs = len(weakref.getweakrefs(graph))
    for _ in range(10):
        cu.debug.watch_pointers(False)
        cu.debug.watch_pointers()
        graph.launch(CONFIG, kernels["add"], a.handle, 1, N)
    assert len(weakref.getweakrefs(graph)) == refs


def test_nodes_are_looked_for_while_a_part_is_captured(device, stream, kernels, a):
    graph = cu.Graph(device)
    body = graph.if_then(graph.condition(default=1)).body
    with body.capture(stream):
        cu.launch(stream, CONFIG, kernels["add"], a, 1, N)
        for _ in range(200):
            graph.launch(CONFIG, kernels["add"], a.handle, 1, N)
    assert len(noted()[graph]) == 200


def test_graphs_that_are_nested_deeper_than_calls(device, stream, kernels, freed):
    memory, free = freed
    graph = cu.Graph(device)
    graph.launch(CONFIG, kernels["add"], memory.handle, 1, N, name="k")
    for _ in range(sys.getrecursionlimit() + 50):
        outer = cu.Graph(device)
        outer.embed(graph, name="g", move=True)
        graph = outer
    with graph.clone() as copy, copy.instantiate() as step:
        free()
        with pytest.raises(cu.CheckError, match="g/g/k': kernel add"):
            step.launch(stream)


def test_a_watch_ends_while_others_build(device, stream, kernels, a):
    """What they do happens, and raises nothing."""
    over, wrong = threading.Event(), []

    def builds() -> None:
        try:
            while not over.is_set():
                with cu.Graph(device) as inner, cu.Graph(device) as graph:
                    inner.launch(CONFIG, kernels["add"], a.handle, 1, N)
                    graph.embed(inner)
                    graph.embed(inner, move=True)
                    graph.clone().instantiate().close()
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=builds) for _ in range(2)]
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for _ in range(3000):
            cu.debug.watch_pointers(False)
            cu.debug.watch_pointers()
    finally:
        sys.setswitchinterval(every)
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []
