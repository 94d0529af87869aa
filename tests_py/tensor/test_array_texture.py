# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Textures of arrays. What is read is from the CUDA C++ Programming Guide, "Texture Fetching"."""

from __future__ import annotations

import gc
import weakref

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SOURCE = r"""
typedef unsigned long long Texture;
#define READ(name, text, ...)                                                               \
    extern "C" __global__ void name(Texture t, const float4* at, float4* out) {             \
        const float4 x = at[threadIdx.x];                                                   \
        float4 v;                                                                           \
        asm volatile("tex." text                                                            \
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(t), __VA_ARGS__);   \
        out[threadIdx.x] = v;                                                               \
    }
#define V "{%0, %1, %2, %3}, [%4, "

READ(line, "1d.v4.f32.f32 " V "{%5}];", "f"(x.x))
READ(rows, "2d.v4.f32.f32 " V "{%5, %6}];", "f"(x.x), "f"(x.y))
READ(slices, "3d.v4.f32.f32 " V "{%5, %6, %7, %7}];", "f"(x.x), "f"(x.y), "f"(x.z))
READ(layers1, "a1d.v4.f32.f32 " V "{%5, %6}];", "r"((unsigned)x.w), "f"(x.x))
READ(layers2, "a2d.v4.f32.f32 " V "{%5, %6, %7, %7}];", "r"((unsigned)x.w), "f"(x.x), "f"(x.y))
"""


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile()


def array_of(content, stream, **options):
    array = cu.OpaqueArray(content.shape, content.dtype, stream=stream, **options)
    array.copy_from(content, stream=stream)
    return array


def read(code, stream, kernel, texture, at):
    """Return the 4 channels at each place: x, y, z and the layer."""
    at = [(*x, *[0] * (4 - len(x))) for x in at]
    places = cu.asarray(np.asarray(at, "f4"), stream=stream)
    out = cu.zeros((len(at), 4), "f4", stream=stream)
    code[kernel][1, len(at), stream](texture, places.buffer, out.buffer)
    return out.numpy(stream=stream)


def grid(*shape):
    """Return numbers that say where they are: 100 * slice + 10 * row + column."""
    z, y, x = np.ogrid[: (*[1] * (3 - len(shape)), *shape)[0], : (1, *shape)[-2], : shape[-1]]
    return (100 * z + 10 * y + x).astype("f4").reshape(shape)


def test_what_it_says(stream):
    array = array_of(grid(2, 8), stream)
    t = cu.Texture(
        array, filter_mode="linear", address_mode=("wrap", "clamp"), normalized_coordinates=True
    )
    assert (t.array, t.tensor, t.channels, t.srgb) == (array, None, 1, False)
    assert t.address_mode == ("wrap", "clamp")
    assert repr(t) == "<cudago.Texture of (2, 8) float32, linear>"


def test_rows(code, stream):
    t = cu.Texture(array_of(grid(2, 8), stream))
    got = read(code, stream, "rows", t, [(0, 0), (2.75, 1.5), (99, 99), (-5, 0.5)])
    assert got[:, 0].tolist() == [0, 12, 17, 0]


def test_columns_are_filtered(code, stream):
    t = cu.Texture(array_of(grid(8), stream), filter_mode="linear")
    got = read(code, stream, "line", t, [(0.5,), (3,), (3.25,), (99,)])
    assert got[:, 0].tolist() == [0, 2.5, 2.75, 7]


def test_slices(code, stream):
    array = array_of(grid(2, 3, 4), stream)
    got = read(code, stream, "slices", cu.Texture(array), [(1.5, 2.5, 1.5), (9, 9, 9)])
    assert got[:, 0].tolist() == [121, 123]
    t = cu.Texture(array, filter_mode="linear")
    got = read(code, stream, "slices", t, [(2, 2, 1), (1.5, 1.5, 0.75)])
    assert got[:, 0].tolist() == [66.5, 36]


def test_layers(code, stream):
    t = cu.Texture(array_of(grid(3, 2, 4), stream, layered=True), filter_mode="linear")
    got = read(code, stream, "layers2", t, [(2, 0.5, 0, 0), (2, 1, 0, 2), (3.5, 9, 0, 1)])
    assert got[:, 0].tolist() == [1.5, 206.5, 113]
    t = cu.Texture(array_of(grid(3, 8), stream, layered=True))
    got = read(code, stream, "layers1", t, [(3.5, 0, 0, 0), (3.5, 0, 0, 2)])
    assert got[:, 0].tolist() == [3, 23]


def test_around_and_beyond(code, stream):
    array = array_of(grid(2, 8), stream)
    t = cu.Texture(array, address_mode=("wrap", "mirror"), normalized_coordinates=True)
    got = read(
        code, stream, "rows", t, [(0.3125, 0.75), (1.3125, 0.25), (-0.0625, 0.25), (0, 1.25)]
    )
    assert got[:, 0].tolist() == [12, 2, 7, 10]
    t = cu.Texture(array, address_mode="border", border=(7,))
    assert read(code, stream, "rows", t, [(2.5, 1.5), (8.5, 1.5)])[:, 0].tolist() == [12, 7]


def test_channels_and_promoted_integers(code, stream):
    array = array_of(np.array([[[0, 51, 102, 255]] * 4] * 4, "u1"), stream, channels=4)
    got = read(code, stream, "rows", cu.Texture(array, promote=True), [(3.5, 3.5)])
    assert np.allclose(got, [[0, 0.2, 0.4, 1]])


def test_writes_between_launches_are_read(code, stream):
    array = array_of(grid(2, 8), stream)
    t = cu.Texture(array)
    assert read(code, stream, "rows", t, [(2.5, 1.5)])[0, 0] == 12
    array.copy_from(-grid(2, 8), stream=stream)
    assert read(code, stream, "rows", t, [(2.5, 1.5)])[0, 0] == -12


def test_it_keeps_the_array(code, stream):
    array = array_of(grid(2, 8), stream)
    t = cu.Texture(array)
    array.close()
    del array
    gc.collect()
    other = array_of(-grid(2, 8), stream)
    assert read(code, stream, "rows", t, [(2.5, 1.5)])[0, 0] == 12
    assert other.shape == (2, 8)


def test_a_launch_keeps_both(code, stream):
    array = array_of(grid(2, 8), stream)
    t = cu.Texture(array)
    gone = weakref.ref(t)
    places = cu.asarray(np.array([(2.5, 1.5, 0, 0)], "f4"), stream=stream)
    out = cu.zeros(4, "f4", stream=stream)
    with cu.testing.hold(stream):
        code["rows"][1, 1, stream](t, places.buffer, out.buffer)
        array.close()
        del t, array
        gc.collect()
        assert gone() is not None
    assert out.numpy(stream=stream)[0] == 12


def test_a_graph_keeps_both(code, device, stream):
    array = array_of(grid(2, 8), stream)
    places = cu.asarray(np.array([(2.5, 1.5, 0, 0)], "f4"), stream=stream)
    out = cu.zeros(4, "f4", stream=stream)
    graph = cu.Graph(device)
    t = cu.Texture(array)
    node = graph.launch(
        cu.LaunchConfig(grid=1, block=1), code["rows"], t, places.buffer, out.buffer
    )
    assert node.params.args[0] is t
    with stream.capture() as captured:
        code["rows"][1, 1, stream](t, places.buffer, out.buffer)
    array.close()
    del t, array
    gc.collect()
    for g in (graph, captured):
        out.fill(0, stream=stream)
        g.instantiate().launch(stream)
        assert out.numpy(stream=stream)[0] == 12


RULES = {
    "channels": ({"channels": 2}, "channels must be those of the array, 1; got 2"),
    "modes": ({"address_mode": ("clamp",) * 3}, "address_mode must be one or two of"),
    "wrap": ({"address_mode": "wrap"}, "need normalized_coordinates=True"),
    "promote": ({"promote": True}, "promote needs integers of 8 or 16 bits"),
    "srgb": ({"srgb": True}, "srgb needs uint8 and promote=True"),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken(stream, rule):
    options, message = RULES[rule]
    with pytest.raises(ValueError, match=message):
        cu.Texture(array_of(grid(2, 8), stream), **options)


def linear(c):
    """Return the intensity of a color in sRGB: IEC 61966-2-1."""
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


def test_srgb(code, stream):
    array = array_of(np.full((4, 4), 188, "u1"), stream)
    got = read(code, stream, "rows", cu.Texture(array, promote=True, srgb=True), [(1.5, 1.5)])
    assert got[0, 0] == pytest.approx(linear(188 / 255), abs=2e-3)


def test_the_fourth_channel_is_no_color(code, stream):
    array = array_of(np.array([[[5, 51, 188, 188]] * 4] * 4, "u1"), stream, channels=4)
    got = read(code, stream, "rows", cu.Texture(array, promote=True, srgb=True), [(1.5, 1.5)])
    want = [linear(5 / 255), linear(51 / 255), linear(188 / 255), 188 / 255]
    assert got[0].tolist() == pytest.approx(want, abs=2e-3)


def test_colors_are_converted_before_the_filter(code, stream):
    array = array_of(np.array([[[0] * 4, [255] * 4]], "u1"), stream, channels=4)
    t = cu.Texture(array, promote=True, srgb=True, filter_mode="linear")
    got = read(code, stream, "rows", t, [(1, 0.5)])
    assert got[0].tolist() == pytest.approx([0.5] * 4, abs=4e-3)


@pytest.mark.skipif("cu.driver_name() != 'sim'", reason="NVIDIA's driver does not check it")
def test_the_wrong_instruction(code, stream):
    with cu.Device().create_stream() as other:
        t = cu.Texture(array_of(grid(2, 3, 4), other))
        with pytest.raises(cu.CUDAError, match="of 3 dimensions is read by 2 coordinates"):
            read(code, other, "rows", t, [(0, 0)])
    cu.Device().reset()
