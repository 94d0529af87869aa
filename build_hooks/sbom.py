# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The list of what is linked into the native module, as CycloneDX, for the wheel.

The module itself says which Go modules are in it. A module whose licence is not in LICENSES stops
the build: somebody must read that licence, and put its text into the folder licenses.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import extension

FOLDER = extension.ROOT / "licenses"
# SPDX identifier, and the file in FOLDER with the text.
LICENSES = {
    "std": ("BSD-3-Clause", "go.txt"),
    "github.com/go-python/gopy": ("BSD-3-Clause", "gopy.txt"),
    "github.com/ianlancetaylor/demangle": ("BSD-3-Clause", "demangle.txt"),
    "zig": ("MIT", "zig.txt"),
}
# Linkers put these files of the GNU C Library, and functions of the compiler's own, into every
# library; no notice is required.
GLIBC_LICENSE = "LGPL-2.1-or-later, with unlimited permission to link these files"
LIBGCC_LICENSE = "GPL-3.0-or-later WITH GCC-exception-3.1"
COMPILER_RT_LICENSE = "Apache-2.0 WITH LLVM-exception"


def linked(module: Path, go: str) -> tuple[str, list[tuple[str, str, str]]]:
    """Return Go's version, and path, version and checksum of each Go module in the file."""
    command = [go, "version", "-m", str(module)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    head, *lines = out.splitlines()
    fields = [line.split() for line in lines]
    modules = [(f[1], f[2], f[3]) for f in fields if len(f) == 4 and f[0] == "dep"]
    if any(f[0] == "=>" for f in fields if f):
        raise extension.BuildError("a Go module is replaced by another: name it in the list")
    return head.rsplit("go", 1)[1].split()[0], modules


def component(name: str, version: str, license: dict[str, Any], purl: str = "") -> dict[str, Any]:
    """Return one part of the list."""
    part = {"type": "library", "name": name, "version": version, "licenses": [{"license": license}]}
    ref = purl or f"{name}@{version}"
    return {**part, "bom-ref": ref, **({"purl": purl} if purl else {})}


def known(name: str) -> dict[str, str]:
    """Return the licence of what is linked in."""
    if name not in LICENSES:
        raise extension.BuildError(
            f"{name} is linked in, and build_hooks/sbom.py has no licence for it"
        )
    return {"id": LICENSES[name][0]}


def c_parts() -> list[dict[str, Any]]:
    """Return what the C compiler links in."""
    cc = shlex.split("" if extension.wheel_machine() else extension.find_cc() or "")
    if cc and "ziglang" not in cc:
        return [runtime_of(cc), start_files(os.confstr("CS_GNU_LIBC_VERSION").split()[-1])]
    ask = [cc[0] if cc else sys.executable, "-m", "ziglang", "version"]
    zig = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    return [component("zig compiler-rt", zig, known("zig")), start_files(extension.ZIG_GLIBC)]


def start_files(version: str) -> dict[str, Any]:
    """Return the C library's part in every library."""
    return component("glibc start files", version, {"name": GLIBC_LICENSE})


def runtime_of(cc: list[str]) -> dict[str, Any]:
    """Return the runtime of the machine's own compiler: gcc's, which clang may use too."""
    ask = [*cc, "-print-libgcc-file-name"]
    said = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    path = Path(said)
    if "clang_rt" in path.name:  # .../lib/clang/VERSION/lib/SYSTEM/libclang_rt.builtins.a
        return component("compiler-rt", path.parents[2].name, {"name": COMPILER_RT_LICENSE})
    if path.name == "libgcc.a":  # .../gcc/SYSTEM/VERSION/libgcc.a
        return component("libgcc", path.parent.name, {"name": LIBGCC_LICENSE})
    return component(f"runtime of {cc[0]}", "unknown", {"name": "that of the compiler"})


def describe(module: Path, go: str) -> dict[str, Any]:
    """Return the list for a built module. It names no time, so that two builds are the same."""
    go_version, modules = linked(module, go)
    std = component("std", go_version, known("std"), f"pkg:golang/std@{go_version}")
    parts = [std]
    for path, version, checksum in modules:
        part = component(path, version, known(path), f"pkg:golang/{path}@{version}")
        parts.append({**part, "properties": [{"name": "go.sum", "value": checksum}]})
    parts += c_parts()
    version = extension.version()
    ours = component("cudago", version, {"id": "Apache-2.0"}, f"pkg:pypi/cudago@{version}")
    needs = {"ref": ours["bom-ref"], "dependsOn": [p["bom-ref"] for p in parts]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": ours},
        "components": parts,
        "dependencies": [needs],
    }


def write(module: Path) -> Path:
    """Write the list next to a built module, and return its path."""
    go = extension.find_go()
    assert go is not None, "it has built the module"
    path = module.with_name("cudago.cdx.json")
    path.write_text(json.dumps(describe(module, go), indent=2) + "\n")
    return path
