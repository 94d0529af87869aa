# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""While an executable's launches are kept out, and while others wait for a call, nothing is raised.

Raising runs Python now and then, such as a finalizer, and that may use the very same executable.
"""

from __future__ import annotations

import threading
from itertools import starmap

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

# Each refusal comes with a collection in another place, and the finalizer uses the executable.
SCENE = """
import faulthandler, gc, sys
import numpy as np
import cudago as cu
from cudago import _core

faulthandler.dump_traceback_later(30, exit=True)
CODE = 'extern "C" __global__ void add(int* p, int n) {{ p[threadIdx.x] += n; }}'
CONFIG = cu.LaunchConfig(1, 64)
device = cu.Device()
stream = device.create_stream()
add = cu.Program(CODE, "c++").compile()["add"]
x = cu.zeros((64,), "i4", stream=stream)
memory = cu.PinnedMemoryResource().allocate(64)
memoryview(memory)[:] = bytes(64)
graph = cu.Graph()
node = graph.launch(CONFIG, add, x, 1, name="add")
node.write_value(memory[:4], 1, name="write")
{prepare}
step = graph.instantiate()
ran, threshold = 0, 0

class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        global ran
        if threshold:
            {use}
            ran += 1
            Cycle()  # for the next collection

gc.freeze()
for i in range(200):
    gc.collect()  # counts from 0
    Cycle()
    threshold = 1 + i % 8
    gc.set_threshold(threshold)
    before = [[] for _ in range(i // 8 % 10)]
    try:
        try:
            raise KeyError  # so that Python 3.11 too makes the next exception at once
        except KeyError:
            {refused}
    except ({errors}):
        pass
    else:
        raise AssertionError("not refused")
    finally:
        gc.set_threshold(0)
        threshold = 0
assert ran > 100, ran
{end}
print("end")
"""
LAUNCH = "step.launch(stream)"
END = "assert x.numpy(stream=stream)[0] == ran"
PINNED = 'page = cu.pin(np.zeros(1024, "i4"), read_only=True)'
SEMAPHORE = """
exported = cu.sim.create_semaphore()
semaphore, gone = (cu.ExternalSemaphore.from_fd(device, exported) for _ in range(2))
graph.signal(semaphore, 1, name="signal")
"""
# prepare, use, refused, errors, end
REFUSED = {
    "a kernel, by the driver": (
        "",
        LAUNCH,
        'step["add"].update(cu.LaunchConfig(1, 64, priority=-1), add, x, 1)',
        "ValueError",
        END,
    ),
    "a kernel that stores through read-only memory": (
        PINNED,
        LAUNCH,
        'step["add"].update(CONFIG, add, page, 1)',
        "TypeError",
        END,
    ),
    "an argument that is read-only memory": (
        PINNED,
        LAUNCH,
        'step["add"].update({0: page})',
        "TypeError",
        END,
    ),
    "memory of another size": (
        "",
        LAUNCH,
        'step["write"].update(dst=memory[:12])',
        "ValueError",
        END,
    ),
    "a value that does not fit": (
        "",
        LAUNCH,
        'step["write"].update(value=1 << 32)',
        "OverflowError",
        END,
    ),
    "a semaphore that is closed": (
        SEMAPHORE + "gone.close()",
        LAUNCH,
        'step["signal"].update(semaphore=gone)',
        "cu.ClosedError",
        END,
    ),
    "a copy, by the driver": (
        'host = cu.pin(np.zeros(64, "i4")); node.memcpy(host, x, name="copy")',
        LAUNCH,
        '_core._fail_next("cuGraphExecMemcpyNodeSetParams", 1, 999); step["copy"].update(dst=host)',
        "cu.CUDAError",
        END,
    ),
    "enabling, by the driver": (
        "",
        LAUNCH,
        '_core._fail_next("cuGraphNodeSetEnabled", 1, 999); step["add"].enabled = False',
        "cu.CUDAError",
        END,
    ),
    "a launch that had released the GIL": (
        'foreign = cu.Stream.from_handle(stream.handle, device=device, owner=stream)',
        'step["add"].update(CONFIG, add, x, 2)',
        '_core._fail_next("cuGraphLaunch", 1, 999); step.launch(foreign)',
        "cu.CUDAError",
        "",
    ),
    "an upload": (
        "",
        'step["add"].update(CONFIG, add, x, 2)',
        '_core._fail_next("cuGraphUpload", 1, 999); step.upload(stream)',
        "cu.CUDAError",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_raised_once_others_may_go_on(name, driver, script):
    prepare, use, refused, errors, end = REFUSED[name]
    faults = "_fail_next" in refused
    if driver != "sim" and (faults or "cu.sim" in prepare):
        pytest.skip("only the simulated driver fails on demand, and imports semaphores here")
    run = script(
        SCENE.format(prepare=prepare, use=use, refused=refused, errors=errors, end=end),
        **({"CUDAGO_SIM": "faults=0"} if faults else {}),
    )
    assert run.stderr == ""
    assert (run.returncode, run.stdout) == (0, "end\n")


@pytest.mark.parametrize("use", ["launch", "upload"])
def test_a_launch_by_the_thread_that_updates_is_an_error(use, graph, a, kernels, stream):
    """Nothing of ours does that: it would wait for itself for good."""
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="add")
    with graph.instantiate() as step:
        tried = []

        def inside() -> None:
            with pytest.raises(RuntimeError, match="this thread is updating the executable"):
                getattr(step, use)(stream)
            step["add"].update({1: 5})
            tried.append(use)

        step._call_inside(inside)
        step.launch(stream)
        assert tried == [use]
        with pytest.raises(ZeroDivisionError):
            step._call_inside(lambda: 1 // 0)
        step._call_inside(step.close)
    assert numbers(a, stream) == 5


def test_others_run_while_a_node_waits_for_an_instantiation(device):
    """Of the graph whose event it is to have: a callback may be what that waits for."""
    asked, heard, done = threading.Event(), [], []

    def hear() -> None:
        asked.wait()
        heard.append(True)

    with cu.Graph(device) as of, cu.Graph(device) as graph, device.create_event() as event:
        node = last = of.record(event)
        for _ in range(20_000):
            last = of.join(last)
        instantiating = threading.Event()

        def instantiate() -> None:
            instantiating.set()
            of.instantiate().close()
            done.append(True)

        threads = [threading.Thread(target=run) for run in (hear, instantiate)]
        for thread in threads:
            thread.start()
        instantiating.wait()
        add = starmap(graph._add_event, [((), event, True, None, of, node._id)])
        assert not done
        asked.set()
        _, *others = [*add, *heard]  # no other thread runs between the two
        for thread in threads:
            thread.join()
    assert others == [True]


SIGNALS = """
import faulthandler, os, signal, sys, threading, time
import cudago as cu

faulthandler.dump_traceback_later(30, exit=True)
CODE = 'extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }'
CONFIG = cu.LaunchConfig(1, 64)
device = cu.Device()
busy, other = device.create_stream(), device.create_stream()
add = cu.Program(CODE, "c++").compile()["add"]
x = cu.zeros((64,), "i4", stream=busy)
running, go_on, handled = threading.Event(), threading.Event(), []
held = cu.Graph()
held.callback(lambda: (running.set(), go_on.wait()))
hold = held.instantiate()
graph = cu.Graph()
graph.launch(CONFIG, add, x, 0, name="add")
step = graph.instantiate()

def handler(*_):
    go_on.set()
    HANDLER
    handled.append(1)

signal.signal(signal.SIGUSR1, handler)
hold.launch(busy)
running.wait()
launched = 0

def fill():
    global launched
    for launched in range(1500):
        step.launch(busy)

def update():
    step["add"].update({1: 1})

def later():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGUSR1)

full = threading.Thread(target=fill)
full.start()
before = -1
while before != launched:  # until the queue is full, with a launch in the driver
    before = launched
    time.sleep(0.2)
updating = threading.Thread(target=update)
sending = threading.Thread(target=later)
sending.start()
WAIT
for thread in (full, updating, sending):
    if thread.ident:
        thread.join()
device.sync()
assert handled == [1]
print("end")
"""
HANDLERS = {
    "of an update that waits, launches": ("step.launch(other)", "update()"),
    "of an update that waits, updates": ("update()", "update()"),
    "of an update that waits, closes": ("step.close()", "update()"),
    "of a launch that waits, updates": (
        "updating.join(); update()",
        "updating.start(); time.sleep(0.1); step.launch(other)",
    ),
    "of a launch that waits, launches": (
        "updating.join(); step.launch(other)",
        "updating.start(); time.sleep(0.1); step.launch(other)",
    ),
}


@pytest.mark.parametrize("name", HANDLERS)
def test_signal_handlers_run_at_the_gate(name, driver, script):
    """They run on the thread that waits there, which must not wait for itself."""
    handles, waits = HANDLERS[name]
    run = script(
        SIGNALS.replace("HANDLER", handles).replace("WAIT", waits),
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    errors = "ClosedError" if "close" in handles else ""
    if errors:
        assert errors in run.stderr
        assert (run.returncode, run.stdout) == (1, "")
    else:
        assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


TURN = """
import faulthandler, gc, sys, threading, time
import cudago as cu
from cudago import _core

faulthandler.dump_traceback_later(30, exit=True)
CODE = 'extern "C" __global__ void nothing() {}'
device = cu.Device()
busy, stream = device.create_stream(), device.create_stream()
nothing = cu.Program(CODE, "c++").compile()["nothing"]
running, go_on = threading.Event(), threading.Event()
held = cu.Graph()
held.callback(lambda: (running.set(), go_on.wait()))
hold = held.instantiate()
graph = cu.Graph()
graph.launch(cu.LaunchConfig(1, 1), nothing)
step = graph.instantiate()
event = device.create_event()
hold.launch(busy)
running.wait()
launched = 0

def fill():
    global launched
    for launched in range(1500):
        step.launch(busy)

full = threading.Thread(target=fill)
full.start()
before = -1
while before != launched:  # until the queue is full, with a launch in the driver
    before = launched
    time.sleep(0.2)

threshold, ran, outcome = 0, 0, []

class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        global ran
        if not threshold:
            return
        Cycle()
        if threading.current_thread() is beginning:
            event.is_done  # as all calls, it would wait for the turn to end
            ran += 1

def capture():
    try:
        with stream.capture():
            pass
    except Exception as e:
        outcome.append(type(e).__name__)

gc.freeze()
Cycle()
_core._fail_next("cuStreamBeginCapture", 1, 999)
beginning = threading.Thread(target=capture)
beginning.start()
time.sleep(0.2)  # it waits for its turn
threshold = 1
gc.set_threshold(1)
go_on.set()
beginning.join()
threshold = 0
gc.set_threshold(0)
full.join()
device.sync()
print(outcome, ran > 0)
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_capture_is_refused_once_others_may_go_on(driver, script):
    """The thread that begins it has a turn by then, for which all calls wait."""
    run = script(TURN, CUDAGO_SIM="hostile=1,faults=0")
    assert (run.returncode, run.stdout) == (0, "['CUDAError'] True\n"), run.stderr
