# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What graphs and executables keep alive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _core

__all__ = ["Retained"]


@dataclass(frozen=True)
class Retained:
    """One object that a graph or an executable keeps alive.

    Parameters
    ----------
    node : str
        Name of the node that uses it.
    operand : str
        Its role in the node: ``"src"`` and ``"dst"`` of copies, ``"dst"`` of fills, ``"kernel"``
        and ``"parameter 1"`` of launches, ``"callback"``, ``"event"``, ``"memory"``. Parameters are
        counted from 0, as in errors.
    object : object
        The object that was passed in.
    nbytes : int
        Bytes of memory that it keeps; 0 if it has none.
    reason : str
        What the node does: ``"memcpy"``, ``"memset"``, ``"kernel"``, ``"host"``, ``"event"``.
    """

    node: str
    operand: str
    object: Any
    nbytes: int
    reason: str


def retained_of(rows: tuple[tuple[Any, int, str, str, str], ...]) -> tuple[Retained, ...]:
    """Convert the rows of the native module."""
    found: list[Retained] = []
    for held, nbytes, node, operand, reason in rows:
        found.append(Retained(node, operand, object_of(held), nbytes, reason))
    return tuple(found)


def object_of(held: Any) -> Any:
    """Return what was passed in: graphs hold an Operand over memory, and a kernel's record."""
    if issubclass(type(held), tuple):
        return held[0]
    return held.object if isinstance(held, _core.Operand) else held


class Struct(tuple[Any, ...]):
    """A struct with memory, as graphs keep it: its bytes, and an Operand for each pointer.

    Kernels take it again, with the same memory.
    """

    def __bytes__(self) -> bytes:
        return bytes(self[0])

    def __repr__(self) -> str:
        inside = ", ".join(f"{o.object!r:.80} at byte {o.at}" for o in self[1:])
        return f"<struct of {len(self[0])} bytes with {inside}>"


def argument_of(held: Any) -> Any:
    """Return what a kernel's argument was, from its record: what it takes again."""
    return Struct(held) if issubclass(type(held), tuple) else object_of(held)


def _name_of(owner: Any, operand: Any) -> str:
    """Return what messages call an operand of a graph or an executable. Called by native code."""
    rows = owner._retained(0) if isinstance(owner, _core.Graph) else owner._retained()
    given = type(operand.object).__qualname__
    for held, _, node, role, _ in rows:
        if held is operand:
            return f"node {node!r}: the memory of {role}, a {given},"
    return f"memory of a {given}"
