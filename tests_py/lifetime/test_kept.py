# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What a launch is given by other libraries is kept until it ends, and released soon after."""

from __future__ import annotations

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
