# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Situations that once went wrong, each by its name; a function that raises is a failure."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import cudago as cu
from cudago.testing import hold

from .cases import UNFIT
from .world import NBYTES, N, World

ROUNDS = 1000
SITUATIONS: dict[str, Callable[[], None]] = {}


def situation(function: Callable[[], None]) -> Callable[[], None]:
    """Add a function under its name."""
    SITUATIONS[function.__name__.strip("_")] = function
    return function


def allowed(call: Callable[[], Any]) -> None:
    """Make a call that may fail, but not in every way."""
    try:
        call()
    except UNFIT:
        raise
    except Exception:
        pass


# --- close() in the middle of a call --------------------------------------------------------------


class Index:
    """A number that acts when it is asked for."""

    def __init__(self, value: int, act: Callable[[], Any]) -> None:
        self.value, self.act = value, act

    def __index__(self) -> int:
        self.act()
        return self.value


class Text:
    """A name that acts when it is asked for."""

    def __init__(self, value: str, act: Callable[[], Any]) -> None:
        self.value, self.act = value, act

    def __str__(self) -> str:
        self.act()
        return self.value


class ForeignStream:
    """A stream of another library that acts when it is asked for."""

    def __init__(self, stream: cu.Stream, act: Callable[[], Any]) -> None:
        self.stream, self.act = stream, act

    def __cuda_stream__(self) -> tuple[int, int]:
        answer = self.stream.__cuda_stream__()
        self.act()
        return answer


class Producer:
    """A tensor of another library that acts when it is asked for."""

    def __init__(self, array: np.ndarray, act: Callable[[], Any]) -> None:
        self.array, self.act = array, act

    def __dlpack__(self, **keywords: Any) -> Any:
        answer = self.array.__dlpack__()
        self.act()
        return answer

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


Act = Callable[[], Any]
# Name of what is closed, and the call, given the world and the act.
CLOSING: dict[str, tuple[str, Callable[[World, Act], Any]]] = {
    "exec_in_launch": (
        "exec",
        lambda w, act: w.get("exec").launch(ForeignStream(w.get("stream"), act)),
    ),
    "stream_in_exec_launch": (
        "stream",
        lambda w, act: w.get("exec").launch(ForeignStream(w.get("stream"), act)),
    ),
    "exec_in_upload": (
        "exec",
        lambda w, act: w.get("exec").upload(ForeignStream(w.get("stream"), act)),
    ),
    "buffer_in_copy_from_by_stream": (
        "buffer",
        lambda w, act: w.get("buffer").copy_from(
            w.get("array"), stream=ForeignStream(w.get("stream"), act)
        ),
    ),
    "buffer_in_copy_from_by_dlpack": (
        "buffer",
        lambda w, act: w.get("buffer").copy_from(
            Producer(w.get("array"), act), stream=w.get("stream")
        ),
    ),
    "stream_in_copy_from_by_dlpack": (
        "stream",
        lambda w, act: w.get("buffer").copy_from(
            Producer(w.get("array"), act), stream=w.get("stream")
        ),
    ),
    "buffer_in_fill": (
        "buffer",
        lambda w, act: w.get("buffer").fill(7, stream=ForeignStream(w.get("stream"), act)),
    ),
    "buffer_in_slicing": ("buffer", lambda w, act: w.get("buffer")[Index(4, act) : 8]),
    "tensor_in_indexing": ("tensor", lambda w, act: w.get("tensor")[Index(3, act)]),
    "tensor_in_reshape": ("tensor", lambda w, act: w.get("tensor").reshape(Index(4, act), 16)),
    "buffer_in_grow": ("virtual", lambda w, act: w.get("virtual").grow(Index(1 << 21, act))),
    "buffer_in_view_by_dtype": ("buffer", lambda w, act: w.get("buffer").view(Text("int32", act))),
    "buffer_in_view_by_shape": (
        "buffer",
        lambda w, act: w.get("buffer").view("int32", (Index(8, act), 8)),
    ),
    "tensor_in_dlpack": (
        "tensor",
        lambda w, act: w.get("tensor").__dlpack__(max_version=(Index(1, act), 0)),
    ),
    "buffer_in_prefetch": (
        "managed",
        lambda w, act: w.get("managed").prefetch(
            "host", stream=ForeignStream(w.get("stream"), act)
        ),
    ),
    "buffer_in_launch_by_stream": (
        "buffer",
        lambda w, act: cu.launch(
            ForeignStream(w.get("stream"), act),
            w.get("config"),
            w.get("kernel"),
            w.get("buffer"),
            3,
            N,
        ),
    ),
    "buffer_in_launch_by_argument": (
        "buffer",
        lambda w, act: cu.launch(
            w.get("stream"), w.get("config"), w.get("kernel"), w.get("buffer"), Index(3, act), N
        ),
    ),
    "stream_in_launch_by_argument": (
        "stream",
        lambda w, act: cu.launch(
            w.get("stream"), w.get("config"), w.get("kernel"), w.get("buffer"), Index(3, act), N
        ),
    ),
}


def close_in_call(victim: str, make: Callable[[World, Act], Any], threaded: bool) -> None:
    """Close something while a call that uses it converts an argument."""
    world = World()
    for name in ("stream", victim):
        world.get(name)

    def act() -> None:
        thing = world.get(victim)
        if threaded:
            thread = threading.Thread(target=thing.close)
            thread.start()
            thread.join()
        else:
            thing.close()

    def whole() -> None:
        make(world, act)
        gc.collect()
        device = cu.Device()
        with device.create_stream() as stream, device.allocate(NBYTES, stream=stream) as other:
            other.fill(0xEE, stream=stream)
        device.sync()

    allowed(whole)
    world.close()
    cu.Device().sync()


for _name, (_victim, _make) in CLOSING.items():
    for _threaded in (False, True):
        SITUATIONS[f"close_{_name}" + "_from_another_thread" * _threaded] = (
            lambda victim=_victim, make=_make, threaded=_threaded: close_in_call(
                victim, make, threaded
            )
        )


# --- ends of executables --------------------------------------------------------------------------


@situation
def dead_cycle_is_collected_under_a_launch() -> None:
    """A cycle holds an executable launched on the default stream, and dies while it runs."""
    device, out = cu.Device(), np.zeros(N, "i4")
    for _ in range(50):
        buffer = device.allocate(NBYTES, stream=device.default_stream)
        with cu.Graph(device) as graph:
            graph.memset(buffer, b"\7\0\0\0")
            step = graph.instantiate()
        cycle: dict[str, Any] = {"step": step, "buffer": buffer}
        cycle["self"] = cycle
        with hold(device.default_stream):
            step.launch(device.default_stream)
            buffer.copy_to(pinned := pinned_memory(), stream=device.default_stream)
            del cycle, step, buffer
            gc.collect()
            other = device.allocate(NBYTES, stream=device.default_stream)
            other.fill(0xEE, stream=device.default_stream)
        device.sync()
        out[:] = np.frombuffer(pinned, "i4")
        assert (out == 7).all(), out
        pinned.close()
        other.close()


def pinned_memory() -> cu.Buffer:
    """Page-locked memory, of NBYTES."""
    with cu.PinnedMemoryResource() as resource:
        return resource.allocate(NBYTES)


@situation
def executables_are_dropped_right_before_a_capture() -> None:
    """The reaper must leave a stream alone that begins a capture."""
    device = cu.Device()
    with device.create_stream() as s, device.allocate(NBYTES, stream=s) as buffer:
        for i in range(ROUNDS):
            with cu.Graph(device) as graph:
                graph.memset(buffer, i & 0xFF)
                step = graph.instantiate()
            step.launch(s)
            del step
            with s.capture() as captured:
                buffer.fill(1, stream=s)
            captured.close()
        s.sync()


@situation
def a_stream_is_closed_inside_its_own_capture() -> None:
    """What the capture has recorded, and its end, must do without the wrapper."""
    device = cu.Device()
    stream = device.create_stream()
    buffer = device.allocate(NBYTES, stream=stream)

    def whole() -> None:
        with stream.capture() as graph:
            buffer.fill(3, stream=stream)
            stream.close()
        with graph.instantiate() as step:
            step.launch(device.default_stream)

    allowed(whole)
    buffer.close()
    device.sync()


@situation
def captured_memory_is_let_go_by_threads() -> None:
    """Its last holder goes in any thread, before the end of the capture, at it or after it."""
    device = cu.Device()
    with device.create_stream() as stream, device.create_stream() as other:
        for n in range(ROUNDS // 10):
            with stream.capture("relaxed") as graph:
                buffers = [device.allocate(64, stream=stream) for _ in range(4)]
                other.wait(stream)
                for b in buffers:
                    b.fill(n % 100, stream=other)
                stream.wait(other)
                closers = [threading.Thread(target=b.close) for b in buffers[:3]]
                for c in closers:
                    c.start()
                cycle: list[Any] = [buffers.pop()]
                cycle.append(cycle)
                del cycle, buffers, b
            for c in closers:
                c.join()
            with graph.instantiate(auto_free=True) as step:
                step.launch(stream)
                step.launch(stream)
            graph.close()
        gc.collect()
        stream.sync()


@situation
def captured_memory_is_closed_while_it_is_used() -> None:
    """By the call itself: then nothing may be recorded that uses it."""
    device = cu.Device()
    with device.create_stream() as stream:
        for use in (
            lambda b: b.fill(7, stream=ForeignStream(stream, b.close)),
            lambda b: b.copy_from(Producer(np.ones(64, "u1"), b.close), stream=stream),
            lambda b: b.copy_to(bytearray(64), stream=ForeignStream(stream, b.close)),
            lambda b: b.free(stream=ForeignStream(stream, b.close)),
        ):
            with stream.capture() as graph:
                buffer = device.allocate(64, stream=stream)
                allowed(lambda use=use, buffer=buffer: use(buffer))
            if [node.kind for node in graph.nodes] != ["alloc", "free"]:
                raise AssertionError(f"{graph.nodes}")
            graph.close()


@situation
def a_capture_ends_while_memory_is_allocated_in_it() -> None:
    """Then there is no capture to allocate in, or the memory is the device's."""
    device = cu.Device()
    for end in (False, True):
        with device.create_stream() as stream:
            block = stream.capture("relaxed")
            block.__enter__()
            act = lambda end=end, block=block: block.__exit__(  # noqa: E731
                *((LookupError, LookupError(), None) if end else (None, None, None))
            )
            buffer = device.allocate(Index(64, act), stream=stream)
            buffer.fill(7, stream=stream)
            buffer.close()
            stream.sync()


@situation
def a_capture_begins_while_arguments_are_packed() -> None:
    """The node keeps what it reads, or the launch raises."""
    w = World()
    w.get("stream"), w.get("buffer"), w.get("kernel"), w.get("config")

    def whole() -> None:
        hostile = Index(3, w.begin_capture)
        cu.launch(w.get("stream"), w.get("config"), w.get("kernel"), w.get("buffer"), hostile, N)
        w.end_captures()
        graph = w.recorded[0]
        for retained in ("buffer", "kernel"):
            assert not graph.nodes or any(r.object is w.get(retained) for r in graph.retained), (
                f"the node does not keep the {retained}"
            )
        w.get("buffer").close()
        w.things.clear()
        with graph.instantiate() as step:
            step.launch(cu.Device().default_stream)

    allowed(whole)
    w.close()
    cu.Device().sync()
