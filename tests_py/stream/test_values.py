# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Values that a stream writes into memory, and waits for there."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle


@pytest.fixture
def other(device):
    with device.create_stream() as s:
        yield s


@pytest.fixture
def values(device):
    """Device memory that takes values: not that of a pool."""
    with cu.VirtualMemoryResource(device, reserve=1 << 24) as resource:
        yield resource


@pytest.fixture
def flag(values, stream):
    """Eight zeroed bytes of device memory."""
    with values.allocate(8, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        stream.sync()
        yield buffer


class Word:
    """A word that the host and the device see."""

    def __init__(self, pinned):
        self.buffer = pinned[:4]
        self.set(0)

    def set(self, value):
        with memoryview(self.buffer) as view:
            view[:] = value.to_bytes(4, "little")


@pytest.fixture
def word(pinned):
    word = Word(pinned)
    with word.buffer:
        yield word
        word.set(1)  # a test that failed may have left a wait


def read(memory, stream, dtype=np.uint32):
    out = np.zeros(memory.nbytes // np.dtype(dtype).itemsize, dtype)
    memory.copy_to(out, stream=stream)
    stream.sync()
    return out.tolist()


def test_write(flag, stream):
    stream.write_value(flag[:4], 5)
    assert read(flag, stream) == [5, 0]
    stream.write_value(flag, 1 << 40 | 3)
    assert read(flag, stream) == [3, 1 << 8]
    stream.write_value(flag.ptr + 4, -2)
    assert read(flag, stream) == [3, 2**32 - 2]
    stream.write_value(flag.view("int32")[0:1], np.int64(9))
    assert read(flag, stream) == [9, 2**32 - 2]
    stream.write_value(flag, 2**64 - 1)
    stream.write_value(flag, -(2**63))
    assert read(flag, stream) == [0, 1 << 31]


def test_write_is_in_order(flag, stream, kernels):
    flag[:4].fill(1, stream=stream)
    config = cu.LaunchConfig(grid=1, block=1)
    stream.write_value(flag[:4], 20)
    cu.launch(stream, config, kernels["add"], flag, 3, 1)
    assert read(flag, stream)[0] == 23


def test_a_wait_holds_its_stream_alone(stream, other, flag, word):
    stream.wait_value(word.buffer, 1)
    stream.write_value(flag[:4], 7)
    other.write_value(flag[4:], 8)
    assert read(flag, other) == [0, 8]
    assert not stream.is_done
    word.set(1)
    stream.sync()
    assert read(flag, other) == [7, 8]


def test_streams_wait_for_each_other(stream, other, flag):
    there, back = flag[:4], flag[4:]
    for i in range(1, 20):
        other.wait_value(there, i)
        other.write_value(back, i)
        stream.write_value(there, i)
        stream.wait_value(back, i, "==")
    stream.sync()
    assert read(flag, stream) == [19, 19]


@pytest.mark.parametrize(
    ("condition", "value", "no", "yes"),
    [
        (">=", 5, 4, 6),
        (">=", 2, 2**64 - 1, 3),
        (">=", -3, 2**64 - 4, 0),
        ("==", 1 << 40, 1 << 41, 1 << 40),
        ("&", 0b110 << 40, 0b1001 << 40, 0b010 << 40),
        ("nor", 0xFFFFFFFF << 32, 0xFFFFFFFF, 0xFFFFFFFE),
    ],
)
def test_conditions(condition, value, no, yes, stream, other, flag):
    stream.write_value(flag, no)
    stream.sync()
    other.wait_value(flag, value, condition)
    assert not other.is_done
    stream.write_value(flag, yes)
    other.sync()


def test_memory_is_kept_until_the_wait_is_over(values, stream, other, word):
    memory = values.allocate(8, stream=other)
    memory.fill(0, stream=other)
    other.sync()
    stream.wait_value(word.buffer, 1)
    stream.write_value(memory, 3)
    memory.close()  # freed on `other` behind the write
    with values.allocate(8, stream=other) as again:
        assert not stream.is_done
        word.set(1)
        stream.sync()
        again.fill(1, stream=other)
        assert read(again, other, np.uint8) == [1] * 8


def test_refusals(values, stream, flag):
    class Closing:
        def __init__(self, buffer):
            self.buffer = buffer

        def __index__(self):
            self.buffer.close()
            return 1

    before = read(flag, stream)
    with values.allocate(12, stream=stream) as big:
        for bad in (big, big[:2], big[:0], big[:5]):
            with pytest.raises(ValueError, match=f"4 or 8 bytes, .* got {bad.nbytes}"):
                stream.write_value(bad, 1)
        with pytest.raises(ValueError, match="src must be aligned to its 4 bytes"):
            stream.wait_value(big[2:6], 1)
        with pytest.raises(ValueError, match=r"dst must be aligned to its 8 bytes"):
            stream.write_value(big[4:], 1)
        closing = values.allocate(4, stream=stream)
        with pytest.raises(cu.ClosedError):
            stream.write_value(closing, Closing(closing))
    for bad in (2**32, -(2**31) - 1, 2**64, 2**200, -(2**63) - 1):
        with pytest.raises(OverflowError, match="value must fit in"):
            stream.write_value(flag[:4], bad)
    for bad in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match="value must fit in"):
            stream.wait_value(flag, bad)
    for bad in (1.0, "1", None, b"abcd"):
        with pytest.raises(TypeError, match="value must be an int"):
            stream.write_value(flag, bad)
    for bad in (np.zeros(2, np.int32), bytearray(4), 7, None):
        with pytest.raises(TypeError, match="dst must be a Buffer, Pointer or Tensor"):
            stream.write_value(bad, 1)
    with pytest.raises(
        ValueError, match=r"condition must be one of '>=', '==', '&', 'nor', got '<'"
    ):
        stream.wait_value(flag, 1, "<")
    with pytest.raises(TypeError, match="condition must be a str"):
        stream.wait_value(flag, 1, 1)
    assert read(flag, stream) == before


def test_memory_that_the_front_end_cannot_use(device, stream):
    with cu.ManagedMemoryResource(device).allocate(8) as managed:
        with pytest.raises(ValueError, match="managed memory"):
            stream.write_value(managed, 1)
        with pytest.raises(ValueError, match="managed memory"):
            stream.wait_value(managed, 0)
    host = cu.from_dlpack(np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="pageable host memory"):
        stream.wait_value(host, 0)


def test_memory_of_pools(device, stream):
    """A GPU refuses it, and a graph with it crashes there."""
    made = cu.Graph(device).allocate(8)
    others = np.zeros(2, np.int32)
    with device.allocate(8, stream=stream) as memory, cu.Graph(device) as graph:
        for bad in (memory, memory.view("int32"), made.buffer):
            for call in (stream.write_value, stream.wait_value, graph.write_value):
                with pytest.raises(ValueError, match="is in a memory pool: "):
                    call(bad, 1)
        assert len(graph.nodes) == 0
    refused = pytest.raises(ValueError, match="is in a memory pool: ")
    with stream.capture() as captured, device.allocate(8, stream=stream) as memory, refused:
        stream.write_value(memory, 1)
    assert [n.kind for n in captured.nodes] == ["alloc", "free"]
    with cu.pin(others) as pinned:
        stream.write_value(pinned, 3)
        stream.sync()
    assert others.tolist() == [3, 0]


def test_read_only_memory_can_be_waited_for(stream, flag):
    view = cu.from_dlpack(flag.view("int32"), copy=False)
    stream.wait_value(view[:1], 0, "==")
    stream.sync()


def test_closed(device, flag, stream, values):
    gone = device.create_stream()
    gone.close()
    with pytest.raises(cu.ClosedError):
        gone.write_value(flag, 1)
    memory = values.allocate(4, stream=stream)
    memory.close()
    with pytest.raises(cu.ClosedError):
        stream.write_value(memory, 1)
    with pytest.raises(cu.ClosedError):
        stream.wait_value(memory, 1)


def test_captured(values, stream, other, word):
    memory = values.allocate(8, stream=stream)
    memory.fill(0, stream=stream)
    with stream.capture() as graph:
        stream.wait_value(word.buffer, 1, "==")
        stream.write_value(memory, 6)
    assert [n.kind for n in graph.nodes] == ["batch mem op", "batch mem op"]
    assert [n.name for n in graph.nodes] == ["batch_mem_op_0", "batch_mem_op_1"]
    assert [(r.operand, r.nbytes) for r in graph.retained] == [("src", 4), ("dst", 8)]
    view = memory[:]
    memory.close()
    del memory
    gc.collect()
    with graph.instantiate() as step:
        for _ in range(2):
            word.set(0)
            stream.sync()
            step.launch(stream)
            assert not stream.is_done
            word.set(1)
            stream.sync()
        assert read(view, stream) == [6, 0]
    view.close()
    graph.close()
    settle()


def test_threads_run_meanwhile(stream, word):
    """Other threads run while the host waits for a stream that waits."""
    stream.wait_value(word.buffer, 1)
    done = threading.Event()

    def release():
        word.set(1)
        done.set()

    thread = threading.Thread(target=release)
    thread.start()
    stream.sync()
    thread.join()
    assert done.is_set()


def test_cancel_ends_a_wait(driver, stream, word):
    if driver != "sim":
        pytest.skip("only the simulated driver can cancel")
    over = threading.Event()

    def cancel():
        while not over.wait(0.01):  # until the wait has begun
            cu.sim.cancel()

    stream.wait_value(word.buffer, 5, "==")
    canceler = threading.Thread(target=cancel)
    canceler.start()
    try:
        with pytest.raises(
            cu.CheckError, match=r"canceled in a wait for the 4 bytes at .* to be == 0x5"
        ):
            stream.sync()
    finally:
        over.set()
        canceler.join()
    stream.sync()
