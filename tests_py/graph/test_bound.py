# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launches whose arguments are checked once."""

from __future__ import annotations

import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


def test_a_launch_is_bound_and_updated(a, stream, kernels):
    add = kernels["add"].bind(CONFIG, a, 1, N)
    assert repr(add) == f"<cudago.BoundLaunch of add: {CONFIG!r}>"
    add(stream)
    add(stream)
    assert numbers(a, stream) == 2
    add.update(value=10)
    add(stream)
    assert numbers(a, stream) == 12
    add.update({1: 100})
    add(stream)
    assert numbers(a, stream) == 112
    assert (add.params.kernel, add.params.args) == (kernels["add"], (a, 100, N))
    with add:
        assert not add.is_closed
    assert add.is_closed
    assert repr(add) == "<cudago.BoundLaunch: closed>"
    add.close()
    for use in (lambda: add(stream), lambda: add.update(value=1), lambda: add.params):
        with pytest.raises(cu.ClosedError, match=r"^bound launch is closed"):
            use()


def test_arguments_are_kept(device, stream, kernels):
    buffer = device.allocate(4 * N, stream=stream)
    watch = weakref.ref(buffer)
    add = kernels["add"].bind(CONFIG, buffer, 1, N)
    with hold(stream):
        add(stream)
        buffer.close()
        del buffer
        add.close()
        cu._core._reaper_flush(20)
        assert watch() is not None
    stream.sync()
    settle()
    assert watch() is None


def test_a_capture_gets_a_node(a, stream, kernels):
    add = kernels["add"].bind(CONFIG, a, 5, N)
    with stream.capture() as graph:
        add(stream)
        add(stream)
    assert [n.params.args for n in graph.nodes] == [(a, 5, N)] * 2
    add.close()
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 10
    graph.close()


def test_mistakes_show_when_it_is_bound(a, stream, kernels):
    add = kernels["add"]
    with pytest.raises(TypeError, match="parameter 1 of kernel add must be an integer"):
        add.bind(CONFIG, a, 2.5, N)
    with pytest.raises(TypeError, match="takes 3 argument"):
        add.bind(CONFIG, a)
    with pytest.raises(TypeError, match="config must be a LaunchConfig"):
        add.bind(3, a, 1, N)
    bound = add.bind(CONFIG, a, 1, N)
    with pytest.raises(TypeError, match="has no parameter 'amount'; it has y, value, n"):
        bound.update(amount=1)
    with pytest.raises(TypeError):
        bound(3)
    bound(stream)
    assert numbers(a, stream) == 1
    bound.close()


def test_the_stream_may_be_named(a, stream, kernels):
    bound = kernels["add"].bind(CONFIG, a, 1, N)
    with cu.Graph() as graph:
        graph.launch(CONFIG, kernels["add"], a, 10, N)
        with graph.instantiate() as step:
            bound(stream=stream)
            step(stream=stream)
            step(stream)
            for call in (bound, step):
                for args, kwargs in [
                    ((), {}),
                    ((stream, 1), {}),
                    ((stream,), {"stream": stream}),
                    ((), {"s": 1}),
                ]:
                    with pytest.raises(TypeError, match="takes one argument, stream"):
                        call(*args, **kwargs)
    assert numbers(a, stream) == 21
    bound.close()


def test_a_stream_that_drops_the_launch(a, stream, kernels):
    """What converts the stream drops the last reference to the launch that is under way."""
    box = [kernels["add"].bind(CONFIG, a, 1, N)]
    kept = weakref.ref(box[0])

    class Theirs:
        def __cuda_stream__(self):
            box.clear()
            return (0, stream.handle)

    box[0].__class__.__call__(box[0], Theirs())
    assert not box
    assert kept() is None
    settle()
    assert numbers(a, stream) == 1


def test_a_stream_that_closes_the_launch(a, stream, kernels):
    bound = kernels["add"].bind(CONFIG, a, 1, N)

    class Theirs:
        def __cuda_stream__(self):
            bound.close()
            return (0, stream.handle)

    with pytest.raises(cu.ClosedError):
        bound(Theirs())
    assert numbers(a, stream) == 0


def test_an_update_that_closes_the_launch(a, kernels):
    bound = kernels["add"].bind(CONFIG, a, 1, N)

    class Closes:
        def __index__(self):
            bound.close()
            return 2

    with pytest.raises(cu.ClosedError, match="bound launch is closed"):
        bound.update({1: Closes()})


def test_only_an_executable_is_opened(a, stream, kernels):
    bare = cu.BoundLaunch.__new__(cu.BoundLaunch)
    with pytest.raises(TypeError, match="executable"):
        bare._open(a, a)
    for call in (bare, bare.__call__):
        with pytest.raises(cu.ClosedError):
            call(stream)


class Twice(cu.BoundLaunch):
    """A launch of a class of one's own."""

    def __call__(self, stream):
        """Launch twice."""
        super().__call__(stream)
        cu.BoundLaunch.__call__(self, stream=stream)


class Same(cu.BoundLaunch):
    """A class that changes nothing."""


@pytest.mark.parametrize(("cls", "each"), [(cu.BoundLaunch, 1), (Same, 1), (Twice, 2)])
def test_however_it_is_called(cls, each, a, stream, kernels):
    bound = cls(kernels["add"], CONFIG, (a, 1, N))
    bound(stream)
    bound(*[stream])
    bound(**{"stream": stream})
    bound.__call__(stream)
    list(map(bound, [stream, stream]))
    assert numbers(a, stream) == 6 * each
    assert weakref.ref(bound)() is bound
    assert not hasattr(cls, "__vectorcalloffset__")
