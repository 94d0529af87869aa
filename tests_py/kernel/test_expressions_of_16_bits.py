# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Floats of 16 bits in elementwise kernels and reductions: computed as floats, rounded once."""

from __future__ import annotations

import math

import pytest

import cudago as cu

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {"half": "f2", "__half": "f2", "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16"}


def dtype_of(ctype):
    return np.dtype(getattr(ml_dtypes, TYPES[ctype], TYPES[ctype]))


def every(dtype):
    """Every value that the type has."""
    return np.arange(1 << 16, dtype="u2").view(dtype)


def same(got, want):
    """Whether all bits are the same, but for those of what is no number."""
    nan = np.isnan(want.astype("f4"))
    return (np.isnan(got.astype("f4")) == nan).all() and (
        got.view("u2")[~nan] == want.view("u2")[~nan]
    ).all()


@pytest.mark.parametrize("ctype", TYPES)
def test_every_value_is_loaded(ctype, stream):
    values = every(dtype_of(ctype))
    made = cu.elementwise(f"{ctype} x", "float z", "z = x")
    got = made(cu.asarray(values, stream=stream), stream=stream).numpy(stream=stream)
    want = values.astype("f4")
    assert np.array_equal(got, want, equal_nan=True)
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


@pytest.mark.parametrize("ctype", ["half", "__nv_bfloat16"])
def test_floats_are_rounded_to_nearest_even(ctype, stream):
    """Around each of the values: itself, the middle to the next, and both sides of that."""
    dtype = dtype_of(ctype)
    with np.errstate(invalid="ignore", over="ignore"):
        each = every(dtype).astype("f4")
        between = each + (np.roll(each, -1) - each) / 2
        infinite = np.float32(math.inf)
        around = [between, np.nextafter(between, infinite), np.nextafter(between, -infinite)]
        values = np.concatenate([each, *around]).astype("f4")
        want = values.astype(dtype)
    made = cu.elementwise("float x", f"{ctype} z", "z = x")
    got = made(cu.asarray(values, stream=stream), stream=stream)
    assert got.dtype_name == dtype.name
    assert same(got.numpy(stream=stream), want)


@pytest.mark.parametrize("ctype", ["half", "__nv_bfloat16"])
def test_arithmetic(ctype, stream):
    """As the host's, which computes each operation in floats too."""
    dtype = dtype_of(ctype)
    x, y = (np.random.default_rng(k).standard_normal((70, 30)).astype(dtype) for k in (1, 2))
    a = dtype.type(0.1)
    made = cu.elementwise(f"{ctype} x, {ctype} y, {ctype} a", f"{ctype} z", "z = x * y; z = a * x")
    on_device = [cu.asarray(v, stream=stream) for v in (x, y)]
    for number in (a, 0.1, np.float64(0.1)):  # which are rounded before
        assert same(made(*on_device, number, stream=stream).numpy(stream=stream), a * x)
    times = cu.elementwise(f"{ctype} x, {ctype} y", f"{ctype} z", "z = x * y")
    assert same(times(*on_device, stream=stream).numpy(stream=stream), x * y)
    assert same(times(2, on_device[1], stream=stream).numpy(stream=stream), dtype.type(2) * y)
    out = cu.zeros_like(on_device[0], stream=stream)
    assert made(1, 2, 3, stream=stream, out=out) is out
    assert (out.numpy(stream=stream) == dtype.type(3)).all()


def test_types_are_told_apart(stream):
    half = cu.zeros(4, "f2", stream=stream)
    made = cu.elementwise("half x, half a", "__nv_bfloat16 z", "z = a * x", name="to")
    with pytest.raises(TypeError, match="x of to must have elements of type float16, got bfloat16"):
        made(cu.zeros(4, "bfloat16", stream=stream), 1, stream=stream)
    with pytest.raises(TypeError, match="z of to must have elements of type bfloat16, got float16"):
        made(half, 1, stream=stream, out=half)
    with pytest.raises(OverflowError, match=r"parameter 1 of kernel to .* float of 16 bits"):
        made(half, 65520.0, stream=stream)
    with pytest.raises(TypeError, match="a of to must be a tensor of float16, or a number"):
        made(half, "1", stream=stream)


def test_numbers_and_tensors_of_nodes(stream):
    x, z = cu.full(8, 1.5, "f2", stream=stream), cu.zeros(8, "f2", stream=stream)
    made = cu.elementwise("half x, half a", "half z", "z = a * x", name="times")
    made(x, 2, stream=stream, out=z)
    with stream.capture() as graph:
        made(x, 2, stream=stream, out=z)
    with graph.instantiate() as step:
        (node,) = step.nodes
        for value in (0.1, 3, np.float16(5)):
            node.update(a=value)
            step.launch(stream)
            assert (z.numpy(stream=stream) == np.float16(1.5) * np.float16(value)).all()
        with pytest.raises(OverflowError, match="float of 16 bits"):
            node.update(a=1e6)
        with pytest.raises(TypeError, match=r"float16.* got elements of type bfloat16"):
            node.update(x=cu.zeros(8, "bfloat16", stream=stream))
        node.update(x=cu.full(8, 2, "f2", stream=stream), z=x)
        step.launch(stream)
        assert (x.numpy(stream=stream) == 10).all()
    graph.close()


@pytest.mark.parametrize("ctype", ["half", "__nv_bfloat16"])
@pytest.mark.parametrize("n", [1, 100, 100_000])
def test_reductions_are_rounded_once(ctype, n, stream):
    dtype = dtype_of(ctype)
    values = np.ones(n, "f4").astype(dtype)
    ones = cu.asarray(values, stream=stream)
    total = cu.reduce(f"{ctype} x", f"{ctype} z", "a + b", identity=0)
    scaled = cu.reduce(f"{ctype} x", f"{ctype} z", "a + b", map="x / 64")
    in_floats = cu.reduce(f"{ctype} x", "float z", "a + b")
    want = np.array(n / 64, "f4").astype(dtype)
    assert scaled(ones, stream=stream).numpy(stream=stream) == want
    assert in_floats(ones, stream=stream).item(stream=stream) == n
    out = cu.empty(1, dtype, stream=stream)
    assert total(ones[:100], stream=stream, out=out) is out
    assert out.numpy(stream=stream)[0] == dtype.type(min(n, 100))
    total(ones[:0], stream=stream, out=out)
    assert out.numpy(stream=stream)[0] == 0
    largest = cu.reduce(f"{ctype} x", f"{ctype} z", "a > b ? a : b")
    ramp = np.random.default_rng(n).standard_normal(n).astype(dtype)
    found = largest(cu.asarray(ramp, stream=stream), stream=stream).numpy(stream=stream)
    assert found == ramp.astype("f4").max().astype(dtype)


def test_a_captured_reduction(stream):
    x, out = cu.full(3000, 0.5, "f2", stream=stream), cu.zeros(1, "f2", stream=stream)
    total = cu.reduce("half x", "half sum", "a + b")
    total(x, stream=stream, out=out)
    with stream.capture() as graph:
        total(x, stream=stream, out=out)
    with graph.instantiate() as step:
        step.nodes[0].update(x=cu.full(30, 2, "f2", stream=stream))
        step.launch(stream)
        assert out.numpy(stream=stream)[0] == 60
    graph.close()


def test_errors_are_all_that_the_compiler_says(stream):
    """The kernels' own source has nothing that it would warn of."""
    x = cu.zeros((4, 6), "f2", stream=stream)
    for view in (x, x.T, x[:, ::2]):
        made = cu.elementwise("half x, half a", "half z", "z = x * nowhere")
        total = cu.reduce("half x", "half z", "a + b + nowhere")
        for call in (
            lambda: made(view, 1, stream=stream),  # noqa: B023
            lambda: total(view, stream=stream),  # noqa: B023
            lambda: total(view, axis=0, stream=stream),  # noqa: B023
        ):
            with pytest.raises(cu.CompileError) as e:
                call()
            assert "nowhere" in e.value.log
            assert "warning" not in e.value.log
