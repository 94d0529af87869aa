# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Textures over memory of other libraries that a reset of their device leaves."""

from __future__ import annotations

import ctypes
import mmap

import pytest

import cudago as cu

pytestmark = pytest.mark.early

SOURCE = """
extern "C" __global__ void fetch(cudaTextureObject_t t, float* y) { *y = tex1Dfetch<float>(t, 1); }
"""
MANAGED = 13


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_texture_is_lost_with_its_device(device, producer, driver):
    """The memory is no device's, but the driver's object is: a kernel read by a dead handle."""
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    texture = cu.Texture(cu.from_dlpack(producer(device=(MANAGED, 0), data=address)))
    fetch = cu.Program(SOURCE).compile()["fetch"]
    device.reset()
    with device.create_stream() as stream:
        to = cu.zeros(1, "f4", stream=stream)
        with pytest.raises(cu.ClosedError, match="texture is closed: device 0 was reset"):
            cu.launch(stream, cu.LaunchConfig(1, 1), fetch, texture, to)
        with cu.Graph() as graph, pytest.raises(cu.ClosedError):
            graph.launch(cu.LaunchConfig(1, 1), fetch, texture, to)
        stream.sync()
        to.close()
    texture.close()


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_texture_of_memory_that_a_reset_took(device, driver):
    stream = device.create_stream()
    texture = cu.Texture(cu.zeros(4, "f4", stream=stream))
    fetch = cu.Program(SOURCE).compile()["fetch"]
    stream.close()
    device.reset()
    with device.create_stream() as stream:
        to = cu.zeros(1, "f4", stream=stream)
        with pytest.raises(cu.ClosedError, match="texture is closed: device 0 was reset"):
            cu.launch(stream, cu.LaunchConfig(1, 1), fetch, texture, to)
        to.close()
    texture.close()
