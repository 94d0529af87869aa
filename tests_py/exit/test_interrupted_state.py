# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at any moment of a call leaves things as they were, or as they should become."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

BEGIN = """
import os, random, signal, tempfile, time
from pathlib import Path
import numpy as np
import cudago as cu

device = cu.Device()
stream = device.create_stream()
config = cu.LaunchConfig(1, 4)
code = cu.Program('extern "C" __global__ void f(int* x) { x[threadIdx.x] += 1; }').compile()
a, b, x, y = (cu.zeros(4, "i4", stream=stream) for _ in range(4))
stream.sync()
chance = random.Random(5)
armed = False

def stop(*_):
    if armed:
        raise KeyboardInterrupt

def interrupted(do, check, times=200):
    '''Do it often, with a signal at any moment of it or two, and check what is left each time.'''
    global armed
    signal.signal(signal.SIGALRM, stop)
    took = 1
    for _ in range(5):
        begin = time.perf_counter()
        do()
        took = min(took, time.perf_counter() - begin)
    heard = 0
    for n in range(times):
        after, again = (max(1e-6, 1.2 * took * chance.random()) for _ in range(2))
        armed = True
        try:
            signal.setitimer(signal.ITIMER_REAL, after, again if n % 2 else 0)
            do()
        except KeyboardInterrupt as e:
            kept = e  # with its traceback, as an interactive session keeps it
            heard += 1
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        check()
    assert heard > times / 10, heard
"""


@pytest.fixture
def stays(script, driver):
    def stays(program):
        run = script(BEGIN + program)
        assert (run.returncode, run.stdout) == (0, ""), run.stderr
        return run.stderr

    return stays


def test_saved_files(stays):
    stderr = stays("""
graph = cu.Graph(device)
graph.memset(x, 7).memcpy(x, np.arange(4, dtype="i4")).launch(config, code["f"], x)
profile = graph.instantiate().profile(stream)
folder = Path(tempfile.mkdtemp())
path = folder / "file"
for write in lambda to: graph.save(to, contents=True), code.save, profile.to_chrome_trace:
    write(path)
    whole = path.read_bytes()
    def check():
        assert path.read_bytes() in (b"old", whole)
        assert [p.name for p in folder.iterdir()] == ["file"]
        path.write_bytes(b"old")
    interrupted(lambda: write(path), check)
path.unlink()
folder.rmdir()
""")
    # A signal that Python hears in a finalizer is told of there.
    assert "OSError" not in stderr


def test_bind_of_several_nodes(stays):
    stays("""
graph = cu.Graph(device)
s = cu.slot("s", a)
graph.memcpy(x, s, name="c").memcpy(y, s, name="d").launch(config, code["f"], s, name="k")
graph["k"].memset(s, 0, name="m")
step = graph.instantiate()

def holds():
    c, d, k, m = (step[n].params for n in "cdkm")
    return {id(c.src), id(d.src), id(k.args[0]), id(m.dst)}

def check():
    assert len(holds()) == 1
    step.bind(s=a)
    assert holds() == {id(a)}

interrupted(lambda: step.bind(s=b), check)
""")


def test_with_blocks(stays):
    """Among them each that changes something for the process, the device or the stream."""
    stays("""
from cudago._graph.turns import has_turn
from cudago._memory import hooks

graph = cu.Graph(device)
graph.memset(x, 1, name="m")
step = graph.instantiate()

def disabled():
    with step["m"].disabled():
        pass

def hooked():
    with cu.memory_hooks(on_allocate=print):
        pass

def checked():
    with cu.sim.check("races"):
        pass

def captured():
    with graph.clone().capture(stream):
        x.fill(1, stream=stream)

@cu.graph
def function(s, to):
    to.fill(1, stream=s)

def called():
    function(stream, x)
    function.clear()

def check():
    assert step["m"].enabled
    assert not hooks._installed
    assert cu._core._set_checks("") == ""
    assert not stream.is_capturing
    assert not has_turn()

for do in disabled, hooked, checked, captured, called:
    interrupted(do, check)
""")


def test_captures_into_a_graph(stays):
    """Each operation becomes a node of the graph, and is in the list; or none is."""
    stays("""
def captured():
    global graph, nodes
    graph, nodes = cu.Graph(device), []
    graph.memset(x, 1)
    with graph.capture(stream) as nodes:
        y.fill(1, stream=stream)
        a.copy_from(b, stream=stream)
        cu.launch(stream, config, code["f"], x)

def check():
    names = [node.name for node in graph.nodes]
    assert len(names) in (0, 1, 4), names
    listed = [node.name for node in nodes]
    assert listed == names[1:], (listed, names)

interrupted(captured, check, 400)
""")


def test_turns_on_many_streams(stays):
    """No lock is left taken, and none is kept."""
    stays("""
import threading
from cudago._graph import turns

streams = [device.create_stream() for _ in range(300)]

@cu.graph
def function(s, to):
    to.fill(1, stream=s)

for s in streams:
    function(s, to=x)
s.sync()
assert len(turns._locks) < 3, len(turns._locks)
calls = 0

def call():
    global calls
    calls += 1
    function(streams[calls % 300], to=x)

def check():
    for _ in range(2):
        thread = threading.Thread(target=function, args=(streams[calls % 300],), kwargs={"to": x})
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
    assert len(turns._locks) < 4

interrupted(call, check, 200)
""")


def test_locks(stays):
    """None is left taken."""
    stays("""
import itertools
from cudago import compile_cache, dlpack
from cudago._graph import turns
from cudago._kernel import traced
from cudago._memory import device as devices

timeline = cu.debug.MemoryTimeline(interval_ms=None)
timeline._began = time.monotonic()
trace = dlpack.trace()
kernel = code["f"]

@cu.graph
def function(s, to):
    to.fill(1, stream=s)

arguments = itertools.cycle((x, y))
graph = cu.Graph(device)
graph.memset(x, 1, name="m")
step = graph.instantiate()

def fresh():
    device._default_stream = None
    device.default_stream

def sampled():
    timeline.sample()
    timeline.samples, timeline.peaks

def locks():
    yield from (compile_cache._lock, trace._lock, timeline._lock, traced._lock, devices._first)
    yield from (entry.lock for entry in function._entries.values())
    yield from (lock for lock in [of() for of in turns._locks.values()] if lock is not None)

def check():
    for lock in locks():
        # Of an RLock, whether this thread has it: here it is the only one that was interrupted.
        is_taken = lock._is_owned() if hasattr(lock, "_is_owned") else lock.locked()
        assert not is_taken, lock

for do in (
    lambda: compile_cache.configure("memory"),
    trace.stop,
    sampled,
    fresh,
    lambda: traced._code_name(kernel),
    lambda: function(stream, x),
    lambda: function(stream, next(arguments)),
    lambda: step["m"].update(value=2),
    lambda: graph["m"].update(value=3),
):
    interrupted(do, check, 50)
""")


@pytest.mark.parametrize("make", ["watch_pointers()", "record_origins(False)"])
def test_switches(stays, make):
    """Also before the block has begun, when the change is made already."""
    stays(f"""
def switched():
    for _ in range(20):
        with cu.debug.{make}:
            pass

def check():
    assert repr(cu.debug.watch_pointers.__new__(cu.debug.watch_pointers)).endswith("off>")
    assert repr(cu.debug.record_origins.__new__(cu.debug.record_origins)).endswith("on>")

interrupted(switched, check, times=600)
""")


def test_switches_that_are_called(stays):
    stays("""
def call():
    cu.debug.watch_pointers()
    kept = cu.debug.record_origins(False)
    try:
        1 / 0
    except ZeroDivisionError:
        del kept

call()
assert cu._core._watcher() is not None
assert not cu._core._record_sites(None)
for wrong in lambda: cu.debug.record_origins(1, 2), lambda: cu.debug.watch_pointers(of=1):
    try:
        wrong()
    except TypeError as e:
        assert str(e).startswith(("record_origins() takes", "watch_pointers() got")), e
""")


def test_memory_that_is_accounted_for(stays):
    """Nothing is lost of an arena, and nothing is wrong in what a resource counts."""
    stays("""
import gc
tracking = cu.TrackingMemoryResource(device.memory_resource)
arena = cu.ArenaMemoryResource(tracking, 1 << 16)
resource = cu.TrackingMemoryResource(arena)

def do():
    for _ in range(10):
        resource.allocate(64, stream=stream).close()
        device.graph_memory.statistics

interrupted(do, lambda: None, 500)
kept = None
gc.collect()
stream.sync()
cu.testing.settle()
assert resource.statistics.used == resource.statistics.count == 0, resource.statistics
assert resource.allocations == ()
assert arena.statistics.used == 0, arena.statistics
arena.allocate(1 << 16, stream=stream).close()
arena.close()
stream.sync()
cu.testing.settle()
assert tracking.statistics.used == 0
""")


def test_memory_that_is_accounted_for_at_each_line(script, driver):
    """An exception at the n-th line of the package's Python, as Ctrl-C can raise it."""
    run = script("""
import gc, os, sys
import cudago as cu

device = cu.Device()
stream = device.create_stream()
package = os.path.dirname(cu.__file__)

def interrupted(at):
    lines = 0
    def trace(frame, event, arg):
        nonlocal lines
        if not frame.f_code.co_filename.startswith(package):
            return None
        lines += event in ("line", "call")
        if lines == at:
            raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        resource.allocate(64, stream=stream).close()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return lines >= at

def used():
    gc.collect()
    stream.sync()
    cu.testing.settle()
    return resource.statistics.used, len(getattr(resource, "allocations", ()))

upstream = device.memory_resource
for resource in cu.ArenaMemoryResource(upstream, 1 << 16), cu.TrackingMemoryResource(upstream):
    resource.allocate(64, stream=stream).close()
    at = 1
    while interrupted(at):
        assert used() == (0, 0), (resource, at)
        at += 1
    assert at > 5
""")
    assert (run.returncode, run.stderr) == (0, "")
