# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The process that runs cases: it may crash, so it announces each case before it begins.

It reads one JSON object a line, ``{"unit": ..., "skip": [...], "only": ...}``, and writes lines of
its own: ``start``, ``end`` with an outcome, and ``done`` after the last case of a unit.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import sys
import warnings
from typing import IO, Any

import cudago as cu

from . import order, together
from .actions import disarm
from .cases import UNFIT, Seen, Unit, choices, find, play, wrong
from .forms import Trap
from .world import Canary, World, changes, live

PR_SET_TIMERSLACK = 29


class Child:
    """Runs units, and reports each case."""

    def __init__(self, out: IO[str], selection: str, seed: int, limit_s: float) -> None:
        self.out, self.selection, self.seed, self.limit_s = out, selection, seed, limit_s
        self.unraisable: list[str] = []
        sys.unraisablehook = self._note
        cu._core._watch_forks()  # a forked child that enters Go ends, so that it is seen
        self.canary = Canary()
        self.default_resource = cu.Device().memory_resource
        together.DEFAULTS.append(self.default_resource)
        gc.collect()
        gc.freeze()
        self.base = live()

    def _note(self, what: Any) -> None:
        if isinstance(what.exc_value, UNFIT):
            self.unraisable.append(f"unraisable {what.exc_value!r}")

    def say(self, **message: Any) -> None:
        """Write a line that survives a crash."""
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def unit(self, name: str, skip: set[str], only: str) -> None:
        """Run the cases of a unit, but for those that were run before."""
        if name.startswith("situation|"):
            self._one(name, skip, lambda: order.SITUATIONS[name.partition("|")[2]]())
        elif name.startswith(("thread|", "signal|", "wait|")):
            rounds = together.rounds("full" if only else self.selection)
            for case, run in together.cases(name, self.seed, rounds):
                if only in ("", case):
                    self._one(case, skip, run)
        else:
            self._hostile(find(name), skip, only)
        self.say(done=name)

    def _hostile(self, unit: Unit, skip: set[str], only: str) -> None:
        probe = f"{unit}|probe|none"
        if probe in skip:
            return  # it crashes without an action
        undisturbed = self._case(unit, -1, "none", probe, None)
        selection = "full" if only else self.selection  # it may be one that quick leaves out
        for index, question, action in choices(unit, undisturbed, selection, self.seed):
            name = f"{unit}|{index}:{question}|{action}"
            if name not in skip and only in ("", name):
                self._case(unit, index, action, name, undisturbed)

    def _case(self, unit: Unit, at: int, action: str, name: str, before: Seen | None) -> Seen:
        self.begin(name)
        world, trap = World(), Trap()
        seen = play(unit, at, action, world, trap)
        seen.contents = world.contents()
        adds_a_node = unit.target.name.startswith(("Graph.", "Node."))
        unordered = adds_a_node and cu.driver_name() == "nvidia"
        problem = wrong(seen, action, before or seen, unordered)
        raised = [type(e).__name__ for e in seen.raised]
        seen.raised.clear()
        world.close()
        if trap.armed:  # it acts when it dies, perhaps only now
            cu.live_objects()
            seen.points, seen.sprung, trap.armed = list(trap.log), trap.sprung, False
            disarm()  # the handler of an alarm that was set only now holds the world
        del world
        cu.Device().memory_resource = self.default_resource
        outcome = "raised" if raised else "right"
        if at >= 0 and not seen.sprung:
            outcome = "missed"
        trap.values.clear()
        trap.action = None
        self.finish(name, outcome, raised, problem)
        return seen

    def _one(self, name: str, skip: set[str], run: Any) -> None:
        if name in skip:
            return
        self.begin(name)
        problem, raised = "", []
        try:
            raised = run() or []
        except BaseException as e:
            raised = [type(e).__name__]
            problem = f"{type(e).__name__}: {str(e)[:300]}"
        self.finish(name, "raised" if raised else "right", raised, problem)

    def begin(self, name: str) -> None:
        """Say that a case begins, and what ends it if nothing else does."""
        self.say(start=name)
        faulthandler.dump_traceback_later(self.limit_s, exit=True)

    def finish(self, name: str, outcome: str, raised: list[str], problem: str) -> None:
        """Check that the library is as before, and report."""
        fatal = False
        try:
            now = live(self.base)
            if (difference := changes(self.base, now)) and not problem:
                problem = f"left behind: {difference}"
            self.base = now
            self.canary.sing()
        except BaseException as e:
            problem = problem or f"afterwards: {type(e).__name__}: {str(e)[:300]}"
            fatal = True
        faulthandler.cancel_dump_traceback_later()
        if self.unraisable:
            problem = problem or self.unraisable[0]
            self.unraisable.clear()
        self.say(end=name, outcome=outcome, raised=raised, problem=problem)
        if fatal:
            os._exit(3)  # what comes next would fail too: it belongs in a new process


def main() -> None:
    """Serve the parent."""
    selection, seed, limit_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a case prints goes to the standard error
    faulthandler.enable()
    warnings.simplefilter("ignore")
    # A timer of a microsecond must not wait for the fifty that the kernel may add.
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    child = Child(out, selection, seed, limit_s)
    child.say(ready=os.getpid())
    for line in sys.stdin:
        order = json.loads(line)
        child.unit(order["unit"], set(order["skip"]), order.get("only", ""))
    out.flush()
    # What is left at exit is no case's business; the ordinary tests look at that.
    os._exit(0)


if __name__ == "__main__":
    main()
