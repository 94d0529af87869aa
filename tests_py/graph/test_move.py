# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that become nodes of others, instead of copies of theirs."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import numpy as np
import pytest

import cudago as cu

from .operand import CONFIG, N, full, numbers

pytestmark = pytest.mark.usefixtures("moves")


@pytest.fixture
def moves(device):
    """Skip where the driver can only copy."""
    if cu.driver_version() < (12, 9):
        pytest.skip("moves need a driver of CUDA 12.9")


@pytest.fixture
def two(device):
    """Two graphs, which are closed with the test."""
    with cu.Graph(device) as inner, cu.Graph(device) as outer:
        yield inner, outer


def test_the_graph_itself_becomes_the_node(stream, kernels, a, two):
    inner, outer = two
    inner.memset(a, 0, name="clear").launch(CONFIG, kernels["add"], a, 5, N, name="add")
    node = outer.embed(inner, name="sub", move=True)
    assert node.kind == "child graph"
    assert [n.name for n in node.params.graph.nodes] == ["clear", "add"]
    node.launch(CONFIG, kernels["add"], a, 2, N)
    with outer.instantiate() as step:
        step.launch(stream)
        step.launch(stream)
        assert numbers(a, stream) == 7


def test_the_other_object_is_closed_and_says_why(a, two):
    inner, outer = two
    node = inner.memset(a, 0, name="clear")
    outer.embed(inner, move=True)
    assert inner.is_closed
    assert repr(inner) == "<cudago.Graph: closed>"
    for use in (
        lambda: inner.memset(a, 1),
        lambda: inner.instantiate(),
        lambda: inner.clone(),
        lambda: inner["clear"],
        lambda: node.update(a, 1),
        lambda: outer.embed(inner),
        lambda: outer.embed(inner, move=True),
        lambda: inner.handle,
    ):
        with pytest.raises(cu.ClosedError, match="was moved into another one"):
            use()
    inner.close()  # does nothing


def test_it_holds_what_the_graph_held_and_no_longer(device, stream, a):
    source = full(3)
    watch = weakref.ref(source)
    with cu.Graph(device) as inner, cu.Graph(device) as outer:
        inner.memcpy(a, source, name="up")
        node = outer.embed(inner, name="sub", move=True)
        del source
        gc.collect()
        assert [(r.node, r.operand) for r in outer.retained] == [
            ("sub/up", "src"),
            ("sub/up", "dst"),
        ]
        inner.close()
        del inner
        step = outer.instantiate()
        step.launch(stream)
        assert numbers(a, stream) == 3
        step.close()
        stream.sync()
        cu.testing.settle()
        assert watch() is not None
        outer.remove(node)
        cu.testing.settle()
        assert watch() is None


def test_a_cycle_through_a_moved_graph_is_collected(device):
    class Callback:
        def __call__(self) -> None: ...

    callback = Callback()
    watch = weakref.ref(callback)
    inner, outer = cu.Graph(device), cu.Graph(device)
    inner.callback(callback)
    callback.graph = outer
    outer.embed(inner, move=True)
    del inner, outer, callback
    gc.collect()
    cu.testing.settle()
    assert watch() is None


def test_memory_is_allocated_in_one_and_freed_in_the_other(stream, kernels, a, two):
    inner, outer = two
    memory = inner.allocate(4 * N, name="scratch")
    scratch = memory.buffer
    memory.memset(scratch, 0).launch(CONFIG, kernels["add"], scratch, 4, N)
    with pytest.raises(cu.UnsupportedError, match="allocates or frees memory"):
        outer.embed(inner)
    node = outer.embed(inner, name="sub", move=True)
    node.memcpy(a, scratch, name="out").free(scratch)
    with outer.instantiate() as step:
        for _ in range(3):
            a.fill(0, stream=stream)
            step.launch(stream)
            assert numbers(a, stream) == 4
    with pytest.raises(cu.UnsupportedError, match="allocates or frees memory"):
        outer.clone()
    scratch.close()


def test_memory_outlives_the_graph_that_it_was_moved_into(device, stream, kernels):
    with cu.Graph(device) as inner, cu.Graph(device) as outer:
        memory = inner.allocate(4 * N)
        left = memory.buffer
        memory.memset(left, 0).launch(CONFIG, kernels["add"], left, 6, N)
        outer.embed(inner, move=True)
        with outer.instantiate() as step:
            step.launch(stream)
            assert numbers(left, stream) == 6
    assert numbers(left, stream) == 6
    left.close()


def test_what_a_capture_allocates_can_be_moved(device, stream, a):
    with stream.capture() as captured:
        scratch = device.allocate(4 * N, stream=stream)
        scratch.copy_from(full(8), stream=stream)
        a.copy_from(scratch, stream=stream)
        scratch.close()
    with cu.Graph(device) as outer:
        outer.embed(captured, move=True)
        with outer.instantiate() as step:
            step.launch(stream)
            step.launch(stream)
            assert numbers(a, stream) == 8


def test_moves_go_over_several_levels(device, stream, a):
    graphs = [cu.Graph(device) for _ in range(4)]
    graphs[0].memset(a, np.int32(9), name="fill")
    for inner, outer in pairwise(graphs):
        outer.embed(inner, name="in", move=True)
    assert [g.is_closed for g in graphs] == [True, True, True, False]
    assert [r.node for r in graphs[-1].retained] == ["in/in/in/fill"]
    with graphs[-1] as outer, outer.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 9


def test_updates_as_a_whole_reach_into_it(device, stream, a):
    def built(value: int, move: bool) -> cu.Graph:
        with cu.Graph(device) as inner:
            inner.memset(a, np.int32(value))
            outer = cu.Graph(device)
            outer.embed(inner, move=move)
        return outer

    graphs = built(1, True), built(2, False), built(3, True)
    with graphs[0].instantiate() as step:
        for graph, value in zip((*graphs[1:], graphs[0]), (2, 3, 1), strict=True):
            step.update(graph)
            step.launch(stream)
            assert numbers(a, stream) == value
    for graph in graphs:
        graph.close()


def test_a_refused_move_changes_nothing(device, stream, a, two):
    inner, outer = two
    fill = inner.memset(a, np.int32(5), name="fill")
    with inner.instantiate(), pytest.raises(ValueError, match="1 open executables"):
        outer.embed(inner, move=True)
    with pytest.raises(ValueError, match="is the one that it would be moved into"):
        inner.embed(inner, move=True)
    outer.embed(inner, name="taken")
    with pytest.raises(ValueError, match="already names"):
        outer.embed(inner, name="taken", move=True)
    with pytest.raises(ValueError, match="another graph"):
        outer._add_child((fill._id,), inner, None, True)
    with cu.Graph(device) as conditional:
        conditional.if_then(conditional.condition(default=1))
        with pytest.raises(cu.UnsupportedError, match="has conditional nodes"):
            outer.embed(conditional, move=True)
        assert not conditional.is_closed
    with cu.Graph(device) as exported:
        assert exported.handle
        with pytest.raises(ValueError, match="other code"):
            outer.embed(exported, move=True)
    view = outer["taken"].params.graph
    with pytest.raises(ValueError, match="embedded"):
        outer.embed(view, move=True)
    assert not inner.is_closed
    with inner.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 5


def test_views_of_what_is_moved_end(device, a):
    with cu.Graph(device) as inmost, cu.Graph(device) as inner, cu.Graph(device) as outer:
        inmost.memset(a, 1)
        view = inner.embed(inmost).params.graph
        outer.embed(inner, name="sub", move=True)
        with pytest.raises(cu.ClosedError):
            view.nodes  # noqa: B018
        again = outer["sub"].params.graph.nodes[0].params.graph
        assert [n.kind for n in again.nodes] == ["memset"]
