# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reductions along axes, and of tensors with gaps."""

from __future__ import annotations

import itertools

import pytest

import cudago as cu

np = pytest.importorskip("numpy")


@pytest.fixture
def total():
    made = cu.reduce("int x", "long long z", "a + b", map="x * 3", identity=7, name="total")
    yield made
    made._kernels.clear()


def numbers(shape, stream):
    """The same numbers on the host and on the device."""
    array = np.random.default_rng(len(shape)).integers(-99, 99, shape, dtype="i4")
    return array, cu.asarray(array, stream=stream)


def wanted(x, axis, keepdims=False):
    made = np.asarray(3 * x.sum(axis=axis, keepdims=keepdims, dtype="i8"))
    axes = range(x.ndim) if axis is None else np.atleast_1d(np.array(axis, int))
    return made if all(x.shape[d] for d in axes) else np.full_like(made, 7)


def same(found, want, stream):
    assert found.shape == want.shape
    assert np.array_equal(found.numpy(stream=stream), want)


def each_axis(count):
    """Every choice of axes of so many dimensions, some of them counted from the last."""
    yield None
    for k in range(count + 1):
        for axes in itertools.combinations(range(count), k):
            yield axes[::-1]
            if k == 1:
                yield axes[0] - count


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (5, 7), (3, 4, 5), (2, 3, 2, 3), (4, 0), (0, 3, 2), (1, 6, 1)]
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_shapes(shape, keepdims, total, stream):
    host, x = numbers(shape, stream)
    for axis in each_axis(len(shape)):
        found = total(x, axis=axis, keepdims=keepdims, stream=stream)
        same(found, wanted(host, axis, keepdims), stream)
        assert found.is_contiguous


VIEWS = {
    "each second": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, :, ::-1],
    "a part": lambda x: x[1:3, 2:4, 1:],
    "one column": lambda x: x[:, :, 2],
    "one element": lambda x: x[1, 2, 3, ...],
    "nothing": lambda x: x[:, 2:2, ::2],
    "ones": lambda x: x[:, None, ::2],
}


@pytest.mark.parametrize("view", VIEWS)
def test_gaps(view, total, stream):
    host, x = numbers((4, 5, 6), stream)
    of = VIEWS[view]
    for axis in each_axis(of(host).ndim):
        same(total(of(x), axis=axis, stream=stream), wanted(of(host), axis), stream)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((3, 100_000), 1),  # a block for each
        ((100_000, 3), 0),
        ((2000, 100), 1),  # a warp for each
        ((2000, 33), -1),
        ((100, 2000), 0),  # a thread for each
        ((2000, 31), 1),
        ((300, 7, 300), 1),
        ((300, 7, 300), (0, 2)),
        ((257, 300), (0, 1)),
        ((300_000, 3), 1),  # a thread for each, in rows
        ((40_000, 7), 1),
        ((30_000, 20), 1),
        ((40_000, 33), 0),  # many blocks for each
        ((9000, 2, 3), (0, 2)),
        ((2, 9000, 3), (0, 1)),
    ],
)
def test_sizes(shape, axis, total, stream):
    host, x = numbers(shape, stream)
    same(total(x, axis=axis, stream=stream), wanted(host, axis), stream)
    same(total(x[::-2], axis=axis, stream=stream), wanted(host[::-2], axis), stream)


@pytest.mark.parametrize("keepdims", [False, True])
def test_outputs(keepdims, total, stream):
    """May have gaps, and what is between them stays."""
    host, x = numbers((4, 5, 6), stream)
    for axis, cut in (
        (1, (slice(None, None, 2), slice(None, None, -1))),
        ((0, 2), (slice(1, None, 2),)),
        (-1, (slice(3, None), slice(None, None, 2))),
    ):
        want = wanted(host, axis, keepdims)
        kept = iter(cut)
        cuts = tuple(next(kept) if n > 1 else slice(None) for n in want.shape)
        ends = tuple(map(slice, want.shape))
        room = np.full([n if n == 1 else 3 * n for n in want.shape], -1)
        out = cu.asarray(room, stream=stream)
        part, to = room[cuts][ends], out[cuts][ends]
        assert total(x, axis=axis, keepdims=keepdims, stream=stream, out=to) is to
        part[...] = want
        assert np.array_equal(out.numpy(stream=stream), room)


def test_indices_of_64_bits(total, stream, monkeypatch):
    """What has more elements than 32 bits count needs other code, here for a few."""
    monkeypatch.setattr(cu._tensor.walk, "_MOST_NARROW", 1)
    host, x = numbers((4, 5, 6), stream)
    for axis in each_axis(3):
        same(total(x[::2], axis=axis, stream=stream), wanted(host[::2], axis), stream)


def test_the_index_among_those_of_a_result(stream):
    """So that the place of the largest is found."""
    made = cu.reduce("int x", "long long z", "a > b ? a : b", map="x * 65536LL + n - 1 - i")
    host, x = numbers((40, 30), stream)
    for of in (lambda t: t, lambda t: t.T, lambda t: t[::3, ::2]):
        for axis in (0, 1):
            found = made(of(x), axis=axis, stream=stream).numpy(stream=stream)
            count = of(host).shape[axis]
            assert np.array_equal(count - 1 - found % 65536, of(host).argmax(axis=axis))
        whole = made(of(x), stream=stream).item(stream=stream)
        assert of(host).size - 1 - whole % 65536 == of(host).argmax()


def test_floating_point_is_repeated(stream):
    host = np.random.default_rng(1).standard_normal((70, 900)).astype("f4")
    x = cu.asarray(host, stream=stream)
    made = cu.reduce("float x", "float z", "a + b")
    for axis in (0, 1):
        found = [made(x, axis=axis, stream=stream).numpy(stream=stream) for _ in range(3)]
        assert (found[0] == found[1]).all()
        assert (found[0] == found[2]).all()
        assert np.allclose(found[0], host.sum(axis=axis), atol=1e-4)


def test_floats_of_16_bits(stream):
    x = cu.ones((30, 3000), "f2", stream=stream)
    made = cu.reduce("half x", "half x", "a + b")
    assert (made(x, axis=1, stream=stream).numpy(stream=stream) == 3000).all()
    assert (made(x, axis=0, stream=stream).numpy(stream=stream) == 30).all()


def test_parts_are_not_rounded(stream):
    """Of 16 bits is the result alone, however many blocks make it."""
    x = cu.full((2, 100_001), 0.5, "f2", stream=stream)
    made = cu.reduce("half x", "half z", "a + b", map="x * 0.9999f")
    want = np.float16(np.float32(0.5) * np.float32(0.9999) * 100_001)
    assert (made(x, axis=1, stream=stream).numpy(stream=stream) == want).all()
    assert made(x[:, ::2], stream=stream).item(stream=stream) == np.float16(want)


def test_parts_go_over_no_more_dimensions(total, stream):
    """Results that lie as the input does are one dimension, and their parts would be five."""
    host, x = numbers((2, 2, 2, 2, 2, 20_000), stream)
    order = (4, 3, 2, 1, 0)
    out = cu.zeros((2,) * 5, "i8", stream=stream)
    total(x.transpose(*order, 5), axis=-1, stream=stream, out=out.transpose(*order))
    same(out, wanted(host, -1), stream)


def test_a_capture_has_one_launch(total, stream):
    """Whose blocks share no result."""
    host, x = numbers((3, 50_000), stream)
    out = cu.zeros(3, "i8", stream=stream)
    total(x, axis=1, stream=stream)
    with stream.capture() as graph:
        total(x, axis=1, stream=stream, out=out)
        total(x[:, ::2], stream=stream, out=out[:1])
    assert [node.kind for node in graph.nodes] == ["kernel"] * 2
    graph.instantiate().launch(stream)
    want = wanted(host, 1)
    want[0] = wanted(host[:, ::2], None)
    same(out, want, stream)


def test_no_elements(stream):
    made = cu.reduce("int x", "int z", "a + b")
    x = cu.zeros((0, 3), "i4", stream=stream)
    assert made(x, axis=1, stream=stream).shape == (0,)
    assert made(x, axis=(), stream=stream).shape == (0, 3)
    for axis in (0, (0, 1), None):
        with pytest.raises(ValueError, match="reduce of no elements needs an identity"):
            made(x, axis=axis, stream=stream)


@pytest.mark.parametrize(
    ("shape", "axis"), [((0, 0), 0), ((0, 0), 1), ((0, 3, 0), 2), ((0, 3, 0), (1, 2))]
)
def test_no_elements_and_no_results(stream, shape, axis):
    x = cu.zeros(shape, "i4", stream=stream)
    with pytest.raises(ValueError, match="zero-size array"):
        x.numpy(stream=stream).max(axis=axis)
    with pytest.raises(ValueError, match="reduce of no elements needs an identity"):
        cu.reduce("int x", "int z", "a > b ? a : b")(x, axis=axis, stream=stream)
    total = cu.reduce("int x", "int z", "a + b", identity=0)(x, axis=axis, stream=stream)
    assert total.shape == x.numpy(stream=stream).sum(axis=axis).shape


def test_refusals(total, stream):
    _, x = numbers((4, 5), stream)
    for axis, error, text in [
        (2, ValueError, "axis of total must be -2 to 1 for 2 dimensions, got 2"),
        (-3, ValueError, "axis of total must be -2 to 1 for 2 dimensions, got -3"),
        ((0, 1, 5), ValueError, "axis of total must be -2 to 1 for 2 dimensions, got 5"),
        ((0, 0), ValueError, r"axis of total must not be given twice, got \(0, 0\)"),
        ((1, -1), ValueError, r"axis of total must not be given twice, got \(1, -1\)"),
        ("0", TypeError, "axis of total must be an int, a tuple of ints, or None, got str"),
        (True, TypeError, "axis of total must be an int, a tuple of ints, or None, got bool"),
        ([0], TypeError, "axis of total must be an int, a tuple of ints, or None, got list"),
        ((0, 1.0), TypeError, "axis of total must be an int, a tuple of ints, or None, got float"),
    ]:
        with pytest.raises(error, match=text):
            total(x, axis=axis, stream=stream)
    with pytest.raises(ValueError, match=r"axis of total must be None or \(\) without dimensions"):
        total(x[0, 0], axis=0, stream=stream)
    out = cu.zeros((4, 5), "i8", stream=stream)
    for axis, to, want, got in (
        (0, out, "(5,)", "(4, 5)"),
        (1, out[0], "(4,)", "(5,)"),
        ((0, 1), out[0, :1], "()", "(1,)"),
    ):
        with pytest.raises(ValueError, match="must have shape") as e:
            total(x, axis=axis, stream=stream, out=to)
        assert str(e.value) == (
            f"z of total must have shape {want}, which remains of (4, 5), got {got}"
        )
    with pytest.raises(ValueError, match=r"out must have one element, got 5"):
        total(x, stream=stream, out=out[0])
    deep = cu.zeros((4,) * 5, "i4", stream=stream)[::2, ::2, ::2, ::2, ::2]
    for axis in (None, ()):
        with pytest.raises(ValueError, match=r"at most 4 dimensions .* got 5: pass a copy"):
            total(deep, axis=axis, stream=stream)
    same(total(deep, axis=(1, 3), stream=stream), np.zeros((2, 2, 2), "i8"), stream)


def test_outputs_that_overlap(stream):
    made = cu.reduce("int x", "int z", "a + b", name="made")
    host, x = numbers((6, 6), stream)
    with pytest.raises(ValueError, match="z of made overlaps with x: out= must have no memory"):
        made(x, axis=0, stream=stream, out=x[0])
    with pytest.raises(ValueError, match="z of made overlaps with x"):
        made(x[:, ::2], axis=0, stream=stream, out=x[2, :3])
    made(x[:, ::2], axis=1, stream=stream, out=x[:, 1])
    host[:, 1] = host[:, ::2].sum(axis=1)
    assert np.array_equal(x.numpy(stream=stream), host)
    memory = np.lib.stride_tricks.as_strided(np.zeros(6, "i4"), (6,), (0,))
    with pytest.raises(ValueError, match="z of made has elements that may lie in the same memory"):
        made(x, axis=0, stream=stream, out=cu.from_dlpack(memory))


def test_memory_that_no_kernel_reads_or_writes(total, stream):
    array = np.zeros((4, 6), "i4")
    out = cu.from_dlpack(np.zeros((4, 6), "i8"))
    with pytest.raises(BufferError, match="x of total is ordinary host memory with gaps"):
        total(array[::2], stream=stream)
    x = cu.zeros((4, 6), "i4", stream=stream)
    with pytest.raises(BufferError, match="z of total is ordinary host memory with gaps"):
        total(x, axis=1, stream=stream, out=out[:, 1])
    pinned = np.zeros(1024, "i8")
    try:
        buffer = cu.pin(pinned, read_only=True)
    except (cu.CUDAError, ValueError) as e:
        pytest.skip(f"this device pins no read-only memory: {e}")
    with buffer:
        for to in (buffer.view("i8")[:4], buffer.view("i8")[:8:2]):
            with pytest.raises(TypeError, match="z of total is read-only memory"):
                total(x, axis=1, stream=stream, out=to)


def test_captured(total, stream):
    """A node's memory is what it was: of other memory the strides would be wrong."""
    _, x = numbers((40, 50), stream)
    out = cu.zeros(50, "i8", stream=stream)
    total(x, axis=0, stream=stream, out=out)
    with stream.capture() as graph:
        total(x, axis=0, stream=stream, out=out)
    x.fill(2, stream=stream)
    small = cu.zeros(5, "i8", stream=stream)
    with graph.instantiate() as step:
        for owner in (graph, step):
            (node,) = owner.nodes
            other = cu.zeros((2, 2), "i4", stream=stream)
            for change in (
                {"x": other},
                {"z": small},
                {"n": 1},
                {"cudago_m": 1},
                {"cudago_r_s0_0": 1},
                {"config": cu.LaunchConfig(1, 32)},
            ):
                with pytest.raises(ValueError, match="only its numbers can be updated"):
                    node.update(**change)
        step.launch(stream)
        assert (out.numpy(stream=stream) == 240).all()
        with stream.capture() as again:
            total(x[:, ::10], axis=0, stream=stream, out=small)
        step.update(again)
        step.launch(stream)
        assert (small.numpy(stream=stream) == 240).all()
        again.close()
    graph.close()


@pytest.mark.parametrize("count", [1, 2, 3, 31, 33, 1000, 8192, 1 << 17, (1 << 18) + 1, 1 << 30])
@pytest.mark.parametrize("n", [1, 2, 5, 31, 33, 1023, 1024, 100_000, 1 << 33])
def test_every_lane_of_every_part_has_an_element(count, n):
    """Or a result has but one part, whose first lane has one."""
    module = cu._tensor.axes
    for steps in ((1, count), (n, 1)):
        kept, reduced = (
            module.walk.Walk((m,), ((s,),)) for m, s in zip((count, n), steps, strict=True)
        )
        for is_split in (False, True):
            lanes, _, parts = layout = module.Layout.of(kept, reduced, is_split)
            assert lanes in {1, 2, 4, 8, 16, 32, 64, 128, 256}
            assert layout.rows * lanes == 256
            assert parts == 1 or (is_split and parts * lanes <= n)
