# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are written wholly or not at all, also on a full disk and if Ctrl-C comes.

A file object with a buffer writes once more when it is closed, or finalized, and fails once more.
So these files have no buffer: what fails is a write, and that is what the program sees. No pathlib,
which is slow to load, and whose methods can be interrupted before they do anything.
"""
# ruff: noqa: PTH101, PTH105, PTH108, PTH110, PTH113, PTH116, PTH118, PTH120, SIM105

from __future__ import annotations

import os
import stat
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECE = 1 << 24  # bytes: Ctrl-C is heard after each


def write_whole(path: str | bytes | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file, which replaces the one at a path once it is complete.

    What is no file, such as a pipe, is written to. An error leaves nothing behind.
    """
    given = os.fspath(path)
    try:
        if os.path.exists(given) and not os.path.isfile(given):
            _write(given, "wb", pieces)
        else:
            _replace(os.fsdecode(os.path.realpath(given)), pieces)  # so that a link stays one
    except OSError as e:
        if e.errno is None:
            raise
        raise OSError(e.errno, e.strerror, given) from None  # not of a file that is gone


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


def _write(to: str | bytes, mode: str, pieces: Iterable[bytes | memoryview]) -> None:
    file: Any = FileIO.__new__(FileIO)  # opened below, where Ctrl-C closes it
    try:
        file.__init__(to, mode)
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(file.fileno(), rest[:_PIECE]) :]
    finally:
        file.close()
