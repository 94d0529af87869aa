# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Conditional nodes: kernels decide whether and how often a graph runs their bodies."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")

ONE = cu.LaunchConfig(grid=1, block=1)
SOURCE = r"""
extern "C" __device__ void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned int);
extern "C" __global__ void halve(cudaGraphConditionalHandle more, int* n) {
    n[0] /= 2;
    n[1] += 1;
    cudaGraphSetConditional(more, n[0] > 10);
}
extern "C" __global__ void count(int* n) { n[0] -= 1; n[1] += 1; }
"""


@pytest.fixture(scope="module")
def code(device):
    """Kernels halve and count."""
    return cu.Program(SOURCE).compile()


@pytest.fixture
def n(device, stream):
    """Two numbers: 1000 and 0."""
    with cu.asarray([1000, 0], "i4", stream=stream) as n:
        yield n


def run(graph, stream, times=1):
    """Launch a graph some times, one executable for all."""
    with graph.instantiate() as step:
        for _ in range(times):
            step.launch(stream)
    stream.sync()


def test_a_kernel_decides_about_its_loop(graph, code, n, stream):
    more = graph.condition(default=1)
    loop = graph.while_loop(more, name="loop")
    loop.body.launch(ONE, code["halve"], more, n, name="halve")
    run(graph, stream)
    assert n.numpy(stream=stream).tolist() == [7, 7]


def test_memory_decides_about_a_loop(graph, code, stream):
    n = cu.asarray([3, 0], "i4", stream=stream)
    go = graph.condition(default=1)
    body = graph.while_loop(go).body
    body.launch(ONE, code["count"], n).set_condition(go, n[:1])
    run(graph, stream)
    assert n.numpy(stream=stream).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("dtype", "number", "first"),
    [
        ("u1", 0, 0),
        ("u1", 9, 1),
        ("u2", 256, 1),
        ("u4", 1 << 31, 1),
        ("u8", 1 << 32, 1),
        ("u8", 0, 0),
    ],
)
def test_memory_of_every_width_decides(graph, device, stream, dtype, number, first):
    flag = cu.asarray(np.array([number], dtype), stream=stream)
    out = device.allocate(1, stream=stream)
    condition = graph.condition()
    yes, no = graph.set_condition(condition, flag).if_else(condition).bodies
    yes.memset(out, 1)
    no.memset(out, 0)
    run(graph, stream)
    assert out.view("u1").numpy(stream=stream).tolist() == [first]


@pytest.mark.parametrize("value", [0, 1, 2, 3, 2**32 - 1])
def test_a_switch_runs_one_body_or_none(graph, device, stream, value):
    out = device.allocate(1, stream=stream)
    choice = graph.condition(default=0)
    switch = graph.memset(out, 9).set_condition(choice, value).switch(choice, 3, name="choose")
    for i, body in enumerate(switch.bodies):
        body.memset(out, i)
    run(graph, stream)
    assert out.view("u1").numpy(stream=stream).tolist() == [value if value < 3 else 9]


def test_a_default_counts_for_each_launch(graph, code, stream):
    n = cu.asarray([0, 0], "i4", stream=stream)
    once = graph.condition(default=1)
    branch = graph.if_then(once)
    branch.body.launch(ONE, code["count"], n)
    branch.set_condition(once, 0)
    run(graph, stream, times=3)
    assert n.numpy(stream=stream).tolist() == [-3, 3]


def test_without_a_default_the_value_stays(graph, code, stream):
    n = cu.asarray([0, 0], "i4", stream=stream)
    later = graph.condition()
    branch = graph.if_then(later)
    branch.body.launch(ONE, code["count"], n)
    branch.set_condition(later, 1)
    run(graph, stream, times=3)
    assert n.numpy(stream=stream).tolist() == [-2, 2]


def test_loops_nest(graph, code, stream):
    outer = cu.asarray([3, 0], "i4", stream=stream)
    inner = cu.asarray([0, 0], "i4", stream=stream)
    four = cu.asarray([4], "i4", stream=stream)
    go, again = graph.condition(default=1), graph.condition(default=0)
    body = graph.while_loop(go).body
    ready = body.memcpy(inner[:1], four).set_condition(again, 1)
    loop = ready.while_loop(again)
    loop.body.launch(ONE, code["count"], inner).set_condition(again, inner[:1])
    loop.launch(ONE, code["count"], outer).set_condition(go, outer[:1])
    run(graph, stream)
    assert outer.numpy(stream=stream).tolist() == [0, 3]
    assert inner.numpy(stream=stream).tolist() == [0, 12]


def test_bodies_are_graphs_in_a_graph(graph, device, stream):
    x = device.allocate(4, stream=stream)
    branch = graph.if_else(graph.condition(default=1), name="choose")
    assert branch.kind == "conditional"
    yes, no = branch.bodies
    assert (yes.device, yes.is_closed) == (device, False)
    assert branch.body.nodes == yes.nodes == ()
    assert (branch.body, hash(branch.body)) == (yes, hash(yes))
    assert len({graph, yes, no, *branch.bodies}) == 3
    first = yes.memset(x, 1, name="first")
    yes.join(first, name="last")
    assert [node.name for node in branch.body.nodes] == ["first", "last"]
    assert yes["first"] == first
    assert first.dependents == (yes["last"],)
    assert no.nodes == graph.nodes[1:] == ()
    assert [(r.node, r.object) for r in graph.retained] == [("choose[0]/first", x)]
    assert branch.retained == graph.retained
    assert [r.node for r in yes.retained] == ["first"]
    assert 'label="choose[1]"' in graph.to_dot()
    graph.close()
    assert yes.is_closed
    with pytest.raises(cu.ClosedError, match="graph is closed"):
        yes.memset(x, 1)
    assert repr(first) == "<cudago.Node of a closed graph>"


def test_a_body_keeps_its_graph(device, stream):
    x = device.allocate(4, stream=stream)
    graph = cu.Graph(device)
    body = graph.if_then(graph.condition(default=1)).body
    del graph
    body.memset(x, 1)
    assert not body.is_closed


def test_nodes_of_bodies_can_be_updated(graph, device, stream):
    x, y = device.allocate(4, stream=stream), device.allocate(4, stream=stream)
    y.fill(0, stream=stream)
    graph.if_then(graph.condition(default=1), name="maybe").body.memset(x, 1, name="fill")
    with graph.instantiate() as step:
        assert [node.name for node in step.nodes] == ["maybe", "maybe/fill"]
        step["maybe/fill"].update(y, 2)
        assert [(r.node, r.object) for r in step.retained] == [("maybe/fill", y)]
        step.launch(stream)
        stream.sync()
    assert y.view("u1").numpy(stream=stream)[0] == 2


def test_embedded_graphs_run_in_a_body(graph, device, stream):
    x = device.allocate(4, stream=stream)
    with cu.Graph(device) as inner:
        inner.memset(x, 5)
        graph.if_then(graph.condition(default=1)).body.embed(inner)
    run(graph, stream)
    assert x.view("u1").numpy(stream=stream)[0] == 5


def test_what_a_body_cannot_hold(graph, device, stream):
    x = device.allocate(4, stream=stream)
    body = graph.while_loop(graph.condition(default=0), name="loop").body
    with pytest.raises(ValueError, match=r'body of conditional node "loop".* not host nodes'):
        body.callback(print)
    with pytest.raises(ValueError, match="not alloc nodes"):
        body.allocate(4)
    with pytest.raises(ValueError, match=r"src is ordinary host memory, .*: pin it"):
        body.memcpy(x, b"abcd")
    with cu.Graph(device) as inner:
        inner.memcpy(x, b"abcd")
        with pytest.raises(ValueError, match="ordinary host memory"):
            body.embed(inner)
    assert body.nodes == ()
    with cu.PinnedMemoryResource() as resource, resource.allocate(4) as pinned:
        body.memcpy(x, pinned)
        run(graph, stream)


def test_a_captured_copy_cannot_be_slipped_into_a_body(graph, device, stream):
    x, host = device.allocate(4, stream=stream), bytearray(4)
    with stream.capture() as captured:
        x.copy_from(host, stream=stream)
    body = graph.while_loop(graph.condition(default=0)).body
    with pytest.raises(ValueError, match="ordinary host memory"):
        body.embed(captured)


def test_a_body_is_no_graph_of_its_own(graph, device):
    body = graph.if_then(graph.condition(default=1), name="maybe").body
    for call in (body.instantiate, body.clone, lambda: cu.Graph(device).embed(body)):
        with pytest.raises(ValueError, match=r'body of conditional node "maybe" and cannot be'):
            call()
    with pytest.raises(ValueError, match="cannot be closed"):
        body.close()
    for call in (graph.clone, lambda: cu.Graph(device).embed(graph)):
        with pytest.raises(cu.CUDAError, match=r"NOT_SUPPORTED.*the graph has conditional nodes"):
            call()


def test_one_executable_at_a_time(graph):
    graph.if_then(graph.condition(default=1))
    with (
        graph.instantiate(),
        pytest.raises(
            cu.CUDAError, match=r"NOT_SUPPORTED.*conditional nodes.*close the other one first"
        ),
    ):
        graph.instantiate()
    graph.instantiate().close()


def test_a_condition_serves_one_node(graph, device):
    condition = graph.condition(default=1)
    assert repr(condition) == f"<cudago.Condition {condition.handle:#x}: default 1>"
    assert condition.graph is graph
    with pytest.raises(cu.CUDAError, match="controls no conditional node: add one"):
        graph.instantiate()
    graph.if_then(condition, name="first")
    with pytest.raises(ValueError, match='already controls conditional node "first"'):
        graph.while_loop(condition)
    with cu.Graph(device) as other, pytest.raises(ValueError, match="one that this graph has made"):
        other.if_then(graph.condition())


def test_wrong_arguments(graph, device, stream):
    with pytest.raises(TypeError, match="condition must be of type Condition, not int"):
        graph.if_then(1)
    with pytest.raises(OverflowError, match=r"default must be 0 to 2\*\*32-1, got -1"):
        graph.condition(default=-1)
    with pytest.raises(TypeError):
        graph.condition(default=1.5)
    condition = graph.condition()
    for count in (0, -1, 1 << 20):
        with pytest.raises(ValueError, match="count must be 1 to 65536"):
            graph.switch(condition, count)
    with pytest.raises(OverflowError, match=r"value must be 0 to 2\*\*32-1"):
        graph.set_condition(condition, 1 << 32)
    with pytest.raises(TypeError, match="value must be an integer, or have memory"):
        graph.set_condition(condition, "yes")
    memory = device.allocate(12, stream=stream)
    with cu.Graph(device) as other:
        other.set_condition(other.condition(), memory.ptr + 8)  # the 4 bytes from there on
    with pytest.raises(ValueError, match="value must have 1, 2, 4 or 8 bytes, got 12"):
        graph.set_condition(condition, memory.ptr)
    with device.allocate(3, stream=stream) as x, pytest.raises(ValueError, match="got 3"):
        graph.set_condition(condition, x)
    graph.memset(device.allocate(4, stream=stream), 0, name="fill")
    with pytest.raises(TypeError, match="'fill' is of kind memset and has no body"):
        _ = graph["fill"].body
    assert [node.name for node in graph.nodes] == ["fill"]


def test_kernels_that_set_conditions_are_released_with_their_graph(device):
    before = cu.live_objects()
    graph = cu.Graph(device)
    graph.set_condition(graph.condition(), 1)
    assert cu.live_objects() != before
    graph.close()
    del graph
    assert cu.live_objects() == before


def test_a_condition_is_for_kernels_of_its_graph_alone(graph, code, n, stream):
    """That of another graph would be set without an order, and may be gone."""
    more, halve = graph.condition(default=1), code["halve"]
    loop = graph.while_loop(more)
    loop.body.launch(ONE, halve, more, n, name="halve")
    with cu.Graph() as other:
        own = other.condition()
        other.if_then(own).body.launch(ONE, halve, own, n, name="halve")
        ways = (
            lambda c: other.launch(ONE, halve, c, n),
            lambda c: other.nodes[0].bodies[0].launch(ONE, halve, c, n),
            lambda c: other.set_condition(c, 1),
            lambda c: other.nodes[0].set_condition(c, n[:1]),
            lambda c: other.nodes[0].body["halve"].update({0: c}),
            lambda c: other.launch(ONE, halve, cu.slot("more", c), n),
        )
        for way in ways:
            with pytest.raises(ValueError, match="is of another graph: a kernel can set"):
                way(more)
        with other.instantiate() as step:
            with pytest.raises(ValueError, match="is of another graph"):
                step.nodes[-1].update({0: more})
            step.nodes[-1].update({0: own})
        with pytest.raises(ValueError, match="is an argument of kernels of its graph alone"):
            cu.launch(stream, ONE, halve, more, n)
        run(graph, stream)
        assert n.numpy(stream=stream).tolist() == [7, 7]
        graph.close()
        for way in ways:
            with pytest.raises(ValueError, match="is of a closed graph"):
                way(more)
        assert [node.kind for node in other.nodes] == ["conditional"]


def test_an_executable_outlives_the_graph_of_its_conditions(graph, code, n, stream):
    more = graph.condition(default=1)
    loop = graph.while_loop(more)
    loop.body.launch(ONE, code["halve"], more, n, name="halve")
    with graph.instantiate() as step:
        graph.close()
        step.nodes[-1].update({0: more, 1: n})
        step.launch(stream)
        stream.sync()
    assert n.numpy(stream=stream).tolist() == [7, 7]


def test_a_captured_body_takes_its_condition(graph, code, n, stream):
    more = graph.condition(default=1)
    body = graph.while_loop(more).body
    with body.capture(stream):
        cu.launch(stream, ONE, code["halve"], more, n)
    run(graph, stream)
    assert n.numpy(stream=stream).tolist() == [7, 7]


def test_the_condition_of_a_node_that_was_removed(graph, device):
    """It needs another node: the driver cannot give it back."""
    condition = graph.condition(default=1)
    maybe = graph.if_then(condition, name="maybe")
    graph.instantiate().close()
    graph.remove(maybe)
    settle()
    why = (
        f"condition {condition.handle:#x} controls no conditional node since .*maybe.* was removed"
    )
    with pytest.raises(cu.CUDAError, match=f"{why}: add one that it controls"):
        graph.instantiate()
    graph.if_then(condition, name="again")
    graph.instantiate().close()


def test_a_body_refuses_a_graph_by_the_names_of_both(graph, device):
    loop = graph.while_loop(graph.condition(default=0), name="loop")
    with cu.Graph(device) as inner:
        inner.callback(print, name="call")
        with pytest.raises(ValueError, match=r'host node "call" .*a body of .* node "loop"'):
            loop.body.embed(inner)


@pytest.mark.parametrize("inside", [False, True])
def test_no_executable_takes_a_condition_without_its_node(graph, device, stream, inside):
    """As no graph is instantiated with one: its number would end with the graph."""
    source = 'extern "C" __global__ void none(unsigned long long handle, unsigned value) {}'
    kernel = cu.Program(source).compile()["none"]
    plain, other = cu.Graph(device), cu.Graph(device)
    plain.launch(ONE, kernel, 0, 0)
    other.set_condition(other.condition(), 1)
    if inside:
        graph.embed(plain)
    with (graph if inside else plain).instantiate() as step:
        change = step.nodes[0].update if inside else step.update
        with pytest.raises(cu.GraphUpdateError, match="controls no conditional node"):
            change(other)
        if not inside:
            with pytest.raises(cu.CUDAError, match="controls no conditional node"):
                step.update_or_instantiate(other)
        other.close()
        step.launch(stream)
        stream.sync()
    plain.close()
