# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin in runs that are started otherwise: in two processes, in one that is in use."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

TWICE = """
from _pytest.runner import runtestprotocol
def pytest_runtest_protocol(item, nextitem):
    runtestprotocol(item, log=False, nextitem=nextitem)  # as plugins that run failed tests again
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_a_test_that_runs_again_is_looked_at_again(pytester, project):
    pytester.makeconftest(TWICE)
    pytester.makepyfile(
        """
        KEPT = []
        def test_leaks(cu_device, cu_stream, cu_no_leaks):
            KEPT.append(cu_device.allocate(64, stream=cu_stream))
            assert len(KEPT) == 2, "the first time"
        def test_captures(cu_device):
            KEPT.append(cu_device.create_stream().capture())
            KEPT[-1].__enter__()
            assert len(KEPT) == 4, "the first time"
        """
    )
    result = project()
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["*leaves objects open: *", "*leaves a capture open*"])


def test_both_runs_have_the_options_of_the_interpreter(pytester, script):
    pytester.makepyfile("import sys\ndef test_it(): print(sys.flags.optimize, sys.warnoptions)")
    command = [sys.executable, "-O", "-Werror", "-mpytest", "-pcudago_pytest", "-s"]
    run = script.run([*command, "--cudago-driver=both", str(pytester.path)])
    assert run.stdout.count("1 ['error']") == 2, run.stdout + run.stderr


SLOW = """
import os, pytest, signal, time

@pytest.fixture
def slow():
    yield
    time.sleep(0.5)
    print("the fixture is over")

def test_it(slow):
    os.kill(0, signal.SIGINT)  # of the whole group, as a terminal does
    time.sleep(60)
"""


def test_an_interrupt_of_both_runs_lets_fixtures_end(pytester, script):
    pytester.makepyfile(SLOW)
    command = [sys.executable, "-mpytest", "-pcudago_pytest", "-s", "--cudago-driver=both"]
    command += [str(pytester.path)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=script.environment,
        cwd=pytester.path,
        start_new_session=True,
    ) as run:
        told, _ = run.communicate()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, told
    assert "the fixture is over" in told
    assert "driver 'nvidia'" not in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("option", "what"), [("--cudago-check", "check=full"), ("--cudago-seed=3", "seed=3")]
)
def test_a_driver_in_use_gets_no_settings(pytester, project, option, what):
    pytester.makepyfile("def test_it(): pass")
    pytester.makepyfile(
        early="""
        import cudago
        cudago.Device()
        """
    )
    result = project("-p", "early", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = f"the driver of this process is in use already, without {what}: run pytest in a process"
    assert said in result.stderr.str()


def test_a_run_inside_of_one_with_the_same_options(pytester, project):
    inner = "pytest_plugins = ['pytester']\ndef test_outer(cu_device, pytester):\n"
    inner += "    pytester.makepyfile('def test_inner(cu_stream): pass')\n"
    inner += "    options = ['--cudago-check', '-pcudago_pytest']\n"
    inner += "    pytester.runpytest_inprocess(*options).assert_outcomes(passed=1)\n"
    pytester.makepyfile(inner)
    project("--cudago-check").assert_outcomes(passed=1)
