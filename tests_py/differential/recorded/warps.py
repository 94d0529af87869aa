# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Shuffles, votes, matches and reductions over a warp, and barriers that reduce."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import cudago as cu

from . import warp_case
from .warp_case import WARPS, WarpCase

# %a, %b: a word of each lane's own; %d, %e: what the lane writes.
_PATTERN = """
.reg .b32 %a, %b, %d, %e, %t;
.reg .b64 %l, %m, %from, %to;
.reg .pred %p, %q;
add.u64 %from, %in, %own;
add.u64 %to, %out, %own;
ld.global.u32 %a, [%from];
ld.global.u32 %b, [%from + 128];
{code}
st.global.u32 [%to], %d;
st.global.u32 [%to + 128], %e;
"""
_PREDICATE = "selp.u32 %e, 1, 0, %p;"


def _words(seed: int, limit: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, limit, (WARPS, 64), dtype=np.uint64).astype("u4")


def _case(name: str, code: str, words: np.ndarray, target: str = "75") -> WarpCase:
    return WarpCase(name, _PATTERN.format(code=code), words, 64, target)


def shuffles() -> Iterator[WarpCase]:
    """Yield shfl.sync with every mode and segments of every size."""
    for mode in ("up", "down", "bfly", "idx"):
        for mask in (0, 0x1F, 0x1C1F, 0x181F, 0x1800, 0x1E00, 0x100F):
            # Lanes ask for different lanes, also for some beyond their segment.
            code = f"and.b32 %b, %b, 63; shfl.sync.{mode}.b32 %d|%p, %a, %b, {mask:#x}, 0xffffffff;"
            yield _case(f"shfl.sync.{mode}.b32 {mask:#x}", code + _PREDICATE, _words(mask, 1 << 32))


def votes() -> Iterator[WarpCase]:
    """Yield votes, with predicates that agree in some warps."""
    rare = _words(1, 40)
    rare[::3] |= 1
    rare[1::3] &= ~np.uint32(1)
    test = "and.b32 %t, %a, 1; setp.ne.u32 %q, %t, 0;"
    for mode in ("all", "any", "uni"):
        for sign in ("", "!"):
            code = f"{test} vote.sync.{mode}.pred %p, {sign}%q, 0xffffffff; mov.b32 %d, %t;"
            yield _case(f"vote.sync.{mode}.pred {sign}", code + _PREDICATE, rare)
    code = f"{test} vote.sync.ballot.b32 %d, %q, 0xffffffff; mov.b32 %e, %t;"
    yield _case("vote.sync.ballot.b32", code, rare)
    # Half of the warp votes by itself.
    code = """mov.b32 %d, 7; mov.b32 %e, 9; setp.lt.u32 %p, %a, 20;
    match.any.sync.b32 %t, %lane, 0xffffffff;
    vote.sync.ballot.b32 %b, %p, 0xffffffff;
    @%p vote.sync.ballot.b32 %d, %p, %b;
    not.b32 %b, %b;
    @!%p vote.sync.ballot.b32 %e, %p, %b;"""
    yield _case("vote.sync.ballot.b32 halves", code, _words(2, 40))


def matches() -> Iterator[WarpCase]:
    """Yield match.sync on values of which many are equal."""
    same = _words(3, 4)
    same[::4] = 3
    yield _case("match.any.sync.b32", "match.any.sync.b32 %d, %a, 0xffffffff; mov.b32 %e, 0;", same)
    yield _case(
        "match.all.sync.b32", f"match.all.sync.b32 %d|%p, %a, 0xffffffff; {_PREDICATE}", same
    )
    wide = "mov.b64 %l, {%b, %a};"
    code = wide + "match.any.sync.b64 %d, %l, 0xffffffff; mov.b32 %e, 0;"
    yield _case("match.any.sync.b64", code, same)
    code = wide + f"match.all.sync.b64 %d|%p, %l, 0xffffffff; {_PREDICATE}"
    yield _case("match.all.sync.b64", code, same)


def reductions() -> Iterator[WarpCase]:
    """Yield redux.sync, and the barriers that reduce over a block."""
    operations = [f"{op}.{t}" for op in ("add", "min", "max") for t in ("u32", "s32")]
    for op in [*operations, "and.b32", "or.b32", "xor.b32"]:
        code = f"redux.sync.{op} %d, %a, 0xffffffff; mov.b32 %e, 0;"
        yield _case(f"redux.sync.{op}", code, _words(4, 1 << 32), "80")
    test = "setp.lt.u32 %q, %a, 39;"
    few = _words(5, 40)
    few[4:8] = 7
    code = f"{test} barrier.sync 1; bar.red.popc.u32 %d, 0, %q; mov.b32 %e, 0;"
    yield _case("bar.red.popc.u32", code, few)
    for op in ("and", "or"):
        code = f"{test} mov.b32 %d, 0; bar.red.{op}.pred %p, 2, !%q; {_PREDICATE}"
        yield _case(f"bar.red.{op}.pred", code, few)


def masks() -> Iterator[WarpCase]:
    """Yield the lane masks of special registers."""
    for name in ("lt", "le", "eq", "ge", "gt"):
        code = f"mov.u32 %d, %lanemask_{name}; mov.u32 %e, %nwarpid; mov.u32 %e, WARP_SZ;"
        yield _case(f"%lanemask_{name}", code, _words(6, 2))
    code = "elect.sync %d|%p, 0xfffffff0; selp.u32 %e, 1, 0, %p;"
    yield _case(
        "elect.sync",
        f"setp.ge.u32 %q, %lane, 4; mov.b32 %d, 0; mov.b32 %e, 0; @!%q bra Done; {code} Done:",
        _words(7, 2),
        "90",
    )


def cases() -> Iterator[WarpCase]:
    """Yield every case of this family."""
    for family in (shuffles, votes, matches, reductions, masks):
        yield from family()


def results(stream: cu.Stream, capability: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and result of each case."""
    return warp_case.run(cases(), stream, capability)
