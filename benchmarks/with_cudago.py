# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The operations with cudago, as its users write them."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import operations as op
from measure import Case, python_case

import cudago as cu

LIBRARY = "cudago"


def _names() -> dict[str, Any]:
    device = cu.Device()
    stream = device.create_stream()
    code = cu.ObjectCode.from_ptx(op.PTX)
    return {
        "cu": cu,
        "launch": cu.launch,
        "device": device,
        "stream": stream,
        "kernel": code.get_kernel(op.KERNEL),
        "config": cu.LaunchConfig(grid=1, block=op.BLOCK),
        "x": device.allocate(op.COPY_SIZE, stream=stream),
        "y": device.allocate(op.COPY_SIZE, stream=stream),
        "pinned": cu.PinnedMemoryResource().allocate(op.COPY_SIZE),
        "event": device.create_event(),
        "pointer": device.allocate(op.COPY_SIZE, stream=stream).ptr,
    }


def _executable(names: dict[str, Any], nodes: int) -> cu.GraphExec:
    """Return a chain of kernel nodes; the graph retains both buffers for each."""
    node = graph = cu.Graph()
    for _ in range(nodes):
        node = node.launch(names["config"], names["kernel"], names["x"], names["y"], 1)
    return graph.instantiate()


def _prepared(names: dict[str, Any]) -> dict[str, Any]:
    """Return the same launch in the forms that are made once: with a slot, bound, as a function."""
    config, kernel, x, y = (names[name] for name in ("config", "kernel", "x", "y"))
    with cu.Graph() as graph:
        graph.launch(config, kernel, cu.slot("x", x), y, 1, name="touch")
        step = graph.instantiate()
    with cu.Graph() as graph:
        graph.memcpy(y, cu.slot("src", x), name="copied")
        upload = graph.instantiate()

    @cu.graph
    def replayed(stream: cu.Stream, x: cu.Buffer, y: cu.Buffer) -> None:
        cu.launch(stream, config, kernel, x, y, 1)

    def build() -> None:
        with cu.Graph() as graph:
            node: cu.Graph | cu.Node = graph
            for _ in range(op.BUILD_NODES):
                node = node.launch(config, kernel, x, y, 1)
            graph.instantiate().close()

    return {
        "step": step,
        "touch": step["touch"],
        "upload": upload,
        "copied": upload["copied"],
        "bound": kernel.bind(config, x, y, 1),
        "replayed": replayed,
        "build": build,
    }


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector away, as timeit does."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _timed(run: Callable[[], None]) -> Callable[[], float]:
    """Return a batch that is one run."""

    def batch() -> float:
        with _uncollected():
            start = time.perf_counter_ns()
            run()
            return time.perf_counter_ns() - start

    return batch


def _captured(names: dict[str, Any]) -> Callable[[], float]:
    """Return a batch that is one capture; dropping its graph is not counted."""
    stream, config, kernel, x, y = (names[n] for n in ("stream", "config", "kernel", "x", "y"))
    calls = op.calls_per_batch(op.CAPTURE)

    def batch() -> float:
        with _uncollected():
            start = time.perf_counter_ns()
            with stream.capture() as graph:
                for _ in range(calls):
                    cu.launch(stream, config, kernel, x, y, 1)
            took = time.perf_counter_ns() - start
        graph.close()
        return took

    return batch


def cases() -> list[Case]:
    """Return a case for each operation; those with torch only where it is installed."""
    names = _names()
    names |= _prepared(names)
    settle = names["stream"].sync

    def case(operation: str, statement: str, **options: Any) -> Case:
        return python_case(operation, LIBRARY, statement, names, settle, **options)

    found = [
        case(op.LAUNCH, "launch(stream, config, kernel, x, y, 1)"),
        case(
            op.ADD_NODE,
            "node = node.launch(config, kernel, x, y, 1)",
            setup="graph = cu.Graph(); node = graph.launch(config, kernel, x, y, 1)",
        ),
        case(
            op.ADD_COPY,
            "node = node.memcpy(y, x)",
            setup="graph = cu.Graph(); node = graph.memcpy(y, x)",
        ),
        Case(op.CAPTURE, LIBRARY, _captured(names), settle, op.calls_per_batch(op.CAPTURE)),
        Case(op.BUILD, LIBRARY, _timed(names["build"]), settle, op.BUILD_NODES),
        case(op.BIND, "step.bind(x=x)"),
        case(op.BIND_COPY, "upload.bind(src=x)"),
        case(op.UPDATE, "touch.update({2: 2})"),
        case(op.UPDATE_NAMED, "touch.update(n=2)"),
        case(op.UPDATE_COPY, "copied.update(src=x)"),
        case(op.UPDATE_ALL, "touch.update(config, kernel, x, y, 2)"),
        case(op.BOUND, "bound(stream)"),
        case(op.REPLAY, "replayed(stream, x, y)"),
        case(op.ALLOC, f"device.allocate({op.ALLOC_SIZE}, stream=stream).close()"),
        case(op.COPY, "x.copy_from(pinned, stream=stream)"),
        case(op.RECORD, "stream.record(event)"),
        case(op.SLICE, "x[16:32]"),
        case(op.POINTER, "pointer + 16"),
        *_own_exchange(names),
    ]
    for nodes, operation in op.GRAPH.items():
        names[f"executable{nodes}"] = _executable(names, nodes)
        statement = f"executable{nodes}.launch(stream)"
        found.append(case(operation, statement))
    found += [
        case(op.WAIT, "stream.sync()"),
        case(op.WAIT_GRAPH, "executable100.launch(stream); stream.sync()"),
    ]
    if importlib.util.find_spec("torch") is not None:
        found += _exchange(names)
    if cu.driver_name() == "nvidia":  # the simulated device interprets
        found += _big(names["stream"])
    return found


def _big(stream: cu.Stream) -> list[Case]:
    """Return the cases of a large matrix."""
    shape = (op.MATRIX, op.MATRIX)
    names: dict[str, Any] = {
        "a": cu.ones(shape, "f4", stream=stream),
        "b": cu.ones(shape, "f4", stream=stream),
        "one": cu.empty((), "f4", stream=stream),
        "line": cu.empty(op.MATRIX, "f4", stream=stream),
        "axpy": cu.elementwise("float a, float x, float y", "float z", "z = a * x + y"),
        "total": cu.reduce("float x", "float z", "a + b"),
        "stream": stream,
    }
    half = op.MATRIX // 2
    statements = {
        op.AXPY: "axpy(2.0, a, b, stream=stream, out=b)",
        op.SUM: "total(a, stream=stream, out=one)",
        op.SUM_ROWS: "total(a, axis=1, stream=stream, out=line)",
        op.SUM_COLUMNS: "total(a, axis=0, stream=stream, out=line)",
        op.SUM_STEPS: "total(a[:, ::2], stream=stream, out=one)",
        op.COPY_STEPS: f"a[:, ::2].copy_to(b[:, :{half}], stream=stream)",
        op.COPY_TURNED: "a.T.copy_to(b, stream=stream)",
        op.TO_HALF: "a.astype('f2', stream=stream).close()",
    }
    return [
        python_case(operation, LIBRARY, f"{statement}; stream.sync()", names, stream.sync)
        for operation, statement in statements.items()
    ]


def _own_exchange(names: dict[str, Any]) -> list[Case]:
    """Return the cases of exchange that need no other library, or only NumPy."""
    import numpy as np

    stream = names["stream"]
    names |= {"np": np, "from_dlpack": cu.from_dlpack, "tensor": cu.zeros(8, "f4", stream=stream)}
    names["other"] = cu.Device().create_stream()  # kept, for its handle
    names["handle"] = names["other"].handle
    stream.sync()

    def settle() -> None:
        stream.sync()
        names["other"].sync()

    def case(operation: str, statement: str, **options: Any) -> Case:
        return python_case(operation, LIBRARY, statement, names, settle, **options)

    found = [
        case(op.IMPORT_OWN, "from_dlpack(tensor)"),
        case(op.CAPSULE, "tensor.__dlpack__(max_version=(1, 0))"),
        case(op.TO_NUMPY, "np.from_dlpack(pinned)"),
    ]
    if cu.driver_name() == "nvidia":  # the simulated driver's memory is the host's, without streams
        ordered = "tensor.__dlpack__(stream=handle, max_version=(1, 0))"
        # What was queued since the latest wait is what there is to order.
        queued = "launch(stream, config, kernel, x, y, 1)"
        found.append(case(op.CAPSULE_ORDERED, ordered, setup=queued))
    return found


def _exchange(names: dict[str, Any]) -> list[Case]:
    import torch

    # The simulated driver's memory is the host's to other libraries.
    where = "cuda" if cu.driver_name() == "nvidia" else "cpu"
    names["theirs"] = torch.ones(8, device=where)
    names["ours"] = cu.zeros((8,), "f4", stream=names["stream"])

    def settle() -> None:
        names["stream"].sync()
        if where == "cuda":
            torch.cuda.synchronize()

    # PyTorch works on its default stream here, as it does where nobody chose another: then there is
    # nothing to order at an import, which is what the peers' rows measure too.
    names["default"] = (
        (lambda: torch.cuda.set_stream(torch.cuda.default_stream())) if where == "cuda" else int
    )

    def case(operation: str, statement: str, setup: str = "default()") -> Case:
        return python_case(operation, LIBRARY, statement, names, settle, setup=setup)

    found = [
        case(op.LAUNCH_TORCH, "launch(stream, config, kernel, theirs, y, 1)"),
        case(op.IMPORT, "cu.from_dlpack(theirs)"),
        case(op.EXPORT, "cu.to_torch(ours)"),
    ]
    if where == "cuda":
        side = torch.cuda.Stream()
        names["side"] = cu.Stream.from_handle(side.cuda_stream, owner=side)
        names["there"] = lambda: torch.cuda.set_stream(side)
        own, lent = (f"launch(side, config, kernel, {x}, y, 1)" for x in ("x", "theirs"))
        found.append(case(op.LAUNCH_THERE, own, "there()"))
        found.append(case(op.LAUNCH_TORCH_THERE, lent, "there()"))
    return found
