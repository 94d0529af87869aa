# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of NVVM IR: their modules and options, and what is said where they do not compile."""

from __future__ import annotations

import base64
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from .option_checks import texts_of

if TYPE_CHECKING:
    from .program_options import ProgramOptions

# Fields that are for IR alone, and those that are for C++ and IR. All others are for C++ alone.
_OURS = ("optimization_level", "extra_sources", "use_libdevice")
_COMMON = ("arch", "debug", "fast_math", "find_headers", "jump_table_density", "name", "options")
_CHOICES = {"ftz": "-ftz", "prec_div": "-prec-div", "prec_sqrt": "-prec-sqrt", "fma": "-fma"}
_NUMBERS = {"optimization_level": "-opt", "jump_table_density": "-jump-table-density"}
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # plain, and in LLVM's wrapper


def check(kind: str, source: Any, options: ProgramOptions) -> None:
    """Refuse fields that have no meaning for this kind of source, and modules that are none."""
    given = {f.name for f in fields(options) if _is_given(getattr(options, f.name), f.default)}
    if kind == "nvvm":
        for name in sorted(given - {*_OURS, *_COMMON, *_CHOICES}):
            raise ValueError(f"{name} is for C++ source, which NVVM IR is not")
        modules(source, options)
        return
    for name in _OURS:
        if name in given:
            raise ValueError(f"{name} is for NVVM IR, which source is not: its kind is {kind!r}")


def _is_given(value: Any, default: Any) -> bool:
    return value is not default and not (isinstance(value, (str, tuple, list, dict)) and not value)


def bytes_of(what: str, source: Any) -> bytes:
    """Return a module's text or bitcode."""
    if isinstance(source, (bytes, bytearray)):
        return bytes(source)
    if not isinstance(source, str):
        raise TypeError(f"{what} must be a str or bytes, not {type(source).__name__}")
    if (at := source.find("\0")) >= 0:
        line = source.count("\n", 0, at) + 1
        raise ValueError(f"{what} must have no NUL, and has one in line {line}")
    return source.encode()


def modules(source: Any, options: ProgramOptions) -> list[tuple[str, bytes]]:
    """Return the names and bytes of the source and of what is compiled with it."""
    found = {options.name: bytes_of("source", source)}
    for i, pair in enumerate(options.extra_sources):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"extra_sources[{i}] must be a name and a module, got {pair!r:.80}")
        name, text = pair
        if not name or "\0" in name:
            raise ValueError(f"extra_sources[{i}] must have a name, and no NUL in it, got {name!r}")
        if name in found:
            raise ValueError(f"extra_sources[{i}] has the name of another module: {name!r}")
        found[name] = bytes_of(f"extra_sources[{i}]", text)
    return list(found.items())


def config(source: Any, options: ProgramOptions) -> dict[str, Any]:
    """Return the options as the native module takes them."""
    flags: list[str] = []
    for name, text in _CHOICES.items():
        if (value := getattr(options, name)) is not None:
            flags.append(f"{text}={int(value)}")
    for name, text in _NUMBERS.items():
        if (value := getattr(options, name)) is not None:
            flags.append(f"{text}={int(value)}")
    return {
        "Name": options.name,
        "Arch": options.arch or "",
        "Debug": options.debug,
        "FastMath": options.fast_math,
        "Options": flags + texts_of(options.options),
        "Libdevice": options.use_libdevice,
        "Modules": [
            {"Name": name, "Source": base64.b64encode(text).decode()}
            for name, text in modules(source, options)[1:]
        ],
    }


def readable(source: Any, options: ProgramOptions) -> str:
    """Return those modules that are text."""
    texts = [t for _, t in modules(source, options) if not t.startswith(_BITCODE)]
    return b"\n".join(texts).decode(errors="replace")


# What libnvvm writes of an error in text: the module's name, the line from 1, the column from 0.
_PLACE = re.compile(r"^(?P<name>.*) \((?P<line>\d+), (?P<column>\d+)\): ", re.MULTILINE)


def pointed(log: str, source: Any, options: ProgramOptions) -> str:
    """Return the line of the first error, and a caret below it; empty if the log has no place."""
    line, column = _line(log, source, options)
    if not line.strip() or column > len(line):
        return ""
    before = line[:column].decode(errors="replace")
    blank = "".join(c if c == "\t" else " " for c in before)
    return f"{line.decode(errors='replace').rstrip()}\n{blank}^"


def _line(log: str, source: Any, options: ProgramOptions) -> tuple[bytes, int]:
    place = _PLACE.search(log)
    text = dict(modules(source, options)).get(place["name"], b"") if place else b""
    lines = text.split(b"\n")
    if place is None or not 1 <= int(place["line"]) <= len(lines):
        return b"", 0
    return lines[int(place["line"]) - 1], int(place["column"])


def hint(log: str, source: Any, options: ProgramOptions) -> str:
    """Say what to do about IR of another LLVM than libnvvm reads; empty if that is not it."""
    line, column = _line(log, source, options)
    if line and re.match(rb"ptr\b", line[column:]):
        given = "pointers without a type (ptr)"
    elif ": parse " in log and not line and _has_bitcode(source, options):
        given = "this bitcode"
    else:
        return ""
    return (
        f"libnvvm refuses {given}: for architectures before compute_100 it reads the IR of "
        "LLVM 7, whose pointers have types (float*). It reads newer IR for compute_100 and "
        "later, and, where it knows that option, with options=['-nvvm-latest']"
    )


def _has_bitcode(source: Any, options: ProgramOptions) -> bool:
    return any(text.startswith(_BITCODE) for _, text in modules(source, options))
