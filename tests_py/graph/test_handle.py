# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs by their handles: of other code, and for other code."""

from __future__ import annotations

import functools
import gc
import threading
import weakref

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle

from .operand import N


class Owner:
    """Stands for another library's graph: it owns a graph, and what that uses."""

    def __init__(self, device, x) -> None:
        self.graph = cu.Graph(device)
        self.graph.memset(x, 1).memset(x[:4], 2)
        self.handle = self.graph.handle

    def __del__(self) -> None:
        self.graph.close()


def read(x, stream):
    out = np.zeros(x.nbytes // 4, "i4")
    x.copy_to(out, stream=stream)
    stream.sync()
    return out.tolist()


def test_the_nodes_of_a_handle(device, a):
    owner = Owner(device, a)
    with cu.Graph.from_handle(owner.handle, owner=owner) as graph:
        assert [(n.name, n.kind, n.params) for n in graph.nodes] == [
            ("memset_0", "memset", None),
            ("memset_1", "memset", None),
        ]
        assert graph.edges == ((graph["memset_0"], graph["memset_1"]),)
        assert [(r.operand, r.object, r.reason) for r in graph.retained] == [
            ("owner", owner, "handle")
        ] + [("dst", r.object, "memset") for r in owner.graph.retained]
        assert graph.device == device
        assert graph.handle == owner.handle


@pytest.mark.parametrize("last", ["graph", "clone", "embedding", "executable", "launch"])
def test_the_owner_lives_as_long_as_what_was_made(device, stream, a, last):
    owner = Owner(device, a)
    alive = weakref.ref(owner)
    graph = cu.Graph.from_handle(owner.handle, device=device, owner=owner)
    del owner
    made = {"graph": graph}
    if last == "clone":
        made["clone"] = graph.clone()
    if last == "embedding":
        outer = cu.Graph(device)
        outer.embed(graph)
        made["embedding"] = outer
    if last in ("executable", "launch"):
        made["executable"] = graph.instantiate()
    gate = threading.Event()
    if last == "launch":
        stream.callback(gate.wait)
        made["executable"].launch(stream)
    del graph
    for name, thing in list(made.items()):
        assert alive() is not None
        if name != last:
            thing.close()
            del made[name], thing
    gc.collect()
    assert alive() is not None
    for thing in made.values():
        thing.close()
    made.clear()
    thing = outer = None
    gate.set()
    stream.sync()
    settle()
    gc.collect()
    assert alive() is None


def test_nodes_can_be_added_to_their_graph(device, stream, a):
    owner = Owner(device, a)
    with cu.Graph.from_handle(owner.handle, owner=owner) as graph:
        graph["memset_1"].memset(a[4:8], 3, name="mine")
        graph.remove(graph["memset_0"])
        with graph.instantiate() as step:
            step.launch(stream)
            assert read(a, stream) == [0x02020202, 0x03030303, *[0] * (N - 2)]


def test_a_graph_lives_while_one_of_both_does(device, stream, a):
    first = cu.Graph(device)
    first.memset(a, 1)
    second = cu.Graph.from_handle(first.handle)
    first.close()
    third = cu.Graph.from_handle(second.handle)
    second.close()
    with third, third.instantiate() as step:
        step.launch(stream)
        assert read(a, stream) == [0x01010101] * N


def test_what_is_no_handle(device):
    graph = cu.Graph(device)
    body = graph.if_then(graph.condition(default=1)).body
    with graph:
        for handle, error, message in (
            (0, ValueError, "must be a CUgraph, got 0"),
            (-1, OverflowError, "must be a CUgraph, got -1"),
            (1 << 64, OverflowError, "must be a CUgraph, got 18446744073709551616"),
            ("x", TypeError, "str"),
            (body.handle, ValueError, "graph in another"),
        ):
            with pytest.raises(error, match=message):
                cu.Graph.from_handle(handle)
    with pytest.raises(cu.ClosedError):
        _ = graph.handle


def test_a_number_that_is_no_graph(device):
    if cu.driver_name() != "sim":
        pytest.skip("a CUgraph is a pointer, which NVIDIA's driver may follow: nobody has tried")
    with pytest.raises(cu.CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        cu.Graph.from_handle(12345)


def test_the_handle_of_a_body_counts_for_the_graph(device):
    alive = weakref.ref(graph := cu.Graph(device))
    body = graph.if_then(graph.condition(default=1)).body
    func = functools.partial(id, device)
    kept = weakref.ref(func)
    graph.callback(func)
    assert body.handle not in (0, graph.handle)
    graph["host_0"].update(print)
    del func
    gc.collect()
    assert kept() is not None
    graph.close()
    settle()
    assert kept() is None
    del graph, body
    gc.collect()
    assert alive() is None


def test_an_exported_graph_holds_until_it_is_closed(device, stream, a):
    host = [np.full(N, i, "i4") for i in range(3)]
    alive = [weakref.ref(h) for h in host]
    graph = cu.Graph(device)
    node = graph.memcpy(a, host[0], name="up")
    gone = graph.memcpy(a, host[1])
    assert graph.handle == graph.handle != 0
    node.update(src=host[2])
    graph.remove(gone)
    host.clear()
    gc.collect()
    assert all(one() is not None for one in alive)
    graph.close()
    settle()
    gc.collect()
    assert not any(one() is not None for one in alive)


@pytest.mark.kept_for_good
def test_an_exported_graph_is_not_closed_by_dropping_it(device, stream, a):
    host = np.full(N, 7, "i4")
    alive = weakref.ref(host)
    graph = cu.Graph(device)
    graph.memcpy(a, host)
    handle = graph.handle
    del graph, host
    gc.collect()
    settle()
    assert alive() is not None
    with cu.Graph.from_handle(handle) as again, again.instantiate() as step:
        step.launch(stream)
        assert read(a, stream) == [7] * N
    # Nobody can close it any more but the exit.


@pytest.mark.kept_for_good
def test_a_cycle_through_an_exported_graph_stays(device):
    class Holder:
        pass

    holder = Holder()
    alive = weakref.ref(holder)
    holder.graph = cu.Graph(device)
    holder.graph.callback(functools.partial(id, holder))
    _ = holder.graph.handle
    del holder
    gc.collect()
    assert alive() is not None
    alive().graph.close()
    gc.collect()
    settle()
    assert alive() is None
