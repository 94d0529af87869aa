# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Allocations whose memory is still queued to be freed, behind what has not ended."""

from __future__ import annotations

import _thread
import threading
from contextlib import contextmanager

import pytest

import cudago as cu

SIZE = 40 << 20  # of which the pools here have room for one


def pool_of_one(device, depends=True, **more):
    options = cu.PoolOptions(max_size=1 << 26, reuse_allow_internal_dependencies=depends, **more)
    return cu.DeviceMemoryResource(device, pool=options)


@contextmanager
def free_queued(pool, stream):
    """Yield an event of the host; until it is set, a free waits in the stream."""
    go = threading.Event()
    memory = pool.allocate(SIZE, stream=stream)
    stream.sync()
    stream.callback(go.wait, 60)
    memory.close()
    try:
        yield go
    finally:
        go.set()
        stream.sync()


def content(buffer, stream):
    host = bytearray(SIZE)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    return set(host)


@contextmanager
def soon(do):
    """Run a function on another thread 0.2 s after the block begins."""
    timer = threading.Timer(0.2, do)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_the_stream_itself_has_the_memory_again_at_once(device, stream):
    with pool_of_one(device) as pool, free_queued(pool, stream) as go:
        again = pool.allocate(SIZE, stream=stream)
        assert not stream.is_done
        again.fill(1, stream=stream)
        go.set()
        assert content(again, stream) == {1}
        again.close()


def test_another_stream_has_it_behind_the_free(device, stream):
    with (
        pool_of_one(device) as pool,
        device.create_stream() as other,
        free_queued(pool, stream) as go,
    ):
        again = pool.allocate(SIZE, stream=other)
        assert not other.is_done
        again.fill(2, stream=other)
        go.set()
        assert content(again, other) == {2}
        again.close()


def test_an_allocation_waits_for_a_free_in_another_stream(device, stream):
    with (
        pool_of_one(device, depends=False) as pool,
        device.create_stream() as other,
        free_queued(pool, stream) as go,
        soon(go.set),
    ):
        pool.allocate(SIZE, stream=other).close()
        assert go.is_set()


def test_ctrl_c_ends_the_wait(device, stream):
    with (
        pool_of_one(device, depends=False) as pool,
        device.create_stream() as other,
        free_queued(pool, stream) as go,
    ):
        with soon(_thread.interrupt_main), pytest.raises(KeyboardInterrupt):
            pool.allocate(SIZE, stream=other)
        assert not go.is_set()


def test_a_capture_elsewhere_is_not_waited_in(device, stream):
    with (
        pool_of_one(device, depends=False) as pool,
        device.create_stream() as other,
        device.create_stream() as third,
        free_queued(pool, stream),
        third.capture() as graph,
    ):
        with pytest.raises(cu.OutOfMemoryError):
            pool.allocate(SIZE, stream=other)
        third.callback(print)
    assert len(graph.nodes) == 1


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_memory_of_another_pool(script, driver):
    """The device's memory is short, and what one pool frees another cannot have before."""
    done = script(
        """
        import threading
        import cudago as cu
        device = cu.Device()
        s, t = device.create_stream(), device.create_stream()
        memory = device.allocate(48 << 20, stream=s)
        s.sync()
        go = threading.Event()
        s.callback(go.wait, 60)
        memory.close()
        threading.Timer(0.2, go.set).start()
        pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
        pool.allocate(48 << 20, stream=t)
        assert go.is_set()
        """,
        CUDAGO_SIM="memory=64MiB",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_driver_that_waits_does_not_keep_the_gil(script):
    done = script(
        """
        import time
        import cudago as cu
        device = cu.Device()
        s = device.create_stream()
        pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=1 << 22))
        for _ in range(3):
            memory = pool.allocate(3 << 20, stream=s)
            s.callback(time.sleep, 0.1)
            memory.close()
        with pool.allocate(3 << 20, stream=s):
            pool.close()
        s.sync()
        """,
        CUDAGO_SIM="hostile=1",
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "whose",
    ["s.handle; there = s", "there = cu.Stream.from_handle(s.handle, device=device, owner=s)"],
)
def test_nothing_is_recorded_in_the_stream_of_another(script, whose):
    """NVIDIA's driver does not survive a record that meets the beginning of a capture."""
    done = script(
        f"""
        import os, threading
        import cudago as cu
        device = cu.Device()
        s, other = device.create_stream(), device.create_stream()
        {whose}
        options = cu.PoolOptions(max_size=1 << 26, reuse_allow_internal_dependencies=False)
        pool = cu.DeviceMemoryResource(device, pool=options)
        memory = pool.allocate(40 << 20, stream=there)
        there.sync()
        go = threading.Event()
        there.callback(go.wait, 60)
        memory.close()
        os.write(2, b"ALLOCATE")
        try:
            pool.allocate(40 << 20, stream=other)
        except cu.OutOfMemoryError:
            os.write(2, b"ALLOCATE")
        go.set()
        there.sync()
        os.write(1, b"%#x" % s.handle)
        """,
        CUDAGO_TRACE="1",
    )
    assert done.returncode == 0, done.stderr
    _, calls, _ = done.stderr.split("ALLOCATE")
    assert "cuMemAllocFromPoolAsync(" in calls
    records = [line for line in calls.splitlines() if "cuEventRecord(" in line]
    assert not [line for line in records if done.stdout in line]
