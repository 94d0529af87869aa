# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Cubemaps: faces that directions name, and their rules.

What is read is from the CUDA C++ Programming Guide, "Cubemap Textures".
"""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SOURCE = r"""
#define AT const float4 x = at[threadIdx.x]
extern "C" __global__ void cube(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = texCubemap<float4>(t, x.x, x.y, x.z);
}
extern "C" __global__ void cubes(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = texCubemapLayered<float4>(t, x.x, x.y, x.z, (int)x.w);
}
extern "C" __global__ void level(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = texCubemapLod<float4>(t, x.x, x.y, x.z, x.w);
}
extern "C" __global__ void steps(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    const float4 none = make_float4(0, 0, 0, 0);
    out[threadIdx.x] = texCubemapGrad<float4>(t, 0.25f, 0.25f, 1.0f, x, none);
}
extern "C" __global__ void twice(cudaSurfaceObject_t s, int cube) {
    const int x = threadIdx.x * 4, y = threadIdx.y, face = threadIdx.z;
    float v;
    surfCubemapLayeredread(&v, s, x, y, 6 * cube + face);
    surfCubemapLayeredwrite(2 * v, s, x, y, 6 * cube + face);
}
"""


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile()


def numbered(*shape):
    """Return numbers that say where they are: 100 * face + 10 * row + column."""
    face, row, column = np.ogrid[: shape[0], : shape[1], : shape[2]]
    return (100 * face + 10 * row + column).astype("f4")


def cube_of(content, stream, **options):
    array = cu.OpaqueArray(content.shape, "f4", stream=stream, cubemap=True, **options)
    array.copy_from(content, stream=stream)
    return array


def texture(array, **options):
    return cu.Texture(array, normalized_coordinates=True, **options)


def read(code, stream, kernel, texture, at):
    """Return the first channel at each place: a direction, and a layer or a level."""
    at = [(*x, *[0] * (4 - len(x))) for x in at]
    places = cu.asarray(np.asarray(at, "f4"), stream=stream)
    out = cu.zeros((len(at), 4), "f4", stream=stream)
    code[kernel][1, len(at), stream](texture, places.buffer, out.buffer)
    return out.numpy(stream=stream)[:, 0].tolist()


DIRECTIONS = {
    (1, 0.5, 0.5): 0,
    (1, 0.5, -0.5): 1,
    (1, -0.5, 0.5): 10,
    (-1, 0.5, -0.5): 100,
    (-1, 0.5, 0.5): 101,
    (-0.5, 1, -0.5): 200,
    (-0.5, 1, 0.5): 210,
    (-0.5, -1, 0.5): 300,
    (0.5, -1, -0.5): 311,
    (-0.5, 0.5, 1): 400,
    (0.5, -0.5, 1): 411,
    (0.5, 0.5, -1): 500,
    (-5, -5, -10): 511,
}


def test_what_it_says(stream):
    array = cu.OpaqueArray((6, 4, 4), "u1", stream=stream, cubemap=True)
    assert (array.cubemap, array.layered, array.ndim, array.nbytes) == (True, False, 2, 96)
    assert repr(array) == "<cudago.OpaqueArray of (6, 4, 4) uint8 on device 0, cubemap>"
    t = texture(cube_of(numbered(6, 2, 2), stream), seamless_cubemap=True)
    assert t.seamless_cubemap and t.address_mode == ("clamp", "clamp")


def test_directions(code, stream):
    t = texture(cube_of(numbered(6, 2, 2), stream))
    assert read(code, stream, "cube", t, DIRECTIONS) == list(DIRECTIONS.values())


def test_layers(code, stream):
    content = np.stack([numbered(6, 2, 2), 1000 + numbered(6, 2, 2), 2000 + numbered(6, 2, 2)])
    array = cube_of(content, stream, layered=True)
    assert np.array_equal(array.numpy(stream=stream), content)
    at = [(*x, i) for i in range(3) for x in DIRECTIONS]
    want = [1000 * i + v for i in range(3) for v in DIRECTIONS.values()]
    assert read(code, stream, "cubes", texture(array), at) == want


def test_channels(code, stream):
    content = np.stack([numbered(6, 2, 2)] * 4, -1)
    array = cube_of(content, stream, channels=4)
    assert read(code, stream, "cube", texture(array), DIRECTIONS) == list(DIRECTIONS.values())


def test_a_face_is_filtered(code, stream):
    t = texture(cube_of(numbered(6, 2, 2), stream), filter_mode="linear")
    got = read(code, stream, "cube", t, [(0, 0, 1), (1, 0, 0), (0.998, 0.5, 1)])
    assert got == pytest.approx([405.5, 5.5, 401], abs=0.5)


def test_the_next_face_is_filtered_too(code, stream):
    content = np.zeros((6, 4, 4), "f4")
    content[4] = 8
    t = texture(cube_of(content, stream), filter_mode="linear", seamless_cubemap=True)
    at = [(0, 0, 1), (0.9999, 0.1, 1), (1, 0.1, 0.9999), (0.75, 0.1, 1), (0.1, -0.9999, 1)]
    assert read(code, stream, "cube", t, at) == pytest.approx([8, 4, 4, 8, 4], abs=0.1)
    t = texture(cube_of(content, stream), filter_mode="linear")
    assert read(code, stream, "cube", t, at) == pytest.approx([8, 8, 0, 8, 8], abs=0.1)


def test_levels(code, stream):
    array = cu.MipmappedArray((6, 4, 4), "f4", stream=stream, cubemap=True)
    assert (array.level_count, array.cubemap, array.ndim) == (3, True, 2)
    for i in range(3):
        level = array.get_level(i)
        assert (level.shape, level.cubemap) == ((6, 4 >> i, 4 >> i), True)
        faces = 100 * np.arange(6)[:, None, None] + i
        level.copy_from(np.broadcast_to(faces, level.shape).astype("f4"), stream=stream)
    at = [(0.2, 0.2, 1, 0), (0.2, 1, 0.2, 1), (-1, 0.2, 0.2, 2), (0.2, 0.2, -1, 9)]
    assert read(code, stream, "level", texture(array), at) == [400, 201, 102, 502]
    steps = [(0.5, 0, 0, 0), (1, 0, 0, 0), (0, 2, 0, 0)]  # faces are 2 wide, of 4 elements
    found = read(code, stream, "steps", texture(array), steps)
    assert found[:2] == [400, 401]
    # An H200 chooses level 1 for the last: how a device projects steps is its own affair.
    assert found[2] == 402 or cu.driver_name() == "nvidia"


def test_faces_are_layers_of_a_surface(code, stream):
    content = np.stack([numbered(6, 2, 2), numbered(6, 2, 2)])
    array = cube_of(content, stream, layered=True, surfaces=True)
    code["twice"][1, (2, 2, 6), stream](cu.Surface(array), 1)
    content[1] *= 2
    assert np.array_equal(array.numpy(stream=stream), content)


def test_copies_of_a_part_of_a_wider_tensor(stream):
    array = cu.OpaqueArray((2, 6, 2, 2), "f4", stream=stream, layered=True, cubemap=True)
    wide = np.arange(2 * 6 * 3 * 4, dtype="f4").reshape(2, 6, 3, 4)
    tensor = cu.asarray(wide, stream=stream)
    array.copy_from(tensor[:, :, 1:, :2], stream=stream)
    assert np.array_equal(array.numpy(stream=stream), wide[:, :, 1:, :2])
    more = cu.zeros((2, 7, 2, 2), "f4", stream=stream)
    with pytest.raises(ValueError, match="all faces of cubes must be equally far apart"):
        array.copy_from(more[:, :6], stream=stream)
    with pytest.raises(ValueError, match="do not have the same dimensions"):
        array.copy_from(cu.OpaqueArray((12, 2, 2), "f4", stream=stream), stream=stream)


RULES = {
    "faces": (lambda s: cu.OpaqueArray((5, 4, 4), "f4", stream=s, cubemap=True), "has 6 faces"),
    "square": (lambda s: cu.OpaqueArray((6, 4, 5), "f4", stream=s, cubemap=True), "are square"),
    "rank": (lambda s: cu.OpaqueArray((6, 4), "f4", stream=s, cubemap=True), r"got \(6, 4\)"),
    "layers": (
        lambda s: cu.OpaqueArray((6, 4, 4), "f4", stream=s, cubemap=True, layered=True),
        "with layers before that",
    ),
    "empty": (lambda s: cu.OpaqueArray((6, 0, 0), "f4", stream=s, cubemap=True), "at least one"),
    "wide": (
        lambda s: cu.OpaqueArray((6, 1 << 17, 1 << 17), "u1", stream=s, cubemap=True),
        "at most 32768 columns",
    ),
    "many": (
        lambda s: cu.OpaqueArray((999, 6, 1, 1), "u1", stream=s, cubemap=True, layered=True),
        "at most 2046 faces",
    ),
    "coordinates": (
        lambda s: cu.Texture(cube_of(numbered(6, 2, 2), s)),
        "a cubemap needs normalized_coordinates=True",
    ),
    "seamless": (
        lambda s: texture(cu.OpaqueArray((4, 4), "f4", stream=s), seamless_cubemap=True),
        "seamless_cubemap needs an array that was made with cubemap=True",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken(stream, rule):
    make, message = RULES[rule]
    with pytest.raises(ValueError, match=message):
        make(stream)


@pytest.mark.skipif("cu.driver_name() != 'sim'", reason="NVIDIA's driver does not check it")
def test_the_wrong_instruction(code, stream):
    with cu.Device().create_stream() as other:
        t = texture(cu.OpaqueArray((6, 2, 2), "f4", stream=other, layered=True))
        with pytest.raises(cu.CUDAError, match="of 2 dimensions in layers is read by a direction"):
            read(code, other, "cube", t, [(1, 0, 0)])
    cu.Device().reset()
