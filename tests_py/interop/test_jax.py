# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""JAX, which speaks legacy capsules and compact layouts."""

from __future__ import annotations

import gc

import pytest

import cudago as cu

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

TYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]


@pytest.mark.parametrize("dtype", TYPES)
def test_types_from_jax(dtype):
    x = jnp.ones((2, 4), dtype)
    t = cu.from_dlpack(x)
    assert (t.dtype_name, t.shape) == (dtype, (2, 4))
    assert t.handle == x.unsafe_buffer_pointer()
    assert t.is_readonly


@pytest.mark.parametrize("dtype", TYPES)
def test_types_to_jax(stream, dtype):
    t = cu.zeros((2, 4), dtype, stream=stream)
    x = jax.dlpack.from_dlpack(t)
    assert (str(x.dtype), x.shape) == (dtype, (2, 4))
    assert not x.any()


def test_values_both_ways(stream):
    array = np.arange(64, dtype="f4").reshape(4, 16)
    ours = cu.asarray(array, stream=stream)
    x = jax.dlpack.from_dlpack(ours)
    assert np.array_equal(x, array)
    assert np.array_equal(jax.dlpack.from_dlpack(ours.T), array.T)
    back = cu.from_dlpack(x * 2, stream=stream)
    out = cu.empty((4, 16), "f4", stream=stream)
    out.copy_from(back, stream=stream)
    assert np.array_equal(out.numpy(stream=stream), array * 2)
    with pytest.raises(BufferError, match="read-only"):
        back.copy_from(array, stream=stream)
    del x
    ours.close()
    gc.collect()


def test_a_thousand_round_trips():
    x = jnp.arange(6.0)
    for _ in range(1000):
        assert jax.dlpack.from_dlpack(cu.from_dlpack(x)).shape == (6,)
