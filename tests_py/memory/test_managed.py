# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Managed memory: advice and prefetches."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

import cudago as cu

PAGE = 1 << 16  # no smaller than the host's
ONE = cu.LaunchConfig(grid=1, block=64)


@pytest.fixture(autouse=True)
def _takes_advice(device: cu.Device) -> None:
    if not device.properties.concurrent_managed_access:
        pytest.skip("the device takes no advice about managed memory")


@pytest.fixture
def managed(device: cu.Device):
    with cu.ManagedMemoryResource(device) as resource, resource.allocate(4 * PAGE) as buffer:
        yield buffer


def test_no_advice_at_first(managed):
    assert managed.read_mostly is False
    assert managed.preferred_location is None
    assert managed.accessed_by == frozenset()
    assert managed.last_prefetch_location is None


def test_read_mostly(managed):
    managed.read_mostly = True
    assert managed.read_mostly is True
    managed.read_mostly = 0
    assert managed.read_mostly is False


def test_preferred_location(managed, device):
    for location in (device, "host", None, device):
        managed.preferred_location = location
        assert managed.preferred_location == location


def test_accessed_by(managed, device):
    for locations in ([device], ["host", device], {"host"}, iter([device]), ()):
        wanted = frozenset(locations) if not hasattr(locations, "__next__") else {device}
        managed.accessed_by = locations
        assert managed.accessed_by == wanted
        assert isinstance(managed.accessed_by, frozenset)


def test_accessed_by_changes_the_differences(managed, device, monkeypatch):
    calls = []
    change = cu._core.Buffer._advise
    watch = lambda self, *args: (calls.append(args), change(self, *args))[1]  # noqa: E731
    monkeypatch.setattr(cu.Buffer, "_advise", watch, raising=False)
    managed.accessed_by = {"host", device}
    managed.accessed_by = {"host", device}
    managed.accessed_by = {device}
    assert calls == [(5, -1), (5, device.ordinal), (6, -1)]


def test_advice_is_for_views_too(managed, device):
    view = managed[PAGE : 2 * PAGE]
    view.read_mostly = True
    view.preferred_location = "host"
    view.accessed_by = ["host"]
    assert (view.read_mostly, view.preferred_location, view.accessed_by) == (True, "host", {"host"})
    assert managed.read_mostly is False
    assert managed.preferred_location is None
    assert managed.accessed_by == frozenset()
    assert view[:1].read_mostly, "whole pages"
    assert not managed[:PAGE].read_mostly
    assert mmap.PAGESIZE <= PAGE


def test_prefetch(managed, device, stream, kernels):
    host = np.frombuffer(managed, "i4")
    host[:64] = np.arange(64)
    managed.prefetch(device, stream=stream)
    assert managed.last_prefetch_location == device
    cu.launch(stream, ONE, kernels["add"], managed, 100, 64)
    managed[:PAGE].prefetch("host", stream=stream)
    assert managed[:PAGE].last_prefetch_location == "host"
    assert managed[PAGE:].last_prefetch_location == device
    assert managed.last_prefetch_location is None
    stream.sync()
    assert list(host[:3]) == [100, 101, 102]
    del host


def test_advice_changes_no_result(managed, device, stream, kernels):
    managed.read_mostly = True
    managed.preferred_location = device
    managed.accessed_by = [device, "host"]
    managed.fill(0, stream=stream)
    cu.launch(stream, ONE, kernels["add"], managed, 7, 64)
    stream.sync()
    assert np.frombuffer(managed, "i4")[:65].sum() == 7 * 64


# --- mistakes -----------------------------------------------------------------------------------


def test_only_managed_memory(device, stream, pinned):
    text = "this buffer is {} memory: only managed memory, which a ManagedMemoryResource allocates"
    for buffer in (device.allocate(64, stream=stream), pinned):
        for call in (
            lambda b: b.read_mostly,
            lambda b: b.preferred_location,
            lambda b: b.accessed_by,
            lambda b: b.last_prefetch_location,
            lambda b: setattr(b, "read_mostly", True),
            lambda b: setattr(b, "preferred_location", device),
            lambda b: setattr(b, "accessed_by", ()),
            lambda b: b.prefetch(device, stream=stream),
        ):
            with pytest.raises(TypeError, match=text.format(buffer.kind)):
                call(buffer)


def test_locations(managed, device, stream):
    with pytest.raises(
        ValueError, match="preferred_location must be a Device, \"host\" or None, not 'cpu'"
    ):
        managed.preferred_location = "cpu"
    with pytest.raises(
        TypeError, match='preferred_location must be a Device, "host" or None, not int'
    ):
        managed.preferred_location = 0
    with pytest.raises(
        ValueError, match="a location in accessed_by must be a Device or \"host\", not 'gpu'"
    ):
        managed.accessed_by = [device, "gpu"]
    assert managed.accessed_by == frozenset(), "nothing has changed"
    with pytest.raises(TypeError, match="must be an iterable of locations, not 'host' alone"):
        managed.accessed_by = "host"
    with pytest.raises(TypeError, match='a Device or "host", not NoneType'):
        managed.prefetch(None, stream=stream)
    with pytest.raises(TypeError):
        managed.prefetch(device)
    with pytest.raises(AttributeError):
        managed.last_prefetch_location = device


def test_capture(managed, device, stream, kernels):
    with device.create_stream() as other, stream.capture() as graph:
        cu.launch(stream, ONE, kernels["nothing"])
        managed.read_mostly = True
        managed.prefetch(device, stream=other)
        with pytest.raises(ValueError, match="a prefetch cannot be part of a graph"):
            managed.prefetch(device, stream=stream)
        cu.launch(stream, ONE, kernels["nothing"])
    assert len(graph.nodes) == 2


def test_closed(device, stream):
    buffer = cu.ManagedMemoryResource(device).allocate(64)
    buffer.close()
    with pytest.raises(cu.ClosedError):
        buffer.read_mostly = True
    with pytest.raises(cu.ClosedError):
        _ = buffer.accessed_by
    with pytest.raises(cu.ClosedError):
        buffer.prefetch(device, stream=stream)


def test_no_bytes(device, stream):
    with cu.ManagedMemoryResource(device).allocate(0) as buffer:
        buffer.read_mostly = True
        buffer.prefetch(device, stream=stream)
        assert (buffer.read_mostly, buffer.preferred_location) == (False, None)
