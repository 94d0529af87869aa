# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What was exchanged with other libraries, how much of it is live, and where it was exchanged."""

from __future__ import annotations

import os
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

from . import _core
from ._native import or_closed
from ._tensor.dlpack import _WAYS, ExchangeStats, exchange_stats

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Exchange", "Trace", "stats", "trace"]

_PACKAGE = __file__.rpartition("dlpack")[0]
_EVER = 2**64 - 1  # more than any number of a note


def stats() -> ExchangeStats:
    """Count the tensors exchanged, and the memory still held: `cudago.exchange_stats`.

    Returns
    -------
    ExchangeStats
        Counts since the process started, in all, by the way they went, and by library.

    Examples
    --------
    >>> held = cudago.from_dlpack(numpy.ones(4, "f4"))
    >>> cudago.dlpack.stats().peers["numpy"].live >= 1
    True
    """
    return exchange_stats()


@dataclass(frozen=True)
class Exchange:
    """A tensor that was exchanged and not given back yet.

    Parameters
    ----------
    direction : str
        ``"import"``, taken from another library, or ``"export"``.
    way : str
        As `Tensor.origin` names it: ``"exchange table"``, ``"capsule"``, ``"legacy capsule"``.
    peer : str or None
        The library that an import came from, as in `ExchangeStats.peers`; None for an export.
    shape : tuple of int
        Its shape.
    dtype : str
        The name of its type.
    device : str
        ``"cpu"``, or ``"cuda:0"`` for memory of that device.
    where : tuple of str
        The lines that exchanged it, as ``"file.py:12"``, the innermost first; those of cudago are
        left out, and the outermost where there are many. Empty if no Python code ran.
    """

    direction: Literal["import", "export"]
    way: str
    peer: str | None
    shape: tuple[int, ...]
    dtype: str
    device: str
    where: tuple[str, ...]

    def __str__(self) -> str:
        of = f" of {self.peer}" if self.peer else ""
        made = f", made at {self.where[0]}" if self.where else ""
        return (
            f"{self.direction}{of} by {self.way}: {self.dtype}{list(self.shape)} on "
            f"{self.device}{made}"
        )


class Trace:
    """Notes of exchanges. Created by `trace`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._until: int | None = None
        self._after = _core._dlpack_trace(1, _PACKAGE)

    @property
    def is_on(self) -> bool:
        """Whether it still notes what is exchanged.

        Returns
        -------
        bool
            False after `stop`.
        """
        return self._until is None

    @property
    def live(self) -> tuple[Exchange, ...]:
        """What was exchanged while this trace was on and is still held.

        Returns
        -------
        tuple of Exchange
            In the order of the exchanges, those of all threads. After `stop` it gets shorter as
            tensors are given back.

        Notes
        -----
        An export ends when the other library says so, on any thread; an import ends when nothing
        of cudago uses it any more, queued work included.
        """
        _core._drain()
        until = _EVER if self._until is None else self._until
        return tuple(map(_exchange, reversed(_core._dlpack_notes(self._after, until))))

    def stop(self) -> None:
        """Note nothing more. What is noted stays in `live`."""
        _core._locked(self._lock, self._stop)

    def _stop(self) -> None:
        if self._until is None:
            self._until = _core._dlpack_trace(-1, _PACKAGE)

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        if hasattr(self, "_after"):
            self.stop()

    @or_closed
    def __repr__(self) -> str:
        state = "on" if self.is_on else "stopped"
        return f"<Trace of exchanges: {state}, {len(self.live)} live>"


def _exchange(note: tuple[str | None, int, tuple[int, ...], str, int, bytes]) -> Exchange:
    peer, way, shape, dtype, ordinal, where = note
    lines = tuple(os.fsdecode(line) for line in where.split(b"\0")[:-1])
    device = "cpu" if ordinal < 0 else f"cuda:{ordinal}"
    direction: Literal["import", "export"] = "import" if peer else "export"
    return Exchange(direction, _WAYS[way], peer, shape, dtype, device, lines)


def trace() -> Trace:
    """Note where tensors are exchanged, from now on.

    Returns
    -------
    Trace
        Of all threads, until `Trace.stop`, or until the end of a ``with`` block. Traces may
        overlap: each has what was exchanged while it was on.

    Notes
    -----
    Costs an exchange some microseconds while any trace is on, and a test of a flag otherwise. Noted
    are tensors that somebody owns: what comes through ``__cuda_array_interface__``, and what the
    exchange table of cudago lends for the time of a call, is not, and neither is host memory that
    another library allocates through that table.

    Examples
    --------
    >>> with cudago.dlpack.trace() as t:
    ...     held = cudago.from_dlpack(numpy.ones(4, "f4"))
    >>> [(e.direction, e.peer, e.shape, e.dtype) for e in t.live]
    [('import', 'numpy', (4,), 'float32')]
    """
    return Trace()
