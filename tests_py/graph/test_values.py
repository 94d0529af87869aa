# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that write values into memory, and wait for them there."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu


@pytest.fixture
def values(device):
    """Device memory that takes values: not that of a pool."""
    with cu.VirtualMemoryResource(device, reserve=1 << 24) as resource:
        yield resource


@pytest.fixture
def memory(values, stream):
    with values.allocate(16, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        stream.sync()
        yield buffer


def read(memory, stream):
    out = np.zeros(memory.nbytes // 4, np.uint32)
    memory.copy_to(out, stream=stream)
    stream.sync()
    return out.tolist()


def test_nodes_run_at_each_launch(device, stream, memory):
    with cu.Graph(device) as graph:
        first = graph.write_value(memory[:4], 5, name="signal")
        last = first.wait_value(memory[:4], 5, "==").write_value(memory[8:], -1)
        assert repr(last) == "<cudago.Node 'batch_mem_op_2': batch mem op>"
        assert [n.kind for n in graph.nodes] == ["batch mem op"] * 3
        with graph.instantiate() as step:
            for _ in range(2):
                memory.fill(0, stream=stream)
                step.launch(stream)
                assert read(memory, stream) == [5, 0, 2**32 - 1, 2**32 - 1]


def test_a_node_waits(device, stream, memory):
    with device.create_stream() as other, cu.Graph(device) as graph:
        graph.wait_value(memory[:4], 3).memset(memory[8:], 7)
        with graph.instantiate() as step:
            step.launch(stream)
            assert not stream.is_done
            other.write_value(memory[:4], 3)
            stream.sync()
            assert read(memory, stream) == [3, 0, 0x07070707, 0x07070707]


def test_what_is_known_of_a_node(device, memory):
    with cu.Graph(device) as graph:
        word = memory[:4]
        write, wait = graph.write_value(word, -2), graph.wait_value(memory[8:], 1 << 40, "nor")
        assert (write.params.memory, write.params.value) == (word, 2**32 - 2)
        assert write.params.condition is None
        assert (wait.params.value, wait.params.condition) == (1 << 40, "nor")
        assert [(r.operand, r.object, r.nbytes, r.reason) for r in write.retained] == [
            ("dst", word, 4, "batch mem op")
        ]
        assert [r.operand for r in wait.retained] == ["src"]
        dot = graph.to_dot()
        assert "wait for 8 bytes at" in dot
        assert "write 4294967294 into 4 bytes at" in dot


def test_operands_live_as_long_as_the_graph_and_its_clone(device, stream, memory, values):
    own = values.allocate(4, stream=stream)
    graph = cu.Graph(device)
    graph.write_value(own, 9).memcpy(memory[:4], own)
    own.close()
    clone = graph.clone()
    graph.close()
    with cu.Graph(device) as outer:
        outer.embed(clone)
        clone.close()
        with outer.instantiate() as step:
            step.launch(stream)
            assert read(memory, stream)[0] == 9


def test_refusals_add_nothing(device, stream, memory, tmp_path):
    with cu.Graph(device) as graph:
        with pytest.raises(ValueError, match="dst must have 4 or 8 bytes"):
            graph.write_value(memory, 1)
        with pytest.raises(ValueError, match="src must be aligned to its 8 bytes"):
            graph.wait_value(memory[4:12], 1)
        with pytest.raises(OverflowError, match="value must fit in the 4 bytes of dst"):
            graph.write_value(memory[:4], 1 << 32)
        with pytest.raises(ValueError, match="condition must be one of"):
            graph.wait_value(memory[:4], 1, "<=")
        with pytest.raises(TypeError, match="Buffer, Pointer or Tensor"):
            graph.write_value(np.zeros(1, np.int32), 1)
        assert len(graph.nodes) == 0
        node = graph.write_value(memory[:4], 1)
        with pytest.raises(ValueError, match="batch mem op nodes cannot be saved"):
            graph.save(tmp_path / "graph")
        with pytest.raises((TypeError, ValueError)):
            node.update(memory[:4], 2)
    with pytest.raises(cu.ClosedError):
        graph.write_value(memory[:4], 1)


def test_a_body_cannot_hold_one(device, memory):
    with cu.Graph(device) as graph:
        body = graph.if_then(graph.condition(default=1)).body
        with pytest.raises(ValueError, match="not batch mem op nodes"):
            body.write_value(memory[:4], 1)
