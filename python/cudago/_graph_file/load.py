# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Making graphs of saved ones."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from .. import _core
from .. import _zconstants as _z
from .._graph import slot
from .._graph.edge import PLAIN, PORTS
from .._graph.own_kernel import placed
from .._kernel.launch import LaunchConfig
from .._kernel.object_code import ObjectCode
from .._kernel.structs import Made
from .._kernel.work import COUNTED, set_work
from .._stream.memop import CONDITIONS
from .._tensor.renewed import Was
from ..errors import CUDAError, GraphFileError, KernelNotFoundError
from .archive import Archive
from .bindings import Bindings
from .limit import BODY, Limit
from .loaded_memory import LoadedMemory
from .saved import Number, Operand, Saved, Slotted, Struct, inner_path, plain, value_memory
from .saved_text import read

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from os import PathLike

    from .._graph.condition import Condition
    from .._graph.graph import Graph
    from .._kernel.kernel import Kernel
    from .._memory.buffer import Buffer
    from .._memory.device import Device
    from .._stream.event import Event
    from . import saved

_MOST_DEPS = 1024  # that a node can be given when it is made
_TYPES = {
    "if": _z.CU_GRAPH_COND_TYPE_IF,
    "while": _z.CU_GRAPH_COND_TYPE_WHILE,
    "switch": _z.CU_GRAPH_COND_TYPE_SWITCH,
}


def load(
    cls: type[Graph],
    path: str | PathLike[str],
    device: Device,
    bind: Mapping[str, Any],
    memory_limit: int,
) -> Graph:
    """Make the graph of a file."""
    with Archive(path) as archive:
        limit = Limit(archive.path, memory_limit)
        saved = read(archive)
        bindings = Bindings(saved, bind)
        graph = cls(device)
        try:
            _Loader(archive, limit, saved, bindings, graph).load()
        except BaseException:
            graph.close()
            raise
    return graph


class _Loader:
    """Adds nodes to an empty graph. Code and memory are made when the first node needs them."""

    def __init__(
        self, archive: Archive, limit: Limit, saved: Saved, bindings: Bindings, graph: Graph
    ) -> None:
        self._archive, self._saved, self._bindings, self._graph = archive, saved, bindings, graph
        self._limit = limit
        self._code: dict[int, ObjectCode] = {}
        self._kernels: dict[int, Kernel] = {}
        self._events: dict[int, Event] = {}
        self._conditions: list[Condition] = []
        self._allocated: dict[int, Buffer] = {}

    def load(self) -> None:
        device = self._graph.device
        self._conditions = [self._graph.condition(first) for first in self._saved.conditions]
        with device.create_stream() as stream:
            self._memory = LoadedMemory(
                self._archive,
                self._limit,
                self._saved.memory,
                stream,
                self._code_of,
                value_memory(self._saved),
            )
            self._add_all(self._graph, self._saved.nodes, "")
            try:
                self._memory.finish()
            except KernelNotFoundError as e:
                raise self._archive.wrong(str(e)) from e
            stream.sync()

    @contextmanager
    def _about(self, name: str, *, bound: bool) -> Generator[None, None, None]:
        """Say which node cannot be made, and whose fault it is."""
        try:
            yield
        except GraphFileError:
            raise
        except (TypeError, ValueError, OverflowError, BufferError) as e:
            if isinstance(e, CUDAError) or bound:
                e.add_note(f"for node {name!r} of {self._archive.path}")
                raise
            raise self._archive.wrong(f"node {name!r}: {e}") from e
        except CUDAError as e:
            is_wrong = e.name == "CUDA_ERROR_INVALID_VALUE" and not bound
            if is_wrong or isinstance(e, KernelNotFoundError):
                raise self._archive.wrong(f"node {name!r}: {e}") from e
            e.add_note(f"for node {name!r} of {self._archive.path}")
            raise

    # --- nodes

    def _add_all(self, graph: Graph, nodes: tuple[saved.Node, ...], path: str) -> None:
        ids: list[int] = []
        late: list[tuple[int, int]] = []
        for number, node in enumerate(nodes):
            early = list(takewhile(number.__gt__, node.after[:_MOST_DEPS]))  # no order is changed
            if node.edges or node.what.get("config", {}).get("programmatic"):
                early = []  # the edges are as the file says, whatever the configuration makes
            late += [(n, number) for n in node.after[len(early) :]]
            deps = tuple(ids[n] for n in early)
            name = path + node.name
            with self._about(name, bound=self._bindings.touches(name, node)):
                ids.append(self._add(graph, deps, node, number, name))
        for start, end in late:
            # A captured fill may wait for part of a kernel; no call makes one that does.
            how = nodes[end].edges.get(start, "") if nodes[end].kind == "kernel" else ""
            port = PORTS.get(how, PLAIN)
            with self._about(path + nodes[end].name, bound=False):
                graph._edge(ids[start], ids[end], port)

    def _add(
        self, graph: Graph, deps: tuple[int, ...], node: saved.Node, number: int, path: str
    ) -> int:
        name, what = node.name, node.what
        match node.kind:
            case "kernel" | "memcpy" | "memset" | "batch mem op":
                return self._add_work(graph, deps, node, path)
            case "host":
                return graph._add_host(deps, self._bindings.function(path), name)
            case "event record" | "event wait":
                event = self._bindings.event(path) or self._event(what["event"])
                return graph._add_event(deps, event, node.kind == "event record", name)
            case "alloc":
                id = graph._add_alloc(deps, what["size"], None, 0, name)
                self._allocated[number] = graph._buffer(id)
                return id
            case "free":
                return graph._add_free(deps, self._allocated[what["alloc"]], name)
            case "child graph":
                with type(graph)(graph.device) as inner:
                    self._add_all(inner, what["graphs"][0], inner_path(path, 0, 1))
                    return graph._add_child(deps, inner, name, False)
            case "conditional":
                return self._add_conditional(graph, deps, node, path)
            case _:
                return graph._add_empty(deps, name)

    def _add_work(self, graph: Graph, deps: tuple[int, ...], node: saved.Node, path: str) -> int:
        bound = self._bindings.values(path, node)
        given = {
            place: bound[place] if place in bound else self._object(value)
            for place, value in node.values.items()
        }
        what = node.what
        note = _noted(graph, node, given)
        if node.kind == "kernel":
            config, kernel, args = self._launch(node, given, bound)
            return graph._add_kernel(deps, config, kernel, args, node.name, note)
        if node.kind == "memset":
            return graph._add_memset(deps, given["dst"], what["pattern"], node.name, note)
        if node.kind == "batch mem op":
            condition = what.get("condition")
            code = -1 if condition is None else CONDITIONS.index(condition)
            (memory,) = given.values()
            return graph._add_memop(deps, memory, what["value"], code, node.name)
        if "box" in what:
            return graph._add_box(deps, given["dst"], given["src"], what["box"], node.name)
        return graph._add_memcpy(deps, given["dst"], given["src"], node.name, note)

    def _launch(
        self, node: saved.Node, given: dict[str | int, Any], bound: dict[str | int, Any]
    ) -> tuple[LaunchConfig, Kernel, tuple[Any, ...]]:
        """Return what a kernel node launches. The arguments of a kernel of ours fit together."""
        kernel = self._kernel(node.what["kernel"])
        config = LaunchConfig(**node.what["config"])
        args = [given[i] for i in range(len(given))]
        if not kernel._work:
            return config, kernel, tuple(args)
        before = [_before(node.values[i], arg, i in bound) for i, arg in enumerate(args)]
        if not _is_work(kernel, node, before):
            raise self._archive.wrong(
                f"node {node.name!r} cannot be the {kernel._work} that kernel {kernel.name} is"
            )
        if bound:
            new = {int(place): thing for place, thing in bound.items()}
            record = (kernel, config, *before)
            config, kernel, *args = placed(record, node.name, self._graph.device, new)
        return config, kernel, tuple(args)

    def _add_conditional(
        self, graph: Graph, deps: tuple[int, ...], node: saved.Node, path: str
    ) -> int:
        what = node.what
        number: int = what["condition"]
        condition = self._conditions[number]._number
        inside = what["graphs"]
        self._limit.take(BODY * len(inside), f"conditional node {path!r}")
        id = graph._add_conditional(deps, condition, _TYPES[what["type"]], len(inside), node.name)
        for i, nodes in enumerate(inside):
            self._add_all(graph._body(id, i), nodes, inner_path(path, i, len(inside)))
        return id

    # --- what nodes use

    def _object(self, value: saved.Value) -> Any:
        value = plain(value)
        if isinstance(value, Number):
            if value.kind == "condition":
                number: int = value.value
                return self._conditions[number]
            if value.kind == "float":
                return float(struct.unpack("<d", value.value)[0])
            return value.value
        if isinstance(value, Struct):
            memory = tuple((at, self._object(to), "a struct's field") for at, to in value.pointers)
            return Made(value.data, memory)
        if value.alloc is None:
            return self._memory.operand(value)
        buffer = self._allocated[value.alloc][value.offset : value.offset + value.size]
        return buffer if value.dtype is None else buffer.view(value.dtype, value.shape)

    def _event(self, number: int) -> Event:
        if number not in self._events:
            self._events[number] = self._graph.device.create_event(timing_enabled=True)
        return self._events[number]

    def _code_of(self, number: int) -> ObjectCode:
        code = self._code.get(number)
        if code is None:
            data = self._archive.read(f"code/{number}")
            code = self._code[number] = ObjectCode._from(self._saved.code[number].kind, data)
        return code

    def _kernel(self, number: int) -> Kernel:
        kernel = self._kernels.get(number)
        if kernel is None:
            of = self._saved.kernels[number]
            kernel = self._code_of(of.code).get_kernel(of.entry, device=self._graph.device)
            if len(of.parameters) == len(kernel.signature):
                kernel._names = of.parameters
            if of.work:
                set_work(kernel, of.work)
            self._kernels[number] = kernel
        return kernel


# How many parameters kernels of ours have, and how many of them come before the numbers. The value
# of a fill may be an address.
_FORMS = {"fill": (11, 3), "copy": (14, 2), "conversion": (14, 2), "condition": (2, 2)}


def _noted(graph: Graph, node: saved.Node, given: Mapping[str | int, Any]) -> slot.Pending | None:
    slots = [
        (place, slot.Slot(value.name, given[place]))
        for place, value in node.values.items()
        if isinstance(value, Slotted)
    ]
    if slots:
        slot.check(graph)
    return slot.noted(graph, node.kind, slots)


def _is_work(kernel: Kernel, node: saved.Node, args: list[Any]) -> bool:
    """Whether the arguments have the form that updates of a kernel of ours rely on."""
    count, first = _FORMS.get(kernel._work, (len(args), len(args) - 1))
    values = [plain(node.values[i]) for i in range(len(args))]
    numbers = values[first:]
    are_ints = all(isinstance(value, Number) and value.kind == "int" for value in numbers)
    if kernel._work in COUNTED:
        return len(args) > 1 and are_ints and isinstance(args[-2], Was | _core.Operand)
    if kernel._work == "condition":
        return len(args) == count and getattr(values[0], "kind", "") == "condition"
    return len(args) == count and are_ints


def _before(value: saved.Value, given: Any, is_bound: bool) -> Any:
    """Return an argument as it is in a record of what a node does: of memory, what has it."""
    value = plain(value)
    if not isinstance(value, Operand):
        return None if is_bound else given
    return Was(value.size, value.dtype) if is_bound else _core._operand(given, given, False)
