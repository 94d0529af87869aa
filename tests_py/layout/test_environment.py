# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every environment variable is documented, with when it is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "concepts" / "drivers.rst"
DOCUMENTED = dict(
    re.findall(r"^   \* - ``(CUDAGO_\w+)``\n     - [^*]*\n     - (.+)$", PAGE.read_text(), re.M)
)


def test_all_that_the_sources_read_is_documented():
    python = [p.read_text() for p in (ROOT / "python" / "cudago").rglob("*.py")]
    go = [
        p.read_text()
        for folder in ("cuda", "dlpack", "graph", "pyext")
        for p in (ROOT / folder).rglob("*.go")
        if not p.name.endswith("_test.go")
    ]
    read = {name for text in python + go for name in re.findall(r'"(CUDAGO_[A-Z_]+)"', text)}
    assert set(DOCUMENTED) == read - {"CUDAGO_CHECK_FAILED"}  # the name of a result code


SET = "os.environ[{name!r}] = {value!r}"
COMPILE = """
try:
    cudago.Program('extern "C" __global__ void nothing() {}').compile("ptx")
except (cudago.CUDAError, ValueError) as e:
    print(e)
"""
LINK = """
try:
    cudago.Linker(cudago.ObjectCode.from_ltoir(b"nothing")).link()
except cudago.CompileError as e:
    print(e)
"""
IR = """
try:
    cudago.Program("", "nvvm").compile("ptx")
except cudago.CompileError as e:
    print(e)
"""
SEEN = {  # a value, and what it makes a program say
    "CUDAGO_DRIVER": ("gpu", "got 'gpu'"),
    "CUDAGO_SIM": ("seed=many", "seed must be"),
    "CUDAGO_TRACE": ("1", "cuInit"),
    "CUDAGO_LAST_CALLS": ("/nowhere/calls", "CUDAGO_LAST_CALLS must be a file"),
    "CUDAGO_LIBCUDA": ("/nowhere/libcuda.so", "/nowhere/libcuda.so"),
    "CUDAGO_CACHE": ("on", "CUDAGO_CACHE must be off or memory or disk, got 'on'"),
    "CUDAGO_CACHE_DIR": ("\udc80", "CUDAGO_CACHE_DIR must be a name in UTF-8"),
    "CUDAGO_CACHE_SIZE": ("large", "CUDAGO_CACHE_SIZE must be a number of bytes, got 'large'"),
    "CUDAGO_NVRTC_PATH": ("/nowhere/lib", "/nowhere/lib: no such directory"),
    "CUDAGO_NVJITLINK_PATH": ("/nowhere/lib", "/nowhere/lib/libnvJitLink.so.13: no such file"),
    "CUDAGO_NVVM_PATH": ("/nowhere/lib", "/nowhere/lib/libnvvm.so.4: no such file"),
}
USES = {"CUDAGO_NVJITLINK_PATH": LINK, "CUDAGO_NVVM_PATH": IR}


LIBRARIES = ["libnvrtc.so.13", "libnvJitLink.so.13", "libnvvm.so.4"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_it_is_read_when_the_page_says(name, script):
    value, said = SEEN[name]
    start, use = "import os, cudago\n", COMPILE
    if name.endswith("_PATH"):  # the message names places only where no package has the library
        use = USES.get(name, COMPILE)
        start += f"cudago._libraries.folders = lambda: [('/packages', {LIBRARIES})]\n"
        if "/packages" not in script(start + use, CUDAGO_DRIVER="sim").stdout:
            pytest.skip("this machine has a library of its own")
    environment = {"CUDAGO_DRIVER": "nvidia" if name == "CUDAGO_LIBCUDA" else "sim"}
    run = script(start + SET.format(name=name, value=value) + use, **environment)
    late = said in run.stdout + run.stderr
    assert late == (DOCUMENTED[name] == "at the first use")
    run = script(start + use, **(environment | {name: value}))
    assert said in run.stdout + run.stderr
