# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launches in Numba's spelling, shapes from the occupancy, and what is known of a kernel."""

from __future__ import annotations

import dataclasses
import re
import time

import pytest

import cudago as cu
import cudago._kernel.info

np = pytest.importorskip("numpy")


@pytest.mark.parametrize("spell", ["dims", "shared", "config"])
def test_the_brackets_are_the_same_as_launch(spell, kernels, stream):
    config = cu.LaunchConfig(4, 32, shared_memory=64 if spell == "shared" else 0)
    key = {
        "dims": (4, [32, 1], stream),
        "shared": (4, 32, stream, 64),
        "config": (config, stream),
    }[spell]
    run = kernels["add"][key]
    assert (run.kernel, run.config, run.stream) == (kernels["add"], config, stream)
    y = cu.zeros(100, "i4", stream=stream)
    run(y, 3, 100)
    run(y, np.int32(4), 100)
    assert (y.numpy(stream=stream) == 7).all()
    assert repr(run).startswith("<cudago.ConfiguredKernel add: LaunchConfig(grid=(4, 1, 1)")


def test_the_brackets_are_captured(kernels, stream):
    y = cu.zeros(8, "i4", stream=stream)
    with stream.capture() as graph:
        kernels["add"][1, 8, stream](y, 2, 8)
    graph.instantiate().launch(stream)
    assert (y.numpy(stream=stream) == 2).all()


@pytest.mark.parametrize("key", [(1, 1), (), 1, (cu.LaunchConfig(1, 1),), (1, 1, None, 0, 0)])
def test_brackets_without_a_stream_say_what_belongs_there(key, kernels):
    with pytest.raises(TypeError, match=r"kernel\[grid, block, stream\]\(\*args\).*stream"):
        kernels["add"][key]


def test_a_kernel_is_no_sequence(kernels):
    with pytest.raises(TypeError, match=r"1 value\(s\) in the brackets"):
        list(kernels["add"])


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ((1.5, 1, None), TypeError, "grid must be an int"),
        ((1, 0, None), ValueError, "block must be at least 1"),
        ((1, 1, None, -1), ValueError, "shared_memory must be 0 to"),
    ],
)
def test_brackets_check_the_shape(key, error, message, kernels):
    with pytest.raises(error, match=message):
        kernels["add"][key]


@pytest.mark.parametrize("what", [None, 0, "default"])
def test_what_is_no_stream_is_refused_at_the_call(what, kernels):
    with pytest.raises(TypeError, match="stream must be a Stream or have __cuda_stream__"):
        kernels["nothing"][1, 1, what]()


def test_brackets_of_a_closed_stream(device, kernels):
    stream = device.create_stream()
    run = kernels["nothing"][1, 1, stream]
    stream.close()
    with pytest.raises(cu.ClosedError):
        run()


@pytest.mark.parametrize("n", [0, 1, 1023, 1025, 1 << 20, np.int64(77)])
def test_a_thread_for_each_element(n, kernels, device):
    config = cu.LaunchConfig.for_elements(n, kernels["add"])
    block, grid = config.block[0], config.grid[0]
    assert grid * block >= n > (grid - 1) * block or (n == 0 and grid == 1)
    best = kernels["add"].max_active_blocks(block, device=device) * block
    for other in range(32, 1025, 32):
        assert kernels["add"].max_active_blocks(other, device=device) * other <= best


@pytest.mark.parametrize("bound", [40, 64, 480])
def test_the_best_block_fits_the_bounds_of_the_kernel(bound, stream):
    source = f'extern "C" __global__ void __launch_bounds__({bound}) k() {{}}'
    kernel = cu.Program(source).compile()["k"]
    config = cu.LaunchConfig.for_elements(1000, kernel)
    assert config.block[0] <= bound
    cu.launch(stream, config, kernel)
    stream.sync()


def test_shared_memory_is_part_of_the_choice(kernels):
    config = cu.LaunchConfig.for_elements(1000, kernels["add"], shared_memory=40000)
    assert config.shared_memory == 40000
    more = cu.LaunchConfig.for_elements(1000, kernels["add"], shared_memory=50000)
    assert more.shared_memory == 50000
    with pytest.raises(ValueError, match="cannot run with 1073741824 bytes of dynamic shared"):
        cu.LaunchConfig.for_elements(1, kernels["add"], shared_memory=1 << 30)


def test_blocks_for_so_many_elements_that_wait_for_each_other(device, kernels):
    kernel = kernels["add"]
    config = cu.LaunchConfig.for_elements(1000, kernel, cooperative=True)
    assert config.cooperative
    block = config.block[0]
    most = kernel.max_active_blocks(block) * device.properties.multiprocessor_count * block
    assert cu.LaunchConfig.for_elements(most, kernel, cooperative=True).grid[0] * block == most
    with pytest.raises(ValueError, match=f"n must be at most {most} for this kernel: .* threads"):
        cu.LaunchConfig.for_elements(most + 1, kernel, cooperative=True)


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (-1, ValueError, "n must be at least 0, got -1"),
        (1 << 60, ValueError, r"n must be at most \d+ for this kernel: 2147483647 blocks"),
        (1.5, TypeError, "float"),
    ],
)
def test_invalid_numbers_of_elements(n, error, message, kernels):
    with pytest.raises(error, match=message):
        cu.LaunchConfig.for_elements(n, kernels["add"])


def test_only_a_kernel_has_a_best_block():
    with pytest.raises(TypeError, match="kernel must be a Kernel, not str"):
        cu.LaunchConfig.for_elements(1, "add")


def test_info(device):
    source = """extern "C" __global__ void __launch_bounds__(96) k(int* p) {
        __shared__ int s[100];
        s[threadIdx.x] = p[threadIdx.x];
        __syncthreads();
        p[threadIdx.x] = s[95 - threadIdx.x];
    }"""
    kernel = cu.Program(source).compile()["k"]
    info = kernel.info()
    a = kernel.attributes
    assert info == kernel.info(device=device)
    assert (info.name, info.device) == ("k", 0)
    assert (info.shared, info.local, info.spills, info.max_threads) == (400, 0, 0, 96)
    assert (info.registers, info.constant) == (a.register_count, a.const_size)
    assert (info.ptx_version, info.binary_version) == (a.ptx_version, a.binary_version)
    for field in dataclasses.fields(info):
        assert re.search(rf"\b{field.name}={getattr(info, field.name)!r}", repr(info))
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.registers = 1
    a.max_dynamic_shared_size = 1024
    assert kernel.info().max_shared == 1024


# Local memory, of which the compiler may or may not say what it is for.
INDEXED = """extern "C" __global__ void k(int* p) {
    int a[64];
    for (int i = 0; i < 64; i++) a[i] = p[i];
    for (int i = 0; i < 64; i++) p[i] = a[p[i] & 63];
}"""


def test_spills_are_unknown_where_nobody_said(device):
    info = cu.Program(INDEXED).compile()["k"].info()
    assert info.local >= 256
    assert info.spills is None


@pytest.mark.gpu
def test_spills_from_the_compiler(device):
    options = cu.ProgramOptions(options=["--ptxas-options=-v"])
    # NVRTC keeps what it compiled, whatever its comments, and says nothing again.
    new = INDEXED.replace("a[i] = p[i]", f"a[i] = p[i] ^ {time.time_ns() % 2**31}")
    info = cu.Program(new, options=options).compile("cubin")["k"].info()
    assert info.local >= 256
    assert info.spills == 0


def test_spills_are_read_from_what_ptxas_writes():
    log = """ptxas info    : Compiling entry function 'near' for 'sm_90'
ptxas info    : Function properties for near
    48 bytes stack frame, 44 bytes spill stores, 52 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers
ptxas info    : Function properties for near2
ptxas         .     16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
"""
    assert cu._kernel.info.spilled(log, "near") == 44
    assert cu._kernel.info.spilled(log, "near2") == 4
    assert cu._kernel.info.spilled(log, "far") is None
