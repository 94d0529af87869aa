# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The operations with CuPy. It builds graphs by capture only."""

from __future__ import annotations

from typing import Any

import cupy
import operations as op
from measure import Case, python_case

LIBRARY = "CuPy"


def _executable(names: dict[str, Any], nodes: int) -> Any:
    stream = names["stream"]
    stream.begin_capture()
    for _ in range(nodes):
        names["kernel"](*names["shape"], names["arguments"])
    return stream.end_capture()


def cases() -> list[Case]:
    """Return a case for each operation that CuPy has."""
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.use()
    x = cupy.zeros(op.COPY_SIZE // 4, "f4")
    names: dict[str, Any] = {
        "cupy": cupy,
        "stream": stream,
        "kernel": cupy.RawKernel(op.SOURCE, op.KERNEL),
        "shape": ((1,), (op.BLOCK,)),
        "arguments": (x, cupy.zeros_like(x), cupy.int32(1)),
        "x": x,
        "event": cupy.cuda.Event(disable_timing=True),
    }
    names["kernel"](*names["shape"], names["arguments"])
    pinned = cupy.cuda.alloc_pinned_memory(op.COPY_SIZE)
    names["memory"] = x.data
    names["pinned"] = pinned
    names["source"] = pinned.ptr

    def case(operation: str, statement: str) -> Case:
        return python_case(operation, LIBRARY, statement, names, stream.synchronize)

    found = [
        case(op.LAUNCH, "kernel(*shape, arguments)"),
        case(op.ALLOC, f"cupy.empty({op.ALLOC_SIZE}, 'u1')"),
        case(op.COPY, f"memory.copy_from_host_async(source, {op.COPY_SIZE}, stream)"),
        case(op.RECORD, "event.record(stream)"),
    ]
    for nodes, operation in op.GRAPH.items():
        names[f"executable{nodes}"] = _executable(names, nodes)
        statement = f"executable{nodes}.launch(stream)"
        found.append(case(operation, statement))
    found += [
        case(op.WAIT, "stream.synchronize()"),
        case(op.WAIT_GRAPH, "executable100.launch(stream); stream.synchronize()"),
    ]
    found += _big(stream)
    try:
        import torch
    except ImportError:
        return found
    names["from_dlpack"] = torch.from_dlpack
    names["theirs"] = torch.ones(8, device="cuda")
    found += [
        case(op.IMPORT, "cupy.from_dlpack(theirs)"),
        case(op.EXPORT, "from_dlpack(x)"),
    ]
    return found


def _big(stream: Any) -> list[Case]:
    """Return the cases of a large matrix."""
    shape = (op.MATRIX, op.MATRIX)
    names: dict[str, Any] = {
        "a": cupy.ones(shape, "f4"),
        "b": cupy.ones(shape, "f4"),
        "axpy": cupy.ElementwiseKernel(
            "float32 a, float32 x, float32 y", "float32 z", "z = a * x + y", "axpy"
        ),
        "two": cupy.float32(2),
        "copyto": cupy.copyto,
        "stream": stream,
    }
    half = op.MATRIX // 2
    statements = {
        op.AXPY: "axpy(two, a, b, b)",
        op.SUM: "a.sum()",
        op.SUM_ROWS: "a.sum(1)",
        op.SUM_COLUMNS: "a.sum(0)",
        op.SUM_STEPS: "a[:, ::2].sum()",
        op.COPY_STEPS: f"copyto(b[:, :{half}], a[:, ::2])",
        op.COPY_TURNED: "copyto(b, a.T)",
        op.TO_HALF: "a.astype('f2')",
    }
    return [
        python_case(
            operation, LIBRARY, f"{statement}; stream.synchronize()", names, stream.synchronize
        )
        for operation, statement in statements.items()
    ]
