# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Captured functions in captures, after errors, on threads; and what their cache keeps."""

from __future__ import annotations

import gc
import random
import threading
import weakref

import pytest

import cudago as cu
from cudago._graph.entry import executable_of

from .counted import Counted
from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


# --- captures, errors, threads --------------------------------------------------------------------


def test_in_a_capture_it_is_part_of_that_capture(counted, a, stream):
    with stream.capture() as graph:
        counted.function(stream, a, 1)
        counted.function(stream, a, 1)
    assert (len(graph.nodes), counted.calls, counted.function.graphs) == (2, 2, ())


def test_functions_call_each_other_and_themselves(counted, a, stream):
    @cu.graph
    def outer(s, y, depth):
        counted.function(s, y, 1)
        if depth:
            outer(s, y, depth - 1)

    outer(stream, a, 2)
    outer(stream, a, 2)
    assert (numbers(a, stream), counted.calls) == (6, 3)
    assert len(outer.graphs[0].nodes) == 3
    assert counted.function.graphs == ()


def test_an_exception_passes_and_leaves_the_stream_usable(counted, a, stream):
    @cu.graph
    def fail(s, y, error):
        cu.launch(s, CONFIG, counted.add, y, 100, N)
        if error is not None:
            raise error

    for error in (ZeroDivisionError("mine"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as info:
            fail(stream, a, error)
        assert info.value is error
        assert not stream.is_capturing
        assert fail.graphs == ()
    fail(stream, a, None)
    assert numbers(a, stream) == 100


def test_an_interrupt_right_after_an_update(counted, a, b, stream, monkeypatch):
    """The executable has the new operands, and the cache must not take it for the old call's."""
    counted.function(stream, a, 1)
    update = cu.GraphExec.update

    def interrupted(step, graph):
        update(step, graph)
        raise KeyboardInterrupt

    monkeypatch.setattr(cu.GraphExec, "update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        counted.function(stream, b, 1)
    monkeypatch.undo()
    counted.function(stream, a, 1)
    assert (numbers(a, stream), numbers(b, stream)) == (2, 0)


def test_what_a_capture_forbids_is_an_error(a, stream):
    @cu.graph
    def wait(s):
        s.sync()

    with pytest.raises(ValueError, match="capturing cannot be waited for"):
        wait(stream)
    assert not stream.is_capturing
    a.fill(1, stream=stream)
    assert numbers(a, stream) == 0x01010101


def test_closed_arguments(counted, device, stream):
    add = counted.function
    buffer = device.allocate(4 * N, stream=stream)
    tensor = buffer.view("i4")
    for given in (buffer, tensor):
        add(stream, given, 1)
        add(stream, given, 1)
        given.close()
        with pytest.raises(cu.ClosedError):
            add(stream, given, 1)
    closed = device.create_stream()
    closed.close()
    with pytest.raises(cu.ClosedError):
        add(closed, buffer, 1)


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_calls_that_fail_leave_the_function_usable(script, driver):
    run = script(
        """
        import cudago as cu
        from cudago import _core
        device = cu.Device()
        s = device.create_stream()
        x, y = (cu.zeros(4, "i4", stream=s) for _ in range(2))
        calls = []

        @cu.graph
        def fill(s, x, value):
            calls.append(value)
            x.fill(value, stream=s)

        def refused(call, *args):
            _core._fail_next(call, 1, 999)
            try:
                fill(s, *args)
            except cu.CUDAError as e:
                assert e.code == 999 and call.startswith(e.operation), e
            else:
                raise AssertionError(call)
            assert not s.is_capturing

        for call in ("cuStreamIsCapturing", "cuStreamBeginCapture", "cuStreamEndCapture",
                     "cuMemsetD32Async", "cuGraphInstantiateWithParams", "cuGraphLaunch"):
            fill.clear()
            refused(call, x, 1)
        fill.clear()
        calls.clear()
        fill(s, x, 1)
        refused("cuGraphExecUpdate", x, 2)
        fill(s, x, 1)
        assert (calls, x.numpy(stream=s).tolist()) == ([1, 2], [1] * 4)
        refused("cuGraphLaunch", x, 1)
        fill(s, x, 3)
        assert x.numpy(stream=s).tolist() == [3] * 4
        print(fill.explain())
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "updated 1 time, last because value was 1 and is 3" in run.stdout


def test_a_reset_device(script, driver):
    run = script(
        """
        import cudago as cu
        device = cu.Device()

        @cu.graph
        def fill(s, x, value):
            x.fill(value, stream=s)

        for i in range(3):
            s = device.create_stream()
            x = cu.zeros(4, "i4", stream=s)
            fill(s, x, 7)
            fill(s, x, 7)
            assert x.numpy(stream=s).tolist() == [7] * 4
            device.reset()
            try:
                fill(s, x, 7)
            except cu.ClosedError:
                pass
            else:
                raise AssertionError
            assert "graph 0 (closed): launched" in fill.explain()
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_memory_that_a_call_leaves_is_freed_before_the_next(device, stream):
    with cu.Graph(device) as graph:
        node = graph.allocate(4 * N)
        node.memset(node.buffer, 1)
        with executable_of(graph) as step:
            for _ in range(3):
                step.launch(stream)


def test_threads_with_streams_of_their_own(device, stream, kernels):
    counted, rounds, threads = Counted(kernels), 40, 4
    sums = []

    def work(number: int) -> None:
        with device.create_stream() as s, device.allocate(4 * N, stream=s) as y:
            y.fill(0, stream=s)
            for i in range(rounds):
                counted.function(s, y, i % 3)
            sums.append(numbers(y, s))

    _run([threading.Thread(target=work, args=(i,)) for i in range(threads)])
    assert sums == [sum(i % 3 for i in range(rounds))] * threads
    assert len(counted.function.graphs) == 1


def test_threads_that_share_a_stream(device, stream, kernels, a, b):
    counted, rounds = Counted(kernels), 40

    def work(y: cu.Buffer, value: int) -> None:
        for _ in range(rounds):
            counted.function(stream, y, value)

    _run([threading.Thread(target=work, args=(y, v)) for y, v in ((a, 1), (b, 2), (a, 4))])
    assert (numbers(a, stream), numbers(b, stream)) == (5 * rounds, 2 * rounds)


def _run(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- the cache ------------------------------------------------------------------------------------


def test_the_least_recently_used_graph_is_dropped(kernels, a, stream):
    counted = Counted(kernels, max_graphs=2)
    add = counted.function
    add(stream, a, 1)
    add(stream, a, np.int32(1))
    add(stream, a, 1)
    add(stream, a, np.int64(1))  # drops int32's
    assert (counted.calls, len(add.graphs)) == (3, 2)
    assert "add: 2 of at most 2 graphs; 1 dropped" in add.explain()
    add(stream, a, 1)
    assert counted.calls == 3
    add(stream, a, np.int32(1))
    assert (counted.calls, numbers(a, stream)) == (4, 6)


def test_clear(counted, a, stream):
    add = counted.function
    add(stream, a, 1)
    add(stream, a, 1)
    add.clear()
    assert (add.graphs, add.explain()) == ((), "add: 0 of at most 16 graphs")
    add(stream, a, 1)
    assert (counted.calls, numbers(a, stream)) == (2, 3)


def test_clear_amid_a_capture(a, stream):
    """What the capture has read before that counts no more."""
    value = 1

    @cu.graph
    def fill(s, x):
        nonlocal value
        x.fill(value, stream=s)
        if value == 1:
            value = 2
            fill.clear()

    for expected in 1, 2, 2:
        fill(stream, a.view("u1"))
        assert numbers(a, stream) == 0x01010101 * expected
    assert len(fill.graphs) == 1


def test_memory_is_kept_by_the_graphs_alone(counted, device, stream, a):
    def array():
        return np.zeros(N, "i4")

    @cu.graph
    def upload(s, data, unused):
        a.copy_from(data, stream=s)

    data, unused = array(), array()
    kept, not_kept = weakref.ref(data), weakref.ref(unused)
    upload(stream, data, unused)
    upload(stream, data, unused)
    stream.sync()
    del data, unused
    gc.collect()
    assert not_kept() is None
    assert kept() is upload.graphs[0].nodes[0].params.src
    upload.clear()
    cu.testing.settle()
    assert kept() is None


def test_new_operands_release_the_old_ones(device, stream, a):
    @cu.graph
    def upload(s, data):
        a.copy_from(data, stream=s)

    arrays = [np.zeros(N, "i4") for _ in range(3)]
    kept = [weakref.ref(x) for x in arrays]
    for x in arrays:
        upload(stream, x)
    stream.sync()
    del x, arrays
    cu.testing.settle()
    assert [r() is None for r in kept] == [True, True, False]


def test_a_function_that_nobody_has_releases_its_graphs(kernels, device, stream):
    counted = Counted(kernels)
    buffer = device.allocate(4 * N, stream=stream)
    counted.function(stream, buffer, 1)
    stream.sync()
    died = weakref.ref(counted.function)
    del counted
    gc.collect()
    assert died() is None
    assert cu.who_retains(buffer) == ()
    buffer.close()


# --- calls at random ------------------------------------------------------------------------------


class Model:
    """Arrays on the device and what they must contain, used by one thread."""

    def __init__(self, device, function, seed: int) -> None:
        self.random, self.function = random.Random(seed), function
        self.stream = device.create_stream()
        self.arrays = [self.new() for _ in range(4)]

    def new(self):
        values = np.array([self.random.randrange(100) for _ in range(N)], "i4")
        return cu.asarray(values, stream=self.stream), values

    def step(self) -> None:
        """Make a call, and the same on the host; or exchange an array."""
        i, j = self.random.sample(range(4), 2)
        if self.random.random() < 0.1:
            self.arrays[i] = self.new()
            return
        (y, expected), (x, added) = self.arrays[i], self.arrays[j]
        value, times = self.random.randrange(3), self.random.choice([1, 1, 1, 2])
        more = [self.random.randrange(2)] * self.random.choice([0, 0, 1])
        if self.random.random() < 0.5:
            self.function(self.stream, y[:], x, value, times, more=more)
        else:
            self.function(self.stream, y, x=x, value=value, times=times, more=tuple(more))
        expected[:] = added
        expected += times * value + sum(more)
        assert (y.numpy(stream=self.stream) == expected).all()


def test_calls_at_random_equal_the_same_calls_on_the_host(device, kernels):
    @cu.graph(max_graphs=3)
    def function(s, y, x, value, times=1, *, more=()):
        y.copy_from(x, stream=s)
        for number in [value] * times + list(more):
            cu.launch(s, CONFIG, kernels["add"], y, number, N)

    failures = []

    def work(seed: int) -> None:
        try:
            model = Model(device, function, seed)
            for _ in range(100):
                model.step()
            model.stream.close()
        except BaseException as e:
            failures.append(repr(e))

    _run([threading.Thread(target=work, args=(seed,)) for seed in range(3)])
    assert failures == []
    assert len(function.graphs) <= 3
