# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that is allocated and freed while a stream captures."""

from __future__ import annotations

import array
import gc
import threading

import pytest

import cudago as cu

np = pytest.importorskip("numpy")


def kinds(graph):
    return [node.kind for node in graph.nodes]


def edges(graph):
    return {(a.name, b.name) for a, b in graph.edges}


def test_an_allocation_and_a_free_become_nodes(device, stream):
    out = bytearray(16)
    with stream.capture() as graph:
        tmp = device.allocate(16, stream=stream)
        assert (tmp.size, tmp.kind, tmp.device) == (16, "graph", device)
        tmp.fill(7, stream=stream)
        tmp.copy_to(out, stream=stream)
        tmp.close()
    assert kinds(graph) == ["alloc", "memset", "memcpy", "free"]
    assert [node.name for node in graph["free_0"].dependencies] == ["memcpy_0"]
    with graph.instantiate() as step:
        graph.close()
        for _ in range(3):
            out[:] = bytes(16)
            step.launch(stream)
            stream.sync()
            assert out == bytes([7] * 16)


def test_what_is_not_freed_stays_allocated_after_a_launch(device, stream):
    with stream.capture() as graph:
        buffer = device.allocate(16, stream=stream)
        buffer.fill(7, stream=stream)
    assert kinds(graph) == ["alloc", "memset"]
    assert graph["alloc_0"].buffer == buffer
    with graph.instantiate() as step:
        with pytest.raises(ValueError, match="is not allocated now: launch the graph"):
            buffer.fill(1, stream=stream)
        step.launch(stream)
        assert buffer.view("u1").numpy(stream=stream).tolist() == [7] * 16
        with pytest.raises(cu.CUDAError, match="INVALID_VALUE"):
            step.launch(stream)
        buffer.free(stream=stream)
        step.launch(stream)
    graph.close()
    assert buffer.view("u1").numpy(stream=stream).tolist() == [7] * 16
    # Not freed: it is, once the last buffer has gone.


def test_auto_free(device, stream):
    with stream.capture() as graph:
        buffer = device.allocate(16, stream=stream)
        buffer.fill(7, stream=stream)
    with graph.instantiate(auto_free=True) as step:
        for _ in range(3):
            step.launch(stream)
        assert buffer.view("u1").numpy(stream=stream).tolist() == [7] * 16
        buffer.free(stream=stream)
    graph.close()


def test_the_last_view_frees(device, stream):
    """Whatever holds the memory: a view, a pointer's buffer, a tensor, an export."""
    with stream.capture() as graph:
        buffer = device.allocate(16, stream=stream)
        view = buffer[8:]
        buffer.close()
        view.fill(1, stream=stream)
        tensor = view.view("u1")
        view.close()
        tensor.fill(2, stream=stream)
        del tensor, buffer, view
        gc.collect()
    assert kinds(graph) == ["alloc", "memset", "memset", "free"]
    assert graph["memset_1"].retained[0].object.size == 8
    graph.close()


def test_tensors(device, stream):
    twice = cu.elementwise("float x, float y", "float z", "z = 2 * x + y")
    out = np.zeros(8, "f4")
    with stream.capture() as graph:
        z = twice(
            cu.full(8, 1.5, "f4", stream=stream), cu.zeros(8, "f4", stream=stream), stream=stream
        )
        z.copy_to(out, stream=stream)
        del z
        gc.collect()
    assert kinds(graph).count("alloc") == kinds(graph).count("free") == 3
    with graph.instantiate() as step:
        for _ in range(2):
            out[:] = 0
            step.launch(stream)
            stream.sync()
            assert out.tolist() == [3.0] * 8
    graph.close()


def test_creation(stream):
    """All that creates tensors does so in a capture."""
    source = np.arange(4, dtype="f4")
    with stream.capture() as graph:
        made = [
            cu.empty(4, "f4", stream=stream),
            cu.zeros(4, "f4", stream=stream),
            cu.ones(4, "f4", stream=stream),
            cu.full((2, 2), 3, "f4", stream=stream),
            cu.arange(4, dtype="f4", stream=stream),
            cu.asarray(source, stream=stream),
        ]
        made += [cu.zeros_like(made[0], stream=stream), cu.empty(0, "f4", stream=stream)]
    with graph.instantiate() as step:
        step.launch(stream)
        want = [None, [0] * 4, [1] * 4, [[3, 3], [3, 3]], [0, 1, 2, 3], [0, 1, 2, 3], [0] * 4, []]
        for tensor, values in zip(made, want, strict=True):
            got = tensor.numpy(stream=stream).tolist()
            assert values is None or got == values
    graph.close()


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array,
        lambda array: array.T,
        lambda array: array[:, ::2],
        lambda array: array[::-1],
        lambda array: memoryview(array[:, ::2]),
    ],
    ids=["whole", "by columns", "gaps", "backwards", "of the buffer protocol"],
)
@pytest.mark.parametrize("how", ["asarray", "copy_from"])
def test_each_launch_reads_an_array(stream, view, how):
    source = np.zeros((4, 6), "f4")
    given = view(source)
    out = np.empty(np.asarray(given).shape, "f4")
    with stream.capture() as graph:
        if how == "asarray":
            made = cu.asarray(given, stream=stream)
        else:
            made = cu.empty(out.shape, "f4", stream=stream)
            made.copy_from(given, stream=stream)
        made.copy_to(out, stream=stream)
        made.close()
    with graph.instantiate() as step:
        for start in (1, 100):
            source[...] = np.arange(start, start + 24).reshape(4, 6)
            step.launch(stream)
            stream.sync()
            assert out.tolist() == np.asarray(given).tolist()
    graph.close()


@pytest.mark.parametrize(
    "given",
    [
        np.ones(4, "f8"),
        np.array(1.0),
        memoryview(np.ones(4, "f8")),
        array.array("d", [1.0] * 4),
    ],
    ids=["an array", "of no dimension", "memoryview", "array.array"],
)
def test_a_capture_converts_no_memory(stream, given):
    like = cu.empty(np.asarray(given).shape, "f4", stream=stream)
    wrong = "has element type float64, and float32 is needed: .*; convert it before the capture"
    with stream.capture() as graph:
        with pytest.raises(BufferError, match=f"obj {wrong}"):
            cu.asarray(given, "f4", stream=stream)
        if not isinstance(given, np.ndarray):
            with pytest.raises(BufferError, match=f"src {wrong}"):
                like.copy_from(given, stream=stream)
    assert not graph.nodes
    graph.close()


@pytest.mark.parametrize("value", [2, 2.0, np.float64(2), [2, 2], (2.0, 2.0), range(2, 3)])
def test_a_capture_converts_numbers(stream, value):
    with stream.capture() as graph:
        made = cu.asarray(value, "f4", stream=stream)
        made.copy_from(value, stream=stream)
    with graph.instantiate() as step:
        step.launch(stream)
        assert set(np.ravel(made.numpy(stream=stream)).tolist()) == {2.0}
    graph.close()


def test_a_free_node_by_hand(device, stream):
    with stream.capture() as graph:
        buffer = device.allocate(16, stream=stream)
        buffer.free(stream=stream)
        for use in (
            lambda: buffer.fill(1, stream=stream),
            lambda: buffer.free(stream=stream),
        ):
            with pytest.raises(cu.ClosedError, match="this capture has freed"):
                use()
        buffer.close()
    assert kinds(graph) == ["alloc", "free"]
    with graph.instantiate() as step:
        step.launch(stream)
        step.launch(stream)
    graph.close()


def test_memory_of_another_graph_is_freed_by_a_node(device, stream):
    with cu.Graph(device) as first:
        buffer = first.allocate(16).buffer
        with stream.capture() as second:
            buffer.free(stream=stream)
        assert kinds(second) == ["free"]
        assert [(r.operand, r.reason, r.nbytes) for r in second.retained] == [
            ("memory", "free", 16)
        ]
        with first.instantiate() as make, second.instantiate() as end:
            for _ in range(2):
                make.launch(stream)
                end.launch(stream)
            with pytest.raises(cu.CUDAError, match="INVALID_VALUE"):
                end.launch(stream)
        second.close()
        buffer.close()


def test_a_free_comes_after_uses_in_other_streams(device, stream):
    with device.create_stream() as other:
        with stream.capture() as graph:
            buffer = device.allocate(16, stream=stream)
            other.wait(stream)
            buffer.fill(1, stream=other)
            buffer.close()
            stream.wait(other)
        assert ("memset_0", "free_0") in edges(graph)
        with graph.instantiate() as step:
            step.launch(stream)
            step.launch(stream)
        graph.close()


def test_an_allocation_in_a_forked_stream(device, stream):
    with device.create_stream() as other:
        with stream.capture() as graph:
            other.wait(stream)
            with device.allocate(16, stream=other) as buffer:
                buffer.fill(1, stream=other)
            stream.wait(other)
        assert kinds(graph) == ["alloc", "memset", "free"]
        with graph.instantiate() as step:
            step.launch(stream)
            step.launch(stream)
        graph.close()


def test_memory_of_a_forked_stream_is_let_go_after_the_join(device, stream):
    """A free in the other stream would have to be joined again."""
    with device.create_stream() as other:
        with stream.capture() as graph:
            other.wait(stream)
            buffer = device.allocate(16, stream=other)
            buffer.fill(1, stream=other)
            stream.wait(other)
            del buffer
        assert kinds(graph) == ["alloc", "memset", "free"]
        assert ("memset_0", "free_0") in edges(graph)
        with graph.instantiate() as step:
            step.launch(stream)
            step.launch(stream)
        graph.close()


def uses_elsewhere(buffer, stream, graph, step):
    yield lambda: graph.memset(buffer, 0)
    yield lambda: step["fill"].update(buffer, 0)
    yield lambda: buffer.fill(0, stream=stream)
    yield lambda: buffer.copy_to(bytearray(16), stream=stream)
    yield lambda: buffer.free(stream=stream)


def test_only_its_capture_uses_it_until_there_is_a_graph(device, stream):
    with device.create_stream() as other, cu.Graph(device) as graph:
        mine = device.allocate(16, stream=other)
        graph.memset(mine, 0, name="fill")
        step = graph.instantiate()
        only_there = "capture that is still open|in that capture only"
        with stream.capture() as captured:
            buffer = device.allocate(16, stream=stream)
            for use in uses_elsewhere(buffer, other, graph, step):
                with pytest.raises(ValueError, match=only_there):
                    use()
        assert len(graph.nodes) == 1
        graph.memset(buffer, 0)  # it has an address now
        step.close()
        captured.close()


def test_the_host_reads_nothing_before_a_launch(device, stream):
    with stream.capture() as graph:
        tensor = cu.full(4, 7, "u1", stream=stream)
        with pytest.raises(BufferError, match="is capturing"):
            tensor.__dlpack__(dl_device=(1, 0), copy=True)
    with pytest.raises(ValueError, match="is not allocated now"):
        tensor.__dlpack__(dl_device=(1, 0), copy=True)
    with graph.instantiate() as step:
        step.launch(stream)
        assert tensor.__dlpack__(dl_device=(1, 0), copy=True)
        assert tensor.numpy(stream=stream).tolist() == [7] * 4
    graph.close()


@pytest.mark.parametrize("how", ["exception", "unjoined"])
def test_memory_of_a_capture_that_fails(device, stream, how):
    with device.create_stream() as other, cu.Graph(device) as graph:
        error = LookupError if how == "exception" else cu.CUDAError
        with pytest.raises(error), stream.capture():
            buffer, freed = (device.allocate(16, stream=stream) for _ in range(2))
            freed.fill(1, stream=stream)
            freed.close()
            buffer.fill(1, stream=stream)
            view, tensor, pointer = buffer[:8], buffer.view("u1"), buffer.ptr
            if how == "exception":
                raise LookupError
            other.wait(stream)
            buffer.fill(1, stream=other)
        assert buffer.is_closed and view.is_closed
        for use in (
            lambda: buffer.fill(1, stream=stream),
            lambda: view.fill(1, stream=stream),
            lambda: tensor.numpy(stream=stream),
            lambda: graph.memset(buffer, 0),
            lambda: graph.memset(pointer, 0),
            lambda: buffer.free(stream=stream),
            lambda: buffer.view("u1"),
        ):
            with pytest.raises(cu.ClosedError, match="became no graph"):
                use()
        buffer.close()


def test_other_memory_is_not_the_graphs(device, stream):
    with stream.capture() as graph:
        for resource in (cu.ManagedMemoryResource(device), cu.PinnedMemoryResource()):
            resource.allocate(16, stream=stream).close()
        with pytest.raises(ValueError, match="no node of a graph maps memory: allocate it before"):
            cu.VirtualMemoryResource(device).allocate(1 << 21, stream=stream)
        assert device.allocate(0, stream=stream).kind == "device"
    assert graph.nodes == ()
    graph.close()


def test_memory_that_there_is_not(device, stream):
    refused = pytest.raises(cu.OutOfMemoryError, match="in a capture, during which no memory")
    with stream.capture() as graph, refused:
        device.allocate(1 << 50, stream=stream)
    graph.close()


class Counting(cu.MemoryResource):
    """A resource in Python over the device's own."""

    def __init__(self, inner):
        self.inner, self.made = inner, 0

    def allocate(self, nbytes, *, stream):
        self.made += 1
        return self.inner.allocate(nbytes, stream=stream)


def test_a_resource_in_python(device, stream):
    resource = Counting(device.memory_resource)
    with stream.capture() as graph, resource.allocate(16, stream=stream):
        pass
    assert (resource.made, kinds(graph)) == (1, ["alloc", "free"])
    graph.close()


def test_a_pool_of_its_own(device, stream):
    pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions(release_threshold=1 << 20))
    with stream.capture() as graph, pool.allocate(16, stream=stream) as buffer:
        pool.close()
        buffer.fill(3, stream=stream)
    with graph.instantiate() as step:
        step.launch(stream)
        step.launch(stream)
    stream.sync()
    graph.close()


def test_another_thread_lets_go(device, stream):
    with stream.capture("relaxed") as graph:
        buffer = device.allocate(16, stream=stream)
        buffer.fill(7, stream=stream)
        thread = threading.Thread(target=buffer.close)
        thread.start()
        thread.join()
    assert kinds(graph) == ["alloc", "memset", "free"]
    graph.close()


def test_a_buffer_in_a_cycle_is_freed_when_it_is_collected(device, stream):
    with stream.capture() as graph:
        cycle = [device.allocate(16, stream=stream)]
        cycle[0].fill(1, stream=stream)
        cycle.append(cycle)
        del cycle
        gc.collect()
    assert kinds(graph) == ["alloc", "memset", "free"]
    graph.close()


def test_nothing_is_left(device, stream):
    before = cu.live_objects()
    for _ in range(20):
        with stream.capture() as graph:
            with device.allocate(1 << 20, stream=stream) as buffer:
                buffer.fill(1, stream=stream)
            left = cu.zeros(1 << 20, "u1", stream=stream)
        with graph.instantiate() as step:
            step.launch(stream)
        graph.close()
        del graph, step, left, buffer
    stream.sync()
    gc.collect()
    cu._core._reaper_flush(10_000)
    assert cu.live_objects() == before


@pytest.mark.parametrize("way", ["with", "close", "drop"])
def test_a_node_that_frees_what_the_block_let_go(device, stream, way):
    """It has no object to tell of, and the address."""
    with stream.capture() as graph:
        x = device.allocate(64, stream=stream)
        x.fill(0, stream=stream)
        address = x.handle
        if way == "with":
            with x:
                pass
        elif way == "close":
            x.close()
        del x
    step = graph.instantiate()
    for node in graph["free_0"], step["free_0"]:
        assert (node.params.buffer, node.params.address) == (None, address)
        assert repr(node.params) == f"FreeNodeParams(buffer=None, address={address})"
    assert not graph.diff(graph)
    with stream.capture() as other, device.allocate(64, stream=stream) as x:
        x.fill(0, stream=stream)
    assert not graph.diff(other)
    with stream.capture() as longer, device.allocate(64, stream=stream) as y:
        y.fill(1, stream=stream)
    assert "free_0" not in str(graph.diff(longer))
    step.close()
