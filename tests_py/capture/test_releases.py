# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that nobody has any more is released beside captures that begin just then."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu

ROUNDS = 400

MEMORY = {
    "pool": lambda device, stream: device.allocate(64, stream=stream),
    "own pool": lambda device, stream: cu.DeviceMemoryResource(
        device, pool=cu.PoolOptions()
    ).allocate(64, stream=stream),
    "pinned": lambda device, stream: cu.PinnedMemoryResource().allocate(64, stream=stream),
    "managed": lambda device, stream: cu.ManagedMemoryResource(device).allocate(64, stream=stream),
    "virtual": lambda device, stream: cu.VirtualMemoryResource(device).allocate(64, stream=stream),
    "array": lambda device, stream: cu.pin(np.ones(64, "u1")),
}


@pytest.mark.parametrize("mode", ["global", "relaxed"])
@pytest.mark.parametrize("kind", MEMORY)
def test_the_capture_that_begins_is_whole(device, stream, kind, mode):
    x = device.allocate(64, stream=stream)
    for _ in range(ROUNDS):
        memory = MEMORY[kind](device, stream)
        x.copy_from(memory, stream=stream)
        del memory
        with stream.capture(mode) as graph:
            x.fill(1, stream=stream)
        assert [node.kind for node in graph.nodes] == ["memset"]
        graph.close()
    stream.sync()
    x.close()
