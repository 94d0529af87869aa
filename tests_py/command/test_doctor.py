# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago doctor``, on machines that consist of a folder."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path

import pytest

import cudago as cu
from cudago._command.doctor import Machine, examine

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-W", "error", "-m", "cudago", "doctor"]
MISSING = (
    "using the simulated driver, because NVIDIA's driver library was not found: "
    "libcuda.so.1: cannot open shared object file: No such file or directory"
)
NO_DEVICE = "using the simulated driver, because NVIDIA's driver has no device"
OLD = (
    "using the simulated driver, because libcuda.so.1 supports CUDA up to 12.2; cudago needs a "
    "driver for CUDA 12.4 or newer"
)
HEALTHY = {
    "driver": {"name": "nvidia", "library": "/lib/libcuda.so.1", "notice": None, "error": None},
    "nvrtc": {"library": "/lib/libnvrtc.so.13", "error": None, "looked_in": []},
    "devices": [],
}
GO = b"\x7fELF" + bytes(500) + b"\x04\0\0\0\x53\0\0\0\x04\0\0\0Go\0\0" + bytes(100)


class Made:
    """A machine to be examined, healthy at first."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.info = copy.deepcopy(HEALTHY)
        self.environment: dict[str, str] = {}
        self.closed: set[str] = set()
        self.loader = self.cache = ""
        for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
            self.write(f"dev/{name}")

    def write(self, path: str, content: bytes = b"") -> Path:
        """Write a file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def without_driver(self, notice: str) -> None:
        """Take the driver away, and the devices with it."""
        self.info["driver"] |= {"name": "sim", "library": None, "notice": notice}
        for node in (self.root / "dev").iterdir():
            node.unlink()

    def findings(self) -> list[str]:
        """Return what is wrong, with the advice."""
        machine = Machine(
            self.info,
            root=self.root,
            environment=self.environment,
            packages=[self.root / "site-packages"],
            loader=self.loader,
            opens=lambda path: path.name not in self.closed,
            cache=self.cache,
        )
        return [f"{f.what} | {f.advice}" for f in examine(machine)]


@pytest.fixture
def made(tmp_path):
    """A healthy machine with a GPU."""
    return Made(tmp_path)


def test_a_healthy_machine(made):
    made.write("proc/version", b"Linux version 6.1 (Debian)")
    made.write("site-packages/numpy/core.so", b"\x7fELF" + bytes(5000))
    made.write("site-packages/cudago/_core.abi3.so", GO)
    assert made.findings() == []


def test_a_machine_without_a_gpu_is_healthy_too(made):
    made.without_driver(MISSING)
    assert made.findings() == []


def test_a_driver_that_is_too_old(made):
    made.info["driver"] |= {"name": "sim", "notice": OLD}
    (found,) = made.findings()
    assert found.startswith("libcuda.so.1 supports CUDA up to 12.2; cudago needs a driver for")
    assert "| update NVIDIA's driver" in found


@pytest.mark.parametrize(
    "said", ["cudago needs a driver for CUDA", "driver library was not found", "has no device"]
)
def test_the_driver_says_what_is_looked_for(said):
    sources = (ROOT / "cuda").glob("**/*.go")
    assert any(said in f.read_text() for f in sources if not f.name.endswith("_test.go"))


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv", "proc/1/cgroup"])
@pytest.mark.parametrize("notice", [MISSING, NO_DEVICE])
def test_a_container_without_a_gpu(mark, notice, made):
    made.without_driver(notice)
    made.write(mark, b"0::/kubepods/burstable/pod1")
    (found,) = made.findings()
    assert found.startswith("this is a container, and no GPU was given to it | start it with")
    assert "--gpus all" in found


def test_wsl_without_a_driver(made):
    made.without_driver(MISSING)
    made.write("proc/version", b"Linux version 5.15.90.1-microsoft-standard-WSL2")
    (found,) = made.findings()
    assert found.startswith("this is WSL, and Windows has given it no NVIDIA driver: /dev/dxg is")
    made.write("dev/dxg")
    (found,) = made.findings()
    assert "/dev/dxg" not in found
    assert "| install NVIDIA's driver in Windows" in found


def test_wsl_with_a_driver_that_hides_that_of_windows(made):
    made.write("proc/version", b"Linux version 5.15.90.1-microsoft-standard-WSL2")
    made.write("usr/lib/wsl/lib/libcuda.so.1")
    (found,) = made.findings()
    assert "/lib/libcuda.so.1, hides that of Windows" in found
    made.info["driver"]["library"] = "/usr/lib/wsl/lib/libcuda.so.1"
    assert made.findings() == []


def test_a_gpu_without_a_driver(made):
    made.without_driver(MISSING)
    made.write("sys/bus/pci/devices/0000:01:00.0/vendor", b"0x10de\n")
    made.write("sys/bus/pci/devices/0000:01:00.0/class", b"0x040300\n")  # its sound
    assert made.findings() == []
    made.write("sys/bus/pci/devices/0000:01:00.0/class", b"0x030200\n")
    (found,) = made.findings()
    assert found.startswith("this machine has an NVIDIA GPU, but its driver is not installed")


def test_a_library_that_was_named_and_is_not_there(made):
    made.without_driver(MISSING)
    made.environment["CUDAGO_LIBCUDA"] = "/nowhere/libcuda.so"
    (found,) = made.findings()
    assert found.startswith("CUDAGO_LIBCUDA=/nowhere/libcuda.so could not be opened")


def test_hidden_devices(made):
    made.info["driver"] |= {"name": "sim", "notice": NO_DEVICE}
    made.environment["CUDA_VISIBLE_DEVICES"] = ""
    (found,) = made.findings()
    assert found.startswith("NVIDIA's driver shows no device: CUDA_VISIBLE_DEVICES=''")


def test_permissions(made):
    made.closed = {"nvidia0", "nvidiactl"}
    (found,) = made.findings()
    assert found.startswith("this user may not open /dev/nvidia0, /dev/nvidiactl | add the user")


def test_the_module_of_unified_memory(made):
    (made.root / "dev/nvidia-uvm").unlink()
    (found,) = made.findings()
    assert found.startswith("/dev/nvidia-uvm is missing")


def test_two_nvrtcs(made):
    wheel = made.write("site-packages/nvidia/cu13/lib/libnvrtc.so.13")
    made.info["nvrtc"] |= {"library": str(wheel), "looked_in": [str(wheel.parent)]}
    # A second name of the same library does not make it a second library.
    made.loader = f"\tlibnvrtc.so.13 (libc6,x86-64) => {wheel}\n"
    assert made.findings() == []
    toolkit = made.write("usr/local/cuda/lib64/libnvrtc.so.12")
    (found,) = made.findings()
    assert found.startswith(f"there are 2 NVRTCs: {wheel}, {toolkit}; cudago uses {wheel}")


def test_no_nvrtc(made):
    error = "NVRTC (libnvrtc) was not found; `pip install cudago[sim]` brings it; looked in\n  /a"
    made.info["nvrtc"] |= {"library": None, "error": error}
    (found,) = made.findings()
    assert found.startswith("NVRTC (libnvrtc) was not found; `pip install cudago[sim]` brings it |")


def test_another_library_in_go(made):
    file = made.write("site-packages/other/_other.so", GO)
    (found,) = made.findings()
    assert found.startswith(f"other libraries written in Go are installed: {file}. Go does not")


def test_our_own_library_is_seen_as_one_in_go():
    from cudago._command.doctor import _is_go

    assert _is_go(Path(cu._core.__file__))
    assert not _is_go(Path(__file__))


def test_a_folder_of_nvrtc_that_has_none(made):
    made.write("opt/cuda/libnvrtc.so.13")
    made.environment["CUDAGO_NVRTC_PATH"] = "/opt/cuda::/opt/nothing"
    (found,) = made.findings()
    assert found.startswith("CUDAGO_NVRTC_PATH has /opt/nothing, where no libnvrtc.so is")


@pytest.mark.parametrize(
    ("name", "value"), [("CUDAGO_CACHE", "maybe"), ("CUDAGO_CACHE_SIZE", "-1")]
)
def test_a_wrong_setting_of_the_cache(name, value, script):
    run = script.run(COMMAND, CUDAGO_DRIVER="sim", **{name: value})
    assert (run.returncode, run.stderr) == (1, "")
    assert f"problem: {name} must be" in run.stdout
    assert "cudago[sim]" not in run.stdout
    run = script.run([*COMMAND[:-1], "info"], CUDAGO_DRIVER="sim", **{name: value})
    assert (run.returncode, run.stderr) == (0, "")
    assert f"nvrtc     none: {name} must be" in run.stdout


def test_a_cache_that_cannot_be_written_to(made, script):
    made.cache = "the compile cache cannot write to /x: Read-only file system"
    (found,) = made.findings()
    assert found.startswith(made.cache) and "CUDAGO_CACHE=memory" in found
    run = script.run(COMMAND, CUDAGO_DRIVER="sim", CUDAGO_CACHE_DIR="/proc/x/y")
    assert (run.returncode, run.stderr) == (1, "")
    assert "problem: the compile cache cannot write to /proc/x" in run.stdout
    run = script.run(
        COMMAND, CUDAGO_DRIVER="sim", CUDAGO_CACHE_DIR="/proc/x", CUDAGO_CACHE="memory"
    )
    assert "compile cache" not in run.stdout


def test_a_cache_that_others_can_write_to(script):
    folder = script.directory / "open"
    folder.mkdir()
    folder.chmod(0o777)
    run = script.run(COMMAND, CUDAGO_DRIVER="sim", CUDAGO_CACHE_DIR=str(folder))
    assert (run.returncode, run.stderr) == (1, "")
    assert f"problem: the compile cache does not use {folder}: others can write" in run.stdout


def test_a_wrong_setting(script):
    run = script.run(COMMAND, CUDAGO_DRIVER="gpu")
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.startswith("driver  none\n")
    said = (
        "problem: CUDAGO_DRIVER must be one of 'auto', 'nvidia', 'sim', got 'gpu'\n     do: correct"
    )
    assert said in run.stdout
    run = script.run(COMMAND, CUDAGO_DRIVER="sim", CUDAGO_SIM="devices=0")
    assert "problem: CUDAGO_SIM, the settings of the simulated driver: devices must" in run.stdout


def test_folders_of_the_loader_may_have_any_names(script, tmp_path):
    loader = tmp_path / "ldconfig"
    loader.write_bytes(b"#!/bin/sh\necho 'libcuda.so.1 => /opt/\xff/libcuda.so.1'\n")
    loader.chmod(0o755)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    run = script.run(COMMAND, CUDAGO_DRIVER="sim", PATH=path)
    assert run.stderr == ""


def test_the_command(script, driver, device):
    run = script.run(COMMAND)
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert lines[0].startswith(f"driver  {driver}, CUDA ")
    assert lines[1] == f"device  {device.name}"
    assert run.returncode == ("problem: " in run.stdout)
    assert ("nothing is wrong" in run.stdout) != ("problem: " in run.stdout)
