# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Which Pythons and systems cudago runs on, in sentences.

Read by the build too (build_hooks/extension.py), where nothing of the package can be imported: so
this imports nothing of it, and even an old Python understands it.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from pathlib import Path

OLDEST_PYTHON = (3, 11)  # the first stable ABI with the buffer protocol; also in pyproject.toml
MACHINES = ("x86_64", "aarch64")
_ELSEWHERE = {
    "darwin": "macOS: a Linux container or virtual machine runs it, on the simulated driver",
    "win32": "Windows: WSL runs it, and sees the GPU",
}


def refusal() -> str | None:
    """Return why cudago cannot run here, in one sentence; None where it can."""
    if sys.platform != "linux":
        return f"cudago runs on Linux, and this is {_ELSEWHERE.get(sys.platform, sys.platform)}"
    got = f"{platform.python_version()} ({sys.executable})"
    if sys.implementation.name != "cpython":
        return f"cudago needs CPython, and this is {sys.implementation.name} {got}"
    if sys.version_info < OLDEST_PYTHON:
        return f"cudago needs Python {'.'.join(map(str, OLDEST_PYTHON))} or newer, got {got}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"cudago needs a Python with the GIL, and this is a free-threaded one, {got}"
    if "musl" in str(sysconfig.get_config_var("HOST_GNU_TYPE")):
        return "cudago needs glibc, and this Python has musl, which cannot load a library in Go"
    if platform.machine() not in MACHINES or sys.maxsize < 1 << 32:
        bits = 64 if sys.maxsize > 1 << 32 else 32
        asked = f"{platform.machine()} with a Python of {bits} bits"
        return f"cudago runs on {' and '.join(MACHINES)} with 64 bits, and this is {asked}"
    return None


def why_no_module(reason: ImportError) -> ImportError:
    """Return what to raise where the native module could not be imported."""
    if sentence := refusal():
        return ImportError(sentence)
    if archive := next((p for p in Path(__file__).parents if p.is_file()), None):
        return ImportError(
            f"cudago cannot be imported from an archive, {archive}: the system loads its native "
            "module from a file only. Unpack the archive; or pack the program with shiv, pex or "
            "PyInstaller, which unpack it when it starts"
        )
    if not (Path(__file__).parent / "_core.abi3.so").exists():
        return ImportError(
            "cudago lacks its native module, _core.abi3.so: install it again, or run 'make build' "
            "in a clone"
        )
    return reason
