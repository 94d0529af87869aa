# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What expressions of reductions, and the memory of their results, must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import overlap
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


def expression(text: str, what: str) -> str:
    """Return an expression in lines of its own, of which a message tells the number."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    if not text.strip() or ";" in text:
        raise ValueError(f"{what} must be one expression in C++, got {text!r}")
    return f"\n#line 1\n({text}\n)\n"  # it may end with a comment


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
