# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Iteration over graphs."""

from __future__ import annotations

import random

import pytest

import cudago as cu


def test_nodes_come_after_those_that_they_wait_for(graph):
    late = graph.join(name="late")
    early = graph.join(name="early")
    middle = early.callback(print, name="middle")
    graph.add_edge(middle, late)
    assert [n.name for n in graph.nodes] == ["late", "early", "middle"]
    assert [n.name for n in graph] == ["early", "middle", "late"]
    assert list(graph) == [early, middle, late]
    graph.remove(middle)
    assert [n.name for n in graph] == ["late", "early"]


@pytest.mark.parametrize("seed", range(5))
def test_random_edges(graph, seed):
    rng = random.Random(seed)
    nodes = [graph.join() for _ in range(40)]
    rng.shuffle(nodes)
    for _ in range(100):
        a, b = sorted(rng.sample(range(40), 2))
        if nodes[a] not in nodes[b].dependencies:
            graph.add_edge(nodes[a], nodes[b])
    place = {node: i for i, node in enumerate(graph)}
    assert place.keys() == set(nodes)
    assert all(place[a] < place[b] for a, b in graph.edges)


def test_what_changes_meanwhile_does_not_matter(graph):
    first = graph.join()
    for node in graph:
        node.callback(print)
        graph.join()
    assert len(list(graph)) == 3
    assert next(iter(graph)) == first


def test_what_a_graph_has(device, graph):
    node = graph.join(name="one")
    with cu.Graph(device) as other:
        assert node in graph
        assert "one" in graph
        assert "two" not in graph
        assert None not in graph
        assert node not in other
    graph.remove(node)
    assert node not in graph
    assert "one" not in graph


def test_what_cannot_be_iterated_over(device, stream, graph):
    assert list(graph) == []
    body = graph.if_then(graph.condition(default=1)).body
    body.memset(device.allocate(4, stream=stream), 0, name="fill")
    assert [n.name for n in body] == ["fill"]
    graph.close()
    for use in (lambda: iter(graph), lambda: iter(body), lambda: "one" in graph):
        with pytest.raises(cu.ClosedError):
            use()
    with stream.capture() as captured, pytest.raises(ValueError, match="still being captured"):
        iter(captured)


def test_executables(device, stream, graph):
    late, early = graph.join(name="late"), graph.callback(print, name="early")
    graph.add_edge(early, late)
    body = early.if_then(graph.condition(), name="if").body
    body.memset(device.allocate(4, stream=stream), 0, name="fill")
    with cu.Graph(device) as another:
        another.join(name="late")
        other = another.instantiate()
    with graph.instantiate() as step, other:
        names = [n.name for n in step]
        assert names.index("early") < names.index("late")
        assert set(step) == set(step.nodes)
        assert all(node in step and node.name in step for node in step)
        assert "if/fill" in step
        for stranger in ("fill", "none", None, 5, late, other["late"]):
            assert stranger not in step
        node = step["late"]
    for use in (lambda: iter(step), lambda: "late" in step, lambda: node in step):
        with pytest.raises(cu.ClosedError):
            use()


def test_nodes_of_executables_are_equal(graph):
    for name in ("one", "two"):
        graph.join(name=name)
    with graph.instantiate() as step, graph.instantiate() as other:
        one, two = step.nodes
        assert one == step["one"]
        assert hash(one) == hash(step["one"])
        assert step.nodes.index(two) == 1
        assert {one: 1}[step["one"]] == 1
        assert one not in (two, other["one"], graph["one"], None)
