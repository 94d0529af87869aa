# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What NVML tells of a device."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

import cudago as cu
from cudago._memory import monitor

NAMES = [name for name in vars(cu.DeviceMonitor) if not name.startswith("_")]


class NVMLError(Exception):
    """As pynvml's: it has the code."""

    def __init__(self, value):
        super().__init__(f"code {value}")
        self.value = value


def package(device, *, missing=()):
    """Make a stand-in for NVIDIA's package, which knows one device by its UUID."""
    p = ModuleType("pynvml")
    p.NVMLError, p.NVML_ERROR_NOT_SUPPORTED = NVMLError, 3
    p.NVML_TEMPERATURE_GPU, p.NVML_CLOCK_SM, p.NVML_CLOCK_MEM = 0, 1, 2
    p.started = 0

    def start():
        p.started += 1

    def by_uuid(uuid):
        if uuid != f"{p.prefix}-{device.uuid}":
            raise NVMLError(6)
        return "handle"

    def told(name, value):
        def call(handle, *args):
            assert handle == "handle"
            if name in missing:
                raise NVMLError(3)
            return value(*args) if callable(value) else value

        call.__name__ = name
        setattr(p, name, call)

    p.prefix = "GPU"
    p.nvmlInit, p.nvmlDeviceGetHandleByUUID = start, by_uuid
    p.nvmlSystemGetDriverVersion = lambda: b"580.95.05"
    told("nvmlDeviceGetTemperature", lambda sensor: 41 + sensor)
    told("nvmlDeviceGetPowerUsage", 71500)
    told("nvmlDeviceGetEnforcedPowerLimit", 700000)
    told("nvmlDeviceGetTotalEnergyConsumption", 1500)
    told("nvmlDeviceGetUtilizationRates", SimpleNamespace(gpu=12, memory=3))
    told("nvmlDeviceGetMemoryInfo", SimpleNamespace(used=1 << 30))
    told("nvmlDeviceGetClockInfo", lambda kind: 1000 * kind)
    used = [SimpleNamespace(pid=7, usedGpuMemory=1024), SimpleNamespace(pid=8, usedGpuMemory=None)]
    told("nvmlDeviceGetComputeRunningProcesses", used)
    return p


@pytest.fixture
def library(device, monkeypatch):
    """A stand-in for NVIDIA's package, as on NVIDIA's driver."""
    made = package(device, missing={"nvmlDeviceGetTotalEnergyConsumption"})
    monkeypatch.setattr(monitor, "_ready", [])
    monkeypatch.setattr(monitor, "driver_name", lambda: "nvidia")
    monkeypatch.setitem(sys.modules, "pynvml", made)
    return made


def test_facts(device, library):
    m = device.monitor
    assert m.temperature_celsius == 41
    assert (m.power_watts, m.power_limit_watts) == (71.5, 700.0)
    assert (m.utilization_percent, m.memory_utilization_percent) == (12, 3)
    assert m.used_memory == 1 << 30
    assert (m.clock_mhz, m.memory_clock_mhz) == (1000, 2000)
    assert m.processes == (cu.DeviceProcess(7, 1024), cu.DeviceProcess(8, None))
    assert m.driver_version == "580.95.05"
    assert library.started == 1
    assert repr(m) == "<cudago.DeviceMonitor of device 0>"


def test_a_part_of_a_device_has_another_prefix(device, library):
    library.prefix = "MIG"
    assert device.monitor.temperature_celsius == 41


def test_what_the_device_lacks_is_named(device, library):
    with pytest.raises(cu.UnsupportedError, match="nvmlDeviceGetTotalEnergyConsumption"):
        _ = device.monitor.energy_joules


def test_other_errors_are_the_packages_own(device, library):
    library.prefix = "none"
    with pytest.raises(NVMLError, match="code 6"):
        _ = device.monitor.power_watts


def test_without_the_package(device, library, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(cu.UnsupportedError, match=r"cudago\[nvml\]"):
        _ = device.monitor.power_watts


def test_without_its_library(device, library):
    def fail():
        raise NVMLError(12)

    library.nvmlInit = fail
    with pytest.raises(cu.UnsupportedError, match="NVML cannot be used: code 12"):
        _ = device.monitor.power_watts


@pytest.mark.parametrize("name", NAMES)
def test_on_the_driver_in_use(device, name):
    """A device either tells, or the error says why not."""
    try:
        value = getattr(device.monitor, name)
    except cu.UnsupportedError as e:
        if cu.driver_name() == "sim":
            assert "no sensors" in str(e)
        return
    assert cu.driver_name() == "nvidia"
    assert isinstance(value, tuple | str) or value >= 0
