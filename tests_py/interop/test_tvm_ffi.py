# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Apache TVM's FFI, the main consumer of DLPack's C exchange table."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")
tvm_ffi = pytest.importorskip("tvm_ffi")


@pytest.fixture
def ours(stream):
    """2 x 3 int32, 0 to 5, on the device."""
    t = cu.asarray(np.arange(6, dtype="i4").reshape(2, 3), stream=stream)
    yield t
    t.close()


def test_memory_is_shared(ours, stream):
    x = tvm_ffi.from_dlpack(ours)
    assert (tuple(x.shape), str(x.dtype)) == ((2, 3), "int32")
    back = cu.from_dlpack(x)
    ours.close()
    if back.device is None:
        assert memoryview(back).tolist() == [[0, 1, 2], [3, 4, 5]]
    else:
        assert back.numpy(stream=stream).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_tensor_is_an_argument(ours):
    seen = []
    function = tvm_ffi.convert(lambda x: seen.append((tuple(x.shape), str(x.dtype))))
    for _ in range(1000):
        function(ours)
    assert seen == [((2, 3), "int32")] * 1000
    with pytest.raises(BufferError, match="negative stride"):
        function(ours[::-1])
