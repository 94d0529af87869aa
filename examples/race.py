# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Find a data race without a GPU: a kernel that forgot a barrier.

pip install 'cudago[sim]' numpy
python examples/race.py
"""

import cudago as cu

cu.init("sim")
device = cu.Device()
stream = device.create_stream()
config = cu.LaunchConfig(grid=1, block=64)


def sum_of(barrier: str) -> cu.Kernel:
    """Return a kernel that adds 64 numbers up in shared memory."""
    source = r"""
extern "C" __global__ void sum(const int* x, int* total) {
    __shared__ int part[64];
    int i = threadIdx.x;
    part[i] = x[i];
    for (int half = 32; half; half /= 2) {
        BARRIER
        if (i < half) part[i] += part[i + half];
    }
    if (i == 0) *total = part[0];
}
"""
    options = cu.ProgramOptions(lineinfo=True)
    return cu.Program(source.replace("BARRIER", barrier), options=options).compile()["sum"]


x = cu.full((64,), 1, "i4", stream=stream)
total = cu.zeros((1,), "i4", stream=stream)
for barrier in ("__syncthreads();", ""):
    try:
        with cu.sim.check("races"):
            cu.launch(stream, config, sum_of(barrier), x, total)
            stream.sync()
    except cu.CheckError as e:
        print(f"without a barrier: {e}")
        assert not barrier
    else:
        print(f"with a barrier: {total.numpy(stream=stream)[0]}")
        assert barrier
