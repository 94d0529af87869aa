# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Who holds how much memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._ordinal import devices_in_use
from ..errors import OutOfMemoryError
from .resource import DeviceMemoryResource, _pools

if TYPE_CHECKING:
    from .device import Device

__all__ = ["memory_summary"]

_UNITS = "bytes", "KiB", "MiB", "GiB", "TiB"
_KINDS = {
    "pinned": "pinned memory",
    "registered": "pinned in place",
    "managed": "managed memory",
    "virtual": "virtual memory",
}
_ROW = "  {:<28}{:>14}{:>14}{:>14}{:>14}"


def _size(nbytes: float) -> str:
    unit = 0
    while nbytes >= 1024 and unit < len(_UNITS) - 1:
        nbytes, unit = nbytes / 1024, unit + 1
    return f"{nbytes:.0f} {_UNITS[0]}" if not unit else f"{nbytes:.1f} {_UNITS[unit]}"


def memory_summary(*, reset: bool = False) -> str:
    """Return a table of the memory that is allocated, by device and resource.

    Parameters
    ----------
    reset : bool
        Whether the maxima start anew after this call.

    Returns
    -------
    str
        For each device in use its free memory and its pools: bytes live and reserved, and the most
        so far. Then what has no pool: pinned, managed and virtual memory.

    See Also
    --------
    DeviceMemoryResource.statistics : The same numbers of one pool.
    cudago.debug.leaks : Lists the objects.

    Notes
    -----
    A pool's numbers are the driver's, and count what other libraries allocate from it. Memory
    without a pool is counted until its last holder lets go.

    References
    ----------
    ``cuMemGetInfo_v2``, ``cuMemPoolGetAttribute``

    Examples
    --------
    >>> print(cudago.memory_summary())  # doctest: +ELLIPSIS
    device 0: ...
    """
    lines: list[str] = []
    for device in sorted(devices_in_use(), key=lambda d: d.ordinal):
        lines += _device_lines(device, reset)
    rows = [
        _ROW.format(_KINDS[kind], _size(now), _size(high), "", "")
        for kind, _, now, high in _core._tallies(reset)
        if high
    ]
    lines += ["without a pool", *rows] if rows else []
    return "\n".join(line.rstrip() for line in lines)


def _explain(error: OutOfMemoryError) -> None:
    """Add to an error who holds what. Called by the native module."""
    if isinstance(error, OutOfMemoryError):
        error.held = memory_summary()


def _device_lines(device: Device, reset: bool) -> list[str]:
    lines = [
        f"device {device.ordinal}: {device.name}, {_size(device.total_memory)}, "
        f"{_size(device.free_memory)} free",
        _ROW.format("", "live", "most", "reserved", "most"),
    ]
    own = device.memory_resource
    pools = [p for p in _pools if not p.is_closed and p.device == device]
    if isinstance(own, DeviceMemoryResource) and own not in pools:
        pools.append(own)
    for pool in pools:
        name = "default pool" if pool is own else "pool"
        s = pool.statistics
        numbers = s.used, s.used_high, s.reserved, s.reserved_high
        lines.append(_ROW.format(name, *map(_size, numbers)))
        if reset:
            pool.reset_high_water()
    return lines
