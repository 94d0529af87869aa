// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

extern "C" __global__ void mandelbrot(int *out, int w, int h, float x0, float y0, float dx, float dy, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h) return;
    float cx = x0 + px * dx, cy = y0 + py * dy, x = 0.0f, y = 0.0f;
    int i = 0;
    while (i < limit && x * x + y * y <= 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        ++i;
    }
    out[py * w + px] = i;
}
