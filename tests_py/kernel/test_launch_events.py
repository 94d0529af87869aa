# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Events that a launch records, for what need not wait for the kernel's end.

Programmatic events need compute capability 9.0, which the simulated device of a run of all tests
lacks: so this file is run once more, in a process whose device has it.
"""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import cudago as cu
from cudago.testing import hold, settle

np = pytest.importorskip("numpy")

N = 64
KINDS = ["launch_completion_event", "programmatic_event"]
# What edges wait for that are captured behind such events.
DATA = {
    ("launch_completion_event", False): "launch_completion",
    ("programmatic_event", False): "programmatic",
    ("programmatic_event", True): "launch_order",
}


def config(kind: str, event: cu.Event, **more: object) -> cu.LaunchConfig:
    return cu.LaunchConfig(1, N, **{kind: event}, **more)


def simulated(device: cu.Device) -> str:
    """Return what a script's simulated device has to be like."""
    return "cc={}.{}".format(*device.compute_capability)


def is_early(device: cu.Device) -> bool:
    return device.compute_capability >= (9, 0)


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_on_a_later_device(driver, device):
    """Runs the other tests of this file, if the device of this process is too old for some."""
    if is_early(device):
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
    assert " passed" in run.stdout


@pytest.fixture(params=KINDS)
def kind(request, device):
    """The parameter of LaunchConfig that has the event."""
    if request.param == "programmatic_event" and not is_early(device):
        pytest.skip("the device has no programmatic launches: see test_on_a_later_device")
    return request.param


@pytest.fixture
def event(device):
    with device.create_event() as event:
        yield event


@pytest.fixture
def other(device):
    with device.create_stream() as other:
        yield other
        other.sync()


@pytest.fixture
def x(stream):
    with cu.zeros((N,), "i4", stream=stream) as x:
        stream.sync()
        yield x


def first(x, stream) -> int:
    return int(x.numpy(stream=stream)[0])


# --- configurations -------------------------------------------------------------------------------


def test_a_configuration_says_so(device, event):
    with device.create_event() as begun:
        both = cu.LaunchConfig(
            1,
            N,
            programmatic_event=event,
            trigger_at_block_start=True,
            launch_completion_event=begun,
        )
        assert both.programmatic_event is event
        assert both.launch_completion_event is begun
        assert both.trigger_at_block_start
        assert repr(both) == (
            f"LaunchConfig(grid=(1, 1, 1), block=({N}, 1, 1), programmatic_event={event!r}, "
            f"trigger_at_block_start=True, launch_completion_event={begun!r})"
        )
        one, same = (cu.LaunchConfig(1, N, launch_completion_event=event) for _ in range(2))
        assert one == same
        assert hash(one) == hash(same)
        assert len({one, both, cu.LaunchConfig(1, N), config("programmatic_event", event)}) == 4
        for make in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError, match="an event, which is of this process"):
                make(one)
    plain = cu.LaunchConfig(1, N)
    assert plain.programmatic_event is plain.launch_completion_event is None
    assert not plain.trigger_at_block_start
    assert pickle.loads(pickle.dumps(plain)) == plain


@pytest.mark.parametrize("name", KINDS)
def test_wrong_events(name, device, event):
    timed = device.create_event(timing_enabled=True)
    with timed, pytest.raises(ValueError, match=f"{name} must be an event without timing_enabled"):
        config(name, timed)
    try:
        shared = device.create_event(ipc_enabled=True)
    except cu.UnsupportedError:
        shared = None
    if shared:
        with shared, pytest.raises(ValueError, match=f"{name} must not be an event that proc"):
            config(name, shared)
    for wrong in (0, "event", event.handle, cu.Event):
        with pytest.raises(TypeError, match=f"{name} must be an? Event, not "):
            config(name, wrong)
    with pytest.raises(ValueError, match="must be two events"):
        cu.LaunchConfig(1, N, programmatic_event=event, launch_completion_event=event)
    with pytest.raises(ValueError, match="needs a programmatic_event"):
        cu.LaunchConfig(1, N, launch_completion_event=event, trigger_at_block_start=True)


def test_a_configuration_keeps_its_event(device, kernels, stream, x, kind):
    made = config(kind, device.create_event())
    settle()
    cu.launch(stream, made, kernels["add"], x, 1, N)
    getattr(made, kind).sync()
    assert first(x, stream) == 1


# --- launches -------------------------------------------------------------------------------------


def test_another_stream_waits_for_it(kernels, stream, other, x, kind, event):
    made = config(kind, event)
    with cu.zeros((N,), "i4", stream=other) as y:
        for i in range(1, 4):
            with hold(stream):
                cu.launch(stream, made, kernels["add"], x, 1, N)
                assert not event.is_done
                other.wait(event)
                cu.launch(other, cu.LaunchConfig(1, N), kernels["add"], y, 1, N)
            event.sync()
            assert event.is_done
            assert (first(x, stream), first(y, other)) == (i, i)


def test_both_events_of_a_launch(device, kernels, stream, x, event):
    if not is_early(device):
        pytest.skip("the device has no programmatic launches: see test_on_a_later_device")
    with device.create_event() as begun:
        made = cu.LaunchConfig(
            1,
            N,
            programmatic=True,
            priority=0,
            programmatic_event=event,
            trigger_at_block_start=True,
            launch_completion_event=begun,
        )
        with hold(stream):
            cu.launch(stream, made, kernels["add"], x, 1, N)
            assert (event.is_done, begun.is_done) == (False, False)
        event.sync()
        begun.sync()
    assert first(x, stream) == 1


def test_every_way_to_launch_records_it(kernels, stream, x, kind, event):
    made = config(kind, event)
    foreign = cu.Stream.from_handle(stream.handle, device=stream.device, owner=stream)
    add = kernels["add"]
    for i, launch in enumerate(
        (
            lambda: cu.launch(foreign, made, add, x, 1, N),
            lambda: add[made, stream](x, 1, N),
            lambda: cu.launch(stream, made, add, x, np.int32(1), N),
        )
    ):
        with hold(stream):
            launch()
            assert not event.is_done
        event.sync()
        assert first(x, stream) == i + 1
    foreign.close()


def test_a_launch_without_the_gil(device, kernels, stream, x, kind, event):
    """While callbacks are alive."""
    with cu.Graph(device) as graph:
        graph.callback(lambda: None)
        step = graph.instantiate()
    with step, hold(stream):
        cu.launch(stream, config(kind, event), kernels["add"], x, 1, N)
        assert not event.is_done
    event.sync()
    assert first(x, stream) == 1


def test_a_closed_event(kernels, stream, x, kind, event):
    made = config(kind, event)
    event.close()
    for _ in range(2):
        with pytest.raises(cu.ClosedError, match="event is closed"):
            cu.launch(stream, made, kernels["add"], x, 1, N)
    with pytest.raises(cu.ClosedError, match="event is closed"), stream.capture() as graph:
        cu.launch(stream, made, kernels["add"], x, 1, N)
    assert graph.is_closed
    assert first(x, stream) == 0


def test_an_argument_that_closes_the_event(kernels, stream, x, kind, event):
    class Closes:
        def __index__(self) -> int:
            event.close()
            return 1

    with pytest.raises(cu.ClosedError, match="event is closed"):
        cu.launch(stream, config(kind, event), kernels["add"], x, Closes(), N)
    assert first(x, stream) == 0


@pytest.mark.parametrize(
    ("on", "way"),
    [
        ("stream", "event.close()"),
        ("exposed", "del event, made"),
        ("foreign", "del made; event.close()"),
    ],
)
def test_the_event_stays_until_the_launch_has_ended(on, way, device, script, kind):
    run = script(
        f"""
        import gc, os, time
        import cudago as cu
        from cudago.testing import settle
        device = cu.Device()
        stream = device.create_stream()
        if {on!r} != "stream":
            handle = stream.handle
        s = stream
        if {on!r} == "foreign":
            s = cu.Stream.from_handle(handle, device=device, owner=stream)
        nothing = cu.Program('extern "C" __global__ void nothing() {{}}').compile()["nothing"]
        event = device.create_event()
        print(f"{{event.handle:#x}}")
        made = cu.LaunchConfig(1, 1, {kind}=event)
        gate = cu.PinnedMemoryResource().allocate(4)
        memoryview(gate)[:] = bytes(4)
        s.wait_value(gate, 1)  # and no callback, while there is one nothing is destroyed
        cu.launch(s, made, nothing)
        {way}
        gc.collect()
        cu.live_objects()  # drops what is waiting to be dropped
        time.sleep(0.2)
        os.write(2, b"held\\n")
        memoryview(gate)[0] = 1
        made = event = None
        for _ in range(30):
            s.sync()
            cu.launch(s, cu.LaunchConfig(1, 1), nothing)
            settle()
            time.sleep(0.005)
        """,
        CUDAGO_TRACE="1",
        **({} if cu.driver_name() == "nvidia" else {"CUDAGO_SIM": simulated(device)}),
    )
    assert run.returncode == 0, run.stderr[-2000:]
    destroyed = rf"cuEventDestroy\((e=)?{run.stdout.strip()}\)"
    before, after = run.stderr.split("held\n")
    assert not re.search(destroyed, before)
    assert re.search(destroyed, after)


def test_a_failed_launch_lets_go_of_it(kernels, stream, x, kind, device):
    settle()
    before = cu.live_objects()
    for _ in range(3):
        made = cu.LaunchConfig(1, N, shared_memory=1 << 30, **{kind: device.create_event()})
        with pytest.raises(ValueError, match="shared_memory"):
            cu.launch(stream, made, kernels["add"], x, 1, N)
        with pytest.raises(TypeError):
            cu.launch(stream, config(kind, made.launch_completion_event or made.programmatic_event),
                      kernels["add"], x, "one", N)  # fmt: skip
    del made
    settle()
    assert cu.live_objects() == before
    assert first(x, stream) == 0


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_launch_that_the_driver_refuses(driver, script, device, kind):
    run = script(
        f"""
        import cudago as cu
        from cudago import _core
        device = cu.Device()
        stream = device.create_stream()
        code = cu.Program('extern "C" __global__ void nothing() {{}}').compile()
        nothing = code["nothing"]
        cu.launch(stream, cu.LaunchConfig(1, 1), nothing)
        event = device.create_event()
        made = cu.LaunchConfig(1, 1, {kind}=event)
        for _ in range(2):
            _core._fail_next("cuLaunchKernelEx", 1, 999)
            try:
                cu.launch(stream, made, nothing)
            except cu.CUDAError as e:
                print(e.code, event.is_done)
            event.close()
            event = device.create_event()
            made = cu.LaunchConfig(1, 1, {kind}=event)
        _core._fail_next("cuLaunchKernelEx", 1, 999)
        try:
            with stream.capture():
                cu.launch(stream, made, nothing)
        except cu.CUDAError as e:
            print(e.code, event.is_done)
        event.close()
        del made
        cu.testing.settle()
        print(cu.live_objects().get("Event", 0))
        """,
        CUDAGO_SIM=f"faults=0,{simulated(device)}",
    )
    assert (run.stdout, run.stderr) == ("999 True\n" * 3 + "0\n", "")


def test_an_old_device_says_what_is_missing(device, kernels, stream, x, event):
    if is_early(device):
        pytest.skip("the device has programmatic launches")
    made = config("programmatic_event", event)
    with pytest.raises(cu.UnsupportedError, match="needs compute capability 9"):
        cu.launch(stream, made, kernels["add"], x, 1, N)
    assert first(x, stream) == 0


def test_an_event_of_another_device(driver, script, device, kind):
    if driver == "nvidia" and len(cu.Device.all()) < 2:
        pytest.skip("there is one device")
    run = script(
        f"""
        import cudago as cu
        device, other = cu.Device.all()[:2]
        nothing = cu.Program('extern "C" __global__ void nothing() {{}}').compile()["nothing"]
        stream, event = device.create_stream(), other.create_event()
        for begin in (lambda: None, stream.capture().__enter__):
            begin()
            try:
                cu.launch(stream, cu.LaunchConfig(1, 1, {kind}=event), nothing)
            except ValueError as e:
                print(e)
        """,
        CUDAGO_SIM=f"devices=2,{simulated(device)}",
    )
    assert run.stdout == f"{kind} belongs to device 1, the stream to device 0\n" * 2
    assert run.stderr == ""


def test_threads_that_launch_with_one_event(device, kernels, kind, event):
    made = config(kind, event)

    def work() -> None:
        with device.create_stream() as s, cu.zeros((N,), "i4", stream=s) as y:
            for _ in range(50):
                cu.launch(s, made, kernels["add"], y, 1, N)
                s.wait(event)
            assert first(y, s) == 50

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    event.sync()


# --- captures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_start", [False, True])
def test_a_capture_makes_an_edge(at_start, device, kernels, stream, other, x, kind, event):
    if at_start and kind != "programmatic_event":
        pytest.skip("nothing is triggered")
    made = config(kind, event, trigger_at_block_start=at_start)
    plain = cu.LaunchConfig(1, N)
    with cu.zeros((N,), "i4", stream=stream) as y:
        with stream.capture() as graph:
            cu.launch(stream, made, kernels["add"], x, 1, N)
            other.wait(event)
            cu.launch(other, plain, kernels["add"], y, 2, N)
            stream.wait(other.record())
        one, two = graph.nodes
        assert graph.edge_data == {(one, two): DATA[kind, at_start]}
        assert one.params.config == plain, "the node records nothing"
        with pytest.raises(ValueError, match="recorded in a capture"):
            event.is_done  # noqa: B018
        event.close()  # the graph does not use it
        with graph, graph.clone() as clone, clone.instantiate() as step:
            assert set(clone.edge_data.values()) == {DATA[kind, at_start]}
            step.launch(stream)
            step.launch(stream)
            assert (first(x, stream), first(y, stream)) == (2, 4)
            assert not graph.diff(clone)


def test_a_fill_waits_for_all(kernels, stream, other, x, kind, event, tmp_path):
    """It does in a file. What is captured waits for what the event says, on a device that can."""
    with stream.capture() as graph:
        cu.launch(stream, config(kind, event), kernels["add"], x, 1, N)
        other.wait(event)
        x.fill(7, stream=other)
        stream.wait(other.record())
    assert len(graph.edges) == 1
    if kind == "programmatic_event":
        assert list(graph.edge_data.values()) == ["programmatic"]
    graph.save(tmp_path / "fill.cudago")
    with cu.Graph.load(tmp_path / "fill.cudago") as loaded:
        assert (len(loaded.edges), loaded.edge_data) == (1, {}), "the end is always enough"
        with loaded.instantiate() as step:
            step.launch(stream)
            stream.sync()
    with graph, graph.clone() as clone, clone.instantiate() as step:
        step.launch(stream)
        # Once its blocks have begun the kernel may still write what it has read before the fill.
        assert first(x, stream) in ((7,) if kind == "programmatic_event" else (7, 8))


def test_a_wait_for_more_counts(device, kernels, stream, other, x, kind, event):
    """Two waits for one kernel: the one for its end takes longer."""
    for order in (1, -1):
        with device.create_event() as whole, stream.capture() as graph:
            cu.launch(stream, config(kind, event), kernels["add"], x, 1, N)
            stream.record(whole)
            for e in (event, whole)[::order]:
                other.wait(e)
            cu.launch(other, cu.LaunchConfig(1, N), kernels["add"], x, 1, N)
            stream.wait(other.record())
        assert (graph.edge_data, len(graph.edges)) == ({}, 1)
        graph.close()


def test_a_fork_that_it_joins(kernels, stream, other, x, kind, event):
    """As driver 580 has it: that a kernel triggers joins its stream, that it begins does not."""
    refused = pytest.raises(cu.CUDAError, match=r"(?i)unjoined")
    joins = kind == "programmatic_event"
    with contextlib.nullcontext() if joins else refused, stream.capture() as graph:
        cu.launch(stream, cu.LaunchConfig(1, N), kernels["add"], x, 1, N)
        other.wait(stream.record())
        cu.launch(other, config(kind, event), kernels["add"], x, 1, N)
        stream.wait(event)
        cu.launch(stream, cu.LaunchConfig(1, N), kernels["add"], x, 1, N)
    assert graph.is_closed != joins
    if joins:
        graph.close()


def test_it_is_recorded_again_after_the_capture(kernels, stream, x, kind, event):
    made = config(kind, event)
    with stream.capture() as graph:
        cu.launch(stream, made, kernels["add"], x, 1, N)
    graph.close()
    cu.launch(stream, made, kernels["add"], x, 1, N)
    event.sync()
    assert event.is_done
    assert first(x, stream) == 1


def test_an_event_that_is_closed_in_the_capture(device, kernels, stream, other, x, kind):
    settle()
    before = cu.live_objects().get("Event", 0)
    with stream.capture() as graph:
        event = device.create_event()
        cu.launch(stream, config(kind, event), kernels["add"], x, 1, N)
        event.close()
        settle()
    with graph, graph.instantiate() as step:
        step.launch(stream)
        assert first(x, stream) == 1
    settle()
    assert cu.live_objects().get("Event", 0) == before


def test_a_function_is_captured_with_it(kernels, stream, other, x, kind, event):
    made = config(kind, event)

    @cu.graph
    def twice(s, y):
        cu.launch(s, made, kernels["add"], y, 1, N)
        other.wait(event)
        cu.launch(other, cu.LaunchConfig(1, N), kernels["nothing"])
        s.wait(other.record())

    for _ in range(3):
        twice(stream, x)
    (graph,) = twice.graphs
    assert list(graph.edge_data.values()) == [DATA[kind, False]]
    assert first(x, stream) == 3
    twice.clear()


def test_files_keep_the_edge(kernels, stream, other, x, kind, event, tmp_path):
    with stream.capture() as graph:
        cu.launch(stream, config(kind, event), kernels["add"], x, 1, N)
        other.wait(event)
        cu.launch(other, cu.LaunchConfig(1, N), kernels["add"], x, 2, N)
        stream.wait(other.record())
    with graph:
        graph.save(tmp_path / "early.cudago")
    with cu.Graph.load(tmp_path / "early.cudago") as loaded:
        assert list(loaded.edge_data.values()) == [DATA[kind, False]]


# --- graphs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_nodes_record_nothing(name, device, kernels, stream, x, event):
    """The driver has the attribute for launches alone; edges say the same."""
    made = config(name, event)
    add, plain = kernels["add"], cu.LaunchConfig(1, N)
    with cu.Graph(device) as graph:
        one = graph.launch(plain, add, x, 1, N, name="one")
        with graph.instantiate() as step, add.bind(plain, x, 1, N) as bound:
            for use in (
                lambda: graph.launch(made, add, x, 1, N),
                lambda: one.launch(made, add, x, 1, N),
                lambda: one.update(made, add, x, 1, N),
                lambda: step["one"].update(made, add, x, 1, N),
                lambda: add.bind(made, x, 1, N),
                lambda: bound.update(made),
            ):
                with pytest.raises(ValueError, match=f"config must not have a {name}: a kernel "):
                    use()
            step.launch(stream)
        assert len(graph.nodes) == 1
    assert first(x, stream) == 1


def test_an_edge_of_launch_completion(graph, device, kernels, stream, x):
    plain = cu.LaunchConfig(1, N)
    one, two = (graph.launch(plain, kernels["add"], x, 1, N, name=name) for name in ("one", "two"))
    graph.add_edge(one, two, programmatic="launch_completion")
    assert graph.edge_data == {(one, two): "launch_completion"}
    fill = graph.memset(x, 0, name="fill")
    with pytest.raises(ValueError, match="must be between two kernels to be programmatic"):
        graph.add_edge(one, fill, programmatic="launch_completion")
    graph.add_edge(fill, one)
    assert "launch_completion" in graph.to_dot()
    with graph.clone() as clone, clone.instantiate() as step:
        assert list(clone.edge_data.values()) == ["launch_completion"]
        step.launch(stream)
    assert first(x, stream) == 2
    graph.remove_edge(one, two)
    assert graph.edge_data == {}


@pytest.fixture
def graph(device):
    with cu.Graph(device) as graph:
        yield graph
