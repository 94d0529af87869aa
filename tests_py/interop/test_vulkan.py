# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Semaphores and memory that Vulkan exports.

With NVIDIA's driver Vulkan's device is the same GPU. Beside the simulated driver a Vulkan of the
host's processor (lavapipe) exports files in memory, which is what that driver imports.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import cudago as cu

from .vulkan import NoVulkanError, Vulkan

SIZE = 1 << 16


def open_vulkan(driver, device, *extensions):
    try:
        return Vulkan(device.uuid if driver == "nvidia" else None, extensions)
    except NoVulkanError as e:
        pytest.skip(str(e))


@pytest.fixture
def vulkan(driver, device):
    made = open_vulkan(driver, device, b"VK_KHR_external_memory_fd", b"VK_KHR_external_memory")
    yield made
    made.close()


@pytest.fixture
def both(driver, device):
    """Vulkan that exports semaphores too."""
    if driver == "sim":
        pytest.skip("the simulated driver does not import Vulkan's semaphores")
    made = open_vulkan(
        driver, device, b"VK_KHR_external_memory_fd", b"VK_KHR_external_semaphore_fd"
    )
    yield made
    made.close()


def imported(device, vulkan, memory, nbytes):
    fd = vulkan.memory_fd(memory)
    try:
        return cu.ExternalMemory.from_fd(device, fd, nbytes, dedicated=True)
    finally:
        os.close(fd)


def timeline(device, vulkan):
    theirs = vulkan.semaphore()
    fd = vulkan.semaphore_fd(theirs)
    try:
        return theirs, cu.ExternalSemaphore.from_fd(device, fd)
    finally:
        os.close(fd)


def test_kernel_writes_what_another_mapping_reads(device, stream, kernels, vulkan):
    _, memory, nbytes = vulkan.buffer(SIZE, exported=True)
    n = SIZE // 4
    with (
        imported(device, vulkan, memory, nbytes) as first,
        imported(device, vulkan, memory, nbytes) as second,
        first.map(0, SIZE, stream=stream) as x,
        second.map(0, SIZE, stream=stream) as y,
    ):
        x.fill(0, stream=stream)
        cu.launch(stream, cu.LaunchConfig(grid=n // 256, block=256), kernels["add"], x, 5, n)
        assert (y.view("i4").numpy(stream=stream) == 5).all()


def test_signal_is_seen_and_wait_is_released(device, stream, both):
    theirs, ours = timeline(device, both)
    with ours:
        stream.signal(ours, 3)
        stream.sync()
        assert both.counter(theirs) == 3
        stream.wait(ours, 5)
        stream.signal(ours, 6)
        assert not stream.is_done
        both.signal(theirs, 5)
        both.wait(theirs, 6)
        stream.sync()
        assert both.counter(theirs) == 6


def test_graph_signals_and_waits(device, stream, both):
    theirs, ours = timeline(device, both)
    graph = cu.Graph(device)
    graph.wait(ours, 1, name="ready").signal(ours, 2, name="done")
    step = graph.instantiate()
    for first in (1, 3):
        step["ready"].update(value=first)
        step["done"].update(value=first + 1)
        if first == 3:
            ours.close()  # the executable keeps it
        step.launch(stream)
        assert not stream.is_done
        both.signal(theirs, first)
        both.wait(theirs, first + 1)
    stream.sync()


def test_kernel_then_vulkan_then_kernel(device, stream, kernels, both):
    """Vulkan copies what a kernel wrote, ordered by a timeline alone."""
    theirs, ours = timeline(device, both)
    buffer, memory, nbytes = both.buffer(SIZE, exported=True)
    target, host, _ = both.buffer(SIZE, exported=False)
    n, config = SIZE // 4, cu.LaunchConfig(grid=SIZE // 1024, block=256)
    view = np.frombuffer(both.host_view(host, SIZE), "i4")
    both.copy(buffer, target, SIZE, waits=(theirs, 1), signals=(theirs, 2))
    with imported(device, both, memory, nbytes) as shared, ours:
        x = shared.map(0, SIZE, stream=stream)
        x.fill(0, stream=stream)
        cu.launch(stream, config, kernels["add"], x, 7, n)
        stream.signal(ours, 1)
        stream.wait(ours, 2)
        cu.launch(stream, config, kernels["add"], x, 1, n)
        stream.sync()
        assert both.counter(theirs) == 2
        assert (view == 7).all()
        assert (x.view("i4").numpy(stream=stream) == 8).all()
        x.close()
