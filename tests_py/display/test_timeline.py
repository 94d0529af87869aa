# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory in use: the summary as a card, and over time."""

from __future__ import annotations

import pickle
import threading
import time

import pytest

import cudago as cu
from cudago._memory import timeline as module

from .card import card

PINNED = "pinned memory"


@pytest.fixture
def pool(device):
    """An empty pool."""
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions()) as pool:
        yield pool


def test_samples_are_what_is_in_use(pool, stream):
    with cu.debug.MemoryTimeline(interval_ms=None) as timeline:
        with pool.allocate(1 << 20, stream=stream):
            timeline.sample()
        stream.sync()
    first, middle, last = timeline.samples
    (name,) = [n for n in middle.live if middle.live[n] - first.live[n] == 1 << 20]
    assert name.startswith("device 0: pool ")
    assert first.live[name] == last.live[name] == 0
    assert first.at_ms == 0 < middle.at_ms <= last.at_ms
    assert timeline.peaks[name] == 1 << 20


def test_a_peak_between_samples_is_seen(pool, stream):
    with cu.debug.MemoryTimeline(interval_ms=None) as timeline:
        pool.allocate(3 << 20, stream=stream).close()
        stream.sync()
    assert all(3 << 20 not in s.live.values() for s in timeline.samples)
    assert 3 << 20 in timeline.peaks.values()


def test_a_thread_takes_samples(driver):
    with cu.debug.MemoryTimeline(interval_ms=0.1) as timeline:
        while len(timeline.samples) < 5:
            time.sleep(0.001)
    taken = len(timeline.samples)
    assert not [t for t in threading.enumerate() if t.name == "cudago-timeline"]
    assert len(timeline.samples) == taken


def test_many_samples_become_coarser(driver, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 10)
    with cu.debug.MemoryTimeline(interval_ms=None) as timeline:
        for _ in range(100):
            timeline.sample()
    times = [s.at_ms for s in timeline.samples]
    assert len(times) <= 10
    assert times == sorted(times) and times[0] == 0


@pytest.mark.parametrize("interval", [0, -1, float("nan"), float("inf")])
def test_odd_intervals(interval):
    with pytest.raises(ValueError, match="interval_ms must be more than 0"):
        cu.debug.MemoryTimeline(interval_ms=interval)


def test_an_interval_of_ages(driver):
    """Longer than a thread can wait at once."""
    with cu.debug.MemoryTimeline(interval_ms=1e14) as timeline:
        assert timeline._thread is not None and timeline._thread.is_alive()
    assert len(timeline.samples) == 2


def test_a_handler_of_a_signal_reads_it(driver):
    """Amid a sample too."""
    timeline = cu.debug.MemoryTimeline(interval_ms=None)
    with timeline, timeline._lock:
        assert len(timeline.samples) == 1


def test_it_is_of_one_block(driver):
    timeline = cu.debug.MemoryTimeline(interval_ms=None)
    with pytest.raises(RuntimeError, match="has not begun"):
        timeline.sample()
    assert card(timeline).rows["samples"] == "none yet"
    with timeline, pytest.raises(RuntimeError, match="is in use: make another"), timeline:
        pass
    sampled = cu.debug.MemoryTimeline()
    with sampled:
        pass
    for used in timeline, sampled:
        with pytest.raises(RuntimeError, match="of one with block"), used:
            pass


def test_a_capture_goes_on(device, stream):
    with device.allocate(64, stream=stream) as a, stream.capture() as captured:
        a.fill(1, stream=stream)
        with cu.debug.MemoryTimeline(interval_ms=None) as timeline:
            card(timeline)
        a.fill(2, stream=stream)
    assert len(captured.nodes) == 2
    captured.close()


def test_how_it_is_shown(device, pool, stream):
    with cu.debug.MemoryTimeline(interval_ms=None) as timeline, pool.allocate(99, stream=stream):
        timeline.sample()
    stream.sync()
    shown = card(timeline)
    assert shown.rows["samples"].startswith("3 in ")
    assert shown.tags.count("svg") == 1
    assert "at most 99 bytes" in shown.text
    (line,) = [line for line in str(timeline).splitlines() if "at most 99 bytes" in line]
    assert "\u2588" in line
    assert repr(timeline) == "<cudago.debug.MemoryTimeline: 3 samples>"


def test_the_summary_is_a_card_and_a_text(device, pool, stream):
    with pool.allocate(5 << 20, stream=stream), cu.PinnedMemoryResource().allocate(1 << 10):
        summary = cu.memory_summary()
    assert isinstance(summary, str)
    assert repr(summary) == str(summary)
    assert pickle.loads(pickle.dumps(summary)) == summary
    lines = card(summary).text.splitlines()
    assert any(line.startswith("pool") and "5.0 MiB live" in line for line in lines)
    assert any(line.startswith(PINNED) and "\u2588" in line for line in lines)


def test_objects_over_the_default_pool_are_one_pool(device):
    with cu.DeviceMemoryResource(device), cu.DeviceMemoryResource(device):
        lines = cu.memory_summary().splitlines()
    assert sum(line.startswith("  default pool") for line in lines) == 1


def test_a_device_that_is_reset_meanwhile(script, driver):
    run = script(
        """
        import cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        with cu.debug.MemoryTimeline(interval_ms=0.1) as timeline:
            kept = device.allocate(1 << 20, stream=stream)
            stream.sync()
            device.reset()
            device.create_stream().sync()
        assert timeline.samples
        """
    )
    assert (run.returncode, run.stderr) == (0, "")
