# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Device.reset in processes of its own: after faults, at exit, beside other devices."""

from __future__ import annotations

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
            except cu.DeviceFaultError:
                pass
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
