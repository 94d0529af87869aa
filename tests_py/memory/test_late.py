# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Letting go of memory that another stream still uses makes no stream wait."""

from __future__ import annotations

import contextlib
import gc
import time

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

SIZE = 1 << 16
HOLDS = """
extern "C" __global__ void hold(volatile int* go) { while (!*go) {} }
extern "C" __global__ void touch(int* x) { *x = 7; }
"""


@pytest.fixture(scope="module")
def code():
    return cu.Program(HOLDS).compile()


@contextlib.contextmanager
def held_by_a_kernel(stream, code):
    """Let the stream wait for the host in a kernel: no callback is alive."""
    go = cu.PinnedMemoryResource().allocate(4)
    np.frombuffer(go, "i4")[0] = 0
    cu.launch(stream, cu.LaunchConfig(1, 1), code["hold"], go)
    try:
        yield
    finally:
        np.frombuffer(go, "i4")[0] = 1
        stream.sync()
        go.close()


@contextlib.contextmanager
def held(how, stream, code):
    with hold(stream) if how == "callback" else held_by_a_kernel(stream, code):
        yield


def touch(memory, stream, code):
    cu.launch(stream, cu.LaunchConfig(1, 1), code["touch"], memory)


def own_pool(device, **options):
    return cu.DeviceMemoryResource(device, pool=cu.PoolOptions(**options))


def resources(device):
    """Return what allocates in a stream's order."""
    return {
        "pool": own_pool(device),
        "pinned pool": cu.PinnedMemoryResource(pool=cu.PoolOptions(), device=device),
        "arena": cu.ArenaMemoryResource(device.memory_resource, 64 * SIZE),
    }


@pytest.fixture(params=["pool", "pinned pool", "arena"])
def resource(request, device):
    made = resources(device)
    yield made[request.param]
    gc.collect()
    settle()
    for each in made.values():
        each.close()


def live_buffers():
    return cu.live_objects().get("Buffer", 0)


@pytest.mark.parametrize("how", ["kernel", "callback"])
@pytest.mark.parametrize("uses", [1, 2, 5])
def test_no_stream_waits(resource, device, stream, code, how, uses):
    before = live_buffers()
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(device.create_stream()) for _ in range(uses)]
        memory = [resource.allocate(SIZE, stream=stream) for _ in range(3)]
        stream.sync()
        for other in others:
            stack.enter_context(held(how, other, code))
        for part in memory:
            for other in others:
                touch(part, other, code)
        del part
        memory.clear()
        gc.collect()
        stream.sync()
        assert stream.is_done
        assert not any(other.is_done for other in others)
        assert live_buffers() >= before + 3
    gc.collect()
    settle()
    assert live_buffers() == before


def test_what_is_late_is_not_given_to_others(device, stream, code):
    with device.create_stream() as other, own_pool(device) as pool:
        first = pool.allocate(SIZE, stream=stream)
        address = first.handle
        stream.sync()
        with held_by_a_kernel(other, code):
            touch(first, other, code)
            first.close()
            again = [pool.allocate(SIZE, stream=stream) for _ in range(8)]
            assert address not in [b.handle for b in again]
            assert pool.statistics.used == 9 * SIZE
        settle()
        assert pool.statistics.used == 8 * SIZE
        for b in again:
            b.close()


def test_a_stream_that_used_it_is_closed(device, stream, code):
    before = live_buffers()
    go = cu.PinnedMemoryResource().allocate(4)
    np.frombuffer(go, "i4")[0] = 0
    other = device.create_stream()
    memory = device.allocate(SIZE, stream=stream)
    stream.sync()
    cu.launch(other, cu.LaunchConfig(1, 1), code["hold"], go)
    touch(memory, other, code)
    other.close()
    memory.close()
    stream.sync()
    np.frombuffer(go, "i4")[0] = 1
    settle()
    assert live_buffers() == before + 1
    go.close()


def test_a_stream_of_another_library(device, stream, code):
    """Others have its handle, so no event is recorded in it later."""
    before = live_buffers()
    with device.create_stream() as ours:
        other = cu.Stream.from_handle(ours.handle, device=device, owner=ours)
        memory = device.allocate(SIZE, stream=stream)
        stream.sync()
        with held_by_a_kernel(ours, code):
            touch(memory, other, code)
            memory.close()
            stream.sync()
            assert live_buffers() == before + 2
        other.sync()
        settle()
        assert live_buffers() == before


@pytest.mark.parametrize("callback", [False, True])
def test_a_stream_that_nobody_uses_again(device, stream, code, callback):
    """The reaper records nothing in a stream whose handle others have."""
    before = live_buffers()
    with device.create_stream() as other, device.create_stream() as third:
        assert other.handle
        memory = device.allocate(SIZE, stream=stream)
        stream.sync()
        with hold(third) if callback else contextlib.nullcontext():
            touch(memory, other, code)
            memory.close()
        for _ in range(1000):
            device.allocate(16, stream=stream).close()
            if live_buffers() == before:
                break
            time.sleep(0.01)
        assert live_buffers() == before


def test_only_so_much_is_late(device, stream, code):
    """Beyond that the oldest goes back in the stream's order, which then waits."""
    size = 192 << 20
    with device.create_stream() as other, own_pool(device) as pool:
        with held_by_a_kernel(other, code):
            for n in range(1, 11):
                memory = pool.allocate(size, stream=stream)
                touch(memory, other, code)
                memory.close()
                assert stream.is_done == (n <= 8), n
        stream.sync()
        settle()
        assert pool.statistics.used == 0


def test_a_host_far_ahead(device, stream, code, driver):
    """What is reserved does not grow with the number of chunks."""
    if driver == "sim":
        pytest.skip("the simulated driver's pools reuse what was freed, not what is to be")
    size, chunks = 4 << 20, 100_000
    with device.create_stream() as other, own_pool(device) as pool:
        for _ in range(chunks):
            memory = pool.allocate(size, stream=stream)
            memory.fill(1, stream=stream)
            other.wait(stream)
            touch(memory, other, code)
            memory.close()
        stream.sync()
        other.sync()
        assert pool.statistics.reserved_high <= 1088 << 20
        settle()
        assert pool.statistics.used == 0


def test_where_there_is_not_enough_it_goes_back_in_order(device, stream, code):
    limit = 512 << 20
    with device.create_stream() as other, own_pool(device, max_size=limit) as pool:
        with held_by_a_kernel(other, code):
            for _ in range(2):  # each is all that there is
                memory = pool.allocate(limit, stream=stream)
                touch(memory, other, code)
                memory.close()
            assert not stream.is_done
        stream.sync()
        settle()


def test_a_capture_that_begins_meanwhile(device, stream, code):
    with device.create_stream() as other:
        memory = device.allocate(SIZE, stream=stream)
        stream.sync()
        with held_by_a_kernel(other, code):
            touch(memory, other, code)
            memory.close()
            with stream.capture() as graph:
                stream.record(device.create_event())
        other.sync()
        settle()
        graph.close()


def test_exit_with_late_memory(driver, script):
    run = script(
        f"""
import cudago as cu
d = cu.Device(0)
a, b = d.create_stream(), d.create_stream()
code = cu.Program({HOLDS!r}).compile()
x = d.allocate(64, stream=a)
a.sync()
b.callback(__import__("time").sleep, 0.2)
cu.launch(b, cu.LaunchConfig(1, 1), code["touch"], x)
del x
a.sync()
print("over")
"""
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "over\n", "")


def test_a_reset_with_late_memory(driver, script):
    run = script(
        f"""
import cudago as cu
d = cu.Device(0)
code = cu.Program({HOLDS!r}).compile()
a, b = d.create_stream(), d.create_stream()
x = d.allocate(64, stream=a)
a.sync()
b.callback(__import__("time").sleep, 0.2)
cu.launch(b, cu.LaunchConfig(1, 1), code["touch"], x)
del x, code
d.reset()
s = d.create_stream()
d.allocate(64, stream=s).close()
s.sync()
from cudago.testing import settle
settle()
print(cu.live_objects().get("Buffer", 0))
"""
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "0\n", "")
