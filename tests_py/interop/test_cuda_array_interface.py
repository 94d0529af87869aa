# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""__cuda_array_interface__ of objects is read, and refused where it is wrong."""

from __future__ import annotations

import weakref

import pytest

import cudago as cu
from cudago._kernel.interop import _read_cuda_array_interface as read
from cudago.testing import hold, settle

GOOD = {"shape": (4, 4), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None}


class Array:
    """An object with the protocol."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = GOOD | interface


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (4096, 64, None, False)),
        ({"data": (4096, True)}, (4096, 64, None, True)),
        ({"stream": None}, (4096, 64, None, False)),
        ({"stream": 1}, (4096, 64, 1, False)),
        ({"stream": 2}, (4096, 64, 2, False)),
        ({"stream": 2**64 - 1}, (4096, 64, 2**64 - 1, False)),
        ({"version": 2}, (4096, 64, None, False)),
        ({"strides": (16, 4)}, (4096, 64, None, False)),
        ({"strides": (99, 4), "shape": (1, 16)}, (4096, 64, None, False)),
        ({"shape": ()}, (4096, 4, None, False)),
        ({"shape": (2**63, 0)}, (4096, 0, None, False)),
        ({"shape": (0,), "data": (0, False)}, (0, 0, None, False)),
        ({"shape": (2**62 - 2,), "data": (4, False)}, (4, 2**64 - 8, None, False)),
    ],
)
def test_what_is_read(fields, expected):
    assert read(GOOD | fields, "src")[:-1] == expected  # and the type of its elements


@pytest.mark.parametrize(
    ("fields", "error", "match"),
    [
        ({"version": 1}, TypeError, "too old"),
        ({"mask": object()}, TypeError, "masked"),
        ({"stream": 0}, ValueError, "must be None, 1, 2 or a handle, got 0"),
        ({"stream": -1}, ValueError, "got -1"),
        ({"stream": 2**64}, ValueError, "or a handle"),
        ({"stream": "one"}, TypeError, r"stream of .* or a handle, got 'one' \(str\)"),
        ({"version": "3"}, TypeError, r"version of .*, got '3' \(str\)"),
        ({"typestr": "junk"}, ValueError, "typestr of .* such as '<f4', got 'junk'"),
        ({"typestr": "<f"}, ValueError, "typestr of "),
        ({"typestr": None}, TypeError, "typestr of .*NoneType"),
        ({"shape": 5}, TypeError, r"shape of .* must be a tuple of ints, got 5 \(int\)"),
        ({"strides": 5}, TypeError, "strides of .* must be a tuple of ints"),
        ({"data": 5}, TypeError, "data of .* an address and whether it is read-only"),
        ({"data": ("x", False)}, TypeError, "data of "),
        ({"shape": (2**32, 2**32)}, ValueError, "does not fit 64 bits"),
        ({"shape": (2**63, 2**63, 2)}, ValueError, "does not fit 64 bits"),
        ({"shape": (-1, -16)}, ValueError, "has no size"),
        ({"shape": (2.0,)}, TypeError, "float"),
        ({"data": (2**64 - 63, False)}, ValueError, "not in 64 bits"),
        ({"data": (-4, False)}, ValueError, "not in 64 bits"),
        ({"strides": (4, 16)}, BufferError, "C-contiguous"),
        ({"strides": (16 + 2**64, 4)}, BufferError, "C-contiguous"),
        ({"strides": (4,)}, ValueError, "2 dimensions, but 1 strides"),
    ],
)
def test_what_is_refused(fields, error, match, device, stream):
    with pytest.raises(error, match=match):
        read(GOOD | fields, "src")
    with (
        device.allocate(64, stream=stream) as buffer,
        pytest.raises(error, match=match),
    ):
        buffer.copy_from(Array(**fields), stream=stream)


def test_read_only_memory_is_no_destination(device, stream):
    with device.allocate(64, stream=stream) as theirs, device.allocate(64, stream=stream) as ours:
        array = Array(data=(int(theirs.ptr), True))
        ours.copy_from(array, stream=stream)
        with pytest.raises(BufferError, match="dst is read-only"):
            ours.copy_to(array, stream=stream)
        with cu.Graph() as graph, pytest.raises(BufferError, match="dst is read-only"):
            graph.memset(array, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, LookupError, MemoryError])
def test_an_error_of_the_attribute_is_its_own(error, device, stream):
    class Failing:
        @property
        def __cuda_array_interface__(self):
            raise error("mine")

    with device.allocate(64, stream=stream) as buffer, pytest.raises(error, match="mine"):
        buffer.copy_from(Failing(), stream=stream)


def test_an_attribute_that_is_not_there_is_named(device, stream):
    class Without:
        @property
        def __cuda_array_interface__(self):
            raise AttributeError

    with (
        device.allocate(64, stream=stream) as buffer,
        pytest.raises(TypeError, match=r"src must be a Buffer.*__cuda_array_interface__, not"),
    ):
        buffer.copy_from(Without(), stream=stream)


class Alone:
    """Device memory of a library that has the array interface and no DLPack."""

    def __init__(self, ours, stream=None, *, readonly=False, **facts):
        self.__cuda_array_interface__ = {
            "shape": ours.shape,
            "typestr": "<i4",
            "data": (ours.handle, readonly),
            "version": 3,
            "stream": stream,
        } | facts


def test_asarray_shares_what_has_the_interface_alone(device, stream):
    ours = cu.full((2, 3), 7, "i4", stream=stream)
    with device.create_stream() as theirs:
        theirs.wait(stream)
        with hold(theirs):
            ours.fill(8, stream=theirs)
            given = Alone(ours, theirs.handle)
            t = cu.asarray(given, stream=stream)
            assert not stream.is_done  # our work comes after theirs
        assert (t.handle, t.shape, t.origin) == (ours.handle, (2, 3), "array interface")
        assert t[1].origin == "array interface"
        assert t.numpy(stream=stream).tolist() == [[8] * 3] * 2
    seen = weakref.ref(given)
    del given
    view = t[1:]
    t.close()
    assert seen() is not None
    view.close()
    settle()
    assert seen() is None


def test_asarray_copies_what_is_read_only_or_empty(stream):
    ours = cu.full((2, 3), 7, "i4", stream=stream)
    stream.sync()
    t = cu.asarray(Alone(ours, readonly=True), stream=stream)
    assert (t.handle != ours.handle, t.origin, t.is_readonly) == (True, "cudago", False)
    assert t.numpy(stream=stream).tolist() == [[7] * 3] * 2
    empty = cu.asarray(Alone(ours, shape=(0, 3), data=(0, False)), stream=stream)
    assert empty.shape == (0, 3)


@pytest.mark.parametrize(
    ("facts", "error", "text"),
    [
        ({"strides": (4, 8)}, BufferError, "C-contiguous"),
        ({"mask": object()}, TypeError, "masked"),
        ({"version": 1}, TypeError, "too old"),
        ({"stream": 0}, ValueError, "must be None, 1, 2 or a handle"),
        ({"shape": (-1,)}, ValueError, "has no size"),
        ({"typestr": "|O4"}, TypeError, "typestr of __cuda_array_interface__ must be"),
    ],
    ids=["strides", "mask", "version", "stream", "shape", "type"],
)
def test_what_asarray_refuses_of_the_interface(stream, facts, error, text):
    ours = cu.full((2, 3), 7, "i4", stream=stream)
    stream.sync()
    with pytest.raises(error, match=text):
        cu.asarray(Alone(ours, **facts), stream=stream)


def test_asarray_does_not_convert_shared_memory(stream):
    ours = cu.full((2, 3), 7, "i4", stream=stream)
    with pytest.raises(TypeError, match="element type int32, not float32"):
        cu.asarray(Alone(ours), "f4", stream=stream)


@pytest.mark.parametrize(
    "wrong", [5, [], *({k: v for k, v in GOOD.items() if k != f} for f in GOOD)]
)
def test_what_is_no_interface(wrong, stream):
    if isinstance(wrong, dict) and "strides" not in wrong:
        return  # which may be left out
    with pytest.raises(TypeError, match=r"must be a dict, not|has no '"):
        read(wrong, "src")


def test_a_tensor_is_copied_from_and_to_it(device, stream):
    ours = cu.full((2, 3), 7, "i4", stream=stream)
    t = cu.zeros((2, 3), "i4", stream=stream)
    with device.create_stream() as theirs:
        theirs.wait(stream)
        with hold(theirs):
            ours.fill(8, stream=theirs)
            t.copy_from(Alone(ours, theirs.handle), stream=stream)
            assert not stream.is_done  # our work comes after theirs
        assert t.numpy(stream=stream).tolist() == [[8] * 3] * 2
        t.fill(9, stream=stream)
        with hold(theirs):
            ours.fill(8, stream=theirs)
            t.copy_to(Alone(ours, theirs.handle), stream=stream)
            assert not stream.is_done
        assert ours.numpy(stream=stream).tolist() == [[9] * 3] * 2
    t.copy_from(Alone(ours, readonly=True), stream=stream)
    with pytest.raises(BufferError, match="dst is read-only"):
        t.copy_to(Alone(ours, readonly=True), stream=stream)
    with pytest.raises(ValueError, match="src has shape"):
        t.copy_from(Alone(ours, shape=(6,)), stream=stream)
    with pytest.raises(TypeError, match="dst has element type float32"):
        t.copy_to(Alone(ours, typestr="<f4"), stream=stream)
    for call in (t.copy_from, t.copy_to):
        with pytest.raises(TypeError, match=r"typestr of .* native byte order.* got '>i4'"):
            call(Alone(ours, typestr=">i4"), stream=stream)


def test_kernels_of_expressions_take_it(device, stream):
    ours = cu.full(4, 7, "i4", stream=stream)
    twice, summed = (
        cu.elementwise("int x", "int z", "z = 2 * x"),
        cu.reduce("int x", "int z", "a + b"),
    )
    for call, want in ((twice, [16] * 4), (summed, 32)):
        call(ours, stream=stream)  # loading code may wait for the device
        stream.sync()
        with device.create_stream() as theirs, hold(theirs):
            ours.fill(8, stream=theirs)
            z = call(Alone(ours, theirs.handle), stream=stream)
            assert not stream.is_done
        assert z.numpy(stream=stream).tolist() == want
        with pytest.raises(
            TypeError, match=r"x of .* must have elements of type int32, got float32"
        ):
            call(Alone(ours, typestr="<f4"), stream=stream)
        with pytest.raises(TypeError, match=r"x of .*: typestr of"):
            call(Alone(ours, typestr=">i4"), stream=stream)


def test_another_tensor_has_its_shape_and_type(stream):
    given = Alone(cu.full((2, 3), 7, "i4", stream=stream))
    made = [f(given, stream=stream) for f in (cu.empty_like, cu.zeros_like, cu.ones_like)]
    made.append(cu.full_like(given, 5, stream=stream))
    assert {(t.shape, t.dtype_name) for t in made} == {((2, 3), "int32")}
    assert made[3].numpy(stream=stream).tolist() == [[5] * 3] * 2
    assert cu.zeros_like(given, "f8", stream=stream).dtype_name == "float64"
    with pytest.raises(TypeError, match=r"tensor must have shape and dtype.*list has not"):
        cu.zeros_like([1, 2], stream=stream)


class Shrinking:
    """A shape that is another one when it is asked again."""

    def __init__(self):
        self.sizes = iter((4, 1))

    def __iter__(self):
        yield next(self.sizes)


def test_what_it_says_is_asked_once(stream):
    ours = cu.full(4, 7, "i4", stream=stream)
    for shape in (iter((4,)), Shrinking()):
        t = cu.asarray(Alone(ours, shape=shape), stream=stream)
        assert t.numpy(stream=stream).tolist() == [7] * 4
