# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Captures into graphs that exist, and into bodies of conditional nodes."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)
COUNT_DOWN = r"""
extern "C" __device__ void
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void down(cudaGraphConditionalHandle more, int* left, int* rounds) {
    *left -= 1;
    *rounds += 1;
    cudaGraphSetConditional(more, *left > 0);
}"""


@pytest.fixture
def x(device, stream):
    """16 numbers, which are 0."""
    with cu.zeros(N, "i4", stream=stream) as tensor:
        yield tensor


@pytest.fixture
def graph(device):
    """An empty graph."""
    with cu.Graph(device) as graph:
        yield graph


def run(graph, stream, x) -> list[int]:
    """Launch a graph, and return the numbers, or the one that all are."""
    with graph.instantiate() as step:
        step.launch(stream)
    found = x.numpy(stream=stream).tolist()
    return found[0] if len(set(found)) == 1 else found


def test_what_is_captured_comes_after_the_node(graph, kernels, stream, x):
    first = graph.memset(x, 5, name="first")
    with first.capture(stream) as nodes:
        cu.launch(stream, CONFIG, kernels["times"], x, 3, N)
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
        assert nodes == []
    assert [n.name for n in nodes] == ["kernel_0", "kernel_1"]
    assert graph.edges == ((first, nodes[0]), (nodes[0], nodes[1]))
    last = nodes[-1].launch(CONFIG, kernels["times"], x, 2, N)
    assert nodes[-1].dependents == (last,)
    assert run(graph, stream, x) == 32


def test_into_a_graph_it_waits_for_nothing(graph, stream, x):
    graph.callback(lambda: None)
    with graph.capture(stream) as nodes:
        x.fill(7, stream=stream)
    assert (nodes[0].dependencies, len(graph.nodes)) == ((), 2)
    assert run(graph, stream, x) == 7


def test_forks_and_joins_are_kept(device, graph, kernels, stream, x):
    y = cu.zeros(N, "i4", stream=stream)
    stream.sync()
    with device.create_stream() as other, graph.capture(stream, "thread_local") as nodes:
        x.fill(2, stream=stream)
        other.wait(stream)
        y.fill(3, stream=other)
        x.fill(4, stream=stream)
        stream.wait(other)
        cu.launch(stream, CONFIG, kernels["copy"], y, x, N)
    assert [n.kind for n in nodes] == ["memset"] * 3 + ["kernel"]
    assert len(graph.edges) == 4
    assert run(graph, stream, x) == 3


def test_copies_between_strides_and_callbacks(graph, stream, x):
    log, rows = [], x.reshape(4, 4)
    with graph.capture(stream) as nodes:
        rows[:, 2:].copy_from(rows[:, :2], stream=stream)
        stream.callback(log.append, 1)
    assert [n.kind for n in nodes] == ["memcpy", "host"]
    x.copy_from(np.arange(N, dtype="i4"), stream=stream)
    assert run(graph, stream, x)[:4] == [0, 1, 0, 1]
    assert log == [1]


def test_a_loop_whose_body_is_captured(graph, stream, device):
    down = cu.Program(COUNT_DOWN, "c++").compile()["down"]
    left, rounds = (cu.full(1, value, "i4", stream=stream) for value in (5, 0))
    more = graph.condition(default=1)
    loop = graph.while_loop(more, name="loop")
    with loop.body.capture(stream):
        cu.launch(stream, cu.LaunchConfig(1, 1), down, more, left, rounds)
    step = graph.instantiate()
    step.launch(stream)
    assert (left.numpy(stream=stream)[0], rounds.numpy(stream=stream)[0]) == (0, 5)
    step["loop/kernel_0"].update(rounds=left)  # as nodes that were added by hand
    with graph.if_then(graph.condition(), name="never").body.capture(stream) as nodes:
        rounds.fill(0, stream=stream)
    assert [n.name for n in nodes] == ["memset_0"]


def test_bodies_of_each_kind_of_node(graph, stream, device):
    with device.allocate(16, stream=stream) as bytes_:
        bytes_.fill(0, stream=stream)
        yes, no = graph.if_else(graph.condition(default=0)).bodies
        chosen = graph.switch(graph.condition(default=1), 2).bodies
        inner = graph.if_then(graph.condition(default=1)).body
        nested = inner.if_then(graph.condition(default=1))
        for number, body in enumerate((yes, no, *chosen, inner, nested.body)):
            with body.capture(stream):
                bytes_[number : number + 1].fill(number + 1, stream=stream)
        with nested.capture(stream):  # after a node of a body
            bytes_[6:7].fill(7, stream=stream)
        with nested.body.nodes[0].capture(stream):
            bytes_[7:8].fill(8, stream=stream)
        assert [node.kind for node in nested.body.nodes] == ["memset", "memset"]
        graph.instantiate().launch(stream)
        assert bytes_.view("u1").numpy(stream=stream).tolist()[:8] == [0, 2, 0, 4, 5, 6, 7, 8]


def test_a_captured_body_can_set_its_condition(graph, stream, x):
    go_on = graph.condition(default=1)
    body = graph.while_loop(go_on).body
    with body.capture(stream) as nodes:
        x.fill(9, stream=stream)
    nodes[-1].set_condition(go_on, 0)
    assert run(graph, stream, x) == 9


def test_the_graph_keeps_the_operands(device, graph, stream):
    x, data = device.allocate(4 * N, stream=stream), np.full(N, 6, "i4")
    died = weakref.ref(data)
    with graph.capture(stream):
        x.copy_from(data, stream=stream)
    view = x.view("i4")
    x.close()
    del data
    assert run(graph, stream, view) == 6
    assert died() is not None
    del x
    view.close()
    graph.close()
    gc.collect()
    settle()
    assert died() is None


def test_nothing_is_added_by_a_block_that_raises(graph, stream, x):
    first = graph.memset(x, 1)
    for into in (graph, first):
        with pytest.raises(ZeroDivisionError), into.capture(stream):
            x.fill(2, stream=stream)
            raise ZeroDivisionError
    assert (graph.nodes, stream.is_capturing) == ((first,), False)
    assert run(graph, stream, x) == 1


def test_nothing_is_added_of_what_the_graph_cannot_hold(graph, stream, x):
    body = graph.if_then(graph.condition(default=1)).body
    with pytest.raises(ValueError, match="body"), body.capture(stream):
        x.fill(1, stream=stream)
        x.copy_from(np.zeros(N, "i4"), stream=stream)
    assert body.nodes == ()
    with body.capture(stream):
        x.fill(3, stream=stream)
    assert run(graph, stream, x) == 3


def test_memory_that_is_allocated_in_the_block(device, graph, stream, x):
    first = graph.memset(x, 1)
    if cu.driver_version() < (12, 9):
        with pytest.raises(cu.UnsupportedError, match="this driver"), first.capture(stream):
            device.allocate(64, stream=stream).close()
        assert graph.nodes == (first,)
        return
    with first.capture(stream) as nodes:
        made = device.allocate(x.nbytes, stream=stream)
        made.fill(np.int32(4), stream=stream)
        left = device.allocate(x.nbytes, stream=stream)
        left.copy_from(made, stream=stream)
        made.close()
    assert [n.kind for n in nodes] == ["child graph"]
    nodes[0].memcpy(x, left).free(left)
    left.close()
    assert run(graph, stream, x) == 4
    assert run(graph, stream, x) == 4


def test_a_body_cannot_hold_memory(device, graph, stream):
    body = graph.if_then(graph.condition(default=1)).body
    with pytest.raises((ValueError, cu.UnsupportedError)), body.capture(stream):
        device.allocate(64, stream=stream).close()
    assert body.nodes == ()


@pytest.mark.parametrize("what", ["alloc", "free"])
def test_into_a_graph_that_has_taken_memory_in(graph, device, stream, x, what):
    """From which nothing can be removed either: what is captured is added as one node, or not."""
    with cu.Graph(device) as inner, cu.Graph(device) as other:
        memory = (inner if what == "alloc" else other).allocate(16)
        if what == "free":
            inner.free(memory.buffer)
        graph.embed(inner, name="inner", move=True)
        with graph.capture(stream) as nodes:
            x.fill(1, stream=stream)
            x.fill(2, stream=stream)
        assert [n.kind for n in nodes] == ["child graph"]


def test_the_work_of_many_captures(device, stream, x):
    """A capture into a graph costs the same, however many nodes that has."""

    def work(n: int) -> int:
        with cu.Graph(device) as graph:
            for _ in range(n):
                graph.memset(x, 0)
            count = 0

            def note(frame, event, arg):
                nonlocal count
                count += event in ("call", "c_call")

            for _ in range(2):  # the first one imports
                count = 0
                with graph.capture(stream):
                    x.fill(1, stream=stream)
                    sys.setprofile(note)
                sys.setprofile(None)
            return count

    assert work(300) == work(10)


def test_into_a_graph_that_allocates(graph, stream, x):
    graph.allocate(64)  # no node can be removed again: all is added in one call
    with graph.capture(stream) as nodes:
        x.fill(1, stream=stream)
        x.fill(2, stream=stream)
    assert [n.kind for n in nodes] == ["child graph"]
    assert run(graph, stream, x) == 2


def test_a_capture_in_a_capture_is_refused(device, graph, stream, x):
    with stream.capture() as outer:
        x.fill(1, stream=stream)
        with pytest.raises((ValueError, cu.CUDAError)), graph.capture(stream):
            pass
        x.fill(2, stream=stream)
    assert (len(outer.nodes), graph.nodes) == (2, ())


def test_an_empty_block(graph, stream):
    with graph.capture(stream) as nodes:
        pass
    assert (nodes, graph.nodes) == ([], ())


def test_what_is_refused(device, graph, stream, x):
    node = graph.memset(x, 1)
    with pytest.raises(ValueError, match="mode must be one of"), graph.capture(stream, "none"):
        pass
    with pytest.raises(TypeError, match="stream must be"), graph.capture(5):
        pass
    graph.remove(node)
    with pytest.raises(cu.ClosedError), node.capture(stream):
        pass
    graph.close()
    with pytest.raises(cu.ClosedError), graph.capture(stream):
        pass
    assert not stream.is_capturing


def test_a_graph_that_is_closed_in_the_block(device, stream, x):
    graph = cu.Graph(device)
    with pytest.raises(cu.ClosedError), graph.capture(stream):
        x.fill(1, stream=stream)
        graph.close()
    assert not stream.is_capturing


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_calls_that_fail_add_nothing(script, driver):
    run = script(
        """
        import cudago as cu
        from cudago import _core
        from cudago.testing import settle
        device = cu.Device()
        s = device.create_stream()
        x = device.allocate(64, stream=s)
        graph = cu.Graph()
        first = graph.memset(x, 0)

        def capture():
            with first.capture(s) as nodes:
                x.fill(1, stream=s)
                x.fill(2, stream=s)
                s.callback(lambda: None)
            return nodes

        for call, n in {
            "cuStreamBeginCapture": 1, "cuMemsetD8Async": 2,
            "cuGraphGetNodes": 1, "cuGraphAddMemsetNode": 2, "cuGraphAddHostNode": 1,
        }.items():
            _core._fail_next(call, n, 999)
            try:
                capture()
            except cu.CUDAError as e:
                assert e.operation == call, e
            else:
                raise AssertionError(call)
            assert (graph.nodes, s.is_capturing) == ((first,), False), (call, graph.nodes)
        assert len(capture()) == 3
        graph.close()
        settle()
        assert cu.live_objects() == {"Buffer": 1, "Stream": 1}, cu.live_objects()
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_what_cannot_be_taken_back(script, driver):
    """It is said that the block has left something, and all else is taken back."""
    run = script(
        """
        import cudago as cu
        from cudago import _core
        s = cu.Device().create_stream()
        graph = cu.Graph()
        x = cu.Device().allocate(64, stream=s)
        _core._fail_next("cuGraphAddHostNode", 1, 999)
        _core._fail_next("cuGraphDestroyNode", 1, 998)
        try:
            with graph.capture(s):
                x.fill(1, stream=s)
                x.fill(2, stream=s)
                s.callback(lambda: None)
        except cu.CUDAError as e:
            assert e.operation == "cuGraphAddHostNode", e
            (note,) = e.__notes__
            assert "could not be changed back: cuGraphDestroyNode" in note, note
        else:
            raise AssertionError("no error")
        assert len(graph.nodes) == 1, graph.nodes
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_what_is_closed_in_the_block(device, graph, stream, x):
    """As in any capture, the graph has it."""
    event = device.create_event()
    with graph.capture(stream) as nodes:
        x.fill(1, stream=stream)
        stream.record(event)
        event.close()
    assert [node.kind for node in nodes] == ["memset"]
    assert run(graph, stream, x) == 1


def test_a_semaphore_that_is_closed_in_the_block(device, graph, stream, x):
    if cu.driver_name() != "sim":
        pytest.skip("it needs a semaphore of another API")
    exported = cu.sim.create_semaphore()
    semaphore = cu.ExternalSemaphore.from_fd(device, exported)
    with graph.capture(stream):
        x.fill(1, stream=stream)
        stream.signal(semaphore, 4)
        semaphore.close()
    assert [node.kind for node in graph.nodes] == ["memset", "semaphore signal"]
    assert run(graph, stream, x) == 1
    assert exported.value == 4
    exported.close()
