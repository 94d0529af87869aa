# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pools of pinned and of managed memory: allocated in stream order, read by the host."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest

import cudago as cu
from cudago._gopy import api
from cudago.testing import hold, settle

N = 256
SIZE = 4 * N


def make(kind, device, **options):
    """A pool of a kind; skips where there is none."""
    pool = cu.PoolOptions(**options)
    try:
        if kind == "managed":
            return cu.ManagedMemoryResource(device, pool=pool)
        return cu.PinnedMemoryResource(pool=pool, device=device)
    except cu.UnsupportedError as e:
        if device.properties.host_memory_pools_supported and cu.driver_version() >= (13, 0):
            raise
        pytest.skip(str(e))


@pytest.fixture(params=["pinned", "managed"])
def kind(request):
    return request.param


@pytest.fixture
def pool(kind, device):
    with make(kind, device) as resource:
        yield resource
    settle()


def test_no_bytes_are_a_python_buffer_of_none(pool, kind, device, stream):
    alone = cu.ManagedMemoryResource(device) if kind == "managed" else cu.PinnedMemoryResource()
    for resource in (pool, alone):
        buffer = resource.allocate(0, stream=stream)
        assert bytes(buffer) == b""
        assert np.frombuffer(buffer[:], "u1").tolist() == []
        with memoryview(buffer) as view:
            assert (view.nbytes, view.readonly) == (0, False)
            with pytest.raises(BufferError):
                buffer.close()
        buffer.close()
    with pytest.raises(BufferError, match="device memory has no Python buffer"):
        memoryview(device.allocate(0, stream=stream))


def driver_pools():
    return json.loads(api.driver_objects()).get("MemoryPool", 0)


def test_host_and_kernels_share_the_memory(pool, kind, device, stream):
    buffer = pool.allocate(SIZE, stream=stream)
    assert buffer.kind == kind
    assert buffer.device == pool.device == (device if kind == "managed" else None)
    stream.sync()  # from here on it is there for the host
    if kind == "managed":
        assert buffer.preferred_location == device
    array = np.frombuffer(buffer, "i4")
    array[:] = np.arange(N)
    out = np.empty(N, "i4")
    buffer.copy_to(out, stream=stream)
    assert out.tolist() == list(range(N))
    buffer.fill(1, stream=stream)
    stream.sync()
    assert (array == 0x01010101).all()
    del array, out
    gc.collect()
    buffer.close()


def test_kernels_use_it(pool, stream):
    t = cu.zeros(N, "i4", stream=stream, resource=pool)
    t.copy_from(np.arange(N, dtype="i4"), stream=stream)
    wide = t[::2].astype("i8", stream=stream)  # converted by a kernel, in place
    assert wide.numpy(stream=stream).tolist() == list(range(0, N, 2))
    t[::2].fill(7, stream=stream)
    stream.sync()
    assert np.asarray(memoryview(t)).tolist()[:4] == [7, 1, 7, 3]


def test_in_the_order_of_streams(pool, device, stream):
    out = cu.zeros(SIZE, "u1", stream=stream)
    with device.create_stream() as other, hold(stream):
        first = pool.allocate(SIZE, stream=stream)
        first.fill(1, stream=stream)
        other.wait(stream)
        out.buffer.copy_from(first, stream=other)
        first.close()  # goes back behind the copy on other
        second = pool.allocate(SIZE, stream=stream)
        second.fill(2, stream=stream)
        second.close()
        assert not stream.is_done
        stream.wait(other)
    assert (out.numpy(stream=stream) == 1).all()


def test_statistics_and_options(kind, device, stream):
    given = cu.PoolOptions(release_threshold=1 << 20, reuse_allow_opportunistic=False)
    with make(kind, device, release_threshold=1 << 20, reuse_allow_opportunistic=False) as pool:
        assert pool.options == given
        with pool.allocate(SIZE, stream=stream):
            stream.sync()
            assert pool.statistics.used >= SIZE
            assert f"{kind} pool" in cu.memory_summary()
        stream.sync()
        assert pool.statistics.used == 0
        assert pool.statistics.used_high >= SIZE
        pool.reset_high_water()
        assert pool.statistics.used_high == 0
        pool.options = cu.PoolOptions()
        pool.trim()
        assert pool.options == cu.PoolOptions()
    with pytest.raises(cu.ClosedError):
        _ = pool.statistics
    with pytest.raises(cu.ClosedError):
        pool.allocate(8, stream=stream)


def test_a_pool_is_there_as_long_as_its_memory(kind, device, stream):
    """As those of device memory: NVIDIA's driver 580 reads freed memory otherwise."""
    settle()
    before = driver_pools()
    for _ in range(3):
        with make(kind, device) as pool:
            memory = pool.allocate(SIZE, stream=stream)
            view = memory[:16]
        settle()
        assert driver_pools() == before + 1
        memory.close()
        with hold(stream):
            view.close()
            assert driver_pools() == before + 1
        device.sync()
        stream.sync()
        settle()
        assert driver_pools() == before


def test_an_array_keeps_it(pool, stream):
    buffer = pool.allocate(SIZE, stream=stream)
    stream.sync()
    array = np.frombuffer(buffer, "u1")
    with pytest.raises(BufferError):
        buffer.close()
    del buffer
    gc.collect()
    array_of = array[:4]
    array_of[:] = 3
    assert pool.statistics.used >= SIZE
    del array, array_of
    gc.collect()
    stream.sync()
    assert pool.statistics.used == 0


def test_graphs_keep_it(pool, stream):
    buffer = pool.allocate(SIZE, stream=stream)
    with cu.Graph() as graph:
        graph.memset(buffer, 9)
        step = graph.instantiate()
    stream.sync()
    array = np.frombuffer(buffer, "u1")
    step.launch(stream)
    stream.sync()
    assert (array == 9).all()
    del array
    gc.collect()
    buffer.close()
    step.launch(stream)
    step.close()
    stream.sync()
    settle()
    assert pool.statistics.used == 0


@pytest.mark.parametrize("how", ["trim", "close"])
def test_the_host_sees_what_is_at_an_address_that_was_given_back(kind, how, device, stream):
    """NVIDIA's driver 580 shows it the old pages of managed memory without a preferred location."""
    pool = make(kind, device)
    for value in range(1, 9):
        with pool.allocate(SIZE, stream=stream) as buffer:
            buffer.fill(value, stream=stream)
            stream.sync()
            with memoryview(buffer) as seen:
                assert bytes(seen) == bytes([value]) * SIZE
            buffer.fill(100, stream=stream)
        stream.sync()
        if how == "trim":
            pool.trim()
        else:
            pool.close()
            settle()
            pool = make(kind, device)
    pool.close()


def test_captures(pool, stream):
    with (
        stream.capture() as graph,
        pytest.raises(ValueError, match="cannot be allocated on a stream"),
    ):
        pool.allocate(8, stream=stream)
    graph.close()
    buffer = pool.allocate(SIZE, stream=stream)
    with stream.capture() as graph:
        buffer.fill(5, stream=stream)
    step = graph.instantiate()
    step.launch(stream)
    stream.sync()
    assert memoryview(buffer)[SIZE - 1] == 5
    step.close()
    graph.close()


def test_sharing_over_dlpack_waits(pool, stream):
    t = cu.zeros(N, "i4", stream=stream, resource=pool)
    if t.__dlpack_device__()[0] not in (1, 3):
        pytest.skip("NumPy imports no managed memory")
    t.fill(4, stream=stream)
    assert np.from_dlpack(t).sum() == 4 * N


def test_a_device_with_open_memory_is_not_reset(pool, device, stream):
    buffer = pool.allocate(SIZE, stream=stream)
    stream.sync()
    with pytest.raises(ValueError, match="pinned or managed memory are open"):
        device.reset()
    assert not buffer.is_closed
    buffer.close()


def test_what_streams_cannot_write(pool, stream):
    word = pool.allocate(8, stream=stream)
    with pytest.raises((TypeError, ValueError)):
        stream.write_value(word, np.int32(1))


def test_through_other_resources(pool, kind, stream):
    tracking = cu.TrackingMemoryResource(pool)
    with tracking.allocate(SIZE, stream=stream):
        assert tracking.allocations[0].kind == kind
    assert tracking.statistics.used == 0


def test_what_is_refused(kind, device, stream):
    options = cu.PoolOptions()
    with pytest.raises(TypeError, match="pool must be PoolOptions, not bool"):
        cu.PinnedMemoryResource(pool=True)
    with pytest.raises(TypeError, match="pool must be PoolOptions, not dict"):
        cu.ManagedMemoryResource(device, pool={})
    with pytest.raises(ValueError, match="max_size cannot be set for managed memory, got 5"):
        cu.ManagedMemoryResource(device, pool=cu.PoolOptions(max_size=5))
    with pytest.raises(TypeError, match="are of a pool"):
        cu.PinnedMemoryResource(numa=0)
    with pytest.raises(TypeError, match="are of a pool"):
        cu.PinnedMemoryResource(device=device)
    with pytest.raises(ValueError, match="numa must be the number of a node, got -1"):
        cu.PinnedMemoryResource(pool=options, numa=-1)
    with pytest.raises(TypeError, match="device must be a Device"):
        cu.PinnedMemoryResource(pool=options, device=0)
    alone = cu.PinnedMemoryResource()
    for use in (
        lambda: alone.options,
        lambda: alone.statistics,
        alone.trim,
        alone.reset_high_water,
    ):
        with pytest.raises(TypeError, match="has no pool"):
            use()
    with pytest.raises(TypeError, match="has no pool"):
        alone.options = options
    with make(kind, device) as pool:
        with pytest.raises(TypeError, match="needs stream=: memory of a pool is allocated in a st"):
            pool.allocate(8)
        empty = pool.allocate(0, stream=stream)
        assert (empty.size, empty.kind) == (0, kind)


def test_a_limit_of_pinned_memory(device, stream):
    with make("pinned", device, max_size=32 << 20) as pool:
        with pytest.raises(cu.OutOfMemoryError) as e:
            pool.allocate(1 << 30, stream=stream)
        assert e.value.requested == 1 << 30
        pool.allocate(SIZE, stream=stream).close()


def test_a_numa_node(device, stream):
    if not device.properties.host_numa_memory_pools_supported:
        with pytest.raises(cu.UnsupportedError, match="no pools of host memory on a NUMA node"):
            cu.PinnedMemoryResource(pool=cu.PoolOptions(), device=device, numa=0)
        return
    node = max(0, device.properties.host_numa_id)
    with cu.PinnedMemoryResource(pool=cu.PoolOptions(), device=device, numa=node) as pool:
        buffer = pool.allocate(SIZE, stream=stream)
        buffer.fill(3, stream=stream)
        stream.sync()
        assert memoryview(buffer)[0] == 3
        buffer.close()


def test_a_node_that_there_is_not(device):
    make("pinned", device).close()
    with pytest.raises(cu.CUDAError, match=r"a pool on NUMA node 999; the host has nodes \d"):
        cu.PinnedMemoryResource(pool=cu.PoolOptions(), device=device, numa=999)


def test_trim_to_a_number_of_bytes(pool):
    with pytest.raises(ValueError, match="keep in bytes must not be negative, got -1"):
        pool.trim(-1)
    with pytest.raises(OverflowError, match=r"keep in bytes must be below 2\*\*63"):
        pool.trim(1 << 64)
