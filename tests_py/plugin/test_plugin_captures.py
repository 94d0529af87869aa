# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin and captures: those of fixtures, and those that tests leave open."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PREPARED = """
import cudago as cu, pytest

@pytest.fixture
def buffer(cu_device):
    with cu_device.create_stream() as stream:
        yield cu_device.allocate(4, stream=stream)
        stream.sync()
"""
WORKING = """
def test_works(cu_stream, buffer):
    out = bytearray(4)
    buffer.fill(7, stream=cu_stream)
    buffer.copy_to(out, stream=cu_stream)
    cu_stream.sync()
    assert out[0] == 7
"""
LEFT = "*the test leaves a capture open, of <cudago.Stream 0x* on device 0>*"


def lines_with(result, text):
    return [line for line in result.outlines if text in line]


def test_a_fixture_may_be_a_capture(pytester, project):
    pytester.makepyfile(
        PREPARED
        + """
@pytest.fixture(params=["global", "thread_local", "relaxed"])
def graph(cu_stream, request):
    with cu_stream.capture(request.param) as graph:
        yield graph
    assert len(graph.nodes) == 1

def test_queues(cu_no_leaks, buffer, cu_stream, graph):
    buffer.fill(1, stream=cu_stream)

def test_fails(buffer, cu_stream, graph):
    buffer.fill(1, stream=cu_stream)
    assert buffer.size == 5, "its own failure"
"""
        + WORKING
    )
    result = project()
    result.assert_outcomes(passed=4, failed=3)
    assert len(lines_with(result, "E       AssertionError: its own failure")) == 3


def test_a_module_may_have_a_capture(pytester, project):
    pytester.makepyfile(
        PREPARED
        + """
@pytest.fixture(scope="module")
def captured(cu_device):
    with cu_device.create_stream() as stream:
        with stream.capture("relaxed") as graph:
            yield stream
        assert len(graph.nodes) == 2

def test_one(captured, buffer):
    buffer.fill(1, stream=captured)

def test_two(captured, buffer):
    buffer.fill(1, stream=captured)
""",
        test_other=PREPARED + WORKING,
    )
    project().assert_outcomes(passed=3)


@pytest.mark.parametrize("mode", ["global", "relaxed"])
def test_what_a_test_leaves_open_is_told_once_and_ends(pytester, project, mode):
    leaving = f"""
KEPT = []
def test_leaves(cu_stream, buffer):
    KEPT.append(cu_stream.capture({mode!r}))
    KEPT[0].__enter__()
    buffer.fill(1, stream=cu_stream)

def test_lets_go():
    KEPT.clear()
"""
    pytester.makepyfile(PREPARED + leaving + WORKING)
    result = project("-Werror")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines([LEFT, "ERROR *::test_leaves*"])


def test_the_failure_of_a_test_that_leaves_one_is_shown(pytester, project):
    leaving = """
def test_leaves(cu_stream, buffer):
    capture = cu_stream.capture()
    graph = capture.__enter__()
    assert buffer.size == 5, "its own failure"
"""
    pytester.makepyfile(PREPARED + leaving + WORKING + WORKING.replace("works", "works_too"))
    result = project("-Werror")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: its own failure", f"E*after the test: {LEFT}"])
    assert not lines_with(result, "cannot be waited for")


def test_a_factory_of_captures_ends_them_itself(pytester, project):
    pytester.makepyfile(
        PREPARED
        + """
from contextlib import ExitStack

@pytest.fixture
def capturing(cu_stream):
    with ExitStack() as stack:
        yield lambda: stack.enter_context(cu_stream.capture())

def test_captures(capturing, cu_stream, buffer):
    capturing()
    buffer.fill(1, stream=cu_stream)
"""
    )
    project().assert_outcomes(passed=1)


def test_a_capture_of_another_thread_is_told_once(pytester, project):
    leaving = """
import threading
over = threading.Event()

def record(stream, begun):
    with stream.capture("thread_local"):
        begun.set()
        over.wait()

def test_leaves(cu_device):
    begun = threading.Event()
    threading.Thread(target=record, args=(cu_device.create_stream(), begun)).start()
    assert begun.wait(60)

def test_next(cu_stream):
    pass

def test_ends_it(cu_stream):
    over.set()
"""
    pytester.makepyfile(PREPARED + leaving)
    result = project()
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines([LEFT + ": it stays open, and no device can be waited for: *"])
