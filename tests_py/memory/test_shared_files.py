# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Files that processes share: what another process does to one ends no other process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

import cudago as cu


@pytest.fixture(autouse=True)
def simulated(driver):
    if driver != "sim":
        pytest.skip("files are how the simulated driver shares memory")


def memory_files():
    """The descriptors of this process's files in memory, and what they are called."""
    found = {}
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            if (name := str(fd.readlink())).startswith("/memfd:"):
                found[int(fd.name)] = name
    return found


def test_nobody_can_make_a_file_smaller(device, stream):
    """As a peer would, to which the descriptors were sent: memory that is gone is SIGBUS."""
    options = cu.PoolOptions(ipc_enabled=True)
    with (
        cu.DeviceMemoryResource(device, pool=options) as pool,
        cu.PinnedMemoryResource(pool=options) as pinned,
        cu.VirtualMemoryResource(device, ipc_enabled=True) as virtual,
        device.create_event(ipc_enabled=True) as event,
        cu.sim.create_memory(4096) as memory,
        cu.sim.create_semaphore() as semaphore,
        pool.get_allocation_handle(),
        pool.allocate(1 << 20, stream=stream) as buffer,
        pinned.allocate(4096, stream=stream) as host,
        virtual.allocate(4096, stream=stream) as grown,
        cu.ExternalMemory.from_fd(device, memory, 4096) as imported,
        imported.map(stream=stream) as mapped,
    ):
        files = memory_files()
        assert len(files) >= 6, files
        for fd, name in files.items():
            size = os.fstat(fd).st_size
            for smaller in (0, 4096, max(size - 1, 0)):
                if smaller < size:
                    with pytest.raises(PermissionError):
                        os.ftruncate(fd, smaller)
            assert os.fstat(fd).st_size == size, name
        for each in (buffer, grown, mapped):
            each.fill(3, stream=stream)
        host.fill(3, stream=stream)
        stream.record(event)
        event.sync()
        assert set(buffer.view("u1").numpy(stream=stream).tolist()) == {3}
        assert semaphore.value == 0
        assert memory.view[4095] == 3


def test_a_process_shares_so_many_events(device):
    events = []
    with pytest.raises(cu.OutOfMemoryError):
        while len(events) < 1 << 15:
            events.append(device.create_event(ipc_enabled=True))
    assert len(events) >= 1 << 13
    with cu.Device(0).create_stream() as stream:  # there is memory and there are threads
        cu.zeros(1 << 20, "u1", stream=stream)
        stream.sync()
    while events:
        events.pop().close()
    for _ in range(100):  # what is closed makes room
        device.create_event(ipc_enabled=True).close()
