# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Compile a kernel, launch it, look at the result: the first program.

pip install 'cudago[sim]' numpy
python examples/saxpy.py
"""

import numpy as np

import cudago as cu

device = cu.Device()
stream = device.create_stream()

source = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
saxpy = cu.Program(source, "c++").compile().get_kernel("saxpy")

n = 1000
x = np.arange(n, dtype="f4")
y = np.ones(n, dtype="f4")
device_x = device.allocate(x.nbytes, stream=stream)
device_y = device.allocate(y.nbytes, stream=stream)
device_x.copy_from(x, stream=stream)
device_y.copy_from(y, stream=stream)

config = cu.LaunchConfig(grid=(n + 255) // 256, block=256)
cu.launch(stream, config, saxpy, 2.0, device_x, device_y, n)

result = np.empty(n, dtype="f4")
device_y.copy_to(result, stream=stream)
stream.sync()
assert (result == 2 * x + y).all()
print(f"{device.name}: {saxpy} is right for {n} numbers")
