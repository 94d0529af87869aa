# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin of cudago: a driver per run, fixtures, and tests that do not break each other.

pytest loads it in every run of an environment that has cudago. So it imports nothing of cudago, and
does nothing, until a run has one of its options or a test one of its fixtures. That is also why it
is no part of the package `cudago`, whose import loads the native module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import after, settings
from .fixtures import cu_device as cu_device
from .fixtures import cu_no_leaks as cu_no_leaks
from .fixtures import cu_stream as cu_stream

if TYPE_CHECKING:
    from collections.abc import Generator


def pytest_addoption(parser: pytest.Parser) -> None:
    """Describe the options."""
    group = parser.getgroup("cudago")
    group.addoption(
        "--cudago-driver",
        choices=("sim", "nvidia", "both"),
        help="driver of the run; 'both' makes two runs, because a process has one driver",
    )
    group.addoption(
        "--cudago-check",
        action="store_true",
        help="switch on every check of the simulated driver, and take that where no driver is "
        "chosen; what is found fails the test",
    )
    group.addoption(
        "--no-cudago-check",
        action="store_false",
        dest="cudago_check",
        help="switch the checks off, where addopts has them",
    )
    group.addoption(
        "--cudago-seed",
        type=int,
        metavar="N",
        help="run what nothing orders in a random order, on the simulated driver",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Make two runs of --cudago-driver=both."""
    return settings.run_both(config) if config.option.cudago_driver == "both" else None


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Choose the driver before a conftest.py can use it."""
    settings.apply(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker where it is ours."""
    settings.apply(config, config.option)  # in case that a conftest.py loads the plugin
    if settings.active(config):
        config.addinivalue_line("markers", "gpu: needs NVIDIA's driver; skipped on any other")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the environment as it was."""
    settings.restore(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what was chosen."""
    return settings.header(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is none."""
    if item.get_closest_marker("gpu") and after.ours(item):
        settings.need_gpu(item.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose work fails after it, and mend the device."""
    __tracebackhide__ = True
    return (yield from after.mended(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Do the same for its fixtures."""
    __tracebackhide__ = True
    return (yield from after.mended(item))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests a GPU has run."""
    settings.count_gpu_tests(terminalreporter)
