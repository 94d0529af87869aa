# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launch configurations and launches."""

from __future__ import annotations

import re
import threading

import pytest

import cudago as cu
from cudago.testing import hold

np = pytest.importorskip("numpy")

SHAPE = """
extern "C" __global__ void shape(int* p) {
    atomicAdd(p, 1);
    if (threadIdx.x || threadIdx.y || threadIdx.z || blockIdx.x || blockIdx.y || blockIdx.z) return;
    p[1] = gridDim.x; p[2] = gridDim.y; p[3] = gridDim.z;
    p[4] = blockDim.x; p[5] = blockDim.y; p[6] = blockDim.z;
}
"""


def test_configuration():
    config = cu.LaunchConfig(grid=4, block=(8, 2))
    assert config.grid == (4, 1, 1)
    assert config.block == (8, 2, 1)
    assert config.cluster is None
    assert config.shared_memory == 0
    assert config.cooperative is False
    assert config.priority is None
    assert repr(config) == "LaunchConfig(grid=(4, 1, 1), block=(8, 2, 1))"
    assert config == cu.LaunchConfig([4], [8, 2, 1])
    assert hash(config) == hash(cu.LaunchConfig(4, (8, 2)))
    assert config != cu.LaunchConfig(4, 16)
    assert config != (4, 8)
    full = cu.LaunchConfig(
        grid=np.int32(2), block=3, cluster=2, shared_memory=8, cooperative=True, priority=-1
    )
    assert (full.cluster, full.shared_memory) == ((2, 1, 1), 8)
    assert full.cooperative and full.priority == -1
    for name in ("cluster=(2, 1, 1)", "shared_memory=8", "cooperative=True", "priority=-1"):
        assert name in repr(full)
    with pytest.raises(AttributeError):
        config.grid = 5


def test_what_an_index_raises_comes_out_unchanged():
    class Index:
        def __index__(self):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        cu.LaunchConfig(Index(), 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"grid": 0, "block": 1}, ValueError, "grid must be at least 1 in every dimension"),
        ({"grid": 1, "block": (1, -1)}, ValueError, "block must be at least 1 in every dimension"),
        ({"grid": 1 << 32, "block": 1}, ValueError, "fit 32 bits"),
        ({"grid": 1 << 70, "block": 1}, ValueError, "fit 32 bits"),
        (
            {"grid": (1, 1, 1, 1), "block": 1},
            ValueError,
            "grid must be an int or 1 to 3 ints, got 4",
        ),
        ({"grid": (), "block": 1}, ValueError, "grid must be an int or 1 to 3 ints, got 0"),
        ({"grid": 1.5, "block": 1}, TypeError, "grid must be an int or a tuple of ints, got 1.5"),
        (
            {"grid": 1, "block": "32"},
            TypeError,
            "block must be an int or a tuple of ints, got '32'",
        ),
        ({"grid": 1, "block": 1, "cluster": 0}, ValueError, "cluster must be at least 1"),
        ({"grid": 1, "block": 1, "shared_memory": -1}, ValueError, "0 to 2147483647, got -1"),
        ({"grid": 1, "block": 1, "shared_memory": 1 << 31}, ValueError, "got 2147483648"),
        ({"grid": 1, "block": 1, "shared_memory": 1 << 70}, ValueError, "got 1180591620"),
        ({"grid": 1, "block": 1, "shared_memory": 1.5}, TypeError, "shared_memory must be an int"),
        ({"grid": 1, "block": 1, "priority": 1 << 31}, ValueError, "priority must be -2147483648"),
        ({"grid": 1, "block": 1, "priority": (1 << 32) + 1}, ValueError, "got 4294967297"),
        ({"grid": 1, "block": 1, "priority": -(1 << 70)}, ValueError, "got -1180591620"),
        ({"grid": 1, "block": 1, "priority": "low"}, TypeError, "priority must be an int"),
        ({"grid": 1}, TypeError, "block"),
        ({"grid": 1, "block": 1, "threads": 1}, TypeError, "threads"),
    ],
)
def test_invalid_configurations(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        cu.LaunchConfig(**arguments)


@pytest.mark.parametrize(
    ("grid", "block"),
    [(1, 1), (3, 70), ((2, 3), (4, 5)), ((2, 1, 2), (3, 2, 5)), (1, 1024), (1, (1, 1, 64))],
)
def test_every_thread_runs_once(grid, block, device, stream):
    kernel = cu.Program(SHAPE).compile()["shape"]
    config = cu.LaunchConfig(grid=grid, block=block)
    out = np.zeros(7, "i4")
    with device.allocate(28, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        cu.launch(stream, config, kernel, buffer)
        buffer.copy_to(out, stream=stream)
        stream.sync()
    threads = int(np.prod(config.grid) * np.prod(config.block))
    assert out.tolist() == [threads, *config.grid, *config.block]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (cu.LaunchConfig(1, 1025), "block must be at most 1024 threads in x, got 1025"),
        (cu.LaunchConfig(1, (1, 1, 65)), "block must be at most 64 threads in z, got 65"),
        (cu.LaunchConfig(1, (64, 32)), "block must be 1 to 1024 threads for this kernel, got 2048"),
        (cu.LaunchConfig((1, 1 << 16), 1), "grid must be at most 65535 blocks in y, got 65536"),
        (cu.LaunchConfig((1, 1, 1 << 16), 1), "grid must be at most 65535 blocks in z, got 65536"),
        (cu.LaunchConfig(1, 1, shared_memory=1 << 20), r"shared_memory must be at most \d+ bytes"),
    ],
)
def test_shapes_that_the_device_cannot_run(config, message, kernels, stream):
    with pytest.raises(ValueError, match=message):
        cu.launch(stream, config, kernels["nothing"])
    graph = cu.Graph()
    with pytest.raises(ValueError, match=message):
        graph.launch(config, kernels["nothing"])
    assert graph.nodes == ()
    graph.close()
    stream.sync()


def test_launch_bounds(device, stream):
    source = 'extern "C" __global__ void __launch_bounds__(64) k() {}'
    kernel = cu.Program(source).compile()["k"]
    assert kernel.attributes.max_threads_per_block == 64
    with pytest.raises(ValueError, match="block must be 1 to 64 threads for this kernel, got 65"):
        cu.launch(stream, cu.LaunchConfig(1, 65), kernel)


def test_dynamic_shared_memory(device, stream):
    source = """extern "C" __global__ void reverse(int* p) {
        extern __shared__ int s[];
        s[threadIdx.x] = p[threadIdx.x];
        __syncthreads();
        p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
    }"""
    kernel = cu.Program(source).compile()["reverse"]
    numbers = np.arange(96, dtype="i4")
    with device.allocate(numbers.nbytes, stream=stream) as buffer:
        buffer.copy_from(numbers, stream=stream)
        cu.launch(stream, cu.LaunchConfig(1, 96, shared_memory=numbers.nbytes), kernel, buffer)
        buffer.copy_to(numbers, stream=stream)
        stream.sync()
    assert numbers.tolist() == list(range(95, -1, -1))


def test_cooperative(device, stream):
    source = """extern "C" __global__ void k(volatile int* p) {
        if (threadIdx.x) return;
        atomicAdd((int*)p, 1);
        while (*p < gridDim.x) {}  // ends only if all blocks run at the same time
    }"""
    kernel = cu.Program(source).compile()["k"]
    out = bytearray(4)
    with device.allocate(4, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        cu.launch(stream, cu.LaunchConfig(grid=2, block=32, cooperative=True), kernel, buffer)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        wrong = "1000000 blocks of 32 threads: a cooperative launch needs all blocks on device 0 at"
        with pytest.raises(ValueError, match=wrong):
            cu.launch(stream, cu.LaunchConfig(10**6, 32, cooperative=True), kernel, buffer)
    assert out == b"\2\0\0\0"


def test_launch_checks_its_arguments(kernels, stream):
    config = cu.LaunchConfig(1, 1)
    with pytest.raises(TypeError, match=re.escape("launch(stream, config, kernel, *args)")):
        cu.launch(stream, config)
    with pytest.raises(TypeError, match=r"stream must be a Stream .*, not int"):
        cu.launch(0, config, kernels["nothing"])
    with pytest.raises(TypeError, match="config must be a LaunchConfig, not <class 'tuple'>"):
        cu.launch(stream, (1, 1), kernels["nothing"])
    with pytest.raises(TypeError, match="kernel must be a Kernel, not <class 'str'>"):
        cu.launch(stream, config, "nothing")
    with pytest.raises(TypeError):
        cu.launch(stream, config, kernel=kernels["nothing"])


def test_launch_returns_before_the_kernel_runs(kernels, device, stream, pinned):
    with device.allocate(64, stream=stream) as buffer, hold(stream):
        buffer.fill(0, stream=stream)
        cu.launch(stream, cu.LaunchConfig(1, 16), kernels["add"], buffer, 1, 16)
        buffer.copy_to(pinned, stream=stream)
        assert bytes(pinned) == bytes(64)
    stream.sync()
    assert np.frombuffer(bytes(pinned), "i4").tolist() == [1] * 16


def test_more_launches_than_a_queue_takes(kernels, device, stream):
    config = cu.LaunchConfig(1, 1)
    out = bytearray(4)
    with device.allocate(4, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        for _ in range(3000):
            cu.launch(stream, config, kernels["add"], buffer, 1, 1)
        buffer.copy_to(out, stream=stream)
        stream.sync()
    assert int.from_bytes(out, "little") == 3000


def test_threads_launch_on_streams_of_their_own(kernels, device, stream):
    config = cu.LaunchConfig(1, 64)
    results = {}

    def work(number: int) -> None:
        out = np.zeros(64, "i4")
        with device.create_stream() as own, device.allocate(256, stream=own) as buffer:
            buffer.fill(0, stream=own)
            for _ in range(100):
                cu.launch(own, config, kernels["add"], buffer, number, 64)
            buffer.copy_to(out, stream=own)
            own.sync()
        results[number] = set(out.tolist())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: {100 * n} for n in range(1, 5)}


def test_blocks_that_fit_the_device_meet(device, stream):
    source = """extern "C" __global__ void meet(int* count) {
    if (threadIdx.x) return;
    atomicAdd(count, 1);
    while (*(volatile int*)count < gridDim.x) {}
}"""
    kernel = cu.Program(source, "c++").compile()["meet"]
    count = cu.zeros(1, "i4", stream=stream)
    blocks = kernel.max_active_blocks(256) * device.properties.multiprocessor_count
    cu.launch(stream, cu.LaunchConfig(blocks, 256), kernel, count)
    stream.sync()
    assert count.item(stream=stream) == blocks


def test_a_shuffle_from_lanes_that_have_exited(stream):
    """PTX calls the result undefined; cuda-samples' sums rely on 0."""
    source = """extern "C" __global__ void k(int* out) {
    if (threadIdx.x >= 8) return;
    int v = threadIdx.x;
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xff, v, d);
    if (threadIdx.x == 0) *out = v;
}"""
    out = cu.zeros(1, "i4", stream=stream)
    cu.launch(stream, cu.LaunchConfig(1, 32), cu.Program(source).compile()["k"], out)
    assert out.item(stream=stream) == 28
