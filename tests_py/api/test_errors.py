# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions, their texts and bases; and a failed call leaves nothing behind."""

from __future__ import annotations

import pickle

import pytest

import cudago as cu
from cudago import _zconstants as numbers
from cudago import errors
from cudago.testing import no_leaks

BASES = {
    "CUDAError": (RuntimeError,),
    "OutOfMemoryError": (cu.CUDAError, MemoryError),
    "DeviceFaultError": (cu.CUDAError,),
    "CheckError": (cu.CUDAError,),
    "UnsupportedError": (cu.CUDAError, NotImplementedError),
    "DriverNotFoundError": (cu.CUDAError,),
    "CompileError": (cu.CUDAError,),
    "GraphFileError": (ValueError,),
    "GraphUpdateError": (cu.CUDAError,),
    "PTXError": (cu.CUDAError, ValueError),
    "KernelNotFoundError": (cu.CUDAError, KeyError),
    "ClosedError": (ValueError,),
    "InternalError": (RuntimeError,),
    "CUDAWarning": (RuntimeWarning,),
}


def test_every_exception_is_public_and_has_its_bases():
    assert sorted(BASES) == sorted(errors.__all__)
    for name, bases in BASES.items():
        assert getattr(cu, name) is getattr(errors, name)
        assert getattr(errors, name).__bases__ == bases
        assert name in cu.__all__


def test_a_driver_error_has_code_name_and_operation(device, stream):
    with pytest.raises(cu.OutOfMemoryError) as e:
        device.allocate(1 << 50, stream=stream)
    error = e.value
    assert (error.code, error.name) == (2, "CUDA_ERROR_OUT_OF_MEMORY")
    assert error.operation == "cuMemAllocFromPoolAsync"
    assert str(error).startswith("cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY: ")
    assert f"({1 << 50} bytes on device 0)" in str(error)


def test_what_refuses_code_has_code_name_and_operation(driver):
    code = cu.ObjectCode.from_ptx(".version 7.0\n.target sm_75\n.address_size 64\nnothing\n")
    with pytest.raises(cu.PTXError, match=r"^cuModuleLoadDataEx: CUDA_ERR") as refused:
        code["x"]
    error = refused.value
    assert (error.code, error.name) == (218, "CUDA_ERROR_INVALID_PTX")
    assert error.operation == "cuModuleLoadDataEx"
    with pytest.raises(cu.CompileError) as failed:
        cu.Program("garbage;").compile()
    error = failed.value
    assert (error.code, error.name) == (6, "NVRTC_ERROR_COMPILATION")
    assert error.operation == "nvrtcCompileProgram"


def test_an_exception_survives_pickling(device, stream):
    with pytest.raises(cu.OutOfMemoryError) as e:
        device.allocate(1 << 50, stream=stream)
    again = pickle.loads(pickle.dumps(e.value))
    assert type(again) is cu.OutOfMemoryError
    assert (str(again), again.code, again.requested) == (str(e.value), 2, 1 << 50)


def test_what_the_native_module_raises_by_number():
    """Each pair of kind and code that C and Go report, and the exception that it becomes."""
    table = [
        (numbers.CUDAGO_CUDA, 1, "{}", cu.CUDAError),
        (numbers.CUDAGO_CUDA, 2, '{"requested": 5}', cu.OutOfMemoryError),
        (numbers.CUDAGO_CUDA, 801, "{}", cu.UnsupportedError),
        (numbers.CUDAGO_CUDA, 700, '{"sticky": true}', cu.DeviceFaultError),
        (numbers.CUDAGO_CUDA, 719, '{"sticky": true}', cu.DeviceFaultError),
        (numbers.CUDAGO_NO_DRIVER, 0, None, cu.DriverNotFoundError),
        (numbers.CUDAGO_COMPILE, 0, '{"log": "l", "options": ["-o"]}', cu.CompileError),
        (numbers.CUDAGO_PTX, 218, '{"line": 3, "column": 4}', cu.PTXError),
        (numbers.CUDAGO_CLOSED, 0, None, cu.ClosedError),
        (numbers.CUDAGO_TYPE, 0, None, TypeError),
        (numbers.CUDAGO_VALUE, 0, None, ValueError),
        (numbers.CUDAGO_OVERFLOW, 0, None, OverflowError),
        (numbers.CUDAGO_KEY, 0, None, KeyError),
        (numbers.CUDAGO_BUFFER, 0, None, BufferError),
        (numbers.CUDAGO_INTERNAL, 0, None, cu.InternalError),
        (numbers.CUDAGO_CUDA, 910, '{"node": "n"}', cu.GraphUpdateError),
    ]
    for kind, code, detail, cls in table:
        made = errors._make(kind, code, "text", detail)
        assert type(made) is cls
        assert made.args == ("text",)
    assert errors._make(*table[1][:2], "", table[1][2]).requested == 5
    assert errors._make(*table[-1][:2], "", table[-1][2]).node == "n"
    assert errors._make(*table[6][:2], "", table[6][2]).options == ["-o"]
    ptx = errors._make(*table[7][:2], "", table[7][2])
    assert (ptx.line, ptx.column, ptx.code) == (3, 4, 218)


def test_failed_calls_leave_nothing_behind(device, stream, kernels):
    config = cu.LaunchConfig(grid=1, block=1)
    missing = cu.Program("does not compile")

    def closed_stream():
        with device.create_stream() as s:
            pass
        device.allocate(8, stream=s)

    def bad_capture():
        with device.create_stream() as own, device.create_stream() as other, own.capture():
            other.wait(own)
            raise LookupError

    calls = [
        lambda: device.allocate(1 << 50, stream=stream),
        lambda: device.allocate(8),
        lambda: device.allocate(8, stream=stream).copy_from(b"1", stream=stream),
        lambda: cu.launch(
            stream, config, kernels["add"], device.allocate(8, stream=stream), 1.5, 1
        ),
        lambda: cu.Graph().memcpy(device.allocate(8, stream=stream), bytearray(7)),
        lambda: cu.Graph().launch(config, kernels["add"], device.allocate(8, stream=stream), 1),
        lambda: cu.Graph().instantiate().launch(None),
        lambda: device.create_event().elapsed_ms(device.create_event()),
        lambda: cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=-1)),
        lambda: cu.Stream.from_handle(-1),
        missing.compile,
        lambda: cu.ObjectCode.from_ptx("not PTX\n").get_kernel("k"),
        lambda: kernels["unknown"],
        closed_stream,
        bad_capture,
    ]
    for call in calls:
        with no_leaks():
            caught = None
            try:
                call()
            except Exception as e:
                caught = type(e)
            assert caught is not None, call
    cu.launch(stream, config, kernels["nothing"])
    stream.sync()


def test_the_driver_is_chosen_once(driver):
    cu.init(driver)
    cu.init("auto")
    other = {"sim": "nvidia", "nvidia": "sim"}[driver]
    with pytest.raises(RuntimeError, match=f"already uses the driver '{driver}'; choose '{other}'"):
        cu.init(other)
    with pytest.raises(
        ValueError, match="driver must be one of 'auto', 'nvidia', 'sim', got 'cuda'"
    ):
        cu.init("cuda")
    assert cu.driver_name() == driver
    assert cu.driver_version() >= (12, 4)


def test_no_driver(script):
    run = script(
        """
        import cudago as cu
        for attempt in range(2):
            try:
                cu.Device()
            except cu.DriverNotFoundError as e:
                print(e)
        cu.init("sim")
        print(cu.Device().name)
        """,
        CUDAGO_DRIVER="nvidia",
        CUDAGO_LIBCUDA="/nowhere/libcuda.so.1",
    )
    assert (run.returncode, run.stderr) == (0, "")
    first, second, name = run.stdout.splitlines()
    assert first == second
    assert "/nowhere/libcuda.so.1" in first
    assert "CUDAGO_DRIVER=sim" in first
    assert "simulated" in name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("devices=-1", "devices"),
        ("cc=nine", "cc"),
        ("speed=1", "speed"),
        ("memory=lots", "memory"),
    ],
)
def test_settings_of_the_simulated_driver_are_checked(settings, message, script):
    run = script(
        """
        import cudago as cu
        try:
            cu.Device()
        except ValueError as e:
            print("ValueError:", e)
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM=settings,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("ValueError: ")
    assert message in run.stdout


SCRIPT = """
import cudago as cu
d = cu.Device()
s = d.create_stream()
code = cu.Program('''
extern "C" __global__ void write(int* p, int i) { p[i] = 1; }
extern "C" __global__ void trap() { asm("trap;"); }
''').compile()
one = cu.LaunchConfig(grid=1, block=1)
buffer = d.allocate(64, stream=s)
s.sync()
cu.launch(s, one, code["write"], buffer, 0)
s.sync()
FAULT
for attempt in range(2):
    try:
        s.sync()
    except cu.DeviceFaultError as e:
        print(e.code, e.name, str(e).replace(chr(10), " "))
try:
    cu.launch(s, one, code["trap"])
    s.sync()
except cu.CUDAError as e:
    print(type(e).__name__)
"""


def test_a_fault_on_the_device_is_raised_by_the_next_wait_and_stays(script, driver):
    run = script(SCRIPT.replace("FAULT", 'cu.launch(s, one, code["trap"])'))
    assert (run.returncode, run.stderr) == (0, "")
    first, second, third = run.stdout.splitlines()
    assert first.startswith("71")
    assert second.split()[0] == first.split()[0]
    assert third == "DeviceFaultError"


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_the_simulated_driver_says_what_was_wrong_with_an_address(script, driver):
    run = script(SCRIPT.replace("FAULT", 'cu.launch(s, one, code["write"], buffer, 16)'))
    assert (run.returncode, run.stderr) == (0, "")
    first = run.stdout.splitlines()[0]
    assert first.startswith("700 CUDA_ERROR_ILLEGAL_ADDRESS")
    assert "write" in first and "64 bytes" in first


DANGLING = """
import cudago as cu
d = cu.Device()
s = d.create_stream()
source = 'extern "C" __global__ void write(int* p, int i) { p[i] = 1; }'
kernel = cu.Program(source).compile()["write"]
buffer = d.allocate(64, stream=s)
with cu.Graph() as graph:
    graph.launch(cu.LaunchConfig(1, 1), kernel, int(buffer.ptr), 0, name="stale")
    step = graph.instantiate()
step.launch(s)
s.sync()
buffer.close()
s.sync()
try:
    step.launch(s)
    s.sync()
except cu.CUDAError as e:
    print(e)
"""


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_the_simulated_driver_names_a_dangling_address(script, driver):
    """A bare address keeps nothing: which node and argument, allocated where, freed where."""
    run = script(DANGLING)
    assert (run.returncode, run.stderr) == (0, "")
    for fact in ("graph launch", "kernel write", "parameter 0", "freed device memory of 64 bytes"):
        assert fact in run.stdout
    assert "stale" in run.stdout
    assert "allocated at cuMemAlloc" in run.stdout
    assert "freed at cuMemFree" in run.stdout


def test_a_panic_is_an_exception_and_the_process_goes_on(script, driver):
    run = script(
        """
        import cudago as cu
        from cudago import _core
        try:
            _core._panic("on purpose")
        except AttributeError:
            print("no hook")
        except cu.InternalError as e:
            assert "on purpose" in str(e) and "goroutine" in str(e), e
            cu.Device().create_stream().sync()
            print("goes on")
        """
    )
    assert (run.returncode, run.stderr) == (0, "")
    if run.stdout == "no hook\n":
        pytest.skip("the native module has no hook that panics")
    assert run.stdout == "goes on\n"
