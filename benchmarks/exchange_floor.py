# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The C floor of exchange with PyTorch: its own part of an import, an export and a launch, from C.

`cfloor/exchange.c` has the loops. What cudago costs on top of them is the rest of the row.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import Any, cast

import cfloor
import operations as op
import torch
from measure import Case

LIBRARY = "C floor"
_CPU, _CUDA = 1, 2  # DLPack's device types


class _Launch(c.Structure):
    """What a launch needs, as in exchange.c."""

    _fields_ = (
        ("launch", c.c_void_p),
        ("record", c.c_void_p),
        ("wait", c.c_void_p),
        ("kernel", c.c_void_p),
        ("block", c.c_uint),
        ("params", c.c_void_p),
        ("event", c.c_void_p),
        ("stream", c.c_void_p),
    )

    def __init__(self, floor: cfloor.Floor) -> None:
        super().__init__(*floor.launch())
        self.floor = floor  # whose parameters C reads


def _python(name: str, result: type, *arguments: type) -> Callable[..., int]:
    function: Any = getattr(c.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return cast("Callable[..., int]", function)


def cases(where: str) -> list[Case]:
    """Return the cases for tensors on "cuda" or "cpu".

    Raises
    ------
    FloorUnavailableError
        If there is no C compiler, or PyTorch has no exchange table.
    """
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        raise cfloor.FloorUnavailableError("this PyTorch has no exchange table of DLPack 1.3")
    loops = cfloor.compiled("exchange.c", c.PyDLL)
    pointer = _python("PyCapsule_GetPointer", c.c_void_p, c.py_object, c.c_char_p)
    table = c.c_void_p(pointer(capsule, b"dlpack_exchange_api"))
    release = c.cast(c.pythonapi.Py_DecRef, c.c_void_p)
    tensor, data = torch.ones(8, device=where), torch.ones(8, device=where)
    function = _python("PyCFunction_GetFunction", c.c_void_p, c.py_object)
    storage = c.c_void_p(function(tensor.untyped_storage))
    kind = c.c_int32(_CUDA if where == "cuda" else _CPU)
    address = c.c_void_p(data.data_ptr())

    def settle() -> None:
        if where == "cuda":
            torch.cuda.synchronize()

    def case(
        operation: str, loop: str, *arguments: object, stream: torch.cuda.Stream | None = None
    ) -> Case:
        run = getattr(loops, loop)
        run.restype = c.c_int64

        def batch() -> float:
            if where == "cuda":
                torch.cuda.set_stream(stream or torch.cuda.default_stream())
            assert tensor.data_ptr() and data.data_ptr()  # alive, both
            elapsed = int(run(*arguments))
            if elapsed < 0:
                raise RuntimeError(f"{loop}: PyTorch refused")
            return elapsed

        return Case(operation, LIBRARY, batch, settle, op.calls_per_batch(operation))

    calls, theirs = c.c_int64(op.calls_per_batch(op.IMPORT)), c.py_object(tensor)
    assert op.calls_per_batch(op.EXPORT) == calls.value
    found = [
        case(op.IMPORT, "import_tensor", table, storage, release, calls, theirs),
        case(op.EXPORT, "export_tensor", table, release, calls, address, kind),
    ]
    if where == "cuda":
        launch = _Launch(cfloor.Floor())
        launches = c.c_int64(op.calls_per_batch(op.LAUNCH_TORCH))
        given = (table, storage, release, launches, theirs, c.byref(launch))
        side = torch.cuda.Stream()
        for operation, stream in ((op.LAUNCH_TORCH, None), (op.LAUNCH_TORCH_THERE, side)):
            behind = c.c_int(stream is None)
            found.append(case(operation, "launch_with_tensor", *given, behind, stream=stream))
    return found
