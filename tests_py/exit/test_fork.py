# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A forked child that uses cudago gets an error and never hangs. A spawned one can use it."""

from __future__ import annotations

from pathlib import Path

import pytest

FORK = """
import os, sys, traceback
import numpy as np
import cudago as cu
OPEN

sys.stdout.flush()
child = os.fork()
if child == 0:
    code = 0
    try:
CHILD
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    if EXIT:
        os._exit(code)
    sys.exit(code)
_, status = os.waitpid(child, 0)
print("child", os.waitstatus_to_exitcode(status))
AFTER
"""

OPENED = """
d = cu.Device()
s = d.create_stream()
buffer = d.allocate(64, stream=s)
graph = cu.Graph()
graph.memcpy(buffer, bytes(64)).callback(lambda: None)
step = graph.instantiate()
step.launch(s)
event = s.record()
class Thing: ...
thing = Thing()
done = cu.finalize(thing, print, "finalized")
s.sync()
"""

USES = """
for use in (
    lambda: cu.Device(1), lambda: d.name, lambda: d.create_stream(), s.sync,
    lambda: s.is_done, s.record, event.sync, lambda: d.allocate(8, stream=s),
    lambda: buffer.fill(0, stream=s), lambda: buffer[1:2], lambda: cu.Graph(),
    lambda: graph.nodes, graph.instantiate, lambda: step.launch(s), lambda: step["memcpy_0"],
    cu.live_objects, cu.driver_name, lambda: cu.Program("").compile(), cu.Device.all,
    lambda: cu.finalize(thing, print), lambda: cu.from_dlpack(np.zeros(4)),
):
    try:
        use()
    except RuntimeError as e:
        assert "spawn" in str(e), e
    else:
        raise AssertionError(use)
"""


def fork(script, opened: str, child: str, after: str = "", leave: bool = False) -> str:
    """Return a script whose forked child runs some code."""
    body = "\n".join("        " + line for line in child.strip().splitlines())
    text = FORK.replace("OPEN", opened).replace("CHILD", body)
    return script(text.replace("AFTER", after).replace("EXIT", str(leave)))


@pytest.mark.parametrize("leave", [True, False], ids=["_exit", "exit"])
def test_each_use_in_the_child_is_an_error(script, driver, leave):
    run = fork(script, OPENED, USES, "step.launch(s); s.sync()", leave)
    assert run.stderr == ""
    assert run.stdout.startswith("child 0\n")
    assert run.returncode == 0


def test_the_child_ends_with_everything_open(script, driver):
    run = fork(script, OPENED, "pass", "step.launch(s); s.sync()")
    assert (run.returncode, run.stderr) == (0, "")
    assert "child 0" in run.stdout


def test_the_child_drops_everything(script, driver):
    child = """
import gc
del buffer, graph, step, event, s, d, thing
gc.collect()
"""
    run = fork(script, OPENED, child, "step.launch(s); s.sync()")
    assert run.stderr == ""
    assert "child 0" in run.stdout


def test_the_parent_goes_on(script, driver):
    after = """
out = bytearray(64)
buffer.fill(5, stream=s)
buffer.copy_to(out, stream=s)
s.sync()
print(out == bytearray([5] * 64))
"""
    run = fork(script, OPENED, "pass", after)
    assert (run.returncode, run.stderr) == (0, "")
    assert "child 0\nTrue\n" in run.stdout


def test_a_fork_after_import_alone(script):
    child = """
try:
    cu.Device()
except RuntimeError as e:
    assert "spawn" in str(e), e
else:
    raise AssertionError
"""
    run = fork(script, "", child, leave=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "child 0\n", "")


POOL = """
import multiprocessing
import cudago as cu

def work(number):
    with cu.Device().create_stream() as s, cu.Device().allocate(4, stream=s) as buffer:
        out = bytearray(4)
        buffer.fill(number, stream=s)
        buffer.copy_to(out, stream=s)
        s.sync()
        return out[0]

if __name__ == "__main__":
    cu.Device().create_stream().sync()
    with multiprocessing.get_context("METHOD").Pool(2) as pool:
        try:
            print(pool.map(work, range(4)))
        except RuntimeError as e:
            print(e)
"""


def test_a_pool_of_spawned_processes_works(script, driver):
    run = script(POOL.replace("METHOD", "spawn"))
    assert (run.returncode, run.stdout, run.stderr) == (0, "[0, 1, 2, 3]\n", "")


def test_a_pool_of_forked_processes_fails_cleanly(script, driver):
    run = script(POOL.replace("METHOD", "fork"))
    assert (run.returncode, run.stderr) == (0, "")
    assert "spawn" in run.stdout


# Registered before cudago is imported, so it runs before every hook that the import could register.
EARLY = """
import os
import threading

held = {}

def in_child():
    held.clear()
    held.update(uses=[try_(use) for use in uses])

os.register_at_fork(after_in_child=in_child)

import cudago as cu

def try_(use):
    try:
        use()
    except RuntimeError as e:
        return "spawn" in str(e)

s = cu.Device().create_stream()
held.update(buffer=s.device.allocate(64, stream=s), event=s.record(), graph=cu.Graph())
held["graph"].memset(held["buffer"], 0)
held["step"] = held["graph"].instantiate()
uses = [s.sync, s.record, cu.Graph, cu._gopy.api.device_count]

def holds():
    context = threading.local()  # released with the state of this thread, before any hook
    context.buffer = s.device.allocate(64, stream=s)
    ready.set()
    forked.wait()

ready, forked = threading.Event(), threading.Event()
thread = threading.Thread(target=holds)
thread.start()
ready.wait()
cu._core._watch_forks()  # a call into Go ends the child
child = os.fork()
if child == 0:
    os._exit(0 if held == {"uses": [True] * len(uses)} else 1)
forked.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_nothing_enters_go_before_the_hooks_of_python(script, driver):
    run = script(EARLY)
    assert (run.returncode, run.stdout, run.stderr) == (0, "0\n", "")


# What the hostile cases know; a call into Go ends the child.
SHOWN = """
import contextlib, os, sys
sys.path.insert(0, TESTS)
import cudago as cu
from hostile.world import MAKERS, World

world = World()
things = {}
for name in MAKERS:
    with contextlib.suppress(Exception):
        things[name] = world.get(name)
cu._core._watch_forks()
child = os.fork()
if child == 0:
    for name, thing in things.items():
        assert repr(thing), name
    shown = [repr(things[name]) for name in ("tensor", "graph", "exec", "node", "device")]
    kinds = ("Tensor", "Graph", "GraphExec", "Node", "Device")
    assert shown == [f"<cudago.{kind} of the process that has forked>" for kind in kinds], shown
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(things) > 50)
world.close()
"""


def test_everything_shows_itself_in_a_forked_child(script, driver):
    tests = str(Path(__file__).parents[1])
    run = script(f"TESTS = {tests!r}\n" + SHOWN)
    assert (run.returncode, run.stdout) == (0, "0 True\n"), run.stderr
