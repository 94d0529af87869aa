# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Instances of dataclasses as kernels' arguments: structs by value."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

import cudago as cu

SOURCE = """
struct Range { double low; char inclusive; };
struct Params { bool on; float scale; Range range; unsigned short half; long long big; };
extern "C" __global__ void take(Params p, double* out) {
    out[0] = p.on; out[1] = p.scale; out[2] = p.range.low; out[3] = p.range.inclusive;
    out[4] = p.half; out[5] = p.big;
}
"""


@dataclass
class Range:
    low: np.float64
    inclusive: ctypes.c_char | np.int8 | None = None


@dataclass(frozen=True)
class Bounds:
    low: np.float64
    inclusive: np.int8


@dataclass
class Params:
    on: bool
    scale: np.float32
    range: Bounds
    half: ctypes.c_uint16
    big: np.int64


GOOD = Params(True, 0.5, Bounds(-2.25, 1), 65535, -(1 << 40))


@pytest.fixture(scope="module")
def kernel(driver):
    """Writes the fields of what it is given."""
    return cu.Program(SOURCE).compile()["take"]


def taken(kernel, stream, value):
    out = cu.zeros(6, "f8", stream=stream)
    cu.launch(stream, cu.LaunchConfig(1, 1), kernel, value, out)
    return out.numpy(stream=stream).tolist()


def test_fields_arrive_as_c_lays_them_out(kernel, stream):
    assert taken(kernel, stream, GOOD) == [1, 0.5, -2.25, 1, 65535, -(1 << 40)]
    other = replace(GOOD, on=False, scale=np.float32(3), big=np.int64(7))
    assert taken(kernel, stream, other) == [0, 3, -2.25, 1, 65535, 7]


def test_graphs_take_them_too(kernel, stream):
    out = cu.zeros(6, "f8", stream=stream)
    g = cu.Graph()
    g.launch(cu.LaunchConfig(1, 1), kernel, GOOD, out)
    g.instantiate().launch(stream)
    assert out.numpy(stream=stream)[1] == 0.5
    kernel.bind(cu.LaunchConfig(1, 1), replace(GOOD, scale=4.0), out)(stream)
    assert out.numpy(stream=stream)[1] == 4


INT64 = "an int64, from -9223372036854775808 to 9223372036854775807"


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"scale": "1"}, TypeError, "field 'scale' of Params must be a float32, got '1'"),
        ({"scale": 1e300}, OverflowError, "'scale' of Params must be a float32, within its range"),
        ({"scale": 10**400}, OverflowError, "'scale' of Params must be a float32, within its rang"),
        ({"scale": 1j}, TypeError, "'scale' of Params must be a float32, got 1j"),
        ({"scale": np.ones(1)}, TypeError, "'scale' of Params must be a float32"),
        ({"half": 1 << 16}, OverflowError, "must be a uint16, from 0 to 65535, got 65536"),
        ({"half": -1}, OverflowError, "must be a uint16, from 0 to 65535, got -1"),
        ({"half": np.array(1 << 16)}, OverflowError, "must be a uint16, from 0 to 65535"),
        ({"half": 1.0}, TypeError, r"'half' of Params must be a uint16, .*, got 1.0 \(float\)"),
        ({"half": np.array([1])}, TypeError, "'half' of Params must be a uint16"),
        ({"half": ctypes.c_int(1 << 16)}, OverflowError, "'half' of Params must be a uint16"),
        ({"big": "5"}, TypeError, f"'big' of Params must be {INT64}, got '5'"),
        ({"big": None}, TypeError, f"'big' of Params must be {INT64}, got None"),
        ({"big": 1 << 63}, OverflowError, f"'big' of Params must be {INT64}"),
        ({"on": 7}, OverflowError, "'on' of Params must be a bool, got 7"),
        ({"on": "x"}, TypeError, "'on' of Params must be a bool, got 'x'"),
        ({"range": 5}, TypeError, "field 'range' of Params must be a dataclass .* not int"),
        ({"range": GOOD}, TypeError, "field 'range' of Params must be a dataclass .* not Params"),
        ({"range": Bounds}, TypeError, "field 'range' of Params must be a dataclass .* not type"),
        ({"range": Bounds(0, 128)}, OverflowError, "field 'inclusive' of Bounds must be an int8"),
    ],
)
def test_values_that_do_not_fit(kernel, stream, change, error, match):
    with pytest.raises(error, match=match):
        taken(kernel, stream, replace(GOOD, **change))


def test_scalars_of_every_kind_are_values(kernel, stream):
    values = {"half": ctypes.c_int(7), "on": np.True_, "scale": np.array(2), "big": np.uint8(9)}
    assert taken(kernel, stream, replace(GOOD, **values)) == [1, 2, -2.25, 1, 7, 9]
    infinite = replace(GOOD, scale=float("inf"), on=1)
    assert taken(kernel, stream, infinite)[:2] == [1, float("inf")]


ARRAYS = """
struct Weights { short w[3]; char name[4]; };
extern "C" __global__ void take(Weights p, double* out) {
    for (int i = 0; i < 3; i++) out[i] = p.w[i];
    out[3] = p.name[3];
}
"""


@dataclass
class Weights:
    w: ctypes.c_int16 * 3
    name: ctypes.c_char * 4


@pytest.fixture(scope="module")
def arrays(driver):
    """Writes the elements of arrays in a struct."""
    return cu.Program(ARRAYS).compile()["take"]


@pytest.mark.parametrize(
    "three",
    [
        (1, 2, 3),
        [np.int8(1), 2, ctypes.c_long(3)],
        np.arange(1, 4),
        np.arange(1, 4, dtype="i1"),
        np.arange(1, 4, dtype=">i2"),
        (ctypes.c_int16 * 3)(1, 2, 3),
        range(1, 4),
    ],
)
def test_arrays_in_structs(arrays, stream, three):
    assert taken(arrays, stream, Weights(three, b"abcd"))[:4] == [1, 2, 3, ord("d")]


@pytest.mark.parametrize(
    ("three", "name", "error", "match"),
    [
        (7, b"abcd", TypeError, r"'w' of Weights must be an array of 3 int16, got 7"),
        ({1, 2, 3}, b"abcd", TypeError, r"'w' of Weights must be an array of 3 int16"),
        ("123", b"abcd", TypeError, r"'w' of Weights must be an array of 3 int16, got '123'"),
        ((1, 2), b"abcd", ValueError, r"'w' of Weights must be an array of 3 int16, got \(1, 2\)"),
        (np.ones((3, 1)), b"abcd", ValueError, "'w' of Weights must be an array of 3 int16"),
        ((1, 2, 3.0), b"abcd", TypeError, r"'w\[2\]' of Weights must be an int16, .* got 3.0"),
        (np.ones(3), b"abcd", TypeError, r"'w\[0\]' of Weights must be an int16"),
        ((1, 1 << 15, 3), b"abcd", OverflowError, r"'w\[1\]' of Weights must be an int16"),
        ((1, 2, 3), b"a", ValueError, "'name' of Weights must be an array of 4 bytes"),
        ((1, 2, 3), "abcd", TypeError, "'name' of Weights must be an array of 4 bytes"),
    ],
)
def test_arrays_that_do_not_fit(arrays, stream, three, name, error, match):
    with pytest.raises(error, match=match):
        taken(arrays, stream, Weights(three, name))


@dataclass
class Bytes:
    u: ctypes.c_uint8 * 2
    i: ctypes.c_int8 * 2
    name: ctypes.c_char * 4
    pad: ctypes.c_int16


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes_are_arrays_of_8_bits(arrays, stream, kind):
    made = Bytes(kind(b"\1\0"), kind(b"\xfe\xff"), b"\3\0ab", 0)
    assert taken(arrays, stream, made)[:3] == [1, -2, 3]


@pytest.mark.parametrize("field", ["u", "i"])
@pytest.mark.parametrize(
    ("wrong", "error"), [(b"abc", ValueError), (b"", ValueError), ("ab", TypeError)]
)
def test_bytes_of_another_length(arrays, stream, field, wrong, error):
    made = Bytes(**{"u": b"ab", "i": b"ab", "name": b"abcd", "pad": 0, field: wrong})
    with pytest.raises(error, match=rf"'{field}' of Bytes must be an array of 2 u?int8, got b?'"):
        taken(arrays, stream, made)


class CRange(ctypes.Structure):
    """As Bounds."""

    _fields_ = (("low", ctypes.c_double), ("inclusive", ctypes.c_int8))


@dataclass
class ParamsOfC:
    on: bool
    scale: np.float32
    range: CRange
    half: ctypes.c_uint16
    big: np.int64


def test_a_structure_in_a_dataclass(kernel, stream):
    value = ParamsOfC(True, 0.5, CRange(-2.25, 1), 2, 3)
    assert taken(kernel, stream, value) == [1, 0.5, -2.25, 1, 2, 3]
    scalar = np.zeros((), np.dtype(CRange))[()]
    assert taken(kernel, stream, replace(value, range=scalar))[2:4] == [0, 0]
    with pytest.raises(TypeError, match="field 'range' of ParamsOfC must be"):
        taken(kernel, stream, replace(value, range=np.zeros((), "i4,i4")[()]))


class BigEndian(ctypes.BigEndianStructure):
    """Of the size of Weights."""

    _fields_ = (("w", ctypes.c_int16 * 3), ("name", ctypes.c_int32))


@dataclass
class Swapped:
    x: ctypes.c_int32.__ctype_be__


@dataclass
class InnerSwapped:
    inner: BigEndian


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.zeros((), [("a", "i1"), ("x", ">i8")])[()], "field 'x' of it is big-endian"),
        (np.zeros((), [("q", [("x", ">f4"), ("y", "f4")])]), "field 'x' of it is big-endian"),
        (np.zeros((), [("x", "O")])[()], "field 'x' of it is a Python object"),
        (np.zeros(5, ">i2"), "what was given is big-endian"),
        (np.zeros(1, "O"), "what was given is a Python object"),
        (BigEndian(), "field 'w' of it is big-endian"),
        (Swapped(1), "field 'x' of Swapped is big-endian"),
        (InnerSwapped(BigEndian()), "field 'inner.w' of InnerSwapped is big-endian"),
    ],
)
def test_bytes_that_devices_read_otherwise(arrays, stream, value, match):
    with pytest.raises(TypeError, match=match):
        taken(arrays, stream, value)


def test_names_of_fields_are_no_formats(arrays, stream):
    value = np.zeros((), [("O", "i2"), (">", "i2", (2,)), ("!O", "i4")])[()]
    assert taken(arrays, stream, value)[:4] == [0, 0, 0, 0]


@dataclass
class Vague:
    a: float


@dataclass
class Text:
    a: str


@dataclass
class Short:
    a: np.float32


@dataclass
class R:
    a: np.float32
    b: R


@dataclass
class First:
    second: Second


@dataclass
class Second:
    third: Third


@dataclass
class Third:
    first: First


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (R(1.0, None), TypeError, "field 'b' of R is R itself, which has no size in C"),
        (
            First(Second(Third(None))),
            TypeError,
            "field 'first' of Third is First again, of which Third is a part, which has no size",
        ),
        (Vague(1.0), TypeError, "field 'a' of Vague is annotated float, which does not"),
        (Text("a"), TypeError, "field 'a' of Text is annotated str"),
        (Range(1.0), TypeError, "field 'inclusive' of Range is annotated"),
        (Short(1.0), ValueError, "parameter 0 of kernel take is a struct of 40 bytes, got 4"),
        (Params, TypeError, "must be a struct of 40 bytes"),
        ((bytes(40),), TypeError, "must be a struct of 40 bytes"),
    ],
)
def test_what_is_no_struct_of_the_kernels(kernel, stream, value, error, match):
    with pytest.raises(error, match=match):
        taken(kernel, stream, value)


@pytest.mark.parametrize("made", [5, (bytes(40), ("field",))])
def test_an_answer_that_is_none(kernel, stream, monkeypatch, made):
    monkeypatch.setattr("cudago._kernel.structs._packed", lambda _: made)
    with pytest.raises(TypeError, match=r"must return a tuple|must be a tuple"):
        taken(kernel, stream, GOOD)


def test_an_instance_that_lies_about_its_class(kernel, stream):
    class Liar(Params):
        __class__ = Short

    liar = Liar(**{f.name: getattr(GOOD, f.name) for f in fields(GOOD)})
    assert taken(kernel, stream, liar) == taken(kernel, stream, GOOD)
    inside = replace(GOOD, range=replace(GOOD.range))
    liar_inside = type("Liar", (Bounds,), {"__class__": type})(-2.25, 1)
    assert taken(kernel, stream, replace(inside, range=liar_inside)) == taken(kernel, stream, GOOD)


def test_it_is_no_number_or_pointer(kernel, stream):
    with pytest.raises(TypeError, match="parameter 1 of kernel take"):
        cu.launch(stream, cu.LaunchConfig(1, 1), kernel, GOOD, GOOD)
