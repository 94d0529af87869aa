# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs built and dropped, very many: objects, references and bytes are back where they began.

Needs cudago and NumPy only: CUDAGO_DRIVER chooses the driver.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from work import CONFIG, NBYTES, N, Shared

import cudago as cu

WARM = 2000  # builds before anything is counted: what is made once is there then
STEPS = 10  # looks at the process's size
RUN_EACH = 16  # one of so many is instantiated and launched


class Builds:
    """Builds graphs of the same operands."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.stream = shared.device.create_stream()
        self.memory = shared.device.allocate(NBYTES, stream=self.stream)
        self.host = np.arange(N, dtype="i4")
        self.calls = 0

    def call(self) -> None:
        """Count the launches that ran."""
        self.calls += 1

    def one(self, run: bool) -> None:
        """Build a graph of a copy, a kernel, a fill and a callback, and forget it."""
        graph = cu.Graph(self.shared.device)
        node = graph.memcpy(self.memory, self.host)
        node = node.launch(CONFIG, self.shared.add, self.memory, 1, N)
        node.memset(self.memory[:4], 0).callback(self.call)
        if run:
            graph.instantiate().launch(self.stream)

    def run(self, count: int) -> None:
        """Build so many."""
        for i in range(count):
            self.one(i % RUN_EACH == 0)
        self.stream.sync()

    def counted(self) -> dict[str, object]:
        """Return what must be as it was, once all releases are done."""
        operands = (self.memory, self.host, self.shared.add, CONFIG, Builds.call)
        references = [sys.getrefcount(it) for it in operands]
        held = cu.who_retains(self.memory)
        return {"live": dict(cu.live_objects()), "references": references, "held": len(held)}

    def settled(self, wanted: dict[str, object]) -> dict[str, object]:
        """Return the counts, when they are as wanted or after ten seconds."""
        end = time.monotonic() + 10
        while (found := self.counted()) != wanted and time.monotonic() < end:
            time.sleep(0.05)
        return found


def resident_mib() -> float:
    """Return the size of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / (1 << 20), 1)


def main() -> None:
    """Build the graphs, and report."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--builds", type=int, default=20000)
    p.add_argument("--most-mib", type=float, default=4, help="by which the process may grow")
    options = p.parse_args()
    builds = Builds(Shared(0))
    start = builds.counted()
    builds.run(WARM)
    builds.settled(start)
    sizes, began = [resident_mib()], time.monotonic()
    for _ in range(STEPS):
        builds.run(options.builds // STEPS)
        sizes.append(resident_mib())
    seconds = time.monotonic() - began
    end = builds.settled(start)
    grown = sizes[-1] - sizes[1]
    table = {
        "driver": cu.driver_name(),
        "builds": options.builds,
        "seconds": round(seconds, 1),
        "launches": builds.calls,
        "resident MiB": sizes,
        "at the start": start,
        "at the end": end,
    }
    print(json.dumps(table, indent=1))
    wrong = []
    if end != start:
        wrong.append("something is left")
    if grown > options.most_mib:
        wrong.append(f"the process has grown by {grown:.1f} MiB")
    print("\n".join(wrong) or "builds: nothing wrong")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
