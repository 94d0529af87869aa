# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Conversion of tensors between element types, held to NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold

INTEGERS = "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
FLOATS = "float16", "float32", "float64"
COMPLEX = "complex64", "complex128"
TYPES = "bool", *INTEGERS, *FLOATS


def edges(dtype):
    """Values of a type at which conversions turn: limits, halves, powers of two, their sides."""
    if dtype == "bool":
        return np.array([False, True])
    powers = [sign * (2**k + d) for k in range(65) for d in (-1, 0, 1) for sign in (1, -1)]
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        ties = [2**k + 2 ** (k - 24) * odd for k in range(30, 64) for odd in (1, 3, 5)]
        ties += [2**k + 2 ** (k - 53) * odd for k in range(54, 64) for odd in (1, 3, 5)]
        kept = [n for n in powers + ties if limits.min <= n <= limits.max]
        return np.array(sorted({*kept, limits.min, limits.max}), dtype)
    info = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.eps]
    special += [info.smallest_subnormal, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, 254.7, 65519, 65520]
    ties = [1 + (k + 0.5) * 2.0**-10 for k in range(-3, 4)] + [k * 2.0**-25 for k in range(9)]
    ties += [1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-24 + 2.0**-50, 3.5e38, 1e-46]
    with np.errstate(all="ignore"):
        return np.array([*special, *ties, *map(float, powers)], "f8").astype(dtype)


def defined(a, dtype):
    """Leave out values of which NumPy makes anything: no integer of the type is near them."""
    if a.dtype.kind != "f" or dtype not in INTEGERS:
        return a
    limits = np.iinfo(dtype)
    whole = np.trunc(a.astype("f8"))
    return a[(whole >= float(limits.min)) & (whole < 2.0 * (limits.max // 2 + 1))]


@pytest.mark.parametrize("source", TYPES)
def test_conversions_are_numpys(source, stream):
    for target in TYPES:
        a = defined(edges(source), target)
        with np.errstate(all="ignore"):
            expected = a.astype(target)
        t = cu.asarray(a, stream=stream).astype(target, stream=stream)
        assert t.dtype_name == target
        got = t.numpy(stream=stream)
        assert np.array_equal(got, expected, equal_nan=expected.dtype.kind == "f"), target
        if expected.dtype.kind == "f":
            assert np.array_equal(np.signbit(got)[got == 0], np.signbit(expected)[got == 0])


@pytest.mark.parametrize("source", TYPES)
def test_real_numbers_become_complex(source, stream):
    a = edges(source)
    for target in COMPLEX:
        with np.errstate(all="ignore"):
            expected = a.astype(target)
        got = cu.asarray(a, stream=stream).astype(target, stream=stream).numpy(stream=stream)
        assert got.dtype == target
        assert np.array_equal(got.real, expected.real, equal_nan=expected.real.dtype.kind == "f")
        assert not got.imag.any()


@pytest.mark.parametrize(("source", "target"), [COMPLEX, COMPLEX[::-1]])
def test_complex_numbers_become_complex(source, target, stream):
    part = "f4" if source == "complex64" else "f8"
    with np.errstate(all="ignore"):
        values = edges("float64").astype(part)
        a = np.empty((values.size, 3), source)
        a.real, a.imag = values[:, None], values[::-1, None]
        expected = a.astype(target)
    t = cu.asarray(a, stream=stream)
    for key in (np.s_[:], np.s_[::-2, 1:], np.s_[..., ::-1]):
        got = t[key].astype(target, stream=stream)
        assert got.is_contiguous
        got, want = got.numpy(stream=stream), expected[key]
        assert np.array_equal(got.real, want.real, equal_nan=True)
        assert np.array_equal(got.imag, want.imag, equal_nan=True)


def test_complex_numbers_in_captures_and_on_the_host(stream):
    a = np.arange(6, dtype="f4").reshape(2, 3).T
    b = (a + 1j * a[::-1]).astype("c8")
    bf = cu.asarray(a, stream=stream).astype("bfloat16", stream=stream)
    assert np.array_equal(bf.astype("c16", stream=stream).numpy(stream=stream), a)
    got = cu.from_dlpack(b).astype("c16", stream=stream).numpy(stream=stream)
    assert np.array_equal(got, b)
    memory = stream.device.allocate(64, stream=stream)
    odd = memory[1:49].view("c8", (3, 2))
    odd.copy_from(b, stream=stream)
    assert np.array_equal(odd.astype("c16", stream=stream).numpy(stream=stream), b)
    for source, numbers in ((cu.asarray(a, stream=stream), a), (cu.asarray(b, stream=stream), b)):
        result = cu.zeros((3, 2), "c16", stream=stream)
        with stream.capture() as graph:
            result.copy_from(source.astype("c16", stream=stream), stream=stream)
        with graph, graph.instantiate() as step:
            for _ in range(2):
                step.launch(stream)
            assert np.array_equal(result.numpy(stream=stream), numbers)
    empty = cu.zeros((0, 3), "f4", stream=stream).astype("c8", stream=stream)
    assert (empty.shape, empty.dtype_name) == ((0, 3), "complex64")


def test_all_bits_of_float16(stream):
    a = np.arange(1 << 16, dtype="u2").view("f2")
    for target in ("bool", "float32", "float64"):
        got = cu.asarray(a, stream=stream).astype(target, stream=stream).numpy(stream=stream)
        assert np.array_equal(got, a.astype(target), equal_nan=target != "bool")


def to_bfloat16(a):
    """Round to the upper half of float32, by another way than the kernel: in float64, exactly."""
    a = a.astype("f4").astype("f8")
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(a)[1], -125)
        rounded = np.ldexp(np.rint(np.ldexp(a, 8 - exponent)), exponent - 8)
        return np.where(np.isfinite(a), rounded, a).astype("f4")


def bits_of(a):
    return (a.view("u4") >> 16).astype("u2")


@pytest.mark.parametrize("other", TYPES)
def test_conversions_of_bfloat16(other, stream):
    with np.errstate(all="ignore"):
        a = edges(other)
        t = cu.asarray(a, stream=stream).astype("bfloat16", stream=stream)
        got = t.buffer.view("uint16").numpy(stream=stream)
        expected = to_bfloat16(a)
        numbers = ~np.isnan(expected)
        assert np.array_equal(got[numbers], bits_of(expected)[numbers])
        assert np.isnan((got[~numbers].astype("u4") << 16).view("f4")).all()

        every = np.arange(1 << 16, dtype="u4") << 16
        values = defined(every.view("f4"), other)
        pattern = bits_of(values)
        t = cu.asarray(pattern, stream=stream).buffer.view("bfloat16")
        got = t.astype(other, stream=stream).numpy(stream=stream)
        assert np.array_equal(got, values.astype(other), equal_nan=other in FLOATS)


def test_a_bool_of_any_bits_is_one(stream):
    t = cu.asarray(np.array([0, 1, 2, 255], "u1"), stream=stream).buffer.view("bool")
    assert t.astype("int32", stream=stream).numpy(stream=stream).tolist() == [0, 1, 1, 1]
    assert t.astype("float16", stream=stream).numpy(stream=stream).tolist() == [0, 1, 1, 1]


KEYS = (
    np.s_[:],
    np.s_[::2, ::3, ::2],
    np.s_[::-1, :, ::-3],
    np.s_[:, 3],
    np.s_[:, None, 1:3, ..., ::4],
)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("key", range(len(KEYS)))
def test_any_strides(key, turned, stream):
    a = np.arange(240, dtype="i4").reshape(6, 5, 8) - 100
    t = cu.asarray(a, stream=stream)[KEYS[key]]
    a = a[KEYS[key]]
    if turned:
        t, a = t.T, a.T
    for target in ("int16", "float64", "int32"):
        got = t.astype(target, stream=stream)
        assert got.is_contiguous
        assert got.shape == a.shape
        assert np.array_equal(got.numpy(stream=stream), a.astype(target))


def test_more_dimensions_than_a_kernel_has(stream):
    a = np.arange(3**7, dtype="i4").reshape((3,) * 7)
    view = (slice(None, None, 2),) * 7
    got = cu.asarray(a, stream=stream)[view].astype("f8", stream=stream)
    assert np.array_equal(got.numpy(stream=stream), a[view].astype("f8"))


def test_no_elements_and_no_dimensions(stream):
    for shape in ((0,), (3, 0, 2), ()):
        t = cu.full(shape, 3, "int32", stream=stream).astype("float16", stream=stream)
        assert (t.shape, t.dtype_name) == (shape, "float16")
        assert np.array_equal(t.numpy(stream=stream), np.full(shape, 3, "f2"))


def test_one_type_is_copied_or_returned(stream):
    t = cu.asarray(np.arange(6, dtype="c8"), stream=stream)
    other = t[::2].astype("complex64", stream=stream)
    assert other.is_contiguous
    assert other.handle != t.handle
    assert other.numpy(stream=stream).tolist() == [0, 2, 4]
    assert t.astype(np.complex64, copy=False) is t
    part = t[::2]
    assert part.astype("c8", stream=stream, copy=False) is part
    narrow = cu.ones(3, stream=stream).astype("f2", stream=stream, copy=False)
    assert narrow.dtype_name == "float16"


def test_host_memory(stream, pinned):
    a = np.arange(8, dtype="f4")
    numbers = pinned[:32].view("f4")
    numbers.copy_from(a, stream=stream)
    for t in (cu.from_dlpack(a), numbers, numbers[::-2]):
        got = t.astype("i8", stream=stream)
        assert got.device == stream.device
        expected = [6 - 2 * i + 1 for i in range(4)] if t.size == 4 else list(range(8))
        assert got.numpy(stream=stream).tolist() == expected
    locked = a.copy()
    locked.flags.writeable = False
    t = cu.from_dlpack(locked)
    assert t.astype("i4", stream=stream).numpy(stream=stream).tolist() == list(range(8))
    stream.sync()


def test_misaligned_memory(stream):
    a = np.arange(8, dtype="f4")
    memory = stream.device.allocate(40, stream=stream)
    t = memory[3:35].view("f4")
    t.copy_from(a, stream=stream)
    assert t.astype("i2", stream=stream).numpy(stream=stream).tolist() == a.tolist()


def test_read_only_memory(stream):
    a = np.frombuffer(np.arange(1024, dtype="i4").tobytes(), "i4")
    try:
        memory = cu.pin(a, read_only=True)
    except (cu.CUDAError, ValueError) as e:
        pytest.skip(f"this device pins no read-only memory: {e}")
    with memory:
        t = memory.view("i4")
        assert t.is_readonly
        assert np.array_equal(t.astype("f4", stream=stream).numpy(stream=stream), a)
        t.close()


def test_the_host_does_not_wait(stream):
    t = cu.zeros(4, "i4", stream=stream)
    with hold(stream):
        t.fill(7, stream=stream)
        out = t.astype("f8", stream=stream)
        assert not stream.is_done
    assert out.numpy(stream=stream).tolist() == [7] * 4


@pytest.mark.parametrize("where", ["device", "host", "misaligned"])
def test_in_captures(where, stream):
    a = np.arange(6, dtype="i4")
    memory = stream.device.allocate(32, stream=stream)
    device = memory[1:25].view("i4") if where == "misaligned" else memory[:24].view("i4")
    device.copy_from(a, stream=stream)
    source = cu.from_dlpack(a) if where == "host" else device
    result = cu.zeros((3, 2), "f8", stream=stream)
    with stream.capture() as graph:
        result.copy_from(source.reshape(3, 2).astype("f8", stream=stream), stream=stream)
    step = graph.instantiate()
    step.launch(stream)
    assert np.array_equal(result.numpy(stream=stream), a.reshape(3, 2))
    a += 10
    if where != "host":
        device.copy_from(a, stream=stream)
    result.fill(0, stream=stream)
    step.launch(stream)
    stream.sync()
    assert np.array_equal(result.numpy(stream=stream), a.reshape(3, 2))
    step.close()
    graph.close()


def test_what_is_refused(stream):
    t = cu.zeros(4, "f4", stream=stream)
    with pytest.raises(TypeError, match="needs stream="):
        t.astype("f8")
    with pytest.raises(TypeError, match="needs stream="):
        t.astype("f4")
    with pytest.raises(TypeError, match=r"float8_e4m3 is not converted; .*kernel of your own"):
        t.astype("float8_e4m3", stream=stream)
    with pytest.raises(TypeError, match="dtype must be"):
        t.astype("U5", stream=stream)
    z = cu.zeros(4, "c16", stream=stream)
    for real in ("f4", "bool", "bfloat16"):
        with pytest.raises(TypeError, match=r"lose the imag.*view\('float64', \(\*t.shape, 2\)\)"):
            z.astype(real, stream=stream)
    for options in ({"copy": False}, {"stream": stream}):
        t.close()
        with pytest.raises(cu.ClosedError, match="tensor is closed"):
            t.astype("f4", **options)


def test_a_resource_that_answers_with_misaligned_memory(stream, device):
    pool = device.memory_resource

    class Odd(cu.MemoryResource):
        def allocate(self, size, *, stream=None):
            return pool.allocate(size + 1, stream=stream)[1:]

    t = cu.ones(4, stream=stream)
    device.memory_resource = Odd()
    try:
        for source in (t, cu.from_dlpack(np.ones(4, "f4"))):
            with pytest.raises(BufferError, match=r"aligned to [48] bytes"):
                source.astype("f8", stream=stream)
    finally:
        device.memory_resource = pool
    assert t.astype("f8", stream=stream).numpy(stream=stream).tolist() == [1] * 4


def test_a_type_may_close_the_tensor(stream):
    t = cu.zeros(4, "f4", stream=stream)

    class Type:
        def __str__(self):
            t.close()
            return "float64"

    with pytest.raises(cu.ClosedError):
        t.astype(Type(), stream=stream)


def test_all_pairs_load(device, stream):
    """The driver's compiler takes every kernel, not only those that the values above reach."""
    pairs = [*itertools.permutations((*TYPES, "bfloat16"), 2), COMPLEX, COMPLEX[::-1]]
    for source, target in pairs:
        cu.zeros(1, source, stream=stream).astype(target, stream=stream).close()
    stream.sync()


def test_two_devices(script):
    run = script(
        """
        import numpy as np
        import cudago as cu

        a, b = cu.Device.all()
        with a.create_stream() as s, b.create_stream() as other:
            for key in (np.s_[:], np.s_[::2]):
                t = cu.asarray(np.arange(8, dtype="i4"), stream=s)[key]
                s.sync()
                got = t.astype("f8", stream=other)
                assert got.device is b
                assert got.numpy(stream=other).tolist() == list(range(8))[key]
                again = got.astype("u1", stream=other)
                assert again.numpy(stream=other).tolist() == list(range(8))[key]
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="devices=2",
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_after_a_reset(script):
    run = script(
        """
        import cudago as cu

        device = cu.Device()
        for _ in range(2):
            with device.create_stream() as s:
                t = cu.full(3, 2.5, stream=s).astype("i4", stream=s)
                assert t.numpy(stream=s).tolist() == [2, 2, 2]
                t.close()
            device.reset()
        """
    )
    assert (run.returncode, run.stderr) == (0, "")
