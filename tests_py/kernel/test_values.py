# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that live in memory of their own are values as kernel arguments, not memory."""

from __future__ import annotations

import ctypes

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SOURCE = """
extern "C" __global__ void wide(unsigned long long* o, unsigned long long v) { *o = v; }
extern "C" __global__ void word(int* o, int v) { *o = v; }
extern "C" __global__ void real(float* o, float v) { *o = v; }
extern "C" __global__ void precise(double* o, double v) { *o = v; }
extern "C" __global__ void put(int v, int* o) { *o = v; }
extern "C" __global__ void is_null(int* o, int* p) { *o = p == 0; }
"""


@pytest.fixture(scope="module")
def code(device):
    made = cu.Program(SOURCE).compile()
    for name in made.kernels:
        made.get_kernel(name)
    return made


def written(kernel, dtype, value, stream):
    out = cu.zeros(1, dtype, stream=stream)
    kernel[1, 1, stream](out, value)
    return out.numpy(stream=stream)[0]


VALUES = [
    ("wide", "u8", ctypes.c_ulong(5), 5),
    ("wide", "u8", ctypes.c_uint8(200), 200),
    ("wide", "u8", ctypes.c_ulonglong(-1), 2**64 - 1),
    ("wide", "u8", ctypes.c_void_p(5), 5),
    ("wide", "u8", ctypes.c_void_p(None), 0),
    ("wide", "u8", ctypes.c_bool(True), 1),
    ("wide", "u8", np.array(5, "u8"), 5),
    ("wide", "u8", np.array(5, ">u8"), 5),
    ("wide", "u8", np.array([3, 4], "u2")[1, ...], 4),
    ("word", "i4", ctypes.c_int(-7), -7),
    ("word", "i4", np.array(-7, "i8"), -7),
    ("real", "f4", ctypes.c_float(1.5), 1.5),
    ("real", "f4", ctypes.c_int(2), 2),
    ("real", "f4", np.array(1.5), 1.5),
    ("precise", "f8", ctypes.c_double(0.1), 0.1),
    ("precise", "f8", np.array(0.1, "f8"), 0.1),
]


@pytest.mark.parametrize(("name", "dtype", "value", "want"), VALUES)
def test_they_are_values(name, dtype, value, want, code, stream):
    assert written(code[name], dtype, value, stream) == want


def test_c_void_p_is_an_address(code, stream):
    out = cu.zeros(1, "i4", stream=stream)
    code["put"][1, 1, stream](7, ctypes.c_void_p(int(out.buffer.handle)))
    assert out.numpy(stream=stream)[0] == 7
    assert written(code["is_null"], "i4", ctypes.c_void_p(), stream) == 1


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("wide", ctypes.c_double(5), TypeError),
        ("wide", np.array(5.0), TypeError),
        ("wide", ctypes.c_char(b"5"), TypeError),
        ("wide", ctypes.pointer(ctypes.c_int(5)), TypeError),
        ("wide", np.array(None), TypeError),
        ("word", ctypes.c_longlong(1 << 40), OverflowError),
        ("word", np.array(1.5), TypeError),
        ("word", ctypes.c_void_p(), TypeError),
        ("real", ctypes.c_void_p(), TypeError),
        ("real", np.array("5"), TypeError),
    ],
)
def test_other_values_are_refused(name, value, error, code, stream):
    out = cu.zeros(8, "u1", stream=stream)
    with pytest.raises(error, match=f"parameter 1 of kernel {name}"):
        code[name][1, 1, stream](out, value)
    assert not out.numpy(stream=stream).any()


def test_graphs_take_them_too(code, stream):
    out = cu.zeros(1, "u8", stream=stream)
    graph = cu.Graph()
    graph.launch(cu.LaunchConfig(1, 1), code["wide"], out, np.array(6, "u8"))
    graph.instantiate().launch(stream)
    assert out.numpy(stream=stream)[0] == 6


class Pair(ctypes.Structure):
    """Two numbers: no value, but memory."""

    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_structure_and_an_array_of_one_are_memory(code, stream):
    if not stream.device.properties.pageable_memory_access:
        pytest.skip("kernels on this device do not read pageable memory")
    for thing in (Pair(1, 2), np.ones(1, "i4"), (ctypes.c_int * 1)(3)):
        code["put"][1, 1, stream](9, thing)
        stream.sync()
        assert memoryview(thing).tobytes()[:4] == b"\x09\0\0\0"
