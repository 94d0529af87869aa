# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""`testing.hold`: what could never end."""

from __future__ import annotations

import linecache
import sys

import pytest

import cudago as cu


def test_a_stream_that_is_capturing(stream):
    with (
        stream.capture() as graph,
        pytest.raises(ValueError, match="what is captured waits for nothing"),
        cu.testing.hold(stream),
    ):
        pass
    assert graph.nodes == ()
    graph.close()


def test_a_second_one(device, stream):
    """It ends at once, and its stream goes on after the first."""
    with device.create_stream() as other:
        with cu.testing.hold(stream) as go_on:
            for again in (stream, other):
                with cu.testing.hold(again):
                    pass
                assert not again.is_done
            go_on.set()
            with cu.testing.hold(other):
                assert not other.is_done
        stream.sync()
        other.sync()


def interrupted_at(line, stream):
    """Hold a stream, with Ctrl-C before a line of `hold`; return its locals as of then."""
    found = []

    def trace(frame, event, arg):
        if frame.f_code is not cu.testing.hold.__wrapped__.__code__:
            return None
        if event == "line" and frame.f_lineno == line:
            sys.settrace(None)
            found.append(frame.f_locals)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with cu.testing.hold(stream):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return found


def test_an_interrupt_lets_the_stream_go_on(stream):
    code = cu.testing.hold.__wrapped__.__code__
    lines = sorted({line for *_, line in code.co_lines() if line})
    # Python looks for signals at calls, and what a try guards does not begin at its own line.
    lines = [n for n in lines if linecache.getline(code.co_filename, n).strip() != "try:"]
    held = {}
    for line in lines:
        for found in interrupted_at(line, stream):
            if (go_on := found.get("go_on")) is not None:
                held[line] = not go_on.is_set() and not stream.is_done
                go_on.set()
        stream.sync()
    assert len(held) > 10
    assert [line for line, is_held in held.items() if is_held] == []
