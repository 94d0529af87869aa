# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that write values into memory, and wait for them there."""

from __future__ import annotations

import gc
import weakref
import zipfile

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle


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


def test_refusals_add_nothing(device, memory):
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
        with pytest.raises(TypeError, match="takes dst=, value="):
            node.update(memory[:4], 2)
        with pytest.raises(TypeError, match="needs what is to change"):
            node.update()
    with pytest.raises(cu.ClosedError):
        graph.write_value(memory[:4], 1)


def test_a_body_cannot_hold_one(device, memory):
    with cu.Graph(device) as graph:
        body = graph.if_then(graph.condition(default=1)).body
        with pytest.raises(ValueError, match="not batch mem op nodes"):
            body.write_value(memory[:4], 1)


def test_a_write_is_updated_in_an_executable(device, stream, memory):
    with cu.Graph(device) as graph:
        node = graph.write_value(memory[:4], 5, name="signal")
        with graph.instantiate() as step:
            step["signal"].update(value=6)
            step.launch(stream)
            step["signal"].update(dst=memory[4:8])
            step.launch(stream)
            step["signal"].update(dst=memory[8:12], value=-1)
            step.launch(stream)
            assert read(memory, stream) == [6, 6, 2**32 - 1, 0]
            assert step["signal"].params.value == 2**32 - 1
            assert (node.params.memory, node.params.value) == (memory[:4], 5)
            for changes, error, message in (
                ({"dst": memory[:8]}, ValueError, "can only change address, value and condition"),
                ({"dst": memory[:2]}, ValueError, "must have 4 or 8 bytes"),
                ({"value": 1 << 32}, OverflowError, "must fit in the 4 bytes"),
                ({"src": memory[:4]}, TypeError, r"takes dst=, value=: got an unexpected .*'src'"),
                ({"value": "x"}, TypeError, "value must be an int"),
            ):
                with pytest.raises(error, match=message):
                    step["signal"].update(**changes)
            with pytest.raises(TypeError, match="takes dst=, value="):
                step["signal"].update(memory[:4], 1)
            assert step["signal"].params.memory == memory[8:12]


def test_a_wait_is_updated_in_a_graph(device, stream, memory):
    with cu.Graph(device) as graph:
        node = graph.wait_value(memory[:4], 3, name="wait")
        node.memset(memory[12:], 7)
        with graph.instantiate() as before:
            node.update(src=memory[8:], value=1 << 40, condition="==")
            assert (node.params.value, node.params.condition) == (1 << 40, "==")
            with graph.instantiate() as step, device.create_stream() as other:
                assert step["wait"].params.condition == "=="
                step["wait"].update(condition="&", value=1)
                with pytest.raises(ValueError, match="condition must be one of"):
                    step["wait"].update(condition="<")
                step.launch(stream)
                assert not stream.is_done
                other.write_value(memory[8:], 5)
                stream.sync()
                before.launch(stream)
                other.write_value(memory[:4], 3)
                assert read(memory, stream) == [3, 0, 5, 0x07070707]
        with pytest.raises(TypeError, match="takes src=, value=, condition="):
            node.update(dst=memory[:4])


def test_an_update_lets_go_of_the_memory(device, stream, memory, values):
    own = values.allocate(4, stream=stream)
    alive = weakref.ref(own)
    with cu.Graph(device) as graph:
        graph.write_value(own, 5, name="signal")
        with graph.instantiate() as step:
            del own
            step.launch(stream)
            graph["signal"].update(dst=memory[:4])
            gc.collect()
            assert alive() is not None
            step["signal"].update(dst=memory[:4])
            stream.sync()
            settle()
            gc.collect()
            assert alive() is None


def test_nodes_are_saved(device, stream, memory, pinned, tmp_path):
    path = tmp_path / "values.cudago"
    with cu.Graph(device) as graph:
        first = graph.write_value(memory[:4], 5, name="signal")
        first.wait_value(memory[:4], 5, "==", name="wait").memset(memory[12:], 7)
        graph.write_value(pinned[8:16], 1 << 40, name="wide")
        graph.save(path, contents=True)
        with cu.Graph.load(path) as again, again.instantiate() as step:
            assert [(n.name, n.kind) for n in again.nodes] == [
                (n.name, n.kind) for n in graph.nodes
            ]
            for name in ("signal", "wait", "wide"):
                was, now = graph[name].params, again[name].params
                assert (was.value, was.condition) == (now.value, now.condition)
                assert was.memory.nbytes == now.memory.nbytes
            step.launch(stream)
            stream.sync()
            assert read(again["signal"].params.memory, stream) == [5]
            assert bytes(memoryview(again["wide"].params.memory)) == (1 << 40).to_bytes(8, "little")
        with (
            cu.Graph.load(path, bind={"signal.dst": memory[:4], "wait.src": memory[:4]}) as again,
            again.instantiate() as step,
        ):
            step.launch(stream)
            assert read(memory, stream)[0] == 5
        with pytest.raises(ValueError, match="memory pool"):
            cu.Graph.load(path, bind={"signal.dst": device.allocate(4, stream=stream)})
    assert stream.is_done


def test_a_damaged_file_is_refused(device, memory, tmp_path):
    path = tmp_path / "values.cudago"
    with cu.Graph(device) as graph:
        graph.write_value(memory[:4], 5, name="signal")
        graph.save(path)
    for was, now, message in (
        (b'"value":5', b'"value":4294967296', "value"),
        (b'"value":5', b'"value":-5', "value"),
        (b'"value":5', b'"value":5,"condition":"<"', "condition"),
        (b'"value":5', b'"value":5,"condition":"=="', "src"),
        (b'"size":4,', b'"size":2,', "4 or 8 bytes"),
        (b'"offset":0', b'"offset":1', "ends|aligned"),
    ):
        rewrite(path, tmp_path / "other.cudago", was, now)
        with pytest.raises(cu.GraphFileError, match=message):
            cu.Graph.load(tmp_path / "other.cudago")


def rewrite(path, to, was: bytes, now: bytes) -> None:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "graph.json":
                assert was in data
                data = data.replace(was, now, 1)
            new.writestr(name, data)


def test_nodes_are_compared_profiled_and_captured_into(device, stream, memory):
    with cu.Graph(device) as one, cu.Graph(device) as other:
        word = memory[:4]
        one.write_value(word, 5, name="signal")
        other.write_value(word, 6, name="signal")
        assert str(one.diff(other)) == "~ 'signal': value 5 → 6"
        with one.capture(stream) as nodes:
            stream.write_value(memory[4:8], 7)
        assert [n.kind for n in nodes] == ["batch mem op"]
        with one.instantiate() as step:
            assert [row.kind for row in step.profile(stream).rows] == ["batch mem op"] * 2
        assert read(memory, stream)[:2] == [5, 7]
