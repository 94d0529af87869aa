# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The Python floor: the C floor's calls, each from a function of C that does nothing else.

`cfloor/python.c` has the functions, which take any arguments. Between this column and the C floor
is the interpreter: its way to a function and back, and what it finds in the processor's caches
after a driver call.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import Any

import operations as op
from cfloor import Floor, compiled
from measure import Case, python_case

LIBRARY = "Python floor"
_FAST, _KEYWORDS = 0x80, 0x2  # METH_FASTCALL, METH_KEYWORDS
_H = c.c_void_p


class _MethodDef(c.Structure):
    """PyMethodDef, methodobject.h, CPython 3.11."""

    _fields_ = (("name", c.c_char_p), ("meth", _H), ("flags", c.c_int), ("doc", c.c_char_p))


class _Prepared(c.Structure):
    """What the calls are made with, as in python.c."""

    _fields_ = (
        ("calls", _H * 5),
        ("incref", _H),
        ("none", _H),
        ("stream", _H),
        ("kernel", _H),
        ("event", _H),
        ("execs", _H * 4),
        ("node", _H),
        ("params", _H),
        ("node_params", _H),
        ("dst", c.c_uint64),
        ("src", c.c_uint64),
        ("size", c.c_size_t),
        ("block", c.c_uint),
        ("failed", c.c_int),
    )


class PythonFloor(Floor):
    """The functions, with what they need."""

    def __init__(self) -> None:
        super().__init__()
        self._functions = compiled("python.c", c.PyDLL)
        self._methods: list[_MethodDef] = []  # functions refer to them
        self._prepared = _Prepared.in_dll(self._functions, "p")
        self._prepare()

    def _prepare(self) -> None:
        p = self._prepared
        names = (
            "cuLaunchKernel",
            "cuGraphLaunch",
            "cuGraphExecKernelNodeSetParams_v2",
            "cuMemcpyAsync",
            "cuEventRecord",
        )
        for i, name in enumerate(names):
            p.calls[i] = c.cast(getattr(self._driver, name), _H).value
        p.incref, p.none = c.cast(c.pythonapi.Py_IncRef, _H).value, id(None)
        p.stream, p.kernel = self._stream.value, self._kernel.value
        p.event = self._new("cuEventCreate", c.c_uint(2)).value  # CU_EVENT_DISABLE_TIMING
        for i, nodes in enumerate(op.GRAPH):
            graph, _ = self._chain(nodes)
            p.execs[i] = self._instantiate(graph).value
        graph, node = self._chain(1)  # never launched, as in the other columns
        p.execs[3], p.node = self._instantiate(graph).value, node.value
        p.params = c.addressof(self._params)
        p.node_params = c.addressof(self._node_params())
        p.size, p.block = op.COPY_SIZE, op.BLOCK
        p.dst = self._memory("cuMemAlloc_v2", c.c_size_t(op.COPY_SIZE))
        p.src = self._new("cuMemHostAlloc", c.c_size_t(op.COPY_SIZE), c.c_uint(0)).value or 0

    def _function(self, name: str, flags: int = _FAST) -> Callable[..., None]:
        method = _MethodDef(
            name.encode(), c.cast(getattr(self._functions, name), _H).value, flags, None
        )
        self._methods.append(method)
        new: Any = c.pythonapi.PyCFunction_NewEx
        new.restype, new.argtypes = c.py_object, (_H, _H, _H)
        function: Callable[..., None] = new(c.addressof(method), None, None)
        return function

    def settle(self) -> None:
        """Wait for the stream."""
        super().settle()
        if self._prepared.failed:
            raise RuntimeError(f"Python floor: CUresult {self._prepared.failed}")

    def cases(self) -> list[Case]:
        """Return a case for each operation that has a function."""
        names: dict[str, Any] = {f"graph{i}": self._function(f"launch_graph_{i}") for i in range(3)}
        for name in ("launch_kernel", "update_node", "copy"):
            names[name] = self._function(name, _FAST | _KEYWORDS)
        names["record"] = self._function("record")
        names |= dict.fromkeys(("stream", "config", "kernel", "x", "y"))
        statements = {
            op.LAUNCH: "launch_kernel(stream, config, kernel, x, y, 1)",
            **{operation: f"graph{i}(stream)" for i, operation in enumerate(op.GRAPH.values())},
            op.UPDATE_NAMED: "update_node(n=2)",
            op.BOUND: "graph0(stream)",
            op.COPY: "copy(x, stream=stream)",
            op.RECORD: "record(x)",
        }
        return [
            python_case(operation, LIBRARY, statement, names, self.settle)
            for operation, statement in statements.items()
        ]
