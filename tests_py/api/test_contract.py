# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A first session with cudago, in the promised spellings: these lines must never change.

Each block runs as written, in this order, in one process. What follows a block checks what it said.
"""

from __future__ import annotations

import pytest

START = r"""
import numpy as np
import cudago as cu

dev = cu.Device()
dev.name, dev.compute_capability, dev.total_memory, dev.properties.multiprocessor_count
s = dev.create_stream()
"""

STARTED = r"""
import os
assert cu.driver_name() == os.environ["CUDAGO_DRIVER"]
assert cu.Device.all()[0] is dev
assert isinstance(dev.default_stream, cu.Stream)
with dev.create_stream(priority=-1, name="copies") as named:
    assert named.name == "copies"
cu.init(driver=cu.driver_name())
"""

COMPILE_AND_LAUNCH = r"""
prog = cu.Program(r'''
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}''', "c++")
code = prog.compile()
saxpy = code.get_kernel("saxpy")
saxpy.signature
saxpy.attributes, saxpy.max_active_blocks(256)

n = 1024
x = dev.allocate(4 * n, stream=s)
y = dev.allocate(4 * n, stream=s)
x.copy_from(np.arange(n, dtype="f4"), stream=s)
y.fill(0, stream=s)
cfg = cu.LaunchConfig(grid=4, block=256)
cu.launch(s, cfg, saxpy, 2.0, x, y, n)
out = np.empty(n, dtype="f4")
y.copy_to(out, stream=s)
s.sync()
assert (out == 2 * np.arange(n, dtype="f4")).all()
"""

LAUNCHED = r"""
assert code["saxpy"] is saxpy
assert str(saxpy.signature) == "(f32, u64, u64, u32)"
assert saxpy.attributes.max_threads_per_block >= 256
assert saxpy.max_active_blocks(256) >= 1
assert prog.compile("ptx").kind == "ptx"
cu.ProgramOptions(arch="compute_75", std="c++17", include_path=".", define_macro="N=1")
cu.LaunchConfig(grid=(1, 2), block=(8, 8), cluster=2, shared_memory=64)
cu.LaunchConfig(grid=1, block=8, cooperative=True, priority=0)
try:
    cu.launch(s, cfg, saxpy, 2.0, x, y, 3.5)
except TypeError as e:
    assert "parameter 3" in str(e) and "integer" in str(e) and "3.5" in str(e), e
else:
    raise AssertionError("a float was taken for an int")
assert x.device is dev
assert x.size == 4 * n
"""

MEMORY = r"""
x[1024:2048]
p = x.ptr + 16
cu.launch(s, cfg, saxpy, 1.0, x.ptr + 4 * 512, y, 512)
t = x.view("f4", (32, 32))
u = cu.empty((32, 32), "f4", stream=s)
u.copy_from(t, stream=s)
u.numpy(stream=s)
pinned = cu.PinnedMemoryResource().allocate(4096)
np.frombuffer(pinned, dtype="f4")[:] = 1
managed = cu.ManagedMemoryResource(dev).allocate(4096, stream=s)
pool = cu.DeviceMemoryResource(dev, pool=cu.PoolOptions(release_threshold=1 << 20))
"""

VIRTUAL_MEMORY = r"""
big = cu.VirtualMemoryResource(dev).allocate(1 << 21, stream=s)
big.grow(1 << 22)
"""

VIRTUAL_MEMORY_USED = "assert big.size == 1 << 22"

MEMORY_USED = r"""
assert x[1024:2048].size == 1024
assert p - x.ptr == 16 and p > x.ptr and int(p) == int(x.ptr) + 16
assert p.buffer is x and p.offset == 16
assert (t.shape, t[3].shape, t[:, 4:8].shape, t.T.shape) == ((32, 32), (32,), (32, 4), (32, 32))
assert (u.numpy(stream=s) == np.arange(n, dtype="f4").reshape(32, 32)).all()
assert bytes(pinned)[:4] == np.float32(1).tobytes()
assert (cu.asarray(out, stream=s).numpy(stream=s) == out).all()
assert (cu.full((2, 2), 3, "f4", stream=s).numpy(stream=s) == 3).all()
assert (cu.zeros(4, "i4", stream=s).numpy(stream=s) == 0).all()
"""

GRAPHS = r"""
def build():
    host = np.arange(n, dtype="f4")
    g = cu.Graph()
    up = g.memcpy(x, host, name="upload")
    k = up.launch(cfg, saxpy, 2.0, x, y, n, name="saxpy")
    k.callback(lambda: print("step done"))
    return g.instantiate()

step = build()
step.launch(s)
step.retained
step["upload"].update(src=np.ones(n, "f4"))
step.launch(s); s.sync()

g = cu.Graph()
a = g.memset(x, 0); b = g.memset(y, 0)
g.join(a, b).launch(cfg, saxpy, 1.0, x, y, n)
g.nodes, g.edges, g.to_dot()

with s.capture() as g2:
    cu.launch(s, cfg, saxpy, 2.0, x, y, n)
    y.copy_to(pinned, stream=s)
step2 = g2.instantiate()
x.close(); y.close()
step2.launch(s); s.sync()
"""

GRAPHS_LAUNCHED = r"""
kept = {(r.node, r.operand): r for r in step.retained}
assert kept["upload", "src"].nbytes == 4096 and kept["upload", "src"].reason == "memcpy"
assert (kept["upload", "src"].object == 1).all(), "the new array"
assert len(g.nodes) == 4 and len(g.edges) == 3 and g.to_dot().startswith("digraph")
assert x.is_closed and y.is_closed
before = np.frombuffer(pinned, dtype="f4").copy()
step2.launch(s); s.sync()
assert (np.frombuffer(pinned, dtype="f4") == before + 2).all(), "x is 1 since the update"
"""

TEARDOWN = r"""
class Session: ...
session = Session()
fin = cu.finalize(session, print, "session is gone")
del session
cu.live_objects()
"""

TORN_DOWN = r"""
assert fin.alive is False and fin.peek() is None and fin.detach() is None and fin() is None
assert cu.live_objects()["Stream"] >= 1
s.close(); s.close()
try:
    s.sync()
except cu.ClosedError:
    pass
else:
    raise AssertionError("a closed stream was waited for")
"""

TENSORS = r"""
import torch
v = cu.from_dlpack(torch.ones(8))
w = torch.from_dlpack(cu.zeros((4, 4), "f4", stream=s))
cu.to_torch(t)
"""

BEFORE_TENSORS = "t = cu.zeros((32, 32), 'f4', stream=s)"
TENSORS_USED = r"""
assert (torch.as_tensor(np.asarray(memoryview(v))) == 1).all()
assert w.shape == (4, 4) and (w == 0).all()
assert cu.to_torch(t).shape == (32, 32)
"""


def test_session(script, driver):
    blocks = [START, STARTED, COMPILE_AND_LAUNCH, LAUNCHED]
    blocks += [MEMORY, VIRTUAL_MEMORY, MEMORY_USED, VIRTUAL_MEMORY_USED]
    blocks += [GRAPHS, GRAPHS_LAUNCHED, TEARDOWN, TORN_DOWN]
    run = script("\n".join(blocks))
    assert run.stderr == ""
    assert run.returncode == 0
    assert run.stdout.split("\n") == ["step done", "step done", "session is gone", ""]


def test_virtual_memory(script, driver):
    run = script(START + VIRTUAL_MEMORY + VIRTUAL_MEMORY_USED)
    assert (run.returncode, run.stderr) == (0, "")


def test_tensors(script, driver):
    pytest.importorskip("torch")
    run = script(START + BEFORE_TENSORS + TENSORS + TENSORS_USED)
    assert (run.returncode, run.stderr) == (0, "")
