# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that are captured at their first call: when they are captured again, what is kept."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
from collections import namedtuple

import pytest

import cudago as cu

from .counted import Counted
from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


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
    for value in (range(0, 3, 2), range(0, 4, 2), range(0), range(1, 1), range(0, 3, 2)):
        note(stream, value)
    assert [repr(v) for v in seen[10:]] == [
        *("range(0, 3, 2)", "range(0, 4, 2)", "range(0, 0)", "range(1, 1)")
    ]
    assert "(value: range(0, 4, 2))" in note.explain()


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
    endless = []
    endless.append(endless)

    @cu.graph
    def read(s, thing):
        calls.append(None)

    class Slots:
        __slots__ = ("value",)

    for thing in (Slots(), {1.5: 2}, cu.Graph(), endless, {1, 2}):
        before = len(calls)
        read(stream, thing)
        read(stream, thing)
        assert len(calls) == before + 2
    for thing in ({"a": 1}, (1, 2), frozenset({1}), print, read, np.dtype("f4"), range(3), Counted):
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


def test_a_native_function(kernels, stream, a):
    launch = cu.graph(cu.launch)
    for value in (1, 1, 2):
        launch(stream, CONFIG, kernels["add"], a, value, N)
    assert numbers(a, stream) == 4
    assert "updated 1 time, last because args[1] was 1 and is 2" in launch.explain()


def test_streams_of_other_libraries(counted, a, stream):
    class Foreign:
        def __cuda_stream__(self):
            return 0, stream.handle

    counted.function(Foreign(), a, 1)
    counted.function(stream, a, 1)
    assert (numbers(a, stream), counted.calls) == (2, 1)


def test_the_stream_can_have_a_name(counted, kernels, stream, a):
    add = cu.graph(lambda s, y, value=2: counted.function(s, y, value))
    add(s=stream, y=a)
    add(stream, a, 2)
    add(y=a, s=stream, value=2)
    assert (numbers(a, stream), len(add.graphs)) == (6, 1)
    assert "launched 3 times" in add.explain()
    with pytest.raises(
        TypeError, match=r"\(\) got wrong arguments: missing a required argument: 's'"
    ):
        add(stream=stream, y=a)

    class Model:
        @cu.graph
        def step(self, s, value):
            cu.launch(s, CONFIG, kernels["add"], a, value, N)

    model = Model()
    model.step(s=stream, value=1)
    assert numbers(a, stream) == 7


def test_a_nan_is_known_again(stream):
    values = []

    @cu.graph
    def note(s, value, more):
        values.append(value)

    for value in (float("nan"), float("nan"), 1.0, float("nan")):
        note(stream, value, [0.0, value])
    assert len(values) == 3
    assert "last because value was 1.0 and is nan and more[1] was 1.0 and is nan" in note.explain()


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


def test_arguments_in_another_order_are_another_call(device, stream):
    @cu.graph
    def fill(s, value, x):
        x.fill(value, stream=s)

    with device.allocate(64, stream=stream) as x:
        for _ in range(2):
            with pytest.raises(TypeError, match="fill value"):
                fill(7, stream, x)
            fill(stream, 7, x)
        fill.clear()


def test_names_tell_calls_of_a_function_without_a_signature_apart(stream):
    called = []

    def both(s, **values):
        called.append(values)

    both.__signature__ = 5  # which nobody can read
    function = cu.graph(both)
    function(stream, a=1)
    function(stream, b=1)
    function(stream, a=1)
    assert called == [{"a": 1}, {"b": 1}]
    function.clear()
