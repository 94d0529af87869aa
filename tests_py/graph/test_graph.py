# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that are built node by node."""

from __future__ import annotations

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


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
        (lambda: graph.memset(a, 1 << 40), OverflowError, "must be -128 to 255"),
        (lambda: graph.memcpy(a, b""), ValueError, "dst has 64 bytes, src 0"),
        (lambda: graph.memset(a[:3], b"ab"), ValueError, "does not divide 3 bytes"),
        (lambda: graph.memset(a[1:3], b"ab"), ValueError, "at a multiple of 2, not at 0x"),
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
        with pytest.raises(TypeError, match="update of a child graph node takes graph"):
            step["twice"].update()


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


def test_a_node_waits_for_any_number_of_nodes(graph):
    nodes = [graph.join() for _ in range(3000)]
    last = graph.join(*nodes, name="last")
    assert last.dependencies == tuple(nodes)
    with graph.instantiate() as step, graph.device.create_stream() as stream:
        step.launch(stream)
        stream.sync()


def test_a_body_can_be_called(graph, stream, a):
    node = graph.if_then(graph.condition(default=1))
    assert node.body() == node.body
    with node.body().capture(stream):
        a.fill(1, stream=stream)
    assert [n.kind for n in node.body.nodes] == ["memset"]
    with pytest.raises(TypeError, match="a Graph cannot be called: instantiate it"):
        graph()


def test_an_object_without_the_device_memory_that_its_class_has(graph, a):
    class Nothing:
        __cuda_array_interface__ = None

    class Wrong:
        __cuda_array_interface__ = 5

    with pytest.raises(TypeError, match="src must be a Buffer, Pointer or Tensor, or"):
        graph.memcpy(a, Nothing())
    with pytest.raises(TypeError, match="src: __cuda_array_interface__ must be a dict, not int"):
        graph.memcpy(a, Wrong())


def test_nodes_of_no_bytes_do_nothing(graph, stream, device):
    """As captured operations of no bytes are left out."""
    empty = cu.zeros(0, "f8", stream=stream)
    nodes = [
        graph.memset(empty, 1.5, name="a"),
        graph.memset(device.allocate(0, stream=stream), 1),
        graph.memset(empty.buffer.view("u1"), 1),
        graph.memset(device.allocate(64, stream=stream).ptr + 64, 1),
        graph.memcpy(empty, empty),
        graph.memcpy(bytearray(), b"", name="b"),
        graph.memcpy(cu.zeros((0, 4), "f4", stream=stream)[:, 1:3], np.zeros((0, 2), "f4")),
    ]
    after = nodes[0].memset(empty, 1)
    assert {n.kind for n in [*nodes, after]} == {"empty"}
    assert after.dependencies == (nodes[0],) and "a" in graph and "b" in graph
    with pytest.raises(ValueError, match="dst has 0 bytes"):
        graph.memset(cu.slot("s", empty), 1.5)
    with pytest.raises(ValueError, match="dst has 0 bytes"):
        graph.memcpy(cu.slot("s", empty), empty)
    with pytest.raises(ValueError, match="dst has 8 bytes, src 0"):
        graph.memcpy(cu.zeros(1, "f8", stream=stream), empty)
    empty.close()
    with pytest.raises(cu.ClosedError):
        graph.memset(empty, 1.5)
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()


def test_copies_between_arrays_with_gaps(graph, stream):
    """Both sides may be the host's, if rows describe them."""
    h = np.arange(32, dtype="f4").reshape(4, 8)
    expected = h.copy()
    expected[:, 5:8] = h[:, 2:5]
    node = graph.memcpy(h[:, 5:8], h[:, 2:5])
    assert node.kind == "memcpy"
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert (h == expected).all()
    for dst in (h[::-1], h.T[:, :4]):
        with pytest.raises(ValueError, match="one node cannot copy between strides"):
            graph.memcpy(dst, np.zeros(dst.shape, "f4"))
    with pytest.raises(ValueError, match="the same shape"):
        graph.memcpy(cu.zeros(48, "u1", stream=stream).buffer, h[:, 5:8])
    packed = np.zeros((4, 3), "f4")
    node.update(dst=packed, src=h[:, :3])
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert (packed == h[:, :3]).all()
    h.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        graph.memcpy(h[:, 5:8], h[:, 2:5])
