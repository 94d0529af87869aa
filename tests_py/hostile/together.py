# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What happens during a call: another thread or a signal handler closes or updates something.

Units are ``thread|Target``, ``signal|Target`` and ``wait|name``; their cases add the action.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cudago as cu
from cudago.testing import hold

from .actions import Raised, Scene, disarm, perform
from .cases import Seen, afterwards, arguments, call, disturbed, is_available, resolve, wrong
from .forms import Trap
from .recipes import all_targets
from .surface import Target
from .world import World

SWITCH_S = 1e-6
STEP_S = 2e-6  # between the alarms of one round and the next
RING_S, RELEASE_S = 0.02, 0.06  # of a wait: when the alarm rings, and when the wait may end
QUICK_ROUNDS, QUICK_ACTIONS = 3, 2
SPINS = 200  # of a loop that lets another thread get ahead

# Actions besides closing. A call that needs nothing that could be closed meets no action at all.
BESIDE = ("update", "collect", "capture")


def rounds(selection: str) -> int:
    """How often each pair of call and action meets."""
    return 300 if selection == "full" else QUICK_ROUNDS


def units() -> Iterator[str]:
    """Names of all units."""
    for target in filter(is_available, all_targets()):
        yield f"thread|{target.name}"
        yield f"signal|{target.name}"
    for name in WAITS:
        yield f"wait|{name}"


def cases(unit: str, seed: int, count: int) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """The cases of a unit: name, and function that runs it and returns what was raised."""
    kind, _, name = unit.partition("|")
    draw = random.Random(f"{seed}|{unit}")
    if kind == "wait":
        for action in (*MEANWHILE, "raise"):
            yield f"{unit}|{action}", lambda action=action: waits(name, action)
        return
    target = next(t for t in all_targets() if t.name == name)
    actions = victims(target)
    if count == QUICK_ROUNDS:
        actions = draw.sample(actions, min(len(actions), QUICK_ACTIONS))
    if kind == "thread":
        for action in actions:
            yield f"{unit}|{action}", lambda a=action: beside(target, a, count, draw)
    elif actions:
        for action in ("close", "raise"):
            yield f"{unit}|{action}", lambda a=action: under_alarm(target, a, 4 * count)


def victims(target: Target) -> list[str]:
    """Actions that may meet a call: closing each thing that it has to do with, and others."""
    world = World()
    resolve(target, world)
    arguments(target, "", world, lambda name, value: value)
    things = world.closable()
    world.close()
    if not things:
        return []
    unfit = set() if "exec" in things else {"update"}
    unfit |= set() if "stream" in things else {"capture"}
    return [f"close:{name}" for name in things] + [a for a in BESIDE if a not in unfit]


def prepared(target: Target) -> tuple[World, Scene, Callable[[], Any]]:
    """A world, and a call in it that is ready to be made."""
    world = World()
    scene = Scene(world, Trap())
    on = resolve(target, world)
    positional, keywords = arguments(target, "", world, lambda name, value: value)
    return world, scene, lambda: call(target, on, positional, keywords)


def ended(target: Target, world: World, seen: Seen) -> list[str]:
    """Bring a round to its end; return what was raised."""
    disturbed(seen, lambda: afterwards(target, world))
    problem = wrong_of(seen)
    raised = [type(e).__name__ for e in seen.raised]
    seen.raised.clear()
    world.close()
    cu.Device().memory_resource = DEFAULTS[0]
    if problem:
        raise AssertionError(problem)
    return raised


DEFAULTS: list[Any] = []  # the device's own memory resource


def wrong_of(seen: Seen) -> str:
    """What no call may raise; empty where nothing is wrong."""
    return wrong(seen, "beside", Seen())


def beside(target: Target, action: str, count: int, draw: random.Random) -> list[str]:
    """Make a call while another thread does something."""
    found: list[str] = []
    for _ in range(count):
        found += meet(target, action, draw.randrange(SPINS), draw.randrange(SPINS))
    return found


def meet(target: Target, action: str, ahead: int, behind: int) -> list[str]:
    """One call, and one action on another thread, that begin together."""
    world, scene, make = prepared(target)
    ready, go, seen = threading.Event(), [False], Seen()

    def other() -> None:
        ready.set()
        while not go[0]:
            pass
        for _ in range(behind):
            pass
        try:
            perform(action, scene)
        except Exception as e:
            seen.raised.append(e)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)  # only now: it makes everything slow
    try:
        go[0] = True
        for _ in range(ahead):
            pass
        disturbed(seen, make)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    del make
    return ended(target, world, seen)


def under_alarm(target: Target, action: str, count: int) -> list[str]:
    """Make a call under a timer, which rings a little later each time."""
    found: list[str] = []
    for i in range(count):
        found += interrupted(target, action, (i + 1) * STEP_S)
    return found


def interrupted(target: Target, action: str, delay_s: float) -> list[str]:
    """One call under an alarm."""
    world, scene, make = prepared(target)
    seen = Seen()
    disturbed(seen, lambda: alarmed(scene, action, delay_s, make))
    return ended(target, world, seen)


def alarmed(scene: Scene, action: str, delay_s: float, make: Callable[[], Any]) -> None:
    """Make a call under an alarm, and wait until it has rung."""
    rung = ring(scene, action, delay_s)
    make()
    end = time.monotonic() + 1
    while not rung.is_set() and time.monotonic() < end:
        pass


def ring(scene: Scene, action: str, delay_s: float) -> threading.Event:
    """Set an alarm whose handler does an action; return the event that it sets."""
    rung = threading.Event()

    def handler(number: int, frame: Any) -> None:
        rung.set()
        if action == "raise":
            raise Raised
        perform(action, scene)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, delay_s)
    return rung


# --- waits ----------------------------------------------------------------------------------------

MEANWHILE = ("close", "thread", "capture", "collect", "exchange")


def _event(w: World) -> None:
    w.get("stream").record(w.get("event"))
    w.get("event").sync()


# Calls that wait for a stream which is held, and what they need beforehand.
WAITS: dict[str, tuple[tuple[str, ...], Callable[[World], Any]]] = {
    "Stream.sync": (("buffer",), lambda w: w.get("stream").sync()),
    "Event.sync": (("event", "buffer"), _event),
    "Device.sync": (("buffer",), lambda w: cu.Device().sync()),
    "Tensor.numpy": (("tensor",), lambda w: w.get("tensor").numpy(stream=w.get("stream"))),
    "Tensor.copy_from": (
        ("tensor", "matrix"),
        lambda w: w.get("tensor").copy_from(w.get("matrix"), stream=w.get("stream")),
    ),
    "Buffer.copy_to": (
        ("buffer", "bytearray"),
        lambda w: w.get("buffer").copy_to(w.get("bytearray"), stream=w.get("stream")),
    ),
    "Buffer.copy_from": (
        ("buffer", "array"),
        lambda w: w.get("buffer").copy_from(w.get("array"), stream=w.get("stream")),
    ),
    "from_dlpack": (("tensor",), lambda w: np.from_dlpack(w.get("tensor"))),
    "memoryview": (("managed",), lambda w: memoryview(w.get("managed"))),
}


def waits(name: str, action: str) -> list[str]:
    """Wait for a stream, and let an alarm ring meanwhile."""
    needed, wait = WAITS[name]
    world, seen = World(), Seen()
    for thing in ("stream", *needed):
        world.get(thing)
    with hold(world.get("stream")) as go_on:
        timer = threading.Timer(RELEASE_S, go_on.set)
        timer.start()
        rung = ring(Scene(world, Trap()), action, RING_S)
        disturbed(seen, lambda: (wait(world), rung.wait(1)))
        timer.join()
    disarm()
    disturbed(seen, lambda: cu.Device().sync())
    problem = wrong_of(seen)
    raised = [type(e).__name__ for e in seen.raised]
    seen.raised.clear()
    world.close()
    if problem:
        raise AssertionError(problem)
    return raised
