# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a pool of memory, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PoolOptions", "PoolStatistics"]


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """Options for the pool of a `DeviceMemoryResource`.

    Parameters
    ----------
    release_threshold : int, optional
        Bytes that the pool keeps when a stream or the device is waited for, or an event whose work
        is not over; by default all. The driver rounds them up.
    max_size : int, optional
        Maximum size of the pool in bytes, at least 1; by default unlimited.
    reuse_follow_event_dependencies : bool
        Whether memory that was freed on another stream is reused, if events order the two streams.
    reuse_allow_opportunistic : bool
        Whether it is reused, if that free has already happened.
    reuse_allow_internal_dependencies : bool
        Whether it is reused by making the stream wait for that free.
    ipc_enabled : bool
        Whether other processes can import the pool: see
        `DeviceMemoryResource.get_allocation_handle`. Not for managed memory.
    """

    release_threshold: int | None = None
    max_size: int | None = None
    reuse_follow_event_dependencies: bool = True
    reuse_allow_opportunistic: bool = True
    reuse_allow_internal_dependencies: bool = True
    ipc_enabled: bool = False


@dataclass(frozen=True)
class PoolStatistics:
    """Memory use of a pool, in bytes.

    Parameters
    ----------
    used, used_high : int
        Bytes allocated from the pool: now, and the maximum so far.
    reserved, reserved_high : int
        Device memory that the pool holds: now, and the maximum so far.
    """

    used: int
    used_high: int
    reserved: int
    reserved_high: int
