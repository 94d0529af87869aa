# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that are built node by node, their executables, and updates of these."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago.testing import hold

np = pytest.importorskip("numpy")

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)


@pytest.fixture
def a(device, stream):
    """Room for 16 numbers, which are 0."""
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


@pytest.fixture
def b(device, stream):
    """Room for 16 more, which are 0."""
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


@pytest.fixture
def graph(device):
    """An empty graph."""
    with cu.Graph(device) as graph:
        yield graph


def numbers(buffer, stream) -> list[int]:
    """Return the numbers in a buffer, or the one number that all are."""
    out = np.zeros(N, "i4")
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return out.tolist() if len(set(out.tolist())) > 1 else out.tolist()[0]


# --- building -------------------------------------------------------------------------------------


def test_an_empty_graph(graph, device, stream):
    assert graph.device is device
    assert (graph.nodes, graph.edges, graph.retained) == ((), (), ())
    assert repr(graph) == "<cudago.Graph of 0 nodes>"
    with graph.instantiate() as step:
        step.launch(stream)
        assert step.nodes == ()
    stream.sync()


def test_each_kind_of_node(graph, a, b, stream, kernels):
    out = np.zeros(N, "i4")
    seen = []
    node = graph.memset(a, 1, name="set")
    node = node.memcpy(b, a, name="copy")
    node = node.launch(CONFIG, kernels["add"], b, 10, N, name="add")
    node = node.memcpy(out, b, name="out")
    node = node.callback(lambda: seen.append(out[0]), name="look")
    assert [n.name for n in graph.nodes] == ["set", "copy", "add", "out", "look"]
    assert [n.kind for n in graph.nodes] == ["memset", "memcpy", "kernel", "memcpy", "host"]
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert out.tolist() == [0x0101010B] * N
    assert seen == [0x0101010B]


def test_host_memory_is_read_at_each_launch(graph, a, stream):
    source = np.zeros(N, "i4")
    graph.memcpy(a, source)
    with graph.instantiate() as step:
        for value in range(3):
            source[:] = value
            step(stream)
            assert numbers(a, stream) == value


def test_names(graph, a):
    assert graph.memset(a, 0).name == "memset_0"
    assert graph.memset(a, 0, name="zero").name == "zero"
    assert graph.memset(a, 0).name == "memset_2"
    assert graph.memset(a, 0, name="größer → \n").name == "größer → \n"
    assert graph["zero"] == graph.nodes[1]
    assert hash(graph["zero"]) == hash(graph.nodes[1])
    assert repr(graph["zero"]) == "<cudago.Node 'zero': memset>"
    with pytest.raises(
        ValueError, match='name must be unique in the graph, and "zero" already names'
    ):
        graph.callback(print, name="zero")
    with pytest.raises(TypeError, match="name must be a str, not <class 'int'>"):
        graph.memset(a, 0, name=5)
    with pytest.raises(
        KeyError, match="no node is called 'one'; there are memset_0, zero, memset_2"
    ):
        graph["one"]
    assert len(graph.nodes) == 4


def test_edges(graph, a, b, kernels):
    left, right = graph.memset(a, 0, name="left"), graph.memset(b, 0, name="right")
    both = graph.join(left, right, name="both")
    end = both.launch(CONFIG, kernels["copy"], a, b, N, name="end")
    assert both.kind == "empty"
    assert set(both.dependencies) == {left, right}
    assert left.dependents == (both,)
    assert left.dependencies == end.dependents == ()
    assert set(graph.edges) == {(left, both), (right, both), (both, end)}


def test_nodes_of_another_graph(graph, a):
    with cu.Graph() as other:
        foreign = other.memset(a, 0)
        with pytest.raises(ValueError, match="a node of another graph"):
            graph.join(foreign)
        assert foreign != graph.memset(a, 0)
    with pytest.raises(TypeError, match="nodes must be of type Node, not int"):
        graph.join(3)


def test_order_matters_and_is_kept(graph, a, stream, kernels):
    """((0 + 2) * 3 + 4) * 5, through a fork and a join."""
    start = graph.memset(a, 0).launch(CONFIG, kernels["add"], a, 2, N)
    other = start.callback(lambda: None)
    node = graph.join(start.launch(CONFIG, kernels["times"], a, 3, N), other)
    node.launch(CONFIG, kernels["add"], a, 4, N).launch(CONFIG, kernels["times"], a, 5, N)
    with graph.instantiate() as step:
        for _ in range(20):
            step.launch(stream)
        assert numbers(a, stream) == 50


def test_dot(graph, a, kernels):
    node = graph.memset(a, 0, name='say "hi"\nthere')
    node.launch(CONFIG, kernels["add"], a, 1, N, name="add one").callback(print)
    dot = graph.to_dot()
    assert dot.startswith("digraph") and dot.rstrip().endswith("}")
    assert dot.count("->") == 2
    assert r"say \"hi\"\nthere" in dot
    assert "add one" in dot
    assert repr(graph) == "<cudago.Graph of 3 nodes>"


def test_wrong_operands_add_nothing(graph, a, b, device, stream, kernels):
    closed = device.allocate(4 * N, stream=stream)
    closed.close()
    for add, error, message in (
        (lambda: graph.memcpy(a, b"abc"), ValueError, "dst has 64 bytes, src 3"),
        (lambda: graph.memcpy(bytes(64), a), BufferError, "dst .*writable"),
        (lambda: graph.memcpy(a, 5), TypeError, "src must be a Buffer"),
        (lambda: graph.memcpy(a, closed), cu.ClosedError, "buffer is closed"),
        (lambda: graph.memset(a, 1 << 40), OverflowError, "must fit 4 bytes"),
        (lambda: graph.memset(a[:3], b"ab"), ValueError, "does not divide 3 bytes"),
        (lambda: graph.memset(closed, 0), cu.ClosedError, "buffer is closed"),
        (lambda: graph.callback(5), TypeError, "callback must be callable"),
        (lambda: graph.launch(CONFIG, kernels["add"], a, 1), TypeError, "takes 3 argument"),
        (lambda: graph.launch(CONFIG, kernels["add"], a, 1.5, N), TypeError, "parameter 1"),
        (lambda: graph.launch(CONFIG, kernels["add"], closed, 1, N), cu.ClosedError, "closed"),
        (lambda: graph.launch((1, 1), kernels["nothing"]), TypeError, "config must be a Launch"),
        (lambda: graph.launch(CONFIG, "nothing"), TypeError, "kernel must be a Kernel"),
        (lambda: graph.embed(5), TypeError, "graph must be a Graph, not <class 'int'>"),
    ):
        with pytest.raises(error, match=message):
            add()
    assert (graph.nodes, graph.retained) == ((), ())


def test_closed_graph(a):
    graph = cu.Graph()
    node = graph.memset(a, 0, name="zero")
    graph.close()
    graph.close()
    assert graph.is_closed
    assert repr(graph) == "<cudago.Graph: closed>"
    assert repr(node) == "<cudago.Node of a closed graph>"
    for use in (
        lambda: graph.nodes,
        lambda: graph.edges,
        lambda: graph.retained,
        lambda: graph["zero"],
        lambda: graph.memset(a, 0),
        lambda: node.memset(a, 0),
        lambda: node.name,
        lambda: graph.join(),
        lambda: graph.to_dot(),
        lambda: graph.clone(),
        lambda: graph.instantiate(),
        lambda: cu.Graph().embed(graph),
    ):
        with pytest.raises(cu.ClosedError, match="graph is closed"):
            use()


# --- copies of graphs -----------------------------------------------------------------------------


def test_a_clone_is_independent(graph, a, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="one")
    clone = graph.clone()
    graph.launch(CONFIG, kernels["add"], a, 100, N, name="hundred")
    assert [n.name for n in clone.nodes] == ["one"]
    assert clone["one"] != graph["one"]
    graph.close()
    clone["one"].launch(CONFIG, kernels["times"], a, 10, N)
    with clone.instantiate() as step:
        clone.close()
        step.launch(stream)
        assert numbers(a, stream) == 10


def test_embedded_graphs(graph, a, stream, kernels):
    with cu.Graph() as inner, cu.Graph() as middle:
        inner.launch(CONFIG, kernels["add"], a, 1, N, name="one")
        middle.embed(inner, name="first").embed(inner, name="second")
        node = graph.embed(middle, name="twice")
        inner.launch(CONFIG, kernels["add"], a, 100, N)  # too late
    assert node.kind == "child graph"
    node.launch(CONFIG, kernels["times"], a, 10, N)
    assert "one" in graph.to_dot()
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 20
        assert ("twice/first/one", "parameter 0") in {(r.node, r.operand) for r in step.retained}
        with pytest.raises(
            TypeError, match="'twice' is of kind child graph, whose parameters cannot"
        ):
            step["twice"].update()


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


# --- updates --------------------------------------------------------------------------------------


def test_update_memcpy(graph, a, b, stream):
    graph.memcpy(a, np.full(N, 1, "i4"), name="up")
    with graph.instantiate() as step:
        step["up"].update(src=np.full(N, 2, "i4"))
        step.launch(stream)
        assert numbers(a, stream) == 2
        step["up"].update(dst=b)
        step.launch(stream)
        assert numbers(b, stream) == 2
        step["up"].update(dst=a, src=np.full(N, 3, "i4"))
        step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (3, 2)
        assert step.launch_count == 3


def test_update_memset(graph, a, b, stream):
    graph.memset(a, b"\1\0\0\0", name="set")
    with graph.instantiate() as step:
        step["set"].update(b, b"\2\0\0\0")
        step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (0, 2)


def test_update_kernel(graph, a, b, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="k")
    with graph.instantiate() as step:
        step["k"].update(CONFIG, kernels["add"], b, 5, N)
        step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (0, 5)
        step["k"].update(cu.LaunchConfig(grid=1, block=N // 2), kernels["times"], b, 3, N)
        step.launch(stream)
        assert numbers(b, stream) == [15] * (N // 2) + [5] * (N // 2)


def test_update_callback(graph, stream):
    seen = []
    graph.callback(lambda: seen.append(1), name="tell")
    with graph.instantiate() as step:
        step.launch(stream)
        step["tell"].update(lambda: seen.append(2))
        step.launch(stream)
        stream.sync()
    assert seen == [1, 2]


def test_an_update_is_for_later_launches(graph, a, b, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="k")
    with graph.instantiate() as step:
        with hold(stream):
            step.launch(stream)
            step["k"].update(CONFIG, kernels["add"], b, 10, N)
            step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (1, 10)


def test_an_update_leaves_the_graph_and_other_executables_alone(graph, a, b, stream):
    graph.memset(a, b"\1\0\0\0", name="set")
    with graph.instantiate() as one, graph.instantiate() as two:
        one["set"].update(b, b"\2\0\0\0")
        two.launch(stream)
        with graph.instantiate() as three:
            three.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (1, 0)


def test_refused_updates_change_nothing(graph, a, b, stream, kernels):
    source = np.full(N, 4, "i4")
    graph.memcpy(a, source, name="up").launch(CONFIG, kernels["add"], a, 1, N, name="k").callback(
        lambda: None, name="tell"
    )
    graph.join(name="nothing")
    with graph.instantiate() as step:
        before = step.retained
        for update, error, message in (
            (lambda: step["up"].update(), TypeError, "needs dst=, src= or both"),
            (lambda: step["up"].update(src=b"abc"), ValueError, "must have the 64 bytes"),
            (lambda: step["up"].update(dst=bytes(64)), BufferError, "writable"),
            (lambda: step["up"].update(src=b), cu.CUDAError, "CUDA_ERROR_INVALID_VALUE"),
            (
                lambda: step["up"].update(bytes(64)),
                TypeError,
                "memcpy node takes dst=, src=: too many",
            ),
            (lambda: step["k"].update(CONFIG, kernels["add"], a, 1), TypeError, "takes 3 arg"),
            (
                lambda: step["k"].update(CONFIG, kernels["add"], a, 1, None),
                TypeError,
                "parameter 2",
            ),
            (lambda: step["k"].update(src=a), TypeError, "add has no parameter 'src'; it has y"),
            (lambda: step["tell"].update(5), TypeError, "callback must be callable"),
            (lambda: step["nothing"].update(), TypeError, "'nothing' is of kind empty, whose par"),
        ):
            with pytest.raises(error, match=message):
                update()
        after = step.retained
        assert [(r.node, r.operand) for r in after] == [(r.node, r.operand) for r in before]
        assert all(x.object is y.object for x, y in zip(after, before, strict=True))
        step.launch(stream)
        assert numbers(a, stream) == 5


def test_nodes_can_be_switched_off_and_on(graph, a, stream, kernels):
    told = []
    node = graph.launch(CONFIG, kernels["add"], a, 1, N, name="one")
    node = node.launch(CONFIG, kernels["add"], a, 10, N, name="ten")
    graph.join(node.callback(lambda: told.append(1), name="tell"), name="join")
    with graph.instantiate() as step:
        assert step["ten"].enabled is step["tell"].enabled is True
        step["ten"].disable()
        step["ten"].enabled = False
        step["tell"].enabled = False
        step.launch(stream)
        assert numbers(a, stream) == 1
        assert told == []
        assert step["ten"].enabled is step["tell"].enabled is False
        assert len([r for r in step.retained if r.node == "ten"]) == 2
        step["tell"].update(lambda: told.append(2))
        step["ten"].update(CONFIG, kernels["add"], a, 20, N)
        assert step["ten"].enabled is step["tell"].enabled is False
        step["ten"].enable()
        step["ten"].enabled = step["tell"].enabled = True
        step.launch(stream)
        assert numbers(a, stream) == 22
        assert told == [2]
        with pytest.raises(cu.CUDAError, match="only kernel, memcpy and memset nodes"):
            step["join"].enabled = False
        assert step["join"].enabled
    with pytest.raises(cu.ClosedError):
        assert step["ten"].enabled
    with pytest.raises(cu.ClosedError):
        step["ten"].enabled = True


def test_a_node_is_disabled_for_a_block(graph, a, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="one").launch(
        CONFIG, kernels["add"], a, 10, N, name="ten"
    )
    with graph.instantiate() as step:
        one, ten = step["one"], step["ten"]
        with one.disabled():
            step.launch(stream)
            with one.disabled(), ten.disabled():
                step.launch(stream)
            assert (one.enabled, ten.enabled) == (False, True)
            with pytest.raises(ZeroDivisionError), ten.disabled():
                _ = 1 / 0
            step.launch(stream)
        assert (one.enabled, ten.enabled) == (True, True)
        assert numbers(a, stream) == 20
        with ten.disabled():
            ten.enabled = True
        assert ten.enabled
        with one.disabled():
            step.close()
        with pytest.raises(cu.ClosedError), one.disabled():
            pytest.fail("the executable is closed")


# --- what is retained -----------------------------------------------------------------------------


def test_retained(graph, a, b, kernels):
    source = np.zeros(N, "i4")

    def tell():
        pass

    node = graph.memcpy(a, source, name="up")
    node.launch(CONFIG, kernels["copy"], a.ptr, b, N, name="k").callback(tell, name="tell")
    with graph.instantiate() as step:
        for kept in (graph.retained, step.retained):
            table = {(r.node, r.operand): (r.object, r.nbytes, r.reason) for r in kept}
            assert table["up", "src"][0] is source
            assert table["up", "dst"] == (a, 64, "memcpy")
            assert table["k", "parameter 0"][0].buffer is a
            assert table["k", "parameter 1"] == (b, 64, "kernel")
            assert table["k", "kernel"] == (kernels["copy"], 0, "kernel")
            assert table["tell", "callback"] == (tell, 0, "host")
            assert len(table) == 6
    assert {r.operand for r in node.retained} == {"src", "dst"}
    assert "Retained(node='up', operand='" in repr(graph.retained[0])


# --- many --------------------------------------------------------------------------------------


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
