# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor exchange with other libraries, and what it holds open."""

from __future__ import annotations

from typing import NamedTuple

from ._core import _dlpack_stats, from_dlpack, to_torch

__all__ = ["ExchangeStats", "exchange_stats", "from_dlpack", "to_torch"]

_KINDS = ("pool", "device", "pinned", "managed", "host", "foreign", "python", "graph")


class ExchangeStats(NamedTuple):
    """What the exchange of tensors has done and holds. Made by `exchange_stats`.

    Parameters
    ----------
    exports_made, exports_released : int
        Tensors given to other libraries, and those that were given back.
    imports_taken, imports_released : int
        Tensors taken from other libraries, and those that were given back.
    live : dict of str to int
        Allocations and foreign tensors that something still holds, by kind of memory.
    """

    exports_made: int
    exports_released: int
    imports_taken: int
    imports_released: int
    live: dict[str, int]


def exchange_stats() -> ExchangeStats:
    """Count the tensors that were exchanged, and the memory that is held.

    Returns
    -------
    ExchangeStats
        Counts since the process began, for leak tests: equal differences of `exports_made` and
        `exports_released` mean that no other library holds our memory.

    Examples
    --------
    >>> before = cudago.exchange_stats()
    >>> after = cudago.exchange_stats()
    >>> after.exports_made - before.exports_made
    0
    """
    made, released, taken, returned, live = _dlpack_stats()
    return ExchangeStats(made, released, taken, returned, dict(zip(_KINDS, live, strict=True)))
