# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Cycles through host memory that graphs keep, and through streams, are collected."""

from __future__ import annotations

import array
import weakref

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")


class Host(np.ndarray):
    """An array that can have a graph."""


@pytest.fixture
def x(stream):
    with cu.zeros((4, 8), "i4", stream=stream) as tensor:
        yield tensor


def captured(work):
    def build(x, host, stream):
        with stream.capture() as graph:
            work(x, host, stream)
        return graph

    return build


def explicit(x, host, stream):
    graph = cu.Graph(stream.device)
    graph.memcpy(x[:, :4], host)
    return graph


def executable(x, host, stream):
    with captured(lambda x, h, s: x[:, :4].copy_from(h, stream=s))(x, host, stream) as graph:
        return graph.instantiate()


BUILDS = {
    "explicit rows": explicit,
    "captured copy_from": captured(lambda x, h, s: x.buffer[:64].view("i4").copy_from(h, stream=s)),
    "captured rows": captured(lambda x, h, s: x[:, :4].copy_from(h, stream=s)),
    "captured copy_to": captured(lambda x, h, s: x[:, :4].copy_to(h, stream=s)),
    "executable": executable,
    "captured rows backwards": captured(lambda x, h, s: x[:, :4].copy_from(h, stream=s)),
    "captured transposed": captured(lambda x, h, s: x[:, :4].copy_to(h, stream=s)),
}


VIEWS = {
    "captured rows backwards": lambda array: array[::-1],
    "captured transposed": lambda array: array.T,
}


@pytest.mark.parametrize("name", BUILDS)
def test_a_host_array_that_has_its_graph(name, x, stream):
    shape = (16,) if name == "captured copy_from" else (4, 4)
    host = VIEWS.get(name, lambda array: array)(np.zeros(shape, "i4").view(Host))
    ref = weakref.ref(host)
    host.graph = BUILDS[name](x, host, stream)
    kept = [r.object for r in host.graph.retained]
    assert any(thing is host for thing in kept), "the object that was passed"
    with pytest.raises(ValueError, match="resize"):
        host.resize(1000, refcheck=False)
    del host, kept
    settle()
    assert ref() is None


class Wrapper:
    """What has a stream by handle, and keeps that handle valid."""

    def __init__(self, device):
        self.stream = device.create_stream()
        self.wrapped = cu.Stream.from_handle(self.stream.handle, device=device, owner=self)


def test_an_owner_that_has_its_stream(device):
    before = cu.live_objects()
    ref = weakref.ref(Wrapper(device))
    settle()
    assert ref() is None
    assert cu.live_objects() == before


def test_numbers_that_are_converted_stay(x, stream):
    """The copy that was made of them is what the graph reads."""
    numbers = list(range(32))
    with stream.capture() as graph:
        x.buffer[:128].view("i4").copy_from(numbers, stream=stream)
        with pytest.raises(BufferError, match="a capture does not convert it"):
            x.buffer[:128].view("i4").copy_from(array.array("d", numbers), stream=stream)
    del numbers
    junk = [np.full(32, 77, "i4") for _ in range(1000)]
    with graph.instantiate() as step:
        step.launch(stream)
        assert x.numpy(stream=stream).ravel().tolist() == list(range(32))
    assert junk[0][0] == 77
    graph.close()
