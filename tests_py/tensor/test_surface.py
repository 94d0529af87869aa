# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Surfaces: reads and writes of kernels, and what they keep.

What is read and written is from the PTX ISA, "Surface Instructions: suld" and "sust".
"""

from __future__ import annotations

import gc
import weakref

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SOURCE = r"""
typedef unsigned long long Surface;

extern "C" __global__ void twice(Surface s, int width) {
    const int x = 4 * threadIdx.x, y = threadIdx.y;
    unsigned v;
    if (threadIdx.x >= width) return;
    asm volatile("suld.b.2d.b32.trap {%0}, [%1, {%2, %3}];" : "=r"(v) : "l"(s), "r"(x), "r"(y));
    asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], {%3};"
                 : : "l"(s), "r"(x), "r"(y), "r"(2 * v) : "memory");
}

extern "C" __global__ void beyond(Surface s, unsigned* out) {
    const int x = 4 * ((int)threadIdx.x - 2);
    unsigned a, b;
    asm volatile("suld.b.1d.b32.clamp {%0}, [%1, {%2}];" : "=r"(a) : "l"(s), "r"(x));
    asm volatile("suld.b.1d.b32.zero {%0}, [%1, {%2}];" : "=r"(b) : "l"(s), "r"(x));
    out[2 * threadIdx.x] = a;
    out[2 * threadIdx.x + 1] = b;
}

extern "C" __global__ void put(Surface s, int x, unsigned v) {
    asm volatile("sust.b.1d.b32.zero [%0, {%1}], {%2};" : : "l"(s), "r"(4 * x), "r"(v) : "memory");
}

extern "C" __global__ void bytes(Surface s) {
    const int x = 4 * threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    const unsigned short a = x, b = y, c = z;
    asm volatile("sust.b.3d.v4.b8.trap [%0, {%1, %2, %3, %3}], {%4, %5, %6, %6};"
                 : : "l"(s), "r"(x), "r"(y), "r"(z), "h"(a), "h"(b), "h"(c) : "memory");
}

extern "C" __global__ void layer(Surface s, unsigned i) {
    const int x = 8 * threadIdx.x;
    unsigned long long v;
    asm volatile("suld.b.a1d.b64.trap {%0}, [%1, {%2, %3}];" : "=l"(v) : "l"(s), "r"(i), "r"(x));
    asm volatile("sust.b.a1d.b64.trap [%0, {%1, %2}], {%3};"
                 : : "l"(s), "r"(i), "r"(x), "l"(v + 1) : "memory");
}
"""


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile()


def array_of(content, stream, **options):
    array = cu.OpaqueArray(content.shape, content.dtype, stream=stream, surfaces=True, **options)
    array.copy_from(content, stream=stream)
    return array


def test_what_it_says(stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream, surfaces=True)
    s = cu.Surface(array)
    assert s.array is array
    assert s.handle
    assert repr(s) == "<cudago.Surface of (4, 8) float32>"


def test_two_dimensions(code, stream):
    content = np.arange(40, dtype="u4").reshape(5, 8)
    array = array_of(content, stream)
    code["twice"][1, (8, 5), stream](cu.Surface(array), 8)
    assert np.array_equal(array.numpy(stream=stream), 2 * content)


def test_beyond_the_bounds(code, stream):
    array = array_of(np.array([5, 6, 7], "u4"), stream)
    s = cu.Surface(array)
    out = cu.zeros((7, 2), "u4", stream=stream)
    code["beyond"][1, 7, stream](s, out.buffer)
    got = out.numpy(stream=stream)
    assert got[:, 0].tolist() == [5, 5, 5, 6, 7, 7, 7]
    assert got[:, 1].tolist() == [0, 0, 5, 6, 7, 0, 0]
    code["put"][1, 1, stream](s, 3, 99)
    code["put"][1, 1, stream](s, -1, 99)
    code["put"][1, 1, stream](s, 1, 9)
    assert array.numpy(stream=stream).tolist() == [5, 9, 7]


def test_three_dimensions_in_channels(code, stream):
    array = array_of(np.zeros((2, 3, 4, 4), "u1"), stream, channels=4)
    code["bytes"][1, (4, 3, 2), stream](cu.Surface(array))
    z, y, x = np.meshgrid(range(2), range(3), range(4), indexing="ij")
    assert np.array_equal(array.numpy(stream=stream), np.stack([4 * x, y, z, z], -1))


def test_layers(code, stream):
    content = np.arange(24, dtype="u4").reshape(3, 4, 2)
    array = array_of(content, stream, channels=2, layered=True)
    code["layer"][1, 4, stream](cu.Surface(array), 1)
    content[1, :, 0] += 1
    assert np.array_equal(array.numpy(stream=stream), content)


def test_a_texture_reads_what_a_surface_wrote(code, stream):
    array = array_of(np.arange(16, dtype="u4").reshape(2, 8), stream)
    reader = cu.Program(
        r"""extern "C" __global__ void look(unsigned long long t, unsigned* out) {
        unsigned a, b, c, d;
        asm volatile("tex.2d.v4.u32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(t), "r"(3), "r"(1));
        *out = a;
    }"""
    ).compile()["look"]
    out = cu.zeros(1, "u4", stream=stream)
    code["twice"][1, (8, 2), stream](cu.Surface(array), 8)
    reader[1, 1, stream](cu.Texture(array), out.buffer)
    assert out.numpy(stream=stream)[0] == 22


def test_a_launch_keeps_both(code, stream):
    content = np.arange(16, dtype="u4").reshape(2, 8)
    array = array_of(content, stream)
    out = cu.zeros((2, 8), "u4", stream=stream)
    s = cu.Surface(array)
    gone = weakref.ref(s)
    with cu.testing.hold(stream):
        code["twice"][1, (8, 2), stream](s, 8)
        array.copy_to(out, stream=stream)
        array.close()
        del s, array
        gc.collect()
        assert gone() is not None
    assert np.array_equal(out.numpy(stream=stream), 2 * content)


def test_a_graph_keeps_both(code, device, stream):
    content = np.arange(16, dtype="u4").reshape(2, 8)
    array = array_of(content, stream)
    out = cu.zeros((2, 8), "u4", stream=stream)
    stream.sync()
    graph = cu.Graph(device)
    s = cu.Surface(array)
    node = graph.launch(cu.LaunchConfig(grid=1, block=(8, 2)), code["twice"], s, 8)
    node.memcpy(out, array)
    assert node.params.args[0] is s
    with stream.capture() as captured:
        code["twice"][1, (8, 2), stream](s, 8)
        array.copy_to(out, stream=stream)
    array.close()
    del s, array
    gc.collect()
    for factor, g in ((2, graph), (4, captured)):
        g.instantiate().launch(stream)
        assert np.array_equal(out.numpy(stream=stream), factor * content)


def test_rules(code, stream):
    with pytest.raises(TypeError, match="array must be an OpaqueArray, not Tensor"):
        cu.Surface(cu.zeros((4, 8), "f4", stream=stream))
    with pytest.raises(ValueError, match="must be made with surfaces=True"):
        cu.Surface(cu.OpaqueArray((4, 8), "f4", stream=stream))
    with pytest.raises(TypeError, match="parameter 1 of kernel twice must be"):
        code["twice"][1, 1, stream](
            1, cu.Surface(cu.OpaqueArray((4, 8), "f4", stream=stream, surfaces=True))
        )


def test_closed(device, stream):
    array = cu.OpaqueArray((16, 32), "float32", stream=stream, surfaces=True)
    with cu.Surface(array) as surface:
        assert surface.array is array
    assert surface.is_closed
    assert repr(surface) == "<cudago.Surface: closed>"
    with pytest.raises(cu.ClosedError, match="texture or surface is closed"):
        surface.handle  # noqa: B018
    array.close()
