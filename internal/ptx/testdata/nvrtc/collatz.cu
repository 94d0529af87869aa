// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

extern "C" __global__ void collatz(unsigned int *steps, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = i + 1;
    unsigned int s = 0;
    while (v != 1) {
        v = (v & 1) ? 3 * v + 1 : v / 2;
        ++s;
    }
    steps[i] = s;
}
