# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Devices."""

from __future__ import annotations

import copy
import pickle
import sys
import threading

import pytest

import cudago as cu


def test_there_is_one_object_per_device(device):
    assert cu.Device() is device
    assert cu.Device(0) is device
    assert cu.Device.all()[0] is device
    assert len(cu.Device.all()) >= 1


def test_facts(device):
    assert device.ordinal == 0
    assert device.name
    major, minor = device.compute_capability
    assert (major, minor) >= (5, 0)
    assert device.properties.compute_capability_major == major
    assert device.total_memory > 1 << 28
    assert 0 < device.free_memory <= device.total_memory
    assert device.properties.multiprocessor_count >= 1
    assert device.properties.max_threads_per_block == 1024
    assert device.properties.warp_size == 32
    assert len(device.uuid) > 16
    assert device.pci_bus_id.count(":") == 2


def test_properties_are_listed_and_unknown_ones_refused(device):
    names = dir(device.properties)
    assert "multiprocessor_count" in names
    assert "pageable_memory_access" in names
    assert isinstance(device.properties.max_threads_per_block, int)
    for name in names:  # a driver older than an attribute does not know it
        try:
            assert isinstance(getattr(device.properties, name), int)
        except cu.UnsupportedError as e:
            assert name in str(e)
    with pytest.raises(AttributeError, match="no property 'flops'"):
        _ = device.properties.flops


def test_a_property_with_two_names(device):
    properties = device.properties
    both = "virtual_memory_management_supported", "virtual_address_management_supported"
    assert set(both) <= set(dir(properties))
    assert getattr(properties, both[0]) == getattr(properties, both[1])


def test_identity_survives_copies(device):
    assert copy.copy(device) is device
    assert pickle.loads(pickle.dumps(device)) is device
    assert device == cu.Device(0)
    assert hash(device) == hash(cu.Device(0))
    assert device != 0
    assert repr(device) == f"<cudago.Device 0: {device.name}>"


def test_a_device_that_is_not_there(device):
    count = len(cu.Device.all())
    with pytest.raises(ValueError, match=str(count)):
        cu.Device(count)
    with pytest.raises(ValueError, match="-1"):
        cu.Device(-1)
    for number in (1 << 31, 1 << 32, 1 << 40, 1 << 70, -(1 << 70)):
        with pytest.raises(ValueError, match=f"got {number}"):
            cu.Device(number)
    for bad in ("0", 1.0, True):
        with pytest.raises(TypeError, match=f"must be an int, not {type(bad).__name__}"):
            cu.Device(bad)


@pytest.mark.parametrize("name", ["default_stream", "per_thread_default_stream"])
def test_two_threads_get_the_same_default_stream(device, name):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            getattr(device, name).close()
            both, found = threading.Barrier(2), []

            def ask(both=both, found=found) -> None:
                both.wait()
                found.append(getattr(device, name))

            threads = [threading.Thread(target=ask) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert found[0] is found[1]
    finally:
        sys.setswitchinterval(interval)


def test_default_stream_is_one(device):
    assert device.default_stream is device.default_stream
    assert device.default_stream.device is device
    device.default_stream.sync()
    with device.default_stream as closed:
        pass
    assert closed.is_closed
    device.default_stream.sync()
    assert device.default_stream is device.default_stream


def test_sync_waits_for_every_stream(device):
    with device.create_stream() as a, device.create_stream() as b:
        out = [bytearray(8), bytearray(8)]
        for s, host in zip((a, b), out, strict=True):
            with device.allocate(8, stream=s) as buffer:
                buffer.fill(7, stream=s)
                buffer.copy_to(host, stream=s)
        device.sync()
        assert out == [bytearray([7] * 8)] * 2


def test_allocate_takes_the_device_of_its_stream(device, stream):
    with device.allocate(64, stream=stream) as buffer:
        assert buffer.device is device
        assert buffer.size == 64


def test_the_simulated_device_has_the_chosen_profile(script):
    run = script(
        """
        import cudago as cu
        assert len(cu.Device.all()) == 2
        d = cu.Device(1)
        assert d.compute_capability == (8, 6), d.compute_capability
        assert d.total_memory == 3 << 30, d.total_memory
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="devices=2,cc=8.6,memory=3GiB",
    )
    assert (run.returncode, run.stderr) == (0, "")


TWO_DEVICES = """
import re
import cudago as cu

def refused(call, *words):
    try:
        call()
    except ValueError as e:
        assert all(w in str(e) for w in words), e
    else:
        raise AssertionError(f"{words} was not refused")

a, b = cu.Device.all()
assert a != b and hash(a) != hash(b) and b.ordinal == 1
sa, sb = a.create_stream(), b.create_stream()
assert (sa.device, sb.device) == (a, b)
on_a, on_b = a.allocate(64, stream=sa), b.allocate(64, stream=sb)
assert (on_a.device, on_b.device) == (a, b)
source = '''extern "C" __global__ void add(int* p, int n) { p[threadIdx.x] += n; }'''
add, config = cu.Program(source).compile()["add"], cu.LaunchConfig(1, 16)

# One kernel object runs on both, each stream on its own device.
for stream, buffer, value in ((sa, on_a, 1), (sb, on_b, 2)):
    out = bytearray(64)
    buffer.fill(0, stream=stream)
    cu.launch(stream, config, add, buffer, value)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    assert out == value.to_bytes(4, "little") * 16

with cu.Graph(b) as graph:
    assert graph.device is b
    graph.launch(config, add, on_b, 1)
    refused(lambda: graph.launch(config, add, on_a, 1), "device 0", "device 1")
    refused(lambda: graph.memset(on_a, 0), "dst is on device 0, the graph on device 1")
    step = graph.instantiate()
    refused(lambda: step.launch(sa), "the graph is on device 1, the stream on device 0")
    step.launch(sb)
    sb.sync()

refused(lambda: cu.launch(sa, config, add, on_b, 1), "parameter 0", "device 1", "device 0")
refused(lambda: a.allocate(8, stream=sb), "the memory is on device 0, the stream on device 1")
event = sb.record()
sa.wait(event)
refused(lambda: sa.record(event), "device")
a.sync()
b.sync()
"""


def test_two_devices(script):
    run = script(TWO_DEVICES, CUDAGO_DRIVER="sim", CUDAGO_SIM="devices=2")
    assert run.stderr == ""
    assert run.returncode == 0
