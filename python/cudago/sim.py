# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the simulated driver, and what stands for another API beside it.

Address checks are always on: an access that is out of bounds, misaligned or to freed memory stops
the kernel, and a graph with operands in freed memory is refused before it runs. `check` switches on
the more expensive ones::

    with cudago.sim.check("races", "uninitialized"):
        cudago.launch(stream, config, kernel, x, y)
        stream.sync()                       # raises CheckError if anything was found

On NVIDIA's driver, use ``compute-sanitizer`` instead.

`create_semaphore` and `create_memory` make what another API, such as Vulkan, would export.
"""

from __future__ import annotations

import inspect
import json
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from . import _core
from ._memory.device import Device
from ._memory.exported import (
    ExportedMemory,
    ExportedSemaphore,
    create_memory,
    create_semaphore,
)
from .errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = [
    "CheckError",
    "ExportedMemory",
    "ExportedSemaphore",
    "cancel",
    "check",
    "create_memory",
    "create_semaphore",
    "reports",
]


_F = TypeVar("_F", bound="Callable[..., Any]")
_REFUSED: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (inspect.iscoroutinefunction, "an async function"),
    (inspect.isasyncgenfunction, "an async generator"),
    (inspect.isgeneratorfunction, "a generator"),
)


def check(
    *names: Literal["races", "uninitialized", "host", "all"], raises: bool = True
) -> AbstractContextManager[list[str]]:
    """Switch on checks for the work queued in a ``with`` block.

    Parameters
    ----------
    *names : str
        Checks to switch on; all of them if none is named.

        - ``"races"``: two accesses to the same bytes, at least one of them a write, that nothing
          orders. In shared memory, between threads without a barrier or ``__syncwarp``; in global
          memory also between blocks, and between launches, copies and graph nodes without a common
          stream, an event or an edge. Also barriers that only part of a warp executes.
        - ``"uninitialized"``: reads of device memory that was allocated in this block, or in
          another one like it, and never written; reads of shared memory that the thread block has
          not written, and of local memory and registers that the thread has not written.
        - ``"host"``: access from Python to memory that a stream may still write, where cudago sees
          it: opening a buffer or exchanging a tensor. Only together with ``"races"``.

    raises : bool
        Whether findings raise an exception. If not, they are only collected.

    Returns
    -------
    context manager
        Of a list of str, filled with the reports when the block ends. It decorates functions too,
        but not async ones and generators.

    Raises
    ------
    CheckError
        From the next call in the block that waits for the work, or else at the end of the block,
        which waits for all devices. The work was done, and the context stays usable.
    UnsupportedError
        On NVIDIA's driver.

    Notes
    -----
    Blocks nest, and those of threads and tasks overlap; the one that began last decides. Work
    queued before the block is not checked.

    Examples
    --------
    >>> with cudago.sim.check("uninitialized", raises=False) as found:
    ...     buffer = device.allocate(64, stream=stream)
    ...     buffer.copy_to(bytearray(64), stream=stream)
    >>> len(found)
    1
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"names of checks must be str, not {type(name)}")
    return _Checks(",".join(names) or "all", raises)


class _Checks(_core.Block, ContextDecorator):
    def __init__(self, wanted: str, raises: bool) -> None:
        self._given = wanted, raises
        self._found: list[str] = []
        text = wanted if raises else wanted + ",collect"
        self._plan((_core._set_checks, text), None, self._found)

    def __call__(self, func: _F) -> _F:
        for is_so, what in _REFUSED:
            if is_so(func):
                raise TypeError(
                    f"check decorates a function, not {what}, which runs only after its call: "
                    "write a with block in it"
                )
        return super().__call__(func)

    def _recreate_cm(self) -> Self:  # of ContextDecorator: a call of the function has its own block
        return type(self)(*self._given)

    def _entered(self) -> None:
        reports()  # discard earlier ones

    def _leaving(self, error: BaseException | None) -> None:
        if error is None:
            _wait()

    def _left(self) -> None:
        self._found += reports()


def _wait() -> None:
    """Wait for all devices, which raises findings that were not raised yet."""
    for device in Device.all():
        device.sync()


def reports() -> list[str]:
    """Return the findings of checks since the last call, raised or not.

    Returns
    -------
    list of str
        One report per finding. Empty on a driver without checks.
    """
    return list(json.loads(_core._take_reports()))


def cancel() -> None:
    """Stop the kernels that are running, such as one in an endless loop.

    The next wait reports the canceled kernels with a `CheckError`. The device stays usable; memory
    that a kernel was writing is in an undefined state. Ctrl-C during a wait does the same, and the
    `KeyboardInterrupt` says what was canceled.

    Raises
    ------
    UnsupportedError
        On NVIDIA's driver, where a kernel ends only with the process.
    """
    _core._cancel_kernels()
