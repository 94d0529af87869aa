# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Calls everything public, to see what deviates from the defaults that the reference states.

Run in a process of its own, which prints names as JSON: ``captured`` are those that a capture
records, refuses or does not survive; ``waiting`` those that wait for the work of a stream.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import cudago as cu
from cudago.testing import hold
from hostile.cases import arguments, call, resolve, variants
from hostile.recipes import all_targets
from hostile.surface import Target
from hostile.world import World

# They end what the probe needs; sim.cancel ends the work that it holds.
ENDING = {"Device.reset", "init", "sim.cancel", "sim.check"}
CAPTURING = re.compile(r"Fork\b|Graph\.fork")  # these need a capture to begin with
PATIENCE_S = 0.1
ATTEMPTS = 3

Call = Callable[[], Any]


def prepared(target: Target, variant: str, world: World) -> Call:
    """Return a call with good arguments, whose objects are there and have no work."""
    stream = world.get("stream")
    on = resolve(target, world)
    positional, keywords = arguments(target, variant, world, lambda _, value: value)
    stream.sync()
    return lambda: call(target, on, positional, keywords)


def outcome(make: Call) -> type[BaseException] | None:
    """Return what a call raises."""
    try:
        make()
    except Exception as e:
        return type(e)
    return None


def within(target: Target, variant: str, act: Callable[[Call, World], Any]) -> Any:
    """Act on a call of a target in a world of its own."""
    resource = cu.Device().memory_resource
    world = World()
    try:
        return act(prepared(target, variant, world), world)
    finally:
        world.close()
        cu.Device().memory_resource = resource


def in_capture(make: Call, world: World) -> tuple[type[BaseException] | None, int]:
    """Return what a call raises while the stream captures, and the nodes that are recorded."""
    world.begin_capture()
    raised = outcome(make)
    manager, graph = world.captures.pop()
    world.recorded.append(graph)
    try:
        manager.__exit__(None, None, None)
    except cu.CUDAError as e:
        return type(e), 0
    return raised, len(graph.nodes)


def is_captured(target: Target, variant: str) -> bool:
    """Whether a call of a target does anything else while its stream captures."""
    raised, nodes = within(target, variant, in_capture)
    return nodes > 0 or raised != within(target, variant, lambda make, _: outcome(make))


def in_hold(make: Call, world: World) -> bool:
    """Whether a call has waited for the work that holds its stream."""
    with hold(world.get("stream")) as go_on:
        timer = threading.Timer(PATIENCE_S, go_on.set)
        timer.start()
        outcome(make)
        waited = go_on.is_set()
        timer.cancel()
    return waited


def is_waiting(target: Target, variant: str) -> bool:
    """Whether a call of a target never returns before the work of its stream has ended.

    One that does not wait may be slow by accident; so it gets more than one chance.
    """
    return all(within(target, variant, in_hold) for _ in range(ATTEMPTS))


def main() -> None:
    """Print what was found."""
    found: dict[str, set[str]] = {"captured": set(), "waiting": set()}
    for target in all_targets():
        name = target.name.partition("[")[0]
        if name in ENDING or target.how == "protocol" or CAPTURING.match(name):
            continue
        for variant, _ in variants(target):
            if is_captured(target, variant):
                found["captured"].add(name)
            if is_waiting(target, variant):
                found["waiting"].add(name)
    print(json.dumps({key: sorted(names) for key, names in found.items()}))


if __name__ == "__main__":
    main()
