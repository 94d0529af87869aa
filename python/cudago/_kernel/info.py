# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a kernel needs, in one object."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["KernelInfo"]


@dataclass(frozen=True, kw_only=True)
class KernelInfo:
    """What a kernel needs of a device, and what it was compiled for. Obtained from `Kernel.info`.

    Parameters
    ----------
    name : str
        The kernel's name.
    device : int
        The number of the device that this is about.
    registers : int
        Registers per thread.
    shared, local, constant : int
        Static shared memory per block, local memory per thread, and constant memory, in bytes.
    spills : int or None
        Bytes per thread that the compiler stores to local memory for want of registers; None if
        that is not known: the kernel uses local memory, and the compiler did not say what for. It
        says so with ``--ptxas-options=-v``, unless NVRTC takes the code from its own cache.
    max_threads : int
        Largest block that the kernel can run with, in threads.
    max_shared : int
        Dynamic shared memory that a launch may request, in bytes.
    ptx_version, binary_version : int
        Versions that it was compiled for, such as 75 for 7.5.

    Examples
    --------
    >>> code = cudago.Program('extern "C" __global__ void f() {}').compile()
    >>> info = code["f"].info()
    >>> info.name, info.shared, info.spills
    ('f', 0, 0)
    """

    name: str
    device: int
    registers: int
    shared: int
    local: int
    constant: int
    spills: int | None
    max_threads: int
    max_shared: int
    ptx_version: int
    binary_version: int


# What ptxas writes with -v, one kernel after the other; the name is the symbol.
_SPILLS = re.compile(
    r"Function properties for (?P<symbol>\S+)\n[^\n]*?"
    r"\d+ bytes stack frame, (?P<stores>\d+) bytes spill stores"
)


def spilled(log: str, symbol: str) -> int | None:
    """Return what a compiler's output says of a kernel: see `KernelInfo`."""
    for found in _SPILLS.finditer(log):
        if found["symbol"] == symbol:
            return int(found["stores"])
    return None
