# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Types of elements, by their names in C++ and in array interfaces, as the border knows them.

A byte: the kind in DLPack's numbers, without the sign of integers, and the width. 0 is not known,
or bytes, which may hold anything. From 128 on it is what an integer itself may be.
"""

from __future__ import annotations

import re

_INT, _FLOAT, _BFLOAT, _COMPLEX = 0, 2, 4, 5
_WIDTHS = {1: 1, 2: 2, 4: 3, 8: 4, 16: 5}  # by bytes


def _element(kind: int, nbytes: int) -> int:
    return kind << 4 | _WIDTHS[nbytes]


# Bytes are raw memory, whatever they are called, so they are not here; nor are vectors and other
# structs, to which arrays of numbers are passed as well.
_OF_CPP = {
    "float": _element(_FLOAT, 4),
    "double": _element(_FLOAT, 8),
    **dict.fromkeys(("half", "__half", "_Float16"), _element(_FLOAT, 2)),
    **dict.fromkeys(("nv_bfloat16", "__nv_bfloat16", "__bf16"), _element(_BFLOAT, 2)),
    **dict.fromkeys(("int16_t", "uint16_t", "ushort"), _element(_INT, 2)),
    **dict.fromkeys(("int32_t", "uint32_t", "uint"), _element(_INT, 4)),
    **dict.fromkeys(("int64_t", "uint64_t", "size_t", "ulong"), _element(_INT, 8)),
    **dict.fromkeys(("intptr_t", "uintptr_t", "ptrdiff_t"), _element(_INT, 8)),
}
_INTEGER = {"signed", "unsigned", "short", "int", "long"}
_IGNORED = {"const", "volatile", "__restrict__", "__restrict", "__grid_constant__"}
_WORD = re.compile(r"[A-Za-z_]\w*|\S")
_OF_TYPESTR = {"i": _INT, "u": _INT, "f": _FLOAT, "c": _COMPLEX}


# Ranges of integers, and names of types that have them. What char is depends on the host.
_SIGNED, _UNSIGNED, _BOOL = 129, 130, 131
_RANGES = {
    **dict.fromkeys(("bool", "_Bool"), _BOOL),
    **dict.fromkeys((f"int{bits}_t" for bits in (8, 16, 32, 64)), _SIGNED),
    **dict.fromkeys(("intptr_t", "ptrdiff_t"), _SIGNED),
    **dict.fromkeys((f"uint{bits}_t" for bits in (8, 16, 32, 64)), _UNSIGNED),
    **dict.fromkeys(("uintptr_t", "size_t", "uchar", "ushort", "uint", "ulong"), _UNSIGNED),
}


def element_of(ctype: str, source: str) -> int:
    """Return what a type such as ``const float*`` points to, or a number may be; 0 if not known.

    `source` is where it is used, which may give names another meaning.
    """
    words = [
        w for w in _WORD.findall(re.sub(r"\b(?:cuda::)?std::", "", ctype)) if w not in _IGNORED
    ]
    if "*" not in words:
        known = _range(words)
        return known if known and not any(_is_renamed(w, source) for w in words) else 0
    if words.count("*") != 1 or words[-1] != "*":
        return 0
    words.pop()
    if words and set(words) <= _INTEGER:
        named = _integer(words)
    else:
        named = _OF_CPP.get(words[0], 0) if len(words) == 1 else 0
    return named if named and not any(_is_renamed(w, source) for w in words) else 0


def _range(words: list[str]) -> int:
    if not words or not set(words) <= {*_INTEGER, "char"}:
        return _RANGES.get(words[0], 0) if len(words) == 1 else 0
    if "unsigned" in words:
        return _UNSIGNED
    return _SIGNED if "char" not in words or "signed" in words else 0


def _integer(words: list[str]) -> int:
    if "short" in words:
        return _element(_INT, 2)
    return _element(_INT, 8 if "long" in words else 4)


def _is_renamed(word: str, source: str) -> bool:
    return (
        re.search(
            rf"#[ \t]*define[ \t]+{word}\b|\busing[ \t]+{word}\s*=|\btypedef\b[^;]*\b{word}\s*;"
            rf"|\b(?:typename|class|struct)\s+{word}\b",
            source,
        )
        is not None
    )


def element_of_typestr(typestr: str) -> int:
    """Return the element type of an array interface, such as ``<f4``; 0 if it is not known."""
    kind = _OF_TYPESTR.get(typestr[1:2])
    width = typestr[2:]
    if kind is None or not width.isdecimal() or int(width) not in _WIDTHS or int(width) == 1:
        return 0
    return _element(kind, int(width))
