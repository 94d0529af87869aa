# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The operations with PyTorch. Its launch is that of its own kernel for ``x += 1``."""

from __future__ import annotations

from typing import Any

import operations as op
import torch
from measure import Case, python_case

LIBRARY = "torch"


def _executable(names: dict[str, Any], nodes: int) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=names["stream"]):
        for _ in range(nodes):
            names["x"].add_(1)
    return graph


def cases() -> list[Case]:
    """Return a case for each operation that PyTorch has."""
    stream = torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    names: dict[str, Any] = {
        "set_stream": torch.cuda.set_stream,
        "empty": torch.empty,
        "stream": stream,
        "x": torch.zeros(op.BLOCK, device="cuda"),
        "target": torch.zeros(op.COPY_SIZE, dtype=torch.uint8, device="cuda"),
        "pinned": torch.zeros(op.COPY_SIZE, dtype=torch.uint8, pin_memory=True),
        "event": torch.cuda.Event(),
        "uint8": torch.uint8,
        "add": torch.add,
        "float16": torch.float16,
        "a": torch.ones((op.MATRIX, op.MATRIX), device="cuda"),
        "b": torch.ones((op.MATRIX, op.MATRIX), device="cuda"),
    }

    def case(operation: str, statement: str) -> Case:
        chosen = "set_stream(stream)"  # other libraries' cases may have chosen another
        return python_case(operation, LIBRARY, statement, names, stream.synchronize, setup=chosen)

    found = [
        case(op.LAUNCH, "x.add_(1)"),
        case(op.ALLOC, f"empty({op.ALLOC_SIZE}, dtype=uint8, device='cuda')"),
        case(op.COPY, "target.copy_(pinned, non_blocking=True)"),
        case(op.RECORD, "event.record(stream)"),
    ]
    for nodes, operation in op.GRAPH.items():
        names[f"executable{nodes}"] = _executable(names, nodes)
        statement = f"executable{nodes}.replay()"
        found.append(case(operation, statement))
    found += [
        case(op.WAIT, "stream.synchronize()"),
        case(op.WAIT_GRAPH, "executable100.replay(); stream.synchronize()"),
    ]
    half = op.MATRIX // 2
    big = {
        op.AXPY: "add(b, a, alpha=2.0, out=b)",
        op.SUM: "a.sum()",
        op.SUM_ROWS: "a.sum(1)",
        op.SUM_COLUMNS: "a.sum(0)",
        op.SUM_STEPS: "a[:, ::2].sum()",
        op.COPY_STEPS: f"b[:, :{half}].copy_(a[:, ::2])",
        op.COPY_TURNED: "b.copy_(a.T)",
        op.TO_HALF: "a.to(float16)",
    }
    return found + [case(name, f"{text}; stream.synchronize()") for name, text in big.items()]
