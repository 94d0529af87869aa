# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A finding is raised once, by some wait, whichever call the driver reported it to."""

from __future__ import annotations

import signal
import sys
import time

import pytest

import cudago as cu
from cudago.testing import hold, settle

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

READS = """
extern "C" __global__ void first(int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void second(int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
"""
CONFIG = cu.LaunchConfig(1, 16)


@pytest.fixture(scope="module")
def reads(device):
    """Two kernels that read what nobody wrote."""
    code = cu.Program(READS).compile()
    return code["first"], code["second"]


@pytest.fixture
def memory(stream, device):
    """Two buffers that nobody wrote, and one to copy them to."""
    with (
        cu.sim.check("uninitialized"),
        device.allocate(64, stream=stream) as first,
        device.allocate(64, stream=stream) as second,
        device.allocate(64, stream=stream) as to,
    ):
        yield first, second, to


@pytest.fixture
def alarm():
    """Return a function that makes a signal handler raise LookupError a moment later."""

    def raises(number, frame):
        raise LookupError

    before = signal.signal(signal.SIGALRM, raises)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def findings(stream) -> list[str]:
    """Return the findings that waits raise, until one raises nothing."""
    texts = []
    while True:
        try:
            stream.sync()
        except cu.CheckError as e:
            texts.append(str(e))
        else:
            return texts


def test_interrupted_waits_lose_no_finding(reads, memory, stream, alarm):
    first, second, to = memory
    with hold(stream) as go_on:
        cu.launch(stream, CONFIG, reads[0], first, to)
        for _ in range(2):
            with pytest.raises(LookupError):
                alarm()
                stream.sync()
        go_on.set()
        while not cu.sim.reports():
            time.sleep(0.01)
        time.sleep(0.05)  # until the abandoned waits have returned
        cu.launch(stream, CONFIG, reads[1], second, to)
        text = "\n".join(findings(stream))
    assert text.count("kernel first") == 1
    assert text.count("kernel second") == 1


def test_the_release_of_a_graphs_memory_loses_no_finding(reads, memory, stream, capfd):
    with cu.Graph() as graph:
        scratch = graph.allocate(64).buffer
        step = graph.instantiate()
        step.launch(stream)
        stream.sync()
        cu.launch(stream, CONFIG, reads[0], memory[0], memory[2])
        step.close()
        scratch.close()
    settle()
    (text,) = findings(stream)
    assert "kernel first" in text
    assert capfd.readouterr().err == ""


def test_noting_the_site_of_a_call_runs_no_python_code(kernels, memory, stream, device):
    """What a signal handler raises there would reach no caller."""
    entered = []
    kernel, config = kernels["nothing"], CONFIG
    sys.settrace(lambda frame, event, arg: entered.append(frame.f_code.co_name))
    cu.launch(stream, config, kernel)
    buffer = device.allocate(64, stream=stream)
    buffer.close()
    sys.settrace(None)
    assert entered == []
    assert cu.sim.reports() == []
