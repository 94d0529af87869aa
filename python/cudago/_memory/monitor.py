# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a device is doing now, as NVIDIA's management library (NVML) tells it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from .._driver import driver_name
from .._gopy import api
from .._gopy_call import read
from ..errors import UnsupportedError

__all__ = ["DeviceMonitor", "DeviceProcess"]

_ready: list[Any] = []  # NVIDIA's package, once its library is initialized


@dataclass(frozen=True)
class DeviceProcess:
    """A process that computes on a device.

    Parameters
    ----------
    pid : int
        Its number, in the process namespace of the driver.
    used_memory : int or None
        Bytes of device memory that it uses; None if the driver does not tell.
    """

    pid: int
    used_memory: int | None


class DeviceMonitor:
    """Sensors and counters of a device, each read when it is asked for.

    Obtained from `Device.monitor`. The numbers are those of ``nvidia-smi``: of the whole device,
    whichever process uses it. They come from NVIDIA's package ``nvidia-ml-py``, which
    ``pip install 'cudago[nvml]'`` brings along; it is loaded at the first use.

    Raises
    ------
    UnsupportedError
        If the package or its library is not there, if the device lacks what is asked for, or on the
        simulated driver, whose devices have no sensors.

    Notes
    -----
    Reading waits for no work, and is possible while a stream captures. Other errors of NVML are
    the package's own: ``pynvml.NVMLError``.

    Examples
    --------
    >>> try:
    ...     busy = device.monitor.utilization_percent
    ... except cudago.UnsupportedError:
    ...     busy = None  # no NVML, or a simulated device
    """

    __slots__ = ("_ordinal",)

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    @property
    def temperature_celsius(self) -> int:
        """Temperature of the chip, in degrees Celsius."""
        return int(self._ask("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"))

    @property
    def power_watts(self) -> float:
        """Power that the board draws now."""
        return int(self._ask("nvmlDeviceGetPowerUsage")) / 1000

    @property
    def power_limit_watts(self) -> float:
        """Power that the board may draw."""
        return int(self._ask("nvmlDeviceGetEnforcedPowerLimit")) / 1000

    @property
    def energy_joules(self) -> float:
        """Energy used since the driver was loaded. A difference of two readings costs a part."""
        return int(self._ask("nvmlDeviceGetTotalEnergyConsumption")) / 1000

    @property
    def utilization_percent(self) -> int:
        """Share of the last sample period in which a kernel was running."""
        return int(self._ask("nvmlDeviceGetUtilizationRates").gpu)

    @property
    def memory_utilization_percent(self) -> int:
        """Share of the last sample period in which memory was read or written."""
        return int(self._ask("nvmlDeviceGetUtilizationRates").memory)

    @property
    def used_memory(self) -> int:
        """Bytes of device memory that all processes use, and the driver."""
        return int(self._ask("nvmlDeviceGetMemoryInfo").used)

    @property
    def clock_mhz(self) -> int:
        """Clock of the multiprocessors now, in MHz."""
        return int(self._ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"))

    @property
    def memory_clock_mhz(self) -> int:
        """Clock of the memory now, in MHz."""
        return int(self._ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM"))

    @property
    def processes(self) -> tuple[DeviceProcess, ...]:
        """The processes that compute on the device."""
        found = self._ask("nvmlDeviceGetComputeRunningProcesses")
        return tuple(
            DeviceProcess(int(p.pid), None if p.usedGpuMemory is None else int(p.usedGpuMemory))
            for p in found
        )

    @property
    def driver_version(self) -> str:
        """Version of the kernel driver, such as ``"580.95.05"``."""
        version = self._call(_library().nvmlSystemGetDriverVersion)
        return version.decode() if isinstance(version, bytes) else str(version)

    def _ask(self, call: str, constant: str = "") -> Any:
        library = _library()
        more = (getattr(library, constant),) if constant else ()
        return self._call(getattr(library, call), self._device(library), *more)

    def _device(self, library: Any) -> Any:
        """Return NVML's handle: its numbers are not CUDA's, which CUDA_VISIBLE_DEVICES changes."""
        uuid = read(api.device_uuid, self._ordinal)
        try:
            return library.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        except library.NVMLError:
            return self._call(library.nvmlDeviceGetHandleByUUID, f"MIG-{uuid}")

    def _call(self, call: Any, *args: Any) -> Any:
        library = _library()
        try:
            return call(*args)
        except library.NVMLError as e:
            if getattr(e, "value", None) != library.NVML_ERROR_NOT_SUPPORTED:
                raise
        raise UnsupportedError(f"device {self._ordinal} does not support {call.__name__}")

    def __repr__(self) -> str:
        return f"<cudago.DeviceMonitor of device {self._ordinal}>"


def _library() -> Any:
    """Return NVIDIA's package, ready to be asked."""
    if driver_name() == "sim":
        raise UnsupportedError(
            "a simulated device has no sensors: NVML knows NVIDIA's devices only"
        )
    if not _ready:
        try:
            package = importlib.import_module("pynvml")
        except ImportError:
            raise UnsupportedError(
                "NVIDIA's package nvidia-ml-py, which reads NVML, is not installed: "
                "`pip install 'cudago[nvml]'` brings it along"
            ) from None
        try:
            package.nvmlInit()
        except package.NVMLError as e:
            raise UnsupportedError(f"NVML cannot be used: {e}") from None
        _ready.append(package)
    return _ready[0]
