# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of executables, and disabled nodes."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago.testing import hold

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


def test_update_memcpy(graph, a, b, stream):
    graph.memcpy(a, np.full(N, 1, "i4"), name="up")
    with graph.instantiate() as step:
        step["up"].update(src=np.full(N, 2, "i4"))
        step.launch(stream)
        assert numbers(a, stream) == 2
        step["up"].update(dst=b)
        step.launch(stream)
        assert numbers(b, stream) == 2
        step["up"].update(dst=a, src=np.full(N, 3, "i4"))
        step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (3, 2)
        assert step.launch_count == 3


def test_update_memset(graph, a, b, stream):
    graph.memset(a, b"\1\0\0\0", name="set")
    with graph.instantiate() as step:
        step["set"].update(b, b"\2\0\0\0")
        step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (0, 2)


def test_update_kernel(graph, a, b, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="k")
    with graph.instantiate() as step:
        step["k"].update(CONFIG, kernels["add"], b, 5, N)
        step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (0, 5)
        step["k"].update(cu.LaunchConfig(grid=1, block=N // 2), kernels["times"], b, 3, N)
        step.launch(stream)
        assert numbers(b, stream) == [15] * (N // 2) + [5] * (N // 2)


def test_update_callback(graph, stream):
    seen = []
    graph.callback(lambda: seen.append(1), name="tell")
    with graph.instantiate() as step:
        step.launch(stream)
        step["tell"].update(lambda: seen.append(2))
        step.launch(stream)
        stream.sync()
    assert seen == [1, 2]


def test_an_update_is_for_later_launches(graph, a, b, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="k")
    with graph.instantiate() as step:
        with hold(stream):
            step.launch(stream)
            step["k"].update(CONFIG, kernels["add"], b, 10, N)
            step.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (1, 10)


def test_an_update_leaves_the_graph_and_other_executables_alone(graph, a, b, stream):
    graph.memset(a, b"\1\0\0\0", name="set")
    with graph.instantiate() as one, graph.instantiate() as two:
        one["set"].update(b, b"\2\0\0\0")
        two.launch(stream)
        with graph.instantiate() as three:
            three.launch(stream)
        assert (numbers(a, stream), numbers(b, stream)) == (1, 0)


def test_refused_updates_change_nothing(graph, a, b, stream, kernels):
    source = np.full(N, 4, "i4")
    graph.memcpy(a, source, name="up").launch(CONFIG, kernels["add"], a, 1, N, name="k").callback(
        lambda: None, name="tell"
    )
    graph.join(name="nothing")
    with graph.instantiate() as step:
        before = step.retained
        for update, error, message in (
            (lambda: step["up"].update(), TypeError, "needs dst=, src= or both"),
            (lambda: step["up"].update(src=b"abc"), ValueError, "must have the 64 bytes"),
            (lambda: step["up"].update(dst=bytes(64)), BufferError, "writable"),
            (lambda: step["up"].update(src=b), ValueError, "must stay pageable host memory"),
            (
                lambda: step["up"].update(bytes(64)),
                TypeError,
                "memcpy node takes dst=, src=: too many",
            ),
            (lambda: step["k"].update(CONFIG, kernels["add"], a, 1), TypeError, "takes 3 arg"),
            (
                lambda: step["k"].update(CONFIG, kernels["add"], a, 1, None),
                TypeError,
                "parameter 2",
            ),
            (lambda: step["k"].update(src=a), TypeError, "add has no parameter 'src'; it has y"),
            (lambda: step["tell"].update(5), TypeError, "callback must be callable"),
            (lambda: step["nothing"].update(), TypeError, "'nothing' is of kind empty, whose par"),
        ):
            with pytest.raises(error, match=message):
                update()
        after = step.retained
        assert [(r.node, r.operand) for r in after] == [(r.node, r.operand) for r in before]
        assert all(x.object is y.object for x, y in zip(after, before, strict=True))
        step.launch(stream)
        assert numbers(a, stream) == 5


def test_nodes_can_be_switched_off_and_on(graph, a, stream, kernels):
    told = []
    node = graph.launch(CONFIG, kernels["add"], a, 1, N, name="one")
    node = node.launch(CONFIG, kernels["add"], a, 10, N, name="ten")
    graph.join(node.callback(lambda: told.append(1), name="tell"), name="join")
    with graph.instantiate() as step:
        assert step["ten"].enabled is step["tell"].enabled is True
        step["ten"].disable()
        for wrong in (None, "x", 1):
            with pytest.raises(TypeError, match="enabled must be a bool, not"):
                step["ten"].enabled = wrong
        assert not step["ten"].enabled
        step["ten"].enabled = False
        step["tell"].enabled = False
        step.launch(stream)
        assert numbers(a, stream) == 1
        assert told == []
        assert step["ten"].enabled is step["tell"].enabled is False
        assert len([r for r in step.retained if r.node == "ten"]) == 2
        step["tell"].update(lambda: told.append(2))
        step["ten"].update(CONFIG, kernels["add"], a, 20, N)
        assert step["ten"].enabled is step["tell"].enabled is False
        step["ten"].enable()
        step["ten"].enabled = step["tell"].enabled = True
        step.launch(stream)
        assert numbers(a, stream) == 22
        assert told == [2]
        with pytest.raises(cu.CUDAError, match='empty node "join" cannot be disabled'):
            step["join"].enabled = False
        assert step["join"].enabled
    with pytest.raises(cu.ClosedError):
        assert step["ten"].enabled
    with pytest.raises(cu.ClosedError):
        step["ten"].enabled = True


def test_a_node_is_disabled_for_a_block(graph, a, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N, name="one").launch(
        CONFIG, kernels["add"], a, 10, N, name="ten"
    )
    with graph.instantiate() as step:
        one, ten = step["one"], step["ten"]
        with one.disabled():
            step.launch(stream)
            with one.disabled(), ten.disabled():
                step.launch(stream)
            assert (one.enabled, ten.enabled) == (False, True)
            with pytest.raises(ZeroDivisionError), ten.disabled():
                _ = 1 / 0
            step.launch(stream)
        assert (one.enabled, ten.enabled) == (True, True)
        assert numbers(a, stream) == 20
        with ten.disabled():
            ten.enabled = True
        assert ten.enabled
        with one.disabled():
            step.close()
        with pytest.raises(cu.ClosedError), one.disabled():
            pytest.fail("the executable is closed")


def test_a_block_that_is_dropped_ends(graph, a):
    graph.memset(a, 1, name="one")
    step = graph.instantiate()
    one = step["one"]
    block = one.disabled()
    assert one.enabled
    assert block.__enter__() is None
    with pytest.raises(RuntimeError, match="is in use: make another"):
        block.__enter__()
    assert not one.enabled
    del block
    assert one.enabled
    block = one.disabled()
    assert block.__exit__(None, None, None) is False
    for _ in range(2):
        with block:
            assert not one.enabled
        assert one.enabled


def test_a_block_is_entered_once_also_while_it_begins(driver):
    """Another thread may do so, or what the change runs."""
    block, calls = cu._core.Block(), []

    def change() -> None:
        calls.append("change")
        with pytest.raises(RuntimeError, match="is in use: make another"):
            block.__enter__()

    block._plan((change,), (calls.append, "undo"))
    for _ in range(2):
        with block:
            pass
    assert calls == ["change", "undo"] * 2

    def refuse() -> None:
        raise LookupError("no")

    block._plan((refuse,), (calls.append, "undo"))
    for _ in range(2):  # it has not begun
        with pytest.raises(LookupError), block:
            pytest.fail("it was refused")
    assert calls == ["change", "undo"] * 2


def test_what_is_not_undone_is_told(graph, a, driver):
    """With what the block raised, as a note on it."""
    graph.memset(a, 1, name="one")
    step = graph.instantiate()

    def fail():
        raise LookupError("no")

    block = cu._core.Block()
    block._plan((step["one"].enable,), (fail,))
    with pytest.raises(LookupError, match="no"), block:
        pass
    with pytest.raises(ZeroDivisionError) as e, block:
        _ = 1 / 0
    assert e.value.__notes__ == ["What was changed could not be changed back: no"]

    heard = []

    def interrupted():
        heard.append(len(heard))
        if len(heard) % 2:
            raise KeyboardInterrupt

    block._plan((step["one"].enable,), (interrupted,))
    with pytest.raises(KeyboardInterrupt), block:
        pass
    with pytest.raises(KeyboardInterrupt) as e, block:
        _ = 1 / 0
    assert isinstance(e.value.__context__, ZeroDivisionError)
    assert len(heard) == 4  # once more, each time
