# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A resource that knows what it has allocated."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref
from dataclasses import astuple

import pytest

import cudago as cu
from cudago.testing import hold, settle


@pytest.fixture
def tracking(device):
    with cu.TrackingMemoryResource(device.memory_resource) as resource:
        yield resource


def test_sizes_and_lines(tracking, stream, device):
    x = cu.zeros(256, "f4", stream=stream, resource=tracking)
    line = inspect.currentframe().f_lineno - 1
    (allocation,) = tracking.allocations
    assert (allocation.handle, allocation.size, allocation.kind) == (x.handle, 1024, "device")
    assert (allocation.device, tracking.device) == (device, device)
    assert allocation.site == f"{__file__}:{line}"
    many = [tracking.allocate(8, stream=stream) for _ in range(3)]
    assert tracking.report().splitlines() == [
        "1048 bytes in 4 allocation(s)",
        f"  1024 bytes in 1 allocation(s) at {__file__}:{line}",
        f"  24 bytes in 3 allocation(s) at {__file__}:{line + 6}",
    ]
    assert f"1024 bytes, device at {__file__}:{line}>" in repr(allocation)
    assert "1048 bytes held" in repr(tracking)
    for buffer in many:
        buffer.close()
    x.close()
    assert tracking.allocations == ()


def test_numbers(tracking, stream):
    a, b = (tracking.allocate(n, stream=stream) for n in (100, 50))
    a.close()
    assert tracking.statistics == cu.TrackingStatistics(
        used=50, used_high=150, count=1, count_high=2, total=150, total_count=2
    )
    tracking.reset()
    assert astuple(tracking.statistics) == (50, 50, 1, 1, 0, 0)
    c = tracking.allocate(10, stream=stream)
    assert astuple(tracking.statistics) == (60, 60, 2, 2, 10, 1)
    b.close()
    c.close()
    assert astuple(tracking.statistics) == (0, 60, 0, 2, 10, 1)


def test_memory_is_held_until_its_last_holder_lets_go(tracking, device, stream):
    x = cu.zeros(16, "f4", stream=stream, resource=tracking)
    view, buffer = x[::2], x.buffer
    with cu.Graph() as graph:
        graph.memset(buffer, 1)
        for holder in (x, view, buffer):
            holder.close()
            assert tracking.statistics.used == 64
        step = graph.instantiate()
    with hold(stream):
        step.launch(stream)
        step.close()
        assert tracking.statistics.used == 64
    device.sync()
    settle()
    assert tracking.statistics.used == 0


def test_every_kind_of_memory(device, stream):
    for upstream in (cu.PinnedMemoryResource(), cu.VirtualMemoryResource(device)):
        tracking = cu.TrackingMemoryResource(upstream)
        buffer = tracking.allocate(64, stream=stream)
        assert tracking.device == upstream.device
        assert tracking.allocations[0].kind == buffer.kind
        assert tracking.allocations[0].device == buffer.device
        buffer.close()
        settle()
        assert tracking.statistics.count == 0
    pinned = cu.TrackingMemoryResource(cu.PinnedMemoryResource()).allocate(8)
    assert memoryview(pinned).nbytes == 8


def test_over_each_other_and_as_the_devices_resource(device, stream):
    before = device.memory_resource
    inner = cu.TrackingMemoryResource(before)
    outer = device.memory_resource = cu.TrackingMemoryResource(inner)
    try:
        x = device.allocate(64, stream=stream)
        y = cu.ones(4, "f4", stream=stream)
        assert astuple(inner.statistics) == astuple(outer.statistics) == (80, 80, 2, 2, 80, 2)
        x.close()
        assert inner.statistics.used == outer.statistics.used == 16
        y.close()
        assert inner.statistics.used == outer.statistics.used == 0
    finally:
        device.memory_resource = before


def test_in_captures(tracking, stream):
    with stream.capture() as graph:
        x = cu.zeros(4, "f4", stream=stream, resource=tracking)
    assert tracking.statistics.used == 16
    x.close()
    graph.close()
    settle()
    assert tracking.statistics.used == 0


def test_a_closed_one_keeps_account(device, stream):
    tracking = cu.TrackingMemoryResource(device.memory_resource)
    buffer = tracking.allocate(8, stream=stream)
    tracking.close()
    with pytest.raises(cu.ClosedError, match="memory resource is closed"):
        tracking.allocate(8, stream=stream)
    assert tracking.statistics.used == 8
    buffer.close()
    assert tracking.statistics.used == 0
    assert device.memory_resource.allocate(8, stream=stream).size == 8
    again = cu.TrackingMemoryResource(device.memory_resource)
    kept = again.allocate(8, stream=stream)
    watch = weakref.ref(again)
    del again
    gc.collect()
    assert watch() is None
    kept.close()


def test_an_allocation_that_fails_is_not_counted(device, stream):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=1 << 21)) as small:
        tracking = cu.TrackingMemoryResource(small)
        with pytest.raises(cu.OutOfMemoryError):
            tracking.allocate(1 << 40, stream=stream)
        with pytest.raises(TypeError, match="needs stream="):
            tracking.allocate(8)
        assert astuple(tracking.statistics) == (0,) * 6


def test_threads(tracking, device):
    def work():
        with device.create_stream() as stream:
            for i in range(100):
                tracking.allocate(i + 1, stream=stream).close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    settle()
    now = tracking.statistics
    assert (now.used, now.count, now.total, now.total_count) == (0, 0, 4 * 5050, 400)


def test_what_is_refused(stream):
    class Wrong(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            return bytes(nbytes)

    with pytest.raises(TypeError, match="upstream must be a MemoryResource, not int"):
        cu.TrackingMemoryResource(5)
    with pytest.raises(TypeError, match="must return a Buffer, not bytes"):
        cu.TrackingMemoryResource(Wrong()).allocate(4, stream=stream)
