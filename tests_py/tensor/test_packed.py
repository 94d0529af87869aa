# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Elements of less than a byte: packed in tensors, a byte for each in NumPy's arrays."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

NAMES = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
KEYS = [
    np.s_[1],
    np.s_[:, 2:4, 1:],
    np.s_[::2, ::-1, ::3],
    np.s_[2, 1:, 5],
    np.s_[..., None, 0],
    np.s_[:2],
]


def numbers(name, shape, seed=1):
    """Return an array of elements of all kinds."""
    bits = 4 if "float4" in name else 6
    codes = np.random.default_rng(seed).integers(0, 1 << bits, shape).astype("u1")
    return codes.view(getattr(ml_dtypes, name))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and (a.view("u1") == b.view("u1")).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7, 8, 13])
def test_arrays_there_and_back(name, size, stream):
    array, bits = numbers(name, size), 4 if "float4" in name else 6
    t = cu.asarray(array, stream=stream)
    assert (t.dtype_name, t.nbytes) == (name, (size * bits + 7) // 8)
    assert same(t.numpy(stream=stream), array)
    items = [x.item(stream=stream) for x in t]
    assert items == array.astype("f4").tolist()
    for i in range(size):
        assert same(t[i:].numpy(stream=stream), array[i:])
        assert same(t[i::-1].numpy(stream=stream), array[i::-1])


def test_the_lowest_bits_are_first(stream):
    t = cu.empty(4, "float4_e2m1fn", stream=stream)
    t.buffer.copy_from(bytes([0x42, 0x65]), stream=stream)
    assert t.numpy(stream=stream).astype("f4").tolist() == [1, 2, 3, 4]
    assert [t[k].item(stream=stream) for k in range(-4, 4)] == [1, 2, 3, 4] * 2
    wide = cu.asarray(np.array([1, 1.5, 2], "f4").astype(ml_dtypes.float6_e3m2fn), stream=stream)
    codes = [0b001100, 0b001110, 0b010000]
    assert sum(
        int(b) << 8 * k for k, b in enumerate(wide.buffer.view("u1").numpy(stream=stream))
    ) == (codes[0] | codes[1] << 6 | codes[2] << 12)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["device", "host"])
def test_views_are_read_and_written(name, key, where, stream):
    array, other = numbers(name, (3, 5, 7)), numbers(name, (3, 5, 7), 2)[key]
    t = cu.from_dlpack(cu.asarray(array, stream=stream), device="cpu" if where == "host" else None)
    view = t[key]
    assert same(view.numpy(stream=stream), array[key])
    assert same(view.T.numpy(stream=stream), array[key].T)
    packed = view.contiguous(stream=stream)
    assert packed.is_contiguous
    assert same(packed.numpy(stream=stream), array[key])
    array[key] = other
    view.copy_from(other, stream=stream)
    assert same(t.numpy(stream=stream), array)  # what shares bytes with the view is as it was
    out = np.zeros_like(other)
    view.copy_to(out, stream=stream)
    assert same(out, other)
    view.copy_from(packed, stream=stream)
    assert same(view.numpy(stream=stream), packed.numpy(stream=stream))


def test_lists_and_copies_in_place(stream):
    t = cu.asarray([1, 2, 3, 4, 6], "float4_e2m1fn", stream=stream)
    t[:3].copy_from([0.5, -1, -2], stream=stream)
    assert t.numpy(stream=stream).astype("f4").tolist() == [0.5, -1, -2, 4, 6]
    t[1:4].copy_from(t[:3], stream=stream)
    assert t.numpy(stream=stream).astype("f4").tolist() == [0.5, 0.5, -1, -2, 6]
    assert t[1:] != t[2:]
    assert t[1:] == t[1:] == t[:][1:]
    assert ", bit 4" in repr(t[1:])
    assert t[1:][1:].handle == t.handle + 1


def test_what_has_no_address_is_refused_by_name(stream):
    view = cu.asarray([1, 2, 3, 4], "float4_e2m1fn", stream=stream)[1:]
    assert not view.is_contiguous
    for refused in (
        lambda: view.handle,
        lambda: view.ptr,
        lambda: view.buffer,
        lambda: view.reshape(3, 1),
        lambda: view.__dlpack__(),
    ):
        with pytest.raises(BufferError, match=r"begins within a byte, at bit 4.*float4_e2m1fn"):
            refused()
    with (
        cu.Graph() as graph,
        pytest.raises(ValueError, match="float4_e2m1fn have less than a byte"),
    ):
        graph.memcpy(view, cu.empty(3, "float4_e2m1fn", stream=stream))
    with pytest.raises(TypeError, match="fill needs elements of whole bytes, not float4_e2m1fn"):
        view.fill(1, stream=stream)


def test_exported_as_a_copy(stream):
    array = numbers("float4_e2m1fn", (3, 5))
    view = cu.asarray(array, stream=stream)[1]
    copied = cu.from_dlpack(view, copy=True)
    assert copied.is_contiguous
    assert same(copied.numpy(stream=stream), array[1])
    assert same(cu.from_dlpack(view, device="cpu").numpy(stream=stream), array[1])


def test_a_capture_copies_whole_bytes_alone(stream):
    t = cu.asarray([1, 2, 3, 4], "float4_e2m1fn", stream=stream)
    out, host = cu.zeros(4, "float4_e2m1fn", stream=stream), np.zeros(4, ml_dtypes.float4_e2m1fn)
    with stream.capture() as graph:
        for refused in (
            lambda: out[1:].copy_from(t[1:], stream=stream),
            lambda: out[:3].copy_from(t[:3], stream=stream),
            lambda: t.copy_to(host, stream=stream),
            lambda: t.reshape(2, 2).T.contiguous(stream=stream),
        ):
            with pytest.raises(BufferError, match="float4_e2m1fn have less than a byte"):
                refused()
        out.copy_from(t, stream=stream)
        for packs in (
            lambda: out.copy_from(host, stream=stream),
            lambda: cu.asarray(host, stream=stream),
        ):
            with pytest.raises(BufferError, match="a capture does not pack"):
                packs()
        out[2:].copy_from([6, 6], stream=stream)
    graph.instantiate().launch(stream)
    assert out.numpy(stream=stream).astype("f4").tolist() == [1, 2, 6, 6]


def test_arrays_that_do_not_fit(stream):
    t = cu.zeros(4, "float4_e2m1fn", stream=stream)
    wrong = np.zeros(3, ml_dtypes.float4_e2m1fn), np.zeros(4, ml_dtypes.float6_e2m3fn)
    for call, name in ((t.copy_from, "src"), (t.copy_to, "dst")):
        with pytest.raises(ValueError, match=rf"{name} has shape \(3,\), the tensor \(4,\)"):
            call(wrong[0], stream=stream)
        with pytest.raises(TypeError, match=f"{name} has element type float6_e2m3fn"):
            call(wrong[1], stream=stream)
    fixed = np.zeros(4, ml_dtypes.float4_e2m1fn)
    fixed.flags.writeable = False
    with pytest.raises(BufferError, match="dst is read-only"):
        t.copy_to(fixed, stream=stream)
