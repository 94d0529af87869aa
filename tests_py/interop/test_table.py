# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""DLPack's C exchange table of cudago's Tensor, called as a C consumer calls it."""

from __future__ import annotations

import ctypes

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

CPU, CUDA = 1, 2
P = ctypes.c_void_p
SetError = ctypes.CFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    """DLPack 1.3's DLPackExchangeAPI. All but the allocator are called with the GIL."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", P),
        ("allocate", ctypes.CFUNCTYPE(ctypes.c_int, P, P, P, SetError)),
        ("from_py", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, P)),
        ("to_py", ctypes.PYFUNCTYPE(ctypes.c_int, P, P)),
        ("borrow", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, P)),
        ("current_stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, P)),
    )


@pytest.fixture
def table():
    """cudago's table."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]
    capsule = cu.Tensor.__dlpack_c_exchange_api__
    assert capsule is cu.Tensor.__c_dlpack_exchange_api__
    return Table.from_address(pointer(capsule, b"dlpack_exchange_api"))


@pytest.fixture
def ours(producer):
    """4 x 4 float32, 0.0 to 15.0."""
    t = cu.from_dlpack(producer((4, 4)))
    yield t
    t.close()


def delete(opened, address):
    """Run a managed tensor's deleter, as its consumer must."""
    managed = opened.Versioned.from_address(address)
    managed.deleter(address)


def test_the_table(table):
    assert (table.major, table.minor, table.previous) == (1, 3, None)
    assert all((table.allocate, table.from_py, table.to_py, table.borrow, table.current_stream))


def test_owned(table, ours, opened):
    out = P()
    assert table.from_py(ours[1:], ctypes.byref(out)) == 0
    managed = opened.Versioned.from_address(out.value)
    assert (managed.major, managed.flags) == (1, 0)
    assert managed.tensor.data == ours.handle + 16
    assert managed.tensor.shape[:2] == [3, 4]
    ours.close()
    assert ctypes.c_float.from_address(managed.tensor.data).value == 4
    delete(opened, out.value)


def test_borrowed(table, ours, opened):
    before = cu.exchange_stats()
    t = opened.DLTensor()
    assert table.borrow(ours.T, ctypes.byref(t)) == 0
    assert (t.data, t.shape[:2], t.strides[:2]) == (ours.handle, [4, 4], [1, 4])
    assert cu.exchange_stats() == before


def test_taken(table, producer):
    p = producer((4, 4))
    made = ctypes.py_object()
    assert table.to_py(ctypes.addressof(p.managed), ctypes.byref(made)) == 0
    assert isinstance(made.value, cu.Tensor)
    assert memoryview(made.value).tolist()[1] == [4, 5, 6, 7]
    made.value.close()
    assert p.deleted == 1


def test_what_cannot_be_taken_stays_the_callers(table, producer):
    for wrong in ({"version": (2, 0)}, {"dtype": (3, 64, 1)}, {"shape": (-1,)}):
        p = producer(**wrong)
        with pytest.raises(BufferError):
            table.to_py(ctypes.addressof(p.managed), ctypes.byref(P()))
        assert p.deleted == 0


def test_what_cannot_be_given(table, ours):
    for function in (table.from_py, table.borrow):
        with pytest.raises(TypeError, match="takes a cudago Tensor"):
            function(object(), ctypes.byref((ctypes.c_char * 80)()))
        with pytest.raises(BufferError, match="negative stride"):
            function(ours[::-1], ctypes.byref((ctypes.c_char * 80)()))
    ours.close()
    with pytest.raises(cu.ClosedError):
        table.from_py(ours, ctypes.byref(P()))


def test_no_stream_of_our_own(table):
    out = P(7)
    for device_type in (CPU, CUDA):
        assert table.current_stream(device_type, 0, ctypes.byref(out)) == 0
        assert out.value is None


def test_allocation(table, producer, opened):
    errors = []
    fail = SetError(lambda _, kind, message: errors.append((kind.decode(), message.decode())))
    like, out = producer((3, 5), None, data=0).managed.tensor, P()
    assert table.allocate(ctypes.byref(like), ctypes.byref(out), None, fail) == 0
    managed = opened.Versioned.from_address(out.value)
    assert managed.tensor.data % 256 == 0
    assert (managed.tensor.shape[:2], managed.tensor.strides[:2]) == ([3, 5], [5, 1])
    ctypes.memset(managed.tensor.data, 1, 60)
    delete(opened, out.value)
    assert errors == []
    for wrong, kind in (
        ({"device": (CUDA, 0)}, "NotImplementedError"),
        ({"dtype": (99, 8, 1)}, "ValueError"),
        ({"shape": (2**40, 2**10)}, "MemoryError"),
    ):
        like = producer(**wrong).managed.tensor
        assert table.allocate(ctypes.byref(like), ctypes.byref(out), None, fail) == -1
        assert errors.pop()[0] == kind
        assert out.value is None


def test_types_with_other_tables(producer):
    """A type may have something else under that name, or get its table late: __dlpack__ works."""

    class Odd(producer):
        __dlpack_c_exchange_api__ = 12345

    for _ in range(2):
        assert cu.from_dlpack(Odd()).shape == (16,)
    for k in range(200):  # more types than are remembered
        kind = type(f"Type{k}", (producer,), {})
        assert cu.from_dlpack(kind()).shape == (16,)
