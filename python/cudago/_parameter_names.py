# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Names of a kernel's parameters, read from its source."""

from __future__ import annotations

import re

_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_OPENING, _CLOSING = "(<[{", ")>]}"
_NAME = re.compile(r"([A-Za-z_$]\w*)\s*(?:\[[^\]]*\]\s*)*$")
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*\(([^)]*)\)")
_PARAM = re.compile(r"([\w$%]+)\s*(?:\[[^\]]*\]\s*)?$")


def parameter_names(kind: str, text: str, kernel: str, count: int) -> tuple[str, ...]:
    """Return the names; empty unless the source has exactly one set of `count` names for them."""
    find = _in_cpp if kind == "c++" else _in_ptx
    found = {names for names in find(_NOISE.sub(" ", text), kernel) if len(names) == count}
    if len(found) != 1:
        return ()
    (names,) = found
    return names if all(names) and len(set(names)) == count else ()


def _in_cpp(text: str, kernel: str) -> list[tuple[str, ...]]:
    """Find the parameters of each ``__global__`` function that is called `kernel`, mangled not."""
    base = re.sub(r"<.*", "", kernel).rpartition("::")[2].strip()
    found: list[tuple[str, ...]] = []
    for start in re.finditer(r"\b__global__\b", text):
        head = re.compile(rf"[^;{{}}]*?\b{re.escape(base)}\s*\(").match(text, start.end())
        if base and head:
            end = _closed(text, head.end())
            found.append(tuple(_name(p) for p in _split(text[head.end() : end])))
    return found


def _closed(text: str, at: int) -> int:
    """Return where the parenthesis closes that was opened before `at`."""
    depth = 1
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    return len(text)


def _split(text: str) -> list[str]:
    """Split a list of parameters at its own commas."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in _OPENING) - (c in _CLOSING)
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [] if parts == [""] or [p.strip() for p in parts] in ([""], ["void"]) else parts


def _name(parameter: str) -> str:
    """Return the last word of a parameter, before its default value; empty if it has no name."""
    words = _NAME.search(parameter.partition("=")[0].strip())
    has_type = words is not None and parameter[: words.start()].strip() != ""
    return words[1] if words and has_type else ""


def _in_ptx(text: str, kernel: str) -> list[tuple[str, ...]]:
    """Find the parameters of an entry. Compilers number them, which names nothing."""
    found: list[tuple[str, ...]] = []
    for entry in _ENTRY.finditer(text):
        if entry[1] == kernel:
            params = [p for p in entry[2].split(",") if p.strip()]
            words = [_PARAM.search(p.strip()) for p in params]
            names = tuple(w[1] if w else "" for w in words)
            numbered = re.compile(rf"{re.escape(kernel)}_param_\d+$")
            found.append(tuple("" if numbered.match(n) else n for n in names))
    return found
