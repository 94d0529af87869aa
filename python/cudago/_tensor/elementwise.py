# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels from an expression for one element."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._kernel.launch import launch
from .._kernel.program_options import expect_options
from .._stream.stream import stream_of
from . import overlap, walk
from .expression import (
    EACH,
    Declared,
    Parameter,
    check,
    check_name,
    compiled,
    config_for,
    declared,
    room,
)
from .number import is_of_numpy, number_as
from .operand import shared
from .tensor import Tensor

if TYPE_CHECKING:
    from .._kernel.kernel import Kernel
    from .._kernel.program_options import ProgramOptions
    from .._stream.stream import Stream
    from ..typing import StreamLike

__all__ = ["ElementwiseKernel", "elementwise"]

# The parameters have the names that were declared, by which updates of nodes know them. Inside of
# the function these are the elements. All elements of a thread are loaded before one is stored, so
# that memory answers several loads at a time. Whatever leaves the user's statements before their
# end, leaves one element; and what they do to a number, they do for one.
_SOURCE = """extern "C" __global__ void {name}({parameters}, unsigned long long n{walked}) {{
    {pointers}
    const unsigned long long cudago_step = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned long long cudago_first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned long long cudago_from = cudago_first; cudago_from < n; cudago_from += {each} * cudago_step) {{
        {arrays}
        #pragma unroll
        for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
            const unsigned long long cudago_k = cudago_from + cudago_j * cudago_step;
            if (cudago_k < n) {{ {walk} {reads} }}
        }}
        #pragma unroll
        for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
            const unsigned long long i = {index}; (void)i;
            if (cudago_from + cudago_j * cudago_step < n) [&{numbers}]() mutable {{ do {{
                {loads}
                {value} {out};
                {{
#line 1
{operation}
;
                }}
                cudago_out[{at}] = {stored};
            }} while (0); }}();
        }}
    }}
}}
"""  # noqa: E501


class ElementwiseKernel:
    """Computes each element of a tensor from the same elements of others.

    Created by `elementwise`.

    Parameters
    ----------
    inputs, output, operation, name : str
        As for `elementwise`.
    options : ProgramOptions, optional
        Compiler options.

    Notes
    -----
    Stream-ordered on the stream of each call. Compiled at the first call for each device, and for
    each choice of which inputs are numbers; and for tensors with gaps or of different shapes, for
    each number of dimensions. The node of a captured call is updated by the declared names, as in
    ``node.update(x=other, a=3.0)``: tensors of the same size, or all of them of another, which is
    counted anew. Where a call had tensors with gaps or of different shapes, only its numbers are
    updated: capture the call again for other tensors, and use `GraphExec.update`.

    Examples
    --------
    >>> cudago.elementwise("float x, float a", "float z", "z = a * x")
    <cudago.ElementwiseKernel elementwise(float x, float a) -> float z>
    """

    __slots__ = ("__weakref__", "_inputs", "_kernels", "_name", "_operation", "_options", "_output")

    def __init__(
        self,
        inputs: str,
        output: str,
        operation: str,
        name: str,
        options: ProgramOptions | None,
    ) -> None:
        self._inputs = declared(inputs, "inputs")
        outputs = declared(output, "output")
        names = [d.name for d in self._inputs + outputs]
        if len(outputs) != 1:
            raise ValueError(f"output must be one type and name, got {output!r}")
        if len(set(names)) < len(names):
            raise ValueError(f"inputs and output must have different names, got {', '.join(names)}")
        if not isinstance(operation, str):
            raise TypeError(f"operation must be a str, not {type(operation).__name__}")
        check_name(name)
        expect_options(options)
        self._output: Declared = outputs[0]
        self._operation: str = operation
        self._name: str = name
        self._options: ProgramOptions | None = options
        self._kernels: dict[tuple[int, tuple[bool, ...], walk.Code | None], Kernel] = {}

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        """Leave out the kernels: they are of this process, and a copy compiles its own."""
        state: Any = object.__getstate__(self)
        return state[0], state[1] | {"_kernels": {}}

    def _parameters(self, is_tensor: tuple[bool, ...]) -> list[Parameter]:
        inputs = zip(self._inputs, is_tensor, strict=True)
        made = [Parameter(d.element, d.name, many) for d, many in inputs]
        return [*made, Parameter(self._output.element, self._output.name, True, True)]

    def _source(self, parameters: list[Parameter], code: walk.Code | None) -> str:
        *inputs, out = parameters
        pointers = [f"{out.element.stored}* const cudago_out = {out.name};"]
        arrays: list[str] = []
        reads: list[str] = []
        loads: list[str] = []
        places: list[str] = []
        for k, (element, name, many, _) in enumerate(inputs):
            stored = f"cudago_in_{k}"
            if many:
                pointers.append(f"const {element.stored}* const {stored} = {name};")
                arrays.append(f"{element.stored} cudago_read_{k}[{EACH}];")
                places.append(f"cudago_at_{k}")
                reads.append(
                    f"cudago_read_{k}[cudago_j] = {stored}[{places[-1] if code else 'cudago_k'}];"
                )
                stored = f"cudago_read_{k}[cudago_j]"
            elif element.is_narrow:
                pointers.append(f"const {element.stored} {stored} = {name};")
            if many or element.is_narrow:
                loads.append(f"const {element.value} {name} = {element.load(stored)};")
        walked, index = "", "cudago_from + cudago_j * cudago_step"
        if code:  # the output's place, and the index in row-major order
            places += ["cudago_at[cudago_j]", "cudago_index[cudago_j]"]
            arrays.append(f"long long cudago_at[{EACH}], cudago_index[{EACH}];")
            own = "".join(f"long long {place} = 0; " for place in places[:-2])
            own += "".join(f"{place} = 0; " for place in places[-2:])
            walked, index = own + code.advance("cudago_k", places), "cudago_index[cudago_j]"
        return _SOURCE.format(
            name=self._name,
            parameters=", ".join(p.text for p in parameters),
            pointers=" ".join(pointers),
            each=EACH,
            arrays=" ".join(arrays),
            reads=" ".join(reads),
            loads=" ".join(loads),
            numbers="".join(f", {p.name}" for p in inputs if not p.is_memory) + ", n",
            value=out.element.value,
            out=out.name,
            stored=out.element.store(out.name),
            operation=self._operation,
            walked=code.parameters if code else "",
            walk=walked,
            index=index,
            at="cudago_at[cudago_j]" if code else "i",
        )

    def _kernel(self, device: Any, is_tensor: tuple[bool, ...], code: walk.Code | None) -> Kernel:
        key = (device.ordinal, is_tensor, code)
        kernel = self._kernels.get(key)
        if kernel is None:
            parameters = self._parameters(is_tensor)
            text = self._source(parameters, code)
            work, rest = ("strided elements", code.types) if code else ("elements", ())
            made = compiled(text, self._name, parameters, rest, work, device, self._options)
            kernel = self._kernels.setdefault(key, made)
        return kernel

    def __call__(self, *args: Any, stream: StreamLike, out: Tensor | None = None) -> Tensor:
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
        out : Tensor, optional
            Tensor to write to, of the shape that all broadcast to. It may be one of the inputs, or
            have exactly its memory and strides. By default a new one, without gaps.

        Returns
        -------
        Tensor
            `out`, or a new tensor on the device of `stream`.

        Raises
        ------
        TypeError
            If the number of arguments, or the element type of one, is wrong; or if an argument is
            neither a number nor has a shape and a type.
        OverflowError
            If a number does not fit the type that was declared.
        BufferError
            If a tensor with gaps is ordinary host memory: pass a copy on the device; or if the
            device's memory resource answers with misaligned memory.
        ValueError
            If the shapes do not broadcast to one, or to that of `out`. If a tensor is misaligned.
            If `out` shares memory with an input in any other way than element by element, or its
            elements share memory. If tensors with gaps between their elements, or broadcast ones,
            have more than four dimensions that are no part of a larger one: pass copies.
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
            raise TypeError(f"{self._name} takes {len(self._inputs)} input(s), got {len(args)}")
        on = stream_of(stream)
        values = [self._input(k, a, on) for k, a in enumerate(args)]
        tensors = [v for v in values if isinstance(v, Tensor)]
        if out is not None:
            check(out, self._output, self._name)
            tensors.append(out)
        if not tensors:
            raise TypeError(f"{self._name} needs a tensor among its inputs, or out=")
        shape = walk.broadcast([t.shape for t in tensors], self._name)
        is_tensor = tuple(isinstance(v, Tensor) for v in values)
        if out is not None:
            if out.shape != shape:
                raise ValueError(
                    f"{self._output.name} of {self._name} must have the shape {shape} that all "
                    f"tensors broadcast to, got {out.shape}"
                )
            self._refuse_overlap(values, out)
        if not all(t.is_contiguous and t.shape == shape for t in tensors):
            return self._strided(values, is_tensor, shape, on, out)
        kernel = self._kernel(on.device, is_tensor, None)
        if out is None:
            out = room(shape, self._output.element, self._name, on)
        if out.size:
            launch(on, config_for(out.size), kernel, *values, out, out.size)
        return out

    def _strided(
        self,
        values: list[Any],
        is_tensor: tuple[bool, ...],
        shape: tuple[int, ...],
        on: Stream,
        out: Tensor | None,
    ) -> Tensor:
        """Compute the elements where the strides of the tensors are arguments too."""
        for d, v in zip([*self._inputs, self._output], [*values, out], strict=True):
            if isinstance(v, Tensor):
                walk.check_place(v, f"{d.name} of {self._name}", v is out)
        to = walk.rows(shape) if out is None else walk.over(out, shape)
        inputs = [walk.over(v, shape) for v in values if isinstance(v, Tensor)]
        over = _walk(shape, to, *inputs)
        if len(over.sizes) > walk.DIMS:
            raise ValueError(
                f"{self._name} goes over tensors of at most {walk.DIMS} dimensions that have gaps "
                f"between them or are broadcast, got {len(over.sizes)}: pass copies without gaps, "
                "x.contiguous(stream=s)"
            )
        kernel = self._kernel(on.device, is_tensor, walk.Code.of(over, "cudago"))
        if out is None:
            out = room(shape, self._output.element, self._name, on)
        if out.size:
            given = [walk.given(v, on, False) for v in values] + [walk.given(out, on, True)]
            launch(on, config_for(out.size), kernel, *given, out.size, *over.arguments)
        return out

    def _refuse_overlap(self, values: list[Any], out: Tensor) -> None:
        """Refuse an output in which an element lies where others of an input are still read."""
        own = walk.over(out, out.shape)
        overlap.check_once(out, f"{self._output.name} of {self._name}")
        for (_, parameter, _), value in zip(self._inputs, values, strict=True):
            if not isinstance(value, Tensor) or value is out or not overlap.share(value, out):
                continue
            place = value.handle, value.itemsize, walk.over(value, out.shape)
            if place != (out.handle, out.itemsize, own):
                raise ValueError(
                    f"{self._output.name} of {self._name} overlaps with {parameter}: out= must be "
                    f"{parameter} itself or have no memory in common with it, or the kernel reads "
                    f"what it has written: pass {parameter}.astype({value.dtype_name!r}, stream=s)"
                )

    def _input(self, k: int, value: Any, stream: Stream) -> Any:
        declaration = self._inputs[k]
        what = f"{declaration.name} of {self._name}"
        tensor = None if is_of_numpy(value) else shared(value, stream, what)
        if tensor is None:
            return number_as(value, declaration.element.name, what)
        check(tensor, declaration, self._name)
        return tensor

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._inputs))
        return f"<cudago.ElementwiseKernel {self._name}({inputs}) -> {self._output}>"


@lru_cache(256)  # loops ask for the same again and again
def _walk(shape: tuple[int, ...], to: tuple[int, ...], *inputs: tuple[int, ...]) -> walk.Walk:
    """Return the walk over the inputs, the output, and the index in row-major order."""
    # The output comes first: its elements are in this order.
    first = walk.Walk.over(shape, [to, *inputs, walk.rows(shape)])
    own, *others, index = first.strides
    return walk.Walk(first.sizes, (*others, own, index))


def elementwise(
    inputs: str,
    output: str,
    operation: str,
    *,
    name: str = "elementwise",
    options: ProgramOptions | None = None,
) -> ElementwiseKernel:
    """Create a kernel that computes each element of a tensor from the same elements of others.

    Parameters
    ----------
    inputs : str
        Types and names of the inputs, such as ``"float x, int32 y"``: floats, integers and bools as
        C++ calls them, also ``int32_t`` or ``size_t``, or as NumPy does; ``half`` or ``__half`` is
        float16, and ``nv_bfloat16`` or ``__nv_bfloat16`` is bfloat16.
    output : str
        Type and name of the output, such as ``"float z"``.
    operation : str
        C++ statements that set the output for one element. ``i`` is its index among ``n``, in
        row-major order. A float of 16 bits is a ``float`` in it, which is rounded to nearest even
        when it is stored: no header of CUDA is needed.
    name : str
        Name of the kernel, for messages and profilers.
    options : ProgramOptions, optional
        Compiler options.

    Returns
    -------
    ElementwiseKernel
        Called with the inputs and ``stream=``, it returns the output.

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
    """
    return ElementwiseKernel(inputs, output, operation, name, options)
