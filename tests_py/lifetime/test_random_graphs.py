# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Random graphs, built, captured, cloned, embedded, updated, saved and loaded in random order.

What they compute is that of a model in NumPy, whatever was dropped or closed before; and nothing is
left in the end, which the fixture `balance` checks.
"""

from __future__ import annotations

import gc
import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import cudago as cu

N = 16
CONFIG = cu.LaunchConfig(grid=1, block=N)
STEPS = 60


@dataclass
class Thing:
    """A graph or an executable, what it should do, and where its result goes.

    Nobody here holds what else it uses. `names` are those of its nodes in their order, which is
    that of the operations; empty for what cannot be updated.
    """

    made: Any
    ops: list[tuple[Any, ...]]
    out: np.ndarray
    names: list[str] = field(default_factory=list)


def expected(ops, state=None) -> np.ndarray:
    """Do the operations in NumPy, and return x."""
    x = [np.zeros(N, "i4"), np.zeros(N, "i4")] if state is None else state
    for kind, *what in ops:
        if kind == "up":
            x[what[0]] = what[1].copy()
        elif kind == "add":
            x[what[0]] = x[what[0]] + np.int32(what[1])
        elif kind == "times":
            x[what[0]] = x[what[0]] * np.int32(what[1])
        elif kind == "fill":
            x[what[0]] = np.full(N, what[1], "u1").repeat(4).view("i4")
        elif kind == "copy":
            x[1 - what[0]] = x[what[0]].copy()
    return x[0]


class Life:
    """What happens, decided by a seed."""

    def __init__(self, seed, device, stream, kernels, folder) -> None:
        self.rng = random.Random(seed)
        self.device, self.stream, self.kernels, self.folder = device, stream, kernels, folder
        self.graphs: list[Thing] = []
        self.steps: list[Thing] = []
        self.launches = 0

    def ops(self) -> list[tuple[Any, ...]]:
        rng = self.rng
        made = [("up", i, np.array(rng.sample(range(1000), N), "i4")) for i in (0, 1)]
        for _ in range(rng.randrange(5)):
            kind = rng.choice(["add", "times", "fill", "copy"])
            made.append((kind, rng.randrange(2), rng.randrange(1, 200)))
        return made

    def build(self) -> None:
        """Build a graph node by node, or capture it."""
        ops, out = self.ops(), np.zeros(N, "i4")
        x = [cu.zeros(N, "i4", stream=self.stream) for _ in range(2)]
        if self.rng.random() < 0.5:
            graph = cu.Graph(self.device)
            at: Any = graph
            for op in ops:
                at = self.node(at, x, op)
            at.memcpy(out, x[0])
        else:
            with self.stream.capture() as graph:
                for op in ops:
                    self.queue(x, op)
                x[0].copy_to(out, stream=self.stream)
        self.graphs.append(Thing(graph, ops, out, chain(graph)))

    def node(self, at, x, op):
        kind, i, value = op
        if kind == "up":
            return at.memcpy(x[i], value.copy())
        if kind == "fill":
            return at.memset(x[i].buffer, value)
        if kind == "copy":
            return at.memcpy(x[1 - i], x[i])
        return at.launch(CONFIG, self.kernels[kind], x[i], value, N)

    def queue(self, x, op) -> None:
        kind, i, value = op
        if kind == "up":
            x[i].copy_from(value.copy(), stream=self.stream)
        elif kind == "fill":
            x[i].buffer.fill(value, stream=self.stream)
        elif kind == "copy":
            x[1 - i].copy_from(x[i], stream=self.stream)
        else:
            cu.launch(self.stream, CONFIG, self.kernels[kind], x[i], value, N)

    def clone(self) -> None:
        of = self.rng.choice(self.graphs)
        self.graphs.append(replace(of, made=of.made.clone(), ops=list(of.ops)))

    def embed(self) -> None:
        """Make a graph that runs another one, or what an executable does, as one node."""
        outer = cu.Graph(self.device)
        of = self.rng.choice(self.graphs)
        outer.embed(of.made, name="sub")
        self.graphs.append(Thing(outer, list(of.ops), of.out))

    def launch_captured(self) -> None:
        of = self.rng.choice(self.steps)
        with self.stream.capture() as graph:
            try:
                of.made.launch(self.stream)
            except ValueError:
                assert not of.names, "only what embeds cannot be copied after an update"
                return
        self.graphs.append(Thing(graph, list(of.ops), of.out))

    def instantiate(self) -> None:
        of = self.rng.choice(self.graphs)
        self.steps.append(replace(of, made=of.made.instantiate(), ops=list(of.ops)))

    def update(self) -> None:
        """Change a node of a graph or of an executable."""
        of = self.rng.choice(self.graphs + self.steps)
        if not of.names:
            return
        at = self.rng.randrange(len(of.ops))
        kind, i, value = of.ops[at]
        node = of.made[of.names[at]]
        if kind == "up":
            value = np.array(self.rng.sample(range(1000), N), "i4")
            node.update(src=value.copy())
        elif kind in ("add", "times"):
            value = self.rng.randrange(1, 200)
            node.update({1: value})
        of.ops[at] = kind, i, value

    def update_whole(self) -> None:
        step = self.rng.choice(self.steps)
        of = self.rng.choice(self.graphs)
        try:
            step.made.update(of.made)
        except cu.GraphUpdateError:
            return
        step.ops, step.out = list(of.ops), of.out

    def save(self) -> None:
        of = self.rng.choice(self.graphs)
        path = self.folder / "graph.cudago"
        of.made.save(path, contents=True)
        again = cu.Graph.load(path)
        self.graphs.append(Thing(again, list(of.ops), result_of(again), list(of.names)))

    def drop(self) -> None:
        of = self.rng.choice([self.graphs, self.steps])
        if not of:
            return
        gone = of.pop(self.rng.randrange(len(of)))
        if self.rng.random() < 0.5:
            gone.made.close()
        del gone
        if self.rng.random() < 0.2:
            gc.collect()

    def launch(self) -> None:
        step = self.rng.choice(self.steps)
        step.out[:] = -1
        step.made.launch(self.stream)
        self.stream.sync()
        assert step.out.tolist() == expected(step.ops).tolist()
        self.launches += 1

    def live(self) -> None:
        self.build()
        for _ in range(STEPS):
            acts = [self.build, self.drop]
            if self.graphs:
                acts += [self.clone, self.embed, self.instantiate, self.instantiate, self.save]
            if self.steps:
                acts += [self.launch_captured, self.update, self.update_whole, self.launch] * 2
            self.rng.choice(acts)()


def chain(graph) -> list[str]:
    """Return the names of nodes that stand in a line, in their order."""
    (node,) = (node for node in graph.nodes if not node.dependencies)
    names = [node.name]
    while node.dependents:
        (node,) = node.dependents
        names.append(node.name)
    return names


def result_of(graph) -> np.ndarray:
    """Return where a graph writes its result, in however many graphs it is."""
    for node in graph.nodes:
        if node.kind == "child graph":
            return result_of(node.params.graph)
        if node.kind == "memcpy" and isinstance(node.params.dst, np.ndarray):
            return node.params.dst
    raise LookupError("no node copies to the host")


@pytest.mark.parametrize("seed", range(12))
def test_random_lives(device, stream, kernels, tmp_path, seed):
    life = Life(seed, device, stream, kernels, tmp_path)
    life.live()
    while not life.launches:
        life.instantiate() if life.graphs else life.build()
        if life.steps:
            life.launch()
