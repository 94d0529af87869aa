# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Slots of graphs that several threads use, and names that act when they are looked up."""

from __future__ import annotations

import gc
import sys
import threading

import pytest

import cudago as cu

NODES = 40


@pytest.fixture
def switching():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*functions):
    """Run functions in threads that begin at the same time."""
    begin = threading.Barrier(len(functions))
    failed = []

    def one(function):
        begin.wait()
        try:
            function()
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=one, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def test_no_slot_is_lost(device, stream, switching):
    x, y = (device.allocate(64, stream=stream) for _ in range(2))
    for _ in range(5):
        graph = cu.Graph()

        def build(graph=graph):
            for i in range(NODES):
                node = graph.memset(cu.slot("to", x), i % 100)
                if i % 4 == 0:
                    graph.remove(graph.memset(cu.slot("to", x), 1))
                if i % 4 == 1:
                    node.update(cu.slot("to", x), 2)

        together(build, build, build)
        step = graph.instantiate()
        step.bind(to=y)
        assert {node.params.dst.handle for node in step.nodes} == {y.handle}
        assert len(step.nodes) == 3 * NODES
        step.close()
        graph.close()


def test_a_copy_has_the_slots_of_its_own_nodes(device, stream, switching):
    x, y, z = (device.allocate(64, stream=stream) for _ in range(3))
    graph = cu.Graph()
    for i in range(NODES):
        graph.memset(cu.slot("to", x), 1, name=f"with {i}")
    step = graph.instantiate()
    done = threading.Event()

    def edit():
        while not done.is_set():
            graph.remove(graph.memset(z, 1, name="without"))

    def copy():
        try:
            for _ in range(50):
                with graph.clone() as clone, clone.instantiate() as copied:
                    copied.bind(to=y)
                    for node in copied.nodes:
                        to = z if node.name == "without" else y
                        assert node.params.dst.handle == to.handle, node
        finally:
            done.set()

    together(edit, copy)
    step.update(graph)
    step.bind(to=y)
    assert {node.params.dst.handle for node in step.nodes} == {y.handle}


class Name(str):
    """A name that acts when it is compared."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        self.act()
        return str.__eq__(self, other)

    def act(self) -> None:
        pass


def test_looking_up_a_name_replaces_the_slots(device, stream, kernels):
    x, y = (device.allocate(64, stream=stream) for _ in range(2))
    graph = cu.Graph()
    graph.launch(cu.LaunchConfig(1, 8), kernels["add"], cu.slot("to", x), 1, 8, name="add")
    for i in range(100):
        step = graph.instantiate()
        step["add"].update({0: cu.slot("to", x)})  # from here on the executable has its own
        name = Name("to")

        def act(step=step, i=i):
            step["add"].update({0: cu.slot(f"other {i}", x)})
            gc.collect()
            return [{f"{i} {k}": k} for k in range(50)]

        name.act = act
        step.bind(**{name: y})
        step.close()


def test_what_a_name_raises_is_not_lost(device, stream):
    x = device.allocate(64, stream=stream)
    graph = cu.Graph()
    graph.memset(cu.slot("to", x), 1)
    name = Name("to")

    def act():
        raise KeyboardInterrupt

    name.act = act
    step = graph.instantiate()
    with pytest.raises(KeyboardInterrupt):
        step.bind(**{name: x})
