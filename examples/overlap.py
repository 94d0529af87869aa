# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Overlap copies and kernels on two streams, and measure with events.

pip install 'cudago[sim]' numpy
python examples/overlap.py
"""

import numpy as np

import cudago as cu

CHUNKS, N = 4, 1 << 14
device = cu.Device()
streams = [device.create_stream() for _ in range(2)]
square = cu.Program(
    r"""
extern "C" __global__ void square(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
}
"""
).compile()["square"]
config = cu.LaunchConfig(grid=N // 256, block=256)

# Copies overlap with kernels only from and to pinned memory.
host = cu.PinnedMemoryResource().allocate(4 * CHUNKS * N)
numbers = np.frombuffer(host, "f4")
numbers[:] = np.arange(CHUNKS * N) % 100
buffers = [device.allocate(4 * N, stream=s) for s in streams]

start = streams[0].record(device.create_event(timing_enabled=True))
streams[1].wait(start)
for chunk in range(CHUNKS):
    stream, buffer = streams[chunk % 2], buffers[chunk % 2]
    part = host[4 * N * chunk : 4 * N * (chunk + 1)]
    buffer.copy_from(part, stream=stream)
    cu.launch(stream, config, square, buffer, N)
    buffer.copy_to(part, stream=stream)
streams[0].wait(streams[1])
end = streams[0].record(device.create_event(timing_enabled=True))
end.sync()

assert (numbers == (np.arange(CHUNKS * N) % 100) ** 2).all()
print(f"{CHUNKS} chunks on {len(streams)} streams in {end - start:.3f} ms")
