# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The reset of a device, and graphs of another device that use what it had.

A process has as many devices as its driver was opened with, so each test is a process of its own.
"""

from __future__ import annotations

import pytest

import cudago as cu

START = """
import gc
import numpy as np
import cudago as cu

a, b = cu.Device.all()[:2]
sa, sb = a.create_stream(), b.create_stream()
source = 'extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }'
source += 'extern "C" __global__ void copy(int* p, const int* q) { *p = *q; }'
source += 'extern "C" __global__ void nothing(int n) {}'
code = cu.Program(source).compile()
add, copy, nothing, config = code["add"], code["copy"], code["nothing"], cu.LaunchConfig(1, 16)

def zeros(stream):
    t = cu.zeros(16, "i4", stream=stream)
    stream.sync()
    return t

def far():
    '''Memory of device 1 that device 0 may use.'''
    stream = b.create_stream()
    own = cu.VirtualMemoryResource(b, peers=[a]).allocate(64, stream=stream)
    own.fill(0, stream=stream), stream.sync()
    return own.view("i4")

def refused(call, *words):
    try:
        call()
    except cu.ClosedError as e:
        for word in (*words, "closed: device 1 was reset"):
            assert word in str(e), e
    else:
        raise AssertionError(f"{words} was not refused")

def all_refused(graph, step, *words):
    '''Everything that would run it, or make something that would.'''
    for call in (lambda: step.launch(sa), lambda: step(sa), lambda: step.upload(sa),
                 lambda: step.profile(sa), lambda: step.update(graph)):
        refused(call, *words)
    no_more(graph, *words)
    with sa.capture():
        refused(lambda: step.launch(sa), *words)
    assert not step.is_closed and not graph.is_closed

def no_more(graph, *words):
    for call in (graph.instantiate, graph.clone, lambda: cu.Graph(a).embed(graph)):
        refused(call, *words)

def reset_after(step):
    '''An executable has nodes on the device: its driver would crash, at this reset or the next.'''
    for _ in range(2):
        try:
            b.reset()
        except ValueError as e:
            assert "1 executable(s) of graphs of other devices" in str(e), e
        else:
            raise AssertionError("reset")
        step.launch(sa), sa.sync()
    step.close()
    b.reset()
"""

SCRIPTS = {
    # What is given up for another one may be the last to know it, and its end may be a reset.
    "a resource that resets with its end": """
        class Resetting(cu.PinnedMemoryResource):
            def __del__(self):
                b.reset()

        b.memory_resource = Resetting()
        a.reset()
        assert b.memory_resource.device is b
        b.memory_resource = Resetting()
        a.reset()
        try:
            b.allocate(8, stream=sb)
        except cu.ClosedError as e:
            assert "device 1 was reset" in str(e)
        assert b.allocate(8, stream=b.create_stream()).size == 8
        gc.collect()
    """,
    "a copy": """
        x, y = zeros(sa), far()
        graph = cu.Graph(a)
        graph.memcpy(x, y, name="copy")
        clone, step = graph.clone(), graph.instantiate()
        other = clone.instantiate()
        step.launch(sa), other.launch(sa), sa.sync()
        b.reset()
        words = "node 'copy'", "src, a Tensor"
        all_refused(graph, step, *words)
        all_refused(clone, other, *words)
        step["copy"].update(src=far())
        step.launch(sa), sa.sync()
        graph["copy"].update(src=far())
        graph.instantiate().launch(sa)
        step.update(graph)
        step.launch(sa), sa.sync()
        b.reset()
        refused(lambda: other.launch(sa), *words)
        refused(lambda: step.launch(sa), *words)
        """,
    "other graphs go on": """
        x = zeros(sa)
        graph = cu.Graph(a)
        graph.launch(config, add, x, 1)
        step = graph.instantiate()
        for i in range(1, 4):
            step.launch(sa), sa.sync()
            b.reset()
        graph.instantiate().launch(sa)
        assert (x.numpy(stream=sa) == 4).all()
        """,
    "kernels, virtual memory and a bound launch": """
        own, x = far(), zeros(sa)
        graph = cu.Graph(a)
        graph.launch(config, copy, x, own, name="copy")
        step, bound = graph.instantiate(), copy.bind(config, x, own)
        bound(sa), step.launch(sa), sa.sync()
        b.reset()
        all_refused(graph, step, "node 'copy'", "parameter 1, a Tensor")
        refused(lambda: bound(sa), "parameter 1, a Tensor")
        """,
    "a pool": """
        pool = cu.DeviceMemoryResource(b, pool=cu.PoolOptions())
        pool.peer_accessible_by = [a]
        own = pool.allocate(64, stream=sb)
        own.fill(0, stream=sb), sb.sync()
        graph = cu.Graph(a)
        graph.launch(config, add, own, 1, name="add")
        step = graph.instantiate()
        step.launch(sa), sa.sync()
        b.reset()
        all_refused(graph, step, "node 'add'", "parameter 0, a Buffer")
        """,
    "a kernel and an event of an embedded graph": """
        for build in (lambda g: g.launch(config, nothing, 1, name="there"),
                      lambda g: g.record(b.create_event(), name="there")):
            inner, outer = cu.Graph(b), cu.Graph(a)
            build(inner)
            outer.embed(inner, name="part")
            step = outer.instantiate()
            step.launch(sa), sa.sync()
            reset_after(step)
            no_more(outer, "part")
        """,
    "a capture with a fork": """
        with sa.capture() as graph:
            cu.launch(sa, config, nothing, 1)
            with graph.fork(sb) as there:
                cu.launch(there, config, nothing, 2)
        step = graph.instantiate()
        step.launch(sa), sa.sync()
        reset_after(step)
        no_more(graph, "work captured there")
        """,
    "memory that the graph allocates there": """
        graph = cu.Graph(a)
        made = graph.allocate(64, device=b, peers=[a], name="made")
        made.memset(made.buffer, 1).free(made.buffer)
        step = graph.instantiate()
        step.launch(sa), sa.sync()
        del made
        gc.collect()
        reset_after(step)
        refused(graph.instantiate)
        b.reset()
        """,
    "pinned memory whose stream is gone": """
        memory = cu.PinnedMemoryResource().allocate(64, stream=sb)
        b.reset()
        memory.close()
        cu.testing.settle()
        assert "Buffer" not in cu.live_objects(), cu.live_objects()
        """,
    "a reset that is refused": """
        x, y = zeros(sa), far()
        graph = cu.Graph(a)
        graph.memcpy(x, y, name="copy")
        step = graph.instantiate()
        with sb.capture():
            try:
                b.reset()
            except ValueError:
                pass
        step.launch(sa), sa.sync()
        """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_reset_of_the_other_device(driver, script, name):
    if driver == "nvidia" and len(cu.Device.all()) < 2:
        pytest.skip("there is one device")
    run = script(
        script.dedent(START) + script.dedent(SCRIPTS[name]), CUDAGO_SIM="devices=2,hostile=1"
    )
    assert run.stderr == ""
    assert run.returncode == 0
