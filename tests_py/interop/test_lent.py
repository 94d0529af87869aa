# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors that PyTorch lends to a launch: kept until it ends, checked like any other argument."""

from __future__ import annotations

import ctypes
import gc
import time
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .conftest import DLTensor
from .test_table import CUDA, P, Table

np = pytest.importorskip("numpy")

N = 8
CONFIG = cu.LaunchConfig(grid=1, block=N)
SOURCE = r"""
extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }
extern "C" __global__ void sum(int* out, const int* a, const int* b) {
    out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
extern "C" __global__ void scale(float* p, float by) { p[threadIdx.x] *= by; }
"""


@pytest.fixture(scope="module")
def code(device):
    """Kernels add, sum and scale."""
    return cu.Program(SOURCE, "c++").compile()


class Lender:
    """A type that passes for PyTorch's: its table lends tensors over device memory of ours.

    To cudago that is another library's device memory, on the simulated driver too.
    """

    def __init__(self, *, storage=False) -> None:
        lender = self
        self.of: dict[int, cu.Tensor] = {}
        self.stream = None  # PyTorch's current one
        self.lent = 0

        def borrow(obj, out):
            try:
                tensor = (obj.storage if storage else obj).ours
                d = DLTensor.from_address(out)
                d.data, d.device_type, d.device_id = tensor.handle, CUDA, obj.on
                d.code, d.bits, d.lanes = obj.dtype_code, 32, 1
                d.ndim, d.shape, d.strides, d.byte_offset = 1, obj.shape_array, obj.strides, 0
                for name, value in obj.spoiled.items():
                    setattr(d, name, value)
                lender.lent += 1
            except cu.ClosedError:  # PyTorch sets an exception, which ctypes cannot
                return -1
            return 0

        def current_stream(kind, ordinal, out):
            ctypes.cast(out, ctypes.POINTER(P))[0] = lender.stream
            return 0

        def refuse(*_):
            raise AssertionError("not called")

        fields = dict(Table._fields_)
        self.table = Table(
            1,
            3,
            None,
            fields["allocate"](lambda *_: -1),
            fields["from_py"](refuse),
            fields["to_py"](refuse),
            fields["borrow"](borrow),
            fields["current_stream"](current_stream),
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]
        capsule = new(ctypes.addressof(self.table), b"dlpack_exchange_api", None)
        body = {
            "__module__": "torch",
            "__dlpack_c_exchange_api__": capsule,
            "__dlpack__": refuse,
            "__dlpack_device__": lambda t: (CUDA, t.on),
            "is_neg": lambda t: False,
            "dtype_code": 0,
            "on": 0,
            "strides": None,
            "spoiled": {},
        }
        if storage:  # as PyTorch's, which refer to what has the memory
            body["untyped_storage"] = lambda t: t.ask()
            body["ask"] = lambda t: t.storage
            body["data_ptr"] = lambda t: t.storage.ours.handle
        self.type = type("Tensor", (), body)

    def __call__(self, tensor: cu.Tensor, **facts):
        t = self.type()
        t.ours = tensor
        t.shape_array = (ctypes.c_int64 * 1)(N)
        for name, value in facts.items():
            setattr(t, name, value)
        return t


_lenders = []  # their types are remembered by cudago, and so is the table


@pytest.fixture(scope="module")
def lender():
    """Makes tensors that pass for PyTorch's: ``lender(ours)``."""
    _lenders.append(Lender())
    return _lenders[-1]


@pytest.fixture
def lend(lender, device, stream, code):
    """Function: a lent tensor over N int32 of ours, all 0."""
    lender.stream = None

    def make(**facts):
        ours = cu.zeros((N,), "i4", stream=stream)
        stream.sync()
        return lender(ours, **facts)

    # The first tensor of a type is taken in the way of all others.
    first = make()
    cu.launch(stream, CONFIG, code["add"], first, 1)
    stream.sync()
    settle()
    return make


def values(lent, stream):
    return lent.ours.numpy(stream=stream).tolist()


def wait_until_gone(seen) -> None:
    deadline = time.monotonic() + 10
    while seen() is not None:
        assert time.monotonic() < deadline, "still kept"
        time.sleep(0.001)


def test_values(lend, code, stream):
    a, b, out = lend(), lend(), lend()
    for _ in range(50):
        cu.launch(stream, CONFIG, code["add"], a, 2)
        cu.launch(stream, CONFIG, code["add"], b, 3)
        cu.launch(stream, CONFIG, code["sum"], out, a, b)
    assert values(out, stream) == [250] * N


def test_nothing_is_made_of_it(lender, lend, code, stream):
    a = lend()
    cu.launch(stream, CONFIG, code["add"], a, 2)
    before, objects = lender.lent, cu.live_objects()
    cu.launch(stream, CONFIG, code["add"], a, 2)
    assert lender.lent == before + 1
    assert cu.live_objects() == objects
    stream.sync()


def test_kept_until_the_launch_ends_and_released_without_a_call(lend, code, stream):
    a = lend()
    seen = weakref.ref(a)
    with hold(stream):
        cu.launch(stream, CONFIG, code["add"], a, 2)
        del a
        gc.collect()
        time.sleep(0.005)
        assert seen() is not None
    wait_until_gone(seen)
    a = lend()
    seen = weakref.ref(a)
    cu.launch(stream, CONFIG, code["add"], a, 2)
    del a
    wait_until_gone(seen)


@pytest.fixture(params=["our stream", "another library's stream"])
def place(request, stream):
    """The stream to launch in."""
    return (
        stream
        if request.param == "our stream"
        else cu.Stream.from_handle(stream.handle, owner=stream)
    )


def test_our_work_comes_after_the_librarys(lender, lend, device, code, stream, place):
    a = lend()
    with device.create_stream() as theirs:
        lender.stream = theirs.handle
        with hold(theirs):
            a.ours.fill(5, stream=theirs)
            cu.launch(place, CONFIG, code["add"], a, 2)
            assert not place.is_done
        place.sync()
        lender.stream = None
    assert values(a, stream) == [7] * N


def test_the_library_works_in_the_stream_of_the_launch(lender, lend, code, stream, place):
    """There is nothing to order, and the tensor is kept all the same."""
    a = lend()
    ours, seen = a.ours, weakref.ref(a)
    lender.stream = place.handle
    with hold(place):
        ours.fill(5, stream=place)
        cu.launch(place, CONFIG, code["add"], a, 2)
        del a
        gc.collect()
        time.sleep(0.005)
        assert seen() is not None
    lender.stream = None
    place.sync()
    assert ours.numpy(stream=stream).tolist() == [7] * N
    wait_until_gone(seen)


def test_the_library_works_in_the_default_stream(lender, lend, device, code, stream):
    """Which has two numbers."""
    a = lend()
    place = device.default_stream
    for lender.stream in (None, 1):
        cu.launch(place, CONFIG, code["add"], a, 2)
    lender.stream = None
    place.sync()
    assert values(a, stream) == [4] * N


def test_a_capture_keeps_it(lend, code, stream):
    a = lend()
    seen = weakref.ref(a)
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, code["add"], a, 2)
    ours = a.ours
    del a
    with graph, graph.instantiate() as step:
        step.launch(stream)
        step.launch(stream)
        assert seen() is not None
        assert ours.numpy(stream=stream).tolist() == [4] * N
    del graph, step
    wait_until_gone(seen)


def test_a_node_keeps_it(lend, code, stream):
    a, b = lend(), lend()
    with cu.Graph() as graph:
        graph.launch(CONFIG, code["add"], a, 2, name="add")
        with graph.instantiate() as step:
            step.launch(stream)
            step["add"].update(p=b, n=3)
            step.launch(stream)
            assert (values(a, stream), values(b, stream)) == ([2] * N, [3] * N)


class Index:
    """A number that does something when it is asked for."""

    def __init__(self, run) -> None:
        self.run = run

    def __index__(self) -> int:
        self.run()
        return 2


def test_a_tensor_that_another_argument_changes(lend, code, stream):
    a, other = lend(), lend()
    with pytest.raises(BufferError, match="parameter 0 of kernel add was changed while"):
        cu.launch(stream, CONFIG, code["add"], a, Index(lambda: setattr(a, "ours", other.ours)))
    cu.launch(stream, CONFIG, code["add"], a, Index(int))
    assert values(other, stream) == [2] * N


class Own(int):
    """An int that does something when it is asked what it is as a float."""

    def __float__(self) -> float:
        self.run()
        return 2.0


def test_a_tensor_that_an_int_of_its_own_changes(lend, stream):
    scale = cu.Program('extern "C" __global__ void scale(int *p, float by) { *p *= by; }').compile()
    a, other = lend(), lend()
    number = Own(2)
    number.run = lambda: setattr(a, "ours", other.ours)
    with pytest.raises(BufferError, match="parameter 0 of kernel scale was changed while"):
        cu.launch(stream, CONFIG, scale["scale"], a, number)


def test_a_tensor_that_another_argument_spoils(lend, code, stream):
    a = lend()
    with pytest.raises(BufferError, match="was changed while"):
        cu.launch(stream, CONFIG, code["add"], a, Index(a.ours.close))


@pytest.mark.parametrize(
    ("facts", "error", "text"),
    [
        ({"dtype_code": 2}, TypeError, "int32 or its unsigned twin"),
        ({"strides": (ctypes.c_int64 * 1)(2)}, BufferError, "C-contiguous"),
        ({"on": 99}, ValueError, "got 99|device 99"),
        ({"on": -1}, BufferError, "device number is negative"),
    ],
    ids=["type", "gaps", "device", "no device"],
)
def test_what_is_refused(lend, code, stream, facts, error, text):
    with pytest.raises(error, match=text):
        cu.launch(stream, CONFIG, code["add"], lend(**facts), 2)
    assert stream.is_done


def sizes(*values):
    return (ctypes.c_int64 * len(values))(*values)


@pytest.mark.parametrize(
    ("spoiled", "text"),
    [
        ({"ndim": -1}, "dimensions is not between 0 and 64"),
        ({"ndim": 65}, "dimensions is not between 0 and 64"),
        ({"shape": None}, "the shape is missing"),
        ({"shape": sizes(-8)}, "a dimension is negative"),
        ({"ndim": 2, "shape": sizes(2**40, 2**40)}, "the size overflows"),
        ({"ndim": 2, "shape": sizes(2, 2), "strides": sizes(2**62, 1)}, "the strides overflow"),
        ({"strides": sizes(-(2**61))}, "the strides overflow"),
        ({"byte_offset": 2**64 - 1}, "the byte offset overflows"),
        ({"data": None}, "the data pointer is missing"),
        ({"lanes": 4}, "the element type is not one that cudago knows"),
        ({"code": 200}, "the element type is not one that cudago knows"),
        ({"device_type": 7}, "neither the host nor a CUDA device"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_hostile_numbers(lend, code, stream, spoiled, text):
    """They are refused before the memory is touched, and nothing is kept."""
    a = lend(spoiled=spoiled)
    seen = weakref.ref(a)
    for take in (
        cu.from_dlpack,
        lambda a: cu.launch(stream, CONFIG, code["add"], a, 2),
        lambda a: a.ours.buffer.copy_from(a, stream=stream),
    ):
        with pytest.raises(BufferError, match=f"{text}: it has shape .+, type .+, DLPack"):
            take(a)
    assert stream.is_done
    assert values(a, stream) == [0] * N
    del a
    gc.collect()
    assert seen() is None


def test_it_is_no_number(lend, code, stream):
    with pytest.raises(TypeError, match="parameter 1 of kernel add must be an integer u32"):
        cu.launch(stream, CONFIG, code["add"], lend(), lend())
    with pytest.raises(TypeError, match="parameter 1 of kernel scale must be a float f32"):
        cu.launch(stream, CONFIG, code["scale"], lend(dtype_code=2), lend())


def test_memory_of_ours_that_came_back(code, device, stream):
    """Its free waits for the launch, whatever becomes of PyTorch's tensor."""
    torch = pytest.importorskip("torch")
    with device.create_stream() as other:
        ours = cu.zeros((N,), "i4", stream=other)
        out = cu.zeros((N,), "i4", stream=stream)
        other.sync()
        stream.sync()
        back, result = cu.to_torch(ours), cu.to_torch(out)
        other_memory = torch.zeros(1, dtype=torch.int32, device=back.device)
        cu.launch(stream, CONFIG, code["sum"], result, back, back)
        ours.fill(21, stream=stream)
        stream.sync()
        with hold(stream):
            cu.launch(stream, CONFIG, code["sum"], result, back, back)
            back.set_(other_memory)  # made before: a first kernel of PyTorch's waits for the device
            ours.close()
            del back, ours
            gc.collect()
            for _ in range(4):
                with device.allocate(4 * N, stream=other) as memory:
                    memory.fill(0xFF, stream=other)
        stream.sync()
        assert out.numpy(stream=stream).tolist() == [42] * N


def test_many_arguments(lend, device, stream):
    """More than are noted as lent."""
    names = [f"p{i}" for i in range(70)]
    source = "".join(f"int* {n}, " for n in names)[:-2]
    body = "".join(f"{n}[threadIdx.x] += {i};" for i, n in enumerate(names))
    kernel = cu.Program(f'extern "C" __global__ void all({source}) {{ {body} }}', "c++").compile()
    lent = [lend() for _ in names]
    cu.launch(stream, CONFIG, kernel["all"], *lent)
    assert [values(t, stream)[0] for t in lent] == list(range(70))
    seen = [weakref.ref(t) for t in lent]
    del lent
    for s in seen:
        wait_until_gone(s)
