# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch on another GPU than the stream's."""

from __future__ import annotations

import importlib.util

import pytest

import cudago as cu

START = """
import torch
import cudago as cu

a, b = cu.Device.all()[:2]
sa, sb = a.create_stream(), b.create_stream()
n = 1 << 20
add = cu.Program('''extern "C" __global__ void add(float* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 1;
}''').compile()["add"]
config = cu.LaunchConfig(n // 256, 256)

def late(value, device=1):
    "A tensor that PyTorch has not written yet."
    t = torch.zeros(n, device=f"cuda:{device}")
    with torch.cuda.device(device):
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000_000)
        t.fill_(value)
    return t
"""

SCRIPTS = {
    "a copy comes after the work on the tensor's device": """
        x = cu.zeros(n, "f4", stream=sa)
        for value in (1.0, 2.0):
            x.buffer.copy_from(late(value), stream=sa)
            assert (x.numpy(stream=sa) == value).all()
        cu.copy_batch([(x, late(3.0))], stream=sa)
        assert (x.numpy(stream=sa) == 3).all()
        """,
    "a copy to a tensor comes after the work on its device": """
        x = cu.full(n, 5.0, "f4", stream=sa)
        t = late(1.0)
        x.buffer.copy_to(t, stream=sa)
        sa.sync()
        assert (t == 5).all()
        """,
    "a launch comes after the work on the tensor's device": """
        torch.ones(1, device="cuda:1").to("cuda:0")
        a.enable_peer_access(b)
        t = late(7.0)
        cu.launch(sa, config, add, t, n)
        sa.sync()
        assert (t == 8).all()
        """,
}


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_work_of_another_device_comes_first(driver, script, name):
    if driver != "nvidia" or len(cu.Device.all()) < 2:
        pytest.skip("needs two GPUs")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    run = script(script.dedent(START) + script.dedent(SCRIPTS[name]))
    assert run.returncode == 0, run.stderr
