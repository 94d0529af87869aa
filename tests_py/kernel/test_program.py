# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""From source to kernels."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry store(.param .u64 to, .param .u32 value)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [to];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd2], %r1;
    ret;
}
"""
ONE = cu.LaunchConfig(grid=1, block=1)


def stored(kernel, device, stream, *args) -> int:
    """Return what a kernel writes to its first argument."""
    out = bytearray(4)
    with device.allocate(4, stream=stream) as buffer:
        cu.launch(stream, ONE, kernel, buffer, *args)
        buffer.copy_to(out, stream=stream)
        stream.sync()
    return int.from_bytes(out, "little")


def test_compile_gives_what_the_driver_runs(driver):
    program = cu.Program('extern "C" __global__ void k() {}', "c++")
    assert repr(program) == "<cudago.Program 'program': c++, 33 characters>"
    code = program.compile()
    assert code.kind == ("ptx" if driver == "sim" else "cubin")
    assert ".entry k" in code.ptx
    assert code["k"].name == "k"
    assert code["k"] is code.get_kernel("k")
    assert code["k"].object_code is code
    assert repr(code) == f"<cudago.ObjectCode: {code.kind}>"


def test_a_kernel_tells_its_code(driver):
    """The same object while somebody has it, and then another one over the same code."""
    made = cu.Program('extern "C" __global__ void k() {}').compile()
    kernel, kind, text = made["k"], made.kind, made.ptx
    del made
    again = kernel.object_code
    assert (again.kind, again.ptx) == (kind, text)
    assert again is kernel.object_code
    assert again["k"] is kernel


def test_compile_to_a_form(driver):
    program = cu.Program('extern "C" __global__ void k() {}')
    assert b".visible .entry k" in program.compile("ptx").code
    assert program.compile("cubin").code.startswith(b"\x7fELF")
    assert program.compile("ltoir").kind == "ltoir"
    with pytest.raises(ValueError, match="'ptx', 'cubin' or 'ltoir', got 'exe'"):
        program.compile("exe")


def test_program_checks_its_arguments():
    with pytest.raises(ValueError, match=r"kind must be 'c\+\+', 'ptx' or 'nvvm', got 'cuda'"):
        cu.Program("", "cuda")
    with pytest.raises(TypeError, match="source must be a str, not bytes"):
        cu.Program(b"")
    with pytest.raises(ValueError, match="source must have no NUL, and has one in line 2"):
        cu.Program("int x;\nint\0 y;")


def test_compile_error(driver):
    options = cu.ProgramOptions(name="broken.cu", define_macro="N=1")
    program = cu.Program('extern "C" __global__ void k() {\n  int x = ;\n}', options=options)
    with pytest.raises(
        cu.CompileError, match=r"broken\.cu\(2\): error: expected an expression"
    ) as e:
        program.compile()
    assert str(e.value).endswith("expected an expression\n    int x = ;\n            ^")
    assert "int x = ;" in e.value.log
    assert "1 error detected" in e.value.log
    assert any("N=1" in option for option in e.value.options)
    assert isinstance(e.value, cu.CUDAError)


def test_the_first_error_is_pointed_at(driver):
    source = (
        'extern "C" __global__ void k() { int unused; }\n\t__device__ int y = here;\nint z = w;'
    )
    with pytest.raises(cu.CompileError) as e:
        cu.Program(source).compile()
    assert '"here" is undefined' in str(e.value)
    lines = str(e.value).split("\n")
    assert lines[-2].endswith("__device__ int y = here;")
    assert lines[-1].index("^") == lines[-2].index("here")


def test_warnings_are_kept_in_the_log(driver):
    program = cu.Program('extern "C" __global__ void k() { int unused; }')
    assert "never referenced" in program.compile().log


OPTIONS = {
    "macro": (cu.ProgramOptions(define_macro="VALUE=42"), "VALUE"),
    "macros": (cu.ProgramOptions(define_macro=["A=40", "B=2"]), "A + B"),
    "mapping": (cu.ProgramOptions(define_macro={"A": 40, "B": 2, "C": None}), "A + B * C"),
    "undefined": (
        cu.ProgramOptions(define_macro="A=1", options=["-UA"]),
        "\n#ifdef A\n0\n#else\n42\n#endif\n",
    ),
    "standard": (cu.ProgramOptions(std="c++20"), "__cplusplus >= 202002L ? 42 : 0"),
    "raw": (cu.ProgramOptions(options=["--define-macro=VALUE=42"]), "VALUE"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name, device, stream):
    options, value = OPTIONS[name]
    source = f'extern "C" __global__ void k(int* p) {{ *p = {value}; }}'
    kernel = cu.Program(source, options=options).compile()["k"]
    assert stored(kernel, device, stream) == 42


def test_include_path(device, stream, tmp_path):
    (tmp_path / "answer.h").write_text("#define ANSWER 42\n")
    source = '#include "answer.h"\nextern "C" __global__ void k(int* p) { *p = ANSWER; }'
    for path in (tmp_path, str(tmp_path), [tmp_path]):
        code = cu.Program(source, options=cu.ProgramOptions(include_path=path)).compile()
        assert stored(code["k"], device, stream) == 42
    with pytest.raises(cu.CompileError, match=r"answer\.h"):
        cu.Program(source).compile()


def test_templates_by_name_expression(device, stream):
    source = "template <typename T> __global__ void k(int* p) { *p = sizeof(T); }"
    options = cu.ProgramOptions(name_expressions=["k<double>", "k<char>"])
    code = cu.Program(source, options=options).compile()
    assert stored(code["k<double>"], device, stream) == 8
    assert stored(code["k<char>"], device, stream) == 1


def test_ptx_as_program_text_and_file(device, stream, tmp_path):
    file = tmp_path / "store.ptx"
    file.write_text(PTX)
    for code in (
        cu.Program(PTX, "ptx").compile(),
        cu.ObjectCode.from_ptx(PTX),
        cu.ObjectCode.from_ptx(PTX.encode()),
        cu.ObjectCode.from_ptx(file),
        cu.ObjectCode.from_ptx(str(file)),
    ):
        assert code.kernels == ("store",)
        assert str(code["store"].signature) == "(u64, u32)"
        assert stored(code["store"], device, stream, 1234) == 1234


def test_signature(driver):
    source = """
    struct alignas(16) Big { float4 a; int b; };
    struct Small { char c[3]; };
    extern "C" __global__ void k(float f, double d, char c, short s, int i, long long l, void* p,
                                 Big big, Small small, bool b) {}
    """
    signature = cu.Program(source).compile()["k"].signature
    assert [str(p) for p in signature] == (
        ["f32", "f64", "u8", "u16", "u32", "u64", "u64", "b8[32]", "b8[3]", "u8"]
    )
    assert [p.size for p in signature] == [4, 8, 1, 2, 4, 8, 8, 32, 3, 1]
    assert [p.offset for p in signature] == [0, 8, 16, 18, 20, 24, 32, 48, 80, 83]
    assert all(p == str(p) for p in signature)


def test_unknown_kernel_lists_those_there_are(kernels):
    with pytest.raises(cu.CUDAError, match=r'no kernel "gamma"; there are .*saxpy') as e:
        kernels["gamma"]
    assert isinstance(e.value, KeyError)
    assert (e.value.code, e.value.name) == (500, "CUDA_ERROR_NOT_FOUND")
    assert "saxpy" in str(e.value)
    with pytest.raises(TypeError, match="name must be a str, not int"):
        kernels[3]


def test_attributes(kernels, device):
    attributes = kernels["saxpy"].attributes
    assert attributes.max_threads_per_block == 1024
    assert attributes.register_count > 0
    assert attributes.shared_size == 0
    assert repr(attributes).startswith("KernelAttributes(max_threads_per_block=1024, ")
    assert set(dir(attributes)) >= {"local_size", "max_dynamic_shared_size"}
    assert kernels["saxpy"].attributes_on(device).const_size == attributes.const_size
    with pytest.raises(AttributeError, match="no attribute 'speed'; it has max_threads_per_block"):
        _ = attributes.speed
    with pytest.raises(AttributeError, match="'local_size' cannot be set"):
        attributes.local_size = 3


SHARED = """extern "C" __global__ void k(int* p, int n) {
    extern __shared__ int s[];
    s[n - 1] = 42;
    *p = s[n - 1];
}
extern "C" __global__ void with_static(int* p) {
    __shared__ int s[2000];
    s[threadIdx.x] = p[threadIdx.x];
    p[threadIdx.x] = s[threadIdx.x ^ 1];
}"""


@pytest.mark.parametrize("way", ["launch", "graph", "capture", "set before"])
def test_more_shared_memory_than_every_device_has(way, device, stream):
    kernel = cu.Program(SHARED).compile()["k"]
    config = cu.LaunchConfig(grid=1, block=1, shared_memory=50000)
    y = cu.zeros(1, "i4", stream=stream)
    args = (y, 12500)
    if way == "set before":
        kernel.attributes.max_dynamic_shared_size = 60000
    if way == "graph":
        graph = cu.Graph()
        graph.launch(config, kernel, *args)
        graph.instantiate().launch(stream)
    elif way == "capture":
        with stream.capture() as graph:
            cu.launch(stream, config, kernel, *args)
        graph.instantiate().launch(stream)
    else:
        cu.launch(stream, config, kernel, *args)
    assert y.numpy(stream=stream)[0] == 42
    most = device.properties.max_shared_memory_per_block_optin
    asked = 60000 if way == "set before" else most
    assert kernel.attributes.max_dynamic_shared_size == asked


def test_more_shared_memory_than_the_device_has(device, stream):
    code = cu.Program(SHARED).compile()
    most = device.properties.max_shared_memory_per_block_optin
    for name, static in (("k", 0), ("with_static", 8000)):
        kernel = code[name]
        before = kernel.attributes.max_dynamic_shared_size
        config = cu.LaunchConfig(1, 1, shared_memory=most - static + 1)
        args = [None] * len(kernel.signature) if name == "with_static" else [None, 1]
        with pytest.raises(
            ValueError, match=f"must be at most {most - static} bytes for this kern"
        ):
            cu.launch(stream, config, kernel, *args)
        assert kernel.attributes.max_dynamic_shared_size == before
        assert kernel.max_active_blocks(32, shared_memory=most - static) >= 1
        assert kernel.max_active_blocks(32, shared_memory=most) == (1 if not static else 0)


def test_a_limit_that_was_set_is_kept(device, stream):
    kernel = cu.Program(SHARED).compile()["k"]
    kernel.attributes.max_dynamic_shared_size = 1000
    say = "at most 1000 bytes for this kernel, whose max_dynamic_shared_size was set, got 1001"
    with pytest.raises(ValueError, match=say):
        cu.launch(stream, cu.LaunchConfig(1, 1, shared_memory=1001), kernel, None, 1)
    assert kernel.attributes.max_dynamic_shared_size == 1000


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
@pytest.mark.parametrize("call", ["cuFuncSetAttribute", "cuFuncGetAttribute"])
def test_a_request_for_shared_memory_that_fails(call, driver, script):
    run = script(
        f"""
        import cudago as cu
        from cudago import _core

        kernel = cu.Program({SHARED!r}).compile()["k"]
        s = cu.Device().create_stream()
        y = cu.zeros(1, "i4", stream=s)
        config = cu.LaunchConfig(1, 1, shared_memory=50000)
        _core._fail_next({call!r}, 1, 999)
        try:
            cu.launch(s, config, kernel, y, 1)
        except cu.CUDAError as e:
            assert e.operation == {call!r}, e
        else:
            raise AssertionError
        assert y.numpy(stream=s)[0] == 0
        cu.launch(s, config, kernel, y, 1)
        assert y.numpy(stream=s)[0] == 42
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_occupancy(kernels, device):
    kernel = kernels["nothing"]
    few, many = kernel.max_active_blocks(1024), kernel.max_active_blocks(32)
    assert 1 <= few <= many
    assert kernel.max_active_blocks(32, shared_memory=40000, device=device) < many


def test_occupancy_of_clusters(kernels, device):
    kernel, plain = kernels["nothing"], cu.LaunchConfig(64, 128)
    if not device.properties.cluster_launch:
        why = r"clusters need compute capability 9\.0, .* has|does not launch clusters"
        for ask in (kernel.max_cluster_size, kernel.max_active_clusters):
            with pytest.raises(cu.UnsupportedError, match=why):
                ask(cu.LaunchConfig(64, 128, cluster=2), device=device)
    else:
        size = kernel.max_cluster_size(plain, device=device)
        assert size >= 8
        assert kernel.max_cluster_size(cu.LaunchConfig(64, 128, cluster=2)) == size
        few = kernel.max_active_clusters(cu.LaunchConfig(64, 128, cluster=size))
        many = kernel.max_active_clusters(cu.LaunchConfig(64, 128, cluster=2), device=device)
        assert 1 <= few < many
        with pytest.raises(ValueError, match="grid must be a multiple of the cluster"):
            kernel.max_active_clusters(cu.LaunchConfig(3, 128, cluster=2))
    with pytest.raises(ValueError, match="config must have a cluster"):
        kernel.max_active_clusters(plain)
    for ask in (kernel.max_cluster_size, kernel.max_active_clusters):
        with pytest.raises(TypeError, match="config must be a LaunchConfig, not"):
            ask(64)
        with pytest.raises(TypeError, match="device must be a Device, not"):
            ask(plain, device=0)


@pytest.mark.parametrize("number", [(1 << 32) + 16, 1 << 70, -(1 << 32)])
def test_numbers_of_more_than_32_bits(number, kernels):
    kernel = kernels["nothing"]
    size = kernel.attributes.max_dynamic_shared_size
    with pytest.raises(ValueError, match=f"block must be 1 to 2147483647, got {number}"):
        kernel.max_active_blocks(number)
    with pytest.raises(ValueError, match=f"shared_memory must be 0 to 2147483647, got {number}"):
        kernel.max_active_blocks(32, shared_memory=number)
    with pytest.raises(ValueError, match=f"value must be -2147483648 .* got {number}"):
        kernel.attributes.max_dynamic_shared_size = number
    assert kernel.attributes.max_dynamic_shared_size == size


def test_a_kernel_keeps_its_code(device, stream):
    kernel = cu.ObjectCode.from_ptx(PTX).get_kernel("store")
    assert stored(kernel, device, stream, 5) == 5
    assert repr(kernel) == "<cudago.Kernel store(u64, u32)>"


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
@pytest.mark.parametrize(
    ("change", "line", "column", "message"),
    [
        (("st.global.u32 [%rd2], %r1;", "st.glubal.u32 [%rd2], %r1;"), 12, None, "st.*glubal"),
        (("st.global.u32", "bar.zync"), 12, 5, "unknown instruction bar.zync"),
        (("%r1;\n    ret", "%r9;\n    ret"), 12, 5, "%r9 is not declared"),
        ((".version 7.0", "version 7.0"), 2, 1, "version"),
        (("    ret;\n}", "    ret;\n"), 6, 1, "brace is not closed"),
        (("    ret;", "    .shared .b8 s[65536];\n    ret;"), 5, 1, "65536 bytes of static shared"),
    ],
    ids=["modifier", "instruction", "register", "directive", "end", "shared memory"],
)
def test_ptx_errors_show_the_place(change, line, column, message, driver):
    text = PTX.replace(*change)
    assert text != PTX
    with pytest.raises(cu.PTXError, match=message) as e:
        cu.ObjectCode.from_ptx(text).get_kernel("store")
    assert e.value.line == line
    assert column is None or e.value.column == column
    assert isinstance(e.value, ValueError)
    assert e.value.name == "CUDA_ERROR_INVALID_PTX"
    if column:
        assert text.splitlines()[line - 1].strip() in str(e.value)


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_errors_show_a_part_of_a_long_line(driver):
    text = PTX.replace("    ret;", "    " + "add.u32 %r1, %r1, 1; " * 50_000 + "bogus; ret;")
    with pytest.raises(cu.PTXError, match="unknown instruction bogus") as e:
        cu.ObjectCode.from_ptx(text).get_kernel("store")
    assert "add.u32 %r1, %r1, 1; bogus; ret;" in str(e.value)
    assert len(str(e.value)) < 600
    assert e.value.column > 1_000_000


def local_memory(size):
    """A kernel with that many bytes of local memory."""
    body = f".local .align 8 .b8 x[{size}]; .reg .b64 %x; mov.u64 %x, x; st.local.u32 [%x], %r1;"
    return cu.ObjectCode.from_ptx(PTX.replace("    ret;", f"    {body} ret;")).get_kernel("store")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_local_memory_has_a_limit(driver, device, stream):
    out, config = cu.zeros(1, "u4", stream=stream), cu.LaunchConfig(1, 1)
    for size in 16384, 500_000:
        kernel = local_memory(size)
        assert kernel.attributes.local_size >= size
        cu.launch(stream, config, kernel, out, size)
        assert out.numpy(stream=stream)[0] == size
    message = r"the kernel has \d+ bytes of local memory for each thread, .* at most 524288"
    for size in 524_289, 1 << 24, (1 << 31) - 8:
        kernel = local_memory(size)
        for use in (
            lambda k=kernel: cu.launch(stream, config, k, out, 1),
            lambda k=kernel: cu.Graph(device).launch(config, k, out, 1),
        ):
            with pytest.raises(ValueError, match=message):
                use()
    with pytest.raises(cu.CUDAError, match="524288 of local memory for each thread"):
        cu.launch(stream, config, local_memory(524_288), out, 1)
    for size in 1 << 31, (1 << 32) - 4, f"{(1 << 32) - 16}]; .local .b8 b[32":
        with pytest.raises(cu.PTXError, match="the local variables of store exceed 2147483647"):
            local_memory(size)
    stream.sync()


def test_attributes_that_cannot_be(device):
    kernel = cu.Program(SHARED).compile()["with_static"]
    most = device.properties.max_shared_memory_per_block_optin - 8000
    for value in -1, most + 1, 10**9:
        message = rf'max_dynamic_shared_size must be 0 to {most} bytes for kernel "with_static" on'
        with pytest.raises(ValueError, match=rf"{message} device 0, got {value}"):
            kernel.attributes.max_dynamic_shared_size = value
    for value in -2, 101, 200:
        message = "must be 0 to 100 percent, or -1 for the driver's choice, got"
        with pytest.raises(ValueError, match=f"shared_memory_preference {message} {value}"):
            kernel.attributes.shared_memory_preference = value


def test_kernel_with_many_parameters(device, stream):
    names = [f"p{i}" for i in range(500)]
    more = "".join(f".param .u32 {n}, " for n in names)
    text = PTX.replace(".param .u32 value", more + ".param .u32 value")
    kernel = cu.ObjectCode.from_ptx(text.replace("[value]", "[p499]")).get_kernel("store")
    out = cu.zeros(1, "u4", stream=stream)
    arguments = [out, *range(500), 7]
    cu.launch(stream, cu.LaunchConfig(1, 1), kernel, *arguments)
    assert out.numpy(stream=stream)[0] == 499
    graph = cu.Graph()
    graph.launch(cu.LaunchConfig(1, 1), kernel, *arguments)
    out.buffer.fill(0, stream=stream)
    graph.instantiate().launch(stream)
    assert out.numpy(stream=stream)[0] == 499


def test_text_that_is_not_ptx(device):
    with pytest.raises(cu.CUDAError, match=r"CUDA_ERROR_INVALID_(PTX|IMAGE)"):
        cu.ObjectCode.from_ptx("not at all\n").get_kernel("k")


@pytest.mark.parametrize("make", [cu.ObjectCode.from_cubin, cu.ObjectCode.from_fatbin])
def test_bytes_that_are_no_machine_code(device, make):
    with pytest.raises(cu.CUDAError, match=r"CUDA_ERROR_INVALID_IMAGE") as e:
        make(b"garbage, not an image").get_kernel("k")
    assert not isinstance(e.value, cu.PTXError)


def test_files_that_are_not_there(tmp_path):
    for make in (cu.ObjectCode.from_ptx, cu.ObjectCode.from_cubin, cu.ObjectCode.from_fatbin):
        with pytest.raises(FileNotFoundError, match=r"absent\.bin"):
            make(tmp_path / "absent.bin")
    with pytest.raises(FileNotFoundError, match=r"absent\.ptx"):
        cu.ObjectCode.from_ptx("absent.ptx")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_kernel_that_cannot_run_says_why(device, stream):
    odd = """.visible .entry odd() {
    .reg .b64 %rd<2>;
    stacksave.u64 %rd1;
    ret;
    }
    """
    code = cu.ObjectCode.from_ptx(PTX + odd)
    place = PTX.count("\n") + 3
    with pytest.raises(cu.UnsupportedError, match=rf'line {place}: "stacksave.*kernel odd'):
        code.get_kernel("odd")
    assert stored(code["store"], device, stream, 5) == 5


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_machine_code_does_not_run_on_the_simulated_driver(driver):
    code = cu.Program('extern "C" __global__ void k() {}').compile("cubin")
    with pytest.raises(cu.CUDAError, match=r"CUDA_ERROR_NO_BINARY_FOR_GPU.*compile to PTX"):
        cu.ObjectCode.from_cubin(code.code).get_kernel("k")


@pytest.mark.parametrize(
    "driver", ["sim"], indirect=True
)  # a GPU's machine may have one of its own
def test_without_nvrtc(script, driver):
    run = script(
        """
        import importlib.machinery
        import cudago, cudago as cu
        cudago._libraries.folders = lambda: []
        try:
            cu.Program('extern "C" __global__ void k() {}').compile()
        except cu.CUDAError as e:
            print(e)
        """,
        CUDAGO_NVRTC_PATH="/nowhere/libnvrtc.so",
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "NVRTC" in run.stdout
    assert "/nowhere/libnvrtc.so" in run.stdout
    assert "cudago[sim]" in run.stdout
