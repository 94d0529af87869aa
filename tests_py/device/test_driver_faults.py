# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Driver calls that fail for a passing reason, and the state of objects afterwards."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

EXCHANGE = "cuThreadExchangeStreamCaptureMode"

START = """
import gc
import cudago as cu
from cudago import _core
from cudago.testing import settle

OUT_OF_MEMORY, UNKNOWN = 2, 999
device = cu.Device()
stream = device.create_stream()

def used():
    settle()
    return device.memory_resource.statistics.used

def refused(call, do, code=OUT_OF_MEMORY, n=1):
    "Do something in which the n-th call of a name fails."
    _core._fail_next(call, n, code)
    try:
        do()
    except cu.CUDAError as e:
        assert e.code == code and e.operation == call, e
    else:
        raise AssertionError(f"{call} has failed, and nobody was told")
"""

SCRIPTS = {
    # If the driver cannot say whether a stream is capturing, work must not enter a capture by
    # chance: the graph would not know its operands.
    "work in a capture": """
        x, y = (device.allocate(64, stream=stream) for _ in range(2))
        with stream.capture("thread_local") as graph:
            x.fill(1, stream=stream)
            refused("cuStreamIsCapturing", lambda: x.fill(2, stream=stream))
            refused("cuStreamIsCapturing", lambda: x.copy_to(y, stream=stream))
            refused("cuStreamIsCapturing", lambda: device.allocate(64, stream=stream))
            refused("cuStreamIsCapturing", lambda: stream.is_capturing)
            refused("cuStreamIsCapturing", stream.sync)
            assert stream.is_capturing
        assert [node.kind for node in graph.nodes] == ["memset"]
        x.close(), y.close(), graph.close()
        assert used() == 0
    """,
    "a launch of a graph": """
        x = device.allocate(64, stream=stream)
        with stream.capture() as graph:
            x.fill(1, stream=stream)
        step = graph.instantiate()
        step.launch(stream)
        refused("cuGraphLaunch", lambda: step.launch(stream), UNKNOWN)
        assert step.launch_count == 1
        step.launch(stream)
        assert step.launch_count == 2
        stream.sync()
    """,
    # A free would become a node of the graph.
    "a release in a capture": """
        x = device.allocate(64, stream=stream)
        with stream.capture("thread_local") as graph:
            _core._fail_next("cuStreamIsCapturing", 1, OUT_OF_MEMORY)
            x.close()
        assert not graph.nodes
        assert used() == 0
    """,
    # A capture that has ended, although the driver did not say so, is not taken for the next one
    # of its stream.
    "two captures of a stream": """
        x, fork = device.allocate(64, stream=stream), device.create_stream()
        y = device.allocate(64, stream=fork)
        device.sync()
        context = stream.capture("relaxed")
        first = context.__enter__()
        fork.wait(stream)
        y.fill(1, stream=fork)  # and is not joined back: so the end is an error, and an end
        _core._fail_next("cuStreamIsCapturing", 2, OUT_OF_MEMORY)
        try:
            context.__exit__(None, None, None)
        except cu.CUDAError as e:
            assert e.name == "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
        assert "Capture" not in cu.live_objects()  # the second try found that it is over
        assert not stream.is_capturing
        with stream.capture("relaxed") as second:
            x.fill(2, stream=stream)
            del first, context
            gc.collect()
            assert stream.is_capturing
        assert len(second.nodes) == 1
        x.close(), y.close(), second.close(), fork.close()
        assert used() == 0
        assert cu.live_objects() == {"Stream": 1}
    """,
    # Nothing was tried, so it is tried again.
    "a release without the context": """
        x = device.allocate(64, stream=stream)
        _core._fail_next("cuCtxPushCurrent", 1, UNKNOWN)
        x.close()
        assert "cuCtxPushCurrent" in _core._faults()
        stream.is_closed, device.create_event()  # the next call of the API does it
        assert device.memory_resource.statistics.used == 0
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_left(driver, script, name):
    run = script(script.dedent(START) + script.dedent(SCRIPTS[name]), CUDAGO_SIM="faults=0")
    assert run.stderr == ""
    assert run.returncode == 0


# Memory of the graph is the last to hold it, so no call of the user's destroys the graph.
NOBODYS = """
    import cudago as cu
    from cudago import _core
    from cudago.testing import settle

    graph = cu.Graph()
    x = graph.allocate(64).buffer
    _core._fail_next("cuGraphDestroy", 1, 2)
    graph.close()
    x.close()
    del graph, x
    settle()
"""


def test_a_failure_without_a_caller_is_printed(driver, script):
    run = script(script.dedent(NOBODYS), CUDAGO_SIM="faults=0")
    assert run.stderr == (
        "cudago: error ignored: cuGraphDestroy: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
    )
    assert run.returncode == 0


TRACED = """
    import os
    import cudago as cu
    from cudago import _core
    device = cu.Device()
    stream, event = device.create_stream(), device.create_event()
    x, y, z = (device.allocate(64, stream=stream) for _ in range(3))
    z.close(), stream.record(event)
    _core._fail_next("{call}", 1, 999)
    {use}
    os.write(2, b"AFTERWARDS\\n")
    {again}
    os.write(2, b"END\\n")
"""


@pytest.mark.parametrize(
    ("call", "use", "again", "found"),
    [  # which call tells what the thread was left with
        ("cuCtxPopCurrent", "stream.record(event)", None, "cuCtxGetCurrent() = 0x0,"),
        (EXCHANGE, "device.allocate(64, stream=stream).close()", None, f"{EXCHANGE}(mode=2) = 0,"),
        (EXCHANGE, "x.close()", "y.close()", f"{EXCHANGE}(mode=2) = 0,"),
    ],
)
def test_a_thread_is_left_as_it_was(driver, script, call, use, again, found):
    source = TRACED.format(call=call, use=use, again=again or use)
    run = script(source, CUDAGO_TRACE="1", CUDAGO_SIM="faults=0")
    assert run.returncode == 0, run.stderr
    before, after = run.stderr.split("AFTERWARDS\n")
    assert "CUDA_ERROR_UNKNOWN" in before
    name = found.partition("(")[0]
    first = next(line for line in after.splitlines() if name in line)
    assert found in first, run.stderr
