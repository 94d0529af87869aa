# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Iterate on the device until the numbers converge, without asking the host in between.

pip install 'cudago[sim]' numpy
python examples/loop.py
"""

import cudago as cu

device = cu.Device()
stream = device.create_stream()
newton = cu.Program(
    r"""
extern "C" __device__ void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned int);

extern "C" __global__ void newton(cudaGraphConditionalHandle go_on, double* root, double square,
                                  int* rounds) {
    double better = 0.5 * (*root + square / *root);
    cudaGraphSetConditional(go_on, fabs(better - *root) > 1e-12);
    *root = better;
    ++*rounds;
}
"""
).compile()["newton"]

root = cu.full((1,), 1.0, "f8", stream=stream)
rounds = cu.zeros((1,), "i4", stream=stream)

graph = cu.Graph()
go_on = graph.condition(default=1)
loop = graph.while_loop(go_on)
loop.body.launch(cu.LaunchConfig(grid=1, block=1), newton, go_on, root, 2.0, rounds)
loop.callback(lambda: print("converged"))
step = graph.instantiate()

step.launch(stream)
stream.sync()
value, count = float(root.numpy(stream=stream)[0]), int(rounds.numpy(stream=stream)[0])
print(f"the root of 2 is {value:.12f}, after {count} rounds in one launch")
assert abs(value - 2**0.5) < 1e-12
