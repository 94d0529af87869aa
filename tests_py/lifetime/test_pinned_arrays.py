# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy that a graph has cannot be given other memory, even by who insists."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle

N = 64


class Sub(np.ndarray):
    """An array of a class of its own."""


KINDS = {
    "array": lambda a: a,
    "view": lambda a: a[:],
    "view of a view": lambda a: a[:][:].reshape(4, -1),
    "memoryview": memoryview,
    "memoryview of a view": lambda a: memoryview(a[:]),
    "subclass": lambda a: a.view(Sub),
}


@pytest.fixture
def x(device, stream):
    with device.allocate(4 * N, stream=stream) as buffer:
        yield buffer


def refuses(array) -> bool:
    """Whether NumPy refuses to resize an array; it is as before if it does not."""
    try:
        array.resize(4 * N, refcheck=False)
    except ValueError:
        return True
    array.resize(N, refcheck=False)
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_a_graph(kind, device, stream, x):
    array = np.arange(N, dtype="i4")
    count = sys.getrefcount(array)
    assert not refuses(array)
    array[:] = np.arange(N)
    with cu.Graph(device) as graph:
        graph.memcpy(x, KINDS[kind](array), name="up")
        assert refuses(array)
        with graph.instantiate() as step:
            graph.close()
            assert refuses(array)
            step.launch(stream)
            out = np.empty(N, "i4")
            x.copy_to(out, stream=stream)
            stream.sync()
            assert out.tolist() == list(range(N))
            step["up"].update(src=bytes(4 * N))
            gc.collect()
            settle()
            assert not refuses(array)
    assert sys.getrefcount(array) == count


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_a_tensor(kind, device, stream, x):
    """Its graphs and its launches use the memory that it was made of."""
    array = np.arange(N, dtype="i4")
    count = sys.getrefcount(array)
    tensor = cu.from_dlpack(np.asarray(KINDS[kind](array)))
    with cu.Graph(device) as graph:
        graph.memcpy(x, tensor)
        tensor.close()
        assert refuses(array)
    settle()
    assert not refuses(array)
    assert sys.getrefcount(array) == count


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_that_is_page_locked(kind, device, x):
    array = np.arange(N, dtype="i4")
    count = sys.getrefcount(array)
    memory = cu.pin(KINDS[kind](array))
    with cu.Graph(device) as graph:
        graph.memcpy(x, memory)
        memory.close()
        assert refuses(array)
    settle()
    assert not refuses(array)
    assert sys.getrefcount(array) == count


def test_an_array_through_memoryviews(device, x):
    array = np.arange(N, dtype="i4")
    with cu.Graph(device) as graph:
        graph.memcpy(x, np.frombuffer(memoryview(array)[:], "i4"))
        assert refuses(array)
    assert not refuses(array)


def test_a_captured_array(stream, x):
    array = np.arange(N, dtype="i4")
    with stream.capture() as graph:
        x.copy_from(array, stream=stream)
        assert refuses(array)
    assert refuses(array)
    graph.close()
    settle()
    assert not refuses(array)


def test_somebodys_own_weak_reference_stays(device, x):
    array = np.arange(N, dtype="i4")
    own = weakref.ref(array)
    with cu.Graph(device) as graph:
        graph.memcpy(x, array)
    assert own() is array
    assert refuses(array)
    del own
    assert not refuses(array)


def test_memory_that_is_not_numpys(device, x):
    memory = bytearray(4 * N)
    array = np.frombuffer(memory, "i4")
    with cu.Graph(device) as graph:
        graph.memcpy(x, array)
        with pytest.raises(BufferError):
            memory.append(0)
        assert refuses(array)


def test_a_base_that_raises(device, x):
    class Odd(np.ndarray):
        @property
        def base(self):
            raise RuntimeError("mine")

    class Own(np.ndarray):
        @property
        def base(self):
            return self

    for odd in (Odd, Own):
        array = np.arange(N, dtype="i4").view(odd)
        with cu.Graph(device) as graph:
            graph.memcpy(x, array)
            assert len(graph.nodes) == 1
