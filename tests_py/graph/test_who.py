# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Who keeps an object alive, and how two graphs differ."""

from __future__ import annotations

import sys
import threading
import time

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .operand import CONFIG, N

np = pytest.importorskip("numpy")


def places(obj) -> list[tuple]:
    return [(h.kind, h.holder, h.node, h.operand, h.reason) for h in cu.who_retains(obj)]


# --- who retains ----------------------------------------------------------------------------------


def test_graphs_and_executables(graph, device, a, kernels):
    source, func, event = np.zeros(N, "i4"), (lambda: None), device.create_event()
    assert places(source) == []
    up = graph.memcpy(a, source, name="up")
    up.launch(CONFIG, kernels["add"], a, 1, N, name="add").callback(func, name="say").record(event)
    with graph.instantiate() as step:
        assert places(source) == [
            ("graph", graph, "up", "src", "memcpy"),
            ("executable", step, "up", "src", "memcpy"),
        ]
        assert places(func)[1] == ("executable", step, "say", "callback", "host")
        assert [p[2:4] for p in places(a)] == 2 * [("up", "dst"), ("add", "parameter 0")]
        assert [p[2:4] for p in places(kernels["add"])] == 2 * [("add", "kernel")]
        assert [p[3] for p in places(event)] == ["event"] * 2
        step["up"].update(src=np.ones(N, "i4"))
        assert [h.holder for h in cu.who_retains(source)] == [graph]
        text = str(cu.who_retains(source)[0])
        assert text == "<cudago.Graph of 4 nodes> keeps it as src of node 'up'"
        assert cu.who_retains(source)[0].nbytes == 4 * N
    assert [p[0] for p in places(a)] == ["graph", "graph"]
    graph.close()
    assert places(a) == places(source) == places(kernels["add"]) == []
    event.close()


def test_memory_in_common(graph, a):
    source = np.zeros(2 * N, "i4")
    graph.memcpy(a, source[N:], name="up")
    assert len(places(source)) == len(places(source[N + 3 :])) == 1
    assert places(source[:N]) == []
    for view in (a[:4], a[8:], a.ptr + 4, a.view("i4", (4, 4))):
        assert [p[2:4] for p in places(view)] == [("up", "dst")]
    assert places(object()) == places(b"bytes") == []


def test_memory_with_gaps(graph, device, stream):
    """What a view reaches counts, from the lowest to the highest of its elements."""
    x, source = cu.zeros((10, 10), "i4", stream=stream), np.zeros((10, 10), "i4")
    graph.memcpy(x[5:], source[5:], name="up")
    for of, side in ((x, "dst"), (source, "src")):
        for view in (of[::2], of[::-1], of[:, 0], of[:, ::-1], of.T, of[5:, 3], of[::-5]):
            assert [p[2:4] for p in places(view)] == [("up", side)]
        for view in (of[:5], of[4::-1], of[:5, 0], of[:5].T, of[4::-2, ::-1], of[5:5]):
            assert places(view) == []


def test_graphs_inside(graph, device, a):
    with cu.Graph(device) as inner:
        inner.memset(a, 0, name="fill")
        node = graph.embed(inner, name="sub")
        assert {p[2] for p in places(a)} == {"fill", "sub/fill"}
    view = node.params.graph
    assert [p[1:3] for p in places(a)] == [(graph, "sub/fill")]
    assert len(view.nodes) == 1
    body = graph.while_loop(graph.condition(0), name="loop").body
    body.memset(a, 1, name="again")
    assert [p[1:3] for p in places(a)] == [(graph, "sub/fill"), (graph, "loop/again")]


def test_work_under_way(device, stream, a):
    source, other = cu.pin(np.zeros(N, "i4")), cu.pin(np.ones(N, "i4"))  # no launch waits for these
    with cu.Graph(device) as graph:
        graph.memcpy(a, source, name="up")
        step = graph.instantiate()
    with hold(stream):
        step.launch(stream)
        step["up"].update(src=other)
        (holder,) = cu.who_retains(source)
        assert (holder.kind, holder.holder, holder.reason) == ("work", None, "under way")
        assert str(holder) == "work under way keeps 64 bytes"
        step.close()
        assert [h.kind for h in cu.who_retains(source)] == ["work"]
    stream.sync()
    settle()
    assert cu.who_retains(source) == ()


def test_a_capture(stream, a):
    source = np.zeros(N, "i4")
    with stream.capture() as graph:
        a.copy_from(source, stream=stream)
        assert [h.kind for h in cu.who_retains(source)] == ["work"]
    assert [h.holder for h in cu.who_retains(source)] == [graph]
    graph.close()


# --- differences ----------------------------------------------------------------------------------


def test_no_difference(graph, a, kernels):
    graph.memset(a, 1).launch(CONFIG, kernels["add"], a, 1, N).memcpy(a, bytes(4 * N))
    with graph.clone() as clone:
        same = graph.diff(clone)
        assert not same
        assert (str(same), repr(same), same.lines) == ("no difference", "no difference", ())
    assert not graph.diff(graph)
    with pytest.raises(TypeError, match="other must be a Graph, not int"):
        graph.diff(3)
    with pytest.raises(cu.ClosedError):
        graph.diff(clone)


def test_each_difference_is_a_line(device, a, kernels):
    def build(value, grid, fill, last):
        graph = cu.Graph(device)
        config = cu.LaunchConfig(grid=grid, block=N)
        with cu.Graph(device) as inner:
            inner.memset(a, fill, name="fill")
            node = graph.embed(inner, name="sub")
        node = node.launch(config, kernels["add"], a, value, N, name="add")
        last(graph, node)
        return graph

    with (
        build(1, 1, 2, lambda g, n: n.memset(a, 0, name="end")) as one,
        build(3, 2, 4, lambda g, n: n.callback(print, name="end")) as two,
        build(1, 1, 2, lambda g, n: g.memset(a, 0, name="other")) as three,
    ):
        assert one.diff(two).lines == (
            "~ 'sub/fill': value 2 → 4",
            "~ 'add': config LaunchConfig(grid=(1, 1, 1), block=(16, 1, 1)) → "
            "LaunchConfig(grid=(2, 1, 1), block=(16, 1, 1))",
            "~ 'add': args[1] 1 → 3",
            "~ 'end': memset node → host node",
        )
        assert str(one.diff(three)).splitlines() == [
            "- memset node 'end'",
            "+ memset node 'other'",
            "- edge 'add' → 'end'",
        ]
        assert one.diff(three)


def test_objects_with_memory_differ_unless_they_are_the_same(device, a):
    one, other = np.zeros(N, "i4"), np.zeros(N, "i4")
    with cu.Graph(device) as first, cu.Graph(device) as second, cu.Graph(device) as third:
        for graph, source in ((first, one), (second, other), (third, one)):
            graph.memcpy(a, source, name="up")
        (line,) = first.diff(second).lines
        assert line.startswith("~ 'up': src array(")
        assert not first.diff(third)


def test_bodies_are_compared(device, a):
    def build(value, kind):
        graph = cu.Graph(device)
        add = graph.while_loop if kind == "while" else graph.if_then
        add(graph.condition(0), name="loop").body.memset(a, value, name="fill")
        return graph

    with build(1, "while") as one, build(2, "while") as two, build(1, "if") as three:
        assert one.diff(two).lines == ("~ 'loop/fill': value 1 → 2",)
        assert one.diff(three).lines == ("~ 'loop': while of 1 → if of 1",)


# --- other threads --------------------------------------------------------------------------------


@pytest.mark.parametrize("look", ["who_retains", "leaks", "memory_summary"])
def test_others_go_on_making_tuples(device, stream, look):
    """The collector's list of all objects refers to tuples that other threads are about to make."""
    buffer = device.allocate(64, stream=stream)
    graph = cu.Graph(device)
    graph.memset(buffer, 0)
    calls = {
        "who_retains": lambda: cu.who_retains(buffer),
        "leaks": cu.debug.leaks,
        "memory_summary": cu.memory_summary,
    }
    wrong, made, over = [], [], threading.Event()

    def slowly():
        for i in range(12):  # more than a tuple has room for at first
            time.sleep(0)
            yield i

    def make():
        while not over.is_set():
            try:
                made.append(len(tuple(slowly())))
            except SystemError as e:
                wrong.append(e)

    makers = [threading.Thread(target=make) for _ in range(2)]
    for maker in makers:
        maker.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # threads take turns while there is a list of all objects
    try:
        while len(made) + len(wrong) < 50:
            calls[look]()
    finally:
        sys.setswitchinterval(interval)
        over.set()
        for maker in makers:
            maker.join()
    assert wrong == []
    assert set(made) == {12}
    graph.close()


def test_proxies_are_not_asked(device, a):
    class Proxy:
        @property
        def __class__(self):
            raise AssertionError("asked")

    proxies = [Proxy()]
    assert cu.who_retains(a) == ()
    assert proxies


@pytest.mark.parametrize("value", [None, 5, True, 1.5, 1j, "a"])
def test_nothing_retains_a_value(value):
    with pytest.raises(TypeError, match=f"can keep, .*, not {type(value).__name__}$"):
        cu.who_retains(value)
