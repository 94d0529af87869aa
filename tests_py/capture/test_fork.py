# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Streams that take part in a capture."""

from __future__ import annotations

from inspect import currentframe

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

CONFIG = cu.LaunchConfig(grid=1, block=4)


@pytest.fixture
def memory(device, stream):
    """Two buffers of four numbers."""
    x, y = (device.allocate(16, stream=stream) for _ in range(2))
    yield x, y
    x.close()
    y.close()


def edges(graph):
    return {(a.name, b.name) for a, b in graph.edges}


def test_a_fork_is_joined_at_the_end_of_its_block(memory, stream, other, kernels):
    x, y = memory
    with stream.capture() as graph:
        x.fill(0, stream=stream)
        with graph.fork(other) as branch:
            assert branch is other and branch.is_capturing
            cu.launch(branch, CONFIG, kernels["add"], x, 3, 4)
        y.fill(0, stream=stream)
        y.copy_from(x, stream=stream)
    assert not other.is_capturing
    assert edges(graph) == {
        ("memset_0", "kernel_0"),
        ("memset_0", "memset_1"),
        ("kernel_0", "memset_1"),
        ("memset_1", "memcpy_0"),
    }
    with graph.instantiate() as step:
        step.launch(stream)
        assert y.view("i4").numpy(stream=stream).tolist() == [3] * 4
    graph.close()


def test_a_fork_is_a_stream(memory, stream, other, kernels):
    x, y = memory
    with stream.capture() as graph:
        branch = graph.fork(other)
        assert (branch.stream, branch.is_joined) == (other, False)
        x.fill(1, stream=branch)
        cu.launch(branch, CONFIG, kernels["add"], x, 3, 4)
        branch.join()
        branch.join()
        assert repr(branch) == f"<cudago.Fork of {other!r}, joined>"
        y.copy_from(x, stream=stream)
        with graph.fork(branch):  # once more
            y.fill(0, stream=branch)
    assert [node.kind for node in graph.nodes] == ["memset", "kernel", "memcpy", "memset"]
    assert len(graph.edges) == 4  # the second fork comes after its own work too
    graph.close()


def test_what_is_not_joined_is_named(memory, device, stream, other):
    x, y = memory
    unjoined = pytest.raises(cu.CUDAError, match="STREAM_CAPTURE_UNJOINED")
    with device.create_stream() as third:
        with unjoined as e, stream.capture() as graph:
            with graph.fork(third):
                x.fill(1, stream=third)
            graph.fork(other)
            x.fill(1, stream=other)
            y.fill(1, stream=other)
            line = currentframe().f_lineno - 1
        assert f"stream {other.handle:#x}, whose last work {__file__}:{line}" in str(e.value)
        assert f"{third.handle:#x}" not in str(e.value)
    assert not stream.is_capturing and not other.is_capturing
    other.sync()


def test_an_error_in_the_block_joins_too(memory, stream, other):
    x, _ = memory
    with stream.capture() as graph, pytest.raises(LookupError), graph.fork(other):
        x.fill(1, stream=other)
        raise LookupError
    assert len(graph.nodes) == 1
    graph.close()


def test_what_cannot_be_forked(device, stream, other):
    not_captured = pytest.raises(ValueError, match="the graph is not being captured")
    with cu.Graph(device) as built, not_captured:
        built.fork(other)
    with stream.capture("relaxed") as graph:
        with other.capture("relaxed") as second:
            for wrong, error, text in (
                (stream, ValueError, "is the one that is captured"),
                (other, ValueError, "is in another capture"),
                (device.default_stream, ValueError, "legacy default stream cannot take part"),
                (None, TypeError, "stream must be a Stream"),
            ):
                with pytest.raises(error, match=text):
                    graph.fork(wrong)
        second.close()
        closed = device.create_stream()
        closed.close()
        with pytest.raises(cu.ClosedError):
            graph.fork(closed)
    with pytest.raises(ValueError, match="the graph is not being captured"):
        graph.fork(other)
    graph.close()


def test_a_launch_names_what_an_earlier_one_left(device, stream):
    with cu.Graph(device) as graph:
        graph.allocate(16, name="scratch")
        with graph.instantiate() as step:
            step.launch(stream)
            left = r'left the memory of \["scratch"\] allocated: free'
            with pytest.raises(cu.CUDAError, match=left):
                step.launch(stream)
    stream.sync()
