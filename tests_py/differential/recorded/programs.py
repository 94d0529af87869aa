# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Small random kernels: arithmetic, branches, loops, calls, local and shared memory, shuffles.

Program *i* is made from the number *i* alone. Nothing in it is left open by the PTX ISA: no
division by zero, no approximation, no NaN whose bits matter, no word that two threads touch without
a barrier.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

import cudago as cu

COUNT = 2000
GRID = 2
BLOCK = 96  # three warps
OUTPUTS = 4
_PER_MODULE = 50

_U32 = 6
_U64 = 3
_F32 = 4
_PREDICATES = 4

_BINARY_U32 = [
    "add.u32",
    "sub.u32",
    "mul.lo.u32",
    "mul.hi.u32",
    "mul.hi.s32",
    "min.u32",
    "max.s32",
    "and.b32",
    "or.b32",
    "xor.b32",
    "shl.b32",
    "shr.u32",
    "shr.s32",
    "mul24.lo.u32",
    "mul24.hi.s32",
    "add.sat.s32",
    "sub.sat.s32",
]
_TERNARY_U32 = [
    "mad.lo.u32",
    "mad.hi.s32",
    "bfe.u32",
    "bfe.s32",
    "shf.l.wrap.b32",
    "shf.r.clamp.b32",
    "prmt.b32",
    "sad.s32",
    "dp4a.u32.s32",
    "mad24.lo.s32",
]
_UNARY_U32 = [
    "not.b32",
    "neg.s32",
    "abs.s32",
    "popc.b32",
    "clz.b32",
    "brev.b32",
    "cnot.b32",
    "bfind.u32",
]
_BINARY_U64 = [
    "add.u64",
    "sub.u64",
    "mul.lo.u64",
    "mul.hi.u64",
    "xor.b64",
    "and.b64",
    "min.s64",
    "max.u64",
]
_BINARY_F32 = [
    "add.rn.f32",
    "add.rz.f32",
    "sub.rn.f32",
    "mul.rn.f32",
    "mul.rp.f32",
    "mul.rn.ftz.f32",
    "min.f32",
    "max.f32",
    "div.rn.f32",
    "add.rn.sat.f32",
]
_COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


class Writer:
    """The text of one kernel while it grows.

    Control may differ from lane to lane inside of `depth` > 0: nothing there needs the whole warp.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.labels = 0
        self.loops = 0
        self.depth = 0

    def u32(self) -> str:
        return f"%r{self.random.randrange(_U32)}"

    def u64(self) -> str:
        return f"%d{self.random.randrange(_U64)}"

    def f32(self) -> str:
        return f"%f{self.random.randrange(_F32)}"

    def predicate(self) -> str:
        return f"%p{self.random.randrange(_PREDICATES)}"

    def u32_or_number(self) -> str:
        if self.random.random() < 0.7:
            return self.u32()
        return str(self.random.choice([0, 1, 3, 5, 8, 31, 255, 65537, 0x7FFFFFFF, 0xDEADBEEF]))

    def put(self, *lines: str) -> None:
        self.lines += lines

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    # --- statements ---------------------------------------------------------

    def integer(self) -> None:
        kind = self.random.random()
        guard = ""
        if self.random.random() < 0.15:
            guard = f"@{self.random.choice(['', '!'])}{self.predicate()} "
        if kind < 0.55:
            op = self.random.choice(_BINARY_U32)
            self.put(f"{guard}{op} {self.u32()}, {self.u32()}, {self.u32_or_number()};")
        elif kind < 0.8:
            op = self.random.choice(_TERNARY_U32)
            self.put(f"{guard}{op} {self.u32()}, {self.u32()}, {self.u32()}, {self.u32()};")
        elif kind < 0.92:
            self.put(f"{guard}{self.random.choice(_UNARY_U32)} {self.u32()}, {self.u32()};")
        else:
            op = self.random.choice(["div.u32", "rem.u32", "div.s32", "rem.s32"])
            # 1 to 255: never zero, and never -1, which overflows the least s32.
            self.put(f"and.b32 %t0, {self.u32()}, 254;", "add.u32 %t0, %t0, 1;")
            self.put(f"{guard}{op} {self.u32()}, {self.u32()}, %t0;")

    def wide(self) -> None:
        kind = self.random.random()
        if kind < 0.6:
            self.put(f"{self.random.choice(_BINARY_U64)} {self.u64()}, {self.u64()}, {self.u64()};")
        elif kind < 0.75:
            self.put(f"mad.wide.u32 {self.u64()}, {self.u32()}, {self.u32()}, {self.u64()};")
        elif kind < 0.85:
            self.put(f"shr.u64 {self.u64()}, {self.u64()}, {self.u32()};")
        else:
            self.put(f"cvt.u32.u64 {self.u32()}, {self.u64()};")

    def floating(self) -> None:
        kind = self.random.random()
        if kind < 0.5:
            op = self.random.choice(_BINARY_F32)
            self.put(f"{op} {self.f32()}, {self.f32()}, {self.f32()};")
        elif kind < 0.7:
            rounding = self.random.choice(["rn", "rz", "rm", "rp"])
            self.put(f"fma.{rounding}.f32 {self.f32()}, {self.f32()}, {self.f32()}, {self.f32()};")
        elif kind < 0.8:
            self.put(f"cvt.rn.f32.s32 {self.f32()}, {self.u32()};")
        elif kind < 0.88:
            self.put(f"sqrt.rn.f32 {self.f32()}, {self.f32()};")
        else:
            self.float_bits(self.u32(), self.f32())

    def float_bits(self, to: str, source: str) -> None:
        """Move the bits of a float; those of every NaN are the same."""
        self.put(f"testp.notanumber.f32 %q, {source};", f"mov.b32 %t0, {source};")
        self.put(f"selp.b32 {to}, 0x7fc00000, %t0, %q;")

    def compare(self) -> None:
        op = self.random.choice(_COMPARISONS)
        kind = self.random.random()
        if kind < 0.4:
            self.put(
                f"setp.{op}.{self.random.choice('us')}32 "
                f"{self.predicate()}, {self.u32()}, {self.u32_or_number()};"
            )
        elif kind < 0.6:
            op = self.random.choice([*_COMPARISONS, "ltu", "geu", "nan"])
            self.put(f"setp.{op}.f32 {self.predicate()}, {self.f32()}, {self.f32()};")
        elif kind < 0.8:
            combine = self.random.choice(["and", "or", "xor"])
            first, second = self.random.sample(range(_PREDICATES), 2)
            self.put(
                f"setp.{op}.{combine}.s32 "
                f"%p{first}|%p{second}, {self.u32()}, {self.u32()}, !{self.predicate()};"
            )
        else:
            self.put(
                f"selp.b32 {self.u32()}, {self.u32()}, {self.u32_or_number()}, {self.predicate()};"
            )

    def local(self) -> None:
        self.put(
            f"and.b32 %t0, {self.u32()}, 28;", "cvt.u64.u32 %w0, %t0;", "add.u64 %w0, %w0, %stack;"
        )
        width = self.random.choice(["b32", "u8", "s16", "b32"])
        if self.random.random() < 0.5:
            self.put(f"st.local.{width.replace('s', 'u')} [%w0], {self.u32()};")
        else:
            self.put(f"ld.local.{width} {self.u32()}, [%w0];")

    def call(self) -> None:
        function = self.random.choice(["mix", "collatz"])
        self.put("{", ".param .b32 x;", ".param .b32 y;", ".param .b32 z;")
        self.put(f"st.param.b32 [x], {self.u32()};", f"st.param.b32 [y], {self.u32()};")
        self.put(f"call.uni (z), {function}, (x, y);", f"ld.param.b32 {self.u32()}, [z];", "}")

    def branch(self) -> None:
        other, end = self.label(), self.label()
        self.depth += 1
        self.put(f"@{self.random.choice(['', '!'])}{self.predicate()} bra {other};")
        self.block(self.random.randrange(1, 5))
        if self.random.random() < 0.6:
            self.put(f"bra {end};", f"{other}:")
            self.block(self.random.randrange(1, 5))
            self.put(f"{end}:")
        else:
            self.put(f"{other}:")
        self.depth -= 1

    def loop(self) -> None:
        start, end = self.label(), self.label()
        counter = f"%c{self.loops}"
        self.loops += 1
        uniform = self.depth == 0 and self.random.random() < 0.5
        if uniform:
            self.put(f"mov.u32 {counter}, {self.random.randrange(1, 5)};", f"{start}:")
            self.block(self.random.randrange(1, 4))
        else:
            self.put(
                f"and.b32 {counter}, {self.u32()}, 7;",
                f"add.u32 {counter}, {counter}, 1;",
                f"{start}:",
            )
            self.depth += 1
            self.block(self.random.randrange(1, 5))
            if self.random.random() < 0.3:
                self.put(f"@{self.predicate()} bra {end};")
            self.depth -= 1
        self.loops -= 1
        self.put(
            f"sub.u32 {counter}, {counter}, 1;",
            f"setp.ne.u32 %q, {counter}, 0;",
            f"@%q bra {start};",
            f"{end}:",
        )

    def together(self) -> None:
        """What the whole warp or block does: only where control is the same for all."""
        kind = self.random.randrange(4)
        if kind == 0:
            mode = self.random.choice(["up", "down", "bfly", "idx"])
            clamp = "0" if mode == "up" else "31"
            self.put(
                f"shfl.sync.{mode}.b32 {self.u32()}|{self.predicate()}, "
                f"{self.u32()}, {self.random.randrange(32)}, {clamp}, 0xffffffff;"
            )
        elif kind == 1:
            self.put(f"vote.sync.ballot.b32 {self.u32()}, {self.predicate()}, 0xffffffff;")
        elif kind == 2:
            self.put(
                f"vote.sync.{self.random.choice(['any', 'all'])}.pred "
                f"{self.predicate()}, {self.predicate()}, 0xffffffff;"
            )
        else:
            shift = self.random.randrange(1, BLOCK)
            self.put(f"st.shared.b32 [%mine], {self.u32()};", "bar.sync 0;")
            self.put(
                f"add.u32 %t0, %tid_x, {shift};",
                f"rem.u32 %t0, %t0, {BLOCK};",
                "mad.lo.u32 %t0, %t0, 4, %base;",
            )
            self.put(f"ld.shared.b32 {self.u32()}, [%t0];", "bar.sync 0;")
            self.put(f"atom.shared.add.u32 {self.u32()}, [%mine], {self.u32()};", "bar.sync 0;")

    def block(self, statements: int) -> None:
        for _ in range(statements):
            choices = (
                [self.integer] * 6 + [self.wide] * 2 + [self.floating] * 3 + [self.compare] * 3
            )
            choices += [self.local, self.call]
            if self.depth == 0:
                choices += [self.together] * 3
            if self.depth < 3:
                choices += [self.branch] * 2
            if self.loops < 3:
                choices.append(self.loop)
            self.random.choice(choices)()


_FUNCTIONS = """
.func (.param .b32 z) mix(.param .b32 x, .param .b32 y)
{
    .reg .b32 %r<4>;
    ld.param.b32 %r0, [x];
    ld.param.b32 %r1, [y];
    xor.b32 %r2, %r0, 0x9e3779b9;
    mad.lo.u32 %r3, %r2, 2654435761, %r1;
    shf.l.wrap.b32 %r3, %r3, %r0, 13;
    st.param.b32 [z], %r3;
    ret;
}
.func (.param .b32 z) collatz(.param .b32 x, .param .b32 y)
{
    .reg .b32 %r<4>;
    .reg .pred %p<3>;
    ld.param.b32 %r0, [x];
    and.b32 %r0, %r0, 1023;
    mov.u32 %r1, 0;
Again:
    setp.le.u32 %p0, %r0, 1;
    setp.ge.or.u32 %p0, %r1, 40, %p0;
    @%p0 bra Done;
    and.b32 %r2, %r0, 1;
    setp.ne.u32 %p1, %r2, 0;
    add.u32 %r1, %r1, 1;
    @%p1 mad.lo.u32 %r0, %r0, 3, 1;
    @!%p1 shr.u32 %r0, %r0, 1;
    bra Again;
Done:
    ld.param.b32 %r2, [y];
    add.u32 %r1, %r1, %r2;
    st.param.b32 [z], %r1;
    ret;
}
"""


def kernel(i: int) -> str:
    """Return program i as a kernel ``k<i>``."""
    writer = Writer(i)
    writer.block(writer.random.randrange(6, 16))
    body = "\n".join(f"    {line}" for line in writer.lines)
    registers = "\n".join(
        f"    mad.lo.u32 %r{n}, %i, {2654435761 + 40503 * n}, {n * 77};" for n in range(1, _U32)
    )
    return f"""
.visible .entry k{i}(.param .u64 out)
{{
    .shared .align 4 .b8 block_{i}[{4 * BLOCK}];
    .local .align 8 .b8 stack_{i}[40];
    .reg .b32 %r<{_U32}>, %t<4>, %c<8>, %i, %tid_x, %mine, %base;
    .reg .b64 %d<{_U64}>, %w<4>, %stack;
    .reg .f32 %f<{_F32}>;
    .reg .pred %p<{_PREDICATES}>, %q;
    mov.u32 %tid_x, %tid.x;
    mov.u32 %t0, %ctaid.x;
    mad.lo.u32 %i, %t0, {BLOCK}, %tid_x;
    mov.u32 %base, block_{i};
    mad.lo.u32 %mine, %tid_x, 4, %base;
    mov.u64 %stack, stack_{i};
    mov.u32 %r0, %i;
{registers}
    st.local.v2.b32 [%stack], {{%r1, %r2}};
    st.local.v2.b32 [%stack+8], {{%r3, %r4}};
    st.local.v2.b32 [%stack+16], {{%r5, %r0}};
    st.local.v2.b32 [%stack+24], {{%r2, %r1}};
    st.local.v2.b32 [%stack+32], {{%r4, %r3}};
    mul.wide.u32 %d0, %r1, %r2;
    mul.wide.s32 %d1, %r3, %r4;
    cvt.u64.u32 %d2, %i;
    cvt.rn.f32.s32 %f0, %r1;
    cvt.rn.f32.u32 %f1, %i;
    mov.f32 %f2, 0f3F9D70A4;
    mov.b32 %f3, %i;
    setp.lt.u32 %p0, %i, 50;
    setp.gt.s32 %p1, %r1, 0;
    setp.ne.u32 %p2, %t0, 0;
    setp.lt.s32 %p3, %r2, %r3;
{body}
    xor.b32 %r0, %r0, %r1;
    mad.lo.u32 %r2, %r2, 31, %r3;
    mad.lo.u32 %r4, %r4, 31, %r5;
    mov.b64 {{%t1, %t2}}, %d0;
    xor.b32 %r4, %r4, %t1;
    mad.lo.u32 %r4, %r4, 31, %t2;
    mov.b64 {{%t1, %t2}}, %d1;
    xor.b32 %r2, %r2, %t1;
    mad.lo.u32 %r2, %r2, 31, %t2;
    add.rn.f32 %f0, %f0, %f1;
    add.rn.f32 %f2, %f2, %f3;
    add.rn.f32 %f0, %f0, %f2;
    testp.notanumber.f32 %q, %f0;
    mov.b32 %r5, %f0;
    selp.b32 %r5, 0x7fc00000, %r5, %q;
    ld.param.u64 %w0, [out];
    mad.wide.u32 %w0, %i, 16, %w0;
    st.global.v4.b32 [%w0], {{%r0, %r2, %r4, %r5}};
    ret;
}}
"""


def module(first: int, count: int = _PER_MODULE) -> str:
    """Return programs from first on as one module."""
    head = f".version 7.0\n.target sm_75\n.address_size 64\n{_FUNCTIONS}"
    return head + "".join(kernel(i) for i in range(first, first + count))


def results(stream: cu.Stream, capability: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield number and outputs of each program."""
    config = cu.LaunchConfig(GRID, BLOCK)
    for first in range(0, COUNT, _PER_MODULE):
        code = cu.ObjectCode.from_ptx(module(first))
        for i in range(first, first + _PER_MODULE):
            out = cu.zeros((GRID * BLOCK, OUTPUTS), "u4", stream=stream)
            cu.launch(stream, config, code[f"k{i}"], out)
            yield f"{i:04}", out.numpy(stream=stream)
