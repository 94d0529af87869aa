# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are written wholly or not at all, also on a full disk and if Ctrl-C comes.

A file object with a buffer writes once more when it is closed, or finalized, and fails once more.
So these files have no buffer: what fails is a write, and that is what the program sees. No pathlib,
which is slow to load, and whose methods can be interrupted before they do anything.
"""
# ruff: noqa: PTH101, PTH105, PTH108, PTH110, PTH113, PTH114, PTH115, PTH116, PTH118, PTH119, PTH120, SIM105

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECE = 1 << 24  # bytes: Ctrl-C is heard after each
_NO_NAMES = ("", ".", "..")
_MOST_LINKS = 40  # as Linux follows
_OPEN = re.compile("[0-9]{1,9}")
_OPEN_FILES = ("/proc/self/fd", "/proc/thread-self/fd")


def write_whole(path: str | bytes | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file, which replaces the one at a path once it is complete.

    What is no file, such as a pipe, is written to, and so is what the program has open:
    ``/dev/stdout``. An error leaves nothing behind.
    """
    given = os.fspath(path)
    try:
        to = _target(os.fsdecode(given))
        if isinstance(to, str) and _is_replaced(to):
            _replace(to, pieces)
        else:
            _write(to, "wb", pieces)
    except OSError as e:
        if e.errno is None:
            raise
        raise OSError(e.errno, e.strerror, given) from None  # not of a file that is gone


def _target(path: str) -> str | int:
    """Return where links lead to, so that they stay links; or the number of an open file.

    A path in ``/proc`` names an open file as a link would. But to replace the file at that path,
    or to open it anew, would take it from the program.
    """
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(path)
        if name in _NO_NAMES:
            return path
        folder = os.path.realpath(folder)
        if _OPEN.fullmatch(name) and folder in map(os.path.realpath, _OPEN_FILES):
            return int(name)
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            return path
        path = os.path.join(folder, os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_replaced(path: str) -> bool:
    """Whether a path has a file, or may get one; a folder is the system's to refuse."""
    if os.path.basename(path) in _NO_NAMES:
        return False
    return os.path.isfile(path) or not os.path.exists(path)


def _replace(to: str, pieces: Iterable[bytes | memoryview]) -> None:
    part = os.path.join(os.path.dirname(to), f".cudago-{os.urandom(8).hex()}")
    try:
        _write(part, "xb", pieces)
        with suppress(OSError):  # there may be no such file yet
            os.chmod(part, stat.S_IMODE(os.stat(to).st_mode))
        os.replace(part, to)
    finally:
        # Signals are heard after calls, and where Python functions begin: so another Ctrl-C comes
        # before this call no more.
        try:
            os.unlink(part)
        except OSError:
            pass  # it has the other name by now, or was not made


def _write(to: str | int, mode: str, pieces: Iterable[bytes | memoryview]) -> None:
    file: Any = FileIO.__new__(FileIO)  # opened below, where Ctrl-C closes it
    try:
        file.__init__(to, mode, closefd=not isinstance(to, int))
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(file.fileno(), rest[:_PIECE]) :]
    finally:
        file.close()
