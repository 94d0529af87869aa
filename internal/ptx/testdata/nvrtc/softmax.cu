// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// One block of 256 threads per row of n columns.
extern "C" __global__ void softmax(const float *x, float *y, int n) {
    __shared__ float red[256];
    const float *row = x + (long long)blockIdx.x * n;
    float *out = y + (long long)blockIdx.x * n;
    int t = threadIdx.x;
    float m = __int_as_float(0xff800000);
    for (int i = t; i < n; i += 256) m = fmaxf(m, row[i]);
    red[t] = m;
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) red[t] = fmaxf(red[t], red[t + d]);
        __syncthreads();
    }
    m = red[0];
    __syncthreads();
    float s = 0.0f;
    for (int i = t; i < n; i += 256) s += expf(row[i] - m);
    red[t] = s;
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) red[t] += red[t + d];
        __syncthreads();
    }
    s = red[0];
    for (int i = t; i < n; i += 256) out[i] = expf(row[i] - m) / s;
}
