# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Options of pools, resources written in Python, and the summary of memory."""

from __future__ import annotations

import _thread
import gc
import threading
import weakref
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle


class Counting(cu.MemoryResource):
    def __init__(self, inner):
        self.inner = inner
        self.live = 0

    def allocate(self, nbytes, *, stream):
        self.live += 1
        return self.inner.allocate(nbytes, stream=stream)


def test_options_are_read_and_changed(device):
    given = cu.PoolOptions(
        release_threshold=1 << 20, max_size=1 << 24, reuse_allow_opportunistic=False
    )
    with cu.DeviceMemoryResource(device, pool=given) as pool:
        assert pool.options == given
        for change in (
            {"release_threshold": 0},
            {"release_threshold": None},
            {"reuse_follow_event_dependencies": False},
            {"reuse_allow_opportunistic": True, "reuse_allow_internal_dependencies": False},
        ):
            wanted = replace(pool.options, **change)
            pool.options = wanted
            assert pool.options == wanted
        with pytest.raises(
            ValueError, match="maximum size of a pool cannot change: it is 16777216"
        ):
            pool.options = replace(pool.options, max_size=1)
        with pytest.raises(ValueError, match=r"release_threshold must be 0 to 2\*\*63-1"):
            pool.options = replace(pool.options, release_threshold=-1)
        with pytest.raises(TypeError, match="must be PoolOptions, not dict"):
            pool.options = {}
        assert pool.options == wanted
    with pytest.raises(cu.ClosedError):
        _ = pool.options
    assert cu.DeviceMemoryResource(device).options.max_size is None


def test_options_of_a_wrong_type(device, pinned):
    makers = {
        "device": lambda pool: cu.DeviceMemoryResource(device, pool=pool),
        "pinned": lambda pool: cu.PinnedMemoryResource(pool=pool),
        "managed": lambda pool: cu.ManagedMemoryResource(device, pool=pool),
    }
    for make in makers.values():
        with pytest.raises(TypeError, match="pool must be PoolOptions, not dict"):
            make({})
        with pytest.raises(TypeError, match="release_threshold must be an int or None, not str"):
            make(cu.PoolOptions(release_threshold="x"))
        with pytest.raises(TypeError, match="max_size must be an int or None, not float"):
            make(cu.PoolOptions(max_size=1.5))
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=np.int64(1 << 24))) as pool:
        assert pool.options.max_size == 1 << 24
        with pytest.raises(TypeError, match="release_threshold must be an int or None, not str"):
            pool.options = replace(pool.options, release_threshold="x")


def test_high_water_marks_are_reset(device, stream):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool:
        with pool.allocate(1 << 20, stream=stream):
            small = pool.allocate(16, stream=stream)
        stream.sync()
        used = pool.statistics.used
        assert pool.statistics.used_high > used > 0
        pool.reset_high_water()
        assert pool.statistics.used_high == used
        small.close()


def test_a_closed_resource_of_python_that_is_a_devices(device, stream):
    before = device.memory_resource
    counting = Counting(before)
    device.memory_resource = counting
    try:
        device.allocate(64, stream=stream).close()
        counting.close()
        for make in (device.allocate, lambda n, stream: cu.empty(n, "u1", stream=stream)):
            with pytest.raises(cu.ClosedError, match="memory resource of device 0 is closed"):
                make(64, stream=stream)
        assert counting.live == 1
    finally:
        device.memory_resource = before


def test_a_devices_own_resource_that_was_closed(device, stream):
    with device.memory_resource:
        pass
    text = r"memory resource of device 0 is closed: .* device\.memory_resource = DeviceMemoryR"
    try:
        for make in (
            lambda: device.allocate(64, stream=stream),
            lambda: cu.zeros(4, stream=stream),
            lambda: cu.asarray([1, 2], stream=stream),
        ):
            with pytest.raises(cu.ClosedError, match=text):
                make()
    finally:
        device.memory_resource = cu.DeviceMemoryResource(device)
    assert device.allocate(64, stream=stream).size == 64


def test_a_resource_written_in_python_may_set_its_device(device, stream):
    class Here(cu.MemoryResource):
        def __init__(self, device):
            self.device, self.inner = device, device.memory_resource

        def allocate(self, nbytes, *, stream):
            return self.inner.allocate(nbytes, stream=stream)

    here = Here(device)
    assert here.device is device
    assert cu.zeros(4, stream=stream, resource=here).nbytes == 16
    with pytest.raises(TypeError, match="device must be a Device or None, not int"):
        here.device = 0
    assert here.device is device
    here.device = None
    assert here.device is None
    with pytest.raises(AttributeError, match="can only be set of a resource whose class defines"):
        here.inner.device = device
    assert here.inner.device is device


def test_a_resource_written_in_python(device, stream):
    counting = Counting(device.memory_resource)
    t = cu.empty(10, "f4", stream=stream, resource=counting)
    u = cu.full((2, 2), 7, "i4", stream=stream, resource=counting)
    assert counting.live == 2
    assert u.numpy(stream=stream).tolist() == [[7, 7], [7, 7]]
    assert (t.nbytes, counting.device, counting.is_closed) == (40, None, False)
    assert "Counting" in repr(counting)
    with counting:
        pass
    assert counting.is_closed
    with pytest.raises(cu.ClosedError, match="memory resource is closed"):
        cu.empty(10, "f4", stream=stream, resource=counting)
    assert counting.live == 2


def test_a_resource_that_wraps_itself_is_collected(device, stream):
    counting = Counting(device.memory_resource)
    counting.inner = counting
    watch = weakref.ref(counting)
    del counting
    gc.collect()
    assert watch() is None


def test_a_device_uses_a_resource_written_in_python(device, stream):
    before = device.memory_resource
    counting = device.memory_resource = Counting(before)
    try:
        assert device.allocate(64, stream=stream).size == 64
        assert cu.zeros(4, stream=stream).nbytes == 16
        assert counting.live == 2
        for wrong in (lambda: device.allocate(64), lambda: device.allocate(64, 1, stream=stream)):
            with pytest.raises(TypeError, match="takes a size in bytes and a stream"):
                wrong()
    finally:
        device.memory_resource = before


def test_a_resource_written_in_python_survives_a_reset(script):
    run = script(
        """
        import cudago as cu

        class Ours(cu.MemoryResource):
            def allocate(self, nbytes, *, stream):
                return cu.DeviceMemoryResource(stream.device).allocate(nbytes, stream=stream)

        device = cu.Device()
        device.reset()
        ours = device.memory_resource = Ours()
        assert device.memory_resource is ours
        device.reset()
        assert device.memory_resource is ours
        with device.create_stream() as stream:
            assert device.allocate(64, stream=stream).size == 64
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_what_a_resource_must_do(device, stream):
    class Nothing(cu.MemoryResource):
        pass

    class Wrong(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            return bytes(nbytes)

    class Raising(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            raise MemoryError("enough")

    class Lazy(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            return super().allocate(nbytes, stream=stream)

    for abstract in (cu.MemoryResource, Nothing):
        with pytest.raises(TypeError, match="allocates nothing: a subclass of MemoryResource"):
            abstract()
    with pytest.raises(TypeError, match="must return a Buffer, not bytes"):
        cu.empty(4, stream=stream, resource=Wrong())
    with pytest.raises(MemoryError, match="enough"):
        cu.empty(4, stream=stream, resource=Raising())
    with pytest.raises(TypeError, match="is written in Python"):
        cu.empty(4, stream=stream, resource=Lazy())
    before = device.memory_resource
    try:
        device.memory_resource = Wrong()
        with pytest.raises(TypeError, match="must return a Buffer"):
            device.allocate(4, stream=stream)
    finally:
        device.memory_resource = before


def test_a_resource_that_returns_too_little(device, stream):
    pool = device.memory_resource

    class Half(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            return pool.allocate(nbytes // 2, stream=stream)

    class Closed(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            buffer = pool.allocate(nbytes, stream=stream)
            buffer.close()
            return buffer

    text = r"allocate\(\) of Half returned 50 bytes, 100 were asked for"
    tracking = cu.TrackingMemoryResource(Half())
    for allocate in (
        lambda: cu.zeros(100, "u1", stream=stream, resource=Half()),
        lambda: cu.zeros(100, "u1", stream=stream, resource=tracking),
        lambda: tracking.allocate(100, stream=stream),
        lambda: cu.ArenaMemoryResource(Half(), 100, device=device),
    ):
        with pytest.raises(ValueError, match=text):
            allocate()
        with stream.capture(), pytest.raises(ValueError, match=text):
            allocate()
    assert tracking.statistics.count == 0
    closed = r"allocate\(\) of Closed returned a closed buffer"
    for resource, message in ((Half(), text), (Closed(), closed)):
        try:
            device.memory_resource = resource
            with pytest.raises(ValueError, match=message):
                device.allocate(100, stream=stream)
        finally:
            device.memory_resource = pool
    assert device.allocate(100, stream=stream).size == 100


def test_the_summary(device, stream):
    cu.memory_summary(reset=True)
    pinned = cu.PinnedMemoryResource().allocate(3 << 10)
    registered = cu.pin(bytearray(1 << 12))
    pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
    used = pool.allocate(5 << 20, stream=stream)
    lines = cu.memory_summary().splitlines()
    assert lines[0].startswith(f"device 0: {device.name}")
    assert any(line.split()[:2] == ["pool", "5.0"] for line in lines)
    assert any("pinned memory" in line and "3.0 KiB" in line for line in lines)
    assert any("pinned in place" in line and "4.0 KiB" in line for line in lines)
    assert not any(line != line.rstrip() for line in lines)
    for memory in (pinned, registered, used):
        memory.close()
    stream.sync()
    settle()
    rows = {kind: (count, now, high) for kind, count, now, high in cu._core._tallies(True)}
    assert rows["pinned"][2] >= 3 << 10
    assert (
        dict((r[0], r[3]) for r in cu._core._tallies(False))["registered"] == rows["registered"][1]
    )
    pool.close()


def test_the_summary_while_pools_come_and_go(device):
    """As another thread would make one, and close one."""
    made = []

    class Meanwhile(cu.DeviceMemoryResource):
        @property
        def device(self):
            made.append(cu.DeviceMemoryResource(device, pool=cu.PoolOptions()))
            return super().device

        @property
        def statistics(self):
            self.close()
            return super().statistics

    with Meanwhile(device, pool=cu.PoolOptions()):
        assert "device 0" in cu.memory_summary()
    assert made
    for pool in made:
        pool.close()


def test_virtual_memory_is_counted_as_it_grows(device, stream):
    before = {r[0]: r[2] for r in cu._core._tallies(False)}["virtual"]
    resource = cu.VirtualMemoryResource(device, reserve=1 << 24)
    big = resource.allocate(1 << 21, stream=stream)
    big.grow(1 << 22)
    assert {r[0]: r[2] for r in cu._core._tallies(False)}["virtual"] - before == big.size
    big.close()
    settle()
    assert {r[0]: r[2] for r in cu._core._tallies(False)}["virtual"] == before


MAX = 1 << 26


@pytest.fixture
def small(device):
    """A pool that 40 MiB fit in once."""
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=MAX)) as pool:
        yield pool


@contextmanager
def release_under_way(pool, stream):
    """Yield a function that lets the pool have its memory back: it ends the last launch with it."""
    settle()
    go = threading.Event()
    memory = pool.allocate(40 << 20, stream=stream)
    graph = cu.Graph()
    graph.callback(go.wait).memset(memory, 1)
    step = graph.instantiate()
    step.launch(stream)
    for thing in (memory, step, graph):
        thing.close()
    try:
        yield go.set
    finally:
        go.set()


@contextmanager
def soon(do):
    """Run a function on another thread 0.2 s after the block begins."""
    timer = threading.Timer(0.2, do)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_an_allocation_waits_for_releases_under_way(small, device, stream):
    with (
        release_under_way(small, stream) as end,
        device.create_stream() as other,
        soon(end),
    ):
        small.allocate(40 << 20, stream=other).close()


def test_an_allocation_that_fails_says_who_holds_what(small, stream):
    with small.allocate(40 << 20, stream=stream), pytest.raises(cu.OutOfMemoryError) as e:
        small.allocate(40 << 20, stream=stream)
    assert e.value.requested == 40 << 20
    text = str(e.value)
    assert "41943040 bytes on device 0" in text
    assert e.value.held
    assert text.endswith(e.value.held)
    assert "40.0 MiB" in e.value.held
    small.allocate(40 << 20, stream=stream).close()


def test_an_allocation_that_fails_leaves_a_capture_valid(small, device, stream):
    with small.allocate(40 << 20, stream=stream) as memory, device.create_stream() as other:
        with other.capture() as graph:
            memory.fill(1, stream=other)
            with pytest.raises(cu.OutOfMemoryError) as e:
                small.allocate(40 << 20, stream=stream)
            memory.fill(2, stream=other)
        assert e.value.held == ""
        assert len(graph.nodes) == 2


def test_ctrl_c_ends_a_wait_for_releases(small, device, stream):
    with (
        release_under_way(small, stream),
        device.create_stream() as other,
        soon(_thread.interrupt_main),
        pytest.raises(KeyboardInterrupt),
    ):
        small.allocate(40 << 20, stream=other)


def test_the_size_by_its_name(device, stream, driver):
    """As cuda.core calls it, of all resources of ours; others are asked by position."""
    resources = [
        device,
        device.memory_resource,
        cu.PinnedMemoryResource(),
        cu.ManagedMemoryResource(device),
        cu.VirtualMemoryResource(device),
        cu.TrackingMemoryResource(device.memory_resource),
        cu.ArenaMemoryResource(device.memory_resource, 1 << 16),
    ]
    for resource in resources:
        resource.allocate(size=64, stream=stream).close()
        resource.allocate(stream=stream, size=64).close()
        for wrong in (
            lambda r: r.allocate(64, size=64, stream=stream),
            lambda r: r.allocate(nbytes=64, stream=stream),
            lambda r: r.allocate(stream=stream),
        ):
            with pytest.raises(TypeError):
                wrong(resource)
    cu.PinnedMemoryResource().allocate(size=4).close()

    class Counting(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            return cu.PinnedMemoryResource().allocate(nbytes, stream=stream)

    before = device.memory_resource
    device.memory_resource = Counting()
    try:
        assert device.allocate(size=64, stream=stream).size == 64
    finally:
        device.memory_resource = before
    resources[-1].close()
