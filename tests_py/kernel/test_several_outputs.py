# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels that write several tensors."""

from __future__ import annotations

import pickle

import pytest

import cudago as cu

from .views import random_view

np = pytest.importorskip("numpy")

BOTH = ("int x, int y", "int z, float64 w", "z = x - y; w = 100. * x + y + i / 4096.", "both")


@pytest.fixture
def both():
    inputs, outputs, operation, name = BOTH
    made = cu.elementwise(inputs, outputs, operation, name=name)
    yield made
    made._kernels.clear()


def wanted(x, y, shape):
    """What z and w are."""
    x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
    return x - y, 100.0 * x + y + np.arange(x.size).reshape(shape) / 4096


def same(found, want, stream):
    assert type(found) is tuple
    for one, other in zip(found, want, strict=True):
        assert one.shape == other.shape
        assert np.array_equal(one.numpy(stream=stream), other)


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (0,), (2, 0, 3), (1000, 7)])
def test_new_ones(shape, both, stream):
    random = np.random.default_rng(1)
    x, y = (random.integers(-99, 99, shape, dtype="i4") for _ in range(2))
    on_device = [cu.asarray(v, stream=stream) for v in (x, y)]
    found = both(*on_device, stream=stream)
    assert [t.dtype_name for t in found] == ["int32", "float64"]
    assert all(t.is_contiguous for t in found)
    same(found, wanted(x, y, shape), stream)
    same(both(on_device[0], 5, stream=stream), wanted(x, 5, shape), stream)


def test_given_ones_of_any_strides(both, stream):
    """As NumPy has them, and memory around them stays as it is."""
    random = np.random.default_rng(7)
    done = 0
    while done < 60:
        shape = tuple(random.integers(0 if done % 9 == 0 else 1, 5, random.integers(0, 4)).tolist())
        views = [random_view(random, shape) for _ in range(4)]
        rooms = [np.zeros(whole, kind) for (whole, _), kind in zip(views[2:], "id", strict=True)]
        parts = [of(room) for room, (_, of) in zip(rooms, views[2:], strict=True)]
        if any(part.shape != shape for part in parts):
            continue
        done += 1
        inputs = [random.integers(-99, 99, whole, dtype="i4") for whole, _ in views[:2]]
        given = [of(v) for v, (_, of) in zip(inputs, views, strict=False)]
        on_device = [cu.asarray(v, stream=stream) for v in (*inputs, *rooms)]
        x, y, z, w = (of(t) for t, (_, of) in zip(on_device, views, strict=True))
        for part, want in zip(parts, wanted(*given, shape), strict=True):
            part[...] = want
        found = both(x, y, stream=stream, out=(z, w))
        assert found[0] is z
        assert found[1] is w
        for room, t in zip(rooms, on_device[2:], strict=True):
            assert np.array_equal(t.numpy(stream=stream), room), (shape, views)
        if x.shape and y.shape:
            new = both(x, y, stream=stream)
            over = np.broadcast_shapes(x.shape, y.shape)
            same(new, wanted(*given, over), stream)


def test_an_output_is_also_an_input(stream):
    """Element by element: all inputs are read before an output is written."""
    swap = cu.elementwise("int x, int y", "int z, int w", "z = y; w = x", name="swap")
    host = np.arange(24, dtype="i4").reshape(4, 6)
    for view in (lambda t: t, lambda t: t[:, ::2], lambda t: t.T):
        x, y = (cu.asarray(v, stream=stream) for v in (host, -host))
        swap(view(x), view(y), stream=stream, out=(view(x), view(y)))
        want = host.copy()
        view(want)[...] = -view(host)
        assert np.array_equal(x.numpy(stream=stream), want)
        assert np.array_equal(y.numpy(stream=stream), -want)


def test_floats_of_16_bits(stream):
    ends = cu.elementwise("half x", "half low, bfloat16 high", "low = x - 1; high = x + 1")
    x = cu.full((4, 6), 3, "f2", stream=stream)
    for t in (x, x[:, ::2]):
        low, high = ends(t, stream=stream)
        assert (low.numpy(stream=stream) == 2).all()
        assert (high.astype("f4", stream=stream).numpy(stream=stream) == 4).all()


@pytest.mark.parametrize("cut", [slice(None), slice(None, None, 2)])
def test_captured(cut, both, stream):
    """Its node takes other numbers; other tensors are captured again."""
    host = np.arange(40, dtype="i4")
    x = cu.asarray(host, stream=stream)[cut]
    z, w = cu.zeros(40, "i4", stream=stream)[cut], cu.zeros(40, "f8", stream=stream)[cut]
    both(x, 1, stream=stream, out=(z, w))
    with stream.capture() as graph:
        both(x, 2, stream=stream, out=(z, w))
    with graph, graph.instantiate() as step:
        step.launch(stream)
        same((z, w), wanted(host[cut], 2, z.shape), stream)
        step.nodes[0].update(y=9)
        step.launch(stream)
        same((z, w), wanted(host[cut], 9, z.shape), stream)
        for change in ({"x": cu.zeros(40, "i4", stream=stream)[cut]}, {"z": z}, {"n": 3}):
            with pytest.raises(ValueError, match="so only its numbers can be updated"):
                step.nodes[0].update(**change)
        does = "writes several tensors" if z.is_contiguous else "goes over tensors whose strides"
        with pytest.raises(ValueError, match=does):
            step.nodes[0].update(w=w)
        with pytest.raises(ValueError, match="writes several tensors, and cannot use slots"):
            step.nodes[0].update(x=cu.slot("x", x))


def test_saved(both, stream, tmp_path):
    x, z, w = (cu.full(40, 7, kind, stream=stream) for kind in ("i4", "i4", "f8"))
    both(x, 1, stream=stream, out=(z, w))
    with stream.capture() as graph:
        both(x, 2, stream=stream, out=(z, w))
    with graph:
        graph.save(tmp_path / "graph", contents=True)
    out = cu.zeros(40, "i4", stream=stream)
    with pytest.raises(ValueError, match="only its numbers can be updated"):
        cu.Graph.load(tmp_path / "graph", bind={"kernel_0.z": out})
    bind = {"kernel_0.y": 3}
    with cu.Graph.load(tmp_path / "graph", bind=bind) as again, again.instantiate() as step:
        step.launch(stream)
        stream.sync()


def test_pickled(both, stream):
    again = pickle.loads(pickle.dumps(both))
    shown = "<cudago.ElementwiseKernel both(int x, int y) -> int z, float64 w>"
    assert repr(again) == repr(both) == shown
    x = cu.full(3, 5, "i4", stream=stream)
    same(again(x, 1, stream=stream), wanted(np.full(3, 5), 1, (3,)), stream)


def test_what_out_must_be(both, stream):
    x, z = cu.zeros(4, "i4", stream=stream), cu.zeros(4, "i4", stream=stream)
    w = cu.zeros(4, "f8", stream=stream)
    tuple_of_two = r"out of both must be a tuple of 2 tensors, z, w, got "
    for out, error, text in [
        (z, TypeError, tuple_of_two + "Tensor"),
        ((z,), TypeError, tuple_of_two + "1 of them"),
        ((z, w, w), TypeError, tuple_of_two + "3 of them"),
        ("zw", TypeError, tuple_of_two + "str"),
        ((z, None), TypeError, "w of both must be a Tensor, not NoneType"),
        ((w, z), TypeError, "z of both must have elements of type int32, got float64"),
        ((z, w[:3]), ValueError, r"one shape, .* got \(4,\), \(4,\), \(3,\)"),
        ((z[:1], w), ValueError, r"z of both must have the shape \(4,\) .* got \(1,\)"),
    ]:
        with pytest.raises(error, match=text):
            both(x, 1, stream=stream, out=out)
    with pytest.raises(TypeError, match="got 4: what it writes to, z and w, is given by out="):
        both(x, 1, z, w, stream=stream)
    assert both(x, 1, stream=stream, out=[z, w]) == (z, w)


def test_overlaps_are_refused(stream):
    made = cu.elementwise("int x", "int z, int w", "z = x; w = x + 1", name="made")
    t = cu.asarray(np.arange(40, dtype="i4"), stream=stream)
    for z, w in [
        (t[:10], t[:10]),
        (t[:10], t[9:19]),
        (t[:20:2], t[2:22:2]),
        (t[9::-1], t[:10]),
    ]:
        with pytest.raises(ValueError, match="w of made overlaps with z: each output must have"):
            made(t[30:], stream=stream, out=(z, w))
    with pytest.raises(ValueError, match="w of made overlaps with x: out= must be x itself"):
        made(t[:10], stream=stream, out=(t[20:30], t[9:19]))
    with pytest.raises(ValueError, match="z of made overlaps with x: out= must be x itself"):
        made(t[:10], stream=stream, out=(t[1:11], t[20:30]))
    repeated = cu.from_dlpack(np.lib.stride_tricks.as_strided(np.zeros(1, "i4"), (10,), (0,)))
    with pytest.raises(ValueError, match="w of made has elements that may lie in the same memory"):
        made(t[:10], stream=stream, out=(t[10:20], repeated))
    assert t.numpy(stream=stream).tolist() == list(range(40))
    made(t[:20:2], stream=stream, out=(t[1:20:2], t[:20:2]))  # beside each other
    want = np.arange(40)
    want[1:20:2], want[:20:2] = want[:20:2], want[:20:2] + 1
    assert t.numpy(stream=stream).tolist() == want.tolist()
