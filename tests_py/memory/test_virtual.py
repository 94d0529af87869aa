# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory: buffers that grow in place."""

from __future__ import annotations

import contextlib
import gc
import threading

import numpy as np
import pytest

import cudago as cu
from cudago._gopy import api
from cudago.testing import settle

PAGE = 1 << 21  # the granularity of the simulated device, and of GPUs so far


@pytest.fixture
def resource(device: cu.Device):
    with cu.VirtualMemoryResource(device) as resource:
        yield resource


@pytest.fixture
def big(resource: cu.VirtualMemoryResource, stream: cu.Stream):
    with resource.allocate(PAGE, stream=stream) as buffer:
        yield buffer


def numbers(buffer: cu.Buffer, stream: cu.Stream, dtype: str = "i4") -> np.ndarray:
    return buffer.view(dtype).numpy(stream=stream)


def test_buffer_is_device_memory(resource, device, stream):
    buffer = resource.allocate(100, stream=stream)
    assert (buffer.size, buffer.kind, buffer.device) == (100, "device", device)
    assert resource.device is device
    assert repr(resource) == "<cudago.VirtualMemoryResource>"
    with pytest.raises(BufferError, match="device memory has no Python buffer"):
        memoryview(buffer)
    buffer.fill(3, stream=stream)
    assert (numbers(buffer, stream, "u1") == 3).all()


def test_growing_keeps_address_and_content(big, stream):
    big.copy_from(np.arange(PAGE // 4, dtype="i4"), stream=stream)
    before, key = big.handle, {big: "as a key"}
    for size in (PAGE + 4, 2 * PAGE, 2 * PAGE, 7 * PAGE):
        big.grow(size)
        assert (big.size, big.nbytes, len(big)) == (size, size, size)
        assert big.handle == before
        assert (numbers(big[:PAGE], stream) == np.arange(PAGE // 4)).all()
    assert key[big] == "as a key"
    big[PAGE:].fill(np.int32(5), stream=stream)
    assert (numbers(big[PAGE - 4 : PAGE + 8], stream) == [PAGE // 4 - 1, 5, 5]).all()
    big.fill(0, stream=stream)
    assert not numbers(big, stream).any()


def test_what_was_made_before_stays_valid(big, stream, kernels):
    pointer, end = big.ptr + 4, big.ptr + PAGE
    view, tensor = big[: PAGE // 2], big.view("i4", (-1,))
    big.fill(0, stream=stream)
    with pytest.raises(IndexError):
        end + 4
    big.grow(2 * PAGE)
    assert (view.size, tensor.shape) == (PAGE // 2, (PAGE // 4,))
    assert (end + 4).offset == PAGE + 4
    end_word = big[PAGE : PAGE + 4]
    end_word.fill(0, stream=stream)
    config = cu.LaunchConfig(grid=1, block=4)
    for target in (pointer, view, tensor, end, big):
        cu.launch(stream, config, kernels["add"], target, 1, 1)
    assert numbers(big[:8], stream).tolist() == [3, 1]
    assert numbers(end_word, stream).tolist() == [1]
    assert int(big.ptr) + 4 == int(pointer)


def test_a_kernel_runs_across_the_pieces(big, stream, kernels):
    big.grow(2 * PAGE)
    big.grow(3 * PAGE)
    n = 3 * PAGE // 4
    big.fill(0, stream=stream)
    around = 4096
    start = big.ptr + (PAGE - 2 * around)
    cu.launch(
        stream, cu.LaunchConfig(grid=around // 64, block=64), kernels["add"], start, 7, around
    )
    out = numbers(big, stream)
    first = (PAGE - 2 * around) // 4
    assert (out[first : first + around] == 7).all()
    assert out.sum() == 7 * around
    assert out.size == n


def test_a_graph_goes_on_while_its_buffer_grows(big, stream, kernels):
    big.fill(0, stream=stream)
    graph = cu.Graph()
    graph.launch(cu.LaunchConfig(grid=1, block=32), kernels["add"], big, 1, 8)
    step = graph.instantiate()
    step.launch(stream)
    big.grow(4 * PAGE)
    step.launch(stream)
    (kept,) = (r for r in step.retained if r.object is big)
    assert kept.nbytes == PAGE, "as it was when the graph took it"
    head = big[:32]
    big.close()
    step.launch(stream)
    assert numbers(head, stream).tolist() == [3] * 8


def test_growing_during_a_capture(big, stream, kernels):
    big.fill(0, stream=stream)
    with stream.capture() as graph:
        cu.launch(stream, cu.LaunchConfig(grid=1, block=4), kernels["add"], big, 2, 4)
        big.grow(2 * PAGE)
        cu.launch(stream, cu.LaunchConfig(grid=1, block=4), kernels["add"], big.ptr + PAGE, 2, 4)
    big.fill(0, stream=stream)
    graph.instantiate().launch(stream)
    assert numbers(big[PAGE - 4 : PAGE + 20], stream).tolist() == [0, 2, 2, 2, 2, 0]


def test_what_cannot_grow(big, device, stream):
    for buffer, why in (
        (device.allocate(64, stream=stream), "only what a VirtualMemoryResource allocated can"),
        (cu.PinnedMemoryResource().allocate(64), "only what a VirtualMemoryResource allocated can"),
        (big[:64], "a view cannot grow"),
        (big[:], "a view cannot grow"),
        (cu.VirtualMemoryResource(device).allocate(0, stream=stream), "no address to grow at"),
    ):
        size = buffer.size
        with pytest.raises(TypeError, match=why):
            buffer.grow(2 * PAGE)
        assert buffer.size == size


def test_growing_needs_a_larger_size(big):
    with pytest.raises(ValueError, match=f"at least {PAGE} bytes.*it can only grow; got 8"):
        big.grow(8)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        big.grow(-1)
    with pytest.raises(OverflowError):
        big.grow(1 << 63)
    with pytest.raises(TypeError):
        big.grow(2.5 * PAGE)
    assert big.size == PAGE
    big.grow(PAGE)


def test_allocation_needs_a_stream(resource):
    with pytest.raises(TypeError, match="needs stream="):
        resource.allocate(PAGE)


def test_closed(resource, stream):
    buffer = resource.allocate(PAGE, stream=stream)
    resource.close()
    with pytest.raises(cu.ClosedError):
        resource.allocate(PAGE, stream=stream)
    buffer.grow(2 * PAGE)
    buffer.close()
    with pytest.raises(cu.ClosedError):
        buffer.grow(3 * PAGE)
    assert buffer.size == 2 * PAGE


def test_reserve(device, stream):
    with pytest.raises(ValueError, match="reserve must be 0 to"):
        cu.VirtualMemoryResource(device, reserve=-1)
    resource = cu.VirtualMemoryResource(device, reserve=2 * PAGE)
    with resource.allocate(PAGE, stream=stream) as buffer:
        at = buffer.handle
        buffer.grow(2 * PAGE)
        try:
            buffer.grow(4 * PAGE)
        except cu.OutOfMemoryError as e:  # the driver may have given those addresses to others
            assert "reserve more when allocating" in str(e)
            assert (e.requested, buffer.size) == (4 * PAGE, 2 * PAGE)
        assert buffer.handle == at
        buffer.fill(1, stream=stream)


def test_too_large(device, big, stream):
    with pytest.raises(cu.OutOfMemoryError) as e:
        big.grow(2 * device.total_memory)
    assert e.value.operation == "cuMemCreate" or "reserve more" in str(e.value)
    assert big.size == PAGE
    big.grow(2 * PAGE)
    big.fill(1, stream=stream)
    with pytest.raises(cu.OutOfMemoryError):
        cu.VirtualMemoryResource(device).allocate(1 << 60, stream=stream)


def test_memory_comes_back(resource, device, stream):
    settle()
    free = device.free_memory
    for _ in range(3):
        buffers = [resource.allocate(16 * PAGE, stream=stream) for _ in range(16)]
        for buffer in buffers:
            buffer.grow(20 * PAGE)
        del buffer, buffers
        settle()
    assert device.free_memory > free - 16 * PAGE


def test_memory_that_is_being_released_can_be_allocated_again(resource, device, stream):
    settle()
    stream.sync()
    cu.DeviceMemoryResource(device).trim()  # other tests' memory, which the default pool keeps
    size = device.free_memory // 5 * 3 // PAGE * PAGE
    for _ in range(5):
        buffer = resource.allocate(size, stream=stream)
        buffer[:PAGE].fill(1, stream=stream)
        buffer.close()
        with resource.allocate(PAGE, stream=stream) as small:
            small.grow(size)


def test_released_after_the_streams_that_used_it(resource, device, stream, kernels):
    with device.create_stream() as other:
        for _ in range(10):
            buffer = resource.allocate(4 * PAGE, stream=stream)
            buffer.fill(1, stream=stream)
            stream.sync()
            for _ in range(5):
                buffer.fill(2, stream=other)
                cu.launch(
                    other, cu.LaunchConfig(grid=64, block=64), kernels["add"], buffer, 1, 4096
                )
            buffer.close()
        other.sync()
    stream.sync()


def test_released_where_a_stream_that_used_it_is_gone(resource, device):
    settle()
    before = api.driver_objects()
    with device.create_stream() as own, device.create_stream() as other:
        memory = resource.allocate(64, stream=own)
        memory.fill(1, stream=other)
        other.sync()
        other.close()
        settle()  # nobody asks for its line any more
        memory.close()
    settle()
    assert api.driver_objects() == before


def test_views_keep_the_memory(resource, stream):
    buffer = resource.allocate(PAGE, stream=stream)
    buffer.grow(2 * PAGE)
    tensor = buffer[PAGE:].view("u1")
    buffer.fill(9, stream=stream)
    buffer.close()
    gc.collect()
    assert (tensor.numpy(stream=stream) == 9).all()


def test_exchange(big, stream):
    torch = pytest.importorskip("torch")
    big.fill(1, stream=stream)
    big.grow(2 * PAGE)
    big[PAGE:].fill(2, stream=stream)
    theirs = torch.from_dlpack(big)
    assert theirs.numel() == 2 * PAGE
    assert theirs.data_ptr() == big.handle or theirs.device.type == "cpu"
    assert int(theirs.sum()) == PAGE + 2 * PAGE
    theirs[PAGE - 1 : PAGE + 1] = 7
    if theirs.is_cuda:
        torch.cuda.synchronize()
    assert numbers(big[PAGE - 2 : PAGE + 2], stream, "u1").tolist() == [1, 7, 7, 2]


def test_threads_grow_one_buffer(big, stream):
    sizes = [PAGE + i * PAGE // 2 for i in range(1, 9)]
    barrier = threading.Barrier(len(sizes))

    def grow(size: int) -> None:
        barrier.wait()
        try:
            big.grow(size)
        except ValueError:  # somebody else was there first
            assert big.size > size

    threads = [threading.Thread(target=grow, args=(size,)) for size in sizes]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert big.size == max(sizes)
    big.fill(1, stream=stream)
    stream.sync()


def test_closing_while_growing(resource, stream):
    for _ in range(10):
        buffer = resource.allocate(PAGE, stream=stream)
        thread = threading.Thread(target=buffer.close)
        thread.start()
        with contextlib.suppress(cu.ClosedError):
            buffer.grow(4 * PAGE)
        thread.join()
        assert buffer.is_closed


def test_exit_with_open_buffers(script):
    run = script("""
        import cudago as cu
        s = cu.Device().create_stream()
        big = cu.VirtualMemoryResource(cu.Device()).allocate(100, stream=s)
        big.grow(1 << 22)
        big.fill(1, stream=s)
        view = big[5:10]
    """)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
