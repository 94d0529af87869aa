# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Programs with one bug each: ``bugs.py NAME`` runs one, ``bugs.py NAME fixed`` one without.

They run on the simulated driver with every check, and on a GPU under compute-sanitizer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import cudago as cu

SOURCE = r"""
extern "C" {
__global__ void set(int* p, int i) { p[i] = 1; }
__global__ void misaligned(char* p, int offset) { *(int*)(p + offset) = 1; }
__global__ void beyond(int* out, int i) {
    __shared__ int m[32];
    m[i + threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = m[threadIdx.x];
}
__global__ void reverse(int* out, int fixed) {
    __shared__ int m[64];
    m[threadIdx.x] = threadIdx.x;
    if (fixed) __syncthreads();
    out[threadIdx.x] = m[63 - threadIdx.x];
}
__global__ void neighbours(int* out, int fixed) {
    __shared__ int m[32];
    m[threadIdx.x] = threadIdx.x;
    if (fixed) __syncwarp();
    out[threadIdx.x] = m[threadIdx.x ^ 1];
}
__global__ void count(int* out, int fixed) {
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[threadIdx.x & 3], 1);
    if (fixed) __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = bins[threadIdx.x];
}
__global__ void sum(int* out, const int* in) { out[threadIdx.x] = in[threadIdx.x] + 1; }
__global__ void histogram(int* out, const int* in, int fixed) {
    int bins[4];
    if (fixed) for (int i = 0; i < 4; i++) bins[i] = 0;
    for (int i = 0; i < 8; i++) bins[in[i] & 3]++;
    out[threadIdx.x] = bins[threadIdx.x & 3];
}
__global__ void some_wait(int* out, int threads) {
    if (threadIdx.x < threads) __syncthreads();
    out[threadIdx.x] = 1;
}
}
"""


class Session:
    """What every program needs: a stream, kernels, 64 ints."""

    def __init__(self) -> None:
        self.stream = cu.Device().create_stream()
        options = cu.ProgramOptions(lineinfo=True, name="planted.cu")
        self.code = cu.Program(SOURCE, "c++", options=options).compile()
        self.ints = self.allocate()

    def allocate(self, filled: bool = True) -> cu.Buffer:
        buffer = self.stream.device.allocate(256, stream=self.stream)
        if filled:
            buffer.fill(0, stream=self.stream)
        return buffer

    def launch(self, name: str, block: int, *args: object) -> None:
        cu.launch(self.stream, cu.LaunchConfig(1, block), self.code[name], *args)


@dataclass(frozen=True)
class Bug:
    """A program, and who says what of it.

    Attributes
    ----------
    run : callable
        Takes a session, and whether the bug is left out.
    report : str
        Words of the simulated driver's report.
    tool : str
        The tool of compute-sanitizer that sees it.
    words : str
        Its words; empty if it sees nothing.
    """

    run: Callable[[Session, bool], None]
    report: str
    tool: str
    words: str


def _use_after_free(session: Session, fixed: bool) -> None:
    buffer = session.allocate()
    address = int(buffer.ptr)
    if not fixed:
        buffer.close()
        session.stream.sync()
    session.launch("set", 1, address, 3)
    session.stream.sync()


def _dangling_node(session: Session, fixed: bool) -> None:
    buffer = session.allocate()
    with cu.Graph() as graph:
        one = cu.LaunchConfig(1, 1)
        # A number keeps nothing alive.
        graph.launch(one, session.code["set"], int(buffer.ptr), 3)
        with graph.instantiate() as step:
            if not fixed:
                buffer.close()
                session.stream.sync()
            step.launch(session.stream)
            session.stream.sync()


def _uninitialized(session: Session, fixed: bool) -> None:
    session.launch("sum", 64, session.ints, session.allocate(filled=fixed))


BUGS = {
    "out of bounds": Bug(
        lambda s, fixed: s.launch("set", 1, s.ints, 63 if fixed else 64),
        "0 bytes past the end of device memory of 256 bytes",
        "memcheck",
        "Invalid __global__ write of size 4 bytes",
    ),
    "use after free": Bug(
        _use_after_free,
        "at offset 12 of freed device memory of 256 bytes",
        "memcheck",
        "Invalid __global__ write",
    ),
    "dangling node": Bug(
        _dangling_node,
        'graph launch refused, nothing ran: node "kernel_0"',
        "memcheck",
        "Invalid __global__ write",
    ),
    "null": Bug(
        lambda s, fixed: s.launch("set", 1, s.ints if fixed else None, 0),
        "illegal address in kernel set",
        "memcheck",
        "Invalid __global__ write",
    ),
    "misaligned": Bug(
        lambda s, fixed: s.launch("misaligned", 1, s.ints, 4 if fixed else 5),
        "misaligned address in kernel misaligned",
        "memcheck",
        "misaligned",
    ),
    "beyond shared memory": Bug(
        lambda s, fixed: s.launch("beyond", 32, s.ints, 0 if fixed else 1 << 20),
        "illegal address in kernel beyond",
        "memcheck",
        "Invalid __shared__ write",
    ),
    "missing barrier": Bug(
        lambda s, fixed: s.launch("reverse", 64, s.ints, int(fixed)),
        "race in shared memory of kernel reverse",
        "racecheck",
        "Race reported",
    ),
    "missing barrier in a warp": Bug(
        lambda s, fixed: s.launch("neighbours", 32, s.ints, int(fixed)),
        "race in shared memory of kernel neighbours",
        "racecheck",
        "Race reported",
    ),
    "missing barrier after atomics": Bug(
        lambda s, fixed: s.launch("count", 64, s.ints, int(fixed)),
        "race in shared memory of kernel count",
        "racecheck",
        "",  # racecheck of CUDA 13.0 does not see it
    ),
    "uninitialized": Bug(
        _uninitialized,
        "uninitialized read in kernel sum",
        "initcheck",
        "Uninitialized __global__ memory read",
    ),
    "uninitialized array of a thread": Bug(
        lambda s, fixed: s.launch("histogram", 64, s.ints, s.allocate(), int(fixed)),
        "uninitialized read in local memory of kernel histogram",
        "initcheck",
        "",  # initcheck does not look at local memory
    ),
    "barrier without all": Bug(
        lambda s, fixed: s.launch("some_wait", 64, s.ints, 64 if fixed else 48),
        "barrier without all of a warp in kernel some_wait",
        "synccheck",
        "Barrier error detected",
    ),
}  # fmt: skip


def main(name: str, fixed: bool) -> None:
    """Run one program, and print what its driver says of it."""
    session = Session()
    try:
        if cu.driver_name() == "sim":
            with cu.sim.check():
                BUGS[name].run(session, fixed)
                session.stream.sync()
        else:
            BUGS[name].run(session, fixed)
            session.stream.sync()
    except (cu.CheckError, cu.DeviceFaultError) as e:
        print(e)
    else:
        if fixed:
            print("values", np.frombuffer(read(session), "i4").sum())


def read(session: Session) -> bytearray:
    """Return what the 64 ints are."""
    out = bytearray(256)
    session.ints.copy_to(out, stream=session.stream)
    session.stream.sync()
    return out


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["fixed"])
