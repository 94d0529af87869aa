# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of 8 bytes, which may be memory, a number or a handle: the type in C++ tells."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

ONE = cu.LaunchConfig(grid=1, block=1)
SOURCE = r"""
extern "C" __global__ void pointer(const float* x, long long* out) { *out = x != nullptr; }
extern "C" __global__ void any(void* x, long long* out) { *out = x != nullptr; }
extern "C" __global__ void size(size_t n, long long* out) { *out = n; }
extern "C" __global__ void count(long long n, long long* out) { *out = n; }
extern "C" __global__ void address(unsigned long long n, long long* out) { *out = n != 0; }
extern "C" __global__ void texture(cudaTextureObject_t t, long long* out) {
    *out = tex1Dfetch<float>(t, 1);
}
extern "C" __global__ void surface(cudaSurfaceObject_t s, long long* out) { *out = 1; }
extern "C" __global__ void condition(cudaGraphConditionalHandle h, long long* out) { *out = 1; }
"""


@pytest.fixture(scope="module")
def code(driver):
    return cu.Program(SOURCE).compile()


@pytest.fixture
def given(device, stream):
    """An object of each kind."""
    graph = cu.Graph(device)
    x = cu.arange(4, dtype="f4", stream=stream)
    array = cu.OpaqueArray((4, 4), "f4", stream=stream, surfaces=True)
    made = {
        "memory": x,
        "buffer": x.buffer,
        "pointer": x.buffer.ptr,
        "none": None,
        "number": 8,
        "numpy": np.uint64(8),
        "texture": cu.Texture(x),
        "surface": cu.Surface(array),
        "condition": graph.condition(),
    }
    yield made
    made.clear()
    graph.close()


MEMORY = {"memory", "buffer", "pointer", "none"}
NUMBERS = {"number", "numpy"}
TAKES = {
    "pointer": MEMORY | {"numpy"},
    "any": MEMORY | {"numpy"},
    "size": NUMBERS,
    "count": NUMBERS,
    "address": MEMORY | NUMBERS | {"texture", "surface", "condition"},
    "texture": {"texture", *NUMBERS},
    "surface": {"surface", *NUMBERS},
    "condition": {"condition", *NUMBERS},
}
WORDS = {
    "pointer": "a pointer",
    "any": "a pointer",
    "size": "an integer, and no memory",
    "count": "an integer, and no memory",
    "texture": "a Texture",
    "surface": "a Surface",
    "condition": "a condition of the graph",
}
KINDS = ("memory", "buffer", "pointer", "none", "number", "numpy", "texture", "surface")


@pytest.mark.parametrize("kind", [*KINDS, "condition"])
@pytest.mark.parametrize("name", TAKES)
def test_what_a_parameter_takes(name, kind, code, given, device, stream):
    """In a graph, which packs as a launch does, and runs nothing."""
    out = cu.zeros(1, "i8", stream=stream)
    graph = cu.Graph(device)
    if kind in TAKES[name] or (name in ("pointer", "any") and kind == "number"):
        if kind != "condition":  # which is another graph's
            node = graph.launch(ONE, code[name], given[kind], out)
            node.update(ONE, code[name], given[kind], out)
    else:
        with pytest.raises(TypeError, match=f"parameter 0 of kernel {name} must be {WORDS[name]}"):
            graph.launch(ONE, code[name], given[kind], out)
        assert not graph.nodes
        if kind != "condition":
            with pytest.raises(TypeError, match=f"of kernel {name} must be {WORDS[name]}"):
                cu.launch(stream, ONE, code[name], given[kind], out)
    graph.close()


def test_it_arrives(code, given, device, stream):
    out = cu.zeros(1, "i8", stream=stream)
    for name, kind, want in (
        ("pointer", "memory", 1),
        ("any", "buffer", 1),
        ("any", "none", 0),
        ("size", "number", 8),
        ("count", "numpy", 8),
        ("address", "memory", 1),
        ("texture", "texture", 1),
        ("surface", "surface", 1),
    ):
        cu.launch(stream, ONE, code[name], given[kind], out)
        assert out.numpy(stream=stream)[0] == want, (name, kind)
        with stream.capture() as graph:
            cu.launch(stream, ONE, code[name], given[kind], out)
        out.fill(9, stream=stream)
        with graph.instantiate() as step, graph.instantiate() as again:
            step.launch(stream)
            assert out.numpy(stream=stream)[0] == want, (name, kind)
            again.update(graph)  # from the records
        graph.close()


def test_a_condition_is_for_what_takes_one(code, device, stream):
    graph = cu.Graph(device)
    out = cu.zeros(1, "i8", stream=stream)
    condition = graph.condition(default=1)
    graph.launch(ONE, code["condition"], condition, out)
    graph.launch(ONE, code["address"], condition, out)
    for name in ("pointer", "any", "size", "count", "texture"):
        with pytest.raises(TypeError, match="must be"):
            graph.launch(ONE, code[name], condition, out)
    with pytest.raises(TypeError, match="a condition of the graph"):
        graph.launch(ONE, code["condition"], out, out)


def test_an_update_of_one_argument_refuses_the_condition_of_another_graph(code, device, stream):
    out = cu.zeros(1, "i8", stream=stream)
    match = "is of another graph: a kernel can set the conditions of its own graph alone"
    with cu.Graph(device) as graph, cu.Graph(device) as other:
        own, others = graph.condition(), other.condition()
        graph.launch(ONE, code["condition"], own, out, name="set").if_then(own)
        with graph.instantiate() as step:
            node = step["set"]
            for handle in (own, own, own):  # from the third on, what changes is updated alone
                node.update({0: handle})
                with pytest.raises(ValueError, match=match):
                    node.update({0: others})
                with pytest.raises(ValueError, match=match):
                    node.update(h=others)
            assert node.params.args[0] == own.handle


def test_macros_and_aliases_mean_what_they_say(stream):
    code = cu.Program(
        "#define size_t float*\n"
        'extern "C" __global__ void f(size_t x) {}\n'
        "struct Of { using ptrdiff_t = int*; };\n"
        'extern "C" __global__ void g(Of::ptrdiff_t x) {}\n'
    ).compile()
    x = cu.zeros(4, stream=stream)
    cu.launch(stream, ONE, code["f"], x)
    cu.launch(stream, ONE, code["g"], x)


@pytest.mark.parametrize(
    ("types", "wrong"),
    [
        (("float", "const float*", "float*", "short"), "parameter 3 .* is u32 .* type 'short'"),
        (("float*", "int*", "int*", "int"), r"parameter 0 .* is f32 .* type 'float\*'"),
        (("float", "int", "int*", "int"), "parameter 1 .* is u64 .* type 'int'"),
        (("double", "int*", "int*", "int"), "parameter 0 .* is f32 .* type 'double'"),
        (("float", "int*", "size_t", "bool"), "parameter 3 .* type 'bool'"),
        (("int", "int*", "int*", "int"), "parameter 0 .* is f32 .* type 'int'"),
    ],
)
def test_types_that_a_parameter_cannot_have(types, wrong):
    program = 'extern "C" __global__ void f(float a, const float* x, float* y, int n) {}'
    code = cu.Program(program).compile()
    kernel = code["f"]
    before = kernel.parameter_types
    with pytest.raises(ValueError, match=wrong):
        kernel.parameter_types = types
    with pytest.raises(ValueError, match=wrong):
        code.get_kernel("f", strict_types=types)
    assert kernel.parameter_types == before
    kernel.parameter_types = ("float", "Image*", "cudaTextureObject_t", "Mode")  # of the program


def test_closed_arguments_are_named(kernels, device, stream):
    x, y = (cu.zeros(4, "i4", stream=stream) for _ in range(2))
    open_, shut = x.buffer, y.buffer
    y.close()
    shut.close()
    cases = {
        "parameter 0 of kernel add: tensor is closed": lambda: cu.launch(
            stream, ONE, kernels["add"], y, 1, 4
        ),
        "parameter 0 of kernel add: buffer is closed": lambda: cu.launch(
            stream, ONE, kernels["add"], shut, 1, 4
        ),
        "src: buffer is closed": lambda: open_.copy_from(shut, stream=stream),
        "dst: buffer is closed": lambda: open_.copy_to(shut, stream=stream),
    }
    graph = cu.Graph(device)
    cases["dst: buffer is closed "] = lambda: graph.memcpy(shut, open_)
    cases["src: buffer is closed "] = lambda: graph.memcpy(open_, shut)
    for text, call in cases.items():
        with pytest.raises(cu.ClosedError, match=text.strip()):
            call()


def test_values_of_conditions_are_aligned(device, stream):
    graph = cu.Graph(device)
    memory = device.allocate(16, stream=stream)
    for size in (2, 4, 8):
        with pytest.raises(ValueError, match=f"value of {size} bytes must be aligned"):
            graph.set_condition(graph.condition(), memory[1 : 1 + size])
    graph.set_condition(graph.condition(), memory[1:2])
    assert len(graph.nodes) == 1
