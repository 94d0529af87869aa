# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Once work was waited for, nothing is held for it: memory can be closed and resized."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle

ROUNDS = 40
CONFIG = cu.LaunchConfig(1, 1)
SOURCE = """
extern "C" __global__ void touch(float* x, int n) { for (int i = 0; i < n; i++) x[i % 2] += i; }
"""


@pytest.fixture(scope="module")
def kernel():
    return cu.Program(SOURCE).compile()["touch"]


@pytest.fixture(autouse=True)
def no_callbacks():
    """Callbacks of other tests have ended: while there are any, the reaper alone releases."""
    gc.collect()
    settle()


@pytest.fixture(params=["stream", "device"])
def sync(request, stream, device):
    return {"stream": stream, "device": device}[request.param].sync


def test_memory_that_a_launch_had_is_closed(kernel, stream, sync):
    for _ in range(ROUNDS):
        pinned = cu.PinnedMemoryResource().allocate(256)
        view = np.frombuffer(pinned, "f4")
        # Longer than the operands stay where the waiting thread drops them.
        cu.launch(stream, CONFIG, kernel, view, 20000)
        del view
        sync()
        pinned.close()


@pytest.mark.parametrize("way", ["close", "update"])
def test_an_array_that_a_graph_had_is_resized(device, stream, sync, way):
    x = device.allocate(256, stream=stream)
    for _ in range(ROUNDS):
        array = bytearray(256)
        with cu.Graph() as graph:
            graph.memcpy(x, array, name="up")
            step = graph.instantiate()
        step.launch(stream)
        if way == "close":
            step.close()
        else:
            step["up"].update(src=bytes(256))
        sync()
        array.append(1)
        step.close()
    x.close()


def test_memory_is_closed_after_an_event_was_waited_for(kernel, stream):
    """Nobody has asked how far the stream is."""
    for _ in range(ROUNDS):
        pinned = cu.PinnedMemoryResource().allocate(256)
        cu.launch(stream, CONFIG, kernel, np.frombuffer(pinned, "f4"), 1)
        with stream.record() as event:
            event.sync()
        pinned.close()


def test_memory_is_closed_while_there_are_callbacks(kernel, stream):
    with cu.Graph() as graph:
        graph.callback(lambda: None)
        for _ in range(ROUNDS):
            pinned = cu.PinnedMemoryResource().allocate(256)
            cu.launch(stream, CONFIG, kernel, np.frombuffer(pinned, "f4"), 20000)
            stream.sync()
            pinned.close()


def test_memory_with_a_view_stays_open():
    pinned = cu.PinnedMemoryResource().allocate(256)
    with memoryview(pinned), pytest.raises(BufferError, match="1 view"):
        pinned.close()
    pinned.close()
