# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Operands with a name, which executables exchange."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import weakref
from typing import TYPE_CHECKING

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .operand import CONFIG, N, full, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

np = pytest.importorskip("numpy")


@pytest.fixture
def rooms(device, stream):
    """Three buffers of 16 numbers, all 0."""
    buffers = [device.allocate(4 * N, stream=stream) for _ in range(3)]
    for buffer in buffers:
        buffer.fill(0, stream=stream)
    yield buffers
    for buffer in buffers:
        buffer.close()


def test_a_closed_executable_has_no_slots(graph, rooms):
    graph.memcpy(rooms[0], cu.slot("src", full(1)))
    with graph.instantiate() as step:
        assert step.slots == ("src",)
    with pytest.raises(cu.ClosedError, match="graph executable is closed"):
        _ = step.slots


def test_all_nodes_of_a_slot_change(graph, rooms, stream):
    x, y, _ = rooms
    source = cu.slot("src", full(1))
    assert (source.name, repr(source)) == ("src", "<cudago.Slot 'src': ndarray>")
    graph.memcpy(x, source).memcpy(y, source)
    with graph.instantiate() as step:
        assert step.slots == ("src",)
        step.launch(stream)
        assert (numbers(x, stream), numbers(y, stream)) == (1, 1)
        step.bind(src=full(2))
        step.launch(stream)
        assert (numbers(x, stream), numbers(y, stream)) == (2, 2)
        step.bind(src=cu.slot("any", full(3)))
        step.launch(stream)
        assert (numbers(x, stream), numbers(y, stream)) == (3, 3)
        step.bind()


def test_a_slot_in_each_kind_of_node(graph, rooms, stream, kernels):
    x, y, z = rooms
    dst, value = cu.slot("dst", x), cu.slot("value", 5)
    node = graph.memset(dst, b"\1\0\0\0").launch(CONFIG, kernels["add"], dst, value, N)
    node.memcpy(z, dst)
    with graph.instantiate() as step:
        assert set(step.slots) == {"dst", "value"}
        step.launch(stream)
        assert [numbers(b, stream) for b in rooms] == [6, 0, 6]
        step.bind(dst=y, value=7)
        step.launch(stream)
        assert [numbers(b, stream) for b in rooms] == [6, 8, 8]
        step.bind(value=9)
        step.launch(stream)
        assert [numbers(b, stream) for b in rooms] == [6, 10, 10]
        with pytest.raises(TypeError, match="slot 'dst' is the dst of a memset node, not None"):
            step.bind(dst=None)


def test_replaced_operands_are_released(graph, rooms, stream):
    sources = [full(1), full(2)]
    watches = [weakref.ref(s) for s in sources]
    slot = cu.slot("src", sources[0])
    graph.memcpy(rooms[0], slot).memcpy(rooms[1], slot)
    step = graph.instantiate()
    graph.close()
    step.launch(stream)
    step.bind(src=sources[1])
    stream.sync()
    del sources, slot
    settle()
    assert [w() is not None for w in watches] == [False, True]
    with hold(stream):
        step.launch(stream)
        step.close()
        cu._core._reaper_flush(20)
        assert watches[1]() is not None
    stream.sync()
    settle()
    assert watches[1]() is None


def test_one_node_refuses_and_none_changes(graph, rooms, stream, kernels, device):
    x, y, z = rooms
    first, slot = full(1), cu.slot("src", full(0))
    slot.object = first
    node = graph.memcpy(x, slot).launch(CONFIG, kernels["copy"], slot, y, N) if _reads() else None
    node = node or graph.memcpy(x, slot)
    dst = cu.slot("dst", z)
    node.memset(dst, 7).memcpy(dst, slot)
    with graph.instantiate() as step:
        before = [(r.node, r.operand, r.object) for r in step.retained]
        with device.allocate(4 * N, stream=stream) as closed:
            pass
        for wrong, error, message in (
            ({"src": bytes(8)}, ValueError, "must have the 64 bytes"),
            ({"dst": bytes(4 * N)}, BufferError, "writable"),
            ({"dst": y[: 2 * N]}, ValueError, "64 bytes"),
            ({"src": full(2), "dst": closed}, cu.ClosedError, "closed"),
            (
                {"src": full(2), "other": 1},
                TypeError,
                "no slot is called 'other'; there are src, d",
            ),
        ):
            with pytest.raises(error, match=message):
                step.bind(**wrong)
            after = [(r.node, r.operand, r.object) for r in step.retained]
            assert [a[:2] for a in after] == [b[:2] for b in before]
            assert all(a[2] is b[2] for a, b in zip(after, before, strict=True))
        step.launch(stream)
        assert (numbers(x, stream), numbers(z, stream)) == (1, 1)
    with pytest.raises(cu.ClosedError):
        step.bind(src=full(2))


def _reads() -> bool:
    """Whether kernels read ordinary host memory here."""
    return cu.driver_name() == "sim"


def test_slots_follow_clones_updates_and_removals(graph, device, rooms, stream):
    x, y, _ = rooms
    slot, gone = cu.slot("src", full(1)), cu.slot("gone", full(1))
    graph.memcpy(y, gone, name="remove")
    graph.memcpy(x, slot, name="up")
    graph.remove(graph["remove"])
    with graph.clone() as clone, clone.instantiate() as step:
        assert step.slots == ("src",)
        step.bind(src=full(2))
        step.launch(stream)
        assert (numbers(x, stream), numbers(y, stream)) == (2, 0)
    with cu.Graph(device) as other, cu.Graph(device) as third:
        other.memcpy(x, cu.slot("new", full(3)))
        third.memset(cu.slot("room", x), 0)
        with graph.instantiate() as step:
            step.update(other)
            assert step.slots == ("new",)
            step.bind(new=full(4))
            step.launch(stream)
            assert numbers(x, stream) == 4
            assert step.update_or_instantiate(graph) is step
            assert step.slots == ("src",)
            with step.update_or_instantiate(third) as made:
                assert made.slots == ("room",)
            step["up"].update(src=full(5))
            step.bind(src=full(6))
            step.launch(stream)
            assert numbers(x, stream) == 6


def test_what_cannot_be_a_slot(graph, rooms):
    x = rooms[0]
    with pytest.raises(TypeError, match="name must be a str, not int"):
        cu.slot(3, x)
    for name, match in (("", "name must have a character"), ("\udcff", "that UTF-8 can encode")):
        with pytest.raises(ValueError, match=match):  # no file could have it
            cu.slot(name, x)
    with pytest.raises(TypeError, match="cannot hold another slot"):
        cu.slot("a", cu.slot("b", x))
    body = graph.while_loop(graph.condition(0)).body
    with pytest.raises(ValueError, match="cannot use slots"):
        body.memset(cu.slot("x", x), 0)
    with pytest.raises(TypeError, match="src must be a Buffer"):
        graph.memcpy(x, cu.slot("x", object()))
    assert len(graph.nodes) == 1
    with pytest.raises(TypeError, match="there are none"):
        cu.Graph().instantiate().bind(x=x)


KERNELS = """
extern "C" __global__ void first(float f, int* x, int* y, int n) { y[threadIdx.x] = n; }
extern "C" __global__ void second(int* x, int v) { x[threadIdx.x] = v; }
extern "C" __global__ void third(float g, int* p, int* q, int m) { p[threadIdx.x] = m; }
"""


@pytest.fixture(scope="module")
def two(device):
    """Kernels of different parameters."""
    code = cu.Program(KERNELS).compile()
    for name in code.kernels:
        code.get_kernel(name)
    return code


def test_an_update_to_another_kernel_leaves_only_the_slots_that_it_names(graph, rooms, stream, two):
    x, y, _ = rooms
    graph.launch(CONFIG, two["first"], 1.0, x, y, cu.slot("n", 5), name="k")
    with graph.instantiate() as step:
        step["k"].update(CONFIG, two["second"], x, 7)
        assert step.slots == ()
        with pytest.raises(TypeError, match="no slot is called 'n'; there are none"):
            step.bind(n=6)
        step["k"].update(CONFIG, two["third"], 1.0, x, y, cu.slot("m", 8))
        assert step.slots == ("m",)
        step.bind(m=9)
        step.launch(stream)
        assert numbers(x, stream) == 9
    graph["k"].update(CONFIG, two["third"], 1.0, x, y, 3)  # the slot's place is another parameter's
    with graph.instantiate() as step, graph.clone() as clone:
        assert step.slots == ()
        assert clone.instantiate().slots == ()


def test_an_update_of_values_keeps_slots(graph, rooms, stream, two):
    x, y, _ = rooms
    graph.launch(CONFIG, two["first"], 1.0, x, cu.slot("y", y), cu.slot("n", 5), name="k")
    with graph.instantiate() as step:
        for node in (graph["k"], step["k"]):
            node.update(CONFIG, two["first"], 1.0, x, y, 6)
            node.update(n=7)
            node.update({3: 8})
        assert step.slots == graph.instantiate().slots == ("y", "n")
        step["k"].update(two["third"])  # all arguments stay
        step.bind(n=9)
        step.launch(stream)
        assert numbers(x, stream) == 9


@pytest.mark.parametrize("where", ["graph", "executable"])
def test_updates_name_slots(graph, rooms, stream, two, where):
    x, y, z = rooms
    graph.memcpy(x, full(1), name="copy")
    graph.memset(y, b"\1\0\0\0", name="fill")
    graph.launch(CONFIG, two["second"], z, cu.slot("was", 1), name="k")
    of = step = graph.instantiate() if where == "executable" else graph
    of["copy"].update(src=cu.slot("src", full(2)))
    of["copy"].update(src=cu.slot("src", full(2)))  # once more is still one use
    of["fill"].update(cu.slot("room", y), b"\2\0\0\0")
    of["k"].update(v=cu.slot("v", 2))
    of["k"].update({0: cu.slot("z", z)})
    if where == "graph":
        step = graph.instantiate()
    assert set(step.slots) == {"src", "room", "v", "z"}
    step.launch(stream)
    assert [numbers(b, stream) for b in rooms] == [2, 2, 2]
    step.bind(src=full(3), v=3)
    step.launch(stream)
    assert [numbers(b, stream) for b in rooms] == [3, 2, 3]
    step.close()


def test_a_file_has_the_slots_of_the_last_update(graph, rooms, two, tmp_path):
    x, y, _ = rooms
    graph.launch(CONFIG, two["first"], 1.0, x, y, cu.slot("n", 5), name="k")
    graph["k"].update(CONFIG, two["third"], 1.0, cu.slot("p", x), y, 3)
    graph.save(tmp_path / "g.cudago")
    with cu.Graph.load(tmp_path / "g.cudago") as again, again.instantiate() as step:
        assert step.slots == ("p",)


def test_an_update_in_a_body_takes_no_slot(graph, rooms):
    node = graph.if_then(graph.condition(1)).body.memset(rooms[0], 0)
    with pytest.raises(ValueError, match="cannot use slots"):
        node.update(cu.slot("x", rooms[0]), 1)
    assert node.params.value == 0


@pytest.mark.parametrize("name", ["self", "step", "args", "objects", "not a name"])
def test_every_name_can_be_bound(graph, rooms, stream, name):
    x, y, _ = rooms
    graph.memset(cu.slot(name, x), b"\7\0\0\0")
    graph.memset(cu.slot(name, x), b"\7\0\0\0")  # two uses, which Python exchanges
    with graph.instantiate() as step:
        step.bind(**{name: y})
        step.launch(stream)
        assert (numbers(x, stream), numbers(y, stream)) == (0, 7)


def test_what_bind_does_not_take(graph, rooms):
    graph.memset(cu.slot("x", rooms[0]), 0)
    step = graph.instantiate()
    with pytest.raises(TypeError, match="bind takes objects by the names of their slots"):
        step.bind(rooms[0])
    step.close()
    for wrong in ({"x": rooms[0]}, {"other": rooms[0]}):
        with pytest.raises(cu.ClosedError):
            step.bind(**wrong)


def test_a_slot_outside_of_graphs_says_where_it_belongs(device, stream, kernels):
    with device.allocate(16, stream=stream) as memory:
        slot, t = cu.slot("x", memory), memory.view("u1")
        for call, what in (
            (lambda: memory.copy_from(slot, stream=stream), "src"),
            (lambda: memory.copy_to(slot, stream=stream), "dst"),
            (lambda: t.copy_from(slot, stream=stream), "src"),
            (lambda: t.copy_to(slot, stream=stream), "dst"),
            (lambda: cu.copy_batch([(memory, slot)], stream=stream), "copy 0: src"),
            (lambda: memory.fill(slot, stream=stream), "value"),
            (lambda: cu.launch(stream, CONFIG, kernels["add"], slot, 1, N), "parameter 0"),
        ):
            with pytest.raises(TypeError, match=f"{what} is a slot, .*its attribute object"):
                call()
        assert not t.is_closed


class Name(str):
    """A name whose comparison does something first, once."""

    __slots__ = ("act",)
    __hash__ = str.__hash__

    def __eq__(self, other):
        act, self.act = self.act, None
        if act:
            act()
        return str.__eq__(self, other)


def test_slots_that_are_exchanged_while_one_is_looked_up(device, rooms, stream):
    graph = cu.Graph(device)
    graph.memcpy(rooms[0], cu.slot("src", full(1)), name="copy")
    step = graph.instantiate()
    graph.close()
    del graph
    gc.collect()  # the executable alone knows where its slots are
    name = Name("src")
    name.act = lambda: step["copy"].update(src=cu.slot("other", full(2)))
    step.bind(**{name: full(3)})
    assert step.slots == ("other",)
    step.launch(stream)
    assert numbers(rooms[0], stream) == 3
    step.close()


def _least_memory(do: Callable[[], object]) -> int:
    """Return the least that one of several calls allocates on the way."""
    least = []
    tracemalloc.start()
    try:
        for _ in range(8):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            do()
            least.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return min(least)


@pytest.mark.parametrize("names", [1, 2000])
def test_a_node_with_a_slot_costs_the_same_in_any_graph(graph, rooms, names):
    """What many nodes cost is then linear."""
    x, y, _ = rooms

    def add(count: int) -> list[cu.Node]:
        slots = [cu.slot(f"src{i}", x) for i in range(min(names, count))]
        return [graph.memcpy(y, slots[i % len(slots)]) for i in range(count)]

    def change(nodes: list[cu.Node]) -> tuple[int, int, int]:
        kept, gone = iter(nodes[:20]), iter(nodes[20:])
        return (
            _least_memory(lambda: add(1)),
            _least_memory(lambda: next(kept).update(src=cu.slot("new", x))),
            _least_memory(lambda: graph.remove(next(gone))),
        )

    few = change(add(40))
    many = change(add(2000))
    assert all(m < f + 4000 for f, m in zip(few, many, strict=True)), (few, many)


def test_an_update_of_a_kernel_goes_through_no_slots(graph, rooms, kernels):
    """Noted changes are put together when somebody asks for them: not for each update."""
    x, y, _ = rooms
    graph.memcpy(y, cu.slot("src", x))
    node = graph.launch(CONFIG, kernels["add"], y, 1, N)
    noted = graph._uses
    assert isinstance(noted, list)
    node.update(CONFIG, kernels["add"], y, 2, N)
    assert graph._uses is noted


def test_threads_that_add_nodes_lose_no_slot(graph, rooms):
    x, y, _ = rooms
    each = 300

    def add() -> None:
        for _ in range(each):
            graph.memcpy(y, cu.slot("src", x))

    threads = [threading.Thread(target=add) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    with graph.instantiate() as step:
        step.bind(src=x[:])
        assert {id(node.params.src) for node in step.nodes} == {id(step.nodes[0].params.src)}


def test_slots_are_those_of_all_changes(graph, rooms):
    """However many come before somebody asks."""
    x, y, z = rooms
    nodes = [graph.memcpy(y, cu.slot(f"s{i % 3}", x)) for i in range(300)]
    for node in nodes[::2]:
        node.update(src=cu.slot("even", z))
    for node in nodes[:100]:
        graph.remove(node)
    with graph.instantiate() as step, graph.clone() as clone:
        assert set(step.slots) == {"s0", "s1", "s2", "even"}
        assert not graph.diff(clone)
        before = {node.name: node.params.src for node in step.nodes}
        even, one, last = x[:], x[:], x[:]
        step.bind(even=even, s1=one)
        for i in range(100, 300):
            name = f"memcpy_{i}"
            expected = even if i % 2 == 0 else one if i % 3 == 1 else before[name]
            assert step[name].params.src is expected
        for _ in range(1000):
            step["memcpy_100"].update(src=cu.slot("last", x))
        assert set(step.slots) == {"s0", "s1", "s2", "even", "last"}
        step.bind(last=last)
        assert step["memcpy_100"].params.src is last
