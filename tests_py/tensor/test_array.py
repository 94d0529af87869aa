# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays: copies, what they keep and are kept by, and their rules.

What copies do is from the text about cuMemcpy3DAsync in cuda.h.
"""

from __future__ import annotations

import gc
import json
import weakref

import pytest

import cudago as cu
from cudago._gopy import api

np = pytest.importorskip("numpy")


def numbers(*shape, dtype="f4"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def on_driver(kind):
    """Return how many objects the driver has of a kind."""
    return json.loads(api.driver_objects()).get(kind, 0)


SHAPES = {
    "columns": ((7,), {}),
    "rows": ((5, 7), {}),
    "slices": ((3, 5, 7), {}),
    "channels": ((5, 7, 4), {"channels": 4}),
    "columns of channels": ((7, 2), {"channels": 2}),
    "layers of rows": ((3, 5, 7), {"layered": True}),
    "layers of columns": ((3, 7), {"layered": True}),
    "layers of columns of channels": ((3, 7, 2), {"layered": True, "channels": 2}),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4"])
def test_there_and_back(stream, shape, dtype):
    shape, options = SHAPES[shape]
    with cu.OpaqueArray(shape, dtype, stream=stream, **options) as array:
        content = numbers(*shape, dtype=dtype)
        array.copy_from(content, stream=stream)
        assert np.array_equal(array.numpy(stream=stream), content)
        tensor = cu.zeros(shape, dtype, stream=stream)
        array.copy_to(tensor, stream=stream)
        assert np.array_equal(tensor.numpy(stream=stream), content)
        tensor.copy_from(content + 1, stream=stream)
        array.copy_from(tensor, stream=stream)
        assert np.array_equal(array.numpy(stream=stream), (content + 1).astype(dtype))


def test_what_it_says(device, stream):
    array = cu.OpaqueArray((3, 5, 2), "i2", stream=stream, channels=2, layered=True, surfaces=True)
    assert (array.shape, array.channels, array.dtype_name) == ((3, 5, 2), 2, "int16")
    assert (array.layered, array.surfaces, array.ndim) == (True, True, 1)
    assert (array.device, array.nbytes) == (device, 60)
    assert array.handle
    assert repr(array) == "<cudago.OpaqueArray of (3, 5, 2) int16 on device 0, layered>"
    array.close()
    array.close()
    assert array.is_closed
    assert repr(array).endswith("closed>")


def test_rows_of_a_wider_tensor(stream):
    array = cu.OpaqueArray((3, 5, 7), "f4", stream=stream)
    wide = cu.asarray(numbers(4, 6, 16), stream=stream)
    array.copy_from(wide[1:, 1:, 2:9], stream=stream)
    assert np.array_equal(array.numpy(stream=stream), numbers(4, 6, 16)[1:, 1:, 2:9])
    wide.fill(-1, stream=stream)
    array.copy_to(wide[:3, :5, :7], stream=stream)
    want = np.full((4, 6, 16), -1, "f4")
    want[:3, :5, :7] = numbers(4, 6, 16)[1:, 1:, 2:9]
    assert np.array_equal(wide.numpy(stream=stream), want)


def test_layers_of_a_wider_tensor(stream):
    array = cu.OpaqueArray((3, 7), "f4", stream=stream, layered=True)
    wide = cu.asarray(numbers(3, 16), stream=stream)
    array.copy_from(wide[:, 2:9], stream=stream)
    assert np.array_equal(array.numpy(stream=stream), numbers(3, 16)[:, 2:9])


def test_buffers_lists_and_other_arrays(device, stream):
    array = cu.OpaqueArray((2, 4), "f4", stream=stream)
    other = cu.OpaqueArray((2, 4), "f4", stream=stream)
    array.copy_from([[1, 2, 3, 4], [5, 6, 7, 8]], stream=stream)
    other.copy_from(array, stream=stream)
    buffer = device.allocate(32, stream=stream)
    other.copy_to(buffer, stream=stream)
    assert buffer.view("f4").numpy(stream=stream).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    pinned = cu.PinnedMemoryResource().allocate(32)
    np.frombuffer(pinned, "f4")[:] = 9
    array.copy_from(pinned, stream=stream)
    assert (array.numpy(stream=stream) == 9).all()


def test_a_copy_in_flight_keeps_it(stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    out = cu.zeros((4, 8), "f4", stream=stream)
    array.copy_from(numbers(4, 8), stream=stream)
    with cu.testing.hold(stream):
        array.copy_to(out, stream=stream)
        array.close()
        gc.collect()
        assert on_driver("Array")  # the driver's is not destroyed yet
    assert np.array_equal(out.numpy(stream=stream), numbers(4, 8))


def test_a_copy_in_another_stream_keeps_it(device, stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    array.copy_from(numbers(4, 8), stream=stream)
    stream.sync()
    with device.create_stream() as other:
        out = cu.zeros((4, 8), "f4", stream=other)
        with cu.testing.hold(other):
            array.copy_to(out, stream=other)
            array.close()
            gc.collect()
            assert on_driver("Array")
        assert np.array_equal(out.numpy(stream=other), numbers(4, 8))


def test_the_last_holder_gives_it_back(stream):
    before, ours = on_driver("Array"), cu.live_objects().get("OpaqueArray", 0)
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    texture = cu.Texture(array)
    array.close()
    assert on_driver("Array") == before + 1
    assert cu.live_objects()["OpaqueArray"] == ours + 1
    del texture, array
    gc.collect()
    stream.sync()
    cu._core._drain()
    assert cu._core._reaper_flush(5000)
    assert on_driver("Array") == before
    assert cu.live_objects().get("OpaqueArray", 0) == ours


def test_nodes_of_a_graph(device, stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    out = cu.zeros((4, 8), "f4", stream=stream)
    stream.sync()
    graph = cu.Graph(device)
    up = graph.memcpy(array, numbers(4, 8), name="up")
    down = up.memcpy(out, array, name="down")
    assert [type(r.object).__name__ for r in up.retained] == ["ndarray", "OpaqueArray"]
    step = graph.instantiate()
    with pytest.raises(ValueError, match="copies an array, and cannot be given other memory"):
        step["down"].update(dst=cu.zeros((4, 8), "f4", stream=stream))
    with pytest.raises(ValueError, match="copies an array, and cannot be given other memory"):
        down.update(dst=cu.zeros((4, 8), "f4", stream=stream))
    gone = weakref.ref(array)
    array.close()
    del array
    gc.collect()
    assert gone() is not None  # the graph shows it
    step.launch(stream)
    assert np.array_equal(out.numpy(stream=stream), numbers(4, 8))
    clone = graph.clone().instantiate()
    del graph, up, down, step
    gc.collect()
    out.fill(0, stream=stream)
    clone.launch(stream)
    assert np.array_equal(out.numpy(stream=stream), numbers(4, 8))


def test_a_capture(stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    source = cu.asarray(numbers(4, 8), stream=stream)
    out = cu.zeros((4, 8), "f4", stream=stream)
    with stream.capture() as graph:
        with pytest.raises(ValueError, match="cannot be made on a stream that is capturing"):
            cu.OpaqueArray((4, 8), "f4", stream=stream)
        with pytest.raises(ValueError, match="cannot be waited for"):
            array.numpy(stream=stream)
        array.copy_from(source, stream=stream)
        array.copy_to(out, stream=stream)
        array.close()
        source.close()
    del array, source
    gc.collect()
    step = graph.instantiate()
    for _ in range(2):
        out.fill(0, stream=stream)
        step.launch(stream)
        assert np.array_equal(out.numpy(stream=stream), numbers(4, 8))


def test_each_launch_reads_memory_of_the_buffer_protocol(stream):
    array, source = cu.OpaqueArray((4, 4), "f4", stream=stream), np.zeros((4, 8), "f4")
    array.copy_from(memoryview(source[:, ::2]), stream=stream)  # a copy, which has no gaps
    with stream.capture() as graph:
        with pytest.raises(ValueError, match="elements of a row must lie next to each other"):
            array.copy_from(memoryview(source[:, ::2]), stream=stream)
        with pytest.raises(BufferError, match=r"src has element type float64, .* the capture"):
            array.copy_from(memoryview(np.zeros((4, 4))), stream=stream)
        array.copy_from(memoryview(source[:, 2:6]), stream=stream)
    source[...] = numbers(4, 8)
    graph.instantiate().launch(stream)
    assert np.array_equal(array.numpy(stream=stream), source[:, 2:6])


def test_a_graph_with_one_cannot_be_saved(device, stream, tmp_path):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    graph = cu.Graph(device)
    graph.memcpy(array, cu.zeros((4, 8), "f4", stream=stream), name="up")
    with pytest.raises(ValueError, match="its dst is an array"):
        graph.save(tmp_path / "step.cudago")


RULES = {
    "type": (lambda s: cu.OpaqueArray((4,), "f8", stream=s), TypeError, "elements of type float64"),
    "dimensions": (lambda s: cu.OpaqueArray((2,) * 4, "f4", stream=s), ValueError, "1 to 3 dim"),
    "layers": (
        lambda s: cu.OpaqueArray((4,), "f4", stream=s, layered=True),
        ValueError,
        "1 to 2 dimensions besides layers",
    ),
    "channels": (
        lambda s: cu.OpaqueArray((4, 3), "f4", stream=s, channels=3),
        ValueError,
        "channels must be 2 or 4",
    ),
    "no element": (lambda s: cu.OpaqueArray((4, 0), "f4", stream=s), ValueError, "at least one"),
    "negative": (lambda s: cu.OpaqueArray((-4,), "f4", stream=s), ValueError, "at least one"),
    "size": (lambda s: cu.OpaqueArray(1 << 40, "f4", stream=s), ValueError, "at most .* columns"),
    "surface": (
        lambda s: cu.OpaqueArray(100000, "f4", stream=s, surfaces=True),
        ValueError,
        "at most 32768 columns",
    ),
    "number": (
        lambda s: cu.OpaqueArray((4.5,), "f4", stream=s),
        TypeError,
        "got .4.5",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken(stream, rule):
    make, kind, message = RULES[rule]
    before = on_driver("Array")
    with pytest.raises(kind, match=message):
        make(stream)
    assert on_driver("Array") == before


def test_copies_that_do_not_fit(device, stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    with pytest.raises(ValueError, match=r"src has shape \(4, 7\), the array \(4, 8\)"):
        array.copy_from(np.zeros((4, 7), "f4"), stream=stream)
    with pytest.raises(TypeError, match="src has element type int32, the array float32"):
        array.copy_from(np.zeros((4, 8), "i4"), stream=stream)
    with pytest.raises(ValueError, match="dst has 64 bytes, the array 128"):
        array.copy_to(device.allocate(64, stream=stream), stream=stream)
    with pytest.raises(ValueError, match="must lie next to each other"):
        array.copy_from(cu.zeros((8, 4), "f4", stream=stream).T, stream=stream)
    with pytest.raises(ValueError, match="do not have the same dimensions"):
        array.copy_from(cu.OpaqueArray((8, 4), "f4", stream=stream), stream=stream)
    readonly = np.zeros((4, 8), "f4")
    readonly.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        array.copy_to(readonly, stream=stream)


def test_it_is_no_memory_with_an_address(device, stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream)
    tensor = cu.zeros((4, 8), "f4", stream=stream)
    kernel = cu.Program('extern "C" __global__ void k(float* p) {}').compile()["k"]
    with pytest.raises(TypeError, match="must not be an OpaqueArray, which has no address"):
        kernel[1, 1, stream](array)
    with pytest.raises(TypeError, match="must not be an OpaqueArray"):
        tensor.buffer.copy_from(array, stream=stream)
    with pytest.raises(TypeError, match="must not be an OpaqueArray"):
        cu.Graph(device).memset(array, 0)


def test_a_closed_one(stream):
    array = cu.OpaqueArray((4, 8), "f4", stream=stream, surfaces=True)
    array.close()
    for use in (
        lambda: array.copy_from(np.zeros((4, 8), "f4"), stream=stream),
        lambda: array.numpy(stream=stream),
        lambda: cu.Texture(array),
        lambda: cu.Surface(array),
        lambda: array.handle,
    ):
        with pytest.raises(cu.ClosedError, match="array is closed"):
            use()


def test_a_closed_stream(device):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(cu.ClosedError):
        cu.OpaqueArray((4, 8), "f4", stream=stream)
