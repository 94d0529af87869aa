# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Mipmapped arrays: levels, reads between them, and what they keep.

Which level is read is from the text about cuTexObjectCreate in cuda.h.
"""

from __future__ import annotations

import gc
import json
import weakref

import pytest

import cudago as cu
from cudago._gopy import api

np = pytest.importorskip("numpy")

SOURCE = r"""
#define AT const float4 x = at[threadIdx.x]
extern "C" __global__ void line(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = tex1DLod<float4>(t, x.x, x.w);
}
extern "C" __global__ void rows(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = tex2DLod<float4>(t, x.x, x.y, x.w);
}
extern "C" __global__ void slices(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = tex3DLod<float4>(t, x.x, x.y, x.z, x.w);
}
extern "C" __global__ void layers(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = tex2DLayeredLod<float4>(t, x.x, x.y, (int)x.z, x.w);
}
extern "C" __global__ void steps(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = tex2DGrad<float4>(t, 0.5f, 0.5f, make_float2(x.x, x.y),
                                         make_float2(x.z, x.w));
}
extern "C" __global__ void plain(cudaTextureObject_t t, const float4* at, float4* out) {
    AT;
    out[threadIdx.x] = tex2D<float4>(t, x.x, x.y);
}
extern "C" __global__ void halve(cudaTextureObject_t t, cudaSurfaceObject_t s, int n) {
    const float x = (threadIdx.x + 0.5f) / n, y = (threadIdx.y + 0.5f) / n;
    surf2Dwrite(tex2DLod<float>(t, x, y, 0.0f), s, threadIdx.x * 4, threadIdx.y);
}
"""


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile()


def on_driver(kind):
    """Return how many objects the driver has of a kind."""
    return json.loads(api.driver_objects()).get(kind, 0)


def filled(stream, shape, **options):
    """Return an array whose level i has the number 16 * i everywhere."""
    array = cu.MipmappedArray(shape, "f4", stream=stream, **options)
    for i in range(array.level_count):
        level = array.get_level(i)
        level.copy_from(np.full(level.shape, 16 * i, "f4"), stream=stream)
    return array


def texture(array, **options):
    return cu.Texture(array, normalized_coordinates=True, **options)


def read(code, stream, kernel, texture, at):
    """Return the first channel at each place."""
    places = cu.asarray(np.asarray(at, "f4"), stream=stream)
    out = cu.zeros((len(at), 4), "f4", stream=stream)
    code[kernel][1, len(at), stream](texture, places.buffer, out.buffer)
    return out.numpy(stream=stream)[:, 0].tolist()


SHAPES = {
    "columns": ((9,), {}, [(9,), (4,), (2,), (1,)]),
    "rows": ((3, 9), {}, [(3, 9), (1, 4), (1, 2), (1, 1)]),
    "slices": ((2, 3, 4), {}, [(2, 3, 4), (1, 1, 2), (1, 1, 1)]),
    "channels": ((4, 2, 2), {"channels": 2}, [(4, 2, 2), (2, 1, 2), (1, 1, 2)]),
    "layers": ((5, 2, 4), {"layered": True}, [(5, 2, 4), (5, 1, 2), (5, 1, 1)]),
    "some": ((8, 8), {"level_count": 2}, [(8, 8), (4, 4)]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_levels(stream, shape):
    shape, options, want = SHAPES[shape]
    with cu.MipmappedArray(shape, "i2", stream=stream, **options) as array:
        levels = [array.get_level(i) for i in range(array.level_count)]
        assert [level.shape for level in levels] == want
        assert array.nbytes == sum(level.nbytes for level in levels)
        contents = [np.arange(np.prod(s)).reshape(s).astype("i2") + 100 for s in want]
        for level, content in zip(levels, contents, strict=True):
            level.copy_from(content, stream=stream)
        for level, content in zip(levels, contents, strict=True):
            assert np.array_equal(level.numpy(stream=stream), content)


def test_what_it_says(device, stream):
    array = cu.MipmappedArray((4, 2, 8), "u1", stream=stream, layered=True, surfaces=True)
    assert (array.shape, array.channels, array.dtype_name, array.ndim) == ((4, 2, 8), 1, "uint8", 2)
    assert (array.layered, array.surfaces, array.level_count) == (True, True, 4)
    assert array.device == device and array.handle
    assert repr(array) == (
        "<cudago.MipmappedArray of (4, 2, 8) uint8, 4 levels, on device 0, layered>"
    )
    level = array.get_level(np.int64(1))
    assert (level.layered, level.surfaces, level.dtype_name) == (True, True, "uint8")
    assert repr(level) == "<cudago.OpaqueArray of (4, 1, 4) uint8 on device 0, layered>"
    assert level.handle == array.get_level(1).handle != array.get_level(2).handle
    array.close()
    array.close()
    assert array.is_closed and not level.is_closed
    assert repr(array).endswith("closed>")


def test_a_texture_of_it(stream):
    t = texture(filled(stream, (4, 4)), mipmap_filter_mode="linear", mipmap_level_bias=0.5)
    assert isinstance(t.array, cu.MipmappedArray) and t.tensor is None
    assert (t.mipmap_filter_mode, t.mipmap_level_bias) == ("linear", 0.5)
    assert (t.min_mipmap_level_clamp, t.max_mipmap_level_clamp) == (0, 2)
    assert repr(t) == "<cudago.Texture of (4, 4) float32, point>"


@pytest.mark.parametrize(
    ("kernel", "shape", "options"),
    [
        ("line", (4,), {}),
        ("rows", (4, 4), {}),
        ("slices", (4, 4, 4), {}),
        ("layers", (3, 4, 4), {"layered": True}),
    ],
)
def test_a_level_is_read(code, stream, kernel, shape, options):
    t = texture(filled(stream, shape, **options))
    levels = [0, 1, 2, 0.25, 0.75, 1.75, -5, 99]
    got = read(code, stream, kernel, t, [(0.5, 0.5, 0, level) for level in levels])
    assert got == [0, 16, 32, 0, 16, 32, 0, 32]


def test_between_levels(code, stream):
    t = texture(filled(stream, (4, 4)), mipmap_filter_mode="linear", filter_mode="linear")
    got = read(code, stream, "rows", t, [(0.5, 0.5, 0, level) for level in (0, 0.5, 1.25, 9)])
    assert got == pytest.approx([0, 8, 20, 32], abs=0.07)  # the weight has 8 bits


def test_both_filters(code, stream):
    array = cu.MipmappedArray((2, 2), "f4", stream=stream)
    array.get_level(0).copy_from([[0, 8], [0, 8]], stream=stream)
    array.get_level(1).copy_from([[100]], stream=stream)
    t = texture(array, mipmap_filter_mode="linear", filter_mode="linear")
    got = read(code, stream, "rows", t, [(0.5, 0.5, 0, 0), (0.5, 0.5, 0, 0.5), (0.5, 0.5, 0, 1)])
    assert got == pytest.approx([4, 52, 100], abs=0.5)
    t = texture(array, filter_mode="linear")
    assert read(code, stream, "plain", t, [(0.5, 0.5, 0, 0)]) == [4]


def test_bias_and_bounds(code, stream):
    array = filled(stream, (8, 8))
    t = texture(array, mipmap_level_bias=1)
    assert read(code, stream, "rows", t, [(0, 0, 0, i) for i in (-1, 0, 1)]) == [0, 16, 32]
    t = texture(array, min_mipmap_level_clamp=1, max_mipmap_level_clamp=2)
    assert read(code, stream, "rows", t, [(0, 0, 0, i) for i in (0, 1, 3)]) == [16, 16, 32]
    t = texture(array, max_mipmap_level_clamp=0)
    assert read(code, stream, "rows", t, [(0, 0, 0, 3)]) == [0]


def test_steps(code, stream):
    t = texture(filled(stream, (4, 8)))
    steps = {
        (1 / 8, 0, 0, 1 / 4): 0,  # one element of either
        (1 / 4, 0, 0, 0): 16,
        (0, 1 / 2, 0, 0): 16,
        (0, 0, 1 / 2, 0): 32,
        (1 / 16, 0, 0, 1): 32,
    }
    assert read(code, stream, "steps", t, list(steps)) == list(steps.values())


def test_layers_and_slices(code, stream):
    array = cu.MipmappedArray((2, 2, 2), "f4", stream=stream, layered=True)
    array.get_level(1).copy_from([[[5]], [[7]]], stream=stream)
    t = texture(array)
    assert read(code, stream, "layers", t, [(0, 0, 0, 1), (0, 0, 1, 1)]) == [5, 7]
    array = cu.MipmappedArray((4, 2, 2), "f4", stream=stream)
    array.get_level(1).copy_from([[[5]], [[7]]], stream=stream)
    t = texture(array)
    assert read(code, stream, "slices", t, [(0, 0, 0.25, 1), (0, 0, 0.75, 1)]) == [5, 7]


def test_a_level_made_of_the_one_before(code, stream):
    array = cu.MipmappedArray((4, 4), "f4", stream=stream, surfaces=True)
    array.get_level(0).copy_from(np.arange(16, dtype="f4").reshape(4, 4), stream=stream)
    t = texture(array, filter_mode="linear")
    code["halve"][1, (2, 2), stream](t, cu.Surface(array.get_level(1)), 2)
    got = array.get_level(1).numpy(stream=stream)
    assert got.tolist() == [[2.5, 4.5], [10.5, 12.5]]


def test_a_texture_of_one_level(code, stream):
    array = filled(stream, (4, 4))
    t = texture(array.get_level(1))
    assert read(code, stream, "plain", t, [(0.5, 0.5, 0, 0)]) == [16]


def test_a_level_keeps_the_memory(code, stream):
    before = on_driver("MipmappedArray")
    array = filled(stream, (4, 4))
    assert cu.live_objects()["MipmappedArray"] == before + 1
    level, t = array.get_level(1), texture(array)
    array.close()
    del array
    gc.collect()
    stream.sync()
    cu._core._drain()
    assert cu._core._reaper_flush(5000)
    assert on_driver("MipmappedArray") == before + 1
    assert level.numpy(stream=stream).tolist() == [[16, 16], [16, 16]]
    assert read(code, stream, "rows", t, [(0, 0, 0, 2)]) == [32]
    level.close()
    del t, level
    gc.collect()
    stream.sync()
    cu._core._drain()
    assert cu._core._reaper_flush(5000)
    assert on_driver("MipmappedArray") == before
    assert cu.live_objects().get("MipmappedArray", 0) == before


def test_a_copy_in_flight_keeps_it(device, stream):
    array = filled(stream, (4, 4))
    stream.sync()
    with device.create_stream() as other:
        out = cu.zeros((2, 2), "f4", stream=other)
        with cu.testing.hold(other):
            array.get_level(1).copy_to(out, stream=other)
            array.close()
            del array
            gc.collect()
            assert on_driver("MipmappedArray")
        assert (out.numpy(stream=other) == 16).all()


def test_a_graph_keeps_it(code, device, stream):
    array = filled(stream, (4, 4))
    places = cu.asarray(np.array([(0.5, 0.5, 0, 2)], "f4"), stream=stream)
    sampled = cu.zeros(4, "f4", stream=stream)
    out = cu.zeros((2, 2), "f4", stream=stream)
    stream.sync()
    graph = cu.Graph(device)
    t = texture(array)
    node = graph.launch(
        cu.LaunchConfig(grid=1, block=1), code["rows"], t, places.buffer, sampled.buffer
    )
    node.memcpy(out, array.get_level(1), name="down")
    with stream.capture() as captured:
        code["rows"][1, 1, stream](t, places.buffer, sampled.buffer)
        array.get_level(1).copy_to(out, stream=stream)
    gone = weakref.ref(array)
    array.close()
    del t, array
    gc.collect()
    assert gone() is not None  # the first graph's texture shows it
    for g in (graph, captured):
        out.fill(0, stream=stream)
        sampled.fill(0, stream=stream)
        g.instantiate().launch(stream)
        assert (out.numpy(stream=stream) == 16).all()
        assert sampled.numpy(stream=stream)[0] == 32


def test_a_capture(stream):
    array = filled(stream, (4, 4))
    with stream.capture():
        with pytest.raises(ValueError, match="cannot be made on a stream that is capturing"):
            cu.MipmappedArray((4, 4), "f4", stream=stream)
        assert array.get_level(2).shape == (1, 1)


RULES = {
    "none": (lambda s: cu.MipmappedArray((4, 8), "f4", stream=s, level_count=0), "1 to 4 for an"),
    "many": (lambda s: cu.MipmappedArray((4, 8), "f4", stream=s, level_count=5), "got 5"),
    "layers": (
        lambda s: cu.MipmappedArray((8, 2), "f4", stream=s, layered=True, level_count=3),
        "level_count must be 1 to 2",
    ),
    "size": (lambda s: cu.MipmappedArray((1, 1 << 20), "f4", stream=s), "at most .* columns"),
    "dimensions": (lambda s: cu.MipmappedArray((2,) * 4, "f4", stream=s), "1 to 3 dimensions"),
    "coordinates": (
        lambda s: cu.Texture(cu.MipmappedArray((4, 4), "f4", stream=s)),
        "a MipmappedArray needs normalized_coordinates=True",
    ),
    "filter": (
        lambda s: texture(cu.MipmappedArray(4, "f4", stream=s), mipmap_filter_mode="cubic"),
        "mipmap_filter_mode must be 'point' or 'linear', got 'cubic'",
    ),
    "integers": (
        lambda s: texture(cu.MipmappedArray(4, "i4", stream=s), mipmap_filter_mode="linear"),
        "needs floating-point reads: got int32",
    ),
    "bounds": (
        lambda s: texture(cu.MipmappedArray(4, "f4", stream=s), min_mipmap_level_clamp=3),
        "got 0.0, 3.0 and 2.0",
    ),
    "bias": (
        lambda s: texture(cu.MipmappedArray(4, "f4", stream=s), mipmap_level_bias=float("nan")),
        "mipmap_level_bias must be finite",
    ),
    "huge": (
        lambda s: texture(cu.MipmappedArray(4, "f4", stream=s), max_mipmap_level_clamp=1e300),
        "max_mipmap_level_clamp must be a number that float32 holds, got 1e[+]300",
    ),
    "one level": (
        lambda s: cu.Texture(cu.OpaqueArray(4, "f4", stream=s), mipmap_level_bias=1),
        "only a texture of a MipmappedArray has levels",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken(stream, rule):
    make, message = RULES[rule]
    with pytest.raises(ValueError, match=message):
        make(stream)


def test_no_such_level(stream):
    array = cu.MipmappedArray((4, 4), "f4", stream=stream)
    for level in (-1, 3, 1 << 70):
        with pytest.raises(IndexError, match="level must be 0 to 2"):
            array.get_level(level)
    with pytest.raises(TypeError):
        array.get_level(1.0)


def test_it_is_no_array_and_no_memory(device, stream):
    array = cu.MipmappedArray((4, 4), "f4", stream=stream, surfaces=True)
    tensor = cu.zeros((4, 4), "f4", stream=stream)
    kernel = cu.Program('extern "C" __global__ void k(float* p) {}').compile()["k"]
    with pytest.raises(TypeError, match="must not be a MipmappedArray, which has no address"):
        kernel[1, 1, stream](array)
    with pytest.raises(TypeError, match="must not be a MipmappedArray"):
        tensor.buffer.copy_from(array, stream=stream)
    with pytest.raises(TypeError, match="must not be a MipmappedArray"):
        cu.Graph(device).memcpy(tensor, array)
    with pytest.raises(TypeError, match="array must be an OpaqueArray, not MipmappedArray"):
        cu.Surface(array)


def test_a_closed_one(stream):
    array = cu.MipmappedArray((4, 4), "f4", stream=stream)
    array.close()
    for use in (lambda: array.get_level(0), lambda: texture(array), lambda: array.handle):
        with pytest.raises(cu.ClosedError, match="array is closed"):
            use()
