# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The process that hands units to children, takes their reports, and survives their crashes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

TESTS = Path(__file__).parents[1]
START_LIMIT_S = 120


@dataclass
class Failure:
    """A case that went wrong: how, and what the child wrote."""

    case: str
    kind: str  # "wrong", or how the process ended
    text: str
    alone: bool | None = None  # whether it happens in a new process too; None where not tried


@dataclass
class Tally:
    """What all children reported."""

    units: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def cases(self) -> int:
        """How many cases came to an end, or ended their process."""
        ended = [f for f in self.failures if f.kind != "wrong"]
        return sum(self.outcomes.values()) + len(ended)

    def kinds(self) -> Counter[str]:
        """Failures by kind."""
        return Counter(f.kind for f in self.failures)


class Process:
    """A child, and the files that it writes to."""

    def __init__(self, options: Any) -> None:
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        command = [sys.executable, "-X", "faulthandler", "-m", "hostile.child"]
        command += [options.selection, str(options.seed), str(options.limit_s)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment(options.driver),
        )
        self.expect_ready()

    def expect_ready(self) -> None:
        """Wait for the first line."""
        if not self.read(START_LIMIT_S):
            raise RuntimeError(f"a child did not start:\n{self.end()}")

    def send(self, **order: Any) -> None:
        """Give it a unit."""
        pipe: IO[str] = self.process.stdin  # type: ignore[assignment]
        pipe.write(json.dumps(order) + "\n")
        pipe.flush()

    def read(self, limit_s: float) -> dict[str, Any] | None:
        """Return the next report; None when the child has ended, or was too slow and is killed."""
        timer = threading.Timer(limit_s, self.process.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()  # type: ignore[union-attr]
        finally:
            timer.cancel()
        try:
            return dict(json.loads(line))
        except ValueError:
            return None  # the end, or half a line

    def end(self) -> str:
        """End the child; return what it wrote to its errors."""
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.seek(0)
        text = self.errors.read()
        self.errors.close()
        return f"exit code {self.process.returncode}\n{text[-8000:]}"


def environment(driver: str) -> dict[str, str]:
    """Environment of a child: a driver, of which the simulated one has two devices."""
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    own = {"PYTHONPATH": path, "CUDAGO_DRIVER": driver, "CUDAGO_SIM": "devices=2,cc=10.0"}
    return {**os.environ, **own, "PYTHONFAULTHANDLER": "1"}


class Worker(threading.Thread):
    """Takes units from the queue, and has one child at a time."""

    def __init__(self, options: Any, work: queue.SimpleQueue[str], tally: Tally) -> None:
        super().__init__()
        self.options, self.work, self.tally = options, work, tally
        self.child: Process | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run until the queue is empty."""
        try:
            while True:
                self.unit(self.work.get_nowait())
        except queue.Empty:
            if self.child:
                self.child.end()
        except BaseException as e:
            self.error = e

    def unit(self, unit: str) -> None:
        """Run all cases of a unit, in as many processes as it needs."""
        skip: list[str] = []
        crashes = 0
        while True:
            last = self.rounds(unit, skip, self.options.case)
            if last is None:
                break
            skip.append(last)
            crashes += 1
            if crashes == 1 and self.options.confirm:
                self.confirm(unit, last)
            if crashes >= self.options.crashes or last.endswith("|probe|none"):
                with self.tally.lock:
                    self.tally.given_up.append(unit)
                break
        with self.tally.lock:
            self.tally.units += 1

    def rounds(self, unit: str, skip: list[str], only: str = "", count: bool = True) -> str | None:
        """Run a unit in the present child; return the case in which it ended the child, if any."""
        self.child = self.child or Process(self.options)
        self.child.send(unit=unit, skip=skip, only=only)
        case, told = "", ""
        while (message := self.child.read(2 * self.options.limit_s + 10)) is not None:
            if "done" in message:
                return None
            if "start" in message:
                case, told = message["start"], ""
                continue
            told = message["problem"]
            skip.append(case)
            if count:
                self.note(message)
        text = self.child.end()
        self.child = None
        if told and text.startswith("exit code 3\n"):  # reported; a new process is next
            return case
        if count:
            with self.tally.lock:
                self.tally.failures.append(Failure(case or unit, manner(text), text))
        return case or f"{unit}|probe|none"

    def note(self, message: dict[str, Any]) -> None:
        """Count a case that has ended."""
        with self.tally.lock:
            self.tally.outcomes[message["outcome"]] += 1
            self.tally.raised.update(message["raised"])
            if message["problem"]:
                self.tally.failures.append(Failure(message["end"], "wrong", message["problem"]))

    def confirm(self, unit: str, case: str) -> None:
        """See whether a case does it alone too."""
        alone = self.rounds(unit, [], only=case, count=False) == case
        with self.tally.lock:
            for failure in self.tally.failures:
                if failure.case == case:
                    failure.alone = alone


def run(options: Any, units: list[str]) -> Tally:
    """Run units on as many workers as there are jobs."""
    work: queue.SimpleQueue[str] = queue.SimpleQueue()
    for unit in units:
        work.put(unit)
    tally = Tally()
    workers = [Worker(options, work, tally) for _ in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.error:
            raise worker.error
    return tally


def manner(text: str) -> str:
    """How a child ended: by a crash, a hang, or a mistake of the program itself."""
    if "Timeout (" in text or text.startswith("exit code -9\n"):
        return "hang"
    return "mistake" if text.startswith("exit code 1\n") else "crash"


# --- what is said of a crash ----------------------------------------------------------------------

_SAYS = (
    r"SUMMARY: AddressSanitizer: .*",
    r"ERROR: AddressSanitizer.*",
    r"^Fatal Python error: .*",
    r"^fatal error: .*",
    r"^panic: .*",
    r"^Timeout \(.*",
    r"^SIG[A-Z]+: .*",
)
_FRAMES = r"^ +#\d+ 0x[0-9a-f]+ in ([\w.]+) \S*/cudago/\S*?([\w.]+:\d+)$"


def headline(text: str) -> str:
    """The line that says what happened, and the first functions of ours on the stack."""
    found = next((m[0] for p in _SAYS if (m := re.search(p, text, re.M))), text.split("\n")[0])
    ours = [" ".join(m) for m in re.findall(_FRAMES, text, re.M)][:4]
    return found.strip() + (": " + " < ".join(ours) if ours else "")


def lines(tally: Tally) -> Iterator[str]:
    """The report: failures, then counts."""
    for failure in tally.failures:
        said = failure.text if failure.kind == "wrong" else headline(failure.text)
        alone = {None: "", True: " (alone too)", False: " (not alone)"}[failure.alone]
        yield f"{failure.kind}: {failure.case}{alone}\n    {said}"
    kinds = tally.kinds()
    yield f"units {tally.units}, cases {tally.cases}"
    yield f"right results {tally.outcomes['right']}, exceptions {tally.outcomes['raised']}"
    yield f"moments that did not come again {tally.outcomes['missed']}"
    yield "exceptions by type: " + ", ".join(f"{k} {n}" for k, n in tally.raised.most_common())
    yield f"crashes {kinds['crash']}, hangs {kinds['hang']}, wrong {kinds['wrong']}"
    if kinds["mistake"]:
        yield f"mistakes of the tests themselves: {kinds['mistake']}"
    if tally.given_up:
        yield f"units given up after crashes: {len(tally.given_up)}"
