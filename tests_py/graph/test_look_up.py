# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Queries of graphs and executables: nodes by name, edges, and what they retain."""

from __future__ import annotations

import gc
import sys

import pytest

import cudago as cu
from cudago import _core
from cudago.testing import settle


@pytest.fixture
def x(device, stream):
    """Four bytes."""
    with device.allocate(4, stream=stream) as buffer:
        yield buffer


def names(of) -> list[str]:
    return [node.name for node in of.nodes]


def missing(of, name) -> str:
    """Return the message of the KeyError that the look-up raises."""
    with pytest.raises(KeyError) as caught:
        of[name]
    return caught.value.args[0]


# --- names ----------------------------------------------------------------------------------------


def test_keys_are_completed(graph, device, x):
    assert graph._ipython_key_completions_() == []
    graph.memset(x, 0, name="zero").memcpy(x, b"abcd")
    step = graph.instantiate()
    for of in (graph, step):
        assert of._ipython_key_completions_() == ["zero", "memcpy_0"]
        of.close()
        assert of._ipython_key_completions_() == []


def test_keys_of_a_capture_are_not_completed(device, stream, x):
    with stream.capture() as captured:
        x.fill(7, stream=stream)
        assert captured._ipython_key_completions_() == []
    assert captured._ipython_key_completions_() == ["memset_0"]


def test_nodes_are_found_by_name(graph, x):
    made = [graph.memset(x, 0, name="zero"), graph.join(), graph.callback(print, name="tell")]
    made.append(made[0].memcpy(x, b"abcd"))
    assert names(graph) == ["zero", "empty_0", "tell", "memcpy_0"]
    kinds = ["memset", "empty", "host", "memcpy"]
    for node, name, kind in zip(made, names(graph), kinds, strict=True):
        assert graph[name] == node
        assert hash(graph[name]) == hash(node)
        for same in (node, graph[name], graph.nodes[names(graph).index(name)]):
            assert (same.name, same.kind, same.bodies) == (name, kind, ())
    with graph.instantiate() as step:
        assert names(step) == names(graph)
        for node in made:
            found = step[node.name]
            assert (found.name, found.kind, found.exec) == (node.name, node.kind, step)


def test_a_name_that_is_not_there(graph, x):
    assert missing(graph, "a") == "no node is called 'a'; there are none"
    with graph.instantiate() as step:
        assert missing(step, "a") == "no node is called 'a'; there are none"
    graph.memset(x, 0, name="b")
    graph.memset(x, 0, name="c")
    with graph.instantiate() as step:
        for of in graph, step:
            assert missing(of, "a") == "no node is called 'a'; there are b, c"


def said(key):
    return "no node is called" if isinstance(key, str) else "nodes are found by name, not by"


@pytest.mark.parametrize(
    "key", [0, -1, None, b"b", ("b",), slice(1), 1.5, "\ud800", "", "b\0", "B"]
)
def test_what_is_no_name(graph, x, key):
    graph.memset(x, 0, name="b")
    with graph.instantiate() as step:
        for of in graph, step:
            assert missing(of, key) == f"{said(key)} {key!r}; there are b"


class Name(str):
    """A subclass of str."""

    __slots__ = ()


ODD = ["a\x1fb\x1e", "nul\0inside", "Grüße 🚀", " ", "a/b[0]", "\n", '"', Name("own"), "x" * 1000]


def test_any_text_is_a_name(graph, x):
    made = [graph.memset(x, 0, name=name) for name in ODD]
    assert names(graph) == ODD
    assert [graph[name] for name in ODD] == made
    with graph.instantiate() as step:
        assert names(step) == ODD
        assert [step[name].name for name in ODD] == ODD
        assert (
            [kept.node for kept in step.retained] == [kept.node for kept in graph.retained] == ODD
        )
    assert graph.to_dot().count("label=") == len(ODD)


def test_names_that_came_after_the_executable(graph, x):
    graph.memset(x, 0, name="before")
    with graph.instantiate() as step:
        after = graph.memset(x, 1, name="after")
        assert graph["after"] == after
        assert missing(step, "after") == "no node is called 'after'; there are before"
        with graph.instantiate() as second:
            assert names(second) == ["before", "after"]
        assert names(step) == ["before"]
        graph.close()
        assert step["before"].kind == "memset"


def test_a_refused_name_is_free(graph, x):
    with pytest.raises(ValueError, match="does not divide"):
        graph.memset(x[:3], b"ab", name="a")
    with pytest.raises(cu.OutOfMemoryError):
        graph.allocate(1 << 60, name="a")
    assert missing(graph, "a") == "no node is called 'a'; there are none"
    node = graph.memset(x, 0, name="a")
    with pytest.raises(ValueError, match="must be unique in the graph"):
        graph.join(name="a")
    assert graph["a"] == node
    assert len(graph.nodes) == 1


def test_names_in_a_clone(graph, x):
    first = graph.memset(x, 0, name="a")
    clone = graph.clone()
    first.memset(x, 1, name="b")
    own = clone["a"].memset(x, 2, name="c")
    assert (names(graph), names(clone)) == (["a", "b"], ["a", "c"])
    assert clone["a"] != graph["a"]
    assert (clone["c"], own.dependencies, clone["a"].dependents) == (own, (clone["a"],), (own,))
    assert missing(graph, "c") == "no node is called 'c'; there are a, b"
    graph.close()
    assert clone["a"].name == "a"


def test_names_in_bodies(graph, x):
    choose = graph.if_else(graph.condition(default=1), name="choose")
    yes, no = choose.bodies
    yes.memset(x, 1, name="same")
    inner = no.while_loop(graph.condition(default=0), name="loop")
    inner.body.memset(x, 2, name="same")
    assert missing(graph, "same") == "no node is called 'same'; there are choose"
    assert (names(yes), names(no), names(inner.body)) == (["same"], ["loop"], ["same"])
    assert yes["same"] != inner.body["same"]
    with graph.instantiate() as step:
        assert names(step) == ["choose", "choose[0]/same", "choose[1]/loop", "choose[1]/loop/same"]
        step["choose[1]/loop/same"].update(x, 3)
        assert missing(step, "same").startswith("no node is called 'same'; there are choose, ")
    assert [r.node for r in choose.retained] == ["choose[0]/same", "choose[1]/loop/same"]
    assert [r.node for r in inner.retained] == ["loop/same"]


def test_two_nodes_with_one_name(graph, x, device, stream):
    """One of the graph itself, and one of a body."""
    loop = graph.if_then(graph.condition(default=1), name="a")
    loop.body.memset(x, 1, name="b")
    with device.allocate(8, stream=stream) as y:
        graph.memset(y, 2, name="a/b")
        with graph.instantiate() as step:
            assert names(step) == ["a", "a/b", "a/b"]
            for _ in range(2):
                with pytest.raises(KeyError, match="several nodes are called 'a/b': take one of"):
                    step["a/b"]
            own, inner = (n for n in step.nodes if n.name == "a/b")
            assert {own._id, inner._id} == {graph["a/b"]._id, loop.body["b"]._id}
        assert [(r.node, r.object) for r in loop.retained] == [("a/b", x)]
        assert [(r.node, r.object) for r in graph["a/b"].retained] == [("a/b", y)]


def test_names_in_embedded_graphs(graph, x):
    with cu.Graph() as inner:
        inner.memset(x, 0, name="a").memset(x, 1, name="b")
        outer = graph.embed(inner, name="two")
    assert (names(graph), outer.kind) == (["two"], "child graph")
    assert missing(graph, "two/a") == "no node is called 'two/a'; there are two"
    inside = ["two/a", "two/b"]
    assert [r.node for r in graph.retained] == [r.node for r in outer.retained] == inside
    with graph.instantiate() as step:
        assert missing(step, "two/a") == "no node is called 'two/a'; there are two"
        assert [r.node for r in step.retained] == inside


def test_names_that_a_capture_makes_up(x, stream):
    with stream.capture() as graph:
        assert repr(graph) == "<cudago.Graph: capturing>"
        for look in (lambda: graph["memset_0"], lambda: graph.nodes, lambda: graph.edges):
            with pytest.raises(ValueError, match="still being captured"):
                look()
        for value in range(3):
            x.fill(value, stream=stream)
    assert names(graph) == ["memset_0", "memset_1", "memset_2"]
    assert graph["memset_1"].dependencies == (graph["memset_0"],)
    assert graph["memset_1"].dependents == (graph["memset_2"],)
    with graph.instantiate() as step:
        graph.close()
        step["memset_1"].update(x, 7)
        assert names(step) == ["memset_0", "memset_1", "memset_2"]


def test_closed(x):
    graph = cu.Graph()
    asked, unasked = graph.memset(x, 0, name="a"), graph.memset(x, 0)
    assert asked.name == "a"
    step = graph.instantiate()
    graph.close()
    for node in asked, unasked:
        for ask in "name", "kind", "bodies", "body", "dependencies", "dependents", "retained":
            with pytest.raises(cu.ClosedError, match="graph is closed"):
                getattr(node, ask)
    found = step["a"]
    step.close()
    for look in (lambda: step["a"], lambda: step["b"], lambda: step[1], lambda: graph["a"]):
        with pytest.raises(cu.ClosedError, match="is closed"):
            look()
    assert (found.name, found.kind) == ("a", "memset")


def test_a_node_of_another_graph(graph, x):
    other = graph.clone()
    for look in other._node_row, other._dependencies, other._dependents, other._retained:
        with pytest.raises(ValueError, match="node of another graph"):
            look(graph.memset(x, 0)._id)


def test_many_names_are_not_all_in_a_message(graph, x):
    graph.memset(x, 0, name="n" * 1000)
    for _ in range(30):
        graph.join()
    first = ", ".join(["n" * 80 + "…", *(f"empty_{i}" for i in range(19))])
    step = graph.instantiate()
    for of in graph, step:
        assert missing(of, "a") == f"no node is called 'a'; there are {first} and 11 more"
        assert len(missing(of, "a" * 10_000)) < 1000
    with pytest.raises(TypeError, match=r"there are s0, .*s19 and 80 more$"):
        for i in range(100):
            graph.memset(cu.slot(f"s{i}", x), 0)
        graph.instantiate().bind(a=x)


def test_a_name_that_two_nodes_have_is_no_look_up(graph, x):
    inside = graph.if_then(graph.condition(1), name="a").body
    inside.memset(x, 1, name="b")
    graph.memset(x, 2, name="a/b")
    step = graph.instantiate()
    assert "a/b" in step
    for _ in range(2):
        assert missing(step, "a/b") == "several nodes are called 'a/b': take one of step.nodes"


def test_nodes_in_graphs(graph, device, stream, x):
    node, gone = graph.memset(x, 0), graph.memset(x, 0)
    body = graph.if_then(graph.condition(1)).body
    inside = body.memset(x, 1)
    graph.remove(gone)
    with cu.Graph(device) as other:
        found = [n in of for of in (graph, body, other) for n in (node, gone, inside)]
        assert found == [True, False, False, False, False, True, False, False, False]
        with stream.capture() as captured:
            x.fill(1, stream=stream)
            with pytest.raises(ValueError, match="still being captured"):
                _ = node in captured
        assert captured.nodes[0] in captured
    for of in other, captured:
        of.close()
        with pytest.raises(cu.ClosedError, match="graph is closed"):
            _ = node in of


# --- work -----------------------------------------------------------------------------------------


def calls(function) -> int:
    """Return how many calls of Python and C a function makes."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def work(n: int, x) -> tuple[list[int], list[int]]:
    """Return the calls of what concerns one node of n, and of what concerns all."""
    with cu.Graph() as graph:
        last = graph
        hosts = [bytearray(4) for _ in range(n)]
        for i, host in enumerate(hosts):
            last = last.memcpy(x, host, name=f"n{i}").memset(x, 0, name=f"a/{i}")
        with graph.instantiate() as step:
            one = [
                lambda: graph["n3"], lambda: step["n3"], lambda: step["n3"].update(src=hosts[0]),
                lambda: graph["n3"].name, lambda: graph["n3"].kind, lambda: graph["n3"].retained,
                lambda: [*graph["n3"].dependencies], lambda: [*graph["n3"].dependents],
                lambda: repr(graph), lambda: repr(step), lambda: repr(graph["n3"]),
                lambda: step["a/3"], lambda: "a/3" in step, lambda: graph["n3"] in graph,
            ]  # fmt: skip
            every = [
                lambda: graph.nodes, lambda: names(graph), lambda: graph.edges,
                lambda: graph.retained, lambda: step.nodes, lambda: step.retained, graph.to_dot,
                lambda: [node.retained for node in graph.nodes],
                lambda: [(*node.dependencies, *node.dependents) for node in graph.nodes],
            ]  # fmt: skip
            return [calls(f) for f in one], [calls(f) for f in every]


def test_the_work_of_a_look_up(x, driver):
    """Looking up a node costs the same in any graph, so the cost of all is linear."""
    (few_one, few_all), (many_one, many_all) = work(10, x), work(200, x)
    assert many_one == few_one
    for few, many in zip(few_all, many_all, strict=True):
        assert many <= 20 * few


def test_the_work_of_one_edge_of_many(driver):
    def edges(n: int) -> list[int]:
        with cu.Graph() as graph:
            ends = [graph.join() for _ in range(n)]
            last, more = graph.join(*ends), graph.join()
            of = last.dependencies
            changes = [
                lambda: ends[3] in of, lambda: more in of, lambda: of.add(more),
                lambda: of.add(more), lambda: of.remove(more), lambda: of.discard(more),
            ]  # fmt: skip
            return [calls(f) for f in changes]

    assert edges(200) == edges(10)


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["graph", "executable"])
def test_an_answer_survives_code_that_runs_while_it_is_made(which, device, x):
    """Making the answer may run a garbage collection, which may run anybody's code."""
    graph = cu.Graph(device)
    for i in range(200):
        graph.memcpy(x, bytearray(b"%04d" % i), name=f"n{i}")
    step = graph.instantiate()
    closed = []

    # Since 3.12 collections come between bytecodes, also of what has not asked yet.
    early = {"retained"} if sys.version_info >= (3, 12) else set()
    early.add(sys._getframe().f_code.co_name)

    def close(phase, info):
        if sys._getframe(1).f_code.co_name in early:
            return
        graph.close()
        step.close()
        _core._drain()
        closed.append(phase)

    threshold = gc.get_threshold()
    gc.collect()
    gc.callbacks.append(close)
    gc.set_threshold(1)
    try:
        kept = (graph if which == "graph" else step).retained
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(close)
    assert closed
    settle()
    sources = [bytes(r.object) for r in kept if r.operand == "src"]
    assert sources == [b"%04d" % i for i in range(200)]


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {"valeu": 1}, "got an unexpected keyword argument 'valeu'"),
        ((b"abcd", 1, 2), {}, "too many positional arguments"),
    ],
)
def test_update_says_what_the_node_takes(graph, x, args, kwargs, text):
    graph.memset(x, 0, name="zero")
    with graph.instantiate() as step, pytest.raises(TypeError) as caught:
        step["zero"].update(*args, **kwargs)
    assert str(caught.value) == f"update of a memset node takes dst, value: {text}"


def test_a_node_that_was_looked_up_before(graph, a):
    graph.memset(a, 1, name="one").memset(a, 2, name="two")
    step = graph.instantiate()
    for _ in range(3):
        assert [(step[name].name, step[name]._id) for name in ("one", "two")] == [
            (node.name, node._id) for node in step.nodes
        ]
    for wrong in ("three", 1, None, b"one"):
        with pytest.raises(KeyError, match="there are one, two"):
            step[wrong]
    for of in (graph, step):
        with pytest.raises(KeyError, match=r"nodes are found by name, not by <cudago.Node 'one'"):
            of[graph["one"]]
    step.close()
    with pytest.raises(cu.ClosedError):
        step["one"]
