# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments by name."""

from __future__ import annotations

import gc

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

CONFIG = cu.LaunchConfig(1, 8)
WAYS = ("launch", "brackets", "bind", "capture")


def run(way: str, kernel: cu.Kernel, stream: cu.Stream, /, *args, **kwargs) -> None:
    if way == "launch":
        cu.launch(stream, CONFIG, kernel, *args, **kwargs)
    elif way == "brackets":
        kernel[CONFIG, stream](*args, **kwargs)
    elif way == "bind":
        with kernel.bind(CONFIG, *args, **kwargs) as bound:
            bound(stream)
    else:
        with stream.capture() as graph:
            cu.launch(stream, CONFIG, kernel, *args, **kwargs)
        graph.instantiate().launch(stream)


@pytest.mark.parametrize("way", WAYS)
def test_names(way, kernels, stream):
    x = cu.arange(8, dtype="f4", stream=stream)
    y = cu.zeros(8, "f4", stream=stream)
    run(way, kernels["saxpy"], stream, 2.0, x, y=y, n=8)
    run(way, kernels["saxpy"], stream, n=4, y=y, x=x, a=1.0)
    run(way, kernels["saxpy"], stream, 1.0, n=0, y=y, x=x)
    want = 2 * np.arange(8) + np.where(np.arange(8) < 4, np.arange(8), 0)
    assert (y.numpy(stream=stream) == want).all()


@pytest.mark.parametrize("way", WAYS)
def test_refusals(way, kernels, stream):
    kernel = kernels["saxpy"]
    x = cu.zeros(8, "f4", stream=stream)
    for args, kwargs, text in [
        ((2.0, x, x), {"m": 8}, r"kernel saxpy has no parameter 'm'; it has a, x, y, n"),
        ((2.0, x, x, 8), {"n": 8}, r"parameter 3 of kernel saxpy, 'n', is given by position and"),
        ((2.0, x), {"n": 8}, r"kernel saxpy needs y too; its parameters are a, x, y, n"),
        ((), {"n": 8}, r"kernel saxpy needs a, x, y too"),
        ((2.0, x, x, 8, 9), {"a": 1}, r"'a', is given by position and by name"),
        ((2.0, x, x), {}, r"kernel saxpy takes 4 argument\(s\), got 3; they are a, x, y, n"),
        ((2.0, x), {"y": x, "n": 1.5}, r"parameter 3 of kernel saxpy must be an integer u32"),
    ]:
        with pytest.raises(TypeError, match=text):
            run(way, kernel, stream, *args, **kwargs)
    assert not stream.is_capturing


def test_no_names_at_all(kernels, stream):
    unnamed = cu.ObjectCode.from_ptx(kernels.ptx)["nothing"]
    for way in WAYS:
        run(way, unnamed, stream, *(), **{})


def test_unknown_names(kernels, stream):
    unnamed = cu.ObjectCode.from_ptx(kernels.ptx)["saxpy"]
    x = cu.zeros(8, "f4", stream=stream)
    with pytest.raises(TypeError, match="names of the parameters of kernel saxpy are not known: "):
        cu.launch(stream, CONFIG, unnamed, 2.0, x, y=x, n=8)
    with pytest.raises(TypeError, match=r"takes 4 argument\(s\), got 1$"):
        cu.launch(stream, CONFIG, unnamed, 2.0)


def test_a_kernel_without_parameters_has_no_names(kernels, stream):
    for nothing in (kernels["nothing"], cu.ObjectCode.from_ptx(kernels.ptx)["nothing"]):
        with pytest.raises(TypeError, match=r"nothing has no parameters, and so none called x, y$"):
            cu.launch(stream, CONFIG, nothing, x=1, y=2)


def test_stream_config_and_kernel_have_no_names(kernels, stream):
    with pytest.raises(TypeError, match=r"launch\(stream, config, kernel, \*args\)"):
        cu.launch(stream, CONFIG, kernel=kernels["nothing"])
    with pytest.raises(TypeError, match="has no parameters, and so none called stream"):
        cu.launch(stream, CONFIG, kernels["nothing"], stream=stream)


def test_parameters_may_be_called_as_ours(driver, stream):
    source = 'extern "C" __global__ void f(int* self, int config, int kernel) { *self = config; }'
    kernel = cu.Program(source).compile()["f"]
    out = cu.zeros(1, "i4", stream=stream)
    for value, way in enumerate(WAYS):
        run(way, kernel, stream, self=out, config=value, kernel=1)
        assert out.numpy(stream=stream)[0] == value


class Closes:
    """A number that closes a buffer when it is asked for its value."""

    def __init__(self, buffer: cu.Buffer) -> None:
        self.buffer = buffer

    def __index__(self) -> int:
        self.buffer.close()
        return 8


def test_a_conversion_that_closes(kernels, device, stream):
    x = device.allocate(32, stream=stream)
    with pytest.raises(cu.ClosedError):
        cu.launch(stream, CONFIG, kernels["copy"], n=Closes(x), x=x, y=x)
    gc.collect()


@pytest.mark.parametrize("way", WAYS)
def test_errors_name_the_parameter(way, kernels, stream):
    x, gone = cu.zeros(8, stream=stream), cu.zeros(8, stream=stream)
    gone.close()
    for kind, name, args in (
        (TypeError, "parameter 3 is n", (2.0, x, x, 3.5)),
        (TypeError, "parameter 0 is a", ("2", x, x, 8)),
        (TypeError, "parameter 1 is x", (2.0, True, x, 8)),
        (cu.ClosedError, "parameter 2 is y", (2.0, x, gone, 8)),
    ):
        with pytest.raises(kind, match=rf"^parameter \d of kernel saxpy.* \({name}\)$") as refused:
            run(way, kernels["saxpy"], stream, *args)
        assert str(refused.value).count("parameter") == 2
    stream.sync()


def test_errors_of_an_update_name_the_parameter(kernels, stream):
    x, gone = cu.zeros(8, stream=stream), cu.zeros(8, stream=stream)
    gone.close()
    with cu.Graph() as graph:
        graph.launch(CONFIG, kernels["saxpy"], 2.0, x, x, 8, name="saxpy")
        with graph.instantiate() as step:
            with pytest.raises(TypeError, match=r"\(parameter 3 is n\)$"):
                step["saxpy"].update(n=3.5)
            with pytest.raises(cu.ClosedError, match=r"\(parameter 1 is x\)$"):
                step["saxpy"].update(x=gone)
            step.launch(stream)
    stream.sync()


def test_errors_name_no_parameter_of_which_the_name_is_not_known(stream):
    code = cu.ObjectCode.from_ptx(
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k(.param .u32 k_param_0) { ret; }\n"
    )
    with pytest.raises(TypeError, match=r"^parameter 0 of kernel k must be .*'float'>\)$"):
        cu.launch(stream, CONFIG, code["k"], 0.5)
