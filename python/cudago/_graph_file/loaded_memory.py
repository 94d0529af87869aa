# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The memory of a graph that is being loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._memory.host_resource import ManagedMemoryResource, PinnedMemoryResource
from .._memory.resource import VirtualMemoryResource
from .._tensor.element import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from .._kernel.object_code import ObjectCode
    from .._memory.buffer import Buffer
    from .._stream.stream import Stream
    from .archive import Archive
    from .limit import Limit
    from .saved import Memory, Operand

_ALIGNED = 256
_PAGE = 4096  # what also a small allocation takes
_OF_HOST = ("pinned", "managed", "host")


class LoadedMemory:
    """Allocations, made when they are first needed, with saved contents or zeros.

    Zeros, and not whatever was in that memory before: a file shall not read what others left.
    """

    def __init__(
        self,
        archive: Archive,
        limit: Limit,
        memory: tuple[Memory, ...],
        stream: Stream,
        code: Callable[[int], ObjectCode],
        values: Container[int],
    ) -> None:
        self._archive, self._saved, self._stream, self._code = archive, memory, stream, code
        self._limit = limit
        self._values = values  # numbers of what takes values, which the memory of pools does not
        self._sizes = archive.sizes
        self._made: dict[int, Any] = {}

    def operand(self, operand: Operand) -> Any:
        """Return an object for the bytes: a Tensor, a Buffer, or a NumPy array over host memory."""
        assert operand.memory is not None
        number, start, end = operand.memory, operand.offset, operand.offset + operand.size
        if number not in self._made:
            self._made[number] = self._make(number)
        part = self._made[number][start:end]
        if operand.dtype is None or not hasattr(part, "view"):  # a memoryview, without NumPy
            return part
        if self._saved[number].kind != "host":
            return part.view(operand.dtype, operand.shape)
        try:
            array = part.view(numpy_dtype(operand.dtype)).reshape(operand.shape)
            memoryview(array).release()
        except (TypeError, ValueError):  # NumPy has no such type, or cannot share it
            return part
        return array

    def finish(self) -> None:
        """Make the variables that kernels use by their names."""
        for number, memory in enumerate(self._saved):
            if memory.kind == "variable" and number not in self._made:
                self._made[number] = self._make(number)

    def _make(self, number: int) -> Any:
        memory = self._saved[number]
        member = f"memory/{number}"
        if memory.kind in _OF_HOST and member not in self._sizes:
            self._limit.take(memory.size + _PAGE, f"{memory.kind} memory {number}")
        if memory.kind == "host":
            return self._make_host(number, memory)
        made = self._allocate(number, memory)
        if member in self._sizes:
            at = 0
            for chunk in self._archive.chunks(member):
                made[at : at + len(chunk)].copy_from(chunk, stream=self._stream)
                at += len(chunk)
        elif memory.kind != "variable" and memory.size:
            made.fill(0, stream=self._stream)
        return made

    def _allocate(self, number: int, memory: Memory) -> Buffer:
        device = self._stream.device
        if memory.kind == "variable":
            assert memory.code is not None
            assert memory.name is not None
            made: Buffer = self._code(memory.code).get_global(memory.name, device=device)
            if made.size != memory.size:
                raise self._archive.wrong(
                    f"variable {memory.name} has {made.size} bytes here, and {memory.size} there"
                )
            return made
        size = memory.lead + memory.size
        if memory.kind == "pinned":
            made = PinnedMemoryResource().allocate(size)
        elif memory.kind == "managed":
            made = ManagedMemoryResource(device).allocate(size)
        elif number in self._values:
            made = VirtualMemoryResource(device, reserve=size).allocate(size, stream=self._stream)
        else:
            made = device.allocate(size, stream=self._stream)
        return made[memory.lead :]

    def _make_host(self, number: int, memory: Memory) -> Any:
        made = _host_bytes(memory)
        member = f"memory/{number}"
        if member in self._sizes:
            at = 0
            for chunk in self._archive.chunks(member):
                memoryview(made)[at : at + len(chunk)] = chunk
                at += len(chunk)
        return made


def _host_bytes(memory: Memory) -> Any:
    """Return zeros in pageable memory: a NumPy array if there is NumPy."""
    try:
        import numpy as np
    except ImportError:
        return memoryview(bytearray(memory.size))
    raw = np.zeros(memory.lead + memory.size + _ALIGNED, "u1")
    first = -raw.ctypes.data % _ALIGNED + memory.lead
    return raw[first : first + memory.size]
