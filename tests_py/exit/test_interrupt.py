# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a wait for the device."""

from __future__ import annotations

import signal
import subprocess

import pytest

WAIT = """
import signal
import threading
import cudago as cu
signal.signal(signal.SIGINT, signal.default_int_handler) # a job in the background ignores it
d = cu.Device()
s = d.create_stream()
go_on, reached = threading.Event(), threading.Event()
graph = cu.Graph()
graph.callback(lambda: (reached.set(), go_on.wait()))
step = graph.instantiate()
step.launch(s)
event = s.record()
reached.wait()
buffer = cu.PinnedMemoryResource().allocate(8)
for attempt in range(2):
    try:
        print("waiting", flush=True)
        WAITING
    except KeyboardInterrupt:
        print("interrupted", flush=True)
go_on.set()
s.sync()
print("ended", flush=True)
"""


@pytest.mark.parametrize("wait", ["s.sync()", "event.sync()", "d.sync()"])
def test_interrupted_waits(wait, script, driver):
    process = subprocess.Popen(
        script.command(WAIT.replace("WAITING", wait)),
        env=script.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            for _ in range(2):
                assert process.stdout.readline() == "waiting\n"
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline() == "interrupted\n"
            # Not communicate(), which does not see what readline() has read ahead.
            out, err = process.stdout.read(), process.stderr.read()
            process.wait(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "ended\n", "")


def test_an_interrupt_that_nobody_catches_ends_the_process(script, driver):
    process = subprocess.Popen(
        script.command(WAIT.replace("WAITING", "s.sync()").replace("KeyboardInterrupt", "OSError")),
        env=script.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")


HANDLER = """
import signal
def handler(number, frame):
    raise LookupError
signal.signal(signal.SIGALRM, handler)
"""


def test_a_handler_that_raises_ends_the_wait(script, driver):
    # The alarm is set where LookupError is caught: to open a device can take longer than it.
    waiting = "signal.setitimer(signal.ITIMER_REAL, 0.3); s.sync()"
    source = WAIT.replace("WAITING", waiting).replace("KeyboardInterrupt", "LookupError")
    run = script(HANDLER + source)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == ["waiting", "interrupted", "waiting", "interrupted", "ended"]


SPIN = """
import signal
import time
import numpy as np
import cudago as cu
signal.signal(signal.SIGINT, signal.default_int_handler) # a job in the background ignores it
spin = cu.ObjectCode.from_ptx('''.version 7.8
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 flag)
{
    .reg .b64 %flag;
    .reg .b32 %v;
    .reg .pred %again;
    ld.param.u64 %flag, [flag];
    st.volatile.global.u32 [%flag+4], 1;
again:
    ld.volatile.global.u32 %v, [%flag];
    setp.eq.u32 %again, %v, 0;
    @%again bra again;
    ret;
}
''')["spin"]
d = cu.Device()
s = d.create_stream()
flag = cu.PinnedMemoryResource().allocate(8)
words = np.frombuffer(flag, "u4")
words[:] = 0
large, array = d.allocate(2**20, stream=s), np.ones(2**18, "u4")
few = cu.zeros(4, "u4", stream=s)
cu.launch(s, cu.LaunchConfig(1, 32), spin, flag)
while not words[1]:
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    "wait",
    [
        "s.sync()",
        "s.record().sync()",
        "d.sync()",
        "few.numpy(stream=s)",
        "large.copy_to(array, stream=s)",
        "large.copy_from(array, stream=s)",
    ],
)
@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_an_interrupt_ends_the_kernel_too(wait, script, driver):
    run = script(
        SPIN
        + f"""
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    {wait}
except KeyboardInterrupt as e:
    print(e.__notes__)
s.sync()
words[0] = 1
cu.launch(s, cu.LaunchConfig(1, 32), spin, flag)
print(few.numpy(stream=s), cu.sim.reports())
"""
    )
    place = "canceled in kernel spin, block (0,0,0), thread (0,0,0), PTX line 14: bra again"
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [repr([place]), "[0 0 0 0] []"]


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_another_handler_leaves_the_kernel_running(script, driver):
    run = script(
        HANDLER
        + SPIN
        + """
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    s.sync()
except LookupError as e:
    print(s.is_done, hasattr(e, "__notes__"))
cu.sim.cancel()
try:
    s.sync()
except cu.CheckError as e:
    print("canceled in kernel spin" in str(e))
"""
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == ["False False", "True"]


@pytest.mark.parametrize("closed", ["large", "s"])
@pytest.mark.parametrize("copy", ["copy_to", "copy_from"])
@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_what_is_closed_during_the_wait_of_a_copy(closed, copy, script, driver):
    """Where the wait ends, the copy is refused: nothing touches what another thread gave back."""
    run = script(
        SPIN
        + f"""
import threading
def copy():
    try:
        large.{copy}(array, stream=s)
    except cu.ClosedError as e:
        print(e)
thread = threading.Thread(target=copy)
thread.start()
time.sleep(0.3)
{closed}.close()
words[0] = 1
thread.join()
d.sync()
print(array[0], cu.sim.reports())
"""
    )
    assert (run.returncode, run.stderr) == (0, "")
    name = {"large": "buffer", "s": "stream"}[closed]
    assert run.stdout.splitlines() == [f"{name} is closed", "1 []"]


IMPORT = """
import sys
import cudago as cu

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

def dtype():
    try:
        return tensor.dtype
    except KeyboardInterrupt:
        return "interrupted"

stream = cu.Device().create_stream()
tensor = cu.Device().allocate(8, stream=stream).view("f4")
sys.meta_path.insert(0, Interrupting())
assert "numpy" not in sys.modules
print(dtype(), dtype())
"""


def test_an_interrupt_while_numpy_is_imported_for_a_type(script, driver):
    """It comes where the type was asked for."""
    r = script(IMPORT)
    assert (r.returncode, r.stdout, r.stderr) == (0, "interrupted float32\n", "")
