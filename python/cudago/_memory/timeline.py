# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory over time."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from .. import _core
from .._card import card
from .._native import number_text, real
from .summary import memory_uses, size_text

_MOST = 2048  # samples that are kept; of more, every second goes
_BARS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_MOST_S = min(threading.TIMEOUT_MAX, 1e6)  # that a thread waits for the next sample
_WIDTH = 40  # of the line of bars, in characters


@dataclass(frozen=True)
class MemorySample:
    """Bytes in use at one time.

    Parameters
    ----------
    at_ms : float
        Milliseconds since the timeline began.
    live : dict of str to int
        Bytes that are allocated, by name: ``"device 0: default pool"``, ``"pinned memory"``, ...

    Examples
    --------
    >>> with cudago.debug.MemoryTimeline() as timeline:
    ...     pass
    >>> timeline.samples[0].at_ms
    0.0
    """

    at_ms: float
    live: dict[str, int]


class MemoryTimeline(_core.Block):
    """How much memory of each kind is in use during a ``with`` block.

    Notebooks show it as a picture, and ``print`` as a table with a line of bars.

    Parameters
    ----------
    interval_ms : float, optional
        Time between two samples, which a thread takes; None for no thread: then there are samples
        of the beginning, of the end, and of each call of `sample`.

    See Also
    --------
    cudago.memory_summary : The same numbers at one time.

    Notes
    -----
    What is allocated and freed between two samples shows in none, unless it is a new maximum of its
    pool: see `peaks`. At most some 2,000 samples are kept; a longer timeline is coarser. Pools of
    other libraries are seen if they are a device's default pool.

    References
    ----------
    ``cuMemPoolGetAttribute``

    Examples
    --------
    >>> with cudago.debug.MemoryTimeline(interval_ms=None) as timeline:
    ...     pinned = cudago.PinnedMemoryResource().allocate(1 << 20)
    ...     timeline.sample()
    ...     pinned.close()
    >>> timeline.peaks["pinned memory"] >= 1 << 20
    True
    """

    def __init__(self, *, interval_ms: float | None = 10.0) -> None:
        step_ms = None if interval_ms is None else real(interval_ms, "interval_ms")
        if step_ms is not None and not 0 < step_ms < float("inf"):
            raise ValueError(
                f"interval_ms must be more than 0, or None, got {number_text(interval_ms)}"
            )
        self._step_s = None if step_ms is None else step_ms / 1000
        self._lock = threading.RLock()  # a signal's handler may print the timeline
        self._open = threading.Lock()  # held until the block is left
        self._thread: threading.Thread | None = None
        self._samples: list[MemorySample] = []
        self._known: dict[str, int] = {}  # maxima before the first sample
        self._peaks: dict[str, int] = {}
        self._began = 0.0
        self._plan((self._open.acquire, False), (self._open.release,))

    @property
    def samples(self) -> tuple[MemorySample, ...]:
        """The samples so far, the oldest first."""
        return tuple(_core._locked(self._lock, self._samples.copy))

    @property
    def peaks(self) -> dict[str, int]:
        """The most bytes that were in use during the timeline, by name.

        A peak between two samples counts if it is higher than all before the timeline.
        """
        return _core._locked(self._lock, self._peaks.copy)

    def sample(self) -> None:
        """Take a sample now.

        Examples
        --------
        >>> with cudago.debug.MemoryTimeline(interval_ms=None) as timeline:
        ...     timeline.sample()
        >>> len(timeline.samples)
        3
        """
        if not self._began:
            raise RuntimeError("a timeline has samples of its with block, which has not begun")
        _core._locked(self._lock, self._add, memory_uses())

    def _add(self, uses: list[tuple[str, int, int]]) -> None:
        at_ms = (time.monotonic() - self._began) * 1000 if self._samples else 0.0
        for name, live, most in uses:
            if most > self._known.setdefault(name, most if not self._samples else 0):
                self._peaks[name] = most
            self._peaks[name] = max(self._peaks.get(name, 0), live)
        self._samples.append(MemorySample(at_ms, {name: live for name, live, _ in uses}))
        if len(self._samples) > _MOST:  # the first and the newest stay
            del self._samples[1:-1:2]
            self._step_s = None if self._step_s is None else self._step_s * 2

    def _entered(self) -> None:
        if self._began:
            raise RuntimeError("a timeline is of one with block")
        self._began = time.monotonic()
        self.sample()
        if self._step_s is not None:
            self._thread = threading.Thread(target=self._run, name="cudago-timeline", daemon=True)
            self._thread.start()

    def _left(self) -> None:
        if self._thread is not None:
            self._thread.join()
        with suppress(Exception):  # after a fault there is nothing to ask, and no second error
            self.sample()

    def _run(self) -> None:
        while self._step_s is not None and not self._open.acquire(
            timeout=min(self._step_s, _MOST_S)
        ):
            with suppress(Exception):  # of a device that is being reset, the next sample tells
                self.sample()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<cudago.debug.MemoryTimeline: {len(self.samples)} samples>"

    _repr_html_ = card

    def _lines(self) -> list[str]:
        samples, peaks = self.samples, self.peaks
        names = [name for name in peaks if peaks[name]]
        if not names:
            return [f"{len(samples)} samples, no memory in use"]
        width = max(map(len, names))
        last_ms = samples[-1].at_ms
        lines = [f"{len(samples)} samples in {last_ms:.0f} ms"]
        for name in names:
            heights = _heights([(s.at_ms, s.live.get(name, 0)) for s in samples], last_ms)
            bars = "".join(_BARS[-(-h * 8 // peaks[name])] for h in heights)
            lines.append(f"{name:<{width}}  {bars}  at most {size_text(peaks[name])}")
        return lines


def _heights(points: list[tuple[float, int]], last_ms: float) -> list[int]:
    """Return the most of each of the equal parts of the time; a part without samples goes on."""
    heights = [0] * _WIDTH
    before = last = 0
    for at_ms, live in points:
        here = min(int(at_ms / last_ms * _WIDTH), _WIDTH - 1) if last_ms else 0
        heights[last + 1 : here + 1] = [before] * (here - last)
        heights[here] = max(heights[here], live)
        before, last = live, here
    return heights
