# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""How captures end: by their block, by exceptions, by failures, by nobody."""

from __future__ import annotations

import gc
import sys
import threading
import time

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)


@pytest.fixture
def a(device, stream):
    """Memory for 16 numbers, all 0."""
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


@pytest.fixture
def other_thread():
    """Calls a function in another thread and returns what it raised, or None."""

    def call(function):
        raised = []

        def run():
            try:
                function()
            except Exception as e:
                raised.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return raised[0] if raised else None

    return call


def numbers(buffer, stream) -> list[int]:
    """Return the numbers in a buffer, or the one number that all are."""
    out = np.zeros(N, "i4")
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return out.tolist() if len(set(out.tolist())) > 1 else out.tolist()[0]


def test_a_stream_can_be_closed_while_it_captures(a, device):
    stream = device.create_stream()
    with stream.capture() as graph:
        a.fill(0, stream=stream)
        stream.close()
    assert [node.kind for node in graph.nodes] == ["memset"]
    graph.close()
    device.sync()


def test_an_exception_ends_the_capture_and_drops_what_it_recorded(a, device, stream):
    temporary = device.allocate(4 * N, stream=stream)
    stream.sync()
    with pytest.raises(LookupError, match="mine"), stream.capture() as graph:
        temporary.fill(1, stream=stream)
        temporary.close()
        raise LookupError("mine")
    assert not stream.is_capturing
    assert graph.is_closed
    a.fill(b"\2\0\0\0", stream=stream)
    assert numbers(a, stream) == 2


def test_a_capture_that_was_not_joined(a, device, stream):
    with device.create_stream() as other:
        with (
            pytest.raises(cu.CUDAError, match="STREAM_CAPTURE_UNJOINED") as e,
            stream.capture() as graph,
        ):
            other.wait(stream)
            a.fill(1, stream=other)
        assert (e.value.code, e.value.operation) == (904, "cuStreamEndCapture")
        assert graph.is_closed
        assert not stream.is_capturing and not other.is_capturing
        other.sync()
    assert numbers(a, stream) == 0


def test_the_stream_works_as_before_afterwards(a, stream, kernels):
    for value in (1, 2, 3):
        with stream.capture() as graph:
            cu.launch(stream, CONFIG, kernels["add"], a, 10 * value, N)
        cu.launch(stream, CONFIG, kernels["add"], a, 1, N)
        with graph.instantiate() as step:
            step.launch(stream)
        graph.close()
    assert numbers(a, stream) == 63


def test_an_exception_between_any_two_bytecodes_leaves_no_capture_open(stream, at_each_bytecode):
    """A signal handler can raise there."""

    def block():
        with stream.capture():
            pass

    for _ in at_each_bytecode(block):
        assert not stream.is_capturing


def test_a_capture_is_entered_once(a, stream):
    capture = stream.capture()
    with capture as graph:
        a.fill(1, stream=stream)
        with pytest.raises(ValueError, match="entered only once"):
            capture.__enter__()
    with pytest.raises(ValueError, match="entered only once"):
        capture.__enter__()
    assert len(graph.nodes) == 1
    graph.close()


def test_a_capture_is_entered_once_also_while_it_begins(stream):
    """Beginning runs the collector now and then."""
    capture, tried = stream.capture(), []

    class Entering:
        def __del__(self):
            try:
                tried.append(capture.__enter__())
            except ValueError as e:
                tried.append(str(e))

    thresholds = gc.get_threshold()
    gc.collect()
    garbage = Entering()
    garbage.itself = garbage
    del garbage
    try:
        gc.set_threshold(1)
        graph = capture.__enter__()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    capture.__exit__(None, None, None)
    assert tried == ["a capture can be entered only once"]
    assert not stream.is_capturing
    graph.close()


def test_a_capture_that_cannot_begin_is_entered_later(stream):
    capture = stream.capture()
    with stream.capture() as other, pytest.raises(cu.CUDAError, match="capturing already"):
        capture.__enter__()
    other.close()
    with capture as graph:
        assert stream.is_capturing
    graph.close()


def test_an_abandoned_block_ends_its_capture(stream):
    def block():
        with stream.capture() as graph:
            yield graph

    suspended = block()
    next(suspended)
    assert stream.is_capturing
    del suspended
    assert not stream.is_capturing
    context = stream.capture()
    graph = context.__enter__()
    assert stream.is_capturing
    del context, graph
    assert not stream.is_capturing


@pytest.mark.parametrize("driver", ["sim"], indirect=True)  # whose calls can be made to fail
@pytest.mark.parametrize("raises", [False, True])
def test_a_failed_end_leaves_the_stream_usable(script, driver, raises):
    """Though the graph is still there, whose capture the driver has not ended."""
    run = script(
        f"""
        import cudago as cu
        from cudago import _core
        stream = cu.Device().create_stream()
        for call in ("cuCtxPushCurrent", "cuStreamEndCapture"):
            try:
                with stream.capture() as graph:
                    _core._fail_next(call, 1, 999)
                    if {raises}:
                        raise LookupError
            except (cu.CUDAError, LookupError) as e:
                assert isinstance(e, LookupError) == {raises}, e
            else:
                raise AssertionError(call)
            assert not stream.is_capturing, call
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)  # whose calls can be made to fail
def test_nothing_goes_into_a_capture_that_cannot_be_ended(script, driver):
    """What is queued behind the block is an error as long as the driver goes on capturing."""
    run = script(
        """
        import cudago as cu
        from cudago import _core
        device = cu.Device()
        stream = device.create_stream()
        a = device.allocate(256, stream=stream)
        for failures in range(1, 8):
            refused = 0
            try:
                with stream.capture():
                    a.fill(1, stream=stream)
                    for _ in range(failures):
                        _core._fail_next("cuStreamEndCapture", 1, 999)
                    raise LookupError
            except LookupError:
                pass
            while True:
                try:
                    a.fill(3, stream=stream)
                    break
                except cu.CUDAError as e:
                    assert e.operation == "cuStreamEndCapture", e
                    refused += 1
            assert a.view("uint8").numpy(stream=stream).tolist() == [3] * 256, failures
        assert refused > 1, refused
        a.close()
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_a_block_that_another_thread_has_left_is_left_by_its_own(stream, device, other_thread):
    """Only the thread that began a capture can end it: the block is still there for that thread."""
    memory = device.allocate(64, stream=stream)
    block = stream.capture()
    graph = block.__enter__()
    memory.fill(1, stream=stream)
    for _ in range(2):
        error = other_thread(lambda: block.__exit__(None, None, None))
        assert "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD" in str(error)
        assert "leave the block of the capture in the thread that entered it" in str(error)
        assert stream.is_capturing
    assert block.__exit__(None, None, None) is False
    assert not stream.is_capturing
    assert [node.kind for node in graph.nodes] == ["memset"]
    memory.close()


def test_a_block_that_another_thread_drops_ends(device, other_thread):
    """Nobody can leave it any more. The driver refuses to end it, and it is over all the same."""
    stream = device.create_stream()
    memory = device.allocate(64, stream=stream)
    stream.sync()

    def block():
        with stream.capture():
            memory.fill(1, stream=stream)
            yield

    held = [block()]
    next(held[0])
    unraisable = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        other_thread(held.clear)
    finally:
        sys.unraisablehook = before
    assert "leave the block of the capture in the thread" in str(unraisable[0].exc_value)
    assert not stream.is_capturing
    assert other_thread(lambda: memory.fill(2, stream=stream)) is None
    stream.sync()
    memory.close()


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("when", ["after its thread", "before"])
def test_a_capture_whose_thread_is_over_ends(device, mode, when):
    """Nobody can leave its block any more."""
    stream = device.create_stream()
    memory = device.allocate(64, stream=stream)
    stream.sync()
    held, begun, dropped = [], threading.Event(), threading.Event()

    def block():
        with stream.capture(mode=mode):
            memory.fill(1, stream=stream)
            yield

    def run():
        held.append(block())
        next(held[0])
        begun.set()
        if when == "before":
            dropped.wait()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    unraisable = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        if when == "after its thread":
            thread.join()
        held.clear()
        dropped.set()
        thread.join()
    finally:
        sys.unraisablehook = before
    assert all("WRONG_THREAD" in str(u.exc_value) for u in unraisable)
    for _ in range(1000):  # the kernel ends a thread a little after Python does
        if not stream.is_capturing:
            break
        time.sleep(0.01)
    assert not stream.is_capturing
    memory.fill(2, stream=stream)
    stream.sync()
    device.sync()
    memory.close()
    stream.close()
    cu.testing.settle()
    assert "Capture" not in cu.live_objects()
