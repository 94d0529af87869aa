# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch made of functions that launch kernels: on CPU tensors with the simulated
driver, on CUDA tensors with NVIDIA's.
"""

from __future__ import annotations

import itertools
import threading

import pytest

import cudago as cu
from cudago import torch_ops

torch = pytest.importorskip("torch")

SOURCE = r"""
extern "C" __global__ void product(const float *x, const float *y, float a, float *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] * y[i];
}
extern "C" __global__ void add(float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y[i];
}
"""

_numbers = itertools.count()


@pytest.fixture(scope="module")
def code(driver):
    """The kernels."""
    return cu.Program(SOURCE).compile()


@pytest.fixture
def where(driver):
    """PyTorch's name of the device that the driver's kernels can use tensors of."""
    if driver == "nvidia" and not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    return "cpu" if driver == "sim" else "cuda"


@pytest.fixture
def name():
    """A name for an operator that no other test has."""
    return f"cudago_test::operator_{next(_numbers)}"


def shape(n):
    """The launch of n threads."""
    return cu.LaunchConfig(grid=(n + 127) // 128, block=128)


@pytest.fixture
def product(code, name):
    """Operator that makes a * x * y."""

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        a = ctx.arguments[2]
        return product(grad, y, a), product(grad, x, a), None

    @torch_ops.operator(name, backward=backward)
    def product(stream, x: torch.Tensor, y: torch.Tensor, a: float) -> torch.Tensor:
        z = torch.empty_like(x)
        cu.launch(stream, shape(x.numel()), code["product"], x, y, a, z, x.numel())
        return z

    return product


def pair(where, n=200):
    """Two tensors that require gradients."""
    x = torch.linspace(-1, 1, n, device=where).requires_grad_()
    return x, torch.linspace(2, 3, n, device=where).requires_grad_()


def test_values_and_gradients(product, where):
    x, y = pair(where)
    z = product(x, y, 3.0)
    assert torch.allclose(z, 3 * x * y)
    z.sum().backward()  # with a gradient whose strides are 0
    assert torch.allclose(x.grad, 3 * y)
    assert torch.allclose(y.grad, 3 * x)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of opcheck's own
def test_pytorchs_own_check(product, where):
    torch.library.opcheck(product, (*pair(where), 2.0))
    torch.library.opcheck(product, (*(t.detach().reshape(10, 20).T for t in pair(where)), 2.0))


def test_gradcheck_of_the_second_order(product, where):
    x, y = (t.detach()[:4].clone().requires_grad_() for t in pair(where))
    (first,) = torch.autograd.grad(product(x, y, 2.0).pow(2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second, 8 * y * y)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(product, where, backend):
    def loss(x, y):
        return (product(x.sin(), y, 2.0) * x).sum()

    x, y = pair(where)
    loss(x, y).backward()
    expected = x.grad, y.grad
    x, y = pair(where)
    torch.compile(loss, backend=backend, fullgraph=True)(x, y).backward()
    assert torch.allclose(x.grad, expected[0])
    assert torch.allclose(y.grad, expected[1])


def test_a_layer_is_trained(product, where):
    torch.manual_seed(1)
    x, truth = torch.rand(64, device=where), torch.rand(64, device=where)
    weight = torch.nn.Parameter(torch.zeros(64, device=where))
    optimizer = torch.optim.SGD([weight], lr=0.2)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = (product(weight, x, 1.0) - truth * x).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


@pytest.mark.gpu
@pytest.mark.kept_for_good
def test_captured_in_pytorchs_graph(product, where):
    x, y = (t.detach() for t in pair("cuda"))
    product(x, y, 2.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = product(x, y, 2.0)
    x.fill_(5)
    graph.replay()
    assert torch.allclose(z, 10 * y)


@pytest.mark.gpu
def test_on_a_side_stream(product, where):
    x, y = (t.detach() for t in pair("cuda"))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        z = product(x, y, 2.0)
    torch.cuda.current_stream().wait_stream(side)
    assert torch.allclose(z, 2 * x * y)


# --- what operators write to, and return ----------------------------------------------------------


def test_an_operator_that_writes(code, name, where):
    @torch_ops.operator(name, mutates="x")
    def add(stream, x: torch.Tensor, y: torch.Tensor) -> None:
        cu.launch(stream, shape(x.numel()), code["add"], x, y, x.numel())

    x, y = torch.ones(6, device=where), torch.arange(6.0, device=where)
    version = x._version
    add(x, y.reshape(2, 3).T.reshape(3, 2).T.reshape(6))
    assert x.tolist() == [1, 2, 3, 4, 5, 6]
    assert x._version > version, "PyTorch knows that it was written to"
    torch.library.opcheck(add, (x, y))
    with pytest.raises(BufferError, match="contiguous"):
        add(torch.ones(12, device=where)[::2], y)


def test_several_results_need_a_fake(code, name, where):
    def both(stream, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = torch.zeros_like(x), torch.zeros(3, device=x.device)
        cu.launch(stream, shape(x.numel()), code["add"], first, x, x.numel())
        return first, second

    with pytest.raises(ValueError, match="fake= must make it"):
        torch_ops.operator(name)(both)
    operator = torch_ops.operator(name, fake=lambda x: (torch.empty_like(x), x.new_empty(3)))(both)
    x = torch.arange(5.0, device=where)
    first, second = operator(x)
    assert torch.equal(first, x)
    assert second.tolist() == [0, 0, 0]
    torch.library.opcheck(operator, (x,))


def test_keyword_only_arguments_and_a_context_of_ones_own(code, name, where):
    def keep(ctx, inputs, keyword_only_inputs, output):
        ctx.a = keyword_only_inputs["a"]

    @torch_ops.operator(
        name, backward=lambda ctx, grad: squared(grad, a=2 * ctx.a), setup_context=keep
    )
    def squared(stream, x: torch.Tensor, *, a: float) -> torch.Tensor:
        z = torch.empty_like(x)
        ones = torch.ones_like(x)
        cu.launch(stream, shape(x.numel()), code["product"], x, ones, a, z, x.numel())
        return z

    x = torch.ones(4, device=where, requires_grad=True)
    squared(x, a=3.0).sum().backward()
    assert x.grad.tolist() == [6, 6, 6, 6]


# --- mistakes -------------------------------------------------------------------------------------


def test_a_function_without_a_stream(name):
    def nothing() -> None: ...

    def by_name(*, stream) -> None: ...

    for function in (nothing, by_name):
        with pytest.raises(TypeError, match="must take a stream as its first argument"):
            torch_ops.operator(name)(function)


def test_a_function_without_annotations(name):
    with pytest.raises(TypeError, match="annotated with what it returns"):
        torch_ops.operator(name)(lambda stream, x: x)


def test_a_tensor_that_the_driver_has_no_device_for(product, driver, where):
    other = "meta" if driver == "sim" else "cpu"
    if driver == "sim":
        assert product(*(t.detach().to("meta") for t in pair("cpu")), 1.0).is_meta
        return
    with pytest.raises(cu.UnsupportedError, match=f"a tensor of {other} has no device"):
        product(*pair("cpu"), 1.0)


def test_an_error_in_the_function_is_its_own(name, where):
    @torch_ops.operator(name)
    def failing(stream, x: torch.Tensor) -> torch.Tensor:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        failing(torch.ones(3, device=where))


def test_a_list_of_tensors_needs_a_context(name, where):
    @torch_ops.operator(name, backward=lambda ctx, grad: None)
    def first(stream, xs: list[torch.Tensor]) -> torch.Tensor:
        return xs[0].clone()

    x = torch.ones(3, device=where, requires_grad=True)
    with pytest.raises(TypeError, match="setup_context= alone"):
        first([x, x])


def test_threads(product, where):
    failed = []

    def work(n):
        try:
            for _ in range(20):
                x, y = pair(where, n)
                product(x, y, 2.0).sum().backward()
                assert torch.allclose(x.grad, 2 * y)
        except BaseException as e:  # a thread's error is the test's
            failed.append(e)

    threads = [threading.Thread(target=work, args=(100 + n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
