# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Races: in shared memory, in global memory, between streams, nodes and copies, with the host."""

from __future__ import annotations

import gc
import re
import time
import weakref

import pytest

import cudago as cu
from cudago.testing import hold

from .kernels import here, line_of, one_report

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


def test_missing_barrier(device, stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 64), planted["reverse"], ints, ints[512:768])
        stream.sync()
    report = one_report(e)
    write, read = line_of("m[threadIdx.x] = in"), line_of("m[63 - threadIdx.x]")
    assert report.startswith("race in shared memory of kernel reverse, block (0,0,0), thread (")
    assert re.search(rf"/planted\.cu:{write}, PTX line \d+: st\.shared\.f32 ", report)
    assert re.search(rf"/planted\.cu:{read}, PTX line \d+: ld\.shared\.f32 ", report)
    assert "no barrier lies between them" in report
    assert stream.is_done  # the device is as usable as before


def test_missing_syncwarp(stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 32), planted["neighbours"], ints)
        stream.sync()
    report = one_report(e)
    assert f"/planted.cu:{line_of('m[threadIdx.x ^ 1]')}, PTX line " in report
    assert "no __syncwarp lies between them" in report


def test_missing_barrier_after_atomics(stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 256), planted["count"], ints, ints)
    report = one_report(e)
    assert f"/planted.cu:{line_of('atomicAdd')}" in report
    assert "updated them" in report or "it updates 4 bytes at offset" in report


def test_blocks_that_race(stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(3, 32), planted["shift"], ints)
    report = next(r for r in str(e.value).splitlines() if "run in any order" in r)
    assert report.startswith("race in global memory in kernel shift, block (")
    assert report.count(f"/planted.cu:{line_of('p[i + 1]')}") == 2
    assert "the blocks of a launch run in any order" in report
    assert "device memory of 1024 bytes" in report
    assert "parameter 0 (shift_param_0) points to it" in report


def test_streams_that_race(device, stream, correct, ints):
    config = cu.LaunchConfig(1, 32)
    with device.create_stream() as other:
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races"), hold(stream):
            cu.launch(stream, config, correct["increment"], ints), (first := here())
            cu.launch(other, config, correct["increment"], ints), (second := here())
        report = str(e.value).splitlines()[1]
        assert re.search("kernel increment in stream .*, launched at ", report)
        assert first in report or second in report
        assert "nothing orders the two: they need one stream, an event or an edge" in report


@pytest.mark.parametrize("how", ["stream", "event", "query"])
def test_the_host_has_seen_the_end_of_one(device, stream, correct, ints, how):
    """That orders what the host queues later, and not what it has queued before."""
    config = cu.LaunchConfig(1, 32)
    with device.create_stream() as other:
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races"), hold(stream):
            cu.launch(stream, config, correct["increment"], ints)
            cu.launch(other, config, correct["increment"], ints), (seen := here())
            if how == "stream":
                other.sync()
            elif how == "event":
                other.record().sync()
            else:
                while not other.is_done:
                    pass
            cu.launch(other, config, correct["increment"], ints[512:])  # one more wait
            other.sync()
        report = str(e.value).splitlines()[1]
        assert re.search(r"kernel increment in stream \d+, launched at ", report)
        assert seen in report
        assert "nothing orders the two" in report


class Lent:
    """Memory as another library's object, which a launch keeps."""

    def __init__(self, buffer):
        self.__cuda_array_interface__ = {
            "shape": (buffer.nbytes // 4,),
            "typestr": "<i4",
            "data": (buffer.handle, False),
            "version": 3,
        }


def by_object(stream, config, increment, ints):
    cu.launch(stream, config, increment, Lent(ints))


def by_finalizer(stream, config, increment, ints):
    cu.launch(stream, config, increment, ints)
    cu.finalize(Lent(ints), len, "", stream=stream)  # dropped at once


def by_graph(stream, config, increment, ints):
    with cu.Graph() as graph:
        graph.launch(config, increment, ints)
        with graph.instantiate() as step:
            step.launch(stream)


def by_stream(stream, config, increment, ints):
    with stream.device.create_stream() as closed:
        cu.launch(closed, config, increment, ints)
        stream.wait(closed.record())


def by_collection(stream, config, increment, ints):
    by_graph(stream, config, increment, ints)  # from now on, collections ask
    gc.collect()


def by_memory(stream, config, increment, ints):
    cu.launch(stream, config, increment, ints)
    with cu.PinnedMemoryResource() as resource:
        resource.allocate(64).close()  # the free waits for the device


def by_code(stream, config, increment, ints):
    cu.launch(stream, config, increment, ints)
    cu.Program('extern "C" __global__ void gone() {}').compile()["gone"]  # dropped at once


WAYS = [by_object, by_finalizer, by_graph, by_stream, by_collection, by_memory, by_code]
BOUND_S = 1  # then the background asks


@pytest.mark.parametrize("how", WAYS)
def test_only_upkeep_has_seen_the_end_of_one(device, stream, correct, ints, how):
    """It is looked at in the background, which is no wait of the program."""
    config = cu.LaunchConfig(1, 32)
    with (
        device.create_stream() as other,
        cu.PinnedMemoryResource() as resource,
        resource.allocate(4) as flag,
    ):
        for _ in range(10):
            memoryview(flag).cast("B")[:] = bytes(4)
            with cu.sim.check("races", raises=False) as found:
                how(stream, config, correct["increment"], ints)
                cu.launch(stream, cu.LaunchConfig(1, 1), correct["set"], Lent(flag), 0, 1)
                while not any(memoryview(flag)):  # which orders nothing
                    pass
                began = time.monotonic()
                time.sleep(0.1)  # the background looks each millisecond, unless it puts that off
                gc.collect()
                cu.launch(other, config, correct["increment"], ints)
                was_late = time.monotonic() - began > 0.8 * BOUND_S
            device.sync()
            if found or not was_late:  # not on a machine that was too busy
                break
        assert any("nothing orders the two" in text for text in found)


def test_a_program_that_never_waits(stream, correct, ints):
    """What its work has used is released, somewhat later."""
    config = cu.LaunchConfig(1, 32)
    with cu.sim.check("races"):
        lent = Lent(ints)
        gone = weakref.ref(lent)
        cu.launch(stream, config, correct["increment"], lent)
        del lent
        until = time.monotonic() + 30
        while gone() and time.monotonic() < until:
            time.sleep(0.01)
        assert not gone()


def test_many_have_ended_while_a_stream_is_behind(device, stream, correct, ints):
    """The host's waits order what is queued after them, whatever else is pending."""
    config = cu.LaunchConfig(1, 32)
    with device.create_stream() as other, cu.sim.check("races"):
        with hold(stream):
            cu.launch(stream, config, correct["increment"], ints)
            for _ in range(30):
                with device.create_stream() as third:
                    cu.launch(third, config, correct["increment"], ints[512:])
                    third.sync()
                    cu.launch(other, config, correct["increment"], ints[512:])
                    other.sync()
        stream.sync()


def test_streams_in_order(device, stream, correct, ints):
    config = cu.LaunchConfig(1, 32)
    with device.create_stream() as other, cu.sim.check():
        cu.launch(stream, config, correct["increment"], ints)
        other.wait(stream.record())
        cu.launch(other, config, correct["increment"], ints)
        other.sync()
        ints.fill(0, stream=stream)


def test_nodes_that_race(device, stream, correct, ints):
    config = cu.LaunchConfig(1, 32)
    with cu.Graph() as graph:
        left = graph.launch(config, correct["increment"], ints, name="left")
        graph.launch(config, correct["increment"], ints, name="right")
        with graph.instantiate() as step, pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
            step.launch(stream)
        found = str(e.value)
        assert re.search('graph launch, node "(left|right)": race in global memory in ', found)
        assert re.search('kernel increment, node "(left|right)" of a graph launch', found)
    with cu.Graph() as graph:
        left = graph.launch(config, correct["increment"], ints, name="left")
        left.launch(config, correct["increment"], ints, name="right")
        with graph.instantiate() as step, cu.sim.check():
            step.launch(stream)
            step.launch(stream)


def test_a_copy_that_races(device, stream, correct, ints):
    with (
        device.create_stream() as other,
        cu.PinnedMemoryResource() as resource,
        resource.allocate(1024) as host,
    ):
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races"), hold(other):
            ints.copy_to(host, stream=other)
            cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], ints)
        assert re.search("a copy of 1024 bytes", str(e.value))


def test_the_host_reads_too_early(device, stream, ints):
    with cu.PinnedMemoryResource() as resource, resource.allocate(1024) as host:
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races", "host"), hold(stream):
            ints.copy_to(host, stream=stream)
            bytes(memoryview(host)), (at := here())
        assert re.search("race in global memory in a copy of 1024 bytes in stream", str(e.value))
        assert f"the host at {at} read them; the host did not wait for the stream" in str(e.value)
        with cu.sim.check():
            ints.copy_to(host, stream=stream)
            stream.sync()
            bytes(memoryview(host))
