# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel nodes with cooperative launches, priorities, clusters and much shared memory."""

from __future__ import annotations

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")

TOGETHER = cu.LaunchConfig(1, N, cooperative=True)
FIRST = cu.LaunchConfig(1, N, priority=-1)
# Only there is it known which call refuses a cooperative launch that does not fit.
SIMULATED = pytest.mark.parametrize("driver", ["sim"], indirect=True)
HUGE = cu.LaunchConfig(1 << 20, 1)
HUGE_TOGETHER = cu.LaunchConfig(1 << 20, 1, cooperative=True)

MEET = """extern "C" __global__ void meet(volatile int* p) {
    if (threadIdx.x) return;
    atomicAdd((int*)p, 1);
    while (*p < gridDim.x) {}  // ends only if all blocks run at the same time
}"""


def first(buffer, stream):
    """Return the first number in a buffer."""
    return numbers(buffer, stream)[0]


def run(graph, stream, **options):
    with graph.instantiate(**options) as step:
        step.launch(stream)
        stream.sync()


def test_a_cooperative_node(graph, a, stream):
    kernel = cu.Program(MEET).compile()["meet"]
    node = graph.launch(cu.LaunchConfig(4, 32, cooperative=True), kernel, a)
    assert node.params.config.cooperative
    run(graph, stream)
    assert first(a, stream) == 4


def test_priorities(graph, a, stream, kernels):
    node = graph.launch(FIRST, kernels["add"], a, 3, N)
    assert node.params.config.priority == -1
    # Priorities are a hint, and order nothing.
    node.launch(cu.LaunchConfig(1, N, priority=0, cooperative=True), kernels["times"], a, 2, N)
    run(graph, stream, priorities=True)
    assert numbers(a, stream) == 6


def test_what_cannot_run_at_once(graph, a, stream, kernels):
    """CUDA does not say which call refuses it: the node, the executable or its launch."""
    graph.launch(CONFIG, kernels["add"], a, 1, N)
    with pytest.raises(cu.CUDAError):
        run(graph.launch(HUGE_TOGETHER, kernels["nothing"], name="huge").graph, stream)


@SIMULATED
def test_a_refused_node_is_not_there(graph, a, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N)
    with pytest.raises(cu.CUDAError, match=r"TOO_LARGE.*kernel .nothing., .*cooperative"):
        graph.launch(HUGE_TOGETHER, kernels["nothing"], name="huge")
    graph.launch(TOGETHER, kernels["add"], a, 1, N, name="huge")
    run(graph, stream)
    assert numbers(a, stream) == 2


@SIMULATED
def test_a_node_refused_in_a_graph_with_memory(device, stream, kernels):
    with cu.Graph(device) as graph:
        own = graph.allocate(64)
        with pytest.raises(cu.CUDAError, match="TOO_LARGE"):
            graph.launch(HUGE_TOGETHER, kernels["nothing"])
        assert [n.kind for n in graph.nodes] == ["alloc"]
        graph["alloc_0"].launch(TOGETHER, kernels["add"], own.buffer, 1, N).free(own.buffer)
        run(graph, stream)


def test_updates_of_nodes(graph, a, stream, kernels):
    node = graph.launch(CONFIG, kernels["add"], a, 1, N)
    before = graph.instantiate()
    for config in (TOGETHER, FIRST, CONFIG, cu.LaunchConfig(1, N, cooperative=True, priority=-1)):
        node.update(config, value=2)
        assert node.params.config == config
        run(graph, stream)
    assert numbers(a, stream) == 8
    before.launch(stream)
    assert numbers(a, stream) == 9
    before.close()


def test_attributes_and_shape_change_together(graph, a, stream, kernels):
    """Neither the old grid has to fit the new attributes, nor the new grid the old ones."""
    node = graph.launch(HUGE, kernels["nothing"])
    node.update(TOGETHER)
    node.update(HUGE)
    assert not node.params.config.cooperative
    run(graph, stream)
    node.update(cu.LaunchConfig(1, N, priority=-1), kernels["add"], a, 4, N)
    run(graph, stream)
    assert numbers(a, stream) == 4


@SIMULATED
def test_a_refused_update_changes_nothing(graph, a, stream, kernels):
    node = graph.launch(TOGETHER, kernels["add"], a, 4, N)
    for change in (HUGE_TOGETHER, cu.LaunchConfig(1 << 20, 1, cooperative=True, priority=0)):
        with pytest.raises(cu.CUDAError, match="TOO_LARGE"):
            node.update(change)
    assert node.params.config == TOGETHER
    run(graph, stream)
    assert numbers(a, stream) == 4


def test_updates_of_executables(graph, a, stream, kernels):
    graph.launch(TOGETHER, kernels["add"], a, 1, N, name="k")
    with graph.instantiate() as step:
        step["k"].update(value=5)
        step["k"].update(cu.LaunchConfig(2, N, cooperative=True))
        for config, got in ((CONFIG, "none"), (cu.LaunchConfig(1, N, priority=0), "priority 0")):
            with pytest.raises(ValueError, match=f"in an executable: .*has cooperative, got {got}"):
                step["k"].update(config)
        assert step["k"].params.config.cooperative
        step.launch(stream)
        stream.sync()
    assert numbers(a, stream) == 5


def test_a_whole_update_names_the_node(device, graph, a, kernels):
    graph.launch(TOGETHER, kernels["add"], a, 1, N, name="k")
    with cu.Graph(device) as other, graph.instantiate() as step:
        other.launch(CONFIG, kernels["add"], a, 1, N, name="k")
        with pytest.raises(cu.GraphUpdateError, match=r"k.*, cooperative"):
            step.update(other)


def test_captured_attributes(device, a, stream, kernels):
    with stream.capture() as graph:
        cu.launch(stream, TOGETHER, kernels["add"], a, 1, N)
    (node,) = graph.nodes
    assert node.params.config == TOGETHER
    with graph.instantiate() as step:
        step.nodes[0].update(value=3)
        with pytest.raises(ValueError, match="cooperative"):
            step.nodes[0].update(CONFIG)
        step.launch(stream)
        stream.sync()
    node.update(CONFIG, value=4)
    run(graph, stream)
    assert numbers(a, stream) == 7
    graph.close()


def test_capture_into_a_graph(graph, a, stream, kernels):
    first = graph.memset(a, 0)
    with first.capture(stream) as nodes:
        cu.launch(stream, TOGETHER, kernels["add"], a, 1, N)
        cu.launch(stream, FIRST, kernels["times"], a, 5, N)
    assert [n.kind for n in nodes] == ["kernel", "kernel"]
    assert [n.params.config for n in nodes] == [TOGETHER, FIRST]
    run(graph, stream)
    assert numbers(a, stream) == 5


def test_clones_children_and_differences(device, graph, a, stream, kernels):
    node = graph.launch(TOGETHER, kernels["add"], a, 1, N, name="k")
    with graph.clone() as clone, cu.Graph(device) as parent:
        parent.embed(graph)
        node.update(CONFIG)
        assert clone["k"].params.config == TOGETHER
        run(clone, stream)
        run(parent, stream)
        assert "cooperative=True" in str(clone.diff(graph))
        clone["k"].update(FIRST)
        run(clone, stream)
    assert numbers(a, stream) == 3


def test_saved_attributes(graph, a, stream, kernels, tmp_path):
    config = cu.LaunchConfig(1, N, cooperative=True, priority=-1)
    graph.launch(config, kernels["add"], a, 1, N, name="k")
    graph.save(tmp_path / "graph")
    with cu.Graph.load(tmp_path / "graph") as loaded:
        assert loaded["k"].params.config == config
        run(loaded, stream, priorities=True)


def test_bodies(graph, a, stream, kernels):
    maybe = graph.if_then(graph.condition(1))
    maybe.body.launch(TOGETHER, kernels["add"], a, 6, N)
    run(graph, stream)
    assert numbers(a, stream) == 6


def test_clusters(graph, a, device, stream, kernels):
    config = cu.LaunchConfig(2, N // 2, cluster=2)
    if not device.properties.cluster_launch:
        with pytest.raises(cu.UnsupportedError, match=r"clusters need compute capability 9\.0"):
            graph.launch(config, kernels["add"], a, 1, N)
        node = graph.launch(CONFIG, kernels["add"], a, 1, N)
        with pytest.raises(cu.UnsupportedError, match=r"clusters need compute capability 9\.0"):
            node.update(config)
        assert len(graph.nodes) == 1
        return
    source = """extern "C" __global__ void size(int* p) {
        int n; asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n)); *p = n; }"""
    kernel = cu.Program(source).compile()["size"]
    node = graph.launch(cu.LaunchConfig(4, 1, cluster=2), kernel, a)
    assert node.params.config.cluster == (2, 1, 1)
    run(graph, stream)
    assert first(a, stream) == 2
    node.update(cu.LaunchConfig(4, 1))
    run(graph, stream)
    assert first(a, stream) == 1
    with pytest.raises(ValueError, match="multiple of the cluster in x, got 3 blocks"):
        node.update(cu.LaunchConfig(3, 1, cluster=2))


def test_bound_launches(a, stream, kernels):
    for config in (TOGETHER, FIRST):
        with kernels["add"].bind(config, a, 1, N) as add:
            add(stream)
            add.update(value=2)
            add(stream)
            with pytest.raises(ValueError, match="in an executable"):
                add.update(CONFIG)
    assert numbers(a, stream) == 6


def test_more_than_48_kib(graph, a, device, stream):
    source = """extern "C" __global__ void size(int* p) {
        extern __shared__ int s[];
        int n; asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n));
        s[n / 4 - 1] = n; *p = s[n / 4 - 1]; }"""
    kernel = cu.Program(source).compile()["size"]
    most = device.properties.max_shared_memory_per_block_optin
    assert most > 48 << 10
    node = graph.launch(cu.LaunchConfig(1, 1, shared_memory=50 << 10), kernel, a)
    run(graph, stream)
    assert first(a, stream) == 50 << 10
    node.update(cu.LaunchConfig(1, 1, shared_memory=most, cooperative=True))
    run(graph, stream)
    assert first(a, stream) == most
    with graph.instantiate() as step:
        step.nodes[0].update(cu.LaunchConfig(1, 1, shared_memory=52 << 10, cooperative=True))
        step.launch(stream)
        assert first(a, stream) == 52 << 10
    with pytest.raises(ValueError, match=f"shared_memory must be at most {most} bytes"):
        graph.launch(cu.LaunchConfig(1, 1, shared_memory=most + 1), kernel, a)
    assert len(graph.nodes) == 1
