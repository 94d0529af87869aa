# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Device attributes, read through the cold half of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _zconstants as _z
from .._gopy import api
from .._gopy_call import read
from ..errors import CUDAError, UnsupportedError

__all__ = ["DeviceProperties"]


if TYPE_CHECKING:
    from .._zproperties import Properties as _Names
else:
    _Names = object


class DeviceProperties(_Names):
    """The attributes of a device, each read on first access and then kept.

    Obtained from `Device.properties`. It has every attribute of ``CUdevice_attribute`` under its
    lower-case name, such as ``multiprocessor_count`` or ``max_threads_per_block``; ``dir()`` lists
    them.

    References
    ----------
    ``cuDeviceGetAttribute``

    Examples
    --------
    >>> device.properties.warp_size
    32
    >>> "max_threads_per_block" in dir(device.properties)
    True
    """

    _ordinal: int

    def __init__(self, ordinal: int) -> None:
        object.__setattr__(self, "_ordinal", ordinal)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name!r} cannot be set: what a device is like cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name!r} cannot be deleted")

    if not TYPE_CHECKING:  # type checkers would accept any name

        def __getattr__(self, name: str) -> int:
            if name.startswith("_") or name not in _attribute_names():
                raise AttributeError(
                    f"a device has no property {name!r}; dir() lists those that it has"
                )
            try:
                value = read(api.device_attribute, self._ordinal, name)
            except CUDAError as e:
                if e.code != _z.CUDA_ERROR_INVALID_VALUE:
                    raise
                raise UnsupportedError(f"this driver does not know the property {name!r}") from None
            object.__setattr__(self, name, value)  # is found before this method from now on
            return int(value)

    @property
    def virtual_memory_management_supported(self) -> int:
        """The same as ``virtual_address_management_supported``, by the name that replaces it."""
        return self.virtual_address_management_supported

    def __dir__(self) -> list[str]:
        return sorted({*_attribute_names(), "virtual_memory_management_supported"})

    def __repr__(self) -> str:
        return f"<cudago.DeviceProperties of device {self._ordinal}>"


_names: frozenset[str] = frozenset()


def _attribute_names() -> frozenset[str]:
    global _names
    if not _names:
        _names = frozenset(api.attribute_name(i) for i in range(api.attribute_count()))
    return _names
