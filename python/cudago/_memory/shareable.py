# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What resources have whose pools processes can share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

from .._native import not_pickled, unnamed
from ..errors import ClosedError

if TYPE_CHECKING:
    from .ipc import IPCAllocationHandle


@unnamed
class Shareable:
    """A resource with a pool that other processes may import, or that they share."""

    __slots__ = ()

    if TYPE_CHECKING:
        _handle: IPCAllocationHandle | None
        _is_imported: bool
        _is_shared: bool

    def close(self) -> None:
        """Close the resource; its buffers stay valid. Closing twice is fine.

        An `IPCAllocationHandle` that you hold stays open.

        Notes
        -----
        Its memory goes back to the system once the work has ended that was in its streams. The
        driver's pool is kept for the next resource with the same options.

        References
        ----------
        ``cuMemPoolTrimTo``
        """
        cast("Any", super()).close()
        cast("Any", self)._handle = None  # a slot of the subclass

    def __exit__(self, *args: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        not_pickled(self, "a pool that was created with ipc_enabled")

    @property
    def is_imported(self) -> bool:
        """Whether another process created the pool: see `from_allocation_handle`."""
        return self._is_imported

    @property
    def is_ipc_enabled(self) -> bool:
        """Whether other processes can import the pool from this one."""
        return self._is_shared

    def get_allocation_handle(self) -> IPCAllocationHandle:
        """Return what another process needs to import the pool.

        Returns
        -------
        IPCAllocationHandle
            A new one, with file descriptors of its own: close it when it was sent.
            ``multiprocessing`` sends it, or the pool itself.

        Raises
        ------
        ValueError
            If the pool was created without ``ipc_enabled``, or by another process.

        References
        ----------
        ``cuMemPoolExportToShareableHandle``
        """
        handle = self._own_handle()._copy()
        if handle.is_closed:  # another thread has closed the resource meanwhile
            raise ClosedError("memory resource is closed")
        return handle

    def _own_handle(self) -> IPCAllocationHandle:
        """Return the handle that nobody else closes."""
        if not self._is_shared:
            whose = "by another process" if self._is_imported else "without ipc_enabled"
            raise ValueError(f"the pool cannot be shared: it was created {whose}")
        if self._handle is None or cast("Any", self).is_closed:
            raise ClosedError("memory resource is closed")
        return self._handle
