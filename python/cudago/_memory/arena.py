# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A memory resource that takes one block, and gives out parts of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _core
from .._finalize import finalize
from .._native import number_text, whole
from .._stream.stream import Stream, stream_of
from ..errors import ClosedError, OutOfMemoryError
from .regions import ALIGNMENT, Holder, Regions, Work, stream_key
from .resource import MemoryResource

if TYPE_CHECKING:
    from ..typing import StreamLike
    from .buffer import Buffer
    from .device import Device

__all__ = ["ArenaMemoryResource", "ArenaStatistics"]

_PATIENCE_MS = 1000  # how long an allocation waits for work on memory that was freed
_TRIES = 8


@dataclass(frozen=True)
class ArenaStatistics:
    """Use of the block of an `ArenaMemoryResource`, in bytes.

    Parameters
    ----------
    size : int
        Size of the block.
    used : int
        Bytes given out.
    waiting : int
        Bytes that were freed, while work of the stream of the free is not done yet.
    largest : int
        The largest piece that a stream can have without waiting.
    """

    size: int
    used: int
    waiting: int
    largest: int


class _Owner:
    """Of a part of the block: its end is when the stream comes after all uses of the part."""

    __slots__ = ("__weakref__",)


class _Block:
    """The memory, and who has which part. Kept by the resource, and by work under way."""

    __slots__ = ("memory", "regions")

    def __init__(self, memory: Buffer) -> None:
        self.memory, self.regions = memory, Regions(memory.size)


class ArenaMemoryResource(MemoryResource):
    """Device memory from one block, which is taken from another resource once.

    Allocating takes no memory from the driver then, and cannot make it grow. Parts that are freed
    are given out again in the order of streams: at once on the same stream; on others when that
    stream has come past the free, or behind a wait for it.

    Parameters
    ----------
    upstream : MemoryResource
        Allocates the block, which must be device memory.
    size : int
        Size of the block in bytes. Parts are multiples of 512 bytes.
    device : Device, optional
        Device that the memory is on; by default that of ``upstream``.

    Attributes
    ----------
    upstream : MemoryResource
        As given.

    Raises
    ------
    OutOfMemoryError
        If there is no such block. `allocate` raises it if no part is large enough.

    See Also
    --------
    DeviceMemoryResource : A pool of the driver, which grows.

    Notes
    -----
    Creating the resource blocks until the block is there. Closing it leaves its buffers valid; the
    block is freed when the last of them is gone, and the work that used it is done.

    On a stream that is capturing, only parts that no work uses any more are given out. The graph
    keeps them as long as it lives: no node allocates, and the addresses stay.

    The time that an allocation takes grows with the number of parts.

    Examples
    --------
    >>> arena = cudago.ArenaMemoryResource(device.memory_resource, 1 << 20)
    >>> x = cudago.zeros(256, stream=stream, resource=arena)
    >>> arena.statistics.used
    1024
    """

    __slots__ = ("_block", "_on", "upstream")
    upstream: MemoryResource
    _block: _Block | None
    _on: Device

    def __init__(
        self, upstream: MemoryResource, size: Any, *, device: Device | None = None
    ) -> None:
        if not isinstance(upstream, _core.MemoryResource):
            raise TypeError(f"upstream must be a MemoryResource, not {type(upstream).__name__}")
        if device is not None and not isinstance(device, _core.Device):
            raise TypeError(f"device must be a Device, not {type(device).__name__}")
        nbytes = whole(size, "size")
        if nbytes < 1:
            raise ValueError(f"size must be at least 1 byte, got {number_text(nbytes)}")
        on = device or upstream.device
        if on is None:
            raise TypeError(
                "device= is needed: the upstream resource does not say where it allocates"
            )
        with on.create_stream() as stream:
            memory = _core._given(upstream, upstream.allocate(nbytes, stream=stream), nbytes)
            stream.sync()  # from here on the memory is there for every stream
        _check_block(memory, on)
        self.upstream, self._on, self._block = upstream, on, _Block(memory)

    @property  # type: ignore[misc]  # which the user cannot set
    def device(self) -> Device:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The device that the memory is on."""
        return self._on

    def close(self) -> None:
        """Close the resource. Its buffers stay valid.

        Examples
        --------
        >>> arena = cudago.ArenaMemoryResource(device.memory_resource, 1 << 20)
        >>> arena.close()
        >>> arena.is_closed
        True
        """
        super().close()
        self._block = None

    def __exit__(self, *args: object) -> None:
        self.close()

    def _open(self) -> _Block:
        block = self._block
        if self.is_closed or block is None or block.memory.is_closed:
            raise ClosedError("memory resource is closed")
        return block

    def allocate(self, size: Any, *, stream: StreamLike | None = None) -> Buffer:
        """Allocate a part of the block.

        Parameters
        ----------
        size : int
            Size in bytes.
        stream : Stream
            Stream in whose order the memory is allocated, and freed.

        Returns
        -------
        Buffer
            The memory, in which anything may be.

        Raises
        ------
        OutOfMemoryError
            If no part is large enough, also after a second in which work has come to its end.

        Notes
        -----
        Stream-ordered on `stream`. If only parts are large enough that other streams still use,
        `stream` waits for those.
        """
        if stream is None:
            raise TypeError(
                "allocate() needs stream=: device memory is allocated in a stream's order"
            )
        nbytes, on = whole(size, "size"), stream_of(stream)
        if nbytes < 0:
            raise ValueError(f"size in bytes must not be negative, got {number_text(nbytes)}")
        block = self._open()
        if on.device != self._on:
            raise ValueError(f"the memory is on {self._on!r}, the stream on {on.device!r}")
        if nbytes == 0:
            return _core._given(self.upstream, self.upstream.allocate(0, stream=on), 0)
        owner, work = _Owner(), Work(on, block)
        holder = Holder(owner, work)
        # The finalizer keeps the work until the stream has come past the end of the part. What it
        # calls does nothing, as Ctrl-C would interrupt it: that it lets go is what counts.
        finalize(owner, id, work, stream=on).atexit = False
        del work
        start = self._take(block, nbytes, holder, on)
        return _core._buffer_adopt(block.memory.handle + start, nbytes, on, owner, block.memory)

    def _take(self, block: _Block, nbytes: int, holder: Holder, on: Stream) -> int:
        size, capturing = -(-nbytes // ALIGNMENT) * ALIGNMENT, on.is_capturing
        key = 0 if capturing else stream_key(on)
        start = block.regions.take(size, holder, key)
        if start is None and not capturing and _core._give_late(on.device):
            start = block.regions.take(size, holder, key)
        if start is None and not capturing:
            start = _take_behind(block.regions, size, holder, on)
        if start is None:
            _core._reaper_flush(0 if capturing else _PATIENCE_MS)
            start = block.regions.take(size, holder, key)
        if start is None:
            raise _no_memory(block, nbytes, capturing)
        return start

    @property
    def statistics(self) -> ArenaStatistics:
        """How much of the block is given out."""
        block = self._open()
        return ArenaStatistics(block.memory.size, *block.regions.sums())

    def __repr__(self) -> str:
        if not hasattr(self, "_block"):  # its constructor has raised
            return "<cudago.ArenaMemoryResource: not made>"
        block = self._block
        if self.is_closed or block is None:
            return "<cudago.ArenaMemoryResource: closed>"
        return (
            f"<cudago.ArenaMemoryResource over {self.upstream!r}: {block.regions.sums()[0]} of "
            f"{block.memory.size} bytes used>"
        )


def _check_block(memory: Buffer, device: Device) -> None:
    if memory.kind != "device" or memory._ordinal != device.ordinal:
        raise ValueError(f"upstream must allocate memory of {device!r}, not {memory!r}")


def _take_behind(regions: Regions, size: int, holder: Holder, on: Stream) -> int | None:
    """Make the stream wait for another, and take what that one has freed."""
    for _ in range(_TRIES):  # other threads may be faster
        found = regions.waiting(size)
        if found is None:
            return None
        before, frees = found
        if before.is_closed or before.is_capturing:
            return None
        try:
            on.wait(before)
        except (ClosedError, ValueError):
            return None  # it has been closed, or captures, by now
        start = regions.take(size, holder, stream_key(on), behind=frees)
        if start is not None:
            return start
    return None


def _no_memory(block: _Block, nbytes: int, capturing: bool) -> OutOfMemoryError:
    used, waiting, largest = block.regions.sums()
    kept = " that no work uses any more, as a capture needs it" if capturing else ""
    error = OutOfMemoryError(
        f"the arena of {block.memory.size} bytes has no {number_text(nbytes)} bytes in one "
        f"piece{kept}: {used} are used, {waiting} wait for work of the streams that freed them, "
        f"and the largest free piece has {largest}"
    )
    error.requested = nbytes
    return error
