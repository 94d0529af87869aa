# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""cvt: every pair of types in every rounding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .case import Case
from .integers import plain

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")


def _holds(to: str, source: str) -> bool:
    """Whether a type has every value of another one: ptxas then refuses .sat."""
    room = int(to[1:]) - (to[0] == "s")
    return room >= int(source[1:]) - (source[0] == "s") and (to[0] == "s" or source[0] == "u")


def integers() -> Iterator[Case]:
    """Yield integer to integer."""
    for to, source in product(INTEGERS, INTEGERS):
        yield plain(f"cvt.{to}.{source}", to, source)
        if not _holds(to, source):
            yield plain(f"cvt.sat.{to}.{source}", to, source)


def floats_and_integers() -> Iterator[Case]:
    """Yield integer to float, and back."""
    for source, to, rounding in product(INTEGERS, ("f16", "f32", "f64"), ROUNDINGS):
        yield plain(f"cvt.{rounding}.{to}.{source}", to, source)
    for source, to, rounding in product(("f16", "f32", "f64"), INTEGERS, INTEGRAL):
        # What a NaN becomes, the ISA leaves to the conversion: 0, or the top bit for 64 bits.
        yield plain(f"cvt.{rounding}.{to}.{source}", to, source)
        if source == "f32":
            yield plain(f"cvt.{rounding}.ftz.{to}.f32", to, source)
            yield plain(f"cvt.{rounding}.sat.{to}.f32", to, source)


def floats() -> Iterator[Case]:
    """Yield float to float."""
    for rounding in ROUNDINGS:
        yield plain(f"cvt.{rounding}.f32.f64", "f32", "f64")
        yield plain(f"cvt.{rounding}.sat.f32.f64", "f32", "f64")
        yield plain(f"cvt.{rounding}.ftz.f32.f64", "f32", "f64")
        yield plain(f"cvt.{rounding}.f16.f64", "f16", "f64")
        yield plain(f"cvt.{rounding}.f16.f32", "f16", "f32")
        yield plain(f"cvt.{rounding}.sat.f16.f32", "f16", "f32")
        yield plain(f"cvt.{rounding}.ftz.f16.f32", "f16", "f32")
    for rounding, t in product(INTEGRAL, ("f16", "f32", "f64")):
        yield plain(f"cvt.{rounding}.{t}.{t}", t, t)
        yield plain(f"cvt.{rounding}.sat.{t}.{t}", t, t)
    for rounding in INTEGRAL:
        yield plain(f"cvt.{rounding}.ftz.f32.f32", "f32", "f32")
    for to, source in (("f32", "f16"), ("f64", "f16"), ("f64", "f32")):
        yield plain(f"cvt.{to}.{source}", to, source)
        yield plain(f"cvt.sat.{to}.{source}", to, source)
    yield plain("cvt.ftz.f32.f16", "f32", "f16")
    yield plain("cvt.ftz.f64.f32", "f64", "f32")
    yield plain("cvt.f32.bf16", "f32", "bf16", target="90")


def narrow() -> Iterator[Case]:
    """Yield bf16, tf32, fp8, and pairs of two values."""
    for rounding, relu in product(("rn", "rz"), ("", ".relu")):
        yield plain(f"cvt.{rounding}{relu}.bf16.f32", "bf16", "f32", target="80")
        yield plain(f"cvt.{rounding}{relu}.f16x2.f32", "f16x2", "f32", "f32", target="80")
        yield plain(f"cvt.{rounding}{relu}.bf16x2.f32", "bf16x2", "f32", "f32", target="80")
        yield plain(f"cvt.{rounding}{relu}.f16.f32", "f16", "f32", target="80", note=" sm_80")
        yield plain(f"cvt.{rounding}{relu}.tf32.f32", "f32", "f32", target="90")
    yield plain("cvt.rna.tf32.f32", "f32", "f32", target="80")
    for t, relu in product(("e4m3", "e5m2"), ("", ".relu")):
        yield plain(f"cvt.rn.satfinite{relu}.{t}x2.f32", "u16", "f32", "f32", target="89")
        yield plain(f"cvt.rn.satfinite{relu}.{t}x2.f16x2", "u16", "f16x2", target="89")
        yield plain(f"cvt.rn{relu}.f16x2.{t}x2", "f16x2", "u16", target="89")


def packs() -> Iterator[Case]:
    """Yield cvt.pack."""
    for t in ("u16", "s16"):
        yield plain(f"cvt.pack.sat.{t}.s32", "u32", "s32", "s32")
    for t in ("u8", "s8", "u4", "s4", "u2", "s2"):
        yield plain(f"cvt.pack.sat.{t}.s32.b32", "u32", "s32", "s32", "u32")


def cases() -> Iterator[Case]:
    """Yield every case of this family."""
    for family in (integers, floats_and_integers, floats, narrow, packs):
        yield from family()
