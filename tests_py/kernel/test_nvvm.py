# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""NVVM IR, compiled by libnvvm: make test-interop, which installs that, requires it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64"
    "-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
HEAD = f"""
target triple = "nvptx64-nvidia-cuda"
target datalayout = "{LAYOUT}"
!nvvmir.version = !{{!0}}
!0 = !{{i32 2, i32 0}}
"""


def ir(body: str, head: str = HEAD) -> str:
    """Return a module."""
    return head + body


SAXPY = ir("""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @saxpy(float %a, float* %x, float* %y, i32 %n) {
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %work, label %done
work:
  %xp = getelementptr float, float* %x, i32 %i
  %yp = getelementptr float, float* %y, i32 %i
  %xv = load float, float* %xp
  %yv = load float, float* %yp
  %ax = fmul contract float %a, %xv
  %sum = fadd contract float %ax, %yv
  store float %sum, float* %yp
  br label %done
done:
  ret void
}
""")
SINE = ir("""
declare float @__nv_sinf(float)
define ptx_kernel void @sine(float* %x) {
  %v = load float, float* %x
  %s = call float @__nv_sinf(float %v)
  store float %s, float* %x
  ret void
}
""")
CALLER = ir("""
declare i32 @twice(i32)
define ptx_kernel void @run(i32* %x) {
  %v = load i32, i32* %x
  %t = call i32 @twice(i32 %v)
  store i32 %t, i32* %x
  ret void
}
""")
DEBUGGED = ir(
    """
define ptx_kernel void @k() !dbg !12 {
  ret void, !dbg !15
}
!llvm.dbg.cu = !{!10}
!llvm.module.flags = !{!16}
!10 = distinct !DICompileUnit(language: DW_LANG_C, file: !11, emissionKind: FullDebug)
!11 = !DIFile(filename: "k.c", directory: "/")
!12 = distinct !DISubprogram(name: "k", scope: !11, file: !11, line: 1, type: !13, unit: !10)
!13 = !DISubroutineType(types: !14)
!14 = !{}
!15 = !DILocation(line: 2, column: 1, scope: !12)
!16 = !{i32 2, !"Debug Info Version", i32 3}
""",
    HEAD.replace("i32 0}", "i32 0, i32 3, i32 1}"),
)
# What a link-time optimizer is not to drop is in a list.
USED = """
@llvm.used = appending global [1 x i8*] [i8* bitcast (void (i32*)* @run to i8*)],
  section "llvm.metadata"
"""
TWICE = ir("""
define i32 @twice(i32 %v) {
  %t = mul i32 %v, 2
  ret i32 %t
}
""")


@contextlib.contextmanager
def needed() -> Iterator[None]:
    """Skip the test where libnvvm, or nvJitLink, is not installed."""
    try:
        yield
    except cu.CompileError as e:
        if "was not found" not in str(e):
            raise
        if os.environ.get("CUDAGO_REQUIRE_COMPILERS"):
            pytest.fail(str(e))
        pytest.skip("libnvvm, or nvJitLink, is not installed")


def compiled(source: Any, target: str | None = None, **options: Any) -> cu.ObjectCode:
    """Compile by libnvvm."""
    program = cu.Program(source, "nvvm", options=cu.ProgramOptions(**options))
    with needed():
        return program.compile(target)
    raise AssertionError


def bitcode(text: str) -> bytes:
    """Return what llvmlite makes of IR, of an LLVM that libnvvm refuses for older devices."""
    llvm = pytest.importorskip("llvmlite.binding")
    return llvm.parse_assembly(text).as_bitcode()


@pytest.mark.parametrize("form", [str, str.encode, lambda s: bytearray(s.encode())])
def test_a_kernel(form, device, stream):
    code = compiled(form(SAXPY))
    x = cu.asarray(np.arange(8, dtype="f4"), stream=stream)
    y = cu.full(8, 1, "f4", stream=stream)
    code["saxpy"][1, 8, stream](2.0, x, y, 7)
    assert y.numpy(stream=stream).tolist() == [1, 3, 5, 7, 9, 11, 13, 1]


def test_it_is_like_any_program(driver, stream):
    program = cu.Program(SAXPY, "nvvm")
    assert repr(program) == f"<cudago.Program 'program': nvvm, {len(SAXPY)} characters>"
    assert repr(cu.Program(b"1234", "nvvm")).endswith("nvvm, 4 bytes>")
    code = compiled(SAXPY)
    assert code.kind in ("ptx", "cubin")
    assert ".entry saxpy" in code.ptx
    kernel = code["saxpy"]
    assert str(kernel.signature) == "(f32, u64, u64, u32)"
    assert kernel.parameter_names == ("a", "x", "y", "n")
    x = cu.full(2, 4, "f4", stream=stream)
    kernel[1, 2, stream](a=0.5, x=x, y=x, n=2)
    assert x.numpy(stream=stream).tolist() == [6, 6]
    with pytest.raises(TypeError, match="parameter 3"):
        kernel[1, 2, stream](0.5, x, x, 2.5)


def test_the_target_is_one_that_the_device_runs(device):
    ptx = compiled(SAXPY, "ptx").ptx
    major, minor = device.compute_capability
    (target,) = (line for line in ptx.splitlines() if line.startswith(".target"))
    assert int(target.rpartition("sm_")[2]) <= 10 * major + minor
    for arch in ("sm_80", "compute_80"):
        assert ".target sm_80" in compiled(SAXPY, "ptx", arch=arch).ptx


@pytest.mark.parametrize("use", [None, True])
def test_libdevice(use, device, stream):
    code = compiled(SINE, use_libdevice=use)
    assert ".extern" not in code.ptx
    x = cu.full(1, 0.5, "f4", stream=stream)
    code["sine"][1, 1, stream](x)
    assert abs(x.item(stream=stream) - np.sin(np.float32(0.5))) < 1e-6
    assert ".extern .func" in compiled(SINE, "ptx", use_libdevice=False).ptx
    assert "__nv_" not in compiled(SAXPY, "ptx", use_libdevice=True).ptx  # only what is needed


@pytest.mark.parametrize("form", [str, str.encode])
def test_several_modules(form, device, stream):
    code = compiled(CALLER, extra_sources=[("twice.ll", form(TWICE))])
    x = cu.full(1, 21, "i4", stream=stream)
    code["run"][1, 1, stream](x)
    assert x.item(stream=stream) == 42
    with pytest.raises(cu.CompileError, match="symbol multiply defined"):
        compiled(CALLER, extra_sources=[("a", TWICE), ("b", TWICE)])


def compile_options(**options: Any) -> set[str]:
    """Return the options that libnvvm gets, which the error has."""
    with pytest.raises(cu.CompileError) as e:
        compiled("nothing", **options)
    return {*e.value.options}


def test_options():
    square = SINE.replace("__nv_sinf", "__nv_sqrtf")
    assert "sqrt.rn.f32" in compiled(square, "ptx").ptx
    assert "sqrt.approx.f32" in compiled(square, "ptx", prec_sqrt=False).ptx
    assert "sqrt.approx.ftz.f32" in compiled(square, "ptx", fast_math=True).ptx
    divided = SAXPY.replace("fmul contract", "fdiv")
    assert "div.rn.f32" in compiled(divided, "ptx").ptx
    assert "div.full.f32" in compiled(divided, "ptx", prec_div=False).ptx
    assert "div.rn.ftz.f32" in compiled(divided, "ptx", ftz=True).ptx
    plain = SAXPY.replace("contract ", "")
    assert "fma.rn" in compiled(plain, "ptx").ptx
    assert "fma.rn" not in compiled(plain, "ptx", fma=False).ptx
    slow = compiled(SAXPY, "ptx", optimization_level=0).ptx
    assert slow != compiled(SAXPY, "ptx").ptx
    assert slow == compiled(SAXPY, "ptx", options=["-opt=0"]).ptx
    assert ".target sm_80, debug" in compiled(DEBUGGED, "ptx", arch="sm_80", debug=True).ptx
    assert "-opt=0" not in compile_options(debug=False)
    assert {"-g", "-opt=0"} <= compile_options(debug=True)
    assert {"-g", "-opt=3"} <= compile_options(debug=True, optimization_level=3)
    with pytest.raises(ValueError, match=r"not all accepted by libnvvm: .*-nonsense is an unsup"):
        compiled(SAXPY, options=["-nonsense"])
    with pytest.raises(ValueError, match=r"-arch=compute_1 is an unsupported option"):
        compiled(SAXPY, arch="sm_1")
    with pytest.raises(ValueError, match='give "ltoir" as the target'):
        compiled(SAXPY, options=["-gen-lto"])


def test_errors_have_their_place():
    source = SAXPY.replace("store float %sum", "\tstore float %nope")
    with pytest.raises(cu.CompileError) as e:
        compiled(source, name="broken.ll")
    first, line, caret = str(e.value).split("\n")
    assert first.startswith("compilation of broken.ll failed: broken.ll (")
    assert first.endswith("use of undefined value '%nope'")
    assert line == "  \tstore float %nope, float* %yp"
    assert caret == "  \t" + " " * len("store float ") + "^"
    assert "%nope" in e.value.log
    assert any("-arch=" in option for option in e.value.options)
    with pytest.raises(cu.CompileError, match=r"second\.ll \(\d+, \d+\).*\n  %t = mil i32"):
        compiled(CALLER, extra_sources=[("second.ll", TWICE.replace("mul", "mil"))])
    with pytest.raises(cu.CompileError, match="incompatible"):
        compiled(SAXPY.replace("nvvmir.version", "other"))
    for damaged in (b"BC\xc0\xdenothing", b"", "nothing"):
        with pytest.raises(cu.CompileError, match="failed: program"):
            compiled(damaged)


def test_ir_of_another_llvm(device):
    opaque = SAXPY.replace("float*", "ptr")
    refused = device.compute_capability < (10, 0)
    hint = r"\^\nlibnvvm refuses pointers without a type \(ptr\): .* the IR of LLVM 7"
    with pytest.raises(cu.CompileError, match=hint):
        compiled(opaque, arch="compute_90")
    assert ".entry saxpy" in compiled(opaque, "ptx", arch="compute_100").ptx
    if refused:
        with pytest.raises(cu.CompileError, match="libnvvm refuses this bitcode"):
            compiled(bitcode(opaque))


def test_ltoir_is_linked(device, stream):
    """LTO-IR of NVVM, and of C++."""
    caller, twice = compiled(CALLER + USED, "ltoir"), compiled(TWICE, "ltoir")
    assert caller.kind == "ltoir"
    source = 'extern "C" __device__ int twice(int x) { return 2 * x; }'
    options = cu.ProgramOptions(relocatable_device_code=True)
    for helper in (twice, cu.Program(source, options=options).compile("ltoir")):
        with needed():
            code = cu.Linker(caller, helper).link()
        x = cu.full(1, 21, "i4", stream=stream)
        code["run"][1, 1, stream](x)
        assert x.item(stream=stream) == 42


def test_machine_code():
    code = compiled(SAXPY, "cubin")
    assert code.kind == "cubin"
    assert code.code.startswith(b"\x7fELF")
    assert ".entry saxpy" in code.ptx


@pytest.fixture
def cache(tmp_path):
    """Keep code in a folder of the test."""
    kept = cu.compile_cache.directory()
    cu.compile_cache.configure("disk", directory=tmp_path)
    cu.compile_cache.clear()
    yield
    cu.compile_cache.configure("disk" if kept else "memory", directory=kept)


def test_the_cache_knows_all_that_matters(cache):
    def misses() -> int:
        return cu.compile_cache.statistics().misses

    def compile_(source: str = SAXPY, target: str = "ptx", **options: Any) -> cu.ObjectCode:
        return compiled(source, target, **({"name": "a.ll"} | options))

    first = compile_()
    before = misses()
    assert before == 1
    assert compile_().ptx == first.ptx
    assert misses() == before
    for change in (
        {"arch": "compute_80"},
        {"name": "b.ll"},
        {"ftz": True},
        {"fma": False},
        {"debug": True},
        {"optimization_level": 0},
        {"use_libdevice": True},
        {"extra_sources": [("more", TWICE)]},
        {"extra_sources": [("other", TWICE)]},
        {"extra_sources": [("more", CALLER.replace("@run", "@go"))]},
        {"target": "ltoir"},
        {"source": SAXPY + "; more\n"},
    ):
        compile_(**change)
        before += 1
        assert misses() == before, change
        compile_(**change)
        assert misses() == before, change
    cu.Program(SAXPY, "nvvm").compile("ptx", cache=False)
    assert misses() == before


def test_from_a_file(tmp_path):
    file = tmp_path / "twice.ll"
    file.write_text(CALLER.replace("mul", "mil") + "x")
    program = cu.Program.from_file(file)
    assert program.kind == "nvvm"
    compiled(SAXPY)
    with pytest.raises(cu.CompileError, match=r"twice\.ll \(\d+, 0\)"):
        program.compile()
    (tmp_path / "x.bc").write_bytes(b"BC\xc0\xde\0")
    assert cu.Program.from_file(tmp_path / "x.bc").source == b"BC\xc0\xde\0"


def test_many_threads_compile():
    compiled(SAXPY)
    wrong: list[str] = []

    def work(i: int) -> None:
        source = SINE.replace("@sine", f"@sine{i}")
        for broken in (False, True, False):
            try:
                text = source.replace("store", "stoer") if broken else source
                program = cu.Program(text, "nvvm")
                if f".entry sine{i}(" not in program.compile("ptx", cache=False).ptx or broken:
                    wrong.append(f"{i}: {broken}")
            except cu.CompileError as e:
                if not broken:
                    wrong.append(str(e))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert wrong == []


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"std is for C.. source, which NVVM IR is not"):
        cu.Program(SAXPY, "nvvm", options=cu.ProgramOptions(std="c++17"))
    with pytest.raises(ValueError, match=r"name_expressions is for C.. source"):
        cu.Program(SAXPY, "nvvm", options=cu.ProgramOptions(name_expressions=["saxpy"]))
    for name, value in (("use_libdevice", True), ("optimization_level", 3), ("extra_sources", [1])):
        for kind in ("c++", "ptx"):
            with pytest.raises(ValueError, match=f"{name} is for NVVM IR, which source is not"):
                cu.Program("", kind, options=cu.ProgramOptions(**{name: value}))
    with pytest.raises(TypeError, match="source must be a str or bytes, not int"):
        cu.Program(1, "nvvm")
    with pytest.raises(ValueError, match="source must have no NUL, and has one in line 2"):
        cu.Program("a\n\0", "nvvm")
    with pytest.raises(TypeError, match="source must be a str, not bytes"):
        cu.Program(b"", "c++")
    for given, error, text in (
        (["x"], TypeError, r"extra_sources\[0\] must be a name and a module, got 'x'"),
        ([("x", 1)], TypeError, r"extra_sources\[0\] must be a str or bytes, not int"),
        ([("", "")], ValueError, r"extra_sources\[0\] must have a name"),
        ([("program", "")], ValueError, "has the name of another module: 'program'"),
    ):
        with pytest.raises(error, match=text):
            cu.Program("", "nvvm", options=cu.ProgramOptions(extra_sources=given))
    with pytest.raises(ValueError, match="target must be"):
        cu.Program(SAXPY, "nvvm").compile("exe")


def test_a_missing_compiler_names_what_to_install(script):
    """And the places where it was looked for."""
    run = script(
        "import cudago\n"
        "cudago._libraries.folders = lambda: [('/packages', ['libnvvm.so.4'])]\n"
        "try:\n"
        "    cudago.Program('', 'nvvm').compile()\n"
        "except cudago.CompileError as e:\n"
        "    print(e)\n",
        CUDAGO_DRIVER="sim",
    )
    if "failed: program" in run.stdout:
        pytest.skip("this machine has a libnvvm of its own")
    assert "`pip install cudago[nvvm]` brings it along" in run.stdout
    assert "/packages/libnvvm.so.4: no such file" in run.stdout
