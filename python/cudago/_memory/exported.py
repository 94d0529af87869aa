# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What stands for another API beside the simulated driver: semaphores and memory that it exports.

Both are files in memory. That of a semaphore holds three numbers of 8 bytes: a mark, what kind of
semaphore it is, and its value; the simulated driver (``semaphore_unsafe.go``) reads the same.
"""

from __future__ import annotations

import mmap
import time
from typing import TYPE_CHECKING, Literal

from .. import _core
from .._native import duration, number_text, whole
from ..errors import ClosedError

if TYPE_CHECKING:
    from typing import Self

_MARK = 0x616D657367756463
_KINDS = {"opaque": 1, "timeline": 9}  # CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_...
_PAGE = 4096


def _value(value: int, kind: str) -> int:
    """Check what a semaphore is to have."""
    number = whole(value, "value")
    if not 0 <= number < (1 << 64 if kind == "timeline" else 2):
        most = "2**64 - 1" if kind == "timeline" else 1
        raise ValueError(f"value must be 0 to {most}, got {number_text(number)}")
    return number


class _Exported:
    """A file in memory, and the exporter's view of it."""

    __slots__ = ("__weakref__", "_files", "_map")
    _what = "memory"

    def __init__(self, size: int) -> None:
        self._files = _core._files_in_memory(f"cudago {self._what}", size)
        self._map = mmap.mmap(self.fileno(), size)

    def fileno(self) -> int:
        """Return the file descriptor, which stays open as long as this object is.

        Returns
        -------
        int
            To be imported, also by another process that it is sent to.
        """
        fd = _core._files(self._files)[0]
        if fd < 0:
            raise ClosedError(f"exported {self._what} is closed")
        return fd

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return _core._files(self._files)[0] < 0

    def close(self) -> None:
        """Close the file descriptor. Closing twice is fine; what was imported stays."""
        _core._files_close(self._files)

    def __enter__(self) -> Self:
        self.fileno()
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            f"cannot pickle {type(self).__name__!r} object: send its file descriptor instead"
        )


class ExportedSemaphore(_Exported):
    """A semaphore that stands for one of another API. A context manager, which closes it.

    Parameters
    ----------
    kind : {"timeline", "opaque"}
        As for `create_semaphore`, which makes them.
    value : int
        What it has at first.
    """

    __slots__ = ("_numbers", "kind")
    _what = "semaphore"

    kind: Literal["timeline", "opaque"]
    """What kind of semaphore it is."""

    def __init__(self, kind: Literal["timeline", "opaque"], value: int) -> None:
        if kind not in _KINDS:
            raise ValueError(f'kind must be "timeline" or "opaque", got {kind!r}')
        first = _value(value, kind)
        super().__init__(_PAGE)
        self.kind = kind
        self._numbers = memoryview(self._map).cast("Q")
        self._numbers[1], self._numbers[2] = _KINDS[kind], first
        self._numbers[0] = _MARK

    @property
    def value(self) -> int:
        """The value as it is now; of an opaque semaphore 1 while it is signaled."""
        return self._numbers[2]

    def signal(self, value: int = 1) -> None:
        """Signal the semaphore, as the other API would.

        Parameters
        ----------
        value : int
            What a timeline is set to.
        """
        self._numbers[2] = _value(value, self.kind) if self.kind == "timeline" else 1

    def wait(self, value: int = 1, *, timeout_s: float = 10.0) -> None:
        """Wait in this thread, as the other API would; undo the signal of an opaque semaphore.

        Parameters
        ----------
        value : int
            The value that a timeline has to have at least.
        timeout_s : float
            How long to wait, in seconds.

        Raises
        ------
        TimeoutError
            If it was not signaled in that time.
        """
        end = time.monotonic() + duration(timeout_s, "timeout_s")
        least = _value(value, self.kind) if self.kind == "timeline" else 1
        while self.value < least:
            if time.monotonic() > end:
                raise TimeoutError(f"{self!r} was not signaled in {timeout_s} s")
            time.sleep(1e-4)
        if self.kind == "opaque":
            self._numbers[2] = 0

    def __repr__(self) -> str:
        return f"<cudago.sim.ExportedSemaphore {self.kind}: {self.value}>"


class ExportedMemory(_Exported):
    """Memory that stands for that of another API. A context manager, which closes it.

    Parameters
    ----------
    size : int
        Size in bytes; `create_memory` makes it.
    """

    __slots__ = ("size",)

    size: int
    """Size in bytes."""

    def __init__(self, size: int) -> None:
        self.size = whole(size, "size")
        if not 1 <= self.size < 1 << 63:
            raise ValueError(f"size must be 1 to 2**63-1 bytes, got {number_text(size)}")
        super().__init__(self.size)

    @property
    def view(self) -> memoryview:
        """The bytes, as the other API sees them."""
        return memoryview(self._map)

    def __repr__(self) -> str:
        return f"<cudago.sim.ExportedMemory of {self.size} bytes>"


def create_semaphore(
    kind: Literal["timeline", "opaque"] = "timeline", *, value: int = 0
) -> ExportedSemaphore:
    """Make a semaphore that stands for one of another API, such as Vulkan.

    Parameters
    ----------
    kind : {"timeline", "opaque"}
        As for `ExternalSemaphore.from_fd`.
    value : int
        What it has at first; of an opaque semaphore 1 if it is signaled.

    Returns
    -------
    ExportedSemaphore
        `ExternalSemaphore.from_fd` imports it, in this process or in another.

    Notes
    -----
    So code that shares semaphores with another API can be tested without it. NVIDIA's driver does
    not import it.

    Examples
    --------
    >>> exported = cudago.sim.create_semaphore()
    >>> rendered = cudago.ExternalSemaphore.from_fd(device, exported)
    >>> stream.wait(rendered, 1)
    >>> exported.signal(1)
    >>> stream.sync()
    """
    return ExportedSemaphore(kind, value)


def create_memory(size: int) -> ExportedMemory:
    """Make memory that stands for memory of another API, such as Vulkan.

    Parameters
    ----------
    size : int
        Size in bytes.

    Returns
    -------
    ExportedMemory
        `ExternalMemory.from_fd` imports it, in this process or in another; so it does any other
        file of ``os.memfd_create`` with ``os.MFD_ALLOW_SEALING``, which it seals so that nobody can
        make it smaller.

    Notes
    -----
    So code that shares memory with another API can be tested without it. NVIDIA's driver does not
    import it.

    Examples
    --------
    >>> exported = cudago.sim.create_memory(4096)
    >>> with cudago.ExternalMemory.from_fd(device, exported, 4096) as memory:
    ...     buffer = memory.map(stream=stream)
    >>> buffer.fill(7, stream=stream)
    >>> stream.sync()
    >>> exported.view[4095]
    7
    """
    return ExportedMemory(size)
