# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago ptx``: the kernels of a PTX file, their parameters, and what runs here."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import cudago as cu

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_KERNEL = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?")
_PARAMETER = re.compile(r"\.param\b(.*?)([\w$]+)\s*(\[\s*\d+\s*\])?\s*$", re.S)
_TYPE = re.compile(r"\.([a-z]+\d+)\b")


@dataclass
class Kernel:
    """A kernel declaration."""

    name: str
    parameters: list[tuple[str, str]]  # type and name


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "ptx",
        help="show the kernels of a PTX file, their parameters, and what runs here",
        description="Show the kernels of a PTX file and their parameters, and say of each whether "
        "it runs on device 0 of the driver that CUDAGO_DRIVER chooses. The exit status is 1 if one "
        "does not.",
    )
    parser.add_argument("file", type=Path)
    parser.set_defaults(main=main)


def declared(text: str) -> list[Kernel]:
    """Return the kernels that a PTX text declares."""
    return [
        Kernel(name, [_declared(p) for p in (parameters or "").split(",") if p.strip()])
        for name, parameters in _KERNEL.findall(_COMMENT.sub(" ", text))
    ]


def _declared(parameter: str) -> tuple[str, str]:
    found = _PARAMETER.search(parameter)
    if not found:
        return "?", parameter.strip()
    kind = _TYPE.search(found[1])
    array = re.sub(r"\s", "", found[3] or "")
    return (kind[1] if kind else "?") + array, found[2]


def main(options: argparse.Namespace) -> int:
    """Print the kernels; return 1 if one cannot run here."""
    try:
        text = options.file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or e
        print(f"{options.file} must be a text file of PTX: {why}", file=sys.stderr)
        return 1
    said = _COMMENT.sub(" ", text)
    if not re.search(r"^\s*\.version\s", said, re.M):
        print(f"{options.file} must be a text file of PTX: it has no .version", file=sys.stderr)
        return 1
    version, target = (
        found[1] if (found := re.search(rf"^\s*\.{word}\s+([\w.]+)", said, re.M)) else "?"
        for word in ("version", "target")
    )
    kernels = declared(text)
    count = f"{len(kernels)} kernel" + "s" * (len(kernels) != 1)
    print(f"{options.file}: {count}, PTX {version} for {target}")
    code: cu.ObjectCode | None = None
    try:
        print(f"here: {cu.Device().name}, driver {cu.driver_name()}")
        code = cu.ObjectCode.from_ptx(text.encode())
    except (cu.CUDAError, ValueError) as e:
        print(f"nothing runs here: {e}")
    runs = [_show(kernel, code, target) for kernel in kernels]
    return 0 if all(runs) and kernels else 1


def _show(kernel: Kernel, code: cu.ObjectCode | None, target: str) -> bool:
    """Print a kernel, and return whether it can run here."""
    print(f"\n{kernel.name}")
    width = max((len(kind) for kind, _ in kernel.parameters), default=0)
    for number, (kind, name) in enumerate(kernel.parameters):
        print(f"  {number:2}  {kind:{width}}  {name}")
    if code is None:
        return False
    try:
        a = code[kernel.name].attributes
        print(
            f"  runs here: {a.register_count} registers and {a.local_size} bytes of local memory "
            f"a thread, {a.shared_size} bytes of shared memory and up to "
            f"{a.max_threads_per_block} threads a block"
        )
    except cu.CUDAError as e:
        print("  does not run here: " + str(e).replace("\n", "\n  "))
        later = re.match(r"sm_(\d+)(\d)", target)
        if e.name == "CUDA_ERROR_NO_BINARY_FOR_GPU" and cu.driver_name() == "sim" and later:
            print(f"  CUDAGO_SIM=cc={later[1]}.{later[2]} simulates such a device")
        return False
    return True
