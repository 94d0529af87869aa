# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor exchange with other libraries, and its statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .. import _core
from .._core import _dlpack_stats, from_dlpack, to_torch
from .._memory.device import Device
from .._native import value_text
from .creation import empty
from .operand import device_copy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tensor import Tensor

__all__ = ["ExchangeCount", "ExchangeStats", "exchange_stats", "from_dlpack", "to_torch"]

_KINDS = ("pool", "device", "pinned", "managed", "host", "foreign", "python", "graph", "variable")


_WAYS = ("exchange table", "capsule", "legacy capsule", "array interface")  # as `Tensor.origin`


class ExchangeCount(NamedTuple):
    """How many tensors were exchanged in one way, or with one library.

    Parameters
    ----------
    total : int
        Since the process started.
    live : int
        Those of them that were not given back yet.
    """

    total: int
    live: int


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
    exports, imports : dict of str to ExchangeCount
        By the way they went, as `Tensor.origin` names it, and by ``"array interface"``, which is
        not among the four counts above. Nobody says when an export through that ends, so none
        is live.
    peers : dict of str to ExchangeCount
        Imports by library: the first part of the name of the module that has the producer's
        type. ``"unknown"`` for bare capsules, and for what a library puts into the exchange
        table of cudago. Who takes an export, no protocol says.
    """

    exports_made: int
    exports_released: int
    imports_taken: int
    imports_released: int
    live: dict[str, int]
    exports: dict[str, ExchangeCount]
    imports: dict[str, ExchangeCount]
    peers: dict[str, ExchangeCount]


def _count(counts: Sequence[int]) -> ExchangeCount:
    """Count from numbers that were begun and ended, in turns."""
    return ExchangeCount(sum(counts[::2]), sum(counts[::2]) - sum(counts[1::2]))


def _by_way(counts: Sequence[int]) -> dict[str, ExchangeCount]:
    return {way: _count(counts[2 * i : 2 * i + 2]) for i, way in enumerate(_WAYS)}


def exchange_stats() -> ExchangeStats:
    """Count the tensors exchanged, and the memory still held.

    Returns
    -------
    ExchangeStats
        Counts since the process started, for leak tests: if `exports_made` and `exports_released`
        grew equally, no other library holds our memory.

    See Also
    --------
    cudago.dlpack.trace : Notes where each exchange is made.
    """
    exports, peers, live = _dlpack_stats()
    imports = [sum(column) for column in zip(*(counts for _, counts in peers), strict=True)]
    owned = 2 * _WAYS.index("array interface")
    return ExchangeStats(
        sum(exports[:owned:2]),
        sum(exports[1:owned:2]),
        sum(imports[:owned:2]),
        sum(imports[1:owned:2]),
        dict(zip(_KINDS, live, strict=True)),
        _by_way(exports),
        _by_way(imports),
        {name: _count(counts) for name, counts in peers if any(counts)},
    )


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
        f"got {value_text(cast('object', device))}"
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
    tensor._await_work()  # the copy is made on a stream that it may not be queued on
    if target is None:
        return device_copy(tensor, to_host=1)
    stream = target.default_stream
    placed = empty(tensor.shape, tensor.dtype_name, stream=stream)
    placed.copy_from(tensor, stream=stream)
    stream.sync()
    return placed
