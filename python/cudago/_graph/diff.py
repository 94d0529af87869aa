# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How two graphs differ."""

from __future__ import annotations

import math
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _core
from .._kernel.kernel import Kernel
from .._kernel.launch import LaunchConfig
from .condition import ConditionHandle
from .params import ChildGraphNodeParams, ConditionalNodeParams, record_of, shown
from .slot import uses_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .graph import Graph
    from .node import Node

__all__ = ["GraphDiff"]


@dataclass(frozen=True)
class GraphDiff:
    """How two graphs differ, in lines to read. Made by `Graph.diff`; false if they do not.

    Parameters
    ----------
    lines : tuple of str
        One for each difference: ``-`` for what only the first graph has, ``+`` for what only the
        second has, ``~`` for what has changed. The order in which nodes, and the edges to a node,
        were added counts, as it does for `GraphExec.update`.
    """

    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines) or "no difference"

    __repr__ = __str__


# Methods are made anew each time that they are asked for.
_METHODS: tuple[type, ...] = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
# What == compares without running anybody's code.
_PLAIN: tuple[type, ...] = (int, float, bytes, str, frozenset, LaunchConfig, *_METHODS)


@dataclass(frozen=True)
class _Inside:
    """Two graphs inside nodes of one name, which are to be compared next."""

    one: Graph
    other: Graph
    prefix: str


class _Side:
    """One of the graphs, and what things stand for of which each graph has its own."""

    def __init__(self, graph: Graph) -> None:
        self.conditions: dict[int, str] = {}  # what to call conditions, by their handles
        self.allocs: dict[int, set[str]] = {}  # names of alloc nodes, by what they allocate
        self.slots: dict[int, dict[str | int, str]] = {}  # by node and operand
        for slot, uses in uses_of(graph).items():
            for use in uses:
                self.slots.setdefault(use.node, {})[use.place] = slot
        graphs = [(graph, "")]
        for inner, prefix in graphs:  # grows during the loop
            for node in inner.nodes:
                graphs += self._read(node, prefix)

    def _read(self, node: Node, prefix: str) -> Iterator[tuple[Graph, str]]:
        """Read a node, and yield the graphs inside it."""
        name, row = prefix + node.name, None
        if node.kind in ("alloc", "conditional"):
            row = node.graph._params(node._id)[0]
        if row is not None and node.kind == "alloc":
            self.allocs.setdefault(row[0], set()).add(name)
        elif row is not None:
            self.conditions[row[1]] = f"condition of {name!r}"
        if node.kind == "child graph" and isinstance(it := node.params, ChildGraphNodeParams):
            yield it.graph, f"{name}/"
        for i, body in enumerate(node.bodies):
            yield body, f"{name}[{i}]/"

    def place_of(self, operand: _core.Operand) -> tuple[object, ...]:
        """Say where memory is: its address, or its place in what a node of the graph allocates."""
        whole = operand.whole if operand.kind == "graph" and self.allocs else None
        if whole is None or (address := int(whole.ptr)) not in self.allocs:
            return (operand.address,)
        return operand.address - address, *sorted(self.allocs[address])


def differences(one: Graph, other: Graph) -> Iterator[str]:
    """Yield the lines: nodes, what they do, and edges; those of graphs inside after their node."""
    comparison = _Comparison(one, other)
    open_now = [comparison.graphs(_Inside(one, other, ""))]
    while open_now:
        found = next(open_now[-1], None)
        if found is None:
            open_now.pop()
        elif isinstance(found, _Inside):
            open_now.append(comparison.graphs(found))
        else:
            yield found


class _Comparison:
    """A comparison of two graphs, with those inside them."""

    def __init__(self, one: Graph, other: Graph) -> None:
        self._sides = _Side(one), _Side(other)
        self._code: dict[int, bytes] = {}  # of kernels, by its handle

    def graphs(self, inside: _Inside) -> Iterator[str | _Inside]:
        """Yield how two graphs differ, and the graphs inside that are to be compared."""
        one, other, prefix = inside.one, inside.other, inside.prefix
        ours, theirs = ({n.name: n for n in g.nodes} for g in (one, other))
        before, after = _edges(one), _edges(other)
        for name, node in ours.items():
            if name not in theirs:
                yield f"- {node.kind} node {prefix + name!r}"
            else:
                yield from self._changes(node, theirs[name], prefix + name)
        for name, node in theirs.items():
            if name not in ours:
                yield f"+ {node.kind} node {prefix + name!r}"
        yield from _edge_changes(before, after, prefix)
        yield from _order_changes((list(ours), list(theirs)), (before, after), prefix)

    def _changes(self, one: Node, other: Node, name: str) -> Iterator[str | _Inside]:
        if one.kind != other.kind:
            yield f"~ {name!r}: {one.kind} node → {other.kind} node"
            return
        yield from self._slots(one, other, name)
        was, now = one.params, other.params
        if was is None or now is None:
            if was is not now:
                yield f"~ {name!r}: parameters are known of one node only"
        elif isinstance(was, ChildGraphNodeParams) and isinstance(now, ChildGraphNodeParams):
            yield _Inside(was.graph, now.graph, f"{name}/")
        elif isinstance(was, ConditionalNodeParams) and isinstance(now, ConditionalNodeParams):
            defaults = _default(one), _default(other)
            if defaults[0] != defaults[1]:
                yield f"~ {name!r}: default {defaults[0]} → {defaults[1]}"
            yield from _conditional(was, now, name)
        else:
            ours, theirs = self._sides
            before, after = _fields(one, was, ours), _fields(other, now, theirs)
            for field in before:
                yield from self._values(f"~ {name!r}: {field}", before[field], after[field])

    def _slots(self, one: Node, other: Node, name: str) -> Iterator[str]:
        """Yield which operands have other slots."""
        before, after = (
            side.slots.get(node._id, {})
            for side, node in zip(self._sides, (one, other), strict=True)
        )
        for place in sorted(before.keys() | after.keys(), key=str):
            was, now = (shown(it[place]) if place in it else "none" for it in (before, after))
            if was != now:
                what = f"args[{place}]" if isinstance(place, int) else place
                yield f"~ {name!r}: slot of {what} {was} → {now}"

    def _values(self, what: str, was: tuple[Any, Any], now: tuple[Any, Any]) -> Iterator[str]:
        """Compare values, each with its Operand or those of its items."""
        (one, ours), (other, theirs) = was, now
        if _is_tuple(one) and _is_tuple(other) and len(one) == len(other):
            count = len(one)
            ours, theirs = (o if _is_tuple(o) else (None,) * count for o in (ours, theirs))
            for i in range(count):
                pairs = (one[i], ours[i]), (other[i], theirs[i])
                yield from self._values(f"{what}[{i}]", *pairs)
        elif (
            one is not other and not self._equal(one, other) and not self._is_same_memory(was, now)
        ):
            before, after = shown(one), shown(other)
            if before == after:  # such as kernels of one name, and objects that show no address
                after = f"another {after}"
            yield f"{what} {before} → {after}"

    def _equal(self, was: Any, now: Any) -> bool:
        """Compare values that are not memory. -0.0 is not 0.0, and nan is nan."""
        if type(was) is not type(now):
            return False
        if isinstance(was, float) and (math.isnan(was) or not was):
            is_nan, sign = math.isnan(was), math.copysign(1, was)
            return is_nan == math.isnan(now) and sign == math.copysign(1, now)
        if isinstance(was, Kernel):
            return was._fact("symbol") == now._fact("symbol") and (
                was._code is now._code or self._data(was) == self._data(now)
            )
        return isinstance(was, _PLAIN) and bool(was == now)

    def _data(self, kernel: Kernel) -> bytes:
        """Return the code that a kernel is of: its PTX if it has that, as a file does."""
        handle = kernel._code
        if handle.id not in self._code:
            data: Any = kernel._ptx().encode() or _core._code_data(handle.id, "data", None)
            self._code[handle.id] = bytes(data)
        return self._code[handle.id]

    def _is_same_memory(self, was: tuple[Any, Any], now: tuple[Any, Any]) -> bool:
        """Whether these are views of the same bytes. The contents do not matter: they may change.

        The address tells: both graphs keep what is there. What each graph allocates itself is the
        same if nodes of one name do.
        """
        (one, ours), (other, theirs) = was, now
        if not isinstance(ours, _core.Operand) or not isinstance(theirs, _core.Operand):
            return False
        if type(one) is not type(other) or not ours.nbytes:
            return False
        if (ours.nbytes, ours.kind) != (theirs.nbytes, theirs.kind):
            return False
        places = (s.place_of(o) for s, o in zip(self._sides, (ours, theirs), strict=True))
        return next(places) == next(places) and _view(one) == _view(other)


def _edges(graph: Graph) -> dict[tuple[str, str], str]:
    data = graph.edge_data
    return {(a.name, b.name): data.get((a, b), "") for a, b in graph.edges}


def _edge_changes(
    before: dict[tuple[str, str], str], after: dict[tuple[str, str], str], prefix: str
) -> Iterator[str]:
    for sign, edges, others in (("-", before, after), ("+", after, before)):
        for a, b in sorted(edges.keys() - others.keys()):
            how = f" ({edges[a, b]})" if edges[a, b] else ""
            yield f"{sign} edge {prefix + a!r} → {prefix + b!r}{how}"
    for a, b in sorted(before.keys() & after.keys()):
        if before[a, b] != after[a, b]:
            was, now = (edges[a, b] or "complete" for edges in (before, after))
            yield f"~ edge {prefix + a!r} → {prefix + b!r}: {was} → {now}"


def _order_changes(
    nodes: tuple[list[str], list[str]],
    edges: tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]],
    prefix: str,
) -> Iterator[str]:
    """Yield in which order nodes and dependencies were added, where nothing else says so."""
    what = f"nodes in {prefix!r}" if prefix else "nodes"
    if line := _order_change(what, *nodes):
        yield line
    starts = tuple[dict[str, list[str]], dict[str, list[str]]](({}, {}))
    for found, of in zip(starts, edges, strict=True):
        for a, b in of:
            found.setdefault(b, []).append(a)
    was, now = starts
    for end in was:
        if end in now and (line := _order_change(f"edges to {prefix + end!r}", was[end], now[end])):
            yield line


def _order_change(what: str, was: list[str], now: list[str]) -> str | None:
    """Say if what both lists have comes in another order."""
    if was == now:
        return None
    both = set(was).intersection(now)
    was, now = ([name for name in names if name in both] for names in (was, now))
    first = next((i for i, pair in enumerate(zip(was, now, strict=True)) if pair[0] != pair[1]), -1)
    if first < 0:
        return None
    before, after = (_part(names, first) for names in (was, now))
    return f"~ order of {what}: {before} → {after}"


_MOST = 8  # names in a line


def _part(names: list[str], first: int) -> str:
    """Show a list of names; of a long one, a part that begins with a certain one."""
    if len(names) <= _MOST:
        first = 0
    text = ", ".join(map(repr, names[first : first + _MOST]))
    return f"{'… ' * bool(first)}{text}{' …' * (first + _MOST < len(names))}"


def _default(node: Node) -> int | None:
    """Return the default of a conditional node's condition."""
    row = _row(node)
    return row[2] if len(row) > 4 else None


def _row(node: Node) -> tuple[Any, ...]:
    row = node.graph._params(node._id)[0]
    assert row is not None
    return row


def _fields(node: Node, params: object, side: _Side) -> dict[str, tuple[Any, Any]]:
    """Return the fields of a node's parameters, each with its Operand or those of its items."""
    held = _held(node)
    fields: dict[str, tuple[Any, Any]] = {n: (v, held.get(n)) for n, v in vars(params).items()}
    if "args" in fields:
        args, operands = fields["args"]
        called = side.conditions
        named = tuple(called.get(a, a) if isinstance(a, ConditionHandle) else a for a in args)
        fields["args"] = named, operands
    if node.kind == "alloc":
        del fields["address"]  # each graph's memory has its own
    if node.kind == "free" and (names := side.allocs.get(_row(node)[0])):
        fields = {"buffer": (f"memory of {', '.join(map(repr, sorted(names)))}", None)}
    return fields


def _held(node: Node) -> dict[str, Any]:
    """Return the Operands that a node has, by the fields of its parameters."""
    told = node.graph._params(node._id)
    record = record_of(told)
    held: dict[str, Any] = {operand: it for it, _, _, operand, _ in told[1]}
    held["memory"] = held.get("src", held.get("dst"))
    held["args"] = record[2:] if record is not None else None
    return held


def _conditional(
    was: ConditionalNodeParams, now: ConditionalNodeParams, name: str
) -> Iterator[str | _Inside]:
    if (was.type, len(was.bodies)) != (now.type, len(now.bodies)):
        yield f"~ {name!r}: {was.type} of {len(was.bodies)} → {now.type} of {len(now.bodies)}"
        return
    for i, (one, other) in enumerate(zip(was.bodies, now.bodies, strict=True)):
        inside = f"{name}/" if len(was.bodies) == 1 else f"{name}[{i}]/"
        yield _Inside(one, other, inside)


def _is_tuple(value: Any) -> bool:
    return issubclass(type(value), tuple)


def _view(thing: Any) -> tuple[str, ...]:
    """Return how an object with memory sees it."""
    if isinstance(thing, _core.Buffer | _core.Pointer):
        return ()
    stride = getattr(thing, "stride", None)
    strides = stride() if callable(stride) else getattr(thing, "strides", None)
    dtype, shape = (getattr(thing, name, None) for name in ("dtype", "shape"))
    return str(dtype), str(shape), str(strides)
