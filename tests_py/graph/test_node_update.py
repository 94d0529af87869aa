# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of nodes in graphs."""

from __future__ import annotations

import gc
import weakref

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


def run(graph, stream):
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()


def test_kernels(graph, a, b, stream, kernels):
    node = graph.launch(CONFIG, kernels["add"], a, 1, N, name="k")
    before = graph.instantiate()
    node.update(value=5)
    assert graph["k"].params.args[1] == 5
    run(graph, stream)
    assert numbers(a, stream) == 5
    graph["k"].update({0: b})
    run(graph, stream)
    node.update(CONFIG, kernels["times"], b, 3, N)
    run(graph, stream)
    node.update(kernels["add"], value=2)
    run(graph, stream)
    assert numbers(b, stream) == 17
    before.launch(stream)  # as it was instantiated
    assert numbers(a, stream) == 6
    before.update(graph)
    before.launch(stream)
    assert (numbers(a, stream), numbers(b, stream)) == (6, 19)
    before.close()


def test_copies(graph, a, b, stream, pinned):
    node = graph.memcpy(a, np.full(N, 1, "i4"), name="up")
    node.update(src=np.full(N, 2, "i4"))
    run(graph, stream)
    assert numbers(a, stream) == 2
    node.update(src=a, dst=b)  # another kind of memory
    run(graph, stream)
    assert numbers(b, stream) == 2
    node.update(src=np.full(N // 2, 3, "i4"), dst=b[: 2 * N])  # another size
    assert node.params.nbytes == 2 * N
    run(graph, stream)
    assert numbers(b, stream) == [3] * (N // 2) + [2] * (N // 2)
    for wrong in ({"src": a}, {"src": a, "dst": b[:4]}):
        with pytest.raises(ValueError, match=f"must have the {2 * N} bytes that the node copies"):
            node.update(**wrong)


def test_fills_and_callbacks(graph, a, b, stream):
    seen = []
    fill = graph.memset(a, b"\1\0\0\0")
    call = fill.callback(lambda: seen.append(1))
    fill.update(b, b"\2\0\0\0")
    call.update(lambda: seen.append(2))
    run(graph, stream)
    assert (numbers(a, stream), numbers(b, stream), seen) == (0, 2, [2])


def test_captured_nodes(a, b, stream, kernels):
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], a, 1, N)
        a.copy_to(b, stream=stream)
    graph["kernel_0"].update(value=4)
    graph["memcpy_0"].update(src=np.full(N, 9, "i4"))
    run(graph, stream)
    assert (numbers(a, stream), numbers(b, stream)) == (4, 9)
    graph.close()


def test_what_is_replaced_is_released(graph, device, stream):
    class Array(np.ndarray):
        """An array that can be referred to weakly."""

    x = device.allocate(16, stream=stream)
    first, second = (np.zeros(16, "u1").view(Array) for _ in range(2))
    gone = weakref.ref(first)
    node = graph.memcpy(x, first)
    with graph.instantiate() as step:
        node.update(src=second)
        del first
        gc.collect()
        assert gone() is not None  # the executable's
        assert [r.object is second for r in node.retained if r.operand == "src"] == [True]
        del step
    gc.collect()
    assert gone() is None


def test_a_body(graph, a, stream):
    go_on = graph.condition(default=1)
    body = graph.if_then(go_on).body
    node = body.memset(a, b"\1\0\0\0")
    node.update(a, b"\3\0\0\0")
    run(graph, stream)
    assert numbers(a, stream) == 3


def test_what_cannot_be_updated(graph, a, device, stream, kernels):
    node, fill = graph.join(), graph.memset(a, 0)
    copy = graph.memcpy(a, np.zeros(N, "i4"))
    kernel = graph.launch(CONFIG, kernels["add"], a, 1, N)
    m = cu.zeros((4, 8), "i4", stream=stream)
    rows = graph.memcpy(m[:, :2], np.zeros((4, 2), "i4"))
    closed = device.allocate(4 * N, stream=stream)
    closed.close()
    for call, error, text in (
        (lambda: node.update(1), TypeError, "of kind empty, whose parameters cannot be updated"),
        (lambda: fill.update(src=a), TypeError, "memset node takes dst, value: got an unexpected"),
        (lambda: fill.update(a, 300), OverflowError, "must be -128 to 255"),
        (lambda: copy.update(), TypeError, "needs dst=, src= or both"),
        (lambda: copy.update(src=closed), cu.ClosedError, "buffer is closed"),
        (lambda: copy.update(dst=bytes(4 * N)), BufferError, "read-only|writable"),
        (lambda: kernel.update(nobody=1), TypeError, "nobody"),
        (lambda: kernel.update(value="x"), TypeError, "parameter 1"),
        (lambda: rows.update(src=a), ValueError, "must have the|with gaps"),
    ):
        with pytest.raises(error, match=text):
            call()
    graph.remove(fill)
    with pytest.raises(cu.ClosedError, match="removed"):
        fill.update(a, 1)
    graph.close()
    with pytest.raises(cu.ClosedError):
        copy.update(src=a)


def test_an_executable_keeps_the_kind_of_memory(graph, a, stream):
    up, down = bytearray(64), bytearray(64)
    graph.memcpy(a, up, name="up").memcpy(down, a, name="down")
    with (
        cu.PinnedMemoryResource() as resource,
        resource.allocate(64) as pinned,
        graph.instantiate() as step,
    ):
        for _ in range(2):  # the first update lets C make the others
            step["up"].update(src=pinned)
            with pytest.raises(
                ValueError, match='dst of memcpy node "up" must stay device memory, got page'
            ):
                step["up"].update(dst=down)
            with pytest.raises(
                ValueError, match='src of memcpy node "up" must stay pinned memory, got device'
            ):
                step["up"].update(src=a)
            step["down"].update(dst=up)
            with pytest.raises(
                ValueError,
                match='dst of memcpy node "down" must stay pageable host memory, got dev',
            ):
                step["down"].update(dst=a)
        step.launch(stream)
        stream.sync()


def test_half_of_a_fill(graph, a, b, stream, device):
    """What is not given stays, also once its object is closed."""
    t = cu.zeros((2, N // 2), "f4", stream=stream)
    node = graph.memset(t, 1.5, name="fill")
    step = graph.instantiate()
    for at in (node, step["fill"]):
        at.update(value=2.5)
        at.update(value=0)
        at.update(value=3.5)
        assert at.params.value == np.float32(3.5).tobytes()
    step.launch(stream)
    assert t.numpy(stream=stream).tolist() == [[3.5] * (N // 2)] * 2
    for at in (node, step["fill"]):
        at.update(dst=b)
        assert (at.params.dst, at.params.nbytes) == (b, 4 * N)
        at.update(value=7)  # bytes, as of any buffer
    step.launch(stream)
    assert numbers(b, stream) == 0x07070707
    step["fill"].update(cu.slot("to", a))
    step.bind(to=b)
    with pytest.raises(TypeError, match="needs dst, value or both"):
        step["fill"].update()
    closed = device.allocate(64, stream=stream)
    last = graph.memset(closed, 1, name="last")
    closed.close()
    last.update(value=2)
    run(graph, stream)


def test_a_fill_of_pageable_memory_is_refused(graph, a):
    with pytest.raises(BufferError, match="dst is pageable host memory: fill the array itself"):
        graph.memset(bytearray(64), 0)
    node = graph.memset(a, 0, name="fill")
    for at in (node, graph.instantiate()["fill"]):
        with pytest.raises(BufferError, match="dst is pageable host memory"):
            at.update(bytearray(64), 0)


def test_disabling_names_the_node_that_cannot_be(graph, device):
    with device.create_event() as event:
        graph.record(event, name="mark")
        step = graph.instantiate()
        with pytest.raises(
            cu.CUDAError, match='event record node "mark" cannot be disabled: only kernel, '
        ):
            step["mark"].enabled = False


def test_a_name_is_no_position(graph, a, kernels):
    node = graph.launch(CONFIG, kernels["add"], a, 1, N, name="k")
    with graph.instantiate() as step:
        for of in (node, step["k"]):
            with pytest.raises(
                TypeError, match=r"by position, got 'value': .*update\(value=\.\.\."
            ):
                of.update({"value": 2})
            of.update(value=2)
        assert step["k"].params.args[1] == 2


def test_an_executable_takes_its_stream_by_name(graph, a, kernels, stream):
    graph.launch(CONFIG, kernels["add"], a, 1, N)
    with graph.instantiate() as step:
        step.upload(stream=stream)
        step.launch(stream=stream)
        step(stream=stream)
        assert numbers(a, stream) == 2
        for use in (step.launch, step.upload, step):
            for args, named in (((), {}), ((stream,), {"stream": stream}), ((), {"s": stream})):
                with pytest.raises(TypeError, match="takes one argument, stream"):
                    use(*args, **named)
