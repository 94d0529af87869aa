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
    from collections.abc import Mapping, Sequence

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


# What NVRTC has no headers for, though it knows the types: as libcu++ defines them for NVRTC, so
# that both may be included.
_TYPES = """#pragma once
#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#else
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;
typedef decltype(static_cast<char*>(nullptr) - static_cast<char*>(nullptr)) ptrdiff_t;
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX UINT64_MAX
#endif
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
using ::size_t; using ::ptrdiff_t;
}
"""
_LIMITS = """#pragma once
#if __has_include(<cuda/std/climits>)
#include <cuda/std/climits>
#else
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#endif
"""
_COMMON = "cudago/types.h"  # included by all names of it, so that it is there once
_BUILT_IN = {
    **dict.fromkeys(("cstdint", "stdint.h", "cstddef", "stddef.h"), _COMMON),
    **dict.fromkeys(("climits", "limits.h"), "cudago/limits.h"),
}
_NAMED = re.compile(r'#[ \t]*include[ \t]*[<"](c?std(?:int|def)(?:\.h)?|c?limits(?:\.h)?)[>"]')


def built_in(
    source: str, headers: Mapping[str, str], include_path: Sequence[str]
) -> dict[str, str]:
    """Return the headers of ours that a program includes, unless the user has such files."""
    found: dict[str, str] = {}
    for text in (source, *headers.values()):
        for name in _NAMED.findall(text):
            common = _BUILT_IN.get(name)
            if (
                common is None
                or name in headers
                or any((Path(d) / name).exists() for d in include_path)
            ):
                continue
            found[name] = f"#include <{common}>\n"
            found[common] = _TYPES if common == _COMMON else _LIMITS
    return found


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
        advice = (
            "the compiler has no headers of a host's standard library; libcu++ has many of them, "
            f"for devices, as <cuda/std/{name}>: `pip install 'cudago[headers]'` brings it along"
        )
    else:
        advice = "name its directory by include_path=, or give its text by headers="
    return f"{name!r} was not found: {advice}. Searched besides include_path: {looked}"
