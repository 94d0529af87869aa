# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The order of nodes and of dependencies: files keep it, differences and updates name it."""

from __future__ import annotations

import pytest

import cudago as cu

from .operand import CONFIG, N
from .saving import again

__all__ = ["again"]  # a fixture


def fork_and_join(graph, a, stream, kernels):
    """A captured kernel that waits for two streams, the later one first."""
    with cu.Device().create_stream() as other, stream.capture() as captured:
        a[:4].fill(1, stream=stream)
        other.wait(stream)
        a[4:8].fill(2, stream=other)
        a[8:12].fill(3, stream=stream)
        other.wait(stream)
        stream.wait(other)
        cu.launch(stream, CONFIG, kernels["add"], a, 1, N)
    return captured


def join(graph, a, stream, kernels):
    x, y, z = (graph.memset(a, value) for value in range(3))
    graph.join(z, x, y).launch(CONFIG, kernels["add"], a, 1, N)


def edges_to_older_nodes(graph, a, stream, kernels):
    last, x, y, z = (graph.memset(a, value) for value in range(4))
    graph.add_edge(y, x)
    for start in (z, x, y):
        graph.add_edge(start, last)


def edges_to_newer_nodes(graph, a, stream, kernels):
    x, y, z = (graph.memset(a, value) for value in range(3))
    end = graph.join(y)
    for start in (z, x):
        graph.add_edge(start, end)


def older_after_newer(graph, a, stream, kernels):
    """An edge from a newer node comes first: none that follows can be made with the node."""
    x, end, z = graph.memset(a, 0), graph.join(), graph.memset(a, 2)
    graph.add_edge(z, end)
    graph.add_edge(x, end)


def inside(graph, a, stream, kernels):
    with cu.Graph() as inner:
        join(inner, a, stream, kernels)
        graph.embed(inner)
    join(graph.if_then(graph.condition(default=1)).body, a, stream, kernels)


@pytest.mark.parametrize(
    "build",
    [
        fork_and_join,
        join,
        edges_to_older_nodes,
        edges_to_newer_nodes,
        older_after_newer,
        inside,
    ],
)
def test_files_keep_the_order(graph, a, stream, kernels, again, build):
    graph = build(graph, a, stream, kernels) or graph
    step, clone, edges = graph.instantiate(), None, names(graph)
    if build is not inside:
        clone = graph.clone()
    loaded = again(graph)
    assert names(loaded) == edges
    step.update(loaded)
    step.launch(stream)
    stream.sync()
    if clone is not None:
        lines = [
            line for line in clone.diff(loaded).lines if "args" not in line and "dst" not in line
        ]
        assert not lines
        clone.close()
    step.close()


def names(graph):
    return [(start.name, end.name) for start, end in graph.edges]


# --- what says that the order differs


def test_an_order_of_dependencies_is_named(graph, a, kernels):
    x, y = graph.memset(a, 0, name="x"), graph.memset(a, 1, name="y")
    graph.join(x, y, name="both")
    step = graph.instantiate()
    with graph.clone() as other:
        other.remove_edge(other["x"], other["both"])
        other.add_edge(other["x"], other["both"])
        assert str(graph.diff(other)) == "~ order of edges to 'both': 'x', 'y' → 'y', 'x'"
        message = (
            'node "both" waits for "y", "x", and empty node "both" for "x", "y": '
            "dependencies must be added in the same order"
        )
        with pytest.raises(cu.GraphUpdateError, match=message) as caught:
            step.update(other)
        assert caught.value.node == "both"
        other.remove_edge(other["y"], other["both"])
        other.add_edge(other["y"], other["both"])
        assert not graph.diff(other)
        step.update(other)
    step.close()


def test_an_order_of_many_dependencies_is_named(graph):
    """A list of names is cut short: what differs may be after its end."""

    def build(*order):
        with cu.Graph() as made:
            nodes = [made.join(name=f"n{i}") for i in range(20)]
            made.join(*(nodes[i] for i in order), name="all")
            return made.clone()

    count = range(12)
    with build(*count) as one, build(*count[:10], 11, 10) as two, build(*count[:11]) as three:
        step = one.instantiate()
        assert str(one.diff(two)) == "~ order of edges to 'all': … 'n10', 'n11' → … 'n11', 'n10'"
        for other, message in (
            (
                two,
                r'12 nodes \(number 11: "n11"\), and .* for 12 nodes \(number 11: "n10"\): dep',
            ),
            (
                three,
                r'waits for 11 nodes, and empty node "all" for 12 nodes \(number 12: "n11"\): ',
            ),
        ):
            with pytest.raises(cu.GraphUpdateError, match=message):
                step.update(other)
        step.close()


@pytest.mark.parametrize("embedded", [False, True])
def test_an_order_of_nodes_is_named(device, embedded):
    def build(*order):
        with cu.Graph(device) as made:
            nodes = {name: made.join(name=name) for name in order}
            made.join(*(nodes[name] for name in "ca"), name="j")
            if not embedded:
                return made.clone()
            outer = cu.Graph(device)
            outer.embed(made, name="in")
            return outer

    path = "in/" if embedded else ""
    with build(*"abc") as one, build(*"bca") as other:
        step = one.instantiate()
        message = (
            f'node "{path}b" is in the place of empty node "a": '
            "nodes must be added in the same order"
        )
        with pytest.raises(cu.GraphUpdateError, match=message) as caught:
            step.update(other)
        assert caught.value.node == f"{path}b"
        what = "nodes in 'in/'" if embedded else "nodes"
        assert str(one.diff(other)) == f"~ order of {what}: 'a', 'b', 'c', 'j' → 'b', 'c', 'a', 'j'"
        step.close()


def test_nodes_of_one_graph_only_are_in_no_order(device):
    with cu.Graph(device) as one, cu.Graph(device) as other:
        for name in "abc":
            one.join(name=name)
        for name in "xacy":
            other.join(name=name)
        assert one.diff(other).lines == ("- empty node 'b'", "+ empty node 'x'", "+ empty node 'y'")


def test_removed_nodes_count_for_no_order(device, a):
    """What is inside another graph is compared by places, not by when it was added."""

    def build(removed):
        graph, inner = cu.Graph(device), cu.Graph(device)
        extra = [inner.join() for _ in range(removed)]
        x = inner.memset(a, 1, name="x")
        for node in extra:
            inner.remove(node)
        inner.join(x, name="y")
        with inner:
            graph.embed(inner)
        return graph

    with build(0) as one, build(2) as other:
        step = one.instantiate()
        step.update(other)
        step.close()
