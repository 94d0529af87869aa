# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Which driver the process uses."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TYPE_CHECKING, cast

from . import _core, _libraries
from ._gopy import api
from ._gopy_call import read, read_unopened
from ._import_at_exit import late

if TYPE_CHECKING:
    from .typing import DriverChoice, DriverName

__all__ = ["driver_name", "driver_version", "init", "live_objects"]

_CHOICES = ("auto", "nvidia", "sim")
_choice = threading.local()  # driver: the argument of init in this thread


def init(driver: DriverChoice = "auto") -> None:
    """Choose the driver and open it.

    This call is optional: the first use opens the driver that ``CUDAGO_DRIVER`` names, or
    ``"auto"``.

    Parameters
    ----------
    driver : {"auto", "nvidia", "sim"}
        ``"auto"`` uses NVIDIA's driver if it opens and has a device, and otherwise the simulated
        one, with a notice on the logger ``"cudago"``.

    Raises
    ------
    RuntimeError
        If the process already uses another driver.

    Notes
    -----
    Blocks until the driver is open.

    References
    ----------
    ``cuInit``
    """
    if driver not in _CHOICES:
        raise ValueError(f"driver must be one of {', '.join(map(repr, _CHOICES))}, got {driver!r}")
    _choice.driver = driver
    try:
        _core._open()
    finally:
        del _choice.driver
    # Another driver may have been opened earlier, or meanwhile by another thread.
    if driver not in ("auto", driver_name()):
        raise RuntimeError(
            f"the process already uses the driver {driver_name()!r}; "
            f"choose {driver!r} before first use"
        )


def driver_name() -> DriverName:
    """Return the name of the driver in use; opens it if necessary.

    Returns
    -------
    {"nvidia", "sim"}
        The driver's name.
    """
    return cast("DriverName", read(api.driver_name))


def driver_version() -> tuple[int, int]:
    """Return the CUDA version of the driver in use; opens it if necessary.

    Returns
    -------
    tuple of int
        As (major, minor), such as ``(13, 0)``.

    References
    ----------
    ``cuDriverGetVersion``
    """
    version = read(api.driver_version)
    return version // 1000, version % 1000 // 10


def live_objects() -> dict[str, int]:
    """Count the live objects of cudago, by kind; for leak tests.

    Returns
    -------
    dict of str to int
        ``{'Stream': 1, 'Buffer': 3, ...}``, without kinds that have none. ``Buffer`` counts
        allocations and foreign tensors that are held: by a buffer, a view, a graph or another
        library.

    See Also
    --------
    cudago.testing.no_leaks : Checks that a ``with`` block releases what it takes.

    Notes
    -----
    An object whose release waits for device work is counted until shortly after that work
    completes. What `Device.reset` has closed is counted until you close it too, or drop it.

    Examples
    --------
    >>> before = cudago.live_objects().get("Stream", 0)
    >>> with device.create_stream():
    ...     cudago.live_objects()["Stream"] - before
    1
    """
    counts = dict(json.loads(read_unopened(api.live_objects)))
    ours = sys.modules.get("cudago._tensor.strided")  # which nobody can close
    if ours and (held := ours.held()):
        counts["ObjectCode"] -= held
    return {kind: n for kind, n in counts.items() if n}


def _options() -> str:
    """Return the options with which the native module opens the driver."""
    driver = getattr(_choice, "driver", "") or os.environ.get("CUDAGO_DRIVER", "")
    if driver and driver not in _CHOICES:
        raise ValueError(
            f"CUDAGO_DRIVER must be one of {', '.join(map(repr, _CHOICES))}, got {driver!r}"
        )
    last = os.environ.get("CUDAGO_LAST_CALLS", "")
    if any("\ud800" <= c <= "\udfff" for c in last):
        raise ValueError(f"CUDAGO_LAST_CALLS must be a name in UTF-8, got {last!r}")
    folders = _libraries.folders()
    return json.dumps(
        {
            "driver": driver,
            "sim": os.environ.get("CUDAGO_SIM", ""),
            "nvrtc": _libraries.folders_of("libnvrtc", folders),
            "nvjitlink": _libraries.folders_of("libnvJitLink", folders),
            "nvvm": _libraries.folders_of("libnvvm", folders),
            "frozen": bool(getattr(sys, "frozen", False)),
            "trace": os.environ.get("CUDAGO_TRACE", "") not in ("", "0"),
            "last": last,
        }
    )


def _notice() -> str:
    """Return why the simulated driver was chosen; empty if that needs no notice."""
    return read(api.driver_notice)


def _opened() -> None:
    """Log the driver, and its notice once. Called by the native module."""
    if "logging" not in sys.modules:  # importing it takes longer than all else that is ours here
        _print_notice(_notice())
        return
    with late:
        import logging

    log = logging.getLogger("cudago")
    if log.isEnabledFor(logging.INFO):
        major, minor = driver_version()
        log.info("driver %s, CUDA %d.%d", driver_name(), major, minor)
    if not (notice := _notice()) or not log.isEnabledFor(logging.WARNING):
        return
    if log.hasHandlers():
        log.warning("%s", notice)
    else:
        _print_notice(notice)


def _print_notice(notice: str) -> None:
    """Do what logging's handler of last resort would, which does not name cudago."""
    if notice:
        print(f"cudago: {notice}", file=sys.stderr)
