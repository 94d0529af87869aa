# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses that kernels of graphs were given as numbers: is the memory still there at a launch?

The driver numbers allocations, and uses no number twice. So an address whose number has changed
since the graph was built is that of freed memory, even if other memory has it now.

While nobody watches, classes have their native methods, and nothing here runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, finalize

from .. import _core
from .._cold import read
from .._gopy import api
from ..errors import CheckError
from .exec import GraphExec
from .graph import Graph
from .node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def watch(on: bool) -> None:
    """Begin or end to watch. What was known is forgotten at the end."""
    for (cls, name), method in _METHODS.items():
        target: Any = cls
        if on:
            setattr(target, name, method)
        elif vars(cls).get(name) is method:
            delattr(target, name)
    _core._set_replays(not on)
    if not on:
        _in_graphs.clear()
        _in_executables.clear()


def is_watching() -> bool:
    """Whether addresses are watched."""
    return vars(Graph).get("_add_kernel") is _add_kernel


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
        if not graph._body_id:  # others outlive this object of theirs: they stay known to the end
            finalize(graph, _in_graphs.pop, of, None).atexit = False
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


# --- methods while somebody watches ---------------------------------------------------------------


def _add_kernel(self: Graph, *args: Any) -> int:
    number = _core.Graph._add_kernel(self, *args)
    _note(self, number)
    return number


def _launch_in_graph(self: Graph, *args: Any, **kwargs: Any) -> Node:
    return _noted(_core.Graph.launch(self, *args, **kwargs))


def _launch_after(self: Node, *args: Any, **kwargs: Any) -> Node:
    return _noted(_core.Node.launch(self, *args, **kwargs))


def _noted(node: Node) -> Node:
    _note(node.graph, node._id)
    return node


def _update_kernel(self: Graph, number: int, *args: Any) -> None:
    _core.Graph._update_kernel(self, number, *args)
    _note(self, number)


def _clone(self: Graph) -> Graph:
    made = _core.Graph._clone(self)
    _copy(self, made)
    return made


def _add_child(self: Graph, deps: tuple[int, ...], other: Graph, name: str | None) -> int:
    number = _core.Graph._add_child(self, deps, other, name)
    _copy(other, self._body(number, 0))
    return number


def _copy(graph: Graph, to: Graph) -> None:
    """Let the kernels of a copy have the addresses of the original."""
    pairs = zip(_kernels(graph, "", False), _kernels(to, "", False), strict=False)
    for (_, number, _, _), (_, copy, of, _) in pairs:
        _note(of, copy)
        if known := _known(number):
            _in_graphs[copy >> 32][copy] = known


def _instantiate(self: Graph, flags: int) -> GraphExec:
    made = _core.Graph._instantiate(self, flags)
    _in_executables[made] = _of_graph(self)
    return made


def _update(self: GraphExec, graph: Graph) -> None:
    was = _in_executables.get(self)
    _core.GraphExec._update(self, graph)
    now = _of_graph(graph)
    if was is not None and len(was) == len(now):  # it keeps its own names and numbers
        _in_executables[self] = [
            old._replace(kernel=new.kernel, addresses=new.addresses)
            for old, new in zip(was, now, strict=True)
        ]
    else:
        _in_executables[self] = _of_executable(self)


def _update_exec_kernel(self: GraphExec, number: int, *args: Any) -> None:
    _core.GraphExec._update_kernel(self, number, *args)
    record = self._record(number)
    known = _in_executables.get(self)
    if known is None or record is None:
        return
    kernel, _, *given = record
    for i, node in enumerate(known):
        if node.number == number:
            addresses = _addresses(self._ordinal, kernel, tuple(given), ())
            known[i] = node._replace(kernel=kernel, addresses=addresses)


def _launch(self: GraphExec, stream: Any) -> None:
    _check(self)
    _core.GraphExec.launch(self, stream)


def _launch_bound(self: GraphExec, stream: Any) -> bool:
    _check(self)
    return _core.GraphExec._launch(self, stream)


_METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    (Graph, "launch"): _launch_in_graph,
    (Node, "launch"): _launch_after,
    (Graph, "_add_kernel"): _add_kernel,
    (Graph, "_update_kernel"): _update_kernel,
    (Graph, "_clone"): _clone,
    (Graph, "_add_child"): _add_child,
    (Graph, "_instantiate"): _instantiate,
    (GraphExec, "_update"): _update,
    (GraphExec, "_update_kernel"): _update_exec_kernel,
    (GraphExec, "launch"): _launch,
    (GraphExec, "_launch"): _launch_bound,
}


def _check(step: GraphExec) -> None:
    """Raise an error if an address is that of freed memory."""
    if step.is_closed:
        return
    known = _in_executables.get(step)
    if known is None:
        known = _in_executables[step] = _of_executable(step)
    for node in known:
        for one in node.addresses:
            now = read(api.buffer_id, step._ordinal, one.address)
            if now != one.buffer and (not node.number or step._is_enabled(node.number)):
                raise CheckError(_text(node, one, now))


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
