# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is said of an allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core

if TYPE_CHECKING:
    from .buffer import Buffer
    from .device import Device

__all__ = ["Allocation"]


class Allocation:
    """What a memory hook and a `TrackingMemoryResource` say of memory. Keeps nothing alive.

    Attributes
    ----------
    handle : int
        Address.
    size : int
        Size in bytes, as asked for.
    kind : str
        Kind of the memory, as `Buffer.kind`.
    device : Device or None
        Device that the memory is on; None for host memory.
    site : str
        Where the program made it, as ``file:line``.

    Notes
    -----
    Each allocation has one such object, which equals only itself.

    Examples
    --------
    >>> tracking = cudago.TrackingMemoryResource(device.memory_resource)
    >>> x = cudago.zeros(4, stream=stream, resource=tracking)
    >>> tracking.allocations[0].size
    16
    """

    __slots__ = ("device", "handle", "kind", "site", "size")
    handle: int
    size: int
    kind: str
    device: Device | None
    site: str

    @classmethod
    def _of(cls, buffer: Buffer) -> Allocation:
        made = object.__new__(cls)
        made.handle, made.size, made.kind = buffer.handle, buffer.size, buffer.kind
        made.device, made.site = buffer.device, _core._site()
        return made

    def __new__(cls) -> Allocation:
        """Refuse: allocations are made by memory resources."""
        raise TypeError("an Allocation describes memory: it is not made by itself")

    def __repr__(self) -> str:
        where = f" at {self.site}" if self.site else ""
        return f"<cudago.Allocation {self.handle:#x}: {self.size} bytes, {self.kind}{where}>"
