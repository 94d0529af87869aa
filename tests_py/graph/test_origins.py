# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A node knows the line that made it."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import weakref
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

import cudago as cu

from .operand import CONFIG, N


def here() -> str:
    """Return the line that calls this."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def above(line: str) -> str:
    """Return the line above one."""
    file, _, number = line.rpartition(":")
    return f"{file}:{int(number) - 1}"


def ran_as(name: str, source: str) -> SimpleNamespace:
    """Run a text as a file that has a name."""
    names: dict = {"cu": cu, "CONFIG": CONFIG, "N": N}
    exec(compile(source, name, "exec"), names)
    return SimpleNamespace(**names)


def test_nodes_of_each_kind(device, graph, a, b, kernels, stream):
    add, box = kernels["add"], cu.zeros((4, 4), "i4", stream=stream)
    with device.create_event() as event, cu.Graph(device) as inner:
        inner.memset(a, 1, name="fill")
        made = [
            (graph.launch(CONFIG, add, a, 1, N), here()),
            (graph.launch(CONFIG, add, a, 1, N, name="named"), here()),
            (graph["named"].launch(CONFIG, add, a, 1, N), here()),
            (graph.launch(CONFIG, add, cu.slot("y", a), 1, N), here()),
            (graph.memset(a, 1), here()),
            (graph.memcpy(a, b), here()),
            (graph.memcpy(a, b, name="copy"), here()),
            (graph["named"].memcpy(a, b), here()),
            (graph.memcpy(box[:, :2], box[:, 2:]), here()),
            (graph.callback(int), here()),
            (graph.join(), here()),
            (graph.record(event), here()),
            (graph.wait(event), here()),
            (graph.embed(inner), here()),
            (graph.if_then(graph.condition(1)), here()),
            (graph.allocate(64), here()),
        ]
        made.append((made[-1][0].free(made[-1][0].buffer), here()))
        body = made[-3][0].body
        made.append((body.launch(CONFIG, add, a, 1, N), here()))
        assert [node.made_at for node, _ in made] == [line for _, line in made]
        assert graph["named"].made_at == made[1][1]


def test_a_call_over_several_lines(graph, a, kernels):
    first = graph.launch(
        CONFIG,
        kernels["add"],
        a,
        1,
        N,
    )
    frame = sys._getframe()
    assert first.made_at == f"{__file__}:{frame.f_lineno - 8}"


def test_captured_nodes(device, stream, a, b, kernels):
    lines = []
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], a, 1, N)
        lines.append(here())
        a.fill(1, stream=stream)
        lines.append(here())
        a.copy_from(b, stream=stream)
        lines.append(here())
        stream.callback(int)
        lines.append(here())
        memory = device.allocate(64, stream=stream)
        lines.append(here())
        memory.free(stream=stream)
        lines.append(here())
    with graph:
        assert [node.made_at for node in graph.nodes] == [above(line) for line in lines]
    memory.close()


def free_node(graph: cu.Graph) -> cu.Node:
    """Return the node that frees what another one of a graph allocates."""
    assert sorted(node.kind for node in graph.nodes) == ["alloc", "free"]
    return next(node for node in graph.nodes if node.kind == "free")


@pytest.mark.parametrize("make", ["buffer", "tensor"])
def test_memory_that_is_closed_in_a_capture(device, stream, make):
    with stream.capture() as graph:
        memory = device.allocate(64, stream=stream)
        if make == "tensor":
            memory = memory.view("i4")
        memory.close()
        line = here()
    with graph:
        assert free_node(graph).made_at == above(line)


def test_memory_of_a_block_in_a_capture(device, stream):
    with stream.capture() as graph, device.allocate(64, stream=stream):
        line = here()
    with graph:
        assert free_node(graph).made_at == above(line), "where Python says that a block ends"


def test_memory_whose_views_outlive_its_close(device, stream):
    with stream.capture() as graph:
        memory = device.allocate(64, stream=stream)
        views = [memory[:8], memory[8:]]
        memory.close()
        views[0].close()
        line = here()
        views.clear()
    with graph:
        assert free_node(graph).made_at == above(line), "which closed the last"


def test_memory_that_nobody_closes_in_a_capture(device, stream):
    with stream.capture() as graph:
        device.allocate(64, stream=stream)
        # Another object's close says nothing of it.
        device.allocate(64, stream=stream).close()
    with graph:
        lines = [node.made_at for node in graph.nodes if node.kind == "free"]
        assert sorted(line is None for line in lines) == [False, True], "the collector may do it"
    with stream.capture() as graph, cu.debug.record_origins(False):
        device.allocate(64, stream=stream).close()
    with graph:
        assert free_node(graph).made_at is None


def test_a_graph_that_is_launched_into_a_capture(graph, stream, a):
    inner = graph.memset(a, 1, name="fill")
    with graph.instantiate() as step:
        with stream.capture() as first:
            step.launch(stream)
            line = here()
        with first:
            (node,) = first.nodes
            assert node.made_at == above(line)
            assert node.params.graph["fill"].made_at == inner.made_at


def test_nodes_of_a_capture_in_a_graph(graph, stream, a, b):
    with graph.capture(stream) as nodes:
        a.fill(1, stream=stream)
        lines = [here()]
        a.copy_from(b, stream=stream)
        lines.append(here())
    assert [node.made_at for node in nodes] == [above(line) for line in lines]


def test_copies_have_the_same_line(device, graph, a, kernels):
    node = graph.launch(CONFIG, kernels["add"], a, 1, N, name="add")
    line = here()
    with graph.clone() as clone, graph.instantiate() as step, cu.Graph(device) as outer:
        assert clone["add"].made_at == node.made_at == step["add"].made_at == above(line)
        step["add"].update(CONFIG, kernels["add"], a, 2, N)
        node.update(CONFIG, kernels["add"], a, 3, N)
        assert step["add"].made_at == node.made_at == above(line)
        assert outer.embed(graph).params.graph["add"].made_at == node.made_at
        graph.remove(node)
        assert step["add"].made_at == above(line)
        with pytest.raises(cu.ClosedError):
            _ = node.made_at


def test_what_nobody_knows(device, graph, stream, a, tmp_path):
    with cu.Graph(device) as exported:
        exported.join()
        with cu.Graph.from_handle(exported.handle, owner=exported) as same:
            assert [node.made_at for node in same.nodes] == [None]
    graph.memset(a, 1, name="fill")
    graph.save(tmp_path / "graph", contents=True)
    with cu.Graph.load(tmp_path / "graph") as loaded:
        assert loaded["fill"].made_at is None
    graph.close()


def test_off(graph, stream, a, kernels):
    with cu.debug.record_origins(False) as nothing:
        assert nothing is None
        assert repr(cu.debug.record_origins(False)) == "<cudago.debug.record_origins: off>"
        off = [graph.launch(CONFIG, kernels["add"], a, 1, N), graph.join()]
        with stream.capture() as captured:
            a.fill(1, stream=stream)
    assert repr(cu.debug.record_origins()) == "<cudago.debug.record_origins: on>"
    on = graph.join()
    with captured:
        assert [node.made_at for node in (*off, *captured.nodes)] == [None] * 3
    assert on.made_at is not None


def test_a_switch_is_switched_back_once():
    off = cu.debug.record_origins(False)
    with off:
        pass
    with pytest.raises(RuntimeError, match="has been switched back: make another one"), off:
        pass
    assert repr(off) == "<cudago.debug.record_origins: on>"


def test_the_line_is_in_the_function_of_another_file(graph, a, kernels):
    source = "\n\ndef add(g, k, a):\n    return g.launch(CONFIG, k, a, 1, N)"
    file = ran_as("/other/file.py", source)
    assert file.add(graph, kernels["add"], a).made_at == "/other/file.py:4"
    assert file.add(graph, kernels["add"], a).made_at == "/other/file.py:4"


@pytest.mark.parametrize("file", ["/own/contextlib.py", "contextlib.py"])
def test_a_file_of_the_name_of_one_that_is_passed_over(graph, a, kernels, file):
    own = ran_as(file, "\ndef make(g, a): return g.memset(a, 1)")
    assert own.make(graph, a).made_at == f"{file}:2"


def test_a_package_whose_name_begins_as_ours(graph, a):
    file = f"{cu.__path__[0]}_of_others/make.py"
    own = ran_as(file, "def make(g, a): return g.memset(a, 1)")
    assert own.make(graph, a).made_at == f"{file}:1"


def test_contextlib_is_passed_over(device, stream, a):
    with ExitStack() as stack:
        graph = stack.enter_context(stream.capture())
        memory = stack.enter_context(device.allocate(64, stream=stream))
        with stack.pop_all():
            line = here()
    with graph:
        assert free_node(graph).made_at == above(line)
    assert memory.is_closed


def test_where_memory_of_a_tracked_resource_was_made(device, stream):
    tracking = cu.TrackingMemoryResource(device.memory_resource)
    made = []
    for file in ("/own/contextlib.py", f"{cu.__path__[0]}_of_others/make.py"):
        source = "def make(r, s): return r.allocate(64, stream=s)"
        made.append(ran_as(file, source).make(tracking, stream))
        assert tracking.allocations[-1].site == f"{file}:1"
    for buffer in made:
        buffer.close()


def test_a_captured_function(a, kernels, stream):
    lines = []

    @cu.graph
    def add(s, y):
        cu.launch(s, CONFIG, kernels["add"], y, 1, N)
        lines.append(here())

    add(stream, a)
    try:
        (graph,) = add.graphs
        assert [node.made_at for node in graph.nodes] == [above(line) for line in lines]
    finally:
        add.clear()


def test_a_thread(graph, a):
    made = []
    thread = threading.Thread(target=lambda: made.append((graph.memset(a, 1).made_at, here())))
    thread.start()
    thread.join()
    assert made[0][0] == made[0][1]


def test_a_thread_that_calls_nothing_but_cudago(graph, a):
    thread = threading.Thread(target=graph.memset, args=(a, 2), kwargs={"name": "fill"})
    thread.start()
    thread.join()
    assert "threading.py:" in graph["fill"].made_at


@pytest.mark.parametrize(
    "name", ["", "<stdin>", "caf\u00e9.py", "\udcff.py", "a\0b", "%s%n", "x" * 999]
)
def test_strange_file_names(graph, a, name):
    file = ran_as("plain.py", "def make(g, a): return g.memset(a, 1)")
    file.make.__code__ = file.make.__code__.replace(co_filename=name)
    assert file.make(graph, a).made_at == f"{name}:1"


class Name(str):
    """A file's name that runs code."""

    __slots__ = ()

    def __eq__(self, other):
        raise RuntimeError("asked")

    __hash__ = str.__hash__

    def __str__(self):
        raise RuntimeError("asked")


def test_a_file_name_that_runs_code(graph, a):
    file = ran_as("plain.py", "def make(g, a): return g.memset(a, 1)")
    file.make.__code__ = file.make.__code__.replace(co_filename=Name("own.py"))
    node = file.make(graph, a)
    assert node.made_at == "own.py:1"
    assert type(node.made_at) is str


def test_neither_frames_nor_code_are_kept(graph, a, kernels, stream):
    class Local:
        pass

    source = "def make(g, s, k, a, local):\n g.launch(CONFIG, k, a, 1, N)\n return g.memset(a, 1)"
    file = ran_as("once.py", source)
    local = Local()
    file.make(graph, stream, kernels["add"], a, local)
    code, gone = weakref.ref(file.make.__code__), weakref.ref(local)
    del file, local
    gc.collect()
    assert gone() is None
    assert code() is None
    assert {node.made_at for node in graph.nodes} == {"once.py:2", "once.py:3"}


def test_code_at_the_address_of_other_code(graph, a):
    for i in range(200):
        file = ran_as(f"file{i}.py", "def make(g, a): return g.memset(a, 1)")
        assert file.make(graph, a).made_at == f"file{i}.py:1"
        del file


def test_many_nodes_of_one_line_share_its_text(graph, a, kernels):
    add = kernels["add"]
    for _ in range(300):
        graph.launch(CONFIG, add, a, 1, N)
    texts = {id(node.made_at) for node in graph.nodes}
    assert len(texts) == 1


def test_noting_lines_takes_no_memory(device, a, kernels):
    add = kernels["add"]

    def fill() -> int:
        with cu.Graph(device) as graph:
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(20_000):
                graph.launch(CONFIG, add, a, 1, N)
            return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        fill()
        on = fill()
        with cu.debug.record_origins(False):
            off = fill()
    finally:
        tracemalloc.stop()
    assert abs(on - off) < 10_000


def test_an_update_that_is_refused_says_the_line(device, graph, a):
    graph.memset(a, 1, name="fill")
    with graph.instantiate() as step, cu.Graph(device) as other:
        other.callback(int, name="call")
        with pytest.raises(cu.GraphUpdateError) as e:
            step.update(other)
        assert e.value.node == "call"
        assert e.value.__notes__ == [f"node 'call' was made at {other['call'].made_at}"]
