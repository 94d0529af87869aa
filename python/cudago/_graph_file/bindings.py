# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is given to a saved graph when it is loaded: objects for slots, operands and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._graph.slot import plain
from .._native import names_text, value_text
from .._stream.callee import expect_callback
from .._stream.event import Event
from .saved import Slotted, inner_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .saved import Node, Saved

_SHOWN = 50


class _Use(NamedTuple):
    """Where a name can be used: the node's path, the operand, and its name besides."""

    path: str
    place: str | int
    name: str


class Bindings:
    """The objects by where they are used; KeyError for names that nothing has."""

    def __init__(self, saved: Saved, given: Mapping[str, Any]) -> None:
        self._saved = saved
        self._kept: dict[tuple[str, str | int], Any] = {}
        self._paths = set[str]()
        if given:
            self._take(given)
        self._check_functions()

    def _take(self, given: Mapping[str, Any]) -> None:
        slots: dict[str, list[_Use]] = {}
        names: dict[str, list[_Use]] = {}
        by: dict[tuple[str, str | int], str] = {}
        for use, slot in self._uses():
            names.setdefault(f"{use.path}.{use.place}", []).append(use)
            if use.name:
                names.setdefault(f"{use.path}.{use.name}", []).append(use)
            if use.place == "callback":
                names.setdefault(use.path, []).append(use)
            if slot:
                slots.setdefault(slot, []).append(use)
        for name, thing in given.items():
            uses = slots.get(name) or names.get(name)
            if not uses:
                raise KeyError(_unknown(name, slots, names))
            if name not in slots and len(set(uses)) > 1:
                raise ValueError(f"{name!r} may mean operands of two nodes: rename one of them")
            for use in uses:
                other = by.setdefault((use.path, use.place), name)
                if other != name:
                    raise TypeError(
                        f"{other!r} and {name!r} are the same operand, {use.place} of node "
                        f"{use.path!r}: give one of them"
                    )
                self._kept[use.path, use.place] = plain(thing)
                self._paths.add(use.path)

    def _uses(self) -> Iterator[tuple[_Use, str]]:
        """Yield all operands and arguments, each with its slot or nothing."""
        for path, node in _all_nodes(self._saved.nodes, ""):
            if node.kind == "host":
                yield _Use(path, "callback", ""), ""
            elif node.kind in ("event record", "event wait"):
                yield _Use(path, "event", ""), ""
            known: tuple[str, ...] = ()
            if node.kind == "kernel":
                kernel: int = node.what["kernel"]
                known = self._saved.kernels[kernel].parameters
            for place, value in node.values.items():
                name = known[place] if isinstance(place, int) and place < len(known) else ""
                yield _Use(path, place, name), value.name if isinstance(value, Slotted) else ""

    def _check_functions(self) -> None:
        missing = [
            path
            for path, node in _all_nodes(self._saved.nodes, "")
            if node.kind == "host" and (path, "callback") not in self._kept
        ]
        if missing:
            names = ", ".join(map(repr, missing[:_SHOWN]))
            raise ValueError(
                f"a file does not hold Python functions: bind one to each host node, here {names}, "
                f"as in bind={{{missing[0]!r}: function}}"
            )

    def touches(self, path: str, node: Node) -> bool:
        """Whether an object was given for the node."""
        return path in self._paths and not node.what.get("graphs")

    def values(self, path: str, node: Node) -> dict[str | int, Any]:
        """Return the objects that were given for operands of a node, by their places."""
        given = {at: self._kept[path, at] for at in node.values if (path, at) in self._kept}
        for place, thing in given.items():
            if thing is None and node.kind != "kernel":
                raise TypeError(f"{place} of {node.kind} node {path!r} cannot be None")
        return given

    def function(self, path: str) -> Callable[[], Any]:
        """Return the function for a host node."""
        made: Callable[[], Any] = self._kept[path, "callback"]
        expect_callback(made)
        return made

    def event(self, path: str) -> Event | None:
        """Return the event for a node, or None if none was given."""
        given = self._kept.get((path, "event"))
        if given is not None and not isinstance(given, Event):
            raise TypeError(f"{path}.event must be an Event, not {type(given).__name__}")
        return given


def _all_nodes(nodes: tuple[Node, ...], before: str) -> Iterator[tuple[str, Node]]:
    for node in nodes:
        path = before + node.name
        yield path, node
        inside = node.what.get("graphs", ())
        for i, inner in enumerate(inside):
            yield from _all_nodes(inner, inner_path(path, i, len(inside)))


def _unknown(name: str, slots: Mapping[str, Any], names: Mapping[str, Any]) -> str:
    return f"no slot or operand is called {value_text(name)}; {names_text([*slots, *names])}"
