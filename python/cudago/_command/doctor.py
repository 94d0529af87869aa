# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago doctor``: what is wrong with this machine or environment, and what to do about it."""

from __future__ import annotations

import argparse
import os
import re
import site
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import compile_cache
from ..errors import CUDAWarning
from . import info

_GO_NOTE = re.compile(rb"\x04\0\0\0....\x04\0\0\0Go\0\0", re.S)  # the ELF note .note.go.buildid
_NOTES_END = 4096  # ELF notes are near the start of a library
_WRONG = re.compile(r"CUDAGO_\w+\b.* (must|may)\b")
_NODE = re.compile(r"nvidia\d+|nvidiactl|nvidia-uvm")
_NVIDIA = "0x10de"  # vendor number on the PCI bus
_WSL_DRIVER = "usr/lib/wsl/lib/libcuda.so.1"


@dataclass(frozen=True)
class Finding:
    """A problem, and what to do about it."""

    what: str
    advice: str


@dataclass
class Machine:
    """The facts that are examined; tests make up others."""

    info: Mapping[str, Any]  # what `cudago info` collects
    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    packages: Sequence[Path] = ()  # folders of installed packages
    loader: str = ""  # what ldconfig -p prints
    cache: str = ""  # why the compile cache does not use its folder
    opens: Callable[[Path], bool] = lambda path: os.access(path, os.R_OK | os.W_OK)

    def has(self, path: str) -> bool:
        """Whether a file exists."""
        return (self.root / path).exists()

    def text(self, path: str) -> str:
        """Return a file's text; empty if it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace")
        except OSError:
            return ""

    @property
    def trouble(self) -> str:
        """Why NVIDIA's driver is not in use, unless another one was chosen."""
        driver = self.info["driver"]
        return str(driver["error"] or driver["notice"] or "")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "doctor",
        help="say what is wrong with this machine or environment, and what to do about it",
        description="Look for what keeps cudago from a GPU, and for what makes programs fail "
        "later. The exit status is 1 if there is anything.",
    )
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Print the problems and what to do about them; return 1 if there are any."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", CUDAWarning)  # also where warnings are errors
        found = info.collect()
    packages = [Path(p) for p in dict.fromkeys([*site.getsitepackages(), *sys.path]) if p]
    machine = Machine(
        found,
        packages=[p for p in packages if p.name.endswith("-packages")],
        loader=_loader(),
        cache=_cache_trouble(warned),
    )
    driver = found["driver"]
    version = ".".join(map(str, driver["version"] or ()))
    print(f"driver  {driver['name']}, CUDA {version}" if driver["name"] else "driver  none")
    for device in found["devices"]:
        print(f"device  {device['name']}")
    findings = list(examine(machine))
    for finding in findings:
        print(f"\nproblem: {finding.what}\n     do: {finding.advice}")
    if driver["name"] == "sim" and not driver["notice"]:
        print("NVIDIA's driver was not looked for: CUDAGO_DRIVER chooses the simulated one")
    if not findings:
        print("nothing is wrong")
    return 1 if findings else 0


def examine(machine: Machine) -> Iterator[Finding]:
    """Yield the problems, most important first."""
    for question in _QUESTIONS:
        yield from question(machine)


def _loader() -> str:
    for program in ("ldconfig", "/sbin/ldconfig"):
        try:
            # Folders may have names in any encoding.
            return subprocess.run(
                [program, "-p"], capture_output=True, text=True, errors="replace", check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
    return ""


def _cache_trouble(warned: Iterable[warnings.WarningMessage]) -> str:
    """Return why nothing is kept in the folder of the compile cache; empty if something is."""
    for told in warned:
        text = str(told.message)
        if text.startswith("the compile cache does not use"):
            return text.partition("; CUDAGO_CACHE_DIR")[0]
        warnings.warn_explicit(told.message, told.category, told.filename, told.lineno)
    try:
        directory = compile_cache.directory()
    except ValueError:  # a variable that is wrong, of which the compiler says so too
        return ""
    if directory is None:
        return ""
    folder = Path(directory)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for at in (folder, *folder.glob("compiled")):
            with tempfile.TemporaryFile(dir=at):
                pass
    except OSError as e:
        return f"the compile cache cannot write to {e.filename or folder}: {e.strerror or e}"
    return ""


def _cache(m: Machine) -> Iterator[Finding]:
    if m.cache:
        yield Finding(
            f"{m.cache}. Each process compiles its programs anew",
            "make the folder writable for this user alone, name another one in CUDAGO_CACHE_DIR, "
            "or set CUDAGO_CACHE=memory",
        )


def _settings(m: Machine) -> Iterator[Finding]:
    for told in (m.trouble, str(m.info["nvrtc"]["error"])):
        if _WRONG.match(told):
            yield Finding(told, "correct the variable, or unset it")
    named = m.environment.get("CUDAGO_NVRTC_PATH", "")
    for folder in filter(None, named.split(os.pathsep)):
        at = m.root / folder.lstrip("/") if folder.startswith("/") else Path(folder)
        if not list(at.glob("libnvrtc.so*")):
            yield Finding(
                f"CUDAGO_NVRTC_PATH has {folder}, where no libnvrtc.so is",
                "name the folder of the library, or unset the variable",
            )


def _too_old(m: Machine) -> Iterator[Finding]:
    if "cudago needs a driver for CUDA" in m.trouble:
        yield Finding(
            m.trouble.removeprefix("using the simulated driver, because "),
            "update NVIDIA's driver; CUDA 12.4 came with version 550. A CUDA toolkit, or a package "
            "with one, does not change the driver",
        )


def _missing(m: Machine) -> Iterator[Finding]:
    """No driver, or none with a GPU: the reason depends on the environment."""
    no_library = "driver library was not found" in m.trouble
    # A container image may have the driver's library, but no devices.
    if m.trouble and not no_library and _is_container(m) and not m.has("dev/nvidiactl"):
        no_library = "NVIDIA's driver" in m.trouble and not _is_wsl(m)
    if not no_library:
        return
    if "CUDAGO_LIBCUDA" in m.environment:
        yield Finding(
            f"CUDAGO_LIBCUDA={m.environment['CUDAGO_LIBCUDA']} could not be opened",
            "name the file of libcuda.so.1, or unset the variable",
        )
    elif _is_wsl(m):
        yield Finding(
            "this is WSL, and Windows has given it no NVIDIA driver"
            + ("" if m.has("dev/dxg") else ": /dev/dxg is missing, as in WSL 1"),
            "install NVIDIA's driver in Windows, none in WSL, then run 'wsl --update' and "
            "'wsl --shutdown' there; WSL must be version 2",
        )
    elif _is_container(m):
        yield Finding(
            "this is a container, and no GPU was given to it",
            "start it with 'docker run --gpus all' (NVIDIA Container Toolkit), 'podman run "
            "--device nvidia.com/gpu=all', or the resource nvidia.com/gpu in Kubernetes",
        )
    elif _has_gpu(m):
        yield Finding(
            "this machine has an NVIDIA GPU, but its driver is not installed",
            "install NVIDIA's driver, 550 or newer",
        )


def _hidden(m: Machine) -> Iterator[Finding]:
    visible = m.environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and "has no device" in m.trouble:
        yield Finding(
            f"NVIDIA's driver shows no device: CUDA_VISIBLE_DEVICES={visible!r}",
            "unset CUDA_VISIBLE_DEVICES, or name devices that nvidia-smi -L lists",
        )


def _wsl_shadow(m: Machine) -> Iterator[Finding]:
    library = m.info["driver"]["library"]
    if _is_wsl(m) and m.has(_WSL_DRIVER) and library and "/wsl/" not in library:
        yield Finding(
            f"this is WSL, and a driver for Linux, {library}, hides that of Windows",
            "remove the driver that was installed in WSL (apt remove 'libnvidia-compute-*')",
        )


def _permissions(m: Machine) -> Iterator[Finding]:
    nodes = [p for p in sorted((m.root / "dev").glob("nvidia*")) if _NODE.fullmatch(p.name)]
    closed = [f"/dev/{p.name}" for p in nodes if not m.opens(p)]
    if closed:
        yield Finding(
            f"this user may not open {', '.join(closed)}",
            "add the user to the group that owns them (ls -l /dev/nvidia*; often video or render) "
            "and log in again; in a container, give it the devices too",
        )
    if nodes and not m.has("dev/nvidia-uvm"):
        yield Finding(
            "/dev/nvidia-uvm is missing, which CUDA needs",
            "run 'nvidia-modprobe -u -c 0' as root on the machine, or nvidia-smi once",
        )


def _nvrtc(m: Machine) -> Iterator[Finding]:
    error = m.info["nvrtc"]["error"]
    if error and not _WRONG.match(str(error)):
        yield Finding(
            str(error).partition("\n")[0].partition("; looked in")[0],
            "pip install 'cudago[sim]', or name a folder with it in CUDAGO_NVRTC_PATH",
        )
    found = _nvrtc_libraries(m)
    if len(found) > 1:
        used = m.info["nvrtc"]["library"] or "none of them"
        yield Finding(
            f"there are {len(found)} NVRTCs: {', '.join(found)}; cudago uses {used}, and other "
            "libraries of the process may use another one, of another version",
            "remove all but one, or say which in CUDAGO_NVRTC_PATH, for cudago",
        )


def _nvrtc_libraries(m: Machine) -> list[str]:
    """Return the installed NVRTC libraries, without duplicates."""
    e = m.environment
    folders = [Path(p) for p in e.get("CUDAGO_NVRTC_PATH", "").split(":") if p]
    folders += [Path(p) for p in m.info["nvrtc"]["looked_in"]]
    for home in (e.get("CUDA_HOME"), e.get("CUDA_PATH"), str(m.root / "usr/local/cuda")):
        folders += [Path(home, "lib64")] if home else []
    files = [f for folder in folders for f in sorted(folder.glob("libnvrtc.so.1[23]"))]
    files += map(Path, re.findall(r"^\s*libnvrtc\.so\.1[23] .*=> (\S+)$", m.loader, re.M))
    return list(dict.fromkeys(str(f.resolve()) for f in files))


def _go_libraries(m: Machine) -> Iterator[Finding]:
    others = [
        str(file)
        for folder in m.packages
        for file in sorted(folder.rglob("*.so*"))
        if file.is_file() and file.parent.name != "cudago" and _is_go(file)
    ]
    if others:
        yield Finding(
            f"other libraries written in Go are installed: {', '.join(others)}. Go does not "
            "support two in one process, which may hang or crash",
            "import only one of them in a process; use the others in processes of their own "
            "(multiprocessing with 'spawn')",
        )


def _is_go(file: Path) -> bool:
    try:
        with file.open("rb") as f:
            return _GO_NOTE.search(f.read(_NOTES_END)) is not None
    except OSError:
        return False


def _is_wsl(m: Machine) -> bool:
    return "microsoft" in m.text("proc/version").lower()


def _is_container(m: Machine) -> bool:
    groups = m.text("proc/1/cgroup")
    marks = ("docker", "kubepods", "containerd", "libpod")
    return (
        m.has(".dockerenv") or m.has("run/.containerenv") or any(mark in groups for mark in marks)
    )


def _has_gpu(m: Machine) -> bool:
    for vendor in (m.root / "sys/bus/pci/devices").glob("*/vendor"):
        kind = m.text(str(vendor.parent.relative_to(m.root) / "class"))
        if m.text(str(vendor.relative_to(m.root))).strip() == _NVIDIA and kind.startswith("0x03"):
            return True
    return False


_QUESTIONS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    _settings,
    _too_old,
    _missing,
    _hidden,
    _wsl_shadow,
    _permissions,
    _nvrtc,
    _cache,
    _go_libraries,
)
