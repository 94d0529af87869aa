# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Adding what a node does to another graph, with the operands that it has."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

from .. import _core
from .edge import add_edges
from .params import record_of
from .retained import object_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .exec import GraphExec
    from .graph import Graph
    from .params import Told

# What must be known of a node, by its role; of kernels there is a record.
_OPERANDS: dict[str, set[str]] = {
    "memcpy": {"dst", "src"},
    "memset": {"dst"},
    "batch mem op": set(),
    "host": {"callback"},
    "event record": {"event"},
    "event wait": {"event"},
    "semaphore signal": {"semaphore"},
    "semaphore wait": {"semaphore"},
}


def _held(told: Told) -> dict[str, Any]:
    return {operand: it for it, _, _, operand, _ in told[1]}


def is_known(kind: str, told: Told, of: Graph | GraphExec) -> bool:
    """Whether enough is known of a node: not of what another library captured."""
    if kind == "child graph":
        return isinstance(of, _core.GraphExec)
    if kind == "kernel":
        return record_of(told) is not None
    if kind == "empty":
        return True
    return kind in _OPERANDS and told[0] is not None and _OPERANDS[kind] <= _held(told).keys()


def note_added(made: list[int], add: Callable[..., int], /, *args: Any) -> None:
    """Call a native method that adds a node, and append the number that it returns.

    No signal is heard between the two, so that Ctrl-C leaves no node that nobody knows of.
    """
    made.extend(starmap(add, (args,)))


def add_again(
    graph: Graph,
    deps: tuple[int, ...],
    kind: str,
    told: Told,
    name: str | None = None,
    ports: Mapping[int, int] | None = None,
    *,
    of: tuple[Graph | GraphExec, int],
    made: list[int] | None = None,
) -> int:
    """Add what a node does, of which `is_known`, and return the number of the new node.

    `of` is where the node is, and its number: an event or a semaphore that it has may be closed.
    The edge from a node in `ports` is programmatic, and the others are not, whatever the
    configuration says. `made` gets the number too, and has it if Ctrl-C ends the call.
    """
    if made is None:
        made = []
    if kind == "kernel":
        _add_kernel(graph, deps, told, name, ports, made)
        return made[-1]
    row: tuple[Any, ...] = told[0] or ()
    held = _held(told)
    if kind == "memcpy":
        size, rows, slices, *pitches = row[:7]
        ends = held["dst"], held["src"]
        if not rows:
            note_added(made, graph._add_memcpy, deps, *ends, name, None)
        else:
            box = (size // (rows * slices), rows, slices, *pitches)
            note_added(made, graph._add_box, deps, *ends, box, name)
    elif kind == "memset":
        value, width = row[:2]
        data = value.to_bytes(width, "little")
        note_added(made, graph._add_memset, deps, held["dst"], data, name, None)
    elif kind == "batch mem op":
        value, _, waits, code = row[:4]
        memory = held["src" if waits else "dst"]
        note_added(made, graph._add_memop, deps, memory, value, code if waits else -1, name)
    elif kind == "host":
        note_added(made, graph._add_host, deps, object_of(held["callback"]), name)
    elif kind == "empty":
        note_added(made, graph._add_empty, deps, name)
    elif kind == "child graph":
        note_added(made, graph._add_child_of, deps, *of, name)
    elif kind in ("semaphore signal", "semaphore wait"):
        what = (object_of(held["semaphore"]), row[0] if row[1] else None, kind == "semaphore wait")
        note_added(made, graph._add_semaphore, deps, *what, name, *of)
    else:
        event = object_of(held["event"])
        note_added(made, graph._add_event, deps, event, kind == "event record", name, *of)
    return made[-1]


def _add_kernel(
    graph: Graph,
    deps: tuple[int, ...],
    told: Told,
    name: str | None,
    ports: Mapping[int, int] | None,
    made: list[int],
) -> None:
    record = record_of(told)
    assert record is not None
    kernel, config, *args = record
    if not ports and not config.programmatic:
        note_added(made, graph._add_kernel, deps, config, kernel, tuple(args), name, None)
        return
    note_added(made, graph._add_kernel, (), config, kernel, tuple(args), name, None)
    add_edges(graph, deps, made[-1], ports or {})


def in_order(numbers: list[int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return nodes after those that they wait for, otherwise in order of creation."""
    waits = dict.fromkeys(numbers, 0)
    after: dict[int, list[int]] = {number: [] for number in numbers}
    for a, b in edges:
        waits[b] += 1
        after[a].append(b)
    ready = [number for number in numbers if not waits[number]]
    for number in ready:  # grows during the loop
        for b in after[number]:
            waits[b] -= 1
            if not waits[b]:
                ready.append(b)
    return ready
