// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

extern "C" __global__ void grid_stride(float a, const float *x, float *y, long long n) {
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = a * x[i] + y[i];
}
