# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a graph allocates, in another graph: operands follow the memory to its new address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._kernel.structs import Made
from .._ordinal import device_at
from .condition import ConditionHandle
from .params import UNKNOWN_PEERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._memory.buffer import Buffer
    from .graph import Graph
    from .params import Told

_ADDRESS = 8  # bytes of an address


class NotMovableError(Exception):
    """Why a node has to stay where its memory is."""


class _Memory(NamedTuple):
    address: int
    buffer: Buffer  # where it is now

    def has(self, address: int) -> bool:
        return 0 <= address - self.address < self.buffer.size


class Moved:
    """Memory that nodes allocate anew in another graph, in whose order one comes after the other.

    Only what is allocated at the moment counts: the driver gives an address again once it is free.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._memory: list[_Memory] = []

    def allocate(self, deps: tuple[int, ...], row: Sequence[Any]) -> int:
        """Add a node that allocates as much as another one does, of which these are the numbers."""
        address, size, ordinal, peers = row[:4]
        known = 0 if peers == UNKNOWN_PEERS else peers
        node = self._graph._add_alloc(deps, size, device_at(ordinal), known, None)
        self._memory.append(_Memory(address, self._graph._buffer(node)))
        return node

    def free(self, deps: tuple[int, ...], row: Sequence[Any]) -> int:
        """Add a node that frees what another one frees."""
        for memory in self._memory:
            if memory.address == row[0]:
                self._memory.remove(memory)
                return self._graph._add_free(deps, memory.buffer, None)
        raise NotMovableError("it frees memory that another graph allocates")

    def free_rest(self, last: int) -> None:
        """Add nodes that free what no node has freed."""
        while self._memory:
            last = self._graph._add_free((last,), self._memory.pop().buffer, None)

    def told(self, kind: str, told: Told) -> Told:
        """Return the operands of a node, with the memory that they are to have."""
        if not self._memory:
            return told
        if kind == "child graph":
            raise NotMovableError("what it embeds may use memory that the graph allocates")
        numbers, rows = told
        return numbers, tuple(
            (self._held(it, role), nbytes, node, role, of) for it, nbytes, node, role, of in rows
        )

    def _held(self, it: Any, role: str) -> Any:
        if role == "kernel":
            kernel, config, *args = it
            return kernel, config, *map(self._argument, args)
        return self._operand(it) if isinstance(it, _core.Operand) else it

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, _core.Operand):
            return self._operand(arg)
        if issubclass(type(arg), tuple):
            return self._struct(arg)
        if isinstance(arg, bytes):
            self._check(arg)
        elif isinstance(arg, int) and not isinstance(arg, ConditionHandle):
            of = self._of(arg)
            return arg if of is None else of.buffer.handle + (arg - of.address)
        return arg

    def _operand(self, operand: _core.Operand) -> Any:
        of = self._of(operand.address)
        if of is None:
            return operand
        if isinstance(operand.object, _core.Descriptor):
            kind = type(operand.object).__name__
            raise NotMovableError(f"its {kind} is over memory that the graph allocates")
        first = operand.address - of.address
        return of.buffer[first : first + operand.nbytes]

    def _struct(self, arg: tuple[Any, ...]) -> Any:
        data = bytearray(arg[0])
        for operand in arg[1:]:
            data[operand.at : operand.at + _ADDRESS] = bytes(_ADDRESS)
        self._check(data)
        memory = tuple((o.at, self._operand(o), "a struct's field") for o in arg[1:])
        return Made(bytes(data), memory)

    def _check(self, data: bytes | bytearray) -> None:
        """Refuse bytes with an address of what is moved, at any byte: they may be packed."""
        for at in range(len(data) - _ADDRESS + 1):
            if self._of(int.from_bytes(data[at : at + _ADDRESS], "little")) is not None:
                raise NotMovableError(
                    f"a struct has an address of memory that the graph allocates, at byte {at}"
                )

    def _of(self, address: int) -> _Memory | None:
        return next((m for m in reversed(self._memory) if m.has(address)), None)
