# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Host memory of other objects, page-locked in place."""

from __future__ import annotations

import gc
import mmap
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle

ONE = cu.LaunchConfig(grid=1, block=64)


class Watched(bytearray):
    """A bytearray that can be watched."""


@pytest.fixture(autouse=True)
def _registers(device: cu.Device) -> None:
    if not device.properties.host_register_supported:
        pytest.skip("the device cannot use host memory that is registered")


@pytest.fixture
def array() -> np.ndarray:
    return np.arange(64, dtype="i4")


def test_buffer_is_the_objects_memory(device, array):
    with cu.pin(array) as buffer:
        assert (buffer.kind, buffer.size, buffer.device) == ("pinned", 256, None)
        assert buffer.handle == array.ctypes.data
        memoryview(buffer)[:4] = (7).to_bytes(4, sys.byteorder)
        assert array[0] == 7
        assert np.frombuffer(buffer, "i4").ctypes.data == array.ctypes.data


@pytest.mark.parametrize(
    "make", [bytearray, lambda n: memoryview(bytearray(n)), lambda n: mmap.mmap(-1, n)]
)
def test_any_writable_buffer(device, stream, make):
    obj = make(4096)
    with cu.pin(obj) as buffer:
        buffer.fill(9, stream=stream)
        stream.sync()
        assert bytes(obj) == b"\x09" * 4096
        assert bytes(buffer[:3]) == b"\x09" * 3


def test_copies(device, stream, array):
    x = device.allocate(256, stream=stream)
    out = np.zeros_like(array)
    with cu.pin(array) as src, cu.pin(out) as dst:
        x.copy_from(src, stream=stream)
        dst.copy_from(x, stream=stream)
        stream.sync()
        assert (out == array).all()
        src[:8].copy_to(x[8:16], stream=stream)
        x.copy_to(dst, stream=stream)
        stream.sync()
        assert list(out[:4]) == [0, 1, 0, 1]


def test_kernel_arguments(device, stream, kernels, array):
    with cu.pin(array) as buffer:
        cu.launch(stream, ONE, kernels["add"], buffer, 100, 64)
        cu.launch(stream, ONE, kernels["add"], buffer.ptr + 8, 100, 1)
        cu.launch(stream, ONE, kernels["add"], buffer.view("i4")[4:], 100, 1)
        stream.sync()
        assert list(array[:5]) == [100, 101, 202, 103, 204]


def test_dlpack(device, array):
    with cu.pin(array) as buffer:
        again = np.from_dlpack(buffer.view("i4"))
        assert again.ctypes.data == array.ctypes.data
        del again
        settle()


def test_capture(device, stream, kernels, array):
    buffer = cu.pin(array)
    with stream.capture() as graph:
        cu.launch(stream, ONE, kernels["add"], buffer, 1, 64)
        late = cu.pin(bytearray(64))  # allowed, and no part of it
    late.close()
    step = graph.instantiate()
    buffer.close()
    step.launch(stream)
    stream.sync()
    assert array[0] == 1
    step.close()
    graph.close()


# --- mistakes -----------------------------------------------------------------------------------


def test_refuses_what_it_cannot_pin(device):
    with pytest.raises(
        TypeError,
        match=r"obj must have the buffer protocol, as a NumPy array or a bytearray has, not be a",
    ):
        cu.pin(3)
    with pytest.raises(BufferError, match=r"obj cannot be used: .*must be C-contiguous"):
        cu.pin(np.zeros((4, 4))[:, 1])
    with pytest.raises(BufferError, match="obj is read-only: pass read_only=True"):
        cu.pin(b"abcd")
    with pytest.raises(ValueError, match="obj must have at least 1 byte to be pinned, got 0"):
        cu.pin(bytearray())
    with pytest.raises(TypeError):
        cu.pin(bytearray(4), True)


def test_refuses_memory_that_the_driver_knows(device, array, pinned):
    with cu.pin(array[:32]):
        for overlap in (array, array[:32], array[31:33]):
            with pytest.raises(
                cu.CUDAError,
                match="of which some are registered already, here or by another library",
            ) as e:
                cu.pin(overlap)
            assert (e.value.code, e.value.operation) == (712, "cuMemHostRegister")
        cu.pin(array[32:]).close()
    with pytest.raises(cu.CUDAError, match="which CUDA has allocated itself") as e:
        cu.pin(pinned)
    assert e.value.code == 1


def test_refusal_leaves_nothing(device, stream, pinned):
    obj = bytearray(64)
    with cu.pin(obj), pytest.raises(cu.CUDAError):
        cu.pin(obj)
    settle()
    obj.extend(b"x" * 5000)  # no export is open
    with pytest.raises(BufferError, match="device memory has no Python buffer"):
        cu.pin(device.allocate(4, stream=stream))
    with pytest.raises(cu.CUDAError):
        cu.pin(pinned)
    pinned[:1].close()


# --- read-only ----------------------------------------------------------------------------------


@pytest.fixture
def locked(device):
    if not device.properties.read_only_host_register_supported:
        pytest.skip("the device cannot use read-only host memory")
    with cu.pin(b"12345678", read_only=True) as buffer:
        yield buffer


def test_read_only_memory_is_read(locked, stream, device, kernels):
    assert memoryview(locked).readonly
    assert locked.view("u1").is_readonly
    x = device.allocate(8, stream=stream)
    x.copy_from(locked, stream=stream)
    cu.launch(stream, ONE, kernels["copy"], locked, x, 1)
    assert bytes(x.view("u1").numpy(stream=stream)) == b"12345678"


def test_read_only_memory_is_no_destination(locked, stream, device):
    x = device.allocate(8, stream=stream)
    host = bytearray(8)
    graph = cu.Graph()
    node = graph.memcpy(x, host)
    calls = [
        lambda: locked.fill(1, stream=stream),
        lambda: locked.copy_from(x, stream=stream),
        lambda: locked[:8].copy_from(host, stream=stream),
        lambda: x.copy_to(locked, stream=stream),
        lambda: graph.memcpy(locked, x),
        lambda: graph.memcpy(locked.ptr, x),
        lambda: graph.memcpy(locked.view("u1"), x),
        lambda: graph.memset(locked, 0),
    ]
    for call in calls:
        with pytest.raises(BufferError, match="read-only"):
            call()
    with stream.capture() as captured:
        for call in calls[:4]:
            with pytest.raises(BufferError, match="read-only"):
                call()
    assert not captured.nodes
    step = graph.instantiate()
    with pytest.raises(BufferError, match="dst is read-only"):
        step[node.name].update(dst=locked)
    assert bytes(locked) == b"12345678"


def test_read_only_view_of_writable_memory(device, array):
    with cu.pin(array, read_only=True) as buffer:
        assert memoryview(buffer).readonly
        array[0] = 5  # the host's own business
        assert bytes(buffer[:4]) == array[:1].tobytes()


# --- lifetimes ----------------------------------------------------------------------------------


def test_object_is_exported_until_the_last_holder_goes(device, stream):
    obj = bytearray(256)
    buffer = cu.pin(obj)
    view, graph = buffer[:16], cu.Graph()
    graph.memset(buffer[16:32], 3)
    step = graph.instantiate()

    def resizes() -> bool:
        settle()
        try:
            obj.append(0)
        except BufferError:
            return False
        return True

    for holder in (buffer, view, graph):
        holder.close()
        assert not resizes()
    step.launch(stream)
    stream.sync()
    assert obj[16:32] == b"\x03" * 16
    step.close()
    assert resizes()


def test_object_lives_as_long_as_its_buffer(device):
    obj = Watched(64)
    alive = weakref.ref(obj)
    buffer = cu.pin(obj)
    del obj
    gc.collect()
    assert alive() is not None
    del buffer
    settle()
    gc.collect()
    assert alive() is None


def test_memory_can_be_pinned_again(device, array):
    for _ in range(3):
        cu.pin(array).close()
    with cu.pin(array), pytest.raises(cu.CUDAError):
        cu.pin(array)


def test_unpinning_waits_for_the_device(device, stream, kernels):
    array = np.zeros(64, "i4")
    released = threading.Event()
    obj = Watched(memoryview(array).cast("B"))
    weakref.finalize(obj, released.set)
    hold = threading.Event()
    graph = cu.Graph()
    graph.callback(lambda: hold.wait(60))
    step = graph.instantiate()
    step.launch(stream)
    buffer = cu.pin(obj)
    cu.launch(stream, ONE, kernels["add"], buffer, 1, 64)
    del obj, buffer
    gc.collect()
    time.sleep(0.05)
    cu._core._drain()
    assert not released.is_set()
    hold.set()
    stream.sync()
    settle()
    assert released.wait(10)
    step.close()


def test_unpinning_waits_for_captures(device, stream, kernels):
    obj = bytearray(256)
    x = device.allocate(256, stream=stream)
    x.fill(0, stream=stream)
    with stream.capture() as graph:
        cu.launch(stream, ONE, kernels["add"], x, 1, 64)
        cu.pin(obj).close()
        time.sleep(0.05)
        cu._core._drain()
        with pytest.raises(BufferError):
            obj.append(0)
    settle()
    obj.append(0)
    graph.instantiate().launch(stream)
    stream.sync()


def test_counts(device, array):
    before = cu.live_objects().get("Buffer", 0)
    buffer = cu.pin(array)
    assert cu.live_objects()["Buffer"] == before + 1
    buffer.close()
    assert cu.live_objects().get("Buffer", 0) == before
    with pytest.raises(cu.ClosedError):
        buffer[:4]


def test_threads(device):
    def work() -> None:
        for _ in range(50):
            with cu.pin(bytearray(4096)) as buffer:
                memoryview(buffer)[0] = 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    settle()


def test_what_else_goes_wrong_is_not_the_objects_fault(array, device, stream):
    """A lack of memory, while an export is taken, is no matter of its layout."""
    testcapi = pytest.importorskip("_testcapi")
    with cu.Graph(device) as graph, device.allocate(array.nbytes, stream=stream) as buffer:
        uses = {
            "pin": lambda: cu.pin(array).close(),
            "memcpy": lambda: graph.memcpy(buffer, array),
            "copy_batch": lambda: cu.copy_batch([(buffer, array)], stream=stream),
            "copy_from": lambda: buffer.copy_from(array, stream=stream),
        }
        for name, use in uses.items():
            use()
            found = set()
            for n in range(30):
                testcapi.set_nomemory(n, n + 1)
                try:
                    use()
                except BaseException as e:
                    error = e
                else:
                    error = None
                finally:
                    testcapi.remove_mem_hooks()
                found.add(type(error))
                del error
            assert found <= {type(None), MemoryError}, name
            assert MemoryError in found, name
        stream.sync()
