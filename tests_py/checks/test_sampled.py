# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What kernels access through textures and surfaces."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cudago as cu
from cudago.testing import hold

from .kernels import here, one_report

pytestmark = pytest.mark.parametrize("driver", ["sim"], indirect=True)

SOURCE = r"""
extern "C" __global__ void fetch(unsigned long long t, unsigned* out) {
    unsigned a, b, c, d;
    asm volatile("tex.1d.v4.u32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(t), "r"(threadIdx.x));
    out[threadIdx.x] = a;
}
extern "C" __global__ void mean(unsigned long long t, float x, float* out) {
    float a, b, c, d;
    asm volatile("tex.1d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5}];"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "f"(x));
    *out = a;
}
extern "C" __global__ void put(unsigned long long s) {
    const unsigned x = 4 * threadIdx.x;
    asm volatile("sust.b.1d.b32.trap [%0, {%1}], {%1};" : : "l"(s), "r"(x) : "memory");
}
extern "C" __global__ void get(unsigned long long s, unsigned* out) {
    unsigned v;
    asm volatile("suld.b.1d.b32.trap {%0}, [%1, {%2}];" : "=r"(v) : "l"(s), "r"(4 * threadIdx.x));
    out[threadIdx.x] = v;
}
"""


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile()


@pytest.fixture
def out(device, stream):
    with device.allocate(128, stream=stream) as out:
        out.fill(0, stream=stream)
        stream.sync()
        yield out
        stream.sync()


def test_a_texture_of_a_tensor_that_nobody_wrote(code, stream, out):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        x, at = cu.empty(32, "u4", stream=stream), here()
        x.buffer[:120].fill(0, stream=stream)
        texture = cu.Texture(x)
        code["fetch"][1, 32, stream](texture, out)
        stream.sync()
    report = one_report(e)
    assert re.match(
        r"uninitialized read in kernel fetch, block \(0,0,0\), thread \(30,0,0\) \(.*PTX line \d+: "
        r"tex\.1d\.v4\.u32\.s32 .*\): 4 bytes at 0x\w+ were never written; at offset 120 of device",
        report,
    )
    assert f"allocated at {at}" in report and "2 times" in report
    x.close()
    del texture


def test_an_array_that_nobody_wrote(code, stream, out):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        array, at = cu.OpaqueArray(32, "f4", stream=stream), here()
        code["mean"][1, 1, stream](cu.Texture(array, filter_mode="linear"), 8.0, out)
        stream.sync()
    report = one_report(e)
    assert "at offset 28 of device memory of 128 bytes" in report
    assert f"allocated at {at} (cuArray3DCreate)" in report
    assert "2 times" in report  # both elements that the mean is of
    array.close()


def test_what_a_copy_or_a_surface_wrote(code, stream, out):
    with cu.sim.check("uninitialized"):
        array = cu.OpaqueArray(32, "u4", stream=stream, surfaces=True)
        array.copy_from(np.zeros(32, "u4"), stream=stream)
        code["get"][1, 32, stream](cu.Surface(array), out)
        other = cu.OpaqueArray(32, "u4", stream=stream, surfaces=True)
        code["put"][1, 32, stream](cu.Surface(other))
        code["get"][1, 32, stream](cu.Surface(other), out)
        other.numpy(stream=stream)


def test_half_of_a_surface(code, stream, out):
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        array = cu.OpaqueArray(32, "u4", stream=stream, surfaces=True)
        code["put"][1, 16, stream](cu.Surface(array))
        code["get"][1, 32, stream](cu.Surface(array), out)
        stream.sync()
    report = one_report(e)
    assert "thread (16,0,0)" in report and "suld.b.1d.b32.trap" in report and "16 times" in report
    array.close()


def test_streams_that_race_through_surfaces(code, device, stream, out):
    array = cu.OpaqueArray(32, "u4", stream=stream, surfaces=True)
    array.copy_from(np.zeros(32, "u4"), stream=stream)
    stream.sync()
    s = cu.Surface(array)
    code["get"][1, 32, stream](s, out)  # loading code waits for the device, which orders
    stream.sync()
    with device.create_stream() as other:
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races"), hold(stream):
            code["put"][1, 32, stream](s)
            code["get"][1, 32, other](s, out)
        assert "nothing orders the two" in str(e.value)
        with cu.sim.check("races"):
            code["put"][1, 32, stream](s)
            other.wait(stream)
            code["get"][1, 32, other](s, out)
        stream.sync()
        other.sync()
    array.close()
    del s


def test_a_copy_that_races_with_a_texture(code, device, stream, out):
    array = cu.OpaqueArray(32, "u4", stream=stream)
    zeros = cu.zeros(32, "u4", stream=stream)
    array.copy_from(zeros, stream=stream)
    stream.sync()
    with device.create_stream() as other:
        with pytest.raises(cu.CheckError) as e, cu.sim.check("races"), hold(other):
            code["mean"][1, 1, other](cu.Texture(array), 8.0, out)
            array.copy_from(zeros, stream=stream)
        assert "nothing orders the two" in str(e.value)
    array.close()
    zeros.close()


def test_a_level_that_nobody_wrote(stream, out):
    lod = cu.Program(
        """extern "C" __global__ void lod(cudaTextureObject_t t, float level, float* out) {
            *out = tex1DLod<float>(t, 0.0f, level);
        }"""
    ).compile()["lod"]
    with pytest.raises(cu.CheckError) as e, cu.sim.check("uninitialized"):
        array, at = cu.MipmappedArray(8, "f4", stream=stream), here()
        for i in (0, 2, 3):
            level = array.get_level(i)
            level.copy_from(np.zeros(level.shape, "f4"), stream=stream)
        texture = cu.Texture(array, normalized_coordinates=True)
        lod[1, 1, stream](texture, 2.0, out)
        lod[1, 1, stream](texture, 1.0, out)
        stream.sync()
    report = one_report(e)
    assert "at offset 32 of device memory of 60 bytes" in report
    assert f"allocated at {at} (cuMipmappedArrayCreate)" in report
    array.close()
    del texture
