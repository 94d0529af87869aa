# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What the interop tests share: a DLPack producer of our own, and a check for leaks."""

from __future__ import annotations

import ctypes
import gc
import time

import pytest

import cudago as cu
from cudago import _core

_CPU = 1
_VERSIONED, _LEGACY = b"dltensor_versioned", b"dltensor"

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype = ctypes.c_char_p
_name.argtypes = [ctypes.py_object]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class DLTensor(ctypes.Structure):
    """DLPack 1.3's struct of that name."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class Legacy(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


def _array(values):
    return None if values is None else (ctypes.c_int64 * max(1, len(values)))(*values)


_producers = []  # forever: a consumer that forgets a deleter must find it later, not freed memory


class Producer:
    """A producer with every field of its struct in the test's hands, and a deleter that counts.

    It describes 16 float32 of its own, 0.0 to 15.0, unless told otherwise.
    """

    def __init__(
        self,
        shape=(16,),
        strides="C",
        *,
        versioned=True,
        version=(1, 0),
        flags=0,
        dtype=(2, 32, 1),
        device=(_CPU, 0),
        data=None,
        byte_offset=0,
        ndim=None,
        deleter=True,
        destructor=False,
    ):
        _producers.append(self)
        self.deleted = 0
        self.asked = []  # the keywords of each __dlpack__
        self.capsule = None
        self.memory = (ctypes.c_float * 16)(*range(16))
        self.device = device
        if strides == "C":
            strides, step = [], 1
            for n in reversed(shape or ()):
                strides.insert(0, step)
                step *= max(n, 1)
        self._shape, self._strides = _array(shape), _array(strides)
        self._deleter = _Deleter(self._delete) if deleter else _Deleter()
        self._destructor = _Destructor(self._delete) if destructor else None
        self.managed = Versioned(*version) if versioned else Legacy()
        if versioned:
            self.managed.flags = flags
        self.managed.deleter = self._deleter
        t = self.managed.tensor
        t.data = ctypes.addressof(self.memory) if data is None else data
        t.device_type, t.device_id = device
        t.ndim = len(shape) if ndim is None else ndim
        t.code, t.bits, t.lanes = dtype
        t.shape, t.strides, t.byte_offset = self._shape, self._strides, byte_offset
        self.name = _VERSIONED if versioned else _LEGACY

    def _delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        capsule = _new(ctypes.addressof(self.managed), self.name, self._destructor)
        self.capsule = None if self._destructor else capsule
        return capsule

    def __dlpack_device__(self):
        return self.device


@pytest.fixture
def producer():
    """Class of made-up producers."""
    return Producer


class Capsule:
    """What a consumer does to a capsule, step by step."""

    DLTensor, Versioned = DLTensor, Versioned

    def __init__(self, capsule):
        self.capsule = capsule

    @property
    def name(self):
        """The capsule's name."""
        return _name(self.capsule).decode()

    @property
    def managed(self):
        """The managed tensor, which keeps the capsule."""
        name = _name(self.capsule)
        kind = Versioned if name.endswith(_VERSIONED) else Legacy
        managed = kind.from_address(_pointer(self.capsule, name))
        managed.capsule = self.capsule
        return managed

    def consume(self):
        """Rename the capsule, as a consumer that takes over does; gives what must be called."""
        managed = self.managed
        _rename(
            self.capsule,
            b"used_dltensor_versioned" if self.name.endswith("ed") else b"used_dltensor",
        )
        return lambda: managed.deleter(ctypes.addressof(managed))


@pytest.fixture
def opened():
    """Class that looks into capsules."""
    return Capsule


def _held():
    """How many of our tensors others hold, how many of theirs we hold, and their cells."""
    _core._drain()
    s = cu.exchange_stats()
    return (
        s.exports_made - s.exports_released,
        s.imports_taken - s.imports_released,
        s.live["foreign"],
    )


@pytest.fixture(autouse=True)
def balance(request):
    """Whatever a test exchanges, in both directions, is given back by its end.

    But for what another library's capture keeps for good: such tests have a mark.

    JAX gives tensors back when Python's collector runs, one link of a chain at a time; what a
    launch keeps is given back once it has ended.
    """
    before = _held()
    yield
    if request.node.get_closest_marker("kept_for_good"):
        return
    deadline = time.monotonic() + 20
    while _held() != before and time.monotonic() < deadline:
        gc.collect()  # only if needed: with a big framework loaded it takes long
        time.sleep(0.001)
    assert _held() == before


# --- statistics and traces ------------------------------------------------------------------------


@pytest.fixture
def tensor(device, stream):
    """2 x 3 float32 of a device."""
    t = cu.zeros((2, 3), "f4", stream=stream)
    stream.sync()
    yield t
    t.close()


@pytest.fixture
def trace():
    """A trace of exchanges, until the end of the test."""
    with cu.dlpack.trace() as t:
        yield t


@pytest.fixture
def changes():
    """Function that says what two looks at counts tell apart: how much more in total, and live."""

    def between(before, after):
        none = cu.ExchangeCount(0, 0)
        found = {}
        for key, now in after.items():
            then = before.get(key, none)
            if now != then:
                found[key] = (now.total - then.total, now.live - then.live)
        return found

    return between
