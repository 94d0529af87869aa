# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is given to graphs that are loaded, and what cannot be saved."""

from __future__ import annotations

import struct

import pytest

import cudago as cu
from cudago.testing import no_leaks

from .saving import CONFIG, N, again, code, run

np = pytest.importorskip("numpy")

__all__ = ["again", "code"]  # fixtures


def test_contents_only_if_asked_for(graph, stream, tmp_path):
    x = cu.full(N, 5, "i4", stream=stream)
    graph.memcpy(np.full(N, 6, "i4"), x, name="copy")
    for contents in (False, True):
        graph.save(tmp_path / "graph", contents=contents)
        params = cu.Graph.load(tmp_path / "graph")["copy"].params
        assert (params.src.numpy(stream=stream) == 5 * contents).all()
        assert (params.dst == 6 * contents).all()


def test_an_address_in_a_struct_is_refused(graph, code, stream, tmp_path):
    x = cu.zeros(N, "f4", stream=stream)
    pair = struct.pack("<dQ", 0, x.handle + 8)
    graph.launch(cu.LaunchConfig(1, 1), code["values"], 1, 1, 1, 1, 1, pair, None, x, name="values")
    with pytest.raises(ValueError, match=r"parameter 5 of node 'values' has an address .* byte 8"):
        graph.save(tmp_path / "graph")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("before", range(9))
def test_an_address_in_a_packed_struct_is_refused(before, graph, stream, tmp_path):
    source = f"""
    #pragma pack(push, 1)
    struct Packed {{ char before[{before + 1}]; float* p; char after[3]; }};
    #pragma pack(pop)
    extern "C" __global__ void put(Packed s, float* y) {{ s.p[threadIdx.x] = *y; }}
    """
    put = cu.Program(source).compile()["put"]
    x = cu.zeros(N, "f4", stream=stream)
    for inside in (x.handle, x.handle + 4 * N - 1):
        packed = b"\xff" * (before + 1) + struct.pack("<Q", inside) + b"\xff" * 3
        node = graph.launch(cu.LaunchConfig(1, 1), put, packed, x, name="put")
        match = rf"parameter 0 of node 'put' has an address in it, at byte {before + 1}"
        with pytest.raises(ValueError, match=match):
            graph.save(tmp_path / "graph")
        graph.remove(node)
    past = b"\xff" * (before + 1) + struct.pack("<Q", x.buffer.handle + x.buffer.size) + bytes(3)
    graph.launch(cu.LaunchConfig(1, 1), put, past, x, name="put")
    graph.save(tmp_path / "graph")


def test_small_numbers_in_structs_are_no_addresses(graph, stream, code, tmp_path):
    x = cu.zeros(N, "f4", stream=stream)
    random = np.random.default_rng(1)
    for i in range(200):
        two = random.integers(-(2**16), 2**16, 4).astype("i4").tobytes()
        graph.launch(
            cu.LaunchConfig(1, 1), code["values"], 1, 1, 1, 1, 1, two, None, x, name=f"{i}"
        )
    graph.save(tmp_path / "graph")


def test_an_operand_is_bound_by_one_name(graph, code, stream, tmp_path):
    x, y = (cu.zeros(N, "f4", stream=stream) for _ in range(2))
    graph.launch(CONFIG, code["axpy"], cu.slot("factor", 2.0), x, y, name="k")
    graph.save(tmp_path / "graph")
    for names in (("k.a", "k.0"), ("factor", "k.0"), ("k.a", "factor")):
        with pytest.raises(TypeError, match=rf"'{names[0]}' and '{names[1]}' are the same operand"):
            cu.Graph.load(tmp_path / "graph", bind=dict.fromkeys(names, 1.0))
    with cu.Graph.load(tmp_path / "graph", bind={"k.a": 1.0, "k.x": y, "k.2": x}) as loaded:
        assert loaded["k"].params.args[0] == 1.0


def test_slots_stay_slots(graph, again, code, stream):
    x, y = (cu.zeros(N, "f4", stream=stream) for _ in range(2))
    out = np.zeros(N, "f4")
    source = cu.slot("source", np.ones(N, "f4"))
    node = graph.memcpy(x, source).memcpy(y, source)
    node = node.launch(CONFIG, code["axpy"], cu.slot("a", 2.0), x, y)
    node.memcpy(cu.slot("out", out), y)
    loaded = again(graph, contents=False, source=np.full(N, 2, "f4"), out=out)
    with loaded.instantiate() as step:
        step.launch(stream)
        stream.sync()
        assert (out == 2 + 2 * 2).all()
        step.bind(a=3.0, source=np.full(N, 1, "f4"))
        step.launch(stream)
        stream.sync()
        assert (out == 1 + 3 * 1).all()


def test_operands_can_be_bound_by_node(graph, again, code, stream):
    x, y = (cu.zeros(N, "f4", stream=stream) for _ in range(2))
    ours = cu.full(N, 10, "f4", stream=stream)
    out = bytearray(4 * N)
    node = graph.memcpy(x, bytes(4 * N), name="up")
    node.launch(CONFIG, code["axpy"], 2.0, x, y, name="axpy").memcpy(out, y, name="down")
    stream.sync()
    bind = {
        "up.src": np.ones(N, "f4"),
        "axpy.a": 5.0,
        "axpy.2": ours,
        "down.src": ours,
        "down.dst": out,
    }
    run(again(graph, **bind), stream)
    assert (np.frombuffer(out, "f4") == 15).all()


def test_names_that_nothing_has_are_refused(graph, again, device, stream):
    graph.memcpy(device.allocate(4, stream=stream), cu.slot("source", b"abcd"), name="up")
    with pytest.raises(KeyError, match=r"called 'other'; there are source, up\.dst, up\.src"):
        again(graph, other=b"abcd")
    with pytest.raises(TypeError, match="bind must be a mapping, not int"):
        cu.Graph.load("nowhere", bind=1)


def test_wrong_objects_are_named(graph, again, device, stream, tmp_path):
    graph.memcpy(device.allocate(4, stream=stream), cu.slot("source", b"abcd"), name="up")
    graph.save(tmp_path / "graph")
    with no_leaks():
        for wrong, error in ((b"abc", ValueError), (None, TypeError), (3, TypeError)):
            with pytest.raises(error) as e:
                cu.Graph.load(tmp_path / "graph", bind={"source": wrong})
            assert not isinstance(e.value, cu.GraphFileError)
            assert "'up'" in "".join([str(e.value), *getattr(e.value, "__notes__", ())])
            del e


def test_host_nodes_need_a_function(graph, stream, tmp_path):
    log = []
    graph.callback(lambda: log.append("saved"), name="done").callback(print, name="last")
    graph.save(tmp_path / "graph")
    with pytest.raises(ValueError, match=r"here 'done', 'last', as in bind=\{'done': function\}"):
        cu.Graph.load(tmp_path / "graph")
    bind = {"done": lambda: log.append("loaded"), "last.callback": lambda: log.append("last")}
    with cu.Graph.load(tmp_path / "graph", bind=bind) as loaded:
        run(loaded, stream)
    assert log == ["loaded", "last"]


def test_a_bound_event(graph, again, device, stream):
    event = device.create_event(timing_enabled=True)
    graph.record(device.create_event(), name="mark")
    loaded = again(graph, **{"mark.event": event})
    assert loaded["mark"].params.event is event
    with pytest.raises(TypeError, match=r"mark.event must be an Event, not int"):
        again(loaded, **{"mark.event": 1})


def test_memory_of_another_graph(graph, device, stream, tmp_path):
    with cu.Graph(device) as other:
        memory = other.allocate(16).buffer
        graph.memset(memory, 1, name="fill")
        with pytest.raises(ValueError, match=r"'fill' .* its dst: the contents of memory that ano"):
            graph.save(tmp_path / "graph", contents=True)
        graph.save(tmp_path / "graph")
        assert cu.Graph.load(tmp_path / "graph")["fill"].params.dst.kind == "device"
        graph.free(memory, name="free")
        with pytest.raises(ValueError, match=r"node 'free' .*: it frees memory of another graph"):
            graph.save(tmp_path / "graph")


def test_what_is_inside_is_not_saved_alone(graph, tmp_path):
    body = graph.if_then(graph.condition(1)).body
    with pytest.raises(ValueError, match="is saved with the outermost one"):
        body.save(tmp_path / "graph")


def test_a_failed_save_leaves_the_old_file(graph, device, stream, tmp_path):
    path = tmp_path / "graph"
    graph.memset(device.allocate(4, stream=stream), 1)
    graph.save(path)
    before = path.read_bytes()
    graph.save(path)
    assert path.read_bytes() == before, "the same graph makes the same file"
    graph.close()
    with pytest.raises(cu.ClosedError):
        graph.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        cu.Graph().save(tmp_path / "no" / "graph")
    with pytest.raises(IsADirectoryError):
        cu.Graph().save(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_graph(graph, again):
    assert again(graph).nodes == ()


def test_a_graph_that_is_being_captured(stream, tmp_path):
    with stream.capture() as graph, pytest.raises(ValueError, match="captur"):
        graph.save(tmp_path / "graph")


def test_loading_leaks_nothing(device, stream, code, tmp_path):
    with cu.Graph(device) as graph:
        x = cu.zeros(N, "f4", stream=stream)
        node = graph.memcpy(x, np.ones(N, "f4")).launch(CONFIG, code["axpy"], 1.0, x, x)
        node.memset(code["hits"], 1).record(device.create_event())
        graph.save(tmp_path / "graph", contents=True)
    with no_leaks(), cu.Graph.load(tmp_path / "graph") as loaded:
        run(loaded, stream)


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
import cudago as cu
device = cu.Device()
with device.create_stream() as stream, cu.Graph() as graph:
    x, out = device.allocate(8, stream=stream), bytearray(16)
    x.fill(3, stream=stream)
    graph.memcpy(memoryview(out)[4:12], x, name="out").memcpy(x[:4], memoryview(out)[2:6], name="x")
    graph.save("graph", contents=True)
    with cu.Graph.load("graph") as again, again.instantiate() as step:
        step.launch(stream)
        stream.sync()
        assert bytes(again["out"].params.dst) == bytes([3]) * 8
        assert again["x"].params.dst.view("u1").size == 4
        assert bytes(again["x"].params.src) == bytes([0, 0, 3, 3])
"""


def test_without_numpy(driver, script):
    run = script(WITHOUT_NUMPY)
    assert (run.returncode, run.stderr) == (0, "")
