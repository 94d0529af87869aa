# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pools that come and go: beside waits, used again, and as many as there is room for."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

import cudago as cu
from cudago._gopy import api
from cudago.testing import hold, settle


def driver_pools():
    return json.loads(api.driver_objects()).get("MemoryPool", 0)


def test_pools_come_and_go_beside_waits_for_the_device(device, stream):
    """NVIDIA's driver 580 dies where `cuMemPoolDestroy` meets `cuCtxSynchronize`."""
    over = threading.Event()

    def wait():
        while not over.is_set():
            device.sync()

    waiting = [threading.Thread(target=wait) for _ in range(2)]
    for thread in waiting:
        thread.start()
    try:
        for _ in range(100):
            with (
                cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool,
                pool.allocate(256, stream=stream) as memory,
            ):
                memory.fill(1, stream=stream)
    finally:
        over.set()
        for thread in waiting:
            thread.join()
    settle()


@pytest.mark.parametrize("when", ["made", "changed"])
def test_a_wait_gives_back_what_is_beyond_the_threshold(device, stream, when):
    """Also the wait for a stream that has nothing to do, which the driver is not asked about."""
    none, all_ = cu.PoolOptions(release_threshold=0), cu.PoolOptions()
    with cu.DeviceMemoryResource(device, pool=none if when == "made" else all_) as pool:
        if when == "changed":
            pool.options = none
        for _ in range(3):
            pool.allocate(64 << 20, stream=stream).close()
            while not stream.is_done:
                pass
            stream.sync()
            assert pool.statistics.reserved == 0
        pool.options = all_
        pool.allocate(64 << 20, stream=stream).close()
        stream.sync()
        assert pool.statistics.reserved >= 64 << 20


@pytest.mark.parametrize("exposed", [False, True], ids=["own", "exposed"])
def test_a_pool_that_is_used_again_is_like_new(device, exposed):
    stream = device.create_stream()
    if exposed:
        assert stream.handle  # others may have it
    options = cu.PoolOptions(max_size=300 << 20)
    with cu.DeviceMemoryResource(device, pool=options) as pool:
        before = pool.options
        pool.options = replace(before, release_threshold=5, reuse_allow_opportunistic=False)
        pool.allocate(256 << 20, stream=stream).close()
    stream.sync()
    settle()
    with cu.DeviceMemoryResource(device, pool=options) as pool:
        assert pool.options == before
        assert pool.statistics.used == pool.statistics.used_high == 0
        # Its memory went back to the system, but for a block that the driver may keep.
        assert pool.statistics.reserved <= 32 << 20
    stream.close()


def test_a_pool_is_there_as_long_as_its_memory(device, stream):
    """NVIDIA's driver 580 dies in a wait after a free into a pool that has been destroyed."""
    settle()
    before = driver_pools()
    for _ in range(10):
        with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool:
            memory = pool.allocate(1 << 20, stream=stream)
            view = memory[:16]
        settle()
        assert driver_pools() == before + 1
        memory.fill(7, stream=stream)
        memory.close()
        assert view.view("u1").numpy(stream=stream).tolist() == [7] * 16
        with hold(stream):
            view.close()
            assert driver_pools() == before + 1
        device.sync()
        stream.sync()
        settle()
        assert driver_pools() == before


def test_a_pool_is_there_as_long_as_a_graph_that_uses_its_memory(device, stream):
    before = driver_pools()
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool, cu.Graph() as graph:
        with pool.allocate(64, stream=stream) as memory:
            graph.memset(memory, 1)
        step = graph.instantiate()
    for _ in range(3):
        step.launch(stream)
        device.sync()
    settle()
    assert driver_pools() == before + 1
    step.close()
    device.sync()
    stream.sync()
    settle()
    assert driver_pools() == before


@pytest.mark.parametrize("exposed", [False, True], ids=["own", "exposed"])
def test_as_many_pools_as_there_is_room_for(device, exposed):
    """Those that are closed make room, also while their memory is still in use."""
    stream = device.create_stream()
    if exposed:
        assert stream.handle  # others may have it
    settle()
    go = threading.Event()
    timer = threading.Timer(0.5, go.set)
    with cu.Graph() as graph:
        step = graph.callback(go.wait).graph.instantiate()
    step.launch(stream)
    try:
        for i in range(700):  # there is room for some 470 (H200, driver 580)
            with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool:
                pool.allocate(64, stream=stream).close()
            if i == 300:
                timer.start()
    finally:
        go.set()
    timer.join()
    step.close()
    stream.close()
