# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that reduce a tensor to one number, or along axes, from an expression for two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .._kernel.launch import LaunchConfig, launch
from .._kernel.program_options import expect_options
from .._stream.stream import stream_of
from . import overlap, walk
from .axes import SOURCE, Axes, Plan, PlanCode
from .creation import empty
from .expression import (
    BLOCK,
    TYPES,
    Declared,
    Element,
    Parameter,
    behind,
    check,
    check_name,
    check_preamble,
    compiled,
    declared,
    room,
)
from .number import expect_number
from .operand import shared

if TYPE_CHECKING:
    from .._kernel.kernel import Kernel
    from .._kernel.program_options import ProgramOptions
    from .._stream.stream import Stream
    from ..typing import StreamLike
    from .tensor import Tensor

__all__ = ["ReduceKernel", "reduce"]

_MOST_BLOCKS = 1024  # what one block then reduces at once
_EACH = 8  # elements that a thread loads at a time
_FEW = 1 << 13  # elements that one block reduces faster than two launches do

# The threads that have no element take no part: no value of theirs would be neutral for any
# operation. The threads that have one are the first of their block.
_SOURCE = """extern "C" __global__ void {name}({parameters}, unsigned long long n) {{
    const {stored}* const cudago_in = {x};
    {result}* const cudago_out = {z};
    __shared__ {u} cudago_part[{block}];
    const unsigned long long cudago_first = (unsigned long long)blockIdx.x * {block};
    const unsigned cudago_count = n - cudago_first < {block} ? (unsigned)(n - cudago_first) : {block};
    const unsigned cudago_k = threadIdx.x;
    if (cudago_k < cudago_count) {{
        {u} cudago_sum;
        const unsigned long long cudago_start = cudago_first + cudago_k;
        const unsigned long long cudago_step = (unsigned long long)gridDim.x * {block};
        for (unsigned long long cudago_from = cudago_start; cudago_from < n; cudago_from += {each} * cudago_step) {{
            {stored} cudago_read[{each}];
            #pragma unroll
            for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
                const unsigned long long i = cudago_from + cudago_j * cudago_step;
                if (i < n) cudago_read[cudago_j] = cudago_in[i];
            }}
            #pragma unroll
            for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
                const unsigned long long i = cudago_from + cudago_j * cudago_step;
                if (i >= n) break;
                const {t} {x} = {load};
                const {u} b = {map};
                if (i == cudago_start) {{
                    cudago_sum = b;
                }} else {{
                    const {u} a = cudago_sum;
                    cudago_sum = {operation};
                }}
            }}
        }}
        cudago_part[cudago_k] = cudago_sum;
    }}
    __syncthreads();
    for (unsigned cudago_half = {block} / 2; cudago_half; cudago_half /= 2) {{
        if (cudago_k < cudago_half && cudago_k + cudago_half < cudago_count) {{
            const {u} a = cudago_part[cudago_k], b = cudago_part[cudago_k + cudago_half];
            cudago_part[cudago_k] = {operation};
        }}
        __syncthreads();
    }}
    if (cudago_k == 0) cudago_out[blockIdx.x] = {store};
}}
"""  # noqa: E501


def _expression(text: str, what: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    if not text.strip() or ";" in text:
        raise ValueError(f"{what} must be one expression in C++, got {text!r}")
    return f"\n#line 1\n({text}\n)\n"  # it may end with a comment


class ReduceKernel:
    """Reduces the elements of a tensor to one, or along axes. Created by `reduce`.

    Parameters
    ----------
    input, output, operation, map, identity, name : str
        As for `reduce`.
    options : ProgramOptions, optional
        Compiler options.
    preamble : str
        Source in front of the kernel.

    Notes
    -----
    Stream-ordered on the stream of each call. Compiled at the first call for each device. The node
    of a captured call is updated by the declared names; the elements of other memory are counted.
    That of a call along axes, or of a tensor with gaps, is not: capture the call again, and use
    `GraphExec.update`.

    Examples
    --------
    >>> cudago.reduce("float x", "float z", "a + b")
    <cudago.ReduceKernel reduce(float x) -> float z>
    """

    __slots__ = (
        "__weakref__",
        "_identity",
        "_input",
        "_kernels",
        "_map",
        "_name",
        "_operation",
        "_options",
        "_output",
        "_preamble",
    )

    def __init__(
        self,
        input: str,
        output: str,
        operation: str,
        map: str | None,
        identity: Any,
        name: str,
        options: ProgramOptions | None,
        preamble: str = "",
    ) -> None:
        inputs, outputs = declared(input, "input"), declared(output, "output")
        if len(inputs) != 1 or len(outputs) != 1:
            raise ValueError(
                f"input and output must be one type and name each, got {input!r} and {output!r}"
            )
        if inputs[0].name in ("a", "b"):
            raise ValueError(
                f"input must have another name than {inputs[0].name!r}, which is taken"
            )
        check_name(name)
        expect_options(options)
        check_preamble(preamble)
        if identity is not None:
            expect_number(identity, "identity")
        self._input: Declared = inputs[0]
        self._output: Declared = outputs[0]
        self._operation: str = _expression(operation, "operation")
        self._map: str = _expression(inputs[0].name if map is None else map, "map")
        self._identity: Any = identity
        self._name: str = name
        self._options: ProgramOptions | None = options
        self._preamble: str = preamble
        self._kernels: dict[tuple[Any, ...], Kernel] = {}

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        """Leave out the kernels: they are of this process, and a copy compiles its own."""
        state: Any = object.__getstate__(self)
        return state[0], state[1] | {"_kernels": {}}

    def _kernel(
        self, device: Any, source: Element, to: Element, code: PlanCode | Literal["map", ""]
    ) -> Kernel:
        """Return the kernel that reduces along axes; or all, elements or what blocks made."""
        key = (device.ordinal, source, to, code)
        kernel = self._kernels.get(key)
        if kernel is None:
            x, z = self._input.name, self._output.name
            parameters = [
                Parameter(source, x, True),
                Parameter(to, z if z != x else "cudago_result", True, True),
            ]
            fields: dict[str, Any] = {}
            rest: tuple[str, ...] = ()
            text, work, has_map = _SOURCE, "reduction", bool(code)
            if isinstance(code, PlanCode):
                text, rest, work, fields = SOURCE, code.types, "strided reduction", code.fields
                has_map = code.has_map
            source_text = behind(self._preamble, self._options) + text.format(
                name=self._name,
                parameters=", ".join(p.text for p in parameters),
                x=x,
                z=parameters[1].name,
                t=source.value,
                u=to.value,
                stored=source.stored,
                result=to.stored,
                block=BLOCK,
                load=source.load("cudago_read[cudago_j]"),
                each=_EACH,
                store=to.store("cudago_part[threadIdx.x]" if fields else "cudago_part[0]"),
                map=self._map if has_map else x,
                operation=self._operation,
                **fields,
            )
            made = compiled(source_text, self._name, parameters, rest, work, device, self._options)
            kernel = self._kernels.setdefault(key, made)
        return kernel

    def __call__(
        self,
        x: Any,
        /,
        *,
        stream: StreamLike,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Reduce all elements to one, or those along axes.

        Parameters
        ----------
        x : Tensor
            A tensor, or an object with ``__dlpack__`` or ``__cuda_array_interface__``, of the
            element type that was declared, and aligned to its elements. It may have gaps.
        stream : Stream
            Stream that orders the work.
        axis : int or tuple of int, optional
            What is reduced, negative ones from the last; by default all. ``()`` reduces nothing:
            the result has ``map`` of each element.
        keepdims : bool
            Whether the result keeps the axes that were reduced, of size 1.
        out : Tensor, optional
            Tensor to write to, of the result's shape, or of one element if `axis` is None; by
            default a new one, whose shape has the axes that are left. It has no memory in common
            with `x`, unless `axis` is None.

        Returns
        -------
        Tensor
            `out`, or a new tensor on the device of `stream`; `Tensor.item` reads it.

        Raises
        ------
        TypeError
            If an element type is wrong, `x` is no memory with a shape and a type, or `axis` is no
            int.
        BufferError
            If a tensor with gaps is ordinary host memory: pass a copy on the device; or if the
            device's memory resource answers with misaligned memory.
        ValueError
            If a reduced axis has no elements and there is no identity, even where there is no
            result, as in NumPy; if `x` has no such axis, or it is given twice; if `out` has another
            shape, overlaps `x`, or one of both is misaligned; or if more than four dimensions are
            reduced, or kept, that are no part of a larger one.
        CompileError
            If an expression does not compile: ``.log`` has the compiler's output.

        Notes
        -----
        Stream-ordered on `stream`. The first call for a device, and for a number of dimensions that
        are reduced and kept, blocks while the kernels are compiled. While `stream` is capturing,
        pass `out`. One launch then does all, and at most one block makes a result: of millions of
        elements that is slow, so reduce them first along an axis, ``x.buffer.view(dtype, (1024,
        -1))`` to 1024 elements, and these to one. Otherwise as many blocks make a result as there
        is work for, and a second launch combines what they have made.

        `map` may use ``i`` and ``n``: the element's index among the ``n`` that make one result.

        Examples
        --------
        >>> total = cudago.reduce("float x", "float z", "a + b")
        >>> x = cudago.ones((3, 4), "f4", stream=stream)
        >>> total(x, axis=-1, stream=stream).numpy(stream=stream)
        array([4., 4., 4.], dtype=float32)
        """
        on = stream_of(stream)
        t = shared(x, on, f"{self._input.name} of {self._name}")
        check(x if t is None else t, self._input, self._name)
        x = t
        axes = Axes.of(x, axis, keepdims, self._name)
        if out is not None:
            self._check_out(x, out, None if axis is None else axes.shape)
        if self._identity is None and any(not x.shape[d] for d in axes.reduced):
            raise ValueError(f"{self._name} of no elements needs an identity")
        if x.size and x.is_contiguous and not axes.kept:
            return self._whole(x, axes.shape, on, out)
        walk.check_place(x, f"{self._input.name} of {self._name}", False)
        if out is not None:
            walk.check_place(out, f"{self._output.name} of {self._name}", True)
        if x.size:
            return self._along(x, axes, on, out)
        if out is None:
            out = empty(axes.shape, self._output.element.name, stream=on)
        if out.size:
            out.fill(self._identity, stream=on)
        return out

    def _along(self, x: Tensor, axes: Axes, on: Stream, out: Tensor | None) -> Tensor:
        """Reduce along axes, or what has gaps, by as many blocks as there is work for."""
        source, result = self._input.element, self._output.element
        plan = Plan.of(x, axes, axes.steps(x, out), self._name, not on.is_capturing)
        parts = plan.layout.parts
        # What blocks have computed is not rounded before it is all there.
        part = TYPES[result.value] if result.is_narrow and parts > 1 else result
        kernel = self._kernel(on.device, source, part, plan.code(True))
        if out is None:
            out = room(axes.shape, result, self._name, on)
        kept = tuple(x.shape[d] for d in axes.kept)
        first = out if parts == 1 else room((*kept, parts), part, self._name, on)
        given = walk.given(x, on, False), walk.given(first, on, True)
        launch(on, plan.config, kernel, *given, *plan.arguments)
        if parts > 1:
            steps, last = axes.steps(x, out), Axes.of(first, -1, False, self._name)
            plan = Plan.of(first, last, steps, self._name, False)
            kernel = self._kernel(on.device, part, result, plan.code(False))
            launch(on, plan.config, kernel, first, walk.given(out, on, True), *plan.arguments)
        return out

    def _whole(self, x: Tensor, shape: tuple[int, ...], on: Stream, out: Tensor | None) -> Tensor:
        """Reduce all elements, which have no gaps, by as many blocks as there is work for."""
        source, result = self._input.element, self._output.element
        blocks = min(-(-x.size // BLOCK), _MOST_BLOCKS)
        if on.is_capturing or x.size <= _FEW:
            blocks = 1
        # What blocks have computed is not rounded before it is all there.
        part = TYPES[result.value] if result.is_narrow and blocks > 1 else result
        kernel = self._kernel(on.device, source, part, "map")
        if out is None:
            out = room(shape, result, self._name, on)
        first = out if blocks == 1 else room(blocks, part, self._name, on)
        launch(on, LaunchConfig(blocks, BLOCK), kernel, x, first, x.size)
        if blocks > 1:
            last = self._kernel(on.device, part, result, "")
            launch(on, LaunchConfig(1, BLOCK), last, first, out, blocks)
        return out

    def _check_out(self, x: Tensor, out: Any, shape: tuple[int, ...] | None) -> None:
        """Refuse an output of another shape (None: of one element), or that others share."""
        check(out, self._output, self._name)
        if shape is None:
            if out.size != 1:
                raise ValueError(f"out must have one element, got {out.size}")
            return
        if out.shape != shape:
            raise ValueError(
                f"{self._output.name} of {self._name} must have shape {shape}, which remains of "
                f"{x.shape}, got {out.shape}"
            )
        overlap.check_once(out, f"{self._output.name} of {self._name}")
        if overlap.share(x, out):
            raise ValueError(
                f"{self._output.name} of {self._name} overlaps with {self._input.name}: out= must "
                "have no memory in common with it, or the kernel reads what it has written: pass "
                f"{self._input.name}.astype({x.dtype_name!r}, stream=s)"
            )

    def __repr__(self) -> str:
        return f"<cudago.ReduceKernel {self._name}({self._input}) -> {self._output}>"


def reduce(
    input: str,
    output: str,
    operation: str,
    *,
    map: str | None = None,
    identity: Any = None,
    name: str = "reduce",
    options: ProgramOptions | None = None,
    preamble: str = "",
) -> ReduceKernel:
    """Create a kernel that reduces the elements of a tensor to one, or along axes.

    Parameters
    ----------
    input : str
        Type and name of an element, such as ``"float x"``: one that `elementwise` takes.
    output : str
        Type and name of the result, such as ``"float z"``. All is computed in this type; a float of
        16 bits is computed as a float, and rounded once.
    operation : str
        C++ expression that makes one of two values ``a`` and ``b``, in any order: ``"a + b"``.
    map : str, optional
        C++ expression of an element, such as ``"x * x"``; by default the element.
    identity : number, optional
        Result of no elements; by default such a reduction is refused.
    name : str
        Name of the kernel, for messages and profilers.
    options : ProgramOptions, optional
        Compiler options.
    preamble : str
        Source in front of the kernel, as for `elementwise`.

    Returns
    -------
    ReduceKernel
        Called with a tensor and ``stream=``, it returns a tensor of one element; or with ``axis=``,
        what is left.

    Raises
    ------
    ValueError
        If a declaration is not one type and name, or an expression is not one.

    See Also
    --------
    elementwise : Computes each element of a tensor.

    Notes
    -----
    Nothing is compiled before the first call. The order in which values are combined depends on the
    shape and the strides, and on whether the stream is capturing, so that floating-point results
    can be repeated.

    Examples
    --------
    >>> squares = cudago.reduce("float x", "float z", "a + b", map="x * x")
    >>> squares(cudago.full(4, 1.5, "f4", stream=stream), stream=stream).item(stream=stream)
    9.0
    """
    return ReduceKernel(input, output, operation, map, identity, name, options, preamble)
