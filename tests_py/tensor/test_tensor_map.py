# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: their rules, copies of kernels by them, and what they keep.

Kernels use them from compute capability 9.0. The simulated device of a run of all tests has 7.5,
so the tests of this file are run once more, in a process whose device has 9.0.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

SOURCE = r"""
struct alignas(64) Map { unsigned long long opaque[16]; };

__device__ unsigned place(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// The box at (x, y), as it lies in shared memory.
extern "C" __global__ void load(const __grid_constant__ Map map, unsigned* out, int x, int y,
                                int words) {
    __shared__ alignas(1024) unsigned tile[2048];
    __shared__ unsigned long long bar;
    const unsigned b = place(&bar);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(b), "r"(words * 4) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(place(tile)), "l"(&map), "r"(x), "r"(y), "r"(b) : "memory");
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile("{ .reg .pred p;"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                     "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(b) : "memory");
    for (int i = threadIdx.x; i < words; i += blockDim.x) out[i] = tile[i];
}

// Stores a box of value.
extern "C" __global__ void store(const __grid_constant__ Map map, int x, int y, int words,
                                 unsigned value) {
    __shared__ alignas(128) unsigned tile[2048];
    for (int i = threadIdx.x; i < words; i += blockDim.x) tile[i] = value;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x) return;
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&map), "r"(x), "r"(y), "r"(place(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void pointer(unsigned* p) {}
"""
CONFIG = cu.LaunchConfig(grid=1, block=32)


def has_maps(device) -> bool:
    return device.compute_capability >= (9, 0)


@pytest.fixture(scope="module")
def code(device):
    if not has_maps(device):
        pytest.skip("the device has no tensor maps: see test_on_a_later_device")
    return cu.Program(SOURCE).compile()


@pytest.fixture
def matrix(device, stream):
    """40 columns and 20 rows: 100 * row + column."""
    rows, columns = np.ogrid[:20, :40]
    matrix = cu.asarray((100 * rows + columns).astype("i4"), stream=stream)
    yield matrix
    matrix.close()


@pytest.fixture
def later(code, device):
    """Skip unless maps can be made."""
    return device


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_on_a_later_device(driver, device):
    """Runs the other tests of this file, if the device of this process is too old for them."""
    if has_maps(device):
        return
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"CUDAGO_DRIVER": "sim", "CUDAGO_SIM": "cc=9.0"},
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "sim-" in run.stdout or " passed" in run.stdout


def test_an_older_device_has_none(device, matrix):
    if has_maps(device):
        return
    with pytest.raises(
        cu.UnsupportedError, match=r"tensor maps, which need compute capability 9\.0"
    ):
        cu.TensorMap(matrix, (8, 8))


def loaded(code, stream, m, x, y):
    """Return the box at row y and column x, as words."""
    words = m.box_nbytes // 4
    out = cu.zeros(words, "u4", stream=stream)
    code["load"][1, 32, stream](m, out, x, y, words)
    return out.numpy(stream=stream)


# --- what it says ---------------------------------------------------------------------------------


def test_what_it_says(later, matrix):
    m = cu.TensorMap(matrix, (8, 32), element_strides=(2, 1), l2_promotion="128B")
    assert (m.tensor, m.shape, m.box, m.element_strides) == (matrix, (20, 40), (8, 32), (2, 1))
    assert (m.data_type, m.interleave, m.swizzle) == ("int32", "none", "none")
    assert (m.l2_promotion, m.oob_fill, m.box_nbytes) == ("128B", "zeros", 4 * 32 * 4)
    assert repr(m) == "<cudago.TensorMap of (20, 40) int32, box (8, 32)>"
    assert len(bytes(m)) == 128
    assert "swizzle 128B" in repr(cu.TensorMap(matrix, (8, 32), swizzle="128B"))
    with pytest.raises(AttributeError):
        m.box = (1, 1)
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(m)


def test_one_dimension_takes_a_number(later, stream):
    x = cu.zeros(64, "f2", stream=stream)
    assert cu.TensorMap(x, 8).box == (8,)
    assert cu.TensorMap(x, [16]).box == (16,)


def test_five_dimensions_and_all_types(later, stream):
    for dtype in (
        "?",
        "i1",
        "u1",
        "i2",
        "u2",
        "f2",
        "bfloat16",
        "i4",
        "u4",
        "f4",
        "i8",
        "u8",
        "f8",
    ):
        x = cu.empty((2, 3, 4, 5, 16), dtype, stream=stream)
        assert cu.TensorMap(x, (1, 1, 1, 1, 16)).shape == x.shape


def test_dimensions_of_one_element_have_any_stride(later, stream):
    x = cu.zeros((4, 3), "i4", stream=stream)
    part = x[:1, :]  # rows are 12 bytes apart, but there is one
    assert cu.TensorMap(part, (1, 4)).shape == (1, 3)


# --- copies by it ---------------------------------------------------------------------------------


def test_a_box_is_loaded(code, stream, matrix):
    got = loaded(code, stream, cu.TensorMap(matrix, (4, 8)), 4, 2)
    want = 100 * np.arange(2, 6)[:, None] + np.arange(4, 12)
    assert np.array_equal(got.reshape(4, 8), want)


def test_beyond_the_bounds_are_zeros(code, stream, matrix):
    got = loaded(code, stream, cu.TensorMap(matrix, (4, 8)), 36, -2).reshape(4, 8)
    want = np.zeros((4, 8), "u4")
    want[2:, :4] = [[36, 37, 38, 39], [136, 137, 138, 139]]
    assert np.array_equal(got, want)


def test_beyond_the_bounds_is_nan(code, stream):
    x = cu.full((4, 8), 3, "f4", stream=stream)
    got = (
        loaded(code, stream, cu.TensorMap(x, (8, 8), oob_fill="nan"), 0, 0).view("f4").reshape(8, 8)
    )
    assert np.all(got[:4] == 3)
    assert np.all(np.isnan(got[4:]))


def test_swizzled(code, stream, matrix):
    got = loaded(code, stream, cu.TensorMap(matrix, (8, 32), swizzle="128B"), 0, 0).reshape(8, 8, 4)
    for row in range(8):
        for chunk in range(8):
            assert got[row, chunk, 0] == 100 * row + 4 * (chunk ^ row)


def test_a_view(code, stream, matrix):
    part = matrix[3:11:2, 8:24]
    got = loaded(code, stream, cu.TensorMap(part, (4, 16)), 0, 0).reshape(4, 16)
    assert np.array_equal(got, part.numpy(stream=stream))


def test_every_second_row(code, stream, matrix):
    got = loaded(code, stream, cu.TensorMap(matrix, (4, 8), element_strides=(2, 1)), 0, 1).reshape(
        2, 8
    )
    assert np.array_equal(got, 100 * np.array([[1], [3]]) + np.arange(8))


def test_a_box_is_stored(code, stream, matrix):
    want = matrix.numpy(stream=stream)
    code["store"][1, 32, stream](cu.TensorMap(matrix, (4, 8)), 36, 18, 32, 7)
    want[18:, 36:] = 7
    assert np.array_equal(matrix.numpy(stream=stream), want)


def test_pinned_and_managed_memory(code, device, stream):
    for resource in (cu.PinnedMemoryResource(), cu.ManagedMemoryResource(device)):
        with resource, resource.allocate(512) as buffer:
            x = buffer.view("u4", (4, 32))
            x.fill(9, stream=stream)
            assert np.all(loaded(code, stream, cu.TensorMap(x, (4, 32)), 0, 0) == 9)
            x.close()


# --- what it keeps --------------------------------------------------------------------------------


def test_it_keeps_the_memory(code, device, stream):
    x = cu.full((8, 8), 5, "u4", stream=stream)
    m = cu.TensorMap(x, (8, 8))
    x.close()
    other = cu.full((8, 8), 6, "u4", stream=stream)  # would get the same memory
    assert np.all(loaded(code, stream, m, 0, 0) == 5)
    assert other.shape == (8, 8)


def test_a_launch_keeps_the_memory(code, device, stream):
    out = cu.zeros(64, "u4", stream=stream)
    m = cu.TensorMap(cu.full((8, 8), 5, "u4", stream=stream), (8, 8))
    gone = weakref.ref(m)
    code["load"][1, 32, stream](m, out, 0, 0, 64)
    del m
    assert gone() is None
    assert np.all(out.numpy(stream=stream) == 5)


def test_a_graph_keeps_it(code, device, stream):
    out = cu.zeros(64, "u4", stream=stream)
    graph = cu.Graph(device)
    m = cu.TensorMap(cu.full((8, 8), 5, "u4", stream=stream), (8, 8))
    node = graph.launch(CONFIG, code["load"], m, out, 0, 0, 64)
    assert node.params.args[0] is m
    assert m in [kept.object for kept in node.retained]
    del m
    gc.collect()
    step = graph.instantiate()
    step.launch(stream)
    assert np.all(out.numpy(stream=stream) == 5)
    # Another map, and then what there was.
    before = step[node.name].params.args
    step[node.name].update(
        CONFIG,
        code["load"],
        cu.TensorMap(cu.full((8, 8), 8, "u4", stream=stream), (8, 8)),
        out,
        0,
        0,
        64,
    )
    step.launch(stream)
    assert np.all(out.numpy(stream=stream) == 8)
    step[node.name].update(CONFIG, code["load"], *before)
    step.launch(stream)
    assert np.all(out.numpy(stream=stream) == 5)


def test_a_captured_launch_keeps_it(code, device, stream):
    out = cu.zeros(64, "u4", stream=stream)
    stream.sync()
    m = cu.TensorMap(cu.full((8, 8), 5, "u4", stream=stream), (8, 8))
    with stream.capture() as graph:
        code["load"][1, 32, stream](m, out, 0, 0, 64)
    del m
    gc.collect()
    step = graph.instantiate()
    step.launch(stream)
    assert np.all(out.numpy(stream=stream) == 5)


def test_memory_of_a_capture(code, device, stream):
    out = cu.zeros(64, "u4", stream=stream)
    with stream.capture() as graph:
        x = cu.full((8, 8), 5, "u4", stream=stream)
        m = cu.TensorMap(x, (8, 8))
        code["load"][1, 32, stream](m, out, 0, 0, 64)
        del x, m
    step = graph.instantiate()
    step.launch(stream)
    assert np.all(out.numpy(stream=stream) == 5)


def test_a_graph_with_one_cannot_be_saved(code, device, stream, matrix, tmp_path):
    graph = cu.Graph(device)
    graph.launch(CONFIG, code["store"], cu.TensorMap(matrix, (4, 8)), 0, 0, 32, 1, name="k")
    with pytest.raises(
        ValueError, match="node 'k' cannot be saved: its parameter 0 is a TensorMap"
    ):
        graph.save(tmp_path / "graph.zip")


# --- refused --------------------------------------------------------------------------------------


RULES = {
    "16 bytes": (
        lambda x: (x[:, 1:], (4, 8)),
        {},
        r"must begin at a multiple of 16 bytes, not at 0x",
    ),
    "32 bytes": (
        lambda x: (x.reshape(2, 10, 40)[:, :, 4:], (1, 4, 8)),
        {"interleave": "32B", "swizzle": "32B"},
        "must begin at a multiple of 32 bytes",
    ),
    "columns": (lambda x: (x.T, (8, 4)), {}, "last dimension must lie next to each other"),
    "steps": (lambda x: (x[:, ::2], (4, 8)), {}, "the stride is 8 bytes, an element has 4"),
    "stride": (
        lambda x: (x.reshape(32, 25), (4, 8)),
        {},
        r"positive multiples of 16 bytes.*got \(100,\)",
    ),
    "backwards": (lambda x: (x[::-1], (4, 8)), {}, "positive multiples of 16"),
    "empty": (lambda x: (x[:0], (4, 8)), {}, r"must have 1 to 2\*\*31 elements"),
    "no dimension": (lambda x: (x[0, 0], ()), {}, "has 1 to 5 dimensions, the tensor 0"),
    "six": (lambda x: (x.reshape(1, 1, 1, 1, 20, 40), (1,) * 6), {}, "the tensor 6"),
    "no box": (lambda x: (x, (0, 8)), {}, r"box must be 1 to 256 in each dimension, got \(0, 8\)"),
    "large box": (lambda x: (x, (257, 8)), {}, "box must be 1 to 256"),
    "row of the box": (
        lambda x: (x, (4, 6)),
        {},
        "a row of the box must be a multiple of 16 bytes, got 24",
    ),
    "box's dimensions": (
        lambda x: (x, (4, 4, 8)),
        {},
        "for each of the tensor's 2 dimensions, got 3",
    ),
    "one number": (lambda x: (x, 8), {}, "for each of the tensor's 2 dimensions, got 1"),
    "no step": (
        lambda x: (x, (4, 8)),
        {"element_strides": (0, 1)},
        "element_strides must be 1 to 8",
    ),
    "large step": (
        lambda x: (x, (4, 8)),
        {"element_strides": (9, 1)},
        "element_strides must be 1 to 8",
    ),
    "step in a row": (
        lambda x: (x, (4, 8)),
        {"element_strides": (1, 2)},
        "must be 1 in the last dimension",
    ),
    "long row": (lambda x: (x, (4, 16)), {"swizzle": "32B"}, "has at most 32 bytes, got 64"),
    "long row of atoms": (
        lambda x: (x, (4, 40)),
        {"swizzle": "128B_atom_64B"},
        "has at most 128 bytes, got 160",
    ),
    "swizzle": (lambda x: (x, (4, 8)), {"swizzle": "256B"}, "swizzle must be one of 'none', '32B'"),
    "promotion": (lambda x: (x, (4, 8)), {"l2_promotion": "32B"}, "l2_promotion must be one of"),
    "flat": (
        lambda x: (x, (4, 8)),
        {"interleave": "16B"},
        "interleave needs at least 3 dimensions, got 2",
    ),
    "order": (
        lambda x: (x.reshape(2, 10, 40), (1, 4, 8)),
        {"interleave": "32B"},
        "interleave '32B' needs swizzle '32B'",
    ),
    "nan": (lambda x: (x, (4, 8)), {"oob_fill": "nan"}, "needs floating-point elements, got int32"),
    "changed": (
        lambda x: (x, (4, 8)),
        {"data_type": "tfloat32"},
        "needs elements of type float32, got int32",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken(matrix, rule):
    make, options, message = RULES[rule]
    with pytest.raises(ValueError, match=message):
        cu.TensorMap(*make(matrix), **options)


def test_wrong_types(device, stream, matrix):
    with pytest.raises(TypeError, match="tensor must be a Tensor, not ndarray"):
        cu.TensorMap(np.zeros((4, 8), "f4"), (4, 8))
    with pytest.raises(TypeError, match="box must be an int or a tuple of ints"):
        cu.TensorMap(matrix, "ab")
    with pytest.raises(TypeError, match="box must be an int or a tuple of ints"):
        cu.TensorMap(matrix, (4, 8.0))
    with pytest.raises(TypeError, match="swizzle must be a str, not int"):
        cu.TensorMap(matrix, (4, 8), swizzle=32)
    with pytest.raises(TypeError, match="elements of type complex64"):
        cu.TensorMap(cu.zeros((4, 8), "c8", stream=stream), (4, 8))
    with pytest.raises(TypeError, match="ordinary host memory"):
        cu.TensorMap(cu.from_dlpack(np.zeros((64, 64), "f4")[:4, :8]), (4, 8))


def test_a_closed_tensor(matrix):
    matrix.close()
    with pytest.raises(cu.ClosedError):
        cu.TensorMap(matrix, (4, 8))


def test_box_that_closes_the_tensor(matrix):
    class Closer:
        def __index__(self):
            matrix.close()
            return 8

    with pytest.raises(cu.ClosedError):
        cu.TensorMap(matrix, (4, Closer()))


def test_another_parameter(code, stream, matrix):
    m = cu.TensorMap(matrix, (4, 8))
    with pytest.raises(TypeError, match="parameter 0 of kernel pointer must be a pointer"):
        code["pointer"][1, 1, stream](m)
    with pytest.raises(TypeError, match="parameter 0 of kernel load must be a struct of 128 bytes"):
        code["load"][1, 32, stream](matrix, matrix, 0, 0, 32)
    with pytest.raises(TypeError, match="parameter 3 of kernel load must be"):
        code["load"][1, 32, stream](m, matrix, 0, m, 32)
    with pytest.raises(TypeError, match="not TensorMap"):
        matrix.copy_from(m, stream=stream)


def test_left_out_of_the_simulated_driver(later, driver, stream, matrix):
    if driver != "sim":
        return
    floats = cu.zeros((20, 40), "f4", stream=stream)
    for x, options, named in (
        (floats, {"data_type": "tfloat32"}, "type 11"),
        (matrix, {"swizzle": "128B_atom_32B"}, "swizzle 4"),
        (matrix, {"swizzle": "64B"}, "swizzle 2"),
    ):
        with pytest.raises(cu.UnsupportedError, match=named):
            cu.TensorMap(x, (4, 8), **options)


def test_a_wrong_rank_names_the_instruction(driver, script):
    if driver != "sim":
        return
    source = f"""
import numpy as np, cudago as cu
stream = cu.Device().create_stream()
code = cu.Program(r'''{SOURCE}''').compile()
m = cu.TensorMap(cu.zeros(64, "u4", stream=stream), 32)
out = cu.zeros(32, "u4", stream=stream)
code["load"][1, 32, stream](m, out, 0, 0, 32)
try:
    stream.sync()
except cu.DeviceFaultError as e:
    print(e)
"""
    run = script(source, CUDAGO_DRIVER="sim", CUDAGO_SIM="cc=9.0")
    assert "the tensor map has 1 dimensions, the instruction 2" in run.stdout, run.stderr
    assert "cp.async.bulk.tensor.2d" in run.stdout


def test_closed(later, code, stream, matrix):
    """A launch copies it, so only the memory has to stay."""
    m = cu.TensorMap(matrix, box=(8, 16))
    kernel = cu.Program(SOURCE).compile()["pointer"]
    graph = cu.Graph()
    m.close()
    m.close()
    assert m.is_closed
    assert repr(m) == "<cudago.TensorMap: closed>"
    for use in (lambda: bytes(m), lambda: m.tensor, lambda: graph.launch(CONFIG, kernel, m)):
        with pytest.raises(cu.ClosedError, match="tensor map is closed"):
            use()
