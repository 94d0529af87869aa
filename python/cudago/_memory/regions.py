# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Which parts of a block are free, and in the order of which stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .replaced import Replaced

if TYPE_CHECKING:
    from .._stream.stream import Stream

ALIGNMENT = (
    512  # of what cuMemAlloc returns, and so of each part; a guess above 256, which is promised
)

_FREE, _WAITING, _TAKEN = range(3)


class _Region(NamedTuple):
    start: int
    size: int
    state: int = _FREE
    tokens: frozenset[int] = frozenset()  # of who has it; of the frees that are waited for
    key: int = 0  # of the stream in which it is free already, if any
    stream: Stream | None = None  # that is waited for

    def may_join(self, other: _Region) -> bool:
        same = self.key == other.key and self.stream is other.stream
        return same and self.state == other.state != _TAKEN


_Map = tuple[_Region, ...]  # without gaps, by address


def _joined(regions: list[_Region]) -> _Map:
    out: list[_Region] = []
    for region in regions:
        if out and out[-1].may_join(region):
            last = out[-1]
            tokens = last.tokens | region.tokens
            out[-1] = last._replace(size=last.size + region.size, tokens=tokens)
        else:
            out.append(region)
    return tuple(out)


def _cut(regions: _Map, at: int, size: int, token: int) -> _Map:
    """Take the start of a region; the rest stays what it is."""
    region = regions[at]
    part = _Region(region.start, size, _TAKEN, frozenset((token,)))
    rest = region._replace(start=region.start + size, size=region.size - size)
    return (*regions[:at], part, *((rest,) if rest.size else ()), *regions[at + 1 :])


class Regions:
    """The parts of a block. Every method may be called at any time, by any thread."""

    __slots__ = ("_map",)

    def __init__(self, size: int) -> None:
        whole = size // ALIGNMENT * ALIGNMENT or size
        self._map: Replaced[_Map] = Replaced((_Region(0, whole),))

    def take(
        self, size: int, token: int, key: int, behind: frozenset[int] = frozenset()
    ) -> int | None:
        """Take a part that is free in a stream, and return its start; None if there is none.

        It is free for everybody, or freed in the stream with the key if that is not 0, or freed by
        the frees that the stream comes behind. The smallest that is large enough is taken; of equal
        ones, one that nobody else could have.
        """

        def may_have(region: _Region) -> bool:
            if region.state != _WAITING:
                return region.state == _FREE
            return bool(key and region.key == key) or region.tokens <= behind

        def how(regions: _Map) -> tuple[_Map, int | None]:
            fits = [
                (region.size, region.state == _FREE, at)
                for at, region in enumerate(regions)
                if region.size >= size and may_have(region)
            ]
            if not fits:
                return regions, None
            at = min(fits)[2]
            return _cut(regions, at, size, token), regions[at].start

        return self._map.change(how)

    def waiting(self, size: int) -> tuple[Stream, frozenset[int]] | None:
        """Return a stream that has freed so much in one piece, and the frees of that."""
        for region in self._map.value:
            if region.state == _WAITING and region.size >= size and region.key and region.stream:
                return region.stream, region.tokens
        return None

    def freed(self, token: int, key: int, stream: Stream) -> None:
        """Give a part back in the order of its stream."""

        def how(regions: _Map) -> tuple[_Map, None]:
            out = list(regions)
            for at, region in enumerate(out):
                if region.state == _TAKEN and token in region.tokens:
                    out[at] = region._replace(state=_WAITING, key=key, stream=stream)
            return _joined(out), None

        self._map.change(how)

    def idle(self, token: int) -> None:
        """Hear that the work which came before a free is done."""

        def how(regions: _Map) -> tuple[_Map, None]:
            out: list[_Region] = []
            for region in regions:
                if token not in region.tokens:
                    out.append(region)
                elif left := region.tokens - {token}:
                    out.append(region._replace(tokens=left))
                else:
                    out.append(_Region(region.start, region.size))
            return _joined(out), None

        self._map.change(how)

    def sums(self) -> tuple[int, int, int]:
        """Return the bytes that are taken, that wait, and of the largest free part."""
        regions = self._map.value
        used = sum(r.size for r in regions if r.state == _TAKEN)
        waiting = sum(r.size for r in regions if r.state == _WAITING)
        return used, waiting, max((r.size for r in regions if r.state == _FREE), default=0)
