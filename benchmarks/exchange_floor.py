# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The C floor of exchange with PyTorch: its own part of an import and of an export, from C.

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

    def case(operation: str, loop: str, *arguments: object) -> Case:
        run = getattr(loops, loop)
        run.restype = c.c_int64

        def batch() -> float:
            assert tensor.data_ptr() and data.data_ptr()  # alive, both
            elapsed = int(run(*arguments))
            if elapsed < 0:
                raise RuntimeError(f"{loop}: PyTorch refused")
            return elapsed

        return Case(operation, LIBRARY, batch, lambda: None, op.calls_per_batch(operation))

    calls, theirs = c.c_int64(op.calls_per_batch(op.IMPORT)), c.py_object(tensor)
    assert op.calls_per_batch(op.EXPORT) == calls.value
    return [
        case(op.IMPORT, "import_tensor", table, storage, release, calls, theirs),
        case(op.EXPORT, "export_tensor", table, release, calls, address, kind),
    ]
