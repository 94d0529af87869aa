# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks on streams, timers, and waiting for whatever has an event or a stream."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle


def test_a_callback_comes_after_the_work_so_far(device, stream):
    pinned = cu.PinnedMemoryResource().allocate(4)
    seen = []
    x = cu.full(1, 5, "i4", stream=stream)
    x.buffer.copy_to(pinned, stream=stream)
    stream.callback(lambda *args: seen.append((args, bytes(pinned))), 1, "two")
    x.fill(6, stream=stream)
    x.buffer.copy_to(pinned, stream=stream)
    stream.callback(lambda: seen.append(bytes(pinned)))
    stream.sync()
    assert seen == [((1, "two"), b"\5\0\0\0"), b"\6\0\0\0"]


def test_function_and_arguments_live_until_it_has_run(stream):
    class Thing:
        pass

    thing, ran = Thing(), []
    watch = weakref.ref(thing)
    with hold(stream):
        stream.callback(lambda t: ran.append(type(t)), thing)
        del thing
        gc.collect()
        assert watch() is not None
    stream.sync()
    settle()
    assert ran == [Thing]
    assert watch() is None


def test_an_exception_is_reported_and_work_continues(stream, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: reported.append(repr(u.exc_value)))
    ran = []
    stream.callback(lambda: 1 / 0)
    stream.callback(ran.append, 1)
    stream.sync()
    assert reported == ["ZeroDivisionError('division by zero')"]
    assert ran == [1]


def test_what_cannot_be_called(stream):
    with pytest.raises(TypeError, match="callback must be callable"):
        stream.callback(5)
    with pytest.raises(TypeError, match="callback must be callable, not int"):
        stream.callback(5, 6)


def test_a_callback_with_names(stream):
    seen = {}
    stream.callback(seen.update, a=1)
    stream.callback(lambda x, *, y: seen.update(b=(x, y)), 2, y=3)
    stream.sync()
    assert seen == {"a": 1, "b": (2, 3)}
    with pytest.raises(TypeError, match=r"callback must be callable with 2 arguments: .*'z'"):
        stream.callback(lambda x: None, 1, z=2)
    with pytest.raises(TypeError, match="callback must be callable, not int"):
        stream.callback(5)


def test_a_callback_on_a_closed_stream(device):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(cu.ClosedError):
        stream.callback(print)


def test_a_captured_callback_runs_at_each_launch(stream):
    ran = []
    with stream.capture() as graph:
        stream.callback(ran.append, "now")
    stream.sync()
    assert ran == []
    assert [n.kind for n in graph.nodes] == ["host"]
    assert [r.operand for r in graph.retained] == ["callback"]
    step = graph.instantiate()
    graph.close()
    for _ in range(2):
        step.launch(stream)
    stream.sync()
    assert ran == ["now", "now"]


def test_callbacks_of_many_threads(device):
    ran = []

    def use():
        with device.create_stream() as own:
            for i in range(50):
                own.callback(ran.append, i)
            own.sync()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(ran) == sorted([*range(50)] * 4)


def test_a_timer(device, stream):
    with cu.timer(stream) as t:
        with pytest.raises(ValueError, match="has not stopped"):
            _ = t.elapsed_ms
        cu.zeros(1000, stream=stream)
    assert 0 <= t.elapsed_ms < 60_000
    assert t.elapsed_ms == t.elapsed_ms
    assert "stopped" in repr(t)
    with device.create_stream() as other:
        other.wait(t)
    with pytest.raises(ZeroDivisionError), t:
        _ = 1 / 0
    with pytest.raises(ValueError, match="no end, because its with block raised an exception"):
        _ = t.elapsed_ms
    assert repr(t) == "<cudago.timer: its block raised an exception>"
    with t:
        pass
    assert t.elapsed_ms >= 0
    with t, pytest.raises(RuntimeError, match="running> is in use: make another one"), t:
        pass
    assert t.elapsed_ms >= 0
    with stream.capture(), pytest.raises(ValueError, match="is capturing"), cu.timer(stream):
        pass
    graph = stream.capture()
    with pytest.raises(ValueError, match="is capturing"), t:
        graph.__enter__()
    graph.__exit__(None, None, None)
    with t:
        pass


class TheirStream:
    def __init__(self, stream):
        self.ours = stream

    def __cuda_stream__(self):
        return 0, self.ours.handle


class Event:
    """As those of cuda.core."""

    def __init__(self, event):
        self.handle = event.handle


class Holder:
    def __init__(self, **parts):
        self.__dict__.update(parts)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: s,
        lambda s: s.record(),
        TheirStream,
        lambda s: Holder(stream=s),
        lambda s: Holder(stream=TheirStream(s)),
        lambda s: Holder(event=s.record()),
        lambda s: Holder(event=None, stream=s),
        lambda s: Holder(cuda_stream=s.handle),
    ],
)
def test_waiting_for_whatever_has_work(wrap, device, stream):
    out = np.zeros(1, "i4")
    x = cu.zeros(1, "i4", stream=stream)
    stream.sync()
    with device.create_stream() as other:
        with hold(other):
            x.fill(7, stream=other)
            stream.wait(wrap(other))
            pinned = cu.PinnedMemoryResource().allocate(4)
            x.buffer.copy_to(pinned, stream=stream)
        stream.sync()
        out[:] = np.frombuffer(pinned, "i4")
    assert out[0] == 7


def test_waiting_for_another_librarys_event(device, stream):
    x = cu.zeros(1, "i4", stream=stream)
    stream.sync()
    pinned = cu.PinnedMemoryResource().allocate(4)
    with device.create_stream() as other, device.create_event() as ours:
        with hold(other):
            x.fill(7, stream=other)
            stream.wait(Event(other.record(ours)))
            x.buffer.copy_to(pinned, stream=stream)
        stream.sync()
        assert bytes(pinned) == b"\7\0\0\0"


@pytest.mark.parametrize("work", [None, 5, "stream", Holder(), Holder(event=3, stream="x")])
def test_what_cannot_be_waited_for(work, stream):
    with pytest.raises(TypeError, match="work must be an event, or it must be a Stream"):
        stream.wait(work)


def test_a_stream_of_another_library(device, stream):
    wrapped = cu.Stream(TheirStream(stream))
    assert wrapped == stream
    assert cu.Stream(stream) is stream
    x = cu.zeros(4, "i4", stream=wrapped)
    wrapped.close()
    assert not stream.is_closed
    assert x.numpy(stream=stream).tolist() == [0] * 4
    with pytest.raises(TypeError, match="__cuda_stream__"):
        cu.Stream(5)
    with pytest.raises(TypeError):
        cu.Stream()


def test_their_stream_is_kept(stream):
    theirs = TheirStream(stream)
    watch = weakref.ref(theirs)
    wrapped = cu.Stream(theirs)
    del theirs
    gc.collect()
    assert watch() is not None
    wrapped.close()
    del wrapped
    gc.collect()
    settle()
    assert watch() is None


def test_a_blocking_stream_waits_for_the_default_stream(device):
    default = device.default_stream
    pinned = cu.PinnedMemoryResource().allocate(4)
    with device.create_stream(blocking=True) as blocking, device.create_stream() as free:
        x = cu.zeros(1, "i4", stream=free)
        free.sync()
        with hold(default):
            x.fill(7, stream=blocking)
            free.sync()
            assert not blocking.is_done
        blocking.sync()
        x.buffer.copy_to(pinned, stream=free)
        free.sync()
        assert bytes(pinned) == b"\7\0\0\0"


def test_priorities(device):
    least, greatest = device.stream_priority_range
    assert greatest <= least
    with (
        device.create_stream(priority=greatest) as urgent,
        device.create_stream(priority=greatest - 5) as more,
    ):
        assert urgent.priority == more.priority == greatest
