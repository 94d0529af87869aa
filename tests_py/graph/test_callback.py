# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Python functions in graphs."""

from __future__ import annotations

import ctypes
import functools
import threading

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")


def test_callbacks_run_on_a_thread_of_their_own(graph, stream):
    names = []
    graph.callback(lambda: names.append(threading.current_thread().name))
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert names == ["cudago callbacks"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_in_a_callback_is_reported_and_the_graph_goes_on(
    graph, a, stream, monkeypatch
):
    reported = []
    monkeypatch.setattr(
        "sys.unraisablehook", lambda u: reported.append((u.exc_type, str(u.exc_value)))
    )

    def fail():
        raise LookupError("lost")

    graph.callback(fail).memset(a, b"\6\0\0\0")
    with graph.instantiate() as step:
        step.launch(stream)
        assert numbers(a, stream) == 6
        step.launch(stream)
        assert numbers(a, stream) == 6
    assert reported == [(LookupError, "lost")] * 2


@pytest.mark.parametrize("exception", [SystemExit, KeyboardInterrupt, MemoryError])
def test_nothing_that_a_callback_raises_ends_anything(exception, graph, stream, monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", lambda u: reported.append(u.exc_type))

    def fail():
        raise exception

    graph.callback(fail)
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert reported == [exception]


def test_a_callback_that_closes_its_own_executable(graph, a, stream):
    box = {}
    graph.callback(lambda: box.pop("step").close()).memset(a, b"\3\0\0\0")
    box["step"] = graph.instantiate()
    box["step"].launch(stream)
    assert numbers(a, stream) == 3
    assert box == {}


def test_launches_behind_a_callback_that_waits(graph, a, stream, kernels):
    """More launches than a queue holds: they must release the GIL for the callback."""
    go_on = threading.Event()
    graph.callback(go_on.wait)
    with cu.Graph() as adds:
        adds.launch(CONFIG, kernels["add"], a, 1, N)
        waits, step = graph.instantiate(), adds.instantiate()
    stream.sync()
    waits.launch(stream)
    timer = threading.Timer(0.2, go_on.set)
    timer.start()
    for _ in range(1500):
        step.launch(stream)
    assert numbers(a, stream) == 1500
    timer.join()
    waits.close()
    step.close()


def test_a_capture_begins_while_a_queue_is_full(driver, script):
    """cuStreamBeginCapture waits for the stuck thread, that one for a callback and so the GIL."""
    run = script(
        """
        import threading, time, cudago as cu
        device = cu.Device()
        one = cu.LaunchConfig(grid=1, block=1)
        nothing = cu.Program('extern "C" __global__ void nothing() {}').compile()["nothing"]
        busy, other = device.create_stream(), device.create_stream()
        with cu.Graph(device) as graph:
            graph.launch(one, nothing)
            step = graph.instantiate()
        running, go_on = threading.Event(), threading.Event()
        with cu.Graph(device) as graph:
            graph.callback(lambda: (running.set(), go_on.wait()))
            waits = graph.instantiate()
        waits.launch(busy)
        running.wait()
        full = threading.Thread(target=lambda: [step.launch(busy) for _ in range(3000)])
        full.start()
        time.sleep(0.5)  # on NVIDIA's driver it is stuck by now
        threading.Timer(0.5, go_on.set).start()
        for _ in range(10):
            with other.capture() as captured:
                cu.launch(other, one, nothing)
            captured.close()
        full.join()
        busy.sync()
        """
    )
    assert run.returncode == 0, run.stderr


def test_callbacks_can_be_any_callable(graph, stream):
    class Counter:
        count = 0

        def __call__(self):
            self.count += 1

        def method(self):
            self.count += 10

    counter = Counter()
    graph.callback(counter).callback(counter.method)
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert counter.count == 11


def test_a_callback_can_look_a_kernel_up(driver, script):
    """In code that is loaded. Loading the kernel itself may wait for the device."""
    run = script(
        """
        import os, cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        source = "extern \\"C\\" __global__ void %s() {}"
        code = cu.Program((source % "one") + (source % "another")).compile()
        code["one"]
        os.write(2, b"CALLBACK\\n")
        graph = cu.Graph(device)
        graph.callback(lambda: code["another"])
        graph.instantiate().launch(stream)
        stream.sync()
        """,
        CUDAGO_TRACE="1",
    )
    before, after = run.stderr.split("CALLBACK\n")
    assert run.returncode == 0, run.stderr
    assert before.count("cuFuncLoad(") == 1
    assert "cuModuleGetFunction(" in after
    assert "cuFuncLoad(" not in after


@pytest.mark.parametrize("use", ["code['nothing']", "code.kernels"])
def test_a_callback_must_not_load_code(use, graph, stream):
    """NVIDIA's driver waits for the device there, which waits for the callback."""
    code = cu.Program('extern "C" __global__ void nothing() {}').compile()
    refused = []

    def callback():
        try:
            eval(use, {"code": code})
        except cu.CUDAError as e:
            refused.append(e)

    graph.callback(callback)
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
        eval(use, {"code": code})
        step.launch(stream)
        stream.sync()
    (error,) = refused
    assert error.name == "CUDA_ERROR_NOT_PERMITTED"
    assert "a host callback must not load code" in str(error)


WAITS = {
    "stream.sync()": "cuStreamSynchronize",
    "other.sync()": "cuStreamSynchronize",
    "event.sync()": "cuEventSynchronize",
    "device.sync()": "cuCtxSynchronize",
    "tensor.numpy(stream=stream)": "cuStreamSynchronize",
    "a.copy_to(host, stream=other)": "cuStreamSynchronize",
    "large.copy_from(large_host, stream=other)": "cuStreamSynchronize",
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_callback_must_not_wait_for_the_device(wait, graph, a, device, stream):
    """It would wait for itself, so it raises before anything happens. Queuing work is allowed."""
    host, large_host = np.full(N, 7, "i4"), np.zeros(2**16, "i4")
    refused = []
    with (
        device.create_stream() as other,
        stream.record() as event,
        device.allocate(large_host.nbytes, stream=stream) as large,
        cu.full((N,), 3, "i4", stream=stream) as tensor,
    ):
        names = {**locals()}

        def callback():
            try:
                eval(wait, names)
            except cu.CUDAError as e:
                refused.append(e)
            a.fill(5, stream=other)

        graph.callback(callback)
        with graph.instantiate() as step:
            step.launch(stream)
            stream.sync()
            step.launch(stream)
            stream.sync()
        assert numbers(a, other) == 0x05050505
        names.clear()
    for e in refused:
        assert (e.code, e.name) == (800, "CUDA_ERROR_NOT_PERMITTED")
        assert e.operation == WAITS[wait]
        assert "a host callback must not wait for the device" in str(e)
    assert len(refused) == 2
    assert set(host.tolist()) == {7}


TWO_DEVICES = """
import cudago as cu

PTX = '''
.version 7.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u32 %r1, [n];
    ld.global.u32 %r2, [%rd2];
    add.u32 %r3, %r2, %r1;
    st.global.u32 [%rd2], %r3;
    ret;
}
'''
code = cu.ObjectCode.from_ptx(PTX)
seen, parts = {}, []
for device in cu.Device.all():
    for step in (1, 100):
        stream = device.create_stream()
        value = device.allocate(4, stream=stream)
        value.fill(0, stream=stream)
        there = cu.PinnedMemoryResource().allocate(4)
        key, adds = (device.ordinal, step), step + device.ordinal
        kernel = code.get_kernel("add", device=device)
        graph = cu.Graph(device=device)
        node = graph.launch(cu.LaunchConfig(1, 1), kernel, value, adds).memcpy(there, value)
        seen[key] = []
        node.callback(lambda key=key, there=there: seen[key].append(
            int.from_bytes(memoryview(there), "little")))
        parts.append((key, adds, graph.instantiate(), stream))
for _ in range(25):
    for _, _, launch, stream in parts:
        launch.launch(stream)
for _, _, _, stream in parts:
    stream.sync()
for key, adds, _, _ in parts:
    assert seen[key] == [adds * (i + 1) for i in range(25)], (key, seen[key])
print(len(seen))
"""


def test_callbacks_of_two_devices_with_two_streams_each(script, driver):
    """Each sees what its own stream has made, in order."""
    if driver != "sim" and len(cu.Device.all()) < 2:
        pytest.skip("there is one device")
    run = script(TWO_DEVICES, CUDAGO_DRIVER=driver, CUDAGO_SIM="devices=2")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "4\n"


async def coroutine():
    pass


def generator():
    yield


class Asynchronous:
    async def __call__(self):
        pass


def wrapped(func):
    """Give a function an argument, as decorators do."""

    @functools.wraps(func)
    def wrapper():
        func(1)

    return wrapper


REFUSED = {
    "coroutine": (coroutine, "coroutine function, which nobody would await"),
    "partial": (functools.partial(coroutine), "coroutine function, which nobody would await"),
    "object": (Asynchronous(), "coroutine function, which nobody would await"),
    "generator": (generator, "generator function"),
    "needs": (lambda x: None, "without arguments: missing a required argument: 'x'"),
    "keyword": (lambda *, x: None, "without arguments: missing a required"),
    "method": ([].append, "without arguments: missing"),
    "number": (5, "callback must be callable, not int"),
    "ctypes": (ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda q: None), "its prototype has 1"),
}
ACCEPTED = {
    "defaults": lambda x=1: None,
    "many": lambda *args, **kwargs: None,
    "class": list,
    "partial": functools.partial(lambda x: None, 1),
    "wrapped": wrapped(lambda x: None),
    "ctypes": ctypes.CFUNCTYPE(None)(lambda: None),
    "method": [].clear,
    "builtin": print,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_called_is_refused_before_anything_is_added(name, graph, stream):
    func, why = REFUSED[name]
    node = graph.callback(print, name="good")
    step = graph.instantiate()
    for add in (graph.callback, node.callback, node.update, step["good"].update, stream.callback):
        with pytest.raises(TypeError, match=why):
            add(func)
    assert len(graph.nodes) == 1
    assert node.params.func is print


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_can_be_called_is_accepted(name, graph):
    graph.callback(ACCEPTED[name])
    assert len(graph.nodes) == 1


def test_the_arguments_of_a_stream_callback_count(stream):
    done = []
    stream.callback(done.append, 1)
    stream.callback(lambda x, y=2: done.append(x + y), 3)
    stream.sync()
    assert done == [1, 5]
    with pytest.raises(TypeError, match="callback must be callable with 2 arguments: too many"):
        stream.callback(done.append, 1, 2)


def test_a_graph_is_no_callback(graph):
    body = graph.if_then(graph.condition(1)).body
    with pytest.raises(TypeError, match="not a Graph: embed that"):
        graph.callback(body)


def test_arguments_of_a_callback(graph, stream):
    done = []
    node = graph.callback(done.append, 1, name="first").callback(done.append, 2, name="second")
    step = graph.instantiate()
    step.launch(stream)
    stream.sync()
    assert done == [1, 2]
    step["first"].update(done.append, 3)
    step["second"].update(lambda: done.append(4))
    step.launch(stream)
    stream.sync()
    assert done == [1, 2, 3, 4]
    node.update(func=done.clear)
    graph.instantiate().launch(stream)
    stream.sync()
    assert done == []


def test_the_arguments_of_a_callback_count(graph):
    node = graph.callback(print, 5)
    for add in (graph.callback, node.callback, node.update, graph.instantiate()[node.name].update):
        with pytest.raises(TypeError, match="callback must be callable with 2 arguments: too many"):
            add([].append, 1, 2)
    assert len(graph.nodes) == 1


def test_a_callback_with_arguments_looks_as_a_captured_one_does(graph, stream):
    with stream.capture() as captured:
        stream.callback(print, 5, "x")
    built = graph.callback(print, 5, "x")
    of = captured.nodes[0].params.func
    assert (of.func, of.args) == (print, (5, "x"))
    assert repr(built.params) == repr(captured.nodes[0].params)
    assert built.params.func.args == (5, "x")
