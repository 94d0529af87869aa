# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Other graphs for the nodes that embed one, and other events for those that have one."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago.testing import settle

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


@pytest.fixture
def adding(device, kernels, a):
    """Makes a graph that adds a number, perhaps twice."""

    def make(value, *, to=a, twice=False):
        graph = cu.Graph(device)
        node = graph.launch(CONFIG, kernels["add"], to, value, N, name="one")
        if twice:
            node.launch(CONFIG, kernels["add"], to, value, N, name="two")
        return graph

    return make


@pytest.fixture
def outer(graph, adding):
    with adding(1) as inner:
        graph.embed(inner, name="inner")
    return graph


def launched(step, a, stream):
    """Return what a launch leaves in memory that was 0."""
    a.fill(0, stream=stream)
    step.launch(stream)
    return numbers(a, stream)


def test_in_an_executable(outer, adding, a, b, stream):
    with outer.instantiate() as step, outer.instantiate() as other:
        with adding(5) as new:
            step["inner"].update(new)
        assert launched(step, a, stream) == 5
        with adding(6, to=b) as new:
            step["inner"].update(graph=new)
        assert launched(step, a, stream) == 0
        assert numbers(b, stream) == 6
        assert [r.object for r in step.retained if r.operand == "parameter 0"] == [b]
        assert launched(other, a, stream) == 1
        step.update(outer)
        assert launched(step, a, stream) == 1


def test_a_graph_that_differs_is_refused_by_name(outer, adding, graph, a, stream):
    with outer.instantiate() as step, adding(5, twice=True) as two, cu.Graph() as fill:
        fill.memset(a, 1, name="one")
        before = step.retained
        for wrong, text in (
            (two, 'node "inner" embeds 2 nodes, and embedded 1'),
            (fill, 'node "inner/one" is of kind memset'),
        ):
            with pytest.raises(cu.GraphUpdateError, match=text):
                step["inner"].update(wrong)
        for wrong, error, text in (
            (3, TypeError, "graph must be a Graph"),
            (outer["inner"].params.graph, ValueError, "is embedded in another"),
        ):
            with pytest.raises(error, match=text):
                step["inner"].update(wrong)
        two.close()
        with pytest.raises(cu.ClosedError, match="graph is closed"):
            step["inner"].update(two)
        assert step.retained == before
        assert launched(step, a, stream) == 1


def test_what_a_launch_under_way_uses_stays(graph, device, stream, a, pinned):
    def copying(value):
        source = np.full(N, value, "i4")
        with cu.Graph(device) as inner:
            inner.memcpy(a, source, name="up")
            return inner.clone(), weakref.ref(source)

    first, old = copying(1)
    graph.callback(lambda: go.wait(60), name="wait").embed(first, name="inner")
    first.close()
    go = threading.Event()
    with graph.instantiate() as step:
        graph.close()
        step.launch(stream)
        for value in (2, 3):
            new, _ = copying(value)
            step["inner"].update(new)
            new.close()
        gc.collect()
        assert old() is not None
        go.set()
        assert numbers(a, stream) == 1
        settle()
        assert old() is None
        step.launch(stream)
        assert numbers(a, stream) == 3


def test_many_updates_keep_one_graphs_operands(outer, adding, device, stream):
    with outer.instantiate() as step:
        outer.close()
        gone = []
        for i in range(50):
            memory = device.allocate(4 * N, stream=stream)
            gone.append(weakref.ref(memory))
            with adding(i, to=memory) as new:
                step["inner"].update(new)
        del memory
        settle()
        assert [m() is None for m in gone] == [True] * 49 + [False]


def test_names_that_look_like_what_is_inside(graph, adding, device, stream):
    """What a node embeds is told by the node, not by its name."""
    memory = device.allocate(4 * N, stream=stream)
    with adding(1, to=memory) as inner:
        graph.embed(inner, name="inner/more")
    with adding(1) as inner:
        graph.embed(inner, name="inner")
    with graph.instantiate() as step:
        graph.close()
        with adding(2) as new:
            step["inner"].update(new)
        ref = weakref.ref(memory)
        del memory
        settle()
        assert ref() is not None
        step.launch(stream)
        stream.sync()
        assert ref() in {r.object for r in step.retained}


def test_in_a_graph(outer, adding, a, b, stream):
    node, view = outer["inner"], outer["inner"].params.graph
    inside = view.nodes[0]
    before, mark = outer.instantiate(), hash(inside)
    with adding(4, twice=True) as new:
        node.update(new)
    assert [n.name for n in node.params.graph.nodes] == ["one", "two"]
    for use in (lambda: view.nodes, lambda: inside.name, lambda: inside.params):
        with pytest.raises(cu.ClosedError):
            use()
    assert (hash(inside), inside == inside) == (mark, True)
    assert launched(before, a, stream) == 1
    with pytest.raises(cu.GraphUpdateError, match='"inner" embeds 2 nodes, and embedded 1'):
        before.update(outer)
    with adding(7) as new:
        before["inner"].update(new)  # it is still of one node here
    assert launched(before, a, stream) == 7
    with outer.instantiate() as step, outer.clone() as copy, copy.instantiate() as third:
        assert launched(step, a, stream) == launched(third, a, stream) == 8
    with stream.capture(), pytest.raises(ValueError, match='"inner" embeds something else'):
        before.launch(stream)
    before.close()


def test_a_graph_in_which_it_cannot_be(outer, graph, adding, device, stream):
    node, held = outer["inner"], outer.retained
    with cu.Graph(device) as memory, adding(2) as new:
        scratch = memory.allocate(4)
        scratch.free(scratch.buffer)
        for wrong, error, text in (
            (outer, ValueError, "must be another one than that of"),
            (node.params.graph, ValueError, "is embedded in another"),
            (memory, cu.UnsupportedError, "allocates or frees memory"),
            (None, TypeError, "graph must be a Graph"),
        ):
            with pytest.raises(error, match=text):
                node.update(wrong)
        outer.remove(node)
        with pytest.raises(cu.ClosedError, match="removed"):
            node.update(new)
    assert held[0].node == "inner/one"


def test_old_operands_go_at_once(graph, device, stream, adding):
    memory = device.allocate(4 * N, stream=stream)
    gone = weakref.ref(memory)
    with adding(1, to=memory) as inner:
        node = graph.embed(inner)
    del memory, inner
    settle()
    assert gone() is not None
    with adding(2) as new:
        node.update(new)
    settle()
    assert gone() is None


def test_a_cycle_through_what_is_inside_is_collected(graph, device, a):
    class Tell:
        def __call__(self):
            pass

    with cu.Graph(device) as empty, cu.Graph(device) as inner:
        empty.callback(print)
        node = graph.embed(empty)
        with graph.instantiate() as step:
            tell = Tell()
            tell.step, tell.graph = step, graph
            inner.callback(tell)
            gone = weakref.ref(tell)
            node.update(inner)
            step[node.name].update(inner)
            del tell
        inner.close()
    assert gone() is not None
    graph.close()
    del step
    gc.collect()
    settle()
    assert gone() is None


def test_events(graph, device, stream):
    first, second = device.create_event(), device.create_event()
    record = graph.record(first, name="record")
    wait = record.wait(first, name="wait")
    with graph.instantiate() as before:
        record.update(second)
        wait.update(event=second)
        assert [n.params.event for n in (record, wait)] == [second, second]
        assert before["record"].params.event is first
        with graph.instantiate() as step:
            for node in step.nodes:
                node.update(first)
                assert node.params.event is first
            assert {r.object for r in step.retained} == {first}
            step.launch(stream)
            first.sync()
        before["wait"].update(second)
        assert [n.params.event for n in before.nodes] == [first, second]


def test_an_event_lives_as_long_as_it_is_used(graph, device, stream):
    first, second = device.create_event(), device.create_event()
    graph.record(first, name="record")
    with graph.instantiate() as step:
        graph.close()
        gone = weakref.ref(first)
        del first
        settle()
        assert gone() is not None
        step["record"].update(second)
        settle()
        assert gone() is None
        second.close()
        step.launch(stream)
        stream.sync()


def test_what_is_no_event(graph, device, a):
    event = device.create_event()
    node = graph.record(event, name="record")
    other = device.create_event()
    other.close()
    with graph.instantiate() as step:
        for at in (node, step["record"]):
            for args, error, text in (
                ((3,), TypeError, "event must be an Event"),
                ((a,), TypeError, "event must be an Event"),
                ((), TypeError, "update of an event record node takes event"),
                ((other,), cu.ClosedError, "event is closed"),
            ):
                with pytest.raises(error, match=text):
                    at.update(*args)
            assert at.params.event is event
        with pytest.raises(TypeError, match="is of kind event record"):
            step._update_child(step["record"]._id, graph)
        with pytest.raises(TypeError, match="is of kind memset"):
            graph._update_event(graph.memset(a, 0)._id, event)


def test_copies_of_another_size(graph, a, stream):
    graph.memcpy(a, np.arange(N, dtype="i4"), name="up")
    with graph.instantiate() as step:
        step["up"].update(dst=a[: 2 * N], src=np.full(N // 2, 7, "i4"))
        assert step["up"].params.nbytes == 2 * N
        a.fill(0, stream=stream)
        step.launch(stream)
        assert numbers(a, stream) == [7] * (N // 2) + [0] * (N // 2)
        step["up"].update(src=np.full(N // 2, 8, "i4"))
        for wrong in ({"src": a}, {"dst": a}, {"dst": a, "src": np.zeros(1, "i4")}):
            with pytest.raises(
                ValueError, match=f"must have the {2 * N} bytes that the node copies"
            ):
                step["up"].update(**wrong)
        with pytest.raises(ValueError, match="dst has 0 bytes: a node needs at least one"):
            step["up"].update(dst=a[:0], src=b"")
        step["up"].update(dst=a, src=np.arange(N, dtype="i4"))
        step.launch(stream)
        assert numbers(a, stream) == list(range(N))


REFUSED = """
import weakref
import cudago as cu
from cudago import _core
from cudago.testing import settle

device = cu.Device()
stream = device.create_stream()
x = device.allocate(4, stream=stream)

def filling(value):
    graph = cu.Graph()
    graph.memset(x, value)
    return graph

class Source(bytearray):
    pass

def copying(source):
    graph = cu.Graph()
    graph.memcpy(x, source)
    return graph

graph, event = cu.Graph(), device.create_event()
node = graph.embed(copying(Source(b"aaaa")), name="inner").record(event, name="record")
step = graph.instantiate()
for call, at, new in (
    ("cuGraphNodeSetParams", graph["inner"], copying),
    ("cuGraphExecChildGraphNodeSetParams", step["inner"], copying),
    ("cuGraphEventRecordNodeSetEvent", graph["record"], None),
    ("cuGraphExecEventRecordNodeSetEvent", step["record"], None),
):
    it = Source(b"bbbb") if new else device.create_event()
    gone = weakref.ref(it)
    what = new(it) if new else it
    before = at.params and list(map(repr, vars(at.params).values()))
    _core._fail_next(call, 1, 999)
    try:
        at.update(what)
    except cu.CUDAError as e:
        print(e.operation, e.code)
    del it, what
    settle()
    print(gone() is None, (at.params and list(map(repr, vars(at.params).values()))) == before)
out = bytearray(4)
step.launch(stream)
x.copy_to(out, stream=stream)
stream.sync()
print(out)
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_refused_updates_change_nothing(script, driver):
    done = script(REFUSED, CUDAGO_SIM="faults=0")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "cuGraphNodeSetParams 999", "True True",
        "cuGraphExecChildGraphNodeSetParams 999", "True True",
        "cuGraphEventRecordNodeSetEvent 999", "True True",
        "cuGraphExecEventRecordNodeSetEvent 999", "True True",
        "bytearray(b'aaaa')",
    ]  # fmt: skip


def test_the_watcher_knows_what_is_inside(outer, adding, device, stream, a):
    memory = device.allocate(4 * N, stream=stream)
    with (
        cu.debug.watch_pointers(),
        outer.instantiate() as step,
        adding(2, to=int(memory.handle)) as new,
    ):
        step["inner"].update(new)
        step.launch(stream)
        stream.sync()
        memory.close()
        device.memory_resource.trim()
        stream.sync()
        with pytest.raises(cu.CheckError, match="node 'inner/one': kernel add, parameter 0"):
            step.launch(stream)
        with adding(3) as good:
            step["inner"].update(good)
        assert launched(step, a, stream) == 3
