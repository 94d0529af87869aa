# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Textures: their rules, reads of kernels, and what they keep."""

from __future__ import annotations

import gc
import weakref

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SOURCE = r"""
typedef unsigned long long Texture;

extern "C" __global__ void fetch(Texture t, const int* at, float4* out) {
    const unsigned i = threadIdx.x;
    float4 v;
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(t), "r"(at[i]));
    out[i] = v;
}

extern "C" __global__ void sample(Texture t, const float2* at, float4* out) {
    const unsigned i = threadIdx.x;
    float4 v;
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(t), "f"(at[i].x), "f"(at[i].y));
    out[i] = v;
}
"""


@pytest.fixture(scope="module")
def code(device):
    return cu.Program(SOURCE).compile()


@pytest.fixture
def image(device, stream):
    """Two rows of 8 numbers: 10 * row + column."""
    rows, columns = np.ogrid[:2, :8]
    image = cu.asarray((10 * rows + columns).astype("f4"), stream=stream)
    yield image
    image.close()


def read(code, stream, texture, at):
    """Return the 4 channels at each place."""
    one = np.ndim(at) == 1
    places = cu.asarray(np.asarray(at, "i4" if one else "f4"), stream=stream)
    out = cu.zeros((len(at), 4), "f4", stream=stream)
    kernel = code["fetch" if one else "sample"]
    kernel[1, len(at), stream](texture, places.buffer, out.buffer)
    return out.numpy(stream=stream)


def test_what_it_says(image):
    t = cu.Texture(image, filter_mode="linear", address_mode=("clamp", "border"))
    assert (t.tensor, t.channels, t.filter_mode) == (image, 1, "linear")
    assert t.address_mode == ("clamp", "border")
    assert (t.normalized_coordinates, t.promote) == (False, False)
    assert t.handle
    assert repr(t) == "<cudago.Texture of (2, 8) float32, linear>"


def test_one_dimension(code, stream):
    x = cu.asarray(np.arange(16, dtype="f4"), stream=stream)
    got = read(code, stream, cu.Texture(x), [0, 7, 15, 16, -1])
    assert got[:, 0].tolist() == [0, 7, 15, 0, 0]


def test_two_dimensions(code, stream, image):
    got = read(code, stream, cu.Texture(image), [(0, 0), (2.75, 1.5), (99, 99), (-5, 0.5)])
    assert got[:, 0].tolist() == [0, 12, 17, 0]


def test_filtered(code, stream, image):
    t = cu.Texture(image, filter_mode="linear")
    got = read(code, stream, t, [(1.5, 0.5), (2, 0.5), (2.25, 1), (7.9, 0)])
    assert got[:, 0].tolist() == [1, 1.5, 6.75, 7]


def test_the_weight_has_eight_bits(code, stream, image):
    t = cu.Texture(image, filter_mode="linear")
    got = read(code, stream, t, [(0.5 + k / 1024, 0.5) for k in range(0, 1024, 4)])[:, 0]
    assert np.array_equal(got * 256, np.arange(256))


def test_wrapped_and_mirrored(code, stream, image):
    options = {"normalized_coordinates": True}
    t = cu.Texture(image, address_mode=("wrap", "mirror"), **options)
    got = read(code, stream, t, [(0.3125, 0.75), (1.3125, 0.25), (-0.0625, 0.25), (0, 1.25)])
    assert got[:, 0].tolist() == [12, 2, 7, 10]


def test_border(code, stream, image):
    t = cu.Texture(image, address_mode="border", border=(7,))
    assert read(code, stream, t, [(2.5, 1.5), (8.5, 1.5), (2.5, -1)])[:, 0].tolist() == [12, 7, 7]


def test_channels_and_promoted_integers(code, stream):
    x = cu.asarray(np.array([[0, 51, 102, 255]] * 32, "u1"), stream=stream)
    got = read(code, stream, cu.Texture(x, channels=4, promote=True), [3])
    assert np.allclose(got, [[0, 0.2, 0.4, 1]])


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_of_another_device(script, driver):
    run = script(
        f"""
        import cudago as cu

        here, there = cu.Device.all()[:2]
        s, other = here.create_stream(), there.create_stream()
        fetch = cu.Program({SOURCE!r}).compile()["fetch"]
        config = cu.LaunchConfig(1, 1)

        def refused(use):
            try:
                use()
            except ValueError as e:
                return str(e)

        def memory(stream):
            return cu.zeros(4, "i4", stream=stream).buffer, cu.zeros(16, "f4", stream=stream).buffer

        reachable = cu.VirtualMemoryResource(there, peers=[here]).allocate(256, stream=other)
        managed = cu.ManagedMemoryResource(there).allocate(256)
        pinned = cu.PinnedMemoryResource().allocate(256)
        pool = cu.PinnedMemoryResource(pool=cu.PoolOptions(), device=there)
        pooled = pool.allocate(256, stream=other)
        other.sync()
        reachable.fill(0, stream=other)
        managed.fill(0, stream=other)
        memoryview(pinned)[:] = memoryview(pooled)[:] = bytes(256)
        for kept, own, foreign in (
            (reachable, other, s), (managed, other, s), (pooled, other, s), (pinned, s, other)
        ):
            texture = cu.Texture(kept.view("f4"))
            fetch[config, own](texture, *memory(own))
            own.sync()
            print(refused(lambda: fetch[config, foreign](texture, *memory(foreign))))
            graph = cu.Graph(foreign.device)
            assert refused(lambda: graph.launch(config, fetch, texture, *memory(foreign)))
            foreign.sync()
        """,
        CUDAGO_SIM="devices=2",
    )
    assert (run.returncode, run.stderr) == (0, "")
    texts = [
        f"parameter 0 of kernel fetch is a texture for kernels on device {of}, the kernel is on "
        f"device {at}: make one of memory of that device (parameter 0 is t)"
        for of, at in ((1, 0), (1, 0), (1, 0), (0, 1))
    ]
    assert run.stdout.splitlines() == texts


def test_a_launch_keeps_it(code, stream, image):
    t = cu.Texture(image)
    gone = weakref.ref(t)
    places = cu.asarray(np.array([(2.5, 1.5)], "f4"), stream=stream)
    out = cu.zeros(4, "f4", stream=stream)
    with cu.testing.hold(stream):
        code["sample"][1, 1, stream](t, places.buffer, out.buffer)
        del t
        gc.collect()
        assert gone() is not None  # the driver's object must not be destroyed yet
    assert out.numpy(stream=stream)[0] == 12


def test_it_keeps_the_memory(code, stream):
    x = cu.asarray(np.arange(16, dtype="f4"), stream=stream)
    t = cu.Texture(x)
    x.close()
    other = cu.full(16, 99, "f4", stream=stream)
    assert read(code, stream, t, [7])[0, 0] == 7
    assert other.shape == (16,)


def test_a_graph_keeps_it(code, device, stream, image):
    places = cu.asarray(np.array([(2.5, 1.5)], "f4"), stream=stream)
    out = cu.zeros(4, "f4", stream=stream)
    graph = cu.Graph(device)
    config = cu.LaunchConfig(grid=1, block=1)
    t = cu.Texture(image)
    node = graph.launch(config, code["sample"], t, places.buffer, out.buffer)
    assert node.params.args[0] is t
    with stream.capture() as captured:
        code["sample"][1, 1, stream](t, places.buffer, out.buffer)
    del t
    gc.collect()
    for g in (graph, captured):
        out.fill(0, stream=stream)
        g.instantiate().launch(stream)
        assert out.numpy(stream=stream)[0] == 12
    step = graph.instantiate()
    args = step[node.name].params.args
    step[node.name].update(config, code["sample"], *args)
    step.launch(stream)
    assert out.numpy(stream=stream)[0] == 12


def test_closed(code, stream, image):
    before = cu.live_objects()
    with cu.Texture(image) as t:
        assert not t.is_closed
    t.close()  # once more
    assert t.is_closed
    assert repr(t) == "<cudago.Texture: closed>"
    assert t.filter_mode == "point"  # what it was
    places, out = cu.zeros((1, 2), "f4", stream=stream), cu.zeros(4, "f4", stream=stream)
    for use in (
        lambda: code["sample"][1, 1, stream](t, places.buffer, out.buffer),
        lambda: cu.Graph().launch(cu.LaunchConfig(1, 1), code["sample"], t, places, out),
        lambda: code["sample"].bind(cu.LaunchConfig(1, 1), t, places, out),
        lambda: t.handle,
        lambda: t.tensor,
        lambda: t.array,
    ):
        with pytest.raises(cu.ClosedError, match="texture or surface is closed"):
            use()
    places.close()
    out.close()
    cu.testing.settle()
    assert cu.live_objects() == before


def test_closed_memory_goes(stream):
    x = cu.zeros(64, "f4", stream=stream)
    buffers = cu.live_objects()["Buffer"]
    t = cu.Texture(x)
    x.close()
    assert cu.live_objects()["Buffer"] == buffers
    t.close()
    cu.testing.settle()
    assert cu.live_objects().get("Buffer", 0) == buffers - 1


def test_closed_while_it_is_used(code, device, stream, image):
    """The driver would destroy it at once."""
    places = cu.asarray(np.array([(2.5, 1.5)], "f4"), stream=stream)
    out = cu.zeros(4, "f4", stream=stream)
    config, kernel = cu.LaunchConfig(grid=1, block=1), code["sample"]
    t = cu.Texture(image)
    graph = cu.Graph(device)
    node = graph.launch(config, kernel, t, places.buffer, out.buffer)
    with stream.capture() as captured:
        kernel[1, 1, stream](t, places.buffer, out.buffer)
    step = graph.instantiate()
    with cu.testing.hold(stream):
        kernel[1, 1, stream](t, places.buffer, out.buffer)
        t.close()
        image.close()
    assert out.numpy(stream=stream)[0] == 12
    for _ in range(3):
        step[node.name].update({2: out.buffer})  # of the others the node has what it needs
    for g in (step, captured.instantiate()):
        out.fill(0, stream=stream)
        g.launch(stream)
        assert out.numpy(stream=stream)[0] == 12
    for g in (graph, captured, step):
        g.close()
    del node
    gc.collect()
    cu.testing.settle()
    with pytest.raises(cu.ClosedError):
        kernel[1, 1, stream](t, places.buffer, out.buffer)


class Closes:
    """A number that closes something when it is asked for."""

    def __init__(self, what, value):
        self.what, self.value = what, value

    def __index__(self):
        self.what.close()
        return self.value


def test_a_conversion_closes_it(code, stream, image):
    source = SOURCE.replace(
        "fetch(Texture t, const int* at, float4* out)", "late(Texture t, int n)"
    )
    source = source[: source.index("const unsigned")] + "}"
    kernel = cu.Program(source).compile()["late"]
    t = cu.Texture(image)
    kernel[1, 1, stream](t, Closes(t, 1))  # it was taken before
    stream.sync()
    assert t.is_closed
    with pytest.raises(cu.ClosedError):
        kernel[1, 1, stream](t, 1)


RULES = {
    "address": (lambda x: x[:, 4:], {}, "must begin at a multiple of"),
    "columns": (lambda x: x.T, {}, "the elements of a row must lie next to each other"),
    "rows": (lambda x: x.reshape(16)[:14].reshape(2, 7), {}, "rows must be a multiple of"),
    "dimensions": (lambda x: x.reshape(1, 2, 8), {}, "1 or 2 dimensions besides its channels"),
    "empty": (lambda x: x[:0], {}, "at least one element"),
    "channels": (lambda x: x, {"channels": 2}, r"got 2 and a tensor of \(2, 8\)"),
    "three": (lambda x: x, {"channels": 3}, "channels must be 2 or 4"),
    "wrap": (lambda x: x, {"address_mode": "wrap"}, "need normalized_coordinates=True"),
    "mode": (lambda x: x, {"address_mode": "around"}, "address_mode must be one or two of"),
    "filter": (lambda x: x, {"filter_mode": "cubic"}, "filter_mode must be 'point' or 'linear'"),
    "promote": (lambda x: x, {"promote": True}, "promote needs integers of 8 or 16 bits"),
    "border": (lambda x: x, {"border": [0] * 5}, "at most 4 numbers, got 5"),
    "huge": (lambda x: x, {"border": [0, 1e300]}, r"border must be a number that float32 holds"),
    "fetched": (lambda x: x.reshape(16), {"filter_mode": "linear"}, "read by whole numbers"),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken(image, rule):
    make, options, message = RULES[rule]
    with pytest.raises(ValueError, match=message):
        cu.Texture(make(image), **options)


def test_wrong_types(code, stream, image):
    with pytest.raises(
        TypeError, match="tensor must be a Tensor, OpaqueArray or MipmappedArray, not ndarray"
    ):
        cu.Texture(np.zeros((4, 8), "f4"))
    for options, wanted in (
        ({"border": 3}, "border must be at most 4 numbers, not int"),
        ({"border": "1"}, "border must be at most 4 numbers, not str"),
        ({"border": [None]}, "border must be a number, not NoneType"),
        ({"address_mode": None}, "address_mode must be one or two of .*, not NoneType"),
        ({"address_mode": ("wrap", [])}, "address_mode must be one or two of .*, not list in it"),
    ):
        with pytest.raises(TypeError, match=wanted):
            cu.Texture(image, **options)
    cu.Texture(image, border=np.zeros(4)).close()
    with pytest.raises(TypeError, match="elements of type float64"):
        cu.Texture(cu.zeros((4, 8), "f8", stream=stream))
    with pytest.raises(ValueError, match="needs floating-point reads: got int16; set promote=True"):
        cu.Texture(cu.zeros((4, 32), "i2", stream=stream), filter_mode="linear")
    with pytest.raises(TypeError, match="parameter 0 of kernel other must be"):
        cu.Program('extern "C" __global__ void other(float f) {}').compile()["other"][1, 1, stream](
            cu.Texture(image)
        )


def test_a_closed_tensor(image):
    image.close()
    with pytest.raises(cu.ClosedError):
        cu.Texture(image)


def test_memory_of_a_capture(device, stream):
    with stream.capture():
        x = cu.zeros((2, 8), "f4", stream=stream)
        with pytest.raises(ValueError, match="memory that a capture allocates"):
            cu.Texture(x)
