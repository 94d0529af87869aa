# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory that processes share: what multiprocessing sends of it."""

from __future__ import annotations

from multiprocessing.reduction import DupFd
from typing import Any
from weakref import WeakValueDictionary

from .. import _core
from .._stream.ipc import device_of
from ..errors import ClosedError
from .buffer import Buffer


class _Piece:
    """A piece of memory by its file descriptor.

    Where it is sent from the memory owns that, and the piece holds the memory; where it is received
    the piece owns it. So a message has the descriptor once, however many buffers in it are of the
    memory, and the receiver closes it when all of the message is read.
    """

    __slots__ = ("__weakref__", "_owner", "fd")

    def __init__(self, fd: int, memory: Buffer | None = None) -> None:
        self.fd, self._owner = fd, _core._files_own(fd, -1) if memory is None else memory

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_piece, (DupFd(self.fd),)


# The pieces that are being sent, by descriptor: multiprocessing sends an object once.
_sending: WeakValueDictionary[int, _Piece] = WeakValueDictionary()


def export_virtual(buffer: Buffer) -> tuple[Any, ...] | None:
    """Return what `import_virtual` takes, if multiprocessing sends it; None for other memory."""
    memory = buffer[:]  # another thread may close the buffer
    try:
        exported = _core._virtual_export(memory)
    except ClosedError:
        raise
    except ValueError as e:
        raise TypeError(
            f"cannot send this memory to another process: {e}; create the VirtualMemoryResource "
            "with ipc_enabled=True, or send a copy such as t.numpy(stream=s)"
        ) from e
    if exported is None:
        return None
    numbers, offset = exported
    pieces = [_sending.setdefault(fd, _Piece(fd, memory)) for fd, _ in numbers]
    device = memory.device
    assert device is not None
    return device.uuid, pieces, [n for _, n in numbers], offset, memory.size


def _rebuild_piece(fd: Any) -> _Piece:
    return _Piece(fd.detach())


def import_virtual(
    uuid: str, pieces: list[_Piece], sizes: list[int], offset: int, size: int
) -> Buffer:
    """Return a buffer over virtual memory of another process."""
    numbers = [(piece.fd, n) for piece, n in zip(pieces, sizes, strict=True)]
    return _core._virtual_import(device_of(uuid).default_stream, numbers, offset, size)
