# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch, both directions, through capsules and through DLPack's C exchange table."""

from __future__ import annotations

import ctypes
import gc
import queue
import threading
import weakref

import pytest

import cudago as cu
from cudago import _core

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

CPU = 1
TABLE = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
TYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]


CONFIG = cu.LaunchConfig(grid=1, block=8)


class Slow(torch.Tensor):
    """A tensor whose type has no exchange table, so that ``__dlpack__`` is asked."""

    __dlpack_c_exchange_api__ = None
    __c_dlpack_exchange_api__ = None


@pytest.fixture(params=["table", "capsule"])
def route(request):
    """How torch's tensors are taken."""
    if request.param == "capsule":
        return lambda x: x.as_subclass(Slow)
    if not TABLE:
        pytest.skip("this torch has no exchange table")
    return lambda x: x


@pytest.fixture
def ours(stream):
    """4 x 4 float32, 0.0 to 15.0, on the device."""
    t = cu.asarray(np.arange(16, dtype="f4").reshape(4, 4), stream=stream)
    yield t
    t.close()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types_from_torch(route, dtype):
    x = torch.ones(4, dtype=dtype)
    t = cu.from_dlpack(route(x))
    assert t.dtype_name == str(dtype).removeprefix("torch.")
    assert (t.handle, t.nbytes) == (x.data_ptr(), 4 * x.element_size())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("convert", [cu.to_torch, torch.from_dlpack], ids=["fast", "capsule"])
def test_types_to_torch(stream, convert, dtype):
    t = cu.zeros((2, 3), dtype, stream=stream)
    x = convert(t)
    assert (x.dtype, tuple(x.shape)) == (dtype, (2, 3))
    assert not x.to(torch.complex64).any()


def test_layouts_from_torch(route):
    x = torch.arange(24, dtype=torch.int32).reshape(4, 6)
    for change in (
        lambda a: a,
        lambda a: a.T,
        lambda a: a[1:, ::2],
        lambda a: a[0].expand(3, 6),
        lambda a: a[2, 3],
    ):
        y = change(x)
        t = cu.from_dlpack(route(y))
        assert t.handle == y.data_ptr()
        assert t.shape == tuple(y.shape)
        assert np.asarray(memoryview(t)).tolist() == y.tolist()
    assert cu.from_dlpack(route(x[2:2])).shape == (0, 6)


@pytest.mark.parametrize("convert", [cu.to_torch, torch.from_dlpack], ids=["fast", "capsule"])
def test_layouts_to_torch(ours, stream, convert):
    for t in (
        ours,
        ours.T,
        ours[1:, ::2],
        ours[:, 3],
        ours[2, 2],
        ours[1:1],
        ours[None, :, None, 0],
    ):
        x = convert(t)
        assert tuple(x.shape) == t.shape
        assert x.tolist() == t.numpy(stream=stream).tolist()
    with pytest.raises(BufferError, match="negative stride"):
        convert(ours[::-1])


@pytest.mark.parametrize("convert", [cu.to_torch, torch.from_dlpack], ids=["fast", "capsule"])
def test_memory_is_shared_and_outlives_its_owner(ours, stream, convert):
    x = convert(ours)
    x[0, 0] = 100
    if ours.__dlpack_device__()[0] == CPU:
        assert ours[0, 0].numpy(stream=stream) == 100
        assert np.from_dlpack(ours).ctypes.data == x.data_ptr()
    live = cu.exchange_stats().live["pool"]
    ours.close()
    gc.collect()
    assert cu.exchange_stats().live["pool"] == live
    assert x.sum() == sum(range(16)) + 100
    del x
    gc.collect()
    assert cu.exchange_stats().live["pool"] == live - 1


def test_torchs_tensor_lives_as_long_as_ours(route):
    x = route(torch.ones(64))
    storage = weakref.ref(x.untyped_storage())
    t = cu.from_dlpack(x)
    address = x.data_ptr()
    del x
    gc.collect()
    view = t[32:]
    t.close()
    assert (ctypes.c_float * 32).from_address(address + 128)[:] == [1.0] * 32
    view.close()
    assert storage() is None


def test_round_trips(ours):
    x = torch.arange(6.0)
    for _ in range(10_000):
        x = cu.to_torch(cu.from_dlpack(x))
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    for _ in range(10_000):
        torch.from_dlpack(ours)


def test_what_only_the_slow_way_refuses(stream):
    """A lazily conjugated tensor's memory is not its value; the exchange table does not look."""
    x = torch.ones(3, dtype=torch.complex64)
    assert cu.from_dlpack(x).shape == (3,)
    facts = r"conj.*: it has shape torch.Size\(\[3\]\), type torch.complex64, device cpu$"
    for take in (cu.from_dlpack, lambda x: cu.asarray(x, stream=stream)):
        with pytest.raises(BufferError, match=facts) as refused:
            take(x.conj())
        assert type(refused.value.__cause__) is BufferError, "PyTorch's own"


def test_a_lazily_negated_tensor_is_refused():
    x = torch.tensor([1 + 2j, 3 + 4j]).conj().imag
    for negated in (x, x[0], x[:1]):
        assert negated.is_neg()
        with pytest.raises(BufferError, match=r"negated only when they are read.*float32, DLPack"):
            cu.from_dlpack(negated)
    assert memoryview(cu.from_dlpack(x.resolve_neg())).tolist() == [-2, -4]
    assert memoryview(cu.from_dlpack(torch.ones(4)[::2])).tolist() == [1, 1]


class Wrapper(torch.Tensor):
    """A tensor without memory, as libraries on top of PyTorch make them."""

    @staticmethod
    def __new__(cls, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), keywords=None):
        raise NotImplementedError


def fake():
    """A tensor of torch.compile's, which has a shape alone."""
    module = pytest.importorskip("torch._subclasses.fake_tensor")
    with module.FakeTensorMode():
        return torch.ones(3)


def inside(transform):
    """Return what a transformation of torch.func gives the function that it transforms."""
    seen = []
    transform(lambda t: (seen.append(t), t.sum())[1])(torch.ones(2, 3))
    return seen[0]


WITHOUT_MEMORY = {
    "sparse": lambda: torch.ones(3).to_sparse(),
    "meta": lambda: torch.ones(3, device="meta"),
    "fake": fake,
    "functorch": lambda: inside(torch.func.vmap),
    "functorch's gradient": lambda: inside(torch.func.grad),
    "functional": lambda: inside(torch.func.functionalize),
    "wrapper": lambda: Wrapper((3,)),
    "mkldnn": lambda: torch.ones(3, 3).to_mkldnn(),
    "zeros without memory": lambda: torch._efficientzerotensor(3),
}


@pytest.mark.skipif(not TABLE, reason="this torch has no exchange table")
@pytest.mark.parametrize("kind", WITHOUT_MEMORY)
def test_tensors_without_plain_memory(kind, stream):
    x = WITHOUT_MEMORY[kind]()
    kernel = cu.ObjectCode.from_ptx(ADD_ONE)["add_one"]
    text = r"cannot be imported: .+: it has shape .*3.*, type .*float32, (DLPack )?device [^\n]+$"
    for take in (
        cu.from_dlpack,
        lambda x: cu.launch(stream, CONFIG, kernel, x),
        lambda x: cu.asarray(x, stream=stream),
    ):
        with pytest.raises(BufferError, match=text):
            take(x)


def test_a_subclass_is_taken_as_it_is():
    x = torch.ones(3).as_subclass(type("Sub", (torch.Tensor,), {}))
    t = cu.from_dlpack(x)
    assert (t.handle, t.shape) == (x.data_ptr(), (3,))


def test_a_capsule_of_torchs_is_consumed_once():
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(3))
    t = cu.from_dlpack(capsule)
    with pytest.raises(BufferError, match="consumed before"):
        cu.from_dlpack(capsule)
    assert memoryview(t).tolist() == [1, 1, 1]


@pytest.mark.skipif(not TABLE, reason="this torch has no exchange table")
def test_a_tensor_that_changes_while_it_is_looked_at():
    """An attribute of the object runs between the looks, and the last look counts."""
    x = torch.ones(4)[::2]
    x.is_neg = lambda: bool(x.set_(torch.arange(6.0)) is None)
    t = cu.from_dlpack(x)
    assert (t.handle, t.shape) == (x.data_ptr(), (6,))


def test_autograd():
    x = torch.ones(3, requires_grad=True)
    if TABLE:
        assert cu.from_dlpack(x).handle == x.data_ptr()
    with pytest.raises(BufferError, match="require gradient"):
        cu.from_dlpack(x.as_subclass(Slow))
    assert cu.from_dlpack(torch.nn.Parameter(torch.ones(2)).detach()).shape == (2,)


def test_copy(route):
    x = torch.arange(4.0)
    copy = cu.from_dlpack(route(x), copy=True)
    assert copy.handle != x.data_ptr()
    assert memoryview(copy).tolist() == [0, 1, 2, 3]
    assert cu.from_dlpack(route(x), copy=False).handle == x.data_ptr()


def test_torch_asks_for_a_copy(ours):
    x = torch.from_dlpack(ours, copy=True)
    x.zero_()
    assert torch.from_dlpack(ours).sum() == 120


def test_read_only_memory(stream):
    array = np.arange(4.0)
    array.flags.writeable = False
    t = cu.from_dlpack(array)
    assert cu.to_torch(t).tolist() == [0, 1, 2, 3]


def test_what_to_torch_refuses(ours):
    with pytest.raises(TypeError, match="takes a Tensor"):
        cu.to_torch(torch.ones(2))
    with pytest.raises(RuntimeError, match="Unsupported code 15"):
        cu.to_torch(ours.buffer[:3].view("float6_e2m3fn", 4))
    ours.close()
    with pytest.raises(cu.ClosedError):
        cu.to_torch(ours)


def test_pinned_memory():
    t = cu.PinnedMemoryResource().allocate(64).view("f4")
    x = cu.to_torch(t)
    assert x.device.type == "cpu"
    x.fill_(3)
    assert memoryview(t).tolist() == [3.0] * 16


def test_operations_between_the_two(ours, stream):
    """Copies with a torch tensor as the other side."""
    x = torch.zeros(4, 4)
    cu.from_dlpack(x).copy_from(ours, stream=stream)
    stream.sync()
    assert x.tolist() == ours.numpy(stream=stream).tolist()
    ours.T.copy_from(x, stream=stream)
    assert ours.numpy(stream=stream).tolist() == x.T.tolist()
    ours[0].buffer.copy_from(torch.ones(4), stream=stream)
    assert ours[0].numpy(stream=stream).tolist() == [1, 1, 1, 1]


def test_buffers_are_bytes_to_torch(device, stream):
    buffer = device.allocate(16, stream=stream)
    buffer.fill(7, stream=stream)
    x = torch.from_dlpack(buffer)
    assert x.dtype == torch.uint8
    assert x.tolist() == [7] * 16


ADD_ONE = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 p)
{
    .reg .u64 %rd<4>;
    .reg .u32 %r<4>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.u32 %r3, %r2, 1;
    st.global.u32 [%rd3], %r3;
    ret;
}
"""


def test_a_torch_tensor_is_a_kernel_argument(ours, stream):
    kernel = cu.ObjectCode.from_ptx(ADD_ONE)["add_one"]
    on_device = ours.buffer[:32].view("i4")
    on_device.copy_from(np.arange(8, dtype="i4"), stream=stream)
    stream.sync()
    x = cu.to_torch(on_device)
    for _ in range(100):
        cu.launch(stream, CONFIG, kernel, x)
    stream.sync()
    assert x.tolist() == list(range(100, 108))
    with pytest.raises(BufferError, match="contiguous"):
        cu.launch(stream, CONFIG, kernel, x[::2])


@pytest.mark.skipif(not TABLE, reason="this torch has no exchange table")
def test_no_memory():
    x = torch.ones(4)
    storage = weakref.ref(x.untyped_storage())
    _core._dlpack_fail_at(1)
    with pytest.raises(MemoryError):
        cu.from_dlpack(x)
    del x
    assert storage() is None
    t = cu.from_dlpack(torch.ones(4))
    _core._dlpack_fail_at(1)
    with pytest.raises(MemoryError):
        cu.to_torch(t)


def test_on_many_threads(stream):
    """Exchanges and drops on eight threads at once; the balance after the test is the point."""
    ours = cu.full((64,), 3, "i4", stream=stream)
    stream.sync()
    bag, failures = queue.SimpleQueue(), []

    def work(seed):
        try:
            for k in range(500):
                export = cu.to_torch if (seed + k) % 3 else torch.from_dlpack
                x = export(ours[k % 64 :])
                y = cu.from_dlpack(x)
                bag.put((x, y))
                if k % 3 == 0:
                    bag.get()
                assert y == ours[k % 64 :]
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    while not bag.empty():
        bag.get()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_host_memory_in_types_that_numpy_lacks(dtype, stream):
    pytest.importorskip("ml_dtypes")
    theirs = torch.tensor([[1, 2, 4], [8, 4, 2]], dtype=torch.float32).to(dtype)
    t = cu.from_dlpack(theirs)
    assert t.numpy(stream=stream).astype("f4").tolist() == [[1, 2, 4], [8, 4, 2]]
    assert t.T.numpy(stream=stream).astype("f4").tolist() == [[1, 8], [2, 4], [4, 2]]
    assert t[1, 0].item(stream=stream) == 8
    t.copy_from(np.ones_like(t.numpy(stream=stream)), stream=stream)
    assert theirs.float().tolist() == [[1] * 3] * 2
