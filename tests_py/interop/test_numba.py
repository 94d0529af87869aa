# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Numba's CUDA arrays, through the CUDA array interface."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")


@pytest.mark.gpu
def test_both_ways(stream):
    cuda = pytest.importorskip("numba.cuda")
    t = cu.asarray(np.arange(12, dtype="f4").reshape(3, 4), stream=stream)
    x = cuda.as_cuda_array(t)
    assert np.array_equal(x.copy_to_host(), t.numpy(stream=stream))
    out = cu.empty((3, 4), "f4", stream=stream)
    out.buffer.copy_from(cuda.to_device(np.ones((3, 4), "f4")), stream=stream)
    assert out.numpy(stream=stream).tolist() == np.ones((3, 4)).tolist()


def test_only_for_memory_of_nvidias_driver(device, stream):
    t = cu.zeros((2, 2), "f4", stream=stream)
    assert hasattr(t, "__cuda_array_interface__") == (cu.driver_name() == "nvidia")
    host = cu.from_dlpack(np.zeros(4))
    with pytest.raises(AttributeError, match="host or simulated memory"):
        _ = host.__cuda_array_interface__
    assert not hasattr(cu.zeros(4, "bfloat16", stream=stream), "__cuda_array_interface__")
