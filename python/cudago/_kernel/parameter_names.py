# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Names and types of a kernel's parameters, read from its source."""

from __future__ import annotations

import re

_NOISE = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*+"', re.DOTALL)
_OPENING, _CLOSING = "(<[{", ")>]}"
_NAME = re.compile(r"([A-Za-z_$]\w*)\s*(?:\[[^\]]*\]\s*)*+$")
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*\(([^)]*)\)")
_PARAM = re.compile(r"([\w$%]+)\s*(?:\[[^\]]*\]\s*)?$")
_VALUE = re.compile(r"%([A-Za-z_]\w*)\s*$")  # numbered ones name nothing


def parameter_names(kind: str, text: str, kernel: str, count: int) -> tuple[str, ...]:
    """Return the names; empty unless the source has exactly one set of `count` names for them."""
    code = _NOISE.sub(" ", text) if kind != "nvvm" else ""
    if kind == "nvvm":
        all_names = _in_ir(text, kernel)
    elif kind == "c++":
        all_names = [tuple(map(_name, parameters)) for parameters in _in_cpp(code, kernel)]
    else:
        all_names = _in_ptx(code, kernel)
    found = {names for names in all_names if len(names) == count}
    if len(found) != 1:
        return ()
    (names,) = found
    return names if all(names) and len(set(names)) == count else ()


def parameter_types(text: str, kernel: str, count: int) -> tuple[str, ...]:
    """Return the types in C++ source; empty unless it has exactly one list of `count` of them."""
    functions = _in_cpp(_NOISE.sub(" ", text), kernel)
    found = {tuple(map(_type, parameters)) for parameters in functions}
    if len(found) != 1:  # of several, one may be left out by the preprocessor
        return ()
    (types,) = found
    return types if len(types) == count else ()


def _in_cpp(text: str, kernel: str) -> list[list[str]]:
    """Find the parameters of each ``__global__`` function that is called `kernel`, mangled not."""
    base = re.sub(r"<.*", "", kernel).rpartition("::")[2].strip()
    found: list[list[str]] = []
    for start in re.finditer(r"\b__global__\b", text):
        head = re.compile(rf"[^;{{}}]*?\b{re.escape(base)}\s*\(").match(text, start.end())
        if base and head:
            end = _closed(text, head.end())
            found.append(_split(text[head.end() : end]))
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
    declared = parameter.partition("=")[0].strip()
    words = _NAME.search(declared)
    has_type = words is not None and declared[: words.start()].strip() != ""
    return words[1] if words and has_type else ""


def _type(parameter: str) -> str:
    """Return a parameter without its name and default value; an array as the pointer it is."""
    declared = parameter.partition("=")[0].strip()
    name = _name(declared)
    if name:
        at = _NAME.search(declared)
        assert at is not None
        array = "*" if "[" in declared[at.start() :] else ""
        declared = declared[: at.start()] + array
    return " ".join(declared.split())


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


def _in_ir(text: str, kernel: str) -> list[tuple[str, ...]]:
    """Find the parameters of a function that LLVM's IR defines."""
    code = re.sub(r";[^\n]*", "", text)
    head = re.compile(rf'^[ \t]*define\b[^\n]*@"?{re.escape(kernel)}"?\s*\(', re.MULTILINE)
    found: list[tuple[str, ...]] = []
    for start in head.finditer(code):
        params = _split(code[start.end() : _closed(code, start.end())])
        words = [_VALUE.search(p) for p in params]
        found.append(tuple(w[1] if w else "" for w in words))
    return found
