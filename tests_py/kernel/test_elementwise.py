# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels from an expression for one element."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SUM = ("float x, float y", "float z", "z = 2 * x + y")


@pytest.mark.parametrize("shape", [(), (8,), (3, 5), (0,), (1000, 7)])
def test_each_element(shape, device, stream):
    doubled = cu.elementwise(*SUM)
    x, y = (np.random.default_rng(k).random(shape, "f4") for k in (1, 2))
    z = doubled(cu.asarray(x, stream=stream), cu.asarray(y, stream=stream), stream=stream)
    assert (z.shape, str(z.dtype)) == (shape, "float32")
    assert (z.numpy(stream=stream) == 2 * x + y).all()


@pytest.mark.parametrize(
    ("args", "want"),
    [
        ((1.5, "t"), 5),
        (("t", 1), 5),
        (("t", np.float32(1)), 5),
        (("t", np.array(1)), 5),
        (("t", "t"), 6),
    ],
)
def test_numbers_are_for_all_elements(args, want, stream):
    doubled = cu.elementwise(*SUM)
    t = cu.full(4, 2, "f4", stream=stream)
    z = doubled(*[t if a == "t" else a for a in args], stream=stream)
    assert (z.numpy(stream=stream) == want).all()


def test_in_place_and_without_tensors(stream):
    t = cu.full(4, 2, "f4", stream=stream)
    assert cu.elementwise(*SUM)(t, t, stream=stream, out=t) is t
    assert (t.numpy(stream=stream) == 6).all()
    cu.elementwise(*SUM)(1, 2, stream=stream, out=t)
    assert (t.numpy(stream=stream) == 4).all()


def test_index_statements_and_types(stream):
    made = cu.elementwise(
        "unsigned  char x, int64_t k",
        "double y",
        "double t = x * 0.5;\ny = t + k + i + n",
        name="f",
    )
    x = cu.asarray(np.arange(5, dtype="u1"), stream=stream)
    want = np.arange(5) * 0.5 + 100 + np.arange(5) + 5
    assert made(x, 100, stream=stream).numpy(stream=stream).tolist() == want.tolist()
    assert repr(made) == "<cudago.ElementwiseKernel f(unsigned char x, int64_t k) -> double y>"


def test_captured_with_out(stream):
    t = cu.full(4, 2, "f4", stream=stream)
    made = cu.elementwise(*SUM)
    made(t, 0, stream=stream, out=t)
    with stream.capture() as graph:
        made(t, 0, stream=stream, out=t)
    graph.instantiate().launch(stream)
    assert (t.numpy(stream=stream) == 8).all()


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        (("float* x", "float z", ""), ValueError, "inputs must be types and names"),
        (("half x", "float z", ""), ValueError, "'half x'; the types are float, double"),
        (("", "float z", ""), ValueError, "inputs must be types and names"),
        (("float x", "float y, float z", ""), ValueError, "output must be one type and name"),
        (("float x", "float x", ""), ValueError, "different names, got x, x"),
        (("float i", "float z", ""), ValueError, "must not be called 'i'"),
        ((b"float x", "float z", ""), TypeError, "inputs must be a str, not bytes"),
        (("float x", "float z", None), TypeError, "operation must be a str, not NoneType"),
    ],
)
def test_invalid_declarations(declared, error, message):
    with pytest.raises(error, match=message):
        cu.elementwise(*declared)


@pytest.mark.parametrize("name", ["1x", "a b", "", "é", None, "f() {} void g"])
def test_invalid_names(name):
    with pytest.raises(ValueError, match="name must be a C identifier"):
        cu.elementwise(*SUM, name=name)


def test_invalid_arguments(stream):
    made = cu.elementwise(*SUM)
    t, u = cu.zeros(4, "f4", stream=stream), cu.zeros((2, 2), "f4", stream=stream)
    wide = cu.zeros(4, "f8", stream=stream)
    for args, out, error, message in (
        ((t,), None, TypeError, r"elementwise takes 2 input\(s\), got 1"),
        ((t, u), None, ValueError, r"one shape, got \(4,\), \(2, 2\)"),
        ((t, t), u, ValueError, r"one shape, got \(4,\), \(4,\), \(2, 2\)"),
        ((t, wide), None, TypeError, "y of elementwise must have elements of type float32, got f"),
        (
            (t, t),
            wide,
            TypeError,
            "z of elementwise must have elements of type float32, got float64",
        ),
        ((t, t), "out", TypeError, "z of elementwise must be a Tensor, not str"),
        ((1, 2), None, TypeError, "needs a tensor among its inputs, or out="),
        ((t, "2"), None, TypeError, "parameter 1 of kernel elementwise must be a float f32"),
        ((t[::2], t[::2]), None, BufferError, "gaps between its elements"),
    ):
        with pytest.raises(error, match=message):
            made(*args, stream=stream, out=out)


def test_what_does_not_compile_says_where(stream):
    made = cu.elementwise("float x", "float z", "z = nothing(x)")
    with pytest.raises(cu.CompileError) as caught:
        made(cu.zeros(4, "f4", stream=stream), stream=stream)
    assert "nothing" in caught.value.log
