# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What tensors do not have, unlike arrays of the host: the errors say what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "matmul": "@",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ALONE = {"neg": "-", "pos": "+", "abs": "abs()", "invert": "~"}
_NUMBERS = (bool, int, float, complex)
_CONVERSIONS = ("float", "int", "complex")


def refuse_arithmetic(tensor: type[Any]) -> None:
    """Give the class operators that raise. Those of other libraries' objects come first."""
    for name, sign in (_SIGNS | _COMPARED).items():
        setattr(tensor, f"__{name}__", _of_two(tensor, sign))
    for name, sign in _SIGNS.items():
        setattr(tensor, f"__r{name}__", _of_two(tensor, sign))
    for name, sign in _ALONE.items():
        setattr(tensor, f"__{name}__", _of_one(sign))
    for name in _CONVERSIONS:
        setattr(tensor, f"__{name}__", _conversion(name))
    tensor.__setitem__ = _set_item
    tensor.__contains__ = _contains


def _of_two(tensor: type[Any], sign: str) -> Callable[..., Any]:
    def operator(self: object, other: object, /) -> Any:
        if not isinstance(other, (tensor, *_NUMBERS)):
            return NotImplemented
        raise _error(sign)

    return operator


def _of_one(sign: str) -> Callable[..., Any]:
    def operator(self: object) -> Any:
        raise _error(sign)

    return operator


def _conversion(name: str) -> Callable[..., Any]:
    def convert(self: object) -> Any:
        raise TypeError(
            f"a cudago.Tensor is no number, so no {name}(): t.item(stream=s) copies the element of "
            "a tensor that has one to the host"
        )

    return convert


def _set_item(self: object, key: object, value: object, /) -> Any:
    raise TypeError(
        "elements of a cudago.Tensor are not assigned: t[...].fill(value, stream=s) sets a part to "
        "a number, t[...].copy_from(src, stream=s) to other elements"
    )


def _contains(self: object, value: object, /) -> Any:
    raise TypeError(
        "the elements of a cudago.Tensor are not compared, so no in: t.numpy(stream=s) copies them "
        "to the host"
    )


def _error(sign: str) -> TypeError:
    return TypeError(
        f"a cudago.Tensor has no arithmetic, so no {sign}: use another library's over the same "
        "memory (torch.from_dlpack(t), cupy.from_dlpack(t)), or make a kernel of the expression "
        "with cudago.elementwise"
    )
