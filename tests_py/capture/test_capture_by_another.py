# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Captures that another library begins: what is allocated in them, and what their graphs keep."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import cudago as cu
from cudago import _core
from cudago.allocators import for_cupy, for_rmm
from cudago.testing import settle

N = 64


class Another:
    """Stands for another library: it captures a stream, and has the graph until `destroy`."""

    def __init__(self, stream: cu.Stream) -> None:
        self.stream, self.graph = stream, 0

    def call(self, call: str, handle: int) -> int:
        return _core._as_another(call, self.stream.device.ordinal, handle)

    @contextlib.contextmanager
    def capture(self):
        """Capture in global mode, as CuPy and PyTorch do."""
        self.call("cuStreamBeginCapture", int(self.stream.handle))
        try:
            yield self
        finally:
            self.graph = self.call("cuStreamEndCapture", int(self.stream.handle))

    def executable(self) -> cu.GraphExec:
        """Make an executable of the graph, which knows nothing of the operands."""
        with cu.Graph.from_handle(self.graph, device=self.stream.device) as graph:
            return graph.instantiate()

    def destroy(self) -> None:
        if self.graph:
            self.call("cuGraphDestroy", self.graph)
        self.graph = 0


def allocations():
    settle()
    return cu.live_objects().get("Buffer", 0)


def becomes(read, wanted):
    """Wait until the driver, which destroys what graphs hold when it likes, has done so."""
    deadline = time.monotonic() + 20
    while (now := read()) != wanted and time.monotonic() < deadline:
        time.sleep(0.001)
    return now == wanted


@pytest.fixture
def another(stream):
    before = allocations()
    another = Another(stream)
    yield another
    another.destroy()
    assert becomes(allocations, before)


def test_memory_is_there_for_as_long_as_the_graph(another, device, stream):
    before = allocations()
    with another.capture():
        buffer = device.memory_resource.allocate(4 * N, stream=stream)
        address = buffer.handle
        buffer.fill(7, stream=stream)
        buffer.close()
    assert allocations() == before + 1
    step = another.executable()
    another.destroy()
    for _ in range(2):
        step.launch(stream)
        out = np.zeros(4 * N, "u1")
        with cu.Buffer.from_handle(address, 4 * N, owner=step, stream=stream) as view:
            view.copy_to(out, stream=stream)
            stream.sync()
        assert (out == 7).all()
    assert allocations() > before
    step.close()
    assert becomes(allocations, before)


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_semaphore_is_there_for_as_long_as_the_graph(script, driver):
    """Its destruction would come before the launch."""
    run = script(
        """
        import gc, os
        import cudago as cu
        from cudago import _core
        from cudago.testing import settle
        device = cu.Device()
        stream = device.create_stream()
        with cu.sim.create_semaphore() as exported:
            semaphore = cu.ExternalSemaphore.from_fd(device, exported)
            _core._as_another("cuStreamBeginCapture", 0, int(stream.handle))
            stream.signal(semaphore, 4)
            graph = _core._as_another("cuStreamEndCapture", 0, int(stream.handle))
            with cu.Graph.from_handle(graph, device=device) as theirs:
                step = theirs.instantiate()
            semaphore.close()
            del semaphore
            gc.collect(), settle()
            os.write(2, b"LAUNCH\\n")
            step.launch(stream)
            stream.sync()
            os.write(2, b"OVER\\n")
            step.close()
            _core._as_another("cuGraphDestroy", 0, graph)
            settle()
        """,
        CUDAGO_TRACE="1",
    )
    assert run.returncode == 0, run.stderr
    before, after = run.stderr.split("LAUNCH\n")
    assert "cuDestroyExternalSemaphore(" not in before
    assert "cuDestroyExternalSemaphore(" not in after.split("OVER\n")[0]


def test_memory_outlives_the_graph(another, device, stream):
    before = allocations()
    with another.capture():
        t = cu.zeros(N, "i4", stream=stream)
    step = another.executable()
    step.launch(stream)
    step.close()
    another.destroy()
    settle()
    assert t.numpy(stream=stream).tolist() == [0] * N
    t.close()
    assert becomes(allocations, before)


@pytest.mark.parametrize("mode", ["kept", "dropped"])
def test_a_capture_that_is_invalidated(another, device, stream, mode):
    before = allocations()
    with contextlib.suppress(cu.CUDAError), another.capture():
        buffer = device.memory_resource.allocate(4 * N, stream=stream)
        if mode == "dropped":
            buffer.close()
        with contextlib.suppress(cu.CUDAError):
            another.call("cuStreamBeginCapture", int(stream.handle))  # twice
        raise cu.CUDAError  # whatever the end of the capture says
    buffer.close()
    another.destroy()
    assert becomes(allocations, before)


def test_no_node_allocates(another, device, stream):
    with another.capture():
        device.memory_resource.allocate(4 * N, stream=stream).close()
    with cu.Graph.from_handle(another.graph, device=device) as graph:
        assert graph.nodes == ()


def test_two_allocations_in_one_capture_are_two(another, device, stream):
    """Neither may be given out again: the graph uses both in each launch."""
    seen = set()
    with another.capture():
        for _ in range(8):
            with device.memory_resource.allocate(4 * N, stream=stream) as buffer:
                seen.add(buffer.handle)
    assert len(seen) == 8


def test_what_was_allocated_before_is_freed_after(another, device, stream):
    buffer = device.memory_resource.allocate(4 * N, stream=stream)
    address = buffer.handle
    with another.capture():
        buffer.close()
        settle()
        with device.memory_resource.allocate(4 * N, stream=stream) as other:
            assert other.handle != address, "it is not freed while the stream is capturing"
    with cu.Graph.from_handle(another.graph, device=device) as graph:
        assert graph.nodes == (), "nor by the graph"


def test_a_pool_that_is_closed(another, device, stream):
    pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
    with another.capture():
        buffer = pool.allocate(4 * N, stream=stream)
        pool.close()
        buffer.fill(1, stream=stream)
        buffer.close()
    step = another.executable()
    step.launch(stream)
    stream.sync()
    step.close()


@pytest.mark.parametrize("kind", ["managed", "pinned"])
def test_memory_that_is_of_no_pool(another, device, stream, kind):
    before = allocations()
    managed = kind == "managed"
    with cu.ManagedMemoryResource(device) if managed else cu.PinnedMemoryResource() as memory:
        with another.capture():
            buffer = memory.allocate(4 * N, stream=stream)
            buffer.fill(3, stream=stream)
            buffer.close()
        assert allocations() == before + 1
        another.executable().close()
        another.destroy()
        assert becomes(allocations, before)


def test_what_cannot_be_allocated(another, device, stream):
    closed = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
    closed.close()
    with another.capture():
        with pytest.raises(cu.OutOfMemoryError):
            device.memory_resource.allocate(1 << 50, stream=stream)
        with pytest.raises(cu.ClosedError):
            closed.allocate(4, stream=stream)
        with pytest.raises(TypeError):
            device.memory_resource.allocate("4", stream=stream)
        device.memory_resource.allocate(0, stream=stream).close()
    assert another.graph


def test_a_thread_allocates_while_another_captures(another, device, stream):
    """The stream that is capturing is used by a thread that did not begin the capture."""
    made = []

    def work():
        made.append(device.memory_resource.allocate(4 * N, stream=stream))

    with another.capture():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        made[0].fill(1, stream=stream)
        made.pop().close()
    another.executable().close()


# --- allocators of other libraries ----------------------------------------------------------------


def test_memory_for_cupy(another, device, stream, monkeypatch):
    """As CuPy does: arrays are made and dropped inside the capture, results are kept."""
    given = SimpleNamespace(
        get_current_stream=lambda: stream,
        Device=lambda: SimpleNamespace(id=0),
        UnownedMemory=lambda ptr, size, owner, device_id: SimpleNamespace(ptr=ptr, owner=owner),
        MemoryPointer=lambda memory, offset: memory,
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=given))
    allocate = for_cupy(device.memory_resource)
    with another.capture():
        first = allocate(4 * N)
        first.owner.fill(3, stream=stream)
        result = allocate(4 * N)
        result.owner.copy_from(first.owner, stream=stream)
        address = first.ptr
        del first
        assert allocate(4 * N).ptr not in (address, result.ptr)
    step = another.executable()
    another.destroy()
    gc.collect()
    step.launch(stream)
    out = np.zeros(4 * N, "u1")
    result.owner.copy_to(out, stream=stream)
    stream.sync()
    assert (out == 3).all()
    step.close()
    del result


def test_memory_for_rmm(another, device, stream, monkeypatch):
    made = SimpleNamespace(CallbackMemoryResource=lambda take, give: (take, give))
    monkeypatch.setitem(sys.modules, "rmm", SimpleNamespace(mr=made))
    take, give = for_rmm(device.memory_resource)
    with another.capture():
        address = take(4 * N, stream)
        give(address, 4 * N, stream)
        other = take(4 * N, stream)
        assert other != address
    give(other, 4 * N, stream)
    another.executable().close()


# --- operands of our own operations ---------------------------------------------------------------


class Foreign:
    """Memory of another library, whose end can be seen."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": (N,), "typestr": "<i4", "data": (buffer.handle, False), "version": 3,
        }  # fmt: skip


def test_operands_are_kept_for_as_long_as_the_graph(another, device, stream, kernels):
    buffer = device.memory_resource.allocate(4 * N, stream=stream)
    stream.sync()
    operand, target = Foreign(buffer), device.memory_resource.allocate(4 * N, stream=stream)
    stream.sync()
    alive = weakref.ref(operand)
    with another.capture():
        target.copy_from(operand, stream=stream)
        del operand
    gc.collect()
    settle()
    assert alive() is not None
    step = another.executable()
    another.destroy()
    gc.collect()
    settle()
    assert alive() is not None
    step.launch(stream)
    step.close()
    stream.sync()

    def gone():
        settle()
        return alive() is None

    assert becomes(gone, True)
    buffer.close()
    target.close()


def test_kernels_and_their_arguments(another, device, stream):
    source = 'extern "C" __global__ void f(int *x) { x[threadIdx.x] += 1; }'
    code = cu.Program(source).compile()
    kernel = code["f"]
    alive = weakref.ref(kernel)
    t = cu.zeros(N, "i4", stream=stream)
    stream.sync()
    with another.capture():
        cu.launch(stream, cu.LaunchConfig(1, N), kernel, t)
    del kernel, code
    gc.collect()
    step = another.executable()
    another.destroy()
    for _ in range(3):
        step.launch(stream)
    assert t.numpy(stream=stream).tolist() == [3] * N
    t.close()
    settle()
    assert alive() is not None
    step.close()

    def gone():
        settle()
        return alive() is None

    assert becomes(gone, True)


@pytest.mark.parametrize("how", ["as it was", "updated"])
def test_an_executable_that_is_launched_into_it(another, device, stream, how):
    """Its operands, and those of what it embeds, end with the other library's graph."""
    operands = [np.full(N, i, "i4") for i in range(1, 4)]
    alive = [weakref.ref(x) for x in operands]
    target = device.memory_resource.allocate(8 * N, stream=stream)
    stream.sync()
    with cu.Graph(device) as inner, cu.Graph(device) as graph:
        inner.memcpy(target[: 4 * N], operands[0], name="up")
        if how == "updated":  # a graph that is made for it is captured
            graph.memcpy(target[: 4 * N], operands[0], name="up")
        else:
            graph.embed(inner)
        graph.memcpy(target[4 * N :], operands[1])
        with graph.instantiate() as step, another.capture():
            if how == "updated":
                step["up"].update(src=operands[2])
            step.launch(stream)
    used = alive[:2] if how == "as it was" else alive[1:]
    del operands, graph, inner, step
    gc.collect()
    step = another.executable()
    another.destroy()
    gc.collect()
    settle()
    assert all(one() is not None for one in used)
    target.fill(0, stream=stream)
    step.launch(stream)
    out = np.zeros(2 * N, "i4")
    target.copy_to(out, stream=stream)
    stream.sync()
    assert out.tolist() == [1 if how == "as it was" else 3] * N + [2] * N
    step.close()

    def gone():
        settle()
        return not any(one() is not None for one in alive)

    assert becomes(gone, True)
    target.close()


class Owner:
    """Keeps what a graph of another library uses."""


def test_the_owner_of_a_wrapped_graph_that_is_launched_into_it(another, device, stream):
    theirs, owner = Another(stream), Owner()
    alive = weakref.ref(owner)
    target = device.allocate(4 * N, stream=stream)
    with theirs.capture():
        target.fill(7, stream=stream)
    with (
        cu.Graph.from_handle(theirs.graph, device=device, owner=owner) as graph,
        graph.instantiate() as step,
        another.capture(),
    ):
        step.launch(stream)
    del owner, graph, step
    theirs.destroy()
    gc.collect()
    settle()
    assert alive() is not None
    with another.executable() as step:
        another.destroy()
        step.launch(stream)
        out = np.zeros(4 * N, "u1")
        target.copy_to(out, stream=stream)
        stream.sync()
        assert (out == 7).all()
        settle()
        assert alive() is not None

    def gone():
        gc.collect()
        settle()
        return alive() is None

    assert becomes(gone, True)
    target.close()


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_what_the_driver_does_not_keep_stays(driver, script):
    done = script(
        """
        import gc, warnings, weakref
        import cudago as cu
        from cudago import _core
        warnings.simplefilter("always")
        stream = cu.Device().create_stream()
        buffer = cu.Device().allocate(64, stream=stream)
        target = cu.Device().allocate(64, stream=stream)
        stream.sync()
        class Foreign:
            __cuda_array_interface__ = {
                "shape": (16,), "typestr": "<i4", "data": (buffer.handle, False), "version": 3}
        for call in 2 * ("cuUserObjectCreate", "cuGraphRetainUserObject"):
            x = Foreign()
            alive = weakref.ref(x)
            _core._as_another("cuStreamBeginCapture", 0, int(stream.handle))
            _core._fail_next(call, 1, 999)
            target.copy_from(x, stream=stream)
            del x
            _core._fail_next(call, 1, 999)
            try:
                cu.Device().allocate(64, stream=stream)
            except cu.CUDAError as e:
                print(call in str(e))
            graph = _core._as_another("cuStreamEndCapture", 0, int(stream.handle))
            _core._as_another("cuGraphDestroy", 0, graph)
            gc.collect()
            cu.testing.settle()
            print(alive() is not None)
        """,
        CUDAGO_SIM="faults=0",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"] * 4
    told = [line for line in done.stderr.splitlines() if "CUDAWarning" in line]
    assert len(told) == 2, done.stderr  # once for each reason
    for line, call in zip(told, ("cuUserObjectCreate", "cuGraphRetainUserObject"), strict=True):
        assert "what a graph uses that another library captured stays until the process" in line
        assert f" ends: {call}: CUDA_ERROR_UNKNOWN" in line


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_call_that_fails_loses_no_memory(driver, script):
    """Whichever it is, there is a buffer or an error; what cleans up is no error."""
    done = script(
        """
        import gc, time, warnings
        import cudago as cu
        from cudago import _core
        device = cu.Device()
        stream = device.create_stream()
        handle = int(stream.handle)
        pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
        pool.allocate(64, stream=stream).close()
        stream.sync()
        before = cu.live_objects()
        for call, n, made in [
            ("cuStreamCreateWithPriority", 1, False), ("cuMemAllocFromPoolAsync", 1, False),
            ("cuStreamSynchronize", 1, False), ("cuStreamDestroy", 1, True),
            ("cuUserObjectCreate", 1, False), ("cuGraphRetainUserObject", 1, False),
        ]:
            _core._as_another("cuStreamBeginCapture", 0, handle)
            _core._fail_next(call, n, 999)
            try:
                pool.allocate(64, stream=stream).close()
                assert made, call
            except cu.CUDAError as e:
                assert not made and call in str(e), (call, e)
            graph = _core._as_another("cuStreamEndCapture", 0, handle)
            _core._as_another("cuGraphDestroy", 0, graph)
            gc.collect()
            deadline = time.monotonic() + 20  # a thread of the driver's tells of a graph's end
            while (pool.statistics.used, cu.live_objects()) != (0, before):
                assert time.monotonic() < deadline, call
                cu.testing.settle()
                stream.sync()
        print("none is lost")
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (done.returncode, done.stdout) == (0, "none is lost\n"), done.stderr


def test_the_end_of_the_process(driver, script):
    """Graphs that are destroyed after the interpreter has ended leave what they keep."""
    done = script(
        """
        import atexit
        later = []
        atexit.register(lambda: [f() for f in later])
        import cudago as cu
        from cudago import _core
        stream = cu.Device().create_stream()
        handle = int(stream.handle)
        _core._as_another("cuStreamBeginCapture", 0, handle)
        cu.zeros(16, "i4", stream=stream).close()
        graph = _core._as_another("cuStreamEndCapture", 0, handle)
        print("captured")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "captured\n", "")
