# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""From its third update on, a kernel in an executable is given new arguments alone."""

from __future__ import annotations

import ctypes
import gc
import random
import sys
import threading
import weakref
from types import SimpleNamespace

import pytest

import cudago as cu
from cudago import _core
from cudago.testing import hold, settle

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")

SOURCE = r"""
extern "C" __global__ void fill(int* y, int value, int n) {
    int i = threadIdx.x;
    if (y && i < n) y[i] = value;
}
extern "C" __global__ void named(int* y, int config, int kernel, int more) {
    y[threadIdx.x] = 100 * config + 10 * kernel + more;
}
struct Large { int numbers[200]; };
extern "C" __global__ void large(int* y, Large from, int i) { y[threadIdx.x] = from.numbers[i]; }
extern "C" __global__ void ten(int* y, int a, int b, int c, int d, int e, int f, int g, int h,
                               int i) {
    y[threadIdx.x] = a + b + c + d + e + f + g + h + i;
}
extern "C" __global__ void wide(double* y, double value) { y[threadIdx.x % 8] = value; }
"""


@pytest.fixture(scope="module")
def code():
    return cu.Program(SOURCE).compile()


@pytest.fixture
def buffers(device, stream):
    made = [device.allocate(4 * N, stream=stream) for _ in range(3)]
    for buffer in made:
        buffer.fill(0, stream=stream)
    yield made
    for buffer in made:
        buffer.close()


def warm(step, place=1):
    """Update often enough that later updates change arguments alone."""
    node = step.nodes[0]
    for _ in range(2):
        node.update({place: 0})
    return node


@pytest.fixture
def step(graph, buffers, code):
    graph.launch(
        CONFIG, code["fill"], cu.slot("y", buffers[0]), cu.slot("value", 0), N, name="fill"
    )
    with graph.instantiate() as step:
        graph.close()
        warm(step)
        yield step


def record(step):
    """Return the identity of the record, which such an update keeps, and its arguments."""
    made = step._record(step.nodes[0]._id)
    return id(made), made[2:]


def test_an_argument_that_is_given_twice_is_refused(step, code):
    node, other = step.nodes[0], cu.LaunchConfig(grid=1, block=1)
    for args, named, match in (
        (({1: 3},), {"value": 4}, "parameter 1 of kernel fill is given twice: .* as 'value'"),
        ((CONFIG,), {"config": other}, "got config twice"),
        ((CONFIG, other), {}, "kernel must be a Kernel"),
        (({1: 3}, {2: 4}), {}, "got arguments by position twice"),
        ((code["fill"],), {"kernel": code["fill"]}, "got kernel twice"),
        ((code["fill"], code["fill"]), {}, "got kernel twice"),
    ):
        with pytest.raises(TypeError, match=match):
            node.update(*args, **named)
        assert node.params.args[1:] == (0, N) and node.params.config == CONFIG
    node.update(other, {1: 3}, n=4)
    assert node.params.args[1:] == (3, 4) and node.params.config == other


def test_the_record_stays_where_nobody_has_it(step, buffers):
    node = step.nodes[0]
    node.update(value=1)  # the names are asked for
    node.update(value=2)
    before, _ = record(step)
    node.update(value=3)
    node.update({1: 4})
    step.bind(value=5)
    step.bind(y=buffers[1])
    after, args = record(step)
    assert (after, args[0].object, args[1:]) == (before, buffers[1], (5, N))


def test_a_record_that_somebody_has_does_not_change(step):
    node = step.nodes[0]
    node.update({1: 7})
    before = step._record(node._id)
    node.update({1: 8})
    assert (before[3], step._record(node._id)[3]) == (7, 8)
    shown = node.params
    node.update({1: 9})
    assert (shown.args[1], node.params.args[1]) == (8, 9)


def test_values(step, buffers, stream):
    x, y, z = buffers
    node = step.nodes[0]
    want = [0, 0, 0]
    for value in range(1, 10):
        node.update({1: value})
        node.update(value=10 * value)
        step.launch(stream)
        want[0] = 10 * value
        assert numbers(x, stream) == want[0]
        step.bind(value=-value, y=y)
        step.launch(stream)
        node.update({0: z, 1: np.int32(value)})
        step.launch(stream)
        node.update(y=x, n=N, value=5)
        assert (numbers(y, stream), numbers(z, stream)) == (-value, value)
    assert node.params.args == (x, 5, N)


@pytest.mark.parametrize("by", ["name", "place"])
def test_one_number(graph, buffers, code, stream, by):
    """It takes the shortest way, and refuses what all ways refuse."""
    graph.launch(CONFIG, code["wide"], buffers[0], 1.0)
    step = graph.instantiate()
    node = warm(step)
    node.update(value=0)  # the names are asked for

    def update(value):
        node.update(value=value) if by == "name" else node.update({1: value})

    def doubles():
        step.launch(stream)
        out = np.zeros(8)
        buffers[0][: out.nbytes].copy_to(out, stream=stream)
        stream.sync()
        return set(out.tolist())

    huge = 1 << 60
    for value in (0.1, 7, -7, huge + 1, -0.0, float("inf"), 1e308, 2):
        update(value)
        assert node.params.args[1] is value
        warm(step)  # somebody has the record now
        update(value)
        assert doubles() == {float(value)}
    for value, error in ((1 << 2000, OverflowError), ("1", TypeError), (buffers[1], TypeError)):
        with pytest.raises(error):
            update(value)
        assert doubles() == {2.0}
    update(np.float64(3))  # a subclass of float
    update(True)
    assert doubles() == {1.0}
    assert [r.operand for r in step.retained] == ["parameter 0", "kernel"]


def test_numbers_of_their_widths(graph, buffers, stream):
    """Signed and unsigned are one to PTX; the widest of each fits, and no more."""
    source = """extern "C" __global__ void kinds(
        char* y, char a, short b, int c, long long d, float e) {
        *y = a + b + c + d + e;
    }"""
    kernel = cu.Program(source).compile()["kinds"]
    kernel.parameter_types = ()
    graph.launch(CONFIG, kernel, buffers[0], *[0] * 5)
    step = graph.instantiate()
    node = warm(step)
    for place, bits in ((1, 8), (2, 16), (3, 32), (4, 64)):
        for fits in (0, (1 << bits) - 1, -1 << (bits - 1)):
            node.update({place: fits})
            assert node.params.args[place] == fits
            warm(step, 5)
        for number in (1 << bits, (-1 << (bits - 1)) - 1):
            with pytest.raises(OverflowError, match=f"parameter {place} .* {bits} bits"):
                node.update({place: number})
        with pytest.raises(TypeError, match=f"parameter {place}"):
            node.update({place: 1.0})
    with pytest.raises(OverflowError, match="parameter 5"):
        node.update({5: 1e39})
    node.update({5: float("nan")})
    assert node.params.args[5] != node.params.args[5]


def test_a_number_in_the_place_of_memory(step, buffers, stream):
    """What was kept for it goes; what was a number alone is exchanged."""
    node = step.nodes[0]
    alive = weakref.ref(buffers[0])
    node.update({0: buffers[1].handle})
    buffers[0].close()
    buffers[0] = buffers[2]
    settle()
    assert alive() is None
    node.update({0: buffers[2].handle})
    node.update(value=8)
    step.launch(stream)
    assert (numbers(buffers[1], stream), numbers(buffers[2], stream)) == (0, 8)


def test_random_updates(step, buffers, stream, code):
    """What the node does, what it retains and what it says of itself agree."""
    node, chosen = step.nodes[0], random.Random(1)
    now = {"y": buffers[0], "value": 0}
    for _ in range(300):
        name, new = chosen.choice([("y", b) for b in buffers] + [("value", v) for v in range(9)])
        now[name] = new
        match chosen.randrange(6):
            case 0:
                node.update({0 if name == "y" else 1: new})
            case 1:
                node.update(CONFIG, code["fill"], now["y"], now["value"], N)
            case 2:
                step.bind(**now)
            case 3:
                step.bind(**{name: new})
                assert node.params.args == (now["y"], now["value"], N)
            case _:
                node.update(**{name: new})
        if chosen.randrange(4):
            step.launch(stream)
            assert numbers(now["y"], stream) == now["value"]
        else:
            kept = [r.object for r in step.retained if r.operand == "parameter 0"]
            assert kept == [now["y"]]
    assert node.params.args == (now["y"], now["value"], N)


def test_a_pointer_comes_and_goes(step, buffers, stream):
    node = step.nodes[0]

    def kept():
        found = [r.operand for r in step.retained if r.operand != "kernel"]
        warm(step)
        return found

    for _ in range(3):
        node.update({0: None})
        node.update({1: 6})
        step.launch(stream)
        assert kept() == []
        node.update({0: buffers[1].handle})
        assert kept() == []
        node.update({0: buffers[1]})
        assert kept() == ["parameter 0"]
        node.update({0: buffers[2].ptr, 1: 3})
        step.launch(stream)
        assert numbers(buffers[2], stream) == 3


def test_names_that_mean_something_else(graph, buffers, code, stream):
    graph.launch(CONFIG, code["named"], buffers[0], 1, 2, 3)
    step = graph.instantiate()
    node = warm(step, 3)
    assert code["named"].parameter_names == ("y", "config", "kernel", "more")
    node.update(more=4)
    with pytest.raises(TypeError):
        node.update(config=5)
    with pytest.raises(TypeError):
        node.update(kernel=5)
    node.update(more=6)
    step.launch(stream)
    assert numbers(buffers[0], stream) == 126
    node.update({1: 7, 2: 8, 3: 9})
    step.launch(stream)
    assert numbers(buffers[0], stream) == 789


def test_many_arguments(graph, buffers, code, stream):
    graph.launch(CONFIG, code["ten"], buffers[0], *range(9))
    step = graph.instantiate()
    node = warm(step)
    node.update(dict.fromkeys(range(1, 9), 2))  # as many as are changed at once
    step.launch(stream)
    assert numbers(buffers[0], stream) == 16 + 8
    node.update(dict.fromkeys(range(1, 10), 3))  # and one more
    node.update(a=4, i=5)
    step.launch(stream)
    assert numbers(buffers[0], stream) == 7 * 3 + 9


class Large(ctypes.Structure):
    _fields_ = (("numbers", ctypes.c_int * 200),)


def test_large_arguments(graph, buffers, code, stream):
    large = Large()
    graph.launch(CONFIG, code["large"], buffers[0], large, 5)
    step = graph.instantiate()
    node = warm(step, 2)
    for value in (7, 8):
        large.numbers[5] = value
        node.update({1: large})
        node.update({2: 5})
        step.launch(stream)
        assert numbers(buffers[0], stream) == value
    with pytest.raises(ValueError, match="struct of 800 bytes"):
        node.update({1: bytes(4)})


def test_errors_change_nothing(step, buffers, stream):
    node = step.nodes[0]
    step.bind(value=3)
    closed = cu.zeros(N, "i4", stream=stream)
    closed.close()
    for places, error, text in (
        ({1: "one"}, TypeError, "parameter 1 of kernel fill"),
        ({1: 1 << 40}, OverflowError, "parameter 1 of kernel fill"),
        ({0: closed}, cu.ClosedError, "closed"),
        ({1: 5, 0: closed}, cu.ClosedError, "closed"),
        ({0: buffers[1], 1: "one"}, TypeError, "parameter 1"),
        ({3: 1}, TypeError, "has 3 parameters from 0, and no 3"),
        ({-1: 1}, TypeError, "no -1"),
        ({"1": 1}, TypeError, "by position, got '1'"),
        ({1 << 70: 1}, TypeError, "3 parameters"),
    ):
        with pytest.raises(error, match=text):
            node.update(places)
        warm(step, 2)
        node.update({2: N})
        step.launch(stream)
        assert numbers(buffers[0], stream) == 3
    with pytest.raises(TypeError, match="no parameter 'other'"):
        node.update(other=1)
    with pytest.raises(TypeError, match="needs what is to change"):
        node.update()
    with pytest.raises(TypeError, match="no slot is called 'other'"):
        step.bind(other=1)
    with pytest.raises(TypeError):
        step.bind(1)
    assert node.params.args == (buffers[0], 3, N)


def test_counts_of_references(step, buffers, code):
    """Whatever is exchanged, in the end each object has as many references as before."""
    node = step.nodes[0]
    number, other = 1 << 20, 1 << 21
    things = [*buffers, number, other, code["fill"], CONFIG, step, node]
    step.bind(value=number)
    step.bind(value=other)
    record(step)
    step.bind(y=buffers[0], value=number)

    def counts():
        settle()
        return [sys.getrefcount(t) for t in things]

    before, live = counts(), cu.live_objects()
    for _ in range(100):
        step.bind(y=buffers[1])
        node.update(value=other)
        node.update({0: buffers[2], 1: number})
        step.bind(value=number, y=buffers[0])
        with pytest.raises(TypeError):
            node.update({0: buffers[1], 1: "one"})
    assert counts() == before
    assert cu.live_objects() == live


def test_what_is_replaced_goes_at_once(step, device, stream):
    gone = []
    for _ in range(3):
        buffer = device.allocate(4 * N, stream=stream)
        gone.append(weakref.ref(buffer))
        step.bind(y=buffer)
        del buffer
        gc.collect()
        assert [w() is None for w in gone] == [True] * (len(gone) - 1) + [False]


def test_what_launches_use_goes_when_they_have_ended(step, device, stream):
    used, then = (device.allocate(4 * N, stream=stream) for _ in "ab")
    gone = weakref.ref(used)
    step.bind(y=used, value=4)
    view = used[:]
    with hold(stream):
        step.launch(stream)
        for value in range(5):
            step.bind(y=then, value=value)
        used.close()
        del used
        gc.collect()
        assert gone() is not None
    assert numbers(view, stream) == 4
    settle()
    assert gone() is None
    step.launch(stream)
    assert numbers(then, stream) == 4


@pytest.mark.parametrize("drop", [False, True])
def test_launches_in_two_streams(step, device, stream, drop):
    """Which use it one after the other: what is replaced is kept until the last has ended."""
    with hold(stream):
        other = device.create_stream()
        used = device.allocate(4 * N, stream=other)
        gone = weakref.ref(used)
        step.bind(y=used, value=7)
        step.launch(stream)
        step.launch(other)
        if drop:
            del other
            gc.collect()
        step.bind(y=None)
        del used
        gc.collect()
        assert gone() is not None
    stream.sync()
    settle()
    assert gone() is None


def test_a_stream_that_is_closed_keeps_nothing_more(step, device, stream, buffers):
    """The launch under way is in a stream that nobody has any more."""
    other = device.create_stream()
    used = device.allocate(4 * N, stream=stream)
    stream.sync()
    gone = weakref.ref(used)
    step.bind(y=used, value=7)
    with hold(stream):
        other.wait(stream)
        step.launch(other)
        other.close()
        del other
        gc.collect()
        step.bind(y=buffers[1])
        del used
        gc.collect()
        assert gone() is not None
    stream.sync()
    settle()
    assert gone() is None


# --- conversions that run Python ------------------------------------------------------------------


class Index:
    """A number that does something before it says which it is."""

    def __init__(self, act, value: int = 5) -> None:
        self.act, self.value = act, value

    def __index__(self) -> int:
        self.act()
        return self.value


class Interface:
    """Memory that does something before it says where it is."""

    def __init__(self, act, buffer: cu.Buffer) -> None:
        self.act, self.buffer = act, buffer

    @property
    def __cuda_array_interface__(self):
        self.act()
        where = (self.buffer.handle, False)
        return {"shape": (self.buffer.size,), "typestr": "|u1", "version": 3, "data": where}


class Exchange:
    """The same by another protocol."""

    def __init__(self, act, tensor: cu.Tensor) -> None:
        self.act, self.tensor = act, tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        self.act()
        return self.tensor.__dlpack__(**options)


def hostile(act, buffers, stream):
    tensor = cu.zeros(N, "i4", stream=stream)
    stream.sync()
    return [{1: Index(act)}, {0: Interface(act, buffers[1])}, {0: Exchange(act, tensor)}]


@pytest.mark.parametrize("which", range(3))
def test_a_conversion_that_closes_the_executable(step, buffers, stream, which):
    places = hostile(step.close, buffers, stream)[which]
    with pytest.raises(cu.ClosedError):
        step.nodes[0].update(places)


@pytest.mark.parametrize("which", range(3))
def test_a_conversion_that_updates_the_node(step, buffers, stream, which):
    node = step.nodes[0]
    places = hostile(lambda: node.update({0: buffers[2], 1: 8}), buffers, stream)[which]
    node.update(places)
    args = node.params.args
    assert args[0] is (buffers[2] if which == 0 else places[0])
    assert args[1] == (5 if which == 0 else 8)
    step.launch(stream)
    stream.sync()


@pytest.mark.parametrize("which", range(3))
def test_a_conversion_that_has_go_take_the_node_back(step, buffers, stream, which):
    node = step.nodes[0]
    node.update(hostile(lambda: (node.params, gc.collect()), buffers, stream)[which])
    step.launch(stream)
    stream.sync()
    assert len([r for r in step.retained if r.operand == "parameter 0"]) == 1


def test_a_conversion_that_closes_another_argument(step, device, stream, buffers):
    y = device.allocate(4 * N, stream=stream)
    node = step.nodes[0]
    with pytest.raises(cu.ClosedError):
        node.update({0: y, 1: Index(y.close)})
    step.launch(stream)
    assert numbers(buffers[0], stream) == 0


def test_a_conversion_that_changes_the_arguments(step, buffers):
    places = {0: buffers[1]}
    places[1] = Index(places.clear, 6)
    step.nodes[0].update(places)
    assert step.nodes[0].params.args == (buffers[1], 6, N)


def test_a_cycle_is_collected(graph, code, buffers):
    """Through memory that came in place of other memory, which the collector was shown."""
    graph.launch(CONFIG, code["fill"], buffers[0], 1, N)
    step = graph.instantiate()
    node = warm(step)
    thing = Interface(lambda: None, buffers[1])
    thing.step = step
    gone = weakref.ref(thing)
    node.update({0: thing})
    del thing, step, node
    gc.collect()
    settle()
    assert gone() is None


def test_slots_of_two_nodes(graph, code, buffers, stream):
    """Which change both, whatever their kind."""
    x, y, z = buffers
    target, value = cu.slot("to", x), cu.slot("value", 1)
    first = graph.launch(CONFIG, code["fill"], target, value, N)
    first.launch(CONFIG, code["fill"], y, value, N).memcpy(z, target)
    step = graph.instantiate()
    for new in range(1, 5):
        step.bind(value=new)
        step.bind(to=x)
        step.launch(stream)
        assert [numbers(b, stream) for b in buffers] == [new] * 3


def test_a_node_that_is_removed_from_its_graph(graph, code, buffers):
    node = graph.launch(CONFIG, code["fill"], buffers[0], 1, N)
    step = graph.instantiate()
    own = warm(step)
    graph.remove(node)
    with pytest.raises(cu.ClosedError):
        own.update({1: 4})


def test_closed(step):
    node = step.nodes[0]
    step.close()
    for change in (
        lambda: node.update({1: 1}),
        lambda: node.update(value=1),
        lambda: step.bind(value=1),
    ):
        with pytest.raises(cu.ClosedError):
            change()


def test_watched(step):
    seen = []
    watcher = SimpleNamespace(updated_node=lambda step, number: seen.append(number))
    _core._set_watcher(lambda: watcher)
    try:
        step.nodes[0].update({1: 4})
        step.bind(value=5)
    finally:
        _core._set_watcher(None)
    assert seen == [step.nodes[0]._id] * 2


# --- threads --------------------------------------------------------------------------------------


def test_threads(graph, buffers, code, device):
    """One launches, two update the same node in different arguments, one closes in the end."""
    graph.launch(CONFIG, code["fill"], cu.slot("y", buffers[0]), cu.slot("value", 0), N)
    step = graph.instantiate()
    node = warm(step)
    end, failures = threading.Event(), []

    def run(do):
        try:
            while not end.is_set():
                do()
        except cu.ClosedError:
            pass
        except BaseException as e:
            failures.append(e)

    streams = [device.create_stream() for _ in "ab"]
    gone, chosen = [], random.Random(2)

    def exchange():
        fresh = device.allocate(4 * N, stream=streams[0])
        gone.append(weakref.ref(fresh))
        step.bind(y=fresh)

    def tell():
        node.update({1: chosen.randrange(1 << 30)})
        if not chosen.randrange(50):
            assert len(node.params.args) == 3

    work = [lambda: step.launch(streams[0]), lambda: step.launch(streams[1]), exchange, tell]
    threads = [threading.Thread(target=run, args=(do,)) for do in work]
    for thread in threads:
        thread.start()
    closing = threading.Timer(1.0, step.close)
    closing.start()
    for thread in threads:
        thread.join()
    closing.join()
    assert not failures
    for stream in streams:
        stream.sync()
    settle()
    assert [w for w in gone if w() is not None] == []


def test_updates_of_different_arguments_are_all_made(step, buffers):
    node = step.nodes[0]

    def update(place, new):
        for value in new * 200:
            node.update({place: value})

    jobs = [(0, [buffers[1], buffers[2]]), (1, [3, 4]), (2, [N, N - 1])]
    threads = [threading.Thread(target=update, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert node.params.args == (buffers[2], 4, N - 1)


# --- calls that fail ------------------------------------------------------------------------------

REFUSED = """
import sys
import threading
import cudago as cu
from cudago import _core
from cudago.testing import settle

source = 'extern "C" __global__ void set(int* y, int a, int b) { y[0] = a; y[1] = b; }'
kernel = cu.Program(source).compile()["set"]
device = cu.Device()
stream = device.create_stream()
x, y = (device.allocate(8, stream=stream) for _ in "xy")
with cu.Graph() as graph:
    graph.launch(cu.LaunchConfig(1, 1), kernel, cu.slot("y", x), cu.slot("a", 1), 2, name="set")
    step = graph.instantiate()
node = step["set"]
for _ in range(3):
    node.update(a=1)
number = 1 << 20
CHANGES = (
    lambda: node.update(a=number), lambda: node.update({1: number}),
    lambda: node.update({1: number, 2: number}),
    lambda: step.bind(y=y), lambda: step.bind(y=y, a=number), lambda: node.update({0: None}),
)

def counts():
    settle()
    return [sys.getrefcount(t) for t in (x, y, number, kernel, step)] + [cu.live_objects()]

before, (record, *args) = counts(), (id(step._record(node._id)), *step._record(node._id)[2:])
del args
for change in CHANGES:
    for call in ("cuGraphExecKernelNodeSetParams", "cuCtxPushCurrent"):
        failed = []

        def run():
            _core._fail_next(call, 1, 999)
            try:
                change()
            except cu.CUDAError as e:
                failed.append(e.code)

        thread = threading.Thread(target=run)  # where no context is current
        thread.start()
        thread.join()
        del thread, run
        assert failed == [999], (call, failed)
        node.update({2: 2})  # tells the driver of the others too
        assert id(step._record(node._id)) == record
        assert counts() == before, (counts(), before)
step.launch(stream)
out = bytearray(8)
x.copy_to(out, stream=stream)
stream.sync()
print(list(out), [r.nbytes for r in step.retained if r.operand != "kernel"], node.params.args[1:])
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_refused_change_leaves_everything(script, driver):
    done = script(REFUSED, CUDAGO_SIM="faults=0")
    assert done.stderr == ""
    assert done.stdout == "[1, 0, 0, 0, 2, 0, 0, 0] [8] (1, 2)\n"


def test_signs_are_kept(graph, code, buffers, stream):
    """What is packed again is what was given, whichever library's number that was."""
    source = """extern "C" __global__ void signs(
            long long* y, int a, unsigned b, signed char c, bool d) {
        y[0] = a; y[1] = b; y[2] = c; y[3] = d;
    }"""
    kernel = cu.Program(source).compile()["signs"]
    given = (np.int32(-1), np.uint32(0xFFFFFFFF), np.int8(-2), np.bool_(True))
    graph.launch(CONFIG, kernel, buffers[0], *given)
    step = graph.instantiate()
    node = step.nodes[0]
    for memory in (*buffers, *buffers):
        node.update({0: memory})
        node.update({1: np.int32(-3)})
        step.launch(stream)
        out = np.zeros(4, "i8")
        memory[: out.nbytes].copy_to(out, stream=stream)
        stream.sync()
        assert out.tolist() == [-3, 0xFFFFFFFF, -2, 1]
    assert [int(a) for a in node.params.args[1:]] == [-3, 0xFFFFFFFF, -2, 1]
