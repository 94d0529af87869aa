# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of one device that kernels on another one use.

A process has as many devices as its driver was opened with, so each test is a process of its own.
"""

from __future__ import annotations

import pytest

import cudago as cu

START = """
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

def numbers(buffer):
    sa.sync()
    sb.sync()
    return list(buffer[:64].view("i4").numpy(stream=sb))
"""

SCRIPTS = {
    "devices": """
        assert a.can_access_peer(b) and b.can_access_peer(a) and not a.can_access_peer(a)
        for _ in range(2):
            a.enable_peer_access(b)
        for _ in range(2):
            a.disable_peer_access(b)
        for call in a.enable_peer_access, a.disable_peer_access:
            refused(ValueError, "peer must be another device than device 0", lambda: call(a))
            refused(TypeError, "peer must be a Device", lambda: call(1))
        with sa.capture() as graph:
            first = a.allocate(64, stream=a.create_stream())
            cu.launch(sa, config, add, first, 1)
            a.enable_peer_access(b)
        assert len(graph.nodes) == 1
        a.disable_peer_access(b)
        """,
    "streams of other libraries": """
        class Theirs:
            def __init__(self, **what):
                self.__dict__.update(what)
            def __cuda_stream__(self):
                return 0, sb.handle
        class Of:
            def __init__(self, **what):
                self.__dict__.update(what)
        core, torch = Of(device_id=1), Of(index=1)
        for theirs in Theirs(device=torch), Theirs(device=core), Theirs(device_id=1):
            assert cu.Stream(theirs).device is b
            with b.allocate(64, stream=sb) as memory:
                memory.fill(3, stream=theirs)
                assert numbers(memory)[0] == 0x03030303
        for theirs in Theirs(), Theirs(device_id=-1), Theirs(device=Of(index=None)):
            assert cu.Stream(theirs).device is b  # as the driver knows
        """,
    "pools": """
        pool = cu.DeviceMemoryResource(b, pool=cu.PoolOptions())
        before = pool.allocate(64, stream=sb)
        before.fill(0, stream=sb)
        sb.sync()
        words = "parameter 0 of kernel add is on device 1, the kernel on device 0, which has no"
        for arg in before, before.ptr, before.view("i4"), before[:64]:
            refused(ValueError, words, lambda: cu.launch(sa, config, add, arg, 1))
        assert pool.peer_accessible_by == frozenset()
        pool.peer_accessible_by = [a]
        assert pool.peer_accessible_by == {a} and isinstance(pool.peer_accessible_by, frozenset)
        pool.peer_accessible_by = {a}
        after = pool.allocate(64, stream=sb)
        after.fill(0, stream=sb)
        sb.sync()
        for buffer in before, after:
            for arg in buffer, buffer.ptr, buffer.view("i4"), buffer[:64]:
                cu.launch(sa, config, add, arg, 1)
            assert numbers(buffer) == [4] * 16
        part = cu.ArenaMemoryResource(pool, 1 << 14).allocate(64, stream=sb)
        part.fill(0, stream=sa)
        pool.peer_accessible_by = ()
        assert pool.peer_accessible_by == frozenset()
        for call in (
            lambda: part.fill(0, stream=sa),
            lambda: cu.launch(sa, config, add, part, 1),
            lambda: cu.Graph(a).memset(part, 0),
        ):
            refused(ValueError, "which has no access to that memory", call)
        refused(ValueError, words, lambda: cu.launch(sa, config, add, before, 1))
        def assign(*peers):
            pool.peer_accessible_by = peers
        refused(ValueError, "must be other devices than 1", lambda: assign(a, b))
        assert pool.peer_accessible_by == frozenset(), "nothing has changed"
        refused(TypeError, "must be devices, not int", lambda: assign(0))
        pool.close()
        refused(cu.ClosedError, "closed", lambda: pool.peer_accessible_by)
        refused(cu.ClosedError, "closed", lambda: assign(a))
        """,
    "graphs": """
        pool = cu.DeviceMemoryResource(b, pool=cu.PoolOptions())
        x, y = pool.allocate(64, stream=sb), a.allocate(64, stream=sa)
        x.fill(0, stream=sb)
        sb.sync()
        graph = cu.Graph(a)
        words = "is on device 1, the graph on device 0, which has no access"
        refused(ValueError, "parameter 0", lambda: graph.launch(config, add, x, 1))
        refused(ValueError, "src " + words, lambda: graph.memcpy(y, x))
        refused(ValueError, "dst " + words, lambda: graph.memcpy(x, y))
        pool.peer_accessible_by = [a]
        graph.launch(config, add, x, 3, name="add").memcpy(y, x, name="copy")
        with sa.capture() as captured:
            cu.launch(sa, config, add, x, 5)
            y.copy_from(x, stream=sa)
        steps = graph.instantiate(), captured.instantiate()
        for step in steps:
            step.launch(sa)
        assert numbers(x) == [8] * 16
        assert list(y.view("i4").numpy(stream=sa)) == [8] * 16
        step = steps[0]
        z = pool.allocate(64, stream=sb)
        z.fill(1, stream=sb)
        sb.sync()
        step["copy"].update(src=z)
        x.close(), z.close(), pool.close()
        step.launch(sa)
        sa.sync()
        assert list(y.view("u1").numpy(stream=sa)) == [1] * 64
        """,
    "fills of executables": """
        own, other = a.allocate(64, stream=sa), b.allocate(64, stream=sb)
        pool = cu.DeviceMemoryResource(b, pool=cu.PoolOptions())
        pool.peer_accessible_by = [a]
        near = pool.allocate(64, stream=sb)
        graph = cu.Graph(a)
        graph.memset(cu.slot("where", own), 0, name="fill")
        step = graph.instantiate()
        words = "dst is on device 1, the graph on device 0, which has no access to that memory"
        for memory in other, other.view("i4"), other[:32]:
            refused(ValueError, words, lambda: step["fill"].update(memory, 0))
            refused(ValueError, words, lambda: step["fill"].update(dst=memory))
            refused(ValueError, words, lambda: step.bind(where=memory))
        sa.sync()
        for change in (lambda: step["fill"].update(near, 7), lambda: step.bind(where=near)):
            change()
            step.launch(sa)
            sa.sync()
            assert (near.view("u1").numpy(stream=sb) == 7).all()
        """,
    "values that streams write": """
        # The resource is gone; its memory is not.
        far = cu.VirtualMemoryResource(a).allocate(64, stream=sa)
        near = cu.VirtualMemoryResource(a, peers=[b]).allocate(64, stream=sa)
        far.fill(0, stream=sa), near.fill(0, stream=sa)
        sa.sync()
        stream = " is on device 0, the stream on device 1, which has no access to that memory"
        node = " is on device 0, the graph on device 1, which has no access to that memory"
        graph = cu.Graph(b)
        write = graph.write_value(near[:8], 1)
        wait = write.wait_value(near[:8], 1)
        step = graph.instantiate()
        refused(ValueError, "dst" + stream, lambda: sb.write_value(far[:8], 1))
        refused(ValueError, "src" + stream, lambda: sb.wait_value(far[:8], 0))
        refused(ValueError, "dst" + node, lambda: graph.write_value(far[:8], 1))
        refused(ValueError, "src" + node, lambda: graph.wait_value(far[:8], 0))
        for nodes in graph, step:
            refused(ValueError, "dst" + node, lambda: nodes[write.name].update(dst=far[:8]))
            refused(ValueError, "src" + node, lambda: nodes[wait.name].update(src=far[:8]))
        with sb.capture() as captured:
            refused(ValueError, "dst" + stream, lambda: sb.write_value(far[:8], 1))
            refused(ValueError, "src" + stream, lambda: sb.wait_value(far[:8], 0))
            sb.write_value(near[8:16], 5)
        captured.instantiate().launch(sb)
        step.launch(sb)
        sb.sync()
        refused(ValueError, "which has no access", lambda: cu.launch(sb, config, add, far, 1))
        refused(ValueError, "which has no access", lambda: far.fill(0, stream=sb))
        assert list(near.view("i8").numpy(stream=sa)[:2]) == [1, 5]
        assert not far.view("u1").numpy(stream=sa).any()
        """,
    "virtual memory": """
        for peers in ((), [a]):
            resource = cu.VirtualMemoryResource(b, peers=peers)
            big = resource.allocate(1 << 21, stream=sb)
            big.grow(1 << 23)
            big.fill(0, stream=sb)
            sb.sync()
            parts = big, big[(1 << 23) - 64 :]
            for part in parts:
                if peers:
                    cu.launch(sa, config, add, part, 1)
                    assert numbers(part) == [1] * 16
                else:
                    call = lambda: cu.launch(sa, config, add, part, 1)
                    refused(ValueError, "which has no access", call)
        make = cu.VirtualMemoryResource
        refused(ValueError, "peers must be other devices than 1", lambda: make(b, peers=[b]))
        refused(TypeError, "peers must be devices, not str", lambda: make(b, peers="a"))
        wanted = "peers must be an iterable of devices, not Device"
        refused(TypeError, wanted, lambda: make(b, peers=a))
        """,
    "memory of all devices": """
        managed = cu.ManagedMemoryResource(b).allocate(64)
        pinned = cu.PinnedMemoryResource().allocate(64)
        locked = cu.pin(bytearray(64))
        for buffer in managed, pinned, locked:
            memoryview(buffer)[:] = bytes(64)
            cu.launch(sa, config, add, buffer, 1)
            sa.sync()
            cu.launch(sb, config, add, buffer.view("i4"), 1)
            sb.sync()
            assert list(np.frombuffer(buffer, "i4")) == [2] * 16
        graph = cu.Graph(a)
        graph.memset(managed, 0).launch(config, add, managed, 1)
        graph.instantiate().launch(sa)
        sa.sync()
        assert list(np.frombuffer(managed, "i4")) == [1] * 16
        if managed.device.properties.concurrent_managed_access:
            managed.accessed_by = [a, b, "host"]
            assert managed.accessed_by == {a, b, "host"}
            managed.prefetch(a, stream=sb)
            assert managed.last_prefetch_location == a
        """,
    "memory of graphs": """
        with cu.Graph(a) as graph:
            there = graph.allocate(64, device=b, peers=[a], name="there")
            here = there.allocate(64, name="here")
            assert (there.params.device, there.params.peers) == (b, {a})
            assert (here.params.device, here.params.peers) == (a, frozenset())
            assert (there.buffer.device, here.buffer.device) == (b, a)
            ones, out = np.ones(16, "i4"), np.zeros(16, "i4")
            done = here.memcpy(there.buffer, ones).launch(config, add, there.buffer, 4)
            done = done.memcpy(here.buffer, there.buffer).memcpy(out, here.buffer)
            done.free(there.buffer).free(here.buffer)
            with graph.instantiate() as step:
                step.launch(sa)
                step.launch(sa)
                sa.sync()
            assert list(out) == [5] * 16
            refused(ValueError, "on device 0, the kernel on device 1, which has no access",
                    lambda: cu.launch(sb, config, add, here.buffer, 1))
        with cu.Graph(a) as graph:
            alone = graph.allocate(64, device=b)
            refused(ValueError, "which has no access to that memory",
                    lambda: alone.launch(config, add, alone.buffer, 4))
            refused(ValueError, "which has no access to that memory",
                    lambda: alone.memcpy(alone.buffer, ones))
            refused(ValueError, "peers must be other devices than 1",
                    lambda: graph.allocate(64, device=b, peers=[b]))
            refused(ValueError, "peers must be other devices than 0",
                    lambda: graph.allocate(64, peers=[a]))
            refused(TypeError, "peers must be devices", lambda: graph.allocate(64, peers=[1]))
            refused(TypeError, "device", lambda: graph.allocate(64, device=1))
            assert len(graph.nodes) == 1
        """,
    "memory that a graph leaves on another device": """
        graph = cu.Graph(a)
        node = graph.allocate(64, device=b, peers=[a])
        node.memcpy(node.buffer, np.full(16, 3, "i4"))
        left, step = node.buffer, graph.instantiate()
        step.launch(sa)
        sb.wait(sa.record())
        cu.launch(sb, config, add, left, 4)
        assert numbers(left) == [7] * 16
        left.free(stream=sb)
        sb.sync()
        step.launch(sa)  # it is freed in the end, though nobody says so
        step.close()
        graph.close()
        left.close()
        cu.testing.settle()
        assert cu.live_objects().get("Graph", 0) == 0
        """,
    "a graph with memory of two devices is moved": """
        inner, outer = cu.Graph(a), cu.Graph(a)
        node = inner.allocate(64, device=b, peers=[a])
        memory = node.buffer
        node.memcpy(memory, np.full(16, 2, "i4"))
        if cu.driver_version() >= (12, 9):
            outer.embed(inner, move=True).launch(config, add, memory, 1)
            step = outer.instantiate()
            step.launch(sa)
            assert numbers(memory) == [3] * 16
            step.close()
        """,
    "captured memory has the access of its pool": """
        pool = cu.DeviceMemoryResource(a, pool=cu.PoolOptions())
        pool.peer_accessible_by = [b]
        with sa.capture() as graph:
            made = pool.allocate(64, stream=sa)
            made.copy_from(np.full(16, 6, "i4"), stream=sa)
        assert graph.nodes[0].params.peers is None
        assert graph.nodes[0].params.device == a
        graph.instantiate().launch(sa)
        sb.wait(sa.record())
        cu.launch(sb, config, add, made, 2)
        assert numbers(made) == [8] * 16
        """,
    "copies need no access": """
        pool = cu.DeviceMemoryResource(b, pool=cu.PoolOptions())
        x = a.allocate(64, stream=sa)
        y, z = pool.allocate(64, stream=sb), pool.allocate(64, stream=sb)
        x.fill(3, stream=sa)
        sb.wait(sa.record())
        y.copy_from(x, stream=sb)
        assert numbers(y) == [0x03030303] * 16
        y.fill(4, stream=sb)
        sa.wait(sb.record())
        y.copy_to(x, stream=sa)
        y.copy_to(z, stream=sa)  # both are on the other device
        sb.wait(sa.record())
        assert numbers(z) == [0x04040404] * 16
        assert (x.view("i4").numpy(stream=sa) == 0x04040404).all()
        refused(ValueError, "src is on device 0, the stream on device 1",
                lambda: x.view("i4").numpy(stream=sb))
        t, u = cu.full((4, 4), 5, "i4", stream=sa), cu.zeros((4, 4), "i4", stream=sb)
        sb.wait(sa.record())
        u.copy_from(t, stream=sb)
        u[1:3].copy_from(t[:2], stream=sb)
        assert (u.numpy(stream=sb) == 5).all()
        host = cu.pin(bytearray(64))
        x.fill(6, stream=sa), y.fill(7, stream=sb)
        sa.wait(sb.record())
        cu.copy_batch([(host, x), (z, y), (x[:0], y[:0])], stream=sa)
        sb.wait(sa.record())
        assert numbers(z) == [0x07070707] * 16
        assert set(bytes(host)) == {6}
        refused(ValueError, "overlap", lambda: cu.copy_batch([(x, y), (z, x)], stream=sa))
        refused(ValueError, "copy 1: src has 8 bytes, dst 4",
                lambda: cu.copy_batch([(x, y), (z[:4], x[:8])], stream=sa))
        for i in range(50):  # the source is freed behind the copy, on the other device
            source = a.allocate(1 << 16, stream=sa)
            source.fill(i, stream=sa)
            sb.wait(sa.record())
            there = pool.allocate(1 << 16, stream=sb)
            there.copy_from(source, stream=sb)
            source.close()
            refill = a.allocate(1 << 16, stream=sa)
            refill.fill(255, stream=sa)
            out = cu.pin(bytearray(1 << 16))
            there.copy_to(out, stream=sb)
            sb.sync()
            assert set(bytes(out)) == {i}
            there.close(), refill.close()
        """,
    "a copy that fails leaves nothing": """
        from cudago import _core
        x, y = a.allocate(64, stream=sa), b.allocate(64, stream=sb)
        x.fill(1, stream=sa)
        y.fill(2, stream=sb)
        sa.sync(), sb.sync()
        _core._fail_next("cuMemcpyPeerAsync", 1, 999)
        words = "cuMemcpyPeerAsync: CUDA_ERROR_UNKNOWN"
        refused(cu.CUDAError, words, lambda: y.copy_from(x, stream=sb))
        assert numbers(y) == [0x02020202] * 16
        y.copy_from(x, stream=sb)
        x.close()
        assert numbers(y) == [0x01010101] * 16
        y.close()
        cu.testing.settle()
        assert not cu.live_objects().get("Buffer")
        closed = b.create_stream()
        closed.close()
        z = a.allocate(64, stream=sa)
        refused(cu.ClosedError, "stream is closed", lambda: z.copy_to(z, stream=closed))
        """,
    "what needs access says so": """
        pool = cu.DeviceMemoryResource(b, pool=cu.PoolOptions())
        x, y = a.allocate(64, stream=sa), pool.allocate(64, stream=sb)
        host = cu.PinnedMemoryResource().allocate(64)
        words = " is on device 1, the stream on device 0, which has no access to that memory"
        rows = y.view("i4", (4, 4)), np.ones((4, 2), "i4")
        calls = {
            "the memory": lambda: y.fill(1, stream=sa),
            "dst": lambda: y.copy_from(host, stream=sa),
            "src": lambda: y.copy_to(bytearray(64), stream=sa),
        }
        more = {
            "dst": lambda: rows[0][:, 1:3].copy_from(rows[1], stream=sa),
            "src": lambda: cu.copy_batch([(x, y), (host, y)], stream=sa),
        }
        for name, call in [*calls.items(), *more.items()]:
            refused(ValueError, name + words, call)
        t, u = y.view("i4", (4, 4)), x.view("i4", (4, 4))
        ours = {  # kernels of ours, of which errors do not speak
            "the memory": [
                lambda: t[:, 1].fill(1, stream=sa), lambda: y.view("c16").fill(1j, stream=sa),
            ],
            "dst": [lambda: t.copy_from(host.view("i4", (4, 4)).T, stream=sa)],
            "src": [lambda: host.view("i4", (4, 4)).T.copy_from(t, stream=sa)],
        }
        for name, launches in ours.items():
            for call in launches:
                refused(ValueError, name + words, call)
                with sa.capture():
                    refused(ValueError, name + words, call)
        other = words.replace("the stream", "the graph")
        with cu.Graph(a) as graph:
            refused(ValueError, "dst" + other, lambda: graph.memset(t[:, 1], 1))
            refused(ValueError, "dst" + other, lambda: graph.memcpy(t[:2, :2], t[2:, 2:].T))
            refused(ValueError, "src" + other, lambda: graph.memcpy(host.view("i4", (4, 4)).T, t))
        with sa.capture() as graph:
            for name, call in calls.items():
                refused(ValueError, name + words, call)
            refused(ValueError, "src" + words, lambda: x.copy_from(y, stream=sa))
            x.fill(7, stream=sa)
        assert len(graph.nodes) == 1
        pool.peer_accessible_by = [a]
        for call in [*calls.values(), *more.values(), *sum(ours.values(), [])]:
            call()
        with sa.capture() as graph:
            y.fill(9, stream=sa)
            x.copy_from(y, stream=sa)
            y.copy_to(host, stream=sa)
        graph.instantiate().launch(sa)
        sa.sync()
        assert bytes(host) == bytes([9]) * 64
        """,
    "frees wait for the other device": """
        pool = cu.DeviceMemoryResource(b, pool=cu.PoolOptions())
        pool.peer_accessible_by = [a]
        for i in range(100):
            x = pool.allocate(1 << 16, stream=sb)
            x.fill(0, stream=sb)
            sa.wait(sb.record())
            cu.launch(sa, config, add, x, 1)
            x.close()
        sa.sync()
        sb.sync()
        """,
}


@pytest.fixture
def two_devices(driver):
    if driver == "nvidia":
        devices = cu.Device.all()
        if len(devices) < 2 or not devices[0].can_access_peer(devices[1]):
            pytest.skip("needs two devices that can access each other's memory")


@pytest.mark.parametrize("name", SCRIPTS)
def test_peers(driver, two_devices, script, name):
    settings = "devices=2,faults=0" if "_fail_next" in SCRIPTS[name] else "devices=2"
    if driver == "nvidia" and "faults" in settings:
        pytest.skip("the simulated driver's calls can be made to fail")
    run = script(script.dedent(START) + script.dedent(SCRIPTS[name]), CUDAGO_SIM=settings)
    assert run.stderr == ""
    assert run.returncode == 0


def test_fault_without_access(driver, script):
    """The error says whose memory it is."""
    if driver == "nvidia":
        pytest.skip("a fault would end the use of the device")
    run = script(
        script.dedent(START)
        + script.dedent("""
            x = b.allocate(64, stream=sb)
            sb.sync()
            cu.launch(sa, config, add, int(x.ptr), 1)
            refused(
                cu.DeviceFaultError,
                "of device 1, to which device 0 has no access: cuMemPoolSetAccess would give it",
                sa.sync,
            )
            """),
        CUDAGO_SIM="devices=2",
    )
    assert run.returncode == 0, run.stderr


def test_the_device_of_a_graphs_memory_is_reset(two_devices, script):
    """Nothing is used that is gone."""
    run = script(
        script.dedent(START)
        + script.dedent("""
            graph = cu.Graph(a)
            node = graph.allocate(64, device=b, peers=[a])
            node.memcpy(node.buffer, np.full(16, 3, "i4"))
            memory, step = node.buffer, graph.instantiate()
            step.launch(sa)
            sa.sync()
            sb.close()
            refused(ValueError, "1 executable(s) of graphs of other devices", b.reset)
            memory.free(stream=sa)
            step.launch(sa)
            sa.sync()
            step.close()
            b.reset()
            assert memory.is_closed
            refused(cu.ClosedError, "reset", lambda: node.buffer)
            refused(cu.ClosedError, "reset", graph.instantiate)
            graph.close()
            memory.close()
            sa.sync()
            cu.testing.settle()
            """),
        CUDAGO_SIM="devices=2",
    )
    assert run.returncode == 0, run.stderr
