# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What pytest calls: options, markers, and what is done around each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import after, captures, fixtures, settings

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
    """Register the marker, in runs that ask for the plugin: others have a word of their own."""
    settings.apply(config, config.option)  # in case that a conftest.py loads the plugin
    if settings.active(config) or settings.is_named(config):
        config.addinivalue_line(
            "markers", "gpu: a test of cudago's plugin needs NVIDIA's driver; skipped on any other"
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the environment as it was."""
    settings.restore(config)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what was chosen."""
    return settings.header(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Skip what needs a GPU where there is none, and leave to others what is open before."""
    __tracebackhide__ = True
    after.begin(item)
    captures.keep(item.session, captures.left(item.session))
    if item.get_closest_marker("gpu") and after.ours(item):
        settings.need_gpu(item.config)
    return (yield from after.prepared(item))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Leave to a fixture what it holds open for several tests, captures too."""
    if fixturedef.scope == "function":
        return (yield)
    before = captures.graphs()
    with fixtures.left_out(request.session):
        result = yield
    captures.keep(request.session, [g for g in captures.graphs() if g not in before])
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose work fails after it, and mend the device."""
    __tracebackhide__ = True
    return (yield from after.mended(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Do the same for its fixtures, and look for leaks."""
    __tracebackhide__ = True
    try:
        result = yield from after.ended(item)
    except BaseException:
        fixtures.forget(item)
        raise
    fixtures.look(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell the process that counts whether a test has the marker."""
    report = yield
    settings.mark_report(report, item)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests a GPU has run."""
    settings.count_gpu_tests(terminalreporter)
