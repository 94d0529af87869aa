# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle


def test_facts(device):
    with device.create_stream(name="copies") as s:
        assert s.device is device
        assert s.name == "copies"
        assert s.priority == 0
        assert s.handle not in (0, 1, 2)
        assert not s.is_capturing
        assert repr(s) == f"<cudago.Stream 'copies' {s.handle:#x} on device 0>"
    assert repr(s) == "<cudago.Stream 'copies': closed>"
    with device.create_stream() as s:
        assert s.name == ""
        assert repr(s).startswith("<cudago.Stream 0x")


def test_streams_are_made_by_devices():
    with pytest.raises(TypeError, match="Stream"):
        cu.Stream()


def test_priority_is_clamped(device):
    low, high = device.create_stream(priority=1 << 20), device.create_stream(priority=-(1 << 20))
    assert high.priority <= low.priority
    low.close()
    high.close()
    with pytest.raises(OverflowError, match="priority"):
        device.create_stream(priority=1 << 40)


def test_work_is_done_in_order_and_sync_waits(stream, device):
    out = bytearray(4)
    with device.allocate(4, stream=stream) as buffer:
        for value in range(10):
            buffer.fill(value, stream=stream)
        buffer.copy_to(out, stream=stream)
    stream.sync()
    assert out == bytearray([9] * 4)
    assert stream.is_done


def test_is_done_answers_without_waiting(stream):
    with hold(stream):
        assert not stream.is_done
    stream.sync()
    assert stream.is_done


def test_sync_leaves_other_threads_running(stream):
    with hold(stream) as go_on:
        waiter = threading.Thread(target=stream.sync)
        waiter.start()
        assert waiter.is_alive()  # and this thread has the GIL
        go_on.set()
        waiter.join()


def test_a_stream_waits_for_an_event(device, stream, pinned):
    with device.create_stream() as other, device.allocate(64, stream=stream) as buffer:
        buffer.fill(1, stream=stream)
        with hold(stream):
            buffer.fill(2, stream=stream)
            with stream.record() as event:
                other.wait(event)
            buffer.copy_to(pinned, stream=other)
            assert not other.is_done
        other.sync()
    assert bytes(pinned) == bytes([2] * 64)


def test_a_stream_waits_for_a_stream(device, stream):
    with device.create_stream() as other:
        with hold(stream):
            other.wait(stream)
            assert not other.is_done
        other.sync()
        assert stream.is_done


def test_what_can_be_waited_for(stream):
    with pytest.raises(TypeError, match="must be a Stream or have __cuda_stream__, not int"):
        stream.wait(3)
    with stream.record() as event:
        pass
    with pytest.raises(cu.ClosedError, match="event is closed"):
        stream.wait(event)


def test_streams_of_other_libraries(device, stream):
    class Theirs:
        def __cuda_stream__(self):
            return 0, stream.handle

    class Newer(Theirs):
        def __cuda_stream__(self):
            return 1, stream.handle

    out = bytearray(16)
    with device.allocate(16, stream=Theirs()) as buffer:
        buffer.fill(5, stream=Theirs())
        buffer.copy_to(out, stream=Theirs())
        stream.sync()
        assert out == bytearray([5] * 16)
        with pytest.raises(TypeError, match="version 1 of __cuda_stream__"):
            buffer.fill(5, stream=Newer())
        with pytest.raises(
            TypeError, match="must be a Stream or have __cuda_stream__, not NoneType"
        ):
            buffer.fill(5, stream=None)


def test_wrapped_handles_keep_their_owner_and_are_not_destroyed(device, stream):
    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    wrapped = cu.Stream.from_handle(stream.handle, device=device, owner=owner)
    del owner
    gc.collect()
    assert gone() is not None
    assert wrapped == stream
    assert wrapped.__cuda_stream__() == (0, stream.handle)
    wrapped.close()
    del wrapped
    settle()
    assert gone() is None
    stream.sync()


def test_a_handle_outlives_its_stream(driver, script):
    """NVIDIA's driver crashes on the handle of a destroyed stream, as the simulated one may."""
    run = script(
        """
        import gc, time, cudago as cu
        device = cu.Device()
        keeper = device.create_stream()
        memory = device.allocate(64, stream=keeper)
        stream = device.create_stream()
        handle = stream.handle
        memory.fill(1, stream=stream)
        stream.close()
        deadline = time.monotonic() + 10
        while cu.live_objects()["Stream"] > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        with cu.Stream.from_handle(handle, device=device) as stale:
            memory.fill(2, stream=stale)
            stale.sync()
        made = []
        while not any(s.handle == handle for s in made) and time.monotonic() < deadline:
            made.append(device.create_stream())
        print(made[-1].handle == handle, made[-1].is_done)
        """,
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stdout) == (0, "True True\n"), run.stderr


@pytest.mark.parametrize("handle", [0, 1, 2])
def test_default_streams_can_be_wrapped(device, handle):
    out = bytearray(4)
    with cu.Stream.from_handle(handle, device=device) as s, device.allocate(4, stream=s) as buffer:
        buffer.fill(3, stream=s)
        buffer.copy_to(out, stream=s)
        s.sync()
    assert out == bytearray([3] * 4)


@pytest.mark.kept_for_good  # a device keeps its default streams
def test_the_per_thread_default_stream(device, stream):
    own = device.per_thread_default_stream
    assert own is device.per_thread_default_stream
    assert (own.handle, own) == (2, cu.Stream.from_handle(2, device=device))
    x = device.allocate(4, stream=own)
    x.fill(7, stream=own)
    own.sync()
    assert x.view("u1").numpy(stream=own).tolist() == [7] * 4
    own.close()
    assert not device.per_thread_default_stream.is_closed


def test_equality_is_that_of_handles(device, stream):
    with device.create_stream() as other, cu.Stream.from_handle(stream.handle) as same:
        assert stream == same
        assert stream != other
        assert stream != 5
        assert len({stream, same, other}) == 2
        before = hash(same)
    assert hash(same) == before
    assert stream != same, "a closed stream equals itself alone"


def test_close(device):
    s = device.create_stream()
    s.close()
    s.close()
    assert s.is_closed
    for use in (
        s.sync,
        s.record,
        lambda: s.handle,
        lambda: s.is_done,
        lambda: s.is_capturing,
        lambda: s.priority,
        lambda: s.wait(s),
        lambda: device.allocate(8, stream=s),
    ):
        with pytest.raises(cu.ClosedError, match="stream is closed"):
            use()
    with pytest.raises(cu.ClosedError, match="stream is closed"), s.capture():
        pass


def test_work_queued_before_close_completes(device, pinned):
    s = device.create_stream()
    with device.allocate(64, stream=s) as buffer:
        with hold(s):
            buffer.fill(8, stream=s)
            buffer.copy_to(pinned, stream=s)
            event = s.record()
            s.close()
            assert bytes(pinned) == bytes(64)
        event.sync()
        event.close()
    assert bytes(pinned) == bytes([8] * 64)


def test_memory_outlives_its_stream(device, stream):
    s = device.create_stream()
    buffer = device.allocate(64, stream=s)
    s.close()
    buffer.fill(4, stream=stream)
    buffer.copy_to(out := bytearray(64), stream=stream)
    stream.sync()
    assert out == bytearray([4] * 64)
    buffer.close()


def test_dropping_a_stream_closes_it(device):
    before = cu.live_objects()
    s = device.create_stream()
    assert cu.live_objects() != before
    gone = weakref.ref(s)
    del s
    assert gone() is None
    settle()
    assert cu.live_objects() == before


def test_many_threads_use_one_stream(device, stream):
    failures = []

    def work() -> None:
        try:
            for _ in range(50):
                with device.allocate(256, stream=stream) as buffer:
                    buffer.fill(1, stream=stream)
                    stream.record().close()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []


@pytest.mark.parametrize("what", ["stream", "event", "device"])
def test_closing_while_another_thread_waits(what, device):
    s = device.create_stream()
    failures = []
    with hold(s):
        event = s.record()
        wait = {"stream": s.sync, "event": event.sync, "device": device.sync}[what]

        def work() -> None:
            try:
                wait()
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        s.close()
        event.close()
    for t in threads:
        t.join()
    assert all(isinstance(e, cu.ClosedError) for e in failures)  # of a thread that came too late


def test_closing_while_other_threads_launch(device, stream, kernels):
    """Each launch happens, or raises ClosedError."""
    config = cu.LaunchConfig(grid=1, block=16)
    unexpected = []
    for _ in range(30):
        s = device.create_stream()
        buffer = device.allocate(64, stream=s)
        with cu.Graph() as graph:
            graph.launch(config, kernels["add"], buffer, 1, 16)
            step = graph.instantiate()
        started = threading.Barrier(3)

        def work(s=s, buffer=buffer, step=step, started=started) -> None:
            started.wait()
            try:
                for _ in range(50):
                    cu.launch(s, config, kernels["add"], buffer, 1, 16)
                    step.launch(s)
                    buffer.fill(0, stream=s)
                    s.record().close()
            except cu.ClosedError:
                pass
            except BaseException as e:
                unexpected.append(e)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        started.wait()
        for closed in (buffer, step, s):
            closed.close()
        for t in threads:
            t.join()
    assert unexpected == []
