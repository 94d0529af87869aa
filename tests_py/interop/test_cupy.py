# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""CuPy, which takes memory of CUDA devices only."""

from __future__ import annotations

import gc

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.gpu


@pytest.fixture
def cupy():
    """CuPy, imported after the GPU is known to be there."""
    return pytest.importorskip("cupy")


def test_memory_is_shared_both_ways(cupy, stream):
    x = cupy.arange(12, dtype="f4").reshape(3, 4)
    t = cu.from_dlpack(x, stream=stream)
    assert (t.handle, t.shape, t.dtype) == (x.data.ptr, (3, 4), np.dtype("f4"))
    assert np.array_equal(t.numpy(stream=stream), x.get())
    back = cupy.from_dlpack(t[1:, ::2])
    assert np.array_equal(back.get(), x.get()[1:, ::2])
    del x, t
    gc.collect()
    assert back.get().tolist() == [[4, 6], [8, 10]]


def test_pending_work_is_waited_for(cupy, stream):
    for value in range(20):
        t = cu.full((1 << 20,), value, "i4", stream=stream)
        with cupy.cuda.Stream(non_blocking=True) as theirs:
            x = cupy.from_dlpack(t)
            total = (x == value).all()
            theirs.synchronize()
        assert total.get()


def test_cuda_array_interface(cupy, stream):
    t = cu.asarray(np.arange(12, dtype="f4").reshape(3, 4), stream=stream)
    x = cupy.asarray(t)
    assert x.data.ptr == t.handle
    assert np.array_equal(cupy.asarray(t.T).get(), x.get().T)
    assert t.__cuda_array_interface__["version"] == 3
    assert t.__cuda_array_interface__["stream"] == 1


def test_managed_memory(cupy, device, stream):
    t = cu.ManagedMemoryResource(device).allocate(64, stream=stream).view("f4")
    x = cupy.from_dlpack(t)
    x[:] = 2
    cupy.cuda.get_current_stream().synchronize()
    assert t.numpy(stream=stream).tolist() == [2] * 16


def test_ten_thousand_round_trips(cupy, stream):
    t = cu.zeros(256, "f4", stream=stream)
    for _ in range(10_000):
        cu.from_dlpack(cupy.from_dlpack(t))
