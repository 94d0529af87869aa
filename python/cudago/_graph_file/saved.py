# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Saved graphs: what the text of a file describes."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from .. import _core

FORMAT = "cudago graph"
VERSION = 2  # of files with what version 1 has no fields for; others are written as that
MOST_DEPTH = 64  # of graphs inside graphs
MOST_PATH = 4096  # characters of a node's name, with those of what it is in

NODE_KINDS = (
    "kernel",
    "memcpy",
    "memset",
    "batch mem op",
    "host",
    "empty",
    "event record",
    "event wait",
    "alloc",
    "free",
    "child graph",
    "conditional",
)
CODE_KINDS = ("ptx", "cubin", "fatbin")
MEMORY_KINDS = ("device", "pinned", "managed", "host", "variable")


class Code(NamedTuple):
    """Code of kernels; its bytes are the member ``code/N``."""

    kind: str


class Kernel(NamedTuple):
    """A kernel: its code, its symbol there, and the names of its parameters if they are known.

    The work is what one of cudago's own does, or "".
    """

    code: int
    entry: str
    parameters: tuple[str, ...]
    work: str


class Memory(NamedTuple):
    """An allocation: its bytes, if they were saved, are the member ``memory/N``.

    `lead` is where it began after an address that is a multiple of 256, so that what was aligned in
    it stays so. A variable has its code and its name instead.
    """

    kind: str
    size: int
    lead: int
    code: int | None
    name: str | None


class Operand(NamedTuple):
    """Bytes of a memory, or of what an alloc node of the outermost graph allocates."""

    memory: int | None
    alloc: int | None
    offset: int
    size: int
    dtype: str | None
    shape: tuple[int, ...] | None


class Number(NamedTuple):
    """Another argument of a kernel: an int, a float, bytes, None, or a condition."""

    kind: Literal["int", "float", "bytes", "null", "condition"]
    value: Any


class Struct(NamedTuple):
    """A struct with memory: its bytes, and which memory's address goes where."""

    data: bytes
    pointers: tuple[tuple[int, Operand], ...]


class Slotted(NamedTuple):
    """An argument or operand with the name of its slot."""

    name: str
    value: Operand | Number | Struct


Value: TypeAlias = Operand | Number | Struct | Slotted


class Node(NamedTuple):
    """A node: which nodes it waits for, by their numbers, and what it does, by its kind.

    `after` has the order in which the edges were made, without which an executable of the graph
    could not become the loaded one. Files made before have it sorted.
    `edges` says what of some of these nodes it waits for, other than their end.
    """

    name: str
    kind: str
    after: tuple[int, ...]
    values: dict[str | int, Value]  # operands of copies and fills; arguments of kernels
    what: dict[str, Any]
    edges: dict[int, str]


class Saved(NamedTuple):
    """All of a saved graph but the bytes of code and memory."""

    maker: str
    code: tuple[Code, ...]
    kernels: tuple[Kernel, ...]
    memory: tuple[Memory, ...]
    conditions: tuple[int | None, ...]  # their defaults
    events: int  # how many there are
    nodes: tuple[Node, ...]


def plain(value: Value) -> Operand | Number | Struct:
    """Return what a slot holds, or the value itself."""
    return value.value if isinstance(value, Slotted) else value


def value_memory(saved: Saved) -> set[int]:
    """Return the numbers of the memory that nodes write values into, or wait for values in."""
    found = set[int]()
    left = list(saved.nodes)
    while left:
        node = left.pop()
        left += [n for graph in node.what.get("graphs", ()) for n in graph]
        if node.kind == "batch mem op":
            held = [plain(value) for value in node.values.values()]
            found |= {o.memory for o in held if isinstance(o, Operand) and o.memory is not None}
    return found


def inner_path(path: str, index: int, count: int) -> str:
    """Return what the names of nodes inside a node begin with, as in `Graph.diff`."""
    return f"{path}/" if count == 1 else f"{path}[{index}]/"


def nbytes_of(dtype: str, shape: tuple[int, ...]) -> int | None:
    """Return the bytes of a tensor without gaps; None if there is no such type of whole bytes."""
    try:
        name, bits = _core._dtype(dtype)
    except (TypeError, ValueError):
        return None
    if name != dtype or bits % 8 or len(shape) > 32:
        return None
    count = 1
    for size in shape:
        count *= size
    return int(count * bits // 8)
