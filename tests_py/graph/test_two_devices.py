# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs with nodes on two devices.

A process has as many devices as its driver was opened with, so each test is a process of its own.
"""

from __future__ import annotations

import pytest

import cudago as cu

from ..installed import ROOT, python_blocks

START = """
import gc
import numpy as np
import cudago as cu

def refused(error, words, call):
    try:
        call()
    except error as e:
        assert words in str(e), e
    else:
        raise AssertionError(f"{words} was not refused")

a, b = cu.Device.all()[:2]
sa, sb = a.create_stream(), b.create_stream()
source = 'extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }'
add, config = cu.Program(source).compile()["add"], cu.LaunchConfig(1, 16)

def zeros(stream):
    t = cu.zeros(16, "i4", stream=stream)
    stream.sync()
    return t
"""

SCRIPTS = {
    "a capture forks to the other device": """
        out = np.zeros(16, "i4")

        def build():
            x, y = zeros(sa), zeros(sb)
            with sa.capture() as graph:
                cu.launch(sa, config, add, x, 1)
                with graph.fork(sb) as there:
                    cu.launch(there, config, add, y, 5)
                    y.buffer.copy_to(out, stream=there)
                cu.launch(sa, config, add, x, 2)
            x.close(), y.close()
            return graph.instantiate()

        step = build()
        gc.collect()
        others = [zeros(s) for s in (sa, sb) for _ in range(8)]
        assert [n.name for n in step.nodes] == ["kernel_0", "kernel_1", "memcpy_0", "kernel_2"]
        for i in range(1, 4):
            step.launch(sa)
            sa.sync()
            assert (out == 5 * i).all(), (i, out)
        assert not any(o.numpy(stream=s).any() for s in (sa, sb) for o in others
                       if o.buffer.device == s.device)
        step.close()
        gc.collect()
        cu.testing.settle()
        assert not cu.live_objects().get("Graph") and not cu.live_objects().get("GraphExec")
        """,
    "a graph embeds one of the other device": """
        x, y = zeros(sa), zeros(sb)
        inner = cu.Graph(b)
        inner.launch(config, add, y, 7, name="there")
        outer = cu.Graph(a)
        outer.launch(config, add, x, 1, name="first").embed(inner, name="part").launch(
            config, add, x, 2, name="last")
        inner.close()
        step = outer.instantiate()
        for i in (1, 2):
            step.launch(sa)
            sa.sync()
            assert (x.numpy(stream=sa) == 3 * i).all() and (y.numpy(stream=sb) == 7 * i).all()
        with sa.capture() as captured:
            step.launch(sa)
            with captured.fork(sb) as there:
                cu.launch(there, config, add, y, 100)
        captured.instantiate().launch(sa)
        sa.sync()
        assert (y.numpy(stream=sb) == 121).all()
        """,
    "events order two devices": """
        x, y = zeros(sa), zeros(sb)
        event = b.create_event()
        words = "event is on device 1, the graph on device 0"
        refused(ValueError, words, lambda: cu.Graph(a).record(event))
        words = "event belongs to device 1, stream to device 0"
        refused(ValueError, words, lambda: sa.record(event))
        here, there = cu.Graph(a), cu.Graph(b)
        own = a.create_event()
        here.launch(config, add, x, 1).record(own)
        there.launch(config, add, y, 10)
        first, second = here.instantiate(), there.instantiate()
        out = cu.empty(16, "i4", stream=sb)
        for i in range(1, 51):
            first.launch(sa)
            sb.wait(own)
            second.launch(sb)
            out.copy_from(x, stream=sb)
            sa.wait(sb.record())
        sb.sync()
        assert (out.numpy(stream=sb) == 50).all() and (y.numpy(stream=sb) == 500).all()
        """,
    "copies between devices leave captures alone": """
        import threading
        x, y = zeros(sa), zeros(sb)
        other = a.create_stream()
        for mode in "global", "thread_local", "relaxed":
            with sa.capture(mode) as graph:
                cu.launch(sa, config, add, x, 1)
                for stream in other, sb:
                    y.copy_from(x, stream=stream)
                    thread = threading.Thread(target=lambda: x.copy_to(y, stream=stream))
                    thread.start(), thread.join()
                cu.launch(sa, config, add, x, 1)
            assert len(graph.nodes) == 2
            graph.instantiate().launch(sa)
        sa.sync()
        assert (x.numpy(stream=sa) == 6).all()
        """,
    "a stream whose object tells no device is where cudago or the driver knows it": """
        class Foreign:
            def __init__(self, stream):
                self.handle = stream.handle
            def __cuda_stream__(self):
                return 0, self.handle

        y = zeros(sb)
        x = Foreign(sb)
        y.fill(3, stream=x)
        assert b.allocate(4, stream=x).device == b
        assert cu.zeros(4, stream=x).device == b
        assert cu.Stream(x).device == b
        step = cu.Graph(b)
        step.launch(config, add, y, 1)
        step = step.instantiate()
        step.launch(x)
        add.bind(config, y, 2)(x)
        assert (y.numpy(stream=sb) == 6).all()
        with sa.capture() as graph:
            branch = graph.fork(sb)
            y.fill(1, stream=branch)
            cu.launch(branch, config, add, y, 1)
            step.launch(branch)
            b.allocate(4, stream=branch).close()
            branch.join()
        assert len(graph.nodes) >= 4
        """,
    "fills reach what the graph's device does": """
        own = cu.VirtualMemoryResource(b, peers=[a]).allocate(64, stream=sb)
        graph = cu.Graph(a)
        made = graph.allocate(64, device=b, peers=[a], name="made")
        fill = made.memset(made.buffer, 1).memset(own, 2, name="fill")
        own.fill(0, stream=sb), sb.sync()
        fill.free(made.buffer)
        with graph.instantiate() as step:
            step.launch(sa)
            sa.sync()
            assert bytes(own.view("u1").numpy(stream=sb)) == bytes([2]) * 64
            step["fill"].update(dst=own[:4], value=5)
            step.launch(sa)
            sa.sync()
        assert bytes(own[:8].view("u1").numpy(stream=sb)) == bytes([5] * 4 + [2] * 4)
        fill.update(dst=own[4:])
        far = zeros(sb)
        words = "dst is on device 1, the graph on device 0"
        refused(ValueError, words, lambda: graph.memset(far, 1))
        refused(ValueError, words, lambda: fill.update(dst=far))
        refused(ValueError, words, lambda: graph.memset(far[::2], 1))
        """,
    "a graph is launched on its own device": """
        step = cu.Graph(b)
        step.callback(lambda: None)
        step = step.instantiate()
        words = "the graph is on device 1, the stream on device 0"
        refused(ValueError, words, lambda: step.launch(sa))
        """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_two_devices(driver, script, name):
    if driver == "nvidia" and len(cu.Device.all()) < 2:
        pytest.skip("there is one device")
    run = script(script.dedent(START) + script.dedent(SCRIPTS[name]), CUDAGO_SIM="devices=2")
    assert run.stderr == ""
    assert run.returncode == 0


def test_the_page_of_several_devices_runs_on_two(driver, script):
    if driver == "nvidia" and len(cu.Device.all()) < 2:
        pytest.skip("there is one device")
    page = (ROOT / "docs" / "guide" / "several-devices.rst").read_text()
    run = script("".join(python_blocks(page)), CUDAGO_SIM="devices=2")
    assert (run.returncode, run.stderr) == (0, "")
