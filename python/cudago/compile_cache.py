# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled programs, in memory and in a folder that all processes of a user share.

`Program.compile` finds code that was made from the same source, headers, options and names by the
same NVRTC, for the same architecture, and with the same files to include. Three environment
variables, which are read when the first program is compiled, say what is kept:

- ``CUDAGO_CACHE`` is ``disk`` (the default), ``memory``, or ``off``.
- ``CUDAGO_CACHE_DIR`` is the folder; by default ``cudago`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
- ``CUDAGO_CACHE_SIZE`` is the most that is kept in the folder, in bytes; by default 512 MiB.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, SupportsIndex

from . import _core
from ._native import number_text, whole
from .errors import CUDAWarning

__all__ = ["Statistics", "clear", "configure", "directory", "statistics"]

_KINDS = ("off", "memory", "disk")
_MEMORY_BYTES = 64 << 20
_DISK_BYTES = 512 << 20
_lock = threading.RLock()  # guards _directory, and configuring; a signal's handler may do either
_is_configured = False
_directory: str | None = None


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What the compile cache did since the process began or `clear` was called.

    Parameters
    ----------
    memory_hits, disk_hits : int
        Programs that were found in memory, or in the folder.
    misses : int
        Programs that were compiled, but for those with ``cache=False``.
    uncacheable : int
        Those of them that are not kept: they include what a macro names, use ``__DATE__`` or
        ``__TIME__``, or have options that make the compiler read or write other files.
    evicted : int
        Entries that were removed to make room.
    damaged : int
        Entries that were removed because they were not what had been written.
    failed : int
        Entries that could not be written to the folder.
    memory_entries, memory_bytes, disk_entries, disk_bytes : int
        What there is now.
    """

    memory_hits: int
    disk_hits: int
    misses: int
    uncacheable: int
    evicted: int
    damaged: int
    failed: int
    memory_entries: int
    memory_bytes: int
    disk_entries: int
    disk_bytes: int


def configure(
    kind: Literal["off", "memory", "disk"] = "disk",
    *,
    directory: str | os.PathLike[str] | None = None,
    max_bytes: SupportsIndex | None = None,
) -> None:
    """Say what is kept, instead of the environment variables. What is in memory is forgotten.

    Parameters
    ----------
    kind : {"off", "memory", "disk"}
        Whether code is kept, and where.
    directory : str or path, optional
        The folder for ``"disk"``; by default the one that the environment names. It is made if
        it is not there, once there is code to keep: if it cannot be made or written to, programs
        are compiled as if there were none, and ``Statistics.failed`` counts. Code is put into a
        folder of it, which only this user can read.
    max_bytes : int, optional
        The most that is kept in the folder; by default what the environment says.

    Examples
    --------
    >>> cudago.compile_cache.configure("memory")
    >>> cudago.compile_cache.directory() is None
    True
    """
    _apply(kind, directory, max_bytes)


def _apply(
    kind: str,
    directory: str | os.PathLike[str] | None,
    max_bytes: SupportsIndex | None,
    *,
    is_first: bool = False,
) -> None:
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, got {kind!r}")
    most = _disk_bytes() if max_bytes is None else whole(max_bytes, "max_bytes")
    if most < 0:
        raise ValueError(f"max_bytes must be at least 0, got {number_text(most)}")
    if most > 1 << 62:
        raise OverflowError(f"max_bytes must be at most 2**62, got {number_text(most)}")
    chosen = _default_directory() if directory is None else os.fspath(directory)
    if not isinstance(chosen, str):
        raise TypeError(f"directory must be a str or a path, not {type(directory).__name__}")
    if "\0" in chosen or (directory is not None and not chosen):
        raise ValueError(f"directory must be the name of a folder, got {chosen!r}")
    if not _is_utf8(chosen):
        raise ValueError(f"directory must be a name in UTF-8, got {chosen!r}")
    _set(kind, str(Path(chosen).absolute()) if chosen else "", most, is_first)


def _set(kind: str, chosen: str, most: int, is_first: bool) -> None:
    """Configure the cache; `is_first` if only as long as nobody has."""
    on_disk = kind == "disk" and chosen != ""
    config = {
        "MemoryLimit": 0 if kind == "off" else _MEMORY_BYTES,
        "Dir": chosen if on_disk else "",
        "DiskLimit": most,
    }
    _core._locked(_lock, _configure, json.dumps(config), chosen if on_disk else None, is_first)


def _configure(config: str, directory: str | None, is_first: bool) -> None:
    global _directory, _is_configured
    if is_first and _is_configured:  # by another thread
        return
    _core._code_cache("configure", config)
    _directory = directory
    _is_configured = True


def _default_directory() -> str:
    """Return the folder that the environment names; empty if there is none, as without a home."""
    if chosen := os.environ.get("CUDAGO_CACHE_DIR", ""):
        if not _is_utf8(chosen):
            raise ValueError(f"CUDAGO_CACHE_DIR must be a name in UTF-8, got {chosen!r}")
        return chosen
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):  # others are to be ignored, says its specification
        try:
            base = str(Path.home() / ".cache")
        except RuntimeError:
            return ""
    return f"{base}/cudago" if _is_utf8(base) else ""  # a home has the name that it has


def _is_utf8(name: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in name)


def _disk_bytes() -> int:
    text = os.environ.get("CUDAGO_CACHE_SIZE", "")
    if not text:
        return _DISK_BYTES
    try:
        most = int(text)
    except ValueError:
        most = -1
    if not 0 <= most <= 1 << 62:
        raise ValueError(f"CUDAGO_CACHE_SIZE must be a number of bytes, got {text!r}")
    return most


def _ensure() -> None:
    """Configure the cache by the environment, if nobody has configured it."""
    if not _is_configured:
        kind = os.environ.get("CUDAGO_CACHE", "") or "disk"
        if kind not in _KINDS:
            raise ValueError(f"CUDAGO_CACHE must be {' or '.join(_KINDS)}, got {kind!r}")
        _apply(kind, None, None, is_first=True)


def _warn(text: str) -> None:
    """Tell what is wrong with the folder or an entry; the program was compiled all the same."""
    warnings.warn(text, CUDAWarning, stacklevel=3)


def directory() -> str | None:
    """Return the folder in which code is kept.

    Returns
    -------
    str or None
        Its absolute path; None if no code is kept on disk.
    """
    _ensure()
    return _directory


def statistics() -> Statistics:
    """Return what the cache did, and what it has.

    Returns
    -------
    Statistics
        Counts of this process, and sizes; those of the folder include what other processes made.

    Notes
    -----
    Blocks while the folder is read.

    Examples
    --------
    >>> source = 'extern "C" __global__ void known() {}'
    >>> first = cudago.Program(source).compile()
    >>> before = cudago.compile_cache.statistics()
    >>> second = cudago.Program(source).compile()
    >>> cudago.compile_cache.statistics().memory_hits - before.memory_hits
    1
    """
    _ensure()
    counts = json.loads(_core._code_cache("stats", ""))
    return Statistics(**{_snake(name): n for name, n in counts.items()})


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).strip("_")


def clear() -> None:
    """Remove all code that is kept, in memory and in the folder, and zero the statistics.

    Raises
    ------
    OSError
        If the folder is not used, because others can write to it.

    Notes
    -----
    Blocks while the folder is emptied. Programs that were compiled stay as they are.
    """
    _ensure()
    answer = _core._code_cache("clear", "")
    if not answer.startswith("{"):
        raise OSError(answer)
