# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where cudago does not run, the build and the import say so in one sentence, at once."""

from __future__ import annotations

import importlib
import platform
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipapp
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import cudago as cu

from ..installed import ROOT

GOT = f"{platform.python_version()} ({sys.executable})"
# What is unlike here: an attribute of a module, its value, and the sentence.
ELSEWHERE = {
    "macOS": (
        "sys.platform",
        "darwin",
        "cudago runs on Linux, and this is macOS: a Linux container or virtual machine runs it, on "
        "the simulated driver",
    ),
    "Windows": (
        "sys.platform",
        "win32",
        "cudago runs on Linux, and this is Windows: WSL runs it, and sees the GPU",
    ),
    "another system": (
        "sys.platform",
        "freebsd14",
        "cudago runs on Linux, and this is freebsd14",
    ),
    "PyPy": (
        "sys.implementation",
        SimpleNamespace(name="pypy"),
        f"cudago needs CPython, and this is pypy {GOT}",
    ),
    "an old Python": (
        "sys.version_info",
        (3, 10, 13, "final", 0),
        f"cudago needs Python 3.11 or newer, got {GOT}",
    ),
    "free-threaded": (
        "Py_GIL_DISABLED",
        1,
        f"cudago needs a Python with the GIL, and this is a free-threaded one, {GOT}",
    ),
    "musl": (
        "HOST_GNU_TYPE",
        "x86_64-pc-linux-musl",
        "cudago needs glibc, and this Python has musl, which cannot load a library in Go",
    ),
    "another machine": (
        "platform.machine",
        lambda: "riscv64",
        "cudago runs on x86_64 and aarch64 with 64 bits, and this is riscv64 with a Python of 64 "
        "bits",
    ),
    "32 bits": (
        "sys.maxsize",
        (1 << 31) - 1,
        f"cudago runs on x86_64 and aarch64 with 64 bits, and this is {platform.machine()} with a "
        "Python of 32 bits",
    ),
}


@pytest.fixture(params=ELSEWHERE)
def sentence(request, monkeypatch) -> str:
    """Pretend to be elsewhere; what is to be said there."""
    what, value, said = ELSEWHERE[request.param]
    module, _, name = what.rpartition(".")
    if module:
        monkeypatch.setattr({"sys": sys, "platform": platform}[module], name, value)
    else:
        asked = sysconfig.get_config_var
        monkeypatch.setattr(
            sysconfig, "get_config_var", lambda key: value if key == name else asked(key)
        )
    return said


@pytest.fixture
def extension(monkeypatch) -> ModuleType:
    """The build of the shared library."""
    monkeypatch.syspath_prepend(ROOT / "build_hooks")
    return importlib.import_module("extension")


def test_the_build_stops_before_anything_is_made(extension, sentence, monkeypatch, tmp_path):
    monkeypatch.setattr(extension, "step", lambda *args: pytest.fail("something was built"))
    with pytest.raises(extension.BuildError) as e:
        extension.build(tmp_path / "module.so")
    assert str(e.value) == sentence


def test_nothing_is_fetched_for_it(extension, sentence, monkeypatch):
    monkeypatch.setattr(extension, "find_go", lambda: pytest.fail("Go was looked for"))
    interface = "hatchling.builders.hooks.plugin.interface"
    monkeypatch.setitem(sys.modules, interface, SimpleNamespace(BuildHookInterface=object))
    hook = runpy.run_path(str(ROOT / "build_hooks" / "wheel.py"))["GoModuleHook"]
    with pytest.raises(SystemExit) as e:
        hook().dependencies()
    assert str(e.value) == f"cudago: {sentence}"


def test_the_import_says_the_same(extension, sentence):
    assert str(extension.host.why_no_module(ImportError("cannot import _core"))) == sentence


FREE_THREADED = """
import sys, sysconfig
from pathlib import Path
asked = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else asked(name)
sys.abiflags += "t"
try:
    import cudago
except ImportError as e:
    print(e)
print("_core.abi3.so" in Path("/proc/self/maps").read_text())
"""


def test_a_free_threaded_python_does_not_load_the_module(script):
    """It would find it and crash in it. This Python only says it is one: see test_free_threaded."""
    assert Path(cu._core.__file__).name == "_core.abi3.so"
    run = script(FREE_THREADED)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [ELSEWHERE["free-threaded"][2], "False"]


def test_here_it_runs(extension, monkeypatch):
    assert extension.host.refusal() is None
    monkeypatch.setattr(extension.host, "__file__", str(ROOT / "python" / "cudago" / "_host.py"))
    reason = ImportError("undefined symbol: Py_Something")
    assert extension.host.why_no_module(reason) is reason


def test_import_of_a_package_without_its_module(tmp_path: Path):
    names = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "cudago", tmp_path / "cudago", ignore=names)
    run = subprocess.run(
        [sys.executable, "-P", "-c", "import cudago"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr.splitlines()[-1] == (
        "ImportError: cudago lacks its native module, _core.abi3.so: install it again, or run "
        "'make build' in a clone"
    )
    assert "During handling" not in run.stderr


def test_import_from_an_archive(tmp_path: Path):
    """What is in one is not missing; the system cannot load it from there."""
    archive = tmp_path / "program.pyz"
    package = tmp_path / "package"
    names = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "cudago", package / "cudago", ignore=names)
    (package / "cudago" / "_core.abi3.so").touch()
    (package / "__main__.py").write_text("import cudago")
    zipapp.create_archive(package, archive)
    run = subprocess.run(
        [sys.executable, "-P", archive], env={}, capture_output=True, text=True, check=False
    )
    assert run.stderr.splitlines()[-1] == (
        f"ImportError: cudago cannot be imported from an archive, {archive}: the system loads its "
        "native module from a file only. Unpack the archive; or pack the program with shiv, pex or "
        "PyInstaller, which unpack it when it starts"
    )
