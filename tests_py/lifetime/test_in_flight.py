# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launches that have not ended keep what they use, whatever is closed meanwhile."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

N = 64
CONFIG = cu.LaunchConfig(grid=1, block=N)


@pytest.fixture
def work(device, stream):
    """Memory for N numbers."""
    with device.allocate(4 * N, stream=stream) as buffer:
        yield buffer


@pytest.fixture
def result(device):
    """Pinned memory for N numbers: a graph's copy to it does not make the host wait."""
    with cu.PinnedMemoryResource() as resource, resource.allocate(4 * N) as buffer:
        memoryview(buffer)[:] = bytes(4 * N)
        yield buffer


def content(result) -> np.ndarray:
    """Return the numbers in a pinned buffer."""
    return np.frombuffer(bytes(result), "i4")


def build(source, work, result):
    """Return an executable that copies an operand there and back."""
    with cu.Graph() as graph:
        graph.memcpy(work, source, name="up").memcpy(result, work, name="down")
        return graph.instantiate()


@pytest.mark.parametrize("kind", ["numpy", "bytearray", "dlpack", "pinned", "buffer", "tensor"])
def test_an_executable_closed_while_it_waits(
    kind, make, numbers, work, result, stream, watch, poison, try_to_release
):
    source = make(kind, numbers)
    stream.sync()
    seen = watch(source)
    step = build(source, work, result)
    del source
    with hold(stream):
        step.launch(stream)
        step.close()
        try_to_release()
        assert seen.alive
        assert not content(result).any()
    stream.sync()
    assert (content(result) == numbers).all()
    settle()
    assert not seen.alive


@pytest.mark.parametrize("kind", ["pinned", "buffer", "view", "pointer", "tensor"])
@pytest.mark.parametrize("updated", [False, True])
def test_a_body_dropped_while_it_waits(
    kind, updated, make, numbers, work, result, stream, watch, poison, try_to_release
):
    source = make(kind, numbers)
    stream.sync()
    seen = watch(source)
    with cu.Graph() as graph:
        branch = graph.if_then(graph.condition(default=1), name="maybe")
        branch.body.memcpy(work, source, name="up")
        branch.memcpy(result, work)
        step = graph.instantiate()
    del source, branch, graph
    with hold(stream):
        step.launch(stream)
        if updated:
            step["maybe/up"].update(src=make(kind, numbers))
        else:
            step.close()
        try_to_release()
        assert seen.alive
    stream.sync()
    assert (content(result) == numbers).all()
    settle()
    assert not seen.alive
    step.close()


def test_an_executable_closed_while_it_runs(numbers, work, result, stream, watch, try_to_release):
    reached, go_on = threading.Event(), threading.Event()

    def wait():
        reached.set()
        go_on.wait()

    source = numbers.copy()
    seen = watch(source), watch(wait)
    with cu.Graph() as graph:
        graph.callback(wait).memcpy(work, source).memcpy(result, work)
        step = graph.instantiate()
    del source, wait
    step.launch(stream)
    reached.wait()
    step.close()
    try_to_release()
    assert all(w.alive for w in seen)
    go_on.set()
    stream.sync()
    assert (content(result) == numbers).all()
    settle()
    assert not any(w.alive for w in seen)


def test_an_update_while_a_launch_waits(numbers, work, result, stream, watch, poison):
    first, second = numbers.copy(), numbers + 100
    first_seen, second_seen = watch(first), watch(second)
    step = build(first, work, result)
    other = cu.PinnedMemoryResource().allocate(4 * N)
    with hold(stream):
        step.launch(stream)
        step["up"].update(src=second)
        step["down"].update(dst=other)
        del first, second
        poison()
        cu._core._reaper_flush(20)
        assert first_seen.alive and second_seen.alive
        step.launch(stream)
    stream.sync()
    assert (content(result) == numbers).all()
    assert (content(other) == numbers + 100).all()
    settle()
    assert not first_seen.alive
    assert second_seen.alive
    step.close()
    settle()
    assert not second_seen.alive


def test_several_updates_while_launches_wait(numbers, work, stream, watch):
    results = [cu.PinnedMemoryResource().allocate(4 * N) for _ in range(5)]
    sources = [numbers + 10 * n for n in range(5)]
    seen = [watch(s) for s in sources]
    step = build(np.zeros(N, "i4"), work, results[0])
    with hold(stream):
        for result in results:
            step["up"].update(src=sources.pop(0))
            step["down"].update(dst=result)
            step.launch(stream)
        gc.collect()
        assert all(w.alive for w in seen)
        step.close()
    stream.sync()
    assert all((content(r) == numbers + 10 * n).all() for n, r in enumerate(results))
    settle()
    assert not any(w.alive for w in seen)


def test_launches_on_several_streams(numbers, device, work, result, stream, watch, try_to_release):
    source = numbers.copy()
    seen = watch(source)
    step = build(source, work, result)
    del source
    with device.create_stream() as other:
        step.launch(other)
        other.sync()
        with hold(stream):
            step.launch(stream)
            step.close()
            other.sync()
            try_to_release()
            assert seen.alive
        stream.sync()
        settle()
        assert not seen.alive


def test_a_stream_closed_before_its_launch_has_ended(
    numbers, device, work, result, watch, try_to_release
):
    source = numbers.copy()
    seen = watch(source)
    step = build(source, work, result)
    del source
    s = device.create_stream()
    with hold(s):
        step.launch(s)
        done = s.record()
        s.close()
        step.close()
        try_to_release()
        assert seen.alive
    done.sync()
    done.close()
    assert (content(result) == numbers).all()
    settle()
    assert not seen.alive


def test_a_stream_of_another_library(numbers, device, work, result, stream, watch, try_to_release):
    class Theirs:
        def __cuda_stream__(self):
            return 0, stream.handle

    source = numbers.copy()
    seen = watch(source)
    step = build(source, work, result)
    del source
    with hold(stream):
        step.launch(Theirs())
        step.close()
        try_to_release()
        assert seen.alive
    stream.sync()
    assert (content(result) == numbers).all()
    settle()
    assert not seen.alive


def test_buffers_closed_while_a_launch_uses_them(numbers, make, device, result, stream, poison):
    source, work = make("buffer", numbers), device.allocate(4 * N, stream=stream)
    stream.sync()
    step = build(source, work, result)
    buffers = cu.live_objects()["Buffer"]
    with hold(stream):
        step.launch(stream)
        step.close()
        source.close()
        work.close()
        assert cu.live_objects()["Buffer"] == buffers
        poison()
    stream.sync()
    assert (content(result) == numbers).all()
    settle()
    assert cu.live_objects()["Buffer"] == buffers - 2


def test_everything_dropped_while_a_launch_waits(numbers, work, result, stream, poison):
    with hold(stream):
        build(numbers.copy(), work, result).launch(stream)
        poison()
    stream.sync()
    assert (content(result) == numbers).all()


def test_a_clone_closed_while_a_launch_of_the_original_waits(numbers, work, result, stream, poison):
    graph = cu.Graph()
    graph.memcpy(work, numbers.copy()).memcpy(result, work)
    clone = graph.clone()
    one, two = graph.instantiate(), clone.instantiate()
    with hold(stream):
        one.launch(stream)
        for closed in (graph, clone, two, one):
            closed.close()
        poison()
    stream.sync()
    assert (content(result) == numbers).all()


def test_arguments_of_a_plain_launch_are_kept_until_it_ends(
    numbers, device, work, result, stream, kernels, watch, poison, try_to_release
):
    """Without a graph: device memory is freed in the order of its stream."""
    source = device.allocate(4 * N, stream=stream)
    source.copy_from(numbers, stream=stream)
    stream.sync()
    with hold(stream):
        cu.launch(stream, CONFIG, kernels["copy"], source, work, N)
        work.copy_to(result, stream=stream)
        source.close()
        poison()
    stream.sync()
    assert (content(result) == numbers).all()


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_host_arguments_of_a_plain_launch_are_kept_until_it_ends(
    numbers, work, result, stream, kernels, watch, poison, try_to_release
):
    source = numbers.copy()
    seen = watch(source)
    with hold(stream):
        cu.launch(stream, CONFIG, kernels["copy"], source, work, N)
        work.copy_to(result, stream=stream)
        del source
        poison()
        try_to_release()
        assert seen.alive
    stream.sync()
    assert (content(result) == numbers).all()
    settle()
    assert not seen.alive


def test_threads_close_what_others_launch(numbers, device, stream):
    """Many launches, updates and ends at once: nothing crashes, hangs or leaks."""
    failures = []

    def work() -> None:
        try:
            with device.create_stream() as own, device.allocate(4 * N, stream=own) as buffer:
                own.sync()
                for number in range(30):
                    out = np.zeros(N, "i4")
                    with cu.Graph() as graph:
                        graph.memcpy(buffer, numbers + number, name="up").memcpy(out, buffer)
                        step = graph.instantiate()
                    step.launch(own)
                    step["up"].update(src=numbers + number + 1)
                    step.launch(own)
                    if number % 2:
                        step.close()
                    del step
                    if number % 3 == 0:
                        gc.collect()
                    own.sync()
                    assert (out == numbers + number + 1).all()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
