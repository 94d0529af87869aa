# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How two graphs differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _core
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
        second has, ``~`` for what has changed.
    """

    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines) or "no difference"

    __repr__ = __str__


# What handles of conditions stand for, in either graph: each graph has handles of its own.
_Conditions: TypeAlias = tuple[dict[int, str], dict[int, str]]


def differences(
    one: Graph, other: Graph, prefix: str = "", conditions: _Conditions | None = None
) -> Iterator[str]:
    """Yield the lines: nodes, what they do, and edges; those of graphs inside after their node."""
    conditions = conditions or (_conditions_of(one), _conditions_of(other))
    ours, theirs = ({n.name: n for n in g.nodes} for g in (one, other))
    for name, node in ours.items():
        if name not in theirs:
            yield f"- {node.kind} node {prefix + name!r}"
        else:
            yield from _changes(node, theirs[name], prefix + name, conditions)
    for name, node in theirs.items():
        if name not in ours:
            yield f"+ {node.kind} node {prefix + name!r}"
    before, after = _edges(one), _edges(other)
    for sign, edges, others in (("-", before, after), ("+", after, before)):
        for a, b in sorted(edges.keys() - others.keys()):
            how = f" ({edges[a, b]})" if edges[a, b] else ""
            yield f"{sign} edge {prefix + a!r} → {prefix + b!r}{how}"
    for a, b in sorted(before.keys() & after.keys()):
        if before[a, b] != after[a, b]:
            was, now = (edges[a, b] or "complete" for edges in (before, after))
            yield f"~ edge {prefix + a!r} → {prefix + b!r}: {was} → {now}"


def _edges(graph: Graph) -> dict[tuple[str, str], str]:
    data = graph.edge_data
    return {(a.name, b.name): data.get((a, b), "") for a, b in graph.edges}


def _conditions_of(graph: Graph, prefix: str = "") -> dict[int, str]:
    """Return what to call the conditions of nodes, by their handles."""
    found: dict[int, str] = {}
    for node in graph.nodes:
        row = graph._params(node._id)[0] if node.kind == "conditional" else None
        if row is not None:
            found[row[1]] = f"condition of {prefix + node.name!r}"
        for i, body in enumerate(node.bodies):
            found |= _conditions_of(body, f"{prefix}{node.name}[{i}]/")
    return found


def _changes(one: Node, other: Node, name: str, conditions: _Conditions) -> Iterator[str]:
    if one.kind != other.kind:
        yield f"~ {name!r}: {one.kind} node → {other.kind} node"
        return
    yield from _slots(one, other, name)
    was, now = one.params, other.params
    if was is None or now is None:
        if was is not now:
            yield f"~ {name!r}: parameters are known of one node only"
    elif isinstance(was, ChildGraphNodeParams) and isinstance(now, ChildGraphNodeParams):
        yield from differences(was.graph, now.graph, f"{name}/", conditions)
    elif isinstance(was, ConditionalNodeParams) and isinstance(now, ConditionalNodeParams):
        defaults = _default(one), _default(other)
        if defaults[0] != defaults[1]:
            yield f"~ {name!r}: default {defaults[0]} → {defaults[1]}"
        yield from _conditional(was, now, name, conditions)
    else:
        sides = (one, was, conditions[0]), (other, now, conditions[1])
        before, after = (_fields(*side) for side in sides)
        for field in before:
            yield from _values(f"~ {name!r}: {field}", before[field], after[field])


def _slots(one: Node, other: Node, name: str) -> Iterator[str]:
    """Yield which operands have other slots."""
    before, after = (
        {u.place: slot for slot, us in uses_of(n.graph).items() for u in us if u.node == n._id}
        for n in (one, other)
    )
    for place in sorted(before.keys() | after.keys(), key=str):
        was, now = (shown(slots[place]) if place in slots else "none" for slots in (before, after))
        if was != now:
            what = f"args[{place}]" if isinstance(place, int) else place
            yield f"~ {name!r}: slot of {what} {was} → {now}"


def _default(node: Node) -> int | None:
    """Return the default of a conditional node's condition."""
    row = node.graph._params(node._id)[0]
    assert row is not None
    return row[2] if len(row) > 4 else None


def _fields(node: Node, params: object, conditions: dict[int, str]) -> dict[str, tuple[Any, Any]]:
    """Return the fields of a node's parameters, each with its Operand or those of its items."""
    held = _held(node)
    fields: dict[str, tuple[Any, Any]] = {n: (v, held.get(n)) for n, v in vars(params).items()}
    if "args" in fields:
        args, operands = fields["args"]
        named = tuple(conditions.get(a, a) if isinstance(a, ConditionHandle) else a for a in args)
        fields["args"] = named, operands
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
    was: ConditionalNodeParams, now: ConditionalNodeParams, name: str, conditions: _Conditions
) -> Iterator[str]:
    if (was.type, len(was.bodies)) != (now.type, len(now.bodies)):
        yield f"~ {name!r}: {was.type} of {len(was.bodies)} → {now.type} of {len(now.bodies)}"
        return
    for i, (one, other) in enumerate(zip(was.bodies, now.bodies, strict=True)):
        inside = f"{name}/" if len(was.bodies) == 1 else f"{name}[{i}]/"
        yield from differences(one, other, inside, conditions)


def _values(what: str, was: tuple[Any, Any], now: tuple[Any, Any]) -> Iterator[str]:
    """Compare values, each with its Operand or those of its items."""
    (one, ours), (other, theirs) = was, now
    if _is_tuple(one) and _is_tuple(other) and len(one) == len(other):
        count = len(one)
        ours, theirs = (o if _is_tuple(o) else (None,) * count for o in (ours, theirs))
        for i in range(count):
            yield from _values(f"{what}[{i}]", (one[i], ours[i]), (other[i], theirs[i]))
    elif one is not other and not _equal(one, other) and not _is_same_memory(was, now):
        yield f"{what} {shown(one)} → {shown(other)}"


def _is_tuple(value: Any) -> bool:
    return issubclass(type(value), tuple)


def _equal(was: Any, now: Any) -> bool:
    """Compare values that are not memory. -0.0 is not 0.0, and nan is nan."""
    if type(was) is not type(now) or not isinstance(was, (int, float, bytes, str, LaunchConfig)):
        return False
    if isinstance(was, float) and (math.isnan(was) or not was):
        return math.isnan(was) == math.isnan(now) and math.copysign(1, was) == math.copysign(1, now)
    return bool(was == now)


def _is_same_memory(was: tuple[Any, Any], now: tuple[Any, Any]) -> bool:
    """Whether these are views of the same bytes. The contents do not matter: they may change.

    The address tells: both graphs keep what is there.
    """
    (one, ours), (other, theirs) = was, now
    if not isinstance(ours, _core.Operand) or not isinstance(theirs, _core.Operand):
        return False
    if type(one) is not type(other) or not ours.nbytes:
        return False
    if (ours.address, ours.nbytes, ours.kind) != (theirs.address, theirs.nbytes, theirs.kind):
        return False
    return _view(one) == _view(other)


def _view(thing: Any) -> tuple[str, ...]:
    """Return how an object with memory sees it."""
    if isinstance(thing, _core.Buffer | _core.Pointer):
        return ()
    stride = getattr(thing, "stride", None)
    strides = stride() if callable(stride) else getattr(thing, "strides", None)
    dtype, shape = (getattr(thing, name, None) for name in ("dtype", "shape"))
    return str(dtype), str(shape), str(strides)
