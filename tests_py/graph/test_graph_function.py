# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that are captured at their first call: when they are captured again, what is kept."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import threading
import weakref
from collections import namedtuple

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


class Counted:
    """A function that adds to a buffer, and how often it was called."""

    def __init__(self, kernels, **options) -> None:
        self.calls = 0
        self.add = kernels["add"]

        def add(s, y, value):
            self.calls += 1
            cu.launch(s, CONFIG, self.add, y, value, N)

        self.function = cu.graph(**options)(add) if options else cu.graph(add)


@pytest.fixture
def counted(kernels):
    counted = Counted(kernels)
    yield counted
    counted.function.clear()


# --- when it is captured --------------------------------------------------------------------------


def test_the_same_arguments_launch_the_same_graph(counted, a, stream):
    for _ in range(3):
        counted.function(stream, a, 2)
    assert (numbers(a, stream), counted.calls) == (6, 1)
    (graph,) = counted.function.graphs
    assert [node.kind for node in graph.nodes] == ["kernel"]


def test_other_values_and_memory_update_the_graph(counted, a, b, stream):
    add = counted.function
    add(stream, a, 1)
    first = add.graphs[0]
    add(stream, a, 10)
    add(stream, b, 10)
    add(stream, b, 10)
    assert (numbers(a, stream), numbers(b, stream), counted.calls) == (11, 20, 3)
    assert len(add.graphs) == 1
    assert first.diff(add.graphs[0])
    assert "captured again and updated 2 times, last because y is other memory" in add.explain()
    assert "launched 4 times" in add.explain()


def test_a_value_that_is_equal_but_not_the_same(device, stream):
    seen = []

    @cu.graph
    def note(s, value):
        seen.append(value)

    for value in (0.0, -0.0, 0.0, 0, False, np.float32(0), np.float32(-0.0), None, "", b""):
        note(stream, value)
    assert [repr(v) for v in seen] == [
        *("0.0", "-0.0", "0.0", "0", "False"),
        *(repr(np.float32(0)), repr(np.float32(-0.0)), "None", "''", "b''"),
    ]
    note(stream, b"")
    note(stream, np.float32(-0.0))
    assert len(seen) == 10


def test_views_of_the_same_memory_are_the_same(counted, a, stream):
    add = counted.function
    whole = a.view("i4")
    for _ in range(2):
        add(stream, whole[:], 1)
        add(stream, a.view("i4"), 1)
    assert (numbers(a, stream), counted.calls) == (4, 1)
    add(stream, a.ptr, 1)
    add(stream, a.ptr + 0, 1)
    assert (numbers(a, stream), counted.calls) == (6, 2)


def test_another_signature_is_another_graph(counted, a, stream):
    add = counted.function
    add(stream, a, 1)
    add(stream, a.view("i4"), 1)
    add(stream, a.view("u4"), 1)
    add(stream, a.view("i4", (4, 4)), 1)
    add(stream, a, np.int32(1))
    add(stream, a, 1)
    assert (numbers(a, stream), counted.calls, len(add.graphs)) == (6, 5, 5)
    assert "y: int32[4, 4] on device 0, value: int" in add.explain()


def test_work_that_differs_replaces_the_executable(device, stream, a):
    @cu.graph
    def fill(s, x, times):
        for i in range(times):
            x.fill(i, stream=s)

    fill(stream, a, 1)
    fill(stream, a, 3)
    assert numbers(a, stream) == 0x02020202
    assert len(fill.graphs[0].nodes) == 3
    text = fill.explain()
    assert "made anew 1 time, last because times was 1 and is 3: " in text
    assert "cannot update the graph executable" in text


def test_host_memory_is_read_at_each_launch(device, stream, a):
    calls = []

    @cu.graph
    def upload(s, x, data):
        calls.append(None)
        x.copy_from(data, stream=s)

    data = np.full(N, 3, "i4")
    upload(stream, a, data)
    assert numbers(a, stream) == 3
    data[:] = 4
    upload(stream, a, data)
    assert (numbers(a, stream), len(calls)) == (4, 1)
    upload(stream, a, np.full(N, 5, "i4"))
    assert (numbers(a, stream), len(calls)) == (5, 2)


def test_a_bytearray_is_told_by_its_identity_while_the_graph_keeps_it(device, stream, a):
    calls = []

    @cu.graph
    def upload(s, x, data, unused):
        calls.append(None)
        x.copy_from(data, stream=s)

    data = bytearray(4 * N)
    upload(stream, a, data, 1)
    upload(stream, a, data, 1)
    assert len(calls) == 1
    with pytest.raises(BufferError):
        data.append(0)
    upload(stream, a, data, bytearray(4))  # this one nobody keeps
    upload(stream, a, data, bytearray(4))
    assert len(calls) == 3
    assert "unused cannot be recognized" in upload.explain()


def test_containers_are_looked_into(kernels, stream, a, b):
    calls = []
    Pair = namedtuple("Pair", "y value")

    @cu.graph
    def add(s, pairs, more):
        calls.append(None)
        for y, value in (*pairs, *more.values()):
            cu.launch(s, CONFIG, kernels["add"], y, value, N)

    more = {"last": (a, 5)}
    pairs = [Pair(a, 1), Pair(b, 2)]
    add(stream, pairs, more)
    add(stream, [Pair(a, 1), Pair(b, 2)], {"last": (a, 5)})
    assert (numbers(a, stream), numbers(b, stream), len(calls)) == (12, 4, 1)
    pairs[1] = Pair(b, 20)
    add(stream, pairs, more)
    assert (numbers(b, stream), len(calls)) == (24, 2)
    assert "pairs[1][1] was 2 and is 20" in add.explain()
    pairs.pop()
    add(stream, pairs, more)
    assert (len(calls), len(add.graphs)) == (3, 2)


def test_what_can_change_is_captured_each_time(stream):
    calls = []

    @cu.graph
    def read(s, thing):
        calls.append(None)

    class Slots:
        __slots__ = ("value",)

    for thing in (Slots(), {1.5: 2}, cu.Graph()):
        before = len(calls)
        read(stream, thing)
        read(stream, thing)
        assert len(calls) == before + 2
    for thing in ({"a": 1}, (1, 2), {1, 2}, print, read, np.dtype("f4"), range(3), Counted):
        before = len(calls)
        read(stream, thing)
        read(stream, thing)
        assert len(calls) == before + 1


def test_scalars_that_can_be_written(stream):
    ctypes = pytest.importorskip("ctypes")
    seen = []

    @cu.graph
    def read(s, value):
        seen.append(int(value.value if hasattr(value, "value") else value))

    number, array = ctypes.c_int(1), np.array(1, "i4")
    for thing in (number, array):
        read(stream, thing)
        read(stream, thing)
    number.value = 2
    array[...] = 3
    read(stream, number)
    read(stream, array)
    assert seen == [1, 1, 2, 3]


# --- arguments ------------------------------------------------------------------------------------


def test_defaults_and_keywords_are_the_same_call(kernels, stream, a):
    calls = []

    @cu.graph
    def add(s, y, value=2, *rest, n=N, **more):
        calls.append((value, rest, n, more))
        cu.launch(s, CONFIG, kernels["add"], y, value, n)

    add(stream, a)
    add(stream, a, 2)
    add(stream, y=a, n=N)
    assert (numbers(a, stream), calls) == (6, [(2, (), N, {})])
    add(stream, a, 2, 3)
    add(stream, a, other=4)
    assert [c[1:] for c in calls[1:]] == [((3,), N, {}), ((), N, {"other": 4})]
    with pytest.raises(TypeError, match=r"^add\(\) got wrong arguments: missing a required"):
        add(stream)
    only_rest = cu.graph(lambda *args: calls.append(len(args)))
    only_rest(stream, 1, 2)
    only_rest(stream, 1, 2)
    assert calls[3:] == [3]


def test_methods(kernels, stream, a):
    class Model:
        def __init__(self) -> None:
            self.calls = 0

        @cu.graph
        def step(self, s, y, value):
            "Add."
            self.calls += 1
            cu.launch(s, CONFIG, kernels["add"], y, value, N)

        @staticmethod
        @cu.graph
        def static(s, y):
            cu.launch(s, CONFIG, kernels["add"], y, 1, N)

        @classmethod
        @cu.graph
        def of_class(cls, s, y):
            cu.launch(s, CONFIG, kernels["add"], y, 1, N)

    one, two = Model(), Model()
    for _ in range(2):
        one.step(stream, a, 1)
        two.step(stream, a, 1)
    Model.step(one, stream, a, 1)
    one.static(stream, a)
    Model.of_class(stream, a)
    one.of_class(stream, a)
    assert (numbers(a, stream), one.calls, two.calls) == (8, 1, 1)
    assert len(Model.step.graphs) == 2
    assert one.step.__doc__ == "Add."
    assert "self: this Model" in one.step.explain()
    del one
    gc.collect()
    assert len(Model.step.graphs) == 1  # nobody can call it for that object again


def test_the_function_is_wrapped(counted):
    add = counted.function
    assert (add.__name__, add.__wrapped__.__name__) == ("add", "add")
    assert list(inspect.signature(add).parameters) == ["s", "y", "value"]
    assert repr(add).endswith("add: 0 graphs>")
    assert copy.copy(add) is copy.deepcopy(add) is add
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(add)  # as any function that is not found under its name
    nameless = cu.graph(functools.partial(print, end=""))
    assert "partial" in repr(nameless)


def test_streams_of_other_libraries(counted, a, stream):
    class Foreign:
        def __cuda_stream__(self):
            return 0, stream.handle

    counted.function(Foreign(), a, 1)
    counted.function(stream, a, 1)
    assert (numbers(a, stream), counted.calls) == (2, 1)


@pytest.mark.parametrize("args", [(), (1,), (None, 2), (1, 2, 3)])
def test_the_first_argument_is_a_stream(args, counted):
    with pytest.raises(TypeError, match=r"^the first argument of add\(\) must be a stream, got "):
        counted.function(*args)


def test_what_is_refused():
    async def coroutine(s): ...

    async def generator(s):
        yield

    def plain_generator(s):
        yield

    cases = {
        "an async function": coroutine,
        "an async generator": generator,
        "a generator": plain_generator,
        "a class": Counted,
        "int": 5,
        "above @cudago.graph": classmethod(coroutine),
    }
    for what, func in cases.items():
        with pytest.raises(TypeError, match=what):
            cu.graph(func)
    with pytest.raises(ValueError, match="max_graphs must be at least 1, got 0"):
        cu.graph(max_graphs=0)
    with pytest.raises(TypeError):
        cu.graph(max_graphs=1.5)


def test_a_result_is_refused(stream):
    async def late():
        return 5

    for result in (5, late()):
        function = cu.graph(lambda s, result=result: result)
        with pytest.raises(TypeError, match="must return None, not"):
            function(stream)
        assert function.graphs == ()
        assert not stream.is_capturing


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
            assert "of a closed device" in fill.explain()
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


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
