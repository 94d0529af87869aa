# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of a device that can be changed."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu

NAMES = [name for name in vars(cu.DeviceLimits) if not name.startswith("_")]


@pytest.fixture
def limits(device):
    """The limits of the device, put back after the test."""
    limits = device.limits
    before = limits.stack_size
    yield limits
    limits.stack_size = before


def test_each_is_read_or_unsupported(device):
    assert len(NAMES) == 7
    for name in NAMES:
        try:
            assert getattr(device.limits, name) >= 0
        except cu.UnsupportedError as e:
            assert name in str(e)


def test_what_kernels_have(device):
    assert device.limits.stack_size > 0
    assert device.limits.malloc_heap_size > 0
    assert device.limits.printf_fifo_size > 0


def test_a_limit_is_rounded_up(limits, device):
    limits.stack_size = 1999
    assert 1999 <= limits.stack_size < 4096
    assert device.limits.stack_size == limits.stack_size
    limits.stack_size = np.int64(4096)
    assert limits.stack_size == 4096


def test_limits_of_a_process_of_its_own(script):
    run = script(
        """
        import cudago as cu

        device = cu.Device()
        heap, fifo = device.limits.malloc_heap_size, device.limits.printf_fifo_size
        device.limits.malloc_heap_size = 2 * heap
        device.limits.printf_fifo_size = 2 * fifo
        assert device.limits.malloc_heap_size >= 2 * heap
        assert device.limits.printf_fifo_size >= 2 * fifo
        device.reset()
        assert device.limits.malloc_heap_size == heap
        assert device.limits.printf_fifo_size == fifo
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_while_a_stream_is_capturing(limits, stream):
    with stream.capture() as graph:
        limits.stack_size = 2048
        assert limits.stack_size == 2048
    assert len(graph.nodes) == 0
    graph.close()


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, ValueError),
        (1 << 63, ValueError),
        (1.5, TypeError),
        (True, TypeError),
        ("1", TypeError),
        (None, TypeError),
    ],
)
def test_what_is_refused(value, error, limits):
    before = limits.stack_size
    with pytest.raises(error, match="stack_size must be"):
        limits.stack_size = value
    assert limits.stack_size == before


def test_no_other_limit(limits):
    with pytest.raises(AttributeError):
        limits.stack = 1024
    with pytest.raises(AttributeError):
        del limits.stack_size
    assert repr(limits) == f"<DeviceLimits of device {limits._ordinal}>"


@pytest.mark.parametrize(("capability", "supported"), [("8.6", True), ("9.0", False)])
def test_the_simulated_driver_has_the_limits_of_its_profile(script, capability, supported):
    run = script(
        f"""
        import cudago as cu

        limits = cu.Device().limits
        try:
            limits.dev_runtime_sync_depth = 4
            assert {supported}
            assert limits.dev_runtime_sync_depth == 4
        except cu.UnsupportedError as e:
            assert not {supported}
            assert "dev_runtime_sync_depth" in str(e)
        limits.max_l2_fetch_granularity = 1 << 40
        assert limits.max_l2_fetch_granularity == 128
        limits.malloc_heap_size = (1 << 63) - 1
        assert limits.malloc_heap_size == cu.Device().total_memory
        limits.persisting_l2_cache_size = 1 << 20
        assert limits.persisting_l2_cache_size == 0
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM=f"cc={capability}",
    )
    assert (run.returncode, run.stderr) == (0, "")
