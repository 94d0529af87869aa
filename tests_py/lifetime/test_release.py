# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A graph's operands are released when their last user has ended, not before and not later."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle

N = 64
CONFIG = cu.LaunchConfig(grid=1, block=N)
KINDS = ["numpy", "numpy view", "bytes", "bytearray", "memoryview", "array", "mmap", "dlpack"]
KINDS += ["torch", "pinned", "buffer", "view", "pointer", "tensor", "interface"]


@pytest.fixture
def work(device, stream):
    """Memory for N numbers."""
    with device.allocate(4 * N, stream=stream) as buffer:
        yield buffer


@pytest.fixture
def given(make, numbers, watch):
    """Function: a new operand of a kind, and its watch."""

    def give(kind="numpy"):
        thing = make(kind, numbers)
        return thing, watch(thing)

    return give


def build(source, work, stream):
    """Return a graph with a copy of an operand."""
    graph = cu.Graph()
    graph.memcpy(work, source, name="up")
    return graph


def capture(source, work, stream):
    """Return such a graph, captured."""
    with stream.capture() as graph:
        work.copy_from(source, stream=stream)
    return graph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [build, capture])
class TestEveryKind:
    def test_of_a_graph(self, way, kind, given, work, stream, try_to_release):
        source, watch = given(kind)
        graph = way(source, work, stream)
        del source
        try_to_release()
        assert watch.alive
        graph.close()
        settle()
        assert not watch.alive

    def test_of_an_executable(self, way, kind, given, work, stream, try_to_release):
        source, watch = given(kind)
        graph = way(source, work, stream)
        del source
        step = graph.instantiate()
        graph.close()
        try_to_release()
        assert watch.alive
        step.launch(stream)
        stream.sync()
        try_to_release()
        assert watch.alive
        step.close()
        settle()
        assert not watch.alive

    def test_of_a_node_that_is_updated(self, way, kind, given, make, work, stream, numbers):
        source, watch = given(kind)
        with way(source, work, stream) as graph:
            (name,) = (n.name for n in graph.nodes)
            step = graph.instantiate()
        del source
        step.launch(stream)
        other = make(kind, numbers + 5)
        step[name].update(src=other)
        del other
        stream.sync()
        settle()
        assert not watch.alive
        out = np.zeros(N, "i4")
        step.launch(stream)
        work.copy_to(out, stream=stream)
        stream.sync()
        assert (out == numbers + 5).all()
        step.close()


@pytest.mark.parametrize("holder", ["graph", "clone", "parent", "executable", "two executables"])
def test_the_last_holder_decides(holder, given, work, stream, try_to_release):
    source, watch = given()
    graph = build(source, work, stream)
    del source
    if holder == "graph":
        last = [graph]
    elif holder == "clone":
        last = [graph.clone()]
    elif holder == "parent":
        last = [cu.Graph()]
        last[0].embed(graph)
    else:
        last = [graph.instantiate() for _ in range(1 + (holder == "two executables"))]
    if last != [graph]:
        graph.close()
    while last:
        try_to_release()
        assert watch.alive
        last.pop().close()
    settle()
    assert not watch.alive


def test_dropping_releases_as_closing_does(given, work, stream):
    source, watch = given()
    graph = build(source, work, stream)
    step = graph.instantiate()
    step.launch(stream)
    del source, graph, step
    stream.sync()
    settle()
    assert not watch.alive


@pytest.mark.parametrize("kind", ["bytearray", "array"])
def test_host_memory_cannot_be_resized_meanwhile(kind, given, work, stream):
    source, _ = given(kind)
    with build(source, work, stream) as graph:
        step = graph.instantiate()
    with pytest.raises(BufferError, match="export"):
        source.append(1)
    step.launch(stream)
    stream.sync()
    step.close()
    settle()
    source.append(1)


def test_an_array_cannot_be_resized_meanwhile(given, work, stream):
    source, _ = given()
    with build(source, work, stream), pytest.raises(ValueError, match="cannot resize"):
        source.resize(2 * N)


def test_a_memoryview_can_be_released_meanwhile(given, work, stream, numbers):
    source, _ = given("memoryview")
    under = source.obj
    with build(source, work, stream) as graph, graph.instantiate() as step:
        source.release()
        with pytest.raises(BufferError, match="export"):
            under.append(1)  # the graph has a view of its own
        out = np.zeros(N, "i4")
        step.launch(stream)
        work.copy_to(out, stream=stream)
        stream.sync()
        assert (out == numbers).all()
    settle()
    under.append(1)


def test_device_memory_is_given_back(device, stream):
    buffers = cu.live_objects().get("Buffer", 0)
    graph = cu.Graph()
    buffer = device.allocate(4 * N, stream=stream)
    graph.memset(buffer[:16], 0)
    buffer.close()
    del buffer
    settle()
    assert cu.live_objects()["Buffer"] == buffers + 1
    graph.close()
    settle()
    assert cu.live_objects().get("Buffer", 0) == buffers


@pytest.mark.parametrize("kind", ["buffer", "view", "pointer", "tensor", "interface"])
def test_arguments_of_kernels(kind, given, stream, kernels, try_to_release):
    source, watch = given(kind)
    graph = cu.Graph()
    graph.launch(CONFIG, kernels["add"], source, 1, N, name="k")
    del source
    step = graph.instantiate()
    graph.close()
    step.launch(stream)
    try_to_release()
    assert watch.alive
    other, other_watch = given(kind)
    step["k"].update(CONFIG, kernels["add"], other, 1, N)
    del other
    stream.sync()
    settle()
    assert not watch.alive
    assert other_watch.alive
    step.close()
    settle()
    assert not other_watch.alive


def test_captured_arguments_of_kernels(given, stream, kernels, try_to_release):
    source, watch = given("buffer")
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], source, 1, N)
    del source
    try_to_release()
    assert watch.alive
    graph.close()
    settle()
    assert not watch.alive


def test_callbacks(watch, stream, try_to_release):
    def callback():
        pass

    seen = watch(callback)
    graph = cu.Graph()
    graph.callback(callback, name="tell")
    del callback
    step = graph.instantiate()
    graph.close()
    step.launch(stream)
    stream.sync()
    try_to_release()
    assert seen.alive
    step["tell"].update(lambda: None)
    stream.sync()
    settle()
    assert not seen.alive
    step.close()


def test_a_kernel_and_its_code(watch, stream):
    kernel = cu.Program('extern "C" __global__ void k() {}').compile()["k"]
    seen = watch(kernel)
    graph = cu.Graph()
    graph.launch(CONFIG, kernel)
    del kernel
    gc.collect()
    assert seen.alive
    graph.close()
    settle()
    assert not seen.alive


def test_a_switched_off_node_keeps_what_it_has(given, work, stream, try_to_release):
    source, watch = given()
    with build(source, work, stream) as graph:
        step = graph.instantiate()
    del source
    step["up"].disable()
    step.launch(stream)
    stream.sync()
    try_to_release()
    assert watch.alive
    step["up"].enable()
    step.close()
    settle()
    assert not watch.alive


def test_a_node_that_was_refused_keeps_nothing(given, stream, work):
    source, watch = given()
    with cu.Graph() as graph:
        graph.memset(work, 0, name="taken")
        with pytest.raises(ValueError, match="unique"):
            graph.memcpy(work, source, name="taken")
        del source
        settle()
        assert not watch.alive


def test_an_update_that_was_refused_keeps_nothing_new(given, work, stream):
    source, watch = given()
    with build(source, work, stream) as graph:
        step = graph.instantiate()
    del source
    other, other_watch = given("buffer")  # where the node has host memory: the driver refuses
    with pytest.raises(ValueError, match="must stay"):
        step["up"].update(src=other)
    del other
    settle()
    assert not other_watch.alive
    assert watch.alive
    step.close()
    settle()
    assert not watch.alive


def test_a_capture_that_failed_keeps_nothing(given, work, stream):
    source, watch = given()
    with pytest.raises(LookupError), stream.capture():
        work.copy_from(source, stream=stream)
        raise LookupError
    del source
    settle()
    assert not watch.alive


def test_many_updates_keep_one_operand(given, work, stream, numbers, watch):
    source, _ = given()
    with build(source, work, stream) as graph:
        step = graph.instantiate()
    watches = []
    for number in range(2000):
        other = numbers + number
        watches.append(watch(other))
        step["up"].update(src=other)
        if number % 7 == 0:
            step.launch(stream)
    del other
    stream.sync()
    settle()
    assert [w.alive for w in watches] == [False] * 1999 + [True]
    step.close()


def test_released_by_another_thread(given, work, stream):
    source, watch = given()
    with build(source, work, stream) as graph:
        step = graph.instantiate()
    del source
    step.launch(stream)
    thread = threading.Thread(target=step.close)
    thread.start()
    thread.join()
    stream.sync()
    settle()
    assert not watch.alive


def test_an_operand_whose_end_uses_cudago(device, stream, work):
    """Releasing runs any code: here, __del__ closes a graph, which releases another operand."""
    ended = []

    class Source(np.ndarray):
        def __del__(self):
            if inner := getattr(self, "inner", None):
                inner.close()
                ended.append(cu.live_objects())

    outer = cu.Graph()
    source = np.zeros(N, "i4").view(Source)
    source.inner = cu.Graph()
    source.inner.memcpy(work, np.zeros(N, "i4"))
    outer.memcpy(work, source)
    del source
    outer.close()
    settle()
    assert len(ended) == 1
