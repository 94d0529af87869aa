# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""While a thread is stuck in a graph launch behind a Python callback, no call holds the GIL.

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
code = cu.Program('__device__ int counter;'
    'extern "C" __global__ void nothing(int* p) {}'
    'extern "C" __global__ void large(int* p) {}').compile()
nothing = code["nothing"]
busy, other, third, capturing = (device.create_stream() for _ in range(4))
busy_memory = device.allocate(256, stream=busy)
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
node = graph.launch(one, nothing, memory)
node.callback(lambda: None, name="done")
small = graph.instantiate()

waits.launch(busy)
running.wait()
for stream in (busy, other, third, foreign):
    cu.launch(stream, one, nothing, memory)
    cu.launch(stream, one, nothing, shared)
captured = None
if {capture}:  # the reaper does not record while one is open
    captured = capturing.capture(mode="relaxed")
    unfinished = captured.__enter__()

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

tried = threading.Semaphore(0)
def use_during_the_end():
    "A record is stuck, and the end of a capture waits for it."
    time.sleep(0.1)
    end = threading.Thread(target=end_capture)
    end.start()
    time.sleep(0.1)
    for use in (unfinished.close, unfinished.instantiate, lambda: unfinished.memset(memory, b'0')):
        try:
            use()
        except ValueError as e:
            assert "still being captured" in str(e)
        else:
            raise AssertionError("used while its capture was being ended")
        finally:
            tried.release()
    end.join()
    unfinished.instantiate().launch(other)
    unfinished.close()

failed = []
def timed(call):
    try:
        call()
    except Exception as e:
        failed.append(e)

CALLS = {calls}
threads = [threading.Thread(target=timed, args=(lambda c=c: exec(c, globals()),)) for c in CALLS]
for thread in threads:
    thread.start()
time.sleep(0.3)
for _ in range(3 * sum("use_during" in call for call in CALLS)):
    tried.acquire(timeout=10)
go_on.set()
for thread in [full, *threads]:
    thread.join()
if captured is not None:
    captured.__exit__(None, None, None)
device.sync()
if failed:
    raise failed[0]
print("went on")
"""

CALLS = {
    "records": ["other.record(event)", "third.record()"],
    "queries": [
        "other.wait(start)",
        "busy.wait(start)",
        "busy.is_done",
        "start.is_done",
        "end.elapsed_ms(start)",
        "hash(busy)",
        "device.default_stream.is_done",
        "cu.live_objects()",
        "gc.collect()",
    ],
    "a handle": ["busy.handle"],
    "handles": [
        "busy.__cuda_stream__()",
        "cu.Stream.from_handle(other.handle, device=device, owner=other).close()",
        "foreign.close()",
    ],
    "work": [
        "cu.launch(other, one, nothing, memory)",
        "memory.fill(0, stream=other)",
        "memory.copy_from(np.zeros(256, 'u1'), stream=other)",
        "memory.copy_from(cu.pin(np.zeros(256, 'u1')), stream=other)",
        "small.launch(third)",
        "small.upload(other)",
        "cu.zeros(4, 'f4', stream=other).close()",
        "cu.asarray(np.zeros(4), stream=other)",
        "device.allocate(64, stream=other).close()",
    ],
    "exports": [
        "export(memory.view('i4'))",
        "export(shared.view('i4'))",
        "cu.from_dlpack(memory.view('i4'), stream=third)",
        "cu.from_dlpack(np.zeros(4, 'f4'), stream=busy)",
    ],
    "a free": ["memory.close()"],
    "a free on the busy stream": ["busy_memory.close()"],
    "a free of shared memory": ["shared.close()"],
    "a close": ["busy.close()"],
    "what others make": [
        "device.create_stream().close()",
        "device.create_event().close()",
        "nothing.max_active_blocks(32)",
        "nothing.attributes.max_dynamic_shared_size = 1024",
        "code['nothing']",
        "code['counter'].close()",
        "cu.launch(other, cu.LaunchConfig(1, 1, shared_memory=60000), code['large'], memory)",
        "cu.finalize(np.zeros(1).view(), int)",
    ],
    "graphs": [
        "graph.clone().close()",
        "g = cu.Graph(device); g.memset(memory, b'\\0').callback(print); g.close()",
        "small['done'].update(lambda: None)",
    ],
    "an executable": ["graph.instantiate().close(); gc.collect()"],
    "a capture": ["with third.capture(): cu.launch(third, one, nothing, memory)"],
    "records in a capture": [
        "capturing.record(event)",
        "cu.launch(capturing, one, nothing, memory)",
    ],
    "the end of a capture": ["end_capture()"],
    "the end of a capture, and uses of its graph": ["other.record(event)", "use_during_the_end()"],
    "the end of a failed capture": ["end_capture(ValueError)"],
    "the collection of a capture": ["global captured; captured = None; gc.collect()"],
}
OPEN_CAPTURE = {"records in a capture"} | {name for name in CALLS if name.startswith("the ")}


@pytest.mark.parametrize("name", CALLS)
def test_the_gil_is_free(name, driver, script):
    scene = SCENE.replace("{calls}", repr(CALLS[name]))
    scene = scene.replace("{capture}", str(name in OPEN_CAPTURE))
    run = script(scene, **({"CUDAGO_SIM": "hostile=1"} if driver == "sim" else {}))
    assert (run.returncode, run.stdout) == (0, "went on\n"), run.stderr
