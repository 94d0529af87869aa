# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that allocate and free memory, and event nodes."""

from __future__ import annotations

import gc
import threading
from itertools import starmap

import pytest

import cudago as cu
from cudago.testing import hold, settle

np = pytest.importorskip("numpy")


def allocating(graph, value=7):
    """Add an allocation of 16 bytes and a fill."""
    made = graph.allocate(16, name="scratch")
    return made.buffer, made.memset(made.buffer, value)


def test_memory_of_a_launch(graph, stream):
    out = bytearray(16)
    buffer, filled = allocating(graph)
    assert (buffer.size, buffer.kind, buffer.device) == (16, "graph", graph.device)
    assert buffer == graph["scratch"].buffer
    assert hash(buffer) == hash(graph["scratch"].buffer)
    assert buffer != buffer[:8]
    filled.memcpy(out, buffer).free(buffer, name="done")
    assert [node.kind for node in graph.nodes] == ["alloc", "memset", "memcpy", "free"]
    with graph.instantiate() as step:
        for _ in range(3):
            out[:] = bytes(16)
            step.launch(stream)
            stream.sync()
            assert out == bytes([7] * 16)


def refuse_use(buffer, stream):
    """NVIDIA's driver (580.159) crashes in a copy of memory that is not allocated."""
    other = stream.device.allocate(buffer.size, stream=stream)
    add = cu.Program('extern "C" __global__ void add(int* p) { *p += 1; }').compile()["add"]
    for use in (
        lambda: buffer.fill(0, stream=stream),
        lambda: buffer.copy_to(bytearray(buffer.size), stream=stream),
        lambda: buffer.copy_from(bytes(buffer.size), stream=stream),
        lambda: buffer.copy_from(other, stream=stream),
        lambda: other.copy_from(buffer, stream=stream),
        lambda: buffer.view("u1").numpy(stream=stream),
        lambda: cu.launch(stream, cu.LaunchConfig(1, 1), add, buffer),
    ):
        with pytest.raises(ValueError, match="is not allocated now: launch the graph"):
            use()
    stream.sync()


def test_memory_that_a_launch_leaves(graph, stream):
    buffer, _ = allocating(graph)
    with graph.instantiate() as step:
        refuse_use(buffer, stream)
        step.launch(stream)
        with pytest.raises(cu.CUDAError, match="INVALID_VALUE"):
            step.launch(stream)
        assert buffer.view("u1").numpy(stream=stream).tolist() == [7] * 16
        buffer.free(stream=stream)
        with pytest.raises(cu.CUDAError, match="INVALID_VALUE"):
            buffer.free(stream=stream)
        refuse_use(buffer, stream)
        step.launch(stream)
        buffer.free(stream=stream)
    stream.sync()


def test_auto_free(graph, stream):
    buffer, _ = allocating(graph)
    with graph.instantiate(auto_free=np.True_, priorities=None) as step:
        for _ in range(3):
            step.launch(stream)
    assert buffer.view("u1").numpy(stream=stream).tolist() == [7] * 16
    buffer.free(stream=stream)


def test_flags_are_true_or_false(graph, stream):
    allocating(graph)
    for flags in ({"auto_free": 2}, {"auto_free": "yes", "priorities": 16}):
        with graph.instantiate(**flags) as step:
            step.launch(stream)
            step.launch(stream)  # it is freed before
            stream.sync()


def test_memory_that_another_graph_frees(graph, device, stream):
    buffer, _ = allocating(graph)
    with cu.Graph(device) as other:
        other.free(buffer)
        assert [(r.operand, r.reason, r.nbytes) for r in other.retained] == [("memory", "free", 16)]
        with graph.instantiate() as make, other.instantiate() as end:
            for _ in range(2):
                make.launch(stream)
                end.launch(stream)
            with pytest.raises(cu.CUDAError, match="INVALID_VALUE"):
                end.launch(stream)
    stream.sync()


def test_a_buffer_outlives_its_graph(device, stream):
    graph = cu.Graph(device)
    buffer, _ = allocating(graph)
    step = graph.instantiate()
    step.launch(stream)
    step.close()
    graph.close()
    del graph
    gc.collect()
    assert buffer.view("u1").numpy(stream=stream).tolist() == [7] * 16
    # It is freed only when the last buffer dies.


def test_memory_is_freed_once_a_launch(device, stream):
    graph = cu.Graph(device)
    buffer, _ = allocating(graph)
    with graph.instantiate() as step:
        step.launch(stream)
        buffer.free(stream=stream)
        with pytest.raises(cu.CUDAError, match=r"the memory at 0x\w+ is not allocated now"):
            buffer.free(stream=stream)
        step.launch(stream)
        buffer.free(stream=stream)


def test_what_is_freed_twice_is_named(device, stream):
    with cu.Graph(device) as graph:
        node = graph.allocate(64)
        node.free(node.buffer, name="own")
        with pytest.raises(ValueError, match=r'is freed by free node "own" of this graph already'):
            node.free(node.buffer)
    with cu.Graph(device) as graph, cu.Graph(device) as other:
        buffer = graph.allocate(64).buffer
        other.free(buffer, name="first")
        with pytest.raises(cu.CUDAError, match=r'free node "first" of this graph frees the memory'):
            other.free(buffer, name="second")
        with stream.capture() as captured:
            buffer.free(stream=stream)
            with pytest.raises(cu.CUDAError, match="this capture frees the memory at 0x"):
                buffer.free(stream=stream)
        captured.close()
        with graph.instantiate() as step, other.instantiate() as free:
            for _ in range(2):
                with pytest.raises(cu.CUDAError, match=r'memory that \["first"\] frees is not all'):
                    free.launch(stream)
                step.launch(stream)
                free.launch(stream)
            stream.sync()


def test_what_is_freed_twice_inside_an_embedded_graph_is_named(device, stream):
    with cu.Graph(device) as graph, cu.Graph(device) as outer:
        buffer = graph.allocate(64).buffer
        other = cu.Graph(device)
        other.free(buffer, name="first")
        outer.embed(other, name="deep", move=True)
        with (
            outer.instantiate() as free,
            pytest.raises(cu.CUDAError, match=r'memory that \["deep/first"\] frees is not all'),
        ):
            free.launch(stream)


def test_memory_that_nobody_frees_is_reclaimed(device, stream):
    for _ in range(100):  # the simulated device has room for 32 of them
        graph = cu.Graph(device)
        made = graph.allocate(64 << 20)
        with graph.instantiate() as step:
            step.launch(stream)
        stream.sync()
        graph.close()
        del made, graph


def test_graph_memory_is_device_memory(graph, stream):
    buffer, _ = allocating(graph)
    with pytest.raises(BufferError, match="device memory has no Python buffer"):
        memoryview(buffer)
    with pytest.raises(BufferError):
        memoryview(buffer.view("u1"))
    pointer = buffer.ptr + 8
    assert int(pointer) == buffer.handle + 8
    refuse_use(buffer, stream)  # no launch has allocated it


def test_graphs_with_memory_are_single(graph, device):
    buffer, filled = allocating(graph)
    filled.free(buffer)
    for call in (graph.clone, lambda: cu.Graph(device).embed(graph)):
        with pytest.raises(cu.CUDAError, match=r"NOT_SUPPORTED.*allocates or frees memory"):
            call()
    with (
        graph.instantiate(),
        pytest.raises(cu.CUDAError, match=r"NOT_SUPPORTED.*close the other one first"),
    ):
        graph.instantiate()


def test_an_executable_that_is_closed_and_runs_is_the_only_one(graph, stream):
    buffer, filled = allocating(graph)
    filled.free(buffer)
    with hold(stream):
        with graph.instantiate() as step:
            step.launch(stream)
        with pytest.raises(cu.CUDAError, match=r"NOT_SUPPORTED.*closed are under way: wait"):
            graph.instantiate()
    stream.sync()
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()


def test_wrong_arguments(graph, device, stream):
    with pytest.raises(ValueError, match="size must be at least 1 byte"):
        graph.allocate(0)
    with pytest.raises(ValueError, match="must not be negative"):
        graph.allocate(-1)
    with pytest.raises(TypeError):
        graph.allocate(1.5)
    with pytest.raises(cu.OutOfMemoryError):
        graph.allocate(1 << 50)
    assert graph.nodes == ()
    buffer, filled = allocating(graph)
    with pytest.raises(ValueError, match="view of some of it"):
        filled.free(buffer[:8])
    with pytest.raises(ValueError, match='"memset_0" is of kind memset and has no memory'):
        _ = filled.buffer
    with device.allocate(16, stream=stream) as other:
        with pytest.raises(TypeError, match="memory that a graph allocates"):
            filled.free(other)
        with pytest.raises(TypeError, match="memory that a graph allocates"):
            other.free(stream=stream)
    with pytest.raises(TypeError, match="takes stream="):
        buffer.free()
    filled.free(buffer)
    with pytest.raises(ValueError, match=r"is freed by free node .* of this graph already"):
        filled.free(buffer)
    buffer.close()
    with pytest.raises(cu.ClosedError):
        filled.free(buffer)


# --- events ---------------------------------------------------------------------------------------


def test_memory_that_comes_after_a_free_is_not_freed_in_its_place(graph, stream):
    """Both have one address, so the driver would not notice."""
    first, filled = allocating(graph)
    again = filled.free(first).allocate(first.size)
    second = again.buffer
    assert second.handle == first.handle
    with pytest.raises(ValueError, match='is freed by free node "free_0" of'):
        again.free(first)
    again.memset(second, 7)
    with graph.instantiate() as step:
        step.launch(stream)
        with pytest.raises(ValueError, match="is freed by a node of the graph"):
            first.free(stream=stream)
        with stream.capture(), pytest.raises(ValueError, match="is freed by a node of the graph"):
            first.free(stream=stream)
        assert set(second.view("u1").numpy(stream=stream).tolist()) == {7}
        second.free(stream=stream)
        step.launch(stream)
    stream.sync()


def test_statistics_and_trimming(device, stream):
    size, memory = 4 << 20, device.graph_memory
    memory.trim()
    memory.reset_high_water()
    before = memory.statistics
    assert before.used_high == before.used
    with cu.Graph(device) as graph:
        scratch = graph.allocate(size)
        scratch.memset(scratch.buffer, 1).free(scratch.buffer)
        del scratch
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
            during = memory.statistics
            assert during.used >= before.used + size
            assert during.reserved >= during.used
            assert during.used_high >= before.used + size
            assert during.reserved_high >= during.used_high
            assert "graphs" in cu.memory_summary()
            with stream.capture():  # they can be asked for while a stream is capturing
                assert memory.statistics == during
            memory.trim()
            trimmed = memory.statistics
            assert trimmed.reserved >= trimmed.used == before.used  # the launch has freed it
            step.launch(stream)
            stream.sync()
            assert memory.statistics.used >= before.used + size
    with cu.Graph(device) as graph:
        left = graph.allocate(size)
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
            memory.trim()
            assert memory.statistics.used >= before.used + size
            left.buffer.free(stream=stream)
            del left
    gc.collect()
    settle()
    stream.sync()
    memory.trim()
    after = memory.statistics
    assert after.used == before.used
    assert after.used_high >= during.used
    memory.reset_high_water()
    assert memory.statistics.used_high == after.used
    assert repr(memory).startswith(f"<GraphMemory of device 0: {after.used} of ")


def test_events_in_graphs(device, stream):
    x = device.allocate(4, stream=stream)
    event = device.create_event()
    with device.create_stream() as other, cu.Graph(device) as first, cu.Graph(device) as second:
        first.memset(x, 7, name="fill").record(event, name="filled")
        second.wait(event, name="ready").memset(x, 8)
        assert [node.kind for node in first.nodes] == ["memset", "event record"]
        assert [(r.operand, r.object) for r in second["ready"].retained] == [("event", event)]
        with first.instantiate() as fill, second.instantiate() as refill:
            event.close()  # the graphs keep its handle
            with hold(stream):
                fill.launch(stream)
                refill.launch(other)
                assert not other.is_done
            other.sync()
    assert x.view("u1").numpy(stream=stream)[0] == 8


def test_an_event_of_a_graph_orders_streams(device, stream):
    with device.create_event() as event, cu.Graph(device) as graph:
        graph.record(event)
        with graph.instantiate() as step, hold(stream):
            step.launch(stream)
            assert not event.is_done
        event.sync()


def test_closed_events(device):
    event = device.create_event()
    event.close()
    with cu.Graph(device) as graph:
        for add in (graph.record, graph.wait):
            with pytest.raises(cu.ClosedError, match="event is closed"):
                add(event)
        with pytest.raises(TypeError, match="event must be"):
            graph.record(None)
        assert graph.nodes == ()


def test_memory_that_is_closed_while_its_free_waits_for_an_instantiation(device):
    asked, done = threading.Event(), []
    with cu.Graph(device) as of, cu.Graph(device) as graph:
        buffer, _ = allocating(of)
        last = graph.join()
        for _ in range(20_000):
            last = graph.join(last)
        instantiating = threading.Event()

        def close() -> None:
            asked.wait()
            buffer.close()

        def instantiate() -> None:
            instantiating.set()
            graph.instantiate().close()
            done.append(True)

        threads = [threading.Thread(target=run) for run in (close, instantiate)]
        for thread in threads:
            thread.start()
        instantiating.wait()
        free = starmap(graph._add_free, [((), buffer, "end")])
        assert not done
        asked.set()
        (number,) = free  # no other thread runs between the two
        for thread in threads:
            thread.join()
        assert buffer.is_closed
        assert graph["end"]._id == number
        with of.instantiate() as make, graph.instantiate() as end, device.create_stream() as stream:
            for _ in range(2):
                make.launch(stream)
                end.launch(stream)
            stream.sync()
