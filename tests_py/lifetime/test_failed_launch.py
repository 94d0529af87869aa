# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A launch of which the driver says that it failed may have begun."""

from __future__ import annotations

import pytest

SCRIPT = """
import gc, threading, weakref
import numpy as np
import cudago as cu
from cudago import _core

class Array(np.ndarray): pass

device = cu.Device()
own = device.create_stream()
streams = {
    "own": own,
    "foreign": cu.Stream.from_handle(own.handle, device=device, owner=own),
    "default": device.default_stream,
}
stream = streams["KIND"]
x = device.allocate(4, stream=own)
array = np.zeros(4, "u1").view(Array)
gone = threading.Event()
weakref.finalize(array, gone.set)
with cu.Graph() as graph:
    graph.memcpy(x, array)
    step = graph.instantiate()
step.launch(stream)  # so that what is given up waits for uses at all
stream.sync()
entered, gate = threading.Event(), threading.Event()
stream.callback(lambda: (entered.set(), gate.wait()))
entered.wait()
_core._fail_next("CALL", 1, 2)
try:
    step.METHOD(stream)
except cu.OutOfMemoryError:
    print("failed")
step.close()
del array
gc.collect()
try:
    cu.testing.settle(0.2)
except TimeoutError:
    print("waits")
print(gone.is_set())
gate.set()
stream.sync()
cu.testing.settle()
print(gone.is_set())
"""


@pytest.mark.parametrize("kind", ["own", "foreign", "default"])
@pytest.mark.parametrize("method", ["launch", "upload"])
def test_what_a_failed_launch_uses_stays(driver, script, kind, method):
    if driver != "sim":
        pytest.skip("only the simulated driver fails on demand")
    call = {"launch": "cuGraphLaunch", "upload": "cuGraphUpload"}[method]
    code = SCRIPT.replace("KIND", kind).replace("CALL", call).replace("METHOD", method)
    run = script(code, CUDAGO_SIM="faults=0")
    assert (run.returncode, run.stdout, run.stderr) == (0, "failed\nwaits\nFalse\nTrue\n", "")
