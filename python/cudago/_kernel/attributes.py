# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What the driver knows of a kernel on a device, and may be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._native import or_closed

if TYPE_CHECKING:
    from .._memory.device import Device
    from .kernel import Kernel

__all__ = ["KernelAttributes"]

_ATTRIBUTES = {
    "max_threads_per_block": 0,
    "shared_size": 1,
    "const_size": 2,
    "local_size": 3,
    "register_count": 4,
    "ptx_version": 5,
    "binary_version": 6,
    "cache_mode_ca": 7,
    "max_dynamic_shared_size": 8,
    "shared_memory_preference": 9,
}
_SETTABLE = ("max_dynamic_shared_size", "shared_memory_preference")


class KernelAttributes:
    """Attributes of a kernel on one device; sizes in bytes. The last two can be set.

    Obtained from `Kernel.attributes` and `Kernel.attributes_on`.

    Attributes
    ----------
    max_threads_per_block : int
        Largest block that the kernel can run with, in threads.
    shared_size, const_size, local_size : int
        Static shared memory per block, constant memory, and local memory per thread.
    register_count : int
        Registers per thread.
    ptx_version, binary_version : int
        Versions that it was compiled for, such as 75 for 7.5.
    cache_mode_ca : int
        Whether it was compiled to cache global loads in L1.
    max_dynamic_shared_size : int
        Dynamic shared memory that a launch may request.
    shared_memory_preference : int
        Percentage of the L1 cache to use as shared memory; -1 leaves it to the driver.

    References
    ----------
    ``cuFuncGetAttribute``, ``cuFuncSetAttribute``
    """

    __slots__ = ("_device", "_kernel")
    _device: Device
    _kernel: Kernel

    def __init__(self, kernel: Kernel, device: Device) -> None:
        object.__setattr__(self, "_kernel", kernel)
        object.__setattr__(self, "_device", device)

    def __reduce__(self) -> tuple[type[KernelAttributes], tuple[Kernel, Device]]:
        return KernelAttributes, (self._kernel, self._device)

    if TYPE_CHECKING:

        @property
        def max_threads_per_block(self) -> int: ...
        @property
        def shared_size(self) -> int: ...
        @property
        def const_size(self) -> int: ...
        @property
        def local_size(self) -> int: ...
        @property
        def register_count(self) -> int: ...
        @property
        def ptx_version(self) -> int: ...
        @property
        def binary_version(self) -> int: ...
        @property
        def cache_mode_ca(self) -> int: ...
        @property
        def max_dynamic_shared_size(self) -> int: ...
        @max_dynamic_shared_size.setter
        def max_dynamic_shared_size(self, value: int) -> None: ...
        @property
        def shared_memory_preference(self) -> int: ...
        @shared_memory_preference.setter
        def shared_memory_preference(self, value: int) -> None: ...
    else:  # type checkers would accept any name

        def __getattr__(self, name: str) -> int:
            if name not in _ATTRIBUTES:
                raise AttributeError(
                    f"a kernel has no attribute {name!r}; it has {', '.join(_ATTRIBUTES)}"
                )
            return int(self._kernel._attribute(self._device, _ATTRIBUTES[name]))

        def __setattr__(self, name: str, value: int) -> None:
            if name not in _SETTABLE:
                raise AttributeError(f"{name!r} cannot be set; {' and '.join(_SETTABLE)} can")
            self._kernel._set_attribute(self._device, _ATTRIBUTES[name], value)

    def __dir__(self) -> list[str]:
        return list(_ATTRIBUTES)

    @or_closed
    def __repr__(self) -> str:
        return "KernelAttributes(" + ", ".join(f"{n}={getattr(self, n)}" for n in _ATTRIBUTES) + ")"
