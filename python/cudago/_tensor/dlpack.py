# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor exchange with other libraries, and its statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .. import _core
from .._core import _dlpack_stats, from_dlpack, to_torch
from .._memory.device import Device
from .creation import empty
from .tensor import _device_copy

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["ExchangeStats", "exchange_stats", "from_dlpack", "to_torch"]

_KINDS = ("pool", "device", "pinned", "managed", "host", "foreign", "python", "graph", "variable")


class ExchangeStats(NamedTuple):
    """Statistics of tensor exchange. Created by `exchange_stats`.

    Parameters
    ----------
    exports_made, exports_released : int
        Tensors given to other libraries, and those of them that were given back.
    imports_taken, imports_released : int
        Tensors taken from other libraries, and those of them that were given back.
    live : dict of str to int
        Allocations and foreign tensors that are still held, by kind of memory.
    """

    exports_made: int
    exports_released: int
    imports_taken: int
    imports_released: int
    live: dict[str, int]


def exchange_stats() -> ExchangeStats:
    """Count the tensors exchanged, and the memory still held.

    Returns
    -------
    ExchangeStats
        Counts since the process started, for leak tests: if `exports_made` and `exports_released`
        grew equally, no other library holds our memory.
    """
    made, released, taken, returned, live = _dlpack_stats()
    return ExchangeStats(made, released, taken, returned, dict(zip(_KINDS, live, strict=True)))


# --- from_dlpack(device=) -------------------------------------------------------------------------

_CPU, _CUDA, _MANAGED = 1, 2, 13  # DLPack's device types


def _read_device(device: Any) -> Device | None:
    """Read a device as `from_dlpack` takes it; None is the host."""
    if isinstance(device, Device):
        return device
    kind: object = None
    number: object = 0
    if isinstance(device, tuple):
        pair = cast("tuple[object, ...]", device)
        kind, number = pair if len(pair) == 2 else (None, None)
    else:  # "cpu", "cuda", "cuda:1", and what prints so, such as PyTorch's devices
        name, colon, digits = str(device).partition(":")
        kind = {"cpu": _CPU, "cuda": _CUDA}.get(name)
        if colon:
            number = int(digits) if digits.isdecimal() else -1
    if kind == _CPU and number == 0:
        return None
    if kind == _CUDA and isinstance(number, int) and number >= 0:
        return Device(number)
    raise ValueError(
        'device must be a Device, "cpu", "cuda", "cuda:1", or DLPack\'s type and number, '
        f"got {device!r}"
    )


def _placed(tensor: Tensor, device: Any, copy: bool | None) -> Tensor:
    """Return the tensor on the device asked for. Called by the native module."""
    target = _read_device(device)
    if tensor.device == target or tensor._memory[1] == _MANAGED:
        return _core.from_dlpack(tensor, copy=True) if copy else tensor
    if copy is False:
        here, there = (
            "the host" if d is None else f"device {d.ordinal}" for d in (tensor.device, target)
        )
        raise BufferError(
            f"a tensor of shape {tensor.shape} and type {tensor.dtype_name} is on {here} and would "
            f"have to be copied to {there}, which copy=False forbids"
        )
    if target is None:
        return _device_copy(tensor, to_host=1)
    stream = target.default_stream
    placed = empty(tensor.shape, tensor.dtype_name, stream=stream)
    placed.copy_from(tensor, stream=stream)
    stream.sync()
    return placed
