# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Events."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago.testing import hold


def test_facts(device):
    with device.create_event() as e:
        assert e.device is device
        assert e.handle
        assert repr(e) == f"<cudago.Event {e.handle:#x}>"
    assert repr(e) == "<cudago.Event: closed>"
    with pytest.raises(TypeError, match="Event"):
        cu.Event()


def test_an_event_that_was_never_recorded_is_done(device):
    with device.create_event() as e:
        assert e.is_done
        e.sync()


def test_done_and_sync(stream):
    with hold(stream) as go_on, stream.record() as e:
        assert not e.is_done
        go_on.set()
        e.sync()
        assert e.is_done
    stream.sync()


def test_record_gives_what_it_was_given(stream, device):
    with device.create_event() as e:
        assert stream.record(e) is e
        e.sync()
    with pytest.raises(cu.ClosedError, match="event is closed"):
        stream.record(e)
    with pytest.raises(TypeError, match="event must be"):
        stream.record("now")


def test_a_record_can_measure_time(stream, device):
    with stream.record(timing=True) as start, stream.record(timing=True) as end:
        end.sync()
        assert end - start >= 0
    with device.create_event(timing_enabled=True) as e:
        with pytest.raises(ValueError, match="timing=True is for a new event"):
            stream.record(e, timing=True)
        assert stream.record(e, timing=False) is e


def test_a_later_record_replaces_the_earlier(stream, device):
    with device.create_event() as e:
        stream.record(e)
        stream.sync()
        with hold(stream):
            stream.record(e)
            assert not e.is_done
        e.sync()


def test_elapsed_time(stream, device):
    with (
        device.create_event(timing_enabled=True) as start,
        device.create_event(timing_enabled=True) as end,
    ):
        stream.record(start)
        stream.record(end)
        end.sync()
        assert end.elapsed_ms(start) >= 0
        assert end - start == end.elapsed_ms(start)


def test_time_that_cannot_be_measured(stream, device):
    with (
        device.create_event(timing_enabled=True) as never,
        device.create_event(timing_enabled=True) as timed,
        device.create_event() as untimed,
    ):
        stream.record(timed)
        stream.record(untimed)
        stream.sync()
        for start, end in ((never, timed), (timed, never)):
            with pytest.raises(cu.CUDAError, match="CUDA_ERROR_INVALID_HANDLE") as e:
                end.elapsed_ms(start)
            assert e.value.operation.startswith("cuEventElapsedTime")
        for start, end in ((untimed, timed), (timed, untimed)):
            with pytest.raises(ValueError, match="created without timing"):
                end.elapsed_ms(start)
        with hold(stream):
            stream.record(never)
            with pytest.raises(cu.CUDAError, match="CUDA_ERROR_NOT_READY"):
                never.elapsed_ms(timed)
        stream.sync()


def test_time_between_devices(driver, script):
    if driver == "nvidia" and len(cu.Device.all()) < 2:
        pytest.skip("there is one device")
    run = script(
        """
        import cudago as cu
        a, b = (d.create_event(timing_enabled=True) for d in cu.Device.all()[:2])
        try:
            b.elapsed_ms(a)
        except ValueError as e:
            print(e)
        """,
        CUDAGO_SIM="devices=2",
    )
    assert run.stdout == ("start must be of device 1, as the end event is, got one of device 0\n")


def test_close(device, stream):
    e = device.create_event(blocking_sync=True)
    stream.record(e)
    e.close()
    e.close()
    assert e.is_closed
    for use in (e.sync, lambda: e.is_done, lambda: e.handle, lambda: e - e, lambda: stream.wait(e)):
        with pytest.raises(cu.ClosedError, match="event is closed"):
            use()


def test_an_event_outlives_its_stream(device):
    s = device.create_stream()
    with hold(s) as go_on:
        e = s.record()
        s.close()
        assert not e.is_done
        go_on.set()
    e.sync()
    e.close()
