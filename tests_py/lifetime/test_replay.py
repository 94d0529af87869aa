# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A graph never reads freed memory, whatever its operands are and however often it runs."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu

N = 64
CONFIG = cu.LaunchConfig(grid=1, block=N)
KINDS = ["numpy", "numpy view", "bytes", "bytearray", "memoryview", "array", "mmap", "dlpack"]
KINDS += ["torch", "pinned", "buffer", "view", "pointer", "tensor", "interface"]


def build(kind, make, kernels, device, stream, numbers):
    """Return an executable that adds 1 to `numbers`, whose parts nobody else holds any more."""
    source = make(kind, numbers)
    work = device.allocate(4 * N, stream=stream)
    graph = cu.Graph()
    node = graph.memcpy(work, source).launch(CONFIG, kernels["add"], work, 1, N)
    node.memcpy(np.zeros(N, "i4"), work, name="down")
    return graph.instantiate()


def capture(kind, make, kernels, device, stream, numbers):
    """Return such an executable, captured."""
    source = make(kind, numbers)
    work = device.allocate(4 * N, stream=stream)
    result = np.zeros(N, "i4")
    with stream.capture() as graph:
        work.copy_from(source, stream=stream)
        cu.launch(stream, CONFIG, kernels["add"], work, 1, N)
        work.copy_to(result, stream=stream)
    return graph.instantiate()


def replay(step, stream):
    """Launch an executable from somewhere else, and return what it wrote."""
    result = np.zeros(N, "i4")
    step.nodes[-1].update(dst=result)
    step.launch(stream)
    stream.sync()
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", [build, capture])
def test_replay_after_everything_was_dropped(
    way, kind, make, kernels, device, stream, numbers, poison
):
    step = way(kind, make, kernels, device, stream, numbers)
    for _ in range(3):
        poison()
        assert (replay(step, stream) == numbers + 1).all()
    step.close()


@pytest.mark.parametrize("way", [build, capture])
def test_a_thousand_replays(way, make, kernels, device, stream, numbers, poison):
    step = way("numpy", make, kernels, device, stream, numbers)
    result = np.zeros(N, "i4")
    step.nodes[-1].update(dst=result)
    for number in range(1000):
        if number % 50 == 0:
            poison()
        result[:] = 0
        step.launch(stream)
        stream.sync()
        assert (result == numbers + 1).all()
    assert step.launch_count == 1000
    step.close()


@pytest.mark.parametrize("way", [build, capture])
def test_a_thousand_updates(way, make, kernels, device, stream, numbers, poison):
    """Nobody but the executable ever holds a source, and nobody waits between launches."""
    step = way("numpy", make, kernels, device, stream, numbers)
    results = []
    for number in range(1000):
        results.append(np.zeros(N, "i4"))
        step.nodes[0].update(src=numbers + number)
        step.nodes[-1].update(dst=results[-1])
        step.launch(stream)
        if number % 100 == 0:
            poison()
    stream.sync()
    assert all((r == numbers + number + 1).all() for number, r in enumerate(results))
    step.close()


def test_kernel_and_code_outlive_their_names(device, stream, poison):
    def build():
        source = 'extern "C" __global__ void k(int* p) { p[threadIdx.x] = threadIdx.x; }'
        kernel = cu.Program(source).compile()["k"]
        graph = cu.Graph()
        work = device.allocate(4 * N, stream=stream)
        node = graph.launch(CONFIG, kernel, work)
        node.memcpy(np.zeros(N, "i4"), work, name="down")
        return graph.instantiate()

    step = build()
    poison()
    assert replay(step, stream).tolist() == list(range(N))
    step.close()


def test_closed_operands_are_still_there(make, kernels, device, stream, numbers, poison):
    """close() gives up one's own reference, not the graph's."""
    source, work = make("buffer", numbers), make("buffer", numbers)
    with cu.Graph() as graph:
        graph.memcpy(work, source).memcpy(np.zeros(N, "i4"), work, name="down")
        step = graph.instantiate()
    source.close()
    work.close()
    poison()
    assert (replay(step, stream) == numbers).all()
    step.close()


def test_clones_and_parents_keep_for_themselves(make, device, stream, numbers, poison):
    def build():
        with cu.Graph() as inner, cu.Graph() as outer:
            work = device.allocate(4 * N, stream=stream)
            inner.memcpy(work, make("numpy", numbers)).memcpy(np.zeros(N, "i4"), work, name="down")
            outer.embed(inner)
            clone = inner.clone()
            nested = outer.clone()
        with nested, clone:
            return clone.instantiate(), nested.instantiate()

    clone, nested = build()
    poison()
    assert (replay(clone, stream) == numbers).all()
    nested.launch(stream)
    stream.sync()
    (result,) = [
        r.object for r in nested.retained if r.operand == "dst" and r.node.endswith("down")
    ]
    assert (result == numbers).all()
    clone.close()
    nested.close()
