# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Saving graphs: what their nodes do, and the memory that they use."""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._driver import driver_name
from .._graph.condition import ConditionHandle
from .._graph.edge import PORTS
from .._graph.params import UNKNOWN_PEERS, record_of
from .._graph.slot import uses_of
from .._stream.memop import CONDITIONS
from .._tensor.operand import has_gaps
from .._version import __version__
from .._whole_file import write_whole
from ..errors import ClosedError
from .archive import TEXT
from .ranges import Ranges
from .saved import FORMAT, MOST_DEPTH, MOST_PATH, NODE_KINDS, VERSION, inner_path, nbytes_of
from .variables import Variables
from .zipped import zipped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from .._core import Operand
    from .._graph.graph import Graph
    from .._graph.node import Node
    from .._graph.params import Told
    from .._kernel.kernel import Kernel
    from .._kernel.launch import LaunchConfig
    from .._stream.event import Event


_CHANGED = "the graph was changed while it was being saved"


def save(graph: Graph, path: str | PathLike[str], contents: bool) -> None:
    """Write a graph to a file."""
    if graph._body_id:
        raise ValueError("a graph inside another is saved with the outermost one")
    maker = _Maker(graph, contents)
    try:
        made = maker.made()
    except ClosedError as error:  # of a node or a body
        if graph._is_closed:
            raise
        raise ValueError(_CHANGED) from error
    text = json.dumps(made, separators=(",", ":"), allow_nan=False).encode()
    write_whole(path, zipped(_members(text, maker)))


def _members(text: bytes, maker: _Maker) -> Iterator[tuple[str, bytes | memoryview]]:
    yield TEXT, text
    for number, (_, code) in enumerate(maker.code):
        yield f"code/{number}", code
    for number, data in maker.ranges.contents():
        yield f"memory/{number}", data


class _Maker:
    """Makes the text of a file, and collects code and memory."""

    def __init__(self, graph: Graph, contents: bool) -> None:
        self.graph = graph
        self.code: list[tuple[str, bytes]] = []
        self._code_numbers: dict[int, int] = {}
        self._kernels: list[dict[str, Any]] = []
        self._kernel_numbers: dict[Kernel, int] = {}
        self._events: dict[Event, int] = {}
        self._conditions: dict[int, tuple[int, int | None]] = {}  # by handle: number, default
        self._allocated: list[_Alloc] = []  # by address
        self._overlap = False  # whether some of them have the same address
        self._is_later = False  # whether version 1 has no fields for something
        self._uses = uses_of(graph)
        self._slots: dict[tuple[int, str | int], str] = {
            (use.node, use.place): name for name, uses in self._uses.items() for use in uses
        }
        self.variables = Variables(graph.device)
        self.ranges = Ranges(graph, self.variables, contents)

    def made(self) -> dict[str, Any]:
        self._find_conditions(self.graph)
        nodes = self._nodes(self.graph, "", 0)
        if (uses_of(self.graph) or None) is not (self._uses or None):
            raise ValueError(_CHANGED)
        self.ranges.merge()
        return {
            "format": FORMAT,
            "version": VERSION if self._is_later else 1,
            "maker": f"cudago {__version__}, {driver_name()} driver, {self.graph.device.name}",
            "code": [{"kind": kind} for kind, _ in self.code],
            "kernels": self._kernels,
            "memory": self.ranges.described(),
            "conditions": [default for _, default in self._conditions.values()],
            "events": len(self._events),
            "nodes": nodes,
        }

    def _find_conditions(self, graph: Graph) -> None:
        """Number the conditions first: nodes that set one may come before the node that has it."""
        for node in graph.nodes:
            if node.kind == "conditional":
                row = graph._params(node._id)[0]
                if row is None:
                    raise ValueError(_CHANGED)
                _, handle, *default, _, _ = row
                self._conditions[handle] = len(self._conditions), default[0] if default else None
                for body in node.bodies:
                    self._find_conditions(body)

    # --- nodes

    def _nodes(self, graph: Graph, path: str, depth: int) -> list[dict[str, Any]]:
        if depth > MOST_DEPTH:
            raise ValueError(f"at most {MOST_DEPTH} graphs inside each other can be saved")
        nodes = graph.nodes
        numbers = {node._id: number for number, node in enumerate(nodes)}
        after: list[list[int]] = [[] for _ in nodes]
        edges, data = graph._edges(), graph._edge_data()
        if not numbers.keys() >= {n for edge in edges for n in edge} or not {
            (start, end) for start, end, _ in data
        } <= set(edges):
            raise ValueError(_CHANGED)
        for start, end in edges:
            after[numbers[end]].append(numbers[start])
        made = [
            self._node(node, number, after[number], path, depth)
            for number, node in enumerate(nodes)
        ]
        for start, end, how in data:
            node = nodes[numbers[end]]
            if how not in PORTS:
                raise _cannot(node, path, f"another library has made an edge to it, of {how}")
            made[numbers[end]].setdefault("edges", []).append([numbers[start], how])
            self._is_later = True
        for one in made:
            one.get("edges", []).sort()
        return made

    def _node(
        self, node: Node, number: int, after: list[int], path: str, depth: int
    ) -> dict[str, Any]:
        name, kind = node.name, node.kind
        if len(path) + len(name) > MOST_PATH:
            raise _cannot(node, path, f"its name has more than {MOST_PATH} characters")
        told = node.graph._params(node._id)
        known = kind in NODE_KINDS and (told[0] is not None or kind == "empty")
        if not known or (kind in ("alloc", "free") and depth):
            raise _cannot(
                node,
                path,
                f"{kind} nodes cannot be saved"
                if kind not in NODE_KINDS or depth
                else f"cudago did not make this {kind} node and does not know what it does",
            )
        made: dict[str, Any] = {"name": name, "kind": kind, "after": after}
        try:
            made |= self._what(node, number, told, depth)
        except _CannotSaveError as e:
            raise _cannot(node, path, str(e)) from None
        if kind in ("child graph", "conditional"):
            row = told[0]
            assert row is not None
            count = row[0] if kind == "conditional" else 1
            made["graphs"] = [
                self._nodes(
                    node.graph._body(node._id, i), inner_path(path + name, i, count), depth + 1
                )
                for i in range(count)
            ]
        return made

    def _what(self, node: Node, number: int, told: Told, depth: int) -> dict[str, Any]:
        row, rows = told
        held = {operand: it for it, _, _, operand, _ in rows}
        match node.kind:
            case "kernel":
                return self._kernel_node(node, told, depth)
            case "memcpy" if row:
                return self._memcpy_node(node, row, held, depth)
            case "memset" if row:
                value, width, count = row[:3]
                dst = self._operand(node, "dst", held.get("dst"), width * count, depth)
                return {"value": value, "width": width, "dst": dst}
            case "batch mem op" if row:
                value, width, waits, code = row[:4]
                side = "src" if waits else "dst"
                memory = self._operand(node, side, held.get(side), width, depth)
                condition: dict[str, Any] = {"condition": CONDITIONS[code]} if waits else {}
                return {"value": value, side: memory, **condition}
            case "host" if "callback" not in held:
                raise _CannotSaveError("what it calls is not of cudago")
            case "event record" | "event wait":
                event = held.get("event")
                if event is None:
                    raise _CannotSaveError("its event is not of cudago")
                return {"event": self._events.setdefault(event, len(self._events))}
            case "alloc" if row:
                if row[2] != node.graph.device.ordinal or row[3] not in (0, UNKNOWN_PEERS):
                    raise _CannotSaveError("its memory is another device's, or for several devices")
                self._note_alloc(_Alloc(number, node._id, row[0], row[1]))
                return {"size": row[1]}
            case "free" if row:
                of = self._alloc_of(node, row[0], 1)
                if of is None:
                    raise _CannotSaveError("it frees memory of another graph")
                return {"alloc": of.number}
            case "conditional" if row:
                if row[1] not in self._conditions:  # a node that has come since
                    raise ValueError(_CHANGED)
                return {"type": row[-1], "condition": self._conditions[row[1]][0]}
            case _:
                return {}

    def _memcpy_node(
        self, node: Node, row: tuple[Any, ...], held: dict[str, Any], depth: int
    ) -> dict[str, Any]:
        size, rows, slices, *pitches = row[:7]
        made: dict[str, Any] = {}
        sizes = [size, size]
        if rows * slices > 1:
            width = size // (rows * slices)
            made["box"] = [width, rows, slices, *pitches]
            sizes = [
                pitch * height * (slices - 1) + pitch * (rows - 1) + width
                for pitch, height in (pitches[:2], pitches[2:])
            ]
        for side, nbytes in zip(("dst", "src"), sizes, strict=True):
            if getattr(held.get(side), "kind", "") == "array":
                raise _CannotSaveError(f"its {side} is an array, which has no address")
            made[side] = self._operand(node, side, held.get(side), nbytes, depth)
        return made

    def _kernel_node(self, node: Node, told: Told, depth: int) -> dict[str, Any]:
        record = record_of(told)
        if record is None:
            raise _CannotSaveError("its kernel is not of cudago")
        kernel, config, *args = record
        self._is_later |= config.programmatic
        return {
            "kernel": self._kernel(kernel),
            "config": _config(config),
            "args": [self._argument(node, place, arg, depth) for place, arg in enumerate(args)],
        }

    # --- code

    def _kernel(self, kernel: Kernel) -> int:
        number = self._kernel_numbers.get(kernel)
        if number is None:
            number = self._kernel_numbers[kernel] = len(self._kernels)
            names = list(kernel.parameter_names)
            entry = kernel._fact("symbol") or kernel.name
            row = {"code": self._code(kernel), "entry": entry, "parameters": names}
            if kernel._work:
                self._is_later, row["work"] = True, kernel._work
            self._kernels.append(row)
        return number

    def _code(self, kernel: Kernel) -> int:
        handle = kernel._code
        number = self._code_numbers.get(handle.id)
        if number is None:
            number = self._code_numbers[handle.id] = len(self.code)
            ptx = kernel._ptx()
            kind = kernel._made[0]
            data = ptx.encode() if ptx else kernel.object_code.code
            self.code.append(("ptx" if ptx else kind, data))
            self.variables.add(number, kernel, ptx)
        return number

    # --- values

    def _argument(self, node: Node, place: int, arg: Any, depth: int) -> dict[str, Any]:
        if isinstance(arg, _core.Operand):
            if isinstance(arg.object, _core.Descriptor):
                kind = type(arg.object).__name__
                raise _CannotSaveError(f"its parameter {place} is a {kind}, made for one address")
            return self._operand(node, place, arg, arg.nbytes, depth)
        made = self._struct if issubclass(type(arg), tuple) else self._number
        return self._slotted(node, place, depth, made(node, place, arg))

    def _struct(self, node: Node, place: int, arg: tuple[Any, ...]) -> dict[str, Any]:
        """Describe a struct with memory: its bytes without the addresses, and where those go."""
        data, pointers = bytearray(arg[0]), list[dict[str, Any]]()
        for operand in arg[1:]:
            data[operand.at : operand.at + _ADDRESS] = bytes(_ADDRESS)
            # No slot is inside a struct: so it is as if the node were in another graph.
            pointers.append({"at": operand.at, "to": self._argument(node, place, operand, 1)})
        self.ranges.watch_bytes(bytes(data), f"parameter {place} of node {node.name!r}")
        return {"struct": data.hex(), "pointers": pointers}

    def _number(self, node: Node, place: int, arg: Any) -> dict[str, Any]:
        if arg is None:
            return {"null": True}
        if isinstance(arg, float) or (isinstance(arg, int) and arg.bit_length() > _WORD):
            return {"float": struct.pack("<d", arg).hex()}
        if isinstance(arg, bytes):
            self.ranges.watch_bytes(arg, f"parameter {place} of node {node.name!r}")
            return {"bytes": arg.hex()}
        if isinstance(arg, ConditionHandle):
            if arg not in self._conditions:
                raise _CannotSaveError(
                    f"its parameter {place} is a condition that controls no node of the graph"
                )
            return {"condition": self._conditions[arg][0]}
        made = {"int": arg}
        self.ranges.watch(arg, made)
        return made

    def _slotted(
        self, node: Node, place: str | int, depth: int, made: dict[str, Any]
    ) -> dict[str, Any]:
        name = None if depth else self._slots.get((node._id, place))
        if name is not None:
            made["slot"] = name
        return made

    def _operand(
        self, node: Node, place: str | int, operand: Operand | None, nbytes: int, depth: int
    ) -> dict[str, Any]:
        if not isinstance(operand, _core.Operand):
            raise _CannotSaveError(f"its {place} is not of cudago")
        made: dict[str, Any] = {"size": nbytes, **_view_of(operand, nbytes)}
        of = self._alloc_of(node, operand.address, nbytes) if self._allocated else None
        if of is not None:
            made |= {"alloc": of.number, "offset": operand.address - of.address}
        else:
            try:
                self.ranges.add(operand, nbytes, made)
            except ValueError as e:
                raise _CannotSaveError(f"its {place}: {e}") from None
        return self._slotted(node, place, depth, made)

    def _alloc_of(self, node: Node, address: int, nbytes: int) -> _Alloc | None:
        """Return which alloc node's memory this is.

        The driver gives one address to several, of which one is freed before the next is allocated:
        then the node waits for the one that is meant, and for no later one.
        """
        at = bisect_right(self._allocated, address, key=_address) - 1
        if not self._overlap:
            found = self._allocated[max(at, 0) : at + 1]
        else:
            found = self._allocated[: at + 1]
        found = sorted(a for a in found if a.has(address, nbytes))
        if len(found) > 1 and node.graph is self.graph:
            before = _before(node)
            found = [a for a in found if a.id in before]
        return found[-1] if found else None

    def _note_alloc(self, made: _Alloc) -> None:
        at = bisect_right(self._allocated, made.address, key=_address)
        for other in self._allocated[max(at - 1, 0) : at + 1]:
            self._overlap |= made.has(other.address, 0) or other.has(made.address, 0)
        self._allocated.insert(at, made)


_ADDRESS = 8  # bytes of an address
_WORD = 64  # a wider int can only be the value of a float


class _Alloc(NamedTuple):
    """Memory that an alloc node allocates: the number and the id of the node, and where it is."""

    number: int
    id: int
    address: int
    nbytes: int

    def has(self, address: int, nbytes: int) -> bool:
        """Whether bytes are in it; of no bytes, whether they are not one past its end."""
        first = address - self.address
        return 0 <= first < self.nbytes and first + nbytes <= self.nbytes


def _address(alloc: _Alloc) -> int:
    return alloc.address


class _CannotSaveError(Exception):
    """Why a node cannot be saved."""


def _cannot(node: Node, path: str, why: str) -> ValueError:
    return ValueError(f"node {path + node.name!r:.4200} cannot be saved: {why}")


def _before(node: Node) -> set[int]:
    """Return the ids of all nodes that a node waits for."""
    found = set[int]()
    left = [node._id]
    while left:
        for (id,) in node.graph._dependencies(left.pop()):
            if id not in found:
                found.add(id)
                left.append(id)
    return found


def _config(config: LaunchConfig) -> dict[str, Any]:
    made: dict[str, Any] = {
        "grid": list(config.grid),
        "block": list(config.block),
        "shared_memory": config.shared_memory,
    }
    if config.cluster is not None:
        made["cluster"] = list(config.cluster)
    if config.cooperative:
        made["cooperative"] = True
    if config.priority is not None:
        made["priority"] = config.priority
    if config.programmatic:
        made["programmatic"] = True
    return made


def _view_of(operand: Operand, nbytes: int) -> dict[str, Any]:
    """Return element type and shape of an operand that has them; another library's too.

    Not of one whose elements are in another order: what is loaded has them one after the other.
    """
    thing = operand.object
    if isinstance(thing, _core.Buffer | _core.Pointer) or has_gaps(thing):
        return {}
    try:
        dtype, shape = thing.dtype, [int(n) for n in thing.shape]
    except (AttributeError, TypeError, ValueError):
        return {}
    name = getattr(thing, "dtype_name", None) or str(getattr(dtype, "name", dtype))
    name = name.removeprefix("torch.")
    is_swapped = not getattr(dtype, "isnative", True)  # NumPy's, in the other order of bytes
    if is_swapped or operand.nbytes != nbytes or nbytes_of(name, tuple(shape)) != nbytes:
        return {}
    return {"dtype": name, "shape": shape}
