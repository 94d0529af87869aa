# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of other libraries, given to calls as they are."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago import _core
from cudago.testing import hold

np = pytest.importorskip("numpy")


class Theirs:
    """Another library's stream."""

    def __init__(self, stream, device=None):
        self.handle = stream.handle
        self.asked = 0
        if device is not None:
            self.device = device

    def __cuda_stream__(self):
        self.asked += 1
        return 0, self.handle


class Place:
    def __init__(self, **numbers):
        self.__dict__.update(numbers)


@pytest.fixture
def other(device):
    with device.create_stream() as s:
        yield s


def settle():
    assert _core._reaper_flush(10_000)
    gc.collect()


def test_it_is_asked_once_for_each_call(device, stream, other):
    theirs = Theirs(other)
    x = cu.zeros(4, "u1", stream=stream).buffer
    stream.sync()
    for n in range(1, 6):
        x.fill(n, stream=theirs)
        assert theirs.asked == n
    other.sync()
    assert bytes(x.view("u1").numpy(stream=stream)) == bytes([5] * 4)


def test_many_of_them(device, stream):
    """More than there are blocks kept idle for."""
    streams = [device.create_stream() for _ in range(20)]
    x = [cu.zeros(4, "u1", stream=stream).buffer for _ in streams]
    stream.sync()
    open_streams = cu.live_objects()["Stream"]
    for n in range(5):
        for s, b in zip(streams, x, strict=True):
            b.fill(n, stream=Theirs(s))
    for s, b in zip(streams, x, strict=True):
        s.sync()
        assert bytes(b.view("u1").numpy(stream=stream)) == bytes([4] * 4)
    settle()
    assert cu.live_objects()["Stream"] == open_streams
    for s in streams:
        s.close()


@pytest.mark.parametrize("n", [1, 2, 40])
def test_what_its_work_uses_is_kept_until_that_has_ended(device, stream, other, n):
    theirs, out = Theirs(other), cu.PinnedMemoryResource().allocate(8)
    pinned = [cu.PinnedMemoryResource().allocate(8) for _ in range(3)]
    x = device.allocate(8, stream=stream)
    stream.sync()
    buffers = cu.live_objects()["Buffer"]
    with hold(other):
        for i in range(n):
            x.fill(i, stream=theirs)
        x.copy_to(out, stream=theirs)
        x.close()
        settle_nothing = cu.live_objects()["Buffer"]
    other.sync()
    settle()
    assert settle_nothing <= buffers
    assert bytes(out) == bytes([n - 1] * 8)
    assert cu.live_objects()["Buffer"] == buffers - 1
    del pinned


def test_a_graph_launched_there_keeps_what_it_uses(device, stream, other):
    source = np.arange(8, dtype="u1")
    watch = weakref.ref(source)
    x = device.allocate(8, stream=stream)
    stream.sync()
    g = cu.Graph()
    g.memcpy(x, source)
    step = g.instantiate()
    theirs = Theirs(other)
    with hold(other):
        for _ in range(3):
            step.launch(theirs)
        step.close()
        g.close()
        del source
        gc.collect()
        assert watch() is not None
    other.sync()
    settle()
    assert bytes(x.view("u1").numpy(stream=stream)) == bytes(range(8))
    assert watch() is None


def test_captures_of_other_streams_meanwhile(device, stream, other):
    """A record behind a launch, and the begin of a capture, exclude each other."""
    x = device.allocate(4, stream=stream)
    stream.sync()
    theirs, stop, failures = Theirs(other), threading.Event(), []

    def launches():
        try:
            while not stop.is_set():
                x.fill(1, stream=theirs)
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=launches) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(100):
            with stream.capture() as graph:
                x.fill(2, stream=stream)
            graph.close()
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not failures
    other.sync()


def test_the_default_stream(device, stream):
    class Default:
        device_id = -1

        def __cuda_stream__(self):
            return 0, 0

    x = device.allocate(4, stream=stream)
    stream.sync()
    for n in range(5):
        x.fill(n, stream=Default())
    assert bytes(x.view("u1").numpy(stream=cu.Stream(Default()))) == bytes([4] * 4)


@pytest.mark.parametrize(
    "place",
    [
        None,
        Place(index=0),
        Place(index=None, device_id=0),
        Place(index=-1),
        Place(index="0", device_id=0.5),
        Place(),
        0,
    ],
)
def test_its_device(stream, other, place):
    x = cu.zeros(4, "u1", stream=stream).buffer
    stream.sync()
    x.fill(3, stream=Theirs(other, place))
    other.sync()


class Refuses:
    @property
    def device(self):
        raise RuntimeError("no device")

    def __cuda_stream__(self):
        return 0, 1


class Old:
    """Of a PyTorch before the protocol."""

    __cuda_stream__ = None

    def __init__(self, stream):
        self.cuda_stream = stream.handle


def answering(answer):
    return type("Answers", (), {"__cuda_stream__": lambda self: answer})()


@pytest.mark.parametrize(
    ("theirs", "error", "match"),
    [
        (Refuses(), RuntimeError, "no device"),
        (answering((1, 1)), TypeError, "version 1"),
        (answering((0, -1)), (OverflowError, ValueError), None),
        (answering((0, 1 << 70)), OverflowError, None),
        (answering((0, "1")), TypeError, None),
        (answering(None), TypeError, None),
        (answering((0, 1, 2)), TypeError, "two ints"),
        (5, TypeError, "__cuda_stream__"),
    ],
)
def test_what_is_no_stream(stream, theirs, error, match):
    x = device_memory = cu.zeros(4, "u1", stream=stream).buffer
    for _ in range(2):
        with pytest.raises(error, match=match):
            x.fill(3, stream=theirs)
    assert not device_memory.is_closed


def test_a_device_that_is_not_there(stream, other):
    x = cu.zeros(4, "u1", stream=stream).buffer
    for index in (99, 1 << 40, 1 << 80):
        with pytest.raises((cu.errors.CUDAError, ValueError, OverflowError)):
            x.fill(3, stream=Theirs(other, Place(index=index)))


def test_an_older_library(stream, other):
    x = cu.zeros(4, "u1", stream=stream).buffer
    stream.sync()
    x.fill(3, stream=Old(other))
    other.sync()
    assert bytes(x.view("u1").numpy(stream=stream)) == bytes([3] * 4)


def test_its_code_closes_what_the_call_uses(device, stream, other):
    x = device.allocate(4, stream=stream)

    class Closes(Theirs):
        def __cuda_stream__(self):
            x.close()
            return super().__cuda_stream__()

    with pytest.raises(cu.ClosedError):
        x.fill(1, stream=Closes(other))
