# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a thread of the soak does: operations whose results are known, on a stream of its own."""

from __future__ import annotations

import gc
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cudago as cu

N = 64
NBYTES = 4 * N
MOST_STEPS = 6  # that a thread keeps at a time

# y[i] += value for i < n
PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 y, .param .s32 value, .param .s32 n)
{
    .reg .b64 %p, %o;
    .reg .b32 %i, %v, %n, %w;
    .reg .pred %out;
    ld.param.u64 %p, [y];
    ld.param.s32 %v, [value];
    ld.param.s32 %n, [n];
    mov.u32 %i, %tid.x;
    setp.ge.s32 %out, %i, %n;
    @%out ret;
    mul.wide.s32 %o, %i, 4;
    add.s64 %p, %p, %o;
    ld.global.s32 %w, [%p];
    add.s32 %w, %w, %v;
    st.global.s32 [%p], %w;
    ret;
}
"""
CONFIG = cu.LaunchConfig(grid=1, block=N)


def pattern(value: int) -> bytes:
    """A number as a fill takes it: of four bytes."""
    return value.to_bytes(4, "little")


class Wrong(Exception):
    """A result is wrong for its operands."""


class Shared:
    """What all threads use: the device, the kernel, streams, the memory of results, the counts."""

    def __init__(self, streams: int) -> None:
        self.device = cu.Device()
        self.code = cu.ObjectCode.from_ptx(PTX)
        self.add = self.code["add"]
        self.streams = [self.device.create_stream() for _ in range(streams)]
        self.lent = self.device.create_stream()
        self.foreign = cu.Stream.from_handle(self.lent.handle, device=self.device, owner=self.lent)
        self.pinned = cu.PinnedMemoryResource()
        self.finalized: deque[int] = deque()  # append is atomic, and a finalizer may run anywhere

    def close(self) -> None:
        """Give everything back."""
        for stream in self.streams:
            stream.close()
        self.foreign.close()
        self.lent.close()
        self.pinned.close()


@dataclass(eq=False)
class Step:
    """An executable that leaves `base + value`, N times, in `out`."""

    exec: cu.GraphExec
    memory: cu.Buffer
    out: cu.Buffer
    base: int
    value: int
    names: tuple[str, str, str]  # of the memset, the kernel and the memcpy

    def check(self) -> None:
        """Raise if the last launch left anything else."""
        expect(np.frombuffer(self.out, "i4"), self.base + self.value)

    def close(self) -> None:
        """Close the executable and its memory."""
        self.exec.close()
        self.memory.close()
        self.out.close()


def expect(found: np.ndarray, value: int) -> None:
    """Raise if not all numbers are the expected one."""
    if (found != value).any():
        raise Wrong(f"{found[found != value][:4]} instead of {value}")


class Work:
    """One thread's stream and steps; each method that is no helper is an operation."""

    def __init__(self, shared: Shared, seed: int) -> None:
        self.shared, self.draw = shared, random.Random(seed)
        self.stream = shared.device.create_stream()
        self.steps: list[Step] = []
        self.kept: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.watched = 0

    def allocate(self) -> cu.Buffer:
        """Device memory that nobody has written."""
        return self.shared.device.allocate(NBYTES, stream=self.stream)

    def number(self) -> int:
        """A number whose four bytes are not all the same."""
        return self.draw.randrange(1, 1 << 20)

    def keep(self, step: Step) -> None:
        """Keep a step, and close one if there are too many."""
        self.steps.append(step)
        if len(self.steps) > MOST_STEPS:
            self.steps.pop(self.draw.randrange(len(self.steps))).close()

    def some(self) -> Step:
        """One of the steps."""
        if not self.steps:
            self.build()
        return self.draw.choice(self.steps)

    def forget(self, step: Step) -> None:
        """Close a step of which nobody knows what its next launch gives, or when that ends."""
        if step in self.steps:
            self.steps.remove(step)
        step.close()

    def wait_for(self, step: Step, wait: Callable[[], None]) -> None:
        """Wait for the launch of a step; without an end that is known it cannot be checked."""
        try:
            wait()
        except cu.CUDAError:
            self.forget(step)
            raise

    def recover(self) -> None:
        """Go on after a driver call that failed: on another stream, if a capture could not end."""
        if self.stream.is_capturing:
            self.counts["captures left open"] += 1
            stream, self.stream = self.stream, self.shared.device.create_stream()
            stream.close()

    # --- operations ---

    def build(self) -> None:
        """Build a graph, instantiate it, launch it."""
        memory, out = self.allocate(), self.shared.pinned.allocate(NBYTES)
        base, value = self.number(), self.number()
        with cu.Graph(self.shared.device) as graph:
            first = graph.memset(memory, pattern(base), name="set")
            second = first.launch(CONFIG, self.shared.add, memory, value, N, name="add")
            second.memcpy(out, memory, name="copy")
            step = graph.instantiate()
        self.keep(Step(step, memory, out, base, value, ("set", "add", "copy")))
        self.launch(self.steps[-1])

    def launch(self, step: Step | None = None) -> None:
        """Launch a step on the thread's own stream."""
        step = step or self.some()
        step.exec.launch(self.stream)
        self.wait_for(step, self.stream.sync)
        step.check()

    def launch_elsewhere(self) -> None:
        """Launch a step on a stream that other threads use too."""
        step, stream = self.some(), self.draw.choice(self.shared.streams)
        step.exec.launch(stream)
        self.wait_for(step, lambda: self.record_and_wait(stream))
        step.check()

    def record_and_wait(self, stream: cu.Stream) -> None:
        """Wait for the work that is in a stream now."""
        with stream.record() as event:
            event.sync()

    def update(self) -> None:
        """Give a step other numbers, and another operand while the old one is in use."""
        step = self.some()
        step.exec.launch(self.stream)
        memory, base, value = self.allocate(), self.number(), self.number()
        setting, adding, copying = step.names
        step.exec[setting].update(memory, pattern(base))  # if this fails the step is as it was
        try:
            step.exec[adding].update(CONFIG, self.shared.add, memory, value, N)
            step.exec[copying].update(src=memory)
        except cu.CUDAError:
            self.forget(step)  # half of it is updated
            raise
        old, step.memory, step.base, step.value = step.memory, memory, base, value
        old.close()
        self.launch(step)

    def capture(self) -> None:
        """Capture the same work, and keep what it gives."""
        memory, out = self.allocate(), self.shared.pinned.allocate(NBYTES)
        base, value = self.number(), self.number()
        self.counts["captures begun"] += 1
        try:
            with self.stream.capture("thread_local") as graph:
                memory.fill(pattern(base), stream=self.stream)
                cu.launch(self.stream, CONFIG, self.shared.add, memory, value, N)
                memory.copy_to(out, stream=self.stream)
        except cu.CUDAError as e:
            invalidated = e.name == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
            self.counts["captures invalidated" if invalidated else "captures failed"] += 1
            raise
        self.counts["captures ended"] += 1
        names = tuple(node.name for node in graph.nodes)
        kinds = {node.kind: node.name for node in graph.nodes}
        if len(names) != 3 or set(kinds) != {"memset", "kernel", "memcpy"}:
            raise Wrong(f"the capture has the nodes {kinds}")
        step = graph.instantiate()
        graph.close()
        ordered = (kinds["memset"], kinds["kernel"], kinds["memcpy"])
        self.keep(Step(step, memory, out, base, value, ordered))
        self.launch(self.steps[-1])

    def capture_with_an_exception(self) -> None:
        """Leave a capture by an exception: it ends, and the stream goes on."""
        memory = self.allocate()
        self.counts["captures begun"] += 1
        try:
            with self.stream.capture("thread_local"):
                memory.fill(1, stream=self.stream)
                raise KeyError
        except KeyError:
            self.counts["captures discarded"] += 1
        except cu.CUDAError:
            self.counts["captures failed"] += 1
            raise
        memory.fill(pattern(3), stream=self.stream)
        expect(memory.view("int32").numpy(stream=self.stream), 3)

    def exchange(self) -> None:
        """Lend a result to NumPy over DLPack, and borrow NumPy's memory as an operand."""
        step = self.some()
        self.launch(step)
        lent = np.from_dlpack(step.out.view("int32"))
        expect(lent, step.base + step.value)
        number = self.number()
        borrowed = cu.from_dlpack(np.full(N, number, "i4"))
        memory = self.allocate()
        memory.copy_from(borrowed, stream=self.stream)
        with cu.from_dlpack(memory.view("int32"), stream=self.stream) as again:
            del memory, borrowed
            expect(again.numpy(stream=self.stream), number)
        self.kept.append(lent)  # longer than the step, perhaps
        _ = step.memory.view("int32").__dlpack__(stream=None)  # a capsule that nobody takes
        del self.kept[:-4]

    def lend(self) -> None:
        """Use memory on streams that others have too, and free it, and its place, behind that."""
        number, out = self.number(), self.shared.pinned.allocate(NBYTES)
        with self.allocate() as memory:
            other = self.draw.choice([*self.shared.streams, self.shared.foreign])
            other.wait(self.stream)
            memory.fill(pattern(number), stream=other)
            memory.copy_to(out, stream=other)
        with self.allocate() as poison:
            poison.fill(0xEE, stream=self.stream)
        self.record_and_wait(other)
        expect(np.frombuffer(out, "i4"), number)

    def close_in_flight(self) -> None:
        """Close a step while it runs, and overwrite free memory: the step still ends correctly."""
        step = self.some()
        self.steps.remove(step)
        step.exec.launch(self.stream)
        step.exec.close()
        step.memory.close()
        device = self.shared.device
        with device.create_stream() as other, device.allocate(NBYTES, stream=other) as poison:
            poison.fill(0xEE, stream=other)
        self.stream.sync()
        step.check()
        step.out.close()

    def drop(self) -> None:
        """Drop a step that runs, in a cycle, without closing anything."""
        step = self.some()
        self.steps.remove(step)
        step.exec.launch(self.stream)
        out, expected = step.out, step.base + step.value
        cycle: list[Any] = [step]
        cycle.append(cycle)
        del cycle, step
        self.stream.sync()
        expect(np.frombuffer(out, "i4"), expected)

    def collect(self) -> None:
        """Collect garbage, of all threads."""
        gc.collect(self.draw.choice((0, 1, 2)))

    def finalize(self) -> None:
        """Attach a finalizer to an object that dies at once, in a cycle or not."""

        class Thing:
            pass

        thing: Any = Thing()
        cu.finalize(thing, self.shared.finalized.append, 1)
        self.watched += 1
        if self.draw.random() < 0.5:
            thing.self = thing

    def callback(self) -> None:
        """Call Python from a graph."""
        called: list[int] = []
        with cu.Graph(self.shared.device) as graph:
            graph.callback(lambda: called.append(1))
            with graph.instantiate() as step:
                step.launch(self.stream)
                step.launch(self.stream)
        self.stream.sync()
        if len(called) != 2:
            raise Wrong(f"the callback was called {len(called)} times instead of 2")

    def fault(self) -> None:
        """Ask for something that the driver refuses, which must leave nothing behind."""
        kind = self.draw.choice(("memory", "shape", "export", "stream"))
        self.counts[f"faults: {kind}"] += 1
        refused: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
            "memory": (cu.OutOfMemoryError, self._ask_for_too_much),
            "shape": ((ValueError, cu.CUDAError), self._launch_too_many),
            "export": (BufferError, self._export_to_nowhere),
            "stream": (cu.ClosedError, self._use_a_closed_stream),
        }
        error, ask = refused[kind]
        try:
            ask()
        except error:
            return
        raise Wrong(f"the fault {kind!r} was no error")

    def _ask_for_too_much(self) -> None:
        self.shared.device.allocate(1 << 50, stream=self.stream)

    def _launch_too_many(self) -> None:
        config = cu.LaunchConfig(grid=1, block=1 << 20)
        cu.launch(self.stream, config, self.shared.add, self.some().memory, 1, N)

    def _export_to_nowhere(self) -> None:
        self.some().memory.view("int32").__dlpack__(dl_device=(7, 0))

    def _use_a_closed_stream(self) -> None:
        stream = self.shared.device.create_stream()
        stream.close()
        self.some().exec.launch(stream)

    def close(self) -> None:
        """Give everything back."""
        for step in self.steps:
            step.close()
        self.steps.clear()
        self.kept.clear()
        self.stream.close()


# How often each operation is chosen, relative to the others.
OPERATIONS = {
    "build": 2,
    "launch": 8,
    "launch_elsewhere": 4,
    "update": 4,
    "capture": 4,
    "capture_with_an_exception": 1,
    "exchange": 4,
    "lend": 4,
    "close_in_flight": 2,
    "drop": 2,
    "collect": 1,
    "finalize": 2,
    "callback": 1,
    "fault": 2,
}
