# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A world: the objects of one case, made when they are first asked for, each with known content.

What a case can close, update or drop is what its world has made. A world ends by ending captures,
closing everything and waiting, so that the next one begins at the same counts.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cudago as cu
from cudago.testing import settle

from . import traced

N = 64
NBYTES = 4 * N
SETTLE_S = 5

PTX = Path(__file__).with_name("kernels.ptx").read_text()


# What nothing on a machine with a GPU exports.
SIMULATED = {"exported_semaphore", "exported_memory"}


class UnavailableError(Exception):
    """There is no such thing on this driver."""


class World:
    """The objects of one case by name; `things` are what the case may close or drop."""

    def __init__(self) -> None:
        self.things: dict[str, Any] = {}
        self.lent: list[Any] = []  # memory that is known by its address alone: kept to the end
        self.captures: list[tuple[Any, Any]] = []
        self.recorded: list[Any] = []

    def get(self, name: str) -> Any:
        """Return the object of a name, made with what it needs if there is none."""
        if name in SIMULATED and cu.driver_name() != "sim":
            raise UnavailableError(name)
        if name not in self.things:
            made = MAKERS[name](self)
            self.things[name] = made
        return self.things[name]

    def closable(self) -> list[str]:
        """Names of what can be closed."""
        return [n for n, thing in self.things.items() if hasattr(type(thing), "close")]

    def begin_capture(self, mode: str = "relaxed") -> None:
        """Begin a capture on the stream, which stays open."""
        manager = self.get("stream").capture(mode)
        self.captures.append((manager, manager.__enter__()))

    def end_captures(self) -> None:
        """End the captures that were begun, and keep their graphs."""
        while self.captures:
            manager, graph = self.captures.pop()
            with contextlib.suppress(Exception):
                manager.__exit__(None, None, None)
                self.recorded.append(graph)

    def contents(self) -> dict[str, bytes]:
        """Bytes of all memory that is still open, after the work that was queued."""
        for name in ("stream", "other_stream"):
            with contextlib.suppress(Exception):
                self.things[name].sync()
        found = {}
        for name, thing in list(self.things.items()):
            with contextlib.suppress(Exception):
                found[name] = content(thing)
        return found

    def close(self) -> None:
        """End the captures, close everything, and forget it."""
        self.end_captures()
        for name in self.closable():
            with contextlib.suppress(Exception):
                self.things[name].close()
        for thing in self.recorded + self.lent:
            with contextlib.suppress(Exception):
                thing.close()
        self.things.clear()
        self.lent.clear()
        self.recorded.clear()


def content(thing: Any) -> bytes:
    """Return the bytes of something with memory, read on a stream of its own."""
    if isinstance(thing, np.ndarray):
        return thing.tobytes()
    if isinstance(thing, bytearray):
        return bytes(thing)
    if isinstance(thing, cu.Buffer):
        out = bytearray(thing.size)
        with cu.Device().create_stream() as stream:
            thing.copy_to(out, stream=stream)
            stream.sync()
        return bytes(out)
    raise TypeError


# --- how each is made -----------------------------------------------------------------------------


def numbers(first: int = 1) -> np.ndarray:
    """N numbers of type int32."""
    return np.arange(first, first + N, dtype="i4")


def _filled(w: World, first: int) -> cu.Buffer:
    buffer = cu.Device().allocate(NBYTES, stream=w.get("stream"))
    buffer.copy_from(numbers(first), stream=w.get("stream"))
    w.get("stream").sync()
    return buffer


def _allocation(w: World) -> cu.Allocation:
    with w.get("tracking").allocate(NBYTES, stream=w.get("stream")):
        return w.get("tracking").allocations[0]


def _timer(w: World) -> cu.timer:
    with cu.timer(w.get("stream")) as timer:
        w.get("buffer").fill(1, stream=w.get("stream"))
    return timer


def _host(w: World, resource: str) -> cu.Buffer:
    buffer = w.get(resource).allocate(NBYTES)
    memoryview(buffer).cast("B")[:] = numbers(1).tobytes()
    return buffer


def _virtual(w: World) -> cu.Buffer:
    with cu.VirtualMemoryResource(cu.Device(), reserve=1 << 24) as resource:
        buffer = resource.allocate(NBYTES, stream=w.get("stream"))
    buffer.copy_from(numbers(), stream=w.get("stream"))
    w.get("stream").sync()
    return buffer


def _graph(w: World) -> cu.Graph:
    graph = cu.Graph(cu.Device())
    first = graph.memset(w.get("buffer"), 1, name="memset")
    second = first.memcpy(w.get("other_buffer"), w.get("buffer"), name="memcpy")
    third = second.launch(
        w.get("config"), w.get("kernel"), w.get("other_buffer"), 1, N, name="kernel"
    )
    third.callback(lambda: None, name="host")
    return graph


def _exec(w: World) -> cu.GraphExec:
    step = w.get("graph").instantiate()
    step.launch(w.get("stream"))
    w.get("stream").sync()
    return step


def _recorded(w: World) -> cu.Event:
    event = cu.Device().create_event(timing_enabled=True)
    return w.get("stream").record(event)


def _slot_exec(w: World) -> cu.GraphExec:
    with cu.Graph(cu.Device()) as graph:
        node = graph.memcpy(w.get("buffer"), w.get("slot"))
        node.memcpy(w.get("other_buffer"), w.get("slot"))
        return graph.instantiate()


def _shared_pool(_: World) -> cu.DeviceMemoryResource:
    return cu.DeviceMemoryResource(cu.Device(), pool=cu.PoolOptions(ipc_enabled=True))


def _graph_function(w: World) -> cu.GraphFunction[Any]:
    config, kernel = w.get("config"), w.get("kernel")
    return cu.graph(lambda s, y, value, n: cu.launch(s, config, kernel, y, value, n))


def _small_graph(w: World) -> cu.Graph:
    graph = cu.Graph(cu.Device())
    graph.memset(w.get("other_buffer"), 3)
    return graph


class Watched:
    """Something to hang a finalizer on."""


class Allocator:
    """Stands for another library's, which knows no streams."""

    def allocate(self, nbytes: int) -> cu.Buffer:
        return cu.Device().allocate(nbytes, stream=cu.Device().default_stream)


class OwnResource(cu.MemoryResource):
    """A resource written in Python."""

    def allocate(self, size: int, /, *, stream: Any) -> cu.Buffer:
        return cu.DeviceMemoryResource(stream.device).allocate(size, stream=stream)


def _resource_maker(name: str) -> Callable[[World], Any]:
    return lambda w: getattr(cu, name)(cu.Device())


def _memory_graph(w: World) -> cu.Graph:
    graph = cu.Graph(cu.Device())
    node = graph.allocate(NBYTES, name="own")
    node.memset(node.buffer, 5)
    step = graph.instantiate()
    step.launch(w.get("stream"))
    w.things["memory_exec"] = step
    return graph


def _captured(w: World) -> cu.Graph:
    """Return a graph that is being captured."""
    w.begin_capture()
    graph: cu.Graph = w.captures[-1][1]
    return graph


def _free_params(w: World) -> Any:
    """Of a graph that was not launched: NVIDIA's driver takes no free node afterwards."""
    graph = cu.Graph(cu.Device())
    w.lent.append(graph)
    node = graph.allocate(NBYTES)
    return node.free(node.buffer).params


_FOLDER = tempfile.TemporaryDirectory()  # removed at exit


def _handle(w: World) -> int:
    """Return the handle of a graph that no action ends: then it would be none."""
    graph = cu.Graph(cu.Device())
    graph.callback(print)
    w.lent.append(graph)
    return graph.handle


def _exec_write(w: World) -> cu.ExecNode:
    w.get("value_graph").write_value(w.get("word"), 1, name="write")
    return w.get("value_graph").instantiate()["write"]


def _inner(w: World) -> cu.Graph:
    graph = cu.Graph(cu.Device())
    graph.memset(w.get("other_buffer"), 2, name="fill")
    w.lent.append(graph)
    return graph


def _inner_graph(w: World) -> cu.Graph:
    graph = cu.Graph(cu.Device())
    graph.embed(_inner(w), name="child").record(w.get("untimed"), name="event")
    return graph


def _graph_file(w: World) -> Path:
    path = Path(_FOLDER.name) / "graph"
    w.get("small_graph").save(path, contents=True)
    return path


MAKERS: dict[str, Callable[[World], Any]] = {
    "device": lambda w: cu.Device(),
    "stream": lambda w: cu.Device().create_stream(),
    "other_stream": lambda w: cu.Device().create_stream(),
    "event": lambda w: cu.Device().create_event(timing_enabled=True),
    "untimed": lambda w: cu.Device().create_event(),
    "other_untimed": lambda w: cu.Device().create_event(),
    "recorded": _recorded,
    "recorded_later": _recorded,
    "timer": _timer,
    "linker": lambda w: cu.Linker(w.get("code")),
    "linker_options": lambda w: cu.LinkerOptions(),
    "resource": _resource_maker("DeviceMemoryResource"),
    "allocator": lambda w: Allocator(),
    "own_resource": lambda w: OwnResource(),
    "foreign_resource": lambda w: cu.allocators.ForeignMemoryResource(w.get("allocator")),
    "managed_resource": _resource_maker("ManagedMemoryResource"),
    "virtual_resource": _resource_maker("VirtualMemoryResource"),
    "pinned_resource": lambda w: cu.PinnedMemoryResource(),
    "buffer": lambda w: _filled(w, 1),
    "other_buffer": lambda w: _filled(w, 1000),
    "pinned": lambda w: _host(w, "pinned_resource"),
    "managed": lambda w: _host(w, "managed_resource"),
    "virtual": _virtual,
    "pointer": lambda w: w.get("buffer").ptr + 16,
    "tensor": lambda w: w.get("buffer").view("int32", (8, 8)),
    "host_tensor": lambda w: cu.from_dlpack(w.get("array").reshape(8, 8)),
    "array": lambda w: numbers(100),
    "bytearray": lambda w: bytearray(numbers(200).tobytes()),
    "matrix": lambda w: numbers(300).reshape(8, 8),
    "other_tensor": lambda w: w.get("other_buffer").view("int32", (8, 8)),
    "other_pointer": lambda w: w.get("other_buffer").ptr + 0,
    "page": lambda w: np.zeros(1024, "i4"),
    "page_bytes": lambda w: bytearray(4096),
    "new_file": lambda w: Path(_FOLDER.name) / "new",
    "graph_file": _graph_file,
    "inner": _inner,
    "inner_graph": _inner_graph,
    "inner_exec": lambda w: w.get("inner_graph").instantiate(),
    "child_node": lambda w: w.get("inner_graph")["child"],
    "event_node": lambda w: w.get("inner_graph")["event"],
    "exec_child": lambda w: w.get("inner_exec")["child"],
    "exec_event": lambda w: w.get("inner_exec")["event"],
    "path": lambda w: Path(__file__).with_name("kernels.ptx"),
    "word": lambda w: w.get("pinned")[:4],
    "program": lambda w: cu.Program(PTX, "ptx"),
    "code": lambda w: cu.ObjectCode.from_ptx(PTX),
    "kernel": lambda w: w.get("code")["add"],
    "config": lambda w: cu.LaunchConfig(grid=1, block=N),
    "event_config": lambda w: cu.LaunchConfig(1, N, launch_completion_event=w.get("untimed")),
    "together": lambda w: cu.LaunchConfig(grid=1, block=N, cooperative=True, priority=0),
    "configured": lambda w: w.get("kernel")[w.get("config"), w.get("stream")],
    "configured_mix": lambda w: w.get("code")["mix"][w.get("config"), w.get("stream")],
    "kernel_info": lambda w: w.get("kernel").info(),
    "reduce": lambda w: cu.reduce("int x", "int z", "a + b"),
    "elementwise": lambda w: cu.elementwise("int x, int y", "int z", "z = x + y"),
    "graph": _graph,
    "graph_function": _graph_function,
    "small_graph": _small_graph,
    "graph_handle": _handle,
    "node": lambda w: w.get("graph")["memset"],
    "exec": _exec,
    "kernel_node": lambda w: w.get("graph")["kernel"],
    "memcpy_node": lambda w: w.get("graph")["memcpy"],
    "host_node": lambda w: w.get("graph")["host"],
    "exec_kernel": lambda w: w.get("exec")["kernel"],
    "exec_memset": lambda w: w.get("exec")["memset"],
    "exec_memcpy": lambda w: w.get("exec")["memcpy"],
    "exec_host": lambda w: w.get("exec")["host"],
    "wait_node": lambda w: w.get("value_graph").wait_value(w.get("word"), 1),
    "exec_write": _exec_write,
    "value_graph": lambda w: cu.Graph(),
    "bound": lambda w: w.get("kernel").bind(w.get("config"), w.get("buffer"), 1, N),
    "slot": lambda w: cu.slot("src", numbers(400)),
    "slot_exec": _slot_exec,
    "condition": lambda w: w.get("graph").condition(0),
    "kernel_params": lambda w: w.get("graph")["kernel"].params,
    "memcpy_params": lambda w: w.get("graph")["memcpy"].params,
    "memop_params": lambda w: cu.Graph().write_value(w.get("word"), 1).params,
    "memset_params": lambda w: w.get("graph")["memset"].params,
    "host_params": lambda w: w.get("graph")["host"].params,
    "exported_semaphore": lambda w: cu.sim.create_semaphore(),
    "exported_memory": lambda w: cu.sim.create_memory(8192),
    "semaphore": lambda w: cu.ExternalSemaphore.from_fd(cu.Device(), w.get("exported_semaphore")),
    "external": lambda w: cu.ExternalMemory.from_fd(cu.Device(), w.get("exported_memory"), 8192),
    "semaphore_params": lambda w: w.get("graph").signal(w.get("semaphore"), 1).params,
    "event_params": lambda w: w.get("graph").record(w.get("event")).params,
    "alloc_params": lambda w: w.get("memory_node").params,
    "free_params": _free_params,
    "child_params": lambda w: w.get("graph").embed(w.get("small_graph")).params,
    "conditional_params": lambda w: w.get("graph").if_then(w.get("condition")).params,
    "memory_graph": _memory_graph,
    "memory_node": lambda w: w.get("memory_graph")["own"],
    "graph_buffer": lambda w: w.get("memory_node").buffer,
    "captured": _captured,
    "fork": lambda w: w.get("captured").fork(w.get("other_stream")),
    "watched": lambda w: Watched(),
    "finalizer": lambda w: cu.finalize(w.get("watched"), len, ()),
    "image_tensor": lambda w: w.get("buffer").view("int32", (2, 2, 4, 4)),
    "opaque": lambda w: cu.OpaqueArray((8, 8), "i4", stream=w.get("stream"), surfaces=True),
    "other_opaque": lambda w: cu.OpaqueArray((8, 8), "i4", stream=w.get("stream")),
    "mipmapped": lambda w: cu.MipmappedArray((8, 8), "i4", stream=w.get("stream"), surfaces=True),
    "level": lambda w: w.get("mipmapped").get_level(0),
    "surface": lambda w: cu.Surface(w.get("opaque")),
    "texture": lambda w: cu.Texture(w.get("tensor")),
    "tensor_map": lambda w: cu.TensorMap(w.get("tensor"), (1, 4)),
    "attributes": lambda w: w.get("kernel").attributes,
    "parameter": lambda w: w.get("kernel").signature[0],
    "profiler": lambda w: cu.profiler(),
    "sm_part": lambda w: cu.Device().split_sms(2)[0],
    "green": lambda w: cu.Device().green_context(w.get("sm_part")),
    "limits": lambda w: cu.Device().limits,
    "graph_memory": lambda w: cu.Device().graph_memory,
    "monitor": lambda w: cu.Device().monitor,
    "device_process": lambda w: cu.DeviceProcess(1, None),
    "properties": lambda w: cu.Device().properties,
    "neighbors": lambda w: w.get("graph").nodes[0].dependents,
    "graph_diff": lambda w: w.get("graph").diff(w.get("small_graph")),
    "graph_profile": lambda w: w.get("exec").profile(w.get("stream")),
    "node_time": lambda w: w.get("graph_profile").rows[0],
    "holder": lambda w: cu.who_retains(w.get("graph").nodes[0].params.dst)[0],
    "retained": lambda w: w.get("graph").retained[0],
    "statistics": lambda w: w.get("resource").statistics,
    "tracking": lambda w: cu.TrackingMemoryResource(w.get("resource")),
    "tracking_statistics": lambda w: w.get("tracking").statistics,
    "arena": lambda w: cu.ArenaMemoryResource(w.get("resource"), 1 << 16),
    "arena_statistics": lambda w: w.get("arena").statistics,
    "allocation": _allocation,
    "hooks": lambda w: cu.memory_hooks(on_allocate=lambda allocation: None),
    "program_options": lambda w: cu.ProgramOptions(),
    "pool_options": lambda w: cu.PoolOptions(),
    "shared_pool": _shared_pool,
    "shared_buffer": lambda w: w.get("shared_pool").allocate(NBYTES, stream=w.get("stream")),
    "shared_event": lambda w: cu.Device().create_event(ipc_enabled=True),
    "shared_pinned": lambda w: cu.PinnedMemoryResource(pool=cu.PoolOptions(ipc_enabled=True)),
    "pinned_handle": lambda w: w.get("shared_pinned").get_allocation_handle(),
    "pool_handle": lambda w: w.get("shared_pool").get_allocation_handle(),
    "imported_pool": lambda w: cu.DeviceMemoryResource.from_allocation_handle(
        cu.Device(), w.get("pool_handle")
    ),
    "buffer_descriptor": lambda w: w.get("shared_buffer").ipc_descriptor,
    "event_descriptor": lambda w: w.get("shared_event").ipc_descriptor,
    **traced.MAKERS,
    "cache_statistics": lambda w: cu.compile_cache.statistics(),
    "leak": lambda w: cu.debug.Leak("Stream", "text", (), w.get("array")),
    "memory_sample": lambda w: cu.debug.MemorySample(1.5, {"pool": 1}),
    "timeline": lambda w: cu.debug.MemoryTimeline(interval_ms=None),
    "watch": lambda w: cu.debug.watch_pointers(False),
    "origins": lambda w: cu.debug.record_origins(),
    "exchange": lambda w: cu.dlpack.Exchange("out", "capsule", "x", (1,), "int32", (1, 0), ""),
    "trace": lambda w: cu.dlpack.Trace(),
    "range": lambda w: cu.nvtx.range("text"),
    "exchange_stats": lambda w: cu.exchange_stats(),
    "exchange_count": lambda w: cu.exchange_stats().imports["capsule"],
}


# --- the process around the worlds ----------------------------------------------------------------


class Canary:
    """Checks that the library works: allocates, fills, launches and replays, and checks values."""

    def __init__(self) -> None:
        self.device = cu.Device()
        self.code = cu.ObjectCode.from_ptx(PTX)
        self.add = self.code["add"]
        self.code.get_kernel("mix")
        self.config = cu.LaunchConfig(grid=1, block=N)
        self.stream = self.device.create_stream()
        self.replayed = self.device.allocate(NBYTES, stream=self.stream)
        with cu.Graph(self.device) as graph:
            graph.memset(self.replayed, 0).launch(self.config, self.add, self.replayed, 7, N)
            self.step = graph.instantiate()
        _ = self.device.default_stream
        self.sing()

    def sing(self) -> None:
        """Raise if anything does not work."""
        out = np.zeros(N, "i4")
        with self.device.allocate(NBYTES, stream=self.stream) as buffer:
            buffer.fill(2, stream=self.stream)
            cu.launch(self.stream, self.config, self.add, buffer, 3, N)
            self.step.launch(self.stream)
            buffer.copy_to(out, stream=self.stream)
        self.stream.sync()
        if (out != 0x02020202 + 3).any():
            raise AssertionError(f"the canary read {out[:4]} instead of {0x02020202 + 3}")
        self.replayed.copy_to(out, stream=self.stream)
        self.stream.sync()
        if (out != 7).any():
            raise AssertionError(f"the canary's graph wrote {out[:4]} instead of 7")


def live(before: dict[str, int] | None = None) -> dict[str, int]:
    """Counts of live objects once nothing is under way.

    Where they are as before already, no garbage is collected: that takes longer than most cases.
    """
    cu._core._reaper_flush(round(1000 * SETTLE_S))
    if (now := cu.live_objects()) == before:
        return now
    settle(SETTLE_S)
    return cu.live_objects()


def changes(before: dict[str, int], after: dict[str, int]) -> str:
    """What differs, in words; empty where nothing does."""
    kinds = sorted(before.keys() | after.keys())
    return ", ".join(
        f"{k} {before.get(k, 0)} -> {after.get(k, 0)}"
        for k in kinds
        if before.get(k, 0) != after.get(k, 0)
    )
