# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What graphs and executables keep alive, as they tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _core

__all__ = ["Retained"]


def read_rows(text: str) -> list[list[str]]:
    """Split what the native module says: fields end in U+001F, lines in U+001E."""
    return [line.split("\x1f") for line in text.split("\x1e")[:-1]]


@dataclass(frozen=True)
class Retained:
    """One thing that a graph or an executable keeps alive.

    Parameters
    ----------
    node : str
        Name of the node that uses it.
    operand : str
        Its part in the node: ``"dst"``, ``"src"``, ``"argument 1"``, ``"callback"``, ``"kernel"``.
    object : object
        The object that was handed in.
    nbytes : int
        Bytes of its memory that are kept; 0 for what has none.
    reason : str
        Kind of operation: ``"memcpy"``, ``"memset"``, ``"kernel"``, ``"host"``.
    """

    node: str
    operand: str
    object: Any
    nbytes: int
    reason: str


def read_retained(holder: Any) -> tuple[Retained, ...]:
    found = []
    for node, operand, address, nbytes, reason in read_rows(holder._text("retained")):
        held = holder._held(int(address)) if address != "0" else None
        if held is None:
            continue
        kept = held.object if isinstance(held, _core.Operand) else held
        found.append(Retained(node, operand, kept, int(nbytes), reason))
    return tuple(found)
