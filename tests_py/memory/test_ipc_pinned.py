# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pinned memory that processes share."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu


@pytest.fixture(autouse=True)
def has_pools(driver, device):
    if not device.properties.host_numa_memory_pools_supported:
        pytest.skip("the device has no pools of host memory on a NUMA node")


def test_a_buffer_is_the_same_memory(two):
    assert two(
        """
        def child(pipe, buffer, part, pool):
            stream = cu.Device().create_stream()
            here = np.frombuffer(buffer, "i4")
            assert (here == 5).all() and buffer.device is None
            assert (buffer.size, part.size, buffer.kind) == (4096, 16, "pinned")
            assert pool.is_imported and not pool.is_ipc_enabled and pool.device is None
            part.fill(np.int32(9), stream=stream)
            stream.sync()
            assert here[4] == 9
            here[0] = 8
            del here
            with cu.PinnedMemoryResource() as other:
                copy = other.allocate(16)
                copy.copy_from(part, stream=stream)
                stream.sync()
                print(np.frombuffer(copy, "i4"), flush=True)
            pipe.send("filled")

        def parent():
            device, stream, pool, buffer = shared(cu.PinnedMemoryResource)
            process, pipe = main(child, buffer, buffer[16:32], pool)
            assert pipe.recv() == "filled"
            process.join()
            print(process.exitcode, np.frombuffer(buffer, "i4")[:9])
        """
    ) == ["[9 9 9 9]", "0 [8 5 5 5 9 9 9 9 5]"]


def test_memory_is_freed_after_who_imported_it(two):
    assert two(
        """
        def child(pipe, buffer):
            stream = cu.Device().create_stream()
            pipe.send("imported")
            pipe.recv()
            graph = cu.Graph()
            graph.memset(buffer, np.int32(3))
            step = graph.instantiate()
            graph.close()
            view = memoryview(buffer)
            raises(BufferError, "", buffer.close)
            view.release()
            buffer.close()
            settle()
            step.launch(stream)
            stream.sync()
            step.close()
            stream.close()
            settle()
            pipe.send(cu.live_objects())
            pipe.recv()

        def parent():
            device, stream, pool, buffer = shared(cu.PinnedMemoryResource)
            process, pipe = main(child, buffer)
            pipe.recv()
            buffer.close()
            settle()
            stream.sync()
            print(pool.statistics.used >= 4096)
            pipe.send("close")
            print(pipe.recv())
            settle()
            stream.sync()
            print(pool.statistics.used)
            pipe.send("end")
            process.join()
            pool.close()
            settle()
            print(process.exitcode, cu.live_objects())
        """
    ) == ["True", "{}", "0", "0 {'Stream': 1}"]


def test_by_handle_and_descriptor(two):
    assert two(
        """
        def child(pipe, handle, descriptor):
            device = cu.Device()
            stream = device.create_stream()
            raises(ValueError, "is that of a pool of pinned memory, and imported as one of device",
                lambda: cu.DeviceMemoryResource.from_allocation_handle(device, handle))
            bare = cu.IPCAllocationHandle(os.dup(handle.fileno()))
            wrong = cu.DeviceMemoryResource.from_allocation_handle(device, bare)
            raises(ValueError, "names memory of another kind",
                lambda: cu.Buffer.from_ipc_descriptor(wrong, descriptor, stream=stream))
            pool = cu.PinnedMemoryResource.from_allocation_handle(handle)
            again = cu.PinnedMemoryResource.from_allocation_handle(handle, device=device)
            bare = cu.PinnedMemoryResource.from_allocation_handle(bare, device=device)
            ours = [cu.Buffer.from_ipc_descriptor(p, descriptor, stream=stream)
                    for p in (pool, again, bare)]
            assert len({b.ptr for b in ours}) == 1
            raises(TypeError, "an imported pool allocates nothing",
                lambda: pool.allocate(1, stream=stream))
            for ask in (lambda: pool.options, lambda: pool.statistics, pool.trim):
                raises(TypeError, "is a pool of another process", ask)
            raises(ValueError, "created by another process", pool.get_allocation_handle)
            raises(ValueError, "only the process that allocated it", lambda: ours[0].ipc_descriptor)
            with stream.capture() as graph:
                raises(ValueError, "cannot be imported on a stream that is capturing",
                    lambda: cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream))
            graph.close()
            ours[0].close()
            ours[2].close()
            settle()
            print((np.frombuffer(ours[1], "i4") == 5).all(), flush=True)
            pipe.send("imported")

        def parent():
            device, stream, pool, buffer = shared(cu.PinnedMemoryResource)
            process, pipe = main(child, pool.get_allocation_handle(), buffer.ipc_descriptor)
            pipe.recv()
            process.join()
            print(process.exitcode)
        """
    ) == ["True", "0"]


def test_what_is_not_shared(device, stream):
    with cu.PinnedMemoryResource(pool=cu.PoolOptions()) as pool:
        assert not pool.is_ipc_enabled and not pool.is_imported
        with pytest.raises(ValueError, match="created without ipc_enabled"):
            pool.get_allocation_handle()
        buffer = pool.allocate(4, stream=stream)
        with buffer, pytest.raises(ValueError, match="not created for sharing"):
            _ = buffer.ipc_descriptor
    with cu.PinnedMemoryResource() as alone:
        assert not alone.is_ipc_enabled and not alone.is_imported
        with pytest.raises(ValueError, match="created without ipc_enabled"):
            alone.get_allocation_handle()
    with pytest.raises(ValueError, match="pools of device memory and of pinned memory"):
        cu.ManagedMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True))


def test_options_say_so(device, stream):
    options = cu.PoolOptions(ipc_enabled=True)
    node = max(0, device.properties.host_numa_id)
    for numa in None, node:
        with cu.PinnedMemoryResource(pool=options, numa=numa) as pool:
            assert pool.options == options and pool.is_ipc_enabled
            handle = pool.get_allocation_handle()
            pool.get_allocation_handle().close()
            assert not handle.is_closed
            with pool.allocate(64, stream=stream) as buffer:
                stream.sync()
                np.frombuffer(buffer, "u1")[:] = 3
                assert buffer[4:8].ipc_descriptor.offset == 4
        handle.close()
