# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""From its second update on, a node of an executable is updated without Go."""

from __future__ import annotations

import gc
import random
import sys
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .operand import CONFIG, N, full, numbers

np = pytest.importorskip("numpy")


class Source(bytearray):
    """Host memory that can be referred to weakly."""


def source(value: int) -> Source:
    return Source(full(value).tobytes())


@pytest.fixture
def x(device, stream):
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        yield buffer


@pytest.fixture
def step(graph, x):
    graph.memcpy(x, cu.slot("src", source(1)), name="up")
    with graph.instantiate() as step:
        graph.close()
        yield step


def test_copies(step, x, stream):
    for value in range(2, 8):
        step["up"].update(src=source(value))
        step.launch(stream)
        assert numbers(x, stream) == value
        step.bind(src=source(10 * value))
        step.launch(stream)
        assert numbers(x, stream) == 10 * value


def test_both_sides(step, device, x, stream):
    y = device.allocate(4 * N, stream=stream)
    for value, dst in ((2, y), (3, x), (4, y)):
        step["up"].update(src=source(value), dst=dst)
        step.launch(stream)
        assert numbers(dst, stream) == value
    step["up"].update(dst=x)
    step.launch(stream)
    assert numbers(x, stream) == 4
    y.close()


def test_what_is_replaced_goes_at_once(step):
    first, second = source(2), source(3)
    gone = [weakref.ref(first), weakref.ref(second)]
    step.bind(src=first)
    step.bind(src=second)
    del first
    settle()
    assert gone[0]() is None
    assert step["up"].params.src is second  # Go has the node again
    step.bind(src=source(4))
    step.bind(src=source(5))
    del second
    settle()
    assert gone[1]() is None
    assert [kept.object for kept in step.retained if kept.operand == "src"] == [source(5)]


def test_what_a_launch_uses_goes_when_it_has_ended(step, x, stream):
    step.bind(src=source(2))
    used, then = source(3), source(4)
    gone = weakref.ref(used)
    step.bind(src=used)
    with hold(stream):
        step.launch(stream)
        step.bind(src=then)
        del used
        gc.collect()
        assert gone() is not None
    assert numbers(x, stream) == 3
    step.launch(stream)
    assert numbers(x, stream) == 4
    settle()
    assert gone() is None


def test_closing_releases(graph, x, stream):
    graph.memcpy(x, cu.slot("src", source(1)))
    step = graph.instantiate()
    graph.close()
    last = source(3)
    gone = weakref.ref(last)
    step.bind(src=source(2))
    step.bind(src=last)
    del last
    with hold(stream):
        step.launch(stream)
        step.close()
        gc.collect()
        assert gone() is not None
    stream.sync()
    settle()
    assert gone() is None
    assert numbers(x, stream) == 3


def test_errors_change_nothing(step, x, stream):
    step.bind(src=source(2))
    step.bind(src=source(3))
    with pytest.raises(ValueError, match="must have the 64 bytes"):
        step.bind(src=bytes(8))
    with pytest.raises(TypeError, match="not None"):
        step.bind(src=None)
    with pytest.raises(TypeError, match="no slot is called 'other'"):
        step.bind(other=source(4))
    step.launch(stream)
    assert numbers(x, stream) == 3
    step.bind(src=source(4))
    closed = cu.zeros(N, "i4", stream=stream)
    closed.close()
    with pytest.raises(cu.ClosedError):
        step.bind(src=closed)
    step.launch(stream)
    assert numbers(x, stream) == 4


def test_kernels(graph, x, kernels, device, stream):
    y = device.allocate(4 * N, stream=stream)
    y.fill(0, stream=stream)
    graph.launch(CONFIG, kernels["add"], cu.slot("x", x), 1, N, name="add")
    step = graph.instantiate()
    graph.close()
    for value in (2, 3, 4):
        step["add"].update({1: value})
        step.launch(stream)
    assert numbers(x, stream) == 9
    for target, value in ((y, 5), (x, 6), (y, 7)):
        step.bind(x=target)
        step["add"].update({1: value})
        step.launch(stream)
    assert (numbers(x, stream), numbers(y, stream)) == (15, 12)
    assert step["add"].params.args == (y, 7, N)
    gone = weakref.ref(y)
    step.bind(x=x)
    step.bind(x=x)
    stream.sync()
    del y, target
    settle()
    assert gone() is None
    with pytest.raises(TypeError, match="parameter 1"):
        step["add"].update({1: "one"})
    step.launch(stream)
    assert numbers(x, stream) == 22
    step.close()


def test_many_nodes(graph, x, stream):
    nodes = [graph.memcpy(x[4 * i : 4 * i + 4], bytes(4), name=str(i)) for i in range(N)]
    nodes += [graph.memcpy(x[:4], bytes(4), name=f"more {i}") for i in range(8)]
    graph.join(*nodes)
    step = graph.instantiate()
    for value in (1, 2, 3):
        for node in step.nodes[:-1]:
            node.update(src=np.int32(value).tobytes())
    step.launch(stream)
    assert numbers(x, stream) == 3
    step.close()


def test_a_node_that_is_removed_from_its_graph(graph, x):
    node = graph.memcpy(x, cu.slot("src", source(1)), name="up")
    step = graph.instantiate()
    step.bind(src=source(2))
    step.bind(src=source(3))
    graph.remove(node)
    with pytest.raises(cu.ClosedError):
        step.bind(src=source(4))
    assert step["up"].params.src == source(3)
    step.close()


def test_the_whole_executable_is_updated_after_that(step, device, x, stream):
    step.bind(src=source(2))
    step.bind(src=source(3))
    with cu.Graph(device) as other:
        other.memcpy(x, source(9))
        step.update(other)
    step.launch(stream)
    assert numbers(x, stream) == 9
    step["up"].disable()
    step["up"].update(src=source(5))
    step["up"].update(src=source(6))
    step.launch(stream)
    assert numbers(x, stream) == 9
    step["up"].enable()
    step.launch(stream)
    assert numbers(x, stream) == 6


class Knot(Source):
    """Memory that is in a cycle with what uses it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.step: cu.GraphExec | None = None


def test_a_cycle_is_collected(graph, x):
    graph.memcpy(x, cu.slot("src", source(1)))
    step = graph.instantiate()
    step.bind(src=source(2))
    knot = Knot(full(3).tobytes())
    knot.step = step
    step.bind(src=knot)
    gone = weakref.ref(knot)
    del knot, step
    gc.collect()
    settle()
    assert gone() is None


REFUSED = """
import weakref
import cudago as cu
from cudago import _core
from cudago.testing import settle

class Source(bytearray):
    pass

code = cu.Program('extern "C" __global__ void set(int* x, int n) { x[0] = n; }').compile()["set"]
device = cu.Device()
stream = device.create_stream()
x = device.allocate(4, stream=stream)
with cu.Graph() as graph:
    node = graph.memcpy(x, cu.slot("src", Source(b"aaaa")), name="up")
    node.launch(cu.LaunchConfig(1, 1), code, x[:4], 1, name="set")
    step = graph.instantiate()
step["set"].disable()
step.bind(src=Source(b"bbbb"))
step["set"].update({1: 2})
out = bytearray(4)
for call, name, change in (
    ("cuGraphExecMemcpyNodeSetParams", "up", lambda new: step.bind(src=new)),
    ("cuGraphExecKernelNodeSetParams", "set", lambda new: step["set"].update({0: x[:4], 1: 5})),
):
    new = Source(b"cccc")
    gone = weakref.ref(new)
    _core._fail_next(call, 1, 999)
    try:
        change(new)
    except cu.CUDAError as e:
        print(e.operation, e.code)
    del new
    settle()
    print(gone() is None)
step.launch(stream)
x.copy_to(out, stream=stream)
stream.sync()
print(out, step["set"].params.args[1])
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_refused_update_changes_nothing(script, driver):
    done = script(REFUSED, CUDAGO_SIM="faults=0")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "cuGraphExecMemcpyNodeSetParams 999", "True",
        "cuGraphExecKernelNodeSetParams 999", "True",
        "bytearray(b'bbbb') 2",
    ]  # fmt: skip


def test_all_of_a_kernel(graph, device, kernels, stream):
    """Operands of before are used again, and each goes with what it was given for."""
    a, b = (device.allocate(4 * N, stream=stream) for _ in "ab")
    for buffer in (a, b):
        buffer.fill(0, stream=stream)
    before = [sys.getrefcount(t) for t in (a, b)]
    add = kernels["add"]
    graph.launch(CONFIG, add, a, 1, N, name="add")
    with graph.instantiate() as step:
        graph.close()
        node = step["add"]
        for x, value in ((a, 2), (a, 3), (b, 4), (b, 5), (a, 6)):
            node.update(CONFIG, add, x, value, N)
            assert node.params.args == (x, value, N)
            node.update(CONFIG, add, x, value, N)
            step.launch(stream)
        with hold(stream):
            step.launch(stream)
            node.update(CONFIG, add, b, 7, N)
            node.update(CONFIG, add, b, 8, N)
            step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (2 + 3 + 6 + 6, 4 + 5 + 8)
        with pytest.raises(TypeError, match="takes 3 argument"):
            node.update(CONFIG, add, a, 1)
        with pytest.raises(TypeError, match="LaunchConfig"):
            node.update(add, CONFIG, a, 1, N)
        assert node.params.args == (b, 8, N)
    del x
    settle()
    assert [sys.getrefcount(t) for t in (a, b)] == before
    for buffer in (a, b):
        buffer.close()


def test_an_argument_that_updates_the_same_node(graph, x, kernels, stream):
    graph.launch(CONFIG, kernels["add"], x, 1, N, name="add")
    with graph.instantiate() as step:
        node = step["add"]
        node.update(CONFIG, kernels["add"], x, 2, N)

        class Updates:
            def __index__(self) -> int:
                node.update({1: 3})
                node.update(CONFIG, kernels["add"], x, 4, N)
                return 5

        node.update(CONFIG, kernels["add"], x, Updates(), N)
        assert node.params.args[1] == 5
        step.launch(stream)
        assert numbers(x, stream) == 5


def test_an_argument_that_closes_the_executable(graph, x, kernels):
    graph.launch(CONFIG, kernels["add"], x, 1, N, name="add")
    step = graph.instantiate()
    node = step["add"]
    node.update(CONFIG, kernels["add"], x, 2, N)

    class Closes:
        def __index__(self) -> int:
            step.close()
            return 5

    with pytest.raises(cu.ClosedError):
        node.update(CONFIG, kernels["add"], x, Closes(), N)
    with pytest.raises(cu.ClosedError):
        node.update(CONFIG, kernels["add"], x, 2, N)


@pytest.mark.parametrize("order", ["forward", "backward", "random", "one", "all"])
def test_the_collector_sees_what_many_updates_leave(graph, device, stream, order):
    """What an update replaces is looked for near what the one before has replaced."""
    x, y = (device.allocate(4, stream=stream) for _ in range(2))
    count = 300
    for _ in range(count):
        graph.memcpy(x, cu.slot("src", bytes(4)))
    step = graph.instantiate()
    nodes = {
        "forward": step.nodes,
        "backward": step.nodes[::-1],
        "random": random.Random(1).sample(step.nodes, count),
        "one": step.nodes[:1] * count,
        "all": step.nodes,
    }[order]
    for _ in range(2):
        for node in nodes:
            node.update(dst=y)
        if order == "all":
            step.bind(src=b"abcd")
        held = [o for o in gc.get_referents(step) if isinstance(o, cu._core.Operand)]
        updated = 1 if order == "one" else count
        assert [sum(o.object is b for o in held) for b in (x, y)] == [count - updated, updated]
        assert len(held) == 2 * count
    step.close()
    for buffer in (x, y):
        buffer.close()
