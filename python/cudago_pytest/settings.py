# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a run has chosen, and which driver that gives."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import argparse

_DRIVER, _SIM = "CUDAGO_DRIVER", "CUDAGO_SIM"
_SEEDS = 1 << 64
_RAN = ("passed", "failed", "xfailed", "xpassed")
_before = pytest.StashKey[dict[str, str | None]]()


def active(config: pytest.Config) -> bool:
    """Whether the run has one of our options."""
    o = config.option
    return bool(o.cudago_driver or o.cudago_check or o.cudago_seed is not None)


def is_named(config: pytest.Config) -> bool:
    """Whether the run names the plugin, which pytest finds without that: -p cudago_pytest."""
    return __package__ in (config.option.plugins or ())


def run_both(config: pytest.Config) -> int:
    """Run pytest once per driver, each in its process, and return the worse exit status."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    statuses = []
    for driver, more in (("sim", []), ("nvidia", ["--no-cudago-check"])):
        print(f"cudago: run on the driver {driver!r}", flush=True)
        given = [*map(str, config.invocation_params.args), f"--cudago-driver={driver}", *more]
        command = [sys.executable, *flags, "-m", "pytest", *given]
        with subprocess.Popen(command, cwd=config.invocation_params.dir) as run:
            try:
                statuses.append(run.wait())
            except KeyboardInterrupt:
                return _interrupted(run)
    none = int(pytest.ExitCode.NO_TESTS_COLLECTED)
    return max((s for s in statuses if s != none), key=abs, default=none)


def _interrupted(run: subprocess.Popen[bytes]) -> int:
    """Let a run end its fixtures, to which the terminal has sent Ctrl-C too; kill it after two."""
    try:
        run.wait()
    except KeyboardInterrupt:
        run.kill()
    return int(pytest.ExitCode.INTERRUPTED)


def apply(config: pytest.Config, options: argparse.Namespace) -> None:
    """Put the options into the environment, where cudago and child processes find them."""
    if _before in config.stash or not hasattr(options, "cudago_driver"):
        return
    driver, check, seed = options.cudago_driver, options.cudago_check, options.cudago_seed
    if driver == "both":
        return
    config.stash[_before] = {name: os.environ.get(name) for name in (_DRIVER, _SIM)}
    if seed is not None and not 0 <= seed < _SEEDS:
        raise pytest.UsageError(f"--cudago-seed must be 0 to 2**64 - 1, got {seed}")
    if check:
        chosen = driver or os.environ.get(_DRIVER)
        if chosen == "nvidia":
            raise pytest.UsageError(
                "--cudago-check is of the simulated driver, got the driver 'nvidia'; "
                "add --cudago-driver=sim or --no-cudago-check"
            )
        driver = "sim"  # a run that was to be checked, and was not, would look right
    if driver:
        _refuse_another(driver)
        os.environ[_DRIVER] = driver
    added = ["check=full"] * bool(check) + [f"seed={seed}"] * (seed is not None)
    if added:
        had = os.environ.get(_SIM, "")
        if _is_open() and not set(added) <= set(had.split(",")):  # as those of a run around this
            raise pytest.UsageError(
                f"the driver of this process is in use already, without {' and '.join(added)}: "
                "run pytest in a process of its own"
            )
        os.environ[_SIM] = ",".join(filter(None, [had, *added]))


def _is_open() -> bool:
    core = sys.modules.get("cudago._core")
    return core is not None and core._is_open()


def _refuse_another(driver: str) -> None:
    if not _is_open():
        return
    import cudago

    if cudago.driver_name() != driver:
        raise pytest.UsageError(
            f"the driver of the run must be {driver!r}, but the process already uses "
            f"{cudago.driver_name()!r}"
        )


def restore(config: pytest.Config) -> None:
    """Take the options out of the environment."""
    for name, value in config.stash.get(_before, {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def header(config: pytest.Config) -> str | None:
    """Return the line of the header; None where there is nothing to say."""
    if not active(config):
        return None
    sim = os.environ.get(_SIM)
    text = f"cudago: driver {os.environ.get(_DRIVER) or 'auto'}"
    return f"{text}, simulated with {sim}" if sim else text


def must_have_gpu() -> bool:
    """Whether a missing GPU is a failure."""
    return os.environ.get("CUDAGO_REQUIRE_GPU", "") not in ("", "0")


def need_driver() -> None:
    """Skip a test where the chosen driver cannot be opened."""
    import cudago

    try:
        cudago.driver_name()
    except cudago.DriverNotFoundError as e:
        if must_have_gpu():
            raise
        pytest.skip(str(e))


def need_gpu(config: pytest.Config) -> None:
    """Skip a test where the driver is not NVIDIA's."""
    if config.option.cudago_driver != "sim":
        need_driver()
        import cudago

        if cudago.driver_name() == "nvidia":
            return
    reason = "needs NVIDIA's driver; this run is on the simulated one"
    if must_have_gpu() and config.option.cudago_driver != "sim":
        pytest.fail(f"CUDAGO_REQUIRE_GPU is set, but a test {reason}", pytrace=False)
    pytest.skip(reason)


def mark_report(report: pytest.TestReport, item: pytest.Item) -> None:
    """Note in a report that its test has the marker; its keywords have names of folders too."""
    if item.get_closest_marker("gpu"):
        report.__dict__["cudago_gpu"] = True


def count_gpu_tests(reporter: pytest.TerminalReporter) -> None:
    """Write how many of the tests that need a GPU have run."""
    if not active(reporter.config):
        return
    counts = {
        outcome: sum(hasattr(r, "cudago_gpu") for r in reporter.stats.get(outcome, ()))
        for outcome in (*_RAN, "error", "skipped")
    }
    if any(counts.values()):
        ran = sum(counts[outcome] for outcome in _RAN)
        reporter.write_line(f"gpu tests: {ran} ran, {counts['skipped']} skipped")
