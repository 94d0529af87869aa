# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reads of unwritten registers, which are reported where something depends on them."""

from __future__ import annotations

import re

import pytest

import cudago as cu

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

HEAD = """.version 7.8
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<5>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    setp.lt.u32 %p1, %r1, 20;
"""


def reports(stream: cu.Stream, kernel: cu.Kernel) -> list[str]:
    out = cu.zeros(32, "i4", stream=stream)
    with cu.sim.check("uninitialized", raises=False) as found:
        cu.launch(stream, cu.LaunchConfig(1, 32), kernel, out)
        stream.sync()
    return found


def of_ptx(body: str) -> cu.Kernel:
    return cu.ObjectCode.from_ptx(HEAD + body + "    ret;\n}\n")["k"]


def test_a_sum_without_a_first_value(stream):
    body = """    add.u32 %r2, %r2, %r1;
    st.global.u32 [%rd1], %r2;
"""
    assert reports(stream, of_ptx(body)) == [
        "uninitialized register in kernel k, block (0,0,0), thread (0,0,0) (PTX line 14: "
        "add.u32 %r2, %r2, %r1): %r2 was never written by this thread; 32 times"
    ]


def test_only_the_threads_that_depend_on_it(stream):
    body = """    @%p1 mov.u32 %r3, 1;
    st.global.u32 [%rd1], %r3;
"""
    (report,) = reports(stream, of_ptx(body))
    assert "thread (20,0,0) (PTX line 15: st.global.u32 [%rd1], %r3): %r3 was never" in report
    assert report.endswith("; 12 times")


def test_what_is_dropped_is_no_defect(stream):
    body = """    @%p1 ld.global.u32 %r3, [%rd1];
    add.u32 %r3, %r3, 1;
    @%p1 st.global.u32 [%rd1], %r3;
"""
    assert reports(stream, of_ptx(body)) == []


@pytest.mark.parametrize("first", [16, 4])
def test_a_shuffle_from_lanes_outside_the_mask(stream, first):
    source = """extern "C" __global__ void k(int* out) {
    if (threadIdx.x >= 8) return;
    int v = threadIdx.x;
    for (int d = FIRST; d; d /= 2)
        v += __shfl_down_sync(0xff, v, d);
    if (threadIdx.x == 0) *out = v;
}""".replace("FIRST", str(first))
    options = cu.ProgramOptions(lineinfo=True, name="/sum8.cu")
    found = reports(stream, cu.Program(source, "c++", options=options).compile()["k"])
    if first == 4:  # lanes 4 to 7 read beyond the mask too, and what they compute is dropped
        assert found == []
        return
    (report,) = found
    assert "undefined result of a shuffle in kernel k, block (0,0,0), thread (0,0,0)" in report
    assert "(/sum8.cu:5, PTX line " in report
    assert re.search(": it reads lane (8|16), which is not in the mask 0xff$", report)


@pytest.mark.parametrize("bug", [True, False])
def test_inline_assembly_that_sets_nothing(stream, bug):
    source = """extern "C" __global__ void k(int* out) {
    int x;
    asm("{ .reg .u32 never; %s mov.u32 %%0, never; }" : "=r"(x));
    out[threadIdx.x] = x;
}""" % ("" if bug else "mov.u32 never, 3;")
    options = cu.ProgramOptions(lineinfo=True, name="/asm.cu")
    found = reports(stream, cu.Program(source, "c++", options=options).compile()["k"])
    assert len(found) == bug
    if bug:
        assert "(/asm.cu:3, PTX line " in found[0]
        assert ": never was never written by this thread; 32 times" in found[0]
