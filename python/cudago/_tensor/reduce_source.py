# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The source of kernels that reduce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .axes import PlanCode
from .element_source import Inputs
from .expression import BLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .expression import Parameter

_EACH = 8  # elements that a thread loads at a time

# The threads that have no element take no part: no value of theirs would be neutral for any
# operation. The threads that have one are the first of their block.
_WHOLE = """extern "C" __global__ void {name}({parameters}, unsigned long long n{total}) {{
    {pointers}
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
            {arrays}
            #pragma unroll
            for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
                const unsigned long long i = cudago_from + cudago_j * cudago_step;
                if (i < n) {{ {reads} }}
            }}
            #pragma unroll
            for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
                const unsigned long long i = cudago_from + cudago_j * cudago_step;
                if (i >= n) break;
                {loads}
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

# A lane that has no element takes no part, as above. Those that have one are the first. What
# the blocks of a column of the grid have made of the elements of one result lies side by side.
_ALONG = """extern "C" __global__ void {name}({parameters}, unsigned long long n{reduced}, unsigned long long cudago_m{kept}{total}) {{
    {pointers}
    {result}* const cudago_out = {z};
    __shared__ {u} cudago_part[{block}];
    const unsigned cudago_lane = {lane}, cudago_row = {row};
    const unsigned long long cudago_begin = (unsigned long long)blockIdx.y * {lanes};
    const unsigned cudago_count = n - cudago_begin < {lanes} ? (unsigned)(n - cudago_begin) : {lanes};
    const unsigned long long cudago_step = (unsigned long long)gridDim.y * {lanes};
    const unsigned long long cudago_next = (unsigned long long)gridDim.x * {rows};
    unsigned long long cudago_first = (unsigned long long)blockIdx.x * {rows};
    for (; cudago_first < cudago_m; cudago_first += cudago_next) {{
        const bool cudago_has = cudago_first + cudago_row < cudago_m;
        long long cudago_to = 0;
        {bases}
        if (cudago_has && cudago_lane < cudago_count) {{
            {walk_kept}
            {u} cudago_sum;
            const unsigned long long cudago_start = cudago_begin + cudago_lane;
            for (unsigned long long cudago_from = cudago_start; cudago_from < n; cudago_from += {each} * cudago_step) {{
                {arrays}
                long long cudago_index[{each}];
                #pragma unroll
                for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
                    const unsigned long long cudago_k = cudago_from + cudago_j * cudago_step;
                    {starts}
                    cudago_index[cudago_j] = 0;
                    if (cudago_k < n) {{ {walk_reduced} {reads} }}
                }}
                #pragma unroll
                for (int cudago_j = 0; cudago_j < {each}; cudago_j++) {{
                    const unsigned long long cudago_k = cudago_from + cudago_j * cudago_step;
                    const unsigned long long i = cudago_index[cudago_j]; (void)i;
                    if (cudago_k >= n) break;
                    {loads}
                    const {u} b = {map};
                    if (cudago_k == cudago_start) {{
                        cudago_sum = b;
                    }} else {{
                        const {u} a = cudago_sum;
                        cudago_sum = {operation};
                    }}
                }}
            }}
            cudago_part[threadIdx.x] = cudago_sum;
        }}
        {sync}
        for (unsigned cudago_half = {lanes} / 2; cudago_half; cudago_half /= 2) {{
            if (cudago_has && cudago_lane < cudago_half && cudago_lane + cudago_half < cudago_count) {{
                const {u} a = cudago_part[threadIdx.x], b = cudago_part[threadIdx.x + cudago_half * {stride}];
                cudago_part[threadIdx.x] = {operation};
            }}
            {sync}
        }}
        if (cudago_has && cudago_lane == 0) cudago_out[cudago_to + blockIdx.y] = {store};
    }}
}}
"""  # noqa: E501


class Expressions(NamedTuple):
    """What a kernel computes: of an element, of two values, and of the last one if anything."""

    map: str
    operation: str
    post_map: str


def source(
    name: str,
    parameters: Sequence[Parameter],
    expressions: Expressions,
    code: PlanCode | None,
    is_last: bool,
) -> str:
    """Return the source of a kernel that reduces all, or along axes.

    The last of the parameters is written. A kernel that combines parts counts these, so it is told
    how many elements there were.
    """
    *inputs, out = parameters
    of = Inputs.of(inputs, _EACH, "cudago_at_{}" if code else "i")
    has_total = is_last and bool(expressions.post_map)
    value = f"cudago_part[{'threadIdx.x' if code else 0}]"
    if expressions.post_map:
        value = (
            f"[&](const {out.element.value} a, const unsigned long long n) -> {out.element.value} "
            f"{{ {' '.join(of.numbers)} (void)n; return {expressions.post_map}; }}"
            f"({value}, {'cudago_total' if has_total else 'n'})"
        )
    return (_ALONG if code else _WHOLE).format(
        name=name,
        parameters=", ".join(p.text for p in parameters),
        total=", const unsigned long long cudago_total" if has_total else "",
        pointers=" ".join(of.pointers),
        arrays=" ".join(of.arrays),
        reads=" ".join(of.reads),
        loads=" ".join(of.loads),
        z=out.name,
        u=out.element.value,
        result=out.element.stored,
        block=BLOCK,
        each=_EACH,
        store=out.element.store(value),
        map=expressions.map,
        operation=expressions.operation,
        **(_walks(code, of.places) if code else {}),
    )


def _walks(code: PlanCode, places: Sequence[str]) -> dict[str, Any]:
    """Return how a kernel goes over the results, and over what makes one of them."""
    bases = [place.replace("_at_", "_base_") for place in places]
    starts = [f"long long {at} = {base};" for at, base in zip(places, bases, strict=True)]
    return {
        **code.layout.fields,
        "kept": code.kept.parameters,
        "reduced": code.reduced.parameters,
        "bases": "".join(f"long long {base} = 0; " for base in bases),
        "starts": " ".join(starts),
        "walk_kept": code.kept.advance("cudago_first + cudago_row", [*bases, "cudago_to"]),
        "walk_reduced": code.reduced.advance("cudago_k", [*places, "cudago_index[cudago_j]"]),
    }
