# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago graph``: what is in the file of a saved graph."""

from __future__ import annotations

import argparse
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._graph_file.archive import Archive
from .._graph_file.saved import Number, Operand, Slotted, Struct, inner_path
from .._graph_file.saved_text import read
from ..errors import GraphFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._graph_file.saved import Node, Saved, Value

_MOST_BYTES = 24  # of a struct


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "graph",
        help="show the graph in a file that Graph.save wrote",
        description="Show the nodes of a saved graph with what they wait for, their arguments, "
        "memory and code. Needs no driver. The exit status is 1 if it is no such file.",
    )
    parser.add_argument("file", type=Path)
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Print the graph; return 1 if there is none."""
    try:
        with Archive(options.file) as archive:
            saved = read(archive)
            sizes = archive.sizes
    except GraphFileError as e:
        print(_printable(e), file=sys.stderr)
        return 1
    except OSError as e:
        print(_printable(f"{options.file} cannot be read: {e.strerror or e}"), file=sys.stderr)
        return 1
    count = f"{len(saved.nodes)} node" + "s" * (len(saved.nodes) != 1)
    print(_printable(f"{options.file}: {count}, by {saved.maker}"))
    for line in (*_nodes(saved, saved.nodes, ""), *_memory(saved, sizes), *_code(saved, sizes)):
        print(_printable(line))
    return 0


def _printable(line: object) -> str:
    """Escape what would move a terminal's cursor: names come from the file."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(line))


# --- nodes ----------------------------------------------------------------------------------------


def _nodes(saved: Saved, nodes: tuple[Node, ...], indent: str) -> Iterator[str]:
    for number, node in enumerate(nodes):
        after = ""
        if node.after != ((number - 1,) if number else ()):
            names = ", ".join(nodes[n].name for n in node.after)
            after = f" after {names}" if names else " at once"
        yield f"{indent}{node.name}: {_what(saved, nodes, node)}{after}"
        for line in _values(saved, node):
            yield f"{indent}  {line}"
        inside = node.what.get("graphs", ())
        for i, inner in enumerate(inside):
            if len(inside) > 1:
                yield f"{indent}  {inner_path('', i, len(inside)).rstrip('/')}"
            yield from _nodes(saved, inner, indent + "  " * (1 + (len(inside) > 1)))


def _what(saved: Saved, nodes: tuple[Node, ...], node: Node) -> str:
    what = node.what
    match node.kind:
        case "kernel":
            kernel: int = what["kernel"]
            return f"kernel {saved.kernels[kernel].entry}{_config(what['config'])}"
        case "memcpy" if "box" in what:
            width, rows, slices, *_ = what["box"]
            return f"memcpy of {rows * slices} rows of {width} bytes"
        case "memset":
            return f"memset 0x{what['pattern'][::-1].hex()}"
        case "event record" | "event wait":
            return f"{node.kind} {what['event']}"
        case "alloc":
            return f"alloc of {what['size']} bytes"
        case "free":
            alloc: int = what["alloc"]
            return f"free {nodes[alloc].name}"
        case "conditional":
            condition: int = what["condition"]
            default = saved.conditions[condition]
            start = "" if default is None else f", {default} at the start"
            return f"{what['type']} condition {condition}{start}"
        case "empty":
            return "join"
        case _:
            return node.kind


def _config(config: dict[str, Any]) -> str:
    text = ""
    for name, value in config.items():
        if name in ("grid", "block", "cluster"):
            x, y, z = value
            shape = (x, y, z) if z != 1 else (x, y) if y != 1 else (x,)
            text += f", {name} {' x '.join(map(str, shape))}"
        elif value:
            text += f", {name.replace('_', ' ')} {value}"
    return text


def _values(saved: Saved, node: Node) -> Iterator[str]:
    names: tuple[str, ...] = ()
    if node.kind == "kernel":
        kernel: int = node.what["kernel"]
        names = saved.kernels[kernel].parameters
    for place, value in node.values.items():
        name = f" {names[place]}" if isinstance(place, int) and place < len(names) else ""
        yield f"{place}{name}: {_value(saved, value)}"


def _value(saved: Saved, value: Value) -> str:
    if isinstance(value, Slotted):
        return f"slot {value.name!r}, {_value(saved, value.value)}"
    if isinstance(value, Operand):
        if value.dtype is None:
            text = f"{value.size} bytes"
        else:
            text = f"{value.dtype}[{', '.join(map(str, value.shape or ()))}]"
        if value.alloc is None:
            where = f"memory {value.memory}"
        else:
            where = f"what {saved.nodes[value.alloc].name} allocates"
        return f"{text} in {where}" + (f" from {value.offset}" if value.offset else "")
    if isinstance(value, Struct):
        inside = ", ".join(f"{_value(saved, to)} at byte {at}" for at, to in value.pointers)
        return f"struct of {len(value.data)} bytes with {inside}"
    return _number(value)


def _number(value: Number) -> str:
    match value.kind:
        case "float":
            return str(struct.unpack("<d", value.value)[0])
        case "bytes" if len(value.value) > _MOST_BYTES:
            return f"{len(value.value)} bytes {value.value[:_MOST_BYTES].hex()}..."
        case "bytes":
            return f"bytes {value.value.hex()}"
        case "condition":
            return f"condition {value.value}"
        case "null":
            return "null"
        case _:
            return str(value.value)


# --- memory and code ------------------------------------------------------------------------------


def _memory(saved: Saved, sizes: dict[str, int]) -> Iterator[str]:
    if saved.memory:
        yield "memory"
    for number, memory in enumerate(saved.memory):
        kind = memory.kind
        if kind == "variable":
            kind += f" {memory.name} of code {memory.code}"
        contents = ", with contents" * (f"memory/{number}" in sizes)
        yield f"  {number}: {memory.size} bytes, {kind}{contents}"


def _code(saved: Saved, sizes: dict[str, int]) -> Iterator[str]:
    if saved.code:
        yield "code"
    for number, code in enumerate(saved.code):
        names = ", ".join(k.entry for k in saved.kernels if k.code == number)
        yield f"  {number}: {sizes[f'code/{number}']} bytes of {code.kind}: {names}"
