# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Executables dropped right before captures on their stream, while another thread drops graphs.

What watches over the executable's last launch must leave a stream alone that begins a capture.
Needs cudago and NumPy only: CUDAGO_DRIVER chooses the driver.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from work import CONFIG, NBYTES, N, Shared, pattern

import cudago as cu

MOST_SHOWN = 5


class Beside(threading.Thread):
    """Builds and drops graphs, until it is stopped."""

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared, self.stopped, self.count = shared, threading.Event(), 0
        self.error = ""

    def run(self) -> None:
        device = self.shared.device
        try:
            with device.create_stream() as stream, device.allocate(NBYTES, stream=stream) as memory:
                while not self.stopped.is_set():
                    graph = cu.Graph(device)
                    graph.memset(memory, 1).launch(CONFIG, self.shared.add, memory, 1, N)
                    step = graph.instantiate()
                    if self.count % 2:
                        step.launch(stream)
                    del graph, step
                    self.count += 1
                stream.sync()
        except Exception as e:
            self.error = f"{type(e).__name__}: {e}"


class Rounds:
    """The rounds, and what went wrong in them."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.stream = shared.device.create_stream()
        self.memory = shared.device.allocate(NBYTES, stream=self.stream)
        self.result = shared.device.allocate(NBYTES, stream=self.stream)
        self.invalidated = self.wrong = self.other = 0
        self.shown: list[str] = []

    def executable(self, value: int) -> cu.GraphExec:
        """An executable that leaves a number in the memory."""
        with cu.Graph(self.shared.device) as graph:
            graph.memset(self.memory, pattern(value))
            return graph.instantiate()

    def one(self, i: int) -> None:
        """Launch, drop, capture, replay, look."""
        s = self.stream
        step = self.executable(i)
        step.launch(s)
        del step
        with s.capture() as graph:
            self.result.copy_from(self.memory, stream=s)
            cu.launch(s, CONFIG, self.shared.add, self.result, 1, N)
        replay = graph.instantiate()
        graph.close()
        replay.launch(s)
        found = self.result.view("int32").numpy(stream=s)
        if (found != i + 1).any():
            self.wrong += 1
            self.show(f"round {i}: {found[:4]} instead of {i + 1}")

    def run(self, count: int) -> None:
        """Run all rounds; an exception ends its own only."""
        for i in range(count):
            try:
                self.one(i)
            except cu.CUDAError as e:
                self.invalidated += "CAPTURE" in e.name
                self.other += "CAPTURE" not in e.name
                self.show(f"round {i}: {e}")
            except Exception as e:
                self.other += 1
                self.show(f"round {i}: {type(e).__name__}: {e}")

    def show(self, text: str) -> None:
        """Keep the first texts."""
        if len(self.shown) < MOST_SHOWN:
            self.shown.append(text)


def main() -> None:
    """Run the rounds, and report."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--rounds", type=int, default=2000)
    options = p.parse_args()
    shared = Shared(0)
    beside, rounds = Beside(shared), Rounds(shared)
    beside.start()
    began = time.monotonic()
    rounds.run(options.rounds)
    seconds = time.monotonic() - began
    beside.stopped.set()
    beside.join()
    table = {
        "driver": cu.driver_name(),
        "rounds": options.rounds,
        "seconds": round(seconds, 1),
        "captures invalidated": rounds.invalidated,
        "wrong": rounds.wrong,
        "other exceptions": rounds.other,
        "graphs dropped beside": beside.count,
        "error beside": beside.error,
    }
    print(json.dumps(table, indent=1))
    print("\n".join(rounds.shown) or "drop_capture: nothing wrong")
    bad = rounds.invalidated or rounds.wrong or rounds.other or beside.error
    raise SystemExit(bool(bad) or np.iinfo("i4").max < options.rounds)


if __name__ == "__main__":
    main()
