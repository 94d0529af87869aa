# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Objects with __cuda_array_interface__ live until work on their memory has ended."""

from __future__ import annotations

import gc
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

np = pytest.importorskip("numpy")


@pytest.fixture
def other(device):
    with device.create_stream() as stream:
        yield stream


class Array:
    """An array of a library that frees its memory when the object goes, in its own stream."""

    def __init__(self, device, stream, names_stream):
        self.stream = stream if names_stream else None
        self.memory = cu.full(16, 7, "i4", stream=stream)
        stream.sync()

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": (16,),
            "typestr": "<i4",
            "data": (self.memory.handle, False),
            "version": 3,
            "stream": self.stream.handle if self.stream is not None else None,
        }


def copied_from(x, array, stream):
    x.copy_from(array, stream=stream)
    return x


def copied_to(x, array, stream):
    x.copy_to(array, stream=stream)
    return None


def copied_to_rows(x, array, stream):
    both = cu.zeros((16, 2), "i4", stream=stream)
    both[:, 1].copy_from(array, stream=stream)
    return both[:, 1]


def converted(x, array, stream):
    with cu.asarray(array, stream=stream) as t:
        return t.astype("f4", stream=stream)


def filled(x, array, stream):
    with cu.asarray(array, stream=stream) as t:
        t.fill(3, stream=stream)


def added(x, array, stream, kernel=None):
    return kernel(array, stream=stream)


def reduced(x, array, stream, kernel=None):
    return kernel(array, stream=stream)


# Made and loaded before the stream is held: loading waits for the device.
KERNELS = {
    added: lambda: cu.elementwise("int x", "int z", "z = x"),
    reduced: lambda: cu.reduce("int x", "int z", "a + b", identity=0),
}


USES = {
    copied_from: 7,
    copied_to: None,
    copied_to_rows: 7,
    converted: 7,
    filled: None,
    added: 7,
    reduced: 7 * 16,
}


@pytest.mark.parametrize("names_stream", [True, False])
@pytest.mark.parametrize("use", USES)
def test_work_under_way_keeps_the_object(use, names_stream, device, stream, other):
    x = cu.zeros(16, "i4", stream=stream)
    kernel = {"kernel": KERNELS[use]()} if use in KERNELS else {}
    use(x, Array(device, other, names_stream), stream, **kernel)  # what it needs is compiled
    stream.sync()
    settle()
    array = Array(device, other, names_stream)
    ref = weakref.ref(array)
    with hold(stream):
        made = use(x, array, stream, **kernel)
        del array
        gc.collect()
        assert ref() is not None
    stream.sync()
    if made is not None:
        assert set(np.ravel(made.numpy(stream=stream)).tolist()) == {USES[use]}
    settle()
    assert ref() is None


@pytest.mark.parametrize("names_stream", [True, False])
def test_a_capture_takes_it_as_it_is(names_stream, device, stream, other):
    x = cu.zeros(16, "i4", stream=stream)
    array = Array(device, other, names_stream)
    with stream.capture() as graph:
        x.copy_from(array, stream=stream)
    assert graph.nodes[0].params.src is array
    assert array in [r.object for r in graph.retained]
    ref = weakref.ref(array)
    del array
    step = graph.instantiate()
    graph.close()
    settle()
    assert ref() is not None
    step.launch(stream)
    assert x.numpy(stream=stream).tolist() == [7] * 16
    step.close()
    settle()
    assert ref() is None
