# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of other APIs, and buffers over it.

Only the simulated driver imports what stands for another API here;
tests_py/interop/test_vulkan.py has the real one.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

SIZE = 3 * 4096


pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


@pytest.fixture
def exported():
    with cu.sim.create_memory(SIZE) as made:
        yield made


@pytest.fixture
def memory(device, exported):
    with cu.ExternalMemory.from_fd(device, exported, SIZE) as made:
        yield made


def test_kernel_writes_what_the_other_api_sees(device, stream, kernels, memory, exported):
    theirs = np.frombuffer(exported.view, "i4")
    with memory.map(stream=stream) as whole:
        assert whole.size == SIZE
        assert whole.device == device
        n = SIZE // 4
        whole.fill(0, stream=stream)
        cu.launch(stream, cu.LaunchConfig(grid=n // 256, block=256), kernels["add"], whole, 5, n)
        stream.sync()
        assert (theirs == 5).all()
        np.frombuffer(exported.view, "i4")[7] = 9
        assert whole.view("i4").numpy(stream=stream)[7] == 9


def test_parts_are_of_the_same_memory(stream, memory):
    with memory.map(stream=stream) as whole, memory.map(4096, 100, stream=stream) as part:
        whole.fill(1, stream=stream)
        part.fill(2, stream=stream)
        values = whole.view("u1").numpy(stream=stream)
        assert values[4095:4098].tolist() == [1, 2, 2]
        assert values[4195:4197].tolist() == [2, 1]


@pytest.mark.parametrize(
    "part", [(0, SIZE + 1), (SIZE, 1), (SIZE, 0), (1 << 62, 1 << 62), (4096, 0)]
)
def test_bounds(stream, memory, part):
    with pytest.raises(ValueError, match=r"not inside the external memory|at least 1 byte"):
        memory.map(*part, stream=stream)


@pytest.mark.parametrize("part", [(-1, 4), (0, -1), (SIZE + 1,)])
def test_negative(stream, memory, part):
    with pytest.raises((ValueError, OverflowError)):
        memory.map(*part, stream=stream)


def test_a_buffer_outlives_it(device, stream, exported):
    memory = cu.ExternalMemory.from_fd(device, exported, SIZE, dedicated=True)
    buffer = memory.map(stream=stream)
    memory.close()
    memory.close()
    assert memory.is_closed
    assert "closed" in repr(memory)
    exported.close()
    view = exported.view
    part = buffer[4096:4097]
    buffer.close()
    part.fill(6, stream=stream)
    stream.sync()
    assert view[4096] == 6
    with pytest.raises(cu.ClosedError, match="external memory is closed"):
        memory.map(stream=stream)


def test_unmapped_after_the_last_stream(device, stream, memory, exported):
    with device.create_stream() as other:
        buffer = memory.map(stream=stream)
        with hold(other):
            buffer.fill(8, stream=other)
            buffer.close()
            assert exported.view[0] == 0
        other.sync()
        assert exported.view[0] == 8


def test_graph_keeps_it(device, stream, memory, exported):
    graph = cu.Graph(device)
    with memory.map(stream=stream) as buffer:
        graph.memset(buffer, 3)
    memory.close()
    step = graph.instantiate()
    step.launch(stream)
    stream.sync()
    assert exported.view[SIZE - 1] == 3
    with step, graph:
        pass


def test_nothing_is_left(device, stream):
    settle()
    before = cu.live_objects()
    for _ in range(3):
        with cu.sim.create_memory(SIZE) as exported:
            memory = cu.ExternalMemory.from_fd(device, exported, SIZE)
            buffer = memory.map(stream=stream)
            buffer.fill(1, stream=stream)
            del memory, buffer
    stream.sync()
    settle()
    assert cu.live_objects() == before


def test_refusals(device, stream, exported, tmp_path):
    with pytest.raises(cu.CUDAError, match=r"os\.memfd_create"):
        cu.ExternalMemory.from_fd(device, exported, SIZE + 1)
    with pytest.raises(ValueError, match="at least 1 byte"):
        cu.ExternalMemory.from_fd(device, exported, 0)
    (tmp_path / "file").write_bytes(bytes(SIZE))
    with (
        (tmp_path / "file").open("r+b") as other,
        pytest.raises(cu.CUDAError, match="INVALID_HANDLE"),
    ):
        cu.ExternalMemory.from_fd(device, other, SIZE)
    with pytest.raises(ValueError, match=r"size must be 1 to 2\*\*63-1 bytes, got 0"):
        cu.sim.create_memory(0)


def test_cannot_grow(stream, memory):
    with memory.map(stream=stream) as buffer, pytest.raises(TypeError, match="cannot grow"):
        buffer.grow(1 << 21)


def test_another_device_does_not_reach_it(script, driver):
    run = script(
        """
        import cudago as cu

        first, second = cu.Device(0), cu.Device(1)
        exported = cu.sim.create_memory(4096)
        memory = cu.ExternalMemory.from_fd(first, exported, 4096)
        semaphore = cu.ExternalSemaphore.from_fd(first, cu.sim.create_semaphore())
        buffer = memory.map(stream=first.default_stream)
        source = 'extern "C" __global__ void one(int* x) { *x = 1; }'
        one, other = cu.Program(source).compile()["one"], second.create_stream()
        for call in (
            lambda: cu.launch(other, cu.LaunchConfig(1, 1), one, buffer),
            lambda: memory.map(stream=other),
            lambda: other.signal(semaphore, 1),
            lambda: cu.Graph(second).signal(semaphore, 1),
        ):
            try:
                call()
            except ValueError as e:
                assert "device 0" in str(e), e
            else:
                raise AssertionError
        first.reset()
        assert memory.is_closed and semaphore.is_closed and buffer.is_closed
        try:
            memory.map(stream=first.create_stream())
        except cu.ClosedError as e:
            assert "device 0 was reset" in str(e), e
        else:
            raise AssertionError
        """,
        CUDAGO_SIM="devices=2",
    )
    assert not run.returncode, run.stderr


def test_not_in_a_capture(device, stream, memory):
    with (
        pytest.raises(ValueError, match="cannot be mapped on a stream that is capturing"),
        stream.capture(),
    ):
        memory.map(stream=stream)


def test_ranges_that_cannot_be_mapped(device, stream, memory):
    with pytest.raises(ValueError, match="offset in bytes must not be negative, got -4096"):
        memory.map(-4096, stream=stream)
    with pytest.raises(ValueError, match="size in bytes must not be negative, got -4"):
        memory.map(0, -4, stream=stream)
    with pytest.raises(OverflowError, match=r"offset in bytes must be below 2\*\*63"):
        memory.map(1 << 63, stream=stream)
    with pytest.raises(ValueError, match=f"at offset {SIZE + 1} is not inside the external memory"):
        memory.map(SIZE + 1, stream=stream)
    message = rf"\({SIZE - 100} bytes at offset 100 of {SIZE}; .* from multiples of 4096\)"
    with pytest.raises(cu.CUDAError, match=message):
        memory.map(100, stream=stream)


def test_map_beside_a_capture(device, stream, memory):
    with device.create_stream() as other, stream.capture():
        memory.map(stream=other).close()


def test_another_programs_file_is_sealed(device, stream):
    """Made smaller, it would take from this process what is mapped: the end by SIGBUS."""
    fd = os.memfd_create("plain", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, 4096)
        memory = cu.ExternalMemory.from_fd(device, fd, 4096)
        with memory, memory.map(stream=stream) as buffer:
            buffer.fill(4, stream=stream)
            stream.sync()
        assert os.pread(fd, 1, 4095) == b"\4"
        with pytest.raises(PermissionError):
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)
    unsealed = os.memfd_create("plain", os.MFD_CLOEXEC)
    try:
        os.ftruncate(unsealed, 4096)
        with pytest.raises(cu.CUDAError, match=r"cannot become smaller.*MFD_ALLOW_SEALING"):
            cu.ExternalMemory.from_fd(device, unsealed, 4096)
        assert os.fstat(unsealed).st_size == 4096, "it is the caller's"
    finally:
        os.close(unsealed)
    assert "4096 bytes" in repr(cu.sim.create_memory(4096))
