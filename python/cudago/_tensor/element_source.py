# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The source of kernels that compute one element at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .expression import EACH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import walk
    from .expression import Parameter

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
                {values}
                {{
#line 1
{operation}
;
                }}
                {stores}
            }} while (0); }}();
        }}
    }}
}}
"""  # noqa: E501


class Inputs(NamedTuple):
    """The statements of a kernel that are about what it reads.

    Attributes
    ----------
    pointers
        Give other names to the parameters, which an element has in an expression.
    arrays
        Declare what a thread has read.
    reads, loads
        Read an element of each into that, and make the values of it that an expression sees.
    places
        What the places of elements are called, of each that is memory.
    numbers
        Make the values of numbers, where these have not the type of an expression.
    """

    pointers: list[str]
    arrays: list[str]
    reads: list[str]
    loads: list[str]
    places: list[str]
    numbers: list[str]

    @classmethod
    def of(cls, inputs: Sequence[Parameter], each: int, place: str) -> Inputs:
        """Return the statements for threads that read so many; ``{}`` in `place` is a number."""
        made = cls([], [], [], [], [], [])
        for k, (element, name, many, _) in enumerate(inputs):
            stored = f"cudago_in_{k}"
            if many:
                made.pointers.append(f"const {element.stored}* const {stored} = {name};")
                made.arrays.append(f"{element.stored} cudago_read_{k}[{each}];")
                made.places.append(place.format(k))
                made.reads.append(f"cudago_read_{k}[cudago_j] = {stored}[{place.format(k)}];")
                stored = f"cudago_read_{k}[cudago_j]"
            elif element.is_narrow:
                made.pointers.append(f"const {element.stored} {stored} = {name};")
            load = f"const {element.value} {name} = {element.load(stored)};"
            if many or element.is_narrow:
                made.loads.append(load)
            if not many and element.is_narrow:
                made.numbers.append(load)
        return made


def source(
    name: str, parameters: Sequence[Parameter], operation: str, code: walk.Code | None
) -> str:
    """Return the source of a kernel; with `code`, of one that goes over strides.

    The inputs are the first of the parameters, and the others are written.
    """
    inputs = [p for p in parameters if not p.is_written]
    outputs = [p for p in parameters if p.is_written]
    of = Inputs.of(inputs, EACH, "cudago_at_{}" if code else "cudago_k")
    pointers, arrays, places = [*of.pointers], [*of.arrays], of.places
    index = "cudago_from + cudago_j * cudago_step"
    to = ["i"] * len(outputs)
    own = ""
    if code:  # the places in the outputs, and the index in row-major order
        to = [f"cudago_to_{k}[cudago_j]" for k in range(len(outputs))]
        index = "cudago_index[cudago_j]"
        kept = [*(f"cudago_to_{k}" for k in range(len(outputs))), "cudago_index"]
        arrays.append("long long " + ", ".join(f"{one}[{EACH}]" for one in kept) + ";")
        own = "".join(f"long long {place} = 0; " for place in places)
        own += "".join(f"{place} = 0; " for place in [*to, index])
        own += code.advance("cudago_k", [*places, *to, index])
    stores: list[str] = []
    for k, out in enumerate(outputs):
        pointers.append(f"{out.element.stored}* const cudago_out_{k} = {out.name};")
        stores.append(f"cudago_out_{k}[{to[k]}] = {out.element.store(out.name)};")
    return _SOURCE.format(
        name=name,
        parameters=", ".join(p.text for p in parameters),
        pointers=" ".join(pointers),
        each=EACH,
        arrays=" ".join(arrays),
        reads=" ".join(of.reads),
        loads=" ".join(of.loads),
        numbers="".join(f", {p.name}" for p in inputs if not p.is_memory) + ", n",
        values=" ".join(f"{out.element.value} {out.name};" for out in outputs),
        stores=" ".join(stores),
        operation=operation,
        walked=code.parameters if code else "",
        walk=own,
        index=index,
    )
