# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses that kernels of graphs were given as numbers: is the memory still there at a launch?

The driver numbers allocations, and uses no number twice. So an address whose number has changed
since the graph was built is that of freed memory, even if other memory has it now.

The native code asks who watches (``watch.c``), so that no way to add, copy, change or launch passes
this by. While nobody watches, nothing here runs, and nothing is known: each watch begins anew.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from .. import _core
from .._gopy import api
from .._gopy_call import read
from ..errors import CheckError, ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .exec import GraphExec
    from .graph import Graph

_ADDRESS_BYTES = 8
_HOLDERS = ("child graph", "conditional")  # kinds of nodes with graphs inside


class _Address(NamedTuple):
    """An argument that was the address of memory, and the number of that allocation then."""

    place: int
    address: int
    buffer: int


class _Kernel(NamedTuple):
    """A kernel node of an executable: its number is 0 in an embedded graph."""

    number: int
    path: str
    kernel: Any
    addresses: tuple[_Address, ...]


class _Noted(dict[int, tuple[_Address, ...]]):
    """The addresses of the nodes of a graph and of all graphs in it, by the nodes' numbers."""

    most = 64  # before it is looked for nodes that are gone

    def drop_gone(self, graph: Graph) -> None:
        """Forget nodes that were removed; what others add meanwhile stays."""
        before = set(self)
        self.most = 2 * len(before)
        with suppress(ValueError, ClosedError):  # a part is being captured, or all is gone
            for number in before.difference(number for _, number, _, _ in _kernels(graph)):
                self.pop(number, None)
            self.most = 64 + 2 * len(self)


def is_watching() -> bool:
    """Whether addresses are watched."""
    return _core._watcher() is not None


# --- what graphs have -----------------------------------------------------------------------------


def _addresses(
    device: int, kernel: Any, args: tuple[Any, ...], known: tuple[_Address, ...]
) -> tuple[_Address, ...]:
    """Return the arguments that are addresses; those that are known keep their numbers."""
    before = {(one.place, one.address): one for one in known}
    found: list[_Address] = []
    for index, (arg, parameter) in enumerate(zip(args, kernel.signature, strict=False)):
        if type(arg) is not int or parameter.size != _ADDRESS_BYTES or not 0 < arg < 1 << 64:
            continue
        one = before.get((index, arg))
        if one is None:
            one = _Address(index, arg, read(api.buffer_id, device, arg))
        if one.buffer:
            found.append(one)
    return tuple(found)


def _level(graph: Graph, path: str, inside: bool) -> tuple[Any, ...]:
    return graph, path, inside, iter(graph._nodes())


def _kernels(graph: Graph) -> Iterator[tuple[str, int, Graph, bool]]:
    """Yield the kernel nodes of a graph, and of the graphs in it: which may be very deep."""
    levels = [_level(graph, "", False)]
    while levels:
        of, path, inside, nodes = levels[-1]
        for number, count, name, kind in nodes:
            if kind == "kernel":
                yield path + name, number, of, inside
            elif kind in _HOLDERS:
                inner = _inner(of, number, path + name, count or 1)
                embedded = inside or kind == "child graph"
                levels += [_level(body, to, embedded) for body, to in reversed(inner)]
                break
        else:
            levels.pop()


def _inner(graph: Graph, number: int, path: str, count: int) -> list[tuple[Graph, str]]:
    names = [f"{path}/"] if count == 1 else [f"{path}[{i}]/" for i in range(count)]
    return [(graph._body(number, i), name) for i, name in enumerate(names)]


def _of_executable(step: GraphExec) -> list[_Kernel]:
    """Return what is known of an executable that was made before anybody watched: its own nodes."""
    found: list[_Kernel] = []
    for number, name, kind in step._nodes():
        record = step._record(number) if kind == "kernel" else None
        if record is not None:
            kernel, _, *args = record
            addresses = _addresses(step._ordinal, kernel, tuple(args), ())
            found.append(_Kernel(number, name, kernel, addresses))
    return found


# --- what the native code tells -------------------------------------------------------------------


class Watcher:
    """What one watch knows. Its public methods are called by the native code, by what happens.

    All but the last two come after the fact. Another thread may have closed the graph by then:
    nothing is left to watch. Or it has ended the watch, and what this knows is of no use any more.
    """

    def __init__(self) -> None:
        # By the graph that others are inside of: those have other objects each time.
        self._in_graphs: WeakKeyDictionary[Graph, _Noted] = WeakKeyDictionary()
        self._in_executables: WeakKeyDictionary[GraphExec, list[_Kernel]] = WeakKeyDictionary()
        self._moving: WeakKeyDictionary[Graph, list[tuple[_Address, ...]]] = WeakKeyDictionary()

    def _known(self, graph: Graph, number: int) -> tuple[_Address, ...]:
        noted = self._in_graphs.get(graph._outermost)
        return noted.get(number, ()) if noted else ()

    def _note(self, graph: Graph, number: int, known: tuple[_Address, ...] = ()) -> None:
        """Remember the addresses of a node that has been added or updated."""
        record = graph._record(number)
        if record is None:
            return
        kernel, _, *args = record
        outermost = graph._outermost
        noted = self._in_graphs.setdefault(outermost, _Noted())
        found = known or _addresses(graph._ordinal, kernel, tuple(args), ())
        if not found:
            noted.pop(number, None)
            return
        noted[number] = found
        if len(noted) > noted.most:
            noted.drop_gone(outermost)

    def _copy(self, graph: Graph, to: Graph) -> None:
        """Let the kernels of a copy have the addresses of the original."""
        for (_, number, of, _), (_, copy, into, _) in zip(
            _kernels(graph), _kernels(to), strict=False
        ):
            self._note(into, copy, self._known(of, number))

    def _runs(self, graph: Graph) -> list[_Kernel]:
        """Return what an executable of a graph runs."""
        found: list[_Kernel] = []
        for path, number, of, inside in _kernels(graph):
            record = of._record(number)
            if record is None:
                continue
            kernel, _, *args = record
            known = self._known(of, number)
            addresses = _addresses(of._ordinal, kernel, tuple(args), known)
            found.append(_Kernel(0 if inside else number, path, kernel, addresses))
        return found

    def added(self, graph: Graph, number: int) -> None:
        """Note a kernel that was added to a graph, or changed there."""
        with suppress(ClosedError):
            self._note(graph, number)

    def captured(self, graph: Graph) -> None:
        """Note the kernels of a graph whose capture has ended."""
        with suppress(ClosedError):
            for _, number, of, _ in _kernels(graph):
                self._note(of, number)

    def copied(self, graph: Graph, to: Graph) -> None:
        """Note a clone."""
        with suppress(ClosedError):
            self._copy(graph, to)

    def embedded(self, graph: Graph, number: int, other: Graph) -> None:
        """Note the copy of a graph in a node of another."""
        with suppress(ClosedError):
            self._copy(other, graph._body(number, 0))

    def embedded_again(self, graph: Graph, number: int) -> None:
        """Note the copy of what an executable embeds, in which nothing was wrong just now."""
        with suppress(ClosedError):
            for _, kernel, of, _ in _kernels(graph._body(number, 0)):
                self._note(of, kernel)

    def moving(self, other: Graph) -> None:
        """Note what a graph has, which is closed once it is part of another."""
        with suppress(ClosedError):
            self._moving[other] = [self._known(of, number) for _, number, of, _ in _kernels(other)]

    def moved(self, graph: Graph, number: int, other: Graph) -> None:
        """Note a graph that has become a node of another."""
        with suppress(ClosedError):
            made = _kernels(graph._body(number, 0))
            for known, (_, kernel, of, _) in zip(self._moving.pop(other, ()), made, strict=False):
                self._note(of, kernel, known)

    def instantiated(self, graph: Graph, made: GraphExec) -> None:
        """Note what an executable runs."""
        with suppress(ClosedError):
            self._in_executables[made] = self._runs(graph)

    def updated(self, step: GraphExec, graph: Graph) -> None:
        """Note what an executable runs since it was updated as a whole."""
        with suppress(ClosedError):
            was, now = self._in_executables.pop(step, None), self._runs(graph)
            if was is not None and len(was) == len(now):  # it keeps its own names and numbers
                self._in_executables[step] = [
                    old._replace(kernel=new.kernel, addresses=new.addresses)
                    for old, new in zip(was, now, strict=True)
                ]
            else:
                self._in_executables[step] = _of_executable(step)

    def updated_node(self, step: GraphExec, number: int) -> None:
        """Note what a kernel of an executable was given."""
        with suppress(ClosedError):
            record, known = step._record(number), self._in_executables.get(step)
            if known is None or record is None:
                return
            kernel, _, *given = record
            addresses = _addresses(step._ordinal, kernel, tuple(given), ())
            for i, node in enumerate(known):
                if node.number == number:
                    known[i] = node._replace(kernel=kernel, addresses=addresses)

    def updated_child(self, step: GraphExec, number: int, graph: Graph) -> None:
        """Note what is inside a node of an executable since that was updated."""
        with suppress(ClosedError):
            known = self._in_executables.get(step)
            if known is None:
                return
            (prefix,) = (f"{name}/" for node, name, _ in step._nodes() if node == number)
            places = [
                i for i, it in enumerate(known) if not it.number and it.path.startswith(prefix)
            ]
            now = self._runs(graph)
            if len(places) != len(now):  # another node has such a name
                self._in_executables[step] = _of_executable(step)
                return
            for i, new in zip(places, now, strict=True):
                known[i] = known[i]._replace(kernel=new.kernel, addresses=new.addresses)

    def launching(self, step: GraphExec) -> None:
        """Raise an error if an executable has an address in freed memory."""
        if step.is_closed:
            return
        known = self._in_executables.get(step)
        if known is None:
            known = self._in_executables[step] = _of_executable(step)
        for node in known:
            text = _dangling(node, step._ordinal)
            if text and (not node.number or step._is_enabled(node.number)):
                raise CheckError(text)

    def embedding(self, graph: Graph) -> None:
        """Raise an error if a graph has such an address, before a capture gets a copy of it."""
        for node in self._runs(graph):
            if text := _dangling(node, graph._ordinal):
                raise CheckError(text)


def _dangling(node: _Kernel, device: int) -> str:
    """Return what is wrong with a kernel; an empty text if nothing is."""
    for one in node.addresses:
        now = read(api.buffer_id, device, one.address)
        if now != one.buffer:
            return _text(node, one, now)
    return ""


def _text(node: _Kernel, one: _Address, now: int) -> str:
    names = node.kernel.parameter_names
    name = f" ({names[one.place]})" if one.place < len(names) else ""
    became = (
        "in memory that was freed since the graph was given it"
        if not now
        else "in other memory than when the graph was given it: that was freed since"
    )
    return (
        f"graph launch refused, nothing ran: node {node.path!r}: kernel {node.kernel.name}, "
        f"parameter {one.place}{name} is {one.address:#x}, {became}"
    )
