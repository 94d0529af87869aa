# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments that are refused are named in the error, with what was wanted and what came."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import cudago as cu
from cudago.testing import hold, settle

np = pytest.importorskip("numpy")

HUGE = 10**5000  # Python refuses to write it
DIGITS = "a number of thousands of digits"
SHAPE = "shape must be an int or a sequence of ints, got "
PAIR = r"__cuda_stream__ of .* must be a method that returns two ints, .* not "


class Told:
    """An object with a __cuda_stream__."""

    def __init__(self, told):
        self.told = told

    def __cuda_stream__(self):
        return self.told


class Constant:
    __cuda_stream__ = (0, 5)


class Interface:
    def __init__(self, *shape):
        data = {"typestr": "<f4", "data": (0, False), "version": 3}
        self.__cuda_array_interface__ = {"shape": shape, **data}


def _wait(**options) -> None:
    with cu.sim.create_semaphore() as made:
        made.wait(0, **options)


@pytest.fixture
def buffer(device, stream):
    with device.allocate(64, stream=stream) as made:
        made.fill(0, stream=stream)
        yield made


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda s: cu.empty(None, stream=s), TypeError, SHAPE + "None"),
        (lambda s: cu.empty("3", stream=s), TypeError, SHAPE + "'3'"),
        (lambda s: cu.zeros((3, "4"), stream=s), TypeError, SHAPE + r"\(3, '4'\)"),
        (lambda s: cu.full(1.5, 0, stream=s), TypeError, SHAPE + "1.5"),
        (lambda s: cu.zeros(3, stream=s, resource=5), TypeError, "resource must be a MemoryRes"),
        (lambda s: cu.zeros(3, stream=s, resource=s.device), TypeError, "not <class 'cudago.*Dev"),
        (lambda s: cu.Stream.from_handle(1.5), TypeError, "handle must be an int, not .*float"),
        (lambda s: cu.Stream.from_handle(-1), OverflowError, "handle must be a CUstream, got -1"),
        (lambda s: cu.asarray(Interface(0, 2**64), stream=s), ValueError, r"obj: .* \[0, 1844"),
        (lambda s: cu.asarray(Interface(0, 2**63), stream=s), ValueError, r"obj: .* \[0, 9223"),
        (lambda s: cu.asarray(Interface(2**61), stream=s), ValueError, r"obj: .* \[2305"),
        (lambda s: cu.asarray(Interface(0, HUGE), stream=s), ValueError, f"obj: .*{DIGITS}"),
        (lambda s: hold(5).__enter__(), TypeError, "stream must be a Stream"),
        (lambda s: cu.sim.check(5).__enter__(), TypeError, "names of checks must be str"),
        (lambda s: cu.ObjectCode.from_ptx(""), ValueError, "code must be ptx, .* not empty"),
        (lambda s: cu.ObjectCode.from_cubin(5), TypeError, "code must be cubin, .*, not .*int"),
        (lambda s: s.device.allocate(HUGE, stream=s), OverflowError, f"size .* got {DIGITS}"),
        (lambda s: s.device.allocate(1.5, stream=s), TypeError, "size in bytes must be an int"),
        (lambda s: s.device.allocate(True, stream=s), TypeError, "size in bytes must be an int, n"),
        (lambda s: s.device.create_stream(name=3), TypeError, "name must be a str, not int"),
        (lambda s: s.device.create_stream(name=b"s"), TypeError, "name must be a str, not bytes"),
        (lambda s: cu.LaunchConfig(True, 1), TypeError, "grid must be an int or a tuple of ints"),
        (lambda s: cu.LaunchConfig(1, (1, False)), TypeError, "block must be an int or a tuple of"),
        (lambda s: cu.LaunchConfig(1, 1, cooperative="yes"), TypeError, "cooperative must be a bo"),
        (lambda s: cu.LaunchConfig(1, 1, programmatic=None), TypeError, "programmatic must be a b"),
        (lambda s: cu.LaunchConfig(HUGE, 1), ValueError, f"grid must .* got {DIGITS}"),
        (lambda s: cu.LaunchConfig(1, (1, HUGE)), ValueError, f"block must .* got {DIGITS}"),
        (lambda s: cu.zeros(HUGE, stream=s), OverflowError, DIGITS),
        (lambda s: cu.zeros(-HUGE, stream=s), ValueError, f"cannot be negative, got {DIGITS}"),
        (lambda s: cu.full(3, HUGE, stream=s), OverflowError, DIGITS),
        (lambda s: cu.full(3, HUGE, "i4", stream=s), OverflowError, DIGITS),
        (lambda s: cu.Device(HUGE), ValueError, f"ordinal must .* got {DIGITS}"),
        (lambda s: cu.Stream(Told((HUGE, 1))), TypeError, f"version {DIGITS} of __cuda_stream__"),
        (lambda s: cu.Stream(Told((0, HUGE))), OverflowError, f"be a CUstream, got {DIGITS}"),
        (lambda s: cu.Stream(Told(HUGE)), TypeError, PAIR + DIGITS),
        (lambda s: s.device.split_sms(None), TypeError, "count must be an int, not NoneType"),
        (lambda s: s.device.split_sms(HUGE), ValueError, f"count must fit .* got {DIGITS}"),
        (lambda s: cu.Graph().condition(default=HUGE), OverflowError, f"default .* got {DIGITS}"),
        (lambda s: cu.Graph().to_svg(fold=-HUGE), ValueError, f"fold must .* got {DIGITS}"),
        (lambda s: cu.arange(None, stream=s), TypeError, "start must be a number, not None"),
        (lambda s: cu.sim.create_memory(HUGE), ValueError, f"size must .* got {DIGITS}"),
        (lambda s: settle("1"), TypeError, "timeout_s must be a number, not str"),
        (lambda s: settle(float("nan")), ValueError, "timeout_s must be a number, got nan"),
        (lambda s: _wait(timeout_s=float("nan")), ValueError, "timeout_s .* got nan"),
        (lambda s: _wait(timeout_s="1"), TypeError, "timeout_s must be a number, not str"),
        (lambda s: cu.debug.MemoryTimeline(interval_ms="1"), TypeError, "interval_ms .*, not str"),
        (lambda s: cu.debug.MemoryTimeline(interval_ms=HUGE), OverflowError, "interval_ms must"),
    ],
)
def test_it_is_named(call, error, match, stream):
    with pytest.raises(error, match=match):
        call(stream)


@pytest.mark.parametrize(
    ("told", "error", "match"),
    [
        (Told(5), TypeError, PAIR + "5"),
        (Told((0, 1, 2)), TypeError, PAIR + r"\(0, 1, 2\)"),
        (Told((0, "a")), TypeError, PAIR + r"\(0, 'a'\)"),
        (Told("01"), TypeError, PAIR + "'01'"),
        (Constant(), TypeError, PAIR + r"\(0, 5\)"),
        (Told((1, 2)), TypeError, "version 1 of __cuda_stream__ is not supported"),
        (Told((0, -1)), OverflowError, "handle that __cuda_stream__ .* must be a CUstream, got -1"),
        (Told((0, HUGE)), OverflowError, DIGITS),
    ],
)
def test_what_is_no_stream(told, error, match, buffer):
    with pytest.raises(error, match=match):
        buffer.fill(0, stream=told)


def test_numbers_of_buffers_and_pools(buffer, stream, device):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool:
        for keep, error, match in (
            (-1, ValueError, "keep in bytes must not be negative, got -1"),
            (1.5, TypeError, "keep in bytes must be an int, not .*float"),
            (HUGE, OverflowError, DIGITS),
        ):
            with pytest.raises(error, match=match):
                pool.trim(keep)
    with pytest.raises(OverflowError, match=f"must be -128 to 255, got {DIGITS}"):
        buffer.fill(HUGE, stream=stream)
    with pytest.raises(IndexError, match=f"cannot move by -{DIGITS}"):
        buffer.ptr - HUGE
    with pytest.raises(OverflowError, match=f"a dimension must be below .* got {DIGITS}"):
        buffer.view("u1", (HUGE,))


def test_a_pool_has_no_maximum_of_nothing(device):
    for most in (0, -1, HUGE):
        with pytest.raises(ValueError, match=r"max_size must be 1 to .*; None is no limit, got"):
            cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=most))
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(release_threshold=0)) as pool:
        assert (pool.options.release_threshold, pool.options.max_size) == (0, None)


def test_methods_of_graphs_are_named_as_they_are_called(device, buffer):
    with cu.Graph(device) as graph:
        graph.memset(buffer, 0)
        with pytest.raises(TypeError, match=r"^memset\(\) missing 1 required"):
            graph.memset(buffer)
        with pytest.raises(TypeError, match=r"^memset\(\) missing 1 required"):
            graph.nodes[0].memset(buffer)
        with pytest.raises(TypeError, match=r"^to_svg\(\) got an unexpected"):
            graph.to_svg(size=1)


def test_properties_of_a_device_cannot_be_set(device):
    count = device.properties.multiprocessor_count
    for name in ("multiprocessor_count", "warp_size", "anything"):
        with pytest.raises(AttributeError, match=f"'{name}' cannot be set"):
            setattr(device.properties, name, 1)
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del device.properties.multiprocessor_count
    assert device.properties.multiprocessor_count == count


def test_a_buffer_is_no_array_by_itself(buffer):
    try:
        memoryview(buffer)
    except BufferError:
        for convert in (np.asarray, np.array, lambda b: np.zeros(3) + b):
            with pytest.raises(TypeError, match="a cudago Buffer that the host cannot read"):
                convert(buffer)
    with cu.PinnedMemoryResource().allocate(8) as pinned:
        assert np.asarray(pinned).nbytes == 8


def test_what_is_closed_is_told_at_once(stream, device):
    tensor, closed = cu.zeros(3, stream=stream), device.allocate(4, stream=stream)
    tensor.close()
    closed.close()
    for call in (lambda: cu.asarray(tensor, stream=stream), lambda: cu.slot("a", tensor)):
        with pytest.raises(cu.ClosedError, match="tensor is closed"):
            call()
    with pytest.raises(cu.ClosedError, match="buffer is closed"):
        cu.slot("a", closed)


def test_a_resource_that_cannot_serve_a_device(device, stream):
    before = device.memory_resource
    pool = cu.DeviceMemoryResource(device, pool=cu.PoolOptions())
    tracking = cu.TrackingMemoryResource(before)
    pool.close()
    tracking.close()
    for closed in (pool, tracking):
        with pytest.raises(cu.ClosedError, match="memory resource is closed"):
            device.memory_resource = closed
    with pytest.raises(TypeError, match="memory_resource must be a MemoryResource"):
        device.memory_resource = device
    assert device.memory_resource is before
    device.allocate(4, stream=stream).close()
    with cu.PinnedMemoryResource() as pinned:
        try:
            device.memory_resource = pinned
            with device.allocate(4, stream=stream) as made:
                assert made.kind == "pinned"
        finally:
            device.memory_resource = before


def test_settle_looks_where_it_may_not_wait():
    settle()
    settle(0)


@pytest.mark.parametrize("endless", [float("inf"), 1e30])
def test_settle_may_wait_for_ever(endless, stream):
    with hold(stream) as held:
        stream.device.allocate(4, stream=stream).fill(0, stream=stream)
        held.set()
        settle(endless)


def test_a_resource_of_another_device(script):
    run = script(
        """
        import cudago as cu
        first, second = cu.Device(0), cu.Device(1)
        before = second.memory_resource
        for other in (first.memory_resource, cu.TrackingMemoryResource(first.memory_resource)):
            try:
                second.memory_resource = other
            except ValueError as e:
                print(e)
        assert second.memory_resource is before
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="devices=2",
    )
    assert run.stdout == "memory_resource must be of device 1, not of device 0\n" * 2, run.stderr


def test_bodies_of_a_switch_are_counted(device):
    graph = cu.Graph(device)
    for count, error, match in (
        (HUGE, ValueError, f"count must be .*, got {DIGITS}"),
        (0, ValueError, "count must be .*, got 0"),
        ("2", TypeError, "count must be an int, not str"),
    ):
        with pytest.raises(error, match=match):
            graph.switch(graph.condition(), count)


def test_every_number_is_named(script, driver):
    tests = Path(__file__).parents[1]
    path = os.pathsep.join((str(Path(cu.__file__).parents[1]), str(tests)))
    run = script.run([sys.executable, str(tests / "api/wrong_numbers.py")], PYTHONPATH=path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["unnamed"] == []
    assert found["calls"] > 1000
