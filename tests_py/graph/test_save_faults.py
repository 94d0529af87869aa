# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Every driver call of saving and of loading fails in turn: then nothing is left."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

PROGRAM = r'''
import gc, json
from contextlib import suppress
from pathlib import Path
import numpy as np
import cudago as cu
from cudago import _core
from cudago.testing import settle

device = cu.Device()
stream = device.create_stream()
code = cu.Program(r"""
__constant__ int w[4];
extern "C" __global__ void f(int* x) { x[threadIdx.x] += w[threadIdx.x]; }""").compile()

def build():
    g, inner = cu.Graph(), cu.Graph()
    x, m = cu.zeros(64, "i4", stream=stream), cu.ManagedMemoryResource(device).allocate(256)
    inner.memset(x[:8], 3)
    node = g.memcpy(x, np.ones(64, "i4")).launch(cu.LaunchConfig(1, 4), code["f"], x)
    node = node.memcpy(cu.PinnedMemoryResource().allocate(256), m).embed(inner)
    event = device.create_event()
    node = g.join(node.record(event).wait(event)).callback(print, name="call")
    maybe = node.if_then(g.condition(1))
    maybe.body.memset(x, 0)
    own = maybe.allocate(64)
    own.memset(own.buffer, 1).free(own.buffer)
    inner.close()
    return g

def alive():
    settle()
    return cu.live_objects(), device.memory_resource.statistics.used

def failed():
    return sum(json.loads(_core._faults()).values())

def all_fail(calls, do):
    """Do something, with each of its calls of each of these names failing."""
    before = alive()
    seen = 0
    for call in calls:
        for n in range(1, 100):
            count = failed()
            _core._fail_next(call, n, 999)
            try:
                do()
            except (cu.CUDAError, ValueError) as e:
                assert failed() == count + 1, (call, n, e)
                assert "999" in str(e) or "UNKNOWN" in str(e), (call, n, e)
            else:
                if failed() == count:  # there is no n-th call, so the fault is one of the next
                    for _ in range(n):  # how often a wait queries differs from time to time
                        with suppress(cu.CUDAError, ValueError):
                            do()
                        if failed() > count:
                            break
                    assert n == 1 or failed() == count + 1, (call, n)
                    break
            assert alive() == before, (call, n)
            seen += 1
    return seen

CREATE = ["cuStreamCreateWithPriority", "cuGraphCreate", "cuGraphAddMemcpyNode"]
SAVE = [*CREATE, "cuGraphInstantiateWithParams", "cuGraphLaunch", "cuCtxSynchronize",
        "cuModuleGetGlobal"]
LOAD = [*CREATE, "cuMemcpyAsync", "cuMemAllocFromPoolAsync", "cuGraphAddKernelNode",
        "cuEventCreate", "cuGraphAddMemsetNode", "cuModuleLoadDataEx", "cuModuleGetFunction",
        "cuMemHostAlloc", "cuMemAllocManaged", "cuGraphConditionalHandleCreate", "cuGraphAddNode",
        "cuGraphAddMemFreeNode", "cuGraphAddMemAllocNode", "cuGraphAddHostNode",
        "cuGraphAddEmptyNode",
        "cuGraphAddEventWaitNode", "cuGraphAddEventRecordNode", "cuGraphAddChildGraphNode",
        "cuModuleGetGlobal", "cuStreamQuery"]

path = Path("graph")
graph = build()
graph.save(path, contents=True)
good = path.read_bytes()

def save():
    try:
        graph.save(path, contents=True)
    except BaseException:
        assert path.read_bytes() == good
        assert list(Path().glob(".graph*")) == []
        raise

def load():
    cu.Graph.load(path, bind={"call": print}).close()
    gc.collect()
'''
LAST = """
many = all_fail({calls}, {do})
print(many)
assert many > 10
"""


@pytest.mark.parametrize(("calls", "do"), [("SAVE", "save"), ("LOAD", "load")])
def test_every_call_fails_in_turn(driver, script, calls, do):
    run = script(PROGRAM + LAST.format(calls=calls, do=do), CUDAGO_SIM="faults=0")
    assert (run.returncode, run.stderr) == (0, "")
