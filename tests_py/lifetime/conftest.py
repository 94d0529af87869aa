# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What the lifetime tests share: operands of every kind, and watching without keeping them."""

from __future__ import annotations

import array
import gc
import mmap
import sys
import weakref

import numpy as np
import pytest

import cudago as cu

N = 64
NBYTES = 4 * N


class ByteArray(bytearray):
    """A bytearray that takes weak references."""


class Producer:
    """Somebody's tensor in host memory, known by DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Interface:
    """Somebody's device memory, known by its address alone."""

    def __init__(self, buffer: cu.Buffer) -> None:
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": (N,),
            "typestr": "<i4",
            "data": (buffer.handle, False),
            "version": 3,
        }


class Maker:
    """Makes operands of every kind, which hold the same numbers."""

    KINDS = (
        "numpy",
        "numpy view",
        "bytes",
        "bytearray",
        "memoryview",
        "array",
        "mmap",
        "dlpack",
        "torch",
        "pinned",
        "buffer",
        "view",
        "pointer",
        "tensor",
        "interface",
    )
    ON_HOST = KINDS[:10]

    def __init__(self, device: cu.Device, stream: cu.Stream) -> None:
        self.device, self.stream = device, stream

    def __call__(self, kind: str, numbers: np.ndarray) -> object:
        """Return a new operand that holds `numbers`, of type int32."""
        return getattr(self, "_" + kind.replace(" ", "_"))(numbers)

    def _numpy(self, numbers):
        return numbers.copy()

    def _numpy_view(self, numbers):
        return np.concatenate([numbers, numbers])[N:]

    def _bytes(self, numbers):
        return numbers.tobytes()

    def _bytearray(self, numbers):
        return ByteArray(numbers.tobytes())

    def _memoryview(self, numbers):
        return memoryview(bytearray(numbers.tobytes()))

    def _array(self, numbers):
        return array.array("i", numbers.tobytes())

    def _mmap(self, numbers):
        memory = mmap.mmap(-1, NBYTES)
        memory.write(numbers.tobytes())
        return memory

    def _dlpack(self, numbers):
        return Producer(numbers.copy())

    def _torch(self, numbers):
        return pytest.importorskip("torch").from_numpy(numbers.copy())

    def _pinned(self, numbers):
        buffer = cu.PinnedMemoryResource().allocate(NBYTES)
        np.frombuffer(buffer, "i4")[:] = numbers
        return buffer

    def _buffer(self, numbers):
        buffer = self.device.allocate(NBYTES, stream=self.stream)
        buffer.copy_from(numbers, stream=self.stream)
        return buffer

    def _view(self, numbers):
        buffer = self.device.allocate(2 * NBYTES, stream=self.stream)
        buffer[NBYTES:].copy_from(numbers, stream=self.stream)
        return buffer[NBYTES:]

    def _pointer(self, numbers):
        return self._view(numbers).ptr

    def _tensor(self, numbers):
        return cu.asarray(numbers, stream=self.stream)

    def _interface(self, numbers):
        return Interface(self._buffer(numbers))


@pytest.fixture
def make(device, stream) -> Maker:
    """Makes operands: ``make(kind, numbers)``."""
    return Maker(device, stream)


class Watch:
    """Tells whether an object still lives, without keeping it.

    What takes no weak references is watched by what it keeps: `bytes` by the count of references to
    it, a pointer by its allocation.
    """

    def __init__(self, thing: object) -> None:
        self._counted = None
        if isinstance(thing, bytes):
            self._counted = thing
        elif isinstance(thing, cu.Pointer):
            self._reference = weakref.ref(thing.buffer)
        else:
            self._reference = weakref.ref(thing)

    @property
    def alive(self) -> bool:
        """Whether somebody else still holds the object."""
        if self._counted is not None:
            return sys.getrefcount(self._counted) > 2
        return self._reference() is not None


@pytest.fixture
def watch():
    """Class that watches objects."""
    return Watch


@pytest.fixture(params=[weakref.finalize, cu.finalize], ids=["weakref", "cudago"])
def finalize(request):
    """Each of both: what is true of one is true of the other."""
    return request.param


@pytest.fixture
def unraisable(monkeypatch):
    """List of unraisable exceptions, with their objects."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append((u.object, u.exc_value)))
    return seen


@pytest.fixture
def poison(device, stream):
    """Function: overwrites free memory for N numbers, on host and device."""
    taken = []

    def spoil() -> None:
        gc.collect()
        taken[:] = [np.full(N, -1, "i4") for _ in range(8)]
        for _ in range(4):
            with device.allocate(NBYTES, stream=stream) as buffer:
                buffer.fill(0xFF, stream=stream)

    return spoil


@pytest.fixture
def numbers() -> np.ndarray:
    """N numbers of type int32."""
    return np.arange(1, N + 1, dtype="i4")


@pytest.fixture
def try_to_release():
    """Function: does everything that could release something, for a moment."""

    def attempt() -> None:
        gc.collect()
        cu._core._reaper_flush(20)
        cu.live_objects()

    return attempt
