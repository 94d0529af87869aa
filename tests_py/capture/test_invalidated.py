# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Captures that a call has broken: the errors say which call, and on which line."""

from __future__ import annotations

import contextlib
import inspect
import threading

import pytest

import cudago as cu

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)

PATH = __file__


def line_of(function, mark: str) -> int:
    """Return the line of a function that ends in a comment."""
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, text in enumerate(lines) if text.rstrip().endswith(mark))


@pytest.fixture
def other(device):
    """Another stream, with an event in it that no capture may wait for."""
    with device.create_stream() as other:
        yield other


def usable(*streams):
    for stream in streams:
        assert not stream.is_capturing
        with stream.capture() as graph:
            stream.record()
        graph.close()
        stream.sync()


@pytest.fixture
def memory(device, stream):
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


def swallowed(stream, other, then):
    outside = other.record()
    with stream.capture():
        with contextlib.suppress(cu.CUDAError):
            stream.wait(outside)  # breaks it
        then()


def test_the_end_names_the_call_and_its_line(stream, other):
    where = f"{PATH}:{line_of(swallowed, '# breaks it')}"
    with pytest.raises(cu.CUDAError) as e:
        swallowed(stream, other, lambda: None)
    assert (e.value.code, e.value.operation) == (901, "cuStreamEndCapture")
    assert str(e.value).endswith(f"(by cuStreamWaitEvent at {where})")
    usable(stream, other)


def test_so_does_a_call_in_between(stream, other, memory, kernels):
    where = f"{PATH}:{line_of(swallowed, '# breaks it')}"
    for call in (
        lambda: cu.launch(stream, CONFIG, kernels["add"], memory, 1, N),
        lambda: memory.fill(1, stream=stream),
        lambda: memory.copy_from(bytes(4 * N), stream=stream),
    ):
        with pytest.raises(cu.CUDAError, match="CAPTURE_INVALIDATED") as e:
            swallowed(stream, other, call)
        assert e.value.code == 901
        assert str(e.value).endswith(f"(by cuStreamWaitEvent at {where})")
        usable(stream, other)


def test_the_call_that_breaks_it_says_so_itself(stream, other):
    outside = other.record()
    with pytest.raises(cu.CUDAError) as e, stream.capture():
        stream.wait(outside)
    assert (e.value.code, e.value.operation) == (905, "cuStreamWaitEvent")
    assert PATH not in str(e.value)
    assert f"{outside!r} was not recorded in the capture: wait for it before" in str(e.value)
    assert e.value.__cause__ is e.value.__context__ is None
    usable(stream, other)


def test_a_wait_for_what_is_outside_says_what_to_do(stream, other, device):
    outside = r"work outside it: <cudago\.Stream .*graph\.fork\("
    with pytest.raises(cu.CUDAError, match=outside), stream.capture():
        stream.wait(other)
    usable(stream, other)

    class Theirs:
        def __cuda_stream__(self):
            return 0, other.handle

    outside = "work outside it: the Theirs is not in the capture"
    with pytest.raises(cu.CUDAError, match=outside), stream.capture():
        stream.wait(Theirs())
    usable(stream, other)
    with stream.capture():
        inside = stream.record()
    with pytest.raises(cu.CUDAError, match=r"in a capture that has ended, .*: record it again"):
        stream.wait(inside)
    with stream.capture() as graph, graph.fork(other):
        stream.wait(other)  # what it says to do
    usable(stream, other)


def both(stream, other):
    with stream.capture(), contextlib.suppress(cu.CUDAError), other.capture():
        stream.wait(other)  # breaks both


def test_two_captures_that_a_call_would_have_joined(stream, other):
    where = f"{PATH}:{line_of(both, '# breaks both')}"
    with pytest.raises(cu.CUDAError, match="CAPTURE_INVALIDATED") as e:
        both(stream, other)
    assert str(e.value).endswith(f"(by cuStreamWaitEvent at {where})")
    usable(stream, other)


def test_errors_that_break_nothing_are_not_named(device, stream, other, memory):
    outside = other.record()
    with pytest.raises(cu.CUDAError) as e, stream.capture():
        with pytest.raises(cu.CUDAError):
            device.allocate(1 << 60, stream=other)  # another stream's affair
        with contextlib.suppress(cu.CUDAError):
            stream.wait(outside)
    assert "by cuStreamWaitEvent at" in str(e.value)
    usable(stream, other)


def test_captures_of_other_threads_are_not_blamed(device, stream, other):
    """What breaks one capture is not taken for the cause of another."""
    begun, broken = threading.Event(), threading.Event()
    graphs = []

    def healthy():
        with other.capture("thread_local") as graph:
            begun.set()
            broken.wait(60)
        graphs.append(graph)

    with device.create_stream() as third:
        outside = third.record()
        thread = threading.Thread(target=healthy)
        thread.start()
        begun.wait(60)
        with (
            pytest.raises(cu.CUDAError, match="by cuStreamWaitEvent at"),
            stream.capture("relaxed"),
            contextlib.suppress(cu.CUDAError),
        ):
            stream.wait(outside)
        broken.set()
        thread.join()
    assert len(graphs) == 1
    graphs[0].close()
    usable(stream, other)


def test_a_stream_that_is_capturing_already(stream, memory):
    with stream.capture() as graph:
        with (
            pytest.raises(cu.CUDAError, match=r"ILLEGAL_STATE.*is capturing already"),
            stream.capture(),
        ):
            pass
        memory.fill(1, stream=stream)
    assert len(graph.nodes) == 1
    graph.close()
