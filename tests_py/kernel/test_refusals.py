# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Refusals say why, and nothing is taken for a default because it is false."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

EMPTY = 'extern "C" __global__ void k() {}'


@pytest.mark.parametrize(
    "call",
    [
        lambda: cu.Graph(0),
        lambda: cu.Program(EMPTY).compile(device=0),
        lambda: cu.Program(EMPTY).compile()["k"].info(device=0),
        lambda: cu.Program(EMPTY).compile()["k"].max_active_blocks(32, device=0),
        lambda: cu.Program(EMPTY).compile().get_kernel("k", device=0),
        lambda: cu.Program("__device__ int v;").compile().get_global("v", device=0),
        lambda: cu.Stream.from_handle(1, device=0),
        lambda: cu.LaunchConfig.for_elements(5, cu.Program(EMPTY).compile()["k"], device=0),
        lambda: cu.Linker(cu.Program(EMPTY).compile()).link(device=0),
    ],
)
def test_a_number_is_no_device(call, device):
    with pytest.raises(TypeError, match=r"device must be a Device, not <class 'int'>"):
        call()


@pytest.mark.parametrize("options", [{}, {"arch": "sm_90"}, [], "", 0])
def test_options_are_of_their_class(options):
    with pytest.raises(TypeError, match="options must be ProgramOptions, not"):
        cu.Program(EMPTY, options=options)


@pytest.mark.parametrize("number", [np.int64(0), np.uint8(0), np.array(0)])
def test_a_device_by_any_integer(number, device):
    assert cu.Device(number) is device


@pytest.mark.parametrize("number", [True, False, "0", 0.0, np.float64(0), [0], np.zeros(2, "i4")])
def test_what_is_no_integer_is_no_device(number, device):
    with pytest.raises(TypeError, match="int"):
        cu.Device(number)


def test_ctrl_c_while_a_launch_is_refused(kernels, stream, monkeypatch):
    def names(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cu.Kernel, "parameter_names", property(names))
    with pytest.raises(KeyboardInterrupt):
        cu.launch(stream, cu.LaunchConfig(1, 1), kernels["copy"])


class Hostile:
    """Two numbers, whose code makes nothing known of the parameters."""

    def __init__(self, kernel, memory):
        self.kernel, self.memory = kernel, memory

    @property
    def __cuda_array_interface__(self):
        data = (self.memory.handle, False)
        return {"shape": (2,), "typestr": "<f4", "data": data, "version": 3}

    @property
    def dtype(self):
        self.kernel.parameter_types = ()
        return "float32"


def test_an_argument_that_changes_what_is_known_of_the_parameters(stream, device):
    source = 'extern "C" __global__ void f(double* x) { *x = 1; }'
    kernel = cu.Program(source).compile()["f"]
    match = r"points to float64 by the kernel's source, got .* float32"
    with device.allocate(8, stream=stream) as memory, pytest.raises(TypeError, match=match):
        cu.launch(stream, cu.LaunchConfig(1, 1), kernel, Hostile(kernel, memory))


def test_a_type_that_is_forgotten_while_an_error_asks_for_it(stream, device, monkeypatch):
    """Another thread may do so."""
    kernel = cu.Program('extern "C" __global__ void f(long long n) {}').compile()["f"]
    types = cu.Kernel.parameter_types

    def forgotten(self):
        types.fset(self, ())
        return types.fget(self)

    monkeypatch.setattr(cu.Kernel, "parameter_types", property(forgotten))
    match = r"parameter 0 of kernel f must be an integer, and no memory, got"
    with device.allocate(8, stream=stream) as memory, pytest.raises(TypeError, match=match):
        cu.launch(stream, cu.LaunchConfig(1, 1), kernel, memory)


def test_a_type_that_is_no_text(stream, device, monkeypatch):
    kernel = cu.Program('extern "C" __global__ void f(long long n) {}').compile()["f"]
    monkeypatch.setattr(cu.Kernel, "parameter_types", property(lambda self: (7,)))
    with (
        device.allocate(8, stream=stream) as memory,
        pytest.raises(TypeError, match=r"no memory \(7 in its source\)"),
    ):
        cu.launch(stream, cu.LaunchConfig(1, 1), kernel, memory)


CLUSTER = cu.LaunchConfig(2, 1, cluster=2)


def test_clusters_say_what_they_need(kernels, stream, device):
    if device.properties.cluster_launch:
        cu.launch(stream, CLUSTER, kernels["nothing"])
        with pytest.raises(ValueError, match="multiple of the cluster in x, got 3 blocks"):
            cu.launch(stream, cu.LaunchConfig(3, 1, cluster=2), kernels["nothing"])
        return
    with pytest.raises(cu.UnsupportedError, match=r"clusters need compute capability 9\.0, .* has"):
        cu.launch(stream, CLUSTER, kernels["nothing"])


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_clusters_of_a_new_simulated_device(script, driver):
    run = script(
        """
        import cudago as cu
        s = cu.Device().create_stream()
        text = ".version 7.0 .target sm_50 .address_size 64 .entry k() { ret; }"
        k = cu.ObjectCode.from_ptx(text)["k"]
        try:
            cu.launch(s, cu.LaunchConfig(2, 1, cluster=2), k)
        except cu.UnsupportedError as e:
            assert "does not launch clusters" in str(e), e
        else:
            raise AssertionError
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="cc=9.0",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_clone_of_a_conditional_graph_says_why_not(driver, device):
    graph = cu.Graph()
    graph.while_loop(graph.condition(0))
    with pytest.raises(cu.UnsupportedError, match="conditional nodes, with which no graph can be"):
        graph.clone()
    graph.close()


def test_a_capture_of_the_default_stream_says_why_not(device):
    say = "the legacy default stream cannot be captured: capture a stream that was created"
    with pytest.raises(cu.CUDAError, match=say), device.default_stream.capture():
        pass


@pytest.mark.parametrize("view", [lambda t: t.T, lambda t: t[:, 1], lambda t: t[::2]])
def test_strides_are_refused_everywhere(view, device, stream, kernels):
    t = view(cu.zeros((4, 4), "i4", stream=stream))
    config = cu.LaunchConfig(1, 1)
    graph = cu.Graph()
    ways = (
        lambda: cu.launch(stream, config, kernels["add"], t, 1, 1),
        lambda: kernels["add"][config, stream](t, 1, 1),
        lambda: graph.launch(config, kernels["add"], t, 1, 1),
    )
    for way in ways:
        with pytest.raises(BufferError, match="gaps between its elements or is not in row-major"):
            way()
    with stream.capture() as captured, pytest.raises(BufferError, match="gaps"):
        ways[0]()
    assert graph.nodes == captured.nodes == ()


def test_errors_name_the_parameter(device, stream, kernels):
    """Also of what is found deep below, and of numbers that Python does not write."""
    config = cu.LaunchConfig(1, 1)
    source = 'extern "C" __global__ void k(float* y, float a, double b, int n) {}'
    kernel = cu.Program(source).compile()["k"]
    y = cu.zeros((4, 4), "f4", stream=stream)
    for args, error, text in (
        ((y.T, 1, 1, 1), BufferError, r"parameter 0 of kernel k: the tensor has gaps .*contiguous"),
        ((y, 10**400, 1, 1), OverflowError, "parameter 1 of kernel k is a float of 32 bits, 1000"),
        ((y, 1, 10**400, 1), OverflowError, "parameter 2 of kernel k is a float of 64 bits, 1000"),
        ((y, 1, 10**5000, 1), OverflowError, "float of 64 bits, a number of thousands of digits"),
        ((y, 1, 1, 10**5000), OverflowError, "integer of 32 bits, a number of thousands of"),
        ((y, 1e300, 1, 1), OverflowError, r"parameter 1 .* 1e\+300 does not fit"),
    ):
        for launch in (lambda *a: cu.launch(stream, *a), cu.Graph().launch):
            with pytest.raises(error, match=text):
                launch(config, kernel, *args)
