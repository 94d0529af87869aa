# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""CuPy and RMM allocate from cudago, and cudago from them."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import cudago as cu
from cudago.allocators import ForeignMemoryResource, for_cupy, for_rmm
from cudago.testing import settle

pytestmark = pytest.mark.gpu


def buffers() -> int:
    """How many buffers are open, once all that can end has ended."""
    gc.collect()
    settle()
    return cu.live_objects().get("Buffer", 0)


def test_cupy_allocates_from_us(device, stream):
    cupy = pytest.importorskip("cupy")
    before = buffers()
    with (
        cupy.cuda.using_allocator(for_cupy(device.memory_resource)),
        cupy.cuda.Stream.from_external(stream),
    ):
        x = cupy.arange(1000, dtype="f4")
        assert buffers() > before
        assert float((2 * x).sum().get()) == 999000
        del x
        cupy.cuda.get_current_stream().synchronize()
    assert buffers() == before


def test_memory_outlives_what_cupy_forgets(device):
    """Memory is freed in the stream that it was allocated on, which CuPy would have destroyed."""
    cupy = pytest.importorskip("cupy")
    before = buffers()
    with cupy.cuda.using_allocator(for_cupy(device.memory_resource)):
        for _ in range(50):
            with cupy.cuda.Stream(non_blocking=True) as theirs:
                x = cupy.arange(1000, dtype="f4")
                theirs.synchronize()
            del theirs
            gc.collect()
            with cupy.cuda.Stream():
                y = cupy.ones(10)  # might get the handle
            del x, y
    device.sync()
    assert buffers() == before


def test_cupy_allocates_from_us_in_its_captures(device):
    """Arrays that are made and dropped inside the capture are there whenever the graph runs."""
    cupy = pytest.importorskip("cupy")
    before = buffers()
    with cupy.cuda.using_allocator(for_cupy(device.memory_resource)):
        with cupy.cuda.Stream(non_blocking=True) as theirs:
            x = cupy.arange(1000, dtype="f4")
            y = (2 * x + 1) * x  # so that the kernels are compiled
            theirs.synchronize()
            theirs.begin_capture()
            y = (2 * x + 1) * x
            graph = theirs.end_capture()
            others = [cupy.zeros(1000, "f4") for _ in range(8)]
            for factor in (1, 2):
                x *= factor
                graph.launch(theirs)
                want = (2 * x.get() + 1) * x.get()
                theirs.synchronize()
                assert (y.get() == want).all()
            assert not any(o.any() for o in others)
            del graph, x, y, others
            theirs.synchronize()
        del theirs
    deadline = time.monotonic() + 20
    while buffers() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert buffers() == before


def test_we_allocate_from_cupy(device, stream):
    cupy = pytest.importorskip("cupy")
    pool = cupy.cuda.MemoryPool()
    used = cupy.cuda.Stream().use()
    x = cu.asarray(np.arange(8, dtype="f4"), stream=stream, resource=ForeignMemoryResource(pool))
    assert cupy.cuda.get_current_stream() is used, "CuPy's user has chosen another stream"
    cupy.cuda.Stream.null.use()
    assert pool.used_bytes() == 512
    assert x.numpy(stream=stream).tolist() == list(range(8))
    x.close()
    settle()
    assert pool.used_bytes() == 0


def test_rmm_allocates_from_us(device, stream):
    rmm = pytest.importorskip("rmm")
    before = buffers()
    made = for_rmm(device.memory_resource)
    x = rmm.DeviceBuffer(size=1000, mr=made)
    assert buffers() == before + 1
    x.copy_from_host(bytes(range(250)) * 4)
    assert x.tobytes() == bytes(range(250)) * 4
    del x
    assert buffers() == before


def test_we_allocate_from_rmm(device, stream):
    rmm = pytest.importorskip("rmm")
    counted = rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaAsyncMemoryResource())
    theirs = ForeignMemoryResource(counted)
    x = cu.asarray(np.arange(8, dtype="f4"), stream=stream, resource=theirs)
    assert x.numpy(stream=stream).tolist() == list(range(8))
    assert counted.allocation_counts.current_count == 1
    x.close()
    settle()
    assert counted.allocation_counts.current_count == 0
