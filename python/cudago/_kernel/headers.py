# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where CUDA's headers are, and what is said where they are missing."""

from __future__ import annotations

import os
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# Libraries by cuda-pathfinder's names: CUDA's own headers, and CUB, Thrust and libcu++.
_LIBRARIES = ("cudart", "cccl")
_TOOLKITS = ("CUDA_HOME", "CUDA_PATH")
_found: list[str] = []


def may_include(source: str, headers: Mapping[str, str], pre_include: Any) -> bool:
    """Whether a program may include a file: others are compiled without any directory."""
    texts = (source, *headers.values())
    return bool(pre_include) or any("include" in text for text in texts)


def directories() -> list[str]:
    """Return the directories that have CUDA's headers, CUB and libcu++, as far as there are any."""
    if not _found:  # what is not there may be installed yet
        found = _by_pathfinder()
        if len(found) < len(_LIBRARIES):  # not installed, or does not search all that Python does
            found += _by_ourselves()
        _found.extend(dict.fromkeys(found))
    return list(_found)


def _by_pathfinder() -> list[str]:
    """Ask NVIDIA's cuda-pathfinder, if it is installed."""
    try:
        pathfinder: Any = import_module("cuda.pathfinder")
    except ImportError:
        return []
    found: list[str] = []
    for library in _LIBRARIES:
        try:
            directory = pathfinder.find_nvidia_header_directory(library)
        except Exception:  # noqa: BLE001, S112: a search that fails must not keep us from compiling
            continue
        if directory:
            found.append(str(directory))
    return found


def _by_ourselves() -> list[str]:
    """Look in NVIDIA's packages in Python's environment, then in the toolkits."""
    spec = find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    places = [p for root in roots for p in sorted(root.glob("*/include"), reverse=True)]
    homes = [os.environ.get(name, "") for name in _TOOLKITS]
    places += [Path(home) / "include" for home in (*homes, "/usr/local/cuda") if home]
    runtime = next((p for p in places if (p / "cuda_fp16.h").is_file()), None)
    cccl = next((d for p in places for d in (p / "cccl", p) if (d / "cub").is_dir()), None)
    return [str(p) for p in (runtime, cccl) if p]


_MISSING = re.compile(r'(?:could not|cannot) open source file "([^"]+)"')
# Headers of a host's standard library are not for a device; libcu++ has these.
_STANDARD = re.compile(r"[a-z_]+$")
_PACKAGES = {
    "curand": "nvidia-curand",
    "nvtx3": "nvidia-nvtx",
    "cufft": "nvidia-cufft",
    "cutlass": "nvidia-cutlass",
    "cute": "nvidia-cutlass",
}
_EXTRA = re.compile(
    r"(?:cuda|cub|thrust|nv|crt|cooperative_groups)/|cu\w*\.h|cooperative_groups\.h|mma\.h|sm_\w+\.h|"
    r"(?:vector|device)_\w+\.h"
)


def hint(log: str) -> str:
    """Say what to do about a header that the compiler did not find; empty if it found all."""
    missing = _MISSING.search(log)
    if missing is None:
        return ""
    name = missing[1]
    looked = ", ".join(directories()) or "no directory of CUDA's headers: none was found"
    package = next((p for word, p in _PACKAGES.items() if name.startswith(word)), "")
    if package:
        advice = f"`pip install {package}` brings it along, for include_path="
    elif _EXTRA.match(name):
        advice = (
            "`pip install 'cudago[headers]'` brings CUDA's headers, CUB and libcu++ along, "
            "which are then found"
        )
    elif _STANDARD.match(name):
        advice = _instead(name)
    else:
        advice = "name its directory by include_path=, or give its text by headers="
    return f"{name!r} was not found: {advice}. Searched besides include_path: {looked}"


def _instead(name: str) -> str:
    """Say what devices have instead of a header of a host's standard library."""
    libcu = [d for d in map(Path, directories()) if (d / "cuda/std").is_dir()]
    if any((d / "cuda/std" / name).is_file() for d in libcu):
        return f"for devices libcu++ has it, as <cuda/std/{name}>"
    if libcu:
        return "it is for hosts, and libcu++ has nothing of that name for devices"
    return (
        "the compiler has no headers of a host's standard library; libcu++ has many of them, "
        f"for devices, as <cuda/std/{name}>: `pip install 'cudago[headers]'` brings it along"
    )
