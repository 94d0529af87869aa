# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Types that a declaration leaves open, ``"T x, T y"``: the tensors of a call tell them.

For each choice of types there is a kernel of its own, whose declarations name them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .expression import TYPES, Declared, is_several
from .number import is_of_numpy
from .operand import shared
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .._stream.stream import Stream
    from .expression import Element


def told(
    name: str,
    inputs: Sequence[Declared],
    outputs: Sequence[Declared],
    args: Sequence[Any],
    out: Any,
    stream: Stream,
) -> tuple[list[Any], dict[str, Element]]:
    """Return the arguments, which are tensors where they are memory, and the types by letter."""
    given: list[Any] = []
    for d, value in zip(inputs, args, strict=True):
        tensor = None if is_of_numpy(value) else shared(value, stream, f"{d.name} of {name}")
        given.append(value if tensor is None else tensor)
    outs: Sequence[Any] = out if is_several(out) else [out]
    types: dict[str, Element] = {}
    for d, value in [*zip(inputs, given, strict=True), *zip(outputs, outs, strict=False)]:
        if d.is_open and isinstance(value, Tensor) and d.spelled not in types:
            if value.dtype_name not in TYPES:
                raise TypeError(
                    f"{d.name} of {name} has elements of type {value.dtype_name}, which "
                    "expressions do not compute"
                )
            types[d.spelled] = TYPES[value.dtype_name]
    for d in (*inputs, *outputs):
        if d.is_open and d.spelled not in types:
            raise TypeError(
                f"{name} has no tensor that tells what type {d.spelled} of {d.name} is: pass one "
                "as an input, or out=, or declare a type"
            )
    return given, types


def closed(declarations: Iterable[Declared], types: Mapping[str, Element]) -> str:
    """Return declarations that name their types."""
    named = [f"{types[d.spelled].name} {d.name}" if d.is_open else str(d) for d in declarations]
    return ", ".join(named)


def with_types(preamble: str, types: Mapping[str, Element]) -> str:
    """Return a preamble that begins with the types, by their letters."""
    lines = [f"typedef {element.value} {letter};\n" for letter, element in types.items()]
    return "".join(lines) + f'#line 1 "preamble"\n{preamble}'
