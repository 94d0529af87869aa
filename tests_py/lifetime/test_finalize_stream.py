# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Finalizers that wait for a stream: `cudago.finalize` with ``stream=``."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, no_leaks, settle


class Thing:
    """Something to watch."""


def until(condition) -> None:
    """Wait while other work is held back; `cudago.testing.settle` would wait for that too."""
    for _ in range(3000):
        if condition():
            return
        cu._core._reaper_flush(10)
    raise TimeoutError


def test_the_function_waits_for_work_queued_before(stream, try_to_release):
    called, thing = [], Thing()
    with hold(stream):
        f = cu.finalize(thing, called.append, 1, stream=stream)
        gone = weakref.ref(thing)
        del thing
        assert gone() is None
        try_to_release()
        assert called == []
        assert f.alive
        assert f.peek() is None
        assert f.detach() is None
    settle()
    assert called == [1]
    assert not f.alive
    assert f() is None


def test_work_queued_after_is_not_waited_for(device, stream):
    called, thing = [], Thing()
    with device.create_stream() as other:
        cu.finalize(thing, called.append, 1, stream=stream)
        with hold(other):
            del thing
            stream.wait(other)
            until(lambda: called)
            assert not stream.is_done
        stream.sync()


def test_work_queued_before_the_object_dies_is_waited_for(device, stream):
    """Also if it was queued after the finalizer was made."""
    called, thing = [], Thing()
    f = cu.finalize(thing, called.append, 1, stream=stream)
    with hold(stream):
        del thing
        cu._core._reaper_flush(20)
        assert called == []
    settle()
    assert called == [1]
    assert not f.alive


def test_an_idle_stream(stream):
    called, thing = [], Thing()
    cu.finalize(thing, lambda: called.append(threading.current_thread()), stream=stream)
    del thing
    settle()
    assert called == [threading.current_thread()]


def test_stream_none():
    called, thing = [], Thing()
    cu.finalize(thing, called.append, 1, stream=None)
    del thing
    assert called == [1]


def test_a_call_does_not_wait(stream):
    called, thing = [], Thing()
    with hold(stream):
        f = cu.finalize(thing, lambda: called.append(1) or "result", stream=stream)
        assert f() == "result"
        del thing
        second = Thing()
        g = cu.finalize(second, called.append, 2, stream=stream)
        del second
        assert g.alive
        g()  # the object has died, and the stream has work
        assert called == [1, 2]
        assert not g.alive
    settle()
    assert called == [1, 2]


def test_detached_while_the_object_is_there(stream):
    called, thing = [], Thing()
    f = cu.finalize(thing, called.append, 1, stream=stream)
    assert f.detach() == (thing, called.append, (1,), {})
    del thing
    settle()
    assert called == []


def test_invalid_arguments(device, stream):
    thing = Thing()
    for wrong in (5, "stream", device):
        with pytest.raises(TypeError, match="stream"):
            cu.finalize(thing, print, stream=wrong)
    with pytest.raises(TypeError, match="weak reference"):
        cu.finalize(5, print, stream=stream)
    with device.create_stream() as closed:
        pass
    with pytest.raises(cu.ClosedError):
        cu.finalize(thing, print, stream=closed)
    assert weakref.getweakrefcount(thing) == 0


def test_initialized_again_with_another_stream(device, stream, try_to_release):
    called, first, second = [], Thing(), Thing()
    with device.create_stream() as other, hold(stream):
        f = cu.finalize(first, called.append, "first", stream=stream)
        f.__init__(second, called.append, "second", stream=other)
        del first, second
        until(lambda: called)
        assert called == ["second"]


def test_a_stream_closed_before_the_object_dies(device, try_to_release):
    called, thing = [], Thing()
    with no_leaks():
        s = device.create_stream()
        with hold(s):
            cu.finalize(thing, called.append, 1, stream=s)
            s.close()
            del s, thing
            try_to_release()
            assert called == []
        settle()
        assert called == [1]


def test_a_stream_closed_while_it_is_waited_for(device, try_to_release):
    called, thing = [], Thing()
    with no_leaks():
        s = device.create_stream()
        with hold(s):
            cu.finalize(thing, called.append, 1, stream=s)
            del thing
            s.close()
            del s
            try_to_release()
            assert called == []
        settle()
        assert called == [1]


@pytest.mark.parametrize("end", ["call", "detach", "object"])
def test_the_stream_is_released(device, end):
    with no_leaks():
        thing, s = Thing(), device.create_stream()
        f = cu.finalize(thing, int, stream=s)
        s.close()
        settle()
        if end == "object":
            del thing
        else:
            f() if end == "call" else f.detach()
        settle()
        assert not f.alive


def test_a_stream_of_another_library(stream, try_to_release):
    class Theirs:
        def __cuda_stream__(self):
            return 0, stream.handle

    called, thing, theirs = [], Thing(), Theirs()
    gone = weakref.ref(theirs)
    with hold(stream):
        f = cu.finalize(thing, called.append, 1, stream=theirs)
        del theirs
        gc.collect()
        assert gone() is not None
        assert any(o is gone() for o in gc.get_referents(f))
        del thing
        try_to_release()
        assert called == []
    settle()
    assert called == [1]
    assert gone() is None


@pytest.mark.parametrize("handle", [1, 2], ids=["legacy", "per-thread"])
def test_default_streams(device, handle, try_to_release):
    called, thing = [], Thing()
    s = cu.Stream.from_handle(handle, device=device)
    with hold(s):
        cu.finalize(thing, called.append, 1, stream=s)
        thread = threading.Thread(target=lambda t=[thing]: t.clear())  # dies on another thread
        del thing
        thread.start()
        thread.join()
        del thread
        try_to_release()
        assert called == []
    settle()
    assert called == [1]


def test_a_stream_that_is_capturing(device, stream, try_to_release):
    """The wait neither becomes part of the capture nor invalidates it."""
    called, thing, late = [], Thing(), Thing()
    with device.allocate(4, stream=stream) as buffer:
        f = cu.finalize(thing, called.append, "object", stream=stream)
        with stream.capture() as graph:
            buffer.fill(7, stream=stream)
            del thing
            try_to_release()
            assert called == []
            assert f.alive
            cu.finalize(late, called.append, "made while capturing", stream=stream)
        assert [n.kind for n in graph.nodes] == ["memset"]
        settle()
        assert called == ["object"]
        del late
        settle()
        assert called == ["object", "made while capturing"]


def test_an_object_that_dies_during_a_capture_after_work(device, stream, try_to_release):
    """Work that was queued before the capture is still waited for."""
    called, thing = [], Thing()
    with hold(stream):
        cu.finalize(thing, called.append, 1, stream=stream)
        with stream.capture():
            del thing
        try_to_release()
        assert called == []
    settle()
    assert called == [1]


def test_exceptions_are_unraisable(stream, unraisable):
    thing = Thing()
    f = cu.finalize(thing, int, "no number", stream=stream)
    del thing
    settle()
    assert [(o, type(e)) for o, e in unraisable] == [(f, ValueError)]
    assert not f.alive


def test_the_function_uses_its_finalizer_and_makes_others(stream):
    def function():
        called.append((f.alive, f(), f.detach()))
        cu.finalize(others[0], called.append, "other", stream=stream)

    called, thing, others = [], Thing(), [Thing()]
    f = cu.finalize(thing, function, stream=stream)
    del thing
    settle()
    assert called == [(False, None, None)]
    others.clear()
    settle()
    assert called == [(False, None, None), "other"]


def test_what_it_holds_is_released(stream):
    thing, argument = Thing(), Thing()
    gone = weakref.ref(argument)
    f = cu.finalize(thing, id, argument, stream=stream)
    del argument
    weak = weakref.ref(f)
    with hold(stream):
        del thing, f
        gc.collect()
        assert gone() is not None
        assert weak() is not None
    settle()
    assert gone() is None
    assert weak() is None


def test_initialized_again_while_it_waits(stream):
    called, thing, other = [], Thing(), Thing()
    f = cu.finalize(thing, called.append, "first", stream=stream)
    with hold(stream):
        del thing
        f.__init__(other, called.append, "second")
    settle()
    assert called == []
    assert f.alive
    del other
    assert called == ["second"]


def test_threads(device):
    called, failures = [], []

    def work(name):
        try:
            with device.create_stream() as own, device.allocate(4, stream=own) as buffer:
                for number in range(50):
                    thing = Thing()
                    buffer.fill(number, stream=own)
                    f = cu.finalize(thing, called.append, (name, number), stream=own)
                    del thing
                    if number % 3 == 0:
                        f()
                    elif number % 3 == 1:
                        own.sync()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    settle()
    assert failures == []
    assert sorted(called) == [(t, n) for t in range(4) for n in range(50)]
