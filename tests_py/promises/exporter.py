# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Another process, which shares memory with this one."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import cudago as cu
from promises.world import N


def _serve(pipe: Connection, ordinal: int) -> None:
    device = cu.Device(ordinal)
    stream = device.create_stream()
    options = cu.PoolOptions(ipc_enabled=True)
    resources = {
        "pool": cu.DeviceMemoryResource(device, pool=options),
        "virtual": cu.VirtualMemoryResource(device, ipc_enabled=True),
    }
    given: list[cu.Buffer] = []
    while kind := pipe.recv():
        buffer = resources[kind].allocate(N, stream=stream)
        stream.sync()
        given.append(buffer)
        pipe.send(buffer)


class Exporter:
    """Allocates on a device, for this process."""

    def __init__(self, device: cu.Device) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, device.ordinal), daemon=True)
        self._process.start()
        theirs.close()

    def allocate(self, kind: str) -> cu.Buffer:
        """Memory of the other process."""
        self._pipe.send(kind)
        return self._pipe.recv()

    def close(self) -> None:
        """End the process, which waits until its memory is not imported any more."""
        self._pipe.send(None)
        self._process.join(30)
