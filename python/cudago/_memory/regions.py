# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Which parts of a block are free, and in the order of which stream.

Nobody says that a part is given back: whoever looks sees that the objects are gone whose end that
is. Python that ran at their end would be interrupted by Ctrl-C, and the part lost.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from .._stream.stream import _made
from ..errors import ClosedError
from .replaced import Replaced

if TYPE_CHECKING:
    from .._stream.stream import Stream

ALIGNMENT = (
    512  # of what cuMemAlloc returns, and so of each part; a guess above 256, which is promised
)

_FREE, _WAITING, _TAKEN = range(3)


class Work:
    """What may still run on a part: until it has ended, this is kept, and nobody else keeps it."""

    __slots__ = ("__weakref__", "kept", "stream")

    def __init__(self, stream: Stream, kept: object) -> None:
        self.stream, self.kept = stream, kept


class Holder:
    """Who has a part: it is given back in the order of the stream once `owner` is gone.

    It is idle, so that every stream can have it, once `work` is gone too.
    """

    __slots__ = ("owner", "work")

    def __init__(self, owner: object, work: Work) -> None:
        self.owner, self.work = ref(owner), ref(work)


class _Region(NamedTuple):
    start: int
    size: int
    state: int = _FREE
    holders: frozenset[Holder] = frozenset()  # who has it; whose work is waited for
    key: int = 0  # of the stream in which it is free already, if any

    def may_join(self, other: _Region) -> bool:
        same = self.state == other.state and self.key == other.key
        return same and (self.state == _FREE or (self.state == _WAITING and self.key != 0))


_Map = tuple[_Region, ...]  # without gaps, by address


def _joined(regions: list[_Region]) -> _Map:
    out: list[_Region] = []
    for region in regions:
        if out and out[-1].may_join(region):
            last = out[-1]
            holders = last.holders | region.holders
            out[-1] = last._replace(size=last.size + region.size, holders=holders)
        else:
            out.append(region)
    return tuple(out)


def stream_key(stream: Stream) -> int:
    """Return a number for a stream in which work follows the work of everybody who has the number.

    0 for streams of which that is not known: those of other libraries, whose handles may be another
    stream's by now, and default streams, of which each thread may have its own.
    """
    try:
        return stream._id if stream._id in _made else 0
    except ClosedError:
        return 0


def _now(region: _Region) -> _Region:
    """Return what a region is by now."""
    if region.state == _FREE:
        return region
    if region.state == _TAKEN:
        (holder,) = region.holders
        if holder.owner() is not None:
            return region
        work = holder.work()
        region = region._replace(state=_WAITING, key=stream_key(work.stream) if work else 0)
    busy = frozenset(holder for holder in region.holders if holder.work() is not None)
    if not busy:
        return _Region(region.start, region.size)
    return region if len(busy) == len(region.holders) else region._replace(holders=busy)


def _settled(regions: _Map) -> _Map:
    now = [_now(region) for region in regions]
    return regions if all(map(is_, now, regions)) else _joined(now)


def _cut(regions: _Map, at: int, size: int, holder: Holder) -> _Map:
    """Take the start of a region; the rest stays what it is."""
    region = regions[at]
    part = _Region(region.start, size, _TAKEN, frozenset((holder,)))
    rest = region._replace(start=region.start + size, size=region.size - size)
    return (*regions[:at], part, *((rest,) if rest.size else ()), *regions[at + 1 :])


class Regions:
    """The parts of a block. Every method may be called at any time, by any thread."""

    __slots__ = ("_map",)

    def __init__(self, size: int) -> None:
        whole = size // ALIGNMENT * ALIGNMENT or size
        self._map: Replaced[_Map] = Replaced((_Region(0, whole),))

    def take(
        self, size: int, holder: Holder, key: int, behind: frozenset[Holder] = frozenset()
    ) -> int | None:
        """Take a part that is free in a stream, and return its start; None if there is none.

        It is free for everybody, or freed in the stream with the key if that is not 0, or freed by
        the frees that the stream comes behind. The smallest that is large enough is taken; of equal
        ones, one that nobody else could have.
        """

        def may_have(region: _Region) -> bool:
            if region.state != _WAITING:
                return region.state == _FREE
            return bool(key and region.key == key) or region.holders <= behind

        def how(before: _Map) -> tuple[_Map, int | None]:
            regions = _settled(before)
            fits = [
                (region.size, region.state == _FREE, at)
                for at, region in enumerate(regions)
                if region.size >= size and may_have(region)
            ]
            if not fits:
                return regions, None
            at = min(fits)[2]
            return _cut(regions, at, size, holder), regions[at].start

        return self._map.change(how)

    def waiting(self, size: int) -> tuple[Stream, frozenset[Holder]] | None:
        """Return a stream that has freed so much in one piece, and who had it."""
        for region in self.settle():
            if region.state == _WAITING and region.size >= size and region.key:
                for holder in region.holders:
                    if work := holder.work():
                        return work.stream, region.holders
        return None

    def settle(self) -> _Map:
        """Look what was given back."""

        def how(before: _Map) -> tuple[_Map, _Map]:
            regions = _settled(before)
            return regions, regions

        return self._map.change(how)

    def sums(self) -> tuple[int, int, int]:
        """Return the bytes that are taken, that wait, and of the largest free part."""
        regions = self.settle()
        used = sum(r.size for r in regions if r.state == _TAKEN)
        waiting = sum(r.size for r in regions if r.state == _WAITING)
        return used, waiting, max((r.size for r in regions if r.state == _FREE), default=0)
