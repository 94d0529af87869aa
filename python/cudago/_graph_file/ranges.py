# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The memory that the operands of a graph are in, without overlaps."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._core import Operand
    from .._graph.graph import Graph
    from .._memory.buffer import Buffer
    from .variables import Variables

_ALIGNED = 256  # what begins at a multiple of this is aligned for everything
_WORDS = ("host", "device", "managed", "pinned")  # the last of those that overlap says what it is


class _Part(NamedTuple):
    """An allocation, or what is known of one: its kind, and what its bytes can be copied from."""

    kind: str
    source: Operand | Buffer


class _Range(NamedTuple):
    """Parts that overlap: one piece of memory."""

    low: int
    high: int
    kind: str
    parts: tuple[tuple[int, int, Operand | Buffer], ...]
    variable: tuple[int, str] | None


class Ranges:
    """Collects operands; `merge` then tells each where it is."""

    def __init__(self, graph: Graph, variables: Variables, contents: bool) -> None:
        self._graph, self._device = graph, graph.device
        self._variables, self._contents = variables, contents
        self._parts: dict[tuple[int, int], _Part] = {}
        self._pending: list[tuple[int, dict[str, Any]]] = []
        self._watched: list[tuple[int, dict[str, Any]]] = []
        self._watched_bytes: list[tuple[bytes, str]] = []
        self._ranges: list[_Range] = []
        self._lows: list[int] = []

    def add(self, operand: Operand, nbytes: int, made: dict[str, Any]) -> None:
        """Add the first bytes of an operand; `merge` writes into `made` where they are."""
        whole, kind = None, operand.kind
        if kind != "graph":
            whole = operand.whole
        elif self._contents:
            raise ValueError("the contents of memory that another graph allocates cannot be saved")
        else:
            kind = "device"
        source = whole or operand
        low = operand.address if whole is None else whole.handle
        high = low + (nbytes if whole is None else whole.size)
        known = self._parts.get((low, high))
        if known is None or (kind in _WORDS and _WORDS.index(known.kind) < _WORDS.index(kind)):
            self._parts[low, high] = _Part(kind, source)
        self._pending.append((operand.address, made))

    def watch(self, number: int, made: dict[str, Any]) -> None:
        """Look whether a number is an address in memory of the graph: then it moves with it."""
        self._watched.append((number, made))

    def watch_bytes(self, data: bytes, what: str) -> None:
        """Look whether there is such an address in a struct: then it cannot be saved."""
        self._watched_bytes.append((data, what))

    # --- merging

    def merge(self) -> None:
        """Merge what overlaps, and tell operands where they are."""
        self._ranges = sorted([*self._variable_ranges(), *self._other_ranges()])
        self._lows = [r.low for r in self._ranges]
        for address, made in self._pending:
            number = self._number(address, at_end=True)
            made |= {"memory": number, "offset": address - self._ranges[number].low}
        for address, made in self._watched:
            number = self._number(address)
            if number >= 0:
                r = self._ranges[number]
                del made["int"]
                made |= {"memory": number, "offset": address - r.low, "size": r.high - address}
        for data, what in self._watched_bytes:
            self._check(data, what)

    def _check(self, data: bytes, what: str) -> None:
        """Raise an error if a struct has an address, at any byte: it may be packed.

        Numbers that happen to be an address are refused too. There are few: seven bytes of eight
        that lie across small numbers are zero, and memory is above 2**32 on both drivers.
        """
        for at in range(len(data) - 7):
            if self._number(int.from_bytes(data[at : at + 8], "little")) >= 0:
                raise ValueError(
                    f"{what} has an address in it, at byte {at}, or numbers that read as one: "
                    "cannot be saved"
                )

    def _number(self, address: int, *, at_end: bool = False) -> int:
        """Return the number of the range that an address is in, or -1."""
        number = bisect_right(self._lows, address) - 1
        if number >= 0 and address < self._ranges[number].high + at_end:
            return number
        return -1

    def _variable_ranges(self) -> Iterator[_Range]:
        seen = set[int]()
        for (low, high), part in self._parts.items():
            if part.kind == "variable":
                of = self._variables.at(low)
                seen.add(low)
                # A variable of code without a kernel here is memory like any other.
                kind = "device" if of is None else "variable"
                yield _Range(low, high, kind, ((low, high, part.source),), of)
        for number, name, buffer in self._variables.all() if self._contents else ():
            if buffer.handle not in seen:
                low, high = buffer.handle, buffer.handle + buffer.size
                yield _Range(low, high, "variable", ((low, high, buffer),), (number, name))

    def _other_ranges(self) -> Iterator[_Range]:
        group: list[tuple[int, int, _Part]] = []
        end = -1
        order = sorted(self._parts, key=lambda r: (r[0], -r[1]))
        for low, high in order:
            part = self._parts[low, high]
            if part.kind == "variable":
                continue
            if group and low >= end and high > end:
                yield _merged(group)
                group = []
            group.append((low, high, part))
            end = max(end, high)
        if group:
            yield _merged(group)

    # --- what is saved

    def described(self) -> list[dict[str, Any]]:
        """Return what the text says of the memory."""
        made: list[dict[str, Any]] = []
        for r in self._ranges:
            one: dict[str, Any] = {
                "kind": r.kind,
                "size": r.high - r.low,
                "lead": 0 if r.variable else r.low % _ALIGNED,
                "contents": self._contents,
            }
            if r.variable:
                one["code"], one["name"] = r.variable
            made.append(one)
        return made

    def contents(self) -> Iterator[tuple[int, memoryview]]:
        """Yield the number and the bytes of each memory, once all work on the device is done."""
        if not self._contents:
            return
        self._device.sync()
        for number, r in enumerate(self._ranges):
            data = memoryview(bytearray(r.high - r.low))
            self._read(r, data)
            yield number, data

    def _read(self, r: _Range, data: memoryview) -> None:
        """Copy by graphs: their nodes take an operand whose object was closed, and all memory."""
        for low, high, source in r.parts:
            if high == low:
                continue
            device = self._device
            memory: Any = source
            if isinstance(source, _core.Buffer):
                device = source.device or device
                memory = source.view("u1")  # a tensor knows whether it is pageable memory
            with type(self._graph)(device) as graph, device.create_stream() as stream:
                graph._add_memcpy((), data[low - r.low : high - r.low], memory, None, None)
                with graph.instantiate() as step:
                    step.launch(stream)
                    stream.sync()


def _merged(group: list[tuple[int, int, _Part]]) -> _Range:
    low, high = group[0][0], max(high for _, high, _ in group)
    kind = max((part.kind for _, _, part in group), key=_WORDS.index)
    return _Range(low, high, kind, tuple((a, b, part.source) for a, b, part in group), None)
