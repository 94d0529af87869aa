# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles of graphs that allocate: what uses the memory has it elsewhere, and it is given back."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")

SOURCE = """
struct Pair { const int* from; int* to; };
extern "C" __global__ void copied(Pair pair, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) pair.to[i] = pair.from[i];
}
extern "C" __global__ void read(unsigned long long from, int* to, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = ((const int*)from)[i];
}
"""


@dataclass
class Pair:
    source: cu.Buffer
    target: cu.Tensor


class Addresses(ctypes.Structure):
    _fields_ = (("source", ctypes.c_uint64), ("target", ctypes.c_uint64))


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile(device=device)


def kinds(profile):
    return [row.kind for row in profile.rows]


def test_operands_follow_the_memory(graph, device, a, b, stream, kernels):
    room = graph.allocate(4 * N, name="room")
    up = room.memcpy(room.buffer, np.arange(N, dtype="i4"), name="up")
    add = up.launch(CONFIG, kernels["add"], room.buffer.view("i4")[: N // 2], 100, N // 2)
    half = add.memcpy(a, room.buffer)
    half.memset(room.buffer[4:8], 7).memcpy(b, room.buffer).free(room.buffer)
    step = graph.instantiate()
    graph.close()
    profile = step.profile(stream)
    expected = np.arange(N, dtype="i4")
    expected[: N // 2] += 100
    assert kinds(profile) == ["alloc", "memcpy", "kernel", "memcpy", "memset", "memcpy", "free"]
    assert (a.view("i4").numpy(stream=stream) == expected).all()
    expected[1] = 0x07070707
    assert (b.view("i4").numpy(stream=stream) == expected).all()
    for _ in range(2):  # the memory of the executable is what it was
        a.fill(0, stream=stream)
        step.launch(stream)
        assert (b.view("i4").numpy(stream=stream) == expected).all()
        assert len(step.profile(stream).rows) == 7


def test_structs_and_addresses_follow_it(graph, a, b, stream, code):
    room = graph.allocate(4 * N)
    filled = room.memset(room.buffer, 3)
    config = cu.LaunchConfig(grid=1, block=32)
    there = filled.launch(config, code["copied"], Pair(room.buffer, a.view("i4")), N)
    there.launch(config, code["read"], room.buffer.handle, b, N).free(room.buffer)
    graph.instantiate().profile(stream)
    assert numbers(a, stream) == numbers(b, stream) == 0x03030303


def test_memory_that_nothing_frees_is_given_back(graph, device, a, stream):
    room = graph.allocate(1 << 20)
    room.memset(room.buffer, 5).memcpy(a, room.buffer[: 4 * N])
    step = graph.instantiate()
    before = device.graph_memory.statistics.used
    assert kinds(step.profile(stream)) == ["alloc", "memset", "memcpy"]
    assert numbers(a, stream) == 0x05050505
    end = time.monotonic() + 10  # the simulated device counts a moment later
    while device.graph_memory.statistics.used != before and time.monotonic() < end:
        time.sleep(0.001)
    assert device.graph_memory.statistics.used == before


def test_memory_one_after_the_other(device, a, b, stream, kernels):
    """The driver may give both the same address."""
    with stream.capture() as graph:
        for out, value in ((a, 1), (b, 2)):
            room = device.allocate(4 * N, stream=stream)
            room.fill(value, stream=stream)
            cu.launch(stream, CONFIG, kernels["copy"], room, out, N)
            room.close()
    profile = graph.instantiate().profile(stream)
    assert kinds(profile) == ["alloc", "memset", "kernel", "free"] * 2
    assert (numbers(a, stream), numbers(b, stream)) == (0x01010101, 0x02020202)


def test_memory_of_another_graph(graph, device, a, stream):
    with cu.Graph(device) as other:
        room = other.allocate(64)
        memory = room.buffer
        first = other.instantiate()
    graph.memset(a, 7).free(memory)
    step = graph.instantiate()
    with pytest.raises(cu.UnsupportedError, match=r"free node .* that another graph allocates"):
        step.profile(stream)
    assert numbers(a, stream) == 0
    first.launch(stream)
    step.launch(stream)
    assert numbers(a, stream) == 0x07070707


def test_what_is_inside_may_use_the_memory(graph, device, a, stream):
    room = graph.allocate(4 * N)
    filled = room.memset(a, 7).memset(room.buffer, 0)
    with cu.Graph(device) as inner:
        inner.memcpy(a, room.buffer)
        filled.embed(inner, name="deep")
    with pytest.raises(cu.UnsupportedError, match="cannot profile child graph node 'deep': what"):
        graph.instantiate().profile(stream)
    assert numbers(a, stream) == 0


def test_an_address_among_bytes_is_not_found(graph, a, stream, code):
    room = graph.allocate(4 * N)
    raw, config = Addresses(room.buffer.handle, a.handle), cu.LaunchConfig(grid=1, block=32)
    room.memset(a, 7).launch(config, code["copied"], raw, N, name="raw")
    with pytest.raises(cu.UnsupportedError, match=r"node 'raw': a struct has an address .* byte 0"):
        graph.instantiate().profile(stream)
    assert numbers(a, stream) == 0
