# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Copies of rows with gaps between them: what their nodes say, and their updates in a graph."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")


@pytest.fixture
def table(stream):
    """A tensor of 8 rows of 16 zeros."""
    with cu.zeros((8, 16), "f4", stream=stream) as tensor:
        yield tensor


def columns(table, stream):
    """Return the first row, in which all rows of these tests are alike."""
    stream.sync()
    found = table.numpy(stream=stream)
    assert (found == found[0]).all()
    return found[0].tolist()


def test_params_have_what_was_passed(graph, table, stream):
    view, host = table[:, 2:4], np.ones((8, 2), "f4")
    node = graph.memcpy(view, host, name="c")
    assert node.params.dst is view
    assert node.params.src is host
    assert node.params.nbytes == 64
    with graph.instantiate() as step, graph.clone() as clone:
        for params in (step["c"].params, clone["c"].params):
            assert params.dst is view
            assert params.src is host
    assert {
        r.operand: r.object is o for r, o in zip(graph.retained, (host, view), strict=True)
    } == {
        "src": True,
        "dst": True,
    }


def test_params_of_a_capture_have_the_tensors(table, stream):
    with cu.zeros((8, 2), "f4", stream=stream) as packed, table[:, 2:4] as view:
        with stream.capture() as graph:
            view.copy_from(packed, stream=stream)
        params = graph.nodes[0].params
        assert params.dst is view
        assert params.src is packed
        graph.close()


def test_each_side_can_be_updated(graph, table, stream):
    node = graph.memcpy(table[:, 2:4], np.ones((8, 2), "f4"))

    def run():
        table.fill(0, stream=stream)
        with graph.instantiate() as step:
            step.launch(stream)
        return [i for i, value in enumerate(columns(table, stream)) if value]

    assert run() == [2, 3]
    node.update(dst=table[:, 5:7])
    assert run() == [5, 6]
    two = np.full((8, 2), 2, "f4")
    node.update(src=two)
    assert run() == [5, 6]
    assert node.params.src is two
    node.update(dst=table[:, 1:4], src=np.ones((8, 3), "f4"))  # another size
    assert run() == [1, 2, 3]
    node.update(dst=table, src=np.ones((8, 16), "f4"))  # without gaps
    assert run() == list(range(16))
    node.update(dst=table[:, :2], src=two)  # and with them again
    assert run() == [0, 1]


def test_an_update_of_a_body_and_a_clone(graph, table, stream):
    body = graph.if_then(graph.condition(default=1)).body
    with cu.ones((8, 2), "f4", stream=stream) as ones:
        node = body.memcpy(table[:, 2:4], ones)
        node.update(dst=table[:, 5:7])
        with graph.instantiate() as step:
            step.launch(stream)
        assert columns(table, stream)[4:8] == [0, 1, 1, 0]


def test_what_an_update_refuses(graph, table, stream, device):
    view, host = table[:, 2:4], np.ones((8, 2), "f4")
    node = graph.memcpy(view, host, name="c")
    with (
        cu.zeros((8, 3), "f4", stream=stream) as other,
        pytest.raises(ValueError, match="same shape"),
    ):
        node.update(dst=other[:, :1])
    with pytest.raises(ValueError, match="128 bytes, src 64"):
        node.update(dst=cu.zeros((8, 4), "f4", stream=stream), src=host)
    with pytest.raises(ValueError, match="with gaps between them, and cannot use slots"):
        node.update(src=cu.slot("s", host))
    scattered = cu.zeros((8, 3, 5, 7), "f4", stream=stream)[:, ::2, ::2, ::2]
    with pytest.raises(ValueError, match="one copy of 'c' cannot be between strides"):
        node.update(dst=scattered, src=np.ones((8, 2, 3, 4), "f4"))
    with (
        graph.instantiate() as step,
        pytest.raises(ValueError, match="can only update copies without"),
    ):
        step["c"].update(src=np.ones((8, 2), "f4"))
    view.close()
    with pytest.raises(ValueError, match="its dst, which tells where the rows are, was closed"):
        node.update(src=np.ones((8, 2), "f4"))
    assert node.params.src is host
