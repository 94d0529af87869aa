# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The rules of pyext that border.h states, as checks of the sources.

A loud function may run Python or give the GIL away: all that is neither QUIET nor listed here.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from .border_tables import (
    BORROWS,
    CLEARED,
    COUNT_ENDS,
    COUNTS,
    ENTRY,
    GATES,
    GIL_TAKERS,
    GO_QUIET,
    HOLDS,
    INSIDE,
    LIBC,
    LOOKS,
    NOW,
    OURS_QUIET,
    PYTHON_QUIET,
    QUIET_CALLS,
    RAISERS,
    READERS,
    WAITS,
    WITH_GIL,
)
from .c_source import Call, Function, Program, Tokens

ALWAYS = LIBC | OURS_QUIET | PYTHON_QUIET | {"__builtin_mul_overflow", "__builtin_ctz"}
# What a return statement may also call: only failing paths release things there.
LETTING_GO = {"Py_DECREF", "Py_XDECREF", "Py_DecRef", "free"}
LEAVES = {
    "Py_BEGIN_ALLOW_THREADS": "Py_END_ALLOW_THREADS",
    "cudago_gil_leave": "cudago_gil_back",
    "cudago_step_aside": "cudago_step_back",
    "PyEval_SaveThread": "PyEval_RestoreThread",
}
FREEING = {"cudago_cell_release_gil", "cudago_cells_drain"}  # their release functions enter Go
NO_CALL = {"Py_tp_dealloc", "Py_tp_traverse", "Py_tp_clear", "Py_bf_releasebuffer"}
WRAPPERS = {
    "PyObject", "DeviceObject", "StreamObject", "EventObject", "ResourceObject", "BufferObject",
    "PointerObject", "HandleObject", "KernelObject", "ConfigObject", "OperandObject", "GraphObject",
    "ExecObject", "NodeObject", "ReplayObject", "CaptureObject", "FinalizerObject", "TensorObject",
}  # fmt: skip


class Rules:
    """Checks a program, or one file of it; `used` are the exceptions that it has needed."""

    def __init__(self, texts: dict[str, str], only: str = "") -> None:
        self.p = Program(texts)
        self.checked = [s for s in self.p.sources.values() if only in ("", s.file)]
        self.used: set[str] = set()
        self.loud_ends: dict[tuple[str, str], bool] = {}

    def all(self) -> list[str]:
        checks = (self.quiet, self.names, self.fields, self.captures, self.borrowed, self.released,
                  self.waits, self.entries, self.gates, self.counts)  # fmt: skip
        return [line for check in checks for line in check()]

    def bodies(self) -> Iterator[Function]:
        return (f for s in self.checked for f in s.functions if f.body)

    def tokens(self, f: Function) -> Tokens:
        return self.p.sources[f.file].t

    def say(self, f: Function, at: int, text: str) -> str:
        return f"{f.file}:{self.tokens(f).line[at]}: {f.name}: {text}"

    def excepted(self, table: Container[str], *names: str) -> bool:
        key = ":".join(names)
        if key in table:
            self.used.add(key)
        return key in table

    # --- 1: what QUIET functions call ---------------------------------------------------------

    def is_quiet(self, f: Function) -> bool:
        return any(d.quiet for d in self.p.find(f.name, f.file))

    def calls_quietly(self, f: Function, c: Call) -> bool:
        if c.callee.startswith("cu.") or c.callee in ALWAYS or self.excepted(GO_QUIET, c.callee):
            return True
        found = self.p.find(c.callee, f.file)
        return any(d.quiet for d in found) or self.excepted(QUIET_CALLS, f.name, c.callee)

    def raises(self, f: Function, c: Call) -> bool:
        return c.callee in RAISERS or f"{f.file}:{c.callee}" in RAISERS

    def ends_loud(self, f: Function) -> bool:
        """May Python have run in f, though f reports no error, as when the GIL was released?"""
        key = (f.file, f.name)
        if key not in self.loud_ends:
            self.loud_ends[key] = False
            self.loud_ends[key] = any(
                self.ends_with(f, c)
                for start, end in self.p.returns(f)
                for c in self.within(f, start, end)
            )
        return self.loud_ends[key]

    def ends_with(self, f: Function, c: Call) -> bool:
        if not self.calls_quietly(f, c):
            return not self.raises(f, c) and c.callee not in LETTING_GO
        return any(d.body and d.quiet and self.ends_loud(d) for d in self.p.find(c.callee, f.file))

    def within(self, f: Function, start: int, end: int) -> Iterator[Call]:
        return (c for c in self.p.calls(f) if start <= c.at < end)

    def quiet(self) -> Iterator[str]:
        for f in self.bodies():
            if self.is_quiet(f):
                yield from self.quiet_body(f)

    def quiet_body(self, f: Function) -> Iterator[str]:
        t, returns = self.tokens(f), list(self.p.returns(f))
        for i in range(*f.body):
            if t[i] in GIL_TAKERS:
                yield self.say(f, i, f"gives the GIL away ({t[i]}), and is QUIET")
        for c in self.p.calls(f):
            if c.callee in GIL_TAKERS or (not self.ends_with(f, c) and self.calls_quietly(f, c)):
                continue
            inside = next((r for r in returns if r[0] < c.at < r[1]), None)
            if inside:
                yield from self.last(f, c, inside[1])
            elif not (self.raises(f, c) and self.returns_next(f, c, returns)):
                what = "ends loud" if self.calls_quietly(f, c) else "is loud"
                yield self.say(
                    f, c.at, f"calls {c.callee or 'a pointer'}, which {what}, and goes on"
                )

    def returns_next(self, f: Function, c: Call, returns: list[tuple[int, int]]) -> bool:
        """Is the call a statement of its own, and the next one a return that calls nothing?"""
        t = self.tokens(f)
        after = next((r for r in returns if r[0] == c.end + 2), None)
        return bool(after) and t[c.end + 1] == ";" and not any(self.within(f, *after))

    def last(self, f: Function, c: Call, end: int) -> Iterator[str]:
        """What a return statement does after a loud call: nothing, but in another case of ?:."""
        t = self.tokens(f)
        stop = t.upto(c.end, ":", end)
        for later in self.within(f, c.end, stop):
            if later.callee not in LETTING_GO and not self.raises(f, later):
                yield self.say(f, later.at, f"calls {later.callee} after {c.callee}, which is loud")

    def names(self) -> Iterator[str]:
        for f in self.bodies():
            if (
                f.name.endswith("_now")
                and not self.is_quiet(f)
                and not self.excepted(NOW, f.file, f.name)
            ):
                yield self.say(f, f.body[0], "is called _now, and is not QUIET")

    # --- 2 and 3: who looks ---------------------------------------------------------------------

    def fields(self) -> Iterator[str]:
        for f in self.bodies():
            if self.is_quiet(f):
                continue
            t = self.tokens(f)
            for kind, name, at, start in self.p.accesses(f):
                if (
                    name not in CLEARED.get(kind, ())
                    or t[at + 1] == "="
                    or (t[start - 1] == "&" and t[start - 2] in "(,=")
                ):
                    continue
                if not self.excepted(READERS, f.file, f.name):
                    yield self.say(
                        f, at, f"reads {kind}.{name}, which close() clears, and is not QUIET"
                    )

    def captures(self) -> Iterator[str]:
        for f in self.bodies():
            for c in self.p.calls(f):
                if c.callee != "cudago_capturing" or self.is_quiet(f):
                    continue
                if not self.excepted(LOOKS, f.file, f.name):
                    yield self.say(f, c.at, "asks whether a stream captures, and is not QUIET")

    def borrowed(self) -> Iterator[str]:
        """What another function looked up is held, or used before anything loud is called."""
        for f in self.bodies():
            if not self.is_quiet(f):
                calls = list(self.p.calls(f))
                for c in calls:
                    if c.callee in BORROWS:
                        yield from self.uses_after(f, c, [d for d in calls if d.at > c.end])

    def uses_after(self, f: Function, borrow: Call, later: list[Call]) -> Iterator[str]:
        t = self.tokens(f)
        inside = range(borrow.at, borrow.end)
        names = {t[i] for i in inside if t[i - 1] == "&" and t[i - 2] in "(,"}
        if t[borrow.at - 1] == "=":
            names.add(t[borrow.at - 2])
        for c in later:
            if c.callee in HOLDS and names & set(t[c.at : c.end]):
                return
            over = any(start < c.at < end for start, end in self.p.returns(f))
            if over or self.raises(f, c) or (self.calls_quietly(f, c) and not self.ends_with(f, c)):
                continue
            if any(t[i] in names and t[i - 1] not in (".", "->") for i in range(c.end, f.body[1])):
                yield self.say(
                    f,
                    c.at,
                    f"calls {c.callee}, which is loud, before using what {borrow.callee} said",
                )
            return

    # --- 4: while the GIL is away ---------------------------------------------------------------

    def released(self) -> Iterator[str]:
        for f in self.bodies():
            t, until = self.tokens(f), ""
            for i in range(*f.body):
                if until and t[i] == until:
                    until = ""
                elif until:
                    yield from self.without_gil(f, i)
                elif t[i] in LEAVES:
                    until = LEAVES[t[i]]

    def without_gil(self, f: Function, i: int) -> Iterator[str]:
        t = self.tokens(f)
        member = t[i - 1] in ("->", ".")
        kind = self.p.type_before(f, i - 1)[0] if member else self.p.scope(f).get(t[i], "")
        if kind in WRAPPERS and (member or t[i + 1] not in ("->", ".")):
            yield self.say(f, i, f"touches {t[i]} ({kind}) without the GIL")
        if t[i + 1] == "(" and not member and t[i].startswith(("Py", "_Py")):
            yield self.say(f, i, f"calls {t[i]} without the GIL")

    # --- 5: calls that wait ---------------------------------------------------------------------

    def waits(self) -> Iterator[str]:
        for f in self.bodies():
            t, until, away = self.tokens(f), "", set()
            for i in range(*f.body):
                until = "" if t[i] == until else until or LEAVES.get(t[i], "")
                if until:
                    away.add(i)
            for c in self.p.calls(f):
                if (
                    c.callee in WAITS
                    and c.at not in away
                    and not self.excepted(WITH_GIL, f.file, f.name)
                ):
                    yield self.say(f, c.at, f"calls {c.callee}, which waits, with the GIL")

    # --- 6: entries -----------------------------------------------------------------------------

    def entries(self) -> Iterator[str]:
        for f in self.entry_points():
            if self.enters(f) or not self.reaches(f, set()):
                continue
            if not self.excepted(ENTRY, f.file, f.name):
                yield self.say(
                    f,
                    f.body[0],
                    "is called by Python, reaches Go, and does not begin with CUDAGO_ENTER",
                )

    def entry_points(self) -> list[Function]:
        found: dict[tuple[str, str], Function] = {}
        for s in self.checked:
            for kind in ("PyMethodDef", "PyGetSetDef", "PyType_Slot"):
                for start, end in s.tables.get(kind, ()):
                    for i in range(start + 1, end):
                        for d in self.p.find(s.t[i], s.file):
                            if d.body and s.t[i - 2] not in NO_CALL:
                                found[d.file, d.name] = d
        return list(found.values())

    def enters(self, f: Function) -> bool:
        """Is its first call CUDAGO_ENTER, or that of a function that does enter?"""
        first = next(self.p.calls(f), None)
        if not first or first.callee in ("CUDAGO_ENTER", "CUDAGO_ENTER_CLOSE"):
            return bool(first)
        return any(d.body and self.enters(d) for d in self.p.find(first.callee, f.file))

    def reaches(self, f: Function, seen: set[tuple[str, str]]) -> bool:
        """May a call of f reach Go or the driver, other than to format an error?"""
        seen.add((f.file, f.name))
        for c in self.p.calls(f):
            if c.callee in FREEING or re.match(r"cu\.|cudago[A-Z]", c.callee):
                return True
            for d in self.p.find(c.callee, f.file):
                new = d.body and (d.file, d.name) not in seen and not self.raises(f, c)
                if new and self.reaches(d, seen):
                    return True
        return False

    # --- 7: what others wait for ----------------------------------------------------------------

    def gates(self) -> Iterator[str]:
        """Inside of a gate nothing is called that raises, however deep."""
        for f in self.bodies():
            for c in self.p.calls(f):
                if c.callee not in GATES:
                    continue
                name = self.argument(f, c, GATES[c.callee])
                inside = [d for d in self.p.find(name, f.file) if d.body]
                if not inside:
                    yield self.say(f, c.at, f"calls {c.callee} with {name!r}, which is no function")
                for d in inside:
                    yield from self.silent(f, c.at, d, f"{d.name}, inside of {c.callee},")

    def argument(self, f: Function, c: Call, which: int) -> str:
        t, i = self.tokens(f), c.at + 2
        for _ in range(which):
            i = t.upto(i, ",", c.end) + 1
        return t[i] if t[i + 1] in ",)" else ""

    def silent(self, f: Function, at: int, inside: Function, where: str) -> Iterator[str]:
        if not self.excepted(INSIDE, inside.file, inside.name):
            for path in self.raising(inside, set()):
                yield self.say(f, at, f"{where} may run Python: {path}")

    def raising(self, f: Function, seen: set[tuple[str, str]]) -> Iterator[str]:
        """Yield what f calls that is loud, or raises, and by way of which functions."""
        seen.add((f.file, f.name))
        for c in self.p.calls(f):
            if self.raises(f, c) or not self.calls_quietly(f, c):
                yield f"{f.name} calls {c.callee or 'a pointer'}"
                continue
            if self.excepted(QUIET_CALLS, f.name, c.callee):
                continue
            for d in self.p.find(c.callee, f.file):
                if d.body and (d.file, d.name) not in seen:
                    yield from (f"{f.name}: {path}" for path in self.raising(d, seen))

    def counts(self) -> Iterator[str]:
        """Whoever has counted itself among what others wait for raises nothing meanwhile."""
        for f in self.bodies():
            t, since = self.tokens(f), ""
            calls = {c.at: c for c in self.p.calls(f)}
            for i in range(*f.body):
                if t[i] in COUNTS and {"++", "--", "+=", "-="} & {t[i - 1], t[i + 1]}:
                    since = t[i] if {"++", "+="} & {t[i - 1], t[i + 1]} else ""
                elif i in calls and calls[i].callee in COUNT_ENDS:
                    since = ""
                elif since and i in calls and self.may_raise(f, calls[i], set()):
                    yield self.say(
                        f, i, f"calls {calls[i].callee}, which may raise, and others wait: {since}"
                    )

    def may_raise(self, f: Function, c: Call, seen: set[tuple[str, str]]) -> bool:
        if self.raises(f, c) or c.callee == "PyErr_CheckSignals":
            return True
        for d in self.p.find(c.callee, f.file):
            if d.body and (d.file, d.name) not in seen:
                seen.add((d.file, d.name))
                if any(self.may_raise(d, inner, seen) for inner in self.p.calls(d)):
                    return True
        return False
