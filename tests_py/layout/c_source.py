# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""C sources as tokens: functions, what they call, and of which type an expression is.

Enough C for the house's own style, and no more: no preprocessor, types by their name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|->|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^=!<>]=|\.\.\.|\S")
NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
NAME = re.compile(r"[A-Za-z_]\w*$")
PAIRS = {")": "(", "]": "[", "}": "{"}
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "case", "else", "do", "defined"}
QUALIFIERS = {"static", "inline", "extern", "const", "unsigned", "struct", "union", "enum"}
QUALIFIERS |= {"QUIET", "_Atomic", "volatile"}


class Tokens(list):
    """The tokens of a text; `line[i]` is where each is, `match[i]` its other bracket."""

    def __init__(self, text: str) -> None:
        self.line: list[int] = []
        self.match: dict[int, int] = {}
        text = NOISE.sub(lambda m: blank(m, '""' if m[0][0] == '"' else "0"), text)
        text = DIRECTIVE.sub(lambda m: blank(m, ""), text)
        line, at, opened = 1, 0, []
        for m in TOKEN.finditer(text):
            line += text.count("\n", at, m.start())
            at = m.start()
            if m[0] in PAIRS.values():
                opened.append(len(self))
            elif m[0] in PAIRS and opened:
                other = opened.pop()
                self.match[other], self.match[len(self)] = len(self), other
            self.append(m[0])
            self.line.append(line)

    def skip(self, i: int, step: int = 1) -> int:
        """Return the other bracket of one that opens in the direction of step, or i itself."""
        opening = PAIRS.values() if step > 0 else PAIRS
        return self.match.get(i, i) if self[i] in opening else i

    def upto(self, i: int, stop: str, end: int) -> int:
        """Return where stop is next, from i on and outside of brackets, or end."""
        while i < end and self[i] not in stop:
            i = self.skip(i) + 1
        return i


def blank(m: re.Match[str], kept: str) -> str:
    kept = "" if m[0].startswith(("/*", "//")) else kept
    return (kept or " ") + "\n" * m[0].count("\n")


@dataclass
class Function:
    name: str
    file: str
    returns: str
    quiet: bool
    static: bool
    parameters: tuple[int, int]  # brackets
    body: tuple[int, int] | None  # brackets; None: a prototype
    scope: dict[str, str] | None = None  # types of parameters and locals, once asked for


@dataclass
class Call:
    callee: str  # "": through a pointer
    at: int
    end: int  # its closing bracket


class Source:
    """One file: its functions, structs and initialised tables."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.includes = INCLUDE.findall(text)
        self.t = Tokens(text)
        self.functions: list[Function] = []
        self.members: dict[str, dict[str, str]] = {}  # of structs
        self.tables: dict[str, list[tuple[int, int]]] = {}  # element type: brackets of initialisers
        start = i = 0
        while i < len(self.t):
            i = self.declaration(start, i)
            if self.t[i] in ";}":
                start = i + 1
            i += 1

    def declaration(self, start: int, i: int) -> int:
        """Look at token i of what begins at start; return the last token that is done with."""
        t = self.t
        if t[i] == "{" and t[i - 1] == ")":
            self.function(start, i)
            return t.match[i]
        if t[i] == "{":
            end = t.match[i]
            if "=" in t[start:i]:
                self.tables.setdefault(type_of(t[start:i]), []).append((i, end))
            elif {"struct", "union"} & set(t[start:i]):
                name = t[end + 1] if t[start] == "typedef" else t[i - 1]
                self.members[name] = dict(self.fields(i + 1, end))
            return t.upto(end, ";", len(t) - 1)
        if t[i] == ";" and "typedef" not in t[start:i] and "=" not in t[start:i]:
            self.function(start, i)
        return t.skip(i) if t[i] == "(" else i

    def function(self, start: int, end: int) -> None:
        t = self.t
        opening = next((k for k in range(start, end) if t[k] == "("), None)
        if opening is None or not NAME.match(t[opening - 1]):
            return
        body = (end, t.match[end]) if t[end] == "{" else None
        head, name = t[start : opening - 1], t[opening - 1]
        quiet, static = "QUIET" in head, "static" in head
        parameters = (opening, t.match[opening])
        f = Function(name, self.file, type_of(head), quiet, static, parameters, body)
        self.functions.append(f)

    def fields(self, i: int, end: int) -> Iterator[tuple[str, str]]:
        t = self.t
        while i < end:
            stop = t.upto(i, ";", end)
            inner = next((k for k in range(i, stop) if t[k] == "{"), None)
            if inner is not None:  # an anonymous struct or union
                yield from self.fields(inner + 1, t.match[inner])
            yield from declared(t, i, stop)
            i = stop + 1


read = cache(Source)


def type_of(tokens: list[str]) -> str:
    return next((w for w in tokens if NAME.match(w) and w not in QUALIFIERS), "")


def declared(t: Tokens, i: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield the names that a declaration without initialisers makes, each with its type."""
    kind = type_of(t[i:end])
    for k in range(i, end):
        if NAME.match(t[k]) and t[k] != kind and (k + 1 == end or t[k + 1] in ",["):
            yield t[k], kind


class Program:
    """All sources together."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.sources = {file: read(file, text) for file, text in texts.items()}
        self.members: dict[str, dict[str, str]] = {}
        self.by_name: dict[str, list[Function]] = {}
        for s in self.sources.values():
            self.members |= s.members
            for f in s.functions:
                self.by_name.setdefault(f.name, []).append(f)

    def find(self, name: str, file: str) -> list[Function]:
        """Return all declarations of what name is in a file: its own, or everybody's."""
        every = self.by_name.get(name, [])
        own = [f for f in every if f.file == file and f.static]
        return own or [f for f in every if not f.static or f.file.endswith(".h")]

    def scope(self, f: Function) -> dict[str, str]:
        if f.scope is None:
            f.scope = self.scope_of(f)
        return f.scope

    def scope_of(self, f: Function) -> dict[str, str]:
        t, scope = self.sources[f.file].t, {}
        i, end = f.parameters[0] + 1, f.parameters[1]
        while i < end:
            stop = t.upto(i, ",", end)
            scope |= dict(declared(t, i, stop))
            i = stop + 1
        for i in range(f.body[0], f.body[1]):
            if t[i] in self.members and t[i - 1] not in ("->", "."):
                scope |= dict(self.locals(t, i, f.body[1]))
        return scope

    def locals(self, t: Tokens, i: int, end: int) -> Iterator[tuple[str, str]]:
        kind, i = t[i], i + 1
        while i < end:
            while t[i] in ("*", "const"):
                i += 1
            if not NAME.match(t[i]) or t[i + 1] not in "=;,[":
                return
            yield t[i], kind
            i = t.upto(i, ",;", end)
            if t[i] == ";":
                return
            i += 1

    def calls(self, f: Function) -> Iterator[Call]:
        t = self.sources[f.file].t
        for i in range(f.body[0], f.body[1]):
            if t[i] != "(":
                continue
            before = t[i - 1]
            if NAME.match(before) and before not in KEYWORDS:
                if t[i - 2] == "." and t[i - 3] == "cu":
                    before = "cu." + before
                elif t[i - 2] in ("->", "."):
                    before = ""
                elif before in self.members or t[i + 1] == "*":
                    continue  # a type
                yield Call(before, i - 1, t.match[i])
            elif before == ")" and t[t.match[i - 1] + 1] == "(":
                opening = t.match[i - 1]
                if t[opening - 1] not in KEYWORDS:
                    yield Call("", i - 1, t.match[i])

    def returns(self, f: Function) -> Iterator[tuple[int, int]]:
        """Yield where each return statement begins and ends."""
        t = self.sources[f.file].t
        for i in range(f.body[0], f.body[1]):
            if t[i] == "return":
                yield i, t.upto(i, ";", f.body[1])

    def accesses(self, f: Function) -> Iterator[tuple[str, str, int, int]]:
        """Yield type, field, its token and the first token of the whole, of each `x->field`."""
        t = self.sources[f.file].t
        for i in range(f.body[0], f.body[1]):
            if t[i] in ("->", ".") and NAME.match(t[i + 1]):
                kind, start = self.type_before(f, i)
                yield kind, t[i + 1], i + 1, start

    def type_before(self, f: Function, i: int) -> tuple[str, int]:
        """Return the type of what stands before token i, and where it begins."""
        t, j = self.sources[f.file].t, i - 1
        while t[j] == "]":
            j = t.match[j] - 1
        if t[j] == ")":
            opening = t.match[j]
            if NAME.match(t[opening - 1]) and t[opening - 1] not in KEYWORDS:
                made = self.find(t[opening - 1], f.file)
                return (made[0].returns if made else ""), opening - 1
            if t[opening + 1] == "(":
                return type_of(t[opening + 2 : t.match[opening + 1]]), opening
            return self.type_before(f, j)[0], opening
        if t[j - 1] in ("->", "."):
            kind, start = self.type_before(f, j - 1)
            return self.members.get(kind, {}).get(t[j], ""), start
        return self.scope(f).get(t[j], ""), j
