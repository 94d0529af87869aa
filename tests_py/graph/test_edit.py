# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes and edges that are removed from graphs, and edges that are added."""

from __future__ import annotations

import weakref
from collections.abc import MutableSet

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


def names(of) -> list[str]:
    return [n.name for n in of.nodes]


def test_a_node_is_removed(graph, a, stream, kernels):
    one = graph.launch(CONFIG, kernels["add"], a, 1, N, name="one")
    ten = one.launch(CONFIG, kernels["add"], a, 10, N, name="ten")
    last = ten.launch(CONFIG, kernels["add"], a, 100, N, name="last")
    before = graph.instantiate()
    graph.remove(ten)
    assert (names(graph), graph.edges) == (["one", "last"], ())
    assert (one.dependents, last.dependencies) == ((), ())
    assert repr(graph) == "<cudago.Graph of 2 nodes>"
    graph.add_edge(one, last)
    assert graph.edges == ((one, last),)
    with graph.instantiate() as after, graph.clone() as clone, clone.instantiate() as same:
        assert names(after) == names(clone) == ["one", "last"]
        for step, total in ((after, 101), (same, 202), (before, 313)):
            step.launch(stream)
            assert numbers(a, stream) == total
    new = last.launch(CONFIG, kernels["add"], a, 10, N, name="ten")
    assert graph["ten"] == new != ten
    assert graph.memset(a, 0).name == "memset_0"
    before.close()


def test_a_removed_node_says_so(graph, a, stream, kernels):
    node = graph.memset(a, 1, name="fill")
    named = graph["fill"]
    rest = graph.join(node)
    step = graph.instantiate()
    graph.remove(node)
    for use in (
        lambda: node.name,
        lambda: named.name,
        lambda: named.kind,
        lambda: node.params,
        lambda: node.retained,
        lambda: node.dependencies,
        lambda: node.dependents,
        lambda: node.bodies,
        lambda: node.memset(a, 2),
        lambda: graph.join(rest, node),
        lambda: graph.add_edge(node, rest),
        lambda: graph.remove_edge(node, rest),
    ):
        with pytest.raises(cu.ClosedError, match="the node was removed from its graph"):
            use()
    assert repr(node) == repr(named) == "<cudago.Node: removed>"
    assert node.is_removed
    assert not rest.is_removed
    graph.remove(node)
    with cu.Graph(graph.device) as other, pytest.raises((cu.ClosedError, ValueError)):
        other.remove(node)
    with pytest.raises(KeyError, match="no node is called 'fill'; there are empty_0"):
        graph["fill"]
    for use in (lambda: step["fill"].update(a, 2), lambda: step["fill"].disable()):
        with pytest.raises(cu.ClosedError, match='memset node "fill" was removed from its graph'):
            use()
    assert (step["fill"].enabled, step["fill"].params.value) == (True, 1)
    step.launch(stream)
    assert numbers(a, stream) == 0x01010101
    step.close()
    assert len(graph.nodes) == 1


class Callback:
    def __call__(self):
        pass


def test_operands_are_released_when_nothing_can_touch_them(device, stream, pinned):
    def build():
        graph = cu.Graph(device)
        source = np.ones(N, "i4")
        return graph, graph.memcpy(pinned, source, name="up"), weakref.ref(source)

    graph, node, watch = build()
    graph.remove(node)
    settle()
    assert watch() is None
    graph.close()

    for holder in ("clone", "instantiate"):
        graph, node, watch = build()
        other = getattr(graph, holder)()
        graph.remove(node)
        settle()
        assert watch() is not None
        other.close()
        settle()
        assert watch() is None
        graph.close()

    graph = cu.Graph(device)
    callback = Callback()
    node, watch = graph.callback(callback), weakref.ref(callback)
    del callback
    with graph.instantiate() as step, hold(stream):
        step.launch(stream)
        graph.remove(node)
        step.close()
        cu._core._reaper_flush(20)
        assert watch() is not None
    stream.sync()
    settle()
    assert watch() is None
    graph.close()


def test_what_is_inside_a_node_is_removed_with_it(graph, device, a):
    source = np.ones(N, "i4")
    watch = weakref.ref(source)
    with cu.Graph(device) as inner:
        inner.memcpy(a, source, name="up")
        node = graph.embed(inner)
    del source
    view = node.params.graph
    condition = graph.condition(0)
    branch = graph.if_then(condition)
    body, fill = branch.body, branch.body.memset(a, 1)
    graph.remove(node)
    graph.remove(branch)
    settle()
    assert watch() is None
    for use in (
        lambda: view.nodes,
        lambda: body.nodes,
        lambda: body.memset(a, 2),
        lambda: fill.params,
        lambda: branch.bodies,
    ):
        with pytest.raises(cu.ClosedError):
            use()
    assert (graph.nodes, graph.retained) == ((), ())
    graph.if_then(condition).body.memset(a, 3)
    graph.instantiate().close()


def test_edges(graph, a):
    nodes = [graph.callback(print, name=name) for name in "abcd"]
    a, b, c, d = nodes
    graph.add_edge(a, b)
    graph.add_edge(c, b)
    graph.add_edge(b, d)
    assert graph.edges == ((a, b), (c, b), (b, d))
    for edge, error, message in (
        ((a, b), ValueError, 'edge must be new, and host node "b" already waits for host node "a"'),
        ((d, c), ValueError, "edge must not close a cycle: c → b → d → c"),
        ((a, a), ValueError, "edge must not close a cycle: a → a"),
        ((a, 3), TypeError, "end must be a Node, not int"),
        ((None, a), TypeError, "start must be a Node, not NoneType"),
    ):
        with pytest.raises(error, match=message):
            graph.add_edge(*edge)
    with pytest.raises(ValueError, match='must exist, and host node "d" does not wait for'):
        graph.remove_edge(a, d)
    graph.remove_edge(b, d)
    graph.add_edge(d, c)
    assert graph.edges == ((a, b), (c, b), (d, c))
    with cu.Graph() as other, pytest.raises(ValueError, match="a node of another graph"):
        graph.add_edge(a, other.join())
    with pytest.raises(TypeError, match="node must be a Node, not str"):
        graph.remove("a")
    graph.instantiate().close()
    graph.close()
    with pytest.raises(cu.ClosedError):
        graph.remove_edge(a, b)


def test_edges_order_the_work(graph, a, stream, kernels):
    add = graph.launch(CONFIG, kernels["add"], a, 3, N)
    times = graph.launch(CONFIG, kernels["times"], a, 5, N)
    graph.add_edge(times, add)  # from the newer node to the older
    with graph.instantiate() as step:
        step.launch(stream)
        step.launch(stream)
        assert numbers(a, stream) == 18


def test_graphs_that_allocate_refuse_removals(device):
    with cu.Graph(device) as graph:
        own = graph.allocate(64)
        fill = own.memset(own.buffer, 0)
        for refused in (lambda: graph.remove(fill), lambda: graph.remove_edge(own, fill)):
            with pytest.raises(cu.CUDAError, match="nothing can be removed from it"):
                refused()
            assert graph.edges == ((own, fill),)
            assert fill.name == "memset_0"


def test_nodes_of_a_captured_graph(a, stream, kernels):
    with stream.capture() as graph:
        a.fill(0, stream=stream)
        cu.launch(stream, CONFIG, kernels["add"], a, 1, N)
        cu.launch(stream, CONFIG, kernels["add"], a, 10, N)
    middle = next(n for n in graph.nodes if n.kind == "kernel" and n.params.args[1] == 1)
    (before,), (after,) = middle.dependencies, middle.dependents
    graph.remove(middle)
    graph.add_edge(before, after)
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 10
    graph.close()


def test_what_is_inside_a_removed_node_is_closed(graph, a, device):
    node = graph.if_then(graph.condition(default=1))
    body = node.body
    deep = body.if_then(graph.condition(default=1)).body
    with cu.Graph(device) as inner:
        inner.memset(a, 1)
        embedded = cu.Graph(device)
        view = embedded.embed(inner).params.graph
    insides = body, deep, view
    assert not any(inside.is_closed for inside in insides)
    graph.remove(node)
    embedded.remove(embedded.nodes[0])
    assert all(inside.is_closed for inside in insides)
    assert repr(body) == "<cudago.Graph: closed>"


def test_nodes_are_the_same_objects(graph, a, kernels):
    first = graph.memset(a, 1, name="first")
    kernel = first.launch(CONFIG, kernels["add"], a, 1, N, name="kernel")
    copy = kernel.memcpy(a, np.zeros(N, "i4"), name="copy")
    end = graph.join(copy, name="end")
    nodes = [first, kernel, copy, end]
    for again in graph.nodes, [graph[n.name] for n in nodes], list(graph), list(graph.edges[0]):
        assert all(x is y for x, y in zip(again, nodes, strict=False))
    assert copy.dependencies[0] is kernel
    assert kernel.dependents[0] is copy
    for _ in range(3):
        graph.join()  # the one before is gone
    many = [graph.join(name=f"n{i}") for i in range(500)]
    assert all(graph[f"n{i}"] is node for i, node in enumerate(many))
    gone = weakref.ref(many.pop())
    assert gone() is None
    assert graph["n499"].name == "n499"
    body = graph.if_then(graph.condition(default=1), name="if").body
    inside = body.memset(a, 2)
    assert (graph["if"].body.nodes[0], inside.graph) == (inside, body)
    assert body.nodes[0] is inside


def test_a_node_that_is_ending_is_not_looked_up(graph):
    """Python puts the end of what is nested deeply off, and runs other code before it."""
    graph.join(name="node")
    found = []

    class Look:
        def __del__(self):
            found.append(graph["node"])

    for depth in range(60):
        nested = (Look(), graph["node"])
        for _ in range(depth):
            nested = (nested,)
        del nested
        node = found.pop()
        assert (node.name, graph["node"] is node) == ("node", True)
        del node


def test_neighbors_are_a_set(graph, a):
    one, two, three, four = (graph.join(name=name) for name in ("one", "two", "three", "four"))
    one.dependents |= {two, three}
    four.dependencies = [three, two]
    assert isinstance(four.dependencies, MutableSet)
    assert four.dependencies == {two, three} == set(four.dependencies)
    assert (four.dependencies == (three, two), four.dependencies == [two, three]) == (True, False)
    assert (len(four.dependencies), four.dependencies[0]) == (2, three)
    assert four.dependencies - {two} == {three}
    assert four.dependencies <= {one, two, three}
    assert four.dependencies.isdisjoint({one})
    assert repr(one.dependencies) == "{}"
    four.dependencies.add(two)
    four.dependencies.discard(one)
    assert len(graph.edges) == 4
    for wrong, error in ((four, ValueError), (5, TypeError), ("one", TypeError), (None, TypeError)):
        with pytest.raises(error):
            four.dependencies.add(wrong)
        with pytest.raises(error):
            one.dependents = [four, wrong] if wrong is not four else [one]
    with pytest.raises(ValueError, match="cycle"):
        one.dependencies.add(four)
    with cu.Graph(graph.device) as other, pytest.raises(ValueError, match="another graph"):
        four.dependencies.add(other.join())
    with pytest.raises(KeyError):
        four.dependencies.remove(one)
    assert {(x.name, y.name) for x, y in graph.edges} == {
        *(("one", "two"), ("one", "three"), ("three", "four"), ("two", "four")),
    }
    four.dependencies &= {two}
    two.dependencies ^= {one}
    one.dependents.clear()
    assert graph.edges == ((two, four),)
    seen = four.dependencies
    graph.remove(two)
    assert list(seen) == []
    graph.remove(four)
    with pytest.raises(cu.ClosedError):
        list(seen)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one.dependencies)


CHANGES = [
    lambda node, old, new: setattr(node, "dependencies", new),
    lambda node, old, new: node.dependencies.__ior__(new),
    lambda node, old, new: node.dependencies.__ixor__({*old, *new}),
    lambda node, old, new: node.dependencies.__iand__(new),
    lambda node, old, new: node.dependencies.__isub__(old),
    lambda node, old, new: node.dependencies.clear(),
    lambda node, old, new: setattr(node, "dependents", new),
    lambda node, old, new: node.dependents.__ixor__({node.dependents[0], *new}),
]


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
@pytest.mark.parametrize("change", CHANGES)
def test_an_exception_between_any_two_bytecodes_changes_all_edges_or_none(
    graph, change, at_each_bytecode
):
    """A signal handler can raise there."""
    old, new = [graph.join() for _ in range(3)], [graph.join() for _ in range(3)]
    node = graph.join()
    node.dependencies = old
    node.dependents = last = [graph.join() for _ in range(3)]
    before = {*graph.edges}
    with cu.Graph() as other:
        copy = [other.join() for _ in range(10)]
        index = {n: i for i, n in enumerate(graph.nodes)}
        for a, b in graph.edges:
            other.add_edge(copy[index[a]], copy[index[b]])
        back = {copy[i]: n for n, i in index.items()}
        change(copy[6], [copy[index[n]] for n in old], [copy[index[n]] for n in new])
        after = {(back[a], back[b]) for a, b in other.edges}
    assert before != after

    for point in at_each_bytecode(lambda: change(node, old, new)):
        edges = {*graph.edges}
        assert edges in (before, after), point
        if edges == after:
            node.dependencies = node.dependents = ()
            node.dependencies, node.dependents = old, last


def test_changes_of_neighbors_are_made_whole(graph, device):
    """Also of graphs that allocate, which give no edges back."""
    one, two, three = (graph.join(name=name) for name in ("one", "two", "three"))
    two.dependencies = [one]
    three.dependencies = [two]
    edges = graph.edges
    with cu.Graph(device) as other:
        foreign = other.join()
        for wrong, error in ((three, "cycle"), (foreign, "another graph"), (5, "of type Node")):
            for change in (
                lambda nodes: setattr(two, "dependencies", nodes),
                lambda nodes: two.dependencies.__ior__(nodes),
                lambda nodes: two.dependencies.__ixor__([one, *nodes]),
            ):
                with pytest.raises((TypeError, ValueError), match=error):
                    change([graph.join(), wrong])
                assert graph.edges == edges
    free = graph.join(name="free")
    own = graph.allocate(64)
    for new in [free, own], [free, three]:
        with pytest.raises((cu.CUDAError, ValueError), match=r"nothing can be removed|cycle"):
            two.dependencies = new
        assert graph.edges == edges
    with pytest.raises(ValueError, match="cycle"):
        two.dependencies |= [free, own, three]
    assert graph.edges == edges
    two.dependencies |= [free, own, free, one]
    assert two.dependencies == (one, free, own)
    two.dependencies -= {5, "x"}
    two.dependencies &= {one, free, own, 7}
    assert two.dependencies == (one, free, own)
