// Compiled with --device-debug by NVRTC 13.5, name expressions ns::scale<double, 4>.
struct Range { double low; char inclusive; };
struct Params { bool on; float scale; Range range; };
enum Mode { Fast, Exact };
typedef double real;
namespace ns {
template <class T, int N> __global__ void scale(T* x, const T* __restrict__ y) { x[0] = y[0] * N; }
}
extern "C" __global__ void scalars(bool b, char c, signed char sc, unsigned char uc, short s, unsigned u, int i, long l,
                                   long long ll, unsigned long long ull, size_t z, float f, real r, Mode m) {}
extern "C" __global__ void pointers(float* f, const real* r, const int* const i, void* v, const void* cv, float4* f4,
                                    const Range* range, float** ff, float (*rows)[3], void (*call)(int), size_t* z) {}
extern "C" __global__ void structs(Params p, float4 f) {}
__global__ void unnamed(double* d, int) {}
