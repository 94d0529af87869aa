# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The PTX of kernels of our own, whose threads go over words of any strides.

A thread does some words, a block's width apart, so that neighbouring threads access neighbouring
words. It loads all of its words before it stores one: memory then answers several at a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLOCK = 256
EACH = 4  # words of a thread
DIMS = 4
WORDS = (1, 2, 4, 8, 16)

SHAPE = ".param .u32 n, .param .u32 n0, .param .u32 n1, .param .u32 n2"


def strides_of(side: str) -> str:
    """Return the parameters that are a side's strides."""
    return ", ".join(f".param .s64 {side}{dim}" for dim in range(DIMS))


# The first word of the thread is %i, and the one behind the block's last is %end. A kernel of which
# one, two or three dimensions have all words need not divide by the sizes of the others.
_BEGIN = f"""\
    .reg .pred %has, %dims1, %dims2, %dims3;
    .reg .b32 %i, %n, %end, %step, %index, %rest, %t, %size0, %size1, %size2;
    .reg .b64 %k, %s;
    ld.param.u32 %n, [n];
    ld.param.u32 %size0, [n0];
    ld.param.u32 %size1, [n1];
    ld.param.u32 %size2, [n2];
    setp.le.u32 %dims1, %n, %size0;
    mul.lo.u32 %t, %size0, %size1;
    setp.le.u32 %dims2, %n, %t;
    mul.lo.u32 %t, %t, %size2;
    setp.le.u32 %dims3, %n, %t;
    mov.u32 %step, %ntid.x;
    mul.lo.u32 %t, %step, {EACH};
    mov.u32 %index, %ctaid.x;
    mul.lo.u32 %index, %index, %t;
    add.u32 %end, %index, %t;
    mov.u32 %t, %tid.x;
    add.u32 %i, %index, %t;
"""


def _walk(sides: Mapping[str, str], label: str) -> str:
    """Return PTX that sets each side's register to the address of word %i."""
    text = "    mov.u32 %rest, %i;\n"
    for side, register in sides.items():
        text += f"    mov.b64 {register}, %{side}_first;\n"
    for dim in range(DIMS):
        last = dim == DIMS - 1
        text += "    mov.u32 %index, %rest;\n"
        if not last:
            text += f"""\
    @%dims{dim + 1} bra last{dim}_{label};
    div.u32 %t, %rest, %size{dim};
    mul.lo.u32 %index, %t, %size{dim};
    sub.u32 %index, %rest, %index;
    mov.u32 %rest, %t;
last{dim}_{label}:
"""
        text += "    cvt.u64.u32 %k, %index;\n"
        for side, register in sides.items():
            text += f"""\
    ld.param.s64 %s, [{side}{dim}];
    mad.lo.s64 {register}, %k, %s, {register};
"""
        if not last:
            text += f"    @%dims{dim + 1} bra there_{label};\n"
    return f"{text}there_{label}:\n"


def entry(
    name: str,
    parameters: str,
    sides: Mapping[str, str],
    registers: Mapping[str, Sequence[str]],
    code: tuple[str, str],
    *,
    labels: Sequence[str] = (),
    before: str = "",
) -> str:
    """Return a kernel.

    Parameters
    ----------
    name
        Its name.
    parameters
        What it takes before `SHAPE` and the strides of each side.
    sides
        The register that has the address of a word, by the letter of the side: d or s. The
        parameter with the address of the first word is called dst or src.
    registers
        Those that each word has to itself, by their types.
    code
        What is loaded for a word, and what is then stored.
    labels
        Those in the code.
    before
        What is done once.
    """
    own = {register for names in registers.values() for register in names} | {*sides.values()}
    pattern = re.compile("|".join(rf"{re.escape(word)}\b" for word in [*own, *labels]))

    def lines(text: str, word: int, label: str) -> str:
        """Return code for a word, by its registers and its labels."""
        text = pattern.sub(lambda to: f"{to[0]}_{word if to[0] in own else label}", text)
        return "".join(f"    {line}\n" for line in text.splitlines() if line)

    def places(word: int, label: str) -> str:
        return _walk({side: f"{register}_{word}" for side, register in sides.items()}, label)

    strides = "".join(f", {strides_of(side)}" for side in sides)
    text = f".visible .entry {name}({parameters}, {SHAPE}{strides})\n{{\n{_BEGIN}"
    for kind, names in {**registers, "b64": [*registers.get("b64", ()), *sides.values()]}.items():
        each = (f"{register}_{word}" for register in names for word in range(EACH))
        text += f"    .reg .{kind} {', '.join(each)};\n"
    for side in sides:
        text += f"    .reg .b64 %{side}_first;\n    ld.param.u64 %{side}_first, [{_NAMES[side]}];\n"
    # A block that has fewer words does them one by one, in the registers of the first.
    text += f"""\
{before}    setp.le.u32 %has, %end, %n;
    @%has bra all;
    min.u32 %end, %end, %n;
each:
    setp.ge.u32 %has, %i, %end;
    @%has bra done;
{places(0, "each")}{lines(code[0], 0, "each")}{lines(code[1], 0, "each")}\
    add.u32 %i, %i, %step;
    bra each;
all:
"""
    for word in range(EACH):
        text += f"{places(word, str(word))}{lines(code[0], word, str(word))}"
        text += "    add.u32 %i, %i, %step;\n"
    text += "".join(lines(code[1], word, str(word)) for word in range(EACH))
    return f"{text}done:\n    ret;\n}}\n"


_NAMES = {"d": "dst", "s": "src"}


# --- fills and copies -----------------------------------------------------------------------------


def _parts(word: int) -> tuple[str, str]:
    """Return type and register of a word in memory: 16 bytes in two registers."""
    return ("v2.b64", "{%v, %u}") if word == 16 else (f"b{word * 8}", "%v")


def _register(word: int) -> str:
    return f"b{max(16, min(64, word * 8))}"


def fill_kernel(word: int) -> str:
    """Return the kernel fill_N, which stores N bytes in each word: those of low, then of high."""
    width, register = _parts(word)
    kind = _register(word)
    before = f"""\
    .reg .b64 %low, %u;
    .reg .{kind} %v;
    ld.param.u64 %low, [low];
    ld.param.u64 %u, [high];
    {"mov.b64 %v, %low" if word >= 8 else f"cvt.u{kind[1:]}.u64 %v, %low"};
"""
    parameters = ".param .u64 dst, .param .u64 low, .param .u64 high"
    code = "", f"st.{width} [%a], {register};"
    return entry(f"fill_{word}", parameters, {"d": "%a"}, {}, code, before=before)


def copy_kernel(word: int) -> str:
    """Return the kernel copy_N, which copies words of N bytes."""
    width, register = _parts(word)
    kind = _register(word)
    code = f"ld.{width} {register}, [%b];", f"st.{width} [%a], {register};"
    return entry(
        f"copy_{word}",
        ".param .u64 dst, .param .u64 src",
        {"d": "%a", "s": "%b"},
        {kind: ["%v", "%u"] if word == 16 else ["%v"]},
        code,
    )
