# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago info``: drivers, devices, versions, libraries, and where they were looked for."""

from __future__ import annotations

import argparse
import os
import platform


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser("info", help="show drivers, devices, versions and libraries")
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Print what there is; return 1 where no driver is usable."""
    import cudago as cu

    from .._driver import _nvrtc_directories

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
