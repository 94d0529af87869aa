# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m cudago ptx``."""

from __future__ import annotations

import sys

import pytest

from cudago._command.ptx import Kernel, declared

COMMAND = [sys.executable, "-W", "error", "-m", "cudago", "ptx", "file.ptx"]
HEAD = ".version 7.0\n.target {}\n.address_size 64\n"
GOOD = """
.visible .entry good(
    .param .u64 .ptr .global .align 4 out, // .param .u8 none,
    .param .f32 factor,
    .param .align 8 .b8 shape[24]
) .maxntid 128, 1, 1 {
    .reg .b64 %a;
    ld.param.u64 %a, [out];
    st.global.u32 [%a], 1;
    ret;
}
"""
COUNTING = """
/* .entry none() */
.entry counting() { .reg .b32 %r; mov.u32 %r, %pm0; ret; }
"""


def test_declared():
    assert declared(HEAD + GOOD + COUNTING + ".entry $bare { ret; }") == [
        Kernel("good", [("u64", "out"), ("f32", "factor"), ("b8[24]", "shape")]),
        Kernel("counting", []),
        Kernel("$bare", []),
    ]


def run(script, text, **environment):
    (script.directory / "file.ptx").write_text(text)
    return script.run(COMMAND, **environment)


def test_a_kernel_that_runs(script, driver, device):
    done = run(script, HEAD.format("sm_50") + GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:6] == [
        "file.ptx: 1 kernel, PTX 7.0 for sm_50",
        f"here: {device.name}, driver {driver}",
        "",
        "good",
        "   0  u64     out",
        "   1  f32     factor",
    ]
    assert lines[-1].startswith("  runs here: ")
    assert lines[-1].endswith("up to 128 threads a block")


def test_what_comments_say_is_no_version(script):
    before = "/*\n.version 9.9\n.target sm_999\n*/\n"
    done = run(script, before + HEAD.format("sm_50") + GOOD, CUDAGO_DRIVER="sim")
    assert done.stdout.splitlines()[0] == "file.ptx: 1 kernel, PTX 7.0 for sm_50"


def test_one_kernel_runs_and_another_does_not(script):
    done = run(script, HEAD.format("sm_50") + GOOD + COUNTING, CUDAGO_DRIVER="sim")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("  runs here: ") == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("  does not run here: ")
    assert "%pm0: performance counters are not simulated" in last


def test_code_for_a_later_device(script):
    text = HEAD.format("sm_90a").replace("7.0", "8.0") + GOOD
    done = run(script, text, CUDAGO_DRIVER="sim", CUDAGO_SIM="cc=8.0")
    assert (done.returncode, done.stderr) == (1, "")
    assert ".target sm_90a does not run on sm_80" in done.stdout
    assert done.stdout.endswith("  CUDAGO_SIM=cc=9.0 simulates such a device\n")
    assert run(script, text, CUDAGO_DRIVER="sim", CUDAGO_SIM="cc=9.0").returncode == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD.format("sm_50") + GOOD.replace("ret;", "rett;"), "unknown instruction rett"),
        (HEAD.format("sm_50"), "file.ptx: 0 kernels, PTX 7.0 for sm_50"),
    ],
)
def test_text_without_kernels_that_run(text, said, script):
    done = run(script, text, CUDAGO_DRIVER="sim")
    assert (done.returncode, done.stderr) == (1, "")
    assert said in done.stdout


@pytest.mark.parametrize("text", ["", "// .version 8.0\nprint('hello')"])
def test_a_file_of_something_else(text, script):
    done = run(script, text, CUDAGO_DRIVER="sim")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "file.ptx must be a text file of PTX: it has no .version\n"


def test_parameters_need_no_driver(script):
    text = HEAD.format("sm_50") + GOOD
    done = run(script, text, CUDAGO_DRIVER="nvidia", CUDAGO_LIBCUDA="/nowhere/libcuda.so")
    assert (done.returncode, done.stderr) == (1, "")
    assert "nothing runs here: no usable CUDA driver" in done.stdout
    assert "   1  f32     factor" in done.stdout


def test_a_file_that_is_not_there_or_no_text(script):
    done = script.run([*COMMAND[:-1], "nowhere.ptx"])
    assert (done.returncode, done.stdout) == (1, "")
    said = "nowhere.ptx must be a text file of PTX: No such file or directory\n"
    assert done.stderr == said
    (script.directory / "file.ptx").write_bytes(b"\x7fELF\xff\xfe")
    assert "must be a text file of PTX" in script.run(COMMAND).stderr


def test_a_comment_that_the_encoding_of_the_terminal_lacks(script):
    text = "// Größe\n.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry a() { ret; }\n"
    (script.directory / "file.ptx").write_text(text, "utf-8")
    command = [sys.executable, "-W", "error", "-m", "cudago", "ptx", "file.ptx"]
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    run = script.run(command, CUDAGO_DRIVER="sim", **ascii_only)
    assert (run.returncode, run.stderr) == (0, "")
    assert "1 kernel, PTX 7.0 for sm_70" in run.stdout
