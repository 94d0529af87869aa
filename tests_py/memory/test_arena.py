# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A resource that gives out parts of one block."""

from __future__ import annotations

import random
import threading
import weakref
from dataclasses import astuple
from types import SimpleNamespace

import numpy as np
import pytest

import cudago as cu
from cudago._memory import regions as regions_module
from cudago._memory.arena import _Owner
from cudago._memory.regions import Holder, Regions, Work
from cudago.testing import hold, settle

KIB = 1024


@pytest.fixture
def arena(device):
    with cu.ArenaMemoryResource(device.memory_resource, 64 * KIB) as resource:
        yield resource
    settle()


@pytest.fixture
def other(device):
    with device.create_stream() as stream:
        yield stream


def test_parts_of_one_block(arena, device, stream):
    assert astuple(arena.statistics) == (64 * KIB, 0, 0, 64 * KIB)
    a = arena.allocate(1000, stream=stream)
    b = cu.full(128, 7, "i4", stream=stream, resource=arena)
    assert (a.size, b.handle - a.handle, a.device, arena.device) == (1000, 1024, device, device)
    assert astuple(arena.statistics) == (64 * KIB, 1536, 0, 64 * KIB - 1536)
    assert b.numpy(stream=stream).tolist() == [7] * 128
    assert "1536 of 65536 bytes used" in repr(arena)
    a.close()
    b.close()
    stream.sync()
    settle()
    assert astuple(arena.statistics) == (64 * KIB, 0, 0, 64 * KIB)


def test_the_same_stream_has_it_again_at_once(arena, stream):
    with hold(stream):
        first = arena.allocate(32 * KIB, stream=stream)
        handle = first.handle
        first.fill(1, stream=stream)
        first.close()
        assert arena.statistics.waiting == 32 * KIB
        again = arena.allocate(32 * KIB, stream=stream)
        assert again.handle == handle
        again.close()


def test_another_stream_has_other_memory(arena, stream, other):
    with hold(stream):
        first = arena.allocate(16 * KIB, stream=stream)
        handle = first.handle
        first.close()
        second = arena.allocate(16 * KIB, stream=other)
        assert second.handle != handle
    stream.sync()
    settle()
    assert astuple(arena.statistics) == (64 * KIB, 16 * KIB, 0, 32 * KIB)
    second.close()


def test_another_stream_waits_if_there_is_no_other(arena, stream, other):
    with hold(stream):
        first = arena.allocate(64 * KIB, stream=stream)
        first.fill(1, stream=stream)
        handle = first.handle
        first.close()
        second = arena.allocate(64 * KIB, stream=other)
        assert second.handle == handle
        second.fill(2, stream=other)
        assert not other.is_done
    out = np.empty(64 * KIB, "u1")
    second.copy_to(out, stream=other)
    other.sync()
    assert (out == 2).all()
    second.close()


def test_uses_on_other_streams_are_waited_for(arena, stream, other):
    """The free comes after them, whichever stream has the memory next."""
    out = cu.PinnedMemoryResource().allocate(64 * KIB)
    first = arena.allocate(64 * KIB, stream=stream)
    first.fill(1, stream=stream)
    other.wait(stream)
    with hold(other):
        out.copy_from(first, stream=other)
        first.close()
        second = arena.allocate(64 * KIB, stream=stream)
        second.fill(2, stream=stream)
        assert not stream.is_done
    stream.sync()
    other.sync()
    assert (np.frombuffer(out, "u1") == 1).all()
    second.close()


def test_a_closed_stream(arena, device, stream):
    with device.create_stream() as gone:
        first = arena.allocate(64 * KIB, stream=gone)
        first.fill(1, stream=gone)
    first.close()
    second = arena.allocate(64 * KIB, stream=stream)  # waits for the work, on the host
    second.close()


def test_default_streams_are_waited_for_on_the_host(arena, device, stream):
    for of in (device.default_stream, device.per_thread_default_stream):
        for to in (of, stream):
            of.sync()
            arena.allocate(64 * KIB, stream=of).close()
            arena.allocate(64 * KIB, stream=to).close()


def test_too_much(arena, stream, other):
    with pytest.raises(cu.OutOfMemoryError, match="has no 65537 bytes in one piece: 0 are") as e:
        arena.allocate(64 * KIB + 1, stream=stream)
    assert e.value.requested == 64 * KIB + 1
    assert isinstance(e.value, MemoryError)
    parts = [arena.allocate(16 * KIB, stream=stream) for _ in range(4)]
    for part in parts[::2]:
        part.close()
    with pytest.raises(cu.OutOfMemoryError, match=r"32768 are used, .* free piece has 16384"):
        arena.allocate(17 * KIB, stream=other)
    parts[1].close()
    whole = arena.allocate(48 * KIB, stream=other)  # now in one piece
    for part in (whole, *parts):
        part.close()


def test_in_captures(arena, stream, other):
    idle = arena.allocate(KIB, stream=stream).handle  # the start of the block
    stream.sync()
    settle()
    with hold(other):
        used = arena.allocate(KIB, stream=other)
        used_at = used.handle
        used.close()
        with stream.capture() as graph:
            x = cu.full(256, 3, "i4", stream=stream, resource=arena)
            assert x.handle != used_at
            x.fill(4, stream=stream)
    assert used_at == idle
    handle = x.handle
    step = graph.instantiate()
    assert all(type(n.params).__name__ != "AllocNodeParams" for n in graph)
    step.launch(stream)
    assert (x.numpy(stream=stream) == 4).all()
    x.close()
    stream.sync()
    settle()
    assert arena.statistics.used == KIB  # the graph's
    others = [arena.allocate(KIB, stream=stream) for _ in range(63)]
    assert handle not in {o.handle for o in others}
    with hold(stream):
        step.launch(stream)
        step.close()
        graph.close()
        assert arena.statistics.used == 64 * KIB
    stream.sync()
    settle()
    for o in others:
        o.close()
    stream.sync()
    settle()
    assert arena.statistics.used == 0


def test_a_capture_has_no_memory_that_is_in_use(arena, stream, other):
    with hold(other):
        arena.allocate(64 * KIB, stream=other).close()
        with (
            stream.capture() as graph,
            pytest.raises(cu.OutOfMemoryError, match="as a capture needs"),
        ):
            arena.allocate(KIB, stream=stream)
    graph.close()


def test_the_block_stays_as_long_as_it_is_used(device, stream):
    tracking = cu.TrackingMemoryResource(device.memory_resource)
    with cu.ArenaMemoryResource(tracking, 4 * KIB) as arena:
        x = cu.full(16, 5, "i4", stream=stream, resource=arena)
    assert arena.is_closed
    assert "closed" in repr(arena)
    with pytest.raises(cu.ClosedError, match="memory resource is closed"):
        arena.allocate(8, stream=stream)
    with pytest.raises(cu.ClosedError):
        _ = arena.statistics
    arena.close()
    assert tracking.statistics.count == 1
    assert x.numpy(stream=stream).tolist() == [5] * 16
    with hold(stream):
        x.fill(1, stream=stream)
        x.close()
        assert tracking.statistics.count == 1
    stream.sync()
    settle()
    assert tracking.statistics.count == 0


def test_as_the_devices_resource(arena, device, stream):
    before = device.memory_resource
    device.memory_resource = arena
    try:
        x = cu.ones(16, stream=stream)
        assert arena.statistics.used == 512
        assert cu.empty(0, stream=stream).size == 0
        assert x.astype("f8", stream=stream).numpy(stream=stream).tolist() == [1.0] * 16
        x.close()
    finally:
        device.memory_resource = before


def test_over_virtual_memory(device, stream):
    with cu.ArenaMemoryResource(cu.VirtualMemoryResource(device), 1 << 21) as arena:
        x = cu.ones(16, stream=stream, resource=arena)
        assert x.numpy(stream=stream).sum() == 16
        x.close()


def test_threads(arena, device):
    """Each thread finds in its memory what it has put there."""
    wrong = []

    def work(number):
        pick = random.Random(number)
        with device.create_stream() as stream:
            for _ in range(30):
                n = pick.randrange(1, 8 * KIB)
                with arena.allocate(n, stream=stream) as buffer:
                    buffer.fill(number, stream=stream)
                    found = buffer.view("u1").numpy(stream=stream)
                    if not (found == number).all():
                        wrong.append(found)

    threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    settle()
    assert not wrong
    assert astuple(arena.statistics) == (64 * KIB, 0, 0, 64 * KIB)


def test_what_is_refused(device, stream, pinned):
    class Lends(cu.MemoryResource):
        def __init__(self, buffer):
            self.buffer = buffer

        def allocate(self, nbytes, *, stream):
            return self.buffer

    make = cu.ArenaMemoryResource
    pool = device.memory_resource
    with pytest.raises(TypeError, match="upstream must be a MemoryResource, not int"):
        make(5, 1024)
    with pytest.raises(TypeError, match="device must be a Device, not int"):
        make(pool, 1024, device=0)
    with pytest.raises(TypeError, match="device= is needed"):
        make(cu.PinnedMemoryResource(), 1024)
    with pytest.raises(ValueError, match=r"must allocate memory of <cudago.Device"):
        make(cu.PinnedMemoryResource(), 1024, device=device)
    with pytest.raises(TypeError, match="must return a Buffer, not bytes"):
        make(Lends(b"x"), 1024, device=device)
    with (
        device.allocate(8, stream=stream) as small,
        pytest.raises(ValueError, match="returned 8 bytes, 1024 were asked for"),
    ):
        make(Lends(small), 1024, device=device)
    for size in (0, -1):
        with pytest.raises(ValueError, match="size must be at least 1 byte"):
            make(pool, size)
    with pytest.raises(TypeError, match="size must be an int, not"):
        make(pool, 1.5)
    with make(pool, 1024) as arena:
        with pytest.raises(TypeError, match="needs stream="):
            arena.allocate(8)
        with pytest.raises(ValueError, match="must not be negative, got -1"):
            arena.allocate(-1, stream=stream)
        with pytest.raises(TypeError, match="size must be an int, not"):
            arena.allocate("8", stream=stream)
        with device.create_stream() as closed:
            pass
        with pytest.raises(cu.ClosedError):
            arena.allocate(8, stream=closed)
        assert arena.statistics.used == 0
        empty = arena.allocate(0, stream=stream)
        assert (empty.size, arena.statistics.used) == (0, 0)


class Part:
    """Of a block, with what `Holder` asks for its end."""

    def __init__(self, size, key):
        self.size, self.owner = size, _Owner()
        self.work = Work(SimpleNamespace(_id=key), None)
        self.holder = Holder(self.owner, self.work)


def test_regions_hold_together(monkeypatch):
    """Random takes, frees and ends of work: no byte has two owners, and all comes back."""
    monkeypatch.setattr(regions_module, "_made", (1, 2))
    pick = random.Random(5)
    regions, taken, waiting = Regions(64 * 512), {}, []
    for _ in range(2000):
        part = Part(512 * pick.randrange(1, 9), pick.choice((0, 1, 2)))
        start = regions.take(part.size, part.holder, part.work.stream._id)
        if start is not None:
            assert all(start + part.size <= at or at + p.size <= start for at, p in taken.items())
            taken[start] = part
        del part
        while taken and pick.random() < 0.55:
            part = taken.pop(pick.choice(list(taken)))
            part.owner = None
            waiting.append(part)
            del part
        while waiting and pick.random() < 0.5:
            del waiting[pick.randrange(len(waiting))]
        assert regions.sums()[0] == sum(part.size for part in taken.values())
    taken.clear()
    waiting.clear()
    assert regions.sums() == (0, 0, 64 * 512)


def test_a_stream_is_kept_as_long_as_its_work(arena, device):
    stream = device.create_stream()
    watch = weakref.ref(stream)
    arena.allocate(KIB, stream=stream).close()
    stream.sync()
    settle()
    del stream
    assert watch() is None
