# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every way in which memory is handed over while work on it is pending, or let go while work uses
it."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np

import cudago as cu
from cudago.testing import settle
from promises.kinds import VIEWS
from promises.world import NEW, OLD, ONE, World

# --- order: the memory is handed over
# ------------------------------------------------------------------------------


class Bare:
    """A consumer's look at a capsule that was made before."""

    def __init__(self, capsule: object, device: tuple[int, int]) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **keywords):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


class Interface:
    """Memory known by the array interface alone."""

    def __init__(
        self, owner: cu.Buffer | cu.Tensor, address: int, nbytes: int, stream: int | None
    ) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "stream": stream,
        }


def _value(array: object) -> int:
    values = set(np.asarray(array).reshape(-1)[-World.n :].tolist())
    return values.pop() if len(values) == 1 else -1


def _numpy(w: World, x: object) -> int:
    return _value(np.from_dlpack(x))


def _numpy_cpu(w: World, x: object) -> int:
    return _value(np.from_dlpack(x, device="cpu"))


def _numpy_copy(w: World, x: object) -> int:
    return _value(np.from_dlpack(x, copy=True))


def _capsule(w: World, x: object) -> int:
    device = x.__dlpack_device__()
    capsule = x.__dlpack__(max_version=(1, 0))
    if device[0] != 2:
        return _value(np.from_dlpack(Bare(capsule, device)))
    return _in_stream(w, w.home.default_stream, Bare(capsule, device))


def _old_capsule(w: World, x: object) -> int:
    device = x.__dlpack_device__()
    capsule = x.__dlpack__()
    if device[0] != 2:
        return _value(np.from_dlpack(Bare(capsule, device)))
    return _in_stream(w, w.home.default_stream, Bare(capsule, device))


def _in_stream(w: World, stream: cu.Stream, x: object) -> int:
    """What a kernel of the consumer reads, in the stream that it has named, knowing the memory by
    its address."""
    w.take(stream, x, w.n)
    stream.sync()
    return w.taken


def _address(x: cu.Buffer | cu.Tensor) -> int:
    """The address of a view: what a consumer finds in the tensor that it takes."""
    return int(x.handle if isinstance(x, cu.Buffer) else x.buffer.handle)


def _dl_stream(w: World, x: object) -> int:
    address = _address(x)
    capsule = x.__dlpack__(
        stream=int(w.near.handle), dl_device=(2, w.home.ordinal), max_version=(1, 0)
    )
    got = _in_stream(w, w.near, address)
    del capsule
    return got


def _dl_stream_of_its_own(w: World, x: object) -> int:
    address = _address(x)
    capsule = x.__dlpack__(stream=int(w.near.handle), max_version=(1, 0))
    got = _in_stream(w, w.near, address)
    del capsule
    return got


def _dl_legacy(w: World, x: object) -> int:
    address = _address(x)
    capsule = x.__dlpack__(stream=1, max_version=(1, 0))
    got = _in_stream(w, w.home.default_stream, address)
    del capsule
    return got


def _interface(w: World, x: object) -> int:
    facts = x.__cuda_array_interface__
    assert facts["stream"] == 1
    return _in_stream(w, w.home.default_stream, facts["data"][0])


def _to_torch(w: World, x: object) -> int:

    t = cu.to_torch(x if isinstance(x, cu.Tensor) else x.view("u1"))
    return int(t.reshape(-1)[-1].cpu())


def _torch(w: World, x: object) -> int:
    import torch

    return int(torch.from_dlpack(x).reshape(-1)[-1].cpu())


def _cupy(w: World, x: object) -> int:
    import cupy

    return int(cupy.from_dlpack(x).reshape(-1)[-1].get())


def _cupy_interface(w: World, x: object) -> int:
    import cupy

    return int(cupy.asarray(x).reshape(-1)[-1].get())


def _import(w: World, x: object) -> int:
    t = cu.from_dlpack(x, stream=w.near)
    return _in_stream(w, w.near, t)


def _import_number(w: World, x: object) -> int:
    t = cu.from_dlpack(x, stream=int(w.near.handle))
    return _in_stream(w, w.near, t)


def _import_legacy(w: World, x: object) -> int:
    t = cu.from_dlpack(x, stream=1)
    return _in_stream(w, w.home.default_stream, t)


def _import_copy(w: World, x: object) -> int:
    return _value(cu.from_dlpack(x, stream=w.near, copy=True).numpy(stream=w.near))


def _import_back(w: World, x: object) -> int:
    """Through an object of another library over the memory, made before the work."""
    t = cu.from_dlpack(w.theirs, stream=w.near)
    return _in_stream(w, w.near, t)


def _named_stream(w: World, x: object) -> int:
    """An object of another library that says in which stream its work is."""
    theirs = Interface(x, _address(x), w.n, int(w.work.handle))
    return _in_stream(w, w.near, theirs)


def _read(w: World, x: object) -> int:
    t = x if isinstance(x, cu.Tensor) else x.view("u1")
    return _value(t.numpy(stream=w.work))


def _finalizer(w: World, x: object) -> int:
    """What is called once the stream has done what it has."""
    seen: list[int] = []
    w.take(w.work, x, w.n)
    done = cu.finalize(x, lambda: seen.append(w.taken), stream=w.work)
    w.views.clear()
    del x
    gc.collect()
    w.asked.set()
    w.work.sync()
    settle()
    assert not done.alive
    return seen[0] if seen else -2


def _buffer(w: World, x: object) -> int:
    """The buffer protocol does not wait, also where the work never ends unless the host goes on."""
    return _value(np.frombuffer(memoryview(x).cast("B"), "u1"))


ORDER: dict[str, Callable[[World, object], int]] = {
    "numpy.from_dlpack(x)": _numpy,
    'numpy.from_dlpack(x, device="cpu")': _numpy_cpu,
    "numpy.from_dlpack(x, copy=True)": _numpy_copy,
    "x.__dlpack__(max_version=(1, 0))": _capsule,
    "x.__dlpack__()": _old_capsule,
    "x.__dlpack__(stream=t, dl_device=…)": _dl_stream,
    "x.__dlpack__(stream=t)": _dl_stream_of_its_own,
    "x.__dlpack__(stream=1)": _dl_legacy,
    "x.__cuda_array_interface__": _interface,
    "cudago.to_torch(x)": _to_torch,
    "torch.from_dlpack(x)": _torch,
    "cupy.from_dlpack(x)": _cupy,
    "cupy.asarray(x)": _cupy_interface,
    "cudago.from_dlpack(x, stream=t)": _import,
    "cudago.from_dlpack(x, stream=t.handle)": _import_number,
    "cudago.from_dlpack(x, stream=1)": _import_legacy,
    "cudago.from_dlpack(x, stream=t, copy=True)": _import_copy,
    "cudago.from_dlpack(y, stream=t), y another library's over x": _import_back,
    "launch in t of y, whose interface names s": _named_stream,
    "x.numpy(stream=s)": _read,
    "cudago.finalize(x, f, stream=s)": _finalizer,
    "memoryview(x)": _buffer,
}

# --- kept: the memory is let go
# ------------------------------------------------------------------------------------
# Each queues work in w.work that reads x into w.result, and returns what is needed for it but x:
# all of that is dropped, or
# closed where it can be, before the stream goes on.


def _launch(w: World, x: object) -> object:
    w.take(w.work, x, w.n)
    return None


def _brackets(w: World, x: object) -> object:
    w.code["take"][1, 32, w.work](x, w.result, w.n)
    return None


def _whole(x: object) -> cu.Buffer | cu.Tensor:
    """What can be copied: of a pointer, the memory from there on."""
    return x.buffer[x.offset :] if isinstance(x, cu.Pointer) else x


def _target(w: World, x: cu.Buffer | cu.Tensor) -> cu.Buffer | cu.Tensor:
    """What x is copied to: device memory, since the host waits for a copy to its own."""
    part = w.target[: w.n]
    return part.view("u1", x.shape) if isinstance(x, cu.Tensor) else part


def _copy_from(w: World, x: object) -> object:
    x = _whole(x)
    _target(w, x).copy_from(x, stream=w.work)
    w.take(w.work, w.target, w.n)
    return None


def _copy_to(w: World, x: object) -> object:
    x = _whole(x)
    x.copy_to(_target(w, x), stream=w.work)
    w.take(w.work, w.target, w.n)
    return None


def _copy_batch(w: World, x: object) -> object:
    x = _whole(x)
    cu.copy_batch([(_target(w, x), x)], stream=w.work)
    w.take(w.work, w.target, w.n)
    return None


def _fill(w: World, x: object) -> object:
    _whole(x).fill(OLD, stream=w.work)
    w.take(w.work, x, w.n)
    return None


def _prefetch(w: World, x: object) -> object:
    x = _whole(x)
    buffer = x if isinstance(x, cu.Buffer) else x.buffer
    if isinstance(buffer.device, cu.Device):
        buffer.prefetch(buffer.device, stream=w.work)
    else:
        buffer.prefetch("host", stream=w.work)
    w.take(w.work, x, w.n)
    return None


def _graph(w: World, x: object) -> object:
    graph = cu.Graph(w.away)
    graph.launch(ONE, w.code["take"], x, w.result, w.n)
    step = graph.instantiate()
    step.launch(w.work)
    return graph, step


def _graph_copy(w: World, x: object) -> object:
    graph = cu.Graph(w.away)
    x = _whole(x)
    copy = graph.memcpy(_target(w, x), x)
    copy.launch(ONE, w.code["take"], w.target, w.result, w.n)
    step = graph.instantiate()
    step.launch(w.work)
    return graph, step


def _captured(w: World, x: object) -> object:
    with w.fresh.capture() as graph:
        w.take(w.fresh, x, w.n)
    step = graph.instantiate()
    step.launch(w.work)
    return graph, step


def _clone(w: World, x: object) -> object:
    graph = cu.Graph(w.away)
    graph.launch(ONE, w.code["take"], x, w.result, w.n)
    other = graph.clone()
    graph.close()
    step = other.instantiate()
    step.launch(w.work)
    return other, step


def _child(w: World, x: object) -> object:
    inner = cu.Graph(w.away)
    inner.launch(ONE, w.code["take"], x, w.result, w.n)
    outer = cu.Graph(w.away)
    outer.embed(inner)
    inner.close()
    step = outer.instantiate()
    step.launch(w.work)
    return outer, step


def _other(w: World) -> cu.Buffer:
    other = cu.PinnedMemoryResource().allocate(w.n)
    np.frombuffer(other, "u1")[:] = OLD
    return other


def _update(w: World, x: object) -> object:
    graph = cu.Graph(w.away)
    graph.launch(ONE, w.code["take"], x, w.result, w.n, name="take")
    step = graph.instantiate()
    step.launch(w.work)
    step["take"].update(x=w.other)
    return graph, step


def _whole_update(w: World, x: object) -> object:
    graph = cu.Graph(w.away)
    graph.launch(ONE, w.code["take"], x, w.result, w.n, name="take")
    step = graph.instantiate()
    step.launch(w.work)
    second = cu.Graph(w.away)
    second.launch(ONE, w.code["take"], w.other, w.result, w.n, name="take")
    graph.close()
    step.update(second)
    return second, step


def _bind(w: World, x: object) -> object:
    bound = w.code["take"].bind(ONE, x, w.result, w.n)
    bound(w.work)
    bound.update(x=w.other)
    return bound


def _slot(w: World, x: object) -> object:
    source = cu.slot("x", x)
    graph = cu.Graph(w.away)
    graph.launch(ONE, w.code["take"], source, w.result, w.n)
    step = graph.instantiate()
    step.launch(w.work)
    step.bind(x=w.other)
    return source, graph, step


def _replay(w: World, x: object) -> object:
    @cu.graph
    def f(stream, memory, result):
        cu.launch(stream, ONE, w.code["take"], memory, result, w.n)

    f(w.fresh, x, w.result)  # captured
    w.fresh.sync()
    f(w.work, x, w.result)
    return f


def _exported(w: World, x: object) -> object:
    """A consumer that lets go while its work is pending in a stream that it has named to nobody."""
    capsule = _whole(x).__dlpack__(stream=-1)
    w.take(w.work, x, w.n)
    return capsule


KEPT: dict[str, Callable[[World, object], object]] = {
    "launch(s, …, x)": _launch,
    "kernel[…](x)": _brackets,
    "y.copy_from(x)": _copy_from,
    "x.copy_to(y)": _copy_to,
    "copy_batch": _copy_batch,
    "x.fill": _fill,
    "x.prefetch": _prefetch,
    "graph: launch node": _graph,
    "graph: copy node": _graph_copy,
    "capture": _captured,
    "clone": _clone,
    "child graph": _child,
    "update of a node": _update,
    "update by a graph": _whole_update,
    "bind": _bind,
    "slot": _slot,
    "@cudago.graph": _replay,
    "export": _exported,
}
ENDS = ("dropped", "closed")

# What takes a stream or gives memory to others, by its name; and the row that it is tried in.
SPELLINGS = {
    "Buffer.__buffer__": "memoryview(x)",
    "Buffer.__cuda_array_interface__": "x.__cuda_array_interface__",
    "Buffer.__dlpack__": "x.__dlpack__()",
    "Buffer.copy_from": "y.copy_from(x)",
    "Buffer.copy_to": "x.copy_to(y)",
    "Buffer.fill": "x.fill",
    "Buffer.prefetch": "x.prefetch",
    "ConfiguredKernel": "kernel[…](x)",
    "Finalizer": "cudago.finalize(x, f, stream=s)",
    "GraphExec.launch": "graph: launch node",
    "Tensor.__buffer__": "memoryview(x)",
    "Tensor.__cuda_array_interface__": "x.__cuda_array_interface__",
    "Tensor.__dlpack__": "x.__dlpack__()",
    "Tensor.copy_from": "y.copy_from(x)",
    "Tensor.copy_to": "x.copy_to(y)",
    "Tensor.fill": "x.fill",
    "Tensor.numpy": "x.numpy(stream=s)",
    "copy_batch": "copy_batch",
    "finalize": "cudago.finalize(x, f, stream=s)",
    "from_dlpack": "cudago.from_dlpack(x, stream=t)",
    "launch": "launch(s, …, x)",
}
_NEW = "makes memory, which nothing uses yet"
_COPY = "its copies are copies and launches as in the rows of those"
# The rest, and why it has no row.
NO_WAY = {
    "Buffer.free": "the program itself puts a graph's free where it wants it: tests_py/graph",
    "Buffer.from_handle": "makes memory: kind adopted",
    "Buffer.from_ipc_descriptor": "makes memory: kind imported",
    "Graph.capture": "records what row capture records",
    "Graph.fork": "a fork of a capture: what it records is kept as in row capture",
    "GraphExec.profile": "launches, and waits",
    "GraphExec.upload": "uses no operand",
    "MipmappedArray": "OpaqueArray",
    "OpaqueArray": "is not exported: tests_py/tensor/test_array.py, test_texture.py",
    "Tensor.astype": _COPY,
    "Tensor.contiguous": _COPY,
    "Tensor.item": "a copy to the host that waits, as x.numpy(stream=s)",
    "asarray": _COPY,
    "prefetch_batch": "Buffer.prefetch of several",
    "timer": "uses no memory",
    **dict.fromkeys(
        (
            "arange",
            "empty",
            "empty_like",
            "full",
            "full_like",
            "ones",
            "ones_like",
            "zeros",
            "zeros_like",
        ),
        _NEW,
    ),
}

__all__ = ["ENDS", "KEPT", "NEW", "NO_WAY", "OLD", "ORDER", "SPELLINGS", "VIEWS"]
