# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A cycle through a graph is garbage like any other, unless a launch is in flight."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

N = 64


class Owner:
    """Something that has a graph, and that the graph's callback needs."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self) -> None:
        """Count a call."""
        self.calls += 1


@pytest.fixture(autouse=True)
def by_hand():
    """Collect only where a test says so."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_graph_to_callback_to_graph(watch):
    owner = Owner()
    owner.graph = cu.Graph()
    owner.graph.callback(owner.call)
    seen = watch(owner), watch(owner.graph)
    del owner
    assert all(w.alive for w in seen)
    settle()
    assert not any(w.alive for w in seen)


def test_executable_to_callback_to_executable(watch, stream):
    owner = Owner()
    with cu.Graph() as graph:
        graph.callback(owner.call)
        owner.step = graph.instantiate()
    for _ in range(3):
        owner.step.launch(stream)
    stream.sync()
    assert owner.calls == 3
    seen = watch(owner)
    del owner
    assert seen.alive
    settle()
    assert not seen.alive


def test_graph_and_executables_that_share_operands(watch, stream):
    owner = Owner()
    owner.graph = cu.Graph()
    owner.graph.callback(owner.call).callback(owner.call)
    owner.clone = owner.graph.clone()
    owner.parent = cu.Graph()
    owner.parent.embed(owner.graph)
    owner.steps = [g.instantiate() for g in (owner.graph, owner.clone, owner.parent)]
    for step in owner.steps:
        step.launch(stream)
    stream.sync()
    assert owner.calls == 6
    seen = watch(owner)
    del owner, step
    gc.collect()
    settle()
    assert not seen.alive


def test_through_an_array(watch, device, stream):
    class Array(np.ndarray):
        pass

    array = np.zeros(N, "i4").view(Array)
    array.graph = cu.Graph()
    with device.allocate(4 * N, stream=stream) as buffer:
        array.graph.memcpy(buffer, array)
    seen = watch(array)
    del array
    assert seen.alive
    settle()
    assert not seen.alive


def test_through_a_captured_copy(watch, device, stream):
    class Array(np.ndarray):
        pass

    array = np.zeros(N, "i4").view(Array)
    with device.allocate(4 * N, stream=stream) as buffer, stream.capture() as graph:
        buffer.copy_from(array, stream=stream)
    array.graph = graph
    seen = watch(array)
    del array, graph
    assert seen.alive
    settle()
    assert not seen.alive


def test_through_an_update(watch, stream):
    owner = Owner()
    with cu.Graph() as graph:
        graph.callback(lambda: None, name="tell")
        owner.step = graph.instantiate()
    owner.step["tell"].update(owner.call)
    owner.step.launch(stream)
    stream.sync()
    assert owner.calls == 1
    seen = watch(owner)
    del owner
    assert seen.alive
    settle()
    assert not seen.alive


@pytest.mark.parametrize("kind", ["our stream", "foreign stream", "closed stream"])
def test_a_launch_in_flight_holds_its_cycle(kind, watch, device, stream):
    """The collector must not clear what a launch is about to call."""
    used = stream
    if kind == "foreign stream":
        used = cu.Stream.from_handle(stream.handle, device=device)
    elif kind == "closed stream":
        used = device.create_stream()
    owner = Owner()
    calls = []
    with cu.Graph() as graph:
        graph.callback(lambda owner=owner: calls.append(owner.calls))
        owner.step = graph.instantiate()
    seen = watch(owner)
    with hold(used):
        owner.step.launch(used)
        ended = used.record()
        if kind == "closed stream":
            used.close()
        del owner
        for _ in range(3):
            gc.collect()
        assert seen.alive
        assert calls == []
    ended.sync()
    ended.close()
    assert calls == [0]
    settle()
    assert not seen.alive


@pytest.mark.parametrize("end", ["closed", "dropped", "updated"])
def test_a_launch_in_flight_holds_the_cycle_of_its_graph(end, watch, stream):
    """The graph, which nobody can reach, shares its operands with a launch that is under way."""
    calls = []
    graph = cu.Graph()
    graph.callback(lambda graph=graph: calls.append(graph.is_closed), name="tell")
    seen = watch(graph)
    step = graph.instantiate()
    with hold(stream):
        step.launch(stream)
        if end == "closed":
            step.close()
        elif end == "updated":
            step["tell"].update(lambda: None)
        else:
            del step
        del graph
        for _ in range(3):
            gc.collect()
    stream.sync()
    assert len(calls) == 1
    if end == "updated":
        step.close()
    settle()
    assert not seen.alive


def test_a_cycle_that_another_thread_collects(watch, stream):
    owner = Owner()
    owner.graph = cu.Graph()
    owner.graph.callback(owner.call)
    seen = watch(owner)
    del owner
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
    settle()
    assert not seen.alive


def test_a_live_cycle_is_left_alone(stream):
    owner = Owner()
    with cu.Graph() as graph:
        graph.callback(owner.call)
        owner.step = graph.instantiate()
    for _ in range(5):
        gc.collect()
        owner.step.launch(stream)
    stream.sync()
    assert owner.calls == 5
    owner.step.close()


def test_many_cycles(watch, stream):
    seen = []
    for _ in range(50):
        owner = Owner()
        with cu.Graph() as graph:
            graph.callback(owner.call)
            owner.step = graph.instantiate()
        owner.step.launch(stream)
        seen.append(watch(owner))
    del owner
    gc.collect()
    stream.sync()
    settle()
    assert not any(w.alive for w in seen)


def test_a_finalizer_on_a_cycle(watch):
    ended = []
    owner = Owner()
    owner.graph = cu.Graph()
    owner.graph.callback(owner.call)
    done = cu.finalize(owner, ended.append, "owner")
    del owner
    settle()
    assert ended == ["owner"]
    assert not done.alive


def test_body_to_operand_to_graph(watch, device, stream, kernels):
    class Interface:
        """Device memory of somebody who has the graph."""

        def __init__(self, buffer: cu.Buffer) -> None:
            self.buffer = buffer
            self.__cuda_array_interface__ = {
                "shape": (N,),
                "typestr": "<i4",
                "data": (buffer.handle, False),
                "version": 3,
            }

    operand = Interface(device.allocate(4 * N, stream=stream))
    operand.graph = cu.Graph(device)
    body = operand.graph.if_then(operand.graph.condition(default=1)).body
    body.launch(cu.LaunchConfig(grid=1, block=N), kernels["add"], operand, 1, N)
    operand.body = body
    seen = watch(operand), watch(operand.graph)
    del operand, body
    assert all(w.alive for w in seen)
    settle()
    assert not any(w.alive for w in seen)
