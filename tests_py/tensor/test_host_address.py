# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of the simulated device whose host address the driver does not tell is no host memory."""

from __future__ import annotations

import pytest

SOURCE = """
import numpy as np
import cudago as cu
from cudago import _core

device = cu.Device()
stream = device.create_stream()
code = cu.Program("__device__ int v[4]; extern \\"C\\" __global__ void f() { v[0] = 1; }").compile()

def captured():
    with stream.capture() as graph:
        made = device.allocate(64, stream=stream)
    graph.instantiate().launch(stream)
    return made

makers = [
    lambda: device.allocate(64, stream=stream),
    lambda: cu.DeviceMemoryResource(device, pool=cu.PoolOptions()).allocate(64, stream=stream),
    lambda: code.get_global("v"),
    captured,
]
if {first}:
    makers[0]().close()  # after this it is known that the host sees device memory
    np.from_dlpack(makers[0]().view("u1"))
    stream.sync()
for make in makers:
    for call, n, code_ in ("cuPointerGetAttribute", 1, 999), ("cuPointerGetAttribute", 1, 1), (
        "cuCtxGetCurrent", 2, 2
    ):
        _core._fail_next(call, n, code_)
        try:
            buffer = make()
        except cu.CUDAError:
            continue
        try:
            array = np.from_dlpack(buffer.view("u1"))
        except (BufferError, RuntimeError, ValueError, cu.CUDAError):
            continue
        assert array.shape[0] <= 64 and array.sum() >= 0
print("done")
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
@pytest.mark.parametrize("first", [True, False])
def test_a_lookup_that_fails(script, driver, first):
    run = script(SOURCE.replace("{first}", str(first)), CUDAGO_SIM="faults=0")
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
