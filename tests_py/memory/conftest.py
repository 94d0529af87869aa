# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Two processes that share memory and events."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

# A process that shares a pool with another one, which runs `child` and answers with lines.
BEGIN = """
import multiprocessing as mp, os, pickle, signal, sys, time
import numpy as np
import cudago as cu
from cudago.testing import settle

def main(target, *more):
    mp.set_start_method("spawn")
    ask, answer = mp.Pipe()
    process = mp.Process(target=target, args=(answer, *more))
    process.start()
    answer.close()
    return process, ask

def shared(resource=cu.DeviceMemoryResource):
    device = cu.Device()
    stream = device.create_stream()
    options = cu.PoolOptions(ipc_enabled=True)
    pinned = resource is cu.PinnedMemoryResource
    pool = resource(pool=options) if pinned else resource(device, pool=options)
    buffer = pool.allocate(4096, stream=stream)
    buffer.fill(np.int32(5), stream=stream)
    stream.sync()
    return device, stream, pool, buffer

def raises(kind, text, call):
    try:
        call()
    except kind as e:
        assert text in str(e), e
    else:
        raise AssertionError(f"no {kind.__name__}: {text}")
"""


@pytest.fixture
def two_processes(script) -> Callable[..., list[str]]:
    """Run ``child(pipe, ...)`` and ``parent()`` in two processes, and return what they print."""

    def run(source: str, **environment: str) -> list[str]:
        end = "\nif __name__ == '__main__':\n    parent()\n"
        done = script(BEGIN + textwrap.dedent(source) + end, **environment)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.splitlines()

    return run


@pytest.fixture
def two(driver, two_processes) -> Callable[..., list[str]]:
    """Run two processes with each driver."""
    return two_processes
