# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels and copies are added without Go, which learns of them before it does anything else."""

from __future__ import annotations

import gc
import re
import sys
import textwrap
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


@pytest.fixture
def x(device, stream):
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


def test_nodes_of_all_kinds_take_turns(graph, x, kernels, stream):
    add = kernels["add"]
    out = bytearray(4 * N)
    first = graph.launch(CONFIG, add, x, 1, N)
    fill = first.memset(x, b"\5\0\0\0", name="fill")
    second = fill.launch(CONFIG, add, x, 2, N)
    third = second.launch(CONFIG, add, x, 3, N, name="third")
    fourth = third.launch(CONFIG, add, x, 4, N)
    fourth.memcpy(out, x)
    assert [n.name for n in graph.nodes] == [
        "kernel_0", "fill", "kernel_1", "third", "kernel_3", "memcpy_0",
    ]  # fmt: skip
    assert [e for n in graph.nodes for e in n.dependencies] == [first, fill, second, third, fourth]
    assert [n.name for n in (first, second, fourth)] == ["kernel_0", "kernel_1", "kernel_3"]
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert np.frombuffer(out, "i4").tolist() == [5 + 2 + 3 + 4] * N


def test_a_chain_longer_than_a_batch(graph, x, kernels, stream):
    node = graph
    for _ in range(600):
        node = node.launch(CONFIG, kernels["add"], x, 1, N)
    assert graph["kernel_599"] == node
    with graph.instantiate() as step:
        graph.close()
        step.launch(stream)
        assert numbers(x, stream) == 600


def test_what_a_node_uses_lives_with_the_graph(device, kernels, stream):
    graph, y = cu.Graph(device), device.allocate(4 * N, stream=stream)
    y.fill(0, stream=stream)
    cell, dropped = weakref.ref(y), device.allocate(4 * N, stream=stream)
    graph.launch(CONFIG, kernels["add"], y, 1, N).launch(CONFIG, kernels["add"], dropped, 1, N)
    dropped.close()
    del y
    gc.collect()
    assert cell() is not None
    step = graph.instantiate()
    step.launch(stream)
    assert numbers(cell(), stream) == 1
    step.close()
    graph.close()
    settle()
    assert cell() is None


def test_closing_releases_nodes_that_nobody_has_looked_at(device, kernels, stream):
    graph, y = cu.Graph(device), device.allocate(4 * N, stream=stream)
    cell = weakref.ref(y)
    node = graph.launch(CONFIG, kernels["add"], y, 1, N)
    del y
    graph.close()
    settle()
    assert cell() is None
    with pytest.raises(cu.ClosedError):
        node.launch(CONFIG, kernels["add"], 0, 1, N)


class Interface:
    """Memory of another library, which is in a cycle with the graph that uses it."""

    def __init__(self, buffer: cu.Buffer, graph: cu.Graph) -> None:
        self.graph, self.buffer = graph, buffer
        self.__cuda_array_interface__ = {
            "shape": (buffer.size,), "typestr": "|u1", "version": 3, "data": (buffer.handle, False),
        }  # fmt: skip


def test_a_cycle_through_such_a_node_is_collected(device, x, kernels):
    graph = cu.Graph(device)
    thing = Interface(x, graph)
    graph.launch(CONFIG, kernels["add"], thing, 1, N)
    gone = weakref.ref(thing)
    del graph, thing
    gc.collect()
    settle()
    assert gone() is None


class Source(bytearray):
    """Host memory that can be in a cycle, and be referred to weakly."""


def test_copies_and_kernels_take_turns(device, graph, x, kernels, stream):
    y = device.allocate(4 * N, stream=stream)
    host, out = Source(4 * N), bytearray(4 * N)
    host[:4] = b"\3\0\0\0"
    up = graph.memcpy(x, host)
    add = up.launch(CONFIG, kernels["add"], x, 4, N)
    across = add.memcpy(y, x)
    named = across.memcpy(out, y, name="down")
    assert [n.name for n in graph.nodes] == ["memcpy_0", "kernel_0", "memcpy_1", "down"]
    assert [e for n in graph.nodes for e in n.dependencies] == [up, add, across]
    assert (up.params.src, up.params.dst, up.params.nbytes) == (host, x, 4 * N)
    assert [(k.node, k.operand, k.object, k.nbytes, k.reason) for k in across.retained] == [
        ("memcpy_1", "src", x, 4 * N, "memcpy"),
        ("memcpy_1", "dst", y, 4 * N, "memcpy"),
    ]
    assert named.params.src is y
    with pytest.raises(BufferError):
        host.append(0)
    with graph.instantiate() as step:
        host[:4] = b"\5\0\0\0"
        step.launch(stream)
        stream.sync()
    assert np.frombuffer(out, "i4").tolist() == [9] + [4] * (N - 1)
    y.close()


def test_what_a_copy_uses_goes_with_the_graph(device, stream):
    x, source = device.allocate(4, stream=stream), Source(4)
    things = [x, source]

    def counts():
        settle()
        return [sys.getrefcount(t) for t in things], cu.live_objects()

    before = counts()
    for look in (False, True):
        graph = cu.Graph(device)
        node = graph.memcpy(x, source).memcpy(x, source)
        if look:
            assert len(graph.retained) == 4
        graph.close()
        del graph, node
        assert counts() == before
    source.append(0)
    x.close()


def test_a_cycle_through_such_a_copy_is_collected(device, x):
    graph, source = cu.Graph(device), Source(x.size)
    source.graph = graph
    graph.memcpy(x, source)
    gone = weakref.ref(source)
    gc.collect()
    assert gone() is not None
    del graph, source
    gc.collect()
    settle()
    assert gone() is None


def test_a_copy_that_cannot_be(device, graph, x, stream):
    node = graph.memcpy(x, bytearray(x.size))
    other = device.allocate(4, stream=stream)
    with pytest.raises(ValueError, match="dst has 4 bytes"):
        node.memcpy(other, x)
    with pytest.raises(TypeError, match="name must be a str"):
        node.memcpy(x, x, name=1)
    other.close()
    with pytest.raises(cu.ClosedError):
        node.memcpy(other, bytearray(4))
    with pytest.raises(BufferError):
        node.memcpy(bytes(4), x)
    graph.remove(node)
    with pytest.raises(cu.ClosedError):
        node.memcpy(x, x)
    assert not graph.nodes


def test_an_exporter_that_closes_what_is_copied(device, stream):
    graph, x = cu.Graph(device), device.allocate(4, stream=stream)

    class Closes:
        def __init__(self, thing):
            self.thing = thing

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        array = np.zeros(4, "u1")

        def __dlpack__(self, **kwargs):
            self.thing.close()
            return self.array.__dlpack__(**kwargs)

    graph.memcpy(x, Closes(x))  # by then the copy has a count of the memory
    assert x.is_closed
    assert [kept.nbytes for kept in graph.retained] == [4, 4]
    with device.allocate(4, stream=stream) as x, pytest.raises(cu.ClosedError):
        graph.memcpy(x, Closes(graph))


REFUSED = """
import gc
import sys
import weakref
import cudago as cu
from cudago import _core
from cudago.testing import settle

source = 'extern "C" __global__ void set(int* x, int n) { x[0] = n; }'
code = cu.Program(source).compile()["set"]
device = cu.Device()
stream = device.create_stream()
graph, one = cu.Graph(), cu.LaunchConfig(1, 1)
x, y = (device.allocate(4, stream=stream) for _ in "xy")
gone = weakref.ref(y)
first = graph.launch(one, code, x, 1)
_core._fail_next("cuGraphAddKernelNode", 1, 999)
try:
    first.launch(one, code, y, 2)
except cu.CUDAError as e:
    print(e.operation, e.code, e)
_core._fail_next("cuGraphAddMemcpyNode", 1, 999)
try:
    first.memcpy(x, y)
except cu.CUDAError as e:
    print(e.operation, e.code, e)
del y
settle()
print(gone() is None, len(graph.nodes), len(graph.retained))
first.launch(one, code, x, 3)
graph.instantiate().launch(stream)
out = bytearray(4)
x.copy_to(out, stream=stream)
stream.sync()
print(out[0])
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_refused_node_leaves_nothing(script, driver):
    done = script(REFUSED, CUDAGO_SIM="faults=0")
    kernel, copy, *rest = done.stdout.splitlines()
    assert (done.stderr, rest) == ("", ["True 1 2", "3"])
    assert re.match(r"cuGraphAddKernelNode 999 .*\(kernel set, grid \(1, 1, 1\), block", kernel)
    assert re.match(r"cuGraphAddMemcpyNode 999 .*\(4 bytes from 0x\w+ to 0x\w+\)", copy)


def test_a_removed_node_is_waited_for_by_none(graph, x, kernels):
    first = graph.launch(CONFIG, kernels["add"], x, 1, N)
    second = first.launch(CONFIG, kernels["add"], x, 1, N)
    graph.remove(first)
    with pytest.raises(cu.ClosedError):
        first.launch(CONFIG, kernels["add"], x, 1, N)
    third = second.launch(CONFIG, kernels["add"], x, 1, N)
    assert graph.nodes == (second, third)
    other = cu.Graph(graph.device)
    foreign = other.launch(CONFIG, kernels["add"], x, 1, N)
    for arg, use in (
        ("dependency", graph.join),
        ("node", graph.remove),
        ("start", lambda node: graph.add_edge(node, second)),
        ("end", lambda node: graph.remove_edge(second, node)),
    ):
        with pytest.raises(ValueError, match=f"^{arg} must be of this graph, and is a node of ano"):
            use(foreign)


def test_arguments_by_name(graph, x, kernels):
    add = kernels["add"]
    assert graph.launch(CONFIG, add, x, 1, N, name="one").name == "one"
    for node in (
        graph.launch(CONFIG, add, x, n=N, value=2),
        graph.join().launch(config=CONFIG, n=N, y=x, kernel=add, value=2, name="named"),
        graph.launch(CONFIG, add, x, n=N, value=cu.slot("value", 2)),
    ):
        assert node.params.args == (x, 2, N)
        graph.remove(node)
    graph.remove(graph["empty_0"])
    for args, named, message in (
        ((x, 1), {"m": N}, "kernel add has no parameter 'm'; it has y, value, n"),
        ((x, 1, N), {"n": N}, "'n', is given by position and by name"),
        ((x,), {"n": N}, "kernel add needs value too"),
    ):
        with pytest.raises(TypeError, match=message):
            graph.launch(CONFIG, add, *args, **named)
    with pytest.raises(TypeError, match="kernel must be a Kernel"):
        graph.launch(CONFIG, None, x, 1, n=N)
    with pytest.raises(TypeError, match="multiple values for argument 'config'"):
        graph.launch(CONFIG, add, x, 1, N, config=CONFIG)
    with pytest.raises(TypeError, match="missing a required argument: 'kernel'"):
        graph.launch(config=CONFIG)
    with graph.device.create_stream() as stream:  # as launches of an executable are written
        with pytest.raises(TypeError, match=r"to run the graph, launch what its instantiate\("):
            graph.launch(stream)
        with pytest.raises(TypeError, match="instantiate it, and launch the executable"):
            graph(stream)
    with pytest.raises(TypeError, match="takes 3 argument"):
        graph.launch(kernel=add, config=CONFIG)
    with pytest.raises(ValueError, match="already names"):
        graph.launch(CONFIG, add, x, 1, N, name="one")
    assert len(graph.nodes) == 1


class Closes:
    """A number whose conversion closes the graph."""

    def __init__(self, graph: cu.Graph) -> None:
        self.graph = graph

    def __index__(self) -> int:
        self.graph.close()
        return 1


def test_a_conversion_that_closes_the_graph(device, x, kernels):
    graph = cu.Graph(device)
    node = graph.launch(CONFIG, kernels["add"], x, 1, N)
    with pytest.raises(cu.ClosedError):
        node.launch(CONFIG, kernels["add"], x, Closes(graph), N)


def test_the_process_ends_with_such_nodes(script, driver):
    done = script(
        textwrap.dedent("""
        import cudago as cu
        source = 'extern "C" __global__ void set(int* x, int n) { x[0] = n; }'
        set = cu.Program(source).compile()["set"]
        device = cu.Device()
        stream = device.create_stream()
        x = device.allocate(4, stream=stream)
        graph = cu.Graph()
        graph.launch(cu.LaunchConfig(1, 1), set, x, 1)
        print("end")
        """)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_an_executable_in_flight_keeps_them(graph, x, kernels, stream):
    with hold(stream):
        graph.launch(CONFIG, kernels["add"], x, 1, N).launch(CONFIG, kernels["add"], x, 1, N)
        step = graph.instantiate()
        step.launch(stream)
        step.close()
        graph.close()
    assert numbers(x, stream) == 2


def test_nodes_that_use_the_same_memory(device, kernels, stream):
    """They share what holds it, and each lets go of it by itself."""
    x, y = (device.allocate(4 * N, stream=stream) for _ in "xy")
    for buffer in (x, y):
        buffer.fill(0, stream=stream)
    things = [x, y, kernels["add"], CONFIG]

    def counts():
        settle()
        return [sys.getrefcount(t) for t in things], cu.live_objects()

    before = counts()
    graph = cu.Graph(device)
    first = graph.launch(CONFIG, kernels["add"], x, 1, N)
    nodes = [first]
    for b in (x, x, y, y, x, x, x, x):
        nodes.append(nodes[-1].launch(CONFIG, kernels["add"], b, 1, N))
    nodes, more = nodes[1:6], nodes[6:]
    assert [n.params.args[0] for n in nodes] == [x, x, y, y, x]
    graph.remove(more[2])
    nodes[0].update({0: y})
    with graph.instantiate() as step:
        step.launch(stream)
        assert (numbers(x, stream), numbers(y, stream)) == (5, 3)
        assert sum(kept.object is x for kept in step.retained) == 5
    del step
    graph.close()
    del graph, first, nodes, more, b
    stream.sync()
    assert counts() == before
    for buffer in (x, y):
        buffer.close()


def test_memory_that_was_closed_is_not_used_again(graph, device, kernels, stream):
    x = device.allocate(4 * N, stream=stream)
    node = graph.launch(CONFIG, kernels["add"], x, 1, N)
    x.close()
    with pytest.raises(cu.ClosedError):
        node.launch(CONFIG, kernels["add"], x, 1, N)
    y = device.allocate(4 * N, stream=stream)
    node.launch(CONFIG, kernels["add"], y, 1, N)
    assert [n.params.args[0] for n in graph.nodes] == [x, y]


def test_an_argument_that_closes_what_is_used_again(graph, device, kernels, stream):
    x = device.allocate(4 * N, stream=stream)
    node = graph.launch(CONFIG, kernels["add"], x, 1, N)

    class Closes:
        def __index__(self) -> int:
            x.close()
            return 1

    with pytest.raises(cu.ClosedError):
        node.launch(CONFIG, kernels["add"], x, Closes(), N)
    assert len(graph.nodes) == 1


def test_an_argument_that_has_go_read_the_nodes(graph, x, kernels, stream):
    node = graph.launch(CONFIG, kernels["add"], x, 1, N)

    class Reads:
        def __index__(self) -> int:
            assert len(graph.nodes) >= 1
            gc.collect()
            return 1

    for _ in range(3):
        node = node.launch(CONFIG, kernels["add"], x, Reads(), N)
    x.fill(0, stream=stream)
    graph.instantiate().launch(stream)
    assert numbers(x, stream) == 4
