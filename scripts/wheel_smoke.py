# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What an installed cudago must do on the simulated driver, with no package and no compiler."""

from __future__ import annotations

import platform
import struct

import cudago as cu

PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 p, .param .u32 n)
{
    .reg .pred %q; .reg .b32 %i, %n, %v; .reg .b64 %a, %o;
    ld.param.u64 %a, [p]; ld.param.u32 %n, [n];
    mov.u32 %i, %tid.x;
    setp.ge.u32 %q, %i, %n;
    @%q ret;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, %v;
    st.global.u32 [%a], %v;
    ret;
}
"""
COUNT = 8
FORMAT = f"{COUNT}I"


def main() -> None:
    """Double numbers by a launch, and again by a graph of a copy and two launches."""
    device = cu.Device()
    stream = device.create_stream()
    twice = cu.ObjectCode.from_ptx(PTX.encode())["twice"]
    config = cu.LaunchConfig(grid=1, block=32)
    host = bytearray(struct.pack(FORMAT, *range(COUNT)))
    memory = device.allocate(len(host), stream=stream)
    memory.copy_from(host, stream=stream)
    cu.launch(stream, config, twice, memory, COUNT)
    expect(memory, stream, 2)

    graph = cu.Graph()
    step = graph.memcpy(memory, host)
    for _ in range(2):
        step = step.launch(config, twice, memory, COUNT)
    graph.instantiate().launch(stream)
    expect(memory, stream, 4)
    python = f"{platform.python_version()} on {platform.machine()}"
    print(f"cudago {cu.__version__}: a kernel and a graph, Python {python}, {cu.driver_name()}")


def expect(memory: cu.Buffer, stream: cu.Stream, factor: int) -> None:
    """Compare what memory holds with the numbers times a factor."""
    out = bytearray(4 * COUNT)
    memory.copy_to(out, stream=stream)
    stream.sync()
    got, want = struct.unpack(FORMAT, out), tuple(factor * i for i in range(COUNT))
    if got != want:
        raise SystemExit(f"expected {want}, got {got}")


if __name__ == "__main__":
    main()
