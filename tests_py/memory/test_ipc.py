# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory and events that processes share: sent by multiprocessing, or by hand."""

from __future__ import annotations

import copy
import os
import pickle
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import cudago as cu


def test_a_buffer_is_the_same_memory(two):
    assert two(
        """
        def child(pipe, buffer, part, pool):
            stream = buffer.device.create_stream()
            assert (buffer.view("i4").numpy(stream=stream) == 5).all()
            assert (buffer.size, part.size) == (4096, 16)
            assert pool.is_imported and not pool.is_ipc_enabled
            part.fill(np.int32(9), stream=stream)
            stream.sync()
            pipe.send("filled")

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, buffer, buffer[16:32], pool)
            assert pipe.recv() == "filled"
            process.join()
            print(process.exitcode, buffer.view("i4").numpy(stream=stream)[3:9])
        """
    ) == ["0 [5 9 9 9 9 5]"]


def test_tensors_are_views_of_the_same_memory(two):
    assert two(
        """
        def child(pipe, whole, *parts):
            stream = whole.device.create_stream()
            assert whole.shape == (32, 32) and whole.is_contiguous
            assert whole[1, 2].item(stream=stream) == 34
            for k, part in enumerate(parts):
                pipe.send((part.shape, part.strides, part.numpy(stream=stream)))
                part.fill(-k, stream=stream)
            stream.sync()
            pipe.send("filled")

        def parent():
            device, stream, pool, buffer = shared()
            array = np.arange(1024, dtype="i4").reshape(32, 32)
            t = buffer.view("i4", (32, 32))
            t.copy_from(array, stream=stream)
            stream.sync()
            keys = [np.s_[1], np.s_[2::3, 4:9], np.s_[::-1, 30:20:-4], np.s_[3, 5:6]]
            keys += [np.s_[5:, None, 7], np.s_[0, 0]]
            process, pipe = main(child, t, *[t[key].T for key in keys])
            for k, key in enumerate(keys):
                shape, strides, seen = pipe.recv()
                assert (shape, strides) == (t[key].T.shape, t[key].T.strides)
                assert np.array_equal(seen, array[key].T)
                array[key] = -k
            assert pipe.recv() == "filled"
            process.join()
            print(process.exitcode, np.array_equal(t.numpy(stream=stream), array))
        """
    ) == ["0 True"]


def test_memory_is_freed_after_who_imported_it(two):
    assert two(
        """
        def child(pipe, buffer):
            view = buffer[:8]
            buffer.close()
            pipe.send("imported")
            pipe.recv()
            view.close()
            settle()
            pipe.send("closed")
            pipe.recv()

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, buffer)
            pipe.recv()
            buffer.close()
            settle()
            stream.sync()
            print(pool.statistics.used >= 4096)
            pipe.send("close")
            pipe.recv()
            settle()
            stream.sync()
            print(pool.statistics.used)
            pipe.send("end")
            process.join()
            pool.close()
            settle()
            print(process.exitcode, cu.live_objects())
        """
    ) == ["True", "0", "0 {'Stream': 1}"]


def test_a_process_that_dies_lets_go(two):
    assert two(
        """
        def child(pipe, buffer):
            pipe.send("imported")
            pipe.recv()

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, buffer)
            pipe.recv()
            buffer.close()
            settle()
            stream.sync()
            used = pool.statistics.used
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            settle()
            stream.sync()
            print(used >= 4096, pool.statistics.used)
        """
    ) == ["True 0"]


def test_no_reset_frees_what_another_process_uses(two):
    assert two(
        """
        def child(pipe, buffer):
            stream = buffer.device.create_stream()
            with cu.Graph() as graph:
                graph.memset(buffer, 7)
                step = graph.instantiate()
            buffer.close()
            pipe.send("imported")
            pipe.recv()
            step.launch(stream)
            stream.sync()
            step.close()
            settle()
            pipe.send("ended")
            pipe.recv()

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, buffer)
            pipe.recv()
            try:
                device.reset()
            except ValueError as e:
                print(e)
            pipe.send("go on")
            pipe.recv()
            print(buffer.view("u1").numpy(stream=stream)[0], buffer.is_closed)
            device.reset()
            print(buffer.is_closed)
            pipe.send("end")
            process.join()
        """
    ) == [
        "device 0 cannot be reset: other processes have imported 1 allocation(s) of its memory; "
        "they must let go of it first, or end",
        "7 False",
        "True",
    ]


def test_a_graph_keeps_imported_memory(two):
    assert two(
        """
        def child(pipe, buffer):
            stream = buffer.device.create_stream()
            graph = cu.Graph()
            graph.memset(buffer, np.int32(3))
            step = graph.instantiate()
            graph.close()
            buffer.close()
            settle()
            pipe.send("built")
            pipe.recv()
            step.launch(stream)
            stream.sync()
            pipe.send("launched")
            pipe.recv()
            step.close()
            settle()
            pipe.send(cu.live_objects())

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, buffer)
            pipe.recv()
            pipe.send("launch")
            pipe.recv()
            print(buffer.view("i4").numpy(stream=stream)[1023])
            buffer.close()
            settle()
            stream.sync()
            print(pool.statistics.used >= 4096)
            pipe.send("close")
            print(pipe.recv())
            process.join()
            settle()
            stream.sync()
            print(pool.statistics.used, process.exitcode)
        """
    ) == ["3", "True", "{'Stream': 1}", "0 0"]


def test_events_order_two_processes(two):
    assert two(
        """
        def child(pipe, buffer, there, back):
            stream = buffer.device.create_stream()
            for i in range(50):
                pipe.recv()
                stream.wait(there)
                buffer[4:8].copy_from(buffer[:4], stream=stream)
                stream.record(back)
                pipe.send(i)
            pipe.recv()
            there.close()
            back.close()

        def parent():
            device, stream, pool, buffer = shared()
            there, back = (device.create_event(ipc_enabled=True) for _ in range(2))
            process, pipe = main(child, buffer, there, back)
            for i in range(50):
                buffer[:4].fill(np.int32(i), stream=stream)
                stream.record(there)
                pipe.send(i)
                pipe.recv()
                back.sync()
                assert back.is_done
                got = buffer.view("i4").numpy(stream=stream)[1]
                assert got == i, (i, got)
            pipe.send("end")
            process.join()
            print(process.exitcode, there.is_ipc_enabled)
        """
    ) == ["0 True"]


def test_by_handle_and_descriptor(two):
    assert two(
        """
        def child(pipe, handle, descriptor, event):
            device = cu.Device()
            stream = device.create_stream()
            with cu.DeviceMemoryResource.from_allocation_handle(device, handle) as pool:
                handle.close()
                buffer = cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream)
                again = cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream)
                raises(TypeError, "an imported pool allocates nothing",
                    lambda: pool.allocate(1, stream=stream))
                for ask in (lambda: pool.options, lambda: pool.statistics, pool.trim):
                    raises(TypeError, "is a pool of another process", ask)
                raises(ValueError, "created by another process", pool.get_allocation_handle)
                raises(ValueError, "only the process that allocated it",
                    lambda: buffer.ipc_descriptor)
                raises(TypeError, "cannot grow", lambda: buffer.grow(1 << 20))
                wrong = cu.IPCBufferDescriptor(descriptor.data, bytes(16), 4096, 0, 0, 4096)
                raises(ValueError, "in another pool",
                    lambda: cu.Buffer.from_ipc_descriptor(pool, wrong, stream=stream))
                with stream.capture() as graph:
                    raises(ValueError, "cannot be imported on a stream that is capturing",
                        lambda: cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream))
                graph.close()
            raises(cu.ClosedError, "memory resource",
                lambda: cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream))
            again.close()
            opened = cu.Event.from_ipc_descriptor(device, event)
            raises(ValueError, "only the process that created it", lambda: opened.ipc_descriptor)
            assert opened.is_ipc_enabled
            stream.record(opened).sync()
            print((buffer.view("i4").numpy(stream=stream) == 5).all(), flush=True)
            pipe.send("imported")
            pipe.recv()

        def parent():
            device, stream, pool, buffer = shared()
            event = device.create_event(ipc_enabled=True)
            process, pipe = main(
                child, pool.get_allocation_handle(), buffer.ipc_descriptor, event.ipc_descriptor
            )
            pipe.recv()
            pipe.send("end")
            process.join()
            print(process.exitcode)
        """
    ) == ["True", "0"]


def test_memory_that_was_freed_is_not_imported(two):
    assert two(
        """
        def child(pipe, pool):
            raises(ValueError, "has freed it", lambda: cu.Buffer.from_ipc_descriptor(
                pool, pipe.recv(), stream=pool.device.default_stream))
            pipe.send("refused")

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, pool)
            descriptor = buffer.ipc_descriptor
            buffer.close()
            settle()
            pipe.send(descriptor)
            print(pipe.recv())
            process.join()
        """
    ) == ["refused"]


def test_one_pool_for_all_that_is_sent(two):
    assert two(
        """
        def child(pipe, queue):
            a, b = queue.get(), queue.get()
            assert pickle.dumps(1)
            one, two = pipe.recv(), pipe.recv()
            assert one is two and one.is_imported
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(20):
                pipe.send("more")
                assert pipe.recv() is one
            assert len(os.listdir("/proc/self/fd")) <= before + 1
            pipe.send("end")

        def parent():
            device, stream, pool, buffer = shared()
            mp.set_start_method("spawn")
            queue = mp.Queue()
            ask, answer = mp.Pipe()
            process = mp.Process(target=child, args=(answer, queue))
            process.start()
            queue.put(buffer)
            queue.put(buffer[4:])
            ask.send(pool)
            ask.send(pool)
            while ask.recv() == "more":
                ask.send(pool)
            process.join()
            print(process.exitcode)
        """
    ) == ["0"]


def test_a_pool_imported_twice_is_one(two):
    assert two(
        """
        def child(pipe, handle, descriptor):
            device = cu.Device()
            stream = device.create_stream()
            pools = [
                cu.DeviceMemoryResource.from_allocation_handle(device, handle),
                cu.DeviceMemoryResource.from_allocation_handle(device, handle),
                cu.DeviceMemoryResource.from_allocation_handle(
                    device, cu.IPCAllocationHandle(os.dup(handle.fileno()))
                ),
            ]
            ours = [cu.Buffer.from_ipc_descriptor(p, descriptor, stream=stream) for p in pools]
            print(len({b.ptr for b in ours}))
            pools[0].close()
            raises(cu.ClosedError, "memory resource", lambda:
                cu.Buffer.from_ipc_descriptor(pools[0], descriptor, stream=stream))
            for i in 2, 0:
                ours[i].close()
                settle()
                stream.sync()
            print((ours[1].view("i4").numpy(stream=stream) == 5).all())
            pools[1].close()
            pools[2].close()
            ours[1].close()
            settle()
            print(cu.live_objects(), flush=True)
            pipe.send("done")

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, pool.get_allocation_handle(), buffer.ipc_descriptor)
            pipe.recv()
            process.join()
            buffer.close()
            settle()
            stream.sync()
            print(process.exitcode, pool.statistics.used)
        """
    ) == ["1", "True", "{'Stream': 1}", "0 0"]


def test_a_descriptor_cannot_say_more_than_there_is(two):
    assert two(
        """
        from dataclasses import replace

        def child(pipe, pool):
            descriptor = pipe.recv()
            stream = pool.device.create_stream()
            for size in 1 << 40, (1 << 63) - 1:
                forged = replace(descriptor, allocation_size=size, size=size)
                raises(ValueError, f"says that the memory has {size} bytes, and the driver that",
                    lambda: cu.Buffer.from_ipc_descriptor(pool, forged, stream=stream))
            buffer = cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream)
            print(buffer.size, (buffer.view("i4").numpy(stream=stream) == 5).all())
            for slot in 7, -1, 2**60 - 3, 2**61, 2**63 - 1, 2**63, 2**64:
                raises(ValueError, f"descriptor has slot {slot}",
                    lambda: cu.Buffer.from_ipc_descriptor(pool, replace(descriptor, slot=slot),
                        stream=stream))
            for name in "allocation_size", "offset", "size":
                forged = replace(descriptor, **{name: 2**64 + 4096})
                raises(ValueError, f"descriptor has {name} {2**64 + 4096}",
                    lambda: cu.Buffer.from_ipc_descriptor(pool, forged, stream=stream))
            raises(TypeError, "slot of the descriptor must be an int, not str",
                lambda: cu.Buffer.from_ipc_descriptor(pool, replace(descriptor, slot="1"),
                    stream=stream))
            forged = replace(descriptor, allocation_size=4095, size=4095)
            raises(ValueError, "has 4095 bytes, and an earlier one said 4096",
                lambda: cu.Buffer.from_ipc_descriptor(pool, forged, stream=stream))
            buffer.close()
            settle()
            print(cu.live_objects(), flush=True)
            pipe.send("done")

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, pool)
            pipe.send(buffer.ipc_descriptor)
            pipe.recv()
            process.join()
            buffer.close()
            settle()
            stream.sync()
            print(process.exitcode, pool.statistics.used)
        """
    ) == ["4096 True", "{'MemoryResource': 1, 'Stream': 1}", "0 0"]


def test_threads_import_the_same_memory(two):
    assert two(
        """
        from threading import Thread

        def child(pipe, pool):
            descriptor = pipe.recv()
            stream = pool.device.create_stream()
            failed = []

            def imports():
                try:
                    for _ in range(50):
                        with cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream) as one:
                            one[:4].copy_to(bytearray(4), stream=stream)
                except BaseException as e:
                    failed.append(e)

            threads = [Thread(target=imports) for _ in range(8)]
            for t in threads: t.start()
            for t in threads: t.join()
            settle()
            pipe.send((failed, cu.live_objects()))

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, pool)
            pipe.send(buffer.ipc_descriptor)
            failed, live = pipe.recv()
            process.join()
            buffer.close()
            settle()
            stream.sync()
            print(failed, live, process.exitcode, pool.statistics.used)
        """
    ) == ["[] {'MemoryResource': 1, 'Stream': 1} 0 0"]


def test_threads_share_and_close(device):
    failed: list[BaseException] = []

    def work() -> None:
        try:
            with device.create_stream() as stream:
                for _ in range(20):
                    options = cu.PoolOptions(ipc_enabled=True)
                    with (
                        cu.DeviceMemoryResource(device, pool=options) as pool,
                        pool.allocate(64, stream=stream) as buffer,
                        device.create_event(ipc_enabled=True) as event,
                    ):
                        assert buffer.ipc_descriptor.pool == pool.get_allocation_handle()._id
                        stream.record(event)
                        assert event.ipc_descriptor.handle
        except BaseException as e:
            failed.append(e)

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_device_that_is_not_there(two_processes):
    assert two_processes(
        """
        def child(pipe):
            raises(ValueError, "no device here has the UUID", pipe.recv)
            raises(ValueError, "no device here has the UUID", pipe.recv)
            pipe.send("refused")

        def parent():
            device = cu.Device(1)
            pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True))
            event = device.create_event(ipc_enabled=True)
            os.environ["CUDAGO_SIM"] = "devices=1"
            process, pipe = main(child)
            pipe.send(pool)
            pipe.send(event)
            print(pipe.recv())
            process.join()
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="devices=2",
    ) == ["refused"]


def test_what_is_not_shared(device, stream, pinned):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool:
        assert not pool.is_ipc_enabled and not pool.is_imported
        with pytest.raises(ValueError, match="created without ipc_enabled"):
            pool.get_allocation_handle()
        buffer = pool.allocate(4, stream=stream)
        with buffer, pytest.raises(ValueError, match="not created for sharing"):
            _ = buffer.ipc_descriptor
    for other in (pinned, device.allocate(0, stream=stream)):
        with pytest.raises(ValueError, match="ipc_enabled"):
            _ = other.ipc_descriptor
    assert not device.memory_resource.is_ipc_enabled
    with device.create_event() as event:
        assert not event.is_ipc_enabled
        with pytest.raises(ValueError, match="not created for sharing"):
            _ = event.ipc_descriptor
    with pytest.raises(ValueError, match="cannot have timing"):
        device.create_event(ipc_enabled=True, timing_enabled=True)


def test_what_cannot_be_sent_says_so(device, stream, pinned):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True)) as pool:
        own = pool.allocate(64, stream=stream)
        assert ForkingPickler.dumps(own.view("f4")) and ForkingPickler.dumps(own)
        for buffer in (device.allocate(64, stream=stream), pinned):
            for memory in (buffer, buffer.view("u1")):
                with pytest.raises(TypeError, match=r"cannot send this memory.*ipc_enabled"):
                    ForkingPickler.dumps(memory)
        part = own.view("float4_e2m1fn")[1:]
        with pytest.raises(TypeError, match="begins within a byte"):
            ForkingPickler.dumps(part)
        own.close()
        with pytest.raises(cu.ClosedError):
            ForkingPickler.dumps(own)


def test_options_say_so(device):
    options = cu.PoolOptions(ipc_enabled=True, max_size=64 << 20)
    with cu.DeviceMemoryResource(device, pool=options) as pool:
        assert pool.options == options
        assert pool.is_ipc_enabled
        with pytest.raises(ValueError, match="ipc_enabled cannot change"):
            pool.options = cu.PoolOptions(max_size=64 << 20)
        with pool.get_allocation_handle() as sent:
            assert not sent.is_closed
        handle = pool.get_allocation_handle()
        assert not handle.is_closed and sent.is_closed  # each has descriptors of its own
        ForkingPickler.dumps(pool.allocate(8, stream=device.default_stream))
        assert os.fstat(handle.fileno())
    with pytest.raises(cu.ClosedError):
        pool.get_allocation_handle()
    handle.close()
    handle.close()
    assert handle.is_closed
    with pytest.raises(cu.ClosedError):
        handle.fileno()
    with pytest.raises(cu.ClosedError, match="allocation handle is closed"), handle:
        pass


def test_the_process_itself_needs_no_import(device, stream):
    options = cu.PoolOptions(ipc_enabled=True)
    with (
        cu.DeviceMemoryResource(device, pool=options) as pool,
        pool.allocate(64, stream=stream) as buffer,
    ):
        descriptor = buffer[4:8].ipc_descriptor
        assert (descriptor.offset, descriptor.size, descriptor.allocation_size) == (4, 4, 64)
        assert descriptor == pickle.loads(pickle.dumps(descriptor))
        with pytest.raises(ValueError, match="this process has allocated the memory itself"):
            cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream)
        sent = "ipc_enabled is sent by multiprocessing itself, .* Process or by Queue.put"
        event = device.create_event(ipc_enabled=True)
        for thing in (buffer, buffer.view("u1"), buffer.ptr, pool, event):
            with pytest.raises(TypeError, match=sent):
                pickle.dumps(thing)
        with pytest.raises(TypeError, match=r"'Pointer' object: .* p\.buffer\[p\.offset:\]"):
            pickle.dumps(buffer.ptr)
        for thing in (pool.get_allocation_handle(), pool, buffer):
            with pytest.raises(TypeError, match="cannot pickle"):
                pickle.dumps(thing)
        with pytest.raises(TypeError, match="cannot pickle"):
            copy.copy(pool.get_allocation_handle())


def test_allocation_in_a_capture_is_refused(device, stream):
    options = cu.PoolOptions(ipc_enabled=True)
    with (
        cu.DeviceMemoryResource(device, pool=options) as pool,
        pytest.raises(cu.CUDAError),
        stream.capture(),
    ):
        pool.allocate(64, stream=stream)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda d: cu.DeviceMemoryResource.from_allocation_handle(d, 3), TypeError),
        (lambda d: cu.IPCAllocationHandle("3"), TypeError),
        (lambda d: cu.IPCAllocationHandle(-1), ValueError),
        (lambda d: cu.IPCAllocationHandle(3, -1, b"short"), ValueError),
        (lambda d: cu.Event.from_ipc_descriptor(d, b"0" * 64), TypeError),
        (lambda d: cu.Event.from_ipc_descriptor(d, cu.IPCEventDescriptor(b"0")), ValueError),
        (lambda d: cu.Event.from_ipc_descriptor(d, cu.IPCEventDescriptor("0" * 64)), TypeError),
        (lambda d: cu.Event.from_ipc_descriptor(d, cu.IPCEventDescriptor(bytes(64))), cu.CUDAError),
        (lambda d: cu.Event.from_ipc_descriptor(0, cu.IPCEventDescriptor(bytes(64))), TypeError),
    ],
)
def test_bad_handles(device, make, error):
    with pytest.raises(error):
        make(device)


def test_a_file_is_no_pool(device, stream, tmp_path):
    with (tmp_path / "file").open("wb+") as file:
        file.write(bytes(np.arange(200, dtype="u1")))
        file.flush()
        for leases in (-1, os.dup(file.fileno())):
            handle = cu.IPCAllocationHandle(os.dup(file.fileno()), leases)
            with handle, pytest.raises(cu.CUDAError if leases < 0 else ValueError):
                cu.DeviceMemoryResource.from_allocation_handle(device, handle)
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True)) as pool:
        bad = cu.IPCBufferDescriptor(bytes(64), bytes(16), 64, 0, 60, 8)
        with pytest.raises(ValueError, match="bytes 60 to 68 of 64"):
            cu.Buffer.from_ipc_descriptor(pool, bad, stream=stream)
        for wrong, name in (
            (cu.IPCBufferDescriptor("0" * 64, bytes(16), 64, 0, 0, 8), "data"),
            (cu.IPCBufferDescriptor(bytes(64), None, 64, 0, 0, 8), "pool"),
        ):
            with pytest.raises(TypeError, match=f"{name} of the descriptor must be bytes, not"):
                cu.Buffer.from_ipc_descriptor(pool, wrong, stream=stream)
        with pytest.raises(TypeError, match="IPCBufferDescriptor"):
            cu.Buffer.from_ipc_descriptor(pool, b"", stream=stream)
        with pytest.raises(TypeError, match="DeviceMemoryResource"):
            cu.Buffer.from_ipc_descriptor(device, bad, stream=stream)


def memory_files():
    """Count the files in memory that this process has open."""
    found = 0
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            found += str(fd.readlink()).startswith("/memfd:")
    return found


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize("kept", [False, True], ids=["dropped", "closed"])
def test_pools_that_end_leave_no_file_open(device, stream, kind, kept):
    cu.testing.settle()
    pools, counts = [], []
    for _ in range(6):
        options = cu.PoolOptions(ipc_enabled=True)
        pool = (
            cu.DeviceMemoryResource(device, pool=options)
            if kind == "device"
            else cu.PinnedMemoryResource(pool=options)
        )
        buffer = pool.allocate(64, stream=stream)
        assert buffer.ipc_descriptor.size == 64
        buffer.close()
        if kept:
            pool.close()
            pools.append(pool)
        del pool, buffer
        stream.sync()
        cu.testing.settle()
        counts.append(memory_files())
    assert len(set(counts)) == 1, "the driver's pools are used again"
    assert all(pool.is_ipc_enabled for pool in pools)


def test_a_handle_outlives_its_closed_pool(device):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True)) as pool:
        handle = pool.get_allocation_handle()
    os.fstat(handle.fileno())
    with pytest.raises(cu.ClosedError, match="memory resource is closed"):
        pool.get_allocation_handle()
    handle.close()


def test_received_memory_that_ends_leaves_no_file_open(two):
    assert two(
        """
        def files():
            names = []
            for fd in os.listdir("/proc/self/fd"):
                try:
                    names.append(os.readlink(f"/proc/self/fd/{fd}"))
                except FileNotFoundError:
                    continue
            return sum(name.startswith("/memfd:") for name in names)

        def child(pipe):
            before = files()
            while buffer := pipe.recv():
                buffer.close()
                del buffer
                settle()
                pipe.send("closed")
            pipe.send(files() - before)

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child)
            for _ in range(4):
                pipe.send(buffer)
                pipe.recv()
            pipe.send(None)
            print(pipe.recv())
            process.join()
        """
    ) == ["0"]


def test_ctrl_c_ends_an_import_that_waits_for_another_threads_wait(two):
    """What the import makes when the wait is over is given back."""
    assert two(
        """
        def child(pipe, handle, descriptor):
            import _thread, threading
            from cudago.testing import hold
            device = cu.Device()
            stream = device.create_stream()
            pool = cu.DeviceMemoryResource.from_allocation_handle(device, handle)
            alone = cu.IPCAllocationHandle(os.dup(handle.fileno()))
            before = cu.live_objects()
            for make in (
                lambda: cu.DeviceMemoryResource.from_allocation_handle(device, alone),
                lambda: cu.Buffer.from_ipc_descriptor(pool, descriptor, stream=stream),
            ):
                with hold(stream):
                    waiting = threading.Thread(target=device.sync)
                    waiting.start()
                    threading.Timer(0.3, _thread.interrupt_main).start()
                    time.sleep(0.1)
                    raises(KeyboardInterrupt, "", make)
                waiting.join()
                for _ in range(100):
                    settle()
                    if cu.live_objects() == before:
                        break
                    time.sleep(0.05)
                print(cu.live_objects() == before)
                make().close()
            pool.close()

        def parent():
            device, stream, pool, buffer = shared()
            process, pipe = main(child, pool.get_allocation_handle(), buffer.ipc_descriptor)
            process.join()
            print(process.exitcode)
        """
    ) == ["True", "True", "0"]
