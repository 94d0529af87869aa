# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""After Device.reset the device works again, and everything it held is lost."""

from __future__ import annotations

import gc
import signal
import threading
import time
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

pytestmark = pytest.mark.early

KERNELS = r"""
extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }
extern "C" __global__ void spin(volatile int* p) { while (*p == 0) {} }
"""
WIDE = cu.LaunchConfig(grid=1, block=64)
ONE = cu.LaunchConfig(grid=1, block=1)


@pytest.fixture(scope="module")
def code(device):
    """Kernels add and spin."""
    return cu.Program(KERNELS, "c++").compile()


@pytest.fixture(autouse=True)
def default_stream(device):
    """Leave a default stream behind, as the device was found."""
    yield
    _ = device.default_stream


def use(device, code) -> None:
    """Do some work on a device, and check it."""
    with device.create_stream() as stream:
        values = cu.zeros((64,), "i4", stream=stream)
        cu.launch(stream, WIDE, code["add"], values, 3)
        graph = cu.Graph(device)
        graph.launch(WIDE, code["add"], values, 4)
        graph.instantiate().launch(stream)
        assert (values.numpy(stream=stream) == 7).all()
        event = stream.record()
        device.default_stream.wait(event)
        device.default_stream.sync()
        assert event.is_done
        if values.__dlpack_device__()[0] == 2:  # on a GPU the consumer's stream is made to wait
            values.__dlpack__(stream=1)


def uses_of(device, code) -> dict:
    """Return one object of each kind with a use of it."""
    stream, event = device.create_stream(), device.create_event()
    stream.record(event)
    buffer = device.allocate(256, stream=stream)
    virtual = cu.VirtualMemoryResource(device).allocate(4096, stream=stream)
    tensor = buffer.view("i4")
    graph = cu.Graph(device)
    scratch = graph.allocate(64)
    graph.memset(buffer, 1, name="fill")
    graph.launch(WIDE, code["add"], tensor, 1)
    step = graph.instantiate()
    step.launch(stream)
    stream.sync()
    resource, default = device.memory_resource, device.default_stream
    pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
    pooled = pool.allocate(64, stream=stream)
    pinned = cu.PinnedMemoryResource()
    array = cu.OpaqueArray((8, 8), "f4", stream=stream, surfaces=True)
    image = cu.zeros((8, 64), "f4", stream=stream)
    texture, surface = cu.Texture(image), cu.Surface(array)
    return {
        "stream": (stream, stream.sync),
        "its handle": (stream, lambda: stream.handle),
        "event": (event, lambda: event.is_done),
        "record": (event, lambda: device.create_stream().record(event)),
        "wait": (event, lambda: device.create_stream().wait(event)),
        "buffer": (buffer, lambda: buffer.copy_to(bytearray(256), stream=device.create_stream())),
        "fill": (buffer, lambda: buffer.fill(0, stream=device.create_stream())),
        "part": (buffer[8:], lambda: buffer[8:]),
        "its pointer": (None, buffer.ptr.__int__),
        "its address": (None, lambda p=buffer.ptr: p + 4),
        "export": (buffer, buffer.__dlpack__),
        "tensor": (tensor, lambda: tensor.numpy(stream=device.create_stream())),
        "element": (tensor, lambda: tensor[0]),
        "export of a tensor": (tensor, lambda: np.from_dlpack(tensor)),
        "argument": (
            tensor,
            lambda: cu.launch(device.create_stream(), ONE, code["add"], tensor, 1),
        ),
        "virtual": (virtual, lambda: virtual.grow(8192)),
        "graph": (graph, graph.instantiate),
        "node": (graph, lambda: graph.memset(pooled, 1)),
        "clone": (graph, graph.clone),
        "its memory": (scratch.buffer, lambda b=scratch.buffer: b.view("i4")),
        "executable": (step, lambda: step.launch(device.create_stream())),
        "upload": (step, lambda: step.upload(device.create_stream())),
        "update": (step, lambda: step["fill"].update(value=2)),
        "resource": (resource, lambda: resource.allocate(4, stream=device.create_stream())),
        "pool": (pool, lambda: pool.trim()),
        "pooled": (pooled, lambda: pooled.handle),
        "pinned": (pinned, lambda: pinned.allocate(4)),
        "default stream": (default, default.sync),
        "array": (array, lambda: array.handle),
        "texture": (texture, lambda: texture.handle),
        "surface": (surface, lambda: surface.handle),
    }


@pytest.mark.parametrize("times", [1, 3])
def test_everything_is_lost(device, code, times):
    for _ in range(times):
        uses = uses_of(device, code)
        device.reset()
        for name, (thing, use_it) in uses.items():
            with pytest.raises(cu.ClosedError, match="is closed: device 0 was reset"):
                use_it()
            if thing is not None:
                assert thing.is_closed, name
                assert "closed" in repr(thing), name
                assert thing == thing and isinstance(hash(thing), int)
        for thing, _ in uses.values():
            if hasattr(thing, "close"):
                thing.close()
                thing.close()
        use(device, code)


def test_what_is_lost_counts_until_it_is_closed_or_dropped(device, code):
    settle()
    before = cu.live_objects().get("Graph", 0)
    graphs = [cu.Graph(device) for _ in range(2)]
    device.reset()
    assert all(graph.is_closed for graph in graphs)
    assert cu.live_objects()["Graph"] == before + 2
    graphs[0].close()
    assert cu.live_objects()["Graph"] == before + 1
    graphs.clear()
    settle()
    assert cu.live_objects().get("Graph", 0) == before


class Passes(cu.MemoryResource):
    """Passes on what another resource allocates."""

    def __init__(self, upstream):
        self.upstream = upstream

    def allocate(self, size, *, stream):
        return self.upstream.allocate(size, stream=stream)


@pytest.mark.parametrize(
    "make",
    [
        Passes,
        cu.TrackingMemoryResource,
        lambda of: cu.ArenaMemoryResource(of, 1 << 16),
        lambda of: cu.VirtualMemoryResource(cu.Device()),
        lambda of: Passes(cu.TrackingMemoryResource(of)),
    ],
    ids=["python", "tracking", "arena", "virtual", "two"],
)
def test_the_device_has_its_own_resource_again(device, code, make):
    resource = device.memory_resource = make(device.memory_resource)
    device.reset()
    assert device.memory_resource is not resource
    assert isinstance(device.memory_resource, cu.DeviceMemoryResource)
    use(device, code)
    resource.close()


def test_resources_in_a_circle(device, code):
    resource = device.memory_resource = Passes(None)
    resource.upstream = resource
    device.reset()
    assert device.memory_resource is resource
    device.memory_resource = cu.DeviceMemoryResource(device)
    use(device, code)


# --- refusals


def refused_now(device, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        device.reset()


def refused(device, match: str) -> None:
    """Require that a reset is refused, and changes nothing."""
    stream = device.create_stream()
    refused_now(device, match)
    assert not stream.is_closed
    stream.sync()


def test_refused_during_a_capture(device, code, stream):
    with stream.capture() as graph:
        refused_now(device, r"device 0 cannot be reset: 1 stream capture\(s\) are open")
    assert not graph.is_closed
    device.reset()
    use(device, code)


@pytest.mark.parametrize("kind", ["pinned", "managed", "locked"])
def test_refused_with_host_memory(device, code, stream, kind):
    if kind == "pinned":
        buffer = cu.PinnedMemoryResource().allocate(64)
    elif kind == "managed":
        buffer = cu.ManagedMemoryResource(device).allocate(64, stream=stream)
    else:
        buffer = cu.pin(bytearray(4096))
    part = buffer[8:16]
    refused(device, r"device 0 cannot be reset: 1 allocation\(s\) of pinned or managed memory")
    buffer.close()
    refused(device, "1 allocation")
    part.close()
    device.reset()
    use(device, code)


def test_refused_with_exports(device, code, stream):
    tensor = cu.zeros((4,), "i4", stream=stream)
    capsule = tensor.__dlpack__()
    host = np.from_dlpack(cu.from_dlpack(np.zeros(4, "i4"), copy=True))
    refused(device, r"device 0 cannot be reset: other libraries hold 1 tensor\(s\) over its memory")
    del capsule
    device.reset()
    assert (host == 0).all(), "a copy is no concern of the device"


def test_refused_in_a_callback(device, code, stream):
    errors = []

    def callback():
        try:
            device.reset()
        except cu.CUDAError as e:
            errors.append(str(e))

    graph = cu.Graph(device)
    graph.callback(callback)
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert len(errors) == 1
    assert "CUDA_ERROR_NOT_PERMITTED" in errors[0] and "device 0" in errors[0]


# --- with other threads


def test_drops_what_is_held_back(device, code):
    if cu.driver_name() != "sim":
        pytest.skip("NVIDIA's driver waits for a kernel that never ends")
    stream = device.create_stream()
    never = cu.zeros((1,), "i4", stream=stream)
    cu.launch(stream, ONE, code["spin"], never)
    with hold(stream):
        device.reset()
    use(device, code)


def test_nothing_goes_on_afterwards(device, code):
    """NVIDIA's driver would run the callback after the reset has freed what it belongs to."""
    kernel = cu.Program(
        'extern "C" __global__ void wait(long long n)'
        "{ long long t = clock64(); while (clock64() - t < n) {} }"
    ).compile()["wait"]
    called = []
    stream = device.create_stream()
    with cu.Graph(device) as graph:
        graph.launch(ONE, kernel, 100_000_000 if cu.driver_name() == "nvidia" else 1000)
        graph.callback(lambda: called.append(1))
        graph.instantiate().launch(stream)
    device.reset()
    before = list(called)
    use(device, code)
    time.sleep(0.2)
    assert called == before


def test_ends_what_runs(device, code):
    if cu.driver_name() != "sim":
        pytest.skip("NVIDIA's driver waits for a kernel that never ends")
    stream = device.create_stream()
    never = cu.zeros((1,), "i4", stream=stream)
    graph = cu.Graph(device)
    graph.launch(ONE, code["spin"], never)
    step = graph.instantiate()
    step.launch(stream)
    step.launch(stream)
    failures = []

    def wait():
        try:
            stream.sync()
        except (cu.CUDAError, cu.ClosedError) as e:
            failures.append(e)

    waiter = threading.Thread(target=wait)
    waiter.start()
    device.reset()
    waiter.join()
    assert len(failures) == 1
    assert step.is_closed
    use(device, code)


@contextmanager
def callback_running(device, stream):
    """Keep a host callback busy, which a reset waits for."""
    entered, leave = threading.Event(), threading.Event()

    def callback():
        entered.set()
        leave.wait()

    graph = cu.Graph(device)
    graph.callback(callback)
    graph.instantiate().launch(stream)
    entered.wait()
    try:
        yield
    finally:
        leave.set()


def test_ctrl_c_abandons_it(device, code, stream):
    """A reset that waits for a callback is abandoned, and nothing has changed."""
    use(device, code)  # loads the kernel, which on NVIDIA's driver can wait for the device
    values = cu.zeros((64,), "i4", stream=stream)
    with callback_running(device, stream):
        cu.launch(stream, WIDE, code["add"], values, 5)
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            device.reset()
        assert not values.is_closed
        gone = cu.zeros((1 << 16,), "i4", stream=stream)
        del gone
    assert (values.numpy(stream=stream) == 5).all()
    use(device, code)


class Stopped(Exception):
    """What a signal's handler raises in a test."""


def test_what_is_dropped_during_an_abandoned_reset(device, code):
    """It is released once the reset is abandoned; the check for leaks shows it."""
    stream = device.create_stream()
    used = device.memory_resource.statistics.used
    things = [
        stream.record(),
        device.allocate(64, stream=stream),
        cu.Graph(device),
        cu.zeros((64,), "i4", stream=stream),
        cu.Graph(device).instantiate(),
    ]
    seen = []

    def handler(*_):
        seen.append((stream.is_closed, things[1].is_closed))
        with pytest.raises(cu.ClosedError, match="device 0 is being reset"):
            things[1].copy_to(bytearray(64), stream=stream)
        for make in (
            device.create_stream,
            device.create_event,
            lambda: cu.Graph(device),
            lambda: cu.VirtualMemoryResource(device),
            lambda: cu.PinnedMemoryResource(),
        ):
            with pytest.raises(cu.ClosedError, match="device is closed: device 0 is being reset"):
                make()
        with pytest.raises(ValueError, match="is being reset by another thread"):
            device.reset()
        things.clear()
        gc.collect()
        raise Stopped

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with callback_running(device, stream):
            threading.Timer(0.2, signal.raise_signal, [signal.SIGUSR1]).start()
            with pytest.raises(Stopped):
                device.reset()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [(True, True)]
    stream.sync()
    settle()
    assert device.memory_resource.statistics.used == used
    use(device, code)


def test_memory_that_a_reset_takes_while_it_is_handed_over(device, stream):
    pool = device.memory_resource

    class Slow(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            buffer = pool.allocate(nbytes, stream=stream)
            device.reset()  # as another thread may
            return buffer

    with pytest.raises(cu.ClosedError, match="device 0 was reset"):
        cu.zeros(100, "u1", stream=stream, resource=Slow())


def test_a_cycle_through_lost_objects(device, code):
    class Node:
        pass

    node = Node()
    node.stream = device.create_stream()
    node.values = cu.zeros((64,), "i4", stream=node.stream)
    node.graph = cu.Graph(device)
    node.graph.launch(WIDE, code["add"], node.values, 1)
    node.graph.callback(node.__repr__)
    node.step = node.graph.instantiate()
    for _ in range(3):
        node.step.launch(node.stream)
    gone = weakref.ref(node)
    device.reset()
    del node
    settle()
    assert gone() is None


def test_reset_while_other_threads_use_the_device(device, code):
    """Each operation of a loop succeeds, raises ClosedError, or says that the reset ended it."""
    stop = threading.Event()
    strange, done = [], []

    def user():
        while not stop.is_set():
            try:
                use(device, code)
                done.append(1)
            except cu.ClosedError:
                pass
            except cu.CUDAError as e:
                if not lost_by_reset(e):
                    strange.append(e)
                    return
            except BaseException as e:
                strange.append(e)
                return

    def collector():
        while not stop.is_set():
            gc.collect()

    threads = [threading.Thread(target=user) for _ in range(3)]
    threads.append(threading.Thread(target=collector))
    for t in threads:
        t.start()
    for _ in range(30):
        n = len(done)
        reset_when_nothing_is_exported(device)
        while len(done) == n and not strange:
            time.sleep(0.001)
    stop.set()
    for t in threads:
        t.join()
    assert not strange
    use(device, code)


def reset_when_nothing_is_exported(device):
    """Reset a device although a thread may have been switched off with a capsule in its hands."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return device.reset()
        except ValueError as e:
            if "other libraries hold" not in str(e) or time.monotonic() > deadline:
                raise


def lost_by_reset(error: cu.CUDAError) -> bool:
    """Whether work failed because the reset ended it."""
    return error.name in (
        "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        "CUDA_ERROR_DEINITIALIZED",
    ) or "for a reset of its device" in str(error)


class Producer:
    """Another library's tensor over memory of ours, known by DLPack alone."""

    def __init__(self, tensor: cu.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **keywords):
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_memory_where_lost_memory_was_is_found_again(device):
    """What is lost was given to another library, as what comes to lie there then is."""
    with device.create_stream() as stream:
        lost = cu.zeros(1000, "f4", stream=stream)
        cu.from_dlpack(Producer(lost)).close()
    device.reset()
    with device.create_stream() as stream:
        for _ in range(3):
            tensor = cu.full(1000, 7, "f4", stream=stream)
            stream.sync()
            back = cu.from_dlpack(Producer(tensor))
            assert (back.handle, back.device) == (tensor.handle, device)
            assert (back.numpy(stream=stream) == 7).all()
            back.close()
            tensor.close()
    lost.close()
