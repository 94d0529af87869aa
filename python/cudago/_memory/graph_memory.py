# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of the allocation nodes of graphs, through the cold half of the API."""

from __future__ import annotations

import json

from .._gopy import api
from .._gopy_call import read
from .._native import or_closed
from .pool import PoolStatistics

__all__ = ["GraphMemory"]


class GraphMemory:
    """The memory that a device has for the allocations of all graphs of the process.

    Obtained from `Device.graph_memory`.

    Notes
    -----
    The driver maps memory to a graph at its first launch, and unmaps it once the graph and its
    executables are gone. Graphs that cannot run at the same time may share it. What graphs no
    longer use remains reserved for others until `trim`.

    References
    ----------
    ``cuDeviceGetGraphMemAttribute``

    Examples
    --------
    >>> graph = cudago.Graph(device)
    >>> scratch = graph.allocate(1 << 20)
    >>> node = scratch.memset(scratch.buffer, 0).free(scratch.buffer)
    >>> graph.instantiate().launch(stream)
    >>> device.graph_memory.statistics.used >= 1 << 20
    True
    """

    __slots__ = ("_ordinal",)

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    @property
    def statistics(self) -> PoolStatistics:
        """Bytes that graphs use, and that are reserved for them: now, and the maxima so far."""
        m = json.loads(read(api.device_graph_memory, self._ordinal))
        return PoolStatistics(m["Used"], m["UsedHigh"], m["Reserved"], m["ReservedHigh"])

    def trim(self) -> None:
        """Return what is reserved and not used by graphs to the device.

        References
        ----------
        ``cuDeviceGraphMemTrim``

        Examples
        --------
        >>> device.graph_memory.trim()
        """
        read(api.trim_graph_memory, self._ordinal)

    def reset_high_water(self) -> None:
        """Start the maxima of `statistics` anew, from what there is now.

        References
        ----------
        ``cuDeviceSetGraphMemAttribute``

        Examples
        --------
        >>> device.graph_memory.reset_high_water()
        >>> sizes = device.graph_memory.statistics
        >>> sizes.used_high == sizes.used
        True
        """
        read(api.reset_graph_memory_high, self._ordinal)

    @or_closed
    def __repr__(self) -> str:
        sizes = self.statistics
        return f"<GraphMemory of device {self._ordinal}: {sizes.used} of {sizes.reserved} bytes>"
