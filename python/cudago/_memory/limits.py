# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of a device that can be changed, through the cold half of the API."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

from .. import _zconstants as _z
from .._gopy import api
from .._gopy_call import read
from .._native import number_text
from ..errors import CUDAError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DeviceLimits"]

_MOST = (1 << 63) - 1  # of an int of the cold API


class DeviceLimits:
    """The limits of a device that can be changed, for the whole process.

    Obtained from `Device.limits`. The driver rounds and clamps what is set: read a limit to see
    what it has become. `Device.reset` restores all limits.

    Raises
    ------
    UnsupportedError
        If the device or the driver does not have the limit.

    Notes
    -----
    Setting a limit may block until all work of the device is done. Kernels on
    the simulated driver are not held to limits.

    References
    ----------
    ``cuCtxGetLimit``, ``cuCtxSetLimit``

    Examples
    --------
    >>> device.limits.malloc_heap_size = 64 << 20
    >>> device.limits.malloc_heap_size >> 20
    64
    """

    __slots__ = ("_ordinal",)

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    @property
    def stack_size(self) -> int:
        """Bytes of stack of each thread. The driver enlarges it for kernels that need more."""
        return self._get(_z.CU_LIMIT_STACK_SIZE, "stack_size")

    @stack_size.setter
    def stack_size(self, value: SupportsIndex) -> None:
        self._set(_z.CU_LIMIT_STACK_SIZE, "stack_size", value)

    @property
    def printf_fifo_size(self) -> int:
        """Bytes of the buffer of ``printf`` in kernels; what does not fit is lost.

        Can be set until a kernel that calls ``printf`` is launched.
        """
        return self._get(_z.CU_LIMIT_PRINTF_FIFO_SIZE, "printf_fifo_size")

    @printf_fifo_size.setter
    def printf_fifo_size(self, value: SupportsIndex) -> None:
        self._set(_z.CU_LIMIT_PRINTF_FIFO_SIZE, "printf_fifo_size", value)

    @property
    def malloc_heap_size(self) -> int:
        """Bytes of the heap of ``malloc`` in kernels.

        Can be set until a kernel that calls ``malloc`` or ``free`` is launched.
        """
        return self._get(_z.CU_LIMIT_MALLOC_HEAP_SIZE, "malloc_heap_size")

    @malloc_heap_size.setter
    def malloc_heap_size(self, value: SupportsIndex) -> None:
        self._set(_z.CU_LIMIT_MALLOC_HEAP_SIZE, "malloc_heap_size", value)

    @property
    def dev_runtime_sync_depth(self) -> int:
        """The deepest nesting of launches at which a kernel can wait for launches of its own.

        Unsupported from compute capability 9.0 on.
        """
        return self._get(_z.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, "dev_runtime_sync_depth")

    @dev_runtime_sync_depth.setter
    def dev_runtime_sync_depth(self, value: SupportsIndex) -> None:
        self._set(_z.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, "dev_runtime_sync_depth", value)

    @property
    def dev_runtime_pending_launch_count(self) -> int:
        """The most launches made by kernels that can be pending."""
        return self._get(
            _z.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, "dev_runtime_pending_launch_count"
        )

    @dev_runtime_pending_launch_count.setter
    def dev_runtime_pending_launch_count(self, value: SupportsIndex) -> None:
        self._set(
            _z.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, "dev_runtime_pending_launch_count", value
        )

    @property
    def max_l2_fetch_granularity(self) -> int:
        """The most bytes fetched into the L2 cache at once, 0 to 128; a hint."""
        return self._get(_z.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, "max_l2_fetch_granularity")

    @max_l2_fetch_granularity.setter
    def max_l2_fetch_granularity(self, value: SupportsIndex) -> None:
        self._set(_z.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, "max_l2_fetch_granularity", value)

    @property
    def persisting_l2_cache_size(self) -> int:
        """Bytes of the L2 cache set aside for persisting accesses."""
        return self._get(_z.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, "persisting_l2_cache_size")

    @persisting_l2_cache_size.setter
    def persisting_l2_cache_size(self, value: SupportsIndex) -> None:
        self._set(_z.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, "persisting_l2_cache_size", value)

    def _get(self, limit: int, name: str) -> int:
        return _asked(lambda: read(api.device_limit, self._ordinal, limit), name)

    def _set(self, limit: int, name: str, value: SupportsIndex) -> None:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        number = operator.index(value)
        if not 0 <= number <= _MOST:
            raise ValueError(f"{name} must be 0 to {_MOST}, got {number_text(number)}")
        _asked(lambda: read(api.set_device_limit, self._ordinal, limit, number), name)

    def __repr__(self) -> str:
        return f"<DeviceLimits of device {self._ordinal}>"


def _asked(ask: Callable[[], int], name: str) -> int:
    """Ask for a limit, and say by its name that there is none."""
    try:
        return int(ask())
    except CUDAError as e:
        if e.code != _z.CUDA_ERROR_UNSUPPORTED_LIMIT:
            raise
        raise UnsupportedError(
            f"this device or its driver does not have the limit {name!r}"
        ) from None
