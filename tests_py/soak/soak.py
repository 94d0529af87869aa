# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Everything at once, for long: threads that build, launch, update, capture, exchange and drop.

Each result is checked against what its operands give. The figures come last, as JSON; the exit
code is not 0 if a value was wrong, a capture was invalidated, an exception was unexpected, or
something was left behind. Needs cudago and NumPy only: CUDAGO_DRIVER chooses the driver.

With --driver-faults that share of all driver calls fails at random, on the simulated driver, and
CUDAError is asked for. What calls leave behind that failed to give it back is accounted for.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import random
import resource
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from faults import Faults
from work import NBYTES, OPERATIONS, Shared, Work, Wrong

import cudago as cu
from cudago._gopy import api
from cudago.testing import settle

SETTLE_S = 60
MOST_SHOWN = 10  # tracebacks
HUNG_AFTER_S = 180  # the time of the threads


def call_that_failed(e: BaseException | None) -> cu.CUDAError | None:
    """Return the error of a driver call that an exception is, or that it came in the wake of."""
    while e is not None and not isinstance(e, cu.CUDAError):
        e = e.__context__
    return e


def is_of_a_mark(e: Exception) -> bool:
    """Whether no event stands behind work of a stream that another thread captures.

    One is recorded when a capture begins. Where that fails, it is reported aside, and memory which
    the work uses can be waited for only after the capture.
    """
    return isinstance(e, BufferError) and "is capturing" in str(e)


class Soak:
    """The threads, and what they count."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.lock = threading.Lock()
        self.operations: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.exceptions: Counter[str] = Counter()
        self.injected: Counter[str] = Counter()  # exceptions of driver calls that were made to fail
        self.faults = Faults(options.driver_faults)
        self.wrong: list[str] = []
        self.stop = threading.Event()
        self.watched = 0

    def thread(self, work: Work, number: int) -> None:
        """Do operations at random until the end."""
        draw = random.Random(self.options.seed - number)
        weights = dict(OPERATIONS)
        if not self.options.faults:
            del weights["fault"]
        done: Counter[str] = Counter()
        while not self.stop.is_set():
            (name,) = draw.choices(list(weights), list(weights.values()))
            try:
                if self.faults.rate:
                    work.recover()
                getattr(work, name)()
            except Exception as e:
                self.failed(name, e)
            done[name] += 1
        try:
            work.close()
        except Exception as e:
            self.failed("close", e)
        with self.lock:
            self.operations += done
            self.counts += work.counts
            self.watched += work.watched

    def failed(self, name: str, e: Exception) -> None:
        """Count an exception: an unexpected one, or one of a driver call that was made to fail."""
        with self.lock:
            wrong = isinstance(e, Wrong)
            if self.faults.rate and not wrong and (failed := call_that_failed(e)):
                self.injected[f"{type(e).__name__} of {failed.operation}"] += 1
                return
            if self.faults.rate and not wrong and is_of_a_mark(e):
                self.injected["BufferError of an event before a capture"] += 1
                return
            if wrong:
                self.wrong.append(f"{name}: {e}")
            self.exceptions[f"{name}: {type(e).__name__}: {e}"[:200]] += 1
            if sum(self.exceptions.values()) <= MOST_SHOWN:
                traceback.print_exception(e)

    def run(self, shared: Shared) -> None:
        """Run the threads for their time."""
        threads = [
            threading.Thread(target=self.thread, args=(Work(shared, self.options.seed + n), n))
            for n in range(self.options.threads)
        ]
        faulthandler.dump_traceback_later(self.options.seconds + HUNG_AFTER_S, exit=True)
        self.faults.begin()
        for thread in threads:
            thread.start()
        time.sleep(self.options.seconds)
        self.stop.set()
        for thread in threads:
            thread.join()
        self.faults.end()


def state() -> dict[str, Any]:
    """What is alive, once nothing is under way."""
    gc.collect()
    settle(SETTLE_S)
    device = cu.Device()
    page = resource.getpagesize()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * page
    return {
        "live objects": cu.live_objects(),
        "driver objects": json.loads(api.driver_objects()),
        "allocations by kind": cu.exchange_stats().live,
        "device bytes in use": device.memory_resource.statistics.used,  # type: ignore[attr-defined]
        "resident MB": round(resident / 1e6, 1),
    }


def figures(
    soak: Soak, start: dict[str, Any], end: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """The table."""
    counts = soak.counts
    faults = {k.removeprefix("faults: "): n for k, n in counts.items() if k.startswith("faults: ")}
    return {
        "driver": cu.driver_name(),
        "device": cu.Device().name,
        "threads": soak.options.threads,
        "seconds": round(seconds, 1),
        "seed": soak.options.seed,
        "operations": sum(soak.operations.values()),
        "operations by kind": dict(sorted(soak.operations.items())),
        "faults": faults,
        "driver calls made to fail": soak.faults.by_call,
        "exceptions of those": dict(sorted(soak.injected.items())),
        "captures begun": counts["captures begun"],
        "captures ended": counts["captures ended"],
        "captures discarded": counts["captures discarded"],
        "captures invalidated": counts["captures invalidated"],
        "captures failed": counts["captures failed"],
        "captures left open": counts["captures left open"],
        "wrong values": len(soak.wrong),
        "exceptions not asked for": dict(soak.exceptions),
        "start": start,
        "end": end,
    }


def problems(soak: Soak, table: dict[str, Any], finalized: int) -> list[str]:
    """The failures."""
    found = [f"wrong value: {text}" for text in soak.wrong[:MOST_SHOWN]]
    found += [f"exception: {name}, {n} times" for name, n in soak.exceptions.items()]
    if table["captures invalidated"]:
        found.append(f"{table['captures invalidated']} captures were invalidated")
    for what in ("live objects", "driver objects", "allocations by kind", "device bytes in use"):
        before, after = table["start"][what], table["end"][what]
        before = soak.faults.left(what, before, NBYTES)
        if before != after:
            found.append(f"{what}: {before} expected, {after} at the end")
    if finalized != soak.watched:
        found.append(f"{finalized} finalizers of {soak.watched} ran")
    return found


def main() -> None:
    """Soak, and report."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--threads", type=int, default=64)
    p.add_argument("--streams", type=int, default=8, help="streams that all threads use")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--no-faults", dest="faults", action="store_false")
    p.add_argument("--driver-faults", type=float, default=0, help="share of driver calls that fail")
    soak = Soak(p.parse_args())
    if soak.options.driver_faults:
        os.environ["CUDAGO_DRIVER"] = "sim"
        os.environ["CUDAGO_SIM"] = f"faults=0,seed={soak.options.seed}"  # read at the first use
    shared = Shared(soak.options.streams)
    warm = Work(shared, 0)
    warm.build()
    warm.close()
    start, began = state(), time.monotonic()
    soak.run(shared)
    seconds = time.monotonic() - began
    end = state()
    soak.faults.count()
    table = figures(soak, start, end, seconds)
    print(json.dumps(table, indent=1))
    found = problems(soak, table, len(shared.finalized))
    shared.close()
    print("\n".join(found) or "soak: nothing wrong")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
