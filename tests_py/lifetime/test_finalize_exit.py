# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Finalizers while the interpreter ends, and in forked children: `cudago` against `weakref`."""

from __future__ import annotations

import pytest

START = """
import atexit, builtins, gc, os, sys, threading, weakref
import cudago as cu
finalize = {"weakref": weakref.finalize, "cudago": cu.finalize}[sys.argv[1]]

class Thing:
    def __init__(self, name=None):
        self.name = name

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # works when sys.stdout does not

def keep(*things):
    builtins.kept = getattr(builtins, "kept", []) + list(things)  # until the very end
"""

# The lines that each script prints, and how often it prints what on stderr.
SCRIPTS = {
    "newest first": (
        """
        things = [Thing() for _ in range(3)]
        for n in (1, 0, 2):
            finalize(things[n], say, n)
        """,
        ["2", "0", "1"],
    ),
    "made at exit": (
        """
        thing = Thing()
        def add():
            say("adds")
            finalize(thing, lambda: finalize(thing, say, "third").atexit)
            finalize(thing, say, "added")
        finalize(thing, say, "first")
        finalize(thing, add)
        finalize(thing, say, "last")
        """,
        ["last", "adds", "added", "third", "first"],
    ),
    "raises at exit": (
        """
        thing = Thing()
        def fail():
            finalize(thing, say, "added")
            say("fails")
            raise LookupError("of the finalizer")
        finalize(thing, say, "first")
        finalize(thing, fail)
        """,
        ["fails", "added", "first"],
        {"LookupError: of the finalizer": 1, "Traceback": 1, "ignored": 0},
    ),
    "the hook for exceptions": (
        """
        sys.excepthook = lambda t, e, trace: say("hook", t is type(e), e, trace is e.__traceback__)
        sys.unraisablehook = lambda u: say("unraisable", u.exc_value)
        thing, other = Thing(), Thing()
        def fail(word):
            raise LookupError(word)
        finalize(thing, say, "first")
        finalize(thing, fail, "at exit")
        finalize(other, fail, "before")
        del other
        """,
        ["unraisable before", "hook True at exit True", "first"],
    ),
    "a hook that fails": (
        """
        def hook(t, e, trace):
            raise TypeError("of the hook")
        sys.excepthook = hook
        sys.unraisablehook = lambda u: say("unraisable", u.exc_value)
        thing = Thing()
        finalize(thing, say, "left alone")
        finalize(thing, int, "no number")
        """,
        ["unraisable of the hook"],
    ),
    "what is no Exception": (
        """
        sys.unraisablehook = lambda u: say("unraisable", type(u.exc_value).__name__)
        def fail(error):
            raise error
        thing = Thing()
        finalize(thing, say, "left alone")
        finalize(thing, fail, KeyboardInterrupt)
        finalize(thing, say, "newest")
        """,
        ["newest", "unraisable KeyboardInterrupt"],
    ),
    "flags": (
        """
        thing = Thing()
        finalize(thing, say, "quiet").atexit = False
        f = finalize(thing, say, "on again")
        f.atexit = False
        f.atexit = True
        finalize(thing, say, "detached").detach()
        keep(thing)
        """,
        ["on again"],
    ),
    "flags set at exit": (
        """
        thing = Thing()
        off, on = finalize(thing, say, "set off"), finalize(thing, say, "set on")
        on.atexit = False
        def change():
            off.atexit, on.atexit = False, True
            say("changed")
        finalize(thing, change)
        keep(thing)
        """,
        ["changed", "set off"],
    ),
    "flags set at exit, before one is made": (
        """
        thing = Thing()
        off, on = finalize(thing, say, "set off"), finalize(thing, say, "set on")
        on.atexit = False
        def change():
            off.atexit, on.atexit = False, True
            finalize(thing, say, "made")
        finalize(thing, change)
        keep(thing)
        """,
        ["made", "set on"],
    ),
    "used at exit": (
        """
        thing, other = Thing(), Thing()
        a = finalize(thing, say, "a")
        b = finalize(thing, say, "b")
        c = finalize(other, say, "c")
        def use():
            global other
            say(a.alive, a.atexit, a.peek()[2], b.detach()[2], f.alive, f(), f.peek())
            a()
            other = None
            say(a.alive, b.alive, c.alive)
        f = finalize(thing, use)
        """,
        ["True True ('a',) ('b',) False None None", "a", "c", "False False False"],
    ),
    "a subclass at exit": (
        """
        class Mine(finalize):
            def __call__(self, _=None):
                say("mine")
                return super().__call__()
        thing = Thing()
        Mine(thing, say, "function")
        """,
        ["mine", "function"],
    ),
    "no collector at exit": (
        """
        thing = Thing()
        finalize(thing, lambda: say(gc.isenabled()))
        """,
        ["False"],
    ),
    "the collector is as it was": (
        """
        class Last:
            def __del__(self, collects=gc.isenabled):
                say(collects())
        thing = Thing()
        finalize(thing, say, "first")
        keep(Last())
        """,
        ["first", "True"],
    ),
    "objects that die in teardown": (
        """
        thing, other, third = Thing(), Thing(), Thing()
        finalize(thing, os.write, 1, b"not at exit").atexit = False
        keep(other)
        finalize(other, os.write, 1, b"not at the end").atexit = False
        third.itself = third
        finalize(third, os.write, 1, b"nor in a cycle").atexit = False
        """,
        [],
    ),
    "use after exit": (
        """
        class Last:
            def __init__(self):
                self.f = finalize(thing, say, "never")
                self.g = finalize(thing, say, "nor this")
                self.f.atexit = self.g.atexit = False
                self.finalize, self.thing, self.say, self.weak = finalize, thing, say, weakref.ref
            def __del__(self):
                f, g, say = self.f, self.g, self.say
                say(f.alive, f.atexit, f.peek()[2], g.detach()[2], g.alive)
                f.atexit = 1
                say(f.atexit, f(), f.alive, f.peek(), f.detach())
        thing = Thing()
        keep(Last())
        """,
        ["True False ('never',) ('nor this',) False", "True None False None None"],
    ),
    "made after exit": (
        """
        def late():
            f = finalize(thing, say, "never")
            say(f.alive, f.peek()[2], f(), f.alive)
            finalize(Thing(), say, "nor when its object goes")
            finalize(thing, say, "nor at exit")
        thing = Thing()
        finalize(thing, say, "first")  # with this, weakref registers with atexit
        hooks.append(late)
        """,
        ["first", "True ('never',) None False"],
    ),
    "dead before, at exit": (
        """
        thing = Thing()
        f, g = finalize(thing, say, "called"), finalize(thing, say, "detached")
        f(), g.detach()
        say(f.alive, g.alive)
        """,
        ["called", "False False"],
    ),
}

# Runs after what was registered with atexit later: Python calls these newest first.
BEFORE = """
import atexit
hooks = []
atexit.register(lambda: [hook() for hook in hooks])
"""


@pytest.mark.parametrize("kind", ["weakref", "cudago"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_at_exit(name, kind, script):
    source, lines, *stderr = SCRIPTS[name]
    text = BEFORE + START + script.dedent(source)
    run = script.run([*script.command(text), kind])
    assert run.stdout.splitlines() == lines
    assert run.returncode == 0
    counts = stderr[0] if stderr else {}
    assert {text: run.stderr.count(text) for text in counts} == counts
    assert bool(run.stderr) is bool(counts)


def test_everything_can_be_used_at_exit(script, driver):
    """Finalizers run before cudago ends, after what was registered with atexit since its import."""
    run = script(
        """
        import atexit
        import cudago as cu
        d = cu.Device()
        s = d.create_stream()
        buffer = d.allocate(64, stream=s)
        class Thing: ...
        thing = Thing()

        def use():
            out = bytearray(64)
            with cu.Graph() as graph, d.create_stream() as other:
                graph.memset(buffer, 7).callback(lambda: print("callback"))
                with graph.instantiate() as step:
                    step.launch(other)
                    other.sync()
            buffer.copy_to(out, stream=s)
            s.sync()
            print(out == bytes([7] * 64), cu.live_objects()["Buffer"])
        cu.finalize(thing, use)
        atexit.register(print, "atexit")
        """
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == ["atexit", "callback", "True 1"]


def test_daemon_threads_that_make_and_end_finalizers_at_exit(script):
    run = script(
        """
        import threading, time
        import cudago as cu
        class Thing: ...
        things = [Thing() for _ in range(200)]
        called = []
        for n, thing in enumerate(things):
            cu.finalize(thing, called.append, n)
        def work():
            while True:
                thing = Thing()
                f = cu.finalize(thing, int)
                f.atexit = False
                f.peek(), f()
                cu.finalize(thing, int).detach()
                cu.finalize(thing, int).atexit = False
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


FORKED = """
thing, other = Thing(), Thing()
f, g = cu.finalize(thing, say, "f"), cu.finalize(other, say, "g")
g.atexit = False
dead = cu.finalize(thing, say)
dead.detach()
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    say("child", os.waitstatus_to_exitcode(status))
    f()
    sys.exit()
say(f.alive, g.alive, dead.alive, f.atexit, g.atexit, dead.atexit)
say(f.peek()[2], dead.peek(), "Thing" in repr(f), "dead" in repr(dead))
def change():
    f.atexit = False
for use in (f, f.detach, change, g.detach, dead, lambda: cu.finalize(thing, say)):
    try:
        use()
    except RuntimeError as e:
        assert "spawn" in str(e), e
    else:
        say("no error", use)
del other
gc.collect()
say(g.alive, g.peek(), f.alive)
del f, g, thing
gc.collect()
LEAVE
"""


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit()"])
@pytest.mark.parametrize("opened", ["", "cu.Device().create_stream().sync()"])
def test_finalizers_in_a_forked_child_do_not_enter_go(script, opened, leave):
    text = START + opened + "\n" + FORKED.replace("LEAVE", leave)
    run = script.run([*script.command(text), "cudago"])
    assert run.stdout.splitlines() == [
        "True True False True False False",
        "('f',) None True True",
        "True None True",
        "child 0",
        "f",
    ]
    assert (run.returncode, run.stderr) == (0, "")
