# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graph launches are refused if a node refers to memory that is gone."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cudago as cu
from cudago.testing import settle

from .kernels import here, one_report

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)


def test_dangling_operands_are_named_before_anything_runs(device, stream, correct, ints):
    one = cu.LaunchConfig(1, 1)
    stale = device.allocate(64, stream=stream)
    with cu.Graph() as graph:
        first = graph.launch(one, correct["set"], ints, 0, 5, name="first")
        first.launch(one, correct["set"], int(stale.ptr) + 16, 0, 5, name="second")
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
            with cu.sim.check():  # for the line
                stale.close(), (at := here())
            ints.fill(0, stream=stream)
            with pytest.raises(cu.CheckError) as e:
                step.launch(stream)
            report = one_report(e)
            assert report.startswith(
                'graph launch refused, nothing ran: node "second": kernel set, parameter 0 '
            )
            assert "at offset 16 of freed device memory of 64 bytes at 0x" in report
            assert "allocated at cuMemAllocAsync (buffer " in report
            assert f"freed at {at} (cuMemFreeAsync)" in report
            stream.sync()
            out = bytearray(4)
            ints[:4].copy_to(out, stream=stream)
            stream.sync()
            assert out == bytes(4)  # the first node did not run
            step["second"].update(one, correct["set"], ints, 1, 5)
            step.launch(stream)


def test_dangling_copies(device, stream, ints):
    with cu.PinnedMemoryResource() as resource:
        host = resource.allocate(64)
        address = np.frombuffer(host, "u1").ctypes.data

    class Raw:  # an address that keeps nothing
        def __init__(self) -> None:
            self.__cuda_array_interface__ = {
                "shape": (64,),
                "typestr": "|u1",
                "data": (address, False),
                "version": 3,
            }

    with cu.Graph() as graph:
        graph.memcpy(ints[:64], Raw(), name="upload")
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
            host.close()
            settle()
            with pytest.raises(
                cu.CheckError, match='node "upload": copy of 64 bytes, its source is'
            ):
                step.launch(stream)


def test_a_refused_launch_is_no_affair_of_other_threads(device, stream, correct):
    """A wait on another stream neither fails for it, nor takes its text."""
    other = device.create_stream()
    good = cu.zeros(16, "i4", stream=other)
    stale = device.allocate(64, stream=stream)
    over = threading.Event()
    refused, innocent = [], []

    def waits():
        while not over.is_set():
            try:
                good.numpy(stream=other)
            except cu.CheckError as e:
                innocent.append(e)

    with cu.Graph() as graph:
        graph.launch(cu.LaunchConfig(1, 1), correct["set"], int(stale.ptr), 0, 5)
        with graph.instantiate() as step:
            stale.close()
            threads = [threading.Thread(target=waits) for _ in range(2)]
            [t.start() for t in threads]
            for _ in range(300):
                with pytest.raises(cu.CheckError) as e:
                    step.launch(stream)
                refused.append(str(e.value))
            over.set()
            [t.join() for t in threads]
    assert not innocent
    assert all("graph launch refused, nothing ran" in text for text in refused)
