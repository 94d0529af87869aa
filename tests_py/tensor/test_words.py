# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Fills, copies and conversions of more words than a block does at a time, in any order."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SIZES = [1, 255, 256, 257, 1023, 1024, 1025, 2047, 2049, 5000]
VIEWS = {
    "in a row": ((5003,), lambda t: t[1:]),
    "each second": ((10001,), lambda t: t[::2]),
    "backwards": ((5001,), lambda t: t[::-1]),
    "columns": ((61, 83), lambda t: t.T),
    "rows": ((61, 83), lambda t: t[:, 2:80]),
    "a few of each": ((17, 19, 23), lambda t: t[::2, 1:, ::2]),
    "four dimensions": ((7, 9, 11, 13), lambda t: t[::2, ::2, ::2, ::2].T),
}


def words(shape, dtype, seed=0):
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    return bits.view(dtype).reshape(shape)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "c16"])
def test_every_word_is_filled_and_copied_once(dtype, view, stream):
    shape, of = VIEWS[view]
    host = words(shape, dtype)
    x = cu.asarray(host, dtype, stream=stream)
    turned = cu.zeros(of(host).T.shape, dtype, stream=stream)
    of(x).copy_to(turned.T, stream=stream)
    assert turned.numpy(stream=stream).tobytes() == np.ascontiguousarray(of(host).T).tobytes()
    value = 3 + 4j if dtype == "c16" else 3
    of(x).fill(value, stream=stream)
    of(host)[...] = value
    assert x.numpy(stream=stream).tobytes() == host.tobytes()


@pytest.mark.parametrize("rank", [3, 6])
def test_a_node_copies_what_is_slow_as_one_box(rank, device, stream, monkeypatch):
    """By a kernel, on a GPU; where that takes several launches, as a box."""
    monkeypatch.setattr(cu._tensor.copy, "driver_name", lambda: "nvidia")
    monkeypatch.setattr(cu._tensor.copy, "_MANY_BYTES", 1)
    host = np.arange(3**rank, dtype="i4").reshape((3,) * rank)
    x, y = cu.asarray(host, stream=stream), cu.zeros(host.shape, "i4", stream=stream)
    view = tuple(slice(None, None, (-1) ** d) for d in range(rank))
    with cu.Graph(device) as graph:
        node = graph.memcpy(y[view], x[view])
        assert node.kind == ("kernel" if rank == 3 else "memcpy")
        with graph.instantiate() as step:
            step.launch(stream)
            assert np.array_equal(y.numpy(stream=stream), host)


@pytest.mark.parametrize(
    ("columns", "first", "width", "kind"),
    [
        (600, 2, 258, "kernel"),
        (600, 1, 256, "kernel"),  # bytes, of few
        (600, 1, 258, "memcpy"),
        (601, 0, 258, "memcpy"),
        (600, 0, 257, "memcpy"),
    ],
)
def test_long_rows_of_single_bytes_are_a_box(
    columns, first, width, kind, device, stream, monkeypatch
):
    """Which the driver copies faster than a kernel that goes over bytes."""
    monkeypatch.setattr(cu._tensor.copy, "driver_name", lambda: "nvidia")
    monkeypatch.setattr(cu._tensor.copy, "_MANY_BYTES", 1)
    host = words((5, columns), "u1")
    x, y = cu.asarray(host, stream=stream), cu.zeros((5, width), "u1", stream=stream)
    with cu.Graph(device) as graph:
        node = graph.memcpy(y, x[:, first : first + width])
        assert node.kind == kind
        with graph.instantiate() as step:
            step.launch(stream)
            assert np.array_equal(y.numpy(stream=stream), host[:, first : first + width])


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size, stream):
    """What lies behind the last word stays."""
    host = np.arange(2 * size + 2, dtype="f8")
    x = cu.asarray(host, stream=stream)
    out = cu.full(2 * size + 2, -1.0, "f8", stream=stream)
    x[: 2 * size : 2].copy_to(out[: 2 * size : 2], stream=stream)
    want = np.full_like(host, -1)
    want[: 2 * size : 2] = host[: 2 * size : 2]
    assert np.array_equal(out.numpy(stream=stream), want)
    out[1 : 2 * size : 2].fill(2.5, stream=stream)
    want[1 : 2 * size : 2] = 2.5
    assert np.array_equal(out.numpy(stream=stream), want)
    assert np.array_equal(
        x[:size].astype("f4", stream=stream).numpy(stream=stream), host[:size].astype("f4")
    )


@pytest.mark.parametrize("target", ["f4", "f2", "i2", "bool", "float8_e4m3fn"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_element_is_converted_once(target, view, stream):
    shape, of = VIEWS[view]
    host = np.random.default_rng(1).integers(-9, 9, shape).astype("f8")
    x = cu.asarray(host, stream=stream)
    found = of(x).astype(target, stream=stream).astype("f8", stream=stream).numpy(stream=stream)
    assert np.array_equal(found, of(host) != 0 if target == "bool" else of(host))


def test_rows_and_bytes_that_the_driver_copies_slowly(stream):
    """A kernel does them, where it is faster: the simulated driver's is interpreted."""
    many = cu.asarray(words((70_000, 3), "u2"), stream=stream)
    big = cu.zeros((4, 3 << 20), "u2", stream=stream)
    big[:, 5::7].fill(9, stream=stream)
    for x, cut in ((many, np.s_[:, 1:2]), (big, np.s_[:, : 5 << 19])):
        of, want = x[cut], np.ascontiguousarray(x.numpy(stream=stream)[cut])
        out = cu.zeros(of.shape, "u2", stream=stream)
        of.copy_to(out, stream=stream)
        assert out.numpy(stream=stream).tobytes() == want.tobytes()
        with cu.Graph() as graph:
            node = graph.memcpy(out, of)
            assert node.kind == ("memcpy" if cu.driver_name() == "sim" else "kernel")
            out.fill(0, stream=stream)
            step = graph.instantiate()
        step.launch(stream)
        assert out.numpy(stream=stream).tobytes() == want.tobytes()
