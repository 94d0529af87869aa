# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Finalizers that wait for a stream, in processes that end or fork."""

from __future__ import annotations

import pytest

START = """
import os, sys, threading, time
import cudago as cu
d = cu.Device()
s = d.create_stream()

class Thing: ...

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def work(call, stream=s):
    graph = cu.Graph()
    graph.callback(call)
    graph.instantiate().launch(stream)

go, reached = threading.Event(), threading.Event()
"""

SCRIPTS = {
    "in turn, newest first": (
        """
        things = [Thing() for _ in range(3)]
        cu.finalize(things[0], say, "oldest")
        cu.finalize(things[1], say, "after work", stream=s)
        cu.finalize(things[2], go.set)
        work(lambda: (reached.set(), go.wait(), say("work")))
        """,
        ["work", "after work", "oldest"],
    ),
    "an object that went before": (
        """
        thing, other = Thing(), Thing()
        cu.finalize(other, say, "older")
        f = cu.finalize(thing, say, "after work", stream=s)
        work(lambda: (reached.set(), go.wait(), say("work")))
        reached.wait()
        del thing
        say(f.alive)
        cu.finalize(other, go.set)
        """,
        ["True", "work", "after work", "older"],
    ),
    "one that must not run at exit": (
        """
        thing = Thing()
        cu.finalize(thing, say, "never", stream=s).atexit = False
        kept = [thing]
        """,
        [],
    ),
    "an object that goes after exit": (
        """
        import builtins
        builtins.kept = thing = Thing()
        cu.finalize(thing, os.write, 1, b"never", stream=s).atexit = False
        del thing
        """,
        [],
    ),
    "in a stream that was closed": (
        """
        thing = Thing()
        cu.finalize(thing, say, "after work", stream=s)
        work(lambda: say("work"))
        s.close()
        """,
        ["work", "after work"],
    ),
    "called by another thread meanwhile": (
        """
        thing = Thing()
        f = cu.finalize(thing, say, "once", stream=s)
        work(lambda: (f(), say("work")))
        """,
        ["once", "work"],
    ),
    "work that never ends": (
        """
        sys.excepthook = lambda t, e, trace: say(t.__name__, "not end in time" in str(e))
        things = [Thing() for _ in range(3)]
        other = d.create_stream()
        cu.finalize(things[0], say, "oldest")
        cu.finalize(things[0], say, "idle", stream=other)
        cu.finalize(things[1], say, "never", stream=s)
        f = cu.finalize(things[2], say, "nor this", stream=s)
        work(go.wait)
        del things[2]
        """,
        ["TimeoutError True", "TimeoutError True", "idle", "oldest"],
    ),
    "while a capture is open": (
        """
        sys.excepthook = lambda t, e, trace: say(t.__name__)
        thing = Thing()
        cu.finalize(thing, say, "never", stream=s)
        capture = s.capture()
        capture.__enter__()
        """,
        ["TimeoutError"],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_at_exit(name, script, driver):
    source, lines = SCRIPTS[name]
    run = script(START + script.dedent(source))
    assert run.stdout.splitlines() == lines
    assert (run.returncode, run.stderr) == (0, "")


def test_a_forked_child(script, driver):
    run = script(
        START
        + script.dedent("""
        thing = Thing()
        f = cu.finalize(thing, say, "in the parent", stream=s)
        child = os.fork()
        if not child:
            del thing
            say(f.alive, f.peek())
            sys.exit()
        _, status = os.waitpid(child, 0)
        say("child", os.waitstatus_to_exitcode(status))
        """)
    )
    assert run.stdout.splitlines() == ["True None", "child 0", "in the parent"]
    assert (run.returncode, run.stderr) == (0, "")


def test_at_the_next_opportunity_of_the_main_thread(script, driver):
    """No call of cudago is needed for it."""
    run = script(
        START
        + script.dedent("""
        thing = Thing()
        called = []
        cu.finalize(thing, lambda: called.append(threading.current_thread()), stream=s)
        del thing
        while not called:
            time.sleep(0.001)
        say(called == [threading.main_thread()])
        """)
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "True\n", "")
