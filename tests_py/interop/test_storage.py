# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The memory of another library's tensor is kept, and not only the tensor.

A tensor of PyTorch's can be given another storage while cudago uses the first one. Every way that
takes memory of others has to keep the storage.
"""

from __future__ import annotations

import gc
import time
import weakref

import pytest

import cudago as cu
from cudago.testing import hold, settle

from .test_lent import CONFIG, SOURCE, Lender, N

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def code(device):
    """Kernels add, sum and scale."""
    return cu.Program(SOURCE, "c++").compile()


class Storage:
    """What has the memory: N int32 of ours, 1 each."""

    def __init__(self, stream) -> None:
        self.ours = cu.full((N,), 1, "i4", stream=stream)
        stream.sync()


_lenders = []  # their types are remembered by cudago, and so is the table


@pytest.fixture
def lend(stream):
    """Function: a tensor of another library, whose storage can be exchanged."""
    if not _lenders:
        _lenders.append(Lender(storage=True))
    _lenders[0].stream = None
    return lambda: _lenders[0](None, storage=Storage(stream))


def exchange(lent, stream):
    """Give the tensor another storage, and return a way to see the first one."""
    seen = weakref.ref(lent.storage)
    lent.storage = Storage(stream)
    gc.collect()
    return seen


def wait_until_gone(seen) -> None:
    deadline = time.monotonic() + 3
    while seen() is not None:
        settle()
        gc.collect()
        assert time.monotonic() < deadline, "still kept"
        time.sleep(0.001)


def out_of(stream):
    t = cu.zeros((N,), "i4", stream=stream)
    stream.sync()
    return t


def node(graph, code, out, lent):
    return graph.launch(CONFIG, code["sum"], out, lent, lent, name="use")


# What takes the tensor, and returns a function that uses it, on a stream, again and again.


def by_a_node(stream, code, out, lent):
    graph = cu.Graph()
    node(graph, code, out, lent)
    return graph.instantiate().launch


def by_a_capture(stream, code, out, lent):
    with stream.capture() as graph:
        cu.launch(stream, CONFIG, code["sum"], out, lent, lent)
    return graph.instantiate().launch


def by_an_update(stream, code, out, lent):
    graph = cu.Graph()
    node(graph, code, out, out_of(stream))
    step = graph.instantiate()
    for _ in range(3):  # the first one leaves the node to C
        step["use"].update(a=lent, b=lent)
    return step.launch


def by_a_slot(stream, code, out, lent):
    graph = cu.Graph()
    slot = cu.slot("x", out_of(stream))
    graph.launch(CONFIG, code["sum"], out, slot, slot)
    step = graph.instantiate()
    step.bind(x=lent)
    return step.launch


def by_a_bound_launch(stream, code, out, lent):
    return code["sum"].bind(CONFIG, out, lent, lent)


def by_an_update_of_a_bound_launch(stream, code, out, lent):
    other = out_of(stream)
    bound = code["sum"].bind(CONFIG, out, other, other)
    for _ in range(3):
        bound.update(a=lent, b=lent)
    return bound


def by_a_copy(stream, code, out, lent):
    graph = cu.Graph()
    graph.memcpy(out, lent).launch(CONFIG, code["add"], out, 1)
    return graph.instantiate().launch


def by_an_update_of_a_copy(stream, code, out, lent):
    graph = cu.Graph()
    graph.memcpy(out, out_of(stream), name="copy").launch(CONFIG, code["add"], out, 1)
    step = graph.instantiate()
    for _ in range(3):
        step["copy"].update(src=lent)
    return step.launch


def by_an_import(stream, code, out, lent):
    t = cu.from_dlpack(lent)
    return lambda s: cu.launch(s, CONFIG, code["sum"], out, t, t)


def by_a_view_of_an_import(stream, code, out, lent):
    t = cu.from_dlpack(lent)[:][:]
    return lambda s: cu.launch(s, CONFIG, code["sum"], out, t, t)


def by_asarray(stream, code, out, lent):
    t = cu.asarray(lent, stream=stream)
    return lambda s: cu.launch(s, CONFIG, code["sum"], out, t, t)


WAYS = [f for name, f in list(globals().items()) if name.startswith("by_a")]


@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
def test_what_keeps_a_tensor_keeps_its_storage(way, lend, code, stream):
    lent, out = lend(), out_of(stream)
    use = way(stream, code, out, lent)
    seen = exchange(lent, stream)
    lent.storage.ours.fill(9, stream=stream)
    for _ in range(2):
        assert seen() is not None
        out.fill(0, stream=stream)
        use(stream)
        assert out.numpy(stream=stream).tolist() == [2] * N
    del use
    wait_until_gone(seen)


def launched(stream, code, lent, other):
    cu.launch(stream, CONFIG, code["add"], lent, 1)


def copied_to(stream, code, lent, other):
    cu.from_dlpack(lent).copy_from(other, stream=stream)


def copied_from(stream, code, lent, other):
    other.copy_from(lent, stream=stream)


def filled(stream, code, lent, other):
    cu.from_dlpack(lent).fill(3, stream=stream)


def called(stream, code, lent, other):
    code["add"].bind(CONFIG, lent, 1)(stream)


@pytest.mark.parametrize(
    "use", [launched, copied_to, copied_from, filled, called], ids=lambda f: f.__name__
)
def test_work_under_way_keeps_the_storage(use, lend, device, code, stream):
    out = out_of(stream)
    use(stream, code, lend(), out)  # the first tensor of a type is taken in the way of all others
    stream.sync()
    lent = lend()
    with hold(stream):
        use(stream, code, lent, out)
        with device.create_stream() as other:
            seen = exchange(lent, other)
        time.sleep(0.005)  # what is kept is looked after every millisecond
        assert seen() is not None
    wait_until_gone(seen)


def test_a_function_that_is_a_graph_keeps_the_storage(lend, device, code, stream):
    @cu.graph
    def add(s, x):
        cu.launch(s, CONFIG, code["add"], x, 1)

    lent = lend()
    add(stream, lent)
    with hold(stream):
        add(stream, lent)
        with device.create_stream() as other:
            seen = exchange(lent, other)
        time.sleep(0.005)
        assert seen() is not None
    stream.sync()
    add(stream, lent)
    stream.sync()
    assert lent.storage.ours.numpy(stream=stream).tolist() == [2] * N


def raising(error):
    def ask():
        raise error

    return ask


def uses(stream, code, lent):
    return {
        "import": lambda: cu.from_dlpack(lent),
        "launch": lambda: cu.launch(stream, CONFIG, code["add"], lent, 1),
        "copy": lambda: stream.device.allocate(4 * N, stream=stream).copy_from(lent, stream=stream),
    }


@pytest.mark.parametrize("use", ["import", "launch", "copy"])
def test_a_storage_that_cannot_be_had(lend, code, stream, use):
    """Then the tensor is kept, as those of libraries without storages."""
    lend_one = uses(stream, code, lend())[use]
    lend_one()
    lent = lend()
    lent.ask = raising(RuntimeError("no storage"))
    uses(stream, code, lent)[use]()
    stream.sync()
    lent.ask = raising(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        uses(stream, code, lent)[use]()


@pytest.mark.parametrize("use", ["import", "launch", "copy"])
def test_a_storage_that_is_exchanged_when_it_is_asked_for(lend, device, code, stream, use):
    """What is used is what is kept, even so."""
    lent = lend()
    uses(stream, code, lent)[use]()
    with device.create_stream() as other:
        for _ in range(3):
            was, now = lent.storage, Storage(other)

            def ask(was=was, now=now):
                lent.storage = now
                return now

            lent.ask = ask
            seen = weakref.ref(now)
            del was, now
            with hold(stream):
                kept = uses(stream, code, lent)[use]()
                lent.ask = None
                del ask
                lent.storage = Storage(other)
                gc.collect()
                time.sleep(0.005)
                assert seen() is not None
            del kept
            wait_until_gone(seen)


# --- copies of memory that nobody else keeps ------------------------------------------------------


class Interface:
    """Device memory of another library's, told by the array interface alone."""

    def __init__(self, stream) -> None:
        self.ours = out_of(stream)
        self.__cuda_array_interface__ = {
            "shape": (N,),
            "typestr": "<i4",
            "data": (self.ours.handle, False),
            "version": 3,
            "stream": None,
        }


@pytest.mark.parametrize("to", [False, True], ids=["from", "to"])
def test_a_copy_under_way_keeps_what_has_an_interface(device, stream, to):
    buffer, theirs = device.allocate(4 * N, stream=stream), Interface(stream)
    seen = weakref.ref(theirs)
    with hold(stream):
        (buffer.copy_to if to else buffer.copy_from)(theirs, stream=stream)
        del theirs
        gc.collect()
        time.sleep(0.005)
        assert seen() is not None
    wait_until_gone(seen)


def test_a_copy_under_way_keeps_an_array_over_pinned_memory(device, stream):
    """Such a copy does not wait for the array to be read."""

    class Array(np.ndarray):
        pass

    buffer = device.allocate(4 * N, stream=stream)
    array = np.frombuffer(cu.PinnedMemoryResource().allocate(4 * N), "i4").view(Array)
    seen = weakref.ref(array)
    with hold(stream):
        buffer.copy_from(array, stream=stream)
        del array
        gc.collect()
        time.sleep(0.005)
        assert seen() is not None
    wait_until_gone(seen)


def test_a_copy_of_ordinary_memory_keeps_nothing(device, stream):
    buffer, array = device.allocate(4 * N, stream=stream), bytearray(4 * N)
    buffer.copy_from(array, stream=stream)
    array.append(0)


# --- PyTorch --------------------------------------------------------------------------------------


class Watched(np.ndarray):
    """An array that can be watched dying."""


@pytest.fixture(params=["set_", "data"])
def swapped(request):
    """Function: gives a tensor of PyTorch's another storage."""
    torch = pytest.importorskip("torch")

    def swap(x):
        other = torch.full_like(x, 9)
        if request.param == "set_":
            x.set_(other)
        else:
            x.data = other
        gc.collect()

    return swap


@pytest.fixture(params=["tensor", "parameter", "subclass", "complex", "mode"])
def theirs(request):
    """Function: a tensor of PyTorch's over 8 elements of 1, and a weak reference to the memory."""
    torch = pytest.importorskip("torch")
    mode = torch.device("cpu") if request.param == "mode" else None

    def make():
        kind = "c8" if request.param == "complex" else "f4"  # those go through a capsule
        array = np.ones(N, kind).view(Watched)
        x = torch.from_numpy(array)
        if request.param == "parameter":
            x = torch.nn.Parameter(x, requires_grad=False)
        if request.param == "subclass":
            x = torch.Tensor._make_subclass(type("Sub", (torch.Tensor,), {}), x)
        return x, weakref.ref(array)

    if mode is None:
        yield make
        return
    with mode:
        yield make


def test_an_import_of_pytorchs_keeps_the_memory(theirs, swapped):
    x, seen = theirs()
    t = cu.from_dlpack(x)
    swapped(x)
    assert seen() is not None
    assert np.asarray(memoryview(t)).tolist() == [1] * N
    del t
    settle()
    gc.collect()
    assert seen() is None


TOUCH = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 p) { ret; }
"""


def test_a_launch_keeps_pytorchs_memory(theirs, swapped, stream):
    kernel = cu.ObjectCode.from_ptx(TOUCH)["touch"]
    if not cu.Device().properties.pageable_memory_access:
        pytest.skip("kernels cannot read the host's memory here")
    for _ in range(2):
        x, seen = theirs()
        with hold(stream):
            cu.launch(stream, CONFIG, kernel, x)
            swapped(x)
            time.sleep(0.005)
            assert seen() is not None
        stream.sync()
        wait_until_gone(seen)


def test_a_node_keeps_pytorchs_memory(theirs, swapped, stream):
    x, seen = theirs()
    out = cu.zeros((N,), x.dtype, stream=stream)
    graph = cu.Graph()
    graph.memcpy(out.buffer, x)
    step = graph.instantiate()
    graph.close()
    swapped(x)
    step.launch(stream)
    assert out.numpy(stream=stream).tolist() == [1] * N
    step.close()
    wait_until_gone(seen)


def test_a_launch_keeps_pytorchs_device_memory(swapped, driver, stream):
    torch = pytest.importorskip("torch")
    if driver != "nvidia" or not torch.cuda.is_available():
        pytest.skip("PyTorch has no device memory here")
    kernel = cu.ObjectCode.from_ptx(TOUCH)["touch"]
    for _ in range(2):
        x = torch.ones(N, device="cuda")
        seen = weakref.ref(x.untyped_storage())
        with hold(stream):
            cu.launch(stream, CONFIG, kernel, x)
            swapped(x)
            time.sleep(0.005)
            assert seen() is not None
        wait_until_gone(seen)


# --- PyTorch's resize_, which frees memory that others keep ---------------------------------------


@pytest.fixture(params=["host", "device"])
def ones(request, driver):
    """Function: a tensor of PyTorch's with 8 elements of 1, which can be resized."""
    torch = pytest.importorskip("torch")
    if request.param == "host":
        if not cu.Device().properties.pageable_memory_access:
            pytest.skip("kernels cannot read the host's memory here")
        return lambda: torch.ones(N, dtype=torch.int32)
    if driver != "nvidia" or not torch.cuda.is_available():
        pytest.skip("PyTorch has no device memory here")
    return lambda: torch.ones(N, dtype=torch.int32, device="cuda")


def resize(x) -> None:
    x.resize_(1 << 20)


def resize_the_storage(x) -> None:
    x.untyped_storage().resize_(1 << 20)


def empty(x) -> None:
    x.untyped_storage().resize_(0)


def swap_and_resize(x) -> None:
    """The storage that was taken is no longer the tensor's."""
    storage = x.untyped_storage()
    x.set_(x.clone())
    storage.resize_(1 << 20)


RESIZES = [resize, resize_the_storage, empty, swap_and_resize]
GONE = r"is gone: PyTorch gave its storage other memory, as resize_ does"


def by_updates_of_a_copy(stream, code, out, lent):
    graph = cu.Graph()
    copy = graph.memcpy(out, lent.clone(), name="copy")
    copy.launch(CONFIG, code["add"], out, 1)
    step = graph.instantiate()
    for _ in range(3):
        step["copy"].update(src=lent)
    return step.launch


# An import alone is as PyTorch's capsules. A copy from the device cannot be made one from the host.
_OTHERS = (by_an_import, by_a_view_of_an_import, by_asarray, by_an_update_of_a_copy)
INTO_GRAPHS = [*(w for w in WAYS if w not in _OTHERS), by_updates_of_a_copy]


@pytest.mark.parametrize("how", RESIZES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", INTO_GRAPHS, ids=lambda f: f.__name__)
def test_a_launch_after_a_resize_is_refused(way, how, ones, code, stream):
    """Whatever took the tensor into a graph; with another tensor in its place it goes on."""
    x, out = ones(), out_of(stream)
    use = way(stream, code, out, x)
    use(stream)
    assert out.numpy(stream=stream).tolist() == [2] * N
    how(x)
    for _ in range(2):
        with pytest.raises(cu.ClosedError, match=GONE):
            use(stream)
    assert out.numpy(stream=stream).tolist() == [2] * N


def test_the_refusal_names_node_and_operand(ones, code, stream):
    x, out = ones(), out_of(stream)
    graph = cu.Graph()
    node(graph, code, out, x)
    step, copy = graph.instantiate(), graph.clone()
    parent = cu.Graph()
    parent.embed(graph, name="child")
    whole = parent.instantiate()
    resize(x)
    for launch in (step.launch, whole.launch):
        with pytest.raises(
            cu.ClosedError, match=r"node '.*use': the memory of parameter [12], a Tensor, "
        ):
            launch(stream)
    for g in (graph, copy, parent):
        with pytest.raises(cu.ClosedError, match=r"node '.*use': the memory of parameter [12]"):
            g.instantiate()
    step["use"].update(a=ones(), b=ones())
    step.launch(stream)
    assert out.numpy(stream=stream).tolist() == [2] * N


def test_a_tensor_that_was_resized_after_its_import_is_refused(ones, code, stream):
    x, out = ones(), out_of(stream)
    t = cu.from_dlpack(x)
    resize(x)
    with pytest.raises(cu.ClosedError, match=GONE):
        cu.Graph().memcpy(out, t)
    cu.Graph().memcpy(out, ones()[:N])


def test_memory_that_is_back_is_used(ones, code, stream):
    """Its storage may be given the same address again, as of what was freed last."""
    x, out = ones(), out_of(stream)
    use = by_a_node(stream, code, out, x)
    storage = x.untyped_storage()
    at = storage.data_ptr()
    storage.resize_(0)
    storage.resize_(4 * N)
    if storage.data_ptr() != at:
        with pytest.raises(cu.ClosedError, match=GONE):
            use(stream)
        return
    x.fill_(3)
    if x.is_cuda:  # a graph is not ordered after the other library's work
        pytest.importorskip("torch").cuda.synchronize()
    out.fill(0, stream=stream)
    use(stream)
    assert out.numpy(stream=stream).tolist() == [6] * N


def test_resizing_within_the_memory_is_nothing(ones, code, stream):
    x, out = ones(), out_of(stream)
    use = by_a_node(stream, code, out, x)
    x.resize_(2)
    x.resize_(N)
    use(stream)
    assert out.numpy(stream=stream).tolist() == [2] * N


def test_a_function_that_is_a_graph_refuses_what_it_captured(ones, code, stream):
    """Its argument is another one: a call of it is the shortest way to a launch."""
    x, out = ones(), out_of(stream)

    @cu.graph
    def add(s, to):
        cu.launch(s, CONFIG, code["sum"], to, x, x)

    for _ in range(4):
        add(stream, out)
    assert out.numpy(stream=stream).tolist() == [2] * N
    resize(x)
    with pytest.raises(cu.ClosedError, match=GONE):
        add(stream, out)
