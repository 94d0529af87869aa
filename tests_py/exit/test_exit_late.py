# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is shown, left and closed while the interpreter ends raises nothing: everything public."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cudago as cu

FOLDER = Path(cu.__file__).parent
TESTS = Path(__file__).parents[1]

# Contexts that functions return. Those that are objects of classes are among the things of a World.
CONTEXTS = {
    "no_leaks": "cu.testing.no_leaks()",
    "check": "cu.sim.check()",
    "disabled": "graph.instantiate()['m'].disabled()",
}
LATER = {  # others would wait for them, or fail
    "hold": "cu.testing.hold(device.create_stream())",
    "capture": "graph.capture(device.create_stream())",
}

SCRIPT = """
import atexit, builtins, os, sys, traceback
sys.path.insert(0, {tests!r})
import cudago as cu
from hostile.world import _FOLDER, MAKERS, UnavailableError, World
atexit.register(_FOLDER.cleanup)

class Late:
    def __init__(self, write=os.write, told=traceback.format_exception_only):
        self.write, self.told = write, told
        self.worlds, self.things, self.entered = [], {{}}, {{}}

    def keep(self, name):
        world = World()
        self.worlds.append(world)
        try:
            thing = world.get(name)
        except (UnavailableError, cu.UnsupportedError):
            return
        if type(thing).__module__.startswith("cudago"):
            self.things[name] = thing
            if hasattr(type(thing), "__enter__"):
                self.enter(name, thing)

    def enter(self, name, context):
        context.__enter__()
        self.entered[name] = context

    def say(self, text):
        self.write(1, (text + "\\n").encode())

    def attempt(self, name, call, *args):
        try:
            return call(*args)
        except BaseException as e:
            self.say(f"{{name}}: {{call.__name__}}: " + "".join(self.told(e)).strip())

    def __del__(self):
        for name, context in reversed(self.entered.items()):
            self.attempt(name, context.__exit__, None, None, None)
        for name, thing in self.things.items():
            for show in repr, str:
                if not self.attempt(name, show, thing):
                    self.say(f"{{name}} is shown as nothing")
            if hasattr(type(thing), "__exit__"):
                self.attempt(name, thing.__exit__, None, None, None)
            if hasattr(type(thing), "close"):
                self.attempt(name, thing.close)
        self.say(f"{{len(self.things)}} things, {{len(self.entered)}} contexts")

late = Late()
device = cu.Device()
graph = cu.Graph(device)
graph.memset(device.allocate(64, stream=device.default_stream), 1, name="m")
for name, context in {{{contexts}}}.items():
    late.enter(name, context())
for name in sorted(MAKERS, key=("captured", "fork").__contains__):  # while nothing is captured
    late.keep(name)
late.enter("a timeline with a thread", cu.debug.MemoryTimeline())
late.enter("Stream.capture", device.create_stream().capture("relaxed"))
for name, context in {{{later}}}.items():
    late.enter(name, context())
late.enter("a hold behind the first", cu.testing.hold(device.create_stream()))
builtins.late = late
del late, context, graph
"""


def test_all_that_is_left_at_the_end(script, driver):
    contexts, later = (
        ", ".join(f"{n!r}: lambda: {t}" for n, t in some.items() if driver == "sim" or n != "check")
        for some in (CONTEXTS, LATER)
    )
    run = script(SCRIPT.format(tests=str(TESTS), contexts=contexts, later=later))
    *wrong, last = run.stdout.splitlines() or [""]
    assert (run.returncode, run.stderr, wrong) == (0, "", [])
    things, contexts = (int(part.split()[0]) for part in last.split(", "))
    assert things > 120
    assert contexts > 20


def _makes_a_context(function: ast.FunctionDef) -> bool:
    made = [*function.decorator_list, *([function.returns] if function.returns else [])]
    return any("contextmanager" in ast.unparse(node).lower() for node in made)


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_all_contexts_are_among_them(driver):
    found = {
        node.name
        for path in FOLDER.rglob("*.py")
        if path.parent.name not in ("_command", "_gopy")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and _makes_a_context(node)
    }
    internal = {"capture_into"}
    assert {
        name for name in found - internal if not name.startswith("_")
    } == CONTEXTS.keys() | LATER.keys()
