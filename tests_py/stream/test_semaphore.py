# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Semaphores of other APIs: what streams and graphs do with them, and how long these live.

Only the simulated driver imports what stands for another API here;
tests_py/interop/test_vulkan.py has the real one.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


@pytest.fixture
def exported():
    with cu.sim.create_semaphore() as made:
        yield made
        made.signal((1 << 64) - 1)  # a test that failed may have left a wait


@pytest.fixture
def semaphore(device, exported):
    with cu.ExternalSemaphore.from_fd(device, exported) as made:
        yield made


def test_signal_follows_earlier_work(stream, semaphore, exported):
    with hold(stream):
        stream.signal(semaphore, 3)
        assert exported.value == 0
    stream.sync()
    assert exported.value == 3


def test_wait_holds_back_its_stream_alone(device, stream, semaphore, exported):
    with device.create_stream() as other, device.allocate(4, stream=stream) as x:
        x.fill(0, stream=stream)
        stream.wait(semaphore, 5)
        x.fill(7, stream=stream)
        other.sync()
        assert not stream.is_done
        exported.signal(4)
        assert not stream.is_done
        exported.signal(6)
        stream.sync()


def test_values_are_of_8_bytes(stream, semaphore, exported):
    top = (1 << 64) - 1
    stream.signal(semaphore, top)
    stream.wait(semaphore, np.uint64(top))
    stream.sync()
    assert exported.value == top
    for bad in (-1, 1 << 64):
        with pytest.raises(OverflowError, match="value must be 0 to"):
            stream.signal(semaphore, bad)
    with pytest.raises(TypeError, match="value must be an int"):
        stream.signal(semaphore, 1.5)
    with pytest.raises(TypeError, match="value is required"):
        stream.signal(semaphore)


def test_opaque(device, stream):
    with cu.sim.create_semaphore("opaque") as exported:
        semaphore = cu.ExternalSemaphore.from_fd(device, exported, kind="opaque")
        assert not semaphore.is_timeline
        stream.wait(semaphore)
        assert not stream.is_done
        exported.signal()
        stream.sync()
        assert exported.value == 0
        stream.signal(semaphore)
        exported.wait()
        assert exported.value == 0
        with pytest.raises(TypeError, match="for timeline semaphores"):
            stream.wait(semaphore, 1)


def test_the_host_waits(stream, semaphore, exported):
    with hold(stream) as release:
        stream.signal(semaphore, 1)
        with pytest.raises(TimeoutError, match="was not signaled in"):
            exported.wait(1, timeout_s=0.01)
        threading.Timer(0.01, release.set).start()
        exported.wait(1)


def test_the_descriptor_stays_the_callers(device):
    exported = cu.sim.create_semaphore()
    semaphore = cu.ExternalSemaphore.from_fd(device, exported.fileno())
    os.fstat(exported.fileno())
    exported.close()
    assert exported.is_closed
    with pytest.raises(cu.ClosedError):
        exported.fileno()
    with pytest.raises(cu.ClosedError):
        cu.ExternalSemaphore.from_fd(device, exported)
    semaphore.close()


def test_refusals(device, exported):
    with pytest.raises(cu.CUDAError, match=r"cudago\.sim\.create_semaphore"):
        cu.ExternalSemaphore.from_fd(device, exported, kind="opaque")
    with Path(os.devnull).open() as other, pytest.raises(cu.CUDAError, match="INVALID_HANDLE"):
        cu.ExternalSemaphore.from_fd(device, other)
    with pytest.raises(cu.UnsupportedError, match="d3d12_fence"):
        cu.ExternalSemaphore.from_fd(device, exported, kind="d3d12_fence")
    with pytest.raises(ValueError, match="kind must be"):
        cu.ExternalSemaphore.from_fd(device, exported, kind="mutex")
    with pytest.raises(ValueError, match="open file descriptor, got -1"):
        cu.ExternalSemaphore.from_fd(device, -1)
    with pytest.raises(ValueError, match="open file descriptor"):
        cu.ExternalSemaphore.from_fd(device, 1 << 20)
    with pytest.raises(TypeError, match="fd must be a file descriptor"):
        cu.ExternalSemaphore.from_fd(device, "3")


def test_value_of_other_things(stream):
    with pytest.raises(TypeError, match="value is for an ExternalSemaphore"):
        stream.wait(stream.record(), 1)
    with pytest.raises(TypeError, match="semaphore must be an ExternalSemaphore"):
        stream.signal(stream.record(), 1)


def test_close(stream, semaphore):
    assert semaphore.is_timeline
    assert semaphore.handle
    assert "timeline" in repr(semaphore)
    semaphore.close()
    semaphore.close()
    assert semaphore.is_closed
    assert "closed" in repr(semaphore)
    for use in (stream.signal, stream.wait):
        with pytest.raises(cu.ClosedError, match="semaphore is closed"):
            use(semaphore, 1)
    with pytest.raises(cu.ClosedError):
        _ = semaphore.handle


DESTROYED = """
import gc, os
import cudago as cu
from cudago.testing import settle

def mark(what):
    gc.collect()
    os.write(2, b"MARK " + what + b"\\n")

device = cu.Device()
stream = device.create_stream()
exported = cu.sim.create_semaphore()
semaphore = cu.ExternalSemaphore.from_fd(device, exported)
if {graph}:
    graph = cu.Graph(device)
    graph.wait(semaphore, 1).signal(semaphore, 2)
    step = graph.instantiate()
    graph.close()
    step.launch(stream)
    step.close()
else:
    stream.wait(semaphore, 1)
    stream.signal(semaphore, 2)
semaphore.close()
mark(b"closed")
exported.signal(1)
stream.sync()
assert exported.value == 2
settle()
mark(b"done")
assert "ExternalSemaphore" not in cu.live_objects()
"""


@pytest.mark.parametrize("graph", [False, True])
def test_destroyed_after_its_work(driver, script, graph):
    run = script(DESTROYED.format(graph=graph), CUDAGO_TRACE="1")
    assert not run.returncode, run.stderr[-2000:]
    begin, rest = run.stderr.split("MARK closed")
    assert "cuDestroyExternalSemaphore" not in begin
    assert "cuDestroyExternalSemaphore" in rest.split("MARK done")[0]


def test_capture(device, stream, semaphore, exported):
    with stream.capture() as graph:
        stream.wait(semaphore, 1)
        stream.signal(semaphore, 2)
    assert sorted(n.kind for n in graph.nodes) == ["semaphore signal", "semaphore wait"]
    wait = next(n for n in graph.nodes if n.kind == "semaphore wait")
    assert wait.params.semaphore is semaphore
    assert wait.params.value == 1
    step = graph.instantiate()
    assert exported.value == 0
    for _ in range(2):
        exported.signal(0)
        step.launch(stream)
        assert not stream.is_done
        exported.signal(1)
        stream.sync()
        assert exported.value == 2


def test_capture_into(device, stream, semaphore, exported):
    graph = cu.Graph(device)
    with graph.capture(stream) as nodes:
        stream.signal(semaphore, 2)
    assert [n.params.value for n in nodes] == [2]
    graph.instantiate().launch(stream)
    stream.sync()
    assert exported.value == 2


def test_failed_capture_lets_go(device, stream, exported):
    semaphore = cu.ExternalSemaphore.from_fd(device, exported)
    ref = weakref.ref(semaphore)
    with pytest.raises(ZeroDivisionError), stream.capture():
        stream.signal(semaphore, 1)
        del semaphore
        raise ZeroDivisionError
    settle()
    assert ref() is None


def test_nodes(device, stream, semaphore, exported):
    graph = cu.Graph(device)
    signal = graph.signal(semaphore, 1, name="done")
    wait = signal.wait(semaphore, 1, name="ready")
    assert [n.kind for n in graph.nodes] == ["semaphore signal", "semaphore wait"]
    assert signal.params.semaphore is semaphore
    assert (signal.params.value, wait.params.value) == (1, 1)
    assert "SemaphoreNodeParams(semaphore=" in repr(signal.params)
    assert [r.object for r in signal.retained] == [semaphore]
    assert "signal external semaphore" in graph.to_dot()
    first = graph.instantiate()
    signal.update(value=2)
    wait.update(value=2)
    second = graph.instantiate()
    first.launch(stream)
    stream.sync()
    assert exported.value == 1
    second.launch(stream)
    stream.sync()
    assert exported.value == 2
    second["done"].update(value=3)
    second["ready"].update(semaphore=semaphore, value=3)
    assert second["done"].params.value == 3
    second.launch(stream)
    stream.sync()
    assert exported.value == 3
    with graph.clone() as clone, clone.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert exported.value == 2
    step = second.update_or_instantiate(graph)
    assert step is second
    step.launch(stream)
    stream.sync()
    assert exported.value == 2


def test_update_refusals(device, semaphore):
    graph = cu.Graph(device)
    node = graph.signal(semaphore, 1)
    with pytest.raises(TypeError, match="needs semaphore=, value= or both"):
        node.update()
    with pytest.raises(TypeError, match="takes semaphore=, value="):
        node.update(dst=1)
    with pytest.raises(OverflowError):
        node.update(value=-1)
    assert node.params.value == 1
    with pytest.raises(TypeError, match="value is for"):
        graph.wait(device.create_event(), 1)
    with pytest.raises(TypeError, match="value is required"):
        graph.wait(semaphore)
    with pytest.raises(cu.ClosedError), cu.sim.create_semaphore() as other:
        closed = cu.ExternalSemaphore.from_fd(device, other)
        closed.close()
        graph.signal(closed, 1)


def test_nodes_keep_it(device, stream, exported):
    semaphore = cu.ExternalSemaphore.from_fd(device, exported)
    ref = weakref.ref(semaphore)
    graph = cu.Graph(device)
    graph.wait(semaphore, 1).signal(semaphore, 2)
    semaphore.close()
    del semaphore
    step = graph.instantiate()
    graph.close()
    settle()
    assert ref() is not None
    step.launch(stream)
    step.close()
    gc.collect()
    assert ref() is not None
    exported.signal(1)
    stream.sync()
    assert exported.value == 2
    settle()
    assert ref() is None


def test_update_releases_the_old_one(device, stream, semaphore, exported):
    with cu.sim.create_semaphore() as second:
        old = cu.ExternalSemaphore.from_fd(device, second)
        ref = weakref.ref(old)
        graph = cu.Graph(device)
        graph.wait(old, 1, name="ready")
        step = graph.instantiate()
        graph["ready"].update(semaphore=semaphore)
        step.launch(stream)
        step["ready"].update(semaphore=semaphore)
        old.close()
        del old
        gc.collect()
        held = ref() is not None
        second.signal(1)
        stream.sync()
        settle()
        assert held
        assert ref() is None


def test_the_value_changes_after_the_semaphore_was_closed(device, stream, exported):
    semaphore = cu.ExternalSemaphore.from_fd(device, exported)
    ref = weakref.ref(semaphore)
    graph = cu.Graph(device)
    graph.wait(semaphore, 1, name="ready").signal(semaphore, 2, name="done")
    step = graph.instantiate()
    semaphore.close()
    step["done"].update(value=7)
    graph["done"].update(value=8)
    graph["ready"].update(value=3)
    with pytest.raises(cu.ClosedError, match="semaphore is closed"):
        step["done"].update(semaphore=semaphore, value=9)
    del semaphore
    exported.signal(1)
    step.launch(stream)
    stream.sync()
    assert exported.value == 7
    step.update(graph)
    graph.close()
    step.launch(stream)
    stream.sync()
    assert exported.value == 8
    assert ref() is not None
    step.close()
    settle()
    assert ref() is None


def test_body_of_a_conditional_refuses(device, semaphore):
    graph = cu.Graph(device)
    maybe = graph.if_then(graph.condition(default=1))
    with pytest.raises(ValueError, match="not semaphore signal nodes"):
        maybe.body.signal(semaphore, 1)


def test_cannot_be_saved(device, semaphore, tmp_path):
    graph = cu.Graph(device)
    graph.signal(semaphore, 1, name="done")
    with pytest.raises(ValueError, match="semaphore signal nodes cannot be saved"):
        graph.save(tmp_path / "step.cudago")


def test_closed_by_another_thread(device, stream):
    for _ in range(50):
        with cu.sim.create_semaphore() as exported:
            semaphore = cu.ExternalSemaphore.from_fd(device, exported)
            thread = threading.Thread(target=semaphore.close)
            thread.start()
            for i in range(20):
                try:
                    stream.signal(semaphore, i)
                except cu.ClosedError:
                    break
            thread.join()
            stream.sync()
    settle()
    assert "ExternalSemaphore" not in cu.live_objects()


def test_exporter(driver):
    with pytest.raises(ValueError, match="kind must be"):
        cu.sim.create_semaphore("mutex")
    with pytest.raises(ValueError, match="value must be 0 to 1"):
        cu.sim.create_semaphore("opaque", value=2)
    with cu.sim.create_semaphore(value=4) as made:
        assert "timeline: 4" in repr(made)
        made.wait(4)
        with pytest.raises(TypeError, match="cannot pickle"):
            made.__reduce__()
    with pytest.raises(cu.ClosedError):
        made.fileno()
