# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a warp does together, as a kernel in which each warp has words of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

import cudago as cu

WARPS = 16
BLOCK = 128


@dataclass(frozen=True, eq=False)
class WarpCase:
    """PTX between a warp's input and its output.

    Attributes
    ----------
    name : str
        The instruction, and what is particular about it; unique.
    code : str
        PTX. ``%in`` and ``%out`` are the addresses of the warp's words, ``%lane`` and ``%own``
        the lane and four times the lane as 64 bits. It declares what else it needs.
    words : numpy.ndarray
        Input, ``(WARPS, n)`` of 32 bits.
    out_words : int
        Words that a warp writes.
    target : str
        The oldest target that has the instruction.
    """

    name: str
    code: str
    words: np.ndarray
    out_words: int
    target: str = "75"

    def module(self) -> str:
        """Return PTX with the one kernel ``k``."""
        body = "".join(f"    {line.strip()}\n" for line in self.code.strip().splitlines())
        return f"""\
.version 8.6
.target sm_{self.target}
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1)
{{
    .reg .b32 %lane, %warp, %block;
    .reg .b64 %in, %out, %own;
    mov.u32 %lane, %laneid;
    mov.u32 %warp, %tid.x;
    shr.u32 %warp, %warp, 5;
    mov.u32 %block, %ctaid.x;
    mad.lo.u32 %warp, %block, {BLOCK // 32}, %warp;
    mul.wide.u32 %own, %lane, 4;
    ld.param.u64 %out, [p0];
    mad.wide.u32 %out, %warp, {4 * self.out_words}, %out;
    ld.param.u64 %in, [p1];
    mad.wide.u32 %in, %warp, {4 * self.words.shape[1]}, %in;
{body}    ret;
}}
"""


def run(
    cases: Iterable[WarpCase], stream: cu.Stream, capability: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and result of each case that the device has; none of what it refuses."""
    config = cu.LaunchConfig(WARPS * 32 // BLOCK, BLOCK)
    for case in cases:
        if int(case.target.rstrip("a")) > capability:
            continue
        try:
            kernel = cu.ObjectCode.from_ptx(case.module())["k"]
        except cu.UnsupportedError:
            continue
        out = cu.zeros((WARPS, case.out_words), "u4", stream=stream)
        cu.launch(stream, config, kernel, out, cu.asarray(case.words, stream=stream))
        yield case.name, out.numpy(stream=stream)
