# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graph.retain: what a graph as a whole keeps."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle


class Communicator:
    """Stands for an object of another library."""


def made() -> tuple[Communicator, weakref.ref[Communicator]]:
    one = Communicator()
    return one, weakref.ref(one)


def gone(*seen: weakref.ref[Communicator]) -> bool:
    gc.collect()
    settle()
    return not any(r() for r in seen)


def empty_capture(stream: cu.Stream, *objects: object) -> cu.Graph:
    with stream.capture() as graph:
        graph.retain(*objects)
    return graph


@pytest.mark.parametrize("how", ["built", "captured", "after the capture"])
def test_objects_live_as_long_as_the_graph(device, stream, how):
    one, seen = made()
    if how == "captured":
        graph = empty_capture(stream, one)
    else:
        graph = cu.Graph(device) if how == "built" else empty_capture(stream)
        graph.retain(one)
    del one
    assert not gone(seen)
    (kept,) = graph.retained
    assert (kept.node, kept.operand, kept.reason) == ("", "object", "retain")
    assert kept.object is seen()
    del kept
    graph.close()
    assert gone(seen)


def test_whatever_is_made_of_the_graph_keeps_them(device, stream):
    one, seen = made()
    graph = cu.Graph(device)
    graph.callback(lambda: None)
    before = graph.instantiate()
    graph.retain(one)
    del one
    clone, parent, step = graph.clone(), cu.Graph(device), graph.instantiate()
    parent.embed(graph)
    outer = parent.instantiate()
    assert before.retained[0].operand == "callback" and len(before.retained) == 1
    for last in (graph, clone, parent, step):
        assert not gone(seen)
        last.close()
    assert not gone(seen)
    outer.launch(stream)
    outer.close()
    stream.sync()
    assert gone(seen)
    before.close()


def test_an_update_of_the_whole_graph_takes_them_over(device, stream):
    (one, first), (two, second) = made(), made()
    graph, other = cu.Graph(device), cu.Graph(device)
    for g, kept in ((graph, one), (other, two)):
        g.callback(lambda: None, name="same")
        g.retain(kept)
    del one, two, kept
    step = graph.instantiate()
    graph.close()
    assert not gone(first)
    step.update(other)
    assert gone(first)
    other.close()
    assert not gone(second)
    step.close()
    assert gone(second)


def test_memory_is_kept_and_not_its_wrapper(device, stream, kernels):
    x, y = device.allocate(64, stream=stream), cu.zeros((4, 4), "f4", stream=stream)
    host = bytearray(64)
    graph = cu.Graph(device)
    graph.retain(x, y.T, x.ptr + 16, host)
    sizes = [kept.nbytes for kept in graph.retained]
    assert sizes == [64, 64, 48, 64]
    x.close()
    y.close()
    with pytest.raises(BufferError):
        host.append(1)
    assert [kept.nbytes for kept in graph.retained] == sizes
    graph.close()
    settle()
    host.append(1)


def test_work_that_cudago_does_not_see(device, stream):
    """A library's work in a capture, on memory whose owner is gone."""
    host, out = np.arange(16, dtype="i4"), cu.pin(bytearray(64))
    source = cu.asarray(host, stream=stream)

    def library(address: int) -> None:
        theirs = cu.Buffer.from_handle(address, 64, owner=object(), stream=stream)
        out.copy_from(theirs, stream=stream)
        theirs.close()

    with stream.capture() as graph:
        library(source.handle)
        graph.retain(source)
    source.close()
    del source
    gc.collect()
    step = graph.instantiate()
    graph.close()
    others = [cu.full(16, 7, "i4", stream=stream) for _ in range(8)]
    for _ in range(2):
        step.launch(stream)
    stream.sync()
    assert (np.frombuffer(out, "i4") == host).all()
    step.close()
    for o in others:
        o.close()


def test_memory_of_the_capture_itself(device, stream):
    with stream.capture() as graph:
        part = device.allocate(64, stream=stream)
        part.fill(0, stream=stream)
        graph.retain(part)
        with pytest.raises(ValueError, match="capture"):
            cu.Graph(device).retain(part)
        part.close()
    step = graph.instantiate(auto_free=True)
    step.launch(stream)
    stream.sync()
    step.close()
    graph.close()


def test_a_cycle_through_the_graph_is_collected(device):
    one, seen = made()
    graph = cu.Graph(device)
    one.graph = graph
    graph.retain(one)
    del one, graph
    assert gone(seen)


@pytest.mark.parametrize("wrong", [None, 5, True, 1 << 70])
def test_what_keeps_nothing_alive_is_refused(device, wrong):
    one, seen = made()
    graph = cu.Graph(device)
    with pytest.raises(TypeError, match="neither None nor an address"):
        graph.retain(one, wrong)
    del one
    assert graph.retained == () and gone(seen)


def test_closed_graphs_and_objects(device, stream):
    one, seen = made()
    graph, x = cu.Graph(device), device.allocate(4, stream=stream)
    x.close()
    with pytest.raises(cu.ClosedError, match="buffer is closed"):
        graph.retain(one, x)
    view = cu.Graph(device).embed(graph).params.graph
    with pytest.raises(ValueError, match="cannot be changed"):
        view.retain(one)
    graph.retain()
    graph.close()
    with pytest.raises(cu.ClosedError, match="graph is closed"):
        graph.retain(one)
    del one
    assert gone(seen)


def test_bodies_keep_objects_too(device, stream):
    one, seen = made()
    graph = cu.Graph(device)
    node = graph.if_then(graph.condition(default=0))
    node.body.join()
    node.body.retain(one)
    del one
    step = graph.instantiate()
    graph.close()
    del node
    assert not gone(seen)
    step.close()
    assert gone(seen)


class Closing:
    """An exporter whose conversion closes the graph, or ends the capture."""

    def __init__(self, then):
        self.then = then

    def __dlpack__(self, **_):
        self.then()
        raise BufferError("there is no memory")

    def __dlpack_device__(self):
        return 1, 0


def test_a_conversion_that_closes_the_graph(device):
    graph = cu.Graph(device)
    with pytest.raises(cu.ClosedError, match="graph is closed"):
        graph.retain(Closing(graph.close))


def test_a_conversion_that_ends_the_capture(device, stream):
    block = stream.capture()
    graph = block.__enter__()
    wrapper = Closing(lambda: block.__exit__(None, None, None))
    graph.retain(wrapper)
    assert [kept.object for kept in graph.retained] == [wrapper]
    graph.close()
