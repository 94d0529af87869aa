# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A program with annotations, in which a strict type checker finds nothing. Read, never run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import numpy as np

import cudago as cu
from cudago.typing import CaptureMode, KernelArgument, MemoryLike, StreamLike

# --- devices and streams --------------------------------------------------------------------------

dev = cu.Device()
assert_type(dev.properties.warp_size, int)
with dev.create_stream() as own:
    assert_type(own, cu.Stream)
s = dev.create_stream()
assert_type(s.record().elapsed_ms(s.record()), float)

# --- memory ---------------------------------------------------------------------------------------

x = dev.allocate(64, stream=s)
assert_type(x, cu.Buffer)
assert_type(x[16:32], cu.Buffer)
assert_type(x.ptr + 16, cu.Pointer)
assert_type(x.ptr - x.ptr, int)
t = x.view("f4", (4, 4))
assert_type(t[0], cu.Tensor)
assert_type(t[1:, None, ..., np.int64(2)], cu.Tensor)
assert_type(t.T.reshape(-1), cu.Tensor)
assert_type(cu.from_dlpack(np.ones(3)), cu.Tensor)
x.copy_from(np.arange(8), stream=s)
x.copy_from(np.ones((2, 2), np.float32), stream=s)
x.copy_to(bytearray(64), stream=s)
x.copy_to(memoryview(bytearray(64)), stream=s)
x.fill(np.int32(1), stream=s)
with cu.PinnedMemoryResource() as pinned, pinned.allocate(64) as page_locked:
    assert_type(page_locked, cu.Buffer)
pool = cu.DeviceMemoryResource(dev)
assert_type(pool, cu.DeviceMemoryResource)
assert_type(pool.allocate(64, stream=s), cu.Buffer)


class Counting(cu.MemoryResource):
    """The resource of the documentation, with annotations."""

    def __init__(self, inner: cu.MemoryResource) -> None:
        self.inner, self.made = inner, 0

    def allocate(self, nbytes: int, *, stream: StreamLike) -> cu.Buffer:
        self.made += 1
        return self.inner.allocate(nbytes, stream=stream)


counting = Counting(dev.memory_resource)
dev.memory_resource = counting
cu.empty((np.int64(3), 4), stream=s, resource=counting)
cu.zeros(np.int64(3), stream=s)
cu.ManagedMemoryResource(dev).allocate(np.int64(64))
cu.VirtualMemoryResource(dev).allocate(np.int64(64), stream=s)

# --- kernels --------------------------------------------------------------------------------------

kernel = cu.Program("").compile().get_kernel("k")
assert_type(kernel, cu.Kernel)
assert_type(kernel[1, 32, s], cu.ConfiguredKernel)
assert_type(kernel.object_code.get_global("w"), cu.Buffer)
assert_type(kernel.attributes.register_count, int)
kernel.attributes_on(dev).max_dynamic_shared_size = 1 << 16
config = cu.LaunchConfig(grid=(1, 2), block=32)
cu.LaunchConfig(np.int64(4), (np.int32(16), 16), cluster=np.int8(1))
cu.launch(s, config, kernel, 1, 2.0, None, x, x.ptr, t, np.ones(3), np.float32(1), b"1234")


@dataclass
class Scale:
    by: np.float32


cu.launch(s, config, kernel, Scale(np.float32(2)), x)

# --- graphs ---------------------------------------------------------------------------------------

with s.capture() as graph:
    assert_type(graph, cu.Graph)
    x.copy_from(b"1234", stream=s)
assert_type(graph.memset(x, 7, name="fill").callback(lambda: None), cu.Node)
array = cu.OpaqueArray((4, 4), "f4", stream=s)
graph.memcpy(array, t).memcpy(t, array)
graph.save("step.cudago")
graph.save(Path("step.cudago"), contents=True)
assert_type(cu.Graph.load(Path("step.cudago"), device=dev, bind={"x": x, "a": 2.0}), cu.Graph)
with graph.instantiate() as step:
    assert_type(step, cu.GraphExec)
    assert_type(step["memcpy_0"], cu.ExecNode)
    step["memcpy_0"].update(src=np.arange(8))
    step["memcpy_0"].update(dst=x, src=b"1234")
    step["fill"].update(x, 7)
    step["fill"].update(t, 1.5)
    graph["fill"].update(value=1.5)
    step["kernel_0"].update(config, kernel, x, 1, 2.0, None)
    step["host_0"].update(lambda: None)
    step["kernel_0"].update(a=2.0, x=x)
    step["kernel_0"].update({1: 3})
    step["kernel_0"].update(config, a=2.0)
    step["kernel_0"].update(kernel=kernel)
    step(s)


@cu.graph
def train(s: cu.Stream, a: float, x: cu.Buffer) -> None:
    cu.launch(s, config, kernel, a, x)


@cu.graph(max_graphs=2)
def keywords(s: StreamLike, *, value: int = 1) -> None: ...


class Model:
    @cu.graph
    def step(self, s: cu.Stream) -> None: ...


train(s, 2.0, x)
keywords(s, value=2)
Model().step(s)
Model().step.clear()
assert_type(Model().step.graphs, tuple[cu.Graph, ...])
assert_type(train.graphs, tuple[cu.Graph, ...])
assert_type(train.explain(), str)
with cu.Graph() as other:
    assert_type(other.instantiate().profile(s).rows[0].microseconds, float)
    with other.capture(s) as nodes:
        pass
    assert_type(nodes, list[cu.Node])

# --- objects of other libraries -------------------------------------------------------------------


class Queue:
    """A stream of another library."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 1


class Torch:
    """A tensor with PyTorch's signature of DLPack."""

    def __dlpack__(
        self,
        *,
        stream: Any = -1,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class Array:
    """An array with Numba's CUDA array interface alone."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {}


def run(
    stream: StreamLike, operand: MemoryLike, mode: CaptureMode, *arguments: KernelArgument
) -> None:
    """Take what annotations of users take."""
    x.copy_from(operand, stream=stream)
    s.wait(stream)
    with s.capture(mode):
        cu.launch(stream, config, kernel, *arguments)
    step["memcpy_0"].update(src=operand)
    step.launch(stream)


run(Queue(), Torch(), "relaxed", Torch(), Array(), 1)
run(s, Array(), "global")
assert_type(cu.from_dlpack(Torch(), stream=Queue()), cu.Tensor)

# --- expressions ----------------------------------------------------------------------------------

one, both = (
    cu.elementwise("float x", "float z", "z = x"),
    cu.elementwise("int x", "int z, int w", ""),
)
assert_type(one(t, stream=s, out=t), cu.Tensor)
assert_type(both(t, stream=s, out=(t, t)), tuple[cu.Tensor, ...])
first, second = both(t, stream=s)
one(t, stream=s).numpy(stream=s)
