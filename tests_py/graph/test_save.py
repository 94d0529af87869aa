# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that are saved and loaded do the same."""

from __future__ import annotations

import math
import struct

import pytest

import cudago as cu
from cudago._graph_file import save

from .saving import CONFIG, N, again, code, run

np = pytest.importorskip("numpy")

__all__ = ["again", "code"]  # fixtures


def test_a_copy_a_fill_and_a_launch(graph, again, code, stream):
    x, y = (cu.zeros(N, "f4", stream=stream) for _ in range(2))
    out = np.zeros(N, "f4")
    up = graph.memcpy(x, np.arange(N, dtype="f4"), name="up")
    fill = graph.memset(y, 1.0, name="fill")
    both = graph.join(up, fill, name="both")
    axpy = both.launch(CONFIG, code["axpy"], 2.0, x, y, name="axpy")
    axpy.memcpy(out, y, name="down")
    loaded = again(graph)
    assert [(n.name, n.kind) for n in loaded.nodes] == [
        ("up", "memcpy"),
        ("fill", "memset"),
        ("both", "empty"),
        ("axpy", "kernel"),
        ("down", "memcpy"),
    ]
    assert [(a.name, b.name) for a, b in loaded.edges] == [
        ("up", "both"),
        ("fill", "both"),
        ("both", "axpy"),
        ("axpy", "down"),
    ]
    run(loaded, stream)
    theirs = loaded["down"].params.dst
    assert (theirs.dtype, theirs.tolist()) == (np.dtype("f4"), [1 + 2.0 * i for i in range(N)])
    assert not out.any(), "the loaded graph has memory of its own"
    assert loaded["axpy"].params.config == CONFIG
    assert loaded["axpy"].params.kernel.parameter_names == ("a", "x", "y")


def test_operands_that_share_memory_share_it_again(graph, again, code, stream):
    x = cu.zeros(64, "i4", stream=stream)
    first = graph.memset(x[:16], 3)
    second = first.memset(x[8:24], 4)
    second.launch(CONFIG, code["halo"], x[1:17], x.buffer.ptr + 4 * 40, name="halo")
    second.memcpy(x[60:], x.buffer[:16])
    loaded = again(graph, contents=False)
    run(loaded, stream)
    a, b = loaded["halo"].params.args
    assert b.handle == a.handle + 4 * 39
    assert a.shape == (16,)
    assert a.numpy(stream=stream).tolist() == [3] * 7 + [4] * 9
    assert b.view("i4")[:16].numpy(stream=stream).tolist() == [
        *[3 + 3] * 6,
        3 + 4,
        3 + 4,
        *[4 + 4] * 8,
    ]


def test_a_kernel_may_reach_beyond_its_operand(graph, again, code, stream):
    """All of the allocation is saved, not only what a tensor spans."""
    x = cu.asarray(np.arange(64), "i4", stream=stream)
    y = cu.zeros(N, "i4", stream=stream)
    graph.launch(CONFIG, code["halo"], x[20:21], y, name="halo")
    loaded = again(graph)
    run(loaded, stream)
    result = loaded["halo"].params.args[1]
    assert result.numpy(stream=stream).tolist() == [2 * (20 + i) for i in range(N)]


def test_host_arrays_that_overlap(graph, again, stream):
    pinned = bytearray(64)
    data = np.arange(32, dtype="u1")
    with cu.pin(pinned) as buffer:
        graph.memcpy(data[4:8], data[16:20]).memcpy(data[6:10], data[2:6], name="last")
        graph.memset(buffer[:8], 9, name="pinned").memcpy(np.zeros(16, "u1"), pinned[:16])
        loaded = again(graph)
    run(loaded, stream)
    assert loaded["last"].params.dst.tolist() == [2, 3, 16, 17]
    assert loaded["pinned"].params.dst.kind == "pinned"


@pytest.mark.parametrize("kind", ["device", "pinned", "managed"])
def test_memory_of_each_kind(graph, again, device, stream, kind):
    if kind == "device":
        buffer = device.allocate(64, stream=stream)
    elif kind == "pinned":
        buffer = cu.PinnedMemoryResource().allocate(64)
    else:
        buffer = cu.ManagedMemoryResource(device).allocate(64)
    buffer.fill(7, stream=stream)
    out = bytearray(32)
    graph.memcpy(out, buffer[8:40], name="out")
    loaded = again(graph)
    params = loaded["out"].params
    assert (params.src.kind, params.src.size) == (kind, 32)
    run(loaded, stream)
    assert bytes(params.dst) == bytes([7]) * 32


def test_arguments_arrive_bit_by_bit(graph, again, code, stream):
    pair = struct.pack("<dq", -0.0, -2)
    (nan,) = struct.unpack("<d", bytes.fromhex("010203040506f8ff"))
    given = (-math.inf, nan, -1, (1 << 64) - 1, -(1 << 63), pair, None)
    out = cu.zeros(64, "u1", stream=stream)
    graph.launch(cu.LaunchConfig(1, 1), code["values"], *given, out, name="values")
    run(graph, stream)
    before = out.numpy(stream=stream).tobytes()
    out.fill(0, stream=stream)
    loaded = again(graph)
    run(loaded, stream)
    after = loaded["values"].params.args[-1].numpy(stream=stream).tobytes()
    assert after == before
    assert before[8:16] == bytes.fromhex("010203040506f8ff")
    assert before[40:56] == pair


def test_a_large_int_for_a_float(graph, again, code, stream):
    x, y = (cu.full(N, value, "f4", stream=stream) for value in (1, 0))
    graph.launch(CONFIG, code["axpy"], 10**30, x, y, name="axpy")
    loaded = again(graph)
    run(loaded, stream)
    result = loaded["axpy"].params.args[2].numpy(stream=stream)
    assert result.tolist() == [np.float32(1e30)] * N


def test_an_address_as_a_number_moves_with_its_memory(graph, again, code, stream):
    x = cu.zeros(N, "f4", stream=stream)
    y = cu.zeros(N, "f4", stream=stream)
    up = graph.memset(x, 2.0, name="fill").memset(y, 1.0)
    up.launch(CONFIG, code["axpy"], 1.0, x.handle, y, name="axpy")
    loaded = again(graph)
    run(loaded, stream)
    args = loaded["axpy"].params.args
    assert args[1].handle == loaded["fill"].params.dst.handle != x.handle
    assert (args[2].numpy(stream=stream) == 3).all()


def test_events_are_new_and_shared(graph, again, device, stream):
    event = device.create_event()
    graph.record(event, name="record").wait(event, name="wait")
    graph.record(device.create_event(), name="other")
    loaded = again(graph)
    first, second, other = (loaded[n].params.event for n in ("record", "wait", "other"))
    assert first is second
    assert first is not event
    assert first is not other
    run(loaded, stream)
    first.sync()


def test_graphs_inside_graphs(graph, again, code, device, stream):
    log = []
    x, y = (cu.zeros(N, "f4", stream=stream) for _ in range(2))
    with cu.Graph(device) as inner, cu.Graph(device) as middle:
        inner.memset(x, 2.0, name="fill").callback(print, name="call")
        middle.embed(inner, name="inner").launch(CONFIG, code["axpy"], 1.0, x, y, name="axpy")
        graph.embed(middle, name="middle").embed(inner, name="more")
    bind = {f"{path}/call": lambda p=path: log.append(p) for path in ("middle/inner", "more")}
    loaded = again(graph, **bind)
    run(loaded, stream)
    assert log == ["middle/inner", "more"]
    result = loaded["middle"].params.graph["axpy"].params.args[2]
    assert (result.numpy(stream=stream) == 2).all()


def test_a_graph_that_embeds_itself(graph, again, stream):
    """As it was before: the copy inside does not have the node that it is in."""
    x = cu.zeros(4, "i4", stream=stream)
    graph.memset(x, 7, name="fill")
    inner = graph.embed(graph, name="inner").params.graph
    assert [node.name for node in inner.nodes] == ["fill"]
    loaded = again(graph)
    assert [node.name for node in loaded["inner"].params.graph.nodes] == ["fill"]
    run(loaded, stream)


def test_conditional_nodes(graph, again, code, stream):
    n = cu.asarray([5, 0], "i4", stream=stream)
    x = cu.zeros(N, "i4", stream=stream)
    choice = cu.asarray([2], "u4", stream=stream)
    more, which, maybe = graph.condition(1), graph.condition(), graph.condition(0)
    loop = graph.set_condition(which, choice).while_loop(more, name="loop")
    loop.body.launch(cu.LaunchConfig(1, 1), code["countdown"], more, n, name="count")
    choose = loop.switch(which, 3, name="choose")
    for i, body in enumerate(choose.bodies):
        body.memset(x, 10 + i, name="fill")
    yes, no = choose.if_else(maybe, name="if").bodies
    yes.memset(x[8:], 1)
    no.memset(x[8:], 2)
    loaded = again(graph)
    assert [c.params.type for c in loaded.nodes if c.kind == "conditional"] == [
        "while",
        "switch",
        "if",
    ]
    run(loaded, stream)
    result = loaded["choose"].bodies[0]["fill"].params.dst.numpy(stream=stream)
    assert result.tolist() == [12] * 8 + [2] * 8
    counted = loaded["loop"].body["count"].params.args[1]
    assert counted.numpy(stream=stream).tolist() == [0, 5]


def test_addresses_that_are_used_twice(graph, device):
    """The driver may give one address to memory that is freed and to what is allocated then."""
    one = graph.allocate(64, name="one")
    freed = one.memset(one.buffer, 1, name="use one").free(one.buffer, name="free")
    two = freed.allocate(32, name="two")
    two.memset(two.buffer, 2, name="use two")
    maker = save._Maker(graph, contents=False)
    maker._note_alloc(save._Alloc(0, one._id, 1024, 64))
    maker._note_alloc(save._Alloc(3, two._id, 1024, 32))
    for name, number in (("use one", 0), ("free", 0), ("use two", 3)):
        assert maker._alloc_of(graph[name], 1024, 32).number == number
    assert maker._alloc_of(graph["use two"], 1024 + 64, 0) is None


def test_memory_that_the_graph_allocates(graph, again, stream):
    out = bytearray(8)
    one = graph.allocate(64, name="one")
    filled = one.memset(one.buffer[8:16], 3)
    two = filled.memcpy(out, one.buffer[8:16], name="out").free(one.buffer).allocate(32)
    two.memset(two.buffer, 4).free(two.buffer)
    loaded = again(graph)
    for _ in range(2):
        run(loaded, stream)
    assert bytes(loaded["out"].params.dst) == bytes([3]) * 8
    assert loaded["one"].params.nbytes == 64


def test_rows_with_gaps(graph, again, stream):
    x = cu.asarray(np.arange(64).reshape(8, 8), "i4", stream=stream)
    y = cu.zeros((4, 8, 8), "i4", stream=stream)
    out = np.zeros((8, 8), "i4")
    first = graph.memcpy(y[0, :, 2:5], x[:, 1:4])
    first.memcpy(y[1].T, x).memset(y[2, ::2], 9).memcpy(out, y[0]).memcpy(
        np.zeros((4, 8, 8), "i4"), y, name="all"
    )
    run(graph, stream)
    expected = y.numpy(stream=stream)
    y.fill(0, stream=stream)
    loaded = again(graph)
    assert [n.kind for n in loaded.nodes] == ["memcpy", "kernel", "kernel", "memcpy", "memcpy"]
    run(loaded, stream)
    assert loaded["all"].params.dst.tolist() == expected.tolist()


def test_variables(graph, again, code, stream):
    """Those that kernels use by their names have the saved contents, and operands refer to them."""
    code["weights"].copy_from(np.arange(4, dtype="i4") + 5, stream=stream)
    code["hits"].fill(0, stream=stream)
    x = cu.zeros(4, "i4", stream=stream)
    graph.launch(cu.LaunchConfig(1, 4), code["weigh"], x, name="weigh").memcpy(
        np.zeros(1, "i4"), code["hits"], name="hits"
    )
    loaded = again(graph)
    code["weights"].fill(0, stream=stream)
    stream.sync()
    run(loaded, stream)
    assert loaded["weigh"].params.args[0].numpy(stream=stream).tolist() == [5, 6, 7, 8]
    assert loaded["hits"].params.dst.tolist() == [4]
    assert code["hits"].view("i4").numpy(stream=stream).tolist() == [0]


def test_a_kernel_with_a_name_expression(graph, again, code, stream):
    x = cu.full(N, 4, "i4", stream=stream)
    graph.launch(CONFIG, code["twice<int>"], x, name="twice")
    loaded = again(graph)
    run(loaded, stream)
    assert (loaded["twice"].params.args[0].numpy(stream=stream) == 8).all()


def test_dynamic_shared_memory(graph, again, code, device, stream):
    most = device.properties.max_shared_memory_per_block_optin
    x = cu.zeros(1, "i4", stream=stream)
    config = cu.LaunchConfig(1, 1, shared_memory=most)
    graph.launch(config, code["shared"], x, most // 4, name="shared")
    loaded = again(graph)
    run(loaded, stream)
    assert loaded["shared"].params.args[0].numpy(stream=stream).tolist() == [5]


def test_a_captured_graph(device, stream, code, again):
    x, y = (cu.zeros(N, "f4", stream=stream) for _ in range(2))
    out, log = np.zeros(N, "f4"), []
    with device.create_stream() as other, stream.capture() as graph:
        x.copy_from(np.arange(N, dtype="f4"), stream=stream)
        other.wait(stream)
        y.fill(1, stream=other)
        stream.wait(other)
        cu.launch(stream, CONFIG, code["axpy"], 3.0, x, y)
        y[::2].copy_from(x[1::2], stream=stream)
        y.copy_to(out, stream=stream)
        stream.callback(log.append, 1)
    names = {n.kind: n.name for n in graph.nodes}
    loaded = again(graph, contents=False, **{names["host"]: lambda: log.append(2)})
    last = loaded[names["memcpy"]]
    run(loaded, stream)
    sources = [n.params.src for n in loaded.nodes if n.kind == "memcpy"]
    assert sources[0].shape == (N,)
    expected = np.array([1 + 3.0 * 0] * N)
    expected[::2] = 0
    assert last.params.dst.tolist() == expected.tolist()
    assert log == [2]


def test_operands_whose_objects_were_closed(graph, again, device, stream):
    buffer = device.allocate(16, stream=stream)
    buffer.fill(6, stream=stream)
    out = bytearray(16)
    graph.memcpy(out, buffer, name="copy")
    buffer.close()
    loaded = again(graph)
    run(loaded, stream)
    assert bytes(loaded["copy"].params.dst) == bytes([6]) * 16


@pytest.mark.parametrize("name", ["int8", "float64", "complex64", "bool", "bfloat16", ">f8", "S2"])
def test_operands_have_their_types_again(graph, again, stream, name):
    """Where cudago has the type; what NumPy cannot share is bytes."""
    numpys = name != "bfloat16"
    array = np.zeros((2, 3), name if numpys else "u2")
    host = array if numpys else cu.from_dlpack(array).buffer.view(name, (2, 3))
    ours = name not in (">f8", "S2")
    device = cu.zeros((2, 3), name if ours else f"u{array.itemsize}", stream=stream)
    graph.memcpy(device, host, name="up")
    params = again(graph)["up"].params
    assert params.dst.shape == (2, 3)
    assert params.dst.dtype_name == (name if ours else f"uint{8 * array.itemsize}")
    assert (params.src.dtype == name) == (ours and numpys)
    assert params.src.shape == ((2, 3) if ours and numpys else (array.nbytes,))


def test_edges_that_lead_back_to_older_nodes(graph, again, device, stream):
    x = device.allocate(4, stream=stream)
    second, first = graph.memset(x, 2, name="second"), graph.memset(x, 1, name="first")
    graph.add_edge(first, second)
    loaded = again(graph)
    assert [n.name for n in loaded.nodes] == ["second", "first"]
    run(loaded, stream)
    assert loaded["first"].params.dst.view("u1").numpy(stream=stream).tolist() == [2] * 4


def test_a_number_that_is_a_handle_by_chance_stays_a_number(graph, stream, device, tmp_path):
    """NVIDIA's handles of conditions begin at 1."""
    source = """extern "C" __device__ void
    cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned);
    extern "C" __global__ void put(long long* y, long long n) { *y = n; }
    extern "C" __global__ void go(cudaGraphConditionalHandle c) { cudaGraphSetConditional(c, 1); }
    """
    code = cu.Program(source).compile()
    y = cu.zeros(1, "i8", stream=stream)
    one, condition = cu.LaunchConfig(1, 1), graph.condition()
    go = graph.launch(one, code["go"], condition, name="go")
    go.if_then(condition).body.launch(one, code["put"], y, condition.handle + 0, name="put")
    assert int(go.params.args[0]) == condition.handle
    stream.sync()
    graph.save(tmp_path / "graph")
    with cu.Graph.load(tmp_path / "graph", bind={}) as loaded:
        memory = [r.object for r in loaded.retained if r.operand == "parameter 0"]
        loaded.instantiate().launch(stream)
        stream.sync()
        out = np.zeros(1, "i8")
        memory[0].copy_to(out, stream=stream)
        stream.sync()
        assert out[0] == condition.handle
