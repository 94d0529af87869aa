# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes whose kernels go over strides: numbers are updated by name, and memory never alone."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

AGAIN = "goes over tensors whose strides are arguments too, so only its numbers can be updated"


@pytest.fixture
def tensor(stream):
    """Return a function that makes a matrix of one value."""
    return lambda value, shape=(8, 6): cu.full(shape, value, "f4", stream=stream)


@pytest.fixture(params=["graph", "executable"])
def added(request, axpy, tensor, stream):
    """Return the node of z[::2] = 2 * x[::2] + y, what runs it, and x, y and z."""
    x, y, z = tensor(1), tensor(2, 6), tensor(0)
    steps = []

    def call():
        axpy(x[::2], y, 2.0, stream=stream, out=z[::2])

    call()  # compiled by now
    with stream.capture() as graph:
        call()
    owner = graph.instantiate() if request.param == "executable" else graph
    (node,) = owner.nodes

    def run():
        step = owner if owner is not graph else graph.instantiate()
        steps.append(step)
        step.launch(stream)
        stream.sync()
        return z.numpy(stream=stream)

    yield node, run, (x, y, z)
    for thing in (*steps, owner, graph, x, y, z):
        thing.close()


def test_numbers(added):
    node, run, _ = added
    assert (run()[::2] == 4).all()
    for value in (3.0, 5, np.float32(7)):
        node.update(a=value)
        found = run()
        assert (found[::2] == value + 2).all()
        assert (found[1::2] == 0).all()
    node.update({2: 1.5})
    assert (run()[::2] == 3.5).all()


def test_nothing_else(added, tensor, device, stream):
    """Of which the strides would be those of other memory."""
    node, run, (x, _, z) = added
    small = tensor(5, (2, 2))
    with device.allocate(4, stream=stream) as raw:
        changes = [
            {"x": small},
            {"x": x},
            {"y": tensor(5, 6)},
            {"z": small[::2]},
            {"z": None},
            {"x": small, "y": small[0], "z": small},
            {"n": 3},
            {"x": raw},
            {"x": z.handle},
            {"cudago_n0": 3},
            {"cudago_s0_0": 1 << 40},
            {"config": cu.LaunchConfig(1, 32)},
            {"a": 3.0, "x": small},
        ]
        for change in changes:
            with pytest.raises(ValueError, match=AGAIN):
                node.update(**change)
        for position in (0, 1, 3, 4, 5, 6):
            with pytest.raises(ValueError, match=AGAIN):
                node.update({position: small})
        with pytest.raises(ValueError, match=AGAIN):
            node.update(cu.LaunchConfig(1, 32))
        for wrong in (small, raw, raw.ptr, "a", None):
            with pytest.raises(TypeError, match=r"a of .* must be a number, not "):
                node.update(a=wrong)
        with pytest.raises(TypeError, match="has no parameter 'q'"):
            node.update(q=1)
        with pytest.raises(ValueError, match=r"goes over strides, .* and cannot use slots"):
            node.update(x=cu.slot("x", x))
    params = node.params
    with pytest.raises(ValueError, match="is one of cudago's own"):
        node.update(params.config, params.kernel, *params.args)
    found = run()
    assert (found[::2] == 4).all()
    assert (found[1::2] == 0).all()


def test_memory_is_kept(axpy, tensor, stream):
    """By the tensors that were passed, which the node shows."""
    x, z = tensor(3), tensor(0)
    axpy(x.T, 1.0, 2.0, stream=stream, out=z.T)
    with stream.capture() as graph:
        axpy(x.T, 1.0, 2.0, stream=stream, out=z.T)
    (node,) = graph.nodes
    shown = node.params.args[0]
    assert (shown.shape, shown.strides) == ((6, 8), (1, 6))
    del x, shown
    graph.instantiate().launch(stream)
    assert (z.numpy(stream=stream) == 7).all()


def test_a_graph_that_was_captured_again(axpy, tensor, stream):
    x, y, z = tensor(1), tensor(2), tensor(0)
    axpy(x[::2], y[::2], 2.0, stream=stream, out=z[::2])

    def capture(*args, out):
        with stream.capture() as graph:
            axpy(*args, stream=stream, out=out)
        return graph

    with capture(x[::2], y[::2], 2.0, out=z[::2]).instantiate() as step:
        step.update(capture(x[1::2], y[1::2], 5.0, out=z[1::2]))
        step.launch(stream)
        found = z.numpy(stream=stream)
        assert (found[1::2] == 7).all()
        assert (found[::2] == 4).all()


def test_in_a_file(tmp_path, axpy, tensor, stream):
    """The kernel is known again when it is loaded."""
    x, z = tensor(1), tensor(0)
    axpy(x.T, 1.0, 2.0, stream=stream, out=z.T)
    with stream.capture() as captured:
        axpy(x.T, 1.0, 2.0, stream=stream, out=z.T)
    captured.save(tmp_path / "file", contents=True)
    captured.close()
    with cu.Graph.load(tmp_path / "file") as graph, graph.instantiate() as step:
        (node,) = step.nodes
        with pytest.raises(ValueError, match=AGAIN):
            node.update(x=tensor(5, (2, 2)))
        node.update(a=5.0)
        step.launch(stream)
        stream.sync()


def test_a_function_that_is_a_graph(axpy, tensor, stream):
    @cu.graph
    def step(stream, x, z, a):
        axpy(x.T, 1.0, a, stream=stream, out=z.T)

    z = tensor(0)
    for value in range(4):
        step(stream, tensor(value), z, 2.0 + value)
        assert (z.numpy(stream=stream) == (2 + value) * value + 1).all()
    small, out = tensor(5, (3, 2)), tensor(0, (3, 2))
    step(stream, small, out, 1.0)
    assert (out.numpy(stream=stream) == 6).all()
    assert (z.numpy(stream=stream) == 16).all()
