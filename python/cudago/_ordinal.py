# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""From a device's number to its one `Device` object.

This module is below every class with a ``device`` property, so that ``_memory/device.py`` can
build on those classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core

if TYPE_CHECKING:
    from ._memory.device import Device

_devices: dict[int, Device] = {}


def device_at(ordinal: int = 0) -> Device:
    """Return the device with this number. The native module creates it, of the registered class."""
    found = _devices.get(ordinal)
    return found if found is not None else _devices.setdefault(ordinal, _core._device_new(ordinal))


def device_or_first(device: Device | None) -> Device:
    """Return a device that was given; by default the first."""
    if device is None:
        return device_at()
    if not isinstance(device, _core.Device):
        raise TypeError(f"device must be a Device, not {type(device)}")
    return device


def devices_in_use() -> list[Device]:
    """Return the devices that this process has asked for."""
    return list(_devices.values())
