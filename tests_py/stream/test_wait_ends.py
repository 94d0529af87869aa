# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Waits for a stream that end at once, soon and late, beside other threads."""

from __future__ import annotations

import threading
import time

import pytest

import cudago as cu
from cudago.testing import hold

np = pytest.importorskip("numpy")


@pytest.fixture
def other(device):
    """Another stream."""
    with device.create_stream() as other:
        yield other


def after(seconds: float, do) -> threading.Thread:
    """Do something later, in another thread."""

    def run() -> None:
        time.sleep(seconds)
        do()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.parametrize("seconds", [0, 5e-5, 2e-4, 6e-4, 3e-3, 5e-2])
def test_all_has_ended_when_a_wait_returns(device, stream, pinned, seconds):
    """Polling ends after half a millisecond."""
    memory = np.asarray(pinned)
    for i in range(1, 9):
        memory[:] = 0
        with hold(stream) as go_on:
            pinned.fill(i, stream=stream)
            thread = after(seconds, go_on.set)
            stream.sync()
        assert set(memory.tolist()) == {i}
        assert stream.is_done
        thread.join()
        stream.sync()  # of an idle stream


def test_other_threads_run_meanwhile(stream):
    """What the wait is for is done by another Python thread."""
    order = []
    for seconds in (0, 1e-4, 2e-3):
        with hold(stream) as go_on:
            thread = after(seconds, lambda: (order.append("other"), go_on.set()))
            stream.sync()
            order.append("wait")
        thread.join()
    assert order == ["other", "wait"] * 3


@pytest.mark.parametrize("seconds", [0, 1e-4, 2e-3])
def test_another_thread_closes_the_stream_meanwhile(device, seconds):
    for _ in range(10):
        stream = device.create_stream()
        with hold(stream) as go_on:
            closing = after(0, stream.close)
            thread = after(seconds, go_on.set)
            try:
                stream.sync()
            except cu.ClosedError:
                assert stream.is_closed
        closing.join()
        thread.join()
        with pytest.raises(cu.ClosedError):
            stream.sync()


def test_captures_of_other_threads_go_on(device, stream, other, kernels):
    """A question by another thread would invalidate a capture in the global mode."""
    stop = threading.Event()
    failed = []

    def capture() -> None:
        try:
            while not stop.is_set():
                with other.capture(mode="global") as graph:
                    for _ in range(3):
                        cu.launch(other, cu.LaunchConfig(1, 1), kernels["nothing"])
                assert len(graph.nodes) == 3
                graph.close()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=capture)
    thread.start()
    for _ in range(300):
        cu.launch(stream, cu.LaunchConfig(1, 1), kernels["nothing"])
        stream.sync()
    stop.set()
    thread.join()
    assert not failed


def test_a_stream_whose_capture_begins_meanwhile(device, other, kernels):
    """No capture begins in a stream that another thread has just begun to ask about."""
    stop = threading.Event()
    said = set()

    def wait() -> None:
        while not stop.is_set():
            try:
                other.sync()
            except ValueError as error:
                said.add(str(error).partition(":")[0])

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for t in threads:
        t.start()
    for _ in range(100):
        with other.capture() as graph:
            cu.launch(other, cu.LaunchConfig(1, 1), kernels["nothing"])
        assert len(graph.nodes) == 1
        graph.close()
    stop.set()
    for t in threads:
        t.join()
    assert said <= {"a stream that is capturing cannot be waited for"}
