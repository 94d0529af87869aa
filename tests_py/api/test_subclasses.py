# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A subclass is refused, or objects are made of it."""

from __future__ import annotations

import pytest

import cudago as cu

FINAL = [
    *("Device", "Stream", "Event", "GreenContext", "Buffer", "Pointer", "Tensor", "Kernel"),
    *("ExternalMemory", "ExternalSemaphore", "Graph", "GraphExec", "Node", "ExecNode"),
]


@pytest.mark.parametrize("name", FINAL)
def test_what_calls_make_cannot_be_subclassed(name):
    ours = "not an acceptable base type" if name == "Pointer" else "in an attribute"
    with pytest.raises(TypeError, match=rf"cudago\.(_core\.)?{name}\W.*{ours}"):
        type("Mine", (getattr(cu, name),), {})


def test_other_classes_make_objects_of_a_subclass(device):
    def mine(cls):
        return type("Mine", (cls,), {})

    text = cu.Program('extern "C" __global__ void k() {}').compile(target="ptx").code
    for made in (
        mine(cu.DeviceMemoryResource)(device),
        mine(cu.ManagedMemoryResource)(device),
        mine(cu.PinnedMemoryResource)(),
        mine(cu.TrackingMemoryResource)(device.memory_resource),
        mine(cu.LaunchConfig)(1, 1),
        mine(cu.PoolOptions)(),
        mine(cu.ObjectCode).from_ptx(text),
        mine(cu.timer)(device.default_stream),
    ):
        assert type(made).__name__ == "Mine"
