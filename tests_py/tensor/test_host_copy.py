# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between tensors that are both in pageable host memory keep the order of the stream."""

from __future__ import annotations

import time

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

VIEWS = {
    "whole": lambda x: x,
    "rows apart": lambda x: x[:, :2],
    "elements apart": lambda x: x[::2, ::3],
    "backwards": lambda x: x[:, ::-1],
}


def sides(name):
    """Return views of two arrays, and tensors over them."""
    view = VIEWS[name]
    a, b = np.zeros((8, 6), "i4"), np.arange(48, dtype="i4").reshape(8, 6) + 1
    return view(a), view(b), cu.from_dlpack(view(a)), cu.from_dlpack(view(b))


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_queued_comes_first(view, stream):
    a, b, dst, src = sides(view)

    def write():
        time.sleep(0.02)
        b[...] += 100

    for copy in (lambda: dst.copy_from(src, stream=stream), lambda: src.copy_to(a, stream=stream)):
        stream.callback(write)
        copy()
        assert (a == b).all() and (a > 100).all()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("call", ["copy_from", "copy_to"])
def test_a_capture_copies_nothing(view, stream, call):
    a, b, dst, src = sides(view)
    with stream.capture() as graph:
        if call == "copy_from":
            dst.copy_from(src, stream=stream)
        else:
            src.copy_to(dst, stream=stream)
    assert not a.any()
    assert {node.kind for node in graph.nodes} == {"memcpy"}
    b[...] += 1
    with graph.instantiate() as step:
        for _ in range(2):
            step.launch(stream)
            stream.sync()
            assert (a == b).all()
            b[...] += 1
    graph.close()


@pytest.mark.parametrize("view", VIEWS)
def test_a_capture_that_fails_has_copied_nothing(view, stream):
    a, _, dst, src = sides(view)
    with pytest.raises(KeyError), stream.capture():
        dst.copy_from(src, stream=stream)
        raise KeyError
    assert not a.any()


def test_only_a_capture_refuses_sides_that_overlap(stream):
    a = np.arange(8, dtype="i4")
    dst, src = cu.from_dlpack(a[1:]), cu.from_dlpack(a[:-1])
    dst.copy_from(src, stream=stream)
    assert a.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    with stream.capture() as graph:
        with pytest.raises(ValueError, match="overlap"):
            dst.copy_from(src, stream=stream)
        with pytest.raises(ValueError, match="overlap"):
            dst[::2].copy_from(src[::2], stream=stream)  # in each other's gaps they are apart
            src[1:4].copy_from(src[0:6:2], stream=stream)
    graph.close()
