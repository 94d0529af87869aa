# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The text of a file with a graph: every value is checked before anything is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._graph.edge import PORTS
from .._kernel.work import WORKS
from .._stream.memop import CONDITIONS
from .archive import TEXT
from .fields import (
    MOST_BYTES,
    Fields,
    Where,
    Wrong,
    boolean,
    list_of,
    mapping,
    natural,
    one_of,
    sequence,
    text,
)
from .json_text import object_of
from .saved import (
    CODE_KINDS,
    FORMAT,
    MEMORY_KINDS,
    MOST_DEPTH,
    MOST_PATH,
    VERSION,
    Code,
    Kernel,
    Memory,
    Node,
    Number,
    Operand,
    Saved,
    Slotted,
    Struct,
    Value,
    inner_path,
    nbytes_of,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .archive import Archive

_ADDRESS = 8  # bytes of an address in a struct
_MOST_BODIES = 1 << 16


def read(archive: Archive) -> Saved:
    """Return what the text of a file describes; GraphFileError if there is any doubt."""
    data = archive.read(TEXT)
    try:
        return _Parser(archive.sizes).saved(object_of(data))
    except Wrong as e:
        raise archive.wrong(str(e)) from None


class _Parser:
    """Checks a text. What a value may refer to is read before it."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes
        self._used = {TEXT}
        self._controlled = set[int]()  # conditions that have their node
        self._depth = 0  # of the node that is being read

    def saved(self, given: Any) -> Saved:
        top = Fields(given, TEXT)
        if top.take("format", text) != FORMAT:
            raise Wrong(f"its format is not {FORMAT!r}")
        version = self._version = top.take("version", natural())
        if not 1 <= version <= VERSION:
            raise Wrong(
                f"it is of version {version}, and this cudago reads versions 1 to {VERSION}"
            )
        maker = top.take("maker", text)
        self._code = top.take("code", list_of(self._one_code))
        self._kernels = top.take("kernels", list_of(self._one_kernel))
        self._memory = top.take("memory", list_of(self._one_memory))
        self._conditions = top.take("conditions", list_of(_default))
        self._events = top.take("events", natural(1 << 32))
        self._allocated: dict[int, int] = {}  # sizes of the outermost graph's own memory
        nodes = self._graph(top.take("nodes", sequence), "", 0)
        top.end()
        self._end()
        return Saved(
            maker, self._code, self._kernels, self._memory, self._conditions, self._events, nodes
        )

    def _end(self) -> None:
        if left := self._sizes.keys() - self._used:
            raise Wrong(f"nothing refers to its member {min(left)}")
        if len(self._controlled) != len(self._conditions):
            raise Wrong("a condition controls no node")

    # --- what nodes refer to

    def _one_code(self, given: Any, where: object) -> Code:
        fields = Fields(given, where)
        made = Code(fields.take("kind", one_of(CODE_KINDS)))
        fields.end()
        member = f"code/{_index(where)}"
        if member not in self._sizes:
            raise Wrong(f"it has no member {member}")
        self._used.add(member)
        return made

    def _one_kernel(self, given: Any, where: object) -> Kernel:
        fields = Fields(given, where)
        made = Kernel(
            fields.take("code", natural(len(self._code) - 1)),
            fields.take("entry", text),
            fields.take("parameters", list_of(text)),
            fields.take("work", one_of(WORKS)) if self._version > 1 and "work" in fields else "",
        )
        fields.end()
        return made

    def _one_memory(self, given: Any, where: object) -> Memory:
        fields = Fields(given, where)
        kind = fields.take("kind", one_of(MEMORY_KINDS))
        of_code = kind == "variable"
        made = Memory(
            kind,
            fields.take("size", natural(MOST_BYTES)),
            fields.take("lead", natural(255)),
            fields.take("code", natural(len(self._code) - 1)) if of_code else None,
            fields.take("name", text) if of_code else None,
        )
        contents = fields.take("contents", boolean)
        fields.end()
        member = f"memory/{_index(where)}"
        if contents:
            self._used.add(member)
            if self._sizes.get(member) != made.size:
                raise Wrong(f"member {member} does not have the {made.size} bytes of {where}")
        return made

    # --- nodes

    def _graph(self, given: list[Any], path: str, depth: int) -> tuple[Node, ...]:
        if depth > MOST_DEPTH:
            raise Wrong(f"there are more than {MOST_DEPTH} graphs inside each other")
        nodes: list[Node] = []
        names = set[str]()
        for number, one in enumerate(given):
            node = self._node(
                Fields(one, Where("node {}{}", path, number)), path, len(given), depth
            )
            if node.name in names:
                raise Wrong(f"two nodes are called {path + node.name!r}")
            names.add(node.name)
            nodes.append(node)
            if node.kind == "alloc":
                self._allocated[number] = node.what["size"]
        _check_order(nodes, path)
        return tuple(nodes)

    def _node(self, fields: Fields, path: str, count: int, depth: int) -> Node:
        name = fields.take("name", text)
        fields.where = Where("node {!r}", path + name)
        if len(path) + len(name) > MOST_PATH:
            raise Wrong(
                f"a node's name, with those of what it is in, has more than {MOST_PATH} characters"
            )
        kind = fields.take("kind", text)
        after = fields.take("after", list_of(natural(count - 1)))
        if len(set(after)) != len(after):
            raise Wrong(f"{fields.where} waits twice for the same node")
        edges = self._edges(fields, after) if self._version > 1 and "edges" in fields else {}
        node = Node(name, kind, after, {}, {}, edges)
        reader = _READERS.get(kind)
        if reader is None or (kind in ("alloc", "free") and depth):
            raise Wrong(f"{fields.where} is of kind {kind!r}, which this cudago cannot load there")
        self._depth = depth
        reader(self, fields, node)
        if kind in ("child graph", "conditional"):
            inside = fields.take("graphs", sequence)
            node.what["graphs"] = tuple(
                self._graph(
                    sequence(g, Where("a graph of {}", fields.where)),
                    inner_path(path + name, i, len(inside)),
                    depth + 1,
                )
                for i, g in enumerate(inside)
            )
        fields.end()
        return node

    def _edges(self, fields: Fields, after: tuple[int, ...]) -> dict[int, str]:
        """Read what else than their end a node waits for of some of those that it waits for."""
        found: dict[int, str] = {}
        left = set(after)
        where = Where("an edge of {}", fields.where)
        for pair in fields.take("edges", list_of(sequence)):
            if len(pair) != 2:
                raise Wrong(f"{where} must be a node and what is waited for")
            start = natural()(pair[0], where)
            if start not in left:
                raise Wrong(f"{where} is from {start}, for which it does not wait, or not twice")
            left.remove(start)
            found[start] = one_of(tuple(PORTS))(pair[1], where)
        return found

    def _kernel_node(self, fields: Fields, node: Node) -> None:
        node.what["kernel"] = fields.take("kernel", natural(len(self._kernels) - 1))
        config = Fields(fields.take("config", mapping), Where("config of {}", fields.where))
        dims = list_of(natural(1 << 32), exactly=3)
        made: dict[str, Any] = {name: config.take(name, dims) for name in ("grid", "block")}
        made["shared_memory"] = config.take("shared_memory", natural(1 << 32))
        if "cluster" in config:
            made["cluster"] = config.take("cluster", dims)
        if "cooperative" in config:
            made["cooperative"] = config.take("cooperative", boolean)
        if "priority" in config:
            made["priority"] = config.take("priority", _integer)
        if "programmatic" in config and self._version > 1:
            made["programmatic"] = config.take("programmatic", boolean)
        config.end()
        node.what["config"] = made
        args = fields.take("args", list_of(self._value))
        node.values.update(enumerate(args))

    def _memcpy_node(self, fields: Fields, node: Node) -> None:
        if "box" in fields:
            node.what["box"] = fields.take("box", list_of(natural(1 << 40), exactly=7))
        for side in ("dst", "src"):
            node.values[side] = fields.take(side, self._memory_value)
            if "box" in node.what and isinstance(node.values[side], Slotted):
                raise Wrong(f"{fields.where} copies rows, for which slots cannot be")

    def _memset_node(self, fields: Fields, node: Node) -> None:
        width = fields.take("width", one_of((1, 2, 4)))
        value = fields.take("value", natural((1 << 8 * width) - 1))
        node.what["pattern"] = value.to_bytes(width, "little")
        node.values["dst"] = fields.take("dst", self._memory_value)

    def _value_node(self, fields: Fields, node: Node) -> None:
        waits = "condition" in fields
        if waits:
            node.what["condition"] = fields.take("condition", one_of(CONDITIONS))
        side = "src" if waits else "dst"
        node.values[side] = fields.take(side, self._memory_value)
        width = _size_of(node.values[side])
        if width not in (4, 8) or isinstance(node.values[side], Slotted):
            raise Wrong(f"{side} of {fields.where} must be memory of 4 or 8 bytes, without a slot")
        node.what["value"] = fields.take("value", natural((1 << 8 * width) - 1))

    def _event_node(self, fields: Fields, node: Node) -> None:
        node.what["event"] = fields.take("event", natural(self._events - 1))

    def _alloc_node(self, fields: Fields, node: Node) -> None:
        node.what["size"] = fields.take("size", natural(MOST_BYTES))

    def _free_node(self, fields: Fields, node: Node) -> None:
        node.what["alloc"] = fields.take("alloc", natural())
        if node.what["alloc"] not in self._allocated:
            raise Wrong(f"{fields.where} frees what no node before it allocates")

    def _child_node(self, fields: Fields, node: Node) -> None:
        if fields.length("graphs") != 1:
            raise Wrong(f"{fields.where} must have one graph")

    def _conditional_node(self, fields: Fields, node: Node) -> None:
        kind = node.what["type"] = fields.take("type", one_of(("if", "while", "switch")))
        condition = fields.take("condition", natural(len(self._conditions) - 1))
        if condition in self._controlled:
            raise Wrong(f"{fields.where} has the condition of another node")
        self._controlled.add(condition)
        node.what["condition"] = condition
        bodies = fields.length("graphs")
        if not 1 <= bodies <= {"if": 2, "while": 1, "switch": _MOST_BODIES}[kind]:
            raise Wrong(f"{fields.where}, of type {kind}, has {bodies} bodies")

    def _plain_node(self, fields: Fields, node: Node) -> None:
        """Read nothing: there is nothing more to say."""

    # --- values

    def _value(self, given: Any, where: object) -> Value:
        fields = Fields(given, where)
        slot = fields.take("slot", text) if "slot" in fields else None
        if slot is not None and self._depth:
            raise Wrong(f"{where} has a slot, which only the outermost graph can")
        value: Operand | Number | Struct
        if "memory" in fields or "alloc" in fields:
            value = self._operand(fields)
        elif "struct" in fields:
            value = self._struct(fields)
        else:
            value = self._number(fields)
        fields.end()
        return value if slot is None else Slotted(slot, value)

    def _memory_value(self, given: Any, where: object) -> Value:
        value = self._value(given, where)
        if not isinstance(plain(value), Operand):
            raise Wrong(f"{where} is not memory")
        return value

    def _struct(self, fields: Fields) -> Struct:
        data = fields.take("struct", _bytes_of(None))
        return Struct(data, fields.take("pointers", list_of(self._pointer_in(len(data)))))

    def _pointer_in(self, size: int) -> Callable[[Any, object], tuple[int, Operand]]:
        def read(given: Any, where: object) -> tuple[int, Operand]:
            fields = Fields(given, where)
            at = fields.take("at", natural(size - _ADDRESS))
            to = Fields(fields.take("to", mapping), where)
            operand = self._operand(to)
            to.end()
            fields.end()
            return at, operand

        return read

    def _number(self, fields: Fields) -> Number:
        if "int" in fields:
            return Number("int", fields.take("int", _integer))
        if "float" in fields:
            return Number("float", fields.take("float", _bytes_of(8)))
        if "bytes" in fields:
            return Number("bytes", fields.take("bytes", _bytes_of(None)))
        if "condition" in fields:
            most = len(self._conditions) - 1
            return Number("condition", fields.take("condition", natural(most)))
        fields.take("null", boolean)
        return Number("null", None)

    def _operand(self, fields: Fields) -> Operand:
        memory = alloc = None
        if "memory" in fields:
            memory = fields.take("memory", natural(len(self._memory) - 1))
            room = self._memory[memory].size
        else:
            alloc = fields.take("alloc", natural())
            if alloc not in self._allocated:
                raise Wrong(f"{fields.where} is memory that no node before it allocates")
            room = self._allocated[alloc]
        offset = fields.take("offset", natural(MOST_BYTES))
        size = fields.take("size", natural(MOST_BYTES))
        if offset + size > room:
            raise Wrong(f"{fields.where} ends {offset + size - room} bytes after its memory")
        dtype = shape = None
        if "dtype" in fields:
            dtype = fields.take("dtype", text)
            shape = fields.take("shape", list_of(natural(MOST_BYTES)))
            if nbytes_of(dtype, shape) != size:
                raise Wrong(f"{fields.where} of {size} bytes cannot be {dtype} of shape {shape}")
        return Operand(memory, alloc, offset, size, dtype, shape)


_READERS: dict[str, Callable[[_Parser, Fields, Node], None]] = {
    "kernel": _Parser._kernel_node,
    "memcpy": _Parser._memcpy_node,
    "memset": _Parser._memset_node,
    "batch mem op": _Parser._value_node,
    "host": _Parser._plain_node,
    "empty": _Parser._plain_node,
    "event record": _Parser._event_node,
    "event wait": _Parser._event_node,
    "alloc": _Parser._alloc_node,
    "free": _Parser._free_node,
    "child graph": _Parser._child_node,
    "conditional": _Parser._conditional_node,
}


def _size_of(value: Value) -> int:
    held = plain(value)
    return held.size if isinstance(held, Operand) else 0


def _index(where: object) -> int:
    """Return the number of what `list_of` checks."""
    assert isinstance(where, Where)
    number: int = where.parts[-1]  # type: ignore[assignment]
    return number


def _integer(given: Any, where: object) -> int:
    if type(given) is not int or not -(1 << 63) <= given < 1 << 64:
        raise Wrong(f"{where} must be a number of 64 bits")
    return given


def _default(given: Any, where: object) -> int | None:
    return None if given is None else int(natural((1 << 32) - 1)(given, where))


def _bytes_of(count: int | None) -> Callable[[Any, object], bytes]:
    def check(given: Any, where: object) -> bytes:
        try:
            made = bytes.fromhex(text(given, where))
        except ValueError:
            raise Wrong(f"{where} must be hexadecimal") from None
        if count is not None and len(made) != count:
            raise Wrong(f"{where} must have {count} bytes, not {len(made)}")
        return made

    return check


def _check_order(nodes: list[Node], path: str) -> None:
    """Raise an error if nodes wait for themselves, or for parts of what has none."""
    waits = [len(node.after) for node in nodes]
    next_of: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for before in node.after:
            next_of[before].append(number)
        if any(nodes[n].kind != "kernel" for n in node.edges):
            raise Wrong(f"node {path + node.name!r} waits for a part of a node that is no kernel")
    ready = [number for number, count in enumerate(waits) if not count]
    done = 0
    while ready:
        done += 1
        for number in next_of[ready.pop()]:
            waits[number] -= 1
            if not waits[number]:
                ready.append(number)
    if done < len(nodes):
        name = next(node.name for node, count in zip(nodes, waits, strict=True) if count)
        raise Wrong(f"node {path + name!r} waits for itself, or for nodes that do")
