# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Work of other threads neither falls into a capture nor collides with its end."""

from __future__ import annotations

import pytest

START = """
import itertools, sys, threading, time
import cudago as cu
sys.setswitchinterval(1e-5)
device = cu.Device()
stream = device.create_stream()
other = device.create_stream()
elsewhere = device.create_stream()
called = device.create_stream()
over = threading.Event()
done = [0]

def beside(work):
    def loop():
        while not over.is_set():
            work()
            done[0] += 1
    return threading.Thread(target=loop)

def call():  # while there are callbacks, calls of the driver release the GIL
    called.callback(lambda: time.sleep(0.002))
    time.sleep(0.001)

def run(captures, threads):
    for thread in threads:
        thread.start()
    try:
        for n in itertools.count():
            capture()
            if n >= captures and done[0] > captures or not all(t.is_alive() for t in threads):
                break
    finally:
        over.set()
        for thread in threads:
            thread.join()
"""

# Each records an event in a stream at the moment when its capture has ended for the driver, while
# the call that ends it still runs.
RECORDS = {
    "record": "stream.record(event)",
    "launch": "cu.launch(stream, config, empty)",
    "export": "tensor.__dlpack__(stream=other.handle)",
}


@pytest.mark.parametrize("record", RECORDS)
def test_events_are_recorded_beside_the_end_of_a_capture(driver, script, record):
    run = script(
        START
        + f"""
event = device.create_event()
config = cu.LaunchConfig(grid=1, block=1, launch_completion_event=event)
empty = cu.Program('extern "C" __global__ void empty() {{}}').compile()["empty"]
tensor = cu.zeros(64, "i4", stream=stream)
stream.sync()

def capture():
    with stream.capture("relaxed") as graph:
        while not waiting[0]:  # for the end of the capture
            time.sleep(0)
        elsewhere.callback(int)  # while it is alive, the end releases the GIL
    graph.close()

waiting = [False]

def record():
    while not stream.is_capturing and not over.is_set():
        time.sleep(0)
    waiting[0] = True
    while stream.is_capturing:
        pass
    waiting[0] = False
    try:
        {RECORDS[record]}
    except (BufferError, ValueError):
        pass  # it captures again

run(200, [beside(record)])
""",
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("known", [False, True])
def test_a_stream_joins_a_capture_while_threads_allocate_in_it(driver, script, known):
    """In streams that others know, another library's thread may be stuck."""
    run = script(
        START
        + f"if {known}: stream.handle, other.handle\n"
        + """
device.allocate(256, stream=other).copy_to(bytearray(256), stream=stream)

def capture():
    try:
        with stream.capture("relaxed") as graph:
            other.wait(stream)
            stream.wait(other)
        graph.close()
    except cu.CUDAError as e:
        assert "joined" in str(e), e  # a thread has allocated after the join

def allocate():
    try:
        memory = device.allocate(256, stream=other)
        if memory.kind == "device":  # not captured
            memory.copy_to(bytearray(256), stream=elsewhere)
        memory.close()
    except (cu.ClosedError, ValueError):
        pass  # the capture has ended

run(200, [beside(call), beside(allocate), beside(allocate)])
""",
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_wait_for_an_event_that_is_captured_just_then(driver, script):
    """The wait saw it outside of captures, and its stream joins one all the same."""
    run = script(
        START
        + """
event = device.create_event()
target = device.allocate(256, stream=elsewhere)

def refusable(work):
    def safely():
        try:
            work()
        except (cu.CUDAError, ValueError):
            pass
    return safely

@refusable
def wait():
    other.wait(event)

@refusable
def allocate():
    memory = device.allocate(256, stream=other)
    if memory.kind == "device":  # not captured
        memory.copy_to(target, stream=elsewhere)
    memory.close()

@refusable
def capture():
    with stream.capture("relaxed") as graph:
        elsewhere.record(event)
        stream.record(event)
        time.sleep(5e-5)
        if other.is_capturing:
            stream.wait(other)
    graph.close()

run(150, [beside(call), *map(beside, (wait, wait, wait, allocate, allocate, allocate))])
""",
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_stream_joins_while_a_thread_is_stuck_in_another(driver, script):
    """It is stuck behind a callback that waits for the thread that joins."""
    run = script(
        START
        + """
memory = device.allocate(256, stream=elsewhere)
begun = threading.Event()
# Now: a thread that is stuck holds up what creates events.
there, back = device.create_event(), device.create_event()

def block():
    begun.set()
    over.wait()

def fill():
    elsewhere.callback(block)
    for _ in range(3000):  # more than a queue takes
        memory.fill(1, stream=elsewhere)

thread = threading.Thread(target=fill)
with stream.capture("relaxed") as graph:
    thread.start()
    begun.wait()
    time.sleep(0.3)
    stream.record(there)
    other.wait(there)
    other.record(back)
    stream.wait(back)
    over.set()
thread.join()
elsewhere.sync()
""",
        **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_an_event_that_launches_record_inside_and_outside_of_a_capture(driver, script):
    """Whichever came last, it counts as captured: a question would invalidate the capture."""
    run = script(
        START
        + """
event = device.create_event()
empty = cu.Program('extern "C" __global__ void empty() {}').compile()["empty"]
config = cu.LaunchConfig(grid=1, block=1, launch_completion_event=event)
once, launched = threading.Semaphore(0), threading.Semaphore(0)
captures = itertools.count()

def launch():
    if once.acquire(timeout=0.1):
        cu.launch(other, config, empty)
        launched.release()

def capture():
    with stream.capture("relaxed") as graph:
        once.release()
        for _ in range(37 * next(captures) % 3000):
            pass
        cu.launch(stream, config, empty)
        launched.acquire()
        try:
            event.is_done
        except ValueError:
            pass  # it is captured
    graph.close()

run(600, [beside(call), beside(launch)])
""",
        **({"CUDAGO_SIM": "hostile=1,cc=9.0"} if driver == "sim" else {}),
    )
    assert (run.returncode, run.stderr) == (0, "")
