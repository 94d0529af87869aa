# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Variables of loaded code as Buffers."""

from __future__ import annotations

import re

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SOURCE = """
__constant__ float weights[4];
__device__ int hits;
namespace deep { __device__ double sum[2]; }
extern "C" __global__ void use(float* out) {
    out[threadIdx.x] = weights[threadIdx.x];
    deep::sum[threadIdx.x & 1] += 1;
    atomicAdd(&hits, 1);
}
extern "C" __global__ void slow(int n) {
    for (int i = 0; i < n; i++) atomicAdd(&hits, 1);
}
"""

CONSTANT = """
__constant__ int k[4];
__device__ int d[4];
struct P { int* at; };
extern "C" __global__ void put(int v, int* to) { *to = v; }
extern "C" __global__ void get(const int* from, int* to) { *to = *from; }
extern "C" __global__ void through(P p) { *p.at = 3; }
"""


def compiled() -> cu.ObjectCode:
    """Return code with variables of its own: each test finds them as they were compiled."""
    options = cu.ProgramOptions(name_expressions=["&deep::sum"])
    return cu.Program(SOURCE, options=options).compile()


def test_a_kernel_sees_what_is_written_and_the_other_way_round(stream):
    code = compiled()
    y = cu.zeros(4, "f4", stream=stream)
    weights = code["weights"]
    assert isinstance(weights, cu.Buffer)
    assert (weights.size, weights.kind, weights.device) == (16, "variable", stream.device)
    weights.copy_from(np.arange(4, dtype="f4"), stream=stream)
    cu.launch(stream, cu.LaunchConfig(1, 4), code["use"], y)
    assert y.numpy(stream=stream).tolist() == [0, 1, 2, 3]
    assert code["hits"].view("i4").numpy(stream=stream) == 4
    weights[4:8].fill(0, stream=stream)
    assert weights.view("f4").numpy(stream=stream).tolist() == [0, 0, 2, 3]


def test_every_lookup_is_the_same_memory(device):
    code = compiled()
    assert code["weights"] == code.get_global("weights") == code["weights"]
    assert hash(code["weights"]) == hash(code["weights"])
    assert code["weights"] != code["hits"]
    assert code["weights"][:4] != code["weights"]
    assert isinstance(code["use"], cu.Kernel)


def test_a_name_expression_finds_what_is_mangled(stream):
    code = compiled()
    cu.launch(stream, cu.LaunchConfig(1, 2), code["use"], cu.zeros(2, "f4", stream=stream))
    assert code["&deep::sum"].view("f8").numpy(stream=stream).tolist() == [1, 1]


@pytest.mark.parametrize("view", [lambda b: b, lambda b: b[4:], lambda b: b.view("f4")])
def test_it_keeps_the_code_loaded(view, device, stream):
    code = cu.Program(SOURCE).compile()
    code["weights"].copy_from(np.full(4, 3, "f4"), stream=stream)
    kept = view(code["weights"])
    del code
    out = np.zeros(kept.nbytes // 4, "f4")
    tensor = kept if isinstance(kept, cu.Tensor) else kept.view("f4")
    out[:] = tensor.numpy(stream=stream)
    assert (out == 3).all()


def test_a_graph_keeps_the_code_loaded(stream):
    code = compiled()
    y = cu.zeros(4, "f4", stream=stream)
    graph = cu.Graph()
    up = graph.memcpy(code["weights"], np.full(4, 7, "f4"))
    up.launch(cu.LaunchConfig(1, 4), code["use"], y)
    with stream.capture() as captured:
        y.buffer.copy_from(code["weights"], stream=stream)
    del code, up
    graph.instantiate().launch(stream)
    assert (y.numpy(stream=stream) == 7).all()
    y.buffer.fill(0, stream=stream)
    captured.instantiate().launch(stream)
    assert (y.numpy(stream=stream) == 7).all()


def test_it_is_a_kernel_argument(stream):
    code = cu.Program(CONSTANT).compile()
    run = code["get"][1, 1, stream]
    code["k"].copy_from(np.arange(4, dtype="i4"), stream=stream)
    run(code["k"][8:], code["d"][4:])
    assert code["d"].view("i4").numpy(stream=stream).tolist() == [0, 2, 0, 0]


@pytest.mark.parametrize("lookup", ["brackets", "kernel", "variable"])
def test_unknown_names_say_what_there_is(lookup, device):
    code = compiled()
    find = {
        "brackets": code.__getitem__,
        "kernel": code.get_kernel,
        "variable": code.get_global,
    }[lookup]
    noun = "variable" if lookup == "variable" else "kernel"
    there = r"there are slow, use as kernels, and weights, hits, &deep::sum as variables"
    with pytest.raises(cu.KernelNotFoundError, match=f'no {noun} "weight"; {there}') as caught:
        find("weight")
    assert isinstance(caught.value, KeyError)
    wrong = {"brackets": "weigths", "kernel": "hits", "variable": "use"}[lookup]
    with pytest.raises(cu.KernelNotFoundError, match=re.escape(f'"{wrong}"')):
        find(wrong)


@pytest.mark.parametrize("name", [1, None, b"weights"])
def test_names_are_strings(name, device):
    code = compiled()
    for find in (code.__getitem__, code.get_global):
        with pytest.raises(TypeError, match="name must be a str"):
            find(name)


def test_a_closed_buffer_is_closed_for_its_holder_only(stream):
    code = compiled()
    weights = code["weights"]
    weights.close()
    with pytest.raises(cu.ClosedError):
        weights.copy_from(bytes(16), stream=stream)
    code["weights"].copy_from(bytes(16), stream=stream)
    with pytest.raises(TypeError, match="memory that a graph allocates"):
        code["weights"].free(stream=stream)
    with pytest.raises(TypeError, match="cannot grow"):
        code["weights"].grow(32)


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_an_export_waits_for_kernels_without_it_as_an_argument(stream):
    code = compiled()
    n = 20_000
    cu.launch(stream, cu.LaunchConfig(1, 32), code["slow"], n)
    assert int(np.from_dlpack(code["hits"].view("i4"))[0]) == 32 * n


TWO = """
import numpy as np
import cudago as cu

code = cu.Program("__device__ int v = 5;").compile("ptx")
a, b = (code.get_global("v", device=d) for d in cu.Device.all())
assert [x.device.ordinal for x in (a, b)] == [0, 1] and a != b
with b.device.create_stream() as s:
    b.copy_from(np.array([7], "i4"), stream=s)
    assert b.view("i4").numpy(stream=s) == 7
with a.device.create_stream() as s:
    assert a.view("i4").numpy(stream=s) == 5
"""

RESET = """
import numpy as np
import cudago as cu

device = cu.Device()
code = cu.Program("__device__ int v = 5;").compile("ptx")
old = code["v"]
device.reset()
assert old.is_closed
with device.create_stream() as s:
    try:
        old.copy_from(bytes(4), stream=s)
    except cu.ClosedError as e:
        assert "reset" in str(e), e
    else:
        raise AssertionError
    assert code["v"].view("i4").numpy(stream=s) == 5
    assert code["v"] != old
"""

FAILS = """
import cudago as cu
from cudago import _core

code = cu.Program("__device__ int v = 5;").compile("ptx")
before = cu.live_objects()
for call in ("cuModuleGetGlobal", "cuModuleLoadDataEx"):
    _core._fail_next(call, 1, 999)
    try:
        code.get_global("v")
    except cu.CUDAError as e:
        assert e.operation == call, e
    else:
        raise AssertionError(call)
    if call == "cuModuleGetGlobal":
        code = cu.Program("__device__ int v = 5;").compile("ptx")
        cu.testing.settle()
assert cu.live_objects() == before
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
@pytest.mark.parametrize(
    ("source", "settings"), [(TWO, "devices=2"), (RESET, ""), (FAILS, "faults=0")]
)
def test_in_a_process_of_its_own(source, settings, script, driver):
    run = script(source, CUDAGO_DRIVER="sim", CUDAGO_SIM=settings)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_kernels_do_not_change_constants(stream):
    code = cu.Program(CONSTANT).compile()
    one, k, d = cu.LaunchConfig(1, 1), code["k"], code["d"]
    k.view("i4").copy_from([1, 2, 3, 4], stream=stream)
    cu.launch(stream, one, code["get"], k[4:], d)
    cu.launch(stream, one, code["put"], 9, d[4:])
    assert d.view("i4").numpy(stream=stream).tolist() == [2, 9, 0, 0]
    text = "parameter 1 of kernel put is a variable in constant memory"
    g = cu.Graph()
    node = g.launch(one, code["put"], 9, d)
    e = g.instantiate()
    for memory in (k, k[4:], k.ptr, k.view("i4")):
        for call in (
            lambda m: cu.launch(stream, one, code["put"], 9, m),
            lambda m: g.launch(one, code["put"], 9, m),
            lambda m: code["put"].bind(one, 9, m),
            lambda m: e[node.name].update({1: m}),
        ):
            with pytest.raises(TypeError, match=text):
                call(memory)
        with pytest.raises(TypeError, match="constant memory"), stream.capture():
            cu.launch(stream, one, code["put"], 9, memory)
    assert k.view("i4").numpy(stream=stream).tolist() == [1, 2, 3, 4]


def test_nor_through_a_struct(stream):
    import ctypes
    from dataclasses import make_dataclass

    code = cu.Program(CONSTANT).compile()
    pointer = make_dataclass("P", [("at", ctypes.c_void_p)])
    cu.launch(stream, cu.LaunchConfig(1, 1), code["through"], pointer(code["d"]))
    with pytest.raises(TypeError, match="parameter 0 of kernel through is a variable in constant"):
        cu.launch(stream, cu.LaunchConfig(1, 1), code["through"], pointer(code["k"]))
