# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Build cudago under AddressSanitizer, next to the ordinary module, and run commands with it.

``python build_hooks/asan.py`` builds into build/asan; ``python build_hooks/asan.py COMMAND...``
runs a command that imports that cudago. A report ends the process with its stack and exit code 99.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import extension

FOLDER = extension.ROOT / "build" / "asan"
MODULE = FOLDER / "cudago" / extension.MODULE

OPTIONS = {
    "detect_leaks": 0,  # Python frees much only when it ends
    # Go's handler stands before this one, and passes on what is not Go's: so a null pointer in C
    # has a stack too, and a panic in Go is still an exception.
    "handle_segv": 1,
    "allow_user_segv_handler": 1,
    "use_sigaltstack": 1,
    "exitcode": 99,
}


def runtime() -> str:
    """Return the path of the compiler's sanitizer, which must be loaded first."""
    cc = extension.find_cc()
    if cc:
        ask = [*shlex.split(cc), "-print-file-name=libasan.so"]
        path = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
        if Path(path).is_absolute() and Path(path).exists():
            return path
    raise extension.BuildError(
        f"the C compiler ({cc or 'none'}) has no libasan.so: install gcc and its libasan"
    )


def build() -> None:
    """Build the module, and put the Python files next to it."""
    runtime()
    extension.build(
        MODULE,
        go_flags=("-asan",),
        cflags="-O1 -g -fno-omit-frame-pointer -fsanitize=address",
        stripped=False,
    )
    for source in (extension.ROOT / "python" / "cudago").iterdir():
        link = MODULE.with_name(source.name)
        if source.name not in (extension.MODULE, "__pycache__"):
            link.unlink(missing_ok=True)
            link.symlink_to(source)


def environment() -> dict[str, str]:
    """Return the environment in which Python loads this build."""
    path = os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH"))))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "LD_PRELOAD": runtime(),
        "ASAN_OPTIONS": ":".join(f"{k}={v}" for k, v in OPTIONS.items()),
        "PYTHONMALLOC": "malloc",  # Python's own allocator hides what is used after it was freed
    }


def main() -> None:
    """Build, or run a command."""
    try:
        if sys.argv[1:]:
            os.execvpe(sys.argv[1], sys.argv[1:], environment())
        build()
    except extension.BuildError as e:
        raise SystemExit(f"cudago: {e}") from None
    print(f"{os.path.relpath(MODULE)}: {MODULE.stat().st_size / 1e6:.1f} MB, for AddressSanitizer")


if __name__ == "__main__":
    main()
