# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels over tensors with gaps, and of shapes that broadcast."""

from __future__ import annotations

import pytest

import cudago as cu

from .views import random_view

np = pytest.importorskip("numpy")


@pytest.fixture
def indexed():
    """z = 100 * x + y, and the index behind the point."""
    made = cu.elementwise(
        "int x, int y", "double z", "z = 100. * x + y + i / 4096.", name="indexed"
    )
    yield made
    made._kernels.clear()


def wanted(x, y):
    both = 100.0 * x + y
    return both + np.arange(both.size).reshape(both.shape) / 4096


def numbers(shape, stream):
    """The same numbers on the host and on the device."""
    array = np.random.default_rng(len(shape)).integers(-99, 99, shape, dtype="i4")
    return array, cu.asarray(array, stream=stream)


CUTS = {
    "each second": ((40,), lambda x: x[::2], lambda x: x[1::2]),
    "backwards": ((40,), lambda x: x[::-1], lambda x: x),
    "transposed": ((6, 7), lambda x: x.T, lambda x: x.T),
    "one transposed": ((6, 6), lambda x: x, lambda x: x.T),
    "columns": ((6, 7), lambda x: x[:, 2], lambda x: x[:, 3]),
    "part of rows": ((6, 7), lambda x: x[1:5, 2:4], lambda x: x[:4, 1:3]),
    "outer": ((6, 7), lambda x: x[:, :1], lambda x: x[:1]),
    "fewer dimensions": ((6, 7), lambda x: x, lambda x: x[3]),
    "no dimensions": ((6, 7), lambda x: x[::2], lambda x: x[2, 3, ...]),
    "neither has any": ((6, 7), lambda x: x[1, 1, ...], lambda x: x[2, 3, ...]),
    "ones in front": ((6, 7), lambda x: x[None], lambda x: x),
    "three of both": ((4, 5, 6), lambda x: x[::2, ::2, ::3], lambda x: x[:2, :3, :2]),
    "four of both": ((3, 4, 5, 6), lambda x: x[::2, ::2, ::2, ::2], lambda x: x[:2, :2, :3, :3]),
    "nothing": ((6, 7), lambda x: x[:0, ::2], lambda x: x[:1, ::2]),
    "merged": ((2, 3, 2, 3, 4, 2), lambda x: x[..., 1], lambda x: x[..., 0]),
}


@pytest.mark.parametrize("cut", CUTS)
def test_inputs(cut, indexed, stream):
    shape, first, second = CUTS[cut]
    host, x = numbers(shape, stream)
    found = indexed(first(x), second(x), stream=stream)
    want = wanted(first(host), second(host))
    assert found.shape == want.shape
    assert found.is_contiguous
    assert np.array_equal(found.numpy(stream=stream), want)
    assert np.array_equal(
        indexed(first(x), 7, stream=stream).numpy(stream=stream), wanted(first(host), 7)
    )


@pytest.mark.parametrize("cut", [c for c in CUTS if c not in ("merged", "neither has any")])
def test_outputs(cut, indexed, stream):
    """Memory around the output stays as it is."""
    shape, first, second = CUTS[cut]
    random = np.random.default_rng(3)
    for view in (first, lambda t: second(t)[...].T):
        room = np.full(shape, -1.0)
        out = cu.asarray(room, stream=stream)
        part = view(room)
        inputs = [random.integers(-99, 99, s, dtype="i4") for s in (part.shape, part.shape[1:])]
        on_device = [cu.asarray(v, stream=stream) for v in inputs]
        part[...] = wanted(*(np.broadcast_to(v, part.shape) for v in inputs))
        assert indexed(*on_device, stream=stream, out=view(out)).shape == part.shape
        assert np.array_equal(out.numpy(stream=stream), room)


def test_any_views(stream):
    """As NumPy has them."""
    made = cu.elementwise("int x, int y", "int z", "z = 100 * x + y + (int)i", name="any")
    random = np.random.default_rng(5)
    done = 0
    while done < 60:
        shape = tuple(random.integers(1, 5, random.integers(1, 4)).tolist())
        (whole_x, x_of), (whole_y, y_of) = random_view(random, shape), random_view(random, shape)
        whole_z, z_of = random_view(random, shape)
        room = np.zeros(whole_z, "i4")
        if z_of(room).shape != shape:
            continue
        done += 1
        x, y = (random.integers(0, 99, w, dtype="i4") for w in (whole_x, whole_y))
        want = (100 * x_of(x) + y_of(y)) + np.zeros(shape, "i4")
        z_of(room)[...] = want + np.arange(want.size).reshape(shape)
        on_device = [cu.asarray(v, stream=stream) for v in (x, y, np.zeros(whole_z, "i4"))]
        made(x_of(on_device[0]), y_of(on_device[1]), stream=stream, out=z_of(on_device[2]))
        assert np.array_equal(on_device[2].numpy(stream=stream), room), (shape, whole_x, whole_y)


def test_indices_of_64_bits(indexed, stream, monkeypatch):
    """What has more elements than 32 bits count needs other code, here for a few."""
    monkeypatch.setattr(cu._tensor.walk, "_MOST_NARROW", 1)
    host, x = numbers((4, 5, 6), stream)
    found = indexed(x[::2, :, ::2], x[0, :, ::2], stream=stream).numpy(stream=stream)
    assert np.array_equal(found, wanted(host[::2, :, ::2], host[0, :, ::2]))


def test_an_input_called_as_what_the_kernel_has(stream):
    made = cu.elementwise("int step, int k", "int q", "q = step - k")
    host, x = numbers((4, 6), stream)
    for view in (lambda t: t, lambda t: t[:, ::2]):
        found = made(view(x), 3, stream=stream).numpy(stream=stream)
        assert np.array_equal(found, view(host) - 3)


def test_floats_of_16_bits(stream):
    host = np.arange(40, dtype="f2").reshape(5, 8)
    x = cu.asarray(host, stream=stream)
    made = cu.elementwise("half x, half y, half a", "half z", "z = a * x + y")
    found = made(x[::2, ::2], x[0, :4], 2, stream=stream).numpy(stream=stream)
    assert np.array_equal(found, 2 * host[::2, ::2] + host[0, :4])


def test_one_output_of_views(stream):
    """Where an element is written, no other is read: those that are not, are apart."""
    add = cu.elementwise("int x, int y", "int z", "z = x + y", name="add")
    host, x = numbers((6, 8), stream)
    pairs = [
        (lambda t: t[:, :4], lambda t: t[:, 4:]),
        (lambda t: t[:, ::2], lambda t: t[:, 1::2]),
        (lambda t: t[:, 1], lambda t: t[:, 2]),
        (lambda t: t[::-1], lambda t: t[::-1]),
        (lambda t: t[:3], lambda t: t[3:]),
        (lambda t: t[::2].T, lambda t: t[1::2].T),
        (lambda t: t[:, 1:3], lambda t: t[:, 1:3]),
    ]
    for to, of in pairs:
        add(of(x), to(x), stream=stream, out=to(x))
        to(host)[...] = of(host) + to(host)
        assert np.array_equal(x.numpy(stream=stream), host)


def test_overlaps_are_refused(stream):
    add = cu.elementwise("int x, int y", "int z", "z = x + y", name="add")
    host, x = numbers((6, 6), stream)
    for of, to in [
        (lambda t: t, lambda t: t.T),
        (lambda t: t[::-1], lambda t: t),
        (lambda t: t[:, :1], lambda t: t),
        (lambda t: t[0], lambda t: t),
        (lambda t: t[:, :4:2], lambda t: t[:, 2::2]),
        (lambda t: t[:4:2], lambda t: t[2::2]),
        (lambda t: t[:, :3], lambda t: t[:, 2:5]),
    ]:
        with pytest.raises(ValueError, match="z of add overlaps with y: out= must be y itself"):
            add(1, of(x), stream=stream, out=to(x))
    assert np.array_equal(x.numpy(stream=stream), host)


@pytest.mark.parametrize("strides", [(0, 4), (4, 4), (8, 4), (4, 8), (-8, 4)])
def test_an_output_whose_elements_may_be_the_same_is_refused(strides, stream):
    add = cu.elementwise("int x", "int z", "z = x", name="add")
    memory = np.zeros(32, "i4")[12:]
    out = cu.from_dlpack(np.lib.stride_tricks.as_strided(memory, (4, 3), strides))
    with pytest.raises(ValueError, match="z of add has elements that may lie in the same memory"):
        add(1, stream=stream, out=out)


def test_what_is_not_one_shape(indexed, stream):
    _, x = numbers((6, 7), stream)
    out = cu.zeros((6, 7), "f8", stream=stream)
    with pytest.raises(ValueError, match=r"broadcast to one, got \(6, 7\), \(7, 6\)"):
        indexed(x, x.T, stream=stream)
    with pytest.raises(ValueError, match=r"broadcast to one, got \(6, 3\), \(6, 4\)"):
        indexed(x[:, ::3], x[:, ::2], stream=stream)
    with pytest.raises(ValueError, match=r"z of indexed must have the shape \(6, 7\) .* \(1, 7\)"):
        indexed(x, 1, stream=stream, out=out[:1])
    with pytest.raises(ValueError, match=r"z of indexed must have the shape \(6, 7\) .* \(7,\)"):
        indexed(x, 1, stream=stream, out=out[0])
    assert indexed(x[0], 1, stream=stream, out=out).shape == (6, 7)
    five = cu.zeros((4,) * 5, "i4", stream=stream)[::2, ::2, ::2, ::2, ::2]
    with pytest.raises(
        ValueError, match=r"at most 4 dimensions .* got 5: pass copies without gaps"
    ):
        indexed(five, 1, stream=stream)
    assert indexed(five.contiguous(stream=stream), 1, stream=stream).shape == (2,) * 5


def test_read_only_memory(indexed, stream):
    """Is read, and never written."""
    array = np.arange(1024, dtype="i4")
    try:
        buffer = cu.pin(array, read_only=True)
    except (cu.CUDAError, ValueError) as e:
        pytest.skip(f"this device pins no read-only memory: {e}")
    with buffer:
        x = buffer.view("i4")
        found = indexed(x[::2], 1, stream=stream)
        assert np.array_equal(found.numpy(stream=stream), wanted(array[::2], 1))
        fill = cu.elementwise("int x", "int z", "z = x", name="fill")
        for out in (x[:8], x[:16:2]):
            with pytest.raises(TypeError, match="is read-only memory"):
                fill(1, stream=stream, out=out)


@pytest.mark.parametrize(
    "kind",
    [lambda d: cu.PinnedMemoryResource(), cu.ManagedMemoryResource],
    ids=["pinned", "managed"],
)
def test_memory_that_the_host_shares(kind, indexed, device, stream):
    with kind(device) as resource, resource.allocate(4 * 40, stream=stream) as buffer:
        host, x = numbers((40,), stream)
        buffer.copy_from(x.buffer, stream=stream)
        shared = buffer.view("i4")
        found = indexed(shared[::2], shared[::-2], stream=stream)
        assert np.array_equal(found.numpy(stream=stream), wanted(host[::2], host[::-2]))


def test_memory_of_the_host_with_gaps_is_refused(indexed, stream):
    array = np.zeros((4, 6), "i4")
    with pytest.raises(BufferError, match="y of indexed is ordinary host memory with gaps"):
        indexed(1, array.T, stream=stream)
    out = cu.from_dlpack(np.zeros((4, 6)))
    with pytest.raises(BufferError, match="z of indexed is ordinary host memory with gaps"):
        indexed(1, 2, stream=stream, out=out[::2])


def test_an_empty_output_inside_an_input(stream):
    fill = cu.elementwise("int x", "int z", "z = x", name="fill")
    x = cu.zeros(8, "i4", stream=stream)
    for out in (x[4:4], x[:0], x[4:4, None]):
        assert fill(x[4:5], stream=stream, out=out) is out
