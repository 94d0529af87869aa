# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Types of parameters and of elements, by their names in C++ and in array interfaces.

A byte, as the border knows it. Of a pointer: the kind of its elements in DLPack's numbers, without
the sign of integers, and the width. 0 is not known. From 127 on it is what is known of no element.
A second one is the size of what a pointer points to, which tells how it is aligned.
"""

from __future__ import annotations

import re

_INT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL_ELEMENT = 0, 2, 4, 5, 6
_WIDTHS = {1: 1, 2: 2, 4: 3, 8: 4, 16: 5}  # by bytes


def _element(kind: int, nbytes: int) -> int:
    return kind << 4 | _WIDTHS[nbytes]


# Bytes are raw memory, whatever they are called, so they are not here; nor are structs.
_OF_CPP = {
    "float": _element(_FLOAT, 4),
    "double": _element(_FLOAT, 8),
    **dict.fromkeys(("half", "__half", "_Float16"), _element(_FLOAT, 2)),
    **dict.fromkeys(("nv_bfloat16", "__nv_bfloat16", "__bf16"), _element(_BFLOAT, 2)),
    **dict.fromkeys(("int16_t", "uint16_t", "ushort"), _element(_INT, 2)),
    **dict.fromkeys(("int32_t", "uint32_t", "uint"), _element(_INT, 4)),
    **dict.fromkeys(("int64_t", "uint64_t", "size_t", "ulong"), _element(_INT, 8)),
    **dict.fromkeys(("intptr_t", "uintptr_t", "ptrdiff_t"), _element(_INT, 8)),
    **dict.fromkeys(("bool", "_Bool"), _element(_BOOL_ELEMENT, 1)),
    **dict.fromkeys(("cuComplex", "cuFloatComplex", "cufftComplex"), _element(_COMPLEX, 8)),
    **dict.fromkeys(("cuDoubleComplex", "cufftDoubleComplex"), _element(_COMPLEX, 16)),
}
_COMPLEX_OF = {"float": _element(_COMPLEX, 8), "double": _element(_COMPLEX, 16)}
# Of vectors: the elements that arrays of numbers have, which are passed for them as well.
_VECTORS = {
    f"{name}{count}{suffix}": (element, nbytes * count)
    for names, element, nbytes in (
        (("char", "uchar"), 0, 1),
        (("short", "ushort"), _element(_INT, 2), 2),
        (("int", "uint"), _element(_INT, 4), 4),
        (("long", "ulong", "longlong", "ulonglong"), _element(_INT, 8), 8),
        (("float",), _element(_FLOAT, 4), 4),
        (("double",), _element(_FLOAT, 8), 8),
    )
    for name in names
    for count in (1, 2, 3, 4)
    for suffix in (("", "_16a", "_32a") if count == 4 and nbytes == 8 else ("",))
} | {
    **dict.fromkeys(("half2", "__half2"), (_element(_FLOAT, 2), 4)),
    **dict.fromkeys(("nv_bfloat162", "__nv_bfloat162"), (_element(_BFLOAT, 2), 4)),
}
_INTEGER = {"signed", "unsigned", "short", "int", "long"}
_IGNORED = {"const", "volatile", "__restrict__", "__restrict", "__grid_constant__"}
_WORD = re.compile(r"[A-Za-z_]\w*|\S")
_OF_TYPESTR = {"i": _INT, "u": _INT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL_ELEMENT}

# What is no element: a pointer to what is not known; integers, of which those that are unsigned and
# as wide as an address may be one, and size_t and those with a sign are none; handles.
_POINTER, _SIGNED, _UNSIGNED, _BOOL, _SIZE, _TEXTURE, _SURFACE, _CONDITION = 127, *range(129, 136)
_OTHERS = {
    **dict.fromkeys(("bool", "_Bool"), _BOOL),
    **dict.fromkeys((f"int{bits}_t" for bits in (8, 16, 32, 64)), _SIGNED),
    **dict.fromkeys(("intptr_t", "ptrdiff_t"), _SIGNED),
    **dict.fromkeys((f"uint{bits}_t" for bits in (8, 16, 32, 64)), _UNSIGNED),
    **dict.fromkeys(("uintptr_t", "uchar", "ushort", "uint", "ulong"), _UNSIGNED),
    "size_t": _SIZE,
    **dict.fromkeys(("cudaTextureObject_t", "CUtexObject"), _TEXTURE),
    **dict.fromkeys(("cudaSurfaceObject_t", "CUsurfObject"), _SURFACE),
    **dict.fromkeys(("cudaGraphConditionalHandle", "CUgraphConditionalHandle"), _CONDITION),
}
# Of an argument: text, dates, or numbers in another byte order, which is none of C++'s types.
_NO_NUMBER = 255
# Numbers that PTX takes for structs: what it says of a pointer to them.
_SMALL = {
    name: _OF_CPP[name]
    for name in ("half", "__half", "_Float16", "nv_bfloat16", "__nv_bfloat16", "__bf16")
}
_NBYTES = {
    **dict.fromkeys(("bool", "_Bool", "uchar"), 1),
    **dict.fromkeys(("ushort", *_SMALL), 2),
    **dict.fromkeys(("uint", "float"), 4),
    **dict.fromkeys(("intptr_t", "uintptr_t", "ptrdiff_t", "size_t", "ulong", "double"), 8),
    **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: 8 for name, what in _OTHERS.items() if what >= _TEXTURE},
}


def _words(ctype: str, source: str) -> list[str]:
    """Return what a type consists of; nothing if a name may mean something else in `source`."""
    known = re.sub(r"\b(?:cuda::)?std::", "", ctype)
    words = [w for w in _WORD.findall(known) if w not in _IGNORED]
    return [] if any(_is_renamed(w, source) for w in words if w.isidentifier()) else words


def element_of(ctype: str, source: str) -> int:
    """Return what a type such as ``const float*`` points to, or a value may be; 0 if not known.

    `source` is where it is used, which may give names another meaning.
    """
    words = _words(ctype, source)
    if "*" not in words:
        return _other(words)
    return _target(words[:-1])[0] if words[-1] == "*" else 0


def unit_of(ctype: str, source: str) -> int:
    """Return the size of what a type such as ``const float4*`` points to; 0 if it is not known."""
    words = _words(ctype, source)
    return _target(words[:-1])[1] if words and words[-1] == "*" else 0


def _target(words: list[str]) -> tuple[int, int]:
    """Return what a pointer to these words points to, and its size."""
    if words and words[-1] == "*":  # a table of addresses
        return _element(_INT, 8), 8
    if words and set(words) <= _INTEGER:
        return _sized(_integer(words))
    name = "".join(words).removeprefix("thrust::").removeprefix("cuda::std::")
    if name.startswith("complex<") and name.endswith(">"):
        name = name[len("complex<") : -1]
        return _sized(_COMPLEX_OF[name]) if name in _COMPLEX_OF else (_POINTER, 0)
    if len(words) != 1:
        return _POINTER, 0
    element, unit = _VECTORS.get(name) or _sized(_OF_CPP.get(name, _POINTER))
    return element or _POINTER, unit


def _sized(element: int) -> tuple[int, int]:
    return element, (1 << (element & 15)) >> 1 if element < _POINTER else 0


def nbytes_of(ctype: str) -> tuple[int, bool] | None:
    """Return the size of a type in bytes, and whether it is a floating-point number of C.

    None of what is not known.
    """
    words = _words(ctype, "")
    if words and words[-1] == "*":
        return 8, False
    if words and set(words) <= {*_INTEGER, "char"}:
        of = {"char": 1, "short": 2, "long": 8}
        return next((n for word, n in of.items() if word in words), 4), False
    nbytes = _NBYTES.get(words[0]) if len(words) == 1 else None
    return None if nbytes is None else (nbytes, words[0] in ("float", "double"))


def _other(words: list[str]) -> int:
    if not words or not set(words) <= {*_INTEGER, "char"}:
        return _OTHERS.get(words[0], 0) or _SMALL.get(words[0], 0) if len(words) == 1 else 0
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
    if typestr[1:2] in "SUmM":
        return _NO_NUMBER
    if kind is None or not width.isdecimal() or int(width) not in _WIDTHS:
        return 0
    if int(width) == 1:
        return _element(kind, 1) if kind == _BOOL_ELEMENT else 0
    return _NO_NUMBER if typestr[0] == ">" else _element(kind, int(width))
