# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels from an expression for one element."""

from __future__ import annotations

import ctypes
from fractions import Fraction

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


def test_an_output_that_overlaps_an_input_is_refused(stream):
    add = cu.elementwise("float x, float y", "float z", "z = x + y", name="add")
    q = cu.asarray(np.arange(9, dtype="f4"), stream=stream)
    late, early = q[1:], q[:-1]
    with pytest.raises(ValueError, match="z of add overlaps with y: out= must be y itself"):
        add(late, early, stream=stream, out=late)
    with pytest.raises(ValueError, match="z of add overlaps with x"):
        add(early, late, stream=stream, out=late)
    assert q.numpy(stream=stream).tolist() == list(range(9))
    add(late, late, stream=stream, out=q[1:])  # the same memory as another object
    add(q[:4], 1, stream=stream, out=q[4:8])  # beside each other
    assert q.numpy(stream=stream).tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 16]
    wider = cu.elementwise("float x", "double z", "z = x", name="wider")
    memory = cu.zeros(64, "u1", stream=stream).buffer
    with pytest.raises(ValueError, match="z of wider overlaps with x"):
        wider(memory[:32].view("f4"), stream=stream, out=memory.view("f8"))
    same = cu.elementwise("float x", "int z", "z = (int)x + 2", name="same")
    out = memory.view("i4")
    assert same(memory.view("f4"), stream=stream, out=out) is out
    assert set(out.numpy(stream=stream).tolist()) == {2}


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


@pytest.mark.parametrize(
    "operation",
    [
        "z = x + 1 // the result",
        "z = x;\n#if 1\nz = x + 1;\n#endif",
        "z = x + 1;",
        "// x\nz = x + 1",
    ],
)
def test_an_operation_ends_in_its_own_line(operation, stream):
    made = cu.elementwise("float x", "float z", operation)
    assert made(cu.full(1, 2, "f4", stream=stream), stream=stream).item(stream=stream) == 3


@pytest.mark.parametrize("leave", ["return", "continue", "break"])
@pytest.mark.parametrize("of", [lambda t: t, lambda t: t[::2]])
def test_what_leaves_an_operation_leaves_one_element(leave, of, stream):
    """Whatever else its thread does."""
    host = np.arange(600_000, dtype="i4")
    x = cu.asarray(host, stream=stream)
    out = cu.zeros(host.shape, "i4", stream=stream)
    made = cu.elementwise("int x", "int z", f"if (x % 7 == 0) {leave};\nz = x + 1;")
    made(of(x), stream=stream, out=of(out))
    want = np.zeros_like(host)
    of(want)[...] = np.where(of(host) % 7, of(host) + 1, 0)
    assert np.array_equal(out.numpy(stream=stream), want)
    made._kernels.clear()


def test_without_inputs(stream):
    """The index is all that is given, and a shape."""
    made = cu.elementwise(" ", "int z, float64 w", "z = i; w = (double)i / n", name="ramp")
    for shape in (5, (2, 3), [4, 1, 2], (), 0, (3, 0), np.int64(7)):
        z, w = made(stream=stream, shape=shape)
        size = np.empty(shape).size
        want = np.arange(size).reshape(shape)
        assert np.array_equal(z.numpy(stream=stream), want)
        assert np.array_equal(w.numpy(stream=stream), want / max(size, 1))
    z, w = cu.zeros((4, 6), "i4", stream=stream), cu.zeros((2, 6), "f8", stream=stream)
    made(stream=stream, out=(z[::2], w))
    assert np.array_equal(z.numpy(stream=stream)[::2].ravel(), np.arange(12))
    assert repr(made) == "<cudago.ElementwiseKernel ramp() -> int z, float64 w>"
    with pytest.raises(TypeError, match="ramp needs a tensor among its inputs, out= or shape="):
        made(stream=stream)


def test_shape(stream):
    """Is one of those that broadcast."""
    made = cu.elementwise(*SUM)
    x = cu.asarray([1, 2, 3], "f4", stream=stream)
    assert made(x, 1, stream=stream, shape=(2, 3)).numpy(stream=stream).tolist() == [[3, 5, 7]] * 2
    assert made(x, 1, stream=stream, shape=1).shape == (3,)
    assert made(1, 2, stream=stream, shape=(2, 2)).numpy(stream=stream).tolist() == [[4, 4]] * 2
    with pytest.raises(ValueError, match=r"broadcast to one, got \(3,\), \(4,\)"):
        made(x, 1, stream=stream, shape=4)
    with pytest.raises(ValueError, match=r"must have the shape \(2, 3\) .* got \(3,\)"):
        made(x, 1, stream=stream, shape=(2, 3), out=x)
    for wrong in (-1, (3, -1), 1 << 63, -(10**5000)):
        with pytest.raises(ValueError, match=r"shape must have sizes of 0 to 2\*\*63 - 1, got "):
            made(x, 1, stream=stream, shape=wrong)
    for huge in ((1 << 62, 3), (1 << 60,)):
        with pytest.raises((OverflowError, cu.OutOfMemoryError)):
            made(1, 2, stream=stream, shape=huge)
    for wrong in (2.5, "3", (2, None)):
        with pytest.raises(TypeError, match="shape must be an int or a sequence of ints"):
            made(x, 1, stream=stream, shape=wrong)


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
        (("string x", "float z", ""), ValueError, "'string x'; the types are float, double"),
        (("float x,", "float z", ""), ValueError, "inputs must be types and names"),
        (("", "", ""), ValueError, "output must be types and names"),
        (("float x", "float y, z", ""), ValueError, "output must be types and names"),
        (("float x", "float y, float y", ""), ValueError, "different names, got x, y, y"),
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
        ((t,), None, TypeError, r"elementwise takes 2 input\(s\), got 1$"),
        (
            (t, t, t),
            None,
            TypeError,
            r"takes 2 input\(s\), got 3: what it writes to, z, is given by out=",
        ),
        ((t, u), None, ValueError, r"one shape, .* got \(4,\), \(2, 2\)"),
        ((t, t), u, ValueError, r"one shape, .* got \(4,\), \(4,\), \(2, 2\)"),
        ((t, wide), None, TypeError, "y of elementwise must have elements of type float32, got f"),
        (
            (t, t),
            wide,
            TypeError,
            "z of elementwise must have elements of type float32, got float64",
        ),
        ((t, t), "out", TypeError, "z of elementwise must be a Tensor, not str"),
        ((1, 2), None, TypeError, "needs a tensor among its inputs, out= or shape="),
        (
            (t, "2"),
            None,
            TypeError,
            "y of elementwise must be a tensor of float32, or a number.*str",
        ),
    ):
        with pytest.raises(error, match=message):
            made(*args, stream=stream, out=out)


def test_what_does_not_compile_says_where(stream):
    made = cu.elementwise("float x", "float z", "z = nothing(x)")
    with pytest.raises(cu.CompileError) as caught:
        made(cu.zeros(4, "f4", stream=stream), stream=stream)
    assert "nothing" in caught.value.log


def scalar(ctype, value, stream):
    """Return what a number is as an input."""
    made = cu.elementwise(f"{ctype} y", f"{ctype} z", "z = y")
    kind = {"long long": "i8", "int": "i4", "signed char": "i1", "unsigned": "u4"}.get(ctype)
    out = cu.empty(1, kind or {"bool": "?", "float": "f4"}[ctype], stream=stream)
    return made(value, stream=stream, out=out).item(stream=stream)


class Array:
    def __init__(self, ours):
        self.__cuda_array_interface__ = {
            "shape": ours.shape,
            "typestr": "<i8",
            "data": (ours.handle, False),
            "version": 3,
        }


def test_memory_is_no_number(stream):
    """An address would fit where 64 bits are wanted."""
    t = cu.full(4, 3, "i8", stream=stream)
    made = cu.elementwise("long long x, long long y", "long long z", "z = x + y")
    assert made(t, Array(t), stream=stream).numpy(stream=stream).tolist() == [6] * 4
    for wrong in (
        t.buffer,
        t.ptr,
        None,
        bytearray(32),
        b"12345678",
        memoryview(bytearray(32)),
        [1, 2, 3, 4],
        ctypes.c_void_p(8),
        ctypes.c_char_p(b"x"),
        (ctypes.c_longlong * 4)(),
        np.array("2000", "M8[s]"),
        np.array(None),
        1j,
        object(),
    ):
        with pytest.raises(TypeError, match=r"y of elementwise must (be a tensor|have elements)"):
            made(t, wrong, stream=stream)


@pytest.mark.parametrize(
    ("ctype", "value", "want"),
    [
        ("int", -(2**31), -(2**31)),
        ("signed char", -128, -128),
        ("unsigned", 2**32 - 1, 2**32 - 1),
        ("int", True, 1),
        ("int", np.int8(-3), -3),
        ("int", np.array(5, "u8"), 5),
        ("int", ctypes.c_short(-3), -3),
        ("float", ctypes.c_double(0.5), 0.5),
        ("float", np.float16(0.5), 0.5),
        ("float", Fraction(1, 4), 0.25),
        ("float", 3, 3.0),
        ("bool", 7, True),
        ("bool", 0, False),
        ("bool", 0.5, True),
        ("bool", np.array(256), True),
    ],
)
def test_numbers_become_what_was_declared(ctype, value, want, stream):
    got = scalar(ctype, value, stream)
    assert (got, type(got)) == (want, type(want))


def test_a_bool_is_one_or_zero_in_memory(stream):
    out = cu.empty(1, "?", stream=stream)
    cu.elementwise("bool y", "bool z", "z = y")(7, stream=stream, out=out)
    assert out.buffer.view("u1").item(stream=stream) == 1


@pytest.mark.parametrize(
    ("ctype", "value", "error"),
    [
        ("int", 2**31, OverflowError),
        ("int", -(2**31) - 1, OverflowError),
        ("signed char", 200, OverflowError),
        ("signed char", np.uint8(128), OverflowError),
        ("unsigned", -1, OverflowError),
        ("long long", 2**63, OverflowError),
        ("float", 1e300, OverflowError),
        ("int", 1.5, TypeError),
        ("int", np.float32(2), TypeError),
    ],
)
def test_numbers_that_do_not_fit(ctype, value, error, stream):
    with pytest.raises(error):
        scalar(ctype, value, stream)


def test_misaligned_tensors_are_refused_before_anything_happens(stream):
    memory = cu.zeros(64, "u1", stream=stream).buffer
    t, view = cu.zeros(4, "f4", stream=stream), memory[1:17].view("f4")
    doubled = cu.elementwise("float x", "float z", "z = 2 * x")
    host = np.zeros(17, "u1")[1:].view("f4")  # NumPy's own memory is aligned
    for args, out in (((view,), None), ((t,), view), ((host,), None)):
        with pytest.raises(ValueError, match=r"[xz] of elementwise must be aligned to the 4 bytes"):
            doubled(*args, stream=stream, out=out)
    doubled(view.astype("f4", stream=stream), stream=stream)
    assert doubled(view[:0], stream=stream).size == 0
    with pytest.raises(ValueError, match="x of reduce must be aligned to the 4 bytes"):
        cu.reduce("float x", "float z", "a + b")(view, stream=stream)
    with pytest.raises(ValueError, match="z of reduce must be aligned to the 4 bytes"):
        cu.reduce("float x", "float z", "a + b")(t, stream=stream, out=view[:1])
    stream.sync()


def test_streams_of_others_are_streams(stream):
    class Foreign:
        def __cuda_stream__(self):
            return 0, stream.handle

    t = cu.full(4, 2, "f4", stream=stream)
    assert cu.elementwise(*SUM)(t, 1, stream=Foreign()).numpy(stream=stream).tolist() == [5] * 4
    assert cu.reduce("float x", "float z", "a + b")(t, stream=Foreign()).item(stream=stream) == 8
    for call in (
        cu.elementwise("float x", "float z", "z = x"),
        cu.reduce("float x", "float z", "a"),
    ):
        with pytest.raises(TypeError, match="stream must be a Stream or have __cuda_stream__"):
            call(t, stream=5)


def test_statements_that_change_a_number(stream, monkeypatch):
    """Change it for one element, of those that a thread has."""
    monkeypatch.setattr(cu._tensor.expression, "_MOST_BLOCKS", 1)
    made = cu.elementwise("int x, int a", "int z", "a += x; z = a + n; n = 0;")
    x = np.arange(3000, dtype="i4")
    both = cu.asarray(np.repeat(x, 2), stream=stream)
    for given in (cu.asarray(x, stream=stream), both[::2]):
        assert np.array_equal(made(given, 5, stream=stream).numpy(stream=stream), x + 3005)


def test_options_are_checked_when_it_is_made():
    with pytest.raises(TypeError, match="options must be ProgramOptions, not int"):
        cu.elementwise("float x", "float y", "y = x", options=5)
