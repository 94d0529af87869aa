# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are written wholly or not at all: also on a full disk, if Ctrl-C comes, or a kill.

A file object with a buffer writes once more when it is closed, or finalized, and fails once more.
So these files are descriptors: what fails is a write, and that is what the program sees. No
pathlib, which is slow to load, and whose methods can be interrupted before they do anything.
"""
# ruff: noqa: PTH105, PTH108, PTH110, PTH113, PTH114, PTH115, PTH116, PTH118, PTH119, PTH120, PTH208

from __future__ import annotations

import errno
import os
import re
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PIECE = 1 << 24  # bytes: Ctrl-C is heard after each
_NO_NAMES = ("", ".", "..")
_MOST_LINKS = 40  # as Linux follows
_OPEN = re.compile("[0-9]{1,9}")
_OPEN_FILES = ("/proc/self/fd", "/proc/thread-self/fd")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
_UNNAMED = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
_PART = re.compile(r"\.cudago-[0-9a-f]{16}")
_ABANDONED = 3600  # seconds since the last write: of a part whose writer was killed
_ACL = "system.posix_acl_access"  # the attribute that has a file's access control list


def write_whole(path: str | bytes | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file, which replaces the one at a path once it is complete.

    What is no file, such as a pipe, is written to, and so is what the program has open:
    ``/dev/stdout``. An error leaves nothing behind. Who may read the file, or change it, stays so,
    also while it is written.
    """
    given = os.fspath(path)
    try:
        to = _target(os.fsdecode(given))
        if isinstance(to, int):
            _write(to, pieces)
        elif _is_replaced(to):
            _replace(to, pieces)
        else:
            _fill(to, pieces)
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


def _fill(path: str, pieces: Iterable[bytes | memoryview]) -> None:
    files: list[int] = []
    try:
        _open(files, path, _NEW | os.O_TRUNC, 0o666)
        _write(files[0], pieces)
    finally:
        for fd in files:
            os.close(fd)


def _replace(to: str, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file without a name, which the system removes if this process is killed, and name it.

    Only a rename replaces a file, so it has a name of its own for a moment; or from the beginning,
    where the file system cannot do without.
    """
    folder = os.path.dirname(to)
    part = os.path.join(folder, f".cudago-{os.urandom(8).hex()}")
    _remove_abandoned(folder)
    files: list[int] = []
    try:
        old = _stat(to)
        mode = 0o600 if old else 0o666  # less what the umask takes, which is for new files
        with suppress(OSError):
            _open(files, folder, _UNNAMED, mode)
        if files:
            _put(files[0], to, old, pieces)
            pieces = _contents(files[0])
        if not files or not _link(files[0], part):
            _open(files, part, _NEW | os.O_EXCL, mode)
            _put(files[-1], to, old, pieces)
        os.replace(part, to)
    finally:
        # Signals are heard after calls, and where Python functions begin: so another Ctrl-C comes
        # before this call no more.
        try:
            os.unlink(part)
        except OSError:
            pass  # it has the other name by now, or was not made
        finally:
            for fd in files:
                os.close(fd)


def _open(files: list[int], path: str, flags: int, mode: int) -> None:
    """Add a descriptor to a list: in C, so that Ctrl-C comes when it is there to be closed."""
    files += map(os.open, (path,), (flags,), (mode,))


def _link(fd: int, name: str) -> bool:
    """Give a file without a name one; False where that cannot be, such as without /proc."""
    try:  # a folder's descriptor makes os.link follow links; with a whole name it is not looked at
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=fd, follow_symlinks=True)
    except OSError:
        return False
    return True


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None  # there may be no such file yet


def _put(
    fd: int, to: str, old: os.stat_result | None, pieces: Iterable[bytes | memoryview]
) -> None:
    if old:
        _protect(fd, to, old)
    _write(fd, pieces)
    os.fsync(fd)  # else a crash of the machine may leave the name, and an empty file


def _contents(fd: int) -> Iterator[bytes]:
    os.lseek(fd, 0, os.SEEK_SET)
    while piece := os.read(fd, _PIECE):
        yield piece


def _protect(fd: int, to: str, old: os.stat_result) -> None:
    """Give a file, which is empty yet, the owner, group and permissions of the one it replaces.

    What cannot be given it has less of: nobody may read what they could not.
    """
    mode, acl = old.st_mode & 0o777, _acl(to)
    made = os.fstat(fd)
    if made.st_uid != old.st_uid:
        with suppress(OSError):  # only root may give files away
            os.fchown(fd, old.st_uid, -1)
    try:
        if made.st_gid != old.st_gid:
            os.fchown(fd, -1, old.st_gid)
        if acl is not None:
            os.setxattr(fd, _ACL, acl)
        else:
            with suppress(OSError):  # it may have one of the folder's
                os.removexattr(fd, _ACL)
    except OSError:
        both = 0 if acl is not None else mode >> 3 & mode & 7  # what its group and the others could
        mode = mode & 0o700 | both << 3 | both
    with suppress(OSError):  # a file system may have one mode for all files
        os.fchmod(fd, mode)


def _acl(path: str) -> bytes | None:
    """Return the access control list, in which a file's group may have less than in the mode."""
    try:
        return os.getxattr(path, _ACL)
    except OSError:
        return None


def _remove_abandoned(folder: str) -> None:
    """Remove parts with a name whose writers were killed."""
    with suppress(OSError):
        for name in filter(_PART.fullmatch, os.listdir(folder)):
            _remove_if_abandoned(os.path.join(folder, name))


def _remove_if_abandoned(part: str) -> None:
    with suppress(OSError):  # of somebody else, or gone
        found = os.lstat(part)
        if stat.S_ISREG(found.st_mode) and found.st_mtime < time.time() - _ABANDONED:
            os.unlink(part)


def _write(to: int, pieces: Iterable[bytes | memoryview]) -> None:
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(to, rest[:_PIECE]) :]
