# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How the benchmarks measure: batches of calls that take turns.

A batch is some calls in a row with one pair of clock reads around them; waiting for the device
stays outside. In each round every case runs one batch, in random order, so that a slow phase of
the machine falls on all of them. What is reported are the median and the 99th percentile of the
batches' means.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import operations as op


@dataclass
class Case:
    """One operation, done by one library.

    `batch` runs `calls` calls and returns the nanoseconds they took; `settle` then waits for what
    they queued.
    """

    operation: str
    library: str
    batch: Callable[[], float]
    settle: Callable[[], object]
    calls: int
    means: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Add the mean of one more batch."""
        elapsed = self.batch()
        self.settle()
        self.means.append(elapsed / self.calls)

    @property
    def median(self) -> float:
        return statistics.median(self.means)

    @property
    def p99(self) -> float:
        ordered = sorted(self.means)
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def python_case(
    operation: str,
    library: str,
    statement: str,
    names: dict[str, Any],
    settle: Callable[[], object],
    *,
    setup: str = "pass",
) -> Case:
    """Return a case that runs a Python statement, as timeit does: without a call around it.

    `setup` runs before the clock of every batch; what it makes is dropped after the clock.
    """
    calls = op.calls_per_batch(operation)
    timer = timeit.Timer(statement, setup, timer=time.perf_counter_ns, globals=names)
    return Case(operation, library, lambda: timer.timeit(calls), settle, calls)


def measure(cases: Iterable[Case], rounds: int, seed: int = 0) -> None:
    """Run `rounds` batches of every case, each round in an order of its own."""
    order = list(cases)
    shuffle = random.Random(seed).shuffle
    for case in order:  # warm up: first calls load code and grow pools
        case.run()
        case.means.clear()
    for _ in range(rounds):
        shuffle(order)
        gc.collect()
        for case in order:
            case.run()
