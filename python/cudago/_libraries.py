# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where packages have put NVIDIA's libraries: NVRTC, nvJitLink and libnvvm.

What the system has is looked for by the native module, and so is what variables name.
"""
# ruff: noqa: PTH109, PTH110, PTH208

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    _started_in = os.getcwd()
except OSError:  # it has been removed
    _started_in = ""
NAMES = ("libnvrtc", "libnvJitLink", "libnvvm")
# As seen from the folder of libnvvm: in the wheel for CUDA 13, and in all others.
_LIBDEVICE = ("../nvvm/libdevice", "../libdevice")


def folders() -> list[tuple[str, list[str]]]:
    """Return the folders in which packages put libraries, and what is there."""
    return [(folder, names) for folder, _ in _places() if (names := _names_in(folder))]


def folders_of(library: str, folders: list[tuple[str, list[str]]]) -> list[str]:
    """Return those that have a library, such as ``"libnvrtc"``."""
    return [folder for folder, names in folders if any(_is_of(n, library) for n in names)]


def to_freeze() -> list[tuple[str, str]]:
    """Return the files that a frozen program needs, and folders for them where they are found."""
    files: list[tuple[str, str]] = []
    for library in NAMES:
        for folder, place in _places():
            found = [n for n in _names_in(folder) if _is_of(n, library)]
            if not found:
                continue
            builtins = [n for n in _names_in(folder) if _is_of(n, f"{library}-builtins")]
            files += [(f"{folder}/{name}", place) for name in (*found, *builtins)]
            for beside in _LIBDEVICE if library == "libnvvm" else ():
                if os.path.exists(device := f"{folder}/{beside}/libdevice.10.bc"):
                    files.append((device, os.path.normpath(f"{place}/{beside}")))
            break
    return files


def _is_of(name: str, library: str) -> bool:
    return name.startswith(f"{library}.so")


def _places() -> Iterator[tuple[str, str]]:
    """Yield folders, and where a frozen program has what is in them.

    NVIDIA's wheels put libraries into nvidia/cu13/lib and such beside Python's modules, and that
    for CUDA 12 libnvvm into cuda_nvcc/nvvm/lib64; Conda puts them into the environment's lib,
    targets/x86_64-linux/lib and nvvm/lib64.
    """
    for entry in _module_folders():
        root = f"{entry}/nvidia"
        packages = sorted(_names_in(root), reverse=True)
        for folder in ("lib", "nvvm/lib64"):
            for package in packages:
                yield f"{root}/{package}/{folder}", f"nvidia/{package}/{folder}"
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)):
        targets = [f"targets/{name}/lib" for name in _names_in(f"{prefix}/targets")]
        for folder in ("lib", *targets, "nvvm/lib64"):
            place = "nvvm/lib64" if folder == "nvvm/lib64" else "lib"
            yield f"{prefix}/{folder}", f"nvidia/environment/{place}"


def _module_folders() -> list[str]:
    """Return the folders of Python's path, without the current one that nobody has put there.

    Python does that for ``python -m``, ``-c`` and sessions: modules of a project are found so. But
    a library is run as soon as it is opened, and that folder may be anybody's.
    """
    path = [entry for entry in sys.path if isinstance(entry, str)]
    if path and path[0] == _started_in and not sys.flags.safe_path and not _is_script():
        del path[0]
    return [entry for entry in dict.fromkeys(path) if entry]


def _is_script() -> bool:
    """Whether the program is a file, whose folder is first in the path."""
    main = sys.modules.get("__main__")
    return hasattr(main, "__file__") and getattr(main, "__spec__", None) is None


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
