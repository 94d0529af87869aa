# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin and work that waits for something: for a fixture, or for what never comes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

IMPATIENT = "import cudago_pytest.after as it; it._SOON_S, it._LATE_S = 0.2, 0.5"
HELD = """
import cudago.testing, pytest
@pytest.fixture
def held(cu_stream):
    with cudago.testing.hold(cu_stream):
        yield cu_stream
def test_passes(held):
    pass
def test_fails(held):
    assert not held, "its own failure"
def test_next(cu_stream):
    cu_stream.sync()
"""
STUCK = """
import threading
never = threading.Event()
def test_is_stuck(cu_stream):
    cu_stream.callback(never.wait)
    assert never.is_set(), "its own failure"
    never.set()
def test_next(cu_stream):
    pass
"""
INTERRUPTED = """
import signal, threading
never = threading.Event()
def test_is_stuck(cu_stream):
    cu_stream.callback(never.wait)
    print("waits", flush=True)
    cu_stream.sync()  # here
"""


def test_work_may_wait_for_the_end_of_a_fixture(pytester, project):
    pytester.makeconftest(IMPATIENT)
    pytester.makepyfile(HELD)
    result = project()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: its own failure"])


def test_a_failure_is_shown_whose_work_never_ends(pytester, project):
    pytester.makeconftest(IMPATIENT)
    pytester.makepyfile(STUCK)
    result = project()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: its own failure",
            "*work of *::test_is_stuck is not over after 0.5 s, and device 0 cannot be waited for*",
        ]
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_an_interrupt_waits_for_nothing(pytester, script):
    pytester.makepyfile(INTERRUPTED)
    command = [sys.executable, "-mpytest", "-pcudago_pytest", "-s", str(pytester.path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=script.environment, cwd=pytester.path
    ) as run:
        while "waits" not in (line := run.stdout.readline()):
            assert line
        run.send_signal(signal.SIGINT)
        told = run.stdout.read()
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert "!! KeyboardInterrupt !!" in told
    assert "after.py" not in told
