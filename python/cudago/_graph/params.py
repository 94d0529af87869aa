# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What nodes of graphs do: their parameters, as they were given."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .. import _core
from .._kernel.named import no_parameters
from .._ordinal import device_at
from .._stream.memop import CONDITIONS
from .._tensor.element import element_bits
from .retained import argument_of, object_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._kernel.kernel import Kernel
    from .._kernel.launch import LaunchConfig
    from .._memory.buffer import Buffer
    from .._memory.device import Device
    from .._stream.event import Event
    from .._stream.semaphore import ExternalSemaphore
    from .graph import Graph

__all__ = [
    "AllocNodeParams",
    "BatchMemOpNodeParams",
    "ChildGraphNodeParams",
    "ConditionalNodeParams",
    "EventNodeParams",
    "FreeNodeParams",
    "HostNodeParams",
    "KernelNodeParams",
    "MemcpyNodeParams",
    "MemsetNodeParams",
    "SemaphoreNodeParams",
]

UNKNOWN_PEERS = (1 << 32) - 1  # of a captured allocation

_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = 100
_SHORT.maxtuple = 32


def shown(value: object) -> str:
    """Return a repr in which arrays and bytes are cut."""
    return _SHORT.repr(value)


class _Params:
    """What all have in common: a repr in which arrays and bytes are cut."""

    def __repr__(self) -> str:
        values = (f"{name}={shown(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({', '.join(values)})"


# Equal only to themselves, because arrays do not have one answer to ==.
@dataclass(frozen=True, eq=False, repr=False)
class KernelNodeParams(_Params):
    """What a kernel node launches.

    Parameters
    ----------
    config : LaunchConfig
        The launch shape.
    kernel : Kernel
        The kernel.
    args : tuple
        The arguments: the objects that were passed, where these have memory, otherwise numbers,
        bytes or None. A struct with memory is its bytes and what keeps the memory: a kernel takes
        it again, and ``bytes(arg)`` are its bytes. `arguments` is the same.
    """

    config: LaunchConfig
    kernel: Kernel
    args: tuple[Any, ...]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The same as ``args``."""
        return self.args


@dataclass(frozen=True, eq=False, repr=False)
class MemcpyNodeParams(_Params):
    """What a memcpy node copies.

    Parameters
    ----------
    dst, src : object
        The objects that were passed; None for what another library has captured.
    nbytes : int
        Bytes to copy.
    """

    dst: Any
    src: Any
    nbytes: int


@dataclass(frozen=True, eq=False, repr=False)
class MemsetNodeParams(_Params):
    """What a memset node fills.

    Parameters
    ----------
    dst : object
        The object that was passed.
    value : int or bytes
        The value, as `Graph.memset` takes it: one byte as an int, more as ``bytes``, and an element
        of a tensor as ``bytes``.
    nbytes : int
        Bytes to fill.
    """

    dst: Any
    value: int | bytes
    nbytes: int


@dataclass(frozen=True, eq=False, repr=False)
class BatchMemOpNodeParams(_Params):
    """What a node writes into memory, or waits for there.

    Parameters
    ----------
    memory : object
        The memory.
    value : int
        The value, unsigned.
    condition : {">=", "==", "&", "nor"} or None
        What the node waits for, as `Graph.wait_value` takes it; None if it writes.
    """

    memory: Any
    value: int
    condition: str | None


@dataclass(frozen=True, eq=False, repr=False)
class HostNodeParams(_Params):
    """What a host node calls.

    Parameters
    ----------
    func : callable
        The function.
    """

    func: Callable[[], Any]


@dataclass(frozen=True, eq=False, repr=False)
class EventNodeParams(_Params):
    """What a node records or waits for.

    Parameters
    ----------
    event : Event
        The event.
    """

    event: Event


@dataclass(frozen=True, eq=False, repr=False)
class SemaphoreNodeParams(_Params):
    """What a node signals, or waits for.

    Parameters
    ----------
    semaphore : ExternalSemaphore
        The semaphore.
    value : int or None
        The value of a timeline; None of another semaphore.
    """

    semaphore: ExternalSemaphore
    value: int | None


@dataclass(frozen=True, eq=False, repr=False)
class AllocNodeParams(_Params):
    """What an alloc node allocates.

    Parameters
    ----------
    nbytes : int
        Bytes to allocate.
    address : int
        The address, the same at each launch.
    device : Device
        The device that the memory is on.
    peers : frozenset of Device, optional
        The other devices that can use it; None if a captured allocation has those of its memory
        resource.
    """

    nbytes: int
    address: int
    device: Device
    peers: frozenset[Device] | None


@dataclass(frozen=True, eq=False, repr=False)
class FreeNodeParams(_Params):
    """What a free node frees.

    Parameters
    ----------
    buffer : Buffer, optional
        The memory, as it was passed; None if a captured block has let go of it, by closing or
        dropping all that held it.
    address : int
        The address of the memory.
    """

    buffer: Buffer | None
    address: int


@dataclass(frozen=True, eq=False, repr=False)
class ChildGraphNodeParams(_Params):
    """What a child graph node runs.

    Parameters
    ----------
    graph : Graph
        A view of the embedded copy, which can be read, but not changed or instantiated. It keeps
        the graph that contains it alive, and ends with it.
    """

    graph: Graph


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalNodeParams(_Params):
    """What a conditional node chooses from.

    Parameters
    ----------
    type : {"if", "while", "switch"}
        How it chooses.
    bodies : tuple of Graph
        What it chooses from.
    """

    type: Literal["if", "while", "switch"]
    bodies: tuple[Graph, ...]


NodeParams: TypeAlias = (
    KernelNodeParams
    | MemcpyNodeParams
    | MemsetNodeParams
    | BatchMemOpNodeParams
    | HostNodeParams
    | EventNodeParams
    | SemaphoreNodeParams
    | AllocNodeParams
    | FreeNodeParams
    | ChildGraphNodeParams
    | ConditionalNodeParams
)

# The numbers and texts, and what is retained, as the native module tells them.
Told: TypeAlias = tuple[tuple[Any, ...] | None, tuple[tuple[Any, int, str, str, str], ...]]


def record_of(told: Told) -> tuple[Any, ...] | None:
    """Return a kernel node's record: the kernel, the configuration, and each argument."""
    for held, _, _, operand, _ in told[1]:
        if operand == "kernel":
            record: tuple[Any, ...] = held
            return record
    return None


def params_of(kind: str, told: Told, inner: Callable[[int], Graph]) -> NodeParams | None:
    """Make a node's parameters; None where it has none, or another library knows them alone.

    `inner` returns a graph inside the node.
    """
    row, rows = told
    held = {operand: object_of(it) for it, _, _, operand, _ in rows}
    made: NodeParams | None = None
    if row is None:
        return made
    if kind == "kernel" and (record := record_of(told)):
        kernel, config, *args = record
        made = KernelNodeParams(config, kernel, tuple(argument_of(a) for a in args))
    elif kind == "memcpy":
        made = MemcpyNodeParams(held.get("dst"), held.get("src"), row[0])
    elif kind == "memset":
        made = _memset(held.get("dst"), *row[:3])
    elif kind == "batch mem op":
        value, _, waits, code = row[:4]
        memory = held.get("src" if waits else "dst")
        condition = CONDITIONS[int(code)] if waits else None
        made = BatchMemOpNodeParams(memory, value, condition)
    elif kind == "host" and "callback" in held:
        made = HostNodeParams(held["callback"])
    elif kind in ("event record", "event wait") and "event" in held:
        made = EventNodeParams(held["event"])
    elif kind in ("semaphore signal", "semaphore wait") and "semaphore" in held:
        made = SemaphoreNodeParams(held["semaphore"], row[0] if row[1] else None)
    elif kind == "alloc":
        made = AllocNodeParams(row[1], row[0], device_at(row[2]), _peers_of(row[3]))
    elif kind == "free":
        made = FreeNodeParams(held.get("memory"), row[0])
    elif kind == "child graph":
        made = ChildGraphNodeParams(inner(0))
    elif kind == "conditional":
        made = ConditionalNodeParams(row[-1], tuple(inner(i) for i in range(row[0])))
    return made


def _peers_of(mask: int) -> frozenset[Device] | None:
    if mask == UNKNOWN_PEERS:
        return None
    return frozenset(device_at(i) for i in range(mask.bit_length()) if mask >> i & 1)


def _memset(dst: Any, value: int, width: int, count: int) -> MemsetNodeParams:
    return MemsetNodeParams(dst, _value_of(dst, value.to_bytes(width, "little")), width * count)


def _value_of(dst: Any, pattern: bytes) -> int | bytes:
    """Spell the value so that it can be given again: one element of typed memory, or bytes."""
    nbytes = (element_bits(dst) or 0) // 8
    if nbytes and nbytes % len(pattern) == 0:
        return pattern * (nbytes // len(pattern))
    return pattern[0] if len(pattern) == 1 else pattern


def is_change(args: tuple[Any, ...]) -> bool:
    """Whether these say what changes of a kernel node, and not what all of it becomes."""
    return len(args) < 2 or isinstance(args[0], _core.Kernel) or isinstance(args[1], dict)


def changed(
    record: tuple[Any, ...], change: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Return configuration, kernel and arguments of a record, with what an update changes."""
    kernel, config, *args = record
    given = _given(change)
    named = dict(named)
    for what in ("config", "kernel"):
        if what in given and what in named:
            raise TypeError(f"update of a kernel node got {what} twice")
    if not change and not named:
        raise TypeError("update of a kernel node needs what is to change")
    config = given.get("config", named.pop("config", config))
    kernel = given.get("kernel", named.pop("kernel", kernel))
    new: dict[int, Any] = {}
    for index, value in given.get("arguments by position", {}).items():
        new[_position(kernel, index, len(args))] = value
    known = kernel.parameter_names if named else ()
    for name, value in named.items():
        at = _named(kernel, name, known, len(args))
        if at in new:
            raise TypeError(
                f"parameter {at} of kernel {kernel.name} is given twice: by its position and as "
                f"{name!r}"
            )
        new[at] = value
    for at, value in new.items():
        args[at] = value
    return config, kernel, *args


def _given(change: tuple[Any, ...]) -> dict[str, Any]:
    """Return by kind what an update of a kernel node is given without names."""
    given: dict[str, Any] = {}
    for thing in change:
        if isinstance(thing, _core.LaunchConfig):
            what = "config"
        elif isinstance(thing, _core.Kernel):
            what = "kernel"
        elif issubclass(type(thing), dict):
            what = "arguments by position"
        else:
            raise TypeError(
                f"update of a kernel node takes config, kernel, *args; or what changes: a "
                f"LaunchConfig, a Kernel, arguments by name, or a dict of arguments by position, "
                f"not {type(thing).__name__}"
            )
        if what in given:
            raise TypeError(f"update of a kernel node got {what} twice")
        given[what] = thing
    return given


def _position(kernel: Kernel, index: Any, count: int) -> int:
    if isinstance(index, str):
        raise TypeError(
            f"arguments in a dict are by position, got {index!r}: give those by name as keywords, "
            f"as in update({index if index.isidentifier() else 'name'}=...)"
        )
    if not isinstance(index, int) or not 0 <= index < count:
        raise TypeError(f"kernel {kernel.name} has {count} parameters from 0, and no {index!r}")
    return index


def _named(kernel: Kernel, name: str, known: tuple[str, ...], count: int) -> int:
    if name in known[:count]:
        return known.index(name)
    instead = ""
    if name in ("args", "arguments"):  # as in `KernelNodeParams`
        instead = "; to replace all arguments, call update(config, kernel, *args)"
    if not kernel.signature:
        raise TypeError(no_parameters(kernel, name) + instead)
    if not known:
        raise TypeError(
            f"the names of the parameters of kernel {kernel.name} are not known: give {name!r} by "
            f"its position, as in update({{0: value}}){instead}"
        )
    raise TypeError(
        f"kernel {kernel.name} has no parameter {name!r}; it has {', '.join(known)}{instead}"
    )
