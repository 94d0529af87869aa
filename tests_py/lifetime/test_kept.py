# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a launch is given by other libraries is kept until it ends, and released soon after."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

N = 64
CONFIG = cu.LaunchConfig(grid=1, block=N)


class Theirs:
    """Somebody's tensor over memory of ours, on which that library has no work."""

    def __init__(self, tensor: cu.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **keywords):
        return self.tensor.__dlpack__(**{**keywords, "stream": -1})

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.fixture
def work(device, stream):
    """Memory for N numbers."""
    with cu.zeros((N,), "i4", stream=stream) as tensor:
        stream.sync()
        yield tensor


@pytest.fixture
def launch(kernels, stream, work, make, watch, numbers):
    """Function: launches with an object of another library, which only the launch keeps then."""

    def start(kind="theirs", *, on=stream):
        thing = Theirs(work) if kind == "theirs" else make(kind, numbers)
        cu.launch(on, CONFIG, kernels["add"], thing, 1, N)
        return watch(thing)

    return start


def wait_until_released(*seen) -> None:
    """Wait without a call of cudago."""
    deadline = time.monotonic() + 10
    while any(w.alive for w in seen):
        assert time.monotonic() < deadline, "still kept"
        time.sleep(0.001)


@pytest.fixture(params=[False, True], ids=["", "callbacks"])
def callbacks(request):
    """With and without a Python callback, beside which launches release the GIL."""
    if not request.param:
        yield
        return
    with cu.Graph() as graph:
        graph.callback(int)
        with graph.instantiate():
            yield


@pytest.mark.parametrize("kind", ["theirs", "interface"])
@pytest.mark.parametrize("exposed", [False, True])
def test_an_idle_stream_releases_without_a_call(launch, stream, callbacks, kind, exposed):
    if exposed:
        assert stream.handle
    wait_until_released(*[launch(kind) for _ in range(40)])
    wait_until_released(launch(kind))


def test_the_latest_of_an_exposed_stream_waits_for_its_own_work(launch, stream, try_to_release):
    """An event stands behind each launch there, not only behind the first of a batch."""
    assert stream.handle
    ran = [launch() for _ in range(5)]
    time.sleep(0.01)  # now there is an event for the next batch
    ran += [launch() for _ in range(5)]
    wait_until_released(*ran)
    with hold(stream):
        waits = [launch() for _ in range(5)]
        try_to_release()
        assert all(w.alive for w in waits)
    wait_until_released(*waits)


@pytest.mark.parametrize("exposed", [False, True])
def test_the_same_objects_again_and_again(kernels, stream, work, watch, try_to_release, exposed):
    """A batch keeps them once, until the last launch has ended."""
    if exposed:
        assert stream.handle
    things = [Theirs(work) for _ in range(3)]
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(200):
        for thing in things:
            cu.launch(stream, CONFIG, kernels["add"], thing, 1, N)
    del thing
    stream.sync()
    settle()
    assert [sys.getrefcount(thing) for thing in things] == before
    with hold(stream):
        for thing in things * 2:
            cu.launch(stream, CONFIG, kernels["add"], thing, 1, N)
        seen = [watch(thing) for thing in things]
        del thing, things
        try_to_release()
        assert all(w.alive for w in seen)
    wait_until_released(*seen)
    assert (work.numpy(stream=stream) == 606).all()


@pytest.mark.parametrize("which", ["default", "per-thread", "wrapped"])
def test_streams_of_others(launch, device, stream, callbacks, which):
    streams = {"default": 1, "per-thread": 2, "wrapped": stream.handle}
    with cu.Stream.from_handle(streams[which], device=device) as other:
        wait_until_released(*[launch(on=other) for _ in range(3)])
        other.sync()


def test_a_wait_releases(launch, stream, work):
    before = work.numpy(stream=stream).copy()
    seen = [launch() for _ in range(300)]
    stream.sync()
    settle()
    assert not any(w.alive for w in seen)
    assert (work.numpy(stream=stream) == before + 300).all()


def test_a_wait_drops_what_has_ended_itself(launch, stream, watch, kernels, work, monkeypatch):
    """An exception in a finalizer there reaches nobody's code."""
    unraisable = []
    monkeypatch.setattr("sys.unraisablehook", lambda u: unraisable.append(u.exc_type))

    class Loud(Theirs):
        def __del__(self) -> None:
            stream.sync()  # comes back to what is being dropped
            raise LookupError

    for _ in range(20):
        cu.launch(stream, CONFIG, kernels["add"], Loud(work), 1, N)
    stream.sync()
    settle()
    assert unraisable == [LookupError] * 20


def test_kept_while_work_waits(launch, stream, try_to_release, callbacks):
    with hold(stream):
        seen = [launch() for _ in range(20)]
        try_to_release()
        seen += [launch("interface") for _ in range(20)]
        try_to_release()
        time.sleep(0.005)  # longer than a batch is open
        assert all(w.alive for w in seen)
        seen.append(launch())
    wait_until_released(*seen)


def test_each_stream_has_its_own(launch, device, stream, try_to_release):
    with device.create_stream() as other, hold(stream):
        waits = launch()
        runs = launch(on=other)
        other.sync()
        wait_until_released(runs)
        try_to_release()
        assert waits.alive
    wait_until_released(waits)


def test_a_thread_waits_for_its_own_default_stream(launch, device, stream, try_to_release):
    """What another thread has queued in its own is still kept then."""
    with cu.Stream.from_handle(2, device=device) as per_thread:
        queued, over = threading.Event(), threading.Event()
        seen = []

        def run() -> None:
            with hold(stream):
                per_thread.wait(stream.record())
                seen.append(launch("interface", on=per_thread))
                queued.set()
                over.wait()

        thread = threading.Thread(target=run)
        thread.start()
        queued.wait()
        per_thread.sync()
        try_to_release()
        kept = seen[0].alive
        over.set()
        thread.join()
        assert kept
        wait_until_released(*seen)


def test_a_wait_for_the_threads_default_stream_is_one(device, stream, work):
    """However long its work takes."""
    with cu.Stream.from_handle(2, device=device) as per_thread:
        held, over = threading.Event(), threading.Event()

        def run() -> None:
            with hold(stream):
                held.set()
                over.wait()

        thread = threading.Thread(target=run)
        thread.start()
        held.wait()
        per_thread.wait(stream.record())
        work.fill(7, stream=per_thread)
        timer = threading.Timer(0.05, over.set)
        timer.start()
        per_thread.sync()
        assert over.is_set()
        timer.join()
        thread.join()
        assert (work.numpy(stream=stream) == 7).all()


def test_a_capture_begins_between_launches(launch, kernels, stream, work):
    seen = [launch()]
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, kernels["add"], work, 1, N)
        time.sleep(0.005)
        cu.launch(stream, CONFIG, kernels["add"], work, 1, N)
    seen.append(launch())
    with graph, graph.instantiate() as step:
        step.launch(stream)
        wait_until_released(*seen)
        assert (work.numpy(stream=stream) == 4).all()


def test_a_capture_of_another_stream(launch, device, kernels, stream, work):
    with device.create_stream() as other:
        with other.capture() as graph:
            cu.launch(other, CONFIG, kernels["add"], work, 1, N)
            wait_until_released(launch())
        with graph, graph.instantiate() as step:
            step.launch(other)
            other.sync()
    assert (work.numpy(stream=stream) == 2).all()


def test_a_stream_is_closed_with_an_open_batch(launch, device, stream, try_to_release, callbacks):
    other = device.create_stream()
    seen = launch(on=other)
    other.close()
    wait_until_released(seen)
    other = device.create_stream()
    gate = stream.record()
    with hold(stream):
        gate = stream.record()
        other.wait(gate)
        seen = launch(on=other)
        other.close()
        try_to_release()
        assert seen.alive
    wait_until_released(seen)


RESET = """
    import time, weakref
    import cudago as cu
    CODE = 'extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }'
    code = cu.Program(CODE, "c++").compile()
    device = cu.Device()
    stream = device.create_stream()
    memory = cu.zeros((64,), "i4", stream=stream)

    class Theirs:
        def __init__(self):
            data = (memory.handle, False)
            self.__cuda_array_interface__ = {
                "shape": (64,), "typestr": "<i4", "data": data, "version": 3
            }

    def launch():
        thing = Theirs()
        cu.launch(stream, cu.LaunchConfig(grid=1, block=64), code["add"], thing, 1)
        return weakref.ref(thing)
"""


@pytest.mark.parametrize("closed", [False, True])
def test_a_reset_with_an_open_batch(script, closed):
    run = script(
        script.dedent(RESET)
        + script.dedent(f"""
        seen = launch()
        if {closed}:
            stream.close()
        device.reset()
        deadline = time.monotonic() + 10
        while seen() is not None:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        print("released")
        """)
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "released\n", "")


@pytest.mark.parametrize("last", ["", "stream.close()", "del stream", "device.default_stream"])
def test_the_process_ends_with_an_open_batch(script, last):
    run = script(script.dedent(RESET) + f"\nseen = launch()\n{last}\nprint('end')")
    assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


def test_many_threads(kernels, device, stream, work, watch):
    """They add to one batch, and others wait for the stream meanwhile."""
    seen, errors = [], []

    def run() -> None:
        try:
            for i in range(150):
                thing = Theirs(work)
                cu.launch(stream, CONFIG, kernels["add"], thing, 1, N)
                seen.append(watch(thing))
                del thing
                if i % 50 == 0:
                    stream.sync()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    wait_until_released(*seen)
    assert (work.numpy(stream=stream) == np.full(N, 600)).all()


class Wrapped:
    """Another library's stream, given to each call as it is."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def test_streams_given_as_they_are(device, kernels, work, stream, watch, try_to_release):
    """More of them than are remembered; each launch keeps what it was given until it has ended."""
    ours = [device.create_stream() for _ in range(12)]
    theirs = [Wrapped(s.handle) for s in ours]
    before = cu.live_objects()
    stream.sync()
    for _ in range(20):
        for s in theirs:
            cu.launch(s, CONFIG, kernels["add"], Theirs(work), 0, N)
    settle()
    assert cu.live_objects() == before
    held, free = ours[0], ours[1]
    with hold(held):
        thing = Theirs(work)
        seen = watch(thing)
        cu.launch(theirs[0], CONFIG, kernels["add"], thing, 1, N)
        del thing
        for s in theirs[1:]:
            cu.launch(s, CONFIG, kernels["add"], Theirs(work), 0, N)
        free.sync()
        try_to_release()
        assert seen.alive
    wait_until_released(seen)
    for s in ours:
        s.close()


def test_a_reset_forgets_streams_of_others(script):
    run = script(
        script.dedent(RESET)
        + script.dedent("""
        class Wrapped:
            def __cuda_stream__(self):
                return 0, handle
        other = device.create_stream()
        handle = other.handle
        seen = launch()
        config = cu.LaunchConfig(grid=1, block=64)
        cu.launch(Wrapped(), config, code["add"], memory, 1)
        stream.close()
        other.close()
        device.reset()
        stream = device.create_stream()
        handle = stream.handle
        code = cu.Program(CODE, "c++").compile()
        memory = cu.zeros((64,), "i4", stream=stream)
        for _ in range(3):
            cu.launch(Wrapped(), config, code["add"], memory, 1)
        print(memory.numpy(stream=stream)[0], cu.live_objects()["Stream"])
        """)
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "3 1\n", "")


@pytest.mark.parametrize("way", ["resource", "virtual", "tensor", "adopted"])
def test_memory_keeps_the_owner_of_its_stream(device, stream, watch, way):
    """It is given back in that stream, which its library might destroy before."""
    owner = Wrapped(stream.handle)
    seen = watch(owner)
    if way == "tensor":
        memory = cu.empty((N,), "i4", stream=owner)
    elif way == "virtual":
        memory = cu.VirtualMemoryResource(device).allocate(64, stream=owner)
    elif way == "adopted":
        held = device.allocate(64, stream=stream)
        memory = cu.Buffer.from_handle(held.handle, 64, owner=held, stream=owner)
    else:
        memory = device.allocate(64, stream=owner)
    for _ in range(3):  # others with the same handle come and go
        device.allocate(64, stream=Wrapped(stream.handle)).close()
    del owner
    settle()
    assert seen.alive
    view = memory[:16]
    memory.close()
    settle()
    assert seen.alive
    view.close()
    stream.sync()
    settle()
    assert not seen.alive


def test_default_streams_keep_nobody(device, watch):
    owner = Wrapped(1)
    seen = watch(owner)
    memory = device.allocate(64, stream=owner)
    del owner
    settle()
    assert not seen.alive
    memory.close()
