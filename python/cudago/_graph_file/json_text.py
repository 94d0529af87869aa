# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""JSON that is not trusted: reading it takes time and memory as its length, and no more."""

from __future__ import annotations

import json
import re
from array import array
from itertools import accumulate
from typing import Any

from .archive import TEXT
from .fields import Wrong

_DEEPEST = 1000  # of lists and objects; a graph inside another takes three
_TOO_LONG = re.compile(rb"[0-9]{21}")  # numbers of 64 bits have 20 digits

# What a list or an object that begins, or ends, adds to the depth: 255 is -1 of 8 bits.
_MARKS = b"[{]}"
_STEPS = bytes.maketrans(_MARKS, bytes([1, 1, 255, 255]))
_OTHERS = bytes(set(range(256)) - set(_MARKS))


def _check(data: bytes) -> None:
    """Raise an error for what costs `json` more than its length.

    It descends with the C stack, which a high recursion limit lets it use up; and it converts
    numbers of any length, if the program has lifted Python's limit.
    """
    # Outside of texts no backslash is JSON: what json reads of such data is before it.
    plain = data.replace(rb"\\", b"").replace(rb"\"", b"")
    outside = b" ".join(plain.split(b'"')[::2])
    if _TOO_LONG.search(outside):
        raise Wrong(f"{TEXT} has a number of more than 20 digits")
    steps = array("b", outside.translate(_STEPS, _OTHERS))
    if max(accumulate(steps), default=0) > _DEEPEST:
        raise Wrong(f"{TEXT} is nested too deeply")


def object_of(data: bytes) -> Any:
    """Return what a text says; an error if it is no JSON, or says something twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise Wrong("an object has a key twice")
        return made

    def no_constant(name: str) -> None:
        raise Wrong(f"{name} is not JSON")

    _check(data)
    try:
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=no_constant)
    except RecursionError:
        raise Wrong(f"{TEXT} is nested too deeply") from None
    except ValueError as e:
        raise Wrong(f"{TEXT} is not JSON: {e}") from None
