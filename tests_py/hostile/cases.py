# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Cases: one call with one hostile argument, that acts once, at one moment.

A unit is a target, a variant of its values, a parameter and a form, as in
``Buffer.copy_from|src=1|stream|protocol``. It is called once without an action: that shows at
which moments cudago asks the object for something, and what the call does undisturbed. Then each
moment is a point, ``2:__index__``, at which each action is tried: two more fields of the name.
"""

from __future__ import annotations

import hashlib
import operator
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cudago as cu

from .actions import ACTIONS, NEUTRAL, Scene, disarm, perform
from .forms import Trap, forms_of
from .recipes import all_targets, receiver, values
from .surface import Target
from .world import UnavailableError, World

QUICK_POINTS, FULL_POINTS = 2, 12
ALWAYS = ("overwrite", "capture")
UNFIT = (SystemError, cu.InternalError, cu.DeviceFaultError, cu.CheckError, AssertionError)


@dataclass(frozen=True)
class Unit:
    """Target, variant (``name=index`` or nothing), hostile parameter, form."""

    target: Target
    variant: str
    parameter: str
    form: str

    def __str__(self) -> str:
        return "|".join((self.target.name, self.variant or "-", self.parameter, self.form))


@dataclass
class Seen:
    """What a call did: its result or exceptions, and what it left."""

    points: list[str] = field(default_factory=list)
    things: list[str] = field(default_factory=list)
    result: Any = None
    raised: list[BaseException] = field(default_factory=list)
    failed: bool = False
    sprung: bool = False
    contents: dict[str, bytes] = field(default_factory=dict)


def units() -> Iterator[Unit]:
    """All units, in a stable order. Runs makers, so it needs a driver."""
    for target in all_targets():
        if not is_available(target):
            continue
        for variant, indices in variants(target):
            for p in target.parameters:
                # Other operands matter for what is closed: their variants once are enough.
                for form in _forms(target, p.name, indices.get(p.name, 0)):
                    yield Unit(target, variant, p.name, form)


def is_available(target: Target) -> bool:
    """Whether this driver has what the target is called with."""
    if cu.driver_name() == "sim":
        return True
    world = World()
    try:
        if target.how != "construct" and target.owner:
            world.get(receiver(target))
        for p in target.parameters:
            for make in values(target, p):
                make(world)
    except UnavailableError:
        return False
    finally:
        world.close()
    return True


def variants(target: Target) -> Iterator[tuple[str, dict[str, int]]]:
    """The first values of all parameters; then each other value in turn."""
    yield "", {}
    for p in target.parameters:
        for i in range(1, len(values(target, p))):
            yield f"{p.name}={i}", {p.name: i}


_found: dict[tuple[str, str, int], list[str]] = {}


def _forms(target: Target, name: str, index: int) -> list[str]:
    key = (target.name, name, index)
    if key not in _found:
        parameter = next(p for p in target.parameters if p.name == name)
        world = World()
        _found[key] = list(forms_of(values(target, parameter)[index](world)))
        world.close()
    return _found[key]


def find(name: str) -> Unit:
    """The unit of a name."""
    target, variant, parameter, form = name.split("|")
    return Unit(
        next(t for t in all_targets() if t.name == target),
        "" if variant == "-" else variant,
        parameter,
        form,
    )


# --- one call -------------------------------------------------------------------------------------


def resolve(target: Target, world: World) -> Any:
    """What to call, or whose attribute to take."""
    if target.how == "construct":
        return operator.attrgetter(target.owner)(cu)
    if not target.owner:
        return operator.attrgetter(target.member)(cu)
    return world.get(receiver(target))


def arguments(
    target: Target, variant: str, world: World, hostile: Callable[[str, Any], Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call; `hostile` may exchange each."""
    name, _, number = variant.partition("=")
    positional, keywords = [], {}
    for p in target.parameters:
        value = values(target, p)[int(number) if p.name == name else 0](world)
        value = hostile(p.name, value)
        if p.by_keyword:
            keywords[p.name] = value
        else:
            positional.append(value)
    return positional, keywords


def call(target: Target, on: Any, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """Make the call."""
    if target.how == "get":
        return getattr(on, target.member)
    if target.how == "set":
        return setattr(on, target.member, *positional)
    if target.how == "protocol":
        return memoryview(on) if target.member == "__buffer__" else list(on)
    if target.how == "construct" or not target.owner:
        return on(*positional, **keywords)
    return getattr(on, target.member)(*positional, **keywords)


def play(unit: Unit, at: int, action: str, world: World, trap: Trap) -> Seen:
    """Make a unit's call in a world, with an action at a point; -1 for none."""
    scene, seen = Scene(world, trap), Seen()

    def hostile(name: str, value: Any) -> Any:
        if name != unit.parameter:
            return value
        return forms_of(value)[unit.form](value, trap, world)

    on = resolve(unit.target, world)
    made = [on, *arguments(unit.target, unit.variant, world, hostile)]
    scene.again = again_in(unit.target, on, world)
    if action == "uncapture" and not world.captures:
        world.begin_capture()
    trap.at, trap.action = at, lambda: perform(action, scene)
    trap.armed = True
    disturbed(seen, lambda: use(unit.target, call(unit.target, *made), seen))
    made.clear()  # what acts when it dies is now held by cudago alone
    seen.points = list(trap.log)
    seen.things = world.closable()
    disturbed(seen, lambda: afterwards(unit.target, world))
    trap.armed = unit.form == "dying"
    seen.sprung = trap.sprung
    return seen


def again_in(target: Target, on: Any, world: World) -> Callable[[], Any]:
    """The same call with good arguments, made beforehand."""
    positional, keywords = arguments(target, "", world, lambda name, value: value)
    return lambda: call(target, on, positional, keywords)


def disturbed(seen: Seen, step: Callable[[], None]) -> None:
    """Do a step that may raise anything, and let pending alarms ring in it."""
    try:
        try:
            step()
        finally:
            disarm()
    except BaseException as e:
        seen.failed = True
        seen.raised.append(e)


def use(target: Target, result: Any, seen: Seen) -> None:
    """Note a result, and do with it what is left to do."""
    seen.result = digest(result)
    if target.name == "Stream.capture":
        with result as graph:
            pass
        graph.instantiate().close()
    if target.name in ("Graph.capture", "Node.capture"):
        with result as nodes:
            pass
        assert nodes == []


def afterwards(target: Target, world: World) -> None:
    """Run what the call has built: graphs, executables, captures, finalizers."""
    world.end_captures()
    graphs = list(world.recorded)
    if target.owner in ("Graph", "Node") and "graph" in world.things:
        graphs.append(world.get("graph"))
    for graph in graphs:
        with graph.instantiate() as step:
            step.launch(cu.Device().default_stream)
    if "exec" in world.things and target.owner in ("ExecNode", "GraphExec"):
        world.get("exec").launch(cu.Device().default_stream)
    if target.name in ("finalize", "Finalizer"):
        world.things.pop("watched", None)
    if target.name in SWITCHES:
        _switched()
    cu.Device().sync()


SWITCHES = {"debug.watch_pointers", "debug.resource_warnings", "debug.record_origins"}


def _switched() -> None:
    """Run a graph with what a switch of the process has turned on, and turn it off again."""
    world = World()
    try:
        with world.get("graph").instantiate() as step:
            step.launch(cu.Device().default_stream)
    finally:
        cu.debug.watch_pointers(False)
        cu.debug.resource_warnings(False)
        cu.debug.record_origins()
        world.close()


def digest(result: Any) -> Any:
    """What can be compared of a result: nothing that has addresses in it."""
    if isinstance(result, cu.Tensor) and not result.is_closed:
        return ("tensor", result.shape, result.strides, result.dtype_name)
    if isinstance(result, cu.Buffer):
        return ("buffer", result.size)
    if isinstance(result, bool) or result is None:
        return result
    if isinstance(result, int):
        return result if result < 1 << 20 else int
    return type(result).__name__


# --- what is tried --------------------------------------------------------------------------------


def choices(unit: Unit, seen: Seen, selection: str, seed: int) -> list[tuple[int, str, str]]:
    """Points and actions to try, after a call without action: (index, question, action)."""
    text = f"{seed}|{unit}"
    draw = random.Random(hashlib.sha256(text.encode()).digest())
    points = _points(seen.points, FULL_POINTS if selection == "full" else QUICK_POINTS)
    found = []
    for index in points:
        actions = _actions(unit, seen, selection, draw)
        found += [(index, seen.points[index], action) for action in actions]
    return found


def _points(questions: list[str], limit: int) -> list[int]:
    """First and last time of each question, the last ones first; then the others."""
    first = {q: i for i, q in reversed(list(enumerate(questions)))}
    last = {q: i for i, q in enumerate(questions)}
    order = [*sorted(last.values(), reverse=True), *sorted(first.values())]
    order += range(len(questions))
    return list(dict.fromkeys(order))[:limit]


def _actions(unit: Unit, seen: Seen, selection: str, draw: random.Random) -> list[str]:
    unfit = set()
    if "stream" not in seen.things:
        unfit |= {"capture", "uncapture", "launch"}
    if "exec" not in seen.things:
        unfit.add("update")
    possible = [a for a in ACTIONS if a not in unfit]
    if len(seen.things) > 1:
        possible += [f"close:{name}" for name in seen.things]
    if selection == "full":
        return possible
    always = [a for a in ALWAYS if a in possible]
    others = [a for a in possible if a not in always]
    return always + draw.sample(others, min(len(others), 1 if unit.variant else 2))


def wrong(seen: Seen, action: str, undisturbed: Seen, unordered: bool = False) -> str:
    """What is wrong with what a call did; empty where nothing is.

    unordered: the nodes of a graph that nothing orders have written the contents, on a GPU.
    """
    for e in seen.raised:
        while e is not None:
            if isinstance(e, UNFIT):
                return f"raised {type(e).__name__}: {str(e)[:300]}"
            e = e.__cause__ or e.__context__
    neutral = action in NEUTRAL | {"none"} or action.startswith("close:")
    if seen.failed or undisturbed.failed or not neutral:
        return ""
    if seen.result != undisturbed.result and not isinstance(seen.result, str):
        return f"result {seen.result!r} instead of {undisturbed.result!r}"
    if unordered:
        return ""
    for name in seen.contents.keys() & undisturbed.contents.keys():
        if seen.contents[name] != undisturbed.contents[name]:
            got, expected = (x.contents[name][:16].hex() for x in (seen, undisturbed))
            return f"{name} has {got} instead of {expected}"
    return ""
