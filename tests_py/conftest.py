# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What all tests share: drivers, devices, streams, kernels, scripts, and a check for leaks.

A process uses one driver, chosen by CUDAGO_DRIVER. A test that asks for `driver`, or for what is
built on it, exists once per driver; those of the other driver need another run. What only a GPU can
show is also marked ``gpu``.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cudago as cu
from cudago.testing import settle

DRIVERS = ("sim", pytest.param("nvidia", marks=pytest.mark.gpu))
NO_GPU = "NVIDIA's driver has no device here, or CUDAGO_DRIVER chose another"
TIME_LIMIT_S = 120

KERNELS = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void copy(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
extern "C" __global__ void add(int* y, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += value;
}
extern "C" __global__ void times(int* y, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] *= value;
}
extern "C" __global__ void nothing() {}
"""


def must_have_gpu() -> bool:
    """Whether a missing GPU is a failure."""
    return os.environ.get("CUDAGO_REQUIRE_GPU", "") not in ("", "0")


def driver_in_use() -> str:
    """Return the name of the process's driver; end the run where there is none."""
    try:
        return cu.driver_name()
    except cu.DriverNotFoundError as e:
        pytest.exit(str(e), returncode=pytest.ExitCode.USAGE_ERROR)


def pytest_configure(config: pytest.Config) -> None:
    """Keep quiet about the driver that "auto" chose, which the summary names; and hear Ctrl-C.

    A shell's job in the background ignores SIGINT, and so would Python. Programs are cached in a
    folder of this run, which its other processes share.
    """
    if "CUDAGO_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="cudago-cache-")
        os.environ["CUDAGO_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)
    logging.getLogger("cudago").addHandler(logging.NullHandler())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # xdist would begin with the files that have most tests, and not with those marked early.
    config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that this process's driver can run, and account for the rest."""
    chosen, left_out = [], []
    for item in items:
        driver = item.callspec.params.get("driver") if hasattr(item, "callspec") else None
        needs_gpu = item.get_closest_marker("gpu") is not None
        if driver is None or driver == driver_in_use():
            (left_out if driver == "sim" and needs_gpu else chosen).append(item)
        elif driver == "sim":
            left_out.append(item)  # another run, with CUDAGO_DRIVER=sim, tests it
        else:
            chosen.append(item)
            if not must_have_gpu():
                item.add_marker(pytest.mark.skip(reason=NO_GPU))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(chosen, key=lambda item: item.get_closest_marker("early") is None)


def pytest_collection_finish() -> None:
    """Exclude what is loaded by now from the full collections that each test makes."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests a GPU has run."""
    counts = {
        outcome: sum(
            "gpu" in getattr(r, "keywords", ()) for r in terminalreporter.stats.get(outcome, ())
        )
        for outcome in ("passed", "failed", "error", "skipped")
    }
    if not any(counts.values()):
        return
    ran = counts["passed"] + counts["failed"]
    text = f"gpu tests: {ran} ran, {counts['skipped']} skipped"
    if not ran:
        text += " (CUDAGO_REQUIRE_GPU=1 makes a missing GPU a failure)"
    terminalreporter.write_line(text)


@pytest.fixture(scope="module", autouse=True)
def spared() -> None:
    """Exclude pytest's reports on earlier modules from the collections that each test makes."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    """Name of the driver that the process uses."""
    if request.param != cu.driver_name():
        pytest.fail(f"CUDAGO_REQUIRE_GPU is set, but {NO_GPU}", pytrace=False)
    return request.param


@pytest.fixture(scope="session")
def device(driver: str) -> cu.Device:
    """Device 0, which has already made what it makes once."""
    device = cu.Device()
    with device.create_stream() as stream:
        device.allocate(1, stream=stream).close()
    return device


@pytest.fixture
def stream(device: cu.Device):
    """An idle stream."""
    with device.create_stream() as stream:
        yield stream
        if not stream.is_closed:
            stream.sync()


@pytest.fixture(scope="session")
def kernels(device: cu.Device) -> cu.ObjectCode:
    """Kernels saxpy, copy, add, times and nothing."""
    code = cu.Program(KERNELS, "c++").compile()
    for name in code.kernels:
        code.get_kernel(name)
    return code


@pytest.fixture
def pinned(device: cu.Device):
    """64 bytes of pinned memory, so that copies to it do not block the host."""
    with cu.PinnedMemoryResource() as resource, resource.allocate(64) as buffer:
        memoryview(buffer)[:] = bytes(64)
        yield buffer


@pytest.fixture(autouse=True)
def balance(request: pytest.FixtureRequest):
    """Check that a test leaves as many live cudago objects behind as it found."""
    settle()
    before = cu.live_objects() if cu._core._is_open() else None
    failed = request.session.testsfailed
    yield
    if request.node.get_closest_marker("kept_for_good"):
        return
    settle()
    # The traceback of a failed test keeps the objects in its frames alive until the next failure.
    if before is not None and not failed and not request.session.testsfailed:
        assert cu.live_objects() == before


@pytest.fixture
def at_each_bytecode() -> Callable[..., Iterator[int]]:
    """Run something again and again, with an exception one bytecode later each time."""

    def run(do: Callable[[], object], most: int = 2000) -> Iterator[int]:
        left = point = 0

        def trace(frame, event, arg):
            nonlocal left
            frame.f_trace_opcodes = True
            left -= event == "opcode"
            # What is raised as a generator is dropped, CPython loses.
            if left < 0 and frame.f_code.co_name != "<genexpr>":
                raise LookupError
            return trace

        while left <= 0:
            left = point
            with contextlib.suppress(LookupError):
                sys.settrace(trace)
                do()
                sys.settrace(None)
            yield point
            point += 1
            assert point < most
        assert point > 6

    return run


# Pythons warn of forks where there are threads, each version in other cases.
FORKS = "ignore:This process:DeprecationWarning"


class Script:
    """Runs Python code in a process of its own, with the driver of this one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        root = Path(cu.__file__).parents[1]
        path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        self.environment = {**os.environ, "PYTHONPATH": path}
        if cu._core._is_open():
            self.environment["CUDAGO_DRIVER"] = cu.driver_name()

    dedent = staticmethod(textwrap.dedent)

    def command(self, source: str) -> list[str]:
        """Write a script, and return the command that runs it."""
        file = self.directory / "script.py"
        file.write_text(textwrap.dedent(source))
        return [sys.executable, "-X", "faulthandler", "-W", "error", "-W", FORKS, str(file)]

    def __call__(self, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end, and return its exit code and what it wrote."""
        return self.run(self.command(source), **environment)

    def run(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, within the time limit."""
        return subprocess.run(
            command,
            env=self.environment | environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Runs Python code in a process of its own: ``script(source, **environment)``."""
    return Script(tmp_path)
