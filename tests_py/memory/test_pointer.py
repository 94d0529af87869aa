# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Pointers: arithmetic with bounds and an owner."""

from __future__ import annotations

import gc
import operator

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")


@pytest.fixture
def buffer(device, stream):
    """64 bytes of device memory."""
    with device.allocate(64, stream=stream) as buffer:
        yield buffer


def test_facts(buffer):
    p = buffer.ptr
    assert p.buffer is buffer
    assert p.offset == 0
    assert int(p) == operator.index(p) == buffer.handle
    assert repr(p) == f"<cudago.Pointer {buffer.handle:#x}: byte 0 of 64>"
    assert p
    with pytest.raises(TypeError, match="Pointer"):
        type(p)()


def test_arithmetic(buffer):
    p = buffer.ptr + 16
    assert (p.offset, p.buffer) == (16, buffer)
    assert 16 + buffer.ptr == p
    assert (p - 16) == buffer.ptr
    assert p + -4 == buffer.ptr + 12
    assert p - buffer.ptr == 16
    assert buffer.ptr - p == -16
    assert (buffer.ptr + np.int64(8)).offset == 8
    p += 4
    assert p.offset == 20


def test_one_past_the_end_is_a_pointer_and_no_further(buffer):
    assert (buffer.ptr + 64) - buffer.ptr == 64
    for start, by in ((0, 65), (0, -1), (64, 1), (10, -11), (0, 1 << 70), (1, (1 << 63) - 1)):
        with pytest.raises(
            IndexError, match=f"at byte {start} of a buffer of 64 bytes cannot move"
        ):
            _ = buffer.ptr + start + by
    with pytest.raises(IndexError, match="cannot move by -65 bytes"):
        _ = buffer.ptr - 65


def test_what_cannot_be_added(buffer):
    p = buffer.ptr
    for bad in (1.5, "1", None, p):
        with pytest.raises(TypeError):
            _ = p + bad
    with pytest.raises(TypeError):
        _ = 5 - p
    with pytest.raises(TypeError):
        _ = p * 2


def test_comparison(buffer, device, stream):
    p, q = buffer.ptr, buffer.ptr + 8
    assert p < q and p <= q and q > p and q >= p and p != q
    assert p == buffer.ptr and hash(p) == hash(buffer.ptr)
    assert p != int(p)
    assert sorted([q, p]) == [p, q]
    with device.allocate(8, stream=stream) as other:
        assert other.ptr != p
        with pytest.raises(ValueError, match="different allocations have no difference"):
            _ = p - other.ptr


def test_views_have_their_own_bounds(buffer):
    view = buffer[16:32]
    assert view.ptr.offset == 0
    assert view.ptr == buffer.ptr + 16
    assert view.ptr - buffer.ptr == 16
    assert (view.ptr + 16).buffer is view
    with pytest.raises(IndexError, match="of a buffer of 16 bytes"):
        _ = view.ptr + 17


def test_a_pointer_keeps_its_memory(device, stream, kernels):
    gc.collect()
    settle()  # what graphs of earlier tests kept
    before = cu.live_objects().get("Buffer", 0)
    p = device.allocate(64, stream=stream).ptr + 32
    gc.collect()
    assert cu.live_objects()["Buffer"] == before + 1
    source = np.arange(8, dtype="i4")
    out = np.zeros(8, "i4")
    with device.allocate(32, stream=stream) as copied:
        copied.copy_from(source, stream=stream)
        config = cu.LaunchConfig(grid=1, block=8)
        cu.launch(stream, config, kernels["copy"], copied, p, 8)
        cu.launch(stream, config, kernels["copy"], p, copied, 8)
        copied.copy_to(out, stream=stream)
        stream.sync()
    assert (out == source).all()


def test_a_pointer_is_an_operand_of_the_rest_of_its_buffer(buffer, device, stream):
    out = bytearray(64)
    buffer.fill(0, stream=stream)
    with device.allocate(16, stream=stream) as ones:
        ones.fill(1, stream=stream)
        ones.copy_to(buffer.ptr + 48, stream=stream)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    assert out == bytearray(48) + bytearray([1] * 16)
    with pytest.raises(ValueError, match="src has 60 bytes, the buffer 64"):
        buffer.copy_from(buffer.ptr + 4, stream=stream)


def test_pointers_of_a_closed_buffer(buffer, stream, kernels):
    p = buffer.ptr
    buffer.close()
    assert repr(p) == "<cudago.Pointer of a closed buffer>"
    config = cu.LaunchConfig(grid=1, block=1)
    for use in (
        lambda: p + 1,
        lambda: int(p),
        lambda: buffer.ptr,
        lambda: cu.launch(stream, config, kernels["add"], p, 1, 1),
    ):
        with pytest.raises(cu.ClosedError, match="buffer is closed"):
            use()
