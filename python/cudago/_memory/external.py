# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of other APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._native import final, whole
from .._ordinal import device_at
from .._stream.semaphore import descriptor_of

if TYPE_CHECKING:
    from ..typing import FileDescriptorLike, StreamLike
    from .buffer import Buffer
    from .device import Device

__all__ = ["ExternalMemory"]


@final
class ExternalMemory(_core.ExternalMemory):
    """Memory of another API, such as Vulkan, that buffers can be mapped over.

    Created by `from_fd`. A context manager: leaving the ``with`` block closes it.

    Notes
    -----
    Its buffers keep it, so it can be closed once they are mapped. Order between the APIs is yours:
    see `ExternalSemaphore`.
    """

    __slots__ = ()

    @classmethod
    def from_fd(
        cls, device: Device, fd: FileDescriptorLike, size: int, *, dedicated: bool = False
    ) -> ExternalMemory:
        """Import the memory that a file descriptor is of.

        Parameters
        ----------
        device : Device
            The device that the memory is on, or that is to use it.
        fd : int, or object with ``fileno``
            What the other API exported, such as ``vkGetMemoryFdKHR``. It stays yours: close it when
            you like.
        size : int
            Size of the memory in bytes, as the other API allocated it.
        dedicated : bool
            Whether the other API allocated it for one resource, as
            ``VkMemoryDedicatedAllocateInfo`` does.

        Returns
        -------
        ExternalMemory
            The same memory.

        Raises
        ------
        CUDAError
            If the driver imports no such thing. The simulated driver takes files in memory, such as
            `cudago.sim.create_memory` makes, and nothing else.
        ValueError
            If `fd` is not open, or there are no bytes.

        References
        ----------
        ``cuImportExternalMemory``, with ``CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD``
        """
        made: ExternalMemory = _core._external_import(
            device, descriptor_of(fd), size, bool(dedicated)
        )
        return made

    @property
    def device(self) -> Device:
        """The device that it was imported for."""
        return device_at(self._ordinal)

    def map(self, offset: int = 0, size: int | None = None, *, stream: StreamLike) -> Buffer:
        """Map a part of the memory.

        Parameters
        ----------
        offset : int
            Where the part begins, in bytes. The simulated driver maps from multiples of 4096.
        size : int, optional
            Bytes of the part; by default up to the end.
        stream : Stream
            The buffer is unmapped after the work that is in it then.

        Returns
        -------
        Buffer
            Device memory: it keeps this object's memory, also if that is closed.

        Raises
        ------
        ValueError
            If the part is empty or not inside the memory, or `stream` is capturing or of another
            device.
        CUDAError
            If the driver refuses to map it.

        Notes
        -----
        The buffer can be used in every stream of its device at once, and by no other device.
        Unmapping waits for all streams of ours that have used it, but for nobody else's.

        References
        ----------
        ``cuExternalMemoryGetMappedBuffer``, ``cuMemFree``

        Examples
        --------
        >>> exported = cudago.sim.create_memory(8192)  # by Vulkan, on a GPU
        >>> memory = cudago.ExternalMemory.from_fd(device, exported, 8192)
        >>> memory.map(4096, stream=stream).size
        4096
        """
        begin = whole(offset, "offset")
        return self._map(begin, max(self.size - begin, 0) if size is None else size, stream)

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.ExternalMemory: closed>"
        return f"<cudago.ExternalMemory of {self.size} bytes on device {self._ordinal}>"


_core._set_class("ExternalMemory", ExternalMemory)
