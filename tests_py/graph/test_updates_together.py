# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of one node by several threads, of which each changes something else."""

from __future__ import annotations

import threading

import pytest

import cudago as cu

from .operand import CONFIG, N

SOURCE = 'extern "C" __global__ void take(int* x, int* y, int n) {}'


class Slow:
    """Memory, of whose use another thread hears while it is read."""

    def __init__(self, buffer, heard) -> None:
        self.buffer, self.heard = buffer, heard

    @property
    def __cuda_array_interface__(self):
        self.heard()
        data = (self.buffer.handle, False)
        return {"shape": (N,), "typestr": "<i4", "data": data, "version": 3}


UPDATES = {
    "name": (lambda of, x: of["k0"].update(x=x), lambda of, y: of["k0"].update(y=y)),
    "place": (lambda of, x: of["k0"].update({0: x}), lambda of, y: of["k0"].update({1: y})),
    "bind": (lambda of, x: of.bind(x=x), lambda of, y: of.bind(y=y)),
    "name and bind": (lambda of, x: of["k0"].update(x=x), lambda of, y: of.bind(y=y)),
    "bind and name": (lambda of, x: of.bind(x=x), lambda of, y: of["k0"].update(y=y)),
}


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("how", UPDATES)
@pytest.mark.parametrize("where", ["graph", "executable"])
def test_neither_undoes_the_other(graph, device, stream, where, how, asked):
    if where == "graph" and "bind" in how:
        pytest.skip("bind is of executables")
    kernel = cu.Program(SOURCE).compile()["take"]
    buffers = [device.allocate(4 * N, stream=stream) for _ in range(4)]
    x, y, new, other = buffers
    for i in range(2):  # bind is Python's affair where several nodes have a slot
        graph.launch(CONFIG, kernel, cu.slot("x", x), cu.slot("y", y), N, name=f"k{i}")
    of = graph if where == "graph" else graph.instantiate()
    first, second = UPDATES[how]
    for _ in range(2):  # the second time native code knows the node
        done = threading.Event()

        def change(done=done) -> None:
            second(of, other)
            done.set()

        thread = threading.Thread(target=change)

        def heard(thread=thread, done=done) -> None:
            if thread.ident is None:
                thread.start()
                done.wait(0.05)  # it may wait for this update to end

        if asked:
            assert of["k0"].params is not None
        slow = Slow(new, heard)
        first(of, slow)
        thread.join()
        args = of["k0"].params.args
        assert (args[0], args[1]) == (slow, other)
        second(of, y)
    if of is not graph:
        of.close()
    for buffer in buffers:
        buffer.close()


class Late:
    """A number that is told once another thread has gone on."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __index__(self) -> int:
        self.asked.set()
        self.go_on.wait(10)
        return N


@pytest.fixture
def known(graph, device, stream):
    """An executable with a slot, and its memory."""
    kernel = cu.Program(SOURCE).compile()["take"]
    buffers = [device.allocate(4 * N, stream=stream) for _ in range(3)]
    graph.launch(CONFIG, kernel, cu.slot("x", buffers[0]), buffers[0], 1, name="k")
    step = graph.instantiate()
    yield step, buffers
    step.close()
    for buffer in buffers:
        buffer.close()


def kernel_of(step, x):
    """Return the kernel of the node, which native code then knows."""
    kernel = step["k"].params.kernel
    for n in range(2):
        step["k"].update(CONFIG, kernel, x, x, n)
    return kernel


def test_a_launch_that_ends_amid_an_update_is_not_undone(known):
    step, (x, y, z) = known
    kernel = kernel_of(step, x)
    late, whole = Late(), threading.Event()

    def launch() -> None:
        step["k"].update(CONFIG, kernel, x, y, late)
        whole.set()

    def heard() -> None:
        late.go_on.set()
        whole.wait(0.05)  # it may wait for this update to end

    thread = threading.Thread(target=launch)
    thread.start()
    late.asked.wait(10)
    slow = Slow(z, heard)
    step["k"].update({0: cu.slot("x", slow)})
    thread.join()
    assert step["k"].params.args[1:] == (y, N)


def test_another_kernel_that_comes_amid_an_update(known):
    """The slots are those of the update that comes last."""
    step, (x, y, _) = known
    kernel = kernel_of(step, x)
    other = cu.Program('extern "C" __global__ void other(int n, int* x, int* y) {}').compile()
    late = Late()
    thread = threading.Thread(target=lambda: step["k"].update(CONFIG, kernel, x, y, late))
    thread.start()
    late.asked.wait(10)
    step["k"].update(CONFIG, other["other"], 1, cu.slot("first", x), cu.slot("last", y))
    assert step.slots == ("first", "last")
    late.go_on.set()
    thread.join()
    assert step["k"].params.kernel == kernel
    assert step.slots == ()


def test_edges_that_another_thread_changes_meanwhile(graph):
    """What it has done need not be done, and is no error."""
    first, second, last = (graph.join() for _ in range(3))
    last.dependencies.add(first)

    def late(name: str, answer: object) -> cu.Neighbors:
        """Return the set as of before, as far as the first question goes."""
        of = last.dependencies
        now = getattr(of, name)

        def ask(*args):
            setattr(of, name, now)
            return answer

        setattr(of, name, ask)
        return of

    late("_has", False).add(first)
    late("_has", True).discard(second)
    assert late("_ends", ()).__ior__([first, second]) == {first, second}
    assert late("_ends", ()).__ior__([second]) == {first, second}
    late("_ends", (first, second, last)).clear()
    assert last.dependencies == ()
    foreign = cu.Graph().join()
    for call in (lambda of: of.add(foreign), lambda of: of.__ior__([foreign])):
        with pytest.raises(ValueError, match="a node of another graph") as caught:
            call(last.dependencies)
        assert caught.value.__context__ is None


def test_a_node_that_another_thread_removes_meanwhile(graph, monkeypatch):
    node = graph.join()
    other = cu.Graph().join()
    for _ in range(2):
        graph.remove(node)
        monkeypatch.setattr(type(node), "is_removed", False)
    with pytest.raises(ValueError, match="another graph"):
        graph.remove(other)
    graph.close()
    with pytest.raises(cu.ClosedError, match="graph is closed"):
        graph.remove(node)


class Meanwhile:
    """Has a method of a graph change the graph after it has answered, as another thread could."""

    def __init__(self, monkeypatch, name: str, change) -> None:
        of = getattr(cu.Graph, name)

        def answer(graph, *args):
            found = of(graph, *args)
            monkeypatch.undo()
            change()
            return found

        monkeypatch.setattr(cu.Graph, name, answer)


@pytest.mark.parametrize("what", ["added", "removed"])
def test_a_graph_that_another_thread_changes_meanwhile(graph, device, stream, monkeypatch, what):
    x, y = (device.allocate(4, stream=stream) for _ in range(2))
    nodes = [graph.memset(cu.slot(f"s{i}", x), i, name=f"n{i}") for i in range(3)]

    def change() -> None:
        if what == "added":
            graph["n0"].memset(cu.slot("s3", x), 3, name="n3").memset(x, 4, name="n4")
        else:
            graph.remove(graph["n0"])

    Meanwhile(monkeypatch, "_nodes", change)
    assert list(graph) == nodes
    graph.join()
    Meanwhile(monkeypatch, "_clone", lambda: graph.remove(graph["n1"]))
    with graph.clone() as clone:
        assert "n1" not in clone  # made again: its slots are those of the same moment
        clone.instantiate().bind(s2=y)
    Meanwhile(monkeypatch, "_instantiate", lambda: graph.memset(cu.slot("new", x), 0))
    with graph.instantiate() as step:
        assert "new" not in step.slots
        step.bind(s2=y)
        assert step["n2"].params.dst is y
    for buffer in (x, y):
        buffer.close()


def test_a_slot_that_another_thread_adds_before_a_clone(graph, device, stream, monkeypatch):
    x, y = (device.allocate(4, stream=stream) for _ in range(2))
    of = cu.Graph._clone

    def answer(graph):
        monkeypatch.undo()
        graph.memset(cu.slot("to", x), 1, name="fill")
        return of(graph)

    monkeypatch.setattr(cu.Graph, "_clone", answer)
    with graph.clone() as clone, clone.instantiate() as step:
        step.bind(to=y)
        assert step["fill"].params.dst is y
    for buffer in (x, y):
        buffer.close()


@pytest.mark.parametrize("what", ["comes", "goes"])
def test_conditions_that_change_during_a_save(graph, device, stream, monkeypatch, tmp_path, what):
    x = device.allocate(4, stream=stream)
    body = graph.if_then(graph.condition(), name="outer").body
    inner = body.if_then(body.condition(), name="inner")

    def change() -> None:
        if what == "comes":
            body.if_then(body.condition()).body.memset(x, 1)
        else:
            body.remove(inner)

    edges = cu.Graph._edges

    def answer(of):
        found = edges(of)
        if of == (graph if what == "comes" else body):  # the nodes are known, and not gone through
            monkeypatch.undo()
            change()
        return found

    monkeypatch.setattr(cu.Graph, "_edges", answer)
    with pytest.raises(ValueError, match="changed while it was being saved"):
        graph.save(tmp_path / "graph")
    assert not (tmp_path / "graph").exists()
    x.close()


def test_slots_that_another_thread_changes_during_a_save(
    graph, device, stream, kernels, monkeypatch, tmp_path
):
    """The file had a slot in the place of another kernel's argument."""
    x = device.allocate(4 * N, stream=stream)
    node = graph.launch(CONFIG, kernels["add"], cu.slot("to", x), 1, N)
    Meanwhile(
        monkeypatch, "_edges", lambda: node.update(CONFIG, kernels["times"], x, cu.slot("n", 2), N)
    )
    with pytest.raises(ValueError, match="changed while it was being saved"):
        graph.save(tmp_path / "graph")
    assert not (tmp_path / "graph").exists()
    graph.save(tmp_path / "graph")
    x.close()
