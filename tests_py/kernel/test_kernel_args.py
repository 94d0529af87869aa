# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments: what each parameter accepts, bit by bit, and what it refuses."""

from __future__ import annotations

import array
import ctypes
import re
import struct

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

ONE = cu.LaunchConfig(grid=1, block=1)
TYPES = {  # and their letters in NumPy and in struct
    "signed char": "b",
    "unsigned char": "B",
    "short": "h",
    "unsigned short": "H",
    "int": "i",
    "unsigned int": "I",
    "long long": "q",
    "unsigned long long": "Q",
    "float": "f",
    "double": "d",
}
SOURCE = """
struct Small { char tag; int number; };
struct alignas(16) Big { float4 a; double b; char c; };
extern "C" __global__ void store_small(Small* p, Small value) { *p = value; }
extern "C" __global__ void store_big(Big* p, Big value) { *p = value; }
extern "C" __global__ void store_bool(bool* p, bool value) { *p = value; }
extern "C" __global__ void is_null(int* p, const void* q) { *p = q == nullptr; }
extern "C" __global__ void mixed(char a, double b, short c, float d, int* p, long long e) {
    *p = a + (int)b + c + (int)d + (int)e;
}
""" + "".join(
    f'extern "C" __global__ void store_{letter}({name}* p, {name} value) {{ *p = value; }}'
    for name, letter in TYPES.items()
)


@pytest.fixture(scope="module")
def code(device):
    """Kernels that store their second argument where the first points."""
    return cu.Program(SOURCE).compile()


@pytest.fixture
def stored(code, device, stream):
    """Function: the bytes that a kernel made of an argument."""

    def store(kernel: str, value: object, size: int) -> bytes:
        out = bytearray(size)
        with device.allocate(size, stream=stream) as buffer:
            buffer.fill(0, stream=stream)
            cu.launch(stream, ONE, code[f"store_{kernel}"], buffer, value)
            buffer.copy_to(out, stream=stream)
            stream.sync()
        return bytes(out)

    return store


def bounds(letter: str) -> list[int]:
    """Return the least and the greatest integer of a type, and some between."""
    bits = 8 * struct.calcsize(letter)
    if letter.isupper():
        return [0, 1, (1 << bits) - 1]
    return [-(1 << (bits - 1)), -1, 0, 42, (1 << (bits - 1)) - 1]


INTEGERS = [(letter, value) for letter in "bBhHiIqQ" for value in bounds(letter)]


@pytest.mark.parametrize(("letter", "value"), INTEGERS)
def test_integers_arrive_bit_by_bit(letter, value, stored):
    assert stored(letter, value, struct.calcsize(letter)) == struct.pack(letter, value)


@pytest.mark.parametrize("letter", "bBhHiIqQ")
def test_integers_that_do_not_fit(letter, stored):
    size = struct.calcsize(letter)
    bits = 8 * size
    for bad in (1 << bits, -(1 << (bits - 1)) - 1, 1 << 80, -(1 << 80)):
        with pytest.raises(
            OverflowError, match=f"parameter 1 of kernel store_{letter} .*{bits} bits"
        ):
            stored(letter, bad, size)


@pytest.mark.parametrize("letter", "bBhHiIqQ")
def test_integers_of_numpy(letter, stored):
    size = struct.calcsize(letter)
    assert stored(letter, np.dtype(letter).type(42), size) == struct.pack(letter, 42)
    assert stored(letter, np.int64(42), size) == struct.pack(letter, 42)


class Index:
    def __index__(self):
        return 42

    def __repr__(self):  # the test's name, which is the same in every process
        return "Index()"


@pytest.mark.parametrize("value", [True, Index(), ctypes.c_int(42).value], ids=repr)
def test_other_integers(value, stored):
    expected = value.__index__()
    assert stored("i", value, 4) == struct.pack("i", expected)


@pytest.mark.parametrize("value", [True, False, 1, 0, np.True_, np.False_], ids=repr)
def test_bool(value, stored):
    assert stored("bool", value, 1) == struct.pack("?", value)


FLOATS = [0.0, -0.0, 1.5, -2.25, 3.4e38, 1e-45, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("value", FLOATS)
@pytest.mark.parametrize("letter", "fd")
def test_floats_arrive_bit_by_bit(letter, value, stored):
    size = struct.calcsize(letter)
    for given in (value, np.float64(value), np.dtype(letter).type(value)):
        assert stored(letter, given, size) == np.dtype(letter).type(value).tobytes()


def test_integers_are_floats_where_a_float_is_wanted(stored):
    assert stored("f", 3, 4) == struct.pack("f", 3)
    assert stored("d", np.int32(-7), 8) == struct.pack("d", -7)


def test_floats_that_do_not_fit(stored):
    for bad in (3.5e38, -1e39, np.float64(1e300), 10**60):
        with pytest.raises(
            OverflowError, match="parameter 1 of kernel store_f is a float of 32 bits"
        ):
            stored("f", bad, 4)
    with pytest.raises(OverflowError, match="does not fit"):
        stored("d", 10**400, 8)


@pytest.mark.parametrize("bad", ["1", None, 1j, b"abcd", [1.0], np.zeros(1, "f4")], ids=repr)
def test_what_is_no_float(bad, stored):
    with pytest.raises(TypeError, match=r"parameter 1 of kernel store_f must be a float f32, got "):
        stored("f", bad, 4)


@pytest.mark.parametrize("bad", [1.0, 3.5, np.float32(1), "1", None, 1j, b"abcd", [1]], ids=repr)
def test_what_is_no_integer(bad, stored):
    with pytest.raises(
        TypeError, match=r"parameter 1 of kernel store_i must be an integer u32, got"
    ):
        stored("i", bad, 4)


def test_a_buffer_is_no_number(stored, device, stream):
    with device.allocate(4, stream=stream) as buffer:
        for bad in (buffer, buffer.ptr, buffer.view("i4")):
            with pytest.raises(TypeError, match="parameter 1 of kernel store_i must be an integer"):
                stored("i", bad, 4)


SMALL = np.dtype([("tag", "i1"), ("number", "i4")], align=True)
BIG = np.dtype(
    {
        "names": ["a", "b", "c"],
        "formats": ["4f4", "f8", "i1"],
        "offsets": [0, 16, 24],
        "itemsize": 32,
    }
)


def test_structs(stored):
    small = np.array((7, -5), dtype=SMALL)
    packed = struct.pack("=b3xi", 7, -5)
    for given in (small[()], small, packed, bytearray(packed), memoryview(packed)):
        assert stored("small", given, 8) == packed
    big = np.array(([1, 2, 3, 4], 5.5, 6), dtype=BIG)
    assert stored("big", big[()], 32)[:25] == big.tobytes()[:25]

    class Small(ctypes.Structure):
        _fields_ = (("tag", ctypes.c_char), ("number", ctypes.c_int))

    assert stored("small", Small(b"\7", -5), 8)[:1] == b"\7"


def test_structs_of_the_wrong_size(stored):
    for bad in (b"1234567", bytes(9), np.zeros(3, "f4")):
        with pytest.raises(
            ValueError, match=r"parameter 1 of kernel store_small is a struct of 8 b"
        ):
            stored("small", bad, 8)
    for bad in (5, 1.0, None, "12345678"):
        with pytest.raises(
            TypeError, match=r"parameter 1 of kernel store_small must be a struct of 8"
        ):
            stored("small", bad, 8)


def test_none_is_a_null_pointer(code, device, stream):
    out = bytearray(4)
    with device.allocate(4, stream=stream) as buffer:
        for given, expected in (
            (None, 1),
            (buffer, 0),
            (0, 1),
            (buffer.ptr, 0),
            (int(buffer.ptr), 0),
        ):
            cu.launch(stream, ONE, code["is_null"], buffer, given)
            buffer.copy_to(out, stream=stream)
            stream.sync()
            assert int.from_bytes(out, "little") == expected


def test_parameters_lie_where_the_kernel_looks(code, device, stream):
    out = bytearray(4)
    with device.allocate(4, stream=stream) as buffer:
        cu.launch(stream, ONE, code["mixed"], 1, 20.0, 300, 4000.0, buffer, 50000)
        buffer.copy_to(out, stream=stream)
        stream.sync()
    assert int.from_bytes(out, "little") == 54321


def test_wrong_count(code, device, stream):
    with device.allocate(4, stream=stream) as buffer:
        for count in (0, 1, 3, 400):
            with pytest.raises(
                TypeError, match=rf"kernel store_i takes 2 argument\(s\), got {count}"
            ):
                cu.launch(stream, ONE, code["store_i"], *[buffer] * count)


def test_a_failed_launch_did_nothing(code, device, stream):
    out = bytearray(4)
    with device.allocate(4, stream=stream) as buffer:
        buffer.fill(9, stream=stream)
        with pytest.raises(TypeError, match="parameter 1"):
            cu.launch(stream, ONE, code["store_i"], buffer, 1.5)
        buffer.copy_to(out, stream=stream)
        stream.sync()
    assert out == bytearray([9] * 4)


def test_every_object_with_device_memory(kernels, device, stream):
    out = np.zeros(8, "i4")
    config = cu.LaunchConfig(grid=1, block=8)

    class Interface:
        def __init__(self, handle, **more):
            self.__cuda_array_interface__ = {
                "shape": (8,),
                "typestr": "<i4",
                "data": (handle, False),
                "version": 3,
                **more,
            }

    with device.allocate(64, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        given = (
            buffer,
            buffer[16:48],
            buffer.ptr + 16,
            buffer.view("i4", (4, 4))[1:],
            Interface(buffer.handle + 16),
            int(buffer.ptr) + 16,
        )
        for argument in given:
            cu.launch(stream, config, kernels["add"], argument, 1, 8)
        buffer[16:48].copy_to(out, stream=stream)
        stream.sync()
        assert out.tolist() == [6] * 4 + [5] * 4
        for more, error, message in (
            ({"strides": (8,)}, BufferError, "C-contiguous"),
            ({"mask": 1}, TypeError, "masked"),
            ({"version": 1}, TypeError, "too old"),
        ):
            with pytest.raises(error, match=message):
                cu.launch(stream, config, kernels["add"], Interface(buffer.handle, **more), 1, 8)


def test_a_closed_buffer(kernels, device, stream):
    buffer = device.allocate(64, stream=stream)
    buffer.close()
    with pytest.raises(cu.ClosedError, match="buffer is closed"):
        cu.launch(stream, ONE, kernels["add"], buffer, 1, 1)


def test_an_object_without_memory(kernels, stream):
    with pytest.raises(
        TypeError, match="parameter 0 of kernel add must be a pointer: memory, an address or None"
    ):
        cu.launch(stream, ONE, kernels["add"], object(), 1, 1)


@pytest.mark.parametrize(
    "thing",
    [
        np.zeros((4, 4), "i4")[:, 1],
        np.zeros((4, 4), "i4").T[:2],
        memoryview(np.zeros(8, "i4"))[::2],
    ],
    ids=["column", "transposed", "memoryview"],
)
def test_arrays_with_gaps_are_refused_with_advice(kernels, device, stream, thing):
    match = r"parameter 0 of kernel add: the array has gaps .* np\.ascontiguousarray\(x\)"
    with pytest.raises(BufferError, match=match):
        cu.launch(stream, ONE, kernels["add"], thing, 1, 1)
    graph = cu.Graph(device)
    with pytest.raises(BufferError, match=match):
        graph.launch(ONE, kernels["add"], thing, 1, 1)
    assert not graph.nodes


# Where kernels read ordinary host memory, it is an argument as it is; elsewhere it is refused.
HOSTS = {
    "numpy": lambda: np.arange(16, dtype="i4"),
    "array": lambda: array.array("i", range(16)),
    "bytearray": lambda: bytearray(np.arange(16, dtype="i4").tobytes()),
    "ctypes": lambda: (ctypes.c_int * 16)(*range(16)),
}


@pytest.mark.parametrize("kind", HOSTS)
def test_host_memory(kind, kernels, device, stream):
    host = HOSTS[kind]()
    config = cu.LaunchConfig(grid=1, block=16)
    if not device.properties.pageable_memory_access:
        with pytest.raises(
            TypeError, match=r"parameter 0 of kernel add is ordinary host memory.*pin it"
        ):
            cu.launch(stream, config, kernels["add"], host, 5, 16)
        return
    cu.launch(stream, config, kernels["add"], host, 5, 16)
    stream.sync()
    assert np.frombuffer(host, dtype="i4").tolist() == list(range(5, 21))


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_bytes_are_read(kernels, device, stream):
    out = np.zeros(4, "i4")
    source = np.arange(4, dtype="i4").tobytes()
    with device.allocate(16, stream=stream) as buffer:
        cu.launch(stream, cu.LaunchConfig(grid=1, block=4), kernels["copy"], source, buffer, 4)
        buffer.copy_to(out, stream=stream)
        stream.sync()
    assert out.tolist() == [0, 1, 2, 3]


def test_a_simulated_device_as_strict_as_an_old_gpu(script):
    run = script(
        """
        import numpy as np
        import cudago as cu
        d = cu.Device()
        assert d.properties.pageable_memory_access == 0
        code = cu.Program('extern "C" __global__ void k(const int* p) {}').compile()
        with d.create_stream() as s:
            array = np.zeros(4, "i4")
            tensor = cu.from_dlpack(array)
            for argument in array, tensor, tensor.buffer, tensor.ptr, tensor.buffer[4:]:
                try:
                    cu.launch(s, cu.LaunchConfig(grid=1, block=1), code["k"], argument)
                except TypeError as e:
                    print(e)
            with cu.PinnedMemoryResource().allocate(16) as pinned:
                cu.launch(s, cu.LaunchConfig(grid=1, block=1), code["k"], pinned)
            s.sync()
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="pageable=0",
    )
    assert (run.returncode, run.stderr) == (0, "")
    kinds = re.findall(
        r"^parameter 0 of kernel k is ordinary .* \(<class '(.*)'>\)", run.stdout, re.M
    )
    tensor, buffer, pointer = "cudago.Tensor", "cudago.Buffer", "cudago._core.Pointer"
    assert kinds == ["numpy.ndarray", tensor, buffer, pointer, buffer]
    assert run.stdout.count("PinnedMemoryResource") == 5


@pytest.mark.parametrize("part", [lambda t: t.T, lambda t: t[:, 1:2], lambda t: t[:, 1]])
def test_a_tensor_with_gaps(kernels, device, stream, part):
    """The kernel would not know its strides."""
    one = cu.LaunchConfig(grid=1, block=1)
    with cu.zeros((4, 6), "i4", stream=stream) as tensor, cu.Graph(device) as graph:
        for launch in (lambda *a: cu.launch(stream, *a), graph.launch):
            with pytest.raises(BufferError, match="gaps between its elements"):
                launch(one, kernels["add"], part(tensor), 1, 1)
        cu.launch(stream, one, kernels["add"], tensor[1:], 1, 1)
        assert tensor.numpy(stream=stream).sum() == 1
