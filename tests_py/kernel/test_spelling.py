# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels by what C++ calls them: templates, overloads, namespaces."""

from __future__ import annotations

import re
import threading

import pytest

import cudago as cu

SOURCE = r"""
typedef float real;
enum class Mode { fast, exact };
namespace ns {
template <class T, int N> __global__ void f(T* x) { *x = N; }
__global__ void g(float* x) { *x = 1; }
__global__ void g(int* x) { *x = 2; }
__device__ int hits = 7;
}
template <class T, bool B, Mode M, unsigned char C>
__global__ void h(const T* x, T* out, unsigned long n) { *out = *x + B + (int)M + C + n; }
__global__ void use(int* x) { *x = ns::hits++; }
namespace { __global__ void hidden(int* x) { *x = 5; } }
"""
NAMES = ["ns::f<real, 4>", "ns::f< int , 5 >", "h<unsigned, true, Mode::exact, 'a'>", "hidden"]
PARAMETERS = "(const unsigned int*, unsigned int*, unsigned long)"
SPELLINGS = {
    "ns::f<real, 4>": [
        "ns::f<real,4>",
        "ns::f<float, 4>",
        " :: ns::f < float,4u > ",
        "void ns::f<float, 0x4>(float *)",
        "_ZN2ns1fIfLi4EEEvPT_",
    ],
    "ns::f< int , 5 >": ["ns::f<int, 5>", "ns::f<signed,5>(std::int32_t*)"],
    "h<unsigned, true, Mode::exact, 'a'>": [
        "h<unsigned int, true, (Mode)1, 97>",
        "h<uint32_t,1,(Mode)1,'a'>",
        "h<unsigned, true, Mode(1), 97>",
        "h<unsigned, true, static_cast<Mode>(1), 'a'>",
        "h<unsigned, true, (Mode)1, 'a'>" + PARAMETERS,
        "void h<unsigned,true,(Mode)1,'a'>(unsigned const*, unsigned*, size_t)",
    ],
    "hidden": ["hidden(int*)", "(anonymous namespace)::hidden"],
    "ns::g(float*)": ["void ns::g(float *)", "_ZN2ns1gEPf"],
    "ns::g(int*)": ["ns::g(signed int *)", "_ZN2ns1gEPi"],
}


FORMS = ("compiled", "ptx", pytest.param("machine code", marks=pytest.mark.gpu))


@pytest.fixture(scope="module", params=FORMS)
def code(request, device):
    """The code as it was compiled; as PTX from elsewhere, with symbols alone; and as a cubin."""
    compiled = cu.Program(SOURCE, options=cu.ProgramOptions(name_expressions=NAMES)).compile()
    if request.param == "compiled":
        return compiled
    if request.param == "ptx":
        return cu.ObjectCode.from_ptx(compiled.ptx)
    return cu.ObjectCode.from_cubin(compiled.code)


def spellings(code):
    """All spellings that suit the code: what only a compiler knows does not suit PTX."""
    for name, others in SPELLINGS.items():
        known = code._source is not None
        yield [s for s in (name, *others) if known or ("real" not in s and "Mode::" not in s)]


def test_any_spelling(code):
    for names in spellings(code):
        kernels = {id(code.get_kernel(name)) for name in names}
        assert len(kernels) == 1, names
        assert code[names[-1]].name == names[0]


def test_it_runs(code, stream):
    x = cu.zeros(1, "int32", stream=stream)
    y = cu.zeros(1, "float32", stream=stream)
    code["ns::f<signed int,5>"][1, 1, stream](x)
    assert x.item(stream=stream) == 5
    code["ns::g(int *)"][1, 1, stream](x)
    assert x.item(stream=stream) == 2
    code["ns::g(float*)"][1, 1, stream](y)
    assert y.item(stream=stream) == 1
    out = cu.zeros(1, "uint32", stream=stream)
    code["h<unsigned, true, (Mode)1, 97>"][1, 1, stream](
        x.astype("uint32", stream=stream), out, 1000
    )
    assert out.item(stream=stream) == 2 + 1 + 1 + 97 + 1000


def test_overloads_need_parameters(code):
    message = r'2 kernels are called "ns::g"; choose one by its parameters: ns::g\(float\*\), ns::g'
    with pytest.raises(cu.KernelNotFoundError, match=message):
        code["ns::g"]


@pytest.mark.parametrize(
    "name", ["ns::f<double, 4>", "ns::f<float>", "f<float, 4>", "ns::g(char*)", "", "<"]
)
def test_what_there_is(code, name):
    with pytest.raises(
        cu.KernelNotFoundError, match=re.escape(f'no kernel "{name}"; there are ')
    ) as e:
        code.get_kernel(name)
    assert "ns::g(float*)" in str(e.value)
    assert "_Z" not in str(e.value)
    asks = "name_expressions" in str(e.value)
    assert asks == (code._source is not None and "<" in name)


def test_names_of_parameters(code):
    kernel = code["h<unsigned, true, (Mode)1, 97>"]
    known = code._source is not None
    assert kernel.parameter_names == (("x", "out", "n") if known else ())
    assert kernel.parameter_types == (("const T*", "T*", "unsigned long") if known else ())


def test_variables(code, stream):
    if code.ptx is None:
        with pytest.raises(cu.KernelNotFoundError):  # drivers do not list variables
            code.get_global("ns::hits")
        return
    hits = code.get_global(" ns :: hits")
    assert hits.view("int32").numpy(stream=stream)[0] >= 7
    x = cu.zeros(1, "int32", stream=stream)
    code["use"][1, 1, stream](x)
    assert code["::ns::hits"].view("int32").numpy(stream=stream)[0] == x.item(stream=stream) + 1


def test_functions_among_template_arguments(device):
    source = """
    __device__ int next(int x) { return x + 1; }
    template <class T> __device__ T twice(T x) { return 2 * x; }
    template <int (*F)(int), int N> __global__ void apply(int* x) { *x = F(N); }
    """
    names = ["apply<next, 4>", "apply<twice<int>, 4>"]
    compiled = cu.Program(source, options=cu.ProgramOptions(name_expressions=names)).compile()
    for code in compiled, cu.ObjectCode.from_ptx(compiled.ptx):
        one = {code[n] for n in (names[0], "apply<&next,4>", "apply<&next(int), 4>")}
        two = {code[n] for n in (names[1], "apply<&twice<int>, 4>", "apply<&twice<int>(int), 4>")}
        assert len(one) == len(two) == 1
        assert one != two


def test_a_very_long_symbol_is_a_name(device):
    symbol = "_Z1f" + "P" * 2_000_000 + "i"
    text = f".version 7.0 .target sm_75 .address_size 64 .visible .entry {symbol}() {{ ret; }}"
    code = cu.ObjectCode.from_ptx(text)
    assert code[symbol].name == symbol
    with pytest.raises(cu.KernelNotFoundError, match=r'no kernel "f"; there are _Z1fPP') as e:
        code["f"]
    assert len(str(e.value)) < 10_000
    with pytest.raises(cu.KernelNotFoundError):
        code["const f<" * 100_000]


def test_threads_get_the_same_kernel(device):
    code = cu.Program(SOURCE, options=cu.ProgramOptions(name_expressions=NAMES)).compile()
    names = ["ns::f<int,5>", "ns::f< int , 5>", "ns::f<signed,5>", "ns::f<int32_t,5>"]
    found = []
    threads = [threading.Thread(target=lambda n=n: found.append(code[n])) for n in names]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    assert len({id(k) for k in found}) == 1


def test_faults_have_readable_names(script):
    done = script(
        """
        import cudago as cu
        template = "template <class T> __global__ void wrong(T* x) { x[1 << 20] = 1; }"
        source = "namespace ns { " + template + " }"
        options = cu.ProgramOptions(name_expressions=["ns::wrong<int>"])
        kernel = cu.Program(source, options=options).compile()["ns::wrong<int>"]
        with cu.Device().create_stream() as s:
            x = cu.Device().allocate(4, stream=s)
            try:
                kernel[1, 1, s](x)
                s.sync()
            except cu.CUDAError as e:
                print(e)
    """,
        CUDAGO_DRIVER="sim",
    )
    assert "ns::wrong<int>(int*)" in done.stdout, done.stdout + done.stderr
    assert "_Z" not in done.stdout
