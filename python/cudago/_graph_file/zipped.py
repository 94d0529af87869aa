# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Zip files in pieces, from the first byte to the last, uncompressed."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONG_AGO = 1980, 1, 1, 0, 0, 0  # so that the same members make the same file
_PIECE = 1 << 24


class _Pieces(list[bytes | memoryview]):
    """What ``zipfile`` has written: it meets no full disk, and nothing that it could seek in."""

    def write(self, piece: bytes | memoryview) -> int:
        self.append(piece)
        return len(piece)

    def flush(self) -> None:
        pass


def zipped(members: Iterable[tuple[str, bytes | memoryview]]) -> Iterator[bytes | memoryview]:
    """Yield the pieces of a zip file of some members: names and bytes."""
    made = _Pieces()
    archive = zipfile.ZipFile(made, "w")  # type: ignore[call-overload]  # it only writes
    try:
        for name, data in members:
            info = zipfile.ZipInfo(name, _LONG_AGO)
            info.external_attr = 0o644 << 16
            info.file_size = len(data)
            whole = memoryview(data)
            with archive.open(info, "w") as member:
                for low in range(0, len(data), _PIECE):
                    member.write(whole[low : low + _PIECE])
                    yield from made
                    made.clear()
        archive.close()
    except BaseException:
        archive.fp = None  # it would still be closed, which fails if a member is open
        raise
    yield from made
