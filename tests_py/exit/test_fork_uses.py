# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing in a forked child enters Go: every attribute and method of every class is tried there."""

from __future__ import annotations

import textwrap

import pytest

# One object of each class at least, and what is made of it.
OBJECTS = """
import copy, faulthandler, gc, inspect, os, pickle, sys, tempfile
import warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of forks with threads
import numpy as np
import cudago as cu
import cudago.sim, cudago.testing

d = cu.Device()
s, other = d.create_stream(), d.create_stream()
capturing = d.create_stream()
event = s.record()
class Foreign:
    def __cuda_stream__(self):
        return 0, 1
buffer = d.allocate(64, stream=s)
pinned_resource, managed_resource = cu.PinnedMemoryResource(), cu.ManagedMemoryResource(d)
virtual_resource = cu.VirtualMemoryResource(d)
pool = cu.DeviceMemoryResource(d, pool=cu.PoolOptions())
host = np.zeros(16, "f4")
locked = cu.pin(np.zeros(16, "f4"))
pinned, managed = pinned_resource.allocate(64), managed_resource.allocate(64, stream=s)
virtual, pooled = virtual_resource.allocate(64, stream=s), pool.allocate(64, stream=s)
tensor, array = cu.zeros(16, "f4", stream=s), np.frombuffer(pinned, "f4")
foreign = cu.from_dlpack(np.zeros(4, "f4"))
program = cu.Program('extern "C" __global__ void add(float* p, int n) { p[threadIdx.x] += n; }')
code = program.compile()
kernel = code["add"]
config = cu.LaunchConfig(1, 16)
graph = cu.Graph()
up = graph.memcpy(buffer, host, name="up")
scratch = up.callback(lambda: None).launch(config, kernel, tensor, 1, name="add").allocate(64)
step = graph.instantiate()
looping = cu.Graph()
condition = looping.condition(default=1)
loop = looping.while_loop(condition)
loop.body.memset(buffer, 0)
closed = cu.Graph()
closed.close()
capture = capturing.capture()
captured = capture.__enter__()
buffer.fill(0, stream=capturing)
buffer[:4].copy_from(buffer[4:8], stream=capturing)
class Thing: ...
thing, other_thing = Thing(), Thing()
done = cu.finalize(thing, str)
buffer_of_graph = scratch.buffer
view, pointer = buffer[4:8], buffer.ptr + 4
capsule = tensor.__dlpack__(max_version=(1, 0))
step.launch(s)
other.sync()
s.sync()

objects = {
    "Device": d, "DeviceProperties": d.properties, "DeviceLimits": d.limits, "Stream": s,
    "capturing Stream": capturing, "foreign Stream": cu.Stream.from_handle(1), "Event": event,
    "Buffer": buffer, "view": view,
    "pinned Buffer": pinned, "managed Buffer": managed, "virtual Buffer": virtual,
    "pooled Buffer": pooled, "locked Buffer": locked, "Buffer of a graph": buffer_of_graph,
    "Pointer": pointer, "Tensor": tensor, "foreign Tensor": foreign,
    "view of Tensor": tensor[2:6], "DeviceMemoryResource": pool,
    "PinnedMemoryResource": pinned_resource, "ManagedMemoryResource": managed_resource,
    "VirtualMemoryResource": virtual_resource, "own resource": d.memory_resource,
    "PoolStatistics": pool.statistics, "Program": program, "ObjectCode": code, "Kernel": kernel,
    "KernelAttributes": kernel.attributes, "LaunchConfig": config, "Graph": graph,
    "captured Graph": captured, "closed Graph": closed, "body": loop.body, "Node": up,
    "scratch Node": scratch, "loop Node": loop, "Condition": condition, "GraphExec": step,
    "ExecNode": step["up"], "Retained": graph.retained[0],
    "Parameter": kernel.signature[0], "capsule": capsule,
    "Finalizer": done, "module": cu, "sim": cu.sim, "testing": cu.testing,
}
"""

TRY = """
import operator
operators = (
    repr, str, hash, bool, len, list, int, float, operator.index, memoryview, np.from_dlpack,
    np.frombuffer, np.asarray, cu.from_dlpack, cu.asarray, cu.pin, copy.copy, pickle.dumps, dir,
    vars, iter, reversed,
    lambda o: o[0], lambda o: o[0:1], lambda o: o["up"], lambda o: o + 1, lambda o: o - 1,
    lambda o: o == o, lambda o: o < o, lambda o: o == 1,
    lambda o: cu.launch(o, config, kernel, tensor, 1),
    lambda o: cu.launch(s, config, kernel, o, 1),
    lambda o: s.wait(o),
    lambda o: buffer.copy_to(o, stream=s), lambda o: buffer.copy_from(o, stream=s),
    lambda o: graph.memcpy(o, buffer), lambda o: graph.memcpy(buffer, o),
)
arguments = (
    (), (s,), (d,), (1,), (64,), ("name",), (host,), (buffer,), (event,), (print,), (condition,),
    (virtual,), (graph,), (Foreign(),), (buffer, host), (buffer, 0), (thing, print),
    (None, None, None), (config, kernel, tensor, 1), (config, kernel, (tensor, 1)),
    ("uninitialized",),
)
keywords = (
    {"stream": s}, {"stream": 1}, {"src": host}, {"dst": buffer}, {"handle": 1},
    {"args": (tensor, 2)},
)
calls = [lambda f, a=a: f(*a) for a in arguments]
calls += [lambda f, k=k: f(**k) for k in keywords]
calls += [lambda f, a=a: f(*a, stream=s) for a in ((64,), (host,), (4, "f4"), (4, 1, "f4"))]
uses, refused = 0, set()

def attempt(what, use):
    global uses
    os.pwrite(note, what.encode().ljust(200), 0)  # for the parent
    uses += 1
    try:
        return use()
    except BaseException as e:
        if isinstance(e, RuntimeError) and "spawn" in str(e):
            refused.add(what.split(" ")[0])

def names(obj):
    if inspect.ismodule(obj):
        return obj.__all__
    of_python = dir(object)
    return [n for n in dir(obj) if n not in of_python and (n[0] != "_" or n[:2] == "__")]

def attempt_all(label, obj):
    for n, call in enumerate(operators):
        attempt(f"{label} operator {n}", lambda: call(obj))
    for name in named[label]:
        value = attempt(f"{label}.{name}", lambda: getattr(obj, name))
        if callable(value):
            for n, call in enumerate(calls):
                attempt(f"{label}.{name} call {n}", lambda: call(value))
        elif not name.startswith("__"):
            for new in (value, 1, True, pool, None):
                attempt(f"{label}.{name} = {type(new).__name__}", lambda: setattr(obj, name, new))
            attempt(f"{label}.{name} del", lambda: delattr(obj, name))
"""

FORK = """
named = {label: names(obj) for label, obj in objects.items()}
cu._core._watch_forks()  # a call into Go ends the child
note = os.open(tempfile.mkstemp()[1], os.O_RDWR)
sys.stdout.flush()
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(60, exit=True)
    sys.stdout = open(os.devnull, "w")
CHILD
    sys.exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(status, os.pread(note, 200, 0).decode().strip())
"""


CHECKS = pytest.mark.parametrize("checks", ["", "check=full"])


def fork(script, child: str, checks: str) -> str:
    """Run code in a forked child; return its exit code and what it did last."""
    body = textwrap.indent(script.dedent(child).strip(), "    ")
    run = script(OBJECTS + TRY + FORK.replace("CHILD", body), CUDAGO_SIM=checks)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    return run.stdout.strip()


@CHECKS
def test_every_use_in_the_child(checks, script, driver):
    child = """
    for label, obj in objects.items():
        attempt_all(label, obj)
    wanted = {
        "Device.name", "Device.sync", "Stream.sync", "Stream.is_done", "Event.sync", "Buffer.fill",
        "Buffer.copy_to", "Tensor.numpy", "Graph.memcpy", "Graph.nodes", "GraphExec.launch",
        "ObjectCode.from_cubin", "module.launch", "sim.reports", "KernelAttributes.local_size",
    }
    attempt(f"tried; not refused: {sorted(wanted - refused)}", lambda: None)
    """
    assert fork(script, child, checks) == "0 tried; not refused: []"


@CHECKS
@pytest.mark.parametrize("close", [False, True], ids=["dropped", "closed"])
def test_the_end_of_every_object_in_the_child(close, checks, script, driver):
    child = f"""
    for label in [name for name in objects if name != "module"]:
        obj = objects.pop(label)
        if {close}:
            attempt(f"closing {{label}}", lambda: obj.close())
            attempt(f"leaving {{label}}", lambda: obj.__exit__(None, None, None))
        attempt(f"dropping {{label}}", lambda: globals().update(obj=None))
        gc.collect()
    kept = {{"__name__", "__builtins__", "attempt", "note", "uses", "gc", "os", "sys", "kept"}}
    for name in [name for name in globals() if name not in kept]:
        attempt(f"dropping the global {{name}}", lambda: globals().pop(name) and None)
        gc.collect()
    attempt("done", lambda: None)
    """
    assert fork(script, child, checks) == "0 done"
