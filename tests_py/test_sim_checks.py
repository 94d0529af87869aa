# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver's checks: planted bugs are named exactly, correct programs are clean."""

from __future__ import annotations

import re
import sys
import threading

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold, settle

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

SOURCE = r"""
extern "C" {
__global__ void reverse(float* out, const float* in) {
    __shared__ float m[64];
    m[threadIdx.x] = in[threadIdx.x];
#ifndef FORGET
    __syncthreads();
#endif
    out[threadIdx.x] = m[63 - threadIdx.x];
}
__global__ void neighbours(int* out) {
    __shared__ int m[32];
    m[threadIdx.x] = threadIdx.x;
#ifndef FORGET
    __syncwarp();
#endif
    out[threadIdx.x] = m[threadIdx.x ^ 1];
}
__global__ void count(int* out, const int* in) {
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] & 3], 1);
#ifndef FORGET
    __syncthreads();
#endif
    if (threadIdx.x < 4) out[threadIdx.x] = bins[threadIdx.x];
}
__global__ void swap_pairs(int* out) {
    __shared__ int tile[2][32];
#ifdef FORGET
    if (threadIdx.x != 5)
#endif
    tile[1][threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[1][threadIdx.x ^ 1];
}
__global__ void count_dynamic(int* out, const int* in) {
    extern __shared__ int bins[];
#ifndef FORGET
    bins[threadIdx.x] = 0;
    __syncthreads();
#endif
    atomicAdd(&bins[in[threadIdx.x] + 3], 1);
    __syncthreads();
    if (threadIdx.x == 0) *out = bins[3];
}
__global__ void shift(int* p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = p[i + 1] + 1;
}
__global__ void increment(int* p) { p[threadIdx.x] += 1; }
__global__ void set(int* p, int i, int value) { p[i] = value; }
__global__ void odd(char* p) { *(int*)(p + 1) = 0; }
__global__ void apart(int* p) {
    if (threadIdx.x < 16) asm volatile("bar.sync 0;");
    else asm volatile("bar.sync 1;");
    *p = 1;
}
__global__ void spin(volatile int* p) { while (*p != 77) {} }
}
"""


def line_of(text: str) -> int:
    """The number of the line of SOURCE that has a text."""
    return next(i for i, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def compiled(**macros: int) -> cu.ObjectCode:
    options = cu.ProgramOptions(lineinfo=True, name="/planted.cu", define_macro=macros)
    return cu.Program(SOURCE, "c++", options=options).compile()


@pytest.fixture(scope="module")
def planted(device):
    """The kernels without their barriers, with line numbers."""
    return compiled(FORGET=1)


@pytest.fixture(scope="module")
def correct(device):
    """The same with them."""
    return compiled()


def here() -> str:
    """The file and line of the caller, as reports have it."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@pytest.fixture
def ints(device, stream):
    """Room for 256 ints, all 0."""
    with device.allocate(1024, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        stream.sync()
        yield buffer
        stream.sync()


def one_report(error: pytest.ExceptionInfo[cu.CheckError]) -> str:
    head, *reports = str(error.value).splitlines()
    assert "CUDAGO_CHECK_FAILED: a check found a defect:" in head
    assert len(reports) == 1, reports
    return reports[0]


# --- shared memory --------------------------------------------------------------------------------


def test_missing_barrier(device, stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 64), planted["reverse"], ints, ints[512:768])
        stream.sync()
    report = one_report(e)
    write, read = line_of("m[threadIdx.x] = in"), line_of("m[63 - threadIdx.x]")
    assert report.startswith("race in shared memory of kernel reverse, block (0,0,0), thread (")
    assert re.search(rf"/planted\.cu:{write}, PTX line \d+: st\.shared\.f32 ", report)
    assert re.search(rf"/planted\.cu:{read}, PTX line \d+: ld\.shared\.f32 ", report)
    assert "no barrier lies between them" in report
    assert stream.is_done  # the device is as usable as before


def test_missing_syncwarp(stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 32), planted["neighbours"], ints)
        stream.sync()
    report = one_report(e)
    assert f"/planted.cu:{line_of('m[threadIdx.x ^ 1]')}, PTX line " in report
    assert "no __syncwarp lies between them" in report


def test_missing_barrier_after_atomics(stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 256), planted["count"], ints, ints)
    report = one_report(e)
    assert f"/planted.cu:{line_of('atomicAdd')}" in report
    assert "updated them" in report or "it updates 4 bytes at offset" in report


# --- global memory --------------------------------------------------------------------------------


def test_blocks_that_race(stream, planted, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(3, 32), planted["shift"], ints)
    report = next(r for r in str(e.value).splitlines() if "run in any order" in r)
    assert report.startswith("race in global memory in kernel shift, block (")
    assert report.count(f"/planted.cu:{line_of('p[i + 1]')}") == 2
    assert "the blocks of a launch run in any order" in report
    assert "device memory of 1024 bytes" in report
    assert "parameter 0 (shift_param_0) points to it" in report


def test_streams_that_race(device, stream, correct, ints):
    config = cu.LaunchConfig(1, 32)
    with device.create_stream() as other:
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
            cu.launch(stream, config, correct["increment"], ints), (first := here())
            cu.launch(other, config, correct["increment"], ints), (second := here())
        report = str(e.value).splitlines()[1]
        assert re.search("kernel increment in stream .*, launched at ", report)
        assert first in report or second in report
        assert "nothing orders the two: they need one stream, an event or an edge" in report


def test_streams_in_order(device, stream, correct, ints):
    config = cu.LaunchConfig(1, 32)
    with device.create_stream() as other, cu.sim.check():
        cu.launch(stream, config, correct["increment"], ints)
        other.wait(stream.record())
        cu.launch(other, config, correct["increment"], ints)
        other.sync()
        ints.fill(0, stream=stream)


def test_nodes_that_race(device, stream, correct, ints):
    config = cu.LaunchConfig(1, 32)
    with cu.Graph() as graph:
        left = graph.launch(config, correct["increment"], ints, name="left")
        graph.launch(config, correct["increment"], ints, name="right")
        with graph.instantiate() as step, pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
            step.launch(stream)
        found = str(e.value)
        assert re.search('graph launch, node "(left|right)": race in global memory in ', found)
        assert re.search('kernel increment, node "(left|right)" of a graph launch', found)
    with cu.Graph() as graph:
        left = graph.launch(config, correct["increment"], ints, name="left")
        left.launch(config, correct["increment"], ints, name="right")
        with graph.instantiate() as step, cu.sim.check():
            step.launch(stream)
            step.launch(stream)


def test_a_copy_that_races(device, stream, correct, ints):
    with (
        device.create_stream() as other,
        cu.PinnedMemoryResource() as resource,
        resource.allocate(1024) as host,
    ):
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races"):
            ints.copy_to(host, stream=other)
            cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], ints)
        assert re.search("a copy of 1024 bytes", str(e.value))


# --- memory that nobody wrote ---------------------------------------------------------------------


def test_uninitialized_read(device, stream, correct):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        buffer, at = device.allocate(128, stream=stream), here()
        buffer[:100].fill(0, stream=stream)
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], buffer)
        stream.sync()
    report = one_report(e)
    assert report.startswith(
        "uninitialized read in kernel increment, block (0,0,0), thread (25,0,0) (/planted.cu:"
        f"{line_of('p[threadIdx.x] += 1')}, PTX line "
    )
    assert "4 bytes at 0x" in report and "were never written; at offset 100 of device" in report
    assert f"allocated at {at} (cuMemAllocAsync)" in report
    assert "7 times; parameter 0" in report
    buffer.close()


def test_uninitialized_shared_memory(stream, planted, correct, ints):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        cu.launch(stream, cu.LaunchConfig(1, 32), planted["swap_pairs"], ints)
        stream.sync()
    assert re.fullmatch(
        r"uninitialized read in shared memory of kernel swap_pairs, block \(0,0,0\), "
        rf"thread \(4,0,0\) \(/planted\.cu:{line_of('tile[1][threadIdx.x ^ 1]')}, "
        r"PTX line \d+: ld\.shared\.\w32 .*\): "
        r"4 bytes at offset 148 were never written by this block; "
        r"at offset 148 of shared variable tile of 256 bytes",
        one_report(e),
    )
    with cu.sim.check("uninitialized"):
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["swap_pairs"], ints)
        stream.sync()


def test_uninitialized_dynamic_shared_memory(stream, planted, correct, ints):
    config = cu.LaunchConfig(2, 32, shared_memory=128)
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        cu.launch(stream, config, planted["count_dynamic"], ints, ints[512:])
        stream.sync()
    report = one_report(e)
    assert f"/planted.cu:{line_of('atomicAdd(&bins[in[threadIdx.x] + 3]')}, PTX line " in report
    assert "never written by this block; at offset 12 of dynamic shared memory; 2 times" in report
    with cu.sim.check("uninitialized"):
        cu.launch(stream, config, correct["count_dynamic"], ints, ints[512:])
        stream.sync()


def test_uninitialized_copy_to_the_host(device, stream):
    with (
        cu.sim.check("uninitialized", raises=False) as found,
        device.allocate(64, stream=stream) as buffer,
    ):
        buffer.copy_to(bytearray(64), stream=stream)
        stream.sync()
    assert len(found) == 1
    assert found[0].startswith("uninitialized read in a copy of 64 bytes")


def test_memory_that_others_write_is_initialized(device, stream, correct):
    with cu.sim.check():
        tensor = cu.empty(32, "i4", stream=stream)
        np.from_dlpack(tensor)[:] = 1  # simulated device memory is host memory to others
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], tensor)
        assert (tensor.numpy(stream=stream) == 2).all()


# --- the host -------------------------------------------------------------------------------------


def test_the_host_reads_too_early(device, stream, ints):
    with cu.PinnedMemoryResource() as resource, resource.allocate(1024) as host:
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races", "host"), hold(stream):
            ints.copy_to(host, stream=stream)
            bytes(memoryview(host)), (at := here())
        assert re.search("race in global memory in a copy of 1024 bytes in stream", str(e.value))
        assert f"the host at {at} read them; the host did not wait for the stream" in str(e.value)
        with cu.sim.check():
            ints.copy_to(host, stream=stream)
            stream.sync()
            bytes(memoryview(host))


# --- graphs ---------------------------------------------------------------------------------------


def test_dangling_operands_are_named_before_anything_runs(device, stream, correct, ints):
    one = cu.LaunchConfig(1, 1)
    stale = device.allocate(64, stream=stream)
    with cu.Graph() as graph:
        first = graph.launch(one, correct["set"], ints, 0, 5, name="first")
        first.launch(one, correct["set"], int(stale.ptr) + 16, 0, 5, name="second")
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
            with cu.sim.check():  # for the line
                stale.close(), (at := here())
            ints.fill(0, stream=stream)
            with pytest.raises(cu.CheckError) as e:
                step.launch(stream)
            report = one_report(e)
            assert report.startswith(
                'graph launch refused, nothing ran: node "second": kernel set, parameter 0 '
            )
            assert "at offset 16 of freed device memory of 64 bytes at 0x" in report
            assert "allocated at cuMemAllocAsync (buffer " in report
            assert f"freed at {at} (cuMemFreeAsync)" in report
            stream.sync()
            out = bytearray(4)
            ints[:4].copy_to(out, stream=stream)
            stream.sync()
            assert out == bytes(4)  # the first node did not run
            step["second"].update(one, correct["set"], ints, 1, 5)
            step.launch(stream)


def test_dangling_copies(device, stream, ints):
    with cu.PinnedMemoryResource() as resource:
        host = resource.allocate(64)
        address = np.frombuffer(host, "u1").ctypes.data

    class Raw:  # an address that keeps nothing
        def __init__(self) -> None:
            self.__cuda_array_interface__ = {
                "shape": (64,),
                "typestr": "|u1",
                "data": (address, False),
                "version": 3,
            }

    with cu.Graph() as graph:
        graph.memcpy(ints[:64], Raw(), name="upload")
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
            host.close()
            settle()
            with pytest.raises(
                cu.CheckError, match='node "upload": copy of 64 bytes, its source is'
            ):
                step.launch(stream)


# --- faults, which stop the kernel ----------------------------------------------------------------

FAULTS = {
    "out of bounds": (
        'cu.launch(s, one, code["set"], buffer, 16, 1)',
        "illegal address in kernel set, block (0,0,0), thread (0,0,0), /planted.cu:{set}, PTX line",
        "0 bytes past the end of device memory of 64 bytes at 0x",
        "allocated at {script}:9 (cuMemAllocAsync) (buffer ",
        "parameter 0 (set_param_0) points to it",
    ),
    "use after free": (
        'p = int(buffer.ptr); buffer.close(); cu.launch(s, one, code["set"], p, 3, 1)',
        "illegal address in kernel set",
        "at offset 12 of freed device memory of 64 bytes",
        "allocated at {script}:9 (cuMemAllocAsync)",
        "freed at {script}:10 (cuMemFreeAsync)",
    ),
    "misaligned": (
        'cu.launch(s, one, code["odd"], buffer)',
        "misaligned address in kernel odd",
        "/planted.cu:{odd}",
        "at offset 1 of device memory of 64 bytes",
    ),
    "barrier": (
        'cu.launch(s, cu.LaunchConfig(1, 32), code["apart"], buffer)',
        "deadlock in kernel apart",
        "warp 0 lanes 0-15 wait at /planted.cu:{apart}, PTX line ",
        "barrier 0, where 16 of 32 threads have come",
        "warp 0 lanes 16-31 wait at",
        "barrier 1, where 16 of 32 threads have come",
    ),
    "endless": (
        'cu.launch(s, one, code["spin"], buffer)',
        "step budget exhausted in kernel spin",
        "/planted.cu:{spin}",
        "more than 100000 loop iterations",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(script, driver, name):
    statement, *facts = FAULTS[name]
    run = script(
        f"""
        import cudago as cu
        d = cu.Device()
        s = d.create_stream()
        source = {SOURCE!r}
        options = cu.ProgramOptions(lineinfo=True, name="/planted.cu")
        code = cu.Program(source, "c++", options=options).compile()
        one = cu.LaunchConfig(1, 1)
        buffer = d.allocate(64, stream=s); buffer.fill(0, stream=s)
        {statement}
        try:
            s.sync()
        except cu.DeviceFaultError as e:
            print(e)
        """,
        CUDAGO_SIM="check=full,steps=1e5",
    )
    assert (run.returncode, run.stderr) == (0, "")
    places = {
        "script": str(script.directory / "script.py"),
        "set": line_of("p[i] = value"), "odd": line_of("*(int*)"),
        "apart": line_of('"bar.sync 0;"'), "spin": line_of("!= 77"),
    }  # fmt: skip
    for fact in facts:
        assert fact.format(**places) in run.stdout


def test_cancel(device, stream, correct, ints):
    cu.launch(stream, cu.LaunchConfig(1, 1), correct["spin"], ints)
    canceler = threading.Timer(0.05, cu.sim.cancel)
    canceler.start()
    with pytest.raises(cu.CheckError, match="canceled in kernel spin"):
        stream.sync()
    canceler.join()
    cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], ints)


# --- the switch -----------------------------------------------------------------------------------


def test_check_covers_its_block_only(device, stream, planted, ints):
    config = cu.LaunchConfig(1, 32)

    def launch():
        cu.launch(stream, config, planted["neighbours"], ints)

    launch()
    with cu.sim.check("uninitialized"):
        launch()
    with cu.sim.check("races", raises=False) as found:
        launch()
        assert found == []
        with cu.sim.check("uninitialized"):
            launch()
        launch()
    assert len(found) == 1 and found[0].startswith("race in shared memory of kernel neighbours")
    launch()
    stream.sync()
    assert cu.sim.reports() == []


def test_check_leaves_other_exceptions_alone(stream, planted, ints):
    with pytest.raises(KeyError, match="mine"), cu.sim.check("races"):
        cu.launch(stream, cu.LaunchConfig(1, 64), planted["reverse"], ints, ints[512:768])
        raise KeyError("mine")
    with pytest.raises(cu.CheckError):
        stream.sync()


def test_unknown_checks(device):
    with pytest.raises(ValueError, match='got "leaks"'), cu.sim.check("leaks"):
        pass


def test_run_with_checks_finds_and_fails(script, driver, tmp_path):
    file = tmp_path / "main.py"
    file.write_text(
        "import cudago as cu, sys\n"
        "d = cu.Device(); s = d.create_stream()\n"
        "d.allocate(64, stream=s).copy_to(bytearray(64), stream=s)\n"
        "sys.exit(0)\n"
    )
    command = [sys.executable, "-W", "error", "-m", "cudago", "run", "--driver", "sim", "--check"]
    run = script.run([*command, str(file)])
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("cudago: uninitialized read in a copy of 64 bytes in stream ")
    assert f"allocated at {file}:3 (cuMemAllocAsync)" in run.stderr
    file.write_text("import cudago as cu\ncu.Device().create_stream().sync()\n")
    run = script.run([*command, str(file)])
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


# --- clean programs -------------------------------------------------------------------------------


def test_correct_kernels_are_clean(device, stream, correct, ints):
    with cu.sim.check():
        for name in ("reverse", "count"):
            cu.launch(stream, cu.LaunchConfig(1, 64), correct[name], ints, ints[512:768])
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["neighbours"], ints)
        cu.launch(stream, cu.LaunchConfig(1, 32), correct["increment"], ints)


def test_a_correct_program_is_clean(device, stream, correct):
    """Uploads, kernels, a graph and downloads, on two streams, under every check."""
    n = 4096
    config = cu.LaunchConfig(1, 64)
    with cu.sim.check(), device.create_stream() as other:
        x = cu.asarray(np.arange(n, dtype="f4"), stream=stream)
        y = cu.zeros(n, "f4", stream=other)
        other.wait(stream.record())
        cu.launch(other, config, correct["reverse"], y, x)
        with cu.Graph() as graph:
            up = graph.memcpy(x.buffer, np.ones(n, "f4"), name="upload")
            up.memset(y.buffer, 0, name="clear").launch(config, correct["reverse"], y, x)
            with graph.instantiate() as step:
                for _ in range(3):
                    step.launch(other)
        assert y.numpy(stream=other)[:65].tolist() == [1.0] * 64 + [0.0]
        stream.wait(other.record())
        x.copy_from(y, stream=stream)
        assert x.numpy(stream=stream).sum() == 64
