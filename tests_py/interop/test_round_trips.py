# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of ours that comes back is what it was, whoever had it in between."""

from __future__ import annotations

import ctypes
import gc
import threading

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

CPU, CUDA_HOST, READ_ONLY = 1, 3, 1
PINNED, FOREIGN = 2, 5  # kinds of memory
WAYS = ["capsule", "legacy", "numpy", "torch", "to_torch", "jax", "tvm_ffi"]


@pytest.fixture(params=WAYS)
def way(request):
    """Gives a tensor to another library, and what that library says of it comes back."""
    if request.param == "capsule":
        return lambda t: t.__dlpack__(max_version=(1, 0))
    if request.param == "legacy":
        return lambda t: t.__dlpack__()
    if request.param == "to_torch":
        pytest.importorskip("torch")
        return cu.to_torch
    module = pytest.importorskip("jax.dlpack" if request.param == "jax" else request.param)

    def from_dlpack(t):
        if request.param == "numpy" and t.__dlpack_device__()[0] == 2:
            pytest.skip("NumPy reads host memory only")
        return module.from_dlpack(t)

    return from_dlpack


@pytest.fixture
def pool_count():
    """How many pool allocations are held."""

    def count():
        gc.collect()
        cu._core._drain()
        return cu.exchange_stats().live["pool"]

    return count


def test_device_memory(way, stream):
    t = cu.zeros((8, 16), "f4", stream=stream)
    back = cu.from_dlpack(way(t))
    assert back == t
    assert back.buffer == t.buffer
    assert (back.device, back.buffer.kind) == (stream.device, "device")
    assert back.handle == t.handle
    assert (t.origin, back.origin != "cudago") == ("cudago", True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_element_types(request, way, stream, dtype):
    if dtype == "bfloat16" and request.node.callspec.params["way"] == "numpy":
        pytest.skip("NumPy has no bfloat16")
    t = cu.zeros((2, 32), dtype, stream=stream)
    assert cu.from_dlpack(way(t)).dtype_name == dtype


def test_pinned_memory(request, way):
    t = cu.PinnedMemoryResource().allocate(256).view("f4", (4, 16))
    if request.node.callspec.params["way"] == "torch" and t.__dlpack_device__()[0] == CUDA_HOST:
        with pytest.raises(BufferError, match="Unsupported device_type: 3"):  # by PyTorch
            way(t)
        return
    back = cu.from_dlpack(way(t))
    if back._memory[0] == FOREIGN:
        assert back.handle != t.handle, "JAX copies what is not aligned"
        return
    assert back == t
    assert (back.device, back._memory[0]) == (None, PINNED)


def test_pinned_memory_through_python_s_buffers():
    buffer = cu.PinnedMemoryResource().allocate(256)
    assert cu.from_dlpack(np.asarray(buffer)[16:]).buffer == buffer[16:]
    t = buffer.view("i4", (8, 8))
    assert cu.from_dlpack(np.asarray(memoryview(t)).T) == t.T


def test_parts(way, stream):
    t = cu.zeros((64, 64), "f4", stream=stream)
    part = t[16:32]
    assert cu.from_dlpack(way(part)) == part


def test_what_memory_has_grown_by(way, device, stream):
    page = 1 << 21
    with cu.VirtualMemoryResource(device).allocate(page, stream=stream) as big:
        first = big.view("u1")
        assert cu.from_dlpack(way(first)) == first
        big.grow(2 * page)
        more = big[page:].view("u1")
        assert cu.from_dlpack(way(more)) == more


def test_no_copy_is_needed_to_come_back(way, stream):
    t = cu.zeros((4, 16), "f4", stream=stream)
    x = way(t)
    if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray):
        assert cu.asarray(x, stream=stream) == t


def test_a_graph_retains_the_allocation(way, stream, pool_count):
    before = pool_count()
    t = cu.full((4, 16), 3, "i4", stream=stream)
    out = cu.zeros((4, 16), "i4", stream=stream)
    graph = cu.Graph()
    graph.memcpy(out, cu.from_dlpack(way(t)))
    t.close()
    assert pool_count() == before + 2
    with graph.instantiate() as run:
        run.launch(stream)
        assert (out.numpy(stream=stream) == 3).all()
    graph.close()
    assert pool_count() == before + 1


# --- from a producer that says what the test wants ------------------------------------------------


@pytest.fixture
def known(stream):
    """16 float32 whose memory other libraries were given, and its address to them."""
    t = cu.zeros(16, "f4", stream=stream)
    stream.sync()
    yield t
    t.close()


def address(tensor, opened):
    """Where the tensor is for other libraries, and on which device."""
    d = opened(tensor.__dlpack__(max_version=(1, 0))).managed.tensor
    return {"data": d.data, "device": (d.device_type, d.device_id)}


def test_another_view_of_the_memory(known, producer, opened):
    at = address(known, opened)
    p = producer((2, 2), (4, 1), dtype=(1, 16, 1), byte_offset=4, **at)
    t = cu.from_dlpack(p)
    assert (t.handle, t.shape, t.strides) == (known.handle + 4, (2, 2), (4, 1))
    assert (t.dtype_name, t.device) == ("uint16", known.device)
    backwards = producer((4,), (-2,), byte_offset=48, **at)
    assert cu.from_dlpack(backwards).device == known.device


def test_what_reaches_beyond_the_memory_is_not_ours(known, producer, opened):
    at = address(known, opened)
    for wrong in (
        {"shape": (17,)},
        {"shape": (5,), "strides": (-1,)},
        {"shape": (2,), "strides": (200,)},
    ):
        t = cu.from_dlpack(producer(**wrong, **at))
        assert t._memory[0] == FOREIGN
        t.close()
    moved = cu.from_dlpack(producer((4,), data=at["data"] + 64, device=at["device"]))
    assert moved._memory[0] == FOREIGN


def test_memory_that_was_never_exported_or_is_gone_is_not_found(stream, producer, opened):
    t = cu.zeros(16, "f4", stream=stream)
    at = address(t, opened)
    stream.sync()
    p = producer((16,), **at)
    assert cu.from_dlpack(p)._memory[0] != FOREIGN
    t.close()
    gc.collect()
    cu._core._drain()
    assert cu.from_dlpack(p)._memory[0] == FOREIGN
    assert p.deleted == 2


def test_the_producer_s_tensor_lives_as_long_as_ours(known, producer, opened):
    p = producer((16,), **address(known, opened))
    t = cu.from_dlpack(p)
    view = t[3:]
    t.close()
    gc.collect()
    assert p.deleted == 0
    del view
    assert p.deleted == 1


def test_a_deleter_that_closes_what_it_described(known, producer, opened):
    class Closing(producer):
        def _delete(self, _):
            super()._delete(_)
            known.close()
            self.tensor.close()

    p = Closing((16,), **address(known, opened))
    p.tensor = cu.from_dlpack(p)
    p.tensor.close()
    assert (p.deleted, known.is_closed) == (1, True)


def test_read_only_over_memory_that_is_not(known, producer, opened, stream):
    p = producer((16,), flags=READ_ONLY, **address(known, opened))
    t = cu.from_dlpack(p)
    assert t == known
    assert (t.is_readonly, known.is_readonly, t[2:].is_readonly) == (True, False, True)
    assert opened(t.__dlpack__(max_version=(1, 0))).managed.flags == READ_ONLY
    assert t.buffer.view("i4").is_readonly
    for wrong in (
        lambda: t.buffer.fill(0, stream=stream),
        lambda: t.buffer[4:8].fill(0, stream=stream),
        lambda: t.buffer.copy_from(bytes(64), stream=stream),
        lambda: known.buffer.copy_to(t.buffer, stream=stream),
        lambda: t.buffer.__dlpack__(),
        lambda: cu.Graph().memset(t, 0),
    ):
        with pytest.raises(BufferError, match="read-only"):
            wrong()
    known.fill(1, stream=stream)
    assert (t.numpy(stream=stream) == 1).all()


STORES = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry stores(.param .u64 p)
{
    .reg .u64 %rd<2>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, 7;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


def test_kernels_take_it_as_device_memory(known, producer, opened, stream):
    kernel = cu.ObjectCode.from_ptx(STORES)["stores"]
    config = cu.LaunchConfig(grid=1, block=1)
    at = address(known, opened)
    for argument in (producer((16,), **at), cu.from_dlpack(producer((16,), **at))):
        known.fill(0, stream=stream)
        cu.launch(stream, config, kernel, argument)
        assert known.numpy(stream=stream).view("i4")[0] == 7
    read_only = cu.from_dlpack(producer((16,), flags=READ_ONLY, **at))
    for argument in (read_only, read_only.buffer, read_only.buffer.ptr + 4):
        with pytest.raises(TypeError, match="read-only memory"):
            cu.launch(stream, config, kernel, argument)


def test_on_many_threads(stream, producer, opened):
    """Imports race with the last drop of the memory that they describe."""
    failures = []

    def work():
        try:
            for _ in range(300):
                t = cu.zeros(16, "f4", stream=stream)
                capsule = t.__dlpack__(stream=-1, max_version=(1, 0))
                del t
                back = cu.from_dlpack(capsule)
                assert back.device == stream.device
                give_back = opened(back.__dlpack__(stream=-1, max_version=(1, 0))).consume()
                del back
                give_back()  # without the GIL
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# --- order with what is pending ------------------------------------------------------------------

SPIN = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 p, .param .u32 value)
{
    .reg .u64 %rd<2>;
    .reg .u32 %r<3>;
    .reg .pred %p;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, 0;
again:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, 30000;
    @%p bra again;
    st.volatile.global.u32 [%rd1], %r1;
    ret;
}
"""


def test_every_export_comes_after_what_was_queued_before_it(device, stream):
    """An export with nothing new to wait for does not wait; one with something new does."""
    t = cu.zeros(4, "i4", stream=stream)
    other = device.create_stream()
    if t.__dlpack_device__()[0] == 2:
        torch = pytest.importorskip("torch")
        look = lambda: int(torch.from_dlpack(t)[0])  # noqa: E731
    else:
        look = lambda: int(np.from_dlpack(t)[0])  # noqa: E731
    spin, config = cu.ObjectCode.from_ptx(SPIN)["spin"], cu.LaunchConfig(grid=1, block=1)
    assert look() == look() == 0
    for value in range(1, 6):
        cu.launch(stream, config, spin, t, value)
        assert look() == look() == value
        cu.launch(other, config, spin, t, value + 10)
        assert look() == value + 10
        cu.launch(other, config, spin, t.handle, value + 20)  # cudago does not know of what
        stream.wait(other.record())
        assert look() == value + 20


def test_a_wait_for_the_stream_counts_until_more_is_queued(device, stream):
    """What somebody has waited for is not waited for again; what came later is."""
    old, look = cu.zeros(4, "i4", stream=stream), None
    if old.__dlpack_device__()[0] == 2:
        torch = pytest.importorskip("torch")
        look = lambda t: int(torch.from_dlpack(t)[0])  # noqa: E731
    else:
        look = lambda t: int(np.from_dlpack(t)[0])  # noqa: E731
    other = device.create_stream()
    spin, config = cu.ObjectCode.from_ptx(SPIN)["spin"], cu.LaunchConfig(grid=1, block=1)
    for value in range(1, 5):
        cu.launch(stream, config, spin, old, value)
        stream.sync()
        assert look(old) == value
        cu.launch(stream, config, spin, old, value + 10)
        assert look(old) == value + 10
        new = cu.empty(4, "i4", stream=stream)  # allocated after the wait
        cu.launch(stream, config, spin, new, value)
        assert look(new) == value
        stream.sync()
        cu.launch(other, config, spin, new, value + 10)
        assert look(new) == value + 10
        cu.launch(other, config, spin, old.handle, value + 20)  # cudago does not know of what
        stream.wait(other.record())
        assert look(old) == value + 20


# --- from_dlpack(device=) -------------------------------------------------------------------------


def test_where_it_is_to_be(producer, device, stream):
    p = producer((4, 4))
    host = cu.from_dlpack(p, device="cpu")
    assert host.handle == ctypes.addressof(p.memory)
    there = cu.from_dlpack(p, device=device)
    assert (there.device, there.origin) == (device, "cudago")
    assert there.numpy(stream=stream).ravel().tolist() == list(range(16))
    for name in ("cuda", "cuda:0", (2, 0), device):
        assert cu.from_dlpack(there, device=name) == there
    back = cu.from_dlpack(there, device=(1, 0))
    assert (back.device, memoryview(back).tolist()[1]) == (None, [4, 5, 6, 7])
    copied = cu.from_dlpack(there, device=device, copy=True)
    assert copied != there
    assert copied.device == device
    assert cu.from_dlpack(p, device="cpu", copy=True).handle != host.handle


@pytest.mark.parametrize(
    "wrong", ["gpu", "cuda:", "cuda:x", (1, 7), (2, -1), (2, "0"), 3, (1, 2, 3)]
)
def test_what_is_no_device(producer, wrong):
    p = producer()
    with pytest.raises(ValueError, match="device must be"):
        cu.from_dlpack(p, device=wrong)
    gc.collect()
    assert p.deleted == 1


def test_a_copy_that_is_forbidden(producer, device):
    p = producer((4, 4))
    with pytest.raises(BufferError, match=r"shape \(4, 4\) and type float32 is on the host"):
        cu.from_dlpack(p, device=device, copy=False)
    assert p.deleted == 1


# --- strides of size 1 ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((1, 4), (99, 1), (4, 1)),
        ((4, 1), (1, 77), (1, 1)),
        ((1, 1), (0, -5), (1, 1)),
        ((2, 1, 2), (2, 0, 1), (2, 2, 1)),
        ((2, 2), (1, 2), (1, 2)),
        ((1,), (2**62,), (1,)),
    ],
)
def test_strides_of_size_1_are_those_of_a_row_major_tensor(producer, shape, strides, expected):
    assert cu.from_dlpack(producer(shape, strides)).strides == expected
