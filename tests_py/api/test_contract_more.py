# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""More of the promised spellings, after the first session's start: see test_contract.py."""

from __future__ import annotations

import pytest

from .test_contract import COMPILE_AND_LAUNCH, START

KERNELS = r"""
f = saxpy.bind(cfg, 2.0, x, y, n)
f(s); f(s)
f.update(a=3.0); f(s)
saxpy[4, 256, s](2.0, x, y, n)
cu.LaunchConfig.for_elements(n, saxpy)
saxpy.info()

tab = cu.Program(r'''__constant__ float w[4]; __device__ int hits;
extern "C" __global__ void use(float* o) { o[threadIdx.x] = w[threadIdx.x]; atomicAdd(&hits, 1); }
''', "c++").compile()
tab["w"].copy_from(np.arange(4, dtype="f4"), stream=s)
cu.launch(s, cu.LaunchConfig(1, 4), tab["use"], y)
assert tab["hits"].view("i4").numpy(stream=s) == 4

doubled = cu.elementwise("float x, float y", "float z", "z = 2 * x + y")
z = doubled(cu.full(8, 1.5, "f4", stream=s), cu.zeros(8, "f4", stream=s), stream=s)
"""
KERNELS_CHECKED = r"""
assert (z.numpy(stream=s) == 3).all()
enough = cu.LaunchConfig.for_elements(n, saxpy)
assert enough.grid[0] * enough.block[0] >= n
"""

GRAPHS_THAT_CHANGE = r"""
g = cu.Graph()
up = g.memcpy(x, np.arange(n, dtype="f4"), name="upload")
k = up.launch(cfg, saxpy, 2.0, x, y, n, name="saxpy")
k.callback(lambda: None, name="done")
step = g.instantiate()
step["saxpy"].update(a=3.0)
step["done"].enabled = False
with step["upload"].disabled():
    step.launch(s)
g["saxpy"].params
step.update(g)
g.remove(g["done"])
step = step.update_or_instantiate(g)

src = cu.slot("src", np.zeros(n, "f4"))
g = cu.Graph(); a = g.memcpy(x, src); a.memcpy(y, src)
step = g.instantiate()
step.bind(src=np.ones(n, "f4"))
step.launch(s)

@cu.graph
def train(s, a, x, y):
    cu.launch(s, cfg, saxpy, a, x, y, n)
train(s, 2.0, x, y); train(s, 3.0, x, y)
train.explain()

print(g); g.to_svg(); g.diff(train.graphs[0]); cu.who_retains(x)
step.profile(s)
g.save("step.cudago"); g2 = cu.Graph.load("step.cudago", bind={"src": np.ones(n, "f4")})

with s.capture() as g:
    tmp = dev.allocate(1024, stream=s)
    tmp.fill(0, stream=s)
    tmp.close()
g.instantiate(auto_free=True).launch(s)
"""
GRAPHS_CHECKED = r"""
out = np.zeros(n, "f4")
y.copy_to(out, stream=s); s.sync()
assert (out == 1).all()                    # step ran last, in its profile
assert cu.who_retains(x)
assert "updated 1 time, last because a was 2.0 and is 3.0" in train.explain()
g2.instantiate().launch(s)
s.sync()
assert (g2.nodes[0].params.dst.view("f4").numpy(stream=s) == 1).all()
assert [node.kind for node in g.nodes] == ["alloc", "memset", "free"]
"""

STREAMS = r"""
s.callback(print, "after the work so far")
with cu.timer(s) as t:
    cu.launch(s, cfg, saxpy, 2.0, x, y, n)
t.elapsed_ms
m = cu.zeros((64, 100), "f4", stream=s)
m[:, 10:20].copy_from(np.ones((64, 10), "f4"), stream=s)
m.fill(5, stream=s); assert (m.numpy(stream=s) == 5).all()
m.T.numpy(stream=s)
h = np.empty((64, 100), "f4"); m.copy_to(h, stream=s)

class Counting(cu.MemoryResource):
    def __init__(self, inner): self.inner = inner; self.live = 0
    def allocate(self, nbytes, *, stream):
        self.live += 1; return self.inner.allocate(nbytes, stream=stream)
cu.empty(10, "f4", stream=s, resource=Counting(dev.memory_resource))
print(cu.memory_summary())
fin = cu.finalize(m, print, "and its stream is done", stream=s)
"""
STREAMS_CHECKED = r"""
s.sync()
assert (h == 5).all() and t.elapsed_ms >= 0
"""

BLOCKS = {
    "kernels": (KERNELS, KERNELS_CHECKED, ""),
    "graphs that change": (GRAPHS_THAT_CHANGE, GRAPHS_CHECKED, "<cudago.Graph of 2 nodes>"),
    "streams, memory, devices": (STREAMS, STREAMS_CHECKED, "after the work so far"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_spellings(name, script, driver):
    block, checked, said = BLOCKS[name]
    run = script(START + COMPILE_AND_LAUNCH + block + checked)
    assert (run.returncode, run.stderr) == (0, "")
    assert said in run.stdout
