// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Inclusive scan of one block's 256 integers, and each block's total.
extern "C" __global__ void prefix_sum(const int *in, int *out, int *totals, int n) {
    __shared__ int warp_sum[8];
    int i = blockIdx.x * 256 + threadIdx.x;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int v = i < n ? in[i] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        int u = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += u;
    }
    if (lane == 31) warp_sum[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int s = lane < 8 ? warp_sum[lane] : 0;
        for (int d = 1; d < 8; d <<= 1) {
            int u = __shfl_up_sync(0xffffffffu, s, d);
            if (lane >= d) s += u;
        }
        if (lane < 8) warp_sum[lane] = s;
    }
    __syncthreads();
    if (warp > 0) v += warp_sum[warp - 1];
    if (i < n) out[i] = v;
    if (threadIdx.x == 255) totals[blockIdx.x] = v;
}

extern "C" __global__ void add_offsets(int *out, const int *totals, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    int offset = 0;
    for (unsigned int b = 0; b < blockIdx.x; ++b) offset += totals[b];
    if (i < n) out[i] += offset;
}
