# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that are called when memory is allocated and freed."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle


class Told:
    """What hooks are told, in order."""

    def __init__(self):
        self.live, self.seen = {}, []

    def allocate(self, allocation):
        self.live[allocation] = allocation.size
        self.seen.append(("+", allocation.size))

    def free(self, allocation):
        del self.live[allocation]
        self.seen.append(("-", allocation.size))

    def hooks(self):
        return cu.memory_hooks(on_allocate=self.allocate, on_free=self.free)


def test_every_kind_of_memory_is_told(device, stream, pinned):
    resources = [
        device.memory_resource,
        cu.DeviceMemoryResource(device, pool=cu.PoolOptions()),
        cu.PinnedMemoryResource(),
        cu.VirtualMemoryResource(device),
    ]
    if device.properties.managed_memory:
        resources.append(cu.ManagedMemoryResource(device))
    told = Told()
    with told.hooks():
        for i, resource in enumerate(resources, 1):
            buffer = resource.allocate(i * 64, stream=stream)
            (allocation,) = told.live
            assert (allocation.handle, allocation.size) == (buffer.handle, i * 64)
            assert (allocation.kind, allocation.device) == (buffer.kind, buffer.device)
            assert allocation.site.partition(":")[0] == __file__
            view = buffer[:8]
            buffer.close()
            assert told.live
            view.close()
            settle()
            assert not told.live
    assert told.seen == [(sign, i * 64) for i in range(1, len(resources) + 1) for sign in "+-"]
    for resource in resources[1:]:
        resource.close()


def test_only_within_the_block(device, stream):
    told = Told()
    before = device.allocate(64, stream=stream)
    hooks = told.hooks()
    assert "not in use" in repr(hooks)
    for _ in range(2):
        with hooks as entered:
            assert entered is hooks
            before.view("u1").close()
            inside = device.allocate(32, stream=stream)
            with pytest.raises(RuntimeError, match="memory_hooks> is in use: make another"):
                hooks.__enter__()
        inside.close()
        device.allocate(16, stream=stream).close()
    before.close()
    assert told.seen == [("+", 32)] * 2


def test_several_hooks_in_the_order_of_their_blocks(device, stream):
    seen = []
    first = cu.memory_hooks(on_allocate=lambda a: seen.append(1), on_free=lambda a: seen.append(-1))
    second = cu.memory_hooks(
        on_allocate=lambda a: seen.append(2), on_free=lambda a: seen.append(-2)
    )
    with first, second:
        device.allocate(8, stream=stream).close()
    with second, first:
        device.allocate(8, stream=stream).close()
    assert seen == [1, 2, -1, -2, 2, 1, -2, -1]


def test_a_limit(device, stream):
    told = Told()

    def limit(allocation):
        if sum(told.live.values()) > 100:
            raise MemoryError(f"no more than 100 bytes, got {allocation.size}")

    with told.hooks(), cu.memory_hooks(on_allocate=limit):
        buffer = device.allocate(64, stream=stream)
        with pytest.raises(MemoryError, match="no more than 100 bytes, got 65"):
            device.allocate(65, stream=stream)
        assert list(told.live.values()) == [64]
        buffer.close()
        device.allocate(65, stream=stream).close()
    assert not told.live


def test_a_hook_that_refuses_is_not_told_of_the_end(device, stream):
    freed = []

    def refuse(allocation):
        raise KeyError(allocation.size)

    with cu.memory_hooks(on_allocate=refuse, on_free=freed.append):
        for _ in range(2):
            with pytest.raises(KeyError, match="8"):
                device.allocate(8, stream=stream)
            with pytest.raises(KeyError):
                cu.zeros(2, "f4", stream=stream)
    assert freed == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_when_memory_is_freed(error, device, stream, monkeypatch):
    caught, told = [], Told()
    monkeypatch.setattr("sys.unraisablehook", caught.append)

    def fail(allocation):
        raise error(allocation.size)

    with cu.memory_hooks(on_free=fail), told.hooks():
        device.allocate(8, stream=stream).close()
    assert not told.live
    assert [(type(c.exc_value), c.object) for c in caught] == [(error, fail)]


def test_what_hooks_allocate_is_not_told(device, stream):
    told, kept = Told(), []

    def allocate(allocation):
        told.allocate(allocation)
        kept.append(device.allocate(1, stream=stream))
        device.allocate(2, stream=stream).close()

    def free(allocation):
        told.free(allocation)
        device.allocate(3, stream=stream).close()

    with cu.memory_hooks(on_allocate=allocate, on_free=free):
        device.allocate(8, stream=stream).close()
        kept.pop().close()
    assert told.seen == [("+", 8), ("-", 8)]


def test_a_hook_that_frees_is_told_of_that_afterwards(device, stream):
    held, order = [], []

    def free(allocation):
        order.append(("begin", allocation.size))
        if held:
            held.pop().close()
        order.append(("end", allocation.size))

    with cu.memory_hooks(on_free=free):
        held.append(device.allocate(16, stream=stream))
        device.allocate(8, stream=stream).close()
    assert order == [("begin", 8), ("end", 8), ("begin", 16), ("end", 16)]


def test_hooks_that_close_and_remove_what_is_in_use(device):
    stream = device.create_stream()
    pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
    seen = []

    def allocate(allocation):
        seen.append(allocation.size)
        hooks.__exit__(None, None, None)
        stream.close()
        pool.close()
        gc.collect()

    hooks = cu.memory_hooks(on_allocate=allocate, on_free=seen.append)
    with hooks:
        buffer = pool.allocate(8, stream=stream)
    assert not buffer.is_closed
    buffer.close()
    assert seen == [8]
    with pytest.raises(cu.ClosedError):
        pool.allocate(8, stream=device.default_stream)


def test_removed_by_another_hook(device, stream):
    seen = []
    second = cu.memory_hooks(on_allocate=seen.append, on_free=seen.append)
    first = cu.memory_hooks(on_allocate=lambda a: second.__exit__(None, None, None))
    with first, second:
        device.allocate(8, stream=stream).close()
    assert seen == []


def test_threads(device):
    told, done = Told(), []

    def work():
        with device.create_stream() as stream:
            for i in range(50):
                with cu.memory_hooks(on_allocate=lambda a: None):
                    device.allocate(i + 1, stream=stream).close()
        done.append(True)

    with told.hooks():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        settle()
    assert len(done) == 4
    assert not told.live
    assert len(told.seen) == 400


def test_captures_and_graphs(device, stream):
    told = Told()
    with told.hooks():
        with stream.capture() as graph:
            x = cu.zeros(4, "f4", stream=stream)
        assert list(told.live.values()) == [16]
        buffer = device.allocate(32, stream=stream)
        graph.memset(buffer, 1)
        buffer.close()
        assert 32 in told.live.values()
        x.close()
        graph.close()
        settle()
        assert not told.live


def test_resources_written_in_python(device, stream):
    class Half(cu.MemoryResource):
        def allocate(self, nbytes, *, stream):
            return device.memory_resource.allocate(2 * nbytes, stream=stream)[:nbytes]

    told = Told()
    with told.hooks():
        cu.empty(8, "u1", stream=stream, resource=Half()).close()
    assert told.seen == [("+", 16), ("-", 16)]


def test_what_is_refused():
    with pytest.raises(TypeError, match="on_allocate must be callable, not int"):
        cu.memory_hooks(on_allocate=5)
    with pytest.raises(TypeError, match="on_free must be callable, not str"):
        cu.memory_hooks(on_free="x")
    with pytest.raises(TypeError, match="is not made by itself"):
        cu.Allocation()
    with cu.memory_hooks():
        pass


def test_what_on_free_raises_is_told_with_its_traceback(script, driver):
    done = script("""
        import cudago as cu
        from cudago.testing import settle
        device = cu.Device()
        stream = device.create_stream()
        told = []

        def broken(allocation):
            raise ValueError("boom")

        others = cu.memory_hooks(on_free=lambda a: told.append(a.size))
        with cu.memory_hooks(on_free=broken), others:
            for size in (8, 16):
                device.allocate(size, stream=stream).close()
            settle()
        print(told)
        """)
    assert (done.returncode, done.stdout) == (0, "[8, 16]\n")
    assert done.stderr.count("Exception ignored in: <function broken") == 2
    assert done.stderr.count("in broken") == 2
    assert done.stderr.count("ValueError: boom") == 2


def test_an_unraisable_hook_is_given_what_python_gives(device, stream, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)

    def broken(allocation):
        raise ValueError("boom")

    with cu.memory_hooks(on_free=broken):
        device.allocate(8, stream=stream).close()
        settle()
    (args,) = seen
    assert (args.exc_type, args.object) == (ValueError, broken)
    assert str(args.exc_value) == "boom"
    assert args.exc_traceback.tb_frame.f_code is broken.__code__


def test_memory_that_ends_is_nobodys_any_more(device):
    """What ``on_free`` takes for a view of the memory must not hold it: its end is decided."""
    resource, kinds = cu.PinnedMemoryResource(), []

    def look(allocation):
        tensor = cu.from_dlpack(alias)
        kinds.append(tensor.buffer.kind)
        tensor.close()

    with cu.memory_hooks(on_free=look):
        buffer = resource.allocate(4096)
        alias = np.ctypeslib.as_array((ctypes.c_uint8 * 4096).from_address(int(buffer.handle)))
        memoryview(buffer).release()
        look(buffer)  # now it is known by its address
        buffer.close()
        settle()
    assert kinds == ["pinned", "foreign"]
