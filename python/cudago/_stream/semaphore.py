# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Semaphores of other APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .. import _core
from .._native import final, number_text
from .._ordinal import device_at
from ..errors import UnsupportedError

if TYPE_CHECKING:
    from .._memory.device import Device
    from ..typing import FileDescriptorLike

__all__ = ["ExternalSemaphore"]

# Those that CUDA has and Linux has not, or that need objects of other libraries.
_OTHERS: tuple[str, ...] = (
    "opaque_win32",
    "opaque_win32_kmt",
    "d3d12_fence",
    "d3d11_fence",
    "nvscisync",
    "d3d11_keyed_mutex",
    "d3d11_keyed_mutex_kmt",
    "timeline_win32",
)


def descriptor_of(fd: FileDescriptorLike) -> int:
    """Return the number of a file descriptor, or of an object that has one."""
    fileno = getattr(fd, "fileno", None)
    number = fd if fileno is None else fileno()
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"fd must be a file descriptor, not {type(fd).__name__}")
    if not 0 <= number < 1 << 31:
        raise ValueError(f"fd must be an open file descriptor, got {number_text(number)}")
    return number


@final
class ExternalSemaphore(_core.ExternalSemaphore):
    """A semaphore of another API, such as Vulkan, that streams signal and wait for.

    Created by `from_fd`. `Stream.signal` and `Stream.wait` use it, and so do nodes of graphs:
    `Graph.signal`, `Graph.wait`. A context manager: leaving the ``with`` block closes it.

    Notes
    -----
    The work that uses it keeps it: closing only ends your use of it, and graphs keep it as long as
    they can run.

    Examples
    --------
    >>> exported = cudago.sim.create_semaphore()  # by Vulkan, on a GPU
    >>> done = cudago.ExternalSemaphore.from_fd(device, exported)
    >>> stream.signal(done, 1)
    >>> stream.sync()
    >>> exported.value
    1
    """

    __slots__ = ()

    @classmethod
    def from_fd(
        cls,
        device: Device,
        fd: FileDescriptorLike,
        *,
        kind: Literal["timeline", "opaque"] = "timeline",
    ) -> ExternalSemaphore:
        """Import the semaphore that a file descriptor is of.

        Parameters
        ----------
        device : Device
            The device whose streams will use it.
        fd : int, or object with ``fileno``
            What the other API exported, such as ``vkGetSemaphoreFdKHR``. It stays yours: close it
            when you like.
        kind : {"timeline", "opaque"}
            A timeline has a value that grows: a signal sets it, a wait is for a value at least as
            great. An opaque semaphore is signaled or not, and a wait undoes the signal. The other
            API must have created the same.

        Returns
        -------
        ExternalSemaphore
            The same semaphore.

        Raises
        ------
        CUDAError
            If the driver imports no such thing. The simulated driver takes what
            `cudago.sim.create_semaphore` made, and nothing else.
        UnsupportedError
            For kinds of semaphore that Linux does not have.
        ValueError
            If `fd` is not open, or there is no such kind.

        References
        ----------
        ``cuImportExternalSemaphore``, with ``CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD`` and
        ``CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD``
        """
        if kind in _OTHERS:
            raise UnsupportedError(
                f"cuImportExternalSemaphore: semaphores of kind {kind!r} are not supported on "
                'Linux, only "timeline" and "opaque"'
            )
        if kind not in ("timeline", "opaque"):
            raise ValueError(f'kind must be "timeline" or "opaque", got {kind!r}')
        made: ExternalSemaphore = _core._semaphore_import(
            device, descriptor_of(fd), kind == "timeline"
        )
        return made

    @property
    def device(self) -> Device:
        """The device that it was imported for."""
        return device_at(self._ordinal)

    def __repr__(self) -> str:
        kind = "timeline" if self.is_timeline else "opaque"
        if self.is_closed:
            return f"<cudago.ExternalSemaphore {kind}: closed>"
        return f"<cudago.ExternalSemaphore {kind} {self.handle:#x}>"


_core._set_class("ExternalSemaphore", ExternalSemaphore)
