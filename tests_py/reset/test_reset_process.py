# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Device.reset in processes of its own: after faults, at exit, with other devices."""

from __future__ import annotations

import re

import pytest

FAULTY = r"""
extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }
extern "C" __global__ void fault(int* p) { *(int*)8 = 1; }
"""

FAULT = """
import cudago as cu
device = cu.Device()
code = cu.Program(SOURCE, "c++").compile()
one = cu.LaunchConfig(grid=1, block=1)

def work():
    with device.create_stream() as stream:
        values = cu.zeros((64,), "i4", stream=stream)
        cu.launch(stream, cu.LaunchConfig(grid=1, block=64), code["add"], values, 3)
        assert (values.numpy(stream=stream) == 3).all()

def broken():
    stream = device.create_stream()
    values = cu.zeros((64,), "i4", stream=stream)
    graph = cu.Graph()
    graph.launch(one, code["fault"], values)
    graph.instantiate().launch(stream)
    try:
        stream.sync()
    except cu.DeviceFaultError:
        return stream, values, graph
    raise AssertionError("there was no fault")
"""


def with_faults(script, text: str):
    """Run a script in a process of its own: a fault may outlive a reset on a GPU."""
    return script(f"SOURCE = {FAULTY!r}\n" + FAULT + script.dedent(text))


@pytest.mark.gpu
def test_refused_while_another_library_uses_the_device(script, driver):
    """Its threads would crash: JAX has one that keeps querying its streams."""
    run = script(
        """
        import ctypes
        import cudago as cu
        libcuda = ctypes.CDLL("libcuda.so.1")
        device = cu.Device()
        stream = device.create_stream()
        context = ctypes.c_void_p()
        assert libcuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        for _ in range(2):
            try:
                device.reset()
                raise AssertionError("the reset was not refused")
            except ValueError as e:
                assert "device 0 cannot be reset: another library of this process" in str(e), e
            assert not stream.is_closed
            assert cu.zeros((8,), "i4", stream=stream).numpy(stream=stream).sum() == 0
        assert libcuda.cuDevicePrimaryCtxRelease_v2(0) == 0
        device.reset()
        assert stream.is_closed
        device.create_stream().sync()
        """
    )
    assert run.returncode == 0, run.stderr


def test_after_a_fault(script, driver):
    run = with_faults(
        script,
        """
        from cudago.testing import settle
        for _ in range(3):
            old = broken()
            try:
                device.create_stream().sync()
                raise AssertionError("the fault was not sticky")
            except cu.DeviceFaultError as e:
                assert "each call on it fails until Device.reset()" in e.__notes__[0]
            try:
                device.reset()
            except cu.DeviceFaultError as e:
                assert "only a new process" in str(e)
                break
            assert all(thing.is_closed for thing in old)
            work()
            del old
        else:
            del code
            settle()
            assert cu.live_objects() == {}, cu.live_objects()
        print("done")
        """,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


@pytest.mark.parametrize(
    "end", ["", "del old", "device.reset()", "work()", "import os; os._exit(0)"]
)
def test_exit_after_a_reset(script, driver, end):
    run = with_faults(
        script,
        f"""
        old = broken()
        try:
            device.reset()
            {end}
        except cu.DeviceFaultError as e:
            assert "only a new process" in str(e)
        """,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_in_a_forked_child(script, driver):
    run = with_faults(
        script,
        """
        import os, warnings
        warnings.simplefilter("ignore")
        stream = device.create_stream()
        buffer = device.allocate(64, stream=stream)
        device.reset()
        child = os.fork()
        if child == 0:
            try:
                device.reset()
            except RuntimeError as e:
                assert "forked" in str(e)
                del stream, buffer
                os._exit(3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        device.reset()
        work()
        """,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


# --- other devices

TWO = """
import numpy as np, cudago as cu
from cudago.testing import hold, settle
first, second = cu.Device.all()
code = cu.Program(SOURCE, "c++").compile()
wide = cu.LaunchConfig(grid=1, block=64)

def work(device):
    with device.create_stream() as stream:
        values = cu.zeros((64,), "i4", stream=stream)
        cu.launch(stream, wide, code["add"], values, 3)
        assert (values.numpy(stream=stream) == 3).all()

def lost(use):
    try:
        use()
    except cu.ClosedError as e:
        assert "device 1 was reset" in str(e), e
    else:
        raise AssertionError("it was not lost")
"""

TWO_DEVICES = {
    "each its own": """
        mine, theirs = first.create_stream(), second.create_stream()
        a, b = first.allocate(256, stream=mine), second.allocate(256, stream=theirs)
        kernel = code["add"]
        work(first)
        work(second)
        second.reset()
        assert not mine.is_closed and not a.is_closed and theirs.is_closed and b.is_closed
        work(first)
        work(second)
        first.reset()
        assert mine.is_closed and a.is_closed
        work(first)
        work(second)
    """,
    "pinned memory is the first one's": """
        resource = cu.PinnedMemoryResource()
        with resource.allocate(64) as pinned:
            second.reset()
            memoryview(pinned)[:] = bytes(64)
            managed = cu.ManagedMemoryResource(second).allocate(64, stream=second.create_stream())
            try:
                second.reset()
                raise AssertionError("it was not refused")
            except ValueError as e:
                assert "device 1 cannot be reset: 1 allocation(s)" in str(e)
            managed.close()
        second.reset()
        assert not resource.is_closed
        first.reset()
        assert resource.is_closed
    """,
    "copies between them": """
        mine, theirs = first.create_stream(), second.create_stream()
        a, b = first.allocate(256, stream=mine), second.allocate(256, stream=theirs)
        second.memory_resource.peer_accessible_by = [first]
        a.copy_from(b, stream=mine)
        b.copy_to(a, stream=theirs)
        used_there = first.allocate(256, stream=mine)
        b.copy_from(used_there, stream=theirs)
        event = theirs.record()
        graph = cu.Graph(first)
        graph.memcpy(a, b, name="copy")
        step = graph.instantiate()
        step.launch(mine)
        first.sync()
        second.reset()
        lost(lambda: a.copy_from(b, stream=mine))
        lost(lambda: graph.memcpy(a, b))
        lost(lambda: step["copy"].update(src=b))
        lost(lambda: mine.wait(event))
        lost(lambda: a.copy_from(b.ptr, stream=mine))
        used_there.close()  # in the order of what the other device did with it
        mine.sync()
        a.fill(1, stream=mine)
        mine.sync()
        work(first)
        work(second)
    """,
    "one lost while it is looked at": """
        mine, theirs = first.create_stream(), second.create_stream()
        b = second.allocate(256, stream=theirs)

        class Resets:  # evaluated after what comes before it
            def __index__(self):
                second.reset()
                return 3

        lost(lambda: cu.launch(theirs, wide, code["add"], b, Resets()))
        work(second)
        theirs = second.create_stream()
        b = second.allocate(256, stream=theirs)
        other = cu.Graph(second)
        lost(lambda: other.launch(wide, code["add"], b, Resets()))
        theirs = second.create_stream()
        lost(lambda: second.allocate(Resets(), stream=theirs))
        work(second)
    """,
    "what runs on the other one": """
        mine = first.create_stream()
        values = cu.zeros((64,), "i4", stream=mine)
        with hold(mine):
            cu.launch(mine, wide, code["add"], values, 7)
            second.reset()
            assert not mine.is_done
        assert (values.numpy(stream=mine) == 7).all()
    """,
    "pageable memory in use": """
        stream = second.create_stream()
        host = np.zeros(64, "i4")
        graph = cu.Graph(second)
        graph.launch(wide, code["add"], host, 1)
        step = graph.instantiate()
        step.launch(stream)
        cu.launch(stream, wide, code["add"], host, 1)
        second.reset()
        del graph, step, stream
        settle()
        stream = second.create_stream()
        cu.launch(stream, wide, code["add"], host, 1)
        stream.sync()
    """,
    "finalizers": """
        calls = []
        class Thing: pass
        thing, other = Thing(), Thing()
        stream = second.create_stream()
        cu.finalize(thing, calls.append, 1, stream=stream)
        cu.finalize(other, calls.append, 2, stream=stream)
        del thing
        second.reset()
        settle()
        del other
        settle()
        assert sorted(calls) == [1, 2], calls
    """,
    "again and again": """
        stream = second.create_stream()
        held = second.allocate(64, stream=stream)
        for _ in range(300):
            second.reset()
        assert stream.is_closed and held.is_closed
        work(second)
    """,
}


@pytest.mark.parametrize("name", TWO_DEVICES)
def test_with_two_devices(script, name):
    run = script(
        f"SOURCE = {FAULTY!r}\n" + TWO + script.dedent(TWO_DEVICES[name]),
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="devices=2,hostile=1,pageable=1",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


NAMED = """
import sys
import cudago as cu

device = cu.Device()
old = device.create_stream()
old.handle  # from now on it is always asked whether it is capturing
device.reset()
with device.create_stream() as stream:
    buffer = device.allocate(1 << 20, stream=stream)
print("RESET", file=sys.stderr, flush=True)
for use in (
    lambda: buffer.copy_from(bytearray(1 << 20), stream=old),
    lambda: buffer.fill(0, stream=old),
    lambda: old.is_capturing,
):
    try:
        use()
    except cu.ClosedError as e:
        assert "was reset" in str(e)
    else:
        raise AssertionError("the stream was lost")
buffer.close()
"""


def test_what_is_lost_is_not_named(driver, script):
    """No driver call gets the old context or a stream of it: others may have the handles by now."""
    if driver == "nvidia":
        pytest.skip("NVIDIA's driver may give the new context the old one's handle")
    run = script(NAMED, CUDAGO_TRACE="1")
    assert run.returncode == 0, run.stderr
    before, after = run.stderr.split("RESET\n")
    (old, _) = re.findall(r"cuDevicePrimaryCtxRetain.* = (0x\w+),", before)
    (stream, _) = re.findall(r"cuStreamCreateWithPriority.* = (0x\w+),", before)
    assert "cuMemFreeAsync" in after
    assert f"ctx={old})" in before
    assert f"ctx={old})" not in after
    assert f"s={stream})" not in after


def test_order_with_others_after_a_reset(driver, script):
    """What orders our streams and theirs is made anew."""
    run = script(
        """
        import cudago as cu

        class Theirs:
            def __init__(self, buffer, stream):
                self.__cuda_array_interface__ = {
                    "shape": (64,), "typestr": "<i4", "version": 3,
                    "data": (int(buffer.ptr), False), "stream": stream.handle,
                }

        device = cu.Device()
        for number in range(3):
            with device.create_stream() as stream, device.create_stream() as their_stream:
                buffer, other = (device.allocate(256, stream=stream) for _ in range(2))
                their_stream.wait(stream)
                other.fill(number.to_bytes(4, "little"), stream=their_stream)
                buffer.copy_from(Theirs(other, their_stream), stream=stream)
                host = bytearray(256)
                buffer.copy_to(host, stream=stream)
                stream.sync()
                assert host == number.to_bytes(4, "little") * 64
            device.reset()
        """
    )
    assert run.stderr == ""
    assert run.returncode == 0


def test_default_streams_of_a_lost_context_are_dropped(driver, script):
    run = script(
        """
        import cudago as cu
        from cudago._gopy import api
        from cudago.testing import settle

        device = cu.Device()
        device.default_stream.sync()
        there = api.live_streams()
        assert there
        for _ in range(3):
            device.reset()
            device.default_stream.sync()
            settle()
            assert api.live_streams() == there
        """
    )
    assert run.stderr == ""
    assert run.returncode == 0
