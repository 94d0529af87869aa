# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Writing zip files, from the first byte to the last, uncompressed.

``zipfile`` writes too, but to a file that it seeks in, and from finalizers: after an error, as of a
full disk, or Ctrl-C, its objects can be neither closed nor dropped without another error.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# As in APPNOTE.TXT of PKWARE, 4.3.7 (local), 4.3.12 (central), 4.3.14 to 4.3.16 (the end) and
# 4.5.3 (the extra field of large files).
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")

_NOTED = 0xFFFFFFFF  # a number of 32 bits: the number is in the extra field
_MOST = 0xFFFFFFFE
_MOST_MEMBERS = 0xFFFE
_MADE_BY = 3 << 8 | 45  # Unix
_MODE = 0o644 << 16
_LONG_AGO = 0, 1 << 5 | 1  # time and date, 1980-01-01: so that the same members make the same file
_PIECE = 1 << 24


def zipped(members: Iterable[tuple[str, bytes | memoryview]]) -> Iterator[bytes | memoryview]:
    """Yield the pieces of a zip file of some members: names and bytes."""
    at = count = 0
    central: list[bytes] = []
    for name, data in members:
        size, crc, whole = len(data), 0, memoryview(data)
        pieces = [whole[low : low + _PIECE] for low in range(0, size, _PIECE)]
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
        central.append(_central(name, crc, size, at))
        count += 1
        head = _local(name, crc, size)
        yield head
        yield from pieces
        at += len(head) + size
    yield from central
    yield _end(count, at, sum(map(len, central)))


def _large(*numbers: int) -> tuple[bytes, tuple[int, ...]]:
    """Return the extra field of numbers that are too large, and what is in their places."""
    large = [n for n in numbers if n > _MOST]
    extra = struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    return extra, tuple(_NOTED if n > _MOST else n for n in numbers)


def _needed(extra: bytes) -> int:
    return 45 if extra else 20  # the version of the format


def _local(name: str, crc: int, size: int) -> bytes:
    extra, (size, _) = _large(size, size)
    text = name.encode("ascii")
    words = _needed(extra), 0, 0, *_LONG_AGO, crc, size, size, len(text), len(extra)
    return _LOCAL.pack(b"PK\3\4", *words) + text + extra


def _central(name: str, crc: int, size: int, at: int) -> bytes:
    extra, (size, _, at) = _large(size, size, at)
    text = name.encode("ascii")
    words = _MADE_BY, _needed(extra), 0, 0, *_LONG_AGO, crc, size, size, len(text), len(extra)
    return _CENTRAL.pack(b"PK\1\2", *words, 0, 0, 0, _MODE, at) + text + extra


def _end(count: int, at: int, size: int) -> bytes:
    """Return the end: there are so many members, and the list of them begins there."""
    large = b""
    if count > _MOST_MEMBERS or max(at, size) > _MOST:
        large = _END_64.pack(
            b"PK\6\6", _END_64.size - 12, _MADE_BY, 45, 0, 0, count, count, size, at
        )
        large += _LOCATOR_64.pack(b"PK\6\7", 0, at + size, 1)
        count, size, at = 0xFFFF, _NOTED, _NOTED
    return large + _END.pack(b"PK\5\6", 0, 0, count, count, size, at, 0)
