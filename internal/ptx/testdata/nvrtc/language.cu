// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// What CUDA C++ needs of PTX beyond arithmetic: calls, recursion, pointers to
// functions, virtual functions, switch tables, structures by value, constant
// memory, initialisers with addresses, inline assembly, printf and assert.



struct Point {
    double x;
    float y;
    short z;
    char tag;
};

__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__constant__ float scale = 1.5f;
__device__ int counter = 5;
__device__ int *counter_address = &counter;
__device__ const char *names[3] = {"zero", "one", "two"};

__device__ __noinline__ unsigned long long fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void recursion(unsigned long long *out) {
    out[threadIdx.x] = fibonacci(threadIdx.x);
}

__device__ __noinline__ Point shift(Point p, float by) {
    p.x += by;
    p.y *= by;
    p.z += 1;
    p.tag = 'a' + p.z;
    return p;
}

extern "C" __global__ void structures(Point p, Point *out) {
    out[threadIdx.x] = shift(p, (float)threadIdx.x);
}

__device__ __noinline__ int add_one(int x) { return x + 1; }
__device__ __noinline__ int times_two(int x) { return x * 2; }
__device__ __noinline__ int negate(int x) { return -x; }
typedef int (*Unary)(int);
__device__ Unary operations[3] = {add_one, times_two, negate};

extern "C" __global__ void pointers(int *out) {
    int i = threadIdx.x;
    out[i] = operations[i % 3](i);
}

struct Shape {
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int a;
    __device__ Square(int a) : a(a) {}
    __device__ __noinline__ int area() const override { return a * a; }
};
struct Line : Shape {
    __device__ __noinline__ int area() const override { return 0; }
};

extern "C" __global__ void virtuals(int *out) {
    int i = threadIdx.x;
    Square square(i);
    Line line;
    Shape *s = i % 2 ? (Shape *)&square : (Shape *)&line;
    out[i] = s->area();
}

extern "C" __global__ void switches(const int *in, int *out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    int v = in[i], r;
    switch (v) {
    case 0: r = v * 3; break;
    case 1: r = out[i] ^ 5; break;
    case 2: r = v - 100; break;
    case 3: r = __popc(out[i]); break;
    case 4: r = out[i] << 3; break;
    case 5: r = out[i] % 7; break;
    case 6: r = 1 / (out[i] + 1); break;
    case 7: r = ~out[i]; break;
    default: r = -1;
    }
    out[i] = r;
}

extern "C" __global__ void globals(int *out, float *f) {
    int i = threadIdx.x;
    out[i] = table[i & 7] + atomicAdd(counter_address, 1) * 0;
    f[i] = scale * names[i % 3][0];
}

extern "C" __global__ void assembly(unsigned int *out) {
    unsigned int lane, hi, lo, i = threadIdx.x;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("{\n\t.reg .u64 t;\n\tmul.wide.u32 t, %2, %3;\n\tmov.b64 {%0, %1}, t;\n\t}" : "=r"(lo), "=r"(hi) : "r"(i * 0x01010101u), "r"(0xdeadbeefu));
    asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(out[i]) : "r"(lo), "r"(hi));
    out[i] += lane;
}

extern "C" __global__ void prints(int n) {
    if (threadIdx.x == 0) printf("n=%d %s %.2f %c\n", n, names[n % 3], n * 0.5, 'x');
}

extern "C" __global__ void compare_and_swap(unsigned long long *sum, double *total, const double *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long old = *sum, seen;
    do {
        seen = old;
        old = atomicCAS(sum, seen, seen + (unsigned long long)x[i]);
    } while (old != seen);
    atomicAdd(total, x[i]);
}

extern "C" __global__ void mathematics(const double *x, double *y, float *z, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    y[i] = sin(x[i]) + exp(x[i]) * log(x[i] + 2.0) - pow(x[i], 1.5) + tgamma(x[i] + 1.0);
    z[i] = sinf((float)x[i]) + powf((float)x[i], 2.5f) + fmodf((float)x[i], 0.3f) + erff((float)x[i]) + tanf((float)x[i]);
}

extern "C" __global__ void __launch_bounds__(128, 2) bounded(long long *out, long long a, unsigned long long b, int s) {
    out[threadIdx.x] = a / (long long)(threadIdx.x + 1) + (long long)(b % (threadIdx.x + 3)) + (a >> s) + __mul64hi(a, s) + (long long)__umul64hi(b, b);
}
