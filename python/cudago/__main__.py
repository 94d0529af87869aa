# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago info`` and ``python -m cudago run``."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import runpy
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m cudago", description="CUDA for Python, with a core in Go."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="show drivers, devices, versions and libraries")
    run = commands.add_parser("run", help="run a script on a chosen driver")
    run.add_argument("--driver", choices=("auto", "nvidia", "sim"))
    run.add_argument(
        "--check", action="store_true", help="switch on every check of the simulated driver"
    )
    run.add_argument("script")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if options.command == "info":
        return _info()
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    if options.driver:
        os.environ["CUDAGO_DRIVER"] = options.driver
    if options.check:
        os.environ["CUDAGO_SIM"] = ",".join(
            filter(None, (os.environ.get("CUDAGO_SIM"), "check=full"))
        )
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, str(Path(options.script).resolve().parent))
    try:
        runpy.run_path(options.script, run_name="__main__")
    except SystemExit:
        if options.check and _found():
            return 1
        raise
    return 1 if options.check and _found() else 0


def _found() -> bool:
    """Say what the checks have found, once all work is done."""
    import cudago as cu

    if not cu._core._is_open():
        return False
    for device in cu.Device.all():
        with contextlib.suppress(cu.CheckError):  # it is among the reports
            device.sync()
    found = cu.sim.reports()
    for report in found:
        print(f"cudago: {report}", file=sys.stderr)
    return bool(found)


def _info() -> int:
    import cudago as cu

    from ._driver import _nvrtc_directories

    print(f"cudago    {cu.__version__}, Python {platform.python_version()}, {platform.platform()}")
    for name in ("CUDAGO_DRIVER", "CUDAGO_SIM", "CUDAGO_LIBCUDA", "CUDAGO_NVRTC_PATH"):
        if value := os.environ.get(name):
            print(f"{name}={value}")
    try:
        major, minor = cu.driver_version()
        print(f"driver    {cu.driver_name()}, CUDA {major}.{minor}")
        if notice := cu._core._info("notice"):
            print(f"          {notice}")
        for d in cu.Device.all():
            cc = ".".join(map(str, d.compute_capability))
            print(
                f"device {d.ordinal}  {d.name}, compute capability {cc},",
                f"{d.total_memory >> 20} MiB,",
                f"{d.properties.multiprocessor_count} multiprocessors, PCI {d.pci_bus_id}",
            )
    except cu.CUDAError as e:
        print(f"driver    none: {e}")
        return 1
    print("nvrtc     ", end="")
    try:
        code = cu.Program('extern "C" __global__ void nothing() {}').compile("ptx")
        version = next(
            line for line in (code.ptx or "").splitlines() if line.startswith(".version")
        )
        print(f"compiles CUDA C++ to PTX {version.split()[1]}")
    except cu.CUDAError as e:
        print(e)
    for directory in _nvrtc_directories():
        print(f"          looked in {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
