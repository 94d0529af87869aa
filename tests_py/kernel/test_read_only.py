# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Read-only memory as a kernel's argument: only where the code shows that nothing is stored."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

N = 16
CONFIG = cu.LaunchConfig(1, N)


class ReadOnly:
    """A read-only array of another library over memory of ours."""

    def __init__(self, buffer: cu.Buffer) -> None:
        self.__cuda_array_interface__ = {
            "shape": (N,),
            "typestr": "<i4",
            "data": (buffer.handle, True),
            "version": 3,
        }


@pytest.fixture
def memory(device, stream):
    """Memory on the device that holds 0 to N - 1."""
    with device.allocate(4 * N, stream=stream) as buffer:
        buffer.copy_from(np.arange(N, dtype="i4"), stream=stream)
        stream.sync()
        yield buffer


def launches(kernel, stream, *args):
    """Every way to a kernel: functions that raise, or run it with the arguments."""

    def in_a_graph():
        graph = cu.Graph()
        try:
            graph.launch(CONFIG, kernel, *args)
            graph.instantiate().launch(stream)
        finally:
            graph.close()

    def captured():
        with stream.capture() as graph:
            cu.launch(stream, CONFIG, kernel, *args)
        graph.instantiate().launch(stream)

    return {
        "launch": lambda: cu.launch(stream, CONFIG, kernel, *args),
        "brackets": lambda: kernel[CONFIG, stream](*args),
        "graph": in_a_graph,
        "capture": captured,
    }


WAYS = ["launch", "brackets", "graph", "capture"]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_stored_through_is_not_read_only(way, memory, kernels, stream):
    y = cu.zeros(N, "i4", stream=stream)
    say = r"parameter 1 of kernel copy is read-only memory .*may store through it: pass a copy"
    with pytest.raises(TypeError, match=say):
        launches(kernels["copy"], stream, y, ReadOnly(memory), N)[way]()
    assert (memory.view("i4").numpy(stream=stream) == np.arange(N)).all()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_only_read_may_be_read_only(way, memory, kernels, stream):
    y = cu.zeros(N, "i4", stream=stream)
    launches(kernels["copy"], stream, ReadOnly(memory), y, N)[way]()
    assert (y.numpy(stream=stream) == np.arange(N)).all()


@pytest.fixture
def page(device):
    """Pinned memory that may only be read, with its array."""
    array = np.arange(1024, dtype="i4")
    try:
        buffer = cu.pin(array, read_only=True)
    except (cu.CUDAError, ValueError) as e:
        pytest.skip(f"this device pins no read-only memory: {e}")
    with buffer:
        yield buffer, array


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "view", [lambda b: b, lambda b: b[:64], lambda b: b.ptr + 0, lambda b: b.view("i4")]
)
def test_our_own_read_only_memory(way, view, page, kernels, stream):
    buffer, array = page
    y = cu.zeros(N, "i4", stream=stream)
    with pytest.raises(TypeError, match="parameter 0 of kernel add is read-only memory"):
        launches(kernels["add"], stream, view(buffer), 1, N)[way]()
    launches(kernels["copy"], stream, view(buffer), y, N)[way]()
    assert (y.numpy(stream=stream) == np.arange(N)).all()
    assert (array == np.arange(1024)).all()


def test_an_update_checks_too(page, memory, kernels, stream):
    graph = cu.Graph()
    graph.launch(CONFIG, kernels["add"], memory, 1, N, name="add")
    step = graph.instantiate()
    with pytest.raises(TypeError, match="parameter 0 of kernel add is read-only memory"):
        step["add"].update(CONFIG, kernels["add"], page[0], 1, N)
    step.launch(stream)
    assert (memory.view("i4").numpy(stream=stream) == np.arange(1, N + 1)).all()


@pytest.mark.gpu
def test_machine_code_shows_nothing(memory, device, stream):
    source = 'extern "C" __global__ void read(const int* x, int* y) { *y = *x; }'
    made = cu.Program(source).compile("cubin")
    kernel = cu.ObjectCode.from_cubin(made.code)["read"]
    with pytest.raises(TypeError, match="without PTX it is not known whether the kernel stores"):
        cu.launch(stream, CONFIG, kernel, ReadOnly(memory), memory)


PAGEABLE = """
import array
import numpy as np
import cudago as cu

device = cu.Device()
s = device.create_stream()
code = cu.Program('''
extern "C" __global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void add(int* y) { y[threadIdx.x] += 1; }
''').compile()
config = cu.LaunchConfig(1, 4)
frozen = np.arange(4, dtype="i4")
frozen.flags.writeable = False
data = np.arange(4, dtype="i4").tobytes()
for memory in (
    data,
    frozen,
    memoryview(data),
    memoryview(array.array("i", range(4))).toreadonly(),
    np.frombuffer(data, "i4"),
    np.broadcast_to(np.arange(4, dtype="i4"), (1, 4)),
):
    y = cu.zeros(4, "i4", stream=s)
    code["copy"][config, s](memory, y)
    assert y.numpy(stream=s).tolist() == [0, 1, 2, 3], memory
    try:
        code["add"][config, s](memory)
    except TypeError as e:
        assert "parameter 0 of kernel add is read-only memory" in str(e), e
    else:
        raise AssertionError(f"{memory!r} was written")
s.sync()
assert frozen.tolist() == [0, 1, 2, 3] and data == bytes(frozen)
for memory in (bytearray(data), np.arange(4, dtype="i4")):
    code["add"][config, s](memory)
    s.sync()
    assert memoryview(memory).cast("B").cast("i").tolist() == [1, 2, 3, 4]
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_host_memory(script, driver):
    run = script(PAGEABLE, CUDAGO_DRIVER="sim", CUDAGO_SIM="pageable=1")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


ELSEWHERE = """
import numpy as np, cudago as cu
source = 'extern "C" __global__ void k(const int* x, unsigned long long y) { *(int*)y = *x + 1; }'
kernel = cu.Program(source).compile()["k"]
array = np.arange(1024, dtype="i4")
array.flags.writeable = WRITEABLE
held = cu.pin(array, read_only=True) if PINNED else array
with cu.Device().create_stream() as s:
    try:
        kernel[1, 1, s](held, array.ctypes.data + 4)
        s.sync()
    except cu.CUDAError as e:
        print(type(e).__name__, e)
print(array[1])
"""


@pytest.mark.parametrize("kind", ["pageable", "registered"])
def test_a_store_by_another_way_is_a_fault_that_names_the_memory(kind, script):
    """On the simulated driver: a GPU writes what its page tables allow."""
    setup = ELSEWHERE.replace("PINNED", str(kind == "registered"))
    done = script(setup.replace("WRITEABLE", str(kind == "registered")), CUDAGO_DRIVER="sim")
    assert f"at offset 4 of read-only {kind} host memory of 4096 bytes" in done.stdout
    assert "a store into read-only memory" in done.stdout
    assert done.stdout.endswith("\n1\n"), done.stdout + done.stderr


def test_the_same_memory_that_may_be_written_is_written(script):
    setup = ELSEWHERE.replace("PINNED", "False").replace("WRITEABLE", "True")
    done = script(setup, CUDAGO_DRIVER="sim")
    assert done.stdout == "1\n", done.stdout + done.stderr
