# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Record what a function queues on a stream, and replay it with new input.

pip install 'cudago[sim]' numpy
python examples/capture.py
"""

import numpy as np

import cudago as cu

N = 4096
device = cu.Device()
stream = device.create_stream()
scale = cu.Program(
    r"""
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""
).compile()["scale"]
config = cu.LaunchConfig(grid=(N + 255) // 256, block=256)


def pipeline(given: cu.Buffer, x: cu.Buffer, result: np.ndarray) -> None:
    """Copy numbers to the device, scale them three times, and copy them back."""
    x.copy_from(given, stream=stream)
    for factor in (2.0, 3.0, 0.5):
        cu.launch(stream, config, scale, x, factor, N)
    x.copy_to(result, stream=stream)


given = cu.PinnedMemoryResource().allocate(4 * N)
numbers = np.frombuffer(given, "f4")
result = np.zeros(N, "f4")
x = device.allocate(4 * N, stream=stream)

with stream.capture() as graph:  # nothing runs yet
    pipeline(given, x, result)
step = graph.instantiate()
x.close()  # the graph has it

for first in (0, 100):
    numbers[:] = np.arange(first, first + N)
    step.launch(stream)  # one call for all of it
    stream.sync()
    assert (result == 3 * numbers).all()
print(f"{len(step.nodes)} nodes, replayed twice with new numbers")
