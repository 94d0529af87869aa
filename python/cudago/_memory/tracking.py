# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A memory resource that knows what it has allocated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, cast

from .. import _core
from ..errors import ClosedError
from .allocation import Allocation
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
        self.upstream, self._account = upstream, _core._account()

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
        # What is attached lives as long as the memory. No Python runs at its end: Ctrl-C would
        # interrupt it.
        _core._buffer_attach(made, self._account.add(Allocation._of(made), made.size))
        return made

    @property
    def statistics(self) -> TrackingStatistics:
        """Bytes and allocations that are held, their maxima, and their totals."""
        return TrackingStatistics(*self._account.numbers())

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
