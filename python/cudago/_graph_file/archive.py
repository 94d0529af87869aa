# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The container of a saved graph: a zip file of a few uncompressed members. `zipped` writes it.

A zip file, because every system can list and unpack it, and each member has a checksum. Its members
are not compressed, so that none can be larger than the file; and their names are ours, so that
nothing in a file says where anything is written: `Archive` never unpacks to a disk.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import GraphFileError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Self

TEXT = "graph.json"
_MEMBER = re.compile(r"graph\.json|code/(0|[1-9][0-9]{0,8})|memory/(0|[1-9][0-9]{0,8})", re.A)
_MOST_TEXT = 1 << 30  # bytes of graph.json: a million nodes have a third of it
_CHUNK = 1 << 24

# All that zipfile raises for files that are none.
_BROKEN = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    struct.error,
    ArithmeticError,
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


@contextmanager
def _checked(path: Path) -> Generator[None, None, None]:
    """Say of which file it is that it is broken."""
    try:
        yield
    except GraphFileError:
        raise
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise
        raise GraphFileError(
            f"{path} is not a whole graph file: something in it is said to be before its beginning"
        ) from e
    except _BROKEN as e:
        raise GraphFileError(f"{path} is not a whole graph file: {e}") from e


class Archive:
    """A file that is being read. A context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        kind = self.path.stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # opening a pipe would wait
            raise GraphFileError(f"{self.path} is not a file")
        self._file = self.path.open("rb")
        try:
            with _checked(self.path):
                self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        if self._file.read(4) != b"PK\x03\x04":
            raise GraphFileError(f"{self.path} is not a graph file: it does not begin like one")
        self._zip = zipfile.ZipFile(self._file)
        self._members: dict[str, zipfile.ZipInfo] = {}
        left = os.fstat(self._file.fileno()).st_size
        for info in self._zip.infolist():
            name = info.filename
            if not _MEMBER.fullmatch(name):
                raise self.wrong(f"a member is called {name[:80]!r}")
            if name in self._members:
                raise self.wrong(f"there are two members {name}")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise self.wrong(f"{name} is compressed or encrypted")
            left -= info.file_size
            if info.file_size != info.compress_size or left < 0:
                raise self.wrong(f"the file is too small for the {info.file_size} bytes of {name}")
            self._members[name] = info
        if TEXT not in self._members:
            raise self.wrong(f"it has no {TEXT}")
        if self._members[TEXT].file_size > _MOST_TEXT:
            raise self.wrong(f"{TEXT} has more than {_MOST_TEXT} bytes")

    def wrong(self, what: str) -> GraphFileError:
        """Return the error that says what is wrong."""
        return GraphFileError(f"{self.path} is not a graph that can be loaded: {what}")

    @property
    def sizes(self) -> dict[str, int]:
        """The members, and their sizes."""
        return {name: info.file_size for name, info in self._members.items()}

    def read(self, name: str) -> bytes:
        """Return the bytes of a member, after comparing them with their checksum."""
        with _checked(self.path):
            return self._zip.read(self._members[name])

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a member. What follows them is an error if the checksum is wrong."""
        with _checked(self.path):
            member = self._zip.open(self._members[name])
        with member:
            while True:
                with _checked(self.path):
                    chunk = member.read(_CHUNK)
                if not chunk:
                    return
                yield chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self._zip.close()
        self._file.close()
