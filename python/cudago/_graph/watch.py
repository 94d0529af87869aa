# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses that kernels of graphs were given as numbers: is the memory still there at a launch?

The driver numbers allocations, and uses no number twice. So an address whose number has changed
since the graph was built is that of freed memory, even if other memory has it now.

The native code asks who watches (``watch.c``), so that no way to add, copy, change or launch passes
this by. While nobody watches, nothing here runs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, finalize

from .. import _core
from .._cold import read
from .._gopy import api
from ..errors import CheckError, ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .exec import GraphExec
    from .graph import Graph

_ADDRESS_BYTES = 8


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


# By the upper half of a node's number, which is that of its graph, and then by the number.
_in_graphs: dict[int, dict[int, tuple[_Address, ...]]] = {}
_in_executables: WeakKeyDictionary[GraphExec, list[_Kernel]] = WeakKeyDictionary()
_moving: WeakKeyDictionary[Graph, list[tuple[_Address, ...]]] = WeakKeyDictionary()


def watcher(on: bool) -> object:
    """Return who is told of what graphs do, if addresses are to be watched."""
    if on and not is_watching():
        forget()  # what Ctrl-C has left of an earlier watch
    return _Watcher if on else None


def is_watching() -> bool:
    """Whether addresses are watched."""
    return _core._watcher() is not None


def forget() -> None:
    """Forget what is known; it is not true any more once nobody watches."""
    _in_graphs.clear()
    _in_executables.clear()
    _moving.clear()


# --- what is known --------------------------------------------------------------------------------


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


def _known(number: int) -> tuple[_Address, ...]:
    return _in_graphs.get(number >> 32, {}).get(number, ())


def _note(graph: Graph, number: int) -> None:
    """Remember the addresses of a node that has been added or updated."""
    record = graph._record(number)
    if record is None:
        return
    kernel, _, *args = record
    of = number >> 32
    if of not in _in_graphs:
        _in_graphs[of] = {}
        # Graphs inside outlive this object of theirs.
        finalize(graph._outermost, _in_graphs.pop, of, None).atexit = False
    _in_graphs[of][number] = _addresses(graph._ordinal, kernel, tuple(args), ())


def _kernels(graph: Graph, path: str, inside: bool) -> Iterator[tuple[str, int, Graph, bool]]:
    """Yield the kernel nodes of a graph, and of the graphs in it."""
    for number, bodies, name, kind in graph._nodes():
        if kind == "kernel":
            yield path + name, number, graph, inside
        elif kind in ("child graph", "conditional"):
            count = bodies or 1
            for i in range(count):
                inner = f"{path}{name}/" if count == 1 else f"{path}{name}[{i}]/"
                embedded = inside or kind == "child graph"
                yield from _kernels(graph._body(number, i), inner, embedded)


def _of_graph(graph: Graph) -> list[_Kernel]:
    """Return what an executable of a graph runs."""
    found: list[_Kernel] = []
    for path, number, of, inside in _kernels(graph, "", False):
        record = of._record(number)
        if record is None:
            continue
        kernel, _, *args = record
        addresses = _addresses(of._ordinal, kernel, tuple(args), _known(number))
        found.append(_Kernel(0 if inside else number, path, kernel, addresses))
    return found


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


def _copy(graph: Graph, to: Graph) -> None:
    """Let the kernels of a copy have the addresses of the original."""
    pairs = zip(_kernels(graph, "", False), _kernels(to, "", False), strict=False)
    for (_, number, _, _), (_, copy, of, _) in pairs:
        _note(of, copy)
        if known := _known(number):
            _in_graphs[copy >> 32][copy] = known


# --- what the native code tells -------------------------------------------------------------------


class _Watcher:
    """Its methods are called by the native code, each by the name of what happens.

    All but the last two come after the fact. Another thread may have closed the graph by then:
    nothing is left to watch.
    """

    @staticmethod
    def added(graph: Graph, number: int) -> None:
        """Note a kernel that was added to a graph, or changed there."""
        with suppress(ClosedError):
            _note(graph, number)

    @staticmethod
    def captured(graph: Graph) -> None:
        """Note the kernels of a graph whose capture has ended."""
        with suppress(ClosedError):
            for _, number, of, _ in _kernels(graph, "", False):
                _note(of, number)

    @staticmethod
    def copied(graph: Graph, to: Graph) -> None:
        """Note a clone."""
        with suppress(ClosedError):
            _copy(graph, to)

    @staticmethod
    def embedded(graph: Graph, number: int, other: Graph) -> None:
        """Note the copy of a graph in a node of another."""
        with suppress(ClosedError):
            _copy(other, graph._body(number, 0))

    @staticmethod
    def embedded_again(graph: Graph, number: int) -> None:
        """Note the copy of what an executable embeds, in which nothing was wrong just now."""
        with suppress(ClosedError):
            for _, kernel, of, _ in _kernels(graph._body(number, 0), "", False):
                _note(of, kernel)

    @staticmethod
    def moving(other: Graph) -> None:
        """Note what a graph has, which is closed once it is part of another."""
        with suppress(ClosedError):
            _moving[other] = [_known(number) for _, number, _, _ in _kernels(other, "", False)]

    @staticmethod
    def moved(graph: Graph, number: int, other: Graph) -> None:
        """Note a graph that has become a node of another."""
        with suppress(ClosedError):
            made = _kernels(graph._body(number, 0), "", False)
            for known, (_, kernel, of, _) in zip(_moving.pop(other, ()), made, strict=False):
                _note(of, kernel)
                if known:
                    _in_graphs[kernel >> 32][kernel] = known

    @staticmethod
    def instantiated(graph: Graph, made: GraphExec) -> None:
        """Note what an executable runs."""
        with suppress(ClosedError):
            _in_executables[made] = _of_graph(graph)

    @staticmethod
    def updated(step: GraphExec, graph: Graph) -> None:
        """Note what an executable runs since it was updated as a whole."""
        with suppress(ClosedError):
            was, now = _in_executables.pop(step, None), _of_graph(graph)
            if was is not None and len(was) == len(now):  # it keeps its own names and numbers
                _in_executables[step] = [
                    old._replace(kernel=new.kernel, addresses=new.addresses)
                    for old, new in zip(was, now, strict=True)
                ]
            else:
                _in_executables[step] = _of_executable(step)

    @staticmethod
    def updated_node(step: GraphExec, number: int) -> None:
        """Note what a kernel of an executable was given."""
        with suppress(ClosedError):
            record, known = step._record(number), _in_executables.get(step)
            if known is None or record is None:
                return
            kernel, _, *given = record
            addresses = _addresses(step._ordinal, kernel, tuple(given), ())
            for i, node in enumerate(known):
                if node.number == number:
                    known[i] = node._replace(kernel=kernel, addresses=addresses)

    @staticmethod
    def updated_child(step: GraphExec, number: int, graph: Graph) -> None:
        """Note what is inside a node of an executable since that was updated."""
        with suppress(ClosedError):
            known = _in_executables.get(step)
            if known is None:
                return
            (prefix,) = (f"{name}/" for node, name, _ in step._nodes() if node == number)
            places = [
                i for i, it in enumerate(known) if not it.number and it.path.startswith(prefix)
            ]
            now = _of_graph(graph)
            if len(places) != len(now):  # another node has such a name
                _in_executables[step] = _of_executable(step)
                return
            for i, new in zip(places, now, strict=True):
                known[i] = known[i]._replace(kernel=new.kernel, addresses=new.addresses)

    @staticmethod
    def launching(step: GraphExec) -> None:
        """Raise an error if an executable has an address in freed memory."""
        if step.is_closed:
            return
        known = _in_executables.get(step)
        if known is None:
            known = _in_executables[step] = _of_executable(step)
        for node in known:
            text = _dangling(node, step._ordinal)
            if text and (not node.number or step._is_enabled(node.number)):
                raise CheckError(text)

    @staticmethod
    def embedding(graph: Graph) -> None:
        """Raise an error if a graph has such an address, before a capture gets a copy of it."""
        for node in _of_graph(graph):
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
