# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Share memory with NumPy, and with whatever speaks DLPack, without a copy.

pip install 'cudago[sim]' numpy
python examples/exchange.py
"""

import numpy as np

import cudago as cu

device = cu.Device()
stream = device.create_stream()
double = cu.Program(
    r"""
extern "C" __global__ void twice(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""
).compile()["twice"]

# Pinned memory is one memory for NumPy and for kernels.
pinned = cu.PinnedMemoryResource().allocate(4 * 12)
array = np.from_dlpack(pinned.view("i4").reshape(3, 4))
array[:] = np.arange(12).reshape(3, 4)
cu.launch(stream, cu.LaunchConfig(grid=1, block=12), double, pinned, 12)
stream.sync()
print(array)
assert array[2, 3] == 22

# The other way round: an array of NumPy's, page-locked where it is.
own = np.arange(12, dtype="i4")
with cu.pin(own) as locked:
    cu.launch(stream, cu.LaunchConfig(grid=1, block=12), double, locked, 12)
    stream.sync()
assert own[11] == 22

# Tensors of PyTorch, CuPy and JAX come and go by the same two calls, in device memory too.
tensor = cu.from_dlpack(array)
assert tensor.shape == (3, 4) and tensor.handle == array.ctypes.data
print("no element was copied")
