# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""File descriptors that objects own: wherever Ctrl-C comes, none stays open."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

import cudago as cu
from cudago._memory.ipc import IPCAllocationHandle
from cudago._memory.ipc_virtual import _Piece
from cudago.testing import settle


def open_files() -> int:
    gc.collect()
    settle()
    return len(list(Path("/proc/self/fd").iterdir()))


MAKERS = {
    "handle": lambda pool: IPCAllocationHandle._of(*cu._core._pool_export(pool)),
    "closed handle": lambda pool: IPCAllocationHandle._of(*cu._core._pool_export(pool)).close(),
    "memory": lambda _: cu.sim.create_memory(4096),
    "closed memory": lambda _: cu.sim.create_memory(4096).close(),
    "semaphore": lambda _: cu.sim.create_semaphore(),
}


@pytest.mark.parametrize("name", MAKERS)
def test_an_exception_leaves_no_file_open(device, at_each_bytecode, name):
    make = MAKERS[name]
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True)) as pool:
        make(pool)
        before = open_files()
        for _ in at_each_bytecode(lambda: make(pool)):
            pass
        assert open_files() == before


def test_a_handle_that_is_closed_during_an_import(device):
    """Its numbers could be those of other files by then."""
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True)) as pool:
        before = open_files()
        left = 0

        def trace(frame, event, arg):
            nonlocal left
            frame.f_trace_opcodes = True
            left -= event == "opcode"
            if left == 0:
                handle.close()
            return trace

        ended = set()
        for point in range(1, 2000):
            handle = MAKERS["handle"](pool)
            left = point
            sys.settrace(trace)
            try:
                cu.DeviceMemoryResource.from_allocation_handle(device, handle).close()
                ended.add("imported")
            except cu.ClosedError:
                ended.add("closed")
            finally:
                sys.settrace(None)
            handle.close()
            if left > 0:
                break
        assert left > 0
        assert ended == {"imported", "closed"}
        assert open_files() == before


def test_a_received_piece_closes_its_file(device):
    before = open_files()
    for _ in range(3):
        piece = _Piece(os.memfd_create("test"))
        assert open_files() == before + 1
        del piece
    assert open_files() == before


def test_nothing_is_owned_twice(device):
    """Closed twice, the second time it may be somebody else's."""
    one, two = (os.memfd_create("test") for _ in range(2))
    before = open_files()
    with pytest.raises(ValueError, match=f"file descriptor {one} is given twice"):
        IPCAllocationHandle(one, one)
    handle = IPCAllocationHandle(one)
    for pool, leases in ((one, -1), (one, two), (two, one)):
        with pytest.raises(ValueError, match=f"file descriptor {one} is another handle's"):
            IPCAllocationHandle(pool, leases)
    handle.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(one)
    assert os.fstat(two), "what was refused is still the caller's"
    assert open_files() == before - 1
    again = os.dup(two)
    assert again == one, "the number can be given again"
    IPCAllocationHandle(again, two).close()
    assert open_files() == before - 2


def test_a_number_that_others_closed_is_not_closed_again(device):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(ipc_enabled=True)) as pool:
        pool.get_allocation_handle().close()
        handle = IPCAllocationHandle(os.memfd_create("test"))
        number = handle.fileno()
        os.close(number)  # which the caller must not
        with pool.get_allocation_handle() as new:
            assert number in (new.fileno(), new.leases)
            handle.close()
            assert os.fstat(number)


def test_a_handle_owns_what_it_was_given(device):
    files = [os.memfd_create("test") for _ in range(2)]
    handle = IPCAllocationHandle(*files, id=bytes(range(16)))
    assert (handle.fileno(), handle.leases) == tuple(files)
    assert repr(handle) == f"<cudago.IPCAllocationHandle: {files[0]}, {files[1]}>"
    child = os.fork()
    if not child:
        handle.close()  # does nothing here
        os._exit(0 if Path(f"/proc/self/fd/{files[0]}").exists() else 1)
    assert os.waitpid(child, 0)[1] == 0
    handle.close()
    handle.close()
    assert handle.is_closed
    for fd in files:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    with pytest.raises(cu.ClosedError):
        _ = handle.leases
