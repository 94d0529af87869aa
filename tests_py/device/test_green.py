# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a device's multiprocessors, and streams that use them."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import cudago as cu

ADD = """
extern "C" __global__ void add(int* x, int n) { atomicAdd(x, n); }
extern "C" __global__ void where(int* seen) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) seen[blockIdx.x] = sm;
    for (volatile int i = 0; i < 2000; i++) {}
}
"""


@pytest.fixture(scope="module")
def code():
    """Kernels that count, and that say where they run."""
    return cu.Program(ADD).compile()


@pytest.fixture
def parts(device):
    """Parts of the least size."""
    try:
        return device.split_sms(2)
    except cu.UnsupportedError as e:
        pytest.skip(f"the driver is too old: {e}")


@pytest.fixture
def green(device, parts):
    """A green context of one part."""
    with device.green_context(parts[0]) as made:
        yield made


@pytest.fixture
def own(green):
    """A stream of the green context."""
    with green.create_stream(name="own") as made:
        yield made


def test_parts(device, parts):
    assert device.sm_count == device.properties.multiprocessor_count
    *same, rest = device.split_sms(2, remainder=True)
    assert len(same) == len(parts)
    assert sum(p.sm_count for p in same) + rest.sm_count == device.sm_count
    assert {p.sm_count for p in parts} == {parts[0].sm_count}
    assert parts[0].sm_count >= 2
    assert parts[0].device is device
    assert repr(parts[0]) == f"<cudago.SMPartition: {parts[0].sm_count} SMs of device 0>"
    one, rest = device.split_sms(2, groups=1, remainder=True)
    assert one.sm_count + rest.sm_count == device.sm_count
    assert device.split_sms(np.int32(2), coscheduled=False)[0].sm_count >= 2


@pytest.mark.parametrize(
    ("args", "error", "match"),
    [
        ((0,), ValueError, "count must be 1 to .*, got 0"),
        ((-3,), ValueError, "count must be 1 to"),
        ((100_000,), ValueError, "count must be 1 to"),
        ((1 << 40,), ValueError, "count must fit 32 bits"),
        ((2.0,), TypeError, "float"),
        (("2",), TypeError, "str"),
        ((2, 0), ValueError, "groups must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_split(device, parts, args, error, match):
    with pytest.raises(error, match=match):
        device.split_sms(args[0], groups=args[1] if len(args) > 1 else None)


def test_work_runs(device, stream, code, green, own):
    assert green.sm_count >= 2
    assert green.device is device
    assert green.handle
    assert repr(green) == f"<cudago.GreenContext: {green.sm_count} SMs of device 0>"
    assert (own.name, own.device) == ("own", device)
    x = cu.zeros(1, "i4", stream=own)
    for _ in range(3):
        cu.launch(own, cu.LaunchConfig(2, 32), code["add"], x, 1)
    stream.wait(own)
    cu.launch(stream, cu.LaunchConfig(1, 1), code["add"], x, 1000)
    own.wait(stream)
    assert x.numpy(stream=own)[0] == 3 * 64 + 1000
    done = []
    own.callback(done.append, 1)
    own.sync()
    assert done == [1]


def test_kernels_stay_on_their_part(driver, device, code, parts):
    """On NVIDIA's devices; simulated ones have no multiprocessors to stay on."""
    if len(parts) < 2:
        pytest.skip("the device has one part")
    seen = []
    for part in parts[:2]:
        with device.green_context(part) as green, green.create_stream() as s:
            out = cu.zeros(4096, "i4", stream=s)
            cu.launch(s, cu.LaunchConfig(4096, 128), code["where"], out)
            seen.append(set(out.numpy(stream=s).tolist()))
    if driver == "nvidia":
        assert all(len(s) <= parts[0].sm_count for s in seen)
        assert not seen[0] & seen[1]


def test_a_green_context_of_several_parts(device, parts):
    if len(parts) < 3:
        pytest.skip("the device has too few parts")
    with device.green_context(parts[0], parts[2]) as green:
        assert green.sm_count == 2 * parts[0].sm_count


def test_wrong_parts(device, parts):
    with pytest.raises(ValueError, match="parts must be at least one"):
        device.green_context()
    with pytest.raises(ValueError, match="must be different parts"):
        device.green_context(parts[0], parts[0])
    with pytest.raises(TypeError, match="parts must be of split_sms, not int"):
        device.green_context(2)
    *_, rest = device.split_sms(2, remainder=True)
    if rest.sm_count == 0:
        with pytest.raises(ValueError, match="each with SMs"):
            device.green_context(rest)
    with pytest.raises(ValueError, match="parts must be of one call of split_sms"):
        device.green_context(parts[0], device.split_sms(2)[-1])
    if len(cu.Device.all()) > 1:
        (theirs, *_) = cu.Device(1).split_sms(2)
        with pytest.raises(ValueError, match="of device 0, got one of device 1"):
            device.green_context(theirs)


def test_streams_keep_it(device, stream, code, parts):
    green = device.green_context(parts[0])
    own = green.create_stream()
    green.close()
    green.close()
    assert green.is_closed
    assert repr(green) == "<cudago.GreenContext: closed>"
    with pytest.raises(cu.ClosedError, match="green context is closed"):
        green.create_stream()
    with pytest.raises(cu.ClosedError, match="green context is closed"):
        _ = green.handle
    del green
    gc.collect()
    x = cu.zeros(1, "i4", stream=own)
    cu.launch(own, cu.LaunchConfig(1, 32), code["add"], x, 2)
    assert x.numpy(stream=own)[0] == 64
    own.close()
    stream.sync()


def test_captured_graphs_keep_it(device, stream, code, parts):
    green = device.green_context(parts[0])
    own = green.create_stream()
    x = cu.zeros(1, "i4", stream=stream)
    stream.sync()
    with own.capture() as g:
        cu.launch(own, cu.LaunchConfig(1, 32), code["add"], x, 1)
    step = g.instantiate()
    own.close()
    green.close()
    g.close()
    del own, green, g
    gc.collect()
    for _ in range(2):
        step.launch(stream)
    assert x.numpy(stream=stream)[0] == 64
    if cu.driver_name() == "sim":
        with pytest.raises(ValueError, match="green contexts"):
            device.reset()
    step.close()


def test_a_fork_onto_it_is_kept_too(stream, code, device, parts):
    green = device.green_context(parts[0])
    own = green.create_stream()
    x = cu.zeros(1, "i4", stream=stream)
    stream.sync()
    with stream.capture() as g, g.fork(own):
        cu.launch(own, cu.LaunchConfig(1, 32), code["add"], x, 1)
    own.close()
    green.close()
    step = g.instantiate()
    step.launch(stream)
    assert x.numpy(stream=stream)[0] == 32


def test_a_graph_is_launched_on_its_stream(code, own):
    x = cu.zeros(1, "i4", stream=own)
    g = cu.Graph()
    g.launch(cu.LaunchConfig(1, 32), code["add"], x, 1)
    g.instantiate().launch(own)
    assert x.numpy(stream=own)[0] == 32


def test_memory_of_its_streams_outlives_them(device, stream, parts):
    with device.green_context(parts[0]) as green, green.create_stream() as own:
        x = device.allocate(64, stream=own)
        x.fill(7, stream=own)
        stream.wait(own)
    assert x.view("u1").numpy(stream=stream).tolist() == [7] * 64
    x.close()


def test_priorities(device, green):
    least, greatest = device.stream_priority_range
    with green.create_stream(priority=-1000) as s:
        assert s.priority == greatest
    with green.create_stream(priority=least) as s:
        assert s.priority == least
    for wrong, error in ((1 << 40, OverflowError), ("high", TypeError)):
        with pytest.raises(error, match=r"priority must be|integer"):
            green.create_stream(priority=wrong)


def test_closing_while_streams_are_made(device, parts):
    for _ in range(3):
        green = device.green_context(parts[0])
        made = []

        def make(green=green, made=made):
            try:
                while len(made) < 100:
                    made.append(green.create_stream())
            except cu.ClosedError:
                pass

        threads = [threading.Thread(target=make) for _ in range(2)]
        for t in threads:
            t.start()
        while len(made) < 3:
            pass
        green.close()
        for t in threads:
            t.join()
        for s in made:
            s.sync()
            s.close()


class Closing:
    """An int that closes what is about to be used."""

    def __init__(self, green):
        self.green = green

    def __index__(self):
        self.green.close()
        return 0


def test_closing_in_a_conversion(device, parts):
    green = device.green_context(parts[0])
    with pytest.raises(cu.ClosedError, match="green context is closed"):
        green.create_stream(priority=Closing(green))


def test_a_reset_waits_for_them_to_be_closed(driver, script):
    if driver != "sim":
        pytest.skip("other tests of the process use the context")
    run = script(
        """
        import cudago as cu
        device = cu.Device()
        green = device.green_context(device.split_sms(2)[0])
        with green.create_stream() as s:
            cu.zeros(4, stream=s)
            try:
                device.reset()
            except ValueError as e:
                print(e)
        s.close()
        green.close()
        for _ in range(100):
            try:
                device.reset()
                break
            except ValueError:
                __import__("time").sleep(0.05)
        with device.green_context(device.split_sms(2)[0]) as green, green.create_stream() as s:
            print(cu.zeros(2, stream=s).numpy(stream=s))
        """
    )
    said, values = run.stdout.splitlines()
    assert "cannot be reset while it has green contexts (1)" in said
    assert (values, run.returncode) == ("[0. 0.]", 0), run.stderr
