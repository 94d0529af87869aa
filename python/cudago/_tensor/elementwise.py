# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels from an expression for one element."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from .._kernel.launch import launch
from .._kernel.program_options import expect_options
from .._native import number_text
from .._stream.stream import stream_of
from . import overlap, walk
from .creation import _shape
from .element_source import source
from .expression import (
    Declared,
    Parameter,
    argument,
    behind,
    check,
    check_name,
    check_preamble,
    compiled,
    config_for,
    declared,
    is_several,
    room,
    wrong_count,
)
from .placeholder import closed, told, with_types
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._kernel.kernel import Kernel
    from .._kernel.program_options import ProgramOptions
    from .._stream.stream import Stream
    from ..typing import Dims, StreamLike
    from .expression import Element

__all__ = ["ElementwiseKernel", "elementwise"]


class ElementwiseKernel:
    """Computes each element of one tensor, or of several, from the same elements of others.

    Created by `elementwise`.

    Parameters
    ----------
    inputs, output, operation, name : str
        As for `elementwise`.
    options : ProgramOptions, optional
        Compiler options.
    preamble : str
        Source in front of the kernel.

    Notes
    -----
    Stream-ordered on the stream of each call. Compiled at the first call for each device, and for
    each choice of types that are left open, and of which inputs are numbers; and for tensors with
    gaps or of different shapes, for each number of dimensions. The node of a captured call is
    updated by the declared names, as in ``node.update(x=other, a=3.0)``: tensors of the same size,
    or all of them of another, which is counted anew. Where a call had tensors with gaps or of
    different shapes, or several outputs, only its numbers are updated: capture the call again for
    other tensors, and use `GraphExec.update`.

    Examples
    --------
    >>> cudago.elementwise("float x, float a", "float z", "z = a * x")
    <cudago.ElementwiseKernel elementwise(float x, float a) -> float z>
    """

    __slots__ = (
        "__weakref__",
        "_inputs",
        "_is_open",
        "_kernels",
        "_name",
        "_operation",
        "_options",
        "_outputs",
        "_preamble",
        "_typed",
    )

    def __init__(
        self,
        inputs: str,
        output: str,
        operation: str,
        name: str,
        options: ProgramOptions | None,
        preamble: str = "",
    ) -> None:
        has_none = isinstance(inputs, str) and not inputs.strip()
        self._inputs = [] if has_none else declared(inputs, "inputs")
        self._outputs = declared(output, "output")
        names = [d.name for d in self._inputs + self._outputs]
        if len(set(names)) < len(names):
            raise ValueError(f"inputs and output must have different names, got {', '.join(names)}")
        if not isinstance(operation, str):
            raise TypeError(f"operation must be a str, not {type(operation).__name__}")
        check_name(name)
        expect_options(options)
        check_preamble(preamble)
        self._operation: str = operation
        self._name: str = name
        self._options: ProgramOptions | None = options
        self._preamble: str = preamble
        self._is_open: bool = any(d.is_open for d in (*self._inputs, *self._outputs))
        self._typed: dict[tuple[Any, ...], ElementwiseKernel] = {}
        self._kernels: dict[tuple[int, tuple[bool, ...], walk.Code | None], Kernel] = {}

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        """Leave out the kernels: they are of this process, and a copy compiles its own."""
        state: Any = object.__getstate__(self)
        return state[0], state[1] | {"_kernels": {}, "_typed": {}}

    def _parameters(self, is_tensor: tuple[bool, ...]) -> list[Parameter]:
        inputs = zip(self._inputs, is_tensor, strict=True)
        made = [Parameter(d.element, d.name, many) for d, many in inputs]
        return made + [Parameter(d.element, d.name, True, True) for d in self._outputs]

    def _kernel(self, device: Any, is_tensor: tuple[bool, ...], code: walk.Code | None) -> Kernel:
        key = (device.ordinal, is_tensor, code)
        kernel = self._kernels.get(key)
        if kernel is None:
            parameters = self._parameters(is_tensor)
            text = behind(self._preamble, self._options)
            text += source(self._name, parameters, self._operation, code)
            rest = code.types if code else ()
            # Updates check one output against the inputs.
            work = "strided elements" if code or len(self._outputs) > 1 else "elements"
            made = compiled(text, self._name, parameters, rest, work, device, self._options)
            kernel = self._kernels.setdefault(key, made)
        return kernel

    @overload
    def __call__(
        self, *args: Any, stream: StreamLike, out: Tensor, shape: Dims | None = None
    ) -> Tensor: ...
    @overload
    def __call__(
        self, *args: Any, stream: StreamLike, out: tuple[Tensor, ...], shape: Dims | None = None
    ) -> tuple[Tensor, ...]: ...
    @overload
    def __call__(
        self, *args: Any, stream: StreamLike, out: None = None, shape: Dims | None = None
    ) -> Any: ...
    def __call__(
        self,
        *args: Any,
        stream: StreamLike,
        out: Tensor | tuple[Tensor, ...] | None = None,
        shape: Dims | None = None,
    ) -> Any:
        """Compute the elements.

        Parameters
        ----------
        *args
            One for each input: a Tensor, an object with ``__dlpack__`` or
            ``__cuda_array_interface__``, or a number for all elements. Tensors have the element
            types that were declared, are aligned to their elements, and have one shape or shapes
            that broadcast to one, as NumPy's do. Numbers are of Python, NumPy (also arrays without
            dimensions) or ctypes. A number for a bool is True unless it is zero.
        stream : Stream
            Stream that orders the work.
        out : Tensor or tuple of Tensor, optional
            Tensor to write to, of the shape that all broadcast to; of several outputs a tuple, with
            one for each. It may be one of the inputs, or have exactly its memory and strides. By
            default a new one, without gaps.
        shape : int or sequence of int, optional
            A shape to which the tensors broadcast, or that of the outputs where no tensor tells it.

        Returns
        -------
        Tensor or tuple of Tensor
            `out`, or a new tensor on the device of `stream`; of several outputs a tuple.

        Raises
        ------
        TypeError
            If the number of arguments or outputs, or the element type of one, is wrong; or if an
            argument is neither a number nor has a shape and a type.
        OverflowError
            If a number does not fit the type that was declared.
        BufferError
            If a tensor with gaps is ordinary host memory: pass a copy on the device; or if the
            device's memory resource answers with misaligned memory.
        ValueError
            If the shapes do not broadcast to one, or to that of `out`. If a tensor is misaligned.
            If an output shares memory with an input in any other way than element by element, or
            with another output, or its elements share memory. If tensors with gaps between their
            elements, or broadcast ones, have more than four dimensions that are no part of a larger
            one: pass copies.
        CompileError
            If the operation does not compile: ``.log`` has the compiler's output.

        Notes
        -----
        Stream-ordered on `stream`. The first call for a device and a choice of tensors blocks while
        the kernel is compiled. While `stream` is capturing, pass `out`.

        Tensors with gaps, or of different shapes, are not copied: another kernel takes their
        strides. `i` is the element's index in row-major order of the shape that all broadcast to.
        """
        if len(args) != len(self._inputs):
            raise wrong_count(len(args), self._inputs, self._outputs, self._name)
        on = stream_of(stream)
        if self._is_open:
            values, types = told(self._name, self._inputs, self._outputs, args, out, on)
            return self._of(types)(*values, stream=on, out=out, shape=shape)
        given = zip(args, self._inputs, strict=True)
        values = [argument(a, d, self._name, on) for a, d in given]
        outs: tuple[Tensor, ...] = self._given(out)
        tensors = [v for v in (*values, *outs) if isinstance(v, Tensor)]
        shapes = [t.shape for t in tensors]
        if shape is not None:
            shapes.append(_extents(shape))
        if not shapes:
            raise TypeError(f"{self._name} needs a tensor among its inputs, out= or shape=")
        whole = walk.broadcast(shapes, self._name)
        for d, one in zip(self._outputs, outs, strict=False):
            if one.shape != whole:
                raise ValueError(
                    f"{d.name} of {self._name} must have the shape {whole} that all "
                    f"tensors broadcast to, got {one.shape}"
                )
        if outs:
            self._refuse_overlap(values, outs)
        is_tensor = tuple(isinstance(v, Tensor) for v in values)
        if all(t.is_contiguous and t.shape == whole for t in tensors):
            kernel = self._kernel(on.device, is_tensor, None)
            outs = outs or self._new(whole, on)
            if outs[0].size:
                launch(on, config_for(outs[0].size), kernel, *values, *outs, outs[0].size)
        else:
            outs = self._strided(values, is_tensor, whole, on, outs)
        return outs[0] if len(self._outputs) == 1 else outs

    def _of(self, types: dict[str, Element]) -> ElementwiseKernel:
        """Return the kernel for types that the tensors of a call have told."""
        key = tuple(types.items())
        if key not in self._typed:
            made = ElementwiseKernel(
                closed(self._inputs, types),
                closed(self._outputs, types),
                self._operation,
                self._name,
                self._options,
                with_types(self._preamble, types),
            )
            return self._typed.setdefault(key, made)
        return self._typed[key]

    def _given(self, out: Any) -> tuple[Tensor, ...]:
        """Return the outputs that a call was given, which are right but for their shapes."""
        if out is None:
            return ()
        count = len(self._outputs)
        several: Sequence[Any] | None = out if is_several(out) else None
        if count > 1 and (several is None or len(several) != count):
            got = type(out).__name__ if several is None else f"{len(several)} of them"
            names = ", ".join(d.name for d in self._outputs)
            raise TypeError(
                f"out of {self._name} must be a tuple of {count} tensors, {names}, got {got}"
            )
        outs: tuple[Any, ...] = tuple(several) if several and count > 1 else (out,)
        for one, declaration in zip(outs, self._outputs, strict=True):
            check(one, declaration, self._name)
        return outs

    def _new(self, shape: tuple[int, ...], on: Stream) -> tuple[Tensor, ...]:
        return tuple(room(shape, d.element, self._name, on) for d in self._outputs)

    def _strided(
        self,
        values: list[Any],
        is_tensor: tuple[bool, ...],
        shape: tuple[int, ...],
        on: Stream,
        outs: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """Compute the elements where the strides of the tensors are arguments too."""
        for given, of, is_written in ((values, self._inputs, False), (outs, self._outputs, True)):
            for d, v in zip(of, given, strict=False):
                if isinstance(v, Tensor):
                    walk.check_place(v, f"{d.name} of {self._name}", is_written)
        to = [walk.over(o, shape) for o in outs] or [walk.rows(shape)] * len(self._outputs)
        over = _walk(
            shape, tuple(to), *(walk.over(v, shape) for v in values if isinstance(v, Tensor))
        )
        if len(over.sizes) > walk.DIMS:
            raise ValueError(
                f"{self._name} goes over tensors of at most {walk.DIMS} dimensions that have gaps "
                f"between them or are broadcast, got {len(over.sizes)}: pass copies without gaps, "
                "x.contiguous(stream=s)"
            )
        kernel = self._kernel(on.device, is_tensor, walk.Code.of(over, "cudago"))
        outs = outs or self._new(shape, on)
        size = outs[0].size
        if size:
            given = [walk.given(v, on, False) for v in values]
            given += [walk.given(o, on, True) for o in outs]
            launch(on, config_for(size), kernel, *given, size, *over.arguments)
        return outs

    def _refuse_overlap(self, values: list[Any], outs: tuple[Tensor, ...]) -> None:
        """Refuse outputs in which an element lies where others of an input are still read."""
        for k, (d, out) in enumerate(zip(self._outputs, outs, strict=False)):
            overlap.check_once(out, f"{d.name} of {self._name}")
            for other, before in zip(self._outputs[:k], outs, strict=False):
                if overlap.share(before, out):
                    raise ValueError(
                        f"{d.name} of {self._name} overlaps with {other.name}: each output must "
                        "have memory of its own"
                    )
            self._refuse_inputs(values, d, out)

    def _refuse_inputs(self, values: list[Any], written: Declared, out: Tensor) -> None:
        own = walk.over(out, out.shape)
        for (_, parameter, _), value in zip(self._inputs, values, strict=True):
            if not isinstance(value, Tensor) or value is out or not overlap.share(value, out):
                continue
            place = value.handle, value.itemsize, walk.over(value, out.shape)
            if place != (out.handle, out.itemsize, own):
                raise ValueError(
                    f"{written.name} of {self._name} overlaps with {parameter}: out= must be "
                    f"{parameter} itself or have no memory in common with it, or the kernel reads "
                    f"what it has written: pass {parameter}.astype({value.dtype_name!r}, stream=s)"
                )

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._inputs))
        outputs = ", ".join(map(str, self._outputs))
        return f"<cudago.ElementwiseKernel {self._name}({inputs}) -> {outputs}>"


def _extents(shape: Dims) -> tuple[int, ...]:
    """Return the sizes of a shape that a call was given."""
    sizes = _shape(shape)
    for n in sizes:
        if not 0 <= n <= sys.maxsize:
            raise ValueError(f"shape must have sizes of 0 to 2**63 - 1, got {number_text(n)}")
    return sizes


@lru_cache(256)  # loops ask for the same again and again
def _walk(
    shape: tuple[int, ...], to: tuple[tuple[int, ...], ...], *inputs: tuple[int, ...]
) -> walk.Walk:
    """Return the walk over the inputs, the outputs, and the index in row-major order."""
    # The outputs come first: the elements of the first one are in this order.
    first = walk.Walk.over(shape, [*to, *inputs, walk.rows(shape)])
    own, others = first.strides[: len(to)], first.strides[len(to) : -1]
    return walk.Walk(first.sizes, (*others, *own, first.strides[-1]))


def elementwise(
    inputs: str,
    output: str,
    operation: str,
    *,
    name: str = "elementwise",
    options: ProgramOptions | None = None,
    preamble: str = "",
) -> ElementwiseKernel:
    """Create a kernel that computes each element of tensors from the same elements of others.

    Parameters
    ----------
    inputs : str
        Types and names of the inputs, such as ``"float x, int32 y"``: floats, integers and bools as
        C++ calls them, also ``int32_t`` or ``size_t``, or as NumPy does; ``half`` or ``__half`` is
        float16, and ``nv_bfloat16`` or ``__nv_bfloat16`` is bfloat16.
    output : str
        Type and name of the output, such as ``"float z"``; or of several, ``"float z, int32 k"``.
    operation : str
        C++ statements that set the outputs for one element. ``i`` is its index among ``n``, in
        row-major order. A float of 16 bits is a ``float`` in it, which is rounded to nearest even
        when it is stored: no header of CUDA is needed.
    name : str
        Name of the kernel, for messages and profilers.
    options : ProgramOptions, optional
        Compiler options.
    preamble : str
        Source in front of the kernel: headers to include, and functions that the operation calls,
        such as ``"__device__ float half_of(float x) { return x / 2; }"``.

    Returns
    -------
    ElementwiseKernel
        Called with the inputs and ``stream=``, it returns the output, or a tuple of several.

    Raises
    ------
    ValueError
        If a declaration is not a type and a name, or a name is there twice.

    See Also
    --------
    Program : Compiles any kernel.

    Notes
    -----
    Nothing is compiled before the first call.

    Examples
    --------
    >>> doubled = cudago.elementwise("float x, float y", "float z", "z = 2 * x + y")
    >>> x = cudago.full(3, 1.5, "f4", stream=stream)
    >>> doubled(x, 1, stream=stream).numpy(stream=stream)
    array([4., 4., 4.], dtype=float32)

    Several outputs are a tuple:

    >>> split = cudago.elementwise("float x", "float whole, float rest", "rest = modff(x, &whole)")
    >>> whole, rest = split(x, stream=stream)
    >>> rest.numpy(stream=stream)
    array([0.5, 0.5, 0.5], dtype=float32)
    """
    return ElementwiseKernel(inputs, output, operation, name, options, preamble)
