# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The operations with NVIDIA's cuda.core, 1.2."""

from __future__ import annotations

import ctypes
from typing import Any

import operations as op
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
from cuda.core.graph import GraphDefinition
from cuda.core.utils import StridedMemoryView
from measure import Case, python_case

LIBRARY = "cuda.core"


def _names() -> dict[str, Any]:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    return {
        "GraphDefinition": GraphDefinition,
        "StridedMemoryView": StridedMemoryView,
        "launch": launch,
        "device": device,
        "stream": stream,
        "kernel": ObjectCode.from_ptx(op.PTX.encode()).get_kernel(op.KERNEL),
        "config": LaunchConfig(grid=1, block=op.BLOCK),
        "x": device.allocate(op.COPY_SIZE, stream=stream),
        "y": device.allocate(op.COPY_SIZE, stream=stream),
        "n": ctypes.c_int(1),
        "pinned": LegacyPinnedMemoryResource().allocate(op.COPY_SIZE),
        "event": device.create_event(),
    }


def _executable(names: dict[str, Any], nodes: int) -> Any:
    node = graph = GraphDefinition()
    for _ in range(nodes):
        node = node.launch(names["config"], names["kernel"], names["x"], names["y"], names["n"])
    return graph.instantiate()


def cases() -> list[Case]:
    """Return a case for each operation."""
    names = _names()
    settle = names["stream"].sync

    def case(operation: str, statement: str, **options: Any) -> Case:
        return python_case(operation, LIBRARY, statement, names, settle, **options)

    found = [
        case(op.LAUNCH, "launch(stream, config, kernel, x, y, n)"),
        case(
            op.ADD_NODE,
            "node = node.launch(config, kernel, x, y, n)",
            setup="graph = GraphDefinition(); node = graph.launch(config, kernel, x, y, n)",
        ),
        case(op.ALLOC, f"device.allocate({op.ALLOC_SIZE}, stream=stream).close()"),
        case(op.COPY, "x.copy_from(pinned, stream=stream)"),
        case(op.RECORD, "stream.record(event)"),
    ]
    for nodes, operation in op.GRAPH.items():
        names[f"executable{nodes}"] = _executable(names, nodes)
        statement = f"executable{nodes}.launch(stream)"
        found.append(case(operation, statement))
    found += [
        case(op.WAIT, "stream.sync()"),
        case(op.WAIT_GRAPH, "executable100.launch(stream); stream.sync()"),
    ]
    try:
        import torch
    except ImportError:
        return found
    names["theirs"] = torch.ones(8, device="cuda")
    # Stream -1: no ordering between streams, the least that the call can do.
    found.append(case(op.IMPORT, "StridedMemoryView.from_dlpack(theirs, stream_ptr=-1)"))
    return found
