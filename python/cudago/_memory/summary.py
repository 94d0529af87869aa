# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds how much memory."""

from __future__ import annotations

import sys
from dataclasses import astuple
from typing import TYPE_CHECKING, NamedTuple

from .. import _core
from .._card import card
from .._import_at_exit import late
from .._ordinal import devices_in_use
from ..errors import ClosedError, OutOfMemoryError
from .host_resource import ManagedMemoryResource
from .resource import _pools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .device import Device
    from .resource import _Pooled

__all__ = ["memory_summary"]

_UNITS = "bytes", "KiB", "MiB", "GiB", "TiB"
_KINDS = {
    "pinned": "pinned memory",
    "registered": "pinned in place",
    "managed": "managed memory",
    "virtual": "virtual memory",
    "array": "arrays",
}
_MOST = 5  # allocations that an error tells of
_ROW = "  {:<28}{:>14}{:>14}{:>14}{:>14}"


def size_text(nbytes: float) -> str:
    """Return a number of bytes in few digits."""
    unit = 0
    while nbytes >= 1024 and unit < len(_UNITS) - 1:
        nbytes, unit = nbytes / 1024, unit + 1
    return f"{nbytes:.0f} {_UNITS[0]}" if not unit else f"{nbytes:.1f} {_UNITS[unit]}"


class Use(NamedTuple):
    """What one pool, or memory of one kind without a pool, holds now and held at most."""

    name: str
    live: int
    most: int | None = None  # None if nobody counts it
    reserved: int | None = None
    reserved_most: int | None = None
    number: str = ""  # that tells pools of one device from each other

    def words(self) -> Iterator[str]:
        """Yield the numbers as they are read."""
        for size in self[1:5]:
            yield "" if size is None else size_text(size)


class MemorySummary(str):
    """The table of `memory_summary`, which notebooks show as a picture."""

    __slots__ = ("uses",)
    uses: tuple[tuple[str, tuple[Use, ...]], ...]  # by device, with its line

    _repr_html_ = card

    def __repr__(self) -> str:  # at a prompt too it is to be read
        return str(self)


def memory_summary(*, reset: bool = False) -> MemorySummary:
    """Return a table of the memory that is allocated, by device and resource.

    Parameters
    ----------
    reset : bool
        Whether the maxima start anew after this call.

    Returns
    -------
    str
        For each device in use its free memory, its pools and what graphs allocate: bytes live and
        reserved, and the most so far. Then what has no pool: pinned, managed and virtual memory,
        and arrays. Last, how much of all that graphs and executables keep. Notebooks show it as a
        card, with bars.

    See Also
    --------
    DeviceMemoryResource.statistics : The same numbers of one pool.
    cudago.debug.leaks : Lists the objects.
    cudago.debug.MemoryTimeline : The same numbers over time.

    Notes
    -----
    A pool's numbers are the driver's, and count what other libraries allocate from it. Memory
    without a pool is counted until its last holder lets go. If there are graphs, every object of
    the process is looked at, which takes some 0.05 s per million.

    References
    ----------
    ``cuMemGetInfo_v2``, ``cuMemPoolGetAttribute``, ``cuDeviceGetGraphMemAttribute``

    Examples
    --------
    >>> print(cudago.memory_summary())  # doctest: +ELLIPSIS
    device 0: ...
    """
    lines: list[str] = []
    uses: list[tuple[str, tuple[Use, ...]]] = []
    for device in sorted(devices_in_use(), key=lambda d: d.ordinal):
        title = (
            f"device {device.ordinal}: {device.name}, {size_text(device.total_memory)}, "
            f"{size_text(device.free_memory)} free"
        )
        uses.append((title, tuple(_pools_of(device, reset))))
        lines += [title, _ROW.format("", "live", "most", "reserved", "most")]
        lines += [_ROW.format(use.name, *use.words()) for use in uses[-1][1]]
    if pinned := tuple(_on_host(reset)):
        uses.append(("on the host", pinned))
        lines += ["on the host", *(_ROW.format(use.name, *use.words()) for use in pinned)]
    if rest := tuple(_without_pool(reset)):
        uses.append(("without a pool", rest))
        lines += ["without a pool", *(_ROW.format(use.name, *use.words()) for use in rest)]
    if kept := tuple(_kept_by_graphs()):
        title = "of all that, graphs and executables keep"
        uses.append((title, kept))
        lines += [title, *(_ROW.format(use.name, *use.words()) for use in kept)]
    made = MemorySummary("\n".join(line.rstrip() for line in lines))
    made.uses = tuple(uses)
    return made


def memory_uses() -> list[tuple[str, int, int]]:
    """Return what is in use by name, with the most so far."""
    found = [
        (f"device {device.ordinal}: {use.name}{use.number}", use.live, use.most or 0)
        for device in devices_in_use()
        for use in _pools_of(device)
    ]
    found += [(f"{use.name}{use.number}", use.live, use.most or 0) for use in _on_host()]
    return found + [(use.name, use.live, use.most or 0) for use in _without_pool()]


def _explain(error: OutOfMemoryError, nbytes: int) -> None:
    """Add to an error who holds what, and what was requested. Called by the native module."""
    if isinstance(error, OutOfMemoryError):
        error.requested = error.requested or nbytes
        error.held = "\n".join((memory_summary(), *_largest()))


def _largest() -> Iterator[str]:
    """Yield the lines that say who holds the most."""
    rows = _core._largest(_MOST)
    if rows:
        yield "the largest allocations"
    for size, address, kind, ordinal, line in rows:
        where = f"device {ordinal}" if kind == "device" else f"{kind} memory"
        made = f", made at {line}" if line else ""
        yield f"  {size_text(size):<12}{where}, {address:#x}{made}"


def _pools_of(device: Device, reset: bool = False) -> Iterator[Use]:
    _ = device.memory_resource  # is made now, and listed
    for number, pool in _listed(device):
        kind = "managed pool" if isinstance(pool, ManagedMemoryResource) else "pool"
        name = (kind, f" {number}") if number else ("default pool", "")
        yield from _use_of(pool, *name, reset)
    of_graphs = device.graph_memory.statistics
    if of_graphs.reserved_high:
        if reset:
            device.graph_memory.reset_high_water()
        yield Use("graphs", *astuple(of_graphs))


def _listed(device: Device | None) -> list[tuple[int, _Pooled]]:
    """Return the open pools of a device, or of no device, by their numbers."""
    refs = _pools.keyrefs()  # at once: other threads make pools meanwhile
    pools = [pool for ref in refs if (pool := ref()) is not None and pool.device == device]
    # Several objects may be over the default pool.
    return sorted({_pools[pool]: pool for pool in pools if not pool.is_closed}.items())


def _use_of(pool: _Pooled, name: str, number: str, reset: bool) -> Iterator[Use]:
    try:
        s = pool.statistics
        if reset:
            pool.reset_high_water()
    except ClosedError:  # by another thread, meanwhile
        return
    yield Use(name, s.used, s.used_high, s.reserved, s.reserved_high, number)


def _on_host(reset: bool = False) -> Iterator[Use]:
    for number, pool in _listed(None):
        yield from _use_of(pool, "pinned pool", f" {number}", reset)


def _without_pool(reset: bool = False) -> Iterator[Use]:
    for kind, _, now, high in _core._tallies(reset):
        if high:
            yield Use(_KINDS[kind], now, high)


def _kept_by_graphs() -> Iterator[Use]:
    if "cudago._graph.graph" not in sys.modules:  # no graph was made yet
        return
    with late:
        from .._graph.who import kept_bytes

    for where, nbytes in sorted(kept_bytes().items()):
        yield Use(_KINDS.get(where, where), nbytes)
