# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What an object exports has elements: not those that a kernel takes, or none to be copied over."""

from __future__ import annotations

import array
import ctypes
import gc
import sys

import pytest

import cudago as cu

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

CONFIG = cu.LaunchConfig(1, 4)
SOURCE = r"""
extern "C" __global__ void floats(float* y, int n) { if (n < 0) y[0] = 1; }
extern "C" __global__ void ints(int* y, int n) { if (n < 0) y[0] = 1; }
extern "C" __global__ void longs(long long* y, int n) { if (n < 0) y[0] = 1; }
extern "C" __global__ void bytes(unsigned char* y, int n) { if (n < 0) y[0] = 1; }
struct Pair { int a; float b; };
extern "C" __global__ void pairs(Pair* y, int n) { if (n < 0) y[0].a = 1; }
"""


@pytest.fixture(scope="module")
def code():
    return cu.Program(SOURCE).compile()


@pytest.fixture
def pinned():
    with cu.PinnedMemoryResource().allocate(256) as buffer:
        yield buffer


def ways(code, name, memory, stream):
    """Give a kernel the memory in each way that there is."""
    kernel = code[name]
    yield lambda: cu.launch(stream, CONFIG, kernel, memory, 1)
    yield lambda: cu.Graph().launch(CONFIG, kernel, memory, 1)
    yield lambda: kernel.bind(CONFIG, memory, 1)


# Of these a kernel that takes memory of the host would read other numbers than are there.
OTHERS = {
    "floats": [np.float64, np.int32, np.int64, np.float16, np.complex64, np.bool_, ">f4"],
    "ints": [np.float32, np.int64, np.int16, ">i4"],
    "longs": [np.float64, np.int32],
}
SAME = {
    "floats": [np.float32, np.uint8, np.int8],
    "ints": [np.int32, np.uint32],
    "longs": [np.int64, np.uint64, np.uint8],
    "bytes": [np.float64, np.int16, ">f4"],
    "pairs": [[("a", "i4"), ("b", "f4")], np.float32],
}


def each(table):
    return [(name, dtype) for name, dtypes in table.items() for dtype in dtypes]


@pytest.mark.parametrize("name, dtype", each(OTHERS))
def test_an_array_of_another_type_is_refused(code, stream, pinned, name, dtype):
    memory = np.frombuffer(pinned, dtype)
    for way in ways(code, name, memory, stream):
        with pytest.raises(TypeError, match=f"parameter 0 of kernel {name} points to"):
            way()


@pytest.mark.parametrize("name, dtype", each(SAME))
def test_an_array_of_its_type_is_taken(code, stream, pinned, name, dtype):
    for way in ways(code, name, np.frombuffer(pinned, dtype), stream):
        way()
    stream.sync()


def test_what_has_no_dtype_is_told_by_its_format(code, stream, pinned):
    double = (ctypes.c_double * 4).from_buffer(pinned)
    with pytest.raises(TypeError, match="got elements of type float64 "):
        cu.launch(stream, CONFIG, code["floats"], double, 1)
    view = memoryview(pinned).cast("B").cast("h")
    with pytest.raises(TypeError, match="got elements of type int16 "):
        cu.launch(stream, CONFIG, code["ints"], view, 1)
    swapped = (ctypes.c_float.__ctype_be__ * 4).from_buffer(pinned)
    with pytest.raises(TypeError, match="got elements of type another byte order, or no number "):
        cu.launch(stream, CONFIG, code["floats"], swapped, 1)
    for exporter in (
        (ctypes.c_long * 4).from_buffer(pinned),
        memoryview(pinned).cast("B").cast("l"),
    ):
        cu.launch(stream, CONFIG, code["longs"], exporter, 1)
    stream.sync()


def test_arrays_of_the_host_are_told_too(code, stream, device):
    """Where a kernel cannot read them the place is what is wrong, as before."""
    x = array.array("d", range(4))
    with pytest.raises(TypeError, match=r"float64|ordinary host memory"):
        cu.launch(stream, CONFIG, code["floats"], x, 1)


class Struct(ctypes.Structure):
    _fields_ = (("n", ctypes.c_int), ("o", ctypes.py_object))


OBJECTS = {
    "objects": lambda: np.array([None, object()], dtype=object),
    "a field": lambda: np.zeros(2, [("O", "i8"), ("x", object)]),
    "inside of a field": lambda: np.zeros(2, [("x", [("y", "i8"), ("z", object)])]),
    "ctypes": lambda: (ctypes.py_object * 2)(None, 1),
    "a ctypes structure": lambda: (Struct * 2)(),
    "a view": lambda: memoryview(np.array([None, 1], dtype=object)),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_references_to_objects_are_no_memory(stream, device, code, kind):
    """A copy over them would drop what nobody has counted, and one of them count nothing."""
    memory = OBJECTS[kind]()
    x = device.allocate(memoryview(memory).nbytes, stream=stream)
    graph = cu.Graph()
    for use in (
        lambda: graph.memcpy(memory, x),
        lambda: graph.memcpy(x, memory),
        lambda: graph.memset(memory, 0),
        lambda: graph.launch(CONFIG, code["bytes"], memory, 1),
        lambda: x.copy_to(memory, stream=stream),
        lambda: x.copy_from(memory, stream=stream),
        lambda: cu.launch(stream, CONFIG, code["bytes"], memory, 1),
        lambda: cu.pin(memory),
    ):
        with pytest.raises(TypeError, match=r"have Python objects|dtype must be"):
            use()
    with pytest.raises(TypeError):
        cu.copy_batch([(x, memory)], stream=stream)
    assert not graph.nodes
    x.close()


def test_a_field_may_be_called_anything(stream, device):
    memory = np.zeros(2, [("O", "i4"), ("bO", "f4")])
    x = device.allocate(memory.nbytes, stream=stream)
    x.copy_from(memory, stream=stream)
    x.copy_to(memory, stream=stream)
    stream.sync()


# --- types that other packages give NumPy ---------------------------------------------------------


NARROW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", NARROW)
def test_their_arrays_are_copied(stream, device, dtype):
    """The buffer protocol has no format for them."""
    there, back = np.arange(8).astype(dtype), np.zeros(8, dtype)
    x, y = (device.allocate(there.nbytes, stream=stream) for _ in "xy")
    x.copy_from(there, stream=stream)
    with cu.Graph() as graph:
        graph.memcpy(y, x).memcpy(back, y)
        graph.memcpy(x, there[4:].reshape(2, 2)[:1].repeat(4, 1).reshape(-1).copy())
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
    assert back.tolist() == there.tolist()
    cu.copy_batch([(x, there)], stream=stream)
    back[:] = 0
    cu.copy_batch([(back, x)], stream=stream)
    stream.sync()
    assert back.tolist() == there.tolist()
    with cu.pin(back) as pin:
        assert pin.size == back.nbytes
    there.flags.writeable = False
    with pytest.raises(BufferError, match=r"writable|read-only"):
        x.copy_to(there, stream=stream)
    with pytest.raises(BufferError, match="C-contiguous"):
        y[: y.size // 2].copy_from(np.zeros(8, dtype)[::2], stream=stream)


def test_their_arrays_are_kept_and_not_resized(stream, device):
    there = np.ones(8, ml_dtypes.bfloat16)
    before = sys.getrefcount(there)
    x = device.allocate(there.nbytes, stream=stream)
    graph = cu.Graph()
    graph.memcpy(x, there)
    assert graph.retained[0].object is there
    with pytest.raises(ValueError, match="cannot resize"):
        there.resize(1 << 20, refcheck=False)
    graph.close()
    gc.collect()
    assert sys.getrefcount(there) == before


def test_a_kernel_takes_their_arrays_by_type(stream, pinned):
    source = 'extern "C" __global__ void half(unsigned short* y, int n) { if (n < 0) *y = 1; }'
    kernel = cu.Program(source).compile()["half"]
    memory = np.frombuffer(pinned, "u2").view(ml_dtypes.bfloat16)
    with pytest.raises(TypeError, match="got elements of type bfloat16"):
        cu.launch(stream, CONFIG, kernel, memory, 1)
    kernel.parameter_types = ("__nv_bfloat16*", "int")
    cu.launch(stream, CONFIG, kernel, memory, 1)
    stream.sync()
    with pytest.raises(TypeError, match="got elements of type float16"):
        cu.launch(stream, CONFIG, kernel, memory.view("f2"), 1)
