# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago info``: drivers, devices, versions, libraries, and where they were looked for."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
from pathlib import Path
from typing import Any

import cudago as cu

from .. import _libraries
from .._driver import _notice
from .._gopy import api
from .._gopy_call import read_unopened

_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser("info", help="show drivers, devices, versions and libraries")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Print the facts; return 1 if no driver is usable."""
    found = collect()
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        _show(found)
    return 1 if found["driver"]["error"] else 0


def collect() -> dict[str, Any]:
    """Return the facts. Problems are among them, and never raised."""
    logging.getLogger("cudago").addHandler(logging.NullHandler())  # the notice is printed below
    found: dict[str, Any] = {
        "cudago": cu.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "linked": json.loads(read_unopened(api.linked)),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith("CUDAGO_") or name in _VARIABLES
        },
        "driver": {"name": None, "version": None, "library": None, "notice": None, "error": None},
        "devices": [],
        "nvrtc": {"library": None, "ptx": None, "error": None, "looked_in": []},
    }
    try:
        found["driver"] |= _driver()
        found["devices"] = [_device(d) for d in cu.Device.all()]
    except (cu.CUDAError, ValueError) as e:
        found["driver"]["error"] = str(e)
    else:
        found["nvrtc"] |= _nvrtc()
    return found


def loaded(library: str) -> str | None:
    """Return the path of a library loaded by this process, such as ``libnvrtc.so``."""
    for line in Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines():
        file = line.partition("/")[2]
        if file.rpartition("/")[2].startswith(library):
            return "/" + file
    return None


def _driver() -> dict[str, Any]:
    version = cu.driver_version()
    return {
        "name": cu.driver_name(),
        "version": list(version),
        "library": loaded("libcuda.so") if cu.driver_name() == "nvidia" else None,
        "notice": _notice() or None,
    }


def _device(device: Any) -> dict[str, Any]:
    return {
        "ordinal": device.ordinal,
        "name": device.name,
        "compute_capability": list(device.compute_capability),
        "total_memory": device.total_memory,
        "multiprocessor_count": device.properties.multiprocessor_count,
        "pci_bus_id": device.pci_bus_id,
    }


def _nvrtc() -> dict[str, Any]:
    found: dict[str, Any] = {"looked_in": _libraries.folders_of("libnvrtc", _libraries.folders())}
    try:
        code = cu.Program('extern "C" __global__ void nothing() {}').compile("ptx")
    except (cu.CUDAError, ValueError) as e:  # ValueError: a variable that is wrong
        return found | {"error": str(e)}
    lines = (code.ptx or "").splitlines()
    version = next(line for line in lines if line.startswith(".version"))
    return found | {"ptx": version.split()[1], "library": loaded("libnvrtc.so")}


def _show(found: dict[str, Any]) -> None:
    print(f"cudago    {found['cudago']}, Python {found['python']}, {found['platform']}")
    linked = sorted(found["linked"].items(), key=lambda item: item[0] != "go")
    print(f"linked    {', '.join(f'{name} {version}' for name, version in linked)}")
    for name, value in found["environment"].items():
        print(f"{name}={value}")
    driver, nvrtc = found["driver"], found["nvrtc"]
    if driver["error"]:
        print(f"driver    none: {driver['error']}")
        return
    print(f"driver    {driver['name']}, CUDA {'.'.join(map(str, driver['version']))}")
    for more in filter(None, (driver["library"], driver["notice"])):
        print(f"          {more}")
    for d in found["devices"]:
        cc = ".".join(map(str, d["compute_capability"]))
        print(
            f"device {d['ordinal']}  {d['name']}, compute capability {cc},",
            f"{d['total_memory'] >> 20} MiB,",
            f"{d['multiprocessor_count']} multiprocessors, PCI {d['pci_bus_id']}",
        )
    if nvrtc["error"]:
        print(f"nvrtc     none: {nvrtc['error']}")
    else:
        print(f"nvrtc     compiles CUDA C++ to PTX {nvrtc['ptx']}")
        print(f"          {nvrtc['library']}")
    for directory in nvrtc["looked_in"]:
        print(f"          looked in {directory}")
