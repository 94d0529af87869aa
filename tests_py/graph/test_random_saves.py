# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Random graphs, built, captured, embedded, cloned, saved and loaded: equal to a NumPy model."""

from __future__ import annotations

import gc
import random

import pytest

import cudago as cu
from cudago.testing import no_leaks

np = pytest.importorskip("numpy")

N = 24
SOURCE = r"""
extern "C" __global__ void add(int* y, int value, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] += value;
}
extern "C" __global__ void mix(const int* x, int* y, int factor, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = factor * y[i] + x[i];
}
"""
CONFIG = cu.LaunchConfig(1, 32)


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile()


class Random:
    """A graph under construction, and what it does to arrays."""

    def __init__(self, rng, device, stream, code):
        self.rng, self.device, self.stream, self.code = rng, device, stream, code
        self.model = [np.array(rng.choices(range(-99, 99), k=N), "i4") for _ in range(5)]
        self.steps = []  # functions of the arrays
        self.bare = True  # without memory of its own and conditional nodes
        resources = [device.memory_resource, cu.PinnedMemoryResource()]
        resources.append(cu.ManagedMemoryResource(device))
        self.memory = [
            resource.allocate(4 * N, stream=stream).view("i4")
            for resource in (*resources, resources[0])
        ]
        for tensor, values in zip(self.memory, self.model, strict=False):
            tensor.copy_from(values, stream=stream)
        self.memory.append(self.model[-1].copy())  # pageable
        stream.sync()
        self.slots = {}

    def part(self, kinds):
        """A part of some memory: which one, a slice, and the object."""
        which = self.rng.choice(kinds)
        size = self.rng.randint(1, N)
        first = self.rng.randint(0, N - size)
        part = slice(first, first + size)
        memory = self.memory[which][part]
        if which == 4 or self.rng.random() < 0.7:
            return which, part, memory
        if self.rng.random() < 0.5:
            return which, part, memory.buffer
        return which, part, self.memory[which].buffer[4 * first : 4 * (first + size)]

    def two(self, kinds):
        """Two parts of the same size in different memory."""
        (a, of_a, at_a), (b, of_b, at_b) = self.part(kinds), self.part(kinds)
        size = min(of_a.stop - of_a.start, of_b.stop - of_b.start)
        if a == b:
            return self.two(kinds)
        return (
            (a, slice(of_a.start, of_a.start + size), cut(at_a, size)),
            (b, slice(of_b.start, of_b.start + size), cut(at_b, size)),
        )

    def fill(self, at, kinds):
        which, part, memory = self.part([k for k in kinds if k != 4])
        value = self.rng.randint(0, 255)
        data = np.array([value] * 4, "u1").view("i4")[0]
        self.steps.append(lambda m: m[which].__setitem__(part, data))
        pattern = bytes([value] * 4)
        return at.memset(memory, pattern)

    def copy(self, at, kinds):
        (a, of_a, to), (b, of_b, source) = self.two(kinds)
        self.steps.append(lambda m: m[a].__setitem__(of_a, m[b][of_b]))
        return at.memcpy(to, source)

    def add(self, at, kinds):
        which, part, memory = self.part([k for k in kinds if k != 4])
        value, size = self.rng.randint(-99, 99), part.stop - part.start
        self.steps.append(lambda m: m[which].__setitem__(part, m[which][part] + value))
        return at.launch(CONFIG, self.code["add"], memory, value, size)

    def mix(self, at, kinds):
        (a, of_a, y), (b, of_b, x) = self.two([k for k in kinds if k != 4])
        factor, size = self.rng.randint(-3, 3), of_a.stop - of_a.start
        self.steps.append(lambda m: m[a].__setitem__(of_a, factor * m[a][of_a] + m[b][of_b]))
        return at.launch(CONFIG, self.code["mix"], x, y, factor, size)

    def slot(self, at, kinds):
        which, part, memory = self.part([k for k in kinds if k != 4])
        name = f"slot {len(self.slots)}"
        values = np.array(self.rng.choices(range(99), k=part.stop - part.start), "i4")
        self.slots[name] = values
        self.steps.append(lambda m: m[which].__setitem__(part, values))
        return at.memcpy(memory, cu.slot(name, np.zeros_like(values)))

    def rows(self, at, kinds):
        a, b = self.rng.sample([0, 1, 2, 3], 2)
        self.steps.append(
            lambda m: m[a].reshape(4, 6)[:, 1:3].__setitem__(..., m[b].reshape(4, 6)[:, 3:5])
        )
        to, source = (self.memory[i].reshape(4, 6) for i in (a, b))
        return at.memcpy(to[:, 1:3], source[:, 3:5])

    def moves(self):
        return cu.driver_version() >= (12, 9) and self.rng.random() < 0.5

    def embedded(self, at, kinds):
        with cu.Graph(self.device) as inner:
            self.chain(inner, self.rng.randint(1, 3), (self.fill, self.copy, self.add), kinds)
            return at.embed(inner, move=self.moves())

    def captured(self, at, kinds):
        which, part, memory = self.part([0, 3])
        size = part.stop - part.start
        with self.stream.capture() as graph:
            cu.launch(self.stream, CONFIG, self.code["add"], memory, 5, size)
            other = self.memory[3 - which].buffer[: 4 * size]
            other.copy_to(self.memory[4][:size], stream=self.stream)
        with graph:
            self.steps.append(lambda m: m[which].__setitem__(part, m[which][part] + 5))
            self.steps.append(lambda m: m[4].__setitem__(slice(size), m[3 - which][:size]))
            return at.embed(graph, move=self.moves())

    def branch(self, at, kinds):
        self.bare = False
        graph = getattr(at, "graph", at)
        taken = self.rng.randint(0, 1)
        node = at.if_else(graph.condition(taken))
        for i, body in enumerate(node.bodies):
            before = len(self.steps)
            self.chain(body, 2, (self.fill, self.add, self.mix), kinds)
            if i == taken:
                del self.steps[before:]
        return node

    def scratch(self, at, kinds):
        self.bare = False
        which, part, memory = self.part(kinds)
        size = part.stop - part.start
        node = at.allocate(4 * size)
        own = node.buffer
        node = node.memcpy(own, memory).launch(CONFIG, self.code["add"], own, 3, size)
        self.steps.append(lambda m: m[which].__setitem__(part, m[which][part] + 3))
        return node.memcpy(memory, own).free(own)

    def chain(self, at, count, kinds_of_step, kinds):
        for _ in range(count):
            at = self.rng.choice(kinds_of_step)(at, kinds)
        return at

    def build(self, graph):
        every = [self.fill, self.copy, self.add, self.mix, self.slot, self.rows]
        every += [self.embedded, self.captured]
        if self.rng.random() < 0.5:
            every += [self.branch, self.scratch]
        last = self.chain(graph, self.rng.randint(1, 12), every, [0, 1, 2, 3, 4])
        ends = [
            last.memcpy(np.zeros(N, "i4"), memory, name=f"out {i}")
            for i, memory in enumerate(self.memory)
        ]
        graph.join(*ends, name="end")

    def run_model(self):
        for step in self.steps:
            step(self.model)


def cut(memory, size):
    return memory[: 4 * size] if isinstance(memory, cu.Buffer) else memory[:size]


def check(graph, made, stream):
    with graph.instantiate() as step:
        step.bind(**made.slots)
        step.launch(stream)
        stream.sync()
    made.run_model()
    for i, values in enumerate(made.model):
        assert graph[f"out {i}"].params.dst.tolist() == values.tolist(), f"memory {i}"


@pytest.mark.parametrize("seed", range(40))
def test_a_random_graph(device, stream, code, seed, tmp_path):
    rng = random.Random(seed)
    with no_leaks():
        made = Random(rng, device, stream, code)
        graph = cu.Graph(device)
        made.build(graph)
        made.memory.clear()  # the graph has it
        for _ in range(rng.randint(1, 3)):
            if made.bare and rng.random() < 0.3:
                with graph:
                    graph = graph.clone()
            if rng.random() < 0.3:
                check(graph, made, stream)
            with graph:
                graph.save(tmp_path / "graph", contents=True)
            gc.collect()
            graph = cu.Graph.load(tmp_path / "graph")
        with graph:
            check(graph, made, stream)
        del made, graph
