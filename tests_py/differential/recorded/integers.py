# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Integer, bit and comparison instructions."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case

UNSIGNED = ("u16", "u32", "u64")
SIGNED = ("s16", "s32", "s64")
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def plain(mnemonic: str, result: str, *operands: str, target: str = "75", note: str = "") -> Case:
    """Return the case of an instruction that takes its operands in order."""
    registers = ", ".join(("%d", "%a", "%b", "%c")[: len(operands) + 1])
    return Case(mnemonic + note, f"{mnemonic} {registers};", result, operands, target)


def tested(mnemonic: str, *operands: str, target: str = "75") -> Case:
    """Return the case of an instruction whose result is a predicate."""
    registers = ", ".join(("%a", "%b", "%c")[: len(operands)])
    code = f"{mnemonic} %p0, {registers};\nselp.u32 %d, 1, 0, %p0;"
    return Case(mnemonic, code, "u32", operands, target)


def arithmetic() -> Iterator[Case]:
    """Yield addition, multiplication, division and their kin."""
    for t in UNSIGNED + SIGNED:
        for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
            yield plain(f"{op}.{t}", t, t, t)
        for op in ("mad.lo", "mad.hi", "sad"):
            yield plain(f"{op}.{t}", t, t, t, t)
        # What a division by zero gives is not specified.
        for op in ("div", "rem"):
            n = int(t[1:])
            zero = f"setp.eq.{t} %p0, %b, 0;\nselp.b{n} %b, 1, %b, %p0;\n"
            yield Case(f"{op}.{t}", zero + f"{op}.{t} %d, %a, %b;", t, (t, t))
    for t in SIGNED:
        yield plain(f"abs.{t}", t, t)
        yield plain(f"neg.{t}", t, t)
    for t, wide in WIDE.items():
        yield plain(f"mul.wide.{t}", wide, t, t)
        yield plain(f"mad.wide.{t}", wide, t, t, wide)
    for op in ("add.sat.s32", "sub.sat.s32"):
        yield plain(op, "s32", "s32", "s32")
    yield plain("mad.hi.sat.s32", "s32", "s32", "s32", "s32")
    for t in ("u32", "s32"):
        for half in ("lo", "hi"):
            yield plain(f"mul24.{half}.{t}", t, t, t)
            yield plain(f"mad24.{half}.{t}", t, t, t, t)
        for other in ("u32", "s32"):
            yield plain(f"dp4a.{t}.{other}", "s32", t, other, "s32")
            yield plain(f"dp2a.lo.{t}.{other}", "s32", t, other, "s32")
            yield plain(f"dp2a.hi.{t}.{other}", "s32", t, other, "s32")
    yield plain("mad24.hi.sat.s32", "s32", "s32", "s32", "s32")
    for t in ("u16x2", "s16x2"):
        for op in ("add", "min", "max"):
            yield plain(f"{op}.{t}", t, t, t, target="90")
    yield plain("min.relu.s32", "s32", "s32", "s32", target="90")
    yield plain("max.relu.s16x2", "s16x2", "s16x2", "s16x2", target="90")


def carries() -> Iterator[Case]:
    """Yield chains of extended-precision instructions, which end in the carry itself."""
    for t in ("u32", "u64"):
        zero = f"mov.b{t[1:]} %{'t2' if t == 'u32' else 'l2'}, 0;\n"
        scratch = "%t2" if t == "u32" else "%l2"
        for op in ("add", "sub"):
            chain = f"{op}.cc.{t} %d, %a, %b;\n{op}c.cc.{t} %d, %d, %c;\n"
            end = f"{op}c.{t} {scratch}, {scratch}, 0;\nxor.b{t[1:]} %d, %d, {scratch};"
            yield Case(f"{op}.cc.{t} chain", zero + chain + end, t, (t, t, t))
        for half in ("lo", "hi"):
            chain = f"mad.{half}.cc.{t} %d, %a, %b, %c;\nmadc.{half}.cc.{t} %d, %b, %c, %d;\n"
            end = f"addc.{t} {scratch}, {scratch}, 0;\nxor.b{t[1:]} %d, %d, {scratch};"
            yield Case(f"mad.{half}.cc.{t} chain", zero + chain + end, t, (t, t, t))


def bit_fields() -> Iterator[Case]:
    """Yield logic, shifts, counting and fields."""
    for n in (16, 32, 64):
        b = f"b{n}"
        for op in ("and", "or", "xor"):
            yield plain(f"{op}.{b}", f"u{n}", f"u{n}", f"u{n}")
        yield plain(f"not.{b}", f"u{n}", f"u{n}")
        yield plain(f"cnot.{b}", f"u{n}", f"u{n}")
        yield plain(f"shl.{b}", f"u{n}", f"u{n}", "u32")
        for t in (f"u{n}", f"s{n}", b):
            yield plain(f"shr.{t}", f"u{n}", f"u{n}", "u32")
    for n in (32, 64):
        for op in ("clz", "popc"):
            yield plain(f"{op}.b{n}", "u32", f"u{n}")
        yield plain(f"brev.b{n}", f"u{n}", f"u{n}")
        for t in (f"u{n}", f"s{n}"):
            yield plain(f"bfind.{t}", "u32", t)
            yield plain(f"bfind.shiftamt.{t}", "u32", t)
            if n == 32:
                yield plain(f"bfe.{t}", t, t, "u32", "u32")
            # Short fields, which random positions hardly ever give. An H200 takes all bits of
            # the position in a bfe of 64 bits; the PTX ISA says the low 8, and so do we.
            short = "and.b32 %b, %b, 127;\nand.b32 %c, %c, 63;\n"
            yield Case(f"bfe.{t} short", short + f"bfe.{t} %d, %a, %b, %c;", t, (t, "u32", "u32"))
        insert = "shr.u32 %t2, %c, 8;\nand.b32 %c, %c, 127;\nand.b32 %t2, %t2, 63;\n"
        insert += f"bfi.b{n} %d, %a, %b, %c, %t2;"
        yield Case(f"bfi.b{n}", insert, f"u{n}", (f"u{n}", f"u{n}", "u32"))
    for side in ("l", "r"):
        for mode in ("wrap", "clamp"):
            yield plain(f"shf.{side}.{mode}.b32", "u32", "u32", "u32", "u32")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield plain(f"prmt.b32{mode}", "u32", "u32", "u32", "u32")
    for mode in ("wrap", "clamp"):
        yield plain(f"bmsk.{mode}.b32", "u32", "u32", "u32")
        for t in ("u32", "s32"):
            yield plain(f"szext.{mode}.{t}", t, t, "u32")
    fns = "and.b32 %b, %b, 31;\nrem.s32 %c, %c, 34;\nfns.b32 %d, %a, %b, %c;"
    yield Case("fns.b32", fns, "u32", ("u32", "u32", "s32"))
    for table in (0x00, 0x1B, 0x80, 0x96, 0xE8, 0xF4, 0xFE):
        code = f"lop3.b32 %d, %a, %b, %c, {table:#x};"
        yield Case(f"lop3.b32 {table:#x}", code, "u32", ("u32", "u32", "u32"))


def comparisons() -> Iterator[Case]:
    """Yield setp, set, selp and slct on integers."""
    for t in UNSIGNED + SIGNED:
        for op in ("eq", "ne", "lt", "le", "gt", "ge"):
            yield tested(f"setp.{op}.{t}", t, t)
    for op in ("lo", "ls", "hi", "hs"):
        yield tested(f"setp.{op}.u32", "u32", "u32")
    for combine in ("and", "or", "xor"):
        code = f"setp.gt.s32 %p1, %c, 0;\nsetp.lt.{combine}.u32 %p0|%p2, %a, %b, !%p1;\n"
        code += "selp.u32 %d, 1, 0, %p0;\nselp.u32 %t2, 2, 0, %p2;\nor.b32 %d, %d, %t2;"
        yield Case(f"setp.lt.{combine}.u32 two", code, "u32", ("u32", "u32", "s32"))
    for t in ("u32", "s32", "u64"):
        yield plain(f"set.le.u32.{t}", "u32", t, t)
        yield plain(f"set.gt.f32.{t}", "f32", t, t)
    yield plain("slct.u32.s32", "u32", "u32", "u32", "s32")
    yield plain("slct.b64.s32", "u64", "u64", "u64", "s32")


def video() -> Iterator[Case]:
    """Yield scalar video instructions."""
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        yield plain(f"{op}.s32.u32.s32.sat", "s32", "u32", "s32")
        code = f"{op}.u32.s32.u32 %d, %a.b2, %b.h1;"
        yield Case(f"{op}.u32.s32.u32 parts", code, "u32", ("u32", "u32"))
        code = f"{op}.s32.s32.s32.max %d, %a.h0, %b.b3, %c;"
        yield Case(f"{op}.s32.s32.s32 max", code, "s32", ("u32", "u32", "u32"))
        code = f"{op}.u32.u32.s32 %d.b1, %a, %b, %c;"
        yield Case(f"{op}.u32.u32.s32 merge", code, "u32", ("u32", "u32", "u32"))
    for op in ("vshl", "vshr"):
        for mode in ("wrap", "clamp"):
            yield plain(f"{op}.u32.u32.u32.{mode}", "u32", "u32", "u32")
    yield Case("vmad.s32.s32.u32", "vmad.s32.s32.u32 %d, %a.h1, %b.b0, %c;", "s32", ("u32",) * 3)
    # Of unsigned operands with the top bit set an H200 takes a shifted vmad as signed.
    code = "and.b32 %c, %c, 0x7fffffff;\nvmad.u32.u32.u32.sat.shr7 %d, %a.h0, %b.b0, %c;"
    yield Case("vmad.u32.u32.u32.sat.shr7 parts", code, "u32", ("u32",) * 3)
    yield plain("vset.s32.u32.lt", "u32", "s32", "u32")


def atomics() -> Iterator[Case]:
    """Yield each atomic operation, on a cell of each element's own: the old value and the new."""
    integers = {"u32": 32, "s32": 32, "u64": 64, "s64": 64}
    operations = [(op, t) for op in ("min", "max") for t in integers]
    operations += [("add", t) for t in ("u32", "s32", "u64")]
    operations += [(op, f"b{n}") for op in ("and", "or", "xor", "exch") for n in (32, 64)]
    operations += [("inc", "u32"), ("dec", "u32")]
    for op, t in operations:
        n = int(t[1:])
        code = f"st.global.b{n} [%cell], %a;\natom.global.{op}.{t} %a, [%cell], %b;\n"
        code += f"ld.global.b{n} %d, [%cell];\nxor.b{n} %a, %a, %c;\nmad.lo.u{n} %d, %d, 5, %a;"
        yield Case(f"atom.global.{op}.{t}", code, f"u{n}", (f"u{n}",) * 3)
        code = f"st.global.b{n} [%cell], %a;\nred.global.{op}.{t} [%cell], %b;\n"
        code += f"ld.global.b{n} %d, [%cell];"
        if op != "exch":
            yield Case(f"red.global.{op}.{t}", code, f"u{n}", (f"u{n}",) * 2)
    for n in (16, 32, 64):
        code = f"st.global.b{n} [%cell], %a;\natom.global.cas.b{n} %d, [%cell], %b, %c;\n"
        code += f"ld.global.b{n} %a, [%cell];\nxor.b{n} %d, %d, %a;"
        yield Case(f"atom.global.cas.b{n}", code, f"u{n}", (f"u{n}",) * 3)


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    for family in (arithmetic, carries, bit_fields, comparisons, video, atomics):
        yield from family()
