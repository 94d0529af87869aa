# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kinds of memory that pointers point into, and what is done with pointers."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import cudago as cu

N = 64  # bytes of memory of each kind
FAR = (1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, 1 << 64, 1 << 200)  # beyond any memory
ONE = cu.LaunchConfig(grid=1, block=1)
VARIABLES = """
__device__ __align__(16) int numbers[16];
__constant__ __align__(16) int constants[16];
__managed__ __align__(16) int shared[16];
extern "C" __global__ void nothing() {}
"""


@dataclass
class Place:
    """Memory of a kind, whose bytes are 0, 1, 2 and so on."""

    buffer: cu.Buffer
    device: cu.Device
    stream: cu.Stream
    kernels: cu.ObjectCode
    kind: Memory
    open: contextlib.ExitStack

    def other(self) -> cu.Buffer:
        """Another allocation, of as many bytes, that are 200."""
        made = self.open.enter_context(self.device.allocate(N, stream=self.stream))
        made.fill(200, stream=self.stream)
        return made

    def values(self, of: Any = None) -> list[int]:
        """The bytes, once the stream has done its work."""
        buffer = self.buffer if of is None else of
        found = bytearray(buffer.size)
        buffer.copy_to(found, stream=self.stream)
        self.stream.sync()
        return list(found)


@dataclass(frozen=True)
class Memory:
    """A kind of memory."""

    make: Callable[[World], cu.Buffer]
    read_only: bool = False  # nothing of ours writes
    stores: bool = True  # kernels may store
    written: bool = False  # streams write values
    grows: bool = False
    filled: bool = True  # the driver fills it
    host: bool = False  # the host has a buffer of it
    cell: str = "POOL"  # what the native module calls it


@dataclass
class World:
    """What memory is made of."""

    device: cu.Device
    stream: cu.Stream
    open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def of(self, resource: cu.MemoryResource, size: int = N) -> cu.Buffer:
        """Memory of a resource."""
        self.open.enter_context(resource)
        return resource.allocate(size, stream=self.stream)

    def variable(self, name: str) -> cu.Buffer:
        """A variable of code of its own."""
        return cu.Program(VARIABLES).compile()[name]

    def pool(self, cls: Any, *args: Any) -> cu.Buffer:
        """Memory of a pool of the host's."""
        try:
            return self.of(cls(*args, pool=cu.PoolOptions()))
        except cu.UnsupportedError as error:
            pytest.skip(str(error))

    def grown(self) -> cu.Buffer:
        """Virtual memory that has grown."""
        made = self.of(cu.VirtualMemoryResource(self.device), N // 2)
        made.grow(N)
        return made

    def of_graph(self) -> cu.Buffer:
        """Memory that a graph has allocated."""
        graph = self.open.enter_context(cu.Graph(self.device))
        buffer = graph.allocate(N).buffer
        self.open.enter_context(graph.instantiate()).launch(self.stream)
        return buffer

    def pinned(self, read_only: bool) -> cu.Buffer:
        """An array's memory."""
        try:
            return cu.pin(np.arange(N, dtype="u1"), read_only=read_only)
        except (cu.CUDAError, ValueError) as error:
            pytest.skip(f"this device does not register it: {error}")

    def external(self) -> cu.Buffer:
        """Memory of another API, which only the simulated driver can make."""
        if cu.driver_name() != "sim":
            pytest.skip("another API has to make it")
        size = 1 << 21
        exported = self.open.enter_context(cu.sim.create_memory(size))
        memory = self.open.enter_context(cu.ExternalMemory.from_fd(self.device, exported, size))
        return memory.map(0, N, stream=self.stream)

    def adopted(self) -> cu.Buffer:
        """Memory of a library that has only an address."""
        theirs = self.device.allocate(N, stream=self.stream)
        return cu.Buffer.from_handle(theirs.handle, N, owner=theirs, stream=self.stream)

    def imported(self, array: Any) -> cu.Buffer:
        """Memory that came over DLPack."""
        if not self.device.reads_pageable_memory:
            pytest.skip("kernels do not read it")
        return cu.from_dlpack(array).buffer


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


MEMORIES = {
    "device": Memory(lambda w: w.device.allocate(N, stream=w.stream)),
    "pool of its own": Memory(
        lambda w: w.of(cu.DeviceMemoryResource(w.device, pool=cu.PoolOptions()))
    ),
    "tracked": Memory(lambda w: w.of(cu.TrackingMemoryResource(w.device.memory_resource))),
    "arena": Memory(lambda w: w.of(cu.ArenaMemoryResource(w.device.memory_resource, 4096))),
    "view": Memory(lambda w: w.device.allocate(2 * N, stream=w.stream)[32 : 32 + N]),
    "tensor's": Memory(lambda w: cu.zeros(N // 4, "i4", stream=w.stream).buffer),
    "pinned": Memory(
        lambda w: w.of(cu.PinnedMemoryResource()), written=True, host=True, cell="PINNED"
    ),
    "managed": Memory(
        lambda w: w.of(cu.ManagedMemoryResource(w.device)), host=True, cell="MANAGED"
    ),
    "pinned pool": Memory(lambda w: w.pool(cu.PinnedMemoryResource), host=True, cell="PINNED"),
    "managed pool": Memory(
        lambda w: w.pool(cu.ManagedMemoryResource, w.device), host=True, cell="MANAGED"
    ),
    "virtual": Memory(
        lambda w: w.of(cu.VirtualMemoryResource(w.device)), written=True, grows=True, cell="DEVICE"
    ),
    "virtual, grown": Memory(lambda w: w.grown(), written=True, grows=True, cell="DEVICE"),
    "graph": Memory(lambda w: w.of_graph(), cell="GRAPH"),
    "variable": Memory(lambda w: w.variable("numbers"), written=True, cell="VARIABLE"),
    "constant": Memory(
        lambda w: w.variable("constants"), written=True, stores=False, cell="VARIABLE"
    ),
    "managed variable": Memory(lambda w: w.variable("shared"), host=True, cell="VARIABLE"),
    "registered": Memory(lambda w: w.pinned(False), written=True, host=True, cell="PINNED"),
    "registered, read-only": Memory(
        lambda w: w.pinned(True), read_only=True, stores=False, host=True, cell="PINNED"
    ),
    "external": Memory(lambda w: w.external(), written=True, cell="DEVICE"),
    "adopted": Memory(lambda w: w.adopted(), cell="FOREIGN"),
    "imported": Memory(
        lambda w: w.imported(np.zeros(N, "u1")), filled=False, host=True, cell="FOREIGN"
    ),
    "imported, read-only": Memory(
        lambda w: w.imported(_read_only(np.arange(N, dtype="u1"))),
        read_only=True,
        stores=False,
        host=True,
        cell="FOREIGN",
    ),
}
# Kinds of cells without a row, and why.
NO_ROW = {
    "HOST": "copies that tensors print; no buffer of them is given out",
    "PYTHON": "memory that a resource of Python's answers with: memory/test_allocators.py tries it",
}


# --- operations: each is tried on each kind, and asserts what it does -----------------------------


def refused(error: type[Exception], call: Callable[[], object], words: str = ".") -> None:
    """Check that a call raises an exception that says so."""
    with pytest.raises(error, match=words):
        call()


def whole(m: Place) -> None:
    """A pointer's facts."""
    p = m.buffer.ptr
    assert (p.offset, p.buffer, int(p), operator.index(p)) == (0, m.buffer, *[m.buffer.handle] * 2)
    assert bool(p) and repr(p) == f"<cudago.Pointer {m.buffer.handle:#x}: byte 0 of {N}>"


def add(m: Place) -> None:
    """``p + n``, inside and to the end; nowhere else."""
    p = m.buffer.ptr
    for n in (0, 1, 4, N - 1, N):
        for q in (p + n, n + p, p + np.int64(n)):
            assert (q.offset, int(q), q.buffer) == (n, m.buffer.handle + n, m.buffer)
    for at in (0, 10, N):
        for by in (N - at + 1, -at - 1, *FAR, *(-n for n in FAR)):
            refused(
                IndexError, lambda at=at, by=by: p + at + by, f"at byte {at} of a buffer of {N}"
            )
    for bad in (1.5, "1", None, p, [1]):
        refused(TypeError, lambda bad=bad: p + bad)


def subtract(m: Place) -> None:
    """``p - n``."""
    end = m.buffer.ptr + N
    for n in (0, 1, N):
        assert (end - n).offset == N - n
    for by in (N + 1, -1, *FAR, *(-n for n in FAR)):
        refused(IndexError, lambda by=by: end - by, "cannot move by")
    for bad in (1.5, "1", None):
        refused(TypeError, lambda bad=bad: end - bad)
    refused(TypeError, lambda: 5 - end)


def difference(m: Place) -> None:
    """``p - q``, in one allocation."""
    p = m.buffer.ptr
    assert (p + 40) - (p + 8) == 32
    assert (p + 8) - (p + 40) == -32
    assert m.buffer[16:32].ptr - p == 16
    assert p - (m.buffer[16:].ptr + 48) == -N
    refused(ValueError, lambda: p - m.other().ptr, "different allocations")


def compare(m: Place) -> None:
    """Comparison, hash, and pointers as keys."""
    p, q = m.buffer.ptr, m.buffer.ptr + 8
    assert p < q and p <= q and q > p and q >= p and p != q and p <= m.buffer.ptr
    assert p + 8 == q == m.buffer[8:].ptr and hash(q) == hash(m.buffer[8:].ptr)
    assert sorted([q, p]) == [p, q] and {p: 1, q: 2}[m.buffer.ptr + 8] == 2
    assert p != int(p) and p != m.buffer and p != m.other().ptr
    refused(TypeError, lambda: p < int(p))


def slices(m: Place) -> None:
    """Views of the bytes: as Python's slices, which are cut at the ends."""
    b = m.buffer
    for cut in (slice(8, 24), slice(None), slice(-8, None), slice(0, FAR[-1]), slice(-FAR[-1], 4)):
        start, stop, _ = cut.indices(N)
        part = b[cut]
        assert (part.size, part.ptr - b.ptr, m.values(part)) == (
            stop - start,
            start,
            m.values()[cut],
        )
    assert b[N:].size == b[N + 1 :].size == b[FAR[0] :].size == b[24:8].size == 0
    refused(ValueError, lambda: b[::2], "contiguous")
    refused(TypeError, lambda: b[8], "slice")
    refused(IndexError, lambda: b[16:32].ptr + 17, "of a buffer of 16 bytes")


def views(m: Place) -> None:
    """Tensors over the bytes."""
    b = m.buffer
    assert b.view("u1").ptr == b.ptr and b.view("i4").nbytes == N
    assert b[16:32].view("u1").ptr - b.ptr == 16
    assert m.values(b.view("u1")[4:8].buffer) == m.values()[4:8]
    for bad in ((N + 1,), (FAR[1],), (1 << 62, 1 << 62)):
        refused((ValueError, OverflowError), lambda bad=bad: b.view("u1", bad))
    refused(ValueError, lambda: b.view("u1", (-3,)))
    refused(ValueError, lambda: b[:3].view("i4"), "whole number")


def kernel(m: Place) -> None:
    """As an argument: the kernel stores there, or it is refused."""
    args = (1, 1)
    p, add_ = m.buffer.ptr, m.kernels["add"]
    before = m.values()
    if not m.kind.stores:
        refused(
            TypeError,
            lambda: cu.launch(m.stream, ONE, add_, p + 8, *args),
            "parameter 0 .*(read-only|constant)",
        )
        assert m.values() == before
        return
    cu.launch(m.stream, ONE, add_, p + 8, *args)
    cu.launch(m.stream, ONE, add_, p + N, 1, 0)  # the end, of which nothing is read
    after = list(before)
    after[8] += 1
    assert m.values() == after
    for at, words in ((1, "multiple of 4"), (2, "multiple of 4"), (N - 2, "multiple of 4")):
        refused(ValueError, lambda at=at: cu.launch(m.stream, ONE, add_, p + at, *args), words)
    refused(ValueError, lambda: cu.launch(m.stream, ONE, add_, m.buffer[4:6].ptr, *args), "4 bytes")
    assert m.values() == after


def copy(m: Place) -> None:
    """As a side of a copy: it stands for the bytes up to the end."""
    p, there, before = m.buffer.ptr, m.other(), m.values()
    there[:16].copy_from(p + N - 16, stream=m.stream)
    assert m.values(there)[:16] == before[-16:]
    refused(ValueError, lambda: there.copy_from(p + 4, stream=m.stream), f"{N - 4} bytes")
    there[:0].copy_from(p + N, stream=m.stream)
    if m.kind.read_only:
        refused(BufferError, lambda: there[:16].copy_to(p + N - 16, stream=m.stream), "read-only")
        assert m.values() == before
        return
    refused(ValueError, lambda: there.copy_to(p + 4, stream=m.stream), f"{N - 4}")
    there[16:32].copy_to(p + N - 16, stream=m.stream)
    assert m.values() == before[:-16] + [200] * 16


def fill(m: Place) -> None:
    """A fill of a part."""
    before = m.values()
    if m.kind.read_only or not m.kind.filled:
        words = "read-only" if m.kind.read_only else "pageable host memory"
        refused(BufferError, lambda: m.buffer[8:16].fill(7, stream=m.stream), words)
        assert m.values() == before
        return
    m.buffer[8:16].fill(7, stream=m.stream)
    m.buffer[N:].fill(7, stream=m.stream)
    assert m.values() == before[:8] + [7] * 8 + before[16:]


def values_in_streams(m: Place) -> None:
    """What a stream writes and waits for, where its memory is of such a kind."""
    p, before = m.buffer.ptr, m.values()
    if m.kind.read_only:
        refused(BufferError, lambda: m.stream.write_value(m.buffer[8:12].ptr, 5), "read-only")
    elif not m.kind.written:
        refused(ValueError, lambda: m.stream.write_value(m.buffer[8:12].ptr, 5), "dst is in ")
    else:
        m.stream.write_value(m.buffer[8:12].ptr, 5)
        m.stream.write_value(p + N - 8, 6)
        m.stream.wait_value(m.buffer[8:12].ptr, 5)
        assert m.values() == before[:8] + [5, 0, 0, 0] + before[12:-8] + [6] + [0] * 7
        refused(ValueError, lambda: m.stream.write_value(p, 5), "4 or 8 bytes")
        refused(ValueError, lambda: m.stream.write_value(p + N, 5), "4 or 8 bytes")
        refused(ValueError, lambda: m.stream.write_value(m.buffer[2:6].ptr, 5), "aligned")
        return
    assert m.values() == before


def graphs(m: Place) -> None:
    """In nodes of graphs, which keep the memory when its buffer is closed."""
    there = m.other()
    before = m.values()
    with cu.Graph(m.device) as graph:
        refused(ValueError, lambda: graph.memcpy(there, m.buffer.ptr + 4), f"{N - 4}")
        if m.kind.read_only:
            refused(BufferError, lambda: graph.memset(m.buffer.ptr + 32, 9), "read-only")
        assert not graph.nodes
        node = graph.memcpy(there[:32], m.buffer.ptr + 32)
        if m.kind.stores:
            node = node.launch(ONE, m.kernels["add"], m.buffer.ptr + 32, 1, 1)
        if not m.kind.filled:
            refused(BufferError, lambda: node.memset(m.buffer.ptr + 48, 9), "pageable host memory")
        elif not m.kind.read_only:
            node.memset(m.buffer.ptr + 48, 9)
        with graph.instantiate() as step:
            view = m.buffer[:]
            m.buffer.close()
            step.launch(m.stream)
            assert m.values(there)[:32] == before[32:]
            after = list(before)
            after[32] += m.kind.stores
            if m.kind.filled and not m.kind.read_only:
                after[48:] = [9] * 16
            assert m.values(view) == after
            view.close()


def captures(m: Place) -> None:
    """In a capture."""
    there, before = m.other(), m.values()
    with m.stream.capture() as graph:
        there[:16].copy_from(m.buffer.ptr + N - 16, stream=m.stream)
        refused(ValueError, lambda: there.copy_from(m.buffer.ptr + 4, stream=m.stream), "bytes")
        if not m.kind.read_only:
            m.buffer[:16].copy_from(there[16:32], stream=m.stream)
    with graph, graph.instantiate() as step:
        step.launch(m.stream)
        assert m.values(there)[:16] == before[-16:]
        assert m.values()[:16] == (before[:16] if m.kind.read_only else [200] * 16)


def close(m: Place) -> None:
    """Across ``close``: its pointers end with the buffer, and say so; views go on."""
    b, p, q, view = m.buffer, m.buffer.ptr, m.buffer.ptr + 8, m.buffer[8:]
    before, number = m.values(), hash(m.buffer.ptr)
    b.close()
    assert repr(p) == "<cudago.Pointer of a closed buffer>"
    assert (p == p, p < q, hash(p), q.offset, p.buffer is b) == (True, True, number, 8, True)
    there = m.other()
    for use in (
        lambda: p + 1,
        lambda: p - 1,
        lambda: q - p,
        lambda: q - view.ptr,
        lambda: view.ptr - q,
        lambda: int(p),
        lambda: operator.index(p),
        lambda: b.ptr,
        lambda: b[8:],
        lambda: b.view("u1"),
        lambda: cu.launch(m.stream, ONE, m.kernels["add"], p, 1, 1),
        lambda: there.copy_from(p, stream=m.stream),
        lambda: m.stream.write_value(p, 1),
        lambda: cu.Graph(m.device).memset(p, 1),
    ):
        refused(cu.ClosedError, use, "closed")
    assert m.values(view) == before[8:]
    view.close()


def host_buffer(m: Place) -> None:
    """Python's buffer protocol, of what the host accesses too."""
    part = m.buffer[8:24]
    if not m.kind.host:
        refused(BufferError, lambda: memoryview(part), "no Python buffer")
        refused(BufferError, lambda: memoryview(part.view("i4")), "no Python buffer")
        return
    m.stream.sync()
    with memoryview(part) as view, memoryview(part.view("u1")) as typed:
        assert (list(view), list(typed), view.readonly) == (
            *[m.values()[8:24]] * 2,
            m.kind.read_only,
        )
        if not m.kind.read_only:
            view[0] = 77
    if not m.kind.read_only:
        assert m.values()[8] == 77


def grow(m: Place) -> None:
    """Across ``grow``: pointers stay where they are, and reach further."""
    p, before = m.buffer.ptr, m.values()
    if not m.kind.grows:
        refused(TypeError, lambda: m.buffer.grow(1 << 22), "cannot grow")
        return
    end, view = p + N, m.buffer[:N]
    m.buffer.grow(1 << 22)
    assert (int(p), p + N, (p + (1 << 22)) - end) == (m.buffer.handle, end, (1 << 22) - N)
    refused(IndexError, lambda: p + (1 << 22) + 1, "cannot move")
    refused(IndexError, lambda: view.ptr + N + 1, "cannot move")
    cu.launch(m.stream, ONE, m.kernels["add"], end, 1, 0)
    assert m.values(view) == before
    view.close()


OPERATIONS: Iterable[Callable[[Place], None]] = (
    whole,
    add,
    subtract,
    difference,
    compare,
    slices,
    views,
    kernel,
    copy,
    fill,
    values_in_streams,
    graphs,
    captures,
    close,
    host_buffer,
    grow,
)
# Each method of Pointer that a user calls, by the operation that tries it.
METHODS = {
    "__add__": add,
    "__radd__": add,
    "__sub__": subtract,
    "__rsub__": subtract,
    "__int__": whole,
    "__index__": whole,
    "__bool__": whole,
    "__repr__": whole,
    "__hash__": compare,
    "__eq__": compare,
    "__ne__": compare,
    "__lt__": compare,
    "__le__": compare,
    "__gt__": compare,
    "__ge__": compare,
    "buffer": whole,
    "offset": whole,
}
