# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Headers: in memory, built in, and found where NVIDIA's packages are; and the other options."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

KERNEL = 'extern "C" __global__ void set(int* p) { *p = VALUE; }'


def stored(code: cu.ObjectCode, stream: cu.Stream) -> int:
    out = cu.zeros(1, "i4", stream=stream)
    code["set"][1, 1, stream](out)
    return int(out.numpy(stream=stream)[0])


def test_headers_in_memory(stream, tmp_path):
    (tmp_path / "value.h").write_text("#define VALUE 1")
    source = '#include "value.h"\n' + KERNEL
    for value in (7, 8, 7):
        headers = {
            "value.h": '#include "inner/number.h"',
            "inner/number.h": f"#define VALUE {value}",
        }
        options = cu.ProgramOptions(headers=headers, include_path=tmp_path)
        assert stored(cu.Program(source, options=options).compile(), stream) == value
    options = cu.ProgramOptions(headers={"value.h": "#define VALUE 9"}, pre_include="value.h")
    assert stored(cu.Program(KERNEL, options=options).compile(), stream) == 9


def test_headers_are_checked():
    for headers in ({"a.h": b""}, {1: ""}):
        with pytest.raises(TypeError, match="headers must be a mapping of names to texts"):
            cu.ProgramOptions(headers=headers)
    for headers in ({"": ""}, {"a.h": "\0"}, {"a\0": ""}):
        with pytest.raises(ValueError, match=r"headers.* must be (a name|text without a NUL)"):
            cu.ProgramOptions(headers=headers)


INTEGERS = """
static_assert(sizeof(std::int8_t) + sizeof(int16_t) + sizeof(std::uint32_t) + sizeof(int64_t) == 15, "");
static_assert(sizeof(uintptr_t) == sizeof(std::size_t) && sizeof(std::ptrdiff_t) == 8, "");
static_assert(INT32_MAX == 2147483647 && UINT64_MAX == ~0ull && INT64_MIN < 0, "");
"""  # noqa: E501


@pytest.mark.parametrize("header", ["cstdint", "stdint.h", "cstddef", "stddef.h"])
def test_integer_types_need_no_package(driver, header):
    cu.Program(f"#include <{header}>\n#include <cstdint>\n{INTEGERS}").compile()


@pytest.mark.parametrize("header", ["climits", "limits.h"])
def test_limits_need_no_package(driver, header):
    limits = "CHAR_BIT == 8 && INT_MIN < 0 && ULLONG_MAX == ~0ull"
    cu.Program(f'#include "{header}"\nstatic_assert({limits}, "");').compile()


CONSTANTS = """
__device__ double use(double x) { return std::sqrt(x) + M_PI + INFINITY + NAN + HUGE_VAL + std::isnan(x); }
static_assert(sizeof(std::pow(1.0f, 2.0f)) == 4, "of floats");
"""  # noqa: E501
FLOATS = 'static_assert(FLT_MAX > 3e38f && DBL_EPSILON < 1e-15 && FLT_DIG == 6, "");'
REST = """
extern "C" __global__ void use(char* p) {
    assert(p != NULL);
    printf("%d\\n", (int)std::abs(-1));
    std::memcpy(p, p + 8, std::size_t(8));
    free(malloc(1));
}
"""


@pytest.mark.parametrize(
    ("header", "source"),
    [
        *[(name, CONSTANTS) for name in ("cmath", "math.h")],
        *[(name, FLOATS) for name in ("cfloat", "float.h")],
        *[(name, REST) for name in ("cstdio", "stdio.h", "cstdlib", "stdlib.h", "cstring")],
        *[(name, REST) for name in ("string.h", "cassert", "assert.h", "ctime", "time.h")],
        ("stdbool.h", REST),
    ],
)
def test_what_the_compiler_knows_needs_no_package(driver, header, source):
    cu.Program(f"#include <{header}>\n#include <cstdlib>\n{source}").compile()


def test_headers_that_cuda_h_includes(driver, tmp_path):
    (tmp_path / "cuda.h").write_text("#include <stdlib.h>\n#include <stdint.h>\n")
    (tmp_path / "stdlib.h").write_text("#define MINE 1\n")
    options = cu.ProgramOptions(include_path=tmp_path)
    source = '#include <cuda.h>\nstatic_assert(MINE && sizeof(uint64_t) == 8, "");'
    cu.Program(source, options=options).compile()


def test_built_in_headers_give_way(stream, tmp_path):
    (tmp_path / "cstdint").write_text("#define VALUE 5")
    source = "#include <cstdint>\n" + KERNEL
    beside = cu.ProgramOptions(include_path=tmp_path)
    assert stored(cu.Program(source, options=beside).compile(), stream) == 5
    memory = cu.ProgramOptions(headers={"cstdint": "#define VALUE 6"})
    assert stored(cu.Program(source, options=memory).compile(), stream) == 6
    with pytest.raises(cu.CompileError, match="cstdint"):
        cu.Program(source, options=cu.ProgramOptions(find_headers=False)).compile()


def found_by(script, root: Path, source: str, first: str = "", **environment: str) -> str:
    """Return what compiling says in a process whose environment has packages in `root`."""
    path = os.pathsep.join((str(root), script.environment["PYTHONPATH"]))
    done = script(
        f"""
        import cudago as cu
        cu._libraries.folders = lambda: {cu._libraries.folders()!r}
        {first}
        try:
            print(cu.Program({source!r}).compile("ptx").kind)
        except cu.CompileError as e:
            print(e)
        """,
        **{"PYTHONPATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Whatever this machine has installed.
NO_PATHFINDER = "from cudago._kernel import headers; headers._by_pathfinder = list"
NO_PACKAGES = f"{NO_PATHFINDER}; headers.find_spec = lambda name: None"
HALF = "#include <cuda_fp16.h>\n#include <cub/one.cuh>\n__device__ int half = HALF + CUB;"


def plant(include: Path, cccl: Path) -> None:
    include.mkdir(parents=True, exist_ok=True)
    (include / "cuda_fp16.h").write_text("#define HALF 1")
    (cccl / "cub").mkdir(parents=True)
    (cccl / "cub" / "one.cuh").write_text("#define CUB 2")


@pytest.mark.parametrize(
    ("include", "cccl"),
    [
        ("nvidia/cu13/include", "nvidia/cu13/include/cccl"),
        ("nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include"),
    ],
)
def test_packages_are_searched(driver, script, tmp_path, include, cccl):
    root = tmp_path / "site"
    plant(root / include, root / cccl)
    assert found_by(script, root, HALF, NO_PATHFINDER) == "ptx"


def test_libcu_has_some_of_the_standard_headers(driver, script, tmp_path):
    include = tmp_path / "site" / "nvidia" / "cu13" / "include"
    (include / "cccl" / "cub").mkdir(parents=True)
    std = include / "cccl" / "cuda" / "std"
    std.mkdir(parents=True)
    (include / "cuda_fp16.h").touch()
    (std / "vector").touch()
    for name, advice in ("vector", "as <cuda/std/vector>"), ("string", "it is for hosts"):
        said = found_by(script, tmp_path / "site", f"#include <{name}>", NO_PATHFINDER)
        assert advice in said and "pip install" not in said


def test_toolkits_are_searched(driver, script, tmp_path):
    toolkit = tmp_path / "toolkit" / "include"
    plant(toolkit, toolkit)
    home = str(toolkit.parent)
    assert found_by(script, tmp_path, HALF, NO_PACKAGES, CUDA_HOME=home) == "ptx"


def test_pathfinder_is_asked(driver, script, tmp_path):
    pathfinder = tmp_path / "site" / "cuda" / "pathfinder"
    pathfinder.mkdir(parents=True)
    plant(tmp_path / "runtime", tmp_path / "cccl")
    (pathfinder / "__init__.py").write_text(
        f"""places = {{"cudart": {str(tmp_path / "runtime")!r}, "cccl": {str(tmp_path / "cccl")!r}}}
def find_nvidia_header_directory(name):
    return places[name]
"""
    )
    assert found_by(script, tmp_path / "site", HALF) == "ptx"
    (pathfinder / "__init__.py").write_text("def find_nvidia_header_directory(name): 1 / 0")
    assert "was not found" in found_by(script, tmp_path / "site", HALF)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("cuda/atomics_of_tomorrow", r"pip install 'cudago\[headers\]'"),
        ("cub/no_such.cuh", r"pip install 'cudago\[headers\]'"),
        ("cuda_fp3.h", r"pip install 'cudago\[headers\]'"),
        ("vector", r"<cuda/std/vector>|it is for hosts"),
        ("curand_no_such.h", "pip install nvidia-curand"),
        ("mine/own.h", "include_path="),
    ],
)
def test_a_missing_header_says_what_to_do(driver, name, advice):
    with pytest.raises(cu.CompileError, match=f"{name!r} was not found: .*{advice}") as e:
        cu.Program(f"#include <{name}>").compile()
    assert "open source file" in e.value.log
    assert "was not found:" not in e.value.log


def test_from_file(stream, tmp_path):
    (tmp_path / "value.h").write_text("#define VALUE 11")
    file = tmp_path / "kernel.cu"
    file.write_text('#include "value.h"\n' + KERNEL)
    for path in (file, str(file)):
        program = cu.Program.from_file(path)
        assert (program.kind, program.source) == ("c++", file.read_text())
        assert stored(program.compile(), stream) == 11
    file.write_text("nonsense")
    with pytest.raises(cu.CompileError, match=rf"{file}\(1\): error"):
        cu.Program.from_file(file).compile()
    with pytest.raises(cu.CompileError, match=r"named\.cu\(1\): error"):
        cu.Program.from_file(file, options=cu.ProgramOptions(name="named.cu")).compile()
    file.write_text(KERNEL.replace("VALUE", "13"), "utf-8-sig")  # as editors of Windows write it
    assert stored(cu.Program.from_file(file).compile(), stream) == 13
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        cu.Program.from_file(file)
    with pytest.raises(FileNotFoundError):
        cu.Program.from_file(tmp_path / "nowhere.cu")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text")
def test_from_a_file_with_a_name_that_is_no_text(stream, tmp_path):
    file = tmp_path / "kernel\udcff.cu"
    file.write_text(KERNEL.replace("VALUE", "14"))
    assert stored(cu.Program.from_file(file).compile(), stream) == 14


def test_save(driver, stream, tmp_path):
    code = cu.Program(KERNEL, options=cu.ProgramOptions(define_macro="VALUE=12")).compile()
    code.save(tmp_path / "code")
    read = cu.ObjectCode.from_ptx if code.kind == "ptx" else cu.ObjectCode.from_cubin
    assert stored(read(tmp_path / "code"), stream) == 12
    file = tmp_path / "kernel.ptx"
    file.write_text(code.ptx)
    program = cu.Program.from_file(file)
    assert program.kind == "ptx"
    assert stored(program.compile(), stream) == 12
    with pytest.raises(OSError, match="nowhere"):
        code.save(tmp_path / "nowhere" / "code")


FLAGS = [
    ({"ftz": True}, "--ftz=true"),
    ({"prec_div": False}, "--prec-div=false"),
    ({"prec_sqrt": True}, "--prec-sqrt=true"),
    ({"fma": False}, "--fmad=false"),
    ({"builtin_move_forward": False}, "--builtin-move-forward=false"),
    ({"builtin_initializer_list": True}, "--builtin-initializer-list=true"),
    ({"relocatable_device_code": True}, "--relocatable-device-code=true"),
    ({"extensible_whole_program": True}, "--extensible-whole-program"),
    ({"extra_device_vectorization": True}, "--extra-device-vectorization"),
    ({"restrict": True}, "--restrict"),
    ({"no_source_include": True}, "--no-source-include"),
    ({"disable_warnings": True}, "--disable-warnings"),
    ({"no_display_error_number": True}, "--no-display-error-number"),
    ({"diag_error": [177, 550]}, "--diag-error=550"),
    ({"diag_suppress": 177}, "--diag-suppress=177"),
    ({"diag_warn": (177,)}, "--diag-warn=177"),
    ({"optimization_info": "inline"}, "--optimization-info=inline"),
    ({"ptxas_options": "-v"}, "--ptxas-options=-v"),
    ({"device_code_optimize": True, "debug": True}, "--dopt=on"),
    ({"device_stack_protector": True}, "--device-stack-protector=true"),
    ({"modify_stack_limit": False}, "--modify-stack-limit=false"),
    ({"jump_table_density": 101}, "--jump-table-density=101"),
    ({"ofast_compile": "min"}, "--Ofast-compile=min"),
    ({"frandom_seed": "a"}, "--frandom-seed=a"),
    ({"gen_opt_lto": True}, "--gen-opt-lto"),
    ({"device_int128": True}, "--device-int128"),
    ({"device_float128": True, "arch": "compute_100"}, "--device-float128"),
    ({"pch_verbose": True}, "--pch-verbose=true"),
    ({"pch_messages": False}, "--pch-messages=false"),
    ({"instantiate_templates_in_pch": True}, "--instantiate-templates-in-pch=true"),
    ({"warning_as_error": "all-warnings"}, "--warning-as-error=all-warnings"),
    ({"brief_diagnostics": True}, "--brief-diagnostics=true"),
    ({"fdevice_syntax_only": True}, "--fdevice-syntax-only"),
]


@pytest.mark.parametrize(("fields", "option"), FLAGS, ids=[f[1] for f in FLAGS])
def test_fields_are_options(driver, fields, option):
    try:
        cu.Program("", options=cu.ProgramOptions(**fields)).compile("ptx")
    except ValueError as e:  # the NVRTC of a machine with a GPU may be older than the option
        assert driver == "nvidia"
        assert f"unrecognized option {option} found" in str(e)
        return
    with pytest.raises(cu.CompileError) as e:
        cu.Program("nonsense", options=cu.ProgramOptions(**fields)).compile("ptx")
    assert option in e.value.options


def test_precompiled_headers(driver, stream, tmp_path):
    source = '#include "value.h"\n' + KERNEL
    paths = {"include_path": tmp_path, "define_macro": "VALUE=3"}
    (tmp_path / "value.h").write_text("typedef int number;")
    pch = str(tmp_path / "a.pch")
    made = cu.Program(source, options=cu.ProgramOptions(create_pch=pch, **paths)).compile()
    assert "creating precompiled header" in made.log
    used = cu.Program(source, options=cu.ProgramOptions(use_pch=pch, **paths)).compile()
    assert "using precompiled header" in used.log
    assert stored(used, stream) == 3
    again = cu.Program(source, options=cu.ProgramOptions(pch=True, pch_dir=tmp_path, **paths))
    assert stored(again.compile(), stream) == 3


@pytest.mark.parametrize(
    ("field", "written"), [("time", "times"), ("fdevice_time_trace", "times.json")]
)
def test_times_are_written(driver, tmp_path, field, written):
    options = cu.ProgramOptions(**{field: str(tmp_path / "times")})
    file = tmp_path / written
    for _ in range(2):  # from no cache
        cu.Program("", options=options).compile()
        assert file.exists()
        file.unlink()


def test_a_warning_about_a_line_that_is_not_utf_8(tmp_path):
    (tmp_path / "x.h").write_bytes(b'#warning "caf\xe9"\n')
    source = '#include "x.h"\nextern "C" __global__ void k() {}'
    options = cu.ProgramOptions(include_path=tmp_path)
    code = cu.Program(source, options=options).compile(cache=False)
    assert '#warning directive: "caf' in code.log
    assert code["k"].name == "k"
