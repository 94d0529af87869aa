# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What reductions are given, and must be: expressions, inputs, and memory of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import overlap
from .elementwise import ElementwiseKernel
from .expression import Declared, argument, check
from .operand import shared
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._kernel.program_options import ProgramOptions
    from .._stream.stream import Stream


def expression(text: str, what: str) -> str:
    """Return an expression in lines of its own, of which a message tells the number."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    if not text.strip() or ";" in text:
        raise ValueError(f"{what} must be one expression in C++, got {text!r}")
    return f"\n#line 1\n({text}\n)\n"  # it may end with a comment


def values_of(
    args: Sequence[Any], inputs: Sequence[Declared], name: str, stream: Stream
) -> list[Any]:
    """Return tensors and numbers of the types that were declared; there is a tensor."""
    if len(args) == 1:
        t = shared(args[0], stream, f"{inputs[0].name} of {name}")
        check(args[0] if t is None else t, inputs[0], name)
        return [t]
    given = zip(args, inputs, strict=True)
    values = [argument(a, d, name, stream) for a, d in given]
    if not any(isinstance(v, Tensor) for v in values):
        raise TypeError(f"{name} needs a tensor among its inputs")
    return values


def of_nothing(
    output: Declared, post_map: str, name: str, options: ProgramOptions | None, preamble: str
) -> ElementwiseKernel:
    """Return what makes the results of no elements, of the identity."""
    return ElementwiseKernel(
        f"{output.element.value} a",
        f"{output.spelled} cudago_result",
        f"{{ const unsigned long long n = 0; (void)n; cudago_result = {post_map}; }}",
        name,
        options,
        preamble,
    )


def check_out(
    out: Tensor, what: str, sizes: tuple[int, ...], shape: tuple[int, ...] | None
) -> None:
    """Refuse an output of another shape; None is that of one element."""
    if shape is None:
        if out.size != 1:
            raise ValueError(f"out must have one element, got {out.size}")
    elif out.shape != shape:
        raise ValueError(
            f"{what} must have shape {shape}, which remains of {sizes}, got {out.shape}"
        )


def refuse_overlap(out: Tensor, what: str, names: Sequence[str], values: Sequence[Any]) -> None:
    """Refuse an output whose elements share memory, or that an input has a part of."""
    overlap.check_once(out, what)
    for name, x in zip(names, values, strict=True):
        if isinstance(x, Tensor) and overlap.share(x, out):
            raise ValueError(
                f"{what} overlaps with {name}: out= must have no memory in common with it, or the "
                f"kernel reads what it has written: pass {name}.astype({x.dtype_name!r}, stream=s)"
            )
