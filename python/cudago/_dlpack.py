# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor exchange with other libraries, and its statistics."""

from __future__ import annotations

from typing import NamedTuple

from ._core import _dlpack_stats, from_dlpack, to_torch

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
