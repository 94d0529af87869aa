# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A memory resource that knows what it has allocated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import ref

from .. import _core
from ..errors import ClosedError
from .allocation import Allocation
from .replaced import Replaced
from .resource import MemoryResource

if TYPE_CHECKING:
    from ..typing import StreamLike
    from .buffer import Buffer
    from .device import Device

__all__ = ["TrackingMemoryResource", "TrackingStatistics"]


@dataclass(frozen=True)
class TrackingStatistics:
    """What a `TrackingMemoryResource` has allocated.

    Parameters
    ----------
    used, used_high : int
        Bytes that are held: now, and the maximum since the last reset.
    count, count_high : int
        Allocations that are held: now, and the maximum since the last reset.
    total, total_count : int
        Bytes and allocations since the last reset, freed ones too.
    """

    used: int
    used_high: int
    count: int
    count_high: int
    total: int
    total_count: int


_Numbers: TypeAlias = tuple[int, ...]  # those of TrackingStatistics


class _Memory:
    """Lives as long as memory that it is attached to."""

    __slots__ = ("__weakref__",)


class _Account:
    """What is held, by weak references whose ends are noted, and counted when somebody looks.

    Without a lock: memory may end, and be allocated, by what the collector runs in any of this.
    """

    __slots__ = ("_ended", "_held", "_numbers")

    def __init__(self) -> None:
        self._held: dict[ref[_Memory], Allocation] = {}
        self._ended: dict[ref[_Memory], Any] = {}
        self._numbers: Replaced[_Numbers] = Replaced((0,) * 6)

    def add(self, what: Allocation) -> _Memory:
        """Count an allocation until what is returned has gone."""
        self._settle()
        memory = _Memory()
        self._held[ref(memory, self._ended.setdefault)] = what
        self._count(what.size, 1)
        return memory

    def _settle(self) -> None:
        for gone in list(self._ended):
            what = self._held.pop(gone, None)  # None: another thread has it
            if what is not None:
                self._count(-what.size, -1)
            self._ended.pop(gone, None)

    def _count(self, size: int, count: int) -> None:
        def changed(old: _Numbers) -> tuple[_Numbers, None]:
            used, used_high, held, held_high, total, total_count = old
            used, held = used + size, held + count
            if count > 0:
                total, total_count = total + size, total_count + 1
            return (
                used,
                max(used, used_high),
                held,
                max(held, held_high),
                total,
                total_count,
            ), None

        self._numbers.change(changed)

    def held(self) -> tuple[Allocation, ...]:
        """Return what is held, oldest first."""
        self._settle()
        return tuple(list(self._held.values()))  # making the tuple may run the collector

    def statistics(self) -> TrackingStatistics:
        """Return the numbers; what is held is never wrong, wherever Ctrl-C came."""
        held = self.held()
        used, count = sum(what.size for what in held), len(held)
        _, used_high, _, count_high, total, total_count = self._numbers.value
        highs = max(used, used_high), max(count, count_high)
        return TrackingStatistics(used, highs[0], count, highs[1], total, total_count)

    def reset(self) -> None:
        """Start the maxima and totals anew."""
        self._settle()
        self._numbers.change(lambda now: ((now[0], now[0], now[2], now[2], 0, 0), None))


class TrackingMemoryResource(MemoryResource):
    """Memory from another resource, with a list of what is held and of who made it.

    Parameters
    ----------
    upstream : MemoryResource
        Allocates the memory.

    Attributes
    ----------
    upstream : MemoryResource
        As given.

    See Also
    --------
    memory_hooks : Calls functions at each allocation of all resources.
    memory_summary : Numbers of all resources, which cost nothing.
    debug.leaks : Lists objects that are open.

    Notes
    -----
    Memory is held until its last holder has let go: buffers, views, tensors, graphs, and work under
    way. Memory that a capture allocates belongs to its graph, and counts while there are others.
    Closing the resource does nothing to ``upstream``, and its numbers stay.

    An allocation costs some microseconds more.

    Examples
    --------
    >>> tracking = cudago.TrackingMemoryResource(device.memory_resource)
    >>> x = cudago.zeros(256, stream=stream, resource=tracking)
    >>> cudago.zeros(256, stream=stream, resource=tracking).close()
    >>> tracking.statistics.used, tracking.statistics.used_high, tracking.statistics.count
    (1024, 2048, 1)
    """

    __slots__ = ("_account", "upstream")
    upstream: MemoryResource

    def __init__(self, upstream: MemoryResource) -> None:
        if not isinstance(upstream, _core.MemoryResource):
            raise TypeError(f"upstream must be a MemoryResource, not {type(upstream).__name__}")
        self.upstream, self._account = upstream, _Account()

    @property  # type: ignore[misc]  # which the user cannot set
    def device(self) -> Device | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The device that ``upstream`` allocates on; None for host memory."""
        return self.upstream.device

    def allocate(self, size: Any, *, stream: StreamLike | None = None) -> Buffer:
        """Allocate memory from ``upstream``, and keep account of it.

        Parameters
        ----------
        size : int
            Size in bytes.
        stream : Stream
            Stream in whose order the memory is allocated, and freed.

        Returns
        -------
        Buffer
            What ``upstream`` returned.

        Notes
        -----
        Stream-ordered on `stream`, and captured, if memory of ``upstream`` is.
        """
        if self.is_closed:
            raise ClosedError("memory resource is closed")
        given = cast("StreamLike", stream)  # None is for memory that needs none
        made = _core._given(self.upstream, self.upstream.allocate(size, stream=given), index(size))
        _core._buffer_attach(made, self._account.add(Allocation._of(made)))
        return made

    @property
    def statistics(self) -> TrackingStatistics:
        """Bytes and allocations that are held, their maxima, and their totals."""
        return self._account.statistics()

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """What is held, with sizes and the lines that made it, oldest first."""
        return self._account.held()

    def reset(self) -> None:
        """Start the maxima and totals of `statistics` anew, from what is held now.

        Examples
        --------
        >>> tracking = cudago.TrackingMemoryResource(device.memory_resource)
        >>> tracking.allocate(1024, stream=stream).close()
        >>> tracking.reset()
        >>> tracking.statistics.used_high, tracking.statistics.total
        (0, 0)
        """
        self._account.reset()

    def report(self) -> str:
        """Return a text of what is held, by the lines that made it, most memory first.

        Returns
        -------
        str
            A line for each line of the program, with bytes and allocations.

        Examples
        --------
        >>> tracking = cudago.TrackingMemoryResource(device.memory_resource)
        >>> x = cudago.zeros(256, stream=stream, resource=tracking)
        >>> print(tracking.report())
        1024 bytes in 1 allocation(s)
          1024 bytes in 1 allocation(s) at ...
        """
        sizes: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for allocation in self.allocations:
            sizes[allocation.site] += allocation.size
            counts[allocation.site] += 1
        lines = [f"{sizes.total()} bytes in {counts.total()} allocation(s)"]
        for site, size in sizes.most_common():
            lines.append(f"  {size} bytes in {counts[site]} allocation(s) at {site or 'no line'}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        if not hasattr(self, "_account"):  # its constructor has raised
            return "<cudago.TrackingMemoryResource: not made>"
        state = ": closed" if self.is_closed else f": {self.statistics.used} bytes held"
        return f"<cudago.TrackingMemoryResource over {self.upstream!r}{state}>"
