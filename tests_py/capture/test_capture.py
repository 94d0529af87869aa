# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Capturing a stream's work as a graph."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)


@pytest.fixture
def a(device, stream):
    """Memory for 16 numbers, all 0."""
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


def numbers(buffer, stream) -> list[int]:
    """Return the numbers in a buffer, or the one number that all are."""
    out = np.zeros(N, "i4")
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return out.tolist() if len(set(out.tolist())) > 1 else out.tolist()[0]


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_what_is_queued_becomes_a_graph_and_does_not_run(mode, a, device, stream, kernels, pinned):
    with stream.capture(mode) as graph:
        assert stream.is_capturing
        a.fill(b"\1\0\0\0", stream=stream)
        cu.launch(stream, CONFIG, kernels["add"], a, 4, N)
        a.copy_to(pinned, stream=stream)
    assert not stream.is_capturing
    assert [n.kind for n in graph.nodes] == ["memset", "kernel", "memcpy"]
    assert len(graph.edges) == 2
    assert numbers(a, stream) == 0
    with graph.instantiate() as step:
        graph.close()
        step.launch(stream)
        stream.sync()
    assert np.frombuffer(bytes(pinned), "i4").tolist() == [5] * N


def test_the_graph_is_a_graph(a, stream, kernels):
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], a, 1, N)
    (node,) = graph.nodes
    assert graph[node.name] == node
    assert {r.operand for r in node.retained} == {"parameter 0", "kernel"}
    node.launch(CONFIG, kernels["times"], a, 7, N, name="more")
    with graph.instantiate() as step:
        step[node.name].update(CONFIG, kernels["add"], a, 2, N)
        step.launch(stream)
        assert numbers(a, stream) == 14
    with graph.clone() as clone, clone.instantiate() as step:
        graph.close()
        step.launch(stream)
        assert numbers(a, stream) == 105


def test_host_memory_of_a_captured_copy_is_read_at_each_launch(a, stream):
    source = np.full(N, 1, "i4")
    with stream.capture() as graph:
        a.copy_from(source, stream=stream)
    with graph.instantiate() as step:
        for value in (1, 2):
            source[:] = value
            step.launch(stream)
            assert numbers(a, stream) == value
    graph.close()


def test_an_empty_capture(stream):
    with stream.capture() as graph:
        pass
    assert graph.nodes == ()
    graph.close()


def test_other_streams_join_the_capture_by_events(a, device, stream, kernels):
    with device.create_stream() as other, device.allocate(4 * N, stream=stream) as b:
        with stream.capture() as graph:
            a.fill(b"\1\0\0\0", stream=stream)
            other.wait(stream)
            assert other.is_capturing
            b.fill(b"\2\0\0\0", stream=other)
            cu.launch(other, CONFIG, kernels["add"], b, 10, N)
            cu.launch(stream, CONFIG, kernels["add"], a, 20, N)
            stream.wait(other)
            cu.launch(stream, CONFIG, kernels["copy"], b, a, 8)
        assert not other.is_capturing
        last = graph.nodes[-1]
        assert len(last.dependencies) == 2
        with graph.instantiate() as step:
            step.launch(stream)
            assert numbers(a, stream) == [12] * 8 + [21] * 8
        graph.close()


def test_events_of_a_capture_are_destroyed_after_it(driver, script):
    """NVIDIA's driver crashes if that overlaps the end. `wait` drops such an event at once."""
    run = script(
        """
        import os, cudago as cu
        from cudago.testing import settle
        device = cu.Device()
        stream, other = device.create_stream(), device.create_stream()
        def say(what):
            settle()
            os.write(2, what.encode() + b"\\n")
        say("BEGIN")
        with stream.capture() as graph:
            other.wait(stream)
            stream.wait(other)
            with device.create_event() as event:
                stream.record(event)
            del event
            say("END")
        say("OVER")
        """,
        CUDAGO_TRACE="1",
    )
    assert run.returncode == 0, run.stderr
    during, after = run.stderr.split("BEGIN\n")[1].split("END\n")
    assert during.count("cuEventRecord(") == 3
    assert "cuEventDestroy(" not in during
    assert after.split("OVER\n")[0].count("cuEventDestroy(") == 3
    assert after.index("cuStreamEndCapture(") < after.index("cuEventDestroy(")


def test_use_of_the_graph_while_it_is_captured(a, stream):
    with stream.capture() as graph:
        assert repr(graph) == "<cudago.Graph: capturing>"
        assert not graph.is_closed
        for use in (
            lambda: graph.nodes,
            lambda: graph.memset(a, 0),
            lambda: graph.instantiate(),
            lambda: graph.clone(),
            graph.close,
        ):
            with pytest.raises(ValueError, match="still being captured"):
                use()
        a.fill(0, stream=stream)
    assert len(graph.nodes) == 1
    graph.close()


def test_what_a_capture_does_not_allow_is_refused_and_spoils_nothing(a, stream, kernels):
    with cu.Graph() as other:
        step = other.instantiate()
    with stream.capture() as graph:
        for use, error, message in (
            (stream.sync, ValueError, "a stream that is capturing cannot be waited for"),
            (
                lambda: stream.is_done,
                ValueError,
                "a stream that is capturing has nothing to be done",
            ),
            (lambda: step.upload(stream), ValueError, "cannot be uploaded on a stream"),
            (lambda: a.copy_from(b"abc", stream=stream), ValueError, "src has 3 bytes"),
            (lambda: cu.launch(stream, CONFIG, kernels["add"], a), TypeError, "takes 3 argument"),
            (lambda: stream.capture("quick").__enter__(), ValueError, "mode must be one of"),
            (lambda: stream.capture().__enter__(), cu.CUDAError, "CUDA_ERROR_ILLEGAL_STATE"),
        ):
            with pytest.raises(error, match=message):
                use()
        a.fill(b"\1\0\0\0", stream=stream)
    step.close()
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 1
    graph.close()


@pytest.mark.parametrize("mode", ["global", "relaxed"])
def test_callbacks_beside_captures_that_end(device, stream, mode):
    """Each is captured or queued, and none is kept when all have ended."""
    alive: weakref.WeakSet[Callback] = weakref.WeakSet()
    raised: list[BaseException] = []
    over = threading.Event()

    def queue() -> None:
        try:
            while not over.is_set():
                callback = Callback()
                alive.add(callback)
                stream.callback(callback)
        except BaseException as e:
            raised.append(e)

    thread = threading.Thread(target=queue)
    thread.start()
    try:
        for _ in range(500):
            with stream.capture(mode) as graph:
                pass
            graph.close()
    finally:
        over.set()
        thread.join()
    del graph
    stream.sync()
    cu.testing.settle()
    gc.collect()
    assert (raised, len(alive)) == ([], 0)


class Callback:
    """Does nothing, and can be referred to weakly."""

    def __call__(self) -> None:
        pass


def test_other_threads_can_do_everything_meanwhile(a, device, stream, kernels):
    """What cudago does elsewhere does not invalidate a capture in the strictest mode."""
    stream.sync()
    old = cu.Graph()
    old.memset(a, 0)
    old_step = old.instantiate()
    failures = []

    def work() -> None:
        try:
            with device.create_stream() as own, device.allocate(64, stream=own) as buffer:
                buffer.fill(1, stream=own)
                own.record().close()
            old_step.close()
            old.close()
            with cu.Graph() as graph:
                graph.callback(lambda: None)
        except BaseException as e:
            failures.append(e)

    with stream.capture("global") as graph:
        a.fill(b"\3\0\0\0", stream=stream)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        a.fill(b"\4\0\0\0", stream=stream)
    assert failures == []
    settle()
    assert len(graph.nodes) == 2
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 4
    graph.close()


def test_waiting_elsewhere_does_not_invalidate_a_capture(a, device, stream):
    stream.sync()
    failures = []

    def work() -> None:
        try:
            with device.create_stream() as own, own.record() as event:
                event.sync()
                own.sync()
                assert own.is_done and event.is_done
        except BaseException as e:
            failures.append(e)

    with stream.capture("global") as graph:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        a.fill(b"\4\0\0\0", stream=stream)
    assert failures == []
    assert len(graph.nodes) == 1
    graph.close()


def test_objects_dropped_during_a_capture_do_not_invalidate_it(a, device, stream):
    stream.sync()
    with stream.capture("global") as graph:
        for _ in range(3):
            buffer = device.allocate(64, stream=device.create_stream())
            del buffer
            device.create_event()
            cu.PinnedMemoryResource().allocate(64)
        a.fill(b"\3\0\0\0", stream=stream)
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 3
    graph.close()


def test_memory_closed_during_its_capture(device, stream, a):
    """Freeing on the capturing stream would add a node that frees at each launch."""
    buffer = device.allocate(4 * N, stream=stream)
    with stream.capture() as graph:
        buffer.fill(b"\7\0\0\0", stream=stream)
        a.copy_from(buffer, stream=stream)
        buffer.close()
    assert [n.kind for n in graph.nodes] == ["memset", "memcpy"]
    with graph.instantiate() as step:
        graph.close()
        for _ in range(3):
            a.fill(0, stream=stream)
            step.launch(stream)
            assert numbers(a, stream) == 7


def test_two_captures_at_a_time(a, device, stream):
    with device.create_stream() as other, device.allocate(4 * N, stream=other) as b:
        with stream.capture("thread_local") as one, other.capture("thread_local") as two:
            a.fill(b"\1\0\0\0", stream=stream)
            b.fill(b"\2\0\0\0", stream=other)
        with one.instantiate() as first, two.instantiate() as second:
            first.launch(stream)
            second.launch(other)
            assert (numbers(a, stream), numbers(b, other)) == (1, 2)
        one.close()
        two.close()


def test_frees_deferred_by_a_capture_do_not_invalidate_the_next(device):
    """What is dropped during a capture is freed after it: here, when the next one begins."""
    failures = []
    done = threading.Event()

    def capture() -> None:
        try:
            with device.create_stream() as s, device.allocate(64, stream=s) as kept:
                for _ in range(300):
                    dropped = device.allocate(64, stream=s)
                    for _ in range(2):
                        with s.capture("thread_local") as graph:
                            kept.fill(0, stream=s)
                            dropped = None
                            kept.fill(1, stream=s)
                        assert len(graph.nodes) == 2
                        graph.close()
                assert dropped is None
        except BaseException as e:
            failures.append(e)

    def release() -> None:
        with (
            device.create_stream() as s,
            device.allocate(64, stream=s) as buffer,
            cu.Graph() as graph,
        ):
            graph.memset(buffer, 0)
            while not done.is_set():
                with graph.instantiate() as step:
                    step.launch(s)
                device.allocate(64, stream=s).close()

    threads = [threading.Thread(target=f) for f in (capture, capture, release, release)]
    for t in threads:
        t.start()
    for t in threads[:2]:
        t.join()
    done.set()
    for t in threads[2:]:
        t.join()
    assert failures == []


def test_a_tensor_is_copied_to_and_from_bytes(device, stream):
    """The order of the streams is the capture's affair, not that of an exchange."""
    with device.allocate(4, stream=stream) as a, cu.zeros(4, "u1", stream=stream) as t:
        with stream.capture() as graph:
            a.fill(3, stream=stream)
            t.copy_from(a, stream=stream)
            a.fill(0, stream=stream)
            t.copy_to(a, stream=stream)
        with graph, graph.instantiate() as step:
            assert [n.kind for n in graph.nodes] == ["memset", "memcpy", "memset", "memcpy"]
            step.launch(stream)
            assert a.view("u1").numpy(stream=stream).tolist() == [3] * 4
