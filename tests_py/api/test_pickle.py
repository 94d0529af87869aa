# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Plain data can be pickled and copied; objects that stand for driver objects cannot."""

from __future__ import annotations

import copy
import pickle

import pytest

import cudago as cu

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "plain",
    [
        cu.LaunchConfig(1, 32),
        cu.LaunchConfig((1, 2, 3), 4, cluster=(1, 2), shared_memory=5, priority=-1),
        cu.LaunchConfig(1, 1, cooperative=True, priority=0),
        cu.PoolOptions(),
        cu.ProgramOptions(),
        cu.Retained("node", "src", b"abcd", 4, "memcpy"),
    ],
    ids=repr,
)
def test_plain_data_is_pickled(plain, protocol):
    again = pickle.loads(pickle.dumps(plain, protocol))
    assert (again, repr(again)) == (plain, repr(plain))
    assert type(again) is type(plain)
    assert copy.deepcopy(plain) == copy.copy(plain) == plain


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_parameter_keeps_size_and_offset(protocol):
    parameter = cu.Parameter("b8[24]", 24, 8)
    for again in (pickle.loads(pickle.dumps(parameter, protocol)), copy.copy(parameter)):
        assert (again, again.size, again.offset) == ("b8[24]", 24, 8)
        assert type(again) is cu.Parameter


def test_a_device_is_its_number(device):
    assert pickle.loads(pickle.dumps(device)) is device
    assert copy.deepcopy({"device": device})["device"] is device


def test_what_the_driver_has_is_not_pickled(device, stream, kernels):
    buffer = device.allocate(4, stream=stream)
    graph = cu.Graph(device)
    node = graph.memset(buffer, 0)
    step = graph.instantiate()
    things = [stream, stream.record(), buffer, buffer.ptr, buffer.view("u1")]
    things += [kernels["copy"], kernels["copy"].attributes, graph, node, step, step[node.name]]
    things += [node.retained[0], device.memory_resource]
    for thing in things:
        for protocol in PROTOCOLS:
            with pytest.raises(TypeError, match=r"^cannot pickle '"):
                pickle.dumps(thing, protocol)


def test_memory_says_what_can_be_sent(device, stream):
    buffer = device.allocate(4, stream=stream)
    for thing in (buffer, buffer.view("u1")):
        for use in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=r"cannot pickle.*ipc_enabled.*numpy"):
                use(thing)


COPIES = pytest.mark.parametrize(
    "again",
    [lambda thing: pickle.loads(pickle.dumps(thing)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
SOURCE = """template <class T, int N> __global__ void fill(T* x, int count) {
    if (threadIdx.x < count) x[threadIdx.x] = N;
}"""


@COPIES
def test_code_is_copied(again, device, stream):
    options = cu.ProgramOptions(name_expressions=["fill<float, 4>"])
    code = cu.Program(SOURCE, options=options).compile()
    made = again(code)
    assert (made.code, made.ptx, made.kind, made.log) == (code.code, code.ptx, code.kind, code.log)
    kernel, before = made["fill<float,4>"], code["fill<float,4>"]
    assert (kernel.parameter_names, kernel.parameter_types) == (("x", "count"), ("T*", "int"))
    assert kernel is not before and repr(kernel) == repr(before)
    code.close()
    x = cu.zeros(3, "f4", stream=stream)
    cu.launch(stream, cu.LaunchConfig(1, 3), kernel, x, 2)
    assert x.numpy(stream=stream).tolist() == [4, 4, 0]
    with pytest.raises(cu.ClosedError):
        again(code)


@pytest.mark.parametrize("state", [b"", b"[]", b"{}", b'{"Kind": "ptx"}', b'{"Kind": 5}'])
def test_damaged_code_is_refused(state, driver):
    make, (_, *facts) = cu.ObjectCode.from_ptx(".version 7.0").__reduce__()
    with pytest.raises(ValueError, match=r"state must|must not be empty|kind must"):
        make(state, *facts)


def test_a_copy_of_attributes_is_of_the_same_kernel(kernels):
    attributes = kernels["copy"].attributes
    assert repr(copy.copy(attributes)) == repr(attributes)


@COPIES
@pytest.mark.parametrize(
    "make",
    [
        lambda: cu.elementwise("float x", "float z", "z = x + 1"),
        lambda: cu.reduce("float x", "float z", "a + b", map="x + 1"),
    ],
    ids=["elementwise", "reduce"],
)
def test_kernels_of_expressions_are_compiled_anew(make, again, stream):
    x, kernel = cu.full(1, 2, "f4", stream=stream), make()
    for _ in range(2):  # before and after it has a kernel
        made = again(kernel)
        assert repr(made) == repr(kernel)
        assert made(x, stream=stream).item(stream=stream) == 3
        assert kernel(x, stream=stream).item(stream=stream) == 3
