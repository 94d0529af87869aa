# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What nodes say that they do, and updates of a part of it."""

from __future__ import annotations

import weakref

import pytest

import cudago as cu
from cudago.testing import settle

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")

NAMED_PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value)
{
    .reg .u32 %r<3>;
    .reg .u64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""


# --- what nodes say -------------------------------------------------------------------------------


def test_of_a_kernel(graph, a, kernels, stream):
    node = graph.launch(CONFIG, kernels["add"], a, 3, np.int32(N), name="add")
    with stream.capture() as captured:
        cu.launch(stream, CONFIG, kernels["add"], a, 3, np.int32(N))
    step = graph.instantiate()
    for of in (node, step["add"], captured.nodes[0]):
        params = of.params
        assert isinstance(params, cu.KernelNodeParams)
        assert (params.config, params.kernel) == (CONFIG, kernels["add"])
        assert params.args == (a, 3, N)
        assert params.args[0] is a
        assert params.arguments is params.args
        assert repr(params).startswith("KernelNodeParams(config=LaunchConfig(grid=(1, 1, 1)")
        assert "kernel=<cudago.Kernel add(u64, u32, u32)>" in repr(params)
    with pytest.raises(AttributeError):
        params.config = None
    step.close()
    captured.close()


def test_values_are_those_that_were_given(graph, a, device):
    source = """struct Pair { int a, b; };
    extern "C" __global__ void f(const int* p, float x, double y, Pair z, unsigned char c) {}"""
    kernel = cu.Program(source, "c++").compile()["f"]
    pair = np.zeros((), "i4,i4")[()]
    pair["f1"] = 7

    class Index:
        def __index__(self):
            return 200

    node = graph.launch(CONFIG, kernel, None, np.float32(0.1), 0.1, pair, Index())
    given = node.params.args
    assert given == (None, float(np.float32(0.1)), 0.1, pair.tobytes(), 200)
    graph.launch(CONFIG, kernel, *given)
    small, large = graph.launch(CONFIG, kernel, a, 1, -2, bytes(8), 255), a.ptr + 4
    assert small.params.args == (a, 1, -2, bytes(8), 255)
    assert graph.launch(CONFIG, kernel, large, 1, 2, bytes(8), 1).params.args[0] is large


def test_of_each_other_kind(graph, a, b, device):
    event, func = device.create_event(), lambda: None
    source = bytes(4 * N)
    up = graph.memcpy(a, source)
    assert (up.params.dst, up.params.src, up.params.nbytes) == (a, source, 4 * N)
    assert len(repr(up.params)) < 250
    for value, told in (
        (7, 7),
        (b"\7", 7),
        (np.uint16(0x1234), b"\x34\x12"),
        (b"\1\0\0\0", b"\1\0\0\0"),
    ):
        params = graph.memset(a, value).params
        assert (params.dst, params.value, params.nbytes) == (a, told, 4 * N)
        assert graph.memset(a, params.value).params.value == told
    assert graph.memset(a, np.int32(1)).params.value == b"\1\0\0\0"
    for value in (5, 0, 0x01010101):
        params = graph.memset(a.view("i4"), value).params
        assert params.value == value.to_bytes(4, "little")
        assert graph.memset(params.dst, params.value).params.value == params.value
    memory = cu.PinnedMemoryResource().allocate(4 * N)
    pinned = np.frombuffer(memory, "i4")  # it has a type, and is no tensor
    for value in (5, 0, 0x01010101):
        params = graph.memset(pinned, value).params
        assert params.value == value.to_bytes(4, "little")
        assert graph.memset(params.dst, params.value).params.value == params.value
    assert graph.callback(func).params.func is func
    assert graph.record(event).params.event is event
    assert graph.wait(event).params.event is event
    assert graph.join(up).params is None
    step = graph.instantiate()
    assert [type(n.params) for n in step.nodes] == [type(n.params) for n in graph.nodes]
    step.close()
    event.close()


def test_of_graphs_inside(graph, a, device):
    with cu.Graph(device) as inner:
        inner.memset(a, 1, name="one").memset(a, 2, name="two")
        node = graph.embed(inner, name="inner")
    view = node.params.graph
    assert [n.name for n in view.nodes] == ["one", "two"]
    assert view["two"].params.value == 2
    assert view["two"].dependencies == (view["one"],)
    assert view == node.params.graph
    with pytest.raises(ValueError, match="embedded in another and cannot be changed"):
        view.memset(a, 3)
    with pytest.raises(ValueError, match="cannot be instantiated"):
        view.instantiate()
    with pytest.raises(ValueError, match="cannot be closed"):
        view.close()
    step = graph.instantiate()
    assert step["inner"].params is None
    step.close()
    condition = graph.condition(0)
    params = graph.while_loop(condition).params
    assert (params.type, len(params.bodies)) == ("while", 1)
    graph.close()
    with pytest.raises(cu.ClosedError):
        _ = view.nodes


def test_of_memory(device, stream):
    with cu.Graph(device) as graph:
        own = graph.allocate(64)
        free = own.free(own.buffer)
        assert (own.params.nbytes, own.params.address) == (64, own.buffer.handle)
        assert free.params.buffer.handle == own.buffer.handle


def test_of_a_closed_graph(graph, a):
    node = graph.memset(a, 1)
    step = graph.instantiate()
    graph.close()
    with pytest.raises(cu.ClosedError):
        _ = node.params
    inner = step.nodes[0]
    assert inner.params.value == 1
    step.close()
    with pytest.raises(cu.ClosedError):
        _ = inner.params


def test_parameters_keep_objects_and_no_memory(graph, device, stream, kernels):
    """What was asked for is a reference like any other, and neither an export nor an allocation."""
    host, buffer = bytearray(64), device.allocate(64, stream=stream)
    params = graph.memcpy(buffer, host).params
    watch = weakref.ref(buffer)
    with pytest.raises(BufferError):
        host.append(0)
    graph.close()
    settle()
    host.append(0)
    buffer.close()
    assert params.dst.is_closed
    del buffer, params
    settle()
    assert watch() is None


# --- updates of a part ----------------------------------------------------------------------------


def test_one_argument(graph, a, b, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="add")
    step = graph.instantiate()
    graph.close()
    assert kernels["add"].parameter_names == ("y", "value", "n")
    for update, added in (
        ({"value": 10}, 10),
        ({"value": np.int32(20)}, 20),
        ({}, 20),
    ):
        if update:
            step["add"].update(**update)
        step.launch(stream)
        assert numbers(a, stream) == added
        a.fill(0, stream=stream)
    step["add"].update({1: 30})
    step["add"].update(y=b)
    step.launch(stream)
    assert (numbers(a, stream), numbers(b, stream)) == (0, 30)
    assert step["add"].params.args == (b, 30, N)
    step.close()


def test_configuration_and_kernel_alone(graph, a, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 5, N, name="k")
    step = graph.instantiate()
    half = cu.LaunchConfig(grid=1, block=N // 2)
    step["k"].update(half)
    step.launch(stream)
    assert numbers(a, stream) == [5] * (N // 2) + [0] * (N // 2)
    step["k"].update(kernel=kernels["times"], config=CONFIG)
    step.launch(stream)
    assert numbers(a, stream) == [25] * (N // 2) + [0] * (N // 2)
    step["k"].update(kernels["add"], {1: 1})
    step.launch(stream)
    assert numbers(a, stream) == [26] * (N // 2) + [1] * (N // 2)
    assert step["k"].params.kernel is kernels["add"]
    step.close()


def test_operands_that_stay_may_be_closed(graph, device, stream, kernels):
    """An update of one argument needs the others' memory, and not their wrappers."""
    with device.allocate(4 * N, stream=stream) as out:
        work = device.allocate(4 * N, stream=stream)
        work.fill(0, stream=stream)
        graph.launch(CONFIG, kernels["add"], work, 1, N, name="add").memcpy(out, work)
        step = graph.instantiate()
        graph.close()
        work.close()
        step["add"].update(value=7)
        step.launch(stream)
        assert numbers(out, stream) == 7
        before = [(r.operand, r.nbytes) for r in step.retained]
        step["add"].update(value=8)
        assert [(r.operand, r.nbytes) for r in step.retained] == before
        step.close()


def test_only_replaced_operands_are_released(graph, device, stream, kernels):
    watches = []

    def make():
        buffer = device.allocate(4 * N, stream=stream)
        watches.append(weakref.ref(buffer))
        return buffer

    graph.launch(CONFIG, kernels["copy"], make(), make(), N, name="copy")
    step = graph.instantiate()
    graph.close()
    step.launch(stream)
    step["copy"].update(y=make())
    stream.sync()
    settle()
    assert [w() is not None for w in watches] == [True, False, True]
    step["copy"].update(config=CONFIG)
    step.launch(stream)
    stream.sync()
    settle()
    assert [w() is not None for w in watches] == [True, False, True]
    step.close()
    settle()
    assert [w() is not None for w in watches] == [False, False, False]


def test_host_memory_of_an_argument_that_stays(device, stream, kernels):
    if cu.driver_name() != "sim":
        pytest.skip("needs a device that reads pageable memory")
    host = np.zeros(N, "i4")
    with cu.Graph(device) as graph:
        graph.launch(CONFIG, kernels["add"], host, 1, N, name="add")
        step = graph.instantiate()
    step["add"].update(value=4)
    step.launch(stream)
    stream.sync()
    assert host.tolist() == [4] * N
    step.close()


def test_invalid_changes(graph, a, b, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="add").callback(print, name="say")
    step = graph.instantiate()
    add = step["add"]
    for update, error, message in (
        (lambda: add.update(), TypeError, "needs what is to change"),
        (lambda: add.update(amount=1), TypeError, "has no parameter 'amount'; it has y, value, n"),
        (lambda: add.update({3: 1}), TypeError, "has 3 parameters from 0, and no 3"),
        (lambda: add.update({-1: 1}), TypeError, "no -1"),
        (lambda: add.update({"value": 1}), TypeError, "by position, got 'value'"),
        (lambda: add.update(3), TypeError, "takes config, kernel, .*not int"),
        (lambda: add.update(value=2.5), TypeError, "parameter 1 of kernel add must be an integer"),
        (lambda: add.update(y=3.5), TypeError, "parameter 0 of kernel add"),
        (lambda: add.update(kernel=kernels["saxpy"]), TypeError, "takes 4 argument"),
        (lambda: add.update(config=3), TypeError, "config must be a LaunchConfig"),
        (lambda: add.update(config=cu.LaunchConfig(1, 4096)), ValueError, "block must be at most"),
        (lambda: step["say"].update(a=1), TypeError, "host node takes func"),
    ):
        with pytest.raises(error, match=message):
            update()
        assert add.params.args == (a, 1, N)
    step.launch(stream)
    stream.sync()
    b.close()
    with pytest.raises(cu.ClosedError):
        add.update(y=b)
    step.close()
    with pytest.raises(cu.ClosedError):
        add.update(value=1)


def test_arguments_are_not_called_args(graph, a, kernels):
    node = graph.launch(CONFIG, kernels["add"], a, 1, N)
    instead = r"to replace all arguments, call update\(config, kernel, \*args\)$"
    with pytest.raises(TypeError, match="has no parameter 'args'; it has y, value, n; " + instead):
        node.update(args=(a, 2, N))
    with pytest.raises(TypeError, match="nothing has no parameters, .*; " + instead):
        node.update(kernel=kernels["nothing"], args=())
    node.update(CONFIG, kernels["nothing"])
    with pytest.raises(TypeError, match=r"nothing has no parameters, and so none called value$"):
        node.update(value=1)


def test_names_from_ptx(graph, a, stream):
    kernel = cu.ObjectCode.from_ptx(NAMED_PTX)["fill"]
    assert kernel.parameter_names == ("out", "value")
    graph.launch(CONFIG, kernel, a, 1, name="fill")
    with graph.instantiate() as step:
        step["fill"].update(value=6)
        step.launch(stream)
        assert numbers(a, stream) == 6


F = "__global__ void f"
FOUND = [
    (F + "(const float* __restrict__ x, int n) {}", "f", ("x", "n")),
    ("__global__ void __launch_bounds__(256) f(float (&x)[3]) {}", "f", ()),
    (F + "(int, int n) {}", "f", ()),
    (F + "(int a, /* the , second */ int b) {} // f(int c, int d)", "f", ("a", "b")),
    ("template <class A, class B> struct P {};" + F + "(P<int, int> p, int n=3) {}", "f",
     ("p", "n")),
    ("namespace s { template <class T> __global__ void f(T* x[2], T y) {} }", "s::f<int>",
     ("x", "y")),
    (F + "(int a, int b) {} namespace s { __global__ void f(int c, int d) {} }", "f", ()),
    (F + "(int a, int b) {} namespace s { __global__ void f(int b) {} }", "f", ("a", "b")),
    ("__global__ void g(int a, int b) {}", "f", ()),
    (F + "(\n    int a,\n    int b\n) {}", "f", ("a", "b")),
]  # fmt: skip


@pytest.mark.parametrize(("source", "name", "names"), FOUND)
def test_names_from_cpp(source, name, names):
    from cudago._kernel.parameter_names import parameter_names

    assert parameter_names("c++", source, name, 2) == names
