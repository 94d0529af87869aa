# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A function on device memory, such as a project has."""

import functools

import cudago as cu

SOURCE = r"""
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


@functools.cache
def kernel() -> cu.Kernel:
    """Return the kernel, compiled once."""
    return cu.Program(SOURCE, "c++").compile()["scale"]


def scale(x: cu.Tensor, factor: float, stream: cu.Stream) -> None:
    """Multiply a tensor of f4 by a factor, where it is."""
    n = x.size
    config = cu.LaunchConfig(grid=(n + 255) // 256, block=256)
    cu.launch(stream, config, kernel(), x, factor, n)
