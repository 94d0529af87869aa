# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Types that the declarations of expressions leave to the tensors of a call."""

from __future__ import annotations

import pickle

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

KINDS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
TWICE = "// of any type\n__device__ T twice(T x) { return 2 * x; }"


@pytest.fixture
def made():
    kernel = cu.elementwise(
        "T x, T y, R k",
        "T z, R w",
        "T t = twice(x); z = t + y; w = k + 1",
        name="made",
        preamble=TWICE,
    )
    yield kernel
    kernel._typed.clear()


def numbers(kind, shape, stream):
    array = np.random.default_rng(3).integers(0, 20, shape).astype(kind)
    return array, cu.asarray(array, stream=stream)


@pytest.mark.parametrize("kind", KINDS)
def test_types(kind, made, stream):
    host, x = numbers(kind, (4, 6), stream)
    ints, k = numbers("i4", (6,), stream)
    wide = host.astype("f8")
    for of in (lambda t: t, lambda t: t[:, ::2], lambda t: t.T):
        z, w = made(of(x), 1, of(x), stream=stream)
        assert (z.dtype, w.dtype) == (x.dtype, x.dtype)
        want = (2 * of(wide) + 1).astype(kind) if kind != "?" else np.ones_like(of(host))
        assert np.array_equal(z.numpy(stream=stream), want)
    z, w = made(x, x, k, stream=stream)
    assert w.dtype_name == "int32"
    assert np.array_equal(w.numpy(stream=stream), np.broadcast_to(ints + 1, (4, 6)))


@pytest.mark.parametrize("kind", KINDS)
def test_reductions(kind, stream):
    host, x = numbers(kind, (4, 30), stream)
    most = cu.reduce("T x", "T z", "a > b ? a : b", identity=0, post_map="(T)a")
    for axis in (None, 0, 1):
        found = most(x[:, ::2], axis=axis, stream=stream)
        assert found.dtype == x.dtype
        assert np.array_equal(found.numpy(stream=stream), host[:, ::2].max(axis=axis))
    assert most(x[:0], axis=0, stream=stream).numpy(stream=stream).tolist() == [0] * 30
    dot = cu.reduce("T x, R k", "double z", "a + b", map="x * k")
    found = dot(x, cu.full(30, 2, "i2", stream=stream), stream=stream).item(stream=stream)
    assert found == 2 * host.astype("f8").sum()
    again = pickle.loads(pickle.dumps(most))
    assert again(x, stream=stream).item(stream=stream) == host.max()
    assert repr(again) == "<cudago.ReduceKernel reduce(T x) -> T z>"


def test_an_output_tells_a_type(stream):
    cast = cu.elementwise("T x", "U z", "z = (U)x")
    x, z = cu.full(3, 2.5, "f4", stream=stream), cu.zeros(3, "i2", stream=stream)
    assert cast(x, stream=stream, out=z) is z
    assert z.numpy(stream=stream).tolist() == [2] * 3
    with pytest.raises(TypeError, match="no tensor that tells what type U of z is: pass one as an"):
        cast(x, stream=stream)
    ramp = cu.elementwise("", "const T z", "z = i")
    ramp(stream=stream, out=z)
    assert z.numpy(stream=stream).tolist() == [0, 1, 2]


def test_other_arrays(made, stream):
    """Those of another library are asked once for their memory."""
    asked = []

    class Array:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, **kwargs):
            asked.append(1)
            return self.tensor.__dlpack__(**kwargs)

    x = cu.full(3, 2, "i4", stream=stream)
    z, _ = made(Array(x), np.int32(4), cu.zeros(3, "u1", stream=stream), stream=stream)
    assert z.numpy(stream=stream).tolist() == [8] * 3
    assert len(asked) == 1


def test_captured(made, stream):
    x, z, w = (cu.full(4, 3, kind, stream=stream) for kind in ("f8", "f8", "i4"))
    made(x, 1, w, stream=stream, out=(z, w))
    with stream.capture() as graph:
        made(x, 1, w, stream=stream, out=(z, w))
    with graph, graph.instantiate() as step:
        step.nodes[0].update(y=5)
        step.launch(stream)
        assert z.numpy(stream=stream).tolist() == [11] * 4
        assert w.numpy(stream=stream).tolist() == [5] * 4


def test_pickled_and_shown(made, stream):
    x = cu.ones(3, "f4", stream=stream)
    made(x, x, x, stream=stream)
    again = pickle.loads(pickle.dumps(made))
    assert repr(again) == repr(made) == "<cudago.ElementwiseKernel made(T x, T y, R k) -> T z, R w>"
    assert again(x, x, x, stream=stream)[0].numpy(stream=stream).tolist() == [3] * 3


def test_refusals(made, stream):
    x, k = cu.zeros(4, "f4", stream=stream), cu.zeros(4, "i4", stream=stream)
    for args, out, error, text in [
        ((x, k, k), None, TypeError, "y of made must have elements of type float32, got int32"),
        ((x, x, 1), None, TypeError, "no tensor that tells what type R of k is"),
        ((1, 2, k), None, TypeError, "no tensor that tells what type T of x is"),
        ((x, x), None, TypeError, r"made takes 3 input\(s\), got 2"),
        ((x, x, "k"), None, TypeError, "no tensor that tells what type R of k is"),
        ((k, 1.5, k), None, TypeError, "y of made must be an integer, as int32 has them"),
        ((x, x, k), (k, x), TypeError, "z of made must have elements of type float32, got int32"),
        ((x, x, k), x, TypeError, "out of made must be a tuple of 2 tensors, z, w, got Tensor"),
        ((cu.zeros(4, "c8", stream=stream), 1, k), None, TypeError, "complex64, which expressions"),
    ]:
        with pytest.raises(error, match=text):
            made(*args, stream=stream, out=out)
    with pytest.raises(TypeError, match="reduce has no tensor that tells what type T of x is"):
        cu.reduce("T x", "T z", "a + b")(1, stream=stream)


def test_messages_tell_the_line(stream):
    x = cu.zeros(4, "f2", stream=stream)
    for preamble, operation, where in (
        (TWICE, "z =\n none", r"program\(2\): error"),
        ("\n\n__device__ T f() { return none; }", "z = x", r"preamble\(3\): error"),
    ):
        wrong = cu.elementwise("T x", "T z", operation, preamble=preamble)
        with pytest.raises(cu.CompileError, match=where):
            wrong(x, stream=stream)
