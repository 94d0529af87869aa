# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What differs between graphs that look alike, and what does not."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

ONE = cu.LaunchConfig(1, 1)


@pytest.fixture(scope="module")
def kernel(device):
    return cu.Program('extern "C" __global__ void k(float a, void* x) {}').compile()["k"]


@pytest.fixture
def rows(stream):
    with cu.zeros((8, 16), "f4", stream=stream) as tensor:
        yield tensor


@pytest.fixture
def lines(device):
    """Return the lines of the difference between two graphs, which a function makes of values."""

    def lines(make, one, other):
        with cu.Graph(device) as first, cu.Graph(device) as second:
            make(first, one)
            make(second, other)
            return list(first.diff(second).lines)

    return lines


@pytest.mark.parametrize(
    ("one", "other", "line"),
    [
        (0.0, -0.0, "~ 'k': args[0] 0.0 → -0.0"),
        (float("nan"), float("nan"), None),
        (float("nan"), 0.0, "~ 'k': args[0] nan → 0.0"),
        (1.5, 1.5, None),
    ],
)
def test_numbers(lines, kernel, a, one, other, line):
    found = lines(lambda g, value: g.launch(ONE, kernel, value, a, name="k"), one, other)
    assert found == [line] * (line is not None)


def test_the_default_of_a_condition(lines):
    def make(graph, default):
        condition = graph.condition(default=default)
        graph.set_condition(condition, 1, name="set").if_then(condition, name="if")

    assert lines(make, 1, 1) == []
    assert lines(make, 1, 0) == ["~ 'if': default 1 → 0"]
    assert lines(make, None, 0) == ["~ 'if': default None → 0"]


def test_which_condition_is_set(lines):
    def make(graph, which):
        conditions = [graph.condition(default=1) for _ in range(2)]
        graph.set_condition(conditions[which], 1, name="set")
        for i, condition in enumerate(conditions):
            graph.if_then(condition, name=f"if{i}")

    assert lines(make, 1, 1) == []
    assert lines(make, 0, 1) == [
        "~ 'set': args[0] \"condition of 'if0'\" → \"condition of 'if1'\"",
    ]


def test_slots(lines, a, kernel):
    source = bytes(64)

    def copy(graph, name):
        graph.memcpy(a, cu.slot(name, source) if name else source, name="c")

    def launch(graph, name):
        graph.launch(ONE, kernel, 1.0, cu.slot(name, a) if name else a, name="k")

    assert lines(copy, "s", "s") == []
    assert lines(copy, "s", "t") == ["~ 'c': slot of src 's' → 't'"]
    assert lines(launch, None, "s") == ["~ 'k': slot of args[1] none → 's'"]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.ptr + 16,
        lambda a: a[16:],
        lambda a: a.view("i4")[2:4],
    ],
    ids=["pointer", "buffer", "tensor"],
)
def test_views_of_the_same_bytes(lines, kernel, a, view):
    def make(graph, memory):
        graph.launch(ONE, kernel, 1.0, memory, name="k")

    assert lines(make, view(a), view(a)) == []
    assert len(lines(make, view(a), a)) == 1
    assert len(lines(make, view(a), a[:16])) == 1


def test_the_same_bytes_of_another_type_differ(lines, a, kernel):
    def make(graph, dtype):
        graph.launch(ONE, kernel, 1.0, a.view(dtype), name="k")

    assert len(lines(make, "i4", "f4")) == 1


def test_copies_of_rows(lines, rows):
    host = np.ones((8, 2), "f4")

    def make(graph, column):
        graph.memcpy(rows[:, column : column + 2], host, name="c")

    assert lines(make, 2, 2) == []
    assert len(lines(make, 2, 4)) == 1


def test_what_each_graph_allocates_itself(lines, stream):
    def make(graph, value):
        memory = graph.allocate(16, name="al")
        graph.memset(memory.buffer[4:], value, name="fill")
        memory.free(memory.buffer, name="free")

    assert lines(make, 1, 1) == []
    assert lines(make, 1, 2) == ["~ 'fill': value 1 → 2"]


def test_which_allocation_is_used(lines):
    def make(graph, which):
        memory = [graph.allocate(16, name=f"al{i}") for i in range(2)]
        graph.memset(memory[which].buffer, 1, name="fill")
        memory[1].free(memory[which].buffer, name="free")

    assert lines(make, 0, 0) == []
    fill, free = lines(make, 0, 1)
    assert fill.startswith("~ 'fill': dst <cudago.Buffer")
    assert free == "~ 'free': buffer \"memory of 'al0'\" → \"memory of 'al1'\""


def test_methods(lines):
    class Counter:
        def count(self):
            pass

    one, other = Counter(), Counter()
    found = lines(lambda g, counter: g.callback(counter.count, name="c"), one, one)
    assert found == []
    assert len(lines(lambda g, counter: g.callback(counter.count, name="c"), one, other)) == 1
    calls = []
    assert lines(lambda g, _: g.callback(calls.clear, name="c"), 0, 0) == []


KERNEL = 'extern "C" __global__ void k(int* x) { *x = %d; }'


def test_kernels_of_equal_code(lines, a):
    def make(graph, value):
        kernel = cu.Program(KERNEL % value).compile()["k"]
        graph.launch(ONE, kernel, a, name="k")

    assert lines(make, 1, 1) == []
    assert lines(make, 1, 2) == [
        "~ 'k': kernel <cudago.Kernel k(u64)> → another <cudago.Kernel k(u64)>"
    ]


def test_kernels_of_a_saved_graph(device, a, tmp_path):
    with cu.Graph(device) as graph:
        graph.launch(ONE, cu.Program(KERNEL % 1).compile()["k"], cu.slot("x", a), name="k")
        graph.save(tmp_path / "graph")
        with cu.Graph.load(tmp_path / "graph", device=device, bind={"x": a}) as loaded:
            assert not graph.diff(loaded)


def test_graphs_nested_deeper_than_calls(device, a):
    with cu.Graph(device) as one, cu.Graph(device) as other:
        for graph in (one, other):
            inner = graph
            for _ in range(400):
                inner = inner.if_then(graph.condition(default=1), name="if").body
            inner.memset(a, 1 + (graph is other), name="fill")
        (line,) = one.diff(other).lines
        assert line == f"~ '{'if/' * 400}fill': value 1 → 2"
