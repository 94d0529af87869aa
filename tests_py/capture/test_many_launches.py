# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Captures with many launches, beside other operations, from several threads, given up midway."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import pytest

import cudago as cu
from cudago.testing import settle

np = pytest.importorskip("numpy")

N = 4
CONFIG = cu.LaunchConfig(grid=1, block=N)


@pytest.fixture
def x(device, stream):
    """Four numbers, which are 0."""
    with cu.zeros(N, "i4", stream=stream) as tensor:
        stream.sync()
        yield tensor


def facts(node) -> tuple:
    """Return what does not depend on which graph a node is in."""
    held = sorted((r.operand, r.nbytes, r.reason) for r in node.retained)
    return node.kind, node.name, held


def test_work_is_recorded_as_in_a_stream_that_joined(stream, other, kernels, x, pinned):
    """The capture's own stream has a faster way. A node is the same by either."""
    host = np.zeros(64, "u1")
    low, high = pinned[:32], pinned[32:]
    special = cu.LaunchConfig(grid=2, block=N, shared_memory=64, priority=-1)
    graphs = []
    for into in (stream, other):
        with stream.capture() as graph:
            graphs.append(graph)
            other.wait(stream)
            cu.launch(into, CONFIG, kernels["add"], x, 3, N)
            cu.launch(into, CONFIG, kernels["add"], x, 3, N)
            cu.launch(into, special, kernels["add"], x, np.int32(4), N)
            cu.launch(into, CONFIG, kernels["nothing"])
            low.copy_from(high, stream=into)
            pinned.copy_from(host, stream=into)
            pinned.copy_to(host, stream=into)
            stream.wait(other)
    ours, theirs = graphs
    with ours, theirs:
        assert not ours.diff(theirs)  # parameters too
        assert [facts(n) for n in ours.nodes] == [facts(n) for n in theirs.nodes]
        lines = [n.made_at for n in ours.nodes]
        assert lines == [n.made_at for n in theirs.nodes]
        assert len(set(lines)) == 7
        assert {at.rpartition(":")[0] for at in lines} == {__file__}


def test_launches_between_all_other_operations(device, stream, kernels, x):
    y = cu.zeros(N, "i4", stream=stream)
    host = np.zeros(N, "i4")
    called = []
    stream.sync()
    with stream.capture() as graph:
        x.fill(1, stream=stream)
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
        cu.launch(stream, CONFIG, kernels["times"], x, 2, N)
        y.copy_from(x, stream=stream)
        cu.launch(stream, CONFIG, kernels["add"], y, 1, N)
        t = device.allocate(4 * N, stream=stream)
        t.copy_from(y, stream=stream)
        cu.launch(stream, CONFIG, kernels["times"], t, 3, N)  # the capture's own memory
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
        stream.callback(called.append, "called")
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
        y.copy_from(t.view("i4"), stream=stream)
        t.close()
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
    kinds = "memset kernel kernel memcpy kernel alloc memcpy kernel kernel host kernel memcpy free"
    with graph, graph.instantiate() as step:
        assert " ".join(n.kind for n in graph.nodes) == f"{kinds} kernel"
        assert [n.name for n in graph.nodes if n.kind == "kernel"] == [
            f"kernel_{i}" for i in range(7)
        ]
        assert len(graph.edges) >= len(graph.nodes) - 1
        for _ in range(2):
            step.launch(stream)
            y.copy_to(host, stream=stream)
            assert x.numpy(stream=stream).tolist() == [7] * N
            assert host.tolist() == [15] * N
        assert called == ["called"] * 2
    y.close()


def test_operands_go_with_their_graph(device, stream, other, kernels):
    buffers = [device.allocate(4 * N, stream=other) for _ in range(300)]
    for b in buffers:
        b.fill(0, stream=other)
    other.sync()
    refs = [weakref.ref(b) for b in buffers]
    with stream.capture() as graph:
        for b in buffers:
            cu.launch(stream, CONFIG, kernels["add"], b, 1, N)
    del buffers, b
    gc.collect()
    assert all(r() is not None for r in refs)
    with graph.instantiate() as step:
        graph.close()
        step.launch(stream)
        assert {int(r().view("i4").numpy(stream=stream)[0]) for r in refs} == {1}
    settle()
    gc.collect()
    assert all(r() is None for r in refs)


@pytest.mark.parametrize("how", ["raises", "is abandoned", "is invalidated"])
def test_operands_go_with_a_capture_that_becomes_no_graph(device, stream, other, kernels, how):
    buffer = device.allocate(4 * N, stream=other)
    outside = other.record()
    other.sync()
    ref = weakref.ref(buffer)
    capture = stream.capture()
    capture.__enter__()
    for _ in range(20):
        cu.launch(stream, CONFIG, kernels["add"], buffer, 1, N)
    del buffer
    gc.collect()
    assert ref() is not None
    if how == "raises":
        assert not capture.__exit__(KeyError, KeyError("mine"), None)
    elif how == "is invalidated":
        with pytest.raises(cu.CUDAError):
            stream.wait(outside)
        with pytest.raises(cu.CUDAError):
            cu.launch(stream, CONFIG, kernels["nothing"])
        with pytest.raises(cu.CUDAError):
            capture.__exit__(None, None, None)
    del capture
    gc.collect()
    settle()
    gc.collect()
    assert ref() is None
    assert not stream.is_capturing


def test_a_launch_that_is_refused_adds_nothing(device, stream, kernels, x):
    too_much = cu.LaunchConfig(grid=1, block=N, shared_memory=1 << 20)
    buffer = device.allocate(4 * N, stream=stream)
    stream.sync()
    ref = weakref.ref(buffer)
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
        with pytest.raises((cu.CUDAError, ValueError), match="shared"):
            cu.launch(stream, too_much, kernels["add"], buffer, 1, N)
        del buffer
        gc.collect()
        assert ref() is None
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
    with graph:
        assert [n.kind for n in graph.nodes] == ["kernel"] * 2


def test_two_threads_launch_into_one_capture(device, stream, other, kernels, x):
    """One in the capture's stream, one in a stream that joined it."""
    y = cu.zeros(N, "i4", stream=other)
    other.sync()
    each = 300
    failures = []

    def launches(into, at):
        try:
            for _ in range(each):
                cu.launch(into, CONFIG, kernels["add"], at, 1, N)
        except BaseException as e:
            failures.append(e)

    with stream.capture(mode="relaxed") as graph, graph.fork(other) as branch:
        threads = [
            threading.Thread(target=launches, args=args) for args in ((stream, x), (branch, y))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    with graph, graph.instantiate() as step:
        assert len(graph.nodes) == 2 * each
        assert all(
            {r.operand for r in n.retained} == {"parameter 0", "kernel"} for n in graph.nodes
        )
        step.launch(stream)
        assert x.numpy(stream=stream).tolist() == y.numpy(stream=stream).tolist() == [each] * N
    y.close()


def test_a_thread_launches_while_another_ends_the_capture(device, stream, kernels, x):
    """Each launch goes into the graph, or runs, or is told that the capture has ended."""
    stop = threading.Event()
    made = []

    def launches():
        while not stop.is_set():
            with contextlib.suppress(cu.ClosedError):
                cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
                made.append(1)

    for _ in range(20):
        stop.clear()
        made.clear()
        x.fill(0, stream=stream)
        thread = threading.Thread(target=launches)
        with stream.capture(mode="relaxed") as graph:
            thread.start()
            while len(made) < 20:
                pass
        stop.set()
        thread.join()
        with graph, graph.instantiate() as step:
            assert len(graph.nodes) >= 20
            step.launch(stream)
            assert x.numpy(stream=stream).tolist() == [len(made)] * N


class Acts:
    """A number whose conversion does something else first."""

    def __init__(self, act):
        self.act = act

    def __index__(self):
        self.act()
        return 5


def test_an_argument_that_launches_into_the_capture(stream, kernels, x):
    def inner():
        cu.launch(stream, CONFIG, kernels["times"], x, 2, N)

    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
        cu.launch(stream, CONFIG, kernels["add"], x, Acts(inner), N)
    with graph, graph.instantiate() as step:
        step.launch(stream)
        assert x.numpy(stream=stream).tolist() == [7] * N


@pytest.mark.parametrize("next_one", [False, True])
def test_an_argument_that_ends_the_capture(stream, kernels, x, next_one):
    """The launch goes into what captures then, or runs."""
    capture, following = stream.capture(), stream.capture()
    graph = capture.__enter__()
    later = []

    def ends():
        capture.__exit__(None, None, None)
        if next_one:
            later.append(following.__enter__())

    cu.launch(stream, CONFIG, kernels["add"], x, 1, N)
    cu.launch(stream, CONFIG, kernels["add"], x, Acts(ends), N)
    if next_one:
        following.__exit__(None, None, None)
        with later[0], later[0].instantiate() as step:
            step.launch(stream)
    with graph, graph.instantiate() as step:
        assert len(graph.nodes) == 1
        assert x.numpy(stream=stream).tolist() == [5] * N
        step.launch(stream)
        assert x.numpy(stream=stream).tolist() == [6] * N


REFUSED = """
import gc
import weakref
import cudago as cu
from cudago import _core
from cudago.testing import settle

source = 'extern "C" __global__ void set(int* x, int n) { x[0] = n; }'
code = cu.Program(source).compile()["set"]
device = cu.Device()
stream, other = device.create_stream(), device.create_stream()
one = cu.LaunchConfig(1, 1)
x, y, z = (device.allocate(4, stream=other) for _ in "xyz")
other.sync()
gone = [weakref.ref(y), weakref.ref(z)]
with stream.capture() as graph:
    cu.launch(stream, one, code, x, 1)
    for call, work in {
        "cuLaunchKernelEx": lambda: cu.launch(stream, one, code, y, 2),
        "cuMemcpyAsync": lambda: y.copy_from(x, stream=stream),
    }.items():
        _core._fail_next(call, 1, 999)
        try:
            work()
        except cu.CUDAError as e:
            print(e.operation, e.code)
    del y, work
    settle()
    gc.collect()
    print(gone[0]() is None)
    _core._fail_next("cuStreamGetCaptureInfo", 1, 999)  # which node it was is not known then
    cu.launch(stream, one, code, z, 3)
    z.copy_to(x, stream=stream)
del z
gc.collect()
print([n.kind for n in graph.nodes], [len(n.retained) for n in graph.nodes], len(graph.retained))
step = graph.instantiate()
graph.close()
step.launch(stream)
print(x.view("i4").numpy(stream=stream)[0], gone[1]() is None)
step.close()
settle()
gc.collect()
print(gone[1]() is None, cu.live_objects().get("Buffer"))
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_refused_call_leaves_nothing(script, driver):
    done = script(REFUSED, CUDAGO_SIM="faults=0")
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        [
            "cuLaunchKernelEx 999",
            "cuMemcpyAsync 999",
            "True",
            "['kernel', 'kernel', 'memcpy'] [2, 0, 2] 6",
            "3 False",
            "True 1",
        ],
    )
