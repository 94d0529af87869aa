# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Showing an object waits for nothing, invalidates no capture, and puts no work into a stream."""

from __future__ import annotations

import re
import threading

import pytest

import cudago as cu
from cudago._display import preview

from .card import card, shown

# Values are shown only while every stream of the process is known.
pytestmark = pytest.mark.early

np = pytest.importorskip("numpy")


@pytest.fixture
def gate(graph, a, stream):
    """An event that holds up work, which then sets `a` to 7."""
    gate = threading.Event()
    graph.callback(lambda: gate.wait()).memset(a, 7)
    with graph.instantiate() as step:
        step.launch(stream)
        yield gate
        gate.set()
        stream.sync()


def test_work_that_takes_long_is_not_waited_for(gate, a, stream, monkeypatch):
    with a.view("uint8") as t:
        monkeypatch.setattr(preview, "PATIENCE_S", 0.01)
        assert card(t).rows["values"] == "not shown: work is still under way"
        gate.set()
        monkeypatch.setattr(preview, "PATIENCE_S", 60)
        assert shown(t)[0][0] == "7"


def test_a_capture_during_long_work(gate, a, device, stream, monkeypatch):
    monkeypatch.setattr(preview, "PATIENCE_S", 0.01)
    with a.view("uint8", (2, 32)) as matrix, stream.capture() as captured:
        a.fill(1, stream=stream)
        assert "capturing" in card(matrix).rows["values"]
        gate.set()
        a.fill(2, stream=stream)
    assert [node.kind for node in captured.nodes] == ["memset", "memset"]
    captured.close()


def test_captures_while_another_thread_makes_cards(a, device, stream):
    stop, looks = threading.Event(), []

    def look() -> None:
        with a.view("float32", (4, 4)) as t:
            while not stop.is_set():
                looks.append([card(thing).rows for thing in (t, stream, a, device)])

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(200):
            a.fill(3, stream=stream)
            with stream.capture() as captured:
                a.fill(1, stream=stream)
                a.fill(2, stream=stream)
            assert len(captured.nodes) == 2
            captured.close()
    finally:
        stop.set()
        thread.join()
    assert looks


def test_work_of_a_closed_stream(device, a):
    with device.create_stream() as gone:
        t = cu.zeros(4, stream=gone)
        gone.sync()
        assert shown(t) == [["0"] * 4]
    assert "a stream that is closed" in card(t).rows["values"]
    t.close()


def test_memory_that_the_host_cannot_read(stream, monkeypatch):
    monkeypatch.setattr(preview, "_in_place", None)
    monkeypatch.setattr(preview, "CUDA", cu.zeros(1, stream=stream)._memory[1])
    with cu.asarray(np.arange(400).reshape(20, 20), "int32", stream=stream) as t:
        assert shown(t)[0] == ["0", "1", "2", "\u2026", "17", "18", "19"]
        assert shown(t.T)[0] == ["0", "20", "40", "\u2026", "340", "360", "380"]


def test_a_capture_is_not_invalidated(device, stream, a, graph):
    t, other = a.view("float32"), cu.zeros(3, stream=device.default_stream)
    host = cu.from_dlpack(np.ones(2))
    device.sync()
    with device.create_stream() as second, stream.capture() as captured:
        a.fill(0, stream=stream)
        assert card(stream).rows["state"] == "capturing"
        assert card(t).rows["values"].startswith("not shown: a stream is capturing")
        assert "still being captured" in card(captured).rows["state"]
        assert captured._repr_svg_() is None
        assert shown(host) == [["1", "1"]]
        for thing in (device, second, a, graph, other, t[:0], device.default_stream):
            card(thing)
        a.fill(1, stream=stream)
    assert [node.kind for node in captured.nodes] == ["memset", "memset"]
    with captured.instantiate() as step:
        step.launch(stream)
    assert shown(a.view("uint8"))[0][0] == "1"
    t.close()
    other.close()
    captured.close()


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_finding_goes_to_the_next_wait(stream, device, driver):
    source = """extern "C" __global__ void racy(int* p) {
        __shared__ int m[64];
        m[threadIdx.x] = p[threadIdx.x];
        p[threadIdx.x] = m[63 - threadIdx.x];
    }"""
    racy = cu.Program(source).compile()["racy"]
    with cu.zeros(64, "int32", stream=stream) as t:
        with cu.sim.check("races", raises=False):
            pass
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(preview, "PATIENCE_S", 60)
            with cu.sim.check("races"):
                cu.launch(stream, cu.LaunchConfig(grid=1, block=64), racy, t)
                assert "as they are now" in card(t).rows["values"]
                repr(t)
                with pytest.raises(cu.CheckError, match="no barrier lies between"):
                    stream.sync()
                stream.sync()


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_no_work_is_put_into_a_stream(script, driver):
    run = script(
        """
        import sys
        import numpy, cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        t = cu.zeros((20, 20), stream=stream)
        graph = cu.Graph(device)
        graph.memset(t.buffer, 0)
        step = graph.instantiate()
        things = [device, stream, t, t.T, t.buffer, graph, step, device.default_stream]
        print("from here", file=sys.stderr, flush=True)
        assert all("not known" not in thing._repr_html_() for thing in things)
        assert "<pre" in t._repr_html_()
        print("to here", file=sys.stderr, flush=True)
        """,
        CUDAGO_TRACE="1",
    )
    assert run.returncode == 0, run.stderr
    calls = re.findall(r" (cu\w+)\(", run.stderr.partition("from here")[2].partition("to here")[0])
    assert "cuMemGetInfo" in calls
    assert (
        re.findall("Async|Launch|WaitEvent|Synchronize|BeginCapture|Alloc", " ".join(calls)) == []
    )


def test_after_a_reset_and_in_a_forked_child(script, driver):
    run = script(
        """
        import os
        import numpy, cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        t = cu.zeros(4, stream=stream)
        graph = cu.Graph(device)
        step = graph.instantiate()
        things = [stream, t, t.buffer, graph, step, device.default_stream]
        stream.sync()
        device.reset()
        for thing in [*things, device]:
            card = thing._repr_html_()
            assert "closed" in card or "lost" in card or thing is device, card
        child = os.fork()
        if not child:
            ok = all(thing._repr_html_().startswith("<div") for thing in [*things, device])
            os._exit(not ok)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_import_does_not_need_it(script):
    run = script(
        """
        import sys, cudago
        assert not [name for name in sys.modules if name.startswith("cudago._display")]
        """
    )
    assert run.returncode == 0, run.stderr
