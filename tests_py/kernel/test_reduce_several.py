# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reductions of several tensors, and what is applied to their results."""

from __future__ import annotations

import pickle

import pytest

import cudago as cu

from .views import random_view

np = pytest.importorskip("numpy")


@pytest.fixture
def weighed():
    """The sum of k * x * y + i, halved, where y is a mask or a number too; of nothing 6."""
    made = cu.reduce(
        "int x, int8 y, int k",
        "int64 z",
        "a + b",
        map="(long long)k * x * y + i",
        post_map="a * 2 + n",
        identity=6,
        name="weighed",
    )
    yield made
    made._kernels.clear()
    made._nothing = None


def wanted(x, y, k, axis=None, keepdims=False):
    x, y = np.broadcast_arrays(x, y)
    of = range(x.ndim) if axis is None else np.atleast_1d(np.array(axis, int)) % max(x.ndim, 1)
    count = int(np.prod([x.shape[d] for d in of], initial=1))
    kept = {"axis": axis, "keepdims": keepdims}
    if not count:
        return np.full_like((x * 1).sum(dtype="i8", **kept), 12)
    total = (k * x.astype("i8") * y).sum(**kept)
    return 2 * (total + count * (count - 1) // 2) + count


def same(found, want, stream):
    assert found.shape == np.shape(want)
    assert np.array_equal(found.numpy(stream=stream), want)


SHAPES = [
    ((5,), (5,)),
    ((), ()),
    ((4, 5), (5,)),
    ((4, 1), (1, 5)),
    ((2, 3, 4), (3, 1)),
    ((3, 0), (3, 1)),
    ((0,), (1,)),
    ((300, 70), (70,)),
    ((70, 1), (1, 3000)),
    ((9000,), (9000,)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_shapes(first, second, weighed, stream):
    random = np.random.default_rng(2)
    x, y = random.integers(-99, 99, first, dtype="i4"), random.integers(-9, 9, second, dtype="i1")
    on_device = cu.asarray(x, stream=stream), cu.asarray(y, stream=stream)
    over = np.broadcast_shapes(first, second)
    for axis in (None, (), *range(len(over)), *([(0, -1)] if len(over) > 1 else [])):
        for keepdims in (False, True):
            found = weighed(*on_device, 3, axis=axis, keepdims=keepdims, stream=stream)
            same(found, wanted(x, y, 3, axis, keepdims), stream)
        same(weighed(on_device[0], 2, 3, stream=stream), wanted(x, 2, 3), stream)
        same(weighed(2, on_device[1], 3, stream=stream), wanted(2, y, 3), stream)


def test_any_views(weighed, stream):
    """As NumPy has them."""
    random = np.random.default_rng(11)
    for _ in range(60):
        shape = tuple(random.integers(1, 5, random.integers(1, 4)).tolist())
        (whole_x, x_of), (whole_y, y_of) = random_view(random, shape), random_view(random, shape)
        x = random.integers(-99, 99, whole_x, dtype="i4")
        y = random.integers(-9, 9, whole_y, dtype="i1")
        count = len(np.broadcast_shapes(x_of(x).shape, y_of(y).shape))
        axis = tuple(d for d in range(count) if random.random() < 0.5) or None
        want = wanted(x_of(x), y_of(y), 5, axis)
        on_device = x_of(cu.asarray(x, stream=stream)), y_of(cu.asarray(y, stream=stream))
        same(weighed(*on_device, 5, axis=axis, stream=stream), want, stream)
        room = cu.zeros((*np.shape(want), 2), "i8", stream=stream)
        out = room[..., 0]
        assert weighed(*on_device, 5, axis=axis, stream=stream, out=out) is out
        same(out, want, stream)
        assert not room[..., 1].numpy(stream=stream).any()


@pytest.mark.parametrize("ctype", ["float", "half", "double"])
@pytest.mark.parametrize("n", [1, 1000, 100_000])
def test_means_and_norms(ctype, n, stream):
    """Of all elements, however many blocks there are; rounded once."""
    dtype = {"float": "f4", "half": "f2", "double": "f8"}[ctype]
    host = np.random.default_rng(n).integers(0, 3, (2, n)).astype(dtype)
    x = cu.asarray(host, stream=stream)
    mean = cu.reduce(f"{ctype} x", f"{ctype} z", "a + b", post_map="a / n", identity=0)
    norm = cu.reduce(f"{ctype} x", f"{ctype} z", "a + b", map="x * x", post_map="sqrt(a)")
    wide = host.astype("f8")
    for of in (lambda t: t, lambda t: t[:, ::2], lambda t: t[1]):
        for axis in (None, -1):
            want = of(wide).mean(axis=axis)
            found = mean(of(x), axis=axis, stream=stream).numpy(stream=stream)
            assert np.allclose(found, want, rtol=1e-3)
            want = np.sqrt((of(wide) ** 2).sum(axis=axis))
            found = norm(of(x), axis=axis, stream=stream).numpy(stream=stream)
            assert np.allclose(found, want, rtol=1e-3)
    nothing = mean(x[:, :0], axis=1, stream=stream).numpy(stream=stream)
    assert np.isnan(nothing).all()
    assert nothing.shape == (2,)


def test_numbers_in_what_is_applied(stream):
    for ctype, kind in (("half", "f2"), ("float", "f4")):
        made = cu.reduce(
            f"{ctype} x, {ctype} k", "float z", "a + b", map="x * k", post_map="a - k // less"
        )
        for n in (10, 30_000):
            x = cu.ones((2, n), kind, stream=stream)
            assert made(x[0], 2, stream=stream).item(stream=stream) == 2 * n - 2
            assert (
                made(x, 2, axis=1, stream=stream).numpy(stream=stream).tolist() == [2 * n - 2] * 2
            )


def test_captured(weighed, stream):
    """One launch; its node takes other memory, which is counted, and other numbers."""
    x, y = np.arange(50_000, dtype="i4"), np.tile(np.array([1, 0], "i1"), 25_000)
    given = cu.asarray(x, stream=stream), cu.asarray(y, stream=stream)
    out = cu.zeros(1, "i8", stream=stream)
    weighed(*given, 3, stream=stream, out=out)
    with stream.capture() as graph:
        weighed(*given, 3, stream=stream, out=out)
    assert [node.kind for node in graph.nodes] == ["kernel"]
    with graph, graph.instantiate() as step:
        (node,) = step.nodes
        step.launch(stream)
        assert out.item(stream=stream) == wanted(x, y, 3)
        node.update(k=4)
        step.launch(stream)
        assert out.item(stream=stream) == wanted(x, y, 4)
        with pytest.raises(ValueError, match="needs tensors of one size, got elements: x 10, y 50"):
            node.update(x=given[0][:10])
        node.update(x=given[0][:10], y=given[1][:10])
        step.launch(stream)
        assert out.item(stream=stream) == wanted(x[:10], y[:10], 4)


def test_nothing_is_captured(weighed, stream):
    """A result of no elements has what is applied to results."""
    x, out = cu.zeros((3, 0), "i4", stream=stream), cu.zeros((3, 2), "i8", stream=stream)[:, 0]
    weighed(x, 1, 1, axis=1, stream=stream, out=out)
    assert out.numpy(stream=stream).tolist() == [12] * 3
    out.fill(0, stream=stream)
    with stream.capture() as graph:
        weighed(x, 1, 1, axis=1, stream=stream, out=out)
    with graph, graph.instantiate() as step:
        step.launch(stream)
        assert out.numpy(stream=stream).tolist() == [12] * 3


def test_pickled(weighed, stream):
    again = pickle.loads(pickle.dumps(weighed))
    shown = "<cudago.ReduceKernel weighed(int x, int8 y, int k) -> int64 z>"
    assert repr(again) == repr(weighed) == shown
    x = cu.ones(3, "i4", stream=stream)
    assert again(x, 1, 1, stream=stream).item(stream=stream) == wanted(np.ones(3, "i4"), 1, 1)


def test_refusals(weighed, stream):
    x, y = cu.zeros((4, 5), "i4", stream=stream), cu.zeros(5, "i1", stream=stream)
    for args, error, text in [
        ((x, y), TypeError, r"weighed takes 3 input\(s\), got 2$"),
        (
            (x, y, 1, x),
            TypeError,
            r"takes 3 input\(s\), got 4: what it writes to, z, is given by out=",
        ),
        ((1, 2, 3), TypeError, "weighed needs a tensor among its inputs"),
        ((x, y, "3"), TypeError, "k of weighed must be a tensor of int32, or a number.*str"),
        ((x, 200, 1), OverflowError, "y of weighed must be -128 to 127"),
        ((x, x, 1), TypeError, "y of weighed must have elements of type int8, got int32"),
        ((x, y[:4], 1), ValueError, r"shapes that broadcast to one, got \(4, 5\), \(4,\)"),
    ]:
        with pytest.raises(error, match=text):
            weighed(*args, stream=stream)
    with pytest.raises(ValueError, match="axis of weighed must be -2 to 1 for 2 dimensions, got 2"):
        weighed(x, y, 1, axis=2, stream=stream)
    memory = cu.zeros(64, "u1", stream=stream).buffer
    out = memory.view("i8")[:4]
    with pytest.raises(ValueError, match="z of weighed overlaps with y: out= must have no memory"):
        weighed(x, memory[8:13].view("i1"), 1, axis=1, stream=stream, out=out)
    with pytest.raises(ValueError, match=r"must have shape \(4,\), which remains of \(4, 5\), got"):
        weighed(x, y, 1, axis=1, stream=stream, out=out[:3])
    with pytest.raises(ValueError, match="y of weighed must be aligned"):
        both = cu.reduce("int x, int y", "int z", "a + b", map="x + y", name="weighed")
        both(x, memory[1:21].view("i4"), stream=stream)


def test_messages_tell_the_line(stream):
    x = cu.ones((3, 4), "f2", stream=stream)
    made = cu.reduce("half x", "half z", "a + b", post_map="a +\n none")
    for of in (x, x[:, ::2]):
        with pytest.raises(cu.CompileError, match=r"program\(2\): error") as e:
            made(of, stream=stream)
        assert "warning" not in e.value.log
