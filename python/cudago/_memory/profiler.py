# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a profiler collects of a program."""

from __future__ import annotations

from .. import _core
from .._gopy import api
from .._gopy_call import read
from .device import Device

__all__ = ["profiler"]


class profiler(_core.Block):
    """Has a profiler collect a part of the program.

    Such as Nsight Systems with ``--capture-range=cudaProfilerApi``, which then waits for this.
    Without a profiler nothing happens, as on the simulated driver.

    Parameters
    ----------
    device : Device, optional
        Device whose context makes the call; by default the first. Profilers collect the work of
        all devices.

    See Also
    --------
    cudago.nvtx.range : Names a part of the program for a profiler.

    Notes
    -----
    Work that was queued before and runs meanwhile may be collected too; wait for it first. The end
    of a ``with`` block stops the profiler, also if another block inside or around it has done so.
    Blocks neither begin nor end while a stream is capturing.

    References
    ----------
    ``cuProfilerStart``, ``cuProfilerStop``

    Examples
    --------
    >>> with cudago.profiler():
    ...     t = cudago.zeros(4, stream=stream)
    ...     stream.sync()
    """

    __slots__ = ()

    def __init__(self, device: Device | None = None) -> None:
        of: Device = _device_of(device)
        self._plan((self.start, of), (self.stop, of))

    def __repr__(self) -> str:
        return "<cudago.profiler>"

    @staticmethod
    def start(device: Device | None = None) -> None:
        """Have the profiler begin to collect; if it does already, nothing happens.

        Parameters
        ----------
        device : Device, optional
            Device whose context makes the call; by default the first.

        Notes
        -----
        Not allowed while a stream is capturing.

        References
        ----------
        ``cuProfilerStart``
        """
        read(api.profile, _device_of(device).ordinal, True)

    @staticmethod
    def stop(device: Device | None = None) -> None:
        """Have the profiler stop collecting.

        Parameters
        ----------
        device : Device, optional
            Device whose context makes the call; by default the first.

        Notes
        -----
        Not allowed while a stream is capturing.

        References
        ----------
        ``cuProfilerStop``
        """
        read(api.profile, _device_of(device).ordinal, False)


def _device_of(device: Device | None) -> Device:
    if device is None:
        return Device()
    if not isinstance(device, Device):
        raise TypeError(f"device must be a Device, not {type(device).__name__}")
    return device
