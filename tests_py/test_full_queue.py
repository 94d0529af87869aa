# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""While a thread is stuck in a graph launch behind a Python callback, no call keeps the GIL.

NVIDIA's driver makes many calls wait for that thread, and so does the simulated one where it is
hostile; see launchqueue.go there. The callback needs the GIL to let them go on.
"""

import pytest

SCENE = """
import faulthandler, gc, sys, threading, time
import numpy as np
import cudago as cu

faulthandler.dump_traceback_later(30, exit=True)
device = cu.Device()
one = cu.LaunchConfig(grid=1, block=1)
code = cu.Program('extern "C" __global__ void nothing(int* p) {}').compile()
nothing = code["nothing"]
busy, other, third, capturing = (device.create_stream() for _ in range(4))
memory, shared = (device.allocate(256, stream=other) for _ in range(2))
foreign = cu.Stream.from_handle(third.handle, device=device, owner=third)
event = device.create_event()
start, end = (device.create_event(timing_enabled=True) for _ in range(2))
other.record(start), other.record(end)
running, go_on = threading.Event(), threading.Event()

with cu.Graph(device) as graph:
    graph.callback(lambda: (running.set(), go_on.wait()))
    waits = graph.instantiate()
graph = cu.Graph(device)
graph.callback(lambda: None, name="done")
small = graph.instantiate()

waits.launch(busy)
running.wait()
for stream in (busy, other, third, foreign):
    cu.launch(stream, one, nothing, memory)
    cu.launch(stream, one, nothing, shared)
captured = None
if {capture}:  # the reaper does not record while one is open
    captured = capturing.capture(mode="relaxed")
    captured.__enter__()

launched = 0
def fill():
    global launched
    for launched in range(1500):
        small.launch(busy)
full = threading.Thread(target=fill)
full.start()
before = -1
while before != launched:
    before = launched
    time.sleep(0.2)
assert before < 1400, "the queue never was full"
time.sleep(0.1)  # by now the reaper is recording an event in the busy stream, and does not return

def export(tensor):
    on_gpu = {"stream": third.handle, "dl_device": (2, 0)}
    tensor.__dlpack__(**on_gpu if cu.driver_name() == "nvidia" else {})

def end_capture(exception=None):
    global captured
    context, captured = captured, None
    context.__exit__(exception, None, None)

def call():
    {call}

def timed():
    try:
        call()
    except Exception as e:
        failed.append(e)
failed = []
thread = threading.Thread(target=timed)
thread.start()
time.sleep(0.2)
go_on.set()
full.join()
thread.join()
if captured is not None:
    captured.__exit__(None, None, None)
device.sync()
if failed:
    raise failed[0]
print("went on")
"""

CALLS = {
    "record": "other.record(event)",
    "record in a new event": "third.record()",
    "record in a capture": "capturing.record(event)",
    "wait for an event": "other.wait(start)",
    "is_done": "busy.is_done",
    "event is_done": "start.is_done",
    "elapsed": "end.elapsed_ms(start)",
    "handle": "busy.handle",
    "__cuda_stream__": "busy.__cuda_stream__()",
    "number": "hash(busy)",
    "end of a capture": "end_capture()",
    "drop of a capture": "end_capture(ValueError)",
    "collection of a capture": "global captured; captured = None; gc.collect()",
    "begin of a capture": "with third.capture(): cu.launch(third, one, nothing, memory)",
    "launch": "cu.launch(other, one, nothing, memory)",
    "launch in a capture": "cu.launch(capturing, one, nothing, memory)",
    "fill": "memory.fill(0, stream=other)",
    "copy": "memory.copy_from(np.zeros(256, 'u1'), stream=other)",
    "copy of pinned memory": "memory.copy_from(cu.pin(np.zeros(256, 'u1')), stream=other)",
    "free": "memory.close()",
    "free of memory used on other streams": "shared.close()",
    "export": "export(memory.view('i4'))",
    "export of shared memory": "export(shared.view('i4'))",
    "import": "cu.from_dlpack(memory.view('i4'), stream=third)",
    "import on the busy stream": "cu.from_dlpack(np.zeros(4, 'f4'), stream=busy)",
    "asarray": "cu.asarray(np.zeros(4), stream=other)",
    "launch graph": "small.launch(other)",
    "upload": "small.upload(other)",
    "instantiate": "graph.instantiate().close()",
    "clone": "graph.clone().close()",
    "close exec": "graph.instantiate().close(); gc.collect()",
    "build": "g = cu.Graph(device); g.memset(memory, b'\\\\0').callback(print); g.close()",
    "embed": "g = cu.Graph(device); g.embed(graph); g.close()",
    "update": "small['done'].update(lambda: None)",
    "close stream": "busy.close()",
    "close foreign stream": "foreign.close()",
    "wrap a stream": "cu.Stream.from_handle(other.handle, device=device, owner=other).close()",
    "default stream": "device.default_stream.is_done",
    "create stream": "device.create_stream().close()",
    "create event": "device.create_event().close()",
    "allocate": "device.allocate(64, stream=other).close()",
    "live objects": "cu.live_objects()",
    "collect": "gc.collect()",
    "occupancy": "nothing.max_active_blocks(32)",
    "kernel look-up": "code['nothing']",
    "zeros": "cu.zeros(4, 'f4', stream=other).close()",
    "finalize": "cu.finalize(np.zeros(1).view(), int)",
}


@pytest.mark.parametrize("name", CALLS)
def test_the_gil_is_free(name, driver, script):
    environment = {"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}
    scene = SCENE.replace("{call}", CALLS[name]).replace("{capture}", str("a capture" in name))
    run = script(scene, **environment)
    assert (run.returncode, run.stdout) == (0, "went on\n"), run.stderr
