# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The checks of the simulated driver.

Always on are those of addresses: an access out of bounds, of freed memory or of an odd address
stops the kernel, and a graph whose operands lie in freed memory is refused before it runs. `check`
switches on those that cost more::

    with cudago.sim.check("races", "uninitialized"):
        cudago.launch(stream, config, kernel, x, y)
        stream.sync()                       # raises CheckError if anything was found

They are part of the simulated driver; on NVIDIA's, use ``compute-sanitizer``.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from . import _core
from ._device import Device
from .errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["CheckError", "cancel", "check", "reports"]


@contextmanager
def check(
    *names: Literal["races", "uninitialized", "host", "all"], raises: bool = True
) -> Generator[list[str], None, None]:
    """Switch checks on for the work that is queued in a ``with`` block.

    Parameters
    ----------
    *names : str
        Which checks; all of them if none is named.

        - ``"races"``: two accesses of the same bytes, one of which writes, that nothing orders. In
          shared memory, between threads without a barrier or ``__syncwarp``; in global memory also
          between blocks, and between launches, copies and graph nodes without a common stream, an
          event or an edge. Also barriers that only a part of a warp executes.
        - ``"uninitialized"``: reads of device memory that was allocated in the block, or another
          one like it, and that nobody wrote; reads of shared memory that the block of threads has
          not written, and of local memory and registers that the thread has not written.
        - ``"host"``: Python's access to memory that a stream may still write, as far as cudago sees
          it: opening a buffer or exchanging a tensor. Only together with ``"races"``.

    raises : bool
        Whether what is found is an exception. If not, it is only collected.

    Yields
    ------
    list of str
        Filled with the reports when the block ends.

    Raises
    ------
    CheckError
        In the block, from the next call that waits for the work; at its end, which waits for all
        devices, if it was not raised before. The context stays usable, and the work was done.
    UnsupportedError
        On NVIDIA's driver.
    ValueError
        If a name is unknown.

    Notes
    -----
    Blocks nest; the inner one decides. Work that was queued before the block is not checked.

    Examples
    --------
    >>> with cudago.sim.check("uninitialized", raises=False) as found:
    ...     buffer = device.allocate(64, stream=stream)
    ...     buffer.copy_to(bytearray(64), stream=stream)
    >>> len(found)
    1
    """
    wanted = ",".join(names) or "all"
    before = _core._set_checks(wanted if raises else wanted + ",collect")
    reports()  # of others
    found: list[str] = []
    try:
        yield found
        _wait()
    finally:
        _core._set_checks(before)
        found += reports()


def _wait() -> None:
    """Wait for all devices, which raises what was found and not raised yet."""
    for device in Device.all():
        device.sync()


def reports() -> list[str]:
    """Return what checks have found since the last call, raised or not.

    Returns
    -------
    list of str
        One report for each finding. Empty on a driver without checks.
    """
    return list(json.loads(_core._take_reports()))


def cancel() -> None:
    """End the kernels that run now, such as one that loops for ever.

    What was canceled is reported by the next wait, as `CheckError`. The device stays usable, and
    the memory that the kernel was writing is in an undefined state. Ctrl-C during a wait does the
    same, and says with the `KeyboardInterrupt` what was canceled.

    Raises
    ------
    UnsupportedError
        On NVIDIA's driver, where only the end of the process ends a kernel.
    """
    _core._cancel_kernels()


_core._set_package(str(Path(__file__).parent))
