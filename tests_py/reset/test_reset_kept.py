# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What launches in flight keep, in a stream whose handle others have, when the device is reset."""

from __future__ import annotations

import sys
import time
import weakref

import numpy as np
import pytest

import cudago as cu
from cudago._gopy import api
from cudago.testing import settle

pytestmark = pytest.mark.early

N = 64
CONFIG = cu.LaunchConfig(grid=1, block=N)
ADD = 'extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }'
SPIN = 'extern "C" __global__ void spin(volatile int* p) { while (*p == 0) {} }'


class Interface:
    """Another library's object over device memory, which only its address keeps."""

    def __init__(self, tensor: cu.Tensor) -> None:
        self.__cuda_array_interface__ = {
            "shape": tensor.shape,
            "typestr": "<i4",
            "data": (tensor.handle, False),
            "version": 3,
            "stream": None,
        }


@pytest.fixture(scope="module")
def add(device):
    return cu.Program(ADD, "c++").compile()["add"]


@pytest.fixture(autouse=True)
def default_stream(device):
    """Leave a default stream behind, as the device was found."""
    yield
    _ = device.default_stream


def objects() -> tuple[dict[str, int], str]:
    """Return what cudago holds, and what the driver was asked to make and not to destroy."""
    settle()
    return cu.live_objects(), api.driver_objects()


def check_afterwards(device: cu.Device, add: cu.Kernel) -> None:
    with device.create_stream() as stream, cu.zeros((N,), "i4", stream=stream) as x:
        assert stream.handle
        cu.launch(stream, CONFIG, add, Interface(x), 3)
        assert (x.numpy(stream=stream) == 3).all()


# How old the batch of kept references is, in milliseconds: after one the reaper takes it.
AGES_MS = [0, 0.5, 20]


@pytest.mark.parametrize("age_ms", AGES_MS)
@pytest.mark.parametrize("state", ["done", "held", "callbacks", "closed"])
def test_what_an_exposed_stream_keeps_is_released(state, age_ms, device, add):
    if state in ("held", "callbacks") and cu.driver_name() != "sim":
        pytest.skip("NVIDIA's driver waits for what is held back")
    device.reset()  # so that the device has what is made after one
    check_afterwards(device, add)
    before = objects()
    for exposed_first in (True, False):
        stream = device.create_stream()
        x = cu.zeros((N,), "i4", stream=stream)
        if exposed_first:
            handle = stream.handle
        done = stream.record()
        done.sync()
        things = [Interface(x) for _ in range(20)]
        seen = [weakref.ref(thing) for thing in things]

        def launch(things=things, stream=stream) -> None:
            while things:
                cu.launch(stream, CONFIG, add, things.pop(), 1)

        if state == "held":
            spin = cu.Program(SPIN, "c++").compile()["spin"]
            cu.launch(stream, cu.LaunchConfig(1, 1), spin, x)
            del spin
            launch()
            if not exposed_first:
                handle = stream.handle
            time.sleep(age_ms / 1000)
            assert all(ref() for ref in seen), "only the launches keep them"
            device.reset()
        elif state == "callbacks":
            with cu.Graph(device) as graph:
                graph.callback(lambda: None)
                step = graph.instantiate()
            launch()
            if not exposed_first:
                handle = stream.handle
            time.sleep(age_ms / 1000)
            device.reset()
            del step
        else:
            launch()
            if not exposed_first:
                handle = stream.handle
            if state == "closed":
                stream.close()
            time.sleep(age_ms / 1000)
            device.reset()
        # At once, without a wait: nothing can use them any more.
        settle()
        assert not any(ref() for ref in seen)
        what = "stream is closed$" if state == "closed" else "stream is closed: device 0 was reset"
        for use in (
            lambda stream=stream: cu.launch(stream, CONFIG, add, None, 1),
            lambda stream=stream: stream.sync(),
            lambda stream=stream: stream.handle,
            lambda stream=stream: stream.record(),
            lambda stream=stream: stream.is_done,
        ):
            with pytest.raises(cu.ClosedError, match=what):
                use()
        with pytest.raises(cu.ClosedError, match="device 0 was reset"):
            x.numpy(stream=device.default_stream)
        assert handle
        check_afterwards(device, add)
        del stream, x, done, launch, use
    assert objects() == before


def test_a_batch_of_a_stream_of_others(device, add):
    """They end their streams; the reference is ours."""
    device.reset()  # so that the device has what is made after one
    check_afterwards(device, add)
    before = objects()
    stream = cu.Stream.from_handle(2, device=device)
    x = cu.zeros((N,), "i4", stream=stream)
    thing = Interface(x)
    seen = weakref.ref(thing)
    cu.launch(stream, CONFIG, add, thing, 1)
    del thing
    device.reset()
    settle()
    assert seen() is None
    with pytest.raises(cu.ClosedError, match="stream is closed: device 0 was reset"):
        cu.launch(stream, CONFIG, add, None, 1)
    check_afterwards(device, add)
    del stream, x
    assert objects() == before


def test_launches_and_resets_in_turn(device, add):
    """Batches in all states, with host memory and events among what they keep."""
    device.reset()  # so that the device has what is made after one
    check_afterwards(device, add)
    before = objects()
    numbers = np.ones(N, "i4")
    count = sys.getrefcount(numbers)
    for round_ in range(30):
        streams = [device.create_stream() for _ in range(3)]
        tensors = [cu.zeros((N,), "i4", stream=s) for s in streams]
        events = [device.create_event() for _ in streams]
        assert all(s.handle for s in streams[1:])
        for i, (s, x, event) in enumerate(zip(streams, tensors, events, strict=True)):
            made = cu.LaunchConfig(1, N, launch_completion_event=event)
            cu.launch(s, made, add, Interface(x), 1)
            x.copy_from(numbers, stream=s)
            if i == round_ % 3:
                event.close()
                s.close()
        time.sleep(round_ % 5 / 2000)
        device.reset()
        for x in tensors:
            with pytest.raises(cu.ClosedError):
                cu.launch(device.default_stream, CONFIG, add, x, 1)
    check_afterwards(device, add)
    del streams, tensors, events, s, x, event, made
    settle()
    assert sys.getrefcount(numbers) == count
    assert objects() == before
