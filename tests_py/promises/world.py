# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where the cells of the matrix take place: devices, streams that stand still, and kernels."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import cudago as cu

N = 4096  # bytes of each allocation
OLD, NEW = 5, 7  # what is in the memory before the work that is held, and after it

SOURCE = r"""
extern "C" __global__ void put(unsigned char* x, int value, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = value; }
extern "C" __global__ void take(const unsigned char* x, unsigned char* y, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i]; }
extern "C" __global__ void nothing() {}
__device__ unsigned char variable[4096];
extern "C" __global__ void slow(unsigned char* x, int n, int turns) {
    long long t = clock64(); while (clock64() - t < turns);
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = 7; }
"""
ONE = cu.LaunchConfig(grid=1, block=32)

# How long a stream stands still while somebody may wrongly go ahead of it, and how long at most: a
# wait that is right
# ends as soon as the stream goes on.
HELD_S = 0.01 if cu.driver_name() == "sim" else 0.03
MOST_S = 3.0


class World:
    """The memory is on `home`, the work that is held in a stream of `away`: one device or two."""

    def __init__(self, home: cu.Device, away: cu.Device, *, peers: bool = False) -> None:
        self.home, self.away = home, away
        self.peers = [away] if peers else []  # devices that memory is made for beside its own
        self.code = cu.Program(SOURCE, "c++").compile()
        self.own = home.create_stream()  # what the memory is allocated on
        self.work = away.create_stream()  # what is held
        self.near = home.create_stream()  # consumers
        self.gate = cu.PinnedMemoryResource().allocate(4)
        self.result = cu.PinnedMemoryResource().allocate(N)
        self.target = away.allocate(N, stream=self.work)
        self.kept: list[object] = []  # what the memory of a cell needs, and is not the memory
        for stream in (self.work, self.near, away.default_stream):
            # Loads the code: NVIDIA's driver may do so only where nothing runs.
            for kernel in ("put", "take", "slow"):
                arguments = (
                    (self.result, self.result, 0) if kernel == "take" else (self.result, 0, 0)
                )
                cu.launch(stream, ONE, self.code[kernel], *arguments)
            cu.launch(stream, ONE, self.code["nothing"])
            stream.sync()

    def put(self, stream: cu.Stream, memory: object, value: int, n: int) -> None:
        """Write a value to memory, in a stream."""
        cu.launch(stream, ONE, self.code["put"], memory, value, n)

    def take(self, stream: cu.Stream, memory: object, n: int) -> None:
        """Copy memory to `result`, in a stream."""
        cu.launch(stream, ONE, self.code["take"], memory, self.result, n)

    @property
    def taken(self) -> int:
        """What the last of the bytes was that `take` copied: a word for others if they differ."""
        values = set(np.frombuffer(self.result, "u1")[: self.n].tolist())
        return values.pop() if len(values) == 1 else -1

    n = N - 16  # all views have as many
    stalled = False  # was the thread still in a call, which waited for the stream, after MOST_S?

    @property
    def blocked(self) -> str:
        """What is to be said of a call that only queues work, and waited for the stream."""
        return ", but it waited" if self.stalled else ""

    @contextmanager
    def held(self, stream: cu.Stream) -> Iterator[threading.Event]:
        """Keep a stream from going on until `HELD_S` after the block has set the event.

        The block may wait for the stream itself: it sets the event before.
        """
        gate = np.frombuffer(self.gate, "i4")
        gate[0] = 0
        asked, given_up = threading.Event(), threading.Event()

        def open_later() -> None:
            self.stalled = not asked.wait(MOST_S)
            given_up.wait(HELD_S)
            gate[0] = 1

        opener = threading.Thread(target=open_later)
        opener.start()
        stream.wait_value(self.gate, 1)
        try:
            yield asked
        finally:
            asked.set()
            opener.join()
            stream.sync()

    def settle(self) -> None:
        """Let everything end."""
        for stream in (self.work, self.own, self.near):
            stream.sync()
        self.kept.clear()

    def close(self) -> None:
        """Give everything back."""
        self.settle()
        for thing in (self.target, self.gate, self.result, self.work, self.own, self.near):
            thing.close()
