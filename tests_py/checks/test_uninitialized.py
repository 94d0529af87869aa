# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reads of memory that nobody wrote."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cudago as cu

from .kernels import here, line_of, one_report

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


def test_uninitialized_read(device, stream, correct):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        buffer, at = device.allocate(128, stream=stream), here()
        buffer[:100].fill(0, stream=stream)
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], buffer)
        stream.sync()
    report = one_report(e)
    assert report.startswith(
        "uninitialized read in kernel increment, block (0,0,0), thread (25,0,0) (/planted.cu:"
        f"{line_of('p[threadIdx.x] += 1')}, PTX line "
    )
    assert "4 bytes at 0x" in report and "were never written; at offset 100 of device" in report
    assert f"allocated at {at} (cuMemAllocAsync)" in report
    assert "7 times; parameter 0" in report
    buffer.close()


def test_uninitialized_shared_memory(stream, planted, correct, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        cu.launch(stream, cu.LaunchConfig(1, 32), planted["swap_pairs"], ints)
        stream.sync()
    assert re.fullmatch(
        r"uninitialized read in shared memory of kernel swap_pairs, block \(0,0,0\), "
        rf"thread \(4,0,0\) \(/planted\.cu:{line_of('tile[1][threadIdx.x ^ 1]')}, "
        r"PTX line \d+: ld\.shared\.\w32 .*\): "
        r"4 bytes at offset 148 were never written by this block; "
        r"at offset 148 of shared variable tile of 256 bytes",
        one_report(e),
    )
    with cu.sim.check("uninitialized"):
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["swap_pairs"], ints)
        stream.sync()


def test_uninitialized_dynamic_shared_memory(stream, planted, correct, ints):
    config = cu.LaunchConfig(2, 32, shared_memory=128)
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        cu.launch(stream, config, planted["count_dynamic"], ints, ints[512:])
        stream.sync()
    report = one_report(e)
    assert f"/planted.cu:{line_of('atomicAdd(&bins[in[threadIdx.x] + 3]')}, PTX line " in report
    assert "never written by this block; at offset 12 of dynamic shared memory; 2 times" in report
    with cu.sim.check("uninitialized"):
        cu.launch(stream, config, correct["count_dynamic"], ints, ints[512:])
        stream.sync()


def test_uninitialized_local_memory(stream, planted, correct, ints):
    args = (cu.LaunchConfig(1, 32), ints, ints[512:], 5)
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        cu.launch(stream, args[0], planted["largest"], *args[1:])
        stream.sync()
    report = one_report(e)
    assert re.fullmatch(
        r"uninitialized read in local memory of kernel largest, block \(0,0,0\), "
        rf"thread \(0,0,0\) \(/planted\.cu:{line_of('i <= n')}, "
        r"PTX line \d+: ld\.local\.\w32 .*\): "
        r"4 bytes at offset 20 were never written by this thread; "
        r"at offset 20 of local variable __local_depot\d+ of 32 bytes; 32 times",
        report,
    ), report
    with cu.sim.check("uninitialized"):
        cu.launch(stream, args[0], correct["largest"], *args[1:])
        stream.sync()


def test_uninitialized_copy_to_the_host(device, stream):
    with (
        cu.sim.check("uninitialized", raises=False) as found,
        device.allocate(64, stream=stream) as buffer,
    ):
        buffer.copy_to(bytearray(64), stream=stream)
        stream.sync()
    assert len(found) == 1
    assert found[0].startswith("uninitialized read in a copy of 64 bytes")


COPIES = {
    "to": lambda dst, src, stream: src.copy_to(dst, stream=stream),
    "batch": lambda dst, src, stream: cu.copy_batch([(dst, src)], stream=stream),
    "boxes": lambda dst, src, stream: (
        dst.view("u1", (4, 16))[:, :8].copy_from(src.view("u1", (4, 16))[:, :8], stream=stream),
        dst.view("u1", (4, 16))[:, 8:].copy_from(src.view("u1", (4, 16))[:, 8:], stream=stream),
    ),
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_carries_unwritten_bytes_along(device, stream, correct, copy):
    """What it overwrites was written, all of it; and is written again afterwards."""
    a = device.allocate(64, stream=stream)
    a.fill(0, stream=stream)
    with cu.sim.check("uninitialized", raises=False) as found:
        b = device.allocate(64, stream=stream)
        b[:24].fill(1, stream=stream)
        b[27:].fill(1, stream=stream)
        COPIES[copy](a, b, stream)
        a[:24].copy_to(bytearray(24), stream=stream)
        a[27:].copy_to(bytearray(37), stream=stream)
        a.copy_to(bytearray(64), stream=stream)
        COPIES[copy](a, b, stream)
        cu.launch(stream, cu.LaunchConfig(1, 16), correct["increment"], a)
        a.fill(2, stream=stream)
        a.copy_to(bytearray(64), stream=stream)
        stream.sync()
    by_copy, by_kernel = found
    assert f"3 bytes at {a.handle + 24:#x} were never written" in by_copy
    assert "kernel increment" in by_kernel and "thread (6,0,0)" in by_kernel
    a.close()
    b.close()


def test_memory_that_others_write_is_initialized(device, stream, correct):
    with cu.sim.check():
        tensor = cu.empty(32, "i4", stream=stream)
        np.from_dlpack(tensor)[:] = 1  # simulated device memory is host memory to others
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], tensor)
        assert (tensor.numpy(stream=stream) == 2).all()
