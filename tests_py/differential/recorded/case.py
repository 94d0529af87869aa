# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""One instruction, or a few, as a kernel that does them for each element of its inputs."""

from __future__ import annotations

import re
from dataclasses import dataclass

COUNT = 4096
BLOCK = 128

# Registers are declared without a type: .b registers take every type of their size.
_REGISTER_BITS = {"8": 32, "16": 16, "32": 32, "64": 64}


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from another device's: ``absolute + relative * abs(value)``."""

    relative: float
    absolute: float = 0.0


@dataclass(frozen=True)
class Case:
    """What is done to each element, and where.

    Attributes
    ----------
    name : str
        The instruction, and what is particular about it; unique.
    code : str
        PTX that sets ``%d`` from ``%a``, ``%b`` and ``%c``. There are scratch registers of each
        kind: ``%p0``, ``%h0`` (16 bits), ``%t0`` (32 bits), ``%l0`` (64 bits), eight of each,
        and ``%cell``, the address of 16 bytes that nobody else uses.
    result : str
        Type of ``%d``.
    operands : tuple of str
        Types of ``%a``, ``%b``, ``%c``, as far as they are used.
    target : str
        The oldest target that has the instruction, as a number: ``75``.
    tolerance : Tolerance, optional
        Set for approximations. All else must agree in each bit.
    """

    name: str
    code: str
    result: str
    operands: tuple[str, ...]
    target: str = "75"
    tolerance: Tolerance | None = None


def bits(kind: str) -> int:
    """Return the bits of a value of a type: 32 for ``f16x2``."""
    number, _, times = re.fullmatch(r"[a-z]+(\d+)(x(\d))?", kind).groups()
    return int(number) * int(times or 1)


def register_bits(kind: str) -> int:
    """Return the bits of the register that holds a value."""
    return max(_REGISTER_BITS.get(str(bits(kind)), bits(kind)), 16)


def is_float(kind: str) -> bool:
    """Whether values of a type can be NaN."""
    return kind[0] == "f" or kind.startswith("bf")


def _load(register: str, kind: str, parameter: int) -> str:
    # Elements lie as wide as their registers, but an 8-bit load takes 8 bits of them.
    width = f"{kind[0]}8" if bits(kind) == 8 else f"b{register_bits(kind)}"
    scale = register_bits(kind) // 8
    return f"""\
    ld.param.u64 %address, [p{parameter}];
    mad.wide.u32 %address, %i, {scale}, %address;
    ld.global.{width} {register}, [%address];
"""


def kernel(case: Case, name: str) -> str:
    """Return a kernel with the parameters out, scratch, a, b, c."""
    parameters = ", ".join(f".param .u64 p{i}" for i in range(5))
    text = f".visible .entry {name}({parameters})\n{{\n"
    text += "    .reg .pred %p<8>;\n    .reg .b16 %h<8>;\n    .reg .b32 %t<8>, %i;\n"
    text += "    .reg .b64 %l<8>, %address, %cell;\n"
    text += f"    .reg .b{register_bits(case.result)} %d;\n"
    for register, kind in zip("abc", case.operands, strict=False):
        text += f"    .reg .b{register_bits(kind)} %{register};\n"
    text += "    mov.u32 %i, %ctaid.x;\n    mov.u32 %t0, %ntid.x;\n    mov.u32 %t1, %tid.x;\n"
    text += "    mad.lo.u32 %i, %i, %t0, %t1;\n"
    text += "    ld.param.u64 %cell, [p1];\n    mad.wide.u32 %cell, %i, 16, %cell;\n"
    for position, kind in enumerate(case.operands):
        text += _load(f"%{'abc'[position]}", kind, position + 2)
    text += "".join(f"    {line.strip()}\n" for line in case.code.strip().splitlines())
    scale = register_bits(case.result)
    text += "    ld.param.u64 %address, [p0];\n"
    text += f"    mad.wide.u32 %address, %i, {scale // 8}, %address;\n"
    return text + f"    st.global.b{scale} [%address], %d;\n    ret;\n}}\n"


def module(cases: list[Case], target: str) -> str:
    """Return PTX with a kernel ``k<i>`` for each case."""
    text = f".version 8.6\n.target sm_{target}\n.address_size 64\n"
    return text + "".join(kernel(case, f"k{i}") for i, case in enumerate(cases))
