# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs as text."""

from __future__ import annotations

import pytest

import cudago as cu


@pytest.fixture
def graph(device):
    """An empty graph."""
    with cu.Graph(device) as graph:
        yield graph


@pytest.fixture
def a(device, stream):
    """64 bytes of device memory."""
    with device.allocate(64, stream=stream) as buffer:
        yield buffer


def lines(graph: cu.Graph) -> list[str]:
    """Return the lines of a graph's text after the first."""
    head, *rest = str(graph).split("\n")
    assert head == repr(graph)
    return rest


def test_a_row_stands_below_each_other(graph, a):
    graph.memset(a, 0, name="one").memset(a, 1, name="two").callback(print, name="three")
    assert lines(graph) == [
        "one: memset, 64 bytes of 0x0",
        "two: memset, 64 bytes of 0x1",
        "three: host",
    ]


def test_branches_are_indented_until_they_join(graph, a):
    first = graph.join(name="first")
    deep = first.memset(a[:4], 0).callback(print, name="deep")
    right = first.callback(print, name="right")
    graph.join(deep, right, name="both").callback(print, name="last")
    graph.join(right, name="late")
    assert lines(graph) == [
        "first: empty",
        "  memset_0: memset, 4 bytes of 0x0",
        "  deep: host",
        "  right: host",
        "both: empty, after deep, right",
        "last: host",
        "    late: empty, after right",
    ]


def test_what_waits_for_nothing_says_so(graph):
    graph.join(name="one")
    graph.join(name="two")
    assert lines(graph) == ["one: empty", "two: empty, at once"]


def test_graphs_inside_of_nodes(graph, a):
    node = graph.if_else(graph.condition(), name="which")
    node.bodies[0].memset(a, 1, name="yes")
    node.bodies[1].memset(a, 2, name="no")
    node.while_loop(graph.condition(), name="loop").body.memset(a, 3, name="again")
    assert lines(graph) == [
        "which: conditional, if",
        "  [0]:",
        "    yes: memset, 64 bytes of 0x1",
        "  [1]:",
        "    no: memset, 64 bytes of 0x2",
        "loop: conditional, while",
        "  inside:",
        "    again: memset, 64 bytes of 0x3",
    ]


def test_a_large_graph_is_cut(graph):
    graph.join(*(graph.join() for _ in range(500)))
    assert len(lines(graph)) == 201
    assert lines(graph)[-1] == "… and more: see nodes, to_svg() and to_dot()"


def test_a_node_that_waits_for_many_names_some(graph):
    graph.join(*(graph.join() for _ in range(100)), name="all")
    assert lines(graph)[-1] == (
        "all: empty, after empty_0, empty_1, empty_2, empty_3, empty_4, empty_5 and 94 more"
    )


def test_names_with_lines(graph):
    graph.join(name="a\nb\nempty")
    assert lines(graph)[0].startswith("a b")


def test_a_graph_that_cannot_be_read(graph, stream):
    graph.close()
    assert str(graph) == "<cudago.Graph: closed>"
    with stream.capture() as captured:
        assert str(captured) == "<cudago.Graph: capturing>"
    assert str(captured) == "<cudago.Graph of 0 nodes>"
