# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every kind of memory, made as its users make it, and every view of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import cudago as cu
from promises.world import NEW, OLD, N, World


@dataclass(frozen=True)
class Kind:
    """A kind of memory.

    cells and resources say what of the implementation it stands for: the test that nothing is
    missing reads them. others: another device than its own can use it if `peers` are named where
    it is made.
    """

    make: Callable[[World], object]
    cells: tuple[str, ...]
    resources: tuple[str, ...] = ()
    on_host: bool = False  # the host can read it, on a GPU too
    anywhere: bool = False  # every device can use it as it is
    peers: bool = True  # its maker can name others that use it
    unknown: bool = False  # without access nobody refuses it: the driver does not tell who has some


class Through(cu.MemoryResource):
    """A resource in Python."""

    def __init__(self, inner: cu.MemoryResource) -> None:
        self.inner = inner

    def allocate(self, nbytes, *, stream):
        """Pass it on."""
        return self.inner.allocate(nbytes, stream=stream)


def _pool(w: World) -> cu.DeviceMemoryResource:
    pool = cu.DeviceMemoryResource(w.home, pool=cu.PoolOptions())
    pool.peer_accessible_by = w.peers
    return pool


def _device(w: World):
    w.home.memory_resource.peer_accessible_by = w.peers
    return w.home.allocate(N, stream=w.own)


def _arena(w: World):
    arena = cu.ArenaMemoryResource(_pool(w), 4 * N)
    w.kept.append(arena)
    return arena.allocate(N, stream=w.own)


def _adopted(w: World):
    whole = _pool(w).allocate(N, stream=w.own)
    return cu.Buffer.from_handle(whole.handle, N, owner=whole, stream=w.own)


def _registered(w: World):
    return cu.pin(np.zeros(N, "u1"))


def _virtual(w: World):
    return cu.VirtualMemoryResource(w.home, peers=w.peers).allocate(N, stream=w.own)


def _of_a_graph(w: World):
    graph = cu.Graph(w.home)
    buffer = graph.allocate(N, peers=w.peers).buffer
    step = graph.instantiate()
    step.launch(w.own)
    w.own.sync()
    w.kept += [graph, step]
    return buffer


def _captured(w: World):
    w.home.memory_resource.peer_accessible_by = w.peers
    with w.own.capture() as graph:
        buffer = w.home.allocate(N, stream=w.own)
    step = graph.instantiate()
    step.launch(w.own)
    w.own.sync()
    w.kept += [graph, step]
    return buffer


def _variable(w: World):
    for peer in w.peers:
        peer.enable_peer_access(w.home)
    return w.code.get_global("variable", device=w.home)


def _external(w: World):
    made = cu.sim.create_memory(N)
    memory = cu.ExternalMemory.from_fd(w.home, made, N)
    w.kept += [made, memory]
    return memory.map(stream=w.own)


KINDS: dict[str, Kind] = {
    "device": Kind(_device, ("POOL",), ("DeviceMemoryResource",)),
    "pool": Kind(
        lambda w: _pool(w).allocate(N, stream=w.own), ("POOL",), ("DeviceMemoryResource",)
    ),
    "pinned": Kind(
        lambda w: cu.PinnedMemoryResource().allocate(N),
        ("PINNED",),
        ("PinnedMemoryResource",),
        on_host=True,
        anywhere=True,
    ),
    "pinned pool": Kind(
        lambda w: cu.PinnedMemoryResource(pool=cu.PoolOptions(), device=w.home).allocate(
            N, stream=w.own
        ),
        ("PINNED",),
        ("PinnedMemoryResource",),
        on_host=True,
        anywhere=True,
    ),
    "registered": Kind(_registered, ("PINNED",), on_host=True, anywhere=True),
    "managed": Kind(
        lambda w: cu.ManagedMemoryResource(w.home).allocate(N),
        ("MANAGED",),
        ("ManagedMemoryResource",),
        on_host=True,
        anywhere=True,
    ),
    "managed pool": Kind(
        lambda w: cu.ManagedMemoryResource(w.home, pool=cu.PoolOptions()).allocate(N, stream=w.own),
        ("MANAGED",),
        ("ManagedMemoryResource",),
        on_host=True,
        anywhere=True,
    ),
    "virtual": Kind(_virtual, ("DEVICE",), ("VirtualMemoryResource",)),
    "arena": Kind(_arena, ("POOL",), ("ArenaMemoryResource",)),
    "resource in Python": Kind(
        lambda w: Through(_pool(w)).allocate(N, stream=w.own),
        ("POOL",),
        ("MemoryResource", "TrackingMemoryResource"),
    ),
    "adopted": Kind(_adopted, ("POOL",)),
    "of a graph": Kind(_of_a_graph, ("GRAPH",)),
    "captured": Kind(_captured, ("GRAPH",), unknown=True),
    # On two H200 enable_peer_access gives none to variables of code that is loaded.
    "variable": Kind(_variable, ("VARIABLE",), peers=cu.driver_name() == "sim"),
    "imported": Kind(lambda w: w.exporter.allocate("pool"), ("DEVICE",), peers=False),
    "imported virtual": Kind(lambda w: w.exporter.allocate("virtual"), ("DEVICE",), peers=False),
    "external": Kind(_external, ("DEVICE",), peers=False),
}

# What is no allocation of ours to give away, and why the matrix has no row for it.
NOT_HERE = {
    "HOST": "made by a copying export, or the exchange table: nothing of ours uses it yet",
    "FOREIGN": "the memory of another library: tests_py/promises/test_theirs.py",
    "PYTHON": "no cell has this kind: an Operand keeps a Python object's memory",
}


def make(w: World, name: str) -> cu.Buffer:
    """Memory of a kind, filled, with nothing pending on it."""
    buffer = KINDS[name].make(w)
    w.own.sync()
    cu.launch(w.near, cu.LaunchConfig(1, 32), w.code["put"], buffer, OLD, N)
    w.near.sync()
    return buffer


# From a buffer, over the last N - 16 bytes of it.
VIEWS: dict[str, Callable[[cu.Buffer], object]] = {
    "buffer": lambda b: b[16:],
    "pointer": lambda b: b.ptr + 16,
    "tensor": lambda b: b[16:].view("u1"),
    "tensor view": lambda b: b.view("u1", (N // 16, 16))[1:],
}
EXPORTED = ("buffer", "tensor", "tensor view")  # a pointer is not

__all__ = ["EXPORTED", "KINDS", "NEW", "NOT_HERE", "OLD", "VIEWS", "Kind", "N", "make"]
