# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that reduce tensors to one number, or along axes, from an expression for two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from .._kernel.launch import LaunchConfig, launch
from .._kernel.program_options import expect_options
from .._stream.stream import stream_of
from . import walk
from .axes import Axes, Plan, PlanCode
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
    wrong_count,
)
from .number import expect_number
from .placeholder import closed, told, with_types
from .reduce_rules import check_out, expression, of_nothing, refuse_overlap, values_of
from .reduce_source import Expressions, source
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._kernel.kernel import Kernel
    from .._kernel.program_options import ProgramOptions
    from .._stream.stream import Stream
    from ..typing import StreamLike
    from .elementwise import ElementwiseKernel

    # Of the launches that reduce: blocks make results, or parts, which the last one combines.
    Stage = Literal["only", "first", "last"]

__all__ = ["ReduceKernel", "reduce"]

_MOST_BLOCKS = 1024  # what one block then reduces at once
_FEW = 1 << 13  # elements that one block reduces faster than two launches do


class ReduceKernel:
    """Reduces the elements of a tensor to one, or along axes. Created by `reduce`.

    Parameters
    ----------
    input, output, operation, map, identity, name : str
        As for `reduce`.
    options : ProgramOptions, optional
        Compiler options.
    preamble, post_map : str
        Source in front of the kernel, and expression of what the elements were reduced to.

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
        "_expressions",
        "_identity",
        "_inputs",
        "_is_open",
        "_kernels",
        "_name",
        "_nothing",
        "_options",
        "_output",
        "_preamble",
        "_texts",
        "_typed",
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
        post_map: str | None = None,
    ) -> None:
        self._inputs = declared(input, "input")
        outputs = declared(output, "output")
        if len(outputs) != 1:
            raise ValueError(f"output must be one type and name, got {output!r}")
        names = [d.name for d in self._inputs]
        if taken := {"a", "b"}.intersection(names):
            raise ValueError(f"input must have another name than {min(taken)!r}, which is taken")
        if len(set(names)) < len(names):
            raise ValueError(f"inputs must have different names, got {', '.join(names)}")
        if map is None and len(names) > 1:
            raise ValueError(f"map must be given, which makes one value of {', '.join(names)}")
        check_name(name)
        expect_options(options)
        check_preamble(preamble)
        if identity is not None:
            expect_number(identity, "identity")
        self._output: Declared = outputs[0]
        self._expressions: Expressions = Expressions(
            expression(names[0] if map is None else map, "map"),
            expression(operation, "operation"),
            "" if post_map is None else expression(post_map, "post_map"),
        )
        self._identity: Any = identity
        self._name: str = name
        self._options: ProgramOptions | None = options
        self._preamble: str = preamble
        self._texts: tuple[str, str | None, str | None] = operation, map, post_map
        self._is_open: bool = any(d.is_open for d in (*self._inputs, self._output))
        self._typed: dict[tuple[Any, ...], ReduceKernel] = {}
        self._kernels: dict[tuple[Any, ...], Kernel] = {}
        self._nothing: ElementwiseKernel | None = None

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        """Leave out the kernels: they are of this process, and a copy compiles its own."""
        state: Any = object.__getstate__(self)
        return state[0], state[1] | {"_kernels": {}, "_nothing": None, "_typed": {}}

    def _kernel(
        self,
        device: Any,
        values: Sequence[Any],
        part: Element,
        code: PlanCode | None,
        stage: Stage,
    ) -> Kernel:
        """Return the kernel that reduces along axes, or all; elements, or the parts of blocks."""
        key = (device.ordinal, stage, code, *[isinstance(v, Tensor) for v in values])
        kernel = self._kernels.get(key)
        if kernel is None:
            made = self._made(device, values, part, code, stage)
            kernel = self._kernels.setdefault(key, made)
        return kernel

    def _made(
        self, device: Any, values: Sequence[Any], part: Element, code: PlanCode | None, stage: str
    ) -> Kernel:
        given = zip(self._inputs, values, strict=True)
        inputs = [Parameter(d.element, d.name, isinstance(v, Tensor)) for d, v in given]
        does, to = self._expressions, part if stage == "first" else self._output.element
        if stage == "first":
            does = does._replace(post_map="")
        if stage == "last":  # of what blocks have made; numbers are given again
            first = next(p.name for p in inputs if p.is_memory)
            inputs = [Parameter(part, first, True), *(p for p in inputs if not p.is_memory)]
            does = does._replace(map=first)
        is_taken = self._output.name in [d.name for d in self._inputs]
        name = "cudago_result" if is_taken else self._output.name
        parameters = [*inputs, Parameter(to, name, True, True)]
        text = behind(self._preamble, self._options)
        text += source(self._name, parameters, does, code, stage == "last")
        rest = code.types if code else ()
        if stage == "last" and does.post_map:
            rest = (*rest, "unsigned long long")
        work = "strided reduction" if code else "reduction"
        return compiled(text, self._name, parameters, rest, work, device, self._options)

    def __call__(
        self,
        *args: Any,
        stream: StreamLike,
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        """Reduce all elements to one, or those along axes.

        Parameters
        ----------
        *args
            One for each input: a Tensor, or an object with ``__dlpack__`` or
            ``__cuda_array_interface__``, of the element type that was declared, and aligned to its
            elements. It may have gaps. Of several, some may be numbers, for all elements, and
            tensors have one shape or shapes that broadcast to one.
        stream : Stream
            Stream that orders the work.
        axis : int or tuple of int, optional
            What is reduced of the shape that all broadcast to, negative ones from the last; by
            default all. ``()`` reduces nothing: the result has ``map`` of each element.
        keepdims : bool
            Whether the result keeps the axes that were reduced, of size 1.
        out : Tensor, optional
            Tensor to write to, of the result's shape, or of one element if `axis` is None; by
            default a new one, whose shape has the axes that are left. It has no memory in common
            with an input, unless `axis` is None.

        Returns
        -------
        Tensor
            `out`, or a new tensor on the device of `stream`; `Tensor.item` reads it.

        Raises
        ------
        TypeError
            If the number of arguments or an element type is wrong, an argument is no memory with a
            shape and a type, or `axis` is no int.
        OverflowError
            If a number does not fit the type that was declared.
        BufferError
            If a tensor with gaps is ordinary host memory: pass a copy on the device; or if the
            device's memory resource answers with misaligned memory.
        ValueError
            If a reduced axis has no elements and there is no identity, even where there is no
            result, as in NumPy; if there is no such axis, or it is given twice; if the shapes do
            not broadcast to one; if `out` has another shape, overlaps an input, or one of them is
            misaligned; or if more than four dimensions are reduced, or kept, that are no part of a
            larger one.
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
        if len(args) != len(self._inputs):
            raise wrong_count(len(args), self._inputs, [self._output], self._name)
        on = stream_of(stream)
        if self._is_open:
            given, types = told(self._name, self._inputs, [self._output], args, out, on)
            of = self._of(types)
            return of(*given, stream=on, axis=axis, keepdims=keepdims, out=out)
        values = values_of(args, self._inputs, self._name, on)
        tensors = [v for v in values if isinstance(v, Tensor)]
        shape = walk.broadcast([t.shape for t in tensors], self._name)
        axes = Axes.of(shape, axis, keepdims, self._name)
        if out is not None:
            check(out, self._output, self._name)
            left = None if axis is None else axes.shape
            check_out(out, f"{self._output.name} of {self._name}", shape, left)
            if axis is not None:
                names = [d.name for d in self._inputs]
                refuse_overlap(out, f"{self._output.name} of {self._name}", names, values)
        if self._identity is None and any(not shape[d] for d in axes.reduced):
            raise ValueError(f"{self._name} of no elements needs an identity")
        size = math.prod(shape)
        if size and not axes.kept and all(t.is_contiguous and t.shape == shape for t in tensors):
            return self._whole(values, size, axes.shape, on, out)
        for d, v in zip(self._inputs, values, strict=True):
            if isinstance(v, Tensor):
                walk.check_place(v, f"{d.name} of {self._name}", False)
        if out is not None:
            walk.check_place(out, f"{self._output.name} of {self._name}", True)
        if size:
            return self._along(values, shape, axes, on, out)
        if out is None:
            out = room(axes.shape, self._output.element, self._name, on)
        if out.size:
            self._fill(out, on)
        return out

    def _of(self, types: dict[str, Element]) -> ReduceKernel:
        """Return the kernel for types that the tensors of a call have told."""
        key = tuple(types.items())
        if key not in self._typed:
            operation, map, post_map = self._texts
            made = ReduceKernel(
                closed(self._inputs, types),
                closed([self._output], types),
                operation,
                map,
                self._identity,
                self._name,
                self._options,
                with_types(self._preamble, types),
                post_map,
            )
            return self._typed.setdefault(key, made)
        return self._typed[key]

    def _fill(self, out: Tensor, on: Stream) -> None:
        """Write the result of no elements."""
        if not self._expressions.post_map:
            out.fill(self._identity, stream=on)
            return
        if self._nothing is None:
            of = self._output, self._expressions.post_map
            self._nothing = of_nothing(*of, self._name, self._options, self._preamble)
        self._nothing(self._identity, stream=on, out=out)

    def _makes_parts(self, count: int, part: Element) -> bool:
        """Whether the kernel is another one than where each block makes a result."""
        return count > 1 and bool(self._expressions.post_map or part != self._output.element)

    def _along(
        self,
        values: Sequence[Any],
        shape: tuple[int, ...],
        axes: Axes,
        on: Stream,
        out: Tensor | None,
    ) -> Tensor:
        """Reduce along axes, or what has gaps, by as many blocks as there is work for."""
        result, tensors = self._output.element, [v for v in values if isinstance(v, Tensor)]
        steps = axes.steps(shape, out)
        plan = Plan.of(shape, tensors, axes, steps, self._name, not on.is_capturing)
        parts = plan.layout.parts
        # What blocks have computed is not rounded before it is all there.
        part = TYPES[result.value] if result.is_narrow and parts > 1 else result
        stage: Stage = "first" if self._makes_parts(parts, part) else "only"
        kernel = self._kernel(on.device, values, part, plan.code(), stage)
        if out is None:
            out = room(axes.shape, result, self._name, on)
        kept = tuple(shape[d] for d in axes.kept)
        first = out if parts == 1 else room((*kept, parts), part, self._name, on)
        given = [walk.given(v, on, False) for v in values]
        launch(on, plan.config, kernel, *given, walk.given(first, on, True), *plan.arguments)
        if parts > 1:
            last = Axes.of(first.shape, -1, False, self._name)
            count = plan.reduced.size
            plan = Plan.of(first.shape, [first], last, axes.steps(shape, out), self._name, False)
            kernel = self._kernel(on.device, values, part, plan.code(), "last")
            numbers = [v for v in values if not isinstance(v, Tensor)]
            rest = (*plan.arguments, count) if self._expressions.post_map else plan.arguments
            launch(on, plan.config, kernel, first, *numbers, walk.given(out, on, True), *rest)
        return out

    def _whole(
        self,
        values: Sequence[Any],
        size: int,
        shape: tuple[int, ...],
        on: Stream,
        out: Tensor | None,
    ) -> Tensor:
        """Reduce all elements, which have no gaps, by as many blocks as there is work for."""
        result = self._output.element
        blocks = min(-(-size // BLOCK), _MOST_BLOCKS)
        if on.is_capturing or size <= _FEW:
            blocks = 1
        # What blocks have computed is not rounded before it is all there.
        part = TYPES[result.value] if result.is_narrow and blocks > 1 else result
        stage: Stage = "first" if self._makes_parts(blocks, part) else "only"
        kernel = self._kernel(on.device, values, part, None, stage)
        if out is None:
            out = room(shape, result, self._name, on)
        first = out if blocks == 1 else room(blocks, part, self._name, on)
        launch(on, LaunchConfig(blocks, BLOCK), kernel, *values, first, size)
        if blocks > 1:
            last = self._kernel(on.device, values, part, None, "last")
            numbers = [v for v in values if not isinstance(v, Tensor)]
            rest = (blocks, size) if self._expressions.post_map else (blocks,)
            launch(on, LaunchConfig(1, BLOCK), last, first, *numbers, out, *rest)
        return out

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._inputs))
        return f"<cudago.ReduceKernel {self._name}({inputs}) -> {self._output}>"


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
    post_map: str | None = None,
) -> ReduceKernel:
    """Create a kernel that reduces the elements of a tensor to one, or along axes.

    Parameters
    ----------
    input : str
        Type and name of an element, such as ``"float x"``: one that `elementwise` takes. Of several
        tensors, ``"float x, bool m"``, `map` makes one value.
    output : str
        Type and name of the result, such as ``"float z"``. All is computed in this type; a float of
        16 bits is computed as a float, and rounded once.
    operation : str
        C++ expression that makes one of two values ``a`` and ``b``, in any order: ``"a + b"``.
    map : str, optional
        C++ expression of an element, such as ``"x * x"``; by default the element.
    identity : number, optional
        What no elements are reduced to; by default such a reduction is refused.
    name : str
        Name of the kernel, for messages and profilers.
    options : ProgramOptions, optional
        Compiler options.
    preamble : str
        Source in front of the kernel, as for `elementwise`.
    post_map : str, optional
        C++ expression of ``a``, to which ``n`` elements were reduced, such as ``"sqrt(a)"`` or ``"a
        / n"``; by default ``a``. It can use inputs that are numbers.

    Returns
    -------
    ReduceKernel
        Called with a tensor and ``stream=``, it returns a tensor of one element; or with ``axis=``,
        what is left.

    Raises
    ------
    ValueError
        If a declaration is not a type and a name, several inputs have no `map`, or an expression is
        not one.

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

    The sum of what a mask chooses, and a norm:

    >>> chosen = cudago.reduce("float x, bool m", "float z", "a + b", map="m ? x : 0")
    >>> norm = cudago.reduce("float x", "float z", "a + b", map="x * x", post_map="sqrt(a)")
    >>> norm(cudago.full(4, 1.5, "f4", stream=stream), stream=stream).item(stream=stream)
    3.0
    """
    return ReduceKernel(input, output, operation, map, identity, name, options, preamble, post_map)
