# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Matrix instructions on small integers, which every order of summation adds up to the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import cudago as cu

from . import warp_case
from .warp_case import WARPS, WarpCase

_ELEMENT_BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16}
_ELEMENT_BITS |= {"s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4, "b1": 1}
# -4 ... 4, of which the formats of 8 bits hold these.
_E4M3 = [0xC8, 0xC4, 0xC0, 0xB8, 0x00, 0x38, 0x40, 0x44, 0x48]
_E5M2 = [0xC4, 0xC2, 0xC0, 0xBC, 0x00, 0x3C, 0x40, 0x42, 0x44]


def elements(kind: str, count: int, seed: int) -> np.ndarray:
    """Return ``(WARPS, count)`` small numbers of a type, as 32-bit words."""
    rng = np.random.default_rng([seed, *kind.encode()])
    small = rng.integers(-4, 5, (WARPS, count))
    if kind in ("s8", "u8", "s4", "u4", "b1"):
        raw = rng.integers(0, 1 << 32, (WARPS, max(count * _ELEMENT_BITS[kind] // 32, 1)), "u8")
        return raw.astype("u4")
    if kind in ("e4m3", "e5m2"):
        table = np.array(_E4M3 if kind == "e4m3" else _E5M2, "u1")
        return table[small + 4].view("u4")
    if kind == "bf16":
        return (small.astype("f4").view("u4") >> 16).astype("u2").view("u4")
    numpy_type = {"f64": "f8", "f16": "f2", "s32": "i4"}.get(kind, "f4")
    return small.astype(numpy_type).view("u4")


@dataclass(frozen=True)
class Fragment:
    """One operand of an mma: registers of 32 or 64 bits that lie one lane after the other."""

    letter: str
    kind: str
    numbers: int  # elements of one lane

    @property
    def width(self) -> int:
        return 64 if self.kind == "f64" else 32

    @property
    def registers(self) -> int:
        return max(self.numbers * _ELEMENT_BITS[self.kind] // self.width, 1)

    @property
    def words(self) -> int:
        """32-bit words of a whole warp."""
        return 32 * self.registers * self.width // 32

    def text(self) -> str:
        return "{" + ", ".join(f"%{self.letter}{i}" for i in range(self.registers)) + "}"

    def declared(self) -> str:
        return f".reg .b{self.width} %{self.letter}<{self.registers}>;\n"

    def moved(self, op: str, base: str, offset: int) -> str:
        """Return loads or stores of every register."""
        step = self.registers * self.width // 8
        lines = [f"mad.wide.u32 %address, %lane, {step}, {base};"]
        for i in range(self.registers):
            place = f"[%address + {4 * offset + i * self.width // 8}]"
            register = f"%{self.letter}{i}"
            operands = f"{register}, {place}" if op == "ld" else f"{place}, {register}"
            lines.append(f"{op}.global.b{self.width} {operands};")
        return "\n".join(lines) + "\n"


def multiply(
    mnemonic: str, kinds: tuple[str, ...], counts: tuple[int, ...], target: str
) -> WarpCase:
    """Return the case of one mma, by the types and the elements a lane of d, a, b, c."""
    d, a, b, c = (Fragment(*x) for x in zip("dabc", kinds, counts, strict=True))
    code = ".reg .b64 %address;\n" + "".join(f.declared() for f in (d, a, b, c))
    words, offset = [], 0
    for seed, fragment in enumerate((a, b, c)):
        code += fragment.moved("ld", "%in", offset)
        count = 32 * fragment.numbers
        words.append(elements(fragment.kind, count, seed)[:, : fragment.words])
        offset += fragment.words
    code += f"{mnemonic} {d.text()}, {a.text()}, {b.text()}, {c.text()};\n"
    code += d.moved("st", "%out", 0)
    return WarpCase(mnemonic, code, np.concatenate(words, axis=1), d.words, target)


def _shape(
    m: int, n: int, k: int, d: str, a: str, b: str, c: str, target: str, more: str = ""
) -> WarpCase:
    saturated, operation = (".satfinite", "") if more == "sat" else ("", more)
    name = f"mma.sync.aligned.m{m}n{n}k{k}.row.col{saturated}.{d}.{a}.{b}.{c}{operation}"
    return multiply(
        name, (d, a, b, c), (m * n // 32, m * k // 32, n * k // 32, m * n // 32), target
    )


def dense() -> Iterator[WarpCase]:
    """Yield mma.sync of every shape and type."""
    for d, c in (("f16", "f16"), ("f32", "f32")):
        yield _shape(16, 8, 8, d, "f16", "f16", c, "75")
        yield _shape(16, 8, 16, d, "f16", "f16", c, "80")
        for row in ("row", "col"):
            for col in ("row", "col"):
                name = f"mma.sync.aligned.m8n8k4.{row}.{col}.{d}.f16.f16.{c}"
                yield multiply(name, (d, "f16", "f16", c), (8, 4, 4, 8), "75")
    for k in (8, 16):
        yield _shape(16, 8, k, "f32", "bf16", "bf16", "f32", "80")
    for k in (4, 8):
        yield _shape(16, 8, k, "f32", "tf32", "tf32", "f32", "80")
    yield _shape(8, 8, 4, "f64", "f64", "f64", "f64", "80")
    for k in (4, 8, 16):
        yield _shape(16, 8, k, "f64", "f64", "f64", "f64", "90")
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield _shape(16, 8, 32, "f32", a, b, "f32", "89")


def integer() -> Iterator[WarpCase]:
    """Yield mma.sync on integers and bits."""
    for signs in ("ss", "su", "us", "uu"):
        for more in ("", "sat"):
            for m, n, k in ((8, 8, 16), (16, 8, 16), (16, 8, 32)):
                target = "75" if m == 8 else "80"
                yield _shape(m, n, k, "s32", signs[0] + "8", signs[1] + "8", "s32", target, more)
            for m, n, k in ((8, 8, 32), (16, 8, 32), (16, 8, 64)):
                target = "75" if m == 8 else "80"
                yield _shape(m, n, k, "s32", signs[0] + "4", signs[1] + "4", "s32", target, more)
    for operation in (".xor.popc", ".and.popc"):
        for m, n, k in ((8, 8, 128), (16, 8, 128), (16, 8, 256)):
            yield _shape(m, n, k, "s32", "b1", "b1", "s32", "80", operation)


# Two of four elements, in ascending order; of tf32, one of two.
_PAIRS = np.array([0x4, 0x8, 0x9, 0xC, 0xD, 0xE], "u4")
_ONES = np.array([0x4, 0xE], "u4")


def _metadata(kind: str) -> np.ndarray:
    rng = np.random.default_rng([9, *kind.encode()])
    choices = _ONES if kind == "tf32" else _PAIRS
    nibbles = rng.choice(choices, (WARPS, 32, 8))
    return (nibbles << np.arange(0, 32, 4, dtype="u4")).sum(2, dtype="u4")


def _sparse(
    shape: tuple[int, int, int], d: str, a: str, b: str, selector: int, target: str
) -> WarpCase:
    m, n, k = shape
    name = f"mma.sp::ordered_metadata.sync.aligned.m{m}n{n}k{k}.row.col.{d}.{a}.{b}.{d}"
    counts = (m * n // 32, m * k // 64, n * k // 32, m * n // 32)
    case = multiply(name, (d, a, b, d), counts, target)
    words = case.words.shape[1]
    load = f"add.u64 %address, %in, %own;\nld.global.b32 %e, [%address + {4 * words}];\n"
    code = ".reg .b32 %e;\n" + case.code.replace(name, load + name)
    end = code.index(";", code.index(name))
    code = f"{code[:end]}, %e, {selector:#x}{code[end:]}"
    inputs = np.concatenate([case.words, _metadata(a)], axis=1)
    return WarpCase(f"{name} {selector}", code, inputs, case.out_words, target)


def sparse() -> Iterator[WarpCase]:
    """Yield mma.sp, with the metadata in different lanes."""
    for k, selectors in ((16, (0, 1, 2, 3)), (32, (0, 1))):
        for selector in selectors:
            yield _sparse((16, 8, k), "f16", "f16", "f16", selector, "80")
            yield _sparse((16, 8, k), "f32", "f16", "f16", selector, "80")
            yield _sparse((16, 8, k), "f32", "bf16", "bf16", selector, "80")
    for k, selectors in ((8, (0, 1, 2, 3)), (16, (0, 1))):
        for selector in selectors:
            yield _sparse((16, 8, k), "f32", "tf32", "tf32", selector, "80")
    for k, selectors in ((32, (0, 1)), (64, (0,))):
        for selector in selectors:
            for a, b in (("s8", "s8"), ("u8", "s8"), ("u8", "u8")):
                yield _sparse((16, 8, k), "s32", a, b, selector, "80")
    for a in ("e4m3", "e5m2"):
        yield _sparse((16, 8, 64), "f32", a, "e5m2", 0, "89")


def through_shared_memory() -> Iterator[WarpCase]:
    """Yield ldmatrix, stmatrix and movmatrix."""
    prologue = """
    .shared .align 16 .b8 tiles[8192];
    .reg .b32 %s, %mine, %part, %r<4>;
    .reg .b64 %address;
    mov.u32 %s, tiles;
    and.b32 %part, %warp, 3;
    mad.lo.u32 %s, %part, 2048, %s;
    mad.lo.u32 %mine, %lane, 16, %s;
    mad.wide.u32 %address, %lane, 16, %in;
    ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%address];
    """
    epilogue = "mad.wide.u32 %address, %lane, 16, %out;\n"
    epilogue += "st.global.v4.b32 [%address], {%r0, %r1, %r2, %r3};"
    words = np.arange(WARPS * 128, dtype="u4").reshape(WARPS, 128) * np.uint32(0x9E3779B1)
    for number, registers in (
        ("x1", "{%r0}"),
        ("x2", "{%r0, %r1}"),
        ("x4", "{%r0, %r1, %r2, %r3}"),
    ):
        for trans in ("", ".trans"):
            name = f"ldmatrix.sync.aligned.m8n8.{number}{trans}.shared.b16"
            store = "st.shared.v4.b32 [%mine], {%r0, %r1, %r2, %r3};\nbar.warp.sync 0xffffffff;\n"
            # Rows in another order than lanes.
            row = "xor.b32 %mine, %lane, 5;\nmad.lo.u32 %mine, %mine, 16, %s;\n"
            code = f"{prologue}{store}{row}{name} {registers}, [%mine];\n{epilogue}"
            yield WarpCase(name, code, words, 128, "75")
            name = f"stmatrix.sync.aligned.m8n8.{number}{trans}.shared.b16"
            clear = "st.shared.v4.b32 [%mine], {%lane, %lane, %lane, %lane};\n"
            clear += "bar.warp.sync 0xffffffff;\n"
            back = "bar.warp.sync 0xffffffff;\nld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%mine];\n"
            code = f"{prologue}{clear}{name} [%mine], {registers};\n{back}{epilogue}"
            yield WarpCase(name, code, words, 128, "90")
    name = "movmatrix.sync.aligned.m8n8.trans.b16"
    yield WarpCase(name, f"{prologue}{name} %r0, %r1;\n{epilogue}", words, 128, "75")


def whole() -> Iterator[WarpCase]:
    """Yield wmma: loaded, multiplied and stored, since what a lane holds is nobody's business."""
    shapes = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
    table = [(shape, d, "f16", "75") for shape in shapes for d in ("f16", "f32")]
    table += [(shape, "s32", t, "75") for shape in shapes for t in ("s8", "u8")]
    table += [(shape, "f32", "bf16", "80") for shape in shapes]
    table += [((16, 16, 8), "f32", "tf32", "80"), ((8, 8, 4), "f64", "f64", "80")]
    for shape, d, t, target in table:
        for row, col in (("row", "col"), ("col", "row"), ("row", "row")):
            yield _wmma(shape, d, t, row, col, target)
    for t in ("s4", "u4"):
        yield _wmma((8, 8, 32), "s32", t, "row", "col", "75")
    yield _wmma((8, 8, 128), "s32", "b1", "row", "col", "75")


def _wmma_registers(t: str, numbers: int, side: str) -> int:
    if t == "f16" and side in "ab":
        return 8  # each number is there twice
    if t == "f64":
        return numbers // 32
    return max(numbers * _ELEMENT_BITS[t] // 1024, 1)


def _wmma(mnk: tuple[int, int, int], d: str, t: str, row: str, col: str, target: str) -> WarpCase:
    m, n, k = mnk
    sizes = {"a": m * k, "b": k * n, "c": m * n, "d": m * n}
    code = ".reg .b64 %address;\n"
    lists = {}
    for letter, numbers in sizes.items():
        kind = t if letter in "ab" else d
        count = _wmma_registers(kind, numbers, letter)
        code += f".reg .b{64 if kind == 'f64' else 32} %{letter}<{count}>;\n"
        lists[letter] = "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"
    words, offset = [], 0
    shape = f"m{m}n{n}k{k}"
    layouts = {
        "a": (row, m if row == "col" else k),
        "b": (col, k if col == "col" else n),
        "c": ("row", n),
    }
    for seed, (letter, (layout, stride)) in enumerate(layouts.items()):
        kind = t if letter in "ab" else d
        data = elements(kind, sizes[letter], seed)
        code += f"add.u64 %address, %in, {4 * offset};\n"
        code += f"wmma.load.{letter}.sync.aligned.{layout}.{shape}.global.{kind} "
        code += f"{lists[letter]}, [%address], {stride};\n"
        words.append(data)
        offset += data.shape[1]
    types = f"{d}.{d}" if t == "f16" else f"{d}.{t}.{t}.{d}"
    rounding = ".rn" if t == "f64" else ""
    bit = ".xor.popc" if t == "b1" else ""
    name = f"wmma.mma{bit}.sync.aligned.{row}.{col}.{shape}{rounding}.{types}"
    code += f"{name} {lists['d']}, {lists['a']}, {lists['b']}, {lists['c']};\n"
    code += f"wmma.store.d.sync.aligned.row.{shape}.global.{d} [%out], {lists['d']}, {n};\n"
    return WarpCase(name, code, np.concatenate(words, axis=1), words[-1].shape[1], target)


def cases() -> Iterator[WarpCase]:
    """Yield every case of this family."""
    for family in (dense, integer, sparse, through_shared_memory, whole):
        yield from family()


def results(stream: cu.Stream, capability: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and result of each case."""
    return warp_case.run(cases(), stream, capability)
