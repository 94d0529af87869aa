# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Element types of arguments, checked against the pointers in a kernel's source."""

from __future__ import annotations

import ctypes
import gc

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

CONFIG = cu.LaunchConfig(1, 1)
SOURCE = r"""
typedef double real; /* float* */
#define NUMBER float
template <class T> __global__ void scale(T* x, const float *y) {}
namespace inner { __global__ void deep(const long long x[], int) {} }
extern "C" {
__global__ void all(float* f, const double *const __restrict__ d, int* i, unsigned long long* u,
                    short* s, size_t *z, unsigned char* bytes, void* any, real* r, NUMBER* m,
                    float4* v, float** pp, bool* b, struct thing* t, int n) {}
__global__ void __launch_bounds__(32) one(const float* __restrict__ x /* double* */, int n = 3) {}
#if 0
__global__ void two(float* x);
#else
__global__ void two(double* x) {}
#endif
__global__ void half_(int* x) {}
}
"""


class Interface:
    """An array of another library that has only __cuda_array_interface__."""

    def __init__(self, address: int, typestr: str) -> None:
        data = (address, False)
        self.__cuda_array_interface__ = {
            "shape": (4,),
            "typestr": typestr,
            "data": data,
            "version": 3,
        }


class Foreign:
    """A tensor of another library."""

    def __init__(self, tensor: cu.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.fixture(scope="module")
def code(driver):
    names = cu.ProgramOptions(name_expressions=["scale<double>", "inner::deep"])
    made = cu.Program(SOURCE, options=names).compile()
    yield made
    del made
    gc.collect()


def test_parameter_types(code):
    assert code["all"].parameter_types == (
        *("float*", "const double *const __restrict__", "int*", "unsigned long long*", "short*"),
        *("size_t *", "unsigned char*", "void*", "real*", "NUMBER*", "float4*", "float**"),
        *("bool*", "struct thing*", "int"),
    )
    assert code["one"].parameter_types == ("const float* __restrict__", "int")
    assert code["scale<double>"].parameter_types == ("T*", "const float *")
    assert code["inner::deep"].parameter_types == ("const long long *", "int")
    assert code["two"].parameter_types == (), "the preprocessor chooses one of them"
    assert cu.ObjectCode.from_ptx(code.ptx)["one"].parameter_types == ()


ACCEPTED = ["f4", "f8", "u4", "i8", "i2", "u8", "f8", "c8", "f8", "f8", "f4", "i8", "u1", "f4"]


def ways(kernel, stream, *args):
    """Every way to a kernel: functions that raise, or run it with the arguments."""

    def in_a_graph() -> None:
        with cu.Graph() as graph:
            graph.launch(CONFIG, kernel, *args)
            graph.instantiate().launch(stream)

    def captured() -> None:
        with stream.capture() as graph:
            cu.launch(stream, CONFIG, kernel, *args)
        graph.instantiate().launch(stream)

    return {
        "launch": lambda: cu.launch(stream, CONFIG, kernel, *args),
        "brackets": lambda: kernel[CONFIG, stream](*args),
        "bind": lambda: kernel.bind(CONFIG, *args)(stream),
        "graph": in_a_graph,
        "capture": captured,
    }


def test_what_is_known_is_checked(code, stream):
    good = [cu.zeros(4, dtype, stream=stream) for dtype in ACCEPTED]
    for way in ways(code["all"], stream, *good, 1).values():
        way()
    for index, wrong in [
        (0, "f8"),
        (0, "i4"),
        (1, "f4"),
        (2, "i8"),
        (2, "f4"),
        (3, "u4"),
        (4, "f2"),
    ]:
        args = list(good)
        args[index] = cu.zeros(4, wrong, stream=stream)
        for name, way in ways(code["all"], stream, *args, 1).items():
            with pytest.raises(TypeError, match=f"parameter {index} of kernel all points to"):
                way()
            assert not stream.is_capturing, name


def test_the_text(code, stream):
    x = cu.zeros(4, "f8", stream=stream)
    with pytest.raises(
        TypeError,
        match=r"parameter 0 of kernel one points to float32 by the kernel's source, got elements "
        r"of type float64 .*parameter_types",
    ):
        cu.launch(stream, CONFIG, code["one"], x, 1)
    with pytest.raises(TypeError, match="int32 or its unsigned twin by"):
        cu.launch(stream, CONFIG, code["half_"], x)


def test_memory_without_a_type_is_taken(code, device, stream):
    with device.allocate(64, stream=stream) as buffer:
        for memory in (buffer, buffer[8:16], buffer.ptr + 8, None):
            cu.launch(stream, CONFIG, code["one"], memory, 1)
    stream.sync()


def test_bytes_hold_anything(code, stream):
    for dtype in ("u1", "i1"):
        cu.launch(stream, CONFIG, code["one"], cu.zeros(16, dtype, stream=stream), 1)
        cu.launch(stream, CONFIG, code["one"], Foreign(cu.zeros(16, dtype, stream=stream)), 1)
    with pytest.raises(TypeError, match="points to float32"):
        cu.launch(stream, CONFIG, code["one"], cu.zeros(16, "bool", stream=stream), 1)
    stream.sync()


def test_other_libraries_tensors(code, stream):
    single, double = (cu.zeros(4, dtype, stream=stream) for dtype in ("f4", "f8"))
    cu.launch(stream, CONFIG, code["one"], Foreign(single), 1)
    address = int(single.ptr)
    for typestr, good in (
        ("<f4", True),
        (">f4", False),
        ("<f8", False),
        ("<i4", False),
        ("|u1", True),
        ("|V4", True),
    ):
        array = Interface(address, typestr)
        if good:
            cu.launch(stream, CONFIG, code["one"], array, 1)
        else:
            with pytest.raises(TypeError, match="points to float32"):
                cu.launch(stream, CONFIG, code["one"], array, 1)
    with pytest.raises(TypeError, match="points to float32"):
        cu.launch(stream, CONFIG, code["one"], Foreign(double), 1)
    stream.sync()


def test_types_can_be_told(code, stream):
    kernel = cu.ObjectCode.from_ptx(code.ptx)["one"]
    single, double = (cu.zeros(4, dtype, stream=stream) for dtype in ("f4", "f8"))
    cu.launch(stream, CONFIG, kernel, double, 1)
    kernel.parameter_types = ["float*", "int"]
    assert kernel.parameter_types == ("float*", "int")
    with pytest.raises(TypeError, match="points to float32"):
        cu.launch(stream, CONFIG, kernel, double, 1)
    cu.launch(stream, CONFIG, kernel, single, 1)
    kernel.parameter_types = ()
    cu.launch(stream, CONFIG, kernel, double, 1)
    for wrong, error in ((["float*"], ValueError), ("float*", TypeError), ([1, 2], TypeError)):
        with pytest.raises(error, match=r"parameter_types must|has 2 parameter"):
            kernel.parameter_types = wrong
    assert kernel.parameter_types == ()


DESCRIBED = """
typedef double real;
namespace inner { template <class T> __global__ void scale(T* x, const T* y, int) {} }
extern "C" __global__ void all(float* f, const real* d, unsigned u, bool b, size_t n) {}
"""


@pytest.fixture(scope="module")
def described(driver):
    """PTX with debug information, and nothing else."""
    options = cu.ProgramOptions(debug=True, name_expressions=["inner::scale<double>"])
    ptx = cu.Program(DESCRIBED, options=options).compile("ptx").ptx
    with cu.ObjectCode.from_ptx(ptx) as code:
        yield code
    gc.collect()


def test_debug_information_tells_types(described, stream):
    kernel = described["all"]
    assert kernel.parameter_types == (
        *("float*", "const double*", "unsigned int", "bool", "unsigned long"),
    )
    assert kernel.parameter_names == ("f", "d", "u", "b", "n")
    single, double = (cu.zeros(4, dtype, stream=stream) for dtype in ("f4", "f8"))
    kernel[1, 1, stream](single, double, n=3, u=2, b=True)
    for index, args in ((0, (double, double)), (1, (single, single))):
        for way in ways(kernel, stream, *args, 2, True, 3).values():
            with pytest.raises(TypeError, match=f"parameter {index} of kernel all points to"):
                way()
    for wrong in ((-1, True, 3), (2, 2, 3), (2, True, -1)):
        with pytest.raises(OverflowError, match="does not fit"):
            kernel[1, 1, stream](single, double, *wrong)
    scale = described["inner::scale<double>"]
    assert scale.parameter_types == ("double*", "const double*", "int")
    assert scale.parameter_names == (), "one has no name"
    with pytest.raises(TypeError, match=r"parameter 0 of kernel .* points to float64"):
        scale[1, 1, stream](single, double, 1)
    stream.sync()


def test_malformed_debug_information_tells_nothing(described, stream):
    cut = described.ptx.replace(".b32 .debug_abbrev", ".b32 .debug_abbrev+99", 1)
    with cu.ObjectCode.from_ptx(cut) as code:
        assert code["all"].parameter_types == ()
        assert code["all"].parameter_names == ()


def test_strict_types(code, stream):
    with cu.ObjectCode.from_ptx(code.ptx) as bare:
        kernel = bare.get_kernel("one", strict_types=["const float*", "int"])
        assert kernel.parameter_types == ("const float*", "int")
        single, double = (cu.zeros(4, dtype, stream=stream) for dtype in ("f4", "f8"))
        kernel[1, 1, stream](single, 1)
        with pytest.raises(TypeError, match="points to float32"):
            kernel[1, 1, stream](double, 1)
        assert bare.get_kernel("one") is kernel
        assert kernel.parameter_types == ("const float*", "int"), "none are given"
        for wrong, error in ((("int",), ValueError), ("float*", TypeError), ((1, 2), TypeError)):
            with pytest.raises(error, match=r"strict_types must|has 2 parameter"):
                bare.get_kernel("one", strict_types=wrong)
        assert kernel.parameter_types == ("const float*", "int")
        assert bare.get_kernel("one", strict_types=()).parameter_types == ()
        kernel[1, 1, stream](double, 1)
        stream.sync()


RANGES = [
    ("int", "int", -(1 << 31), (1 << 31) - 1),
    ("unsigned", "unsigned", 0, (1 << 32) - 1),
    ("bool", "bool", 0, 1),
    ("short", "short", -(1 << 15), (1 << 15) - 1),
    ("signed char", "signed char", -128, 127),
    ("unsigned char", "unsigned char", 0, 255),
    ("const long long", "long long", -(1 << 63), (1 << 63) - 1),
    ("size_t", "size_t", 0, (1 << 64) - 1),
    ("char", "char", -128, 255),  # the host says which
    ("number", "short", -(1 << 15), (1 << 16) - 1),  # another name: not known
]


@pytest.mark.parametrize(("ctype", "means", "low", "high"), RANGES)
def test_integers_are_in_the_range_of_their_types(driver, stream, ctype, means, low, high):
    source = (
        f'typedef short number; extern "C" __global__ void f({ctype} v, {means}* o) {{ *o = v; }}'
    )
    kernel = cu.Program(source).compile()["f"]
    dtype = "bool" if ctype == "bool" else f"{'u' if low == 0 else 'i'}{kernel.signature[0].size}"
    out = cu.zeros(1, dtype, stream=stream)
    for value in (low, high, 0, 1, np.int64(1), np.array(high)):
        for way in ways(kernel, stream, value, out).values():
            way()
        got = int(out.item(stream=stream))
        bits = 1 if ctype == "bool" else 8 * kernel.signature[0].size
        assert (got - int(value)) % (1 << bits) == 0
    for value in (low - 1, high + 1, 1 << 70):
        for name, way in ways(kernel, stream, value, out).items():
            with pytest.raises(OverflowError, match=f"parameter 0 of kernel f is .*, {value} does"):
                way()
            assert not stream.is_capturing, name
    with kernel.bind(CONFIG, high, out) as bound:
        with pytest.raises(OverflowError, match="does not fit"):
            bound.update(v=high + 1)
        bound.update(v=low)


@pytest.mark.parametrize(
    "value", [-1, np.int32(-3), np.array(-3, "i8"), ctypes.c_int(-1), -(1 << 70)]
)
def test_addresses_are_not_negative(code, stream, value):
    for name, way in ways(code["one"], stream, value, 1).items():
        with pytest.raises(OverflowError, match="parameter 0 of kernel one is an address of 64 bi"):
            way()
        assert not stream.is_capturing, name
    with code["one"].bind(CONFIG, None, 1) as bound:
        for _ in range(3):
            with pytest.raises(OverflowError, match="does not fit"):
                bound.update(x=value)


@pytest.mark.parametrize("value", [True, False, np.True_, ctypes.c_bool(True), np.array(True)])
def test_a_bool_is_no_address(code, stream, value):
    for way in ways(code["one"], stream, value, 1).values():
        with pytest.raises(TypeError, match="parameter 0 of kernel one must be a pointer"):
            way()
    with (
        code["one"].bind(CONFIG, 0, 1) as bound,
        pytest.raises(TypeError, match="parameter 0 of kernel one must be a pointer"),
    ):
        bound.update(x=value)


@pytest.mark.parametrize("value", [0, 64, (1 << 64) - 4, np.uint64(64), ctypes.c_void_p(64)])
def test_other_integers_are_addresses(code, stream, value):
    for way in ways(code["one"], stream, value, 1).values():
        way()
    stream.sync()


def test_ptx_alone_takes_both_signs(code, stream):
    with cu.ObjectCode.from_ptx(code.ptx) as bare:
        for value in (-1, (1 << 32) - 1):
            bare["one"][1, 1, stream](None, value)
        bare.get_kernel("one", strict_types=("float*", "int"))
        with pytest.raises(OverflowError, match="is a signed integer of 32 bits, 4294967295 does"):
            bare["one"][1, 1, stream](None, (1 << 32) - 1)
    stream.sync()


def test_updates_are_checked(code, stream):
    single, double = (cu.zeros(4, dtype, stream=stream) for dtype in ("f4", "f8"))
    with code["one"].bind(CONFIG, single, 1) as bound:
        with pytest.raises(TypeError, match="points to float32"):
            bound.update(x=double)
        bound.update(x=cu.ones(4, "f4", stream=stream))
        bound(stream)
        stream.sync()


def test_renamed_types_are_not_known(driver, stream):
    for rename in ("typedef double half;", "#define half double", "using half = double;"):
        source = f'{rename}\nextern "C" __global__ void f(half* x) {{}}'
        kernel = cu.Program(source).compile()["f"]
        kernel[1, 1, stream](cu.zeros(1, "f8", stream=stream))
    source = '#define float double\nextern "C" __global__ void f(float* x) {}'
    cu.Program(source).compile()["f"][1, 1, stream](cu.zeros(1, "f8", stream=stream))
