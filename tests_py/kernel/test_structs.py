# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Instances of dataclasses as kernels' arguments: structs by value."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

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


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"scale": "a"}, ValueError, "field 'scale' of Params must be a float32"),
        ({"half": 1 << 16}, OverflowError, "field 'half' of Params must be a uint16"),
        ({"range": 5}, TypeError, "field 'range' of Params must be a dataclass .* not int"),
        ({"range": GOOD}, TypeError, "field 'range' of Params must be a dataclass .* not Params"),
    ],
)
def test_values_that_do_not_fit(kernel, stream, change, error, match):
    if np.__version__ < "2" and "half" in change:
        pytest.skip("NumPy 1 takes the low bits")
    with pytest.raises(error, match=match):
        taken(kernel, stream, replace(GOOD, **change))


@dataclass
class Vague:
    a: float


@dataclass
class Text:
    a: str


@dataclass
class Short:
    a: np.float32


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (Vague(1.0), TypeError, "field 'a' of Vague is annotated float, which does not"),
        (Text("a"), TypeError, "field 'a' of Text is annotated str"),
        (Range(1.0), TypeError, "field 'inclusive' of Range is annotated"),
        (Short(1.0), ValueError, "parameter 0 of kernel take is a struct of 40 bytes, got 4"),
        (Params, TypeError, "must be a struct of 40 bytes"),
    ],
)
def test_what_is_no_struct_of_the_kernels(kernel, stream, value, error, match):
    with pytest.raises(error, match=match):
        taken(kernel, stream, value)


def test_it_is_no_number_or_pointer(kernel, stream):
    with pytest.raises(TypeError, match="parameter 1 of kernel take"):
        cu.launch(stream, cu.LaunchConfig(1, 1), kernel, GOOD, GOOD)
