# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers, their views, copies and fills, and where memory comes from."""

from __future__ import annotations

import array
import gc
import mmap
import re
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

np = pytest.importorskip("numpy")


@pytest.fixture
def buffer(device, stream):
    """64 bytes of device memory, 0 to 63."""
    with device.allocate(64, stream=stream) as buffer:
        buffer.copy_from(bytes(range(64)), stream=stream)
        yield buffer


def content(buffer, stream) -> bytes:
    """Return the bytes of a buffer."""
    out = bytearray(buffer.size)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return bytes(out)


def test_facts(buffer, device):
    assert buffer.size == buffer.nbytes == len(buffer) == 64
    assert buffer.device is device
    assert buffer.kind == "device"
    assert buffer.handle == int(buffer.ptr)
    assert repr(buffer).startswith(f"<cudago.Buffer {buffer.handle:#x}: 64 bytes, device")
    with pytest.raises(TypeError, match="Buffer"):
        cu.Buffer()


def test_a_weak_reference_to_a_buffer_may_list_all(device, stream):
    """The buffer that is ending is not among them: it would end twice."""
    kept = device.allocate(64, stream=stream)
    listed = []
    for _ in range(100):
        buffer = device.allocate(64, stream=stream)
        weak = weakref.ref(buffer, lambda _: listed.extend(cu._core._all_buffers()))
        del buffer
        assert weak() is None
        assert kept in listed
        assert len(listed) == len(cu._core._all_buffers())
        listed.clear()
    kept.close()


def test_allocate_checks_its_arguments(device, stream):
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        device.allocate(-1, stream=stream)
    with pytest.raises(OverflowError, match=re.escape("below 2**63, got 1180591620717411303424")):
        device.allocate(1 << 70, stream=stream)
    with pytest.raises(TypeError, match="stream="):
        device.allocate(8)
    for bad in ("8", 8.0, None):
        with pytest.raises(TypeError, match=type(bad).__name__):
            device.allocate(bad, stream=stream)
    assert device.allocate(np.int64(8), stream=stream).size == 8


def test_too_much(device, stream):
    before = device.free_memory
    with pytest.raises(cu.OutOfMemoryError, match=r"1125899906842624 bytes on device 0") as e:
        device.allocate(1 << 50, stream=stream)
    assert isinstance(e.value, MemoryError)
    assert e.value.requested == 1 << 50
    assert (e.value.code, e.value.name) == (2, "CUDA_ERROR_OUT_OF_MEMORY")
    assert device.allocate(8, stream=stream).size == 8
    # A failed allocation counts nowhere. Others may use a real device meanwhile.
    assert device.free_memory > before // 4


def test_no_bytes(device, stream):
    with device.allocate(0, stream=stream) as empty:
        assert empty.size == 0
        empty.fill(1, stream=stream)
        empty.copy_from(b"", stream=stream)
        assert content(empty, stream) == b""


HOSTS = {
    "bytearray": lambda: bytearray(64),
    "memoryview": lambda: memoryview(bytearray(64)),
    "array": lambda: array.array("d", [0.0] * 8),
    "mmap": lambda: mmap.mmap(-1, 64),
    "numpy": lambda: np.zeros((4, 4), "f4"),
}


@pytest.mark.parametrize("kind", HOSTS)
def test_copies_take_every_kind_of_host_memory(kind, buffer, stream):
    host = HOSTS[kind]()
    buffer.copy_to(host, stream=stream)
    stream.sync()
    assert bytes(memoryview(host).cast("B")) == bytes(range(64))
    buffer.fill(0, stream=stream)
    buffer.copy_from(host, stream=stream)
    assert content(buffer, stream) == bytes(range(64))


def test_copies_between_buffers(buffer, device, stream):
    with device.allocate(64, stream=stream) as other:
        other.copy_from(buffer, stream=stream)
        buffer.fill(0, stream=stream)
        other.copy_to(buffer, stream=stream)
    assert content(buffer, stream) == bytes(range(64))


def test_operands_by_name(buffer, stream):
    out = bytearray(buffer.size)
    buffer.fill(value=7, stream=stream)
    buffer.copy_to(stream=stream, dst=out)
    assert out == bytes([7]) * buffer.size
    buffer.copy_from(src=bytes(buffer.size), stream=stream)
    buffer.copy_to(dst=out, stream=stream)
    assert out == bytes(buffer.size)
    for call in (
        lambda: buffer.fill(src=7, stream=stream),
        lambda: buffer.fill(7, value=7, stream=stream),
        lambda: buffer.fill(value=7),
        lambda: buffer.fill(value=7, stream=stream, more=1),
    ):
        with pytest.raises(TypeError, match=r"fill\(value, \*, stream\) takes a value and stream="):
            call()


def test_copies_check_their_operands(buffer, stream):
    with pytest.raises(ValueError, match="src has 3 bytes, the buffer 64"):
        buffer.copy_from(b"abc", stream=stream)
    with pytest.raises(ValueError, match="dst has 65 bytes, the buffer 64"):
        buffer.copy_to(bytearray(65), stream=stream)
    with pytest.raises(BufferError, match=r"dst .*writable"):
        buffer.copy_to(bytes(64), stream=stream)
    with pytest.raises(BufferError, match=r"src .*C-contiguous"):
        buffer.copy_from(np.zeros((8, 16), "u1")[:, ::2], stream=stream)
    with pytest.raises(TypeError, match=r"src must be a Buffer, .* not <class 'int'>"):
        buffer.copy_from(5, stream=stream)
    with pytest.raises(TypeError, match="stream="):
        buffer.copy_from(bytes(64))
    with pytest.raises(TypeError, match="stream="):
        buffer.copy_to(bytearray(64), streams=stream)
    assert content(buffer, stream) == bytes(range(64))


def test_a_failed_copy_lets_go(buffer, stream):
    host = bytearray(3)
    with pytest.raises(ValueError, match="3 bytes"):
        buffer.copy_from(host, stream=stream)
    host.append(1)  # no export is left open


FILLS = [
    (0, b"\0"),
    (255, b"\xff"),
    (-1, b"\xff"),
    (-128, b"\x80"),
    (True, b"\1"),
    (b"a", b"a"),
    (b"ab", b"ab"),
    (b"abcd", b"abcd"),
    (np.float32(1), b"\0\0\x80\x3f"),
    (np.int16(5), b"\5\0"),
]


@pytest.mark.parametrize(("value", "pattern"), FILLS, ids=repr)
def test_fill(value, pattern, buffer, stream):
    buffer.fill(value, stream=stream)
    assert content(buffer, stream) == pattern * (64 // len(pattern))


def test_fill_checks_its_value(buffer, stream):
    for bad in (256, -129, 1 << 32, 1 << 64):
        with pytest.raises(OverflowError, match=f"must be -128 to 255, got {bad}: a wider value"):
            buffer.fill(bad, stream=stream)
    for bad in (b"", b"abc", np.float64(1)):
        with pytest.raises(ValueError, match="1, 2 or 4 bytes, got"):
            buffer.fill(bad, stream=stream)
    for bad in (1.5, None, "a"):
        with pytest.raises(TypeError, match=f"not <class '{type(bad).__name__}'>"):
            buffer.fill(bad, stream=stream)
    with pytest.raises(ValueError, match="needs memory that begins at a multiple of 4, not at 0x"):
        buffer[2:6].fill(b"1234", stream=stream)
    with pytest.raises(ValueError, match="2 bytes does not divide 3 bytes"):
        buffer[:3].fill(b"ab", stream=stream)
    assert content(buffer, stream) == bytes(range(64))


def test_views(buffer, stream):
    view = buffer[16:32]
    assert (view.size, view.handle) == (16, buffer.handle + 16)
    assert content(view, stream) == bytes(range(16, 32))
    assert content(view[4:6], stream) == bytes([20, 21])
    view[-1:].fill(99, stream=stream)
    assert content(buffer, stream)[31] == 99
    assert buffer[60:100].size == 4
    assert buffer[:].handle == buffer.handle
    with pytest.raises(ValueError, match="the step must be 1"):
        buffer[::2]
    with pytest.raises(TypeError, match="indexed by a slice"):
        buffer[3]


def test_a_view_keeps_the_allocation(buffer, device, stream):
    before = cu.live_objects()["Buffer"]
    made = device.allocate(64, stream=stream)
    view = made[8:16]
    made.close()
    gc.collect()
    assert cu.live_objects()["Buffer"] == before + 1
    view.fill(3, stream=stream)
    assert content(view, stream) == bytes([3] * 8)
    view.close()
    settle()
    assert cu.live_objects()["Buffer"] == before


def test_equality_is_that_of_ranges(buffer, device, stream):
    assert buffer == buffer[:]
    assert hash(buffer) == hash(buffer[:])
    assert buffer != buffer[1:]
    with device.allocate(64, stream=stream) as other:
        assert buffer != other
    assert buffer != 64


def test_close(device, stream):
    b = device.allocate(64, stream=stream)
    b.close()
    b.close()
    assert b.is_closed
    assert b.size == 64
    assert repr(b) == "<cudago.Buffer of 64 bytes: closed>"
    with device.allocate(64, stream=stream) as other:
        for use in (
            lambda: b.ptr,
            lambda: b.handle,
            lambda: b.kind,
            lambda: b[1:2],
            lambda: b.fill(0, stream=stream),
            lambda: b.copy_from(bytes(64), stream=stream),
            lambda: b.copy_to(bytearray(64), stream=stream),
            lambda: b.copy_to(other, stream=stream),
            lambda: other.copy_from(b, stream=stream),
            lambda: b.view("f4"),
        ):
            with pytest.raises(cu.ClosedError, match="buffer is closed"):
                use()


def test_memory_freed_while_work_uses_it(device, stream, pinned):
    with hold(stream):
        buffer = device.allocate(64, stream=stream)
        buffer.fill(6, stream=stream)
        buffer.copy_to(pinned, stream=stream)
        buffer.close()
        with device.allocate(64, stream=stream) as other:
            other.fill(1, stream=stream)
    stream.sync()
    assert bytes(pinned) == bytes([6] * 64)


def test_memory_freed_while_another_stream_uses_it(device, stream, pinned):
    with device.create_stream() as other:
        buffer = device.allocate(64, stream=stream)
        buffer.fill(6, stream=stream)
        stream.sync()
        with hold(other):
            buffer.copy_to(pinned, stream=other)
            buffer.close()  # is freed on its own stream, after the other one's copy
            with device.allocate(64, stream=stream) as another:
                another.fill(1, stream=stream)
        other.sync()
    assert bytes(pinned) == bytes([6] * 64)


def test_device_memory_is_no_python_buffer(buffer):
    with pytest.raises(BufferError, match="copy it with copy_to"):
        memoryview(buffer)


def test_pinned_memory(device, buffer, stream, kernels):
    resource = cu.PinnedMemoryResource()
    with resource.allocate(64) as pinned:
        assert pinned.kind == "pinned"
        assert pinned.device is None
        array = np.frombuffer(pinned, dtype="i4")
        array[:] = 7
        assert bytes(memoryview(pinned)[:4]) == b"\7\0\0\0"
        cu.launch(stream, cu.LaunchConfig(grid=1, block=16), kernels["add"], pinned, 1, 16)
        buffer.copy_from(pinned, stream=stream)
        stream.sync()
        assert (array == 8).all()
        assert content(buffer, stream) == b"\x08\0\0\0" * 16
        with pytest.raises(BufferError, match=r"1 view\(s\) of its host memory are open"):
            pinned.close()
        del array
    resource.close()


def test_managed_memory(device, stream, kernels):
    resource = cu.ManagedMemoryResource(device)
    assert resource.device is device
    with resource.allocate(64, stream=stream) as managed:
        assert managed.kind == "managed"
        array = np.frombuffer(managed, dtype="i4")
        array[:] = range(16)
        cu.launch(stream, cu.LaunchConfig(grid=1, block=16), kernels["times"], managed, 3, 16)
        stream.sync()
        assert array.tolist() == list(range(0, 48, 3))
        del array
    resource.close()


def test_pool(device, stream):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(release_threshold=1 << 20)) as pool:
        assert pool.device is device
        assert repr(pool) == "<cudago.DeviceMemoryResource>"
        buffer = pool.allocate(1 << 16, stream=stream)
        stream.sync()
        assert pool.statistics.used >= 1 << 16
        assert pool.statistics.reserved >= pool.statistics.used
        buffer.close()
        stream.sync()
        assert pool.statistics.used == 0
        assert pool.statistics.used_high >= 1 << 16
        reserved = pool.statistics.reserved
        pool.trim()
        assert pool.statistics.reserved <= reserved  # the driver may keep a block for itself
    assert pool.is_closed
    assert repr(pool) == "<cudago.DeviceMemoryResource: closed>"
    with pytest.raises(cu.ClosedError, match="memory resource is closed"):
        pool.allocate(8, stream=stream)
    with pytest.raises(ValueError, match="release_threshold must be 0 to"):
        cu.DeviceMemoryResource(device, pool=cu.PoolOptions(release_threshold=-1))
    with pytest.raises(TypeError, match="device must be a Device"):
        cu.DeviceMemoryResource(0)


def test_buffers_outlive_their_pool(device, stream):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool:
        buffer = pool.allocate(64, stream=stream)
    buffer.fill(2, stream=stream)
    assert content(buffer, stream) == bytes([2] * 64)
    buffer.close()


def test_a_pool_of_limited_size(device, stream):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=1 << 22)) as pool:
        with pytest.raises(cu.OutOfMemoryError):
            pool.allocate(1 << 28, stream=stream)  # drivers round the size up, to 32 MiB
        pool.allocate(1 << 20, stream=stream).close()


def test_pageable_memory_is_filled_by_whoever_has_it(device, stream, driver):
    if driver == "nvidia" and device.properties.pageable_memory_access:
        pytest.skip("the driver may fill all memory of the host")
    lent = np.zeros(4, "i4")
    buffer = cu.from_dlpack(lent).buffer
    with pytest.raises(BufferError, match="the buffer is pageable host memory: fill the array"):
        buffer.fill(0, stream=stream)
    with cu.Graph(device) as graph:
        for memory in (lent, buffer, buffer.ptr):
            with pytest.raises(BufferError, match="dst is pageable host memory: fill the array"):
                graph.memset(memory, 0)
        node = graph.memset(device.allocate(16, stream=stream), 0)
        with pytest.raises(BufferError, match="dst is pageable host memory: fill the array"):
            node.update(dst=lent, value=0)
        step = graph.instantiate()
        with pytest.raises(BufferError, match="dst is pageable host memory: fill the array"):
            step[node.name].update(dst=lent, value=0)
        step.close()
        with cu.pin(lent):
            graph.memset(lent, 0)
