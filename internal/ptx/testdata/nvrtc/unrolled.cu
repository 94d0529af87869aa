// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Many unrolled kernels: the long file that the parser's speed is judged on.

template <typename T, int N>
__device__ __forceinline__ void horner(const T *coef, const T *x, T *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T v = x[i], s = coef[0];
#pragma unroll
    for (int k = 1; k < N; ++k) s = s * v + coef[k];
    y[i] = s;
}

template <int N>
__device__ __forceinline__ void sort_network(int *data) {
    int v[N];
    int *mine = data + (blockIdx.x * blockDim.x + threadIdx.x) * N;
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = mine[i];
#pragma unroll
    for (int p = 0; p < N; ++p)
#pragma unroll
        for (int i = p & 1; i + 1 < N; i += 2) {
            int a = min(v[i], v[i + 1]), b = max(v[i], v[i + 1]);
            v[i] = a;
            v[i + 1] = b;
        }
#pragma unroll
    for (int i = 0; i < N; ++i) mine[i] = v[i];
}

#define HORNER(T, N) \
    extern "C" __global__ void horner_##T##_##N(const T *c, const T *x, T *y, int n) { horner<T, N>(c, x, y, n); }
#define SORT(N) extern "C" __global__ void sort_##N(int *data) { sort_network<N>(data); }

HORNER(float, 16)
HORNER(float, 64)
HORNER(double, 32)
HORNER(double, 96)
SORT(8)
SORT(16)
SORT(24)

extern "C" __global__ void mix(const unsigned int *in, unsigned long long *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int a = in[i];
    unsigned long long h = 0xcbf29ce484222325ull;
#pragma unroll
    for (int r = 0; r < 64; ++r) {
        a ^= a << 13;
        a ^= a >> 17;
        a ^= a << 5;
        h = (h ^ (a & 0xff)) * 0x100000001b3ull;
    }
    out[i] = h + __popc(a) + __clz(a) + __brev(a);
}
