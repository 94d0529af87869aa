# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that work in arrays of a thread, which compilers fill, copy and read in odd ways."""

from __future__ import annotations

# All take (out, in, k); in[i] is i. Nothing depends on what was not written.
CLEAN = r"""
struct Padded { char c; double d; int n; };
struct Aligned { float4 v; float w; };
struct Big { char tag; double d[20]; int n; };
struct Bytes { long long t; char d[200]; int n; };
struct Found { int ok; int value[6]; };
struct Bits { unsigned a:4, b:5, c:3; };
struct Node { Node* next; int v; };
struct Base { virtual __device__ int f(int) { return 1; } int x; };
struct Derived : Base { int y[3]; __device__ int f(int i) override { return y[i % 3]; } };
struct Optional {
    bool has; float v;
    __device__ Optional() : has(false) {}
    __device__ Optional(float x) : has(true), v(x) {}
};
__device__ __noinline__ Found find(int x) {
    Found q;
    q.ok = x > 2;
    if (q.ok) for (int i = 0; i < 6; i++) q.value[i] = x;
    return q;
}
__device__ __noinline__ int take(Found q, int i) { return q.ok ? q.value[i] : -1; }
__device__ int recurse(int n, int* all) {
    int a[4];
    a[n & 3] = n;
    all[n & 7] = n;
    if (n <= 1) return a[n & 3];
    return recurse(n - 1, all) + a[n & 3];
}
extern "C" {
__global__ void largest_eight(int* out, const int* in, int k) {
    int best[8], n = 0;
    for (int i = 0; i < 32; i++) {
        int x = in[(i * 7 + threadIdx.x) & 63], j = n;
        if (n == 8) { if (x <= best[7]) continue; j = 7; } else n++;
        while (j > 0 && best[j - 1] < x) { best[j] = best[j - 1]; j--; }
        best[j] = x;
        if (i == k) break;
    }
    int s = 0;
    for (int i = 0; i < n; i++) s = s * 3 + best[i];
    out[threadIdx.x] = s;
}
__global__ void padded(Padded* out, const int* in, int k) {
    Padded a[4];
    for (int i = 0; i < 4; i++) { a[i].c = i; a[i].d = in[i]; a[i].n = k; }
    out[threadIdx.x & 3] = a[(in[threadIdx.x] + k) & 3];
}
__global__ void aligned(Aligned* out, const int* in, int k) {
    Aligned a[4];
    for (int i = 0; i < 4; i++) { a[i].v = make_float4(i, k, 1, 2); a[i].w = in[i]; }
    Aligned b = a[(in[threadIdx.x] + k) & 3];
    out[threadIdx.x & 3] = b;
    out[4] = a[(k + in[2]) & 3];
}
__global__ void big(Big* out, const int* in, int k) {
    Big a[3];
    for (int i = 0; i < 3; i++) {
        a[i].tag = i; a[i].n = k;
        for (int j = 0; j < 20; j++) a[i].d[j] = in[j];
    }
    Big b = a[(in[0] + k) & 1];
    b.d[k & 15] = 3;
    out[0] = b;
}
__global__ void bytes(Bytes* out, const int* in, int k) {
    Bytes a[3];
    for (int i = 0; i < 3; i++) {
        a[i].t = i; a[i].n = k;
        for (int j = 0; j < 200; j++) a[i].d[j] = in[j & 63];
    }
    Bytes b = a[(in[0] + k) & 1];
    b.d[k & 15] = 3;
    out[0] = b;
    out[1] = a[(in[1] + k) & 1];
}
__global__ void through_shared(int* out, const int* in, int k) {
    __shared__ Padded s[4];
    Padded a[4];
    for (int i = 0; i < 4; i++) { a[i].c = i; a[i].d = in[i]; a[i].n = k; }
    if (threadIdx.x < 4) s[threadIdx.x] = a[(threadIdx.x + k) & 3];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x & 3].n;
}
__global__ void exchanged(int* out, const int* in, int k) {  // a tile of 100 for 128
    __shared__ int s[128];
    int a[4], i = 4 * threadIdx.x;
    for (int j = 0; j < 4; j++) if (i + j < 100) a[j] = in[(i + j + k) & 63];
    for (int j = 0; j < 4; j++) s[i + j] = a[j];
    __syncthreads();
    for (int j = 0; j < 4; j++) a[j] = s[threadIdx.x + 32 * j];
    for (int j = 0; j < 4; j++) if (threadIdx.x + 32 * j < 100) out[threadIdx.x + 32 * j] = a[j];
}
__global__ void half_returned(int* out, const int* in, int k) {
    Found q = find(in[threadIdx.x] + k);
    out[threadIdx.x] = q.ok ? q.value[in[1] & 1] : -1;
}
__global__ void half_passed(int* out, const int* in, int k) {
    Found q;
    q.ok = in[0] > 100;
    if (q.ok) q.value[k & 3] = 1;
    out[threadIdx.x] = take(q, k & 3);
}
__global__ void optionals(float* out, const int* in, int k) {
    Optional a[6], b[6];
    for (int i = 0; i < 6; i++) if (in[i] & 1) a[i] = Optional(in[i]);
    for (int i = 0; i < 6; i++) b[i] = a[5 - i];
    Optional o = b[(k + threadIdx.x) % 6];
    out[threadIdx.x] = o.has ? o.v : -1.f;
}
__global__ void speculative(int* out, const int* in, int k) {
    int a[16], n = in[0] & 7, s = 0;
    for (int i = 0; i < n; i++) a[i] = in[i];
    for (int i = 0; i < 16; i++) { s += i < n ? a[i] : 0; if (i < n && a[i] > 3) s++; }
    a[(k + 1) & 15] = 2;
    out[threadIdx.x] = s + (n > 3 ? a[3] : n > 2 ? a[2] : 0);
}
__global__ void bit_fields(unsigned* out, const int* in, int k) {
    Bits b[4];
    for (int i = 0; i < 4; i++) { b[i].a = in[i]; b[i].b = 0; }
    for (int i = 0; i < 4; i++) b[i].c = 1;
    Bits x = b[(k + threadIdx.x) & 3];
    out[threadIdx.x] = x.a * 64 + x.b + x.c;
}
__global__ void stack(int* out, const int* in, int k) {
    int all[32], top = 0, s = 0;
    all[top++] = in[15];
    while (top) {
        int v = all[--top];
        s += v;
        if (v > 1) { all[top++] = v / 2; all[top++] = v - v / 2 - 1; }
    }
    out[threadIdx.x] = s;
}
__global__ void recursive(int* out, const int* in, int k) {
    int all[8];
    out[threadIdx.x] = recurse(8 + (in[0] & 3), all) + all[k & 7];
}
__global__ void digits(char* out, const int* in, int k) {
    char s[16];
    int n = 0, v = in[0] + 1234;
    do { s[n++] = '0' + v % 10; v /= 10; } while (v);
    s[n] = 0;
    for (int i = 0; i <= n; i++) out[i] = s[i];
}
__global__ void small_members(int* out, const int* in, int k) {
    struct S { char a; short b; char c[5]; int d; } s[3], t[3];
    for (int i = 0; i < 3; i++) {
        s[i].a = i; s[i].b = i; s[i].d = in[i];
        for (int j = 0; j < 5; j++) s[i].c[j] = j;
    }
    for (int i = 0; i < 3; i++) t[(i + k) % 3] = s[i];
    ((S*)out)[threadIdx.x & 1] = t[in[0] % 3];
}
__global__ void copied_unwritten(int* out, const int* in, int k) {
    int a[8], b[8];
    for (int i = 0; i < 4; i++) a[i] = in[i];
    for (int i = 0; i < 8; i++) b[i] = a[i];
    out[threadIdx.x] = b[(k + threadIdx.x) & 3];
}
__global__ void printed(int* out, const int* in, int k) {
    if (threadIdx.x == 0) printf("%d %f %s %c\n", k, 1.5, "x", 'c');
}
__global__ void unions(float* out, const int* in, int k) {
    union U { int i; double d; char c[12]; } u[4];
    for (int j = 0; j < 4; j++) u[j].i = in[j];
    U t = u[(k + threadIdx.x) & 3];
    u[k & 3] = t;
    out[threadIdx.x] = u[(threadIdx.x + in[0]) & 3].i;
}
__global__ void list(int* out, const int* in, int k) {
    Node n[8], *head = 0;
    for (int i = 0; i < 5; i++) { n[i].v = in[i]; n[i].next = head; head = &n[i]; }
    int s = 0;
    for (Node* p = head; p; p = p->next) s = s * 2 + p->v;
    out[threadIdx.x] = s;
}
__global__ void virtual_call(int* out, const int* in, int k) {
    Derived w;
    Base v, *p[2] = {&v, &w};
    for (int i = 0; i < 3; i++) w.y[i] = in[i];
    out[threadIdx.x] = p[(in[1] + k) & 1]->f(k);
}
__global__ void elimination(double* out, const int* in, int k) {
    double m[6][6], x[6];
    int row[6], n = 4 + (in[0] & 1);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) m[i][j] = (i == j) * 5 + in[i * 6 + j];
        x[i] = in[i]; row[i] = i;
    }
    for (int c = 0; c < n; c++) {
        int p = c;
        for (int r = c + 1; r < n; r++) if (fabs(m[row[r]][c]) > fabs(m[row[p]][c])) p = r;
        int t = row[c]; row[c] = row[p]; row[p] = t;
        for (int r = c + 1; r < n; r++) {
            double f = m[row[r]][c] / m[row[c]][c];
            for (int j = c; j < n; j++) m[row[r]][j] -= f * m[row[c]][j];
            x[row[r]] -= f * x[row[c]];
        }
    }
    out[threadIdx.x] = x[row[n - 1]] / m[row[n - 1]][n - 1];
}
}
"""

# These have a bug each.
BUGS = r"""
struct Padded { char c; double d; int n; };
__device__ __noinline__ int late(int x, int k) {
    int a[8];
    a[x & 7] = x;
    if (x > 100) for (int i = 0; i < 8; i++) a[i] = x;
    return a[k + 1];
}
__device__ __noinline__ void fill(int* a, int n) { for (int i = 0; i < n; i++) a[i] = i; }
extern "C" {
__global__ void one_element(int* out, const int* in, int k) {
    int a[8];
    for (int i = 0; i < 8; i++) if (i != 5) a[i] = in[i];
    out[threadIdx.x] = a[(k + threadIdx.x) & 7];
}
__global__ void histogram(int* out, const int* in, int k) {
    int h[8];
    for (int i = 0; i < 32; i++) h[in[i] & 7]++;
    out[threadIdx.x] = h[threadIdx.x & 7];
}
__global__ void flag(int* out, const int* in, int k) {
    bool seen[16];
    seen[in[0] & 15] = true;
    if (seen[(in[1] + 3 + k) & 15]) out[threadIdx.x] = 1;
}
__global__ void index(int* out, const int* in, int k) {
    int a[8];
    a[in[0] & 7] = 1;
    out[a[(k + 3) & 7] & 63] = 1;
}
__global__ void character(char* out, const int* in, int k) {
    char a[16];
    a[in[0] & 3] = 1;
    out[threadIdx.x] = a[(in[8] + k + threadIdx.x) % 16];
}
__global__ void earlier_call(int* out, const int* in, int k) {
    out[threadIdx.x] = late(200, k) + late(in[0], k);
}
__global__ void callee(int* out, const int* in, int k) {
    int a[8];
    fill(a, 7);
    out[threadIdx.x] = a[(k + threadIdx.x) & 7];
}
__global__ void sums(float* out, const int* in, int k) {
    float s[4];
    for (int i = 0; i < 32; i++) s[(i + k) & 3] += in[i];
    out[threadIdx.x] = s[threadIdx.x & 3];
}
__global__ void argument_of_printf(int* out, const int* in, int k) {
    int a[4];
    a[k & 1] = 3;
    if (threadIdx.x == 0) printf("%d\n", a[2 + (k & 1)]);
}
__global__ void masked(int* out, const int* in, int k) {
    int a[4];
    a[in[0] & 3] = 3;
    out[threadIdx.x] = a[(in[2] + k) & 3] & 7;
}
__global__ void one_too_far(float* out, const int* in, int k) {
    float v[10], best = 0;
    int n = in[5];
    for (int i = 0; i < n; i++) v[i] = in[i];
    for (int i = 0; i <= n; i++) if (v[i] > best) best = v[i];
    out[threadIdx.x] = best;
}
}
"""
