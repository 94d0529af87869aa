# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Shared memory that CUDA reserves from sm_80 on, in front of a block's own."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

# Two warps meet at a counter in the reserved memory, as tiles of cooperative groups do, and
# exchange what they have in their own.
PTX = """
.version 7.6
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 own[];
.visible .entry meet(.param .u64 out, .param .u32 off)
{
    .reg .b64 %o, %d;
    .reg .b32 %t, %v, %a, %w, %lane;
    .reg .pred %p;
    ld.param.u64 %o, [out];
    ld.param.u32 %w, [off];
    mov.u32 %t, %tid.x;
    shl.b32 %a, %t, 2;
    mov.u32 %v, own;
    add.u32 %a, %a, %v;
    st.shared.u32 [%a], %t;
    bar.warp.sync 0xffffffff;
    mov.u32 %lane, %laneid;
    mov.b32 %v, %reserved_smem_offset_1;
    setp.ne.u32 %p, %lane, 0;
    @%p bra Met;
    membar.cta;
    red.shared.add.u32 [%v], 1;
Again:
    ld.volatile.shared.u32 %lane, [%v];
    setp.ne.u32 %p, %lane, 2;
    @%p bra Again;
    membar.cta;
Met:
    bar.warp.sync 0xffffffff;
    xor.b32 %a, %a, 128;
    ld.shared.u32 %v, [%a];
    mad.wide.u32 %d, %t, 4, %o;
    st.global.u32 [%d], %v;
    mov.u32 %v, own;
    add.u32 %v, %v, %w;
    ld.shared.u32 %v, [%v];
    ret;
}
"""

SCRIPT = f"""
import cudago as cu
d = cu.Device()
s = d.create_stream()
print("reserved", d.properties.reserved_shared_memory_per_block)
kernel = cu.ObjectCode.from_ptx({PTX!r})["meet"]
out = cu.zeros(64, "i4", stream=s)
with cu.sim.check():
    cu.launch(s, cu.LaunchConfig(1, 64, shared_memory=256), kernel, out, 0)
    s.sync()
print([int(n) for n in out.numpy(stream=s)] == [i ^ 32 for i in range(64)])
for off in (-4, 256):
    try:
        cu.launch(s, cu.LaunchConfig(1, 64, shared_memory=256), kernel, out, off)
        s.sync()
    except cu.DeviceFaultError as e:
        print(e)
        d.reset()
        s = d.create_stream()
        kernel = cu.ObjectCode.from_ptx({PTX!r})["meet"]
        out = cu.zeros(64, "i4", stream=s)
"""


def test_reserved(script, driver):
    run = script(SCRIPT, CUDAGO_SIM="cc=8.0")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("reserved 1024\nTrue\n")
    for off in (-4, 256):
        assert f"offset {off} in shared memory, which has 256 bytes" in run.stdout
