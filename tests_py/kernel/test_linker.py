# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Relocatable code, linked: by cudago's own linker of PTX, and by nvJitLink where there is one."""

from __future__ import annotations

import pytest

import cudago as cu

MAIN = r"""
extern __device__ float scale(float x);
extern __device__ int table[4];
static __device__ int own = 3;
__device__ __noinline__ static int help(int x) { return x + own; }
extern "C" __global__ void run(float* y) {
    int i = threadIdx.x;
    y[i] = scale(y[i]) + table[i] + help(i);
}
"""
HELPER = r"""
__device__ int table[4] = {10, 20, 30, 40};
static __device__ int own = 5;
__device__ __noinline__ static float help(float x) { return x * own; }
__device__ float scale(float x) { return help(x); }
template <class T> __global__ void set(T* x) { *x = 7; }
"""
RUN = [13.0, 29.0, 45.0, 61.0]  # of 0 to 3: 5 i + 10 (i + 1) + i + 3


def compiled(source: str, target: str, **options) -> cu.ObjectCode:
    options = cu.ProgramOptions(relocatable_device_code=True, **options)
    return cu.Program(source, options=options).compile(target)


def pieces(target: str) -> tuple[cu.ObjectCode, cu.ObjectCode]:
    helper = compiled(HELPER, target, name_expressions=["set<int>"])
    return compiled(MAIN, target, lineinfo=True), helper


def linked(*codes: cu.ObjectCode, target: str | None = None, **options) -> cu.ObjectCode:
    """Link by nvJitLink; skip the test where that is not installed."""
    try:
        return cu.Linker(*codes, options=cu.LinkerOptions(**options)).link(target)
    except cu.CompileError as e:
        if "was not found" not in str(e):
            raise
        pytest.skip("nvJitLink is not installed")


def result(code: cu.ObjectCode, stream: cu.Stream) -> list[float]:
    y = cu.arange(4, dtype="float32", stream=stream)
    code["run"][1, 4, stream](y)
    return y.numpy(stream=stream).tolist()


@pytest.mark.parametrize("backwards", [False, True])
def test_ptx(backwards, device, stream):
    codes = pieces("ptx")
    code = cu.Linker(*(codes[::-1] if backwards else codes)).link("ptx")
    assert code.kind == "ptx"
    assert result(code, stream) == RUN
    x = cu.zeros(1, "int32", stream=stream)
    code["set< int >"][1, 1, stream](x)
    assert x.item(stream=stream) == 7
    code["table"].view("int32").copy_from(cu.zeros(4, "int32", stream=stream), stream=stream)
    assert result(code, stream) == [3.0, 9.0, 15.0, 21.0]


def test_what_the_driver_runs(device, stream):
    code = cu.Linker(*pieces("ptx")).link()
    assert result(code, stream) == RUN
    assert code["run"].signature == ("u64",)


@pytest.mark.parametrize("target", [None, "ptx"])
def test_lto_ir(target, device, stream):
    code = linked(*pieces("ltoir"), target=target)
    assert result(code, stream) == RUN


@pytest.mark.gpu
@pytest.mark.parametrize("kinds", [("cubin", "cubin"), ("ptx", "cubin"), ("ltoir", "cubin")])
def test_machine_code(kinds, device, stream):
    codes = [pieces(kind)[i] for i, kind in enumerate(kinds)]
    code = linked(*codes)
    assert code.kind == "cubin"
    assert result(code, stream) == RUN


def test_machine_code_is_made_anywhere(device):
    code = linked(*pieces("ptx"), target="cubin", arch="sm_90", max_registers=32, verbose=True)
    assert code.kind == "cubin"
    assert code.code[:4] == b"\x7fELF"


def test_saved_codes(device, stream, tmp_path):
    for name, code in zip(("main", "helper"), pieces("ltoir"), strict=True):
        code.save(tmp_path / name)
    codes = [cu.ObjectCode.from_ltoir(tmp_path / name) for name in ("main", "helper")]
    assert [c.kind for c in codes] == ["ltoir", "ltoir"]
    assert result(linked(*codes), stream) == RUN


def test_what_nobody_defines(device):
    main, helper = pieces("ptx")
    nothing = r"nothing defines scale\(float\), which code 0 \(ptx\) uses; nor table, which code 0"
    with pytest.raises(cu.CompileError, match=f"linking code failed: {nothing}"):
        cu.Linker(main).link("ptx")
    with pytest.raises(
        cu.CompileError, match=r"is defined in code 1 \(ptx\) and in code 2 \(ptx\)"
    ):
        cu.Linker(main, helper, helper).link("ptx")


def test_the_log_of_nvjitlink(device):
    main, _ = pieces("ptx")
    with pytest.raises(cu.CompileError, match=r"linking it failed: .*scale\(float\)") as caught:
        linked(main, target="cubin", name="it", arch="sm_90")
    assert "table" in caught.value.log
    with pytest.raises(ValueError, match=r"not all accepted by nvJitLink.*-nonsense"):
        linked(main, target="cubin", options=["-nonsense"])


def test_broken_ptx(device):
    broken = cu.ObjectCode.from_ptx(".version 7.0\n.target sm_75\n.func {")
    with pytest.raises(cu.CompileError, match=r"linking code failed: code 1 \(ptx\): "):
        cu.Linker(pieces("ptx")[0], broken).link("ptx")


def test_bad_arguments(device):
    main = pieces("ptx")[0]
    with pytest.raises(ValueError, match="at least one code"):
        cu.Linker()
    with pytest.raises(TypeError, match="code 1 must be an ObjectCode, not str"):
        cu.Linker(main, "helper")
    with pytest.raises(TypeError, match="options must be LinkerOptions, not dict"):
        cu.Linker(main, options={})
    with pytest.raises(ValueError, match="target must be 'ptx' or 'cubin', got 'ltoir'"):
        cu.Linker(main).link("ltoir")
    mixed = cu.Linker(main, compiled(HELPER, "cubin"))
    with pytest.raises(
        ValueError, match="can be PTX only of PTX alone or of LTO-IR alone, got cubin"
    ):
        mixed.link("ptx")
    assert repr(mixed) == "<cudago.Linker of ptx, cubin>"


def test_the_simulated_driver_says_what_it_cannot_run(script):
    done = script(
        """
        import cudago as cu
        o = cu.ProgramOptions(relocatable_device_code=True)
        code = cu.Program("__device__ int f() { return 1; }", options=o).compile("cubin")
        try:
            cu.Linker(code).link()
        except cu.UnsupportedError as e:
            print(e)
        """,
        CUDAGO_DRIVER="sim",
    )
    assert "the simulated driver runs only PTX" in done.stdout, done.stdout + done.stderr


def test_without_nvjitlink(script, tmp_path):
    done = script(
        """
        import cudago, cudago as cu
        cudago._libraries.folders = lambda: []
        o = cu.ProgramOptions(relocatable_device_code=True)
        code = cu.ObjectCode.from_ltoir(b"something")
        try:
            cu.Linker(code).link()
        except cu.CompileError as e:
            print(e)
        """,
        CUDA_HOME=str(tmp_path),
    )
    if "pip install cudago[link]" not in done.stdout:
        assert "failed" in done.stdout, "the system has one, which refuses"
    else:
        assert str(tmp_path) in done.stdout
