# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Operands of graphs that have a name, by which executables exchange them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from .. import _core
from .._native import names_text, value_text
from .._tensor.element import check_pattern
from ..errors import ClosedError
from .own_kernel import placed
from .retained import object_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .exec import GraphExec
    from .graph import Graph

__all__ = ["Slot", "slot"]

T = TypeVar("T")


class Slot:
    """An operand with a name. Made by `slot`, and passed in the operand's place.

    Parameters
    ----------
    name : str
        The name, by which `GraphExec.bind` exchanges the operand. It has a character, and no half
        of a surrogate pair, so that files of graphs can have it.
    object : object
        What is used until then.

    Attributes
    ----------
    name, object
        As they were passed.
    """

    __slots__ = ("name", "object")
    name: str
    object: Any

    def __init__(self, name: str, object: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        if not name:
            raise ValueError("name must have a character")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"name must be text that UTF-8 can encode, got {value_text(name)}"
            ) from None
        if isinstance(object, Slot):
            raise TypeError("a slot cannot hold another slot")
        if isinstance(object, _core.Buffer | _core.Tensor) and object.is_closed:
            raise ClosedError(f"{type(object).__name__.lower()} is closed")
        self.name, self.object = name, object

    def __repr__(self) -> str:
        return f"<cudago.Slot {self.name!r}: {type(self.object).__name__}>"


def slot(name: str, object: Any) -> Slot:
    """Name an operand, so that an executable can exchange it wherever it is used.

    Parameters
    ----------
    name : str
        The name: some text that UTF-8 can encode.
    object : object
        What is used until `GraphExec.bind` names another.

    Returns
    -------
    Slot
        Pass it to `Graph.memcpy`, `Graph.memset` and `Graph.launch`, to these methods of nodes, and
        to the updates of such nodes, as often as you like. An operand keeps its slot if an update
        gives it another object; if the update names another kernel and all of its arguments, only
        slots among these remain. Graphs that are embedded, and bodies of conditional nodes, take
        none.

    Examples
    --------
    >>> x, y = device.allocate(4, stream=stream), device.allocate(4, stream=stream)
    >>> source = cudago.slot("source", b"abcd")
    >>> graph = cudago.Graph(device)
    >>> node = graph.memcpy(x, source).memcpy(y, source)
    >>> step = graph.instantiate()
    >>> step.bind(source=b"efgh")
    >>> [node.params.src for node in step.nodes]
    [b'efgh', b'efgh']
    """
    return Slot(name, object)


class Use(NamedTuple):
    """Where a slot is used: the number of the node, its kind, and the operand or its position."""

    node: int
    kind: str
    place: str | int


Uses: TypeAlias = dict[str, tuple[Use, ...]]


class Pending(list[Any]):
    """Uses, and a change to them, which nobody has asked about yet. Never changed, but replaced.

    A graph of a hundred thousand nodes has as many changes: to make new uses for each would cost
    the square of that. The items are the uses before the change, and the number of the node, which
    the native call that makes the change to the node puts in; the kind of the node; slots that it
    has from now on, by place; whether it keeps none of before; the number of changes, and that of
    which there are to be at most, so that they cannot grow for ever.
    """

    __slots__ = ()

    @property
    def depth(self) -> tuple[int, int]:
        """The number of changes, and how many there are to be at most."""
        return self[5], self[6]

    def made(self) -> Uses:
        """Return the uses after the changes."""
        changes: list[Pending] = []
        uses: Uses | Pending | None = self
        while isinstance(uses, Pending):
            changes.append(uses)
            uses = uses[0]
        names: dict[str, dict[tuple[int, str | int], Use]] = {}
        nodes: dict[int, dict[str | int, str]] = {}
        for name, them in (uses or {}).items():
            names[name] = {(use.node, use.place): use for use in them}
            for use in them:
                nodes.setdefault(use.node, {})[use.place] = name
        for _, number, kind, slots, is_new, *_ in reversed(changes):
            node = int.from_bytes(number, sys.byteorder)
            before = nodes.setdefault(node, {})
            for place in [place for place in before if is_new or place in slots]:
                name = before.pop(place)
                names[name].pop((node, place))
                if not names[name]:
                    names.pop(name)
            for place, name in slots.items():
                names.setdefault(name, {})[node, place] = Use(node, kind, place)
                before[place] = name
        return {name: tuple(them.values()) for name, them in names.items()}


def uses_of(holder: Graph | GraphExec) -> Uses:
    """Return where the slots of a graph or an executable are used. Never changed, but replaced."""
    while isinstance(uses := holder._uses, Pending):
        holder._replace_uses(uses, uses.made() or None)
    return uses or {}


def set_uses(holder: Graph | GraphExec, uses: Uses) -> None:
    """Say where slots are used."""
    while not holder._replace_uses(holder._uses, uses or None):
        pass


def check(graph: Graph) -> None:
    """Raise an error if nodes of a graph cannot use slots."""
    if graph._body_id:
        raise ValueError("a graph inside another cannot use slots: use them in the outermost graph")


def noted(
    holder: Graph | GraphExec,
    kind: str,
    given: Iterable[tuple[str | int, Any]],
    is_new: bool = False,
) -> Pending | None:
    """Return what notes the slots among the operands of a node; None if that changes nothing.

    The native call that adds or changes the node takes it, so that no signal is heard in between.
    `is_new` if nothing of what the node had remains.
    """
    places = {place: operand.name for place, operand in given if type(operand) is Slot}
    if not places and not is_new:
        return None
    before = holder._uses
    if isinstance(before, Pending):
        depth, most = before.depth
        if depth < most:
            return Pending((None, bytearray(8), kind, places, is_new, depth + 1, most))
        before = uses_of(holder)
    most = 64 + 2 * sum(map(len, (before or {}).values()))
    return Pending((None, bytearray(8), kind, places, is_new, 1, most))


def check_update(holder: Graph | GraphExec, given: Iterable[Any]) -> None:
    """Raise an error if slots are among what an update gives a node that cannot use them."""
    if isinstance(holder, _core.Graph) and any(type(operand) is Slot for operand in given):
        check(holder)


def plain(operand: Any) -> Any:
    """Return what a slot holds, or the operand itself."""
    return operand.object if type(operand) is Slot else operand


def moved(uses: Uses, numbers: Mapping[int, int]) -> Uses:
    """Return the same uses in a copy, whose nodes have other numbers; those that it lacks go."""
    kept = {
        name: tuple(u._replace(node=numbers[u.node]) for u in them if u.node in numbers)
        for name, them in uses.items()
    }
    return {name: them for name, them in kept.items() if them}


def numbers(holder: Graph | GraphExec) -> list[int]:
    """Return the numbers of the nodes, in the order of their creation."""
    return [row[0] for row in holder._nodes()]


def unchanged(
    graph: Graph, make: Callable[[], T]
) -> tuple[T, tuple[tuple[int, int, str, str], ...], Uses]:
    """Make something of a graph, and return it, and the graph's nodes and slots at that moment.

    Another thread may change the graph meanwhile: then it is made again.
    """
    while True:
        before, uses = graph._nodes(), uses_of(graph)
        made = make()
        if graph._uses is (uses or None) and graph._nodes() == before:
            return made, before, uses


def bind(step: GraphExec, objects: Mapping[str, Any]) -> None:
    """Exchange what slots hold: in all nodes, or in none. The native `bind` does what is simple."""
    changes = _changes(step, objects)
    made = tuple(_update(step, node, kind, new) for node, (kind, new) in changes.items())
    if len(made) == 1:  # the update of one node does all or nothing by itself
        ((method, *args),) = made
        method(*args)
        return
    before = tuple(
        _update(step, node, kind, _old(step, node, kind, new))
        for node, (kind, new) in changes.items()
    )
    step._change_all(made, before)


def _changes(
    step: GraphExec, objects: Mapping[str, Any]
) -> dict[int, tuple[str, dict[str | int, Any]]]:
    """Return what changes in each node."""
    uses = uses_of(step)
    changes: dict[int, tuple[str, dict[str | int, Any]]] = {}
    for name, given in objects.items():
        if name not in uses:
            raise TypeError(f"no slot is called {value_text(name)}; {names_text(list(uses))}")
        for use in uses[name]:
            if given is None and use.kind != "kernel":
                raise TypeError(f"slot {name!r} is the {use.place} of a {use.kind} node, not None")
            changes.setdefault(use.node, (use.kind, {}))[1][use.place] = plain(given)
    return changes


def _update(step: GraphExec, node: int, kind: str, new: dict[str | int, Any]) -> tuple[Any, ...]:
    """Return the update of a node: the native method, and its arguments."""
    if kind == "memcpy":
        return step._update_memcpy, node, new.get("dst"), new.get("src"), None
    if kind == "memset":
        told, rows = step._params(node)
        assert told is not None
        pattern = told[0].to_bytes(told[1], "little")
        held = next(it for it, _, _, operand, _ in rows if operand == "dst")
        check_pattern(pattern, rows[0][2], object_of(held), new["dst"])
        return step._update_memset, node, new["dst"], pattern, None
    record = step._record(node)
    assert record is not None
    kernel, config, *args = record
    if new and kernel._work:
        name = step._params(node)[1][0][2]
        given = {int(place): thing for place, thing in new.items()}
        config, kernel, *args = placed(record, name, step.device, given)
    else:
        for place, thing in new.items():
            args[int(place)] = thing
    return step._update_kernel, node, config, kernel, tuple(args), None


def _old(step: GraphExec, node: int, kind: str, new: dict[str | int, Any]) -> dict[str | int, Any]:
    """Return what `_update` takes to undo a change, such as Operands that hold the memory now."""
    if kind == "kernel":
        return {}  # with which `_update` makes all as it is
    held = {operand: it for it, _, _, operand, _ in step._params(node)[1]}
    return {place: held[str(place)] for place in new}


_core._set_slot(Slot)
