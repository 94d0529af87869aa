// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#define TILE 16
#define R 2

// A 5 x 5 box blur; each block loads its tile with a halo, clamped at the edges.
extern "C" __global__ void blur(const float *in, float *out, int w, int h) {
    __shared__ float tile[TILE + 2 * R][TILE + 2 * R];
    int x0 = blockIdx.x * TILE - R, y0 = blockIdx.y * TILE - R;
    for (int j = threadIdx.y; j < TILE + 2 * R; j += TILE)
        for (int i = threadIdx.x; i < TILE + 2 * R; i += TILE) {
            int x = min(max(x0 + i, 0), w - 1), y = min(max(y0 + j, 0), h - 1);
            tile[j][i] = in[y * w + x];
        }
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    for (int j = 0; j <= 2 * R; ++j)
        for (int i = 0; i <= 2 * R; ++i) s += tile[threadIdx.y + j][threadIdx.x + i];
    out[y * w + x] = s / 25.0f;
}
