# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Allocators of other libraries: CuPy's, RMM's, any; what stands for the two has their shape."""

from __future__ import annotations

import gc
import sys
import threading
from types import ModuleType, SimpleNamespace
from weakref import ref

import numpy as np
import pytest

import cudago as cu
from cudago.allocators import ForeignMemoryResource, for_cupy, for_rmm
from cudago.testing import settle


class Arena:
    """Memory of one allocation, given out by address; it notes what happens."""

    def __init__(self, device, stream):
        self.memory = device.allocate(1 << 16, stream=stream)
        stream.sync()
        self.at, self.log = 0, []

    def take(self, nbytes):
        address = self.memory.handle + self.at
        self.at += -(-nbytes // 256) * 256
        self.log.append(("take", nbytes))
        return address

    def give(self, address, nbytes, *stream):
        assert self.memory.handle <= address < self.memory.handle + self.at
        self.log.append(("give", nbytes, *stream))

    @property
    def given(self):
        return [entry[1:] for entry in self.log if entry[0] == "give"]


class Anytime(Arena):
    def allocate(self, nbytes):
        return self.take(nbytes)

    def deallocate(self, address, nbytes):
        self.give(address, nbytes)


class InOrder(Arena):
    def allocate(self, nbytes, stream):
        return self.take(nbytes)

    def deallocate(self, address, nbytes, stream):
        self.give(address, nbytes, stream)


class ByName(Arena):
    """Takes the stream as a keyword, as our own resources do, and has addresses of NumPy."""

    def allocate(self, nbytes, *, stream):
        return np.int64(self.take(nbytes))

    def deallocate(self, address, nbytes, *, stream):
        self.give(address, nbytes, stream)


class Between(Arena):
    """Has a parameter before the stream."""

    def allocate(self, nbytes, alignment=256, stream=None):
        assert alignment == 256
        return np.uint64(self.take(nbytes))

    def deallocate(self, address, nbytes, alignment=256, stream=None):
        assert alignment == 256
        self.give(address, nbytes, stream)


class InOrderOnce(InOrder):
    """Takes the stream only where it allocates."""

    def deallocate(self, address, nbytes):
        self.give(address, nbytes)


class AnytimeBack(Anytime):
    """Takes the stream only where it frees."""

    def deallocate(self, address, nbytes, stream):
        self.give(address, nbytes, stream)


class Objects(Arena):
    """Gives objects that keep the memory."""

    class Memory:
        def __init__(self, arena, nbytes):
            self.arena, self.nbytes, self.ptr = arena, nbytes, arena.take(nbytes)

        def __del__(self):
            self.arena.give(self.ptr, self.nbytes)

    def allocate(self, nbytes):
        return self.Memory(self, nbytes)


@pytest.fixture(params=[Anytime, InOrder, ByName, Between, InOrderOnce, AnytimeBack, Objects])
def arena(request, device, stream):
    made = request.param(device, stream)
    yield made
    settle()
    made.memory.close()


def held_up(stream):
    """Hold up a stream until the event that is returned is set."""
    go = threading.Event()
    stream.callback(go.wait, 20)
    return go


def gone(arena):
    """What the arena has got back by now, once all that can come has come."""
    gc.collect()
    settle()
    return arena.given


# --- from others ---------------------------------------------------------------------------------


def test_values_and_ownership(arena, device, stream):
    resource = ForeignMemoryResource(arena)
    x = cu.asarray(np.arange(100, dtype="i4"), stream=stream, resource=resource)
    view = x[10:20]
    y = cu.empty(100, "i4", stream=stream, resource=resource)
    y.copy_from(x, stream=stream)
    assert arena.log == [("take", 400), ("take", 400)]
    x.close()
    stream.sync()
    assert gone(arena) == []  # the view has it
    assert view.numpy(stream=stream).tolist() == list(range(10, 20))
    view.close()
    stream.sync()
    assert [g[0] for g in gone(arena)] == [400]
    assert y.numpy(stream=stream)[99] == 99
    del y
    stream.sync()
    assert [g[0] for g in gone(arena)] == [400, 400]


def test_a_graph_keeps_the_memory(arena, device, stream, kernels):
    resource = ForeignMemoryResource(arena)
    y = cu.zeros(4, "i4", stream=stream, resource=resource)
    g = cu.Graph()
    g.launch(cu.LaunchConfig(grid=1, block=4), kernels["add"], y, 5, 4)
    step = g.instantiate()
    out = np.zeros(4, "i4")
    up = cu.Graph()
    up.memcpy(out, y)
    read = up.instantiate()
    y.close()
    del y
    for _ in range(3):
        step.launch(stream)
    read.launch(stream)
    stream.sync()
    assert out.tolist() == [15] * 4
    assert gone(arena) == []
    for closed in (step, g, read, up):
        closed.close()
    stream.sync()
    assert [g[0] for g in gone(arena)] == [16]


def test_memory_goes_back_when_its_uses_elsewhere_have_ended(device, stream):
    arena = InOrder(device, stream)
    with device.create_stream() as other:
        x = cu.zeros(4, "i4", stream=stream, resource=ForeignMemoryResource(arena))
        stream.sync()
        go = held_up(other)
        x.fill(7, stream=other)
        x.close()
        settle_a_bit = cu.zeros(1, "i4", stream=stream)  # an entry into the API drops what waits
        assert arena.given == []
        stream.sync()  # waits for nothing of the other stream
        assert not other.is_done
        go.set()
        other.sync()
        assert [g[0] for g in gone(arena)] == [16]
        settle_a_bit.close()
    arena.memory.close()


@pytest.mark.parametrize("cls", [Anytime, InOrderOnce, AnytimeBack])
def test_allocators_without_streams_get_it_back_when_the_work_is_done(cls, device, stream):
    arena = cls(device, stream)
    x = cu.zeros(4, "i4", stream=stream, resource=ForeignMemoryResource(arena))
    stream.sync()
    go = held_up(stream)
    x.fill(1, stream=stream)
    x.close()
    device.memory_resource.allocate(1, stream=stream).close()
    assert arena.given == []
    go.set()
    stream.sync()
    assert gone(arena) == [(16, stream) if cls is AnytimeBack else (16,)]
    arena.memory.close()


def test_the_stream_is_passed_on(device, stream):
    arena = InOrder(device, stream)
    seen = []
    arena.allocate = lambda nbytes, stream: (seen.append(stream), arena.take(nbytes))[1]
    with ForeignMemoryResource(arena, device=device) as resource:
        assert resource.device is device
        resource.allocate(np.int64(16), stream=stream).close()
    assert seen == [stream]
    assert gone(arena) == [(16, stream)]
    with pytest.raises(cu.ClosedError, match="memory resource is closed"):
        resource.allocate(16, stream=stream)
    arena.memory.close()


def test_it_can_be_the_devices_resource(arena, device, stream):
    before = device.memory_resource
    device.memory_resource = ForeignMemoryResource(arena)
    try:
        device.allocate(32, stream=stream).close()
    finally:
        device.memory_resource = before
    assert arena.log[0] == ("take", 32)


def test_no_bytes_are_not_asked_for(arena, stream):
    with ForeignMemoryResource(arena).allocate(0, stream=stream) as buffer:
        assert buffer.size == 0
    assert arena.log == []


def test_bad_arguments(arena, device, stream):
    resource = ForeignMemoryResource(arena)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        resource.allocate(-1, stream=stream)
    with pytest.raises(TypeError):
        resource.allocate(1.5, stream=stream)
    with pytest.raises(TypeError, match="needs stream="):
        resource.allocate(1)
    with pytest.raises(TypeError, match="allocator must be"):
        ForeignMemoryResource(5)
    with pytest.raises(TypeError, match="device must be a Device, not int"):
        ForeignMemoryResource(arena, device=0)
    with stream.capture() as g, pytest.raises(ValueError, match="capturing"):
        resource.allocate(16, stream=stream)
    g.close()
    assert arena.log == []


def test_allocators_that_fail_or_lie(device, stream):
    class Raises:
        def allocate(self, nbytes):
            raise MemoryError("no more")

    with pytest.raises(MemoryError, match="no more"):
        ForeignMemoryResource(Raises()).allocate(16, stream=stream)

    def giving(value):
        return ForeignMemoryResource(SimpleNamespace(allocate=lambda nbytes: value))

    with pytest.raises(TypeError, match="must have deallocate"):
        giving(1234).allocate(16, stream=stream)
    with pytest.raises(TypeError, match="not NoneType"):
        giving(None).allocate(16, stream=stream)
    host = np.zeros(16)
    with pytest.raises(ValueError, match="must be the address of device memory"):
        giving(SimpleNamespace(ptr=host.ctypes.data)).allocate(16, stream=stream)
    small, too_much = device.allocate(16, stream=stream), 1 << 40
    with small, pytest.raises(ValueError, match="must not go past the memory"):
        giving(small).allocate(too_much, stream=stream)


def test_a_failure_to_give_back_is_reported(device, stream, monkeypatch):
    caught = []
    monkeypatch.setattr(sys, "unraisablehook", lambda e: caught.append(str(e.exc_value)))
    arena = InOrder(device, stream)
    arena.deallocate = lambda *args: 1 / 0
    ForeignMemoryResource(arena).allocate(16, stream=stream).close()
    settle()
    assert caught == ["division by zero"]
    arena.memory.close()


# --- Buffer.from_handle --------------------------------------------------------------------------


def test_from_handle(device, stream):
    theirs = device.allocate(64, stream=stream)
    count = sys.getrefcount(theirs)
    ours = cu.Buffer.from_handle(theirs.handle + 16, 32, owner=theirs, stream=stream)
    assert sys.getrefcount(theirs) == count + 1
    assert (ours.size, ours.device, ours.handle) == (32, device, theirs.handle + 16)
    ours.fill(3, stream=stream)
    theirs[:16].fill(1, stream=stream)
    theirs[48:].fill(2, stream=stream)
    assert theirs.view("u1").numpy(stream=stream).tolist() == [1] * 16 + [3] * 32 + [2] * 16
    view = ours[:4]
    ours.close()
    assert sys.getrefcount(theirs) == count + 1
    view.close()
    settle()
    assert sys.getrefcount(theirs) == count
    theirs.close()


def test_from_handle_refuses(device, stream):
    make = cu.Buffer.from_handle
    with device.allocate(64, stream=stream) as theirs:
        with pytest.raises(TypeError, match="owner must be what keeps the memory"):
            make(theirs.handle, 64, owner=None, stream=stream)
        with pytest.raises(ValueError, match="must not go past"):
            make(theirs.handle, 1 << 44, owner=theirs, stream=stream)
        with pytest.raises(ValueError, match="must not be negative"):
            make(theirs.handle, -1, owner=theirs, stream=stream)
        with pytest.raises(OverflowError):
            make(-1, 1, owner=theirs, stream=stream)
        with pytest.raises(ValueError, match="address of device memory"):
            make(64, 1, owner=theirs, stream=stream)
        with pytest.raises(ValueError, match="past the last address"):
            make((1 << 64) - 1, 2, owner=theirs, stream=stream)
        pinned = cu.PinnedMemoryResource().allocate(64)
        with pinned, pytest.raises(ValueError, match="is pinned memory"):
            make(pinned.handle, 1, owner=pinned, stream=stream)
        closed = device.create_stream()
        closed.close()
        with pytest.raises(cu.ClosedError):
            make(theirs.handle, 1, owner=theirs, stream=closed)
    settle()


# --- to and from CuPy and RMM, whose shapes these are --------------------------------------------


class CuPy(ModuleType):
    """The part of CuPy that allocators see."""

    def __init__(self, device, stream):
        super().__init__("cupy")
        self.arena, self.entered = Arena(device, stream), []
        self.current = self.Current(self, stream.handle)
        self.cuda = SimpleNamespace(
            Device=self.use_device,
            Stream=object,  # CuPy before 14
            ExternalStream=self.use_stream,
            get_current_stream=lambda: self.current,
            UnownedMemory=lambda ptr, size, owner, device_id=-1: SimpleNamespace(
                ptr=ptr, size=size, owner=owner, device_id=device_id
            ),
            MemoryPointer=lambda mem, offset: SimpleNamespace(mem=mem, ptr=mem.ptr + offset),
        )

    class Use:
        id = 0

        def __init__(self, log, what):
            self.log, self.what = log, what

        def __enter__(self):
            self.log.append(self.what)

        def __exit__(self, *error):
            self.log.append("left")

    def use_device(self, ordinal=0):
        return self.Use(self.entered, ("device", ordinal))

    class Current:
        def __init__(self, cupy, handle, ordinal=-1):
            self.cupy, self.handle, self.ordinal = cupy, handle, ordinal

        def use(self):
            self.cupy.current = self

        def __cuda_stream__(self):
            return 0, self.handle

    def use_stream(self, handle, ordinal=-1):
        return self.Current(self, handle, ordinal)

    def malloc(self, nbytes):
        self.entered.append(("stream", self.current.handle, self.current.ordinal))
        return Objects.Memory(self.arena, nbytes)


@pytest.fixture
def cupy(device, stream, monkeypatch):
    made = CuPy(device, stream)
    monkeypatch.setitem(sys.modules, "cupy", made)
    yield made
    settle()
    made.arena.memory.close()


@pytest.mark.parametrize("what", ["pool", "function"])
def test_memory_of_cupy(cupy, stream, what):
    pool = SimpleNamespace(malloc=cupy.malloc) if what == "pool" else cupy.malloc
    used = cupy.current
    x = cu.zeros(4, "f4", stream=stream, resource=ForeignMemoryResource(pool))
    assert cupy.entered == [("device", 0), ("stream", stream.handle, 0), "left"]
    assert cupy.current is used
    assert x.numpy(stream=stream).tolist() == [0] * 4
    assert gone(cupy.arena) == []
    x.close()
    assert gone(cupy.arena) == [(16,)]


def test_memory_for_cupy(cupy, device, stream):
    before = cu.live_objects().get("Buffer", 0)
    memory = for_cupy(device.memory_resource)(64)
    assert cu.live_objects()["Buffer"] == before + 1
    assert (memory.mem.size, memory.mem.device_id) == (64, 0)
    assert memory.ptr == memory.mem.owner.handle
    del memory
    settle()
    assert cu.live_objects().get("Buffer", 0) == before
    with pytest.raises(TypeError, match="resource must be a MemoryResource, not int"):
        for_cupy(5)


def test_cupy_gets_its_own_error_of_too_little_memory(cupy, device, stream):
    """What catches CuPy's error, as CuPy's plans of FFTs do, must go on doing so."""

    class OutOfMemory(MemoryError):
        def __init__(self, size, total):
            super().__init__(f"{size} bytes, {total} in use")

    cupy.cuda.memory = SimpleNamespace(OutOfMemoryError=OutOfMemory)
    cupy.cuda.runtime = SimpleNamespace(memGetInfo=lambda: (100, 1000))
    with pytest.raises(OutOfMemory, match=f"{1 << 50} bytes, 900 in use") as e:
        for_cupy(device.memory_resource)(1 << 50)
    assert isinstance(e.value.__cause__, cu.OutOfMemoryError)


ON_ANOTHER_DEVICE = """
import sys
from types import ModuleType, SimpleNamespace
import cudago as cu
from cudago.allocators import for_cupy, for_rmm

class Default:  # of whatever device is current
    def __cuda_stream__(self):
        return 0, 1

cupy, rmm, current = ModuleType("cupy"), ModuleType("rmm"), 1
cupy.cuda = SimpleNamespace(
    Device=lambda: SimpleNamespace(id=current),
    get_current_stream=Default,
    UnownedMemory=lambda *given: given,
    MemoryPointer=lambda memory, offset: memory,
)
rmm.mr = SimpleNamespace(CallbackMemoryResource=lambda *calls: calls)
sys.modules.update(cupy=cupy, rmm=rmm)
a, b = cu.Device.all()
address, size, buffer, ordinal = for_cupy(b.memory_resource)(64)
assert (size, ordinal, buffer.device) == (64, 1, b)
buffer.fill(1, stream=b.default_stream)
try:
    for_cupy(a.memory_resource)(64)
except ValueError as e:
    assert "memory resource is on device 0, CuPy's current device is 1" in str(e), e
else:
    raise AssertionError("CuPy would use it on device 1")
allocate, deallocate = for_rmm(b.memory_resource)
address = allocate(64, Default())
deallocate(address, 64, Default())
del buffer
cu.testing.settle()
assert not cu.live_objects().get("Buffer"), cu.live_objects()
"""


def test_other_libraries_use_another_device(script, driver):
    if driver == "nvidia" and len(cu.Device.all()) != 2:
        pytest.skip("needs two devices")
    run = script(ON_ANOTHER_DEVICE, CUDAGO_SIM="devices=2")
    assert run.returncode == 0, run.stderr


class Callbacks:
    """RMM's resource that calls functions."""

    def __init__(self, allocate_func, deallocate_func):
        self.allocate_func, self.deallocate_func = allocate_func, deallocate_func


@pytest.fixture
def rmm(monkeypatch):
    module, streams = ModuleType("rmm"), ModuleType("rmm.pylibrmm.stream")
    module.mr = SimpleNamespace(CallbackMemoryResource=Callbacks)
    streams.Stream = lambda stream: ("a stream of RMM over", stream.handle)
    monkeypatch.setitem(sys.modules, "rmm", module)
    monkeypatch.setitem(sys.modules, "rmm.pylibrmm", ModuleType("rmm.pylibrmm"))
    monkeypatch.setitem(sys.modules, "rmm.pylibrmm.stream", streams)
    return module


def test_memory_of_rmm(rmm, device, stream):
    arena = type("Pool", (InOrder,), {"__module__": "rmm.pylibrmm.memory_resource"})(device, stream)
    x = cu.zeros(4, "f4", stream=stream, resource=ForeignMemoryResource(arena))
    assert x.numpy(stream=stream).tolist() == [0] * 4
    x.close()
    assert gone(arena) == [(16, ("a stream of RMM over", stream.handle))]
    arena.memory.close()


def test_memory_for_rmm(rmm, device, stream):
    made = for_rmm(device.memory_resource)
    before = cu.live_objects().get("Buffer", 0)
    with device.create_stream() as other:
        a, b = (made.allocate_func(256, stream) for _ in range(2))
        assert a != b
        assert cu.live_objects()["Buffer"] == before + 2
        assert made.allocate_func(0, stream) == 0
        made.deallocate_func(0, 0, stream)
        made.deallocate_func(a, 256, stream)
        go = held_up(other)
        made.deallocate_func(b, 256, other)
        stream_waits = not stream.is_done
        go.set()
        assert stream_waits, "memory is free behind the stream that RMM named"
        stream.sync()
        with pytest.raises(TypeError, match="does not name its streams"):
            made.allocate_func(256)
    settle()
    assert cu.live_objects().get("Buffer", 0) == before


def test_what_rmm_calls_stays_while_memory_is_out(rmm, device, stream):
    """A pool of RMM's has bare pointers to it, and frees after the resource in Python has gone."""
    made = for_rmm(device.memory_resource)
    before = cu.live_objects().get("Buffer", 0)
    calls = [ref(made.allocate_func), ref(made.deallocate_func)]
    addresses = [made.allocate_func(256, stream) for _ in range(2)]
    del made
    for address in addresses:
        gc.collect()
        assert cu.live_objects()["Buffer"] > before, "freed while RMM uses it"
        assert None not in [call() for call in calls]
        calls[1]()(address, 256, stream)
    settle()
    assert [call() for call in calls] == [None, None]
    assert cu.live_objects().get("Buffer", 0) == before


def test_freeing_for_rmm_raises_nothing(rmm, device, stream, monkeypatch):
    """RMM calls from C++, in which an exception of Python's would be left behind."""
    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: said.append(args.exc_value))
    made = for_rmm(device.memory_resource)
    address = made.allocate_func(256, stream)
    made.deallocate_func(address, 256, None)  # no stream: the memory is rather kept
    made.deallocate_func(address + 1, 256, stream)
    assert [type(e) for e in said] == [TypeError, KeyError]
    made.deallocate_func(address, 256, stream)
    assert len(said) == 2
    with pytest.raises(MemoryError):
        made.allocate_func(1 << 50, stream)


EXIT = """
import sys
from types import ModuleType, SimpleNamespace
import cudago
from cudago.allocators import for_rmm

sys.modules["rmm"] = rmm = ModuleType("rmm")
rmm.mr = SimpleNamespace(CallbackMemoryResource=lambda *functions: functions)
device = cudago.Device()
stream = device.create_stream()
parts = {}  # what is kept of these must not keep this module: held goes when it does, after cudago
exec('''
import os

class DeviceBuffer:
    def __init__(self, functions, handle):
        self.stream = type("Stream", (), {"__cuda_stream__": lambda self: (0, handle)})()
        self.free, self.at = functions[1], functions[0](256, self.stream)

    def __del__(self, write=os.write):
        self.free(self.at, 256, self.stream)
        write(1, b"freed")
''', parts)
held = parts["DeviceBuffer"](for_rmm(device.memory_resource), stream.handle)
"""


def test_freeing_for_rmm_after_exit_is_nothing(script, driver):
    run = script(EXIT, CUDAGO_DRIVER=driver)
    assert (run.returncode, run.stdout, run.stderr) == (0, "freed", "")


def test_the_libraries_are_needed_only_when_used(device, stream, monkeypatch):
    monkeypatch.setitem(sys.modules, "rmm", None)  # as if it were not installed
    with pytest.raises(ImportError):
        for_rmm(device.memory_resource)
    assert callable(for_cupy(device.memory_resource))


def test_nothing_from_an_allocator_that_is_the_devices(device, stream):
    before = device.memory_resource
    device.memory_resource = cu.allocators.ForeignMemoryResource(cu.DeviceMemoryResource(device))
    try:
        assert device.allocate(0, stream=stream).size == 0
    finally:
        device.memory_resource = before
