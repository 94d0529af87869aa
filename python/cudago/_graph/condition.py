# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Conditions, which control the conditional nodes of graphs."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from .. import _core
from .._kernel.launch import LaunchConfig
from .._kernel.object_code import ObjectCode
from .._kernel.work import set_work
from .._native import number_text, whole

if TYPE_CHECKING:
    from .._kernel.kernel import Kernel
    from .graph import Graph

__all__ = ["Condition"]


class ConditionHandle(int):
    """A ``cudaGraphConditionalHandle``; of a kernel's arguments the type tells which are such."""

    __slots__ = ()


class Condition:
    """A 32-bit number that controls a conditional node, and that kernels set.

    Created by `Graph.condition`; `Graph.set_condition` and `Node.set_condition` add nodes that set
    it. Your own kernels take it as an argument, and set it with a function that they must declare:
    ``extern "C" __device__ void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned
    int value);``.

    Parameters
    ----------
    graph : Graph
        The graph. Once it and its executables are gone, do not launch what still has the handle.
    default : int or None
        Value at the start of each launch. None keeps the value of the previous launch, initially 0.

    Attributes
    ----------
    graph : Graph
        The graph.
    default : int or None
        Value at the start of each launch.
    handle : int
        The ``cudaGraphConditionalHandle``.

    Examples
    --------
    >>> source = '''
    ... extern "C" __device__ void
    ... cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
    ... extern "C" __global__ void halve(cudaGraphConditionalHandle more, int* n) {
    ...     *n /= 2;
    ...     cudaGraphSetConditional(more, *n > 10);
    ... }'''
    >>> halve = cudago.Program(source).compile()["halve"]
    >>> n = cudago.asarray([1000], "i4", stream=stream)
    >>> graph = cudago.Graph(device)
    >>> more = graph.condition(default=1)
    >>> loop = graph.while_loop(more)
    >>> node = loop.body.launch(cudago.LaunchConfig(grid=1, block=1), halve, more, n)
    >>> graph.instantiate().launch(stream)
    >>> n.numpy(stream=stream)
    array([7], dtype=int32)
    """

    __slots__ = ("_number", "default", "graph", "handle")

    def __init__(self, graph: Graph, default: int | None) -> None:
        self.graph: Graph = graph
        if default is not None:
            default = whole(default, "default")
            if not 0 <= default < 1 << 32:
                raise OverflowError(f"default must be 0 to 2**32-1, got {number_text(default)}")
        self.default: int | None = default
        self._number: int
        self.handle: int
        self._number, handle = graph._condition(default)
        self.handle = ConditionHandle(handle)

    def __index__(self) -> int:
        return int(self.handle)

    def __repr__(self) -> str:
        return f"<cudago.Condition {self.handle:#x}: default {self.default}>"


_core._set_condition(Condition)


def expect_condition(value: object) -> Condition:
    if not isinstance(value, Condition):
        raise TypeError(f"condition must be of type Condition, not {type(value).__name__}")
    return value


_SET = """
.visible .entry cudago_set_{name}(.param .u64 condition, .param .{type} value)
{{
	.reg .b64 %h, %d;
	.reg .b32 %v;
	ld.param.u64 %h, [condition];
	{load}
	{{
		.param .b64 a;
		.param .b32 b;
		st.param.b64 [a], %h;
		st.param.b32 [b], %v;
		call.uni cudaGraphSetConditional, (a, b);
	}}
	ret;
}}
"""
_FROM_MEMORY = "ld.param.u64 %d, [value]; ld.global.{load}"
_LOADS = {1: "u8 %v, [%d];", 2: "u16 %v, [%d];", 4: "u32 %v, [%d];"}
_LOADS[8] = "u64 %d, [%d]; min.u64 %d, %d, 4294967295; cvt.u32.u64 %v, %d;"

# Weak references: a kernel kept forever would count as a live object forever.
_setters: WeakValueDictionary[str, Kernel] = WeakValueDictionary()


def _source() -> str:
    """Return PTX of kernels that set a condition: from a number, or from memory of each size."""
    kernels = [_SET.format(name="number", type="u32", load="ld.param.u32 %v, [value];")]
    for size, load in _LOADS.items():
        load = _FROM_MEMORY.format(load=load)
        kernels.append(_SET.format(name=f"memory_{size}", type="u64", load=load))
    return (
        ".version 6.0\n.target sm_50\n.address_size 64\n"
        ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n"
        + "".join(kernels)
    )


def _kernel(name: str) -> Kernel:
    kernel = _setters.get(name)
    if kernel is None:
        kernel = ObjectCode.from_ptx(_source()).get_kernel(f"cudago_set_{name}")
        set_work(kernel, "condition")
        _setters[name] = kernel
    return kernel


def setter(condition: Condition | int, value: Any) -> tuple[LaunchConfig, Kernel, tuple[Any, ...]]:
    """Return the launch that sets a condition, after checking its operands."""
    size = getattr(value, "nbytes", None)
    # NumPy's scalars have nbytes too.
    is_scalar = getattr(value, "shape", None) == () and not hasattr(value, "__dlpack__")
    if is_scalar or (size is None and not isinstance(value, _core.Pointer)):
        try:
            value, name = operator.index(value), "number"
        except TypeError:
            raise TypeError(
                "value must be an integer, or have memory of 1, 2, 4 or 8 bytes, "
                f"not {type(value).__name__}"
            ) from None
        if not 0 <= value < 1 << 32:
            raise OverflowError(f"value must be 0 to 2**32-1, got {number_text(value)}")
    else:
        # What the object says of its size need not be true, nor be so when it is asked again.
        value = _core._operand(value, value, False)
        size, name = value.nbytes, f"memory_{value.nbytes}"
        if value.kind == "array":
            raise TypeError("value must not be an OpaqueArray, which has no address")
        if size not in _LOADS:
            raise ValueError(f"value must have 1, 2, 4 or 8 bytes, got {size}")
        if value.address % size:
            raise ValueError(
                f"value of {size} bytes must be aligned to them, got {value.address:#x}"
            )
    return LaunchConfig(grid=1, block=1), _kernel(name), (condition, value)
