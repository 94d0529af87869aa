# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What XLA calls to launch kernels, called without JAX by frames made by hand."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import re
import sys
import threading
import weakref
from pathlib import Path

import pytest

import cudago as cu
from cudago import _core
from cudago._kernel.traced import Key

from ..conftest import settle
from ..installed import ROOT
from .xla import F32, S32, XLA

np = pytest.importorskip("numpy")

SOURCE = r"""
extern "C" __global__ void scaled(const float *x, float a, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void add_one(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
struct big { float v[1500]; };
extern "C" __global__ void of_struct(big b, float *y) { y[0] = b.v[1499]; }
"""

N = 300
FLOAT = 2 << 8 | 32
_keys = (Key(hashlib.sha256(b"%d" % i).hexdigest()) for i in itertools.count())


@pytest.fixture(scope="module")
def code(driver):
    """The kernels."""
    return cu.Program(SOURCE).compile()


@pytest.fixture
def platform(driver):
    """XLA's name of the platform that goes with the driver."""
    return "cpu" if driver == "sim" else "CUDA"


def config(n=N):
    return cu.LaunchConfig(grid=(n + 127) // 128, block=128)


def array(n=N, into=-1):
    return (F32, n, 4 * n, into)


def keep(launches, arrays, n_arguments, simulated, name="mine::f"):
    """Make a program; gives its key, which holds it."""
    key = next(_keys)
    key._program = _core._xla_program(
        key, name, simulated, (0,), n_arguments, tuple(arrays), tuple(launches)
    )
    return key


@pytest.fixture
def program(code, driver):
    """Key of a program that makes y = 3 x, of 300 elements."""
    values, _ = pack(code["scaled"], (None, 3.0, None, N), (FLOAT, -1, FLOAT, -1))
    launch = (code["scaled"], config(), values, ((0, 0), (2, 1)))
    return keep([launch], [array(), array()], 1, driver == "sim")


def pack(kernel, values, types):
    return _core._xla_pack(kernel, config(), (0,), values, types, ("float32",) * len(types))


@pytest.fixture
def xla(stream):
    """A stand-in for XLA, with a stream."""
    return XLA(stream=int(stream.handle))


class Memory:
    """300 floats where the driver's kernels get at them, counted up from 1, or zeros."""

    def __init__(self, driver, stream, first=None):
        values = np.zeros(N, "f4") if first is None else np.arange(first, first + N, dtype="f4")
        self.stream = stream
        self.values = values if driver == "sim" else cu.asarray(values, stream=stream)
        stream.sync()
        self.address = values.ctypes.data if driver == "sim" else int(self.values.handle)

    def read(self):
        """Return the values, once the stream has made them."""
        if isinstance(self.values, np.ndarray):
            return self.values
        values = self.values.numpy(stream=self.stream)
        self.stream.sync()
        return values


@pytest.fixture
def memory(driver, stream):
    """Function that makes memory."""
    return lambda first=None: Memory(driver, stream, first)


# --- what XLA asks --------------------------------------------------------------------------------


@pytest.mark.parametrize(("theirs", "ours"), [(0, 1), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_the_question_about_the_function(xla, platform, theirs, ours):
    xla.api.version.minor = theirs
    frame, metadata = xla.query()
    assert xla.call(frame, platform) is None
    assert (metadata.version.major, metadata.version.minor) == (0, ours)
    assert metadata.traits == 1
    assert metadata.state == 0


def test_the_question_without_the_table_of_functions(xla, platform):
    """As XLA asked in jaxlib 0.5.3, which takes no other version than 0.1."""
    frame, metadata = xla.query()
    frame.api = None
    assert xla.call(frame, platform) is None
    assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 1, 1)


def test_an_answer_without_room(xla, platform):
    frame, metadata = xla.query(size=32)
    message, _ = xla.call(frame, platform)
    assert "the answer about a function has 32 bytes, and needs 36" in message
    assert metadata.traits == 0


def test_another_version(xla, program, platform):
    frame = xla.frame(program, [], [])
    xla.api.version.major = 1
    message, code = xla.call(frame, platform)
    assert code == 9
    assert "this XLA has version 1.3: update cudago or JAX" in message


def test_structs_that_are_too_small(xla, program, platform):
    frame = xla.frame(program, [xla.buffer(64, (N,))], [xla.buffer(64, (N,))])
    for struct, size, what in [
        (xla.api, 80, "the table of functions has 80 bytes, and needs 88"),
        (frame, 160, "a call has 160 bytes, and needs 168"),
        (frame.arguments, 32, "arguments has 32 bytes"),
        (frame.results, 32, "results has 32 bytes"),
    ]:
        before, struct.size = struct.size, size
        assert what in xla.call(frame, platform)[0]
        struct.size = before
    frame.attributes.size = 40
    assert "has not traced the operator" in xla.call(frame, platform)[0]


def test_no_way_to_report(xla, program, platform, capfd):
    frame = xla.frame(program, [], [])
    xla.api.error_create = None
    assert xla.call(frame, platform) is None
    assert "the table of functions has 0 bytes, and needs 88" in capfd.readouterr().err


def test_another_stage(xla, program, platform):
    frame = xla.frame(program, [], [])
    frame.stage = 2
    assert "not in stage 2" in xla.call(frame, platform)[0]


# --- calls ----------------------------------------------------------------------------------------


def test_a_call(xla, program, platform, memory):
    x, y = memory(first=1), memory()
    frame = xla.frame(program, [xla.buffer(x.address, (3, 100))], [xla.buffer(y.address, (N,))])
    for _ in range(3):
        assert xla.call(frame, platform) is None
    assert np.array_equal(y.read(), 3 * np.arange(1, N + 1))


def test_two_launches_in_the_memory_of_an_argument(code, driver, xla, platform, memory):
    values, stores = pack(code["add_one"], (None, N), (FLOAT, -1))
    assert stores == (True, False)
    one = (code["add_one"], config(), values, ((0, 1),))
    key = keep([one, one], [array(into=0), array()], 1, driver == "sim")
    x = memory(first=1)
    both = xla.buffer(x.address, (N,))
    assert xla.call(xla.frame(key, [both], [both]), platform) is None
    assert np.array_equal(x.read(), np.arange(3, N + 3))
    elsewhere = xla.buffer(memory().address, (N,))
    message, _ = xla.call(xla.frame(key, [both], [elsewhere]), platform)
    assert message.startswith("mine::f: argument 0 and result 0 must be in the same memory")


def test_a_struct_larger_than_the_stack_has_room_for(code, driver, xla, platform, memory):
    struct = np.arange(1500, dtype="f4").tobytes()
    values, _ = pack(code["of_struct"], (struct, None), (-1, FLOAT))
    launch = (code["of_struct"], cu.LaunchConfig(1, 1), values, ((1, 0),))
    key = keep([launch], [array()], 0, driver == "sim")
    y = memory()
    assert xla.call(xla.frame(key, [], [xla.buffer(y.address, (N,))]), platform) is None
    assert y.read()[0] == 1499


def test_nothing_to_launch(driver, xla, platform):
    key = keep([], [(F32, 0, 0, -1)], 0, driver == "sim")
    frame = xla.frame(key, [], [xla.buffer(None, (0,))])
    assert xla.call(frame, platform) is None


def test_many_threads(program, platform, memory, stream):
    wrong = []

    def work(first):
        xla = XLA(stream=int(stream.handle))
        x, y = memory(first=first), memory()
        frame = xla.frame(program, [xla.buffer(x.address, (N,))], [xla.buffer(y.address, (N,))])
        wrong.extend(e for e in [xla.call(frame, platform) for _ in range(50)] if e)
        if not np.array_equal(y.read(), 3 * np.arange(first, first + N)):
            wrong.append(first)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        ((N - 1,), F32, "argument 0 has 299 elements of type 11"),
        ((N,), S32, "has 300 elements of type 4 \\(XLA's number\\), and was traced with 300 of"),
        ((-1, -N), F32, "argument 0 has"),
        ((2**40, 2**40), F32, "argument 0 has"),
    ],
)
def test_other_arrays_than_were_traced(xla, program, platform, memory, shape, kind, message):
    y = memory()
    frame = xla.frame(program, [xla.buffer(y.address, shape, kind)], [xla.buffer(y.address, (N,))])
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(*xla.call(frame, platform))
    assert not y.read().any()


def test_other_items_than_arrays(xla, program, platform):
    x = xla.buffer(64, (N,))
    no_memory = xla.buffer(None, (N,))
    small = xla.buffer(64, (N,))
    small.size = 40
    for arguments, results, message in [
        ([], [x], "mine::f was traced with 1 arguments, and is called with 0"),
        ([x], [x, x], "mine::f was traced with 1 results, and is called with 2"),
        ([no_memory], [x], "argument 0 has no memory"),
        ([x], [no_memory], "result 0 has no memory"),
        ([small], [x], "an array has 40 bytes"),
    ]:
        assert message in xla.call(xla.frame(program, arguments, results), platform)[0]
    frame = xla.frame(program, [x], [x])
    frame.arguments = xla.items([x], kind=2)
    assert "argument 0 is no array" in xla.call(frame, platform)[0]


@pytest.mark.parametrize("key", ["", "0" * 64, "f" * 63, "f" * 10_000])
def test_a_program_that_is_not_there(xla, platform, key):
    message, code = xla.call(xla.frame(key, [], []), platform)
    assert code == 9
    assert "this process has not traced the operator" in message


def test_attributes_of_other_kinds(xla, program, platform):
    frame = xla.frame(program, [], [])
    frame.attributes.n = 0
    assert "has not traced" in xla.call(frame, platform)[0]
    frame = xla.frame(program, [], [])
    ctypes.memset(frame.attributes.kinds, 0, 8)
    assert "has not traced" in xla.call(frame, platform)[0]


def test_the_other_platform(xla, program, driver):
    message, code = xla.call(xla.frame(program, [], []), "CUDA" if driver == "sim" else "cpu")
    assert code == 9
    assert "choose" in message
    assert f"CUDAGO_DRIVER={'nvidia' if driver == 'sim' else 'sim'}" in message


def test_a_stream_that_xla_does_not_have(xla, code):
    values, _ = pack(code["scaled"], (None, 3.0, None, N), (FLOAT, -1, FLOAT, -1))
    launch = (code["scaled"], config(), values, ((0, 0), (2, 1)))
    key = keep([launch], [array(), array()], 1, simulated=False)
    x = xla.buffer(64, (N,))
    xla.stream = None
    assert xla.call(xla.frame(key, [x], [x]), "CUDA") == ("XLA has no stream", 12)


# --- how long a program lives ---------------------------------------------------------------------


@pytest.fixture
def fresh(driver):
    """Function that makes a program of a kernel of its own; gives its key and the weak kernel."""

    def make(value=3.0):
        kernel = cu.Program(SOURCE).compile()["scaled"]
        values, _ = pack(kernel, (None, value, None, N), (FLOAT, -1, FLOAT, -1))
        launch = (kernel, config(), values, ((0, 0), (2, 1)))
        key = keep([launch], [array(), array()], 1, driver == "sim")
        return key, weakref.ref(kernel)

    return make


def is_there(xla, key, platform):
    """Does XLA find the program? It is called with too few arrays."""
    return "has not traced" not in xla.call(xla.frame(str(key), [], []), platform)[0]


def test_a_program_ends_with_what_traced_it(xla, fresh, platform):
    key, kernel = fresh()
    settle()
    assert is_there(xla, key, platform)
    assert kernel() is not None
    text = str(key)
    del key
    settle()
    assert not is_there(xla, text, platform)
    assert kernel() is None


@pytest.mark.parametrize("minor", [1, 2, 3, 4])
def test_an_executable_holds_its_program(fresh, platform, memory, stream, minor):
    xla = XLA(minor=minor, stream=int(stream.handle))
    key, kernel = fresh()
    for _ in range(2):  # as two places in executables
        assert xla.call(xla.instantiation(key), platform) is None
    text = str(key)
    del key
    settle()
    x, y = memory(first=1), memory()
    frame = xla.frame(text, [xla.buffer(x.address, (N,))], [xla.buffer(y.address, (N,))])
    assert xla.call(frame, platform) is None
    assert np.array_equal(y.read(), 3 * np.arange(1, N + 1))
    xla.destroy()
    settle()
    assert kernel() is not None
    xla.destroy()
    settle()
    assert kernel() is None
    assert not is_there(xla, text, platform)


def test_what_is_traced_outlives_its_executables(xla, fresh, platform):
    key, kernel = fresh()
    assert xla.call(xla.instantiation(key), platform) is None
    xla.destroy()
    settle()
    assert kernel() is not None
    assert xla.call(xla.instantiation(key), platform) is None
    del key
    xla.destroy()
    settle()
    assert kernel() is None


def test_what_is_traced_twice_is_one_program(xla, platform, driver):
    kernel = cu.Program(SOURCE).compile()["scaled"]
    values, _ = pack(kernel, (None, 3.0, None, N), (FLOAT, -1, FLOAT, -1))
    given = ((kernel, config(), values, ((0, 0), (2, 1))),)
    arguments = ("a" * 64, "mine::f", driver == "sim", (0,), 1, (array(), array()), given)
    counts = [sys.getrefcount(kernel)]
    one, two = _core._xla_program(*arguments), _core._xla_program(*arguments)
    counts.append(sys.getrefcount(kernel))
    del one
    settle()
    assert is_there(xla, arguments[0], platform)
    counts.append(sys.getrefcount(kernel))
    del two
    settle()
    assert not is_there(xla, arguments[0], platform)
    counts.append(sys.getrefcount(kernel))
    assert [n - counts[0] for n in counts] == [0, 1, 1, 0]


def test_a_program_that_is_gone_is_not_instantiated(xla, platform):
    message, code = xla.call(xla.instantiation("b" * 64), platform)
    assert code == 9
    assert "or has let go of what it traced" in message
    assert xla.states == []


def test_xla_refuses_a_state(xla, fresh, platform):
    key, kernel = fresh()
    xla.types.append((b"another", None))  # so that the name is there
    assert xla.call(xla.instantiation(key), platform) == ("a name is registered twice", 6)
    del key
    settle()
    assert kernel() is None


@pytest.mark.kept_for_good
def test_an_xla_without_states_keeps_programs(stream, fresh, platform):
    """As the table of jaxlib 0.5.3, by its size."""
    xla = XLA(minor=1, stream=int(stream.handle))
    xla.api.size = 88
    key, kernel = fresh()
    assert xla.call(xla.instantiation(key), platform) is None
    del key
    settle()
    assert kernel() is not None
    assert xla.states == []


def test_ten_thousand_programs(xla, code, platform, driver):
    kernel = code["scaled"]
    values, _ = pack(kernel, (None, 3.0, None, N), (FLOAT, -1, FLOAT, -1))
    launch = (kernel, config(), values, ((0, 0), (2, 1)))
    settle()
    before = sys.getrefcount(kernel)
    size = 0
    for i in range(10_000):
        key = keep([launch], [array(), array()], 1, driver == "sim")
        if i % 10 == 0:
            assert xla.call(xla.instantiation(key), platform) is None
            del xla.kept[:]
        del key
        if len(xla.states) == 5:
            for _ in range(5):
                xla.destroy()
        if i == 1000:
            size = resident()
    while xla.states:
        xla.destroy()
    settle()
    assert sys.getrefcount(kernel) == before
    assert resident() < size + 4_000_000


def resident():
    """The bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_threads_make_call_and_end_programs(fresh, platform, memory, stream):
    wrong = []

    def work(first):
        xla = XLA(stream=int(stream.handle))
        x, y = memory(first=first), memory()
        for _ in range(20):
            key, _ = fresh(3.0)
            call = xla.frame(key, [xla.buffer(x.address, (N,))], [xla.buffer(y.address, (N,))])
            wrong.extend(e for f in (xla.instantiation(key), call) if (e := xla.call(f, platform)))
            del key
            wrong.extend([e] if (e := xla.call(call, platform)) else [])
            xla.destroy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


# --- in processes of their own -----------------------------------------------------------------

# Call f, which stores ones into the four floats x.
ONE_PROGRAM = f"""
import atexit, sys
sys.path.insert(0, {str(ROOT)!r})
{{begin}}
import numpy as np
import cudago as cu
from cudago import _core
from tests_py.kernel.xla import XLA

code = cu.Program('extern "C" __global__ void f(float* x) {{{{ x[threadIdx.x] = 1; }}}}').compile()
kernel, config, key = code["f"], cu.LaunchConfig(1, 4), "0" * 64
values, _ = _core._xla_pack(kernel, config, (0,), (None,), (2 << 8 | 32,), ("float32",))

def trace():
    launches = ((kernel, config, values, ((0, 0),)),)
    return _core._xla_program(
        key, "mine::g", True, (0,), {{n_arguments}}, ((11, 4, 16, -1),), launches)

traced = trace()
xla, x = XLA(), np.zeros(4, "f4")
buffer = [xla.buffer(x.ctypes.data, (4,))]
frame = xla.frame(key, buffer, []) if {{n_arguments}} else xla.frame(key, [], buffer)
function = xla.function("cpu")

def call():
    return xla.call(frame, function=function)
"""

REFUSED = """
_core._fail_next("cuLaunchKernelEx", 1, 999)
print(call(), x)
print(call(), x)
"""

STORES = """
print(call(), x)
"""

RESET = """
print(call(), x)
cu.Device().reset()
x[:] = 0
print(call(), x)
trace()
print(call(), x)
"""

# What was registered before the first import of cudago runs after cudago's own.
EXIT_BEGINS = "atexit.register(lambda: print(call()))"
EXIT = "print(call())"

FORKED = """
import os
print(call(), flush=True)
if not os.fork():
    print(call(), flush=True)
    os._exit(0)
os.wait()
"""

# XLA destroys executables when it likes.
ENDS_AFTER_EXIT = """
print(xla.call(xla.instantiation(key), function=function))
atexit.register(lambda: print("begins"))
"""
ENDS_AFTER_EXIT_BEGINS = "atexit.register(lambda: print(xla.destroy(), call()))"

ENDS_IN_A_FORK = """
import os
print(xla.call(xla.instantiation(key), function=function), flush=True)
if not os.fork():
    xla.destroy()
    del traced
    print(call(), flush=True)
    os._exit(0)
os.wait()
xla.destroy()
del traced
print(call())
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
@pytest.mark.parametrize(
    ("source", "settings", "told"),
    [
        (REFUSED, "faults=0", [r"cuLaunchKernelEx.*kernel f, grid.*13\) \[0", r"None \[1"]),
        (STORES, "", [r"\(.mine::g: .*read-only.*, 13\) \[0"]),
        (RESET, "", [r"None \[1", r"on device 0, which was reset.*9\) \[0", r"None \[1"]),
        (EXIT, "", ["None", "the interpreter is exiting.*14"]),
        (FORKED, "", ["None", "the process was forked.*14"]),
        (ENDS_AFTER_EXIT, "", ["None", "begins", "None.*the interpreter is exiting.*14"]),
        (ENDS_IN_A_FORK, "", ["None", "the process was forked.*14", "or has let go of.*9"]),
    ],
    ids=[
        "a launch is refused", "an argument is stored to", "reset", "exit", "fork",
        "an executable ends after exit", "an executable ends in a fork",
    ],
)  # fmt: skip
def test_in_a_process_of_its_own(source, settings, told, script, driver):
    first = {EXIT: EXIT_BEGINS, ENDS_AFTER_EXIT: ENDS_AFTER_EXIT_BEGINS}.get(source, "")
    begin = ONE_PROGRAM.format(begin=first, n_arguments=int(source is STORES))
    done = script(begin + source, CUDAGO_SIM=settings)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.replace("\n[", " [").splitlines()
    assert len(lines) == len(told), done.stdout
    for line, pattern in zip(lines, told, strict=True):
        assert re.search(pattern, line), line


# --- what is traced -------------------------------------------------------------------------------


def test_what_a_kernel_does_not_take(code, stream):
    scaled = code["scaled"]
    good, types = (None, 3.0, None, N), (FLOAT, -1, FLOAT, -1)
    with pytest.raises(TypeError, match="takes 4 argument"):
        pack(scaled, (*good, 1), (*types, -1))
    with pytest.raises(TypeError, match="takes 4 bytes and no address, got an array of float32"):
        pack(scaled, (None, None, None, N), (FLOAT, FLOAT, FLOAT, -1))
    with pytest.raises(TypeError, match="points to other elements"):
        pack(scaled, good, (0 << 8 | 32, -1, FLOAT, -1))
    with pytest.raises(TypeError, match=r"no argument of the operator|ordinary host memory"):
        pack(scaled, (bytearray(4 * N), 3.0, None, N), (-1, -1, FLOAT, -1))
    with cu.zeros(N, "f4", stream=stream) as t:
        stream.sync()
        with pytest.raises(TypeError, match="memory that is no argument of the operator"):
            pack(scaled, (t, 3.0, None, N), (-1, -1, FLOAT, -1))
    with pytest.raises(ValueError, match="block must be"):
        _core._xla_pack(scaled, cu.LaunchConfig(1, 2048), (0,), good, types, ("",) * 4)
    with pytest.raises(ValueError, match="no device"):
        _core._xla_pack(scaled, config(), (), good, types, ("",) * 4)
    with pytest.raises(ValueError, match="no such device"):
        _core._xla_pack(scaled, config(), (99,), good, types, ("",) * 4)
    handles = cu.Program('extern "C" __global__ void f(unsigned long long h) {}').compile()["f"]
    with cu.Graph() as graph, pytest.raises(ValueError, match="f is given a condition, which is"):
        pack(handles, (graph.condition(),), (-1,))


def test_programs_that_are_wrong(code):
    values, _ = pack(code["scaled"], (None, 3.0, None, N), (FLOAT, -1, FLOAT, -1))
    kernel = code["scaled"]

    def make(launch, into=-1, n=1, key="0" * 64):
        arrays = (array(into=into), array())
        _core._xla_program(key, "wrong", True, (0,), n, arrays, (launch,))

    good = (kernel, config(), values, ((0, 0), (2, 1)))
    with pytest.raises(ValueError, match="64 characters"):
        make(good, key="short")
    with pytest.raises(ValueError, match="values of another kernel"):
        make((kernel, config(), values[:-1], ()))
    for pair in [(4, 0), (0, 2), (1, 0)]:
        with pytest.raises(ValueError, match="an address of no parameter, or of no array"):
            make((kernel, config(), values, (pair,)))
    for launch in [None, (kernel, config(), values, (None,)), (kernel, 1, values, ()), ()]:
        with pytest.raises(TypeError):
            make(launch)
    with pytest.raises(ValueError, match="of no result"):
        make(good, into=1)
    with pytest.raises(ValueError, match="more arguments than arrays"):
        make(good, n=3)
    with pytest.raises(ValueError, match="no handler for ROCM"):
        _core._xla_handler("ROCM")
