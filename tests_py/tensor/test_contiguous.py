# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies without gaps."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold

from .array import same

VIEWS = (
    np.s_[::2],
    np.s_[:, ::-1],
    np.s_[1:, 2:5],
    np.s_[:, None, 3],
)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("view", range(len(VIEWS)))
@pytest.mark.parametrize("dtype", ["u1", "i4", "c16"])
def test_a_view_is_copied(dtype, view, turned, stream):
    a = np.arange(40).reshape(5, 8).astype(dtype)
    t, a = cu.asarray(a, stream=stream)[VIEWS[view]], a[VIEWS[view]]
    if turned:
        t, a = t.T, a.T
    got = t.contiguous(stream=stream)
    assert got.is_contiguous
    assert got.device == stream.device
    assert same(got, a, stream)
    assert got.contiguous(stream=stream) is got


@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (0, 3), ()])
def test_itself(shape, stream):
    t = cu.zeros(shape, "f4", stream=stream)
    assert t.contiguous(stream=stream) is t
    host = cu.from_dlpack(np.zeros(shape))
    assert host.contiguous(stream=stream) is host


def test_host_memory(stream):
    a = np.arange(12.0).reshape(3, 4)
    got = cu.from_dlpack(a.T).contiguous(stream=stream)
    assert got.device == stream.device
    assert same(got, a.T, stream)


def test_in_the_order_of_the_stream(stream):
    t = cu.zeros((2, 3), "i4", stream=stream)
    with hold(stream):
        t.fill(7, stream=stream)
        out = t.T.contiguous(stream=stream)
        t.fill(8, stream=stream)
        t.close()
        assert not stream.is_done
    assert out.numpy(stream=stream).tolist() == [[7, 7]] * 3


def test_in_a_capture(stream):
    a = np.arange(6, dtype="i4").reshape(2, 3)
    t, result = cu.asarray(a, stream=stream), cu.zeros((3, 2), "i4", stream=stream)
    with stream.capture() as graph:
        assert t.contiguous(stream=stream) is t
        result.copy_from(t.T.contiguous(stream=stream), stream=stream)
    step = graph.instantiate()
    for add in (0, 10):
        t.copy_from(a + add, stream=stream)
        step.launch(stream)
        assert same(result, (a + add).T, stream)
    step.close()
    graph.close()


def test_what_is_refused(stream, device):
    t = cu.zeros((2, 3), "f4", stream=stream)
    for view in (t, t.T):
        with pytest.raises(TypeError, match="stream"):
            view.contiguous()
        with pytest.raises(TypeError, match="stream"):
            view.contiguous(stream=5)
        other = device.create_stream()
        other.close()
        with pytest.raises(cu.ClosedError, match="stream is closed"):
            view.contiguous(stream=other)
    narrow = device.allocate(4, stream=stream).view("float4_e2m1fn", (2, 4))
    assert narrow.contiguous(stream=stream) is narrow
    with stream.capture(), pytest.raises(BufferError, match="less than a byte"):
        narrow.T.contiguous(stream=stream)
    view = t.T
    view.close()
    with pytest.raises(cu.ClosedError, match="tensor is closed"):
        view.contiguous(stream=stream)
